/* Growable arrays of any type: struct { T* at; int64_t n, cap; }.
 *
 * RPI_VEC(T) declares one; rpi_vec_push(&v, value) is 0 or non-zero on allocation failure (nothing is
 * changed then); rpi_vec_free(&v) releases the storage and empties it. */
#ifndef RPI_BASE_VEC_H
#define RPI_BASE_VEC_H

#include <stdint.h>

#include "base/mem.h"

#define RPI_VEC(T) \
  struct {         \
    T* at;         \
    int64_t n;     \
    int64_t cap;   \
  }

/* Room for at least `want` items; on failure the vector is unchanged and the result non-zero. */
static inline int rpi_vec_grow(void** at, int64_t* cap, int64_t want, size_t item) {
  if (want <= *cap) return 0;
  int64_t cap2 = *cap ? *cap * 2 : 8;
  if (cap2 < want) cap2 = want;
  void* p = rpi_realloc(*at, (size_t)cap2 * item);
  if (!p) return 1;
  *at = p;
  *cap = cap2;
  return 0;
}

#define rpi_vec_reserve(v, want) \
  rpi_vec_grow((void**)&(v)->at, &(v)->cap, (want), sizeof *(v)->at)
#define rpi_vec_push(v, value) \
  (rpi_vec_reserve(v, (v)->n + 1) ? 1 : ((v)->at[(v)->n++] = (value), 0))
#define rpi_vec_free(v) (rpi_free((v)->at), (v)->at = 0, (v)->n = 0, (v)->cap = 0)

#endif
