/* Builder helpers of reductions: see op/reduce.h.
 *
 * Counts of elements are operations of the graph (number_of_elements), never constants, so that a
 * traced mean is right at every size. */
#include "op/reduce.h"

static struct array* reduce_axes(struct build* b, int op, struct array* x, const int* axes, int n,
                                 bool keepdims) {
  int64_t attr[1 + RPI_MAX_NDIM] = {keepdims};
  for (int i = 0; i < n; i++) attr[1 + i] = axes[i];
  return rpi_op(b, op, &x, 1, attr, 1 + n);
}

struct array* rpi_reduce(struct build* b, int op, struct array* x, const int* axes, int64_t n,
                         bool keepdims) {
  int all[RPI_MAX_NDIM], count;
  if (b->failed || !x || rpi_axes(b, all, &count, axes, n, x->ndim)) return NULL;
  return reduce_axes(b, op, x, all, count, keepdims);
}

/* The number of elements that the axes hold, or 1 over it. */
static struct array* count_elements(struct build* b, struct array* x, const int* axes, int n,
                                    bool inverted, int dtype) {
  int64_t attr[2 + RPI_MAX_NDIM] = {inverted, dtype};
  if (n == 0) return rpi_const(b, 1, dtype); /* no axes would mean all */
  for (int i = 0; i < n; i++) attr[2 + i] = axes[i];
  return rpi_op(b, RPI_OP_number_of_elements, &x, 1, attr, 2 + n);
}

/* What sums of `dtype` that are not final are kept in. */
static int wide_dtype(int dtype) {
  return dtype == RPI_FLOAT64 || dtype == RPI_COMPLEX64 ? dtype : RPI_FLOAT32;
}

struct array* rpi_mean(struct build* b, struct array* x, const int* axes, int64_t n,
                       bool keepdims) {
  int all[RPI_MAX_NDIM], count;
  if (b->failed || !x || rpi_axes(b, all, &count, axes, n, x->ndim)) return NULL;
  int dtype = rpi_dtype_at_least_float(x->dtype), wide = wide_dtype(dtype);
  struct array* sum = reduce_axes(b, RPI_OP_sum, rpi_astype(b, x, wide), all, count, keepdims);
  struct array* each = count_elements(b, x, all, count, true, wide);
  return rpi_astype(b, rpi_op2(b, RPI_OP_multiply, sum, each), dtype);
}

static struct array* square_of(struct build* b, struct array* x) {
  if (b->failed || !x) return NULL;
  if (x->dtype != RPI_COMPLEX64) return rpi_unary(b, RPI_OP_square, x);
  struct array* y = rpi_binary(b, RPI_OP_multiply, x, rpi_unary(b, RPI_OP_conjugate, x));
  return rpi_unary(b, RPI_OP_real, y);
}

struct array* rpi_var(struct build* b, struct array* x, const int* axes, int64_t n, bool keepdims,
                      int ddof) {
  int all[RPI_MAX_NDIM], count;
  if (b->failed || !x || rpi_axes(b, all, &count, axes, n, x->ndim)) return NULL;
  int dtype = rpi_dtype_at_least_float(x->dtype), wide = wide_dtype(dtype);
  struct array* y = rpi_astype(b, x, wide);
  struct array* far = rpi_binary(b, RPI_OP_subtract, y, rpi_mean(b, y, all, count, true));
  if (dtype == RPI_COMPLEX64) dtype = wide = RPI_FLOAT32;
  struct array* sum = reduce_axes(b, RPI_OP_sum, square_of(b, far), all, count, keepdims);
  if (!ddof) {
    struct array* each = count_elements(b, x, all, count, true, wide);
    return rpi_astype(b, rpi_op2(b, RPI_OP_multiply, sum, each), dtype);
  }
  struct array* number = count_elements(b, x, all, count, false, wide);
  number = rpi_op2(b, RPI_OP_subtract, number, rpi_const(b, ddof, wide));
  number = rpi_op2(b, RPI_OP_maximum, number, rpi_const(b, 0, wide));
  return rpi_astype(b, rpi_op2(b, RPI_OP_divide, sum, number), dtype);
}

/* exp(x - max) and the maximum, for complex values and several axes. */
static struct array* exp_less_max(struct build* b, struct array* x, const int* axes, int n,
                                  struct array** top) {
  *top = rpi_op1(b, RPI_OP_stop_gradient, reduce_axes(b, RPI_OP_max, x, axes, n, true));
  return rpi_unary(b, RPI_OP_exp, rpi_op2(b, RPI_OP_subtract, x, *top));
}

static struct array* complex_logsumexp(struct build* b, struct array* x, const int* axes, int n,
                                       bool keepdims) {
  struct array* top;
  if (rpi_shape_size(x->shape, x->ndim) == 0) /* has no maximum; log 0 */
    return rpi_unary(b, RPI_OP_log, reduce_axes(b, RPI_OP_sum, x, axes, n, keepdims));
  struct array* sum = reduce_axes(b, RPI_OP_sum, exp_less_max(b, x, axes, n, &top), axes, n, true);
  struct array* y = rpi_op2(b, RPI_OP_add, rpi_unary(b, RPI_OP_log, sum), top);
  struct array* in[] = {rpi_unary(b, RPI_OP_isinf, top), top, y};
  y = rpi_op(b, RPI_OP_select, in, 3, NULL, 0);
  return keepdims ? y : rpi_squeeze(b, y, axes, n);
}

struct array* rpi_logsumexp(struct build* b, struct array* x, const int* axes, int64_t n,
                            bool keepdims) {
  int all[RPI_MAX_NDIM], count;
  if (b->failed || !x || rpi_axes(b, all, &count, axes, n, x->ndim)) return NULL;
  if (x->dtype == RPI_COMPLEX64) return complex_logsumexp(b, x, all, count, keepdims);
  x = rpi_astype(b, x, rpi_dtype_at_least_float(x->dtype));
  return reduce_axes(b, RPI_OP_logsumexp, x, all, count, keepdims);
}

struct array* rpi_softmax(struct build* b, struct array* x, const int* axes, int64_t n) {
  int all[RPI_MAX_NDIM], count;
  if (b->failed || !x || rpi_axes(b, all, &count, axes, n, x->ndim)) return NULL;
  int dtype = rpi_dtype_at_least_float(x->dtype);
  if (count == 1 && dtype != RPI_COMPLEX64) {
    x = rpi_astype(b, x, dtype);
    return rpi_op(b, RPI_OP_softmax, &x, 1, (int64_t[]){all[0]}, 1);
  }
  if (rpi_shape_size(x->shape, x->ndim) == 0) return rpi_astype(b, x, dtype); /* has no maximum */
  struct array* top;
  struct array* y = exp_less_max(b, rpi_astype(b, x, wide_dtype(dtype)), all, count, &top);
  struct array* sum = reduce_axes(b, RPI_OP_sum, y, all, count, true);
  return rpi_astype(b, rpi_op2(b, RPI_OP_divide, y, sum), dtype);
}

static struct array* along(struct build* b, int op, struct array* x, int axis, int64_t second,
                           int64_t third, int nattr) {
  int a;
  if (b->failed || !x) return NULL;
  if ((b->failed = rpi_axis(&a, b->name, axis, x->ndim))) return NULL;
  return rpi_op(b, op, &x, 1, (int64_t[]){a, second, third}, nattr);
}

struct array* rpi_argreduce(struct build* b, int op, struct array* x, int axis, bool keepdims) {
  int a;
  if (b->failed || !x) return NULL;
  if ((b->failed = rpi_axis(&a, b->name, axis, x->ndim))) return NULL;
  return rpi_op(b, op, &x, 1, (int64_t[]){keepdims, a}, 2);
}

struct array* rpi_sort(struct build* b, int op, struct array* x, int axis) {
  return along(b, op, x, axis, 0, 0, 1);
}

struct array* rpi_partition(struct build* b, int op, struct array* x, int kth, int axis) {
  return along(b, op, x, axis, kth, 0, 2);
}

struct array* rpi_scan(struct build* b, int op, struct array* x, int axis, bool reverse,
                       bool inclusive) {
  return along(b, op, x, axis, reverse, inclusive, 3);
}
