/* What rules and kernels of indexing share. */
#ifndef RPI_OP_INDEX_H
#define RPI_OP_INDEX_H

#include "core/shape.h"

enum rpi_pad_mode { RPI_PAD_CONSTANT, RPI_PAD_EDGE };

/* The part of an array that slice_update_dynamic writes: the update's extents, aligned on the
 * right. Axes that the update lacks are written whole, or at one place if they are among the `n`
 * axes. */
static inline void rpi_update_region(struct shape* region, const int* shape, int ndim,
                                     const int* update, int nupdate, const int64_t* axes, int n) {
  int lead = ndim - nupdate;
  region->ndim = ndim;
  for (int i = 0; i < ndim; i++) region->dim[i] = i < lead ? shape[i] : update[i - lead];
  for (int k = 0; k < n; k++)
    if (axes[k] < lead) region->dim[axes[k]] = 1;
}

#endif
