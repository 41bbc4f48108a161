/* A growing text. Zero-initialised is empty.
 *
 * A failed allocation is remembered and later additions do nothing, so that a builder of many
 * pieces checks once, at the end: rpi_str_take gives NULL then. */
#ifndef RPI_BASE_STR_H
#define RPI_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

struct rpi_str {
  char* at; /* terminated; NULL while nothing was added */
  size_t n; /* bytes, the terminator not counted */
  size_t cap;
  bool failed;
};

/* Each returns 0, or non-zero when memory ran out now or before. `text` must not point into `s`. */
int rpi_str_add(struct rpi_str* s, const char* text);
int rpi_str_add_n(struct rpi_str* s, const char* bytes, size_t n); /* any bytes, NUL included */
int rpi_str_add_char(struct rpi_str* s, char c);
int rpi_str_addf(struct rpi_str* s, const char* fmt, ...) RPI_PRINTF(2, 3);

/* The text as it stands, "" when empty; borrowed until the next addition. */
const char* rpi_str_text(const struct rpi_str* s);

/* Hand the text over (rpi_free it) and empty the builder; NULL when an addition failed. */
char* rpi_str_take(struct rpi_str* s);

/* Empty it, keeping the room, and forget a failure. */
void rpi_str_reset(struct rpi_str* s);
void rpi_str_free(struct rpi_str* s);

#endif
