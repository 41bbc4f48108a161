/* Texts that handles share: counted, immutable, terminated. */
#ifndef RPI_API_TEXT_H
#define RPI_API_TEXT_H

#include <stdatomic.h>
#include <stddef.h>

#include "mlx/c/string.h"

struct text {
  _Atomic(int) refs;
  char at[];
};

/* A copy of `n` bytes; NULL after raising. */
struct text* rpi_text_new(const char* bytes, size_t n);

static inline struct text* rpi_text_retain(struct text* t) {
  atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
  return t;
}
void rpi_text_release(struct text* t); /* NULL is fine */

/* Make *res name `t` (the reference is taken, also on failure); NULL passes a failure on. */
int rpi_string_set_text(mlx_string* res, struct text* t);
/* Make *res hold a copy of `text`. */
int rpi_string_set(mlx_string* res, const char* text);

#endif
