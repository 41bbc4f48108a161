/* Steps of reductions: element-wise combination of runs into accumulators.
 *
 * Stated order of every reduction: the reduced elements in row-major order are cut into chunks of
 * RPI_REDUCE_CHUNK. Within a chunk element r goes to lane r % 64, in order; lanes that hold an
 * element (made up to a power of two by lanes of the identity) are combined by the tree lane[i] op=
 * lane[i + w] for w = 32, 16, 8, 4, 2, 1. The results of chunks are combined one after another. */
#ifndef RPI_BACKEND_CPU_REDUCE_H
#define RPI_BACKEND_CPU_REDUCE_H

#include <stdint.h>

#include "backend/cpu/isa.h"
#include "core/dtype.h"

enum { RPI_LANES = 64, RPI_REDUCE_CHUNK = 65536 };

enum rpi_combine { RPI_COMBINE_SUM, RPI_COMBINE_PROD, RPI_COMBINE_MIN, RPI_COMBINE_MAX,
                   RPI_COMBINES };

struct rpi_reducer {
  /* acc[j] = acc[j] op a[j] */
  void (*step)(void* acc, const void* a, int64_t n);
  /* acc[j] = (((acc[j] op a[j]) op b[j]) op c[j]) op d[j] */
  void (*step4)(void* acc, const void* a, const void* b, const void* c, const void* d, int64_t n);
  /* Runs of 64 into 64 lanes: n is a multiple of 64. */
  void (*lanes)(void* acc, const void* x, int64_t n);
  /* The tree: lane 0 becomes the combination of `width` lanes, a power of two up to 64. */
  void (*fold)(void* acc, int width);
  uint64_t identity; /* its bits */
};

/* The reducer of values of one dtype, or NULL: sums and products exist for UINT32 and UINT64 (which
 * serve the signed ones), FLOAT32, FLOAT64 and COMPLEX64, min and max for all but the half formats.
 */
const struct rpi_reducer* rpi_reducer(enum rpi_combine op, int dtype);

/* Lanes that take part in the tree of `n` elements, n > 0. */
static inline int rpi_lanes_used(int64_t n) {
  int w = 1;
  while (w < RPI_LANES && w < n) w *= 2;
  return w;
}

typedef struct rpi_reducer rpi_reducer_table[RPI_COMBINES][RPI_DTYPE_COUNT];
extern const rpi_reducer_table rpi_reducers_scalar, rpi_reducers_avx2, rpi_reducers_avx512;

#endif
