/* Kernels that read at indices: take, take_along_axis, gather.
 *
 * take and gather are one thing: for every outer position and every offset (what the index arrays
 * point to), a block of the source is copied to the next place of the result. */
#include <string.h>

#include "backend/cpu/indices.h"
#include "backend/cpu/move.h"
#include "base/err.h"
#include "base/thread.h"
#include "core/buffer.h"
#include "core/shape.h"

enum { CHUNK = 32768 /* elements */, FEW = 64, BLOCK = 256 };

/* A list of offsets, on the stack of the kernel if there are few. */
struct offsets {
  int64_t* at;
  struct buffer* buf;
  int64_t few[FEW];
};

static int make_offsets(struct offsets* o, int64_t n) {
  o->buf = NULL;
  o->at = o->few;
  if (n > FEW) {
    if (!(o->buf = rpi_buffer_new((size_t)n * sizeof *o->at))) return rpi_error_code();
    o->at = o->buf->data;
  }
  memset(o->at, 0, (size_t)n * sizeof *o->at);
  return 0;
}

struct blocks {
  const struct view* a;
  int outer; /* leading axes of `a` that are walked */
  const char* src;
  char* dst;
  size_t item;
  const int64_t* offset; /* or NULL: made on the fly from indices `step` apart */
  const char* index;
  int index_dtype;
  int64_t step;
  struct index_range range;
  int64_t noffset, rows, chunk_rows;
  int64_t size;      /* elements of a block */
  struct move block; /* simplified */
};

#define PICK(bits)                                                                   \
  static void pick##bits(void* dst, const void* src, const int64_t* offset, int64_t n) { \
    uint##bits##_t* d = dst;                                                         \
    const uint##bits##_t* s = src;                                                   \
    for (int64_t k = 0; k < n; k++) d[k] = s[offset[k]];                             \
  }
PICK(8)
PICK(16)
PICK(32)
PICK(64)

/* dst[k] = src[offset[k]] */
static void pick(void* dst, const void* src, const int64_t* offset, int64_t n, size_t item) {
  switch (item) {
    case 1: pick8(dst, src, offset, n); break;
    case 2: pick16(dst, src, offset, n); break;
    case 4: pick32(dst, src, offset, n); break;
    default: pick64(dst, src, offset, n); break;
  }
}

/* The blocks of `n` offsets at one outer position. */
static void copy_blocks(const struct blocks* b, char* dst, const char* src, const int64_t* offset,
                        int64_t n) {
  int64_t item = (int64_t)b->item;
  if (b->size == 1) {
    pick(dst, src, offset, n, b->item);
    return;
  }
  bool is_dense = b->block.ndim == 1 && b->block.from[0] == 1;
  for (int64_t k = 0; k < n; k++, dst += b->size * item)
    if (is_dense)
      memcpy(dst, src + offset[k] * item, (size_t)(b->size * item));
    else
      rpi_move_here(dst, src + offset[k] * item, &b->block, b->item);
}

/* The same for offsets k to k + n. */
static void copy_run(const struct blocks* b, char* dst, const char* src, int64_t k, int64_t n) {
  int64_t offset[BLOCK], step = b->step * (int64_t)rpi_dtype_size(b->index_dtype);
  if (b->offset) {
    copy_blocks(b, dst, src, b->offset + k, n);
    return;
  }
  for (int64_t m, end = k + n; k < end; k += m) {
    m = end - k < BLOCK ? end - k : BLOCK;
    memset(offset, 0, (size_t)m * sizeof *offset);
    rpi_indices_add(offset, b->index + k * step, b->index_dtype, m, b->step, b->range);
    copy_blocks(b, dst, src, offset, m);
    dst += m * b->size * (int64_t)b->item;
  }
}

static void copy_chunk(void* ctx, int64_t i) {
  const struct blocks* b = ctx;
  int64_t row = i * b->chunk_rows, end = row + b->chunk_rows;
  if (end > b->rows) end = b->rows;
  while (row < end) {
    int64_t k = row % b->noffset, rest = row / b->noffset, at = 0;
    int64_t n = end - row < b->noffset - k ? end - row : b->noffset - k;
    for (int d = b->outer - 1; d >= 0; d--) {
      at += rest % b->a->shape[d] * b->a->stride[d];
      rest /= b->a->shape[d];
    }
    copy_run(b, b->dst + row * b->size * (int64_t)b->item, b->src + at * (int64_t)b->item, k, n);
    row += n;
  }
}

/* `shape` and `stride`: the block in the source. */
static void run_blocks(struct blocks* b, const int* shape, const int64_t* stride, int ndim) {
  int64_t dense[RPI_MAX_NDIM];
  rpi_row_major(dense, shape, ndim);
  rpi_move_set(&b->block, shape, ndim, dense, stride);
  b->size = rpi_move_simplify(&b->block);
  b->rows = b->noffset;
  for (int d = 0; d < b->outer; d++) b->rows *= b->a->shape[d];
  if (b->rows == 0 || b->size == 0) return;
  b->chunk_rows = b->size >= CHUNK ? 1 : CHUNK / b->size;
  if (b->rows <= b->chunk_rows)
    copy_chunk(b, 0);
  else
    rpi_parallel((b->rows + b->chunk_rows - 1) / b->chunk_rows, copy_chunk, b);
}

static struct blocks over(const struct call* c, int outer, int64_t n) {
  return (struct blocks){.a = &c->in[0], .outer = outer, .src = c->src[0], .dst = c->dst[0],
                         .item = rpi_dtype_size(c->in[0].dtype), .noffset = n};
}

/* Indices that lie one stride apart need no list of offsets. */
int rpi_cpu_take(const struct call* c) {
  const struct view *a = &c->in[0], *index = &c->in[1];
  int axis = (int)c->attr[0], rc = 0;
  struct blocks b = over(c, axis, index->size);
  struct offsets o = {.buf = NULL};
  if (c->out[0].size == 0) return 0;
  b.index = c->src[1];
  b.index_dtype = index->dtype;
  b.range = (struct index_range){a->shape[axis], 1, a->stride[axis]};
  b.step = index->ndim == 1 ? index->stride[0] : 1;
  if (index->ndim > 1 && !index->is_row_major) {
    if ((rc = make_offsets(&o, index->size))) return rc;
    rpi_indices_add_all(o.at, c->src[1], index, index->shape, index->ndim, b.range);
    b.offset = o.at;
  }
  run_blocks(&b, a->shape + axis + 1, a->stride + axis + 1, a->ndim - axis - 1);
  rpi_buffer_release(o.buf);
  return 0;
}

int rpi_cpu_gather(const struct call* c) {
  const struct view* a = &c->in[0];
  int n = (int)c->attr[0], lead = c->out[0].ndim - a->ndim; /* axes of the joined indices */
  const int* size = c->out[0].shape + lead;
  int64_t count = rpi_shape_size(c->out[0].shape, lead);
  struct offsets o;
  if (c->out[0].size == 0) return 0;
  int rc = make_offsets(&o, count);
  if (rc) return rc;
  for (int i = 0; i < n; i++) {
    int axis = (int)c->attr[1 + i];
    rpi_indices_add_all(o.at, c->src[1 + i], &c->in[1 + i], c->out[0].shape, lead,
                        (struct index_range){a->shape[axis], size[axis], a->stride[axis]});
  }
  struct blocks b = over(c, 0, count);
  b.offset = o.at;
  run_blocks(&b, size, a->stride, a->ndim);
  rpi_buffer_release(o.buf);
  return 0;
}

/* ---- take_along_axis: every element of the result has an index of its own ---- */

struct along {
  const struct call* c;
  int axis;
  int64_t a_stride[RPI_MAX_NDIM], index_stride[RPI_MAX_NDIM]; /* stretched; 0 for a at `axis` */
  struct index_range range;
  int64_t rows, cols, chunk_rows;
};

static void take_row(const struct along* w, int64_t row) {
  const struct view* out = &w->c->out[0];
  int64_t item = (int64_t)rpi_dtype_size(out->dtype), offset[BLOCK];
  int64_t index_item = (int64_t)rpi_dtype_size(w->c->in[1].dtype);
  int64_t from = 0, index = 0, rest = row, step = w->a_stride[out->ndim - 1];
  for (int d = out->ndim - 2; d >= 0; d--) {
    from += rest % out->shape[d] * w->a_stride[d];
    index += rest % out->shape[d] * w->index_stride[d];
    rest /= out->shape[d];
  }
  for (int64_t k = 0; k < w->cols; k += BLOCK) {
    int64_t n = w->cols - k < BLOCK ? w->cols - k : BLOCK, next = w->index_stride[out->ndim - 1];
    for (int64_t j = 0; j < n; j++) offset[j] = (k + j) * step;
    rpi_indices_add(offset, (const char*)w->c->src[1] + (index + k * next) * index_item,
                    w->c->in[1].dtype, n, next, w->range);
    pick((char*)w->c->dst[0] + (row * w->cols + k) * item, (const char*)w->c->src[0] + from * item,
         offset, n, (size_t)item);
  }
}

static void take_chunk(void* ctx, int64_t i) {
  const struct along* w = ctx;
  int64_t row = i * w->chunk_rows, end = row + w->chunk_rows;
  for (; row < end && row < w->rows; row++) take_row(w, row);
}

int rpi_cpu_take_along_axis(const struct call* c) {
  const struct view *a = &c->in[0], *index = &c->in[1], *out = &c->out[0];
  struct along w = {.c = c, .axis = (int)c->attr[0]};
  if (out->size == 0) return 0;
  for (int d = 0; d < out->ndim; d++) {
    w.a_stride[d] = a->shape[d] == 1 || d == w.axis ? 0 : a->stride[d];
    w.index_stride[d] = index->shape[d] == 1 ? 0 : index->stride[d];
  }
  w.range = (struct index_range){a->shape[w.axis], 1, a->stride[w.axis]};
  w.cols = out->shape[out->ndim - 1];
  w.rows = out->size / w.cols;
  w.chunk_rows = w.cols >= CHUNK ? 1 : CHUNK / w.cols;
  if (out->size <= CHUNK) w.chunk_rows = w.rows;
  rpi_parallel((w.rows + w.chunk_rows - 1) / w.chunk_rows, take_chunk, &w);
  return 0;
}
