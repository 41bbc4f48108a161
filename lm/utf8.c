/* UTF-8 by the table of well-formed byte sequences (Unicode standard, table 3-7): no overlong
 * forms, no surrogates, nothing above U+10FFFF. */
#include "lm/utf8.h"

#include <stdint.h>
#include <string.h>

static const char REPLACEMENT[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* Length that a first byte announces, 0 if it cannot be first; [lo, hi] bounds the second byte. */
static int lead(unsigned char c, unsigned char* lo, unsigned char* hi) {
  *lo = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
  *hi = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
  if (c < 0x80) return 1;
  if (c < 0xC2) return 0;
  if (c < 0xE0) return 2;
  if (c < 0xF0) return 3;
  return c < 0xF5 ? 4 : 0;
}

int lm_utf8_char(const unsigned char* s, size_t n) {
  unsigned char lo, hi;
  int want = lead(s[0], &lo, &hi);

  for (int i = 1; i < want; i++) {
    if ((size_t)i == n) return i - want;
    if (s[i] < lo || s[i] > hi) return 0;
    lo = 0x80;
    hi = 0xBF;
  }
  return want;
}

size_t lm_utf8_valid_prefix(const char* text, size_t n) {
  const unsigned char* s = (const unsigned char*)text;
  size_t i = 0;

  while (i < n) {
    uint64_t eight;
    if (n - i >= 8 && (memcpy(&eight, s + i, 8), !(eight & 0x8080808080808080u))) {
      i += 8;
      continue;
    }
    int k = lm_utf8_char(s + i, n - i);
    if (k <= 0) break;
    i += (size_t)k;
  }
  return i;
}

/* Take one byte. The pending bytes are always a proper beginning of a character. */
static int feed_byte(struct lm_utf8_stream* s, unsigned char c, struct lm_text* out) {
  s->pending[s->n++] = c;
  int k = lm_utf8_char(s->pending, s->n);
  if (k < 0) return 0;

  unsigned held = s->n;
  s->n = 0;
  if (k > 0) return lm_text_append(out, (const char*)s->pending, held);
  int err = lm_text_append(out, REPLACEMENT, 3);
  if (err || held == 1) return err;
  /* The beginning is given up; the byte that broke it may begin something itself. */
  return feed_byte(s, c, out);
}

int lm_utf8_feed(struct lm_utf8_stream* s, const char* bytes, size_t n, struct lm_text* out) {
  int err = lm_text_reserve(out, n * 3); /* so that nothing below fails half way */

  for (size_t i = 0; i < n && !err; i++) {
    size_t whole = s->n ? 0 : lm_utf8_valid_prefix(bytes + i, n - i);
    if (whole) err = lm_text_append(out, bytes + i, whole);
    i += whole;
    if (i < n && !err) err = feed_byte(s, (unsigned char)bytes[i], out);
  }
  return err;
}

int lm_utf8_finish(struct lm_utf8_stream* s, struct lm_text* out) {
  int err = s->n ? lm_text_append(out, REPLACEMENT, 3) : 0;

  if (!err) s->n = 0;
  return err;
}
