/* Strided copies of elements of 1, 2, 4 or 8 bytes: the whole of packing, joining and slicing.
 *
 * `to` and `from` count elements and may be zero (from) or negative. Source and destination do not
 * overlap. */
#ifndef RPI_BACKEND_CPU_MOVE_H
#define RPI_BACKEND_CPU_MOVE_H

#include "backend/backend.h"

struct move {
  int ndim;
  int64_t dim[RPI_MAX_NDIM], to[RPI_MAX_NDIM], from[RPI_MAX_NDIM];
};

/* All elements of a view into row-major order (or the other way, with the strides exchanged). */
void rpi_move_set(struct move* m, const int* shape, int ndim, const int64_t* to,
                  const int64_t* from);
/* Drop axes of extent 1, join axes that are walked with one stride, and put the axes into the order
 * that is copied fastest. Returns the number of elements. Order does not change what is copied. */
int64_t rpi_move_simplify(struct move* m);
/* Copy by the calling thread alone; `m` is simplified. */
void rpi_move_here(void* dst, const void* src, const struct move* m, size_t item);
/* Simplify and copy, over the pool if there is much to copy. */
void rpi_move(void* dst, const void* src, struct move* m, size_t item);

#endif
