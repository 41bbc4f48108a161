/* Walking memory with strides: see strided.h. */
#include "backend/cpu/strided.h"

#include <string.h>

#include "base/attr.h"
#include "base/thread.h"

enum {
  TILE = 32,           /* elements per side of a transposed tile */
  CHUNK = 32768,       /* elements per chunk of a parallel copy */
  PARALLEL_BYTES = 1 << 18
};

/* Making nests --------------------------------------------------------------------------------- */

int rpi_nest_joint(int64_t* extent, int64_t* const* stride, const struct view* v, int nviews) {
  int n = 0;
  for (int d = v[0].ndim - 1; d >= 0; d--) {
    int64_t e = v[0].shape[d];
    if (e == 1) continue;
    bool merges = n > 0;
    for (int k = 0; k < nviews && merges; k++)
      merges = v[k].stride[d] == stride[k][n - 1] * extent[n - 1];
    if (merges) {
      extent[n - 1] *= e;
      continue;
    }
    extent[n] = e;
    for (int k = 0; k < nviews; k++) stride[k][n] = v[k].stride[d];
    n++;
  }
  if (n) return n;
  extent[0] = 1;
  for (int k = 0; k < nviews; k++) stride[k][0] = 1;
  return 1;
}

void rpi_nest_make(struct rpi_nest* n, const struct view* v) {
  int64_t* stride = n->stride;
  n->item = (int)rpi_dtype_size(v->dtype);
  n->ndim = rpi_nest_joint(n->extent, &stride, v, 1);
  for (int d = 0; d < n->ndim; d++) stride[d] *= n->item;
}

/* Runs ----------------------------------------------------------------------------------------- */

#define DEFINE_RUNS(T)                                                                     \
  static void fill_##T(T* dst, const char* src, int64_t count) {                           \
    T value = *(const T*)src;                                                              \
    for (int64_t i = 0; i < count; i++) dst[i] = value;                                    \
  }                                                                                        \
  static void spread_##T(T* restrict dst, const char* src, int64_t stride, int64_t count) { \
    for (int64_t i = 0; i < count; i++) dst[i] = *(const T*)(src + i * stride);            \
  }                                                                                        \
  /* rows of dst are `pitch` elements apart, elements of a column of src lie side by side */ \
  static void tile_##T(T* restrict dst, int64_t pitch, const char* src, int64_t stride,    \
                       int64_t rows, int64_t columns) {                                    \
    for (int64_t i = 0; i < rows; i++)                                                     \
      for (int64_t j = 0; j < columns; j++)                                                \
        dst[i * pitch + j] = *((const T*)(src + j * stride) + i);                          \
  }
DEFINE_RUNS(uint8_t)
DEFINE_RUNS(uint16_t)
DEFINE_RUNS(uint32_t)
DEFINE_RUNS(uint64_t)

void rpi_fill(void* dst, const void* value, int item, int64_t count) {
  switch (item) {
    case 1: fill_uint8_t(dst, value, count); return;
    case 2: fill_uint16_t(dst, value, count); return;
    case 4: fill_uint32_t(dst, value, count); return;
    default: fill_uint64_t(dst, value, count); return;
  }
}

/* At most 64 bytes, where a call would cost more than the copy: words, the last one overlapping. */
static inline void copy_short(char* dst, const char* src, int64_t bytes) {
  if (bytes >= 8) {
    for (int64_t i = 0; i + 8 < bytes; i += 8) memcpy(dst + i, src + i, 8);
    memcpy(dst + bytes - 8, src + bytes - 8, 8);
  } else if (bytes >= 4) {
    memcpy(dst, src, 4);
    memcpy(dst + bytes - 4, src + bytes - 4, 4);
  } else {
    for (int64_t i = 0; i < bytes; i++) dst[i] = src[i];
  }
}

static void copy_run(void* dst, const char* src, int64_t stride, int item, int64_t count) {
  if (stride == item && count * item <= 64) {
    copy_short(dst, src, count * item);
  } else if (stride == item) {
    memcpy(dst, src, (size_t)(count * item));
  } else if (stride == 0) {
    rpi_fill(dst, src, item, count);
  } else {
    switch (item) {
      case 1: spread_uint8_t(dst, src, stride, count); return;
      case 2: spread_uint16_t(dst, src, stride, count); return;
      case 4: spread_uint32_t(dst, src, stride, count); return;
      default: spread_uint64_t(dst, src, stride, count); return;
    }
  }
}

/* Cursors -------------------------------------------------------------------------------------- */

void rpi_cursor_seek(struct rpi_cursor* c, const struct rpi_nest* n, const void* first, int64_t i) {
  c->at = first;
  if (i == 0) {
    memset(c->index, 0, sizeof *c->index * (size_t)n->ndim);
    return;
  }
  for (int d = 0; d < n->ndim; d++) {
    int64_t rest = i / n->extent[d];
    c->index[d] = i - rest * n->extent[d];
    c->at += c->index[d] * n->stride[d];
    i = rest;
  }
}

/* The innermost axis is at its end: on to the next row. */
static void carry(struct rpi_cursor* c, const struct rpi_nest* n) {
  for (int d = 0; c->index[d] == n->extent[d]; d++) {
    c->at -= n->extent[d] * n->stride[d];
    c->index[d] = 0;
    if (d + 1 == n->ndim) return;
    c->index[d + 1]++;
    c->at += n->stride[d + 1];
  }
}

void rpi_cursor_skip(struct rpi_cursor* c, const struct rpi_nest* n, int64_t count) {
  c->index[0] += count;
  c->at += count * n->stride[0];
  if (c->index[0] == n->extent[0]) carry(c, n);
}

void rpi_cursor_gather(struct rpi_cursor* c, const struct rpi_nest* n, void* dst, int64_t count) {
  char* to = dst;
  while (count > 0) {
    int64_t run = rpi_cursor_run(c, n);
    if (run > count) run = count;
    copy_run(to, c->at, n->stride[0], n->item, run);
    to += run * n->item;
    count -= run;
    rpi_cursor_skip(c, n, run);
  }
}

/* Packing -------------------------------------------------------------------------------------- */

struct packing {
  char* dst;
  const char* src;
  int64_t size;
  int64_t chunk; /* elements; tiles of the transposed axis for transposes */
  struct rpi_nest nest;
  /* Of a transpose: the axis whose elements lie side by side in src, where a step along it goes in
   * dst, and the number of bands (of TILE rows along that axis) in all. */
  int axis;
  int64_t pitch;
  int64_t bands;
};

static void pack_chunk(void* ctx, int64_t i) {
  const struct packing* p = ctx;
  struct rpi_cursor c;
  int64_t lo = i * p->chunk, hi = lo + p->chunk < p->size ? lo + p->chunk : p->size;
  rpi_cursor_seek(&c, &p->nest, p->src, lo);
  rpi_cursor_gather(&c, &p->nest, p->dst + lo * p->nest.item, hi - lo);
}

static void copy_tile(const struct packing* p, char* dst, const char* src, int64_t rows,
                      int64_t columns) {
  int64_t stride = p->nest.stride[0];
  switch (p->nest.item) {
    case 1: tile_uint8_t((uint8_t*)dst, p->pitch, src, stride, rows, columns); return;
    case 2: tile_uint16_t((uint16_t*)dst, p->pitch, src, stride, rows, columns); return;
    case 4: tile_uint32_t((uint32_t*)dst, p->pitch, src, stride, rows, columns); return;
    default: tile_uint64_t((uint64_t*)dst, p->pitch, src, stride, rows, columns); return;
  }
}

/* Where band `i` starts: band within the transposed axis first, then the other axes. */
static int64_t find_band(const struct packing* p, int64_t i, char** dst, const char** src) {
  const struct rpi_nest* n = &p->nest;
  int64_t per_axis = (n->extent[p->axis] + TILE - 1) / TILE, row = i % per_axis * TILE;
  int64_t rest = i / per_axis, step = n->extent[0];
  *dst = p->dst + row * p->pitch * n->item;
  *src = p->src + row * n->item;
  for (int d = 1; d < n->ndim; d++) {
    if (d != p->axis) {
      int64_t k = rest % n->extent[d];
      rest /= n->extent[d];
      *dst += k * step * n->item;
      *src += k * n->stride[d];
    }
    step *= n->extent[d];
  }
  return row;
}

static void pack_bands(void* ctx, int64_t chunk) {
  const struct packing* p = ctx;
  const struct rpi_nest* n = &p->nest;
  int64_t hi = (chunk + 1) * p->chunk < p->bands ? (chunk + 1) * p->chunk : p->bands;
  for (int64_t i = chunk * p->chunk; i < hi; i++) {
    char* dst;
    const char* src;
    int64_t row = find_band(p, i, &dst, &src);
    int64_t rows = n->extent[p->axis] - row < TILE ? n->extent[p->axis] - row : TILE;
    for (int64_t j = 0; j < n->extent[0]; j += TILE)
      copy_tile(p, dst + j * n->item, src + j * n->stride[0], rows,
                n->extent[0] - j < TILE ? n->extent[0] - j : TILE);
  }
}

/* Worth tiling: both axes long enough, and the innermost one not contiguous itself. */
static bool is_transpose(struct packing* p) {
  const struct rpi_nest* n = &p->nest;
  if (n->stride[0] == n->item || n->stride[0] == 0 || n->extent[0] < 4) return false;
  int64_t step = n->extent[0];
  for (int d = 1; d < n->ndim; d++) {
    if (n->stride[d] == n->item && n->extent[d] >= 4) {
      p->axis = d;
      p->pitch = step;
      return true;
    }
    step *= n->extent[d];
  }
  return false;
}

static void pack_transposed(struct packing* p) {
  int64_t per_axis = (p->nest.extent[p->axis] + TILE - 1) / TILE;
  int64_t band = TILE * p->nest.extent[0]; /* elements, about */
  p->bands = p->size / p->nest.extent[0] / p->nest.extent[p->axis] * per_axis;
  bool split = p->size * p->nest.item >= PARALLEL_BYTES;
  p->chunk = !split ? p->bands : band < CHUNK ? CHUNK / band : 1;
  int64_t chunks = (p->bands + p->chunk - 1) / p->chunk;
  if (chunks == 1)
    pack_bands(p, 0);
  else
    rpi_parallel(chunks, pack_bands, p);
}

int rpi_cpu_pack(void* dst, const void* src, const struct view* v) {
  struct packing p;
  if (v->size == 0) return 0;
  size_t bytes = (size_t)v->size * rpi_dtype_size(v->dtype);
  if (v->is_row_major && bytes < PARALLEL_BYTES) {
    memcpy(dst, src, bytes);
    return 0;
  }
  p.dst = dst;
  p.src = src;
  p.size = v->size;
  rpi_nest_make(&p.nest, v);
  if (is_transpose(&p)) {
    pack_transposed(&p);
    return 0;
  }
  p.chunk = bytes < PARALLEL_BYTES ? p.size : CHUNK;
  if (p.chunk == p.size)
    pack_chunk(&p, 0);
  else
    rpi_parallel((p.size + p.chunk - 1) / p.chunk, pack_chunk, &p);
  return 0;
}
