/* ops.h: reductions over all axes, one, or several; positions of extremes. */
#include <limits.h>

#include "api/call.h"
#include "op/reduce.h"

/* The number of axes given by the caller, who may have none: size_t as the helpers' count. */
static int64_t count_of(size_t n) { return n > INT_MAX ? INT_MAX : (int64_t)n; }

/* A function in its three forms; REDUCE(b, x, axes, n, keepdims) builds it. */
#define DEFINE_REDUCTION(name, REDUCE)                                                             \
  int mlx_##name##_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,       \
                        bool keepdims, const mlx_stream s) {                                       \
    struct build b;                                                                                \
    rpi_begin(&b, #name, s);                                                                       \
    return rpi_finish(&b, res, REDUCE(&b, rpi_arg(&b, a), axes, count_of(axes_num), keepdims));    \
  }                                                                                                \
  int mlx_##name##_axis(mlx_array* res, const mlx_array a, int axis, bool keepdims,                \
                        const mlx_stream s) {                                                      \
    struct build b;                                                                                \
    rpi_begin(&b, #name, s);                                                                       \
    return rpi_finish(&b, res, REDUCE(&b, rpi_arg(&b, a), &axis, 1, keepdims));                    \
  }                                                                                                \
  int mlx_##name(mlx_array* res, const mlx_array a, bool keepdims, const mlx_stream s) {           \
    struct build b;                                                                                \
    rpi_begin(&b, #name, s);                                                                       \
    return rpi_finish(&b, res, REDUCE(&b, rpi_arg(&b, a), NULL, -1, keepdims));                    \
  }

#define SUM(...) rpi_reduce_with(RPI_OP_sum, __VA_ARGS__)
#define PROD(...) rpi_reduce_with(RPI_OP_prod, __VA_ARGS__)
#define MIN(...) rpi_reduce_with(RPI_OP_min, __VA_ARGS__)
#define MAX(...) rpi_reduce_with(RPI_OP_max, __VA_ARGS__)
#define ALL(...) rpi_reduce_with(RPI_OP_all, __VA_ARGS__)
#define ANY(...) rpi_reduce_with(RPI_OP_any, __VA_ARGS__)
#define rpi_reduce_with(op, b, ...) rpi_reduce(b, op, __VA_ARGS__)

DEFINE_REDUCTION(sum, SUM)
DEFINE_REDUCTION(prod, PROD)
DEFINE_REDUCTION(min, MIN)
DEFINE_REDUCTION(max, MAX)
DEFINE_REDUCTION(all, ALL)
DEFINE_REDUCTION(any, ANY)
DEFINE_REDUCTION(mean, rpi_mean)
DEFINE_REDUCTION(logsumexp, rpi_logsumexp)

/* ---- Variance ---- */

static struct array* std_of(struct build* b, struct array* x, const int* axes, int64_t n,
                            bool keepdims, int ddof) {
  struct array* v = rpi_var(b, x, axes, n, keepdims, ddof);
  return v ? rpi_unary(b, RPI_OP_sqrt, v) : NULL;
}

#define DEFINE_SPREAD(name, SPREAD)                                                               \
  int mlx_##name##_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,      \
                        bool keepdims, int ddof, const mlx_stream s) {                            \
    struct build b;                                                                               \
    rpi_begin(&b, #name, s);                                                                      \
    struct array* x = rpi_arg(&b, a);                                                             \
    return rpi_finish(&b, res, SPREAD(&b, x, axes, count_of(axes_num), keepdims, ddof));          \
  }                                                                                               \
  int mlx_##name##_axis(mlx_array* res, const mlx_array a, int axis, bool keepdims, int ddof,     \
                        const mlx_stream s) {                                                     \
    struct build b;                                                                               \
    rpi_begin(&b, #name, s);                                                                      \
    return rpi_finish(&b, res, SPREAD(&b, rpi_arg(&b, a), &axis, 1, keepdims, ddof));             \
  }                                                                                               \
  int mlx_##name(mlx_array* res, const mlx_array a, bool keepdims, int ddof, const mlx_stream s) { \
    struct build b;                                                                               \
    rpi_begin(&b, #name, s);                                                                      \
    return rpi_finish(&b, res, SPREAD(&b, rpi_arg(&b, a), NULL, -1, keepdims, ddof));             \
  }

DEFINE_SPREAD(var, rpi_var)
DEFINE_SPREAD(std, std_of)

/* ---- Median ---- */

/* x with the given axes last and flattened. */
static struct array* axes_last(struct build* b, struct array* x, const int* axes, int n) {
  int order[RPI_MAX_NDIM], kept = 0, next = 0;
  for (int i = 0; i < x->ndim; i++)
    if (next < n && axes[next] == i)
      next++;
    else
      order[kept++] = i;
  for (int i = 0; i < n; i++) order[kept + i] = axes[i];
  struct array* y = rpi_transpose(b, x, order, x->ndim);
  if (n == 0) return rpi_expand_dims(b, y, (int[]){-1}, 1);
  return rpi_flatten(b, y, kept, -1);
}

/* Element (count - less) / 2 of sorted rows; the count is the graph's own. */
static struct array* middle(struct build* b, struct array* sorted, int less) {
  if (b->failed || !sorted) return NULL;
  int64_t attr[] = {0, RPI_INT64, sorted->ndim - 1};
  struct array* n = rpi_op(b, RPI_OP_number_of_elements, &sorted, 1, attr, 3);
  n = rpi_binary(b, RPI_OP_subtract, n, rpi_const(b, less, RPI_INT64));
  n = rpi_binary(b, RPI_OP_floor_divide, n, rpi_const(b, 2, RPI_INT64));
  return rpi_take(b, sorted, n, -1);
}

/* Half of both middle elements: exactly the middle one when they are the same. */
static struct array* median_of(struct build* b, struct array* x, const int* axes, int n,
                               bool keepdims) {
  int dtype = rpi_dtype_at_least_float(x->dtype);
  struct array* rows = axes_last(b, x, axes, n);
  if (!rows) return NULL;
  if (rows->shape[rows->ndim - 1] == 0)
    return rpi_build_fail(b, RP_ERR_SHAPE, "There is no median of nothing.");
  struct array *sorted = rpi_sort(b, RPI_OP_sort, rows, -1), *half = rpi_const(b, 0.5, dtype);
  struct array* low = rpi_op2(b, RPI_OP_multiply, rpi_astype(b, middle(b, sorted, 1), dtype), half);
  struct array* high =
      rpi_op2(b, RPI_OP_multiply, rpi_astype(b, middle(b, sorted, 0), dtype), half);
  struct array* y = rpi_op2(b, RPI_OP_add, low, high);
  if (rpi_dtype_is_inexact(x->dtype)) {
    struct array* bad = rpi_unary(b, RPI_OP_isnan, rows);
    bad = rpi_reduce(b, RPI_OP_any, bad, (int[]){-1}, 1, false);
    struct array* in[] = {bad, rpi_const(b, __builtin_nan(""), dtype), y};
    y = rpi_op(b, RPI_OP_select, in, 3, NULL, 0);
  }
  return keepdims && n ? rpi_expand_dims(b, y, axes, n) : y;
}

int mlx_median(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num, bool keepdims,
               const mlx_stream s) {
  struct build b;
  int all[RPI_MAX_NDIM], n;
  struct array* y = NULL;
  rpi_begin(&b, "median", s);
  struct array* x = rpi_arg(&b, a);
  if (x && !rpi_axes(&b, all, &n, axes, axes_num ? count_of(axes_num) : -1, x->ndim))
    y = median_of(&b, x, all, n, keepdims);
  return rpi_finish(&b, res, y);
}

/* ---- Positions ---- */

static struct array* argreduce_flat(struct build* b, int op, struct array* x, bool keepdims) {
  int ones[RPI_MAX_NDIM];
  if (!x) return NULL;
  for (int i = 0; i < x->ndim; i++) ones[i] = 1;
  struct array* y = rpi_argreduce(b, op, rpi_flatten(b, x, 0, -1), 0, false);
  return keepdims && y ? rpi_reshape(b, y, ones, x->ndim) : y;
}

#define DEFINE_POSITION(name)                                                                    \
  int mlx_##name##_axis(mlx_array* res, const mlx_array a, int axis, bool keepdims,              \
                        const mlx_stream s) {                                                    \
    struct build b;                                                                              \
    rpi_begin(&b, #name, s);                                                                     \
    return rpi_finish(&b, res, rpi_argreduce(&b, RPI_OP_##name, rpi_arg(&b, a), axis, keepdims)); \
  }                                                                                              \
  int mlx_##name(mlx_array* res, const mlx_array a, bool keepdims, const mlx_stream s) {         \
    struct build b;                                                                              \
    rpi_begin(&b, #name, s);                                                                     \
    return rpi_finish(&b, res, argreduce_flat(&b, RPI_OP_##name, rpi_arg(&b, a), keepdims));     \
  }

DEFINE_POSITION(argmin)
DEFINE_POSITION(argmax)
