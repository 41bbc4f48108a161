/* ops.h: reading at indices, padding, repeating, rotating. */
#include <limits.h>
#include <string.h>

#include "api/call.h"
#include "base/err.h"
#include "op/index.h"

/* ---- reading at indices ---------------------------------------------------------------------- */

int mlx_take_axis(mlx_array* res, const mlx_array a, const mlx_array indices, int axis,
                  const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "take", s);
  struct array *x = rpi_arg(&b, a), *at = rpi_arg(&b, indices);
  return rpi_finish(&b, res, rpi_take(&b, x, at, axis));
}

int mlx_take(mlx_array* res, const mlx_array a, const mlx_array indices, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "take", s);
  struct array *x = rpi_flatten(&b, rpi_arg(&b, a), 0, -1), *at = rpi_arg(&b, indices);
  return rpi_finish(&b, res, rpi_take(&b, x, at, 0));
}

int mlx_take_along_axis(mlx_array* res, const mlx_array a, const mlx_array indices, int axis,
                        const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "take_along_axis", s);
  struct array *x = rpi_arg(&b, a), *at = rpi_arg(&b, indices);
  return rpi_finish(&b, res, rpi_take_along_axis(&b, x, at, axis));
}

int mlx_gather(mlx_array* res, const mlx_array a, const mlx_vector_array indices, const int* axes,
               size_t axes_num, const int* slice_sizes, size_t slice_sizes_num,
               const mlx_stream s) {
  struct build b;
  struct array** at = NULL;
  rpi_begin(&b, "gather", s);
  struct array* x = rpi_arg(&b, a);
  int64_t n = rpi_arg_vector(&b, &at, indices);
  if (!b.failed && (size_t)n != axes_num)
    rpi_build_fail(&b, RP_ERR_ARGUMENT, "%lld index arrays for %zu axes.", (long long)n, axes_num);
  struct array* y = rpi_gather(&b, x, at, n, axes, slice_sizes, (int64_t)slice_sizes_num);
  return rpi_finish(&b, res, y);
}

int mlx_gather_single(mlx_array* res, const mlx_array a, const mlx_array indices, int axis,
                      const int* slice_sizes, size_t slice_sizes_num, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "gather", s);
  struct array *x = rpi_arg(&b, a), *at = rpi_arg(&b, indices);
  struct array* y = rpi_gather(&b, x, &at, 1, &axis, slice_sizes, (int64_t)slice_sizes_num);
  return rpi_finish(&b, res, y);
}

/* ---- padding --------------------------------------------------------------------------------- */

/* The value to pad with as a 0-d array of x's dtype; without one, 0. */
static struct array* pad_value(struct build* b, struct array* x, mlx_array value) {
  struct array* v = rpi_arg_optional(b, value);
  if (b->failed || !x) return NULL;
  if (!v) return rpi_const(b, 0, x->dtype);
  if (v->ndim && v->size != 1)
    return rpi_build_fail(b, RP_ERR_SHAPE, "The value to pad with has %lld elements.",
                          (long long)v->size);
  return rpi_astype(b, rpi_reshape(b, v, NULL, 0), x->dtype);
}

static int pad_mode(struct build* b, const char* mode) {
  if (!mode || strcmp(mode, "constant") == 0) return RPI_PAD_CONSTANT;
  if (strcmp(mode, "edge"))
    rpi_build_fail(b, RP_ERR_ARGUMENT, "The mode is constant or edge, not \"%.40s\".", mode);
  return RPI_PAD_EDGE;
}

/* Widths of listed axes; an axis listed twice is padded by both. */
static struct array* pad_axes(struct build* b, struct array* x, struct array* value, int mode,
                              const int* axes, const int* low, const int* high, size_t n) {
  int64_t attr[1 + 2 * RPI_MAX_NDIM] = {mode};
  if (b->failed || !x || !value) return NULL;
  for (size_t i = 0; i < n; i++) {
    int a;
    if ((b->failed = rpi_axis(&a, b->name, axes[i], x->ndim))) return NULL;
    if (low[i] < 0 || high[i] < 0)
      return rpi_build_fail(b, RP_ERR_ARGUMENT, "Axis %d is padded by %d and %d.", a, low[i],
                            high[i]);
    attr[1 + 2 * a] += low[i];
    attr[2 + 2 * a] += high[i];
  }
  return rpi_op(b, RPI_OP_pad, (struct array*[]){x, value}, 2, attr, 1 + 2 * x->ndim);
}

int mlx_pad(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
            const int* low_pad_size, size_t low_pad_size_num, const int* high_pad_size,
            size_t high_pad_size_num, const mlx_array pad_with, const char* mode,
            const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "pad", s);
  struct array *x = rpi_arg(&b, a), *value = pad_value(&b, x, pad_with);
  if (axes_num != low_pad_size_num || axes_num != high_pad_size_num)
    rpi_build_fail(&b, RP_ERR_ARGUMENT, "%zu axes, %zu low and %zu high widths.", axes_num,
                   low_pad_size_num, high_pad_size_num);
  struct array* y = pad_axes(&b, x, value, pad_mode(&b, mode), axes, low_pad_size, high_pad_size,
                             axes_num);
  return rpi_finish(&b, res, y);
}

int mlx_pad_symmetric(mlx_array* res, const mlx_array a, int pad_width, const mlx_array pad_with,
                      const char* mode, const mlx_stream s) {
  struct build b;
  int axes[RPI_MAX_NDIM], width[RPI_MAX_NDIM];
  rpi_begin(&b, "pad", s);
  struct array *x = rpi_arg(&b, a), *value = pad_value(&b, x, pad_with);
  for (int i = 0; x && i < x->ndim; i++) {
    axes[i] = i;
    width[i] = pad_width;
  }
  struct array* y = pad_axes(&b, x, value, pad_mode(&b, mode), axes, width, width,
                             x ? (size_t)x->ndim : 0);
  return rpi_finish(&b, res, y);
}

/* ---- repeating ------------------------------------------------------------------------------- */

/* Stretch axes of extent 1 to `count`, whatever the other extents are when it runs: the shape of an
 * array that has these counts and 1 elsewhere is joined. */
static struct array* stretch(struct build* b, struct array* x, const int* count) {
  if (b->failed || !x) return NULL;
  struct array* shape = rpi_broadcast_to(b, rpi_const(b, 0, RPI_BOOL), count, x->ndim);
  return rpi_op(b, RPI_OP_broadcast_join, (struct array*[]){x, shape}, 2, (int64_t[]){0}, 1);
}

static struct array* repeat(struct build* b, struct array* x, int repeats, int axis) {
  int count[RPI_MAX_NDIM], a, after;
  if (b->failed || !x) return NULL;
  if ((b->failed = rpi_axis(&a, b->name, axis, x->ndim))) return NULL;
  if (repeats < 0)
    return rpi_build_fail(b, RP_ERR_ARGUMENT, "The number of repeats %d is negative.", repeats);
  if (repeats == 1) return x;
  after = a + 1;
  struct array* wide = rpi_expand_dims(b, x, &after, 1);
  for (int i = 0; i <= x->ndim && wide; i++) count[i] = i == after ? repeats : 1;
  return rpi_flatten(b, stretch(b, wide, count), a, after);
}

int mlx_repeat_axis(mlx_array* res, const mlx_array arr, int repeats, int axis,
                    const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "repeat", s);
  return rpi_finish(&b, res, repeat(&b, rpi_arg(&b, arr), repeats, axis));
}

int mlx_repeat(mlx_array* res, const mlx_array arr, int repeats, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "repeat", s);
  struct array* x = rpi_flatten(&b, rpi_arg(&b, arr), 0, -1);
  return rpi_finish(&b, res, repeat(&b, x, repeats, 0));
}

/* Every axis that is repeated gets an axis of its own before it, is stretched there, and merged. */
static struct array* tile(struct build* b, struct array* x, const int* reps, size_t n) {
  int axes[RPI_MAX_NDIM], count[2 * RPI_MAX_NDIM], lead[RPI_MAX_NDIM];
  if (b->failed || !x) return NULL;
  if (n > RPI_MAX_NDIM)
    return rpi_build_fail(b, RP_ERR_SHAPE, "%zu repetitions; at most %d dimensions are supported.",
                          n, RPI_MAX_NDIM);
  int nlead = (int)n > x->ndim ? (int)n - x->ndim : 0, nnew = 0;
  for (int i = 0; i < nlead; i++) lead[i] = i;
  if (!(x = rpi_expand_dims(b, x, lead, nlead))) return NULL;
  int skip = x->ndim - (int)n, ndim = x->ndim;
  for (int i = 0; i < ndim; i++) {
    int r = i < skip ? 1 : reps[i - skip];
    if (r < 0) return rpi_build_fail(b, RP_ERR_ARGUMENT, "The repetition %d is negative.", r);
    if (r != 1) {
      count[i + nnew] = r;
      axes[nnew] = i + nnew;
      nnew++;
    }
    count[i + nnew] = 1;
  }
  if (!nnew) return x;
  x = stretch(b, rpi_expand_dims(b, x, axes, nnew), count);
  while (nnew-- > 0) x = rpi_flatten(b, x, axes[nnew], axes[nnew] + 1);
  return x;
}

int mlx_tile(mlx_array* res, const mlx_array arr, const int* reps, size_t reps_num,
             const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "tile", s);
  return rpi_finish(&b, res, tile(&b, rpi_arg(&b, arr), reps, reps_num));
}

/* ---- rotating -------------------------------------------------------------------------------- */

/* In a trace the extent may be another one at replay: the places to read from are computed. */
static struct array* roll_traced(struct build* b, struct array* x, int64_t shift, int axis) {
  struct array* at = rpi_axis_index(b, x, axis);
  struct array* n = rpi_op(b, RPI_OP_number_of_elements, &x, 1,
                           (int64_t[]){0, RPI_INT64, axis}, 3);
  at = rpi_flatten(b, at, 0, -1);
  at = rpi_binary(b, RPI_OP_subtract, at, rpi_const(b, (double)shift, RPI_INT64));
  return rpi_take(b, x, rpi_binary(b, RPI_OP_remainder, at, n), axis);
}

static struct array* roll(struct build* b, struct array* x, int64_t shift, int axis) {
  int a;
  if (b->failed || !x) return NULL;
  if ((b->failed = rpi_axis(&a, b->name, axis, x->ndim))) return NULL;
  if (x->is_tracer) return roll_traced(b, x, shift, a);
  if (x->size == 0) return x;
  int64_t extent = x->shape[a];
  int back = (int)((shift % extent + extent) % extent);
  if (back == 0) return x;
  struct array* part[] = {rpi_slice_axis(b, x, a, (int)(extent - back), INT_MAX),
                          rpi_slice_axis(b, x, a, 0, (int)(extent - back))};
  return rpi_concatenate(b, part, 2, a);
}

static int64_t total(const int* shift, size_t n) {
  int64_t sum = 0;
  for (size_t i = 0; i < n; i++) sum += shift[i];
  return sum;
}

/* The first axis may have another extent at replay, the others keep theirs. */
static struct array* roll_flat(struct build* b, struct array* x, int64_t shift) {
  int shape[RPI_MAX_NDIM];
  if (b->failed || !x) return NULL;
  int ndim = x->ndim;
  for (int i = 0; i < ndim; i++) shape[i] = x->shape[i];
  bool follows = x->is_tracer && ndim && rpi_shape_size(shape + 1, ndim - 1);
  for (int i = 1; i < ndim && follows; i++) x = rpi_pin(b, x, i);
  if (follows) shape[0] = -1;
  return rpi_reshape(b, roll(b, rpi_flatten(b, x, 0, -1), shift, 0), shape, ndim);
}

int mlx_roll(mlx_array* res, const mlx_array a, const int* shift, size_t shift_num,
             const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "roll", s);
  return rpi_finish(&b, res, roll_flat(&b, rpi_arg(&b, a), total(shift, shift_num)));
}

int mlx_roll_axis(mlx_array* res, const mlx_array a, const int* shift, size_t shift_num, int axis,
                  const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "roll", s);
  return rpi_finish(&b, res, roll(&b, rpi_arg(&b, a), total(shift, shift_num), axis));
}

int mlx_roll_axes(mlx_array* res, const mlx_array a, const int* shift, size_t shift_num,
                  const int* axes, size_t axes_num, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "roll", s);
  struct array* x = rpi_arg(&b, a);
  if (shift_num < axes_num && shift_num != 1)
    rpi_build_fail(&b, RP_ERR_ARGUMENT, "%zu shifts for %zu axes.", shift_num, axes_num);
  for (size_t i = 0; i < axes_num && !b.failed; i++)
    x = roll(&b, x, shift[shift_num == 1 ? 0 : i], axes[i]);
  return rpi_finish(&b, res, x);
}
