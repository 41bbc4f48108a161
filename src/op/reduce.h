/* Builder helpers of reductions and running reductions, over op/build.h. Axes may be negative; a
 * count of axes below 0 means all. */
#ifndef RPI_OP_REDUCE_H
#define RPI_OP_REDUCE_H

#include "op/build.h"

/* RPI_OP_sum, prod, min, max, all, any or logsumexp of x in its own dtype. */
struct array* rpi_reduce(struct build* b, int op, struct array* x, const int* axes, int64_t n,
                         bool keepdims);
/* Floating (integers as float32); the sum times 1/N in float32 or wider, rounded once. */
struct array* rpi_mean(struct build* b, struct array* x, const int* axes, int64_t n, bool keepdims);
struct array* rpi_var(struct build* b, struct array* x, const int* axes, int64_t n, bool keepdims,
                      int ddof);
struct array* rpi_logsumexp(struct build* b, struct array* x, const int* axes, int64_t n,
                            bool keepdims);
struct array* rpi_softmax(struct build* b, struct array* x, const int* axes, int64_t n);
/* RPI_OP_argmin or argmax; RPI_OP_sort or argsort; RPI_OP_partition or argpartition. */
struct array* rpi_argreduce(struct build* b, int op, struct array* x, int axis, bool keepdims);
struct array* rpi_sort(struct build* b, int op, struct array* x, int axis);
struct array* rpi_partition(struct build* b, int op, struct array* x, int kth, int axis);
/* RPI_OP_cumsum and kin. */
struct array* rpi_scan(struct build* b, int op, struct array* x, int axis, bool reverse,
                       bool inclusive);

#endif
