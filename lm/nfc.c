/* Form C as the Unicode standard's annex 15 defines it: decompose fully, order each run of
 * combining marks by class (stable), compose again.
 *
 * A character is one word: the code point, and its combining class in the upper byte. */
#include "lm/nfc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lm/err.h"
#include "lm/nfc_table.h"
#include "lm/utf8.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Hangul syllables are composed by arithmetic (the standard, section 3.12). */
enum { S0 = 0xAC00, L0 = 0x1100, V0 = 0x1161, T0 = 0x11A7, NL = 19, NV = 21, NT = 28 };
enum { NS = NL * NV * NT };

static const uint32_t CP = 0xFFFFFF;

struct chars {
  uint32_t *data, *spare; /* spare: as large, for sorting */
  size_t len, cap;
};

bool lm_nfc_is_plain(const char* s, size_t n) {
  for (size_t i = 0; i < n; i++)
    if ((unsigned char)s[i] >= 0xCC) return false;
  return true;
}

static uint32_t class_of(uint32_t cp) {
  size_t lo = 0, hi = COUNT(nfc_classes);

  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (nfc_classes[mid].last < cp)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < COUNT(nfc_classes) && nfc_classes[lo].first <= cp ? nfc_classes[lo].combining : 0;
}

/* Row of nfc_decomp for a code point, or -1. */
static int find_decomp(uint32_t cp) {
  size_t lo = 0, hi = COUNT(nfc_decomp);

  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (nfc_decomp[mid].cp < cp)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < COUNT(nfc_decomp) && nfc_decomp[lo].cp == cp ? (int)lo : -1;
}

/* The character that two compose to, or 0. */
static uint32_t compose_pair(uint32_t a, uint32_t b) {
  size_t lo = 0, hi = COUNT(nfc_pairs);

  if (a - L0 < NL && b - V0 < NV) return S0 + ((a - L0) * NV + (b - V0)) * NT;
  if (a - S0 < NS && (a - S0) % NT == 0 && b - T0 - 1 < NT - 1) return a + (b - T0);
  while (lo < hi) {
    size_t mid = (lo + hi) / 2, row = nfc_pairs[mid];
    uint32_t first = nfc_decomp[row].first, second = nfc_decomp[row].second;
    if (first == a && second == b) return nfc_decomp[row].cp;
    if (first < a || (first == a && second < b))
      lo = mid + 1;
    else
      hi = mid;
  }
  return 0;
}

static int reserve(struct chars* c, size_t cap) {
  c->data = malloc(cap * sizeof *c->data);
  c->spare = malloc(cap * sizeof *c->spare);
  c->cap = cap;
  return c->data && c->spare ? 0 : lm_fail_memory("normalization", cap * 8);
}

static void put(struct chars* c, uint32_t cp) { c->data[c->len++] = cp | class_of(cp) << 24; }

/* Decompose fully: the first part of each step may go on, the second never does. */
static void put_decomposed(struct chars* c, uint32_t cp) {
  uint32_t tail[4];
  int n = 0;

  if (cp - S0 < NS) {
    put(c, L0 + (cp - S0) / (NV * NT));
    put(c, V0 + (cp - S0) / NT % NV);
    if ((cp - S0) % NT) put(c, T0 + (cp - S0) % NT);
    return;
  }
  for (int row; n < 4 && (row = find_decomp(cp)) >= 0; cp = nfc_decomp[row].first)
    if (nfc_decomp[row].second) tail[n++] = nfc_decomp[row].second;
  put(c, cp);
  while (n) put(c, tail[--n]);
}

/* Order data[lo..hi), all of class above 0, by class: a counting sort, so that a long run of marks
 * stays linear. */
static void order_run(struct chars* c, size_t lo, size_t hi) {
  size_t start[257] = {0};

  for (size_t i = lo; i < hi; i++) start[(c->data[i] >> 24) + 1]++;
  for (int k = 0; k < 256; k++) start[k + 1] += start[k];
  for (size_t i = lo; i < hi; i++) c->spare[start[c->data[i] >> 24]++] = c->data[i];
  memcpy(c->data + lo, c->spare, (hi - lo) * sizeof *c->data);
}

static void order_marks(struct chars* c) {
  for (size_t i = 0, end; i < c->len; i = end) {
    bool is_ordered = true;
    for (end = i; end < c->len && c->data[end] >> 24; end++)
      is_ordered = is_ordered && (end == i || c->data[end - 1] >> 24 <= c->data[end] >> 24);
    if (!is_ordered) order_run(c, i, end);
    end += end == i;
  }
}

/* Compose each mark or follower with the last starter, unless something between blocks it. */
static void compose(struct chars* c) {
  size_t n = 0, starter = SIZE_MAX;

  for (size_t i = 0; i < c->len; i++) {
    uint32_t x = c->data[i], k = x >> 24;
    bool is_open = starter != SIZE_MAX && (n == starter + 1 || (k && c->data[n - 1] >> 24 < k));
    uint32_t whole = is_open ? compose_pair(c->data[starter], x & CP) : 0;
    if (whole) {
      c->data[starter] = whole; /* composites have class 0 */
      continue;
    }
    if (!k) starter = n;
    c->data[n++] = x;
  }
  c->len = n;
}

static uint32_t decode(const unsigned char* s, int n) {
  static const unsigned char mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  uint32_t cp = s[0] & mask[n];

  for (int i = 1; i < n; i++) cp = cp << 6 | (s[i] & 0x3F);
  return cp;
}

static int append_utf8(struct lm_text* out, uint32_t cp) {
  int n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
  char s[4];

  for (int i = n - 1; i > 0; i--, cp >>= 6) s[i] = (char)(0x80 | (cp & 0x3F));
  s[0] = (char)(n == 1 ? cp : (0xF00u >> n & 0xF0u) | cp);
  return lm_text_append(out, s, (size_t)n);
}

int lm_nfc(const char* text, size_t n, struct lm_text* out) {
  const unsigned char* s = (const unsigned char*)text;
  struct chars c = {0};
  int err = reserve(&c, 2 * n + 8); /* at most 4 characters from 2 bytes */

  for (size_t i = 0; i < n && !err;) {
    int k = lm_utf8_char(s + i, n - i);
    put_decomposed(&c, decode(s + i, k));
    i += (size_t)k;
  }
  if (!err) {
    order_marks(&c);
    compose(&c);
    err = lm_text_reserve(out, n);
  }
  for (size_t i = 0; i < c.len && !err; i++) err = append_utf8(out, c.data[i] & CP);
  free(c.data);
  free(c.spare);
  return err;
}
