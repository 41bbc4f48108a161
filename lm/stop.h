/* Stop strings over a stream of text pieces, however the pieces are cut. */
#ifndef LM_STOP_H
#define LM_STOP_H

#include <stdbool.h>
#include <stddef.h>

#include "lm/text.h"

struct lm_stop;

/* A matcher for n strings (copied). n = 0 matches never. An empty string is RP_ERR_ARGUMENT. */
int lm_stop_new(struct lm_stop** out, const char* const* strings, size_t n);
void lm_stop_free(struct lm_stop* s);
void lm_stop_reset(struct lm_stop* s); /* forget held text and match */

/* Feed a piece: text that can no longer be part of a stop string is appended to `out`, the rest is
 * held back. The stop string that ends first wins, the longest of those that end together; then
 * only the text before it comes out and every later piece is ignored. The result does not depend
 * on where pieces are cut. */
int lm_stop_feed(struct lm_stop* s, const char* piece, size_t n, struct lm_text* out);

/* The end of the text: appends what was held back, unless a stop string matched. */
int lm_stop_finish(struct lm_stop* s, struct lm_text* out);

/* Index of the string that matched, or -1. */
int lm_stop_matched(const struct lm_stop* s);

#endif
