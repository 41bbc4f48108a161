/* Kernels that put arrays into others: concatenate, pad, and slices read or written at places known
 * only at run time or in place. All are strided copies. */
#include <string.h>

#include "backend/cpu/indices.h"
#include "backend/cpu/move.h"
#include "base/err.h"
#include "core/shape.h"
#include "op/index.h"
#include "op/slice.h"

static size_t item_of(const struct call* c) { return rpi_dtype_size(c->out[0].dtype); }

/* The place of an element of the result. */
static char* result_at(const struct call* c, int64_t offset) {
  return (char*)c->dst[0] + offset * (int64_t)item_of(c);
}

int rpi_cpu_concatenate(const struct call* c) {
  const struct view* out = &c->out[0];
  int64_t axis = c->attr[0], at = 0;
  for (int i = 0; i < c->nin; i++) {
    struct move m;
    rpi_move_set(&m, c->in[i].shape, out->ndim, out->stride, c->in[i].stride);
    rpi_move(result_at(c, at * out->stride[axis]), c->src[i], &m, item_of(c));
    at += c->in[i].shape[axis];
  }
  return 0;
}

/* Copy the planes next to the middle of `axis` outwards. Axes before it are complete already. */
static void repeat_edge(const struct call* c, int axis) {
  const struct view *a = &c->in[0], *out = &c->out[0];
  const int64_t* width = c->attr + 1;
  int64_t low = width[2 * axis], high = width[2 * axis + 1], corner = 0, from[RPI_MAX_NDIM];
  int shape[RPI_MAX_NDIM];
  for (int i = 0; i < out->ndim; i++) {
    shape[i] = i < axis ? out->shape[i] : a->shape[i];
    if (i > axis) corner += width[2 * i] * out->stride[i];
    from[i] = i == axis ? 0 : out->stride[i];
  }
  for (int side = 0; side < 2; side++) {
    int64_t first = side ? low + a->shape[axis] : 0, edge = side ? first - 1 : low;
    struct move m;
    shape[axis] = (int)(side ? high : low);
    rpi_move_set(&m, shape, out->ndim, out->stride, from);
    rpi_move(result_at(c, corner + first * out->stride[axis]),
             result_at(c, corner + edge * out->stride[axis]), &m, item_of(c));
  }
}

int rpi_cpu_pad(const struct call* c) {
  static const int64_t zero[RPI_MAX_NDIM];
  const struct view *a = &c->in[0], *out = &c->out[0];
  bool is_edge = c->attr[0] == RPI_PAD_EDGE;
  int64_t corner = 0;
  struct move m;
  for (int i = 0; i < out->ndim; i++) corner += c->attr[1 + 2 * i] * out->stride[i];
  if (!is_edge) {
    rpi_move_set(&m, out->shape, out->ndim, out->stride, zero);
    rpi_move(c->dst[0], c->src[1], &m, item_of(c));
  }
  rpi_move_set(&m, a->shape, out->ndim, out->stride, a->stride);
  rpi_move(result_at(c, corner), c->src[0], &m, item_of(c));
  for (int i = 0; is_edge && i < out->ndim; i++) repeat_edge(c, i);
  return 0;
}

/* The result starts as input 0, unless it is input 0's memory. */
static void copy_first(const struct call* c) {
  struct move m;
  if (c->dst[0] == c->src[0]) return;
  rpi_move_set(&m, c->out[0].shape, c->out[0].ndim, c->out[0].stride, c->in[0].stride);
  rpi_move(c->dst[0], c->src[0], &m, item_of(c));
}

/* Strides of a view aligned on the right with `ndim` axes; 0 where it stretches. */
static void align(int64_t* stride, const struct view* v, int ndim) {
  for (int i = 0; i < ndim; i++) {
    int from = i - (ndim - v->ndim);
    stride[i] = from >= 0 && v->shape[from] != 1 ? v->stride[from] : 0;
  }
}

int rpi_cpu_slice_update(const struct call* c) {
  const struct view* out = &c->out[0];
  struct move m = {.ndim = out->ndim};
  int64_t at = 0;
  copy_first(c);
  align(m.from, &c->in[1], out->ndim);
  for (int i = 0; i < out->ndim; i++) {
    const int64_t* word = c->attr + RPI_SLICE_WORDS * i;
    int64_t first;
    rpi_slice_resolve(&first, &m.dim[i], word, out->shape[i]);
    m.to[i] = out->stride[i] * word[2];
    at += first * out->stride[i];
  }
  rpi_move(result_at(c, at), c->src[1], &m, item_of(c));
  return 0;
}

/* The offset in `v` where a region of `dim` extents starts, moved inside where it would not fit. */
static int64_t find_start(const struct view* v, const int* dim, const struct view* start,
                          const void* src, const int64_t* axes, int n) {
  int64_t at = 0, step = start->ndim ? start->stride[0] : 0;
  int64_t item = (int64_t)rpi_dtype_size(start->dtype);
  for (int i = 0; i < n; i++) {
    int64_t axis = axes[i];
    rpi_indices_add(&at, (const char*)src + i * step * item, start->dtype, 1, 0,
                    (struct index_range){v->shape[axis], dim[axis], v->stride[axis]});
  }
  return at;
}

int rpi_cpu_slice_dynamic(const struct call* c) {
  const struct view *a = &c->in[0], *out = &c->out[0];
  int64_t item = (int64_t)item_of(c);
  struct move m;
  if (out->size == 0) return 0;
  int64_t at = find_start(a, out->shape, &c->in[1], c->src[1], c->attr + 1, (int)c->attr[0]);
  rpi_move_set(&m, out->shape, out->ndim, out->stride, a->stride);
  rpi_move(c->dst[0], (const char*)c->src[0] + at * item, &m, (size_t)item);
  return 0;
}

int rpi_cpu_slice_update_dynamic(const struct call* c) {
  const struct view *out = &c->out[0], *update = &c->in[1];
  struct shape region;
  int64_t stride[RPI_MAX_NDIM];
  struct move m;
  copy_first(c);
  rpi_update_region(&region, out->shape, out->ndim, update->shape, update->ndim, c->attr, c->nattr);
  if (rpi_size(&region) == 0) return 0;
  int64_t at = find_start(out, region.dim, &c->in[2], c->src[2], c->attr, c->nattr);
  align(stride, update, out->ndim);
  rpi_move_set(&m, region.dim, out->ndim, out->stride, stride);
  rpi_move(result_at(c, at), c->src[1], &m, (size_t)item_of(c));
  return 0;
}
