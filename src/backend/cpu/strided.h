/* Walking memory with strides: the one place where kernels meet layouts.
 *
 * A nest is a loop nest over the elements of one view in row-major order, simplified: axes of
 * extent 1 are dropped and neighbours that one stride serves are merged. Axis 0 of a nest is the
 * innermost. Strides may be negative or zero. Nothing here reads outside the view's elements, and
 * an empty view is never read. */
#ifndef RPI_BACKEND_CPU_STRIDED_H
#define RPI_BACKEND_CPU_STRIDED_H

#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"

struct rpi_nest {
  int ndim;                      /* at least 1; a single element is one axis of extent 1 */
  int item;                      /* bytes of an element */
  int64_t extent[RPI_MAX_NDIM];  /* innermost first */
  int64_t stride[RPI_MAX_NDIM];  /* bytes */
};

/* A position in a nest. */
struct rpi_cursor {
  const char* at; /* the element there */
  int64_t index[RPI_MAX_NDIM];
};

void rpi_nest_make(struct rpi_nest* n, const struct view* v);

/* The same for several views of one shape at once, merging only what all strides allow.
 * `stride[k]` has room for ndim strides of view k, in elements; `extent` likewise. Returns the
 * axes left (at least 1), innermost first. */
int rpi_nest_joint(int64_t* extent, int64_t* const* stride, const struct view* v, int nviews);

/* The position of element number `i` in row-major order. */
void rpi_cursor_seek(struct rpi_cursor* c, const struct rpi_nest* n, const void* first, int64_t i);

/* Copy the next `count` elements to contiguous memory and move on. Past the last element the walk
 * starts over. */
void rpi_cursor_gather(struct rpi_cursor* c, const struct rpi_nest* n, void* dst, int64_t count);

/* Elements from here to the end of the innermost axis. */
static inline int64_t rpi_cursor_run(const struct rpi_cursor* c, const struct rpi_nest* n) {
  return n->extent[0] - c->index[0];
}

/* Move on by `count` elements, at most rpi_cursor_run. */
void rpi_cursor_skip(struct rpi_cursor* c, const struct rpi_nest* n, int64_t count);

/* `count` copies of one element of `item` bytes (1, 2, 4 or 8). */
void rpi_fill(void* dst, const void* value, int item, int64_t count);

/* Copy a view into row-major memory that does not overlap it. The slot of the backend's table. */
int rpi_cpu_pack(void* dst, const void* src, const struct view* v);

#endif
