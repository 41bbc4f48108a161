/* Builder helpers of indexing, joining and counting: see build.h.
 *
 * An index array whose values are there already is looked at, if it is small: an index outside is
 * then an error that names it. Other indices are clamped when they are used. */
#include <limits.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "op/build.h"
#include "op/index.h"
#include "op/slice.h"

enum { CHECKED = 4096 /* indices at most */ };

/* ---- Indices known by now ---- */

/* An unsigned value past int64 reads as INT64_MAX. */
static int64_t read_index(const void* at, int dtype) {
  switch (dtype) {
    case RPI_UINT8: return *(const uint8_t*)at;
    case RPI_UINT16: return *(const uint16_t*)at;
    case RPI_UINT32: return *(const uint32_t*)at;
    case RPI_UINT64: return *(const uint64_t*)at > INT64_MAX ? INT64_MAX : *(const int64_t*)at;
    case RPI_INT8: return *(const int8_t*)at;
    case RPI_INT16: return *(const int16_t*)at;
    case RPI_INT32: return *(const int32_t*)at;
    default: return *(const int64_t*)at;
  }
}

static int check_values(struct build* b, const struct array* index, int axis, int extent) {
  if (!rpi_array_is_ready(index) || index->size > CHECKED || !rpi_dtype_is_integer(index->dtype))
    return 0;
  int64_t item = (int64_t)rpi_dtype_size(index->dtype);
  bool is_dense = rpi_array_is_row_major(index);
  for (int64_t k = 0; k < index->size; k++) {
    int64_t at = is_dense ? k : 0, rest = k;
    for (int i = index->ndim - 1; i >= 0 && !is_dense; i--) {
      at += rest % index->shape[i] * index->stride[i];
      rest /= index->shape[i];
    }
    int64_t value = read_index((const char*)rpi_array_ptr(index) + at * item, index->dtype);
    if (value < -(int64_t)extent || value >= extent) {
      rpi_build_fail(b, RP_ERR_INDEX, "Index %lld is out of bounds for axis %d with extent %d.",
                     (long long)value, axis, extent);
      return b->failed;
    }
  }
  return 0;
}

struct array* rpi_take(struct build* b, struct array* x, struct array* index, int axis) {
  int a;
  if (b->failed || !x || !index) return NULL;
  if ((b->failed = rpi_axis(&a, b->name, axis, x->ndim))) return NULL;
  if (check_values(b, index, a, x->shape[a])) return NULL;
  return rpi_op(b, RPI_OP_take, (struct array*[]){x, index}, 2, (int64_t[]){a}, 1);
}

struct array* rpi_take_along_axis(struct build* b, struct array* x, struct array* index, int axis) {
  int a;
  if (b->failed || !x || !index) return NULL;
  if ((b->failed = rpi_axis(&a, b->name, axis, x->ndim))) return NULL;
  if (check_values(b, index, a, x->shape[a])) return NULL;
  return rpi_op(b, RPI_OP_take_along_axis, (struct array*[]){x, index}, 2, (int64_t[]){a}, 1);
}

struct array* rpi_gather(struct build* b, struct array* x, struct array* const* index, int64_t n,
                         const int* axes, const int* size, int64_t nsize) {
  struct array* in[1 + RPI_MAX_NDIM] = {x};
  int64_t attr[1 + 2 * RPI_MAX_NDIM] = {n};
  bool is_indexed[RPI_MAX_NDIM] = {false};
  if (b->failed || !x) return NULL;
  if (n > x->ndim || nsize != x->ndim)
    return rpi_build_fail(b, RP_ERR_ARGUMENT,
                          "%lld index arrays and %lld slice sizes for an array with %d dimensions.",
                          (long long)n, (long long)nsize, x->ndim);
  for (int i = 0; i < n; i++) {
    int a;
    if ((b->failed = rpi_axis(&a, b->name, axes[i], x->ndim))) return NULL;
    if (!index[i] || check_values(b, index[i], a, x->shape[a])) return NULL;
    in[1 + i] = index[i];
    attr[1 + i] = a;
    is_indexed[a] = true;
  }
  for (int i = 0; i < x->ndim; i++) {
    if (size[i] < 0)
      return rpi_build_fail(b, RP_ERR_SHAPE, "Negative slice size %d of axis %d.", size[i], i);
    attr[1 + n + i] = !is_indexed[i] && size[i] == x->shape[i] ? -1 : size[i];
  }
  return rpi_op(b, RPI_OP_gather, in, (int)n + 1, attr, (int)(1 + n + x->ndim));
}

/* ---- Joining ---- */

static struct array* join(struct build* b, struct array** x, int64_t n, int axis) {
  int a, dtype = x[0]->dtype;
  if ((b->failed = rpi_axis(&a, b->name, axis, x[0]->ndim))) return NULL;
  for (int64_t i = 1; i < n; i++) dtype = rpi_dtype_promote(dtype, x[i]->dtype);
  for (int64_t i = 0; i < n; i++)
    if (!(x[i] = rpi_astype(b, x[i], dtype))) return NULL;
  return rpi_op(b, RPI_OP_concatenate, x, (int)n, (int64_t[]){a}, 1);
}

/* The list is copied: conversions move what the caller's pointer points into. */
static struct array** copy_list(struct build* b, struct array* const* x, int64_t n) {
  if (b->failed) return NULL;
  if (n < 1 || n > INT_MAX) {
    rpi_build_fail(b, RP_ERR_ARGUMENT, "No arrays were given.");
    return NULL;
  }
  struct array** copy = rpi_alloc(sizeof *copy * (size_t)n);
  if (!copy) {
    b->failed = rpi_fail_memory("a list of arrays", sizeof *copy * (unsigned long long)n);
    return NULL;
  }
  memcpy(copy, x, sizeof *copy * (size_t)n);
  for (int64_t i = 0; i < n; i++)
    if (!copy[i]) b->failed = rpi_error_code() ? rpi_error_code() : RP_ERR_INTERNAL;
  return copy;
}

struct array* rpi_concatenate(struct build* b, struct array* const* x, int64_t n, int axis) {
  struct array** list = copy_list(b, x, n);
  if (!list) return NULL;
  struct array* y = b->failed ? NULL : n == 1 ? list[0] : join(b, list, n, axis);
  rpi_free(list);
  return y;
}

struct array* rpi_stack(struct build* b, struct array* const* x, int64_t n, int axis) {
  struct array **list = copy_list(b, x, n), *y = NULL;
  if (!list) return NULL;
  for (int64_t i = 1; i < n && !b->failed; i++)
    if (!rpi_shape_equal(list[i]->shape, list[i]->ndim, list[0]->shape, list[0]->ndim))
      rpi_build_fail(b, RP_ERR_SHAPE, "All arrays must have the same shape; array %lld differs.",
                     (long long)i);
  for (int64_t i = 0; i < n && !b->failed; i++) list[i] = rpi_expand_dims(b, list[i], &axis, 1);
  if (!b->failed) y = n == 1 ? list[0] : join(b, list, n, axis);
  rpi_free(list);
  return y;
}

/* ---- Counting ---- */

struct array* rpi_arange(struct build* b, double start, double step, int64_t count, int dtype) {
  int64_t attr[] = {rpi_attr_from_double(start), rpi_attr_from_double(step), count, dtype};
  return b->failed ? NULL : rpi_op(b, RPI_OP_arange, NULL, 0, attr, 4);
}

/* In a trace the count is a running sum of ones that are as many as the axis has elements then. */
static struct array* count_along(struct build* b, struct array* x, int axis) {
  int64_t words[RPI_SLICE_WORDS * RPI_MAX_NDIM];
  for (int i = 0; i < x->ndim; i++) {
    words[RPI_SLICE_WORDS * i] = 0;
    words[RPI_SLICE_WORDS * i + 1] = i == axis ? INT_MAX : 1;
    words[RPI_SLICE_WORDS * i + 2] = 1;
  }
  struct array* line = rpi_op(b, RPI_OP_slice, &x, 1, words, RPI_SLICE_WORDS * x->ndim);
  struct array* one = rpi_op2(b, RPI_OP_broadcast_like, rpi_const(b, 1, RPI_INT64), line);
  return rpi_op(b, RPI_OP_cumsum, &one, 1, (int64_t[]){axis, 0, 0}, 3);
}

struct array* rpi_axis_index(struct build* b, struct array* x, int axis) {
  int a, shape[RPI_MAX_NDIM];
  if (b->failed || !x) return NULL;
  if ((b->failed = rpi_axis(&a, b->name, axis, x->ndim))) return NULL;
  if (x->is_tracer) return count_along(b, x, a);
  for (int i = 0; i < x->ndim; i++) shape[i] = i == a ? x->shape[i] : x->shape[i] != 0;
  struct array* line = rpi_arange(b, 0, 1, rpi_shape_size(shape, x->ndim), RPI_INT64);
  return rpi_reshape(b, line, shape, x->ndim);
}
