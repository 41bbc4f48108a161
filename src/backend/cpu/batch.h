/* Batches of matrix products: the axes before the last two, walked by stride, 0 where one is
 * broadcast. */
#ifndef RPI_BACKEND_CPU_BATCH_H
#define RPI_BACKEND_CPU_BATCH_H

#include "backend/backend.h"

enum { RPI_BATCH_OPERANDS = 4 };

struct rpi_batch {
  int ndim; /* axes of extent 1 are dropped */
  int64_t count, extent[RPI_MAX_NDIM];
  int64_t step[RPI_BATCH_OPERANDS][RPI_MAX_NDIM]; /* elements */
};

/* The first `nbatch` axes of the output. */
static inline void rpi_batch_make(struct rpi_batch* b, const struct view* out, int nbatch) {
  b->ndim = 0;
  b->count = 1;
  for (int d = 0; d < nbatch; d++) {
    if (out->shape[d] == 1) continue;
    b->extent[b->ndim++] = out->shape[d];
    b->count *= out->shape[d];
  }
}

/* Steps of operand `k`, whose last `inner` axes belong to its matrix. */
static inline void rpi_batch_add(struct rpi_batch* b, int k, const struct view* out, int nbatch,
                                 const struct view* v, int inner) {
  int at = 0;
  for (int d = 0; d < nbatch; d++) {
    int dv = d - nbatch + v->ndim - inner;
    if (out->shape[d] == 1) continue;
    b->step[k][at++] = dv >= 0 && v->shape[dv] != 1 ? v->stride[dv] : 0;
  }
}

/* Where item `i` of operand `k` starts, in elements. */
static inline int64_t rpi_batch_at(const struct rpi_batch* b, int k, int64_t i) {
  int64_t at = 0;
  for (int d = b->ndim - 1; d >= 0; d--) {
    at += i % b->extent[d] * b->step[k][d];
    i /= b->extent[d];
  }
  return at;
}

/* Whether the innermost axis of operand `k` continues rows `row` apart, of which there are m; sets
 * *row where one row is all there is. */
static inline bool rpi_batch_continues(const struct rpi_batch* b, int k, int64_t m, int64_t* row) {
  int64_t step = b->step[k][b->ndim - 1];
  if (m == 1) *row = step;
  return step == m * *row;
}

/* Make the innermost axis part of the rows. */
static inline void rpi_batch_merge(struct rpi_batch* b, int64_t* m) {
  b->ndim--;
  *m *= b->extent[b->ndim];
  b->count /= b->extent[b->ndim];
}

#endif
