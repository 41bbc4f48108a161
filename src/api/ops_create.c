/* ops.h: arrays made from numbers, and matrices of diagonals. */
#include <limits.h>
#include <math.h>

#include "api/call.h"
#include "base/err.h"
#include "op/index.h"

static int check_dtype(struct build* b, mlx_dtype dtype) {
  if (!b->failed && !rpi_dtype_valid((int)dtype))
    rpi_build_fail(b, RP_ERR_DTYPE, "%d is not a dtype.", (int)dtype);
  return b->failed;
}

/* ---- filled ---------------------------------------------------------------------------------- */

static struct array* fill(struct build* b, const int* shape, size_t n, struct array* value,
                          mlx_dtype dtype) {
  if (!value || check_dtype(b, dtype)) return NULL;
  return rpi_broadcast_to(b, rpi_astype(b, value, (int)dtype), shape, (int64_t)n);
}

static struct array* number(struct build* b, double x, mlx_dtype dtype) {
  return check_dtype(b, dtype) ? NULL : rpi_const(b, x, (int)dtype);
}

int mlx_full(mlx_array* res, const int* shape, size_t shape_num, const mlx_array vals,
             mlx_dtype dtype, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "full", s);
  return rpi_finish(&b, res, fill(&b, shape, shape_num, rpi_arg(&b, vals), dtype));
}

int mlx_zeros(mlx_array* res, const int* shape, size_t shape_num, mlx_dtype dtype,
              const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "zeros", s);
  return rpi_finish(&b, res, fill(&b, shape, shape_num, number(&b, 0, dtype), dtype));
}

int mlx_ones(mlx_array* res, const int* shape, size_t shape_num, mlx_dtype dtype,
             const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "ones", s);
  return rpi_finish(&b, res, fill(&b, shape, shape_num, number(&b, 1, dtype), dtype));
}

/* `value` and `x` broadcast together, which normally is x's shape. It follows x in a trace. */
static struct array* fill_like(struct build* b, struct array* x, struct array* value) {
  if (b->failed || !x || !value) return NULL;
  return rpi_op(b, RPI_OP_broadcast_join, (struct array*[]){value, x}, 2, (int64_t[]){0}, 1);
}

int mlx_full_like(mlx_array* res, const mlx_array a, const mlx_array vals, mlx_dtype dtype,
                  const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "full_like", s);
  struct array *x = rpi_arg(&b, a), *value = rpi_arg(&b, vals);
  if (!check_dtype(&b, dtype)) value = rpi_astype(&b, value, (int)dtype);
  return rpi_finish(&b, res, fill_like(&b, x, value));
}

int mlx_zeros_like(mlx_array* res, const mlx_array a, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "zeros_like", s);
  struct array* x = rpi_arg(&b, a);
  return rpi_finish(&b, res, x ? fill_like(&b, x, rpi_const(&b, 0, x->dtype)) : NULL);
}

int mlx_ones_like(mlx_array* res, const mlx_array a, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "ones_like", s);
  struct array* x = rpi_arg(&b, a);
  return rpi_finish(&b, res, x ? fill_like(&b, x, rpi_const(&b, 1, x->dtype)) : NULL);
}

/* ---- counted --------------------------------------------------------------------------------- */

/* Complex values are counted as float32. */
static struct array* count(struct build* b, double start, double step, int64_t n, int dtype) {
  if (dtype != RPI_COMPLEX64) return rpi_arange(b, start, step, n, dtype);
  return rpi_astype(b, rpi_arange(b, start, step, n, RPI_FLOAT32), dtype);
}

static struct array* range(struct build* b, double start, double stop, double step,
                           mlx_dtype dtype) {
  if (check_dtype(b, dtype)) return NULL;
  if (dtype == MLX_BOOL) return rpi_build_fail(b, RP_ERR_DTYPE, "Not supported for bool.");
  if (!isfinite(start) || !isfinite(stop) || isnan(step) || step == 0)
    return rpi_build_fail(b, RP_ERR_ARGUMENT, "No length from %g to %g by %g.", start, stop, step);
  if (isinf(step)) /* at most the first value */
    return count(b, start, 0, step > 0 ? start < stop : start > stop, (int)dtype);
  double n = ceil((stop - start) / step);
  if (n > INT_MAX)
    return rpi_build_fail(b, RP_ERR_SHAPE, "%g values from %g to %g by %g; at most %d can be.", n,
                          start, stop, step, INT_MAX);
  return count(b, start, step, n > 0 ? (int64_t)n : 0, (int)dtype);
}

int mlx_arange(mlx_array* res, double start, double stop, double step, mlx_dtype dtype,
               const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "arange", s);
  return rpi_finish(&b, res, range(&b, start, stop, step, dtype));
}

/* (start * (last - i) + stop * i) / last in double, so that both ends are met exactly. */
static struct array* spaced(struct build* b, double start, double stop, int num, mlx_dtype dtype) {
  if (check_dtype(b, dtype)) return NULL;
  if (num < 0)
    return rpi_build_fail(b, RP_ERR_ARGUMENT, "The number of values %d is negative.", num);
  if (num < 2)
    return rpi_astype(b, rpi_arange(b, start, 0, num, RPI_FLOAT64), (int)dtype);
  struct array* up = rpi_arange(b, 0, 1, num, RPI_FLOAT64);
  struct array* down = rpi_arange(b, num - 1, -1, num, RPI_FLOAT64);
  down = rpi_binary(b, RPI_OP_multiply, down, rpi_const(b, start, RPI_FLOAT64));
  up = rpi_binary(b, RPI_OP_multiply, up, rpi_const(b, stop, RPI_FLOAT64));
  struct array* sum = rpi_binary(b, RPI_OP_add, down, up);
  sum = rpi_binary(b, RPI_OP_divide, sum, rpi_const(b, num - 1, RPI_FLOAT64));
  return rpi_astype(b, sum, (int)dtype);
}

int mlx_linspace(mlx_array* res, double start, double stop, int num, mlx_dtype dtype,
                 const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "linspace", s);
  return rpi_finish(&b, res, spaced(&b, start, stop, num, dtype));
}

int mlx_number_of_elements(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
                           bool inverted, mlx_dtype dtype, const mlx_stream s) {
  struct build b;
  int at[RPI_MAX_NDIM], n = 0;
  int64_t attr[2 + RPI_MAX_NDIM] = {inverted, (int)dtype};
  struct array* y = NULL;
  rpi_begin(&b, "number_of_elements", s);
  struct array* x = rpi_arg(&b, a);
  check_dtype(&b, dtype);
  if (x && !rpi_axes(&b, at, &n, axes, (int64_t)axes_num, x->ndim)) {
    for (int i = 0; i < n; i++) attr[2 + i] = at[i];
    /* The product over no axes is 1; for the operation none means all. */
    y = n ? rpi_op(&b, RPI_OP_number_of_elements, &x, 1, attr, 2 + n)
          : rpi_const(&b, 1, (int)dtype);
  }
  return rpi_finish(&b, res, y);
}

/* ---- diagonals ------------------------------------------------------------------------------- */

/* Column minus row against k, for rows and columns that are int64 and broadcast. */
static struct array* compare(struct build* b, int op, struct array* row, struct array* col,
                             int64_t k) {
  struct array* distance = rpi_binary(b, RPI_OP_subtract, col, row);
  return rpi_binary(b, op, distance, rpi_const(b, (double)k, RPI_INT64));
}

static struct array* compare_matrix(struct build* b, int op, int n, int m, int k, mlx_dtype dtype) {
  if (check_dtype(b, dtype)) return NULL;
  struct array* row = rpi_expand_dims(b, rpi_arange(b, 0, 1, n, RPI_INT64), (int[]){1}, 1);
  struct array* mask = compare(b, op, row, rpi_arange(b, 0, 1, m, RPI_INT64), k);
  return rpi_astype(b, mask, (int)dtype);
}

int mlx_eye(mlx_array* res, int n, int m, int k, mlx_dtype dtype, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "eye", s);
  if (n <= 0 || m < 0)
    rpi_build_fail(&b, RP_ERR_ARGUMENT, "The extents %d and %d must be positive.", n, m);
  return rpi_finish(&b, res, compare_matrix(&b, RPI_OP_equal, n, m ? m : n, k, dtype));
}

int mlx_identity(mlx_array* res, int n, mlx_dtype dtype, const mlx_stream s) {
  return mlx_eye(res, n, n, 0, dtype, s);
}

int mlx_tri(mlx_array* res, int n, int m, int k, mlx_dtype type, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "tri", s);
  if (n < 0 || m < 0)
    rpi_build_fail(&b, RP_ERR_ARGUMENT, "The extents %d and %d must not be negative.", n, m);
  return rpi_finish(&b, res, compare_matrix(&b, RPI_OP_less_equal, n, m, k, type));
}

/* Keep where column - row stands in `op` to k. */
static int triangle(mlx_array* res, const mlx_array x, const char* name, int op, int k,
                    const mlx_stream s) {
  struct build b;
  struct array* y = NULL;
  rpi_begin(&b, name, s);
  struct array* a = rpi_arg(&b, x);
  if (a && a->ndim < 2)
    rpi_build_fail(&b, RP_ERR_SHAPE, "The array has %d dimensions; at least 2 are needed.",
                   a->ndim);
  if (a && !b.failed) {
    struct array* mask = compare(&b, op, rpi_axis_index(&b, a, -2), rpi_axis_index(&b, a, -1), k);
    struct array* in[] = {mask, a, rpi_const(&b, 0, a->dtype)};
    y = rpi_op(&b, RPI_OP_select, in, 3, NULL, 0);
  }
  return rpi_finish(&b, res, y);
}

int mlx_tril(mlx_array* res, const mlx_array x, int k, const mlx_stream s) {
  return triangle(res, x, "tril", RPI_OP_less_equal, k, s);
}

int mlx_triu(mlx_array* res, const mlx_array x, int k, const mlx_stream s) {
  return triangle(res, x, "triu", RPI_OP_greater_equal, k, s);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The two axes last, cut to the square that the diagonal crosses; then one element of each row. */
static struct array* diagonal(struct build* b, struct array* x, int offset, int axis1, int axis2) {
  int axes[RPI_MAX_NDIM], shape[RPI_MAX_NDIM], i, k, n = 0;
  if (b->failed || !x) return NULL;
  if (x->ndim < 2)
    return rpi_build_fail(b, RP_ERR_SHAPE, "The array has %d dimensions; at least 2 are needed.",
                          x->ndim);
  if ((b->failed = rpi_axis(&i, b->name, axis1, x->ndim))) return NULL;
  if ((b->failed = rpi_axis(&k, b->name, axis2, x->ndim))) return NULL;
  if (i == k) return rpi_build_fail(b, RP_ERR_ARGUMENT, "Both axes are %d.", i);
  int64_t row = offset < 0 ? -(int64_t)offset : 0, col = offset > 0 ? offset : 0;
  int64_t count = least(x->shape[i] - row, x->shape[k] - col);
  if (count < 1) row = col = count = 0;
  for (int d = 0; d < x->ndim; d++) {
    shape[d] = 1;
    if (d != i && d != k) axes[n++] = d;
  }
  axes[n] = i;
  axes[n + 1] = k;
  shape[n] = (int)count;
  x = rpi_transpose(b, rpi_pin(b, rpi_pin(b, x, i), k), axes, n + 2);
  x = rpi_slice_axis(b, x, n, (int)row, (int)(row + count));
  x = rpi_slice_axis(b, x, n + 1, (int)col, (int)(col + count));
  struct array* at = rpi_reshape(b, rpi_arange(b, 0, 1, count, RPI_INT64), shape, n + 2);
  return rpi_squeeze(b, rpi_take_along_axis(b, x, at, -1), (int[]){-1}, 1);
}

int mlx_diagonal(mlx_array* res, const mlx_array a, int offset, int axis1, int axis2,
                 const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "diagonal", s);
  return rpi_finish(&b, res, diagonal(&b, rpi_arg(&b, a), offset, axis1, axis2));
}

/* Row r of the result has element r, moved by the padding, in column r + k. */
static struct array* spread_diagonal(struct build* b, struct array* x, int k) {
  int64_t low = k < 0 ? -(int64_t)k : 0, high = k > 0 ? k : 0;
  struct array* zero = rpi_const(b, 0, x->dtype);
  struct array* rows = rpi_op(b, RPI_OP_pad, (struct array*[]){x, zero}, 2,
                              (int64_t[]){RPI_PAD_CONSTANT, low, high}, 3);
  struct array *at = rpi_axis_index(b, rows, 0), *down = rpi_expand_dims(b, at, (int[]){1}, 1);
  struct array* mask = compare(b, RPI_OP_equal, down, at, k);
  rows = rpi_expand_dims(b, rows, (int[]){1}, 1);
  return rpi_op(b, RPI_OP_select, (struct array*[]){mask, rows, zero}, 3, NULL, 0);
}

int mlx_diag(mlx_array* res, const mlx_array a, int k, const mlx_stream s) {
  struct build b;
  struct array* y = NULL;
  rpi_begin(&b, "diag", s);
  struct array* x = rpi_arg(&b, a);
  if (x && x->ndim != 1 && x->ndim != 2)
    rpi_build_fail(&b, RP_ERR_SHAPE, "The array has %d dimensions; 1 or 2 are needed.", x->ndim);
  if (x && !b.failed) y = x->ndim == 1 ? spread_diagonal(&b, x, k) : diagonal(&b, x, k, 0, 1);
  return rpi_finish(&b, res, y);
}

int mlx_trace(mlx_array* res, const mlx_array a, int offset, int axis1, int axis2, mlx_dtype dtype,
              const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "trace", s);
  struct array *x = rpi_arg(&b, a), *y = NULL;
  if (!check_dtype(&b, dtype))
    x = rpi_astype(&b, diagonal(&b, x, offset, axis1, axis2), (int)dtype);
  if (!b.failed) {
    int64_t attr[] = {0, x->ndim - 1};
    int sum = dtype == MLX_BOOL ? RPI_OP_any : RPI_OP_sum;
    y = rpi_astype(&b, rpi_op(&b, sum, &x, 1, attr, 2), (int)dtype);
  }
  return rpi_finish(&b, res, y);
}
