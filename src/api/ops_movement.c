/* ops.h: shapes, axes, views and slices. */
#include <limits.h>

#include "api/call.h"
#include "base/err.h"
#include "op/slice.h"

/* ---- shapes ---------------------------------------------------------------------------------- */

int mlx_reshape(mlx_array* res, const mlx_array a, const int* shape, size_t shape_num,
                const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "reshape", s);
  return rpi_finish(&b, res, rpi_reshape(&b, rpi_arg(&b, a), shape, (int64_t)shape_num));
}

int mlx_flatten(mlx_array* res, const mlx_array a, int start_axis, int end_axis,
                const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "flatten", s);
  return rpi_finish(&b, res, rpi_flatten(&b, rpi_arg(&b, a), start_axis, end_axis));
}

int mlx_unflatten(mlx_array* res, const mlx_array a, int axis, const int* shape, size_t shape_num,
                  const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "unflatten", s);
  return rpi_finish(&b, res, rpi_unflatten(&b, rpi_arg(&b, a), axis, shape, (int64_t)shape_num));
}

int mlx_expand_dims_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
                         const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "expand_dims", s);
  return rpi_finish(&b, res, rpi_expand_dims(&b, rpi_arg(&b, a), axes, (int64_t)axes_num));
}

int mlx_expand_dims(mlx_array* res, const mlx_array a, int axis, const mlx_stream s) {
  return mlx_expand_dims_axes(res, a, &axis, 1, s);
}

static int squeeze(mlx_array* res, const mlx_array a, const int* axes, int64_t n,
                   const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "squeeze", s);
  return rpi_finish(&b, res, rpi_squeeze(&b, rpi_arg(&b, a), axes, n));
}

int mlx_squeeze(mlx_array* res, const mlx_array a, const mlx_stream s) {
  return squeeze(res, a, NULL, -1, s);
}

int mlx_squeeze_axis(mlx_array* res, const mlx_array a, int axis, const mlx_stream s) {
  return squeeze(res, a, &axis, 1, s);
}

int mlx_squeeze_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
                     const mlx_stream s) {
  return squeeze(res, a, axes, (int64_t)axes_num, s);
}

/* Axes that bring an array of fewer dimensions to `ndim`: a vector becomes (1, n) or (1, n, 1), a
 * matrix (m, n, 1). */
static int at_least(mlx_array* res, const mlx_array a, const char* name, int ndim,
                    const mlx_stream s) {
  static const int front[] = {0, 1, 2}, around[] = {0, 2}, back[] = {2};
  struct build b;
  rpi_begin(&b, name, s);
  struct array* x = rpi_arg(&b, a);
  int missing = x && x->ndim < ndim ? ndim - x->ndim : 0;
  const int* axes = ndim < 3 || missing == 3 ? front : missing == 2 ? around : back;
  return rpi_finish(&b, res, rpi_expand_dims(&b, x, axes, missing));
}

int mlx_atleast_1d(mlx_array* res, const mlx_array a, const mlx_stream s) {
  return at_least(res, a, "atleast_1d", 1, s);
}

int mlx_atleast_2d(mlx_array* res, const mlx_array a, const mlx_stream s) {
  return at_least(res, a, "atleast_2d", 2, s);
}

int mlx_atleast_3d(mlx_array* res, const mlx_array a, const mlx_stream s) {
  return at_least(res, a, "atleast_3d", 3, s);
}

/* ---- axes ------------------------------------------------------------------------------------ */

int mlx_transpose(mlx_array* res, const mlx_array a, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "transpose", s);
  return rpi_finish(&b, res, rpi_transpose(&b, rpi_arg(&b, a), NULL, -1));
}

int mlx_transpose_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
                       const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "transpose", s);
  return rpi_finish(&b, res, rpi_transpose(&b, rpi_arg(&b, a), axes, (int64_t)axes_num));
}

int mlx_swapaxes(mlx_array* res, const mlx_array a, int axis1, int axis2, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "swapaxes", s);
  return rpi_finish(&b, res, rpi_swapaxes(&b, rpi_arg(&b, a), axis1, axis2));
}

static struct array* move_axis(struct build* b, struct array* x, int source, int destination) {
  int axes[RPI_MAX_NDIM], from, to;
  if (!x || b->failed) return NULL;
  if ((b->failed = rpi_axis(&from, b->name, source, x->ndim))) return NULL;
  if ((b->failed = rpi_axis(&to, b->name, destination, x->ndim))) return NULL;
  for (int i = 0, k = 0; i < x->ndim; i++) {
    if (k == from) k++;
    axes[i] = i == to ? from : k++;
  }
  return rpi_transpose(b, x, axes, x->ndim);
}

int mlx_moveaxis(mlx_array* res, const mlx_array a, int source, int destination,
                 const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "moveaxis", s);
  return rpi_finish(&b, res, move_axis(&b, rpi_arg(&b, a), source, destination));
}

int mlx_broadcast_to(mlx_array* res, const mlx_array a, const int* shape, size_t shape_num,
                     const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "broadcast_to", s);
  return rpi_finish(&b, res, rpi_broadcast_to(&b, rpi_arg(&b, a), shape, (int64_t)shape_num));
}

/* ---- memory ---------------------------------------------------------------------------------- */

int mlx_contiguous(mlx_array* res, const mlx_array a, bool allow_col_major, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "contiguous", s);
  struct array* x = rpi_arg(&b, a);
  int64_t attr = allow_col_major;
  return rpi_finish(&b, res, x ? rpi_op(&b, RPI_OP_contiguous, &x, 1, &attr, 1) : NULL);
}

static struct array* stride_over(struct build* b, struct array* x, const int* shape,
                                 const int64_t* strides, int64_t n, size_t offset) {
  int64_t attr[2 + 2 * RPI_MAX_NDIM] = {(int64_t)offset, n};
  if (!x || b->failed) return NULL;
  if (n < 0 || n > RPI_MAX_NDIM || offset > INT64_MAX)
    return rpi_build_fail(b, RP_ERR_ARGUMENT, "%lld dimensions, offset %zu.", (long long)n, offset);
  for (int64_t i = 0; i < n; i++) {
    attr[2 + i] = shape[i];
    attr[2 + n + i] = strides[i];
  }
  return rpi_op(b, RPI_OP_as_strided, &x, 1, attr, 2 + 2 * (int)n);
}

int mlx_as_strided(mlx_array* res, const mlx_array a, const int* shape, size_t shape_num,
                   const int64_t* strides, size_t strides_num, size_t offset, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "as_strided", s);
  struct array* x = rpi_arg(&b, a);
  if (shape_num != strides_num)
    rpi_build_fail(&b, RP_ERR_ARGUMENT, "%zu extents and %zu strides.", shape_num, strides_num);
  return rpi_finish(&b, res, stride_over(&b, x, shape, strides, (int64_t)shape_num, offset));
}

int mlx_view(mlx_array* res, const mlx_array a, mlx_dtype dtype, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "view", s);
  struct array *x = rpi_arg(&b, a), *y = x;
  if (x && (int)dtype != x->dtype) y = rpi_op(&b, RPI_OP_view, &x, 1, (int64_t[]){(int)dtype}, 1);
  return rpi_finish(&b, res, y);
}

int mlx_stop_gradient(mlx_array* res, const mlx_array a, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "stop_gradient", s);
  struct array* x = rpi_arg(&b, a);
  return rpi_finish(&b, res, x ? rpi_op1(&b, RPI_OP_stop_gradient, x) : NULL);
}

/* ---- slices ---------------------------------------------------------------------------------- */

static int check_bounds(struct build* b, size_t start, size_t stop, size_t step) {
  if (start != stop || start != step)
    rpi_build_fail(b, RP_ERR_ARGUMENT, "%zu starts, %zu stops and %zu strides.", start, stop, step);
  return b->failed;
}

int mlx_slice(mlx_array* res, const mlx_array a, const int* start, size_t start_num,
              const int* stop, size_t stop_num, const int* strides, size_t strides_num,
              const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "slice", s);
  struct array* x = rpi_arg(&b, a);
  check_bounds(&b, start_num, stop_num, strides_num);
  return rpi_finish(&b, res, rpi_slice(&b, x, start, stop, strides, (int64_t)start_num));
}

static struct array* update_slice(struct build* b, struct array* x, struct array* update,
                                  const int* start, const int* stop, const int* step, int64_t n) {
  int64_t words[RPI_SLICE_WORDS * RPI_MAX_NDIM];
  if (b->failed || !x || !update) return NULL;
  if (n != x->ndim)
    return rpi_build_fail(b, RP_ERR_ARGUMENT, "Bounds for %lld axes; the array has %d dimensions.",
                          (long long)n, x->ndim);
  for (int i = 0; i < x->ndim; i++)
    rpi_slice_words(words + RPI_SLICE_WORDS * i, start[i], stop[i], step[i], x->shape[i]);
  struct array* in[] = {x, rpi_astype(b, update, x->dtype)};
  return rpi_op(b, RPI_OP_slice_update, in, 2, words, RPI_SLICE_WORDS * x->ndim);
}

int mlx_slice_update(mlx_array* res, const mlx_array src, const mlx_array update, const int* start,
                     size_t start_num, const int* stop, size_t stop_num, const int* strides,
                     size_t strides_num, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "slice_update", s);
  struct array *x = rpi_arg(&b, src), *u = rpi_arg(&b, update);
  check_bounds(&b, start_num, stop_num, strides_num);
  return rpi_finish(&b, res, update_slice(&b, x, u, start, stop, strides, (int64_t)start_num));
}

/* Non-negative axes into `out`; whether they differ is the rule's question. */
static int read_axes(struct build* b, int64_t* out, const int* axes, size_t n, int ndim) {
  if (!b->failed && n > (size_t)ndim)
    rpi_build_fail(b, RP_ERR_ARGUMENT, "%zu axes for an array with %d dimensions.", n, ndim);
  for (size_t i = 0; i < n && !b->failed; i++) {
    int a;
    b->failed = rpi_axis(&a, b->name, axes[i], ndim);
    if (!b->failed) out[i] = a;
  }
  return b->failed;
}

/* A size equal to the extent of an axis without a start is the whole axis at every size. */
static struct array* slice_at(struct build* b, struct array* x, struct array* start,
                              const int* axes, size_t n, const int* size, size_t nsize) {
  int64_t attr[1 + 2 * RPI_MAX_NDIM] = {(int64_t)n};
  bool has_start[RPI_MAX_NDIM] = {false};
  if (b->failed || !x || !start || read_axes(b, attr + 1, axes, n, x->ndim)) return NULL;
  if (nsize != (size_t)x->ndim)
    return rpi_build_fail(b, RP_ERR_ARGUMENT, "%zu slice sizes for an array with %d dimensions.",
                          nsize, x->ndim);
  for (size_t i = 0; i < n; i++) has_start[attr[1 + i]] = true;
  for (int i = 0; i < x->ndim; i++) {
    if (size[i] < 0)
      return rpi_build_fail(b, RP_ERR_SHAPE, "Negative slice size %d of axis %d.", size[i], i);
    attr[1 + n + (size_t)i] = !has_start[i] && size[i] == x->shape[i] ? -1 : size[i];
  }
  return rpi_op(b, RPI_OP_slice_dynamic, (struct array*[]){x, start}, 2, attr,
                1 + (int)n + x->ndim);
}

int mlx_slice_dynamic(mlx_array* res, const mlx_array a, const mlx_array start, const int* axes,
                      size_t axes_num, const int* slice_size, size_t slice_size_num,
                      const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "slice", s);
  struct array *x = rpi_arg(&b, a), *at = rpi_arg(&b, start);
  return rpi_finish(&b, res, slice_at(&b, x, at, axes, axes_num, slice_size, slice_size_num));
}

int mlx_slice_update_dynamic(mlx_array* res, const mlx_array src, const mlx_array update,
                             const mlx_array start, const int* axes, size_t axes_num,
                             const mlx_stream s) {
  struct build b;
  int64_t attr[RPI_MAX_NDIM];
  rpi_begin(&b, "slice_update", s);
  struct array *x = rpi_arg(&b, src), *u = rpi_arg(&b, update), *at = rpi_arg(&b, start), *y = NULL;
  if (!b.failed && !read_axes(&b, attr, axes, axes_num, x->ndim))
    y = rpi_op(&b, RPI_OP_slice_update_dynamic,
               (struct array*[]){x, rpi_astype(&b, u, x->dtype), at}, 3, attr, (int)axes_num);
  return rpi_finish(&b, res, y);
}
