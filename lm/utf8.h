/* UTF-8: validation, and a stream that hands out only complete characters. */
#ifndef LM_UTF8_H
#define LM_UTF8_H

#include <stddef.h>

#include "lm/text.h"

/* Bytes of the valid character at `s` (n >= 1 bytes left): 1 to 4. 0 if the bytes cannot begin a
 * character, or -k if all n bytes are a proper beginning of one that needs k more. */
int lm_utf8_char(const unsigned char* s, size_t n);

/* Length of the longest valid prefix of s[0..n). */
size_t lm_utf8_valid_prefix(const char* s, size_t n);

/* Holds the bytes of a character whose end has not come yet. Zeroed is empty. */
struct lm_utf8_stream {
  unsigned char pending[4];
  unsigned n;
};

/* Append to `out` every character that is complete now. Bytes that cannot become a character turn
 * into U+FFFD, one for each maximal part (the Unicode recommendation). */
int lm_utf8_feed(struct lm_utf8_stream* s, const char* bytes, size_t n, struct lm_text* out);

/* The end of the text: what is pending becomes one U+FFFD. */
int lm_utf8_finish(struct lm_utf8_stream* s, struct lm_text* out);

#endif
