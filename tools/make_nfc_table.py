"""Write lm/nfc_table.h from Python's Unicode data: tools/make_nfc_table.py > lm/nfc_table.h"""
import unicodedata as u

decomp, classes = [], []
for cp in range(0x110000):
    c = chr(cp)
    k = u.combining(c)
    if k and classes and classes[-1][1] == cp - 1 and classes[-1][2] == k:
        classes[-1][1] = cp
    elif k:
        classes.append([cp, cp, k])
    d = u.decomposition(c)
    if d and not d.startswith("<"):
        parts = [int(x, 16) for x in d.split()] + [0]
        decomp.append((cp, parts[0], parts[1]))

pairs = [i for i, (cp, a, b) in enumerate(decomp)
         if b and u.normalize("NFC", chr(a) + chr(b)) == chr(cp)]
pairs.sort(key=lambda i: decomp[i][1:])


def table(rows, per_line):
    rows = [", ".join(rows[i:i + per_line]) for i in range(0, len(rows), per_line)]
    return ",\n    ".join(rows)


print(f"""/* Unicode {u.unidata_version}: canonical decompositions and combining classes.
 * Made by tools/make_nfc_table.py; do not edit. */
#ifndef LM_NFC_TABLE_H
#define LM_NFC_TABLE_H

#include <stdint.h>

/* clang-format off */
/* One step of decomposition, ordered by code point; second is 0 for a single one. */
static const struct {{
  uint32_t cp, first, second;
}} nfc_decomp[{len(decomp)}] = {{
    {table(["{0x%x,0x%x,0x%x}" % r for r in decomp], 4)}}};

/* Rows of nfc_decomp that compose again, ordered by (first, second). */
static const uint16_t nfc_pairs[{len(pairs)}] = {{
    {table(["%d" % i for i in pairs], 16)}}};

/* Ranges with a combining class other than 0, ordered. */
static const struct {{
  uint32_t first, last;
  uint8_t combining;
}} nfc_classes[{len(classes)}] = {{
    {table(["{0x%x,0x%x,%d}" % tuple(r) for r in classes], 5)}}};
/* clang-format on */

#endif""")
