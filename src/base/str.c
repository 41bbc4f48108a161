/* A growing text: room doubles, one byte is always kept for the terminator. */
#include "base/str.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* Room for `more` bytes and the terminator. */
static int reserve(struct rpi_str* s, size_t more) {
  if (s->failed) return 1;
  if (more < s->cap - s->n) return 0; /* cap is 0 or larger than n */

  if (more > SIZE_MAX / 4 - s->n) return s->failed = true;
  size_t cap = s->cap ? s->cap * 2 : 64;
  while (cap <= s->n + more) cap *= 2;
  char* at = rpi_realloc(s->at, cap);
  if (!at) return s->failed = true;
  s->at = at;
  s->cap = cap;
  return 0;
}

int rpi_str_add_n(struct rpi_str* s, const char* bytes, size_t n) {
  if (reserve(s, n)) return 1;
  if (n) memcpy(s->at + s->n, bytes, n);
  s->n += n;
  s->at[s->n] = 0;
  return 0;
}

int rpi_str_add(struct rpi_str* s, const char* text) {
  return rpi_str_add_n(s, text, strlen(text));
}

int rpi_str_add_char(struct rpi_str* s, char c) { return rpi_str_add_n(s, &c, 1); }

int rpi_str_addf(struct rpi_str* s, const char* fmt, ...) {
  va_list args, again;

  if (reserve(s, 1)) return 1;
  va_start(args, fmt);
  va_copy(again, args);
  int n = vsnprintf(s->at + s->n, s->cap - s->n, fmt, args);
  va_end(args);
  if (n >= 0 && (size_t)n >= s->cap - s->n) {
    s->at[s->n] = 0; /* what stands if there is no room for the rest */
    n = reserve(s, (size_t)n) ? -1 : vsnprintf(s->at + s->n, s->cap - s->n, fmt, again);
  }
  va_end(again);
  if (n < 0) {
    s->failed = true;
    return 1;
  }
  s->n += (size_t)n;
  return 0;
}

const char* rpi_str_text(const struct rpi_str* s) { return s->at ? s->at : ""; }

char* rpi_str_take(struct rpi_str* s) {
  rpi_str_add_n(s, "", 0); /* an empty text is a text too */
  char* text = s->failed ? NULL : s->at;
  if (!text) rpi_free(s->at);
  *s = (struct rpi_str){0};
  return text;
}

void rpi_str_reset(struct rpi_str* s) {
  s->n = 0;
  s->failed = false;
  if (s->at) s->at[0] = 0;
}

void rpi_str_free(struct rpi_str* s) {
  rpi_free(s->at);
  *s = (struct rpi_str){0};
}
