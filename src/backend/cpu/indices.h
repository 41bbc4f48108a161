/* Index arrays of any integer dtype and strides, as offsets into memory.
 *
 * A negative index counts from the end. What is still outside is clamped, so that no foreign memory is
 * ever reached. */
#ifndef RPI_BACKEND_CPU_INDICES_H
#define RPI_BACKEND_CPU_INDICES_H

#include "backend/backend.h"

/* How an index becomes an offset: into [0, extent - size], times stride. */
struct index_range {
  int64_t extent, size, stride;
};

/* out[k] += offset of the k-th of `n` indices that lie `step` elements apart. */
void rpi_indices_add(int64_t* out, const void* src, int dtype, int64_t n, int64_t step,
                     struct index_range range);
/* The same for all elements, in row-major order, of an array stretched to `shape`. */
void rpi_indices_add_all(int64_t* out, const void* src, const struct view* v, const int* shape,
                         int ndim, struct index_range range);

#endif
