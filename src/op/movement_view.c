/* View rules: strides and offset of a result in its input's memory.
 *
 * 1. The caller has set `offset` to 0 and `needs_copy` to false.
 * 2. A rule that asks for a row-contiguous copy of the input never asks again when it is given one.
 * 3. An empty result has offset 0, so that no pointer leaves its buffer. */
#include <string.h>

#include "op/op.h"
#include "op/slice.h"

int rpi_view_same(struct view_rule* v) {
  memcpy(v->stride, v->in_stride, (size_t)v->in.ndim * sizeof *v->stride);
  return 0;
}

static bool is_col_major(const struct view_rule* v) {
  int64_t step = 1;
  for (int i = 0; i < v->in.ndim; i++) {
    if (v->in.shape[i] != 1 && v->in_stride[i] != step) return false;
    step *= v->in.shape[i];
  }
  return true;
}

/* attr, if given: whether column-major order is fine too. */
int rpi_view_contiguous(struct view_rule* v) {
  bool is_fine = rpi_is_row_major(v->in_stride, v->in.shape, v->in.ndim) ||
                 (v->nattr && v->attr[0] && is_col_major(v));
  v->needs_copy = !is_fine;
  return rpi_view_same(v);
}

/* Join neighbouring input axes that are walked with one stride; axes of extent 1 vanish. */
static int join_axes(int64_t* dim, int64_t* stride, const struct view_rule* v) {
  int n = 0;
  for (int i = 0; i < v->in.ndim; i++) {
    int64_t extent = v->in.shape[i], step = v->in_stride[i];
    if (extent == 1) continue;
    if (n && stride[n - 1] == step * extent) {
      dim[n - 1] *= extent;
      stride[n - 1] = step;
    } else {
      dim[n] = extent;
      stride[n++] = step;
    }
  }
  return n;
}

/* Cut the joined axes, from the right, into the wanted extents. A copy is needed where a wanted
 * axis would cross from one joined axis into the next. */
int rpi_view_reshape(struct view_rule* v) {
  int64_t dim[RPI_MAX_NDIM], stride[RPI_MAX_NDIM];
  int k = v->shape->ndim;
  if (rpi_size(v->shape) == 0) {
    rpi_row_major(v->stride, v->shape->dim, k);
    return 0;
  }
  int n = join_axes(dim, stride, v);
  while (k-- > 0) {
    int64_t extent = v->shape->dim[k];
    while (extent > 1 && n && dim[n - 1] == 1) n--; /* used up */
    if (extent > 1 && (n == 0 || dim[n - 1] % extent)) {
      v->needs_copy = true;
      return 0;
    }
    v->stride[k] = n ? stride[n - 1] : 1;
    if (extent > 1) {
      dim[n - 1] /= extent;
      stride[n - 1] *= extent;
    }
  }
  return 0;
}

int rpi_view_expand_dims(struct view_rule* v) {
  int at = 0, from = 0;
  for (int i = 0; i < v->shape->ndim; i++) {
    if (at < v->nattr && v->attr[at] == i) {
      at++;
      v->stride[i] = from < v->in.ndim ? v->in_stride[from] * v->in.shape[from] : 1;
    } else {
      v->stride[i] = v->in_stride[from++];
    }
  }
  return 0;
}

int rpi_view_squeeze(struct view_rule* v) {
  for (int i = 0, at = 0, to = 0; i < v->in.ndim; i++) {
    if (at < v->nattr && v->attr[at] == i)
      at++;
    else
      v->stride[to++] = v->in_stride[i];
  }
  return 0;
}

int rpi_view_transpose(struct view_rule* v) {
  for (int i = 0; i < v->in.ndim; i++) v->stride[i] = v->in_stride[v->attr[i]];
  return 0;
}

int rpi_view_broadcast(struct view_rule* v) {
  int lead = v->shape->ndim - v->in.ndim;
  for (int i = 0; i < v->shape->ndim; i++) {
    bool is_kept = i >= lead && v->in.shape[i - lead] == v->shape->dim[i];
    v->stride[i] = is_kept ? v->in_stride[i - lead] : 0;
  }
  return 0;
}

int rpi_view_slice(struct view_rule* v) {
  v->offset = 0;
  for (int i = 0; i < v->in.ndim; i++) {
    const int64_t* word = v->attr + RPI_SLICE_WORDS * i;
    int64_t first, count;
    rpi_slice_resolve(&first, &count, word, v->in.shape[i]);
    v->offset += first * v->in_stride[i];
    v->stride[i] = v->in_stride[i] * (count > 1 ? word[2] : 1);
  }
  if (rpi_size(v->shape) == 0) v->offset = 0;
  return 0;
}

int rpi_view_part(struct view_rule* v) {
  int64_t axis = v->attr[0];
  v->offset = v->attr[1] * v->shape->dim[axis] * v->in_stride[axis];
  if (rpi_size(v->shape) == 0) v->offset = 0;
  return rpi_view_same(v);
}

/* Offset and strides count the elements of the input in row-major order. */
int rpi_view_as_strided(struct view_rule* v) {
  if (!rpi_is_row_major(v->in_stride, v->in.shape, v->in.ndim)) {
    v->needs_copy = true;
    return 0;
  }
  int n = v->shape->ndim;
  memcpy(v->stride, v->attr + 2 + n, (size_t)n * sizeof *v->stride);
  v->offset = rpi_size(v->shape) ? v->attr[0] : 0;
  return 0;
}

/* Elements of another size: the last axis must be dense, and the other strides whole numbers of the
 * new elements. */
int rpi_view_bits(struct view_rule* v) {
  int64_t from = (int64_t)rpi_dtype_size(v->in.dtype), to = (int64_t)rpi_dtype_size(v->dtype);
  int last = v->in.ndim - 1;
  if (from == to) return rpi_view_same(v);
  if (rpi_size(v->shape) == 0) {
    rpi_row_major(v->stride, v->shape->dim, v->shape->ndim);
    return 0;
  }
  v->needs_copy = v->in.shape[last] != 1 && v->in_stride[last] != 1;
  for (int i = 0; i < last; i++) {
    int64_t bytes = v->in_stride[i] * from;
    if (v->in.shape[i] != 1 && bytes % to) v->needs_copy = true;
    v->stride[i] = bytes / to;
  }
  v->stride[last] = 1;
  return 0;
}
