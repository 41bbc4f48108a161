/* Stop strings: the held text is always shorter than the longest stop string, so each byte costs
 * at most one comparison with every string.
 *
 * Invariant: `held` is the longest suffix of the text so far that is a proper prefix of a stop
 * string. */
#include "lm/stop.h"

#include <stdlib.h>
#include <string.h>

#include "lm/err.h"

struct lm_stop {
  struct lm_text* strings;
  size_t n;
  struct lm_text held;
  int matched;
};

int lm_stop_new(struct lm_stop** out, const char* const* strings, size_t n) {
  struct lm_stop* s = calloc(1, sizeof *s);
  if (!s) return lm_fail_memory("stop strings", sizeof *s);
  s->matched = -1;
  s->strings = calloc(n ? n : 1, sizeof *s->strings);
  int err = s->strings ? 0 : lm_fail_memory("stop strings", n * sizeof *s->strings);

  for (size_t i = 0; i < n && !err; i++) {
    s->n = i + 1;
    if (!strings[i] || !strings[i][0])
      err = lm_fail(RP_ERR_ARGUMENT, "[stop] Stop string %zu is empty.", i);
    else
      err = lm_text_append_str(&s->strings[i], strings[i]);
  }
  if (err) {
    lm_stop_free(s);
    return err;
  }
  *out = s;
  return 0;
}

void lm_stop_free(struct lm_stop* s) {
  if (!s) return;
  for (size_t i = 0; i < s->n; i++) lm_text_free(&s->strings[i]);
  free(s->strings);
  lm_text_free(&s->held);
  free(s);
}

static void drop_held(struct lm_stop* s, size_t n) {
  s->held.len -= n;
  if (s->held.data) {
    memmove(s->held.data, s->held.data + n, s->held.len);
    s->held.data[s->held.len] = '\0';
  }
}

void lm_stop_reset(struct lm_stop* s) {
  drop_held(s, s->held.len);
  s->matched = -1;
}

/* The longest stop string that the held text ends with, or -1. */
static int find_match(const struct lm_stop* s) {
  int best = -1;

  for (size_t i = 0; i < s->n; i++) {
    const struct lm_text* w = &s->strings[i];
    if (w->len > s->held.len || (best >= 0 && w->len <= s->strings[best].len)) continue;
    if (memcmp(s->held.data + s->held.len - w->len, w->data, w->len) == 0) best = (int)i;
  }
  return best;
}

/* Is the held text from `from` on a proper prefix of a stop string? */
static bool could_stop(const struct lm_stop* s, size_t from) {
  size_t len = s->held.len - from;

  for (size_t i = 0; i < s->n; i++)
    if (len < s->strings[i].len && memcmp(s->held.data + from, s->strings[i].data, len) == 0)
      return true;
  return false;
}

static int release(struct lm_stop* s, size_t n, struct lm_text* out) {
  int err = n ? lm_text_append(out, s->held.data, n) : 0;

  if (!err) drop_held(s, n);
  return err;
}

static int feed_byte(struct lm_stop* s, char c, struct lm_text* out) {
  int err = lm_text_append(&s->held, &c, 1);
  if (err) return err;

  int match = find_match(s);
  if (match >= 0) {
    err = release(s, s->held.len - s->strings[match].len, out);
    if (err) return err;
    drop_held(s, s->held.len);
    s->matched = match;
    return 0;
  }
  size_t from = 0;
  while (from < s->held.len && !could_stop(s, from)) from++;
  return release(s, from, out);
}

int lm_stop_feed(struct lm_stop* s, const char* piece, size_t n, struct lm_text* out) {
  int err = 0;

  for (size_t i = 0; i < n && !err && s->matched < 0; i++) err = feed_byte(s, piece[i], out);
  return err;
}

int lm_stop_finish(struct lm_stop* s, struct lm_text* out) {
  return s->matched < 0 ? release(s, s->held.len, out) : 0;
}

int lm_stop_matched(const struct lm_stop* s) { return s->matched; }
