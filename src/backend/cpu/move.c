/* Strided copies: see move.h.
 *
 * A copy is a list of rows (the last axis). Rows that follow each other along the axis before are
 * copied together, so that a transposition goes by tiles, not by one cache line per element. */
#include "backend/cpu/move.h"

#include <string.h>

#include "base/thread.h"

enum { CHUNK = 32768 /* elements */, TILE = 64 /* rows */, TILE_BYTES = 8192 };

/* A rectangle of rows and columns. */
struct patch {
  char* dst;
  const char* src;
  int64_t rows, cols, to_row, to_col, from_row, from_col;
};

/* One loop per size of element; the two dense cases are what the vectorizer can use. */
#define COPY_PATCH(bits)                                                                   \
  static void copy_patch##bits(const struct patch* p) {                                    \
    for (int64_t r = 0; r < p->rows; r++) {                                                \
      uint##bits##_t* d = (uint##bits##_t*)p->dst + r * p->to_row;                         \
      const uint##bits##_t* s = (const uint##bits##_t*)p->src + r * p->from_row;           \
      int64_t n = p->cols, dc = p->to_col, sc = p->from_col;                               \
      if (dc == 1 && sc == 0) {                                                            \
        uint##bits##_t x = n ? *s : 0;                                                     \
        for (int64_t i = 0; i < n; i++) d[i] = x;                                          \
      } else if (dc == 1) {                                                                \
        for (int64_t i = 0; i < n; i++) d[i] = s[i * sc];                                  \
      } else {                                                                             \
        for (int64_t i = 0; i < n; i++) d[i * dc] = s[i * sc];                             \
      }                                                                                    \
    }                                                                                      \
  }
COPY_PATCH(8)
COPY_PATCH(16)
COPY_PATCH(32)
COPY_PATCH(64)

static void copy_loops(const struct patch* p, size_t item) {
  switch (item) {
    case 1: copy_patch8(p); break;
    case 2: copy_patch16(p); break;
    case 4: copy_patch32(p); break;
    default: copy_patch64(p); break;
  }
}

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* Columns of the source become rows of the destination: a tile is read along the source, turned in
 * a buffer, and written along the destination, so that both sides move in whole cache lines. */
#define TURN_TILE(bits)                                                                    \
  static void turn_tile##bits(const struct patch* p) {                                     \
    uint##bits##_t buf[TILE_BYTES / sizeof(uint##bits##_t)];                               \
    for (int64_t c = 0; c < p->cols; c++) {                                                \
      const uint##bits##_t* s = (const uint##bits##_t*)p->src + c * p->from_col;           \
      for (int64_t r = 0; r < p->rows; r++) buf[r * p->cols + c] = s[r * p->from_row];     \
    }                                                                                      \
    for (int64_t r = 0; r < p->rows; r++)                                                  \
      memcpy((uint##bits##_t*)p->dst + r * p->to_row, buf + r * p->cols,                   \
             (size_t)p->cols * sizeof *buf);                                               \
  }
TURN_TILE(8)
TURN_TILE(16)
TURN_TILE(32)
TURN_TILE(64)

static void turn_tile(const struct patch* p, size_t item) {
  switch (item) {
    case 1: turn_tile8(p); break;
    case 2: turn_tile16(p); break;
    case 4: turn_tile32(p); break;
    default: turn_tile64(p); break;
  }
}

/* Needs to_col == 1. */
static void copy_tiles(const struct patch* p, size_t item) {
  int64_t side = item > 2 ? 32 : 64;
  struct patch t = *p;
  for (int64_t r = 0; r < p->rows; r += side)
    for (int64_t c = 0; c < p->cols; c += side) {
      t.rows = p->rows - r < side ? p->rows - r : side;
      t.cols = p->cols - c < side ? p->cols - c : side;
      t.dst = p->dst + (r * p->to_row + c) * (int64_t)item;
      t.src = p->src + (r * p->from_row + c * p->from_col) * (int64_t)item;
      turn_tile(&t, item);
    }
}

static void copy_patch(const struct patch* p, size_t item) {
  if (p->to_col == 1 && p->from_col == 1) {
    for (int64_t r = 0; r < p->rows; r++)
      memcpy(p->dst + r * p->to_row * (int64_t)item, p->src + r * p->from_row * (int64_t)item,
             (size_t)p->cols * item);
  } else if (p->rows > 1 && p->to_col == 1 && p->from_row &&
             magnitude(p->from_row) < magnitude(p->from_col)) {
    copy_tiles(p, item);
  } else {
    copy_loops(p, item);
  }
}

void rpi_move_set(struct move* m, const int* shape, int ndim, const int64_t* to,
                  const int64_t* from) {
  m->ndim = ndim;
  for (int i = 0; i < ndim; i++) {
    m->dim[i] = shape[i];
    m->to[i] = to[i];
    m->from[i] = from[i];
  }
}

/* Bring the axis with the smallest source step next to the last one, where tiles form. */
static void order_axes(struct move* m) {
  int last = m->ndim - 1, best = -1;
  if (m->ndim < 3 || magnitude(m->from[last]) <= 1) return;
  for (int i = 0; i < last; i++)
    if (m->from[i] && (best < 0 || magnitude(m->from[i]) < magnitude(m->from[best]))) best = i;
  if (best < 0 || magnitude(m->from[best]) >= magnitude(m->from[last])) return;
  int64_t dim = m->dim[best], to = m->to[best], from = m->from[best];
  for (int i = best; i < last - 1; i++) {
    m->dim[i] = m->dim[i + 1];
    m->to[i] = m->to[i + 1];
    m->from[i] = m->from[i + 1];
  }
  m->dim[last - 1] = dim;
  m->to[last - 1] = to;
  m->from[last - 1] = from;
}

int64_t rpi_move_simplify(struct move* m) {
  int64_t size = 1;
  int n = 0;
  for (int i = 0; i < m->ndim; i++) {
    int64_t dim = m->dim[i], to = m->to[i], from = m->from[i];
    size *= dim;
    if (dim == 1) continue;
    if (n && m->to[n - 1] == to * dim && m->from[n - 1] == from * dim) {
      dim *= m->dim[n - 1];
      n--;
    }
    m->dim[n] = dim;
    m->to[n] = to;
    m->from[n++] = from;
  }
  m->ndim = n;
  if (size) order_axes(m);
  return size;
}

/* What the chunks of one copy share. */
struct job {
  const struct move* m;
  char* dst;
  const char* src;
  size_t item;
  int64_t rows, cols;         /* in all */
  int64_t chunk_rows, blocks; /* a chunk is that many rows, or one of `blocks` parts of one row */
};

/* Rows [first, end), columns [col, col + cols): one patch per run of the axis before the last. */
static void copy_rows(const struct job* j, int64_t first, int64_t end, int64_t col, int64_t cols) {
  const struct move* m = j->m;
  int last = m->ndim - 1;
  int64_t run = last > 0 ? m->dim[last - 1] : 1;
  struct patch p = {.cols = cols, .to_col = last < 0 ? 1 : m->to[last],
                    .from_col = last < 0 ? 1 : m->from[last]};
  if (last > 0) {
    p.to_row = m->to[last - 1];
    p.from_row = m->from[last - 1];
  }
  while (first < end) {
    int64_t in_run = first % run, rest = first / run;
    int64_t to = in_run * p.to_row + col * p.to_col, from = in_run * p.from_row + col * p.from_col;
    for (int i = last - 2; i >= 0; i--) {
      to += rest % m->dim[i] * m->to[i];
      from += rest % m->dim[i] * m->from[i];
      rest /= m->dim[i];
    }
    p.rows = end - first < run - in_run ? end - first : run - in_run;
    p.dst = j->dst + to * (int64_t)j->item;
    p.src = j->src + from * (int64_t)j->item;
    copy_patch(&p, j->item);
    first += p.rows;
  }
}

static void copy_chunk(void* ctx, int64_t i) {
  const struct job* j = ctx;
  if (j->blocks > 1) {
    int64_t row = i / j->blocks, col = i % j->blocks * CHUNK;
    copy_rows(j, row, row + 1, col, j->cols - col < CHUNK ? j->cols - col : CHUNK);
  } else {
    int64_t first = i * j->chunk_rows, end = first + j->chunk_rows;
    copy_rows(j, first, end < j->rows ? end : j->rows, 0, j->cols);
  }
}

static struct job plan(void* dst, const void* src, const struct move* m, size_t item) {
  struct job j = {.m = m, .dst = dst, .src = src, .item = item, .rows = 1, .blocks = 1};
  j.cols = m->ndim ? m->dim[m->ndim - 1] : 1;
  for (int i = 0; i < m->ndim - 1; i++) j.rows *= m->dim[i];
  return j;
}

void rpi_move_here(void* dst, const void* src, const struct move* m, size_t item) {
  struct job j = plan(dst, src, m, item);
  if (j.cols && j.rows) copy_rows(&j, 0, j.rows, 0, j.cols);
}

void rpi_move(void* dst, const void* src, struct move* m, size_t item) {
  int64_t size = rpi_move_simplify(m);
  if (size <= CHUNK) {
    if (size) rpi_move_here(dst, src, m, item);
    return;
  }
  struct job j = plan(dst, src, m, item);
  if (j.cols >= 2 * CHUNK) {
    j.blocks = (j.cols + CHUNK - 1) / CHUNK;
    rpi_parallel(j.rows * j.blocks, copy_chunk, &j);
  } else {
    j.chunk_rows = (CHUNK / j.cols + TILE) / TILE * TILE;
    rpi_parallel((j.rows + j.chunk_rows - 1) / j.chunk_rows, copy_chunk, &j);
  }
}
