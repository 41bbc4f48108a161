/* Builder helpers of movement: see build.h.
 *
 * They return the input itself when nothing changes. Where that depends on its extents they do so
 * only outside of traces: a traced reshape must meet its rule again at other sizes. */
#include <limits.h>

#include "base/err.h"
#include "op/build.h"
#include "op/slice.h"

static void widen(int64_t* out, const int* in, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = in[i];
}

/* An error unless n extents or axes fit; also the guard of the attribute arrays below. */
static int check_count(struct build* b, int64_t n) {
  if (!b->failed && (n < 0 || n > RPI_MAX_NDIM))
    rpi_build_fail(b, RP_ERR_SHAPE, "%lld dimensions; at most %d are supported.", (long long)n,
                   RPI_MAX_NDIM);
  return b->failed;
}

struct array* rpi_reshape(struct build* b, struct array* x, const int* shape, int64_t ndim) {
  int64_t attr[RPI_MAX_NDIM];
  if (!x || check_count(b, ndim)) return NULL;
  if (!x->is_tracer && rpi_shape_equal(x->shape, x->ndim, shape, (int)ndim)) return x;
  widen(attr, shape, ndim);
  return rpi_op(b, RPI_OP_reshape, &x, 1, attr, (int)ndim);
}

/* As MLX: axes past the ends are taken for the ends. */
struct array* rpi_flatten(struct build* b, struct array* x, int first, int last) {
  if (!x || b->failed) return NULL;
  int64_t start = first < 0 ? (int64_t)first + x->ndim : first;
  int64_t end = last < 0 ? (int64_t)last + x->ndim : last;
  if (start < 0) start = 0;
  if (end > x->ndim - 1) end = x->ndim - 1;
  if (x->ndim && (end < start || start >= x->ndim))
    return rpi_build_fail(b, RP_ERR_ARGUMENT,
                          "Axes %d to %d are not a range of an array with %d dimensions.", first,
                          last, x->ndim);
  if (x->ndim && start == end) return x;
  return rpi_op(b, RPI_OP_flatten, &x, 1, (int64_t[]){start, end}, 2);
}

struct array* rpi_unflatten(struct build* b, struct array* x, int axis, const int* shape,
                            int64_t n) {
  int64_t attr[RPI_MAX_NDIM + 1];
  int a;
  if (!x || check_count(b, n)) return NULL;
  if (n == 0) return rpi_build_fail(b, RP_ERR_SHAPE, "An axis cannot become no axes.");
  if ((b->failed = rpi_axis(&a, b->name, axis, x->ndim))) return NULL;
  attr[0] = a;
  widen(attr + 1, shape, n);
  return rpi_op(b, RPI_OP_unflatten, &x, 1, attr, (int)n + 1);
}

static struct array* apply_axes(struct build* b, struct array* x, int op, const int* axes,
                                int64_t n, int ndim) {
  int64_t attr[RPI_MAX_NDIM];
  int at[RPI_MAX_NDIM], count;
  if (rpi_axes(b, at, &count, axes, n, ndim)) return NULL;
  if (count == 0) return x;
  widen(attr, at, count);
  return rpi_op(b, op, &x, 1, attr, count);
}

struct array* rpi_expand_dims(struct build* b, struct array* x, const int* axes, int64_t n) {
  if (!x || check_count(b, n) || check_count(b, x->ndim + n)) return NULL;
  return apply_axes(b, x, RPI_OP_expand_dims, axes, n, x->ndim + (int)n);
}

/* n < 0: every axis of extent 1. */
struct array* rpi_squeeze(struct build* b, struct array* x, const int* axes, int64_t n) {
  int ones[RPI_MAX_NDIM];
  if (!x || b->failed) return NULL;
  if (n < 0) {
    n = 0;
    for (int i = 0; i < x->ndim; i++)
      if (x->shape[i] == 1) ones[n++] = i;
    axes = ones;
  }
  return apply_axes(b, x, RPI_OP_squeeze, axes, n, x->ndim);
}

/* n < 0: the axes in reverse. */
struct array* rpi_transpose(struct build* b, struct array* x, const int* axes, int64_t n) {
  int64_t attr[RPI_MAX_NDIM];
  bool is_identity = true;
  if (!x || b->failed) return NULL;
  if (n >= 0 && n != x->ndim)
    return rpi_build_fail(b, RP_ERR_ARGUMENT, "%lld axes for an array with %d dimensions.",
                          (long long)n, x->ndim);
  for (int i = 0; i < x->ndim; i++) {
    int a = x->ndim - 1 - i;
    if (n >= 0 && (b->failed = rpi_axis(&a, b->name, axes[i], x->ndim))) return NULL;
    attr[i] = a;
    is_identity &= a == i;
  }
  return is_identity ? x : rpi_op(b, RPI_OP_transpose, &x, 1, attr, x->ndim);
}

struct array* rpi_swapaxes(struct build* b, struct array* x, int a, int c) {
  int axes[RPI_MAX_NDIM], i, k;
  if (!x || b->failed) return NULL;
  if ((b->failed = rpi_axis(&i, b->name, a, x->ndim))) return NULL;
  if ((b->failed = rpi_axis(&k, b->name, c, x->ndim))) return NULL;
  for (int j = 0; j < x->ndim; j++) axes[j] = j == i ? k : j == k ? i : j;
  return rpi_transpose(b, x, axes, x->ndim);
}

struct array* rpi_broadcast_to(struct build* b, struct array* x, const int* shape, int64_t ndim) {
  int64_t attr[RPI_MAX_NDIM];
  if (!x || check_count(b, ndim)) return NULL;
  if (!x->is_tracer && rpi_shape_equal(x->shape, x->ndim, shape, (int)ndim)) return x;
  widen(attr, shape, ndim);
  return rpi_op(b, RPI_OP_broadcast_to, &x, 1, attr, (int)ndim);
}

/* Whether the words select everything at every size. */
static bool is_whole(const int64_t* words, int ndim) {
  for (int i = 0; i < ndim; i++, words += RPI_SLICE_WORDS)
    if (words[0] != 0 || words[1] != INT_MAX || words[2] != 1) return false;
  return true;
}

struct array* rpi_slice(struct build* b, struct array* x, const int* start, const int* stop,
                        const int* step, int64_t n) {
  int64_t words[RPI_SLICE_WORDS * RPI_MAX_NDIM];
  if (!x || b->failed) return NULL;
  if (n != x->ndim)
    return rpi_build_fail(b, RP_ERR_ARGUMENT, "Bounds for %lld axes; the array has %d dimensions.",
                          (long long)n, x->ndim);
  for (int i = 0; i < x->ndim; i++)
    rpi_slice_words(words + RPI_SLICE_WORDS * i, start[i], stop[i], step[i], x->shape[i]);
  if (is_whole(words, x->ndim)) return x;
  return rpi_op(b, RPI_OP_slice, &x, 1, words, RPI_SLICE_WORDS * x->ndim);
}

struct array* rpi_slice_axis(struct build* b, struct array* x, int axis, int start, int stop) {
  int64_t words[RPI_SLICE_WORDS * RPI_MAX_NDIM];
  int a;
  if (!x || b->failed) return NULL;
  if ((b->failed = rpi_axis(&a, b->name, axis, x->ndim))) return NULL;
  for (int i = 0; i < x->ndim; i++) {
    int64_t* word = words + RPI_SLICE_WORDS * i;
    word[0] = i == a ? start : 0;
    word[1] = i == a ? stop : INT_MAX;
    word[2] = 1;
  }
  if (is_whole(words, x->ndim)) return x;
  return rpi_op(b, RPI_OP_slice, &x, 1, words, RPI_SLICE_WORDS * x->ndim);
}

struct array* rpi_pin(struct build* b, struct array* x, int axis) {
  if (b->failed || !x || !x->is_tracer) return x;
  return rpi_unflatten(b, x, axis, &x->shape[axis], 1);
}
