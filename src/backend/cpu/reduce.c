/* Sums, products, extremes and truth over any set of axes of any layout. The order is reduce.h's.
 *
 * Two ways lead through memory, with the same bits:
 *   rows      one output at a time: its elements are read in order, straight from memory if they
 *             lie side by side, else gathered block by block.
 *   columns   up to `width` outputs at a time, neighbours in memory, with 64 rows of accumulators:
 *             each row of the input is added to one of them. Also for short rows, which are gathered.
 *
 * With more than one chunk per output, their results go to `partial` and are combined at the end. */
#include "backend/cpu/reduce.h"

#include <stdatomic.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/elem.h"
#include "backend/cpu/elem_kernel.h"
#include "backend/cpu/strided.h"
#include "base/err.h"
#include "base/thread.h"

enum {
  BLOCK = 512,     /* elements gathered or converted at once */
  GROUP = 256,     /* rows of columns visited together: four per lane */
  SHORT_ROW = 32,
  WORK = 32768     /* elements per task, about */
};

struct axis {
  int64_t extent, in, out; /* strides: bytes, elements */
};

struct reduction {
  const struct call* c;
  const struct rpi_reducer* f;
  int in_dtype, dtype; /* dtype: of accumulators */
  int in_item, item;
  rpi_elem_fn cast;        /* or NULL: the half formats by their own way, others not at all */
  bool is_half, is_truth;
  struct rpi_nest nest;    /* over the reduced axes */
  int64_t n, chunks;       /* reduced elements per output */
  int nkept;               /* without the columns' axis */
  struct axis kept[RPI_MAX_NDIM]; /* innermost first */
  struct axis column;      /* extent 0: rows */
  int64_t width, blocks;   /* columns at once, and how often */
  int64_t units, per_task;
  char* partial;
  _Atomic(int) failed;
};

const struct rpi_reducer* rpi_reducer(enum rpi_combine op, int dtype) {
  const rpi_reducer_table* t = &rpi_reducers_scalar;
#if defined(__x86_64__)
  if (rpi_isa() == RPI_ISA_AVX2) t = &rpi_reducers_avx2;
  if (rpi_isa() == RPI_ISA_AVX512) t = &rpi_reducers_avx512;
#endif
  return (*t)[op][dtype].step ? &(*t)[op][dtype] : NULL;
}

/* ---- Elements to accumulators ---- */

/* `n` contiguous elements as accumulators: `src` itself when nothing has to be done. */
static const void* convert(const struct reduction* r, void* dst, const void* src, int64_t n) {
  if (r->is_half && r->is_truth) {
    const uint16_t* x = src;
    uint8_t* y = dst;
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] & 0x7FFF) != 0;
  } else if (r->is_half) {
    rpi_cpu_to_f32(dst, src, r->in_dtype, n);
  } else if (r->cast) {
    r->cast(n, dst, &src);
  } else {
    return src;
  }
  return dst;
}

/* `n` results from number `out` on. */
static void store(const struct reduction* r, int64_t out, const void* acc, int64_t n) {
  const struct view* v = &r->c->out[0];
  char* dst = (char*)r->c->dst[0] + out * (int64_t)rpi_dtype_size(v->dtype);
  if (v->dtype != r->dtype && r->dtype == RPI_FLOAT32)
    rpi_cpu_from_f32(dst, v->dtype, acc, n);
  else
    memcpy(dst, acc, (size_t)(n * r->item));
}

/* The result of one chunk of output number `out`. */
static void deliver(const struct reduction* r, int64_t out, int64_t chunk, const void* acc) {
  if (r->partial)
    memcpy(r->partial + (out * r->chunks + chunk) * r->item, acc, (size_t)r->item);
  else
    store(r, out, acc, 1);
}

/* ---- Rows ---- */

static void add_run(const struct reduction* r, char* acc, const void* x, int64_t n) {
  int64_t whole = n & ~(int64_t)(RPI_LANES - 1);
  r->f->lanes(acc, x, whole);
  if (n > whole) r->f->step(acc, (const char*)x + whole * r->item, n - whole);
}

static void add_contiguous(const struct reduction* r, char* acc, const char* src, int64_t n) {
  _Alignas(64) char buf[BLOCK * 8];
  if (!r->cast && !r->is_half) {
    add_run(r, acc, src, n);
    return;
  }
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t m = n - i < BLOCK ? n - i : BLOCK;
    add_run(r, acc, convert(r, buf, src + i * r->in_item, m), m);
  }
}

static void add_gathered(const struct reduction* r, char* acc, const char* src, int64_t first,
                         int64_t n) {
  _Alignas(64) char raw[BLOCK * 8], buf[BLOCK * 8];
  struct rpi_cursor at;
  rpi_cursor_seek(&at, &r->nest, src, first);
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t m = n - i < BLOCK ? n - i : BLOCK;
    rpi_cursor_gather(&at, &r->nest, raw, m);
    add_run(r, acc, convert(r, buf, raw, m), m);
  }
}

static int64_t chunk_size(const struct reduction* r, int64_t chunk) {
  int64_t left = r->n - chunk * RPI_REDUCE_CHUNK;
  return left < RPI_REDUCE_CHUNK ? left : RPI_REDUCE_CHUNK;
}

/* Where kept position `i` (row-major) lies; *out is its output number less the column's part. */
static const char* locate(const struct reduction* r, int64_t i, int64_t* out) {
  const char* src = r->c->src[0];
  *out = 0;
  for (int d = 0; d < r->nkept; d++) {
    int64_t rest = i / r->kept[d].extent, k = i - rest * r->kept[d].extent;
    src += k * r->kept[d].in;
    *out += k * r->kept[d].out;
    i = rest;
  }
  return src;
}

static void reduce_row(const struct reduction* r, int64_t unit) {
  _Alignas(64) char acc[RPI_LANES * 8];
  int64_t chunk = unit % r->chunks, first = chunk * RPI_REDUCE_CHUNK, out;
  int64_t n = chunk_size(r, chunk);
  const char* src = locate(r, unit / r->chunks, &out);
  rpi_fill(acc, &r->f->identity, r->item, RPI_LANES);
  if (r->nest.ndim == 1 && (r->nest.stride[0] == r->in_item || r->n == 1))
    add_contiguous(r, acc, src + first * r->in_item, n);
  else
    add_gathered(r, acc, src, first, n);
  r->f->fold(acc, rpi_lanes_used(n));
  deliver(r, out, chunk, acc);
}

/* ---- Columns ---- */

enum { WIDTH = 512, NARROW = 128 /* columns */ };

/* Memory of one block: 64 rows of accumulators; four rows of the input converted, and gathered. */
struct block {
  char *acc, *buf, *raw;
  int64_t columns;
};

/* One row of the block's columns as accumulators, number `k` of four. */
static const void* load_columns(const struct reduction* r, const struct block* b, int k,
                                const char* src) {
  if (r->column.in != r->in_item) {
    struct rpi_nest line = {.ndim = 1, .item = r->in_item, .extent = {b->columns},
                            .stride = {r->column.in}};
    struct rpi_cursor at = {.at = src};
    char* raw = b->raw + k * b->columns * r->in_item;
    rpi_cursor_gather(&at, &line, raw, b->columns);
    src = raw;
  }
  return convert(r, b->buf + k * b->columns * r->item, src, b->columns);
}

/* Rows lane, lane + 64, ... of a group, up to four of them. */
static void add_lane(const struct reduction* r, const struct block* b, int64_t lane,
                     const char* const* row, int64_t rows) {
  char* acc = b->acc + lane * b->columns * r->item;
  const void* x[GROUP / RPI_LANES];
  int n = 0;
  for (int64_t k = lane; k < rows; k += RPI_LANES, n++) x[n] = load_columns(r, b, n, row[k]);
  if (n == 4)
    r->f->step4(acc, x[0], x[1], x[2], x[3], b->columns);
  else
    for (int k = 0; k < n; k++) r->f->step(acc, x[k], b->columns);
}

static void add_rows(const struct reduction* r, const struct block* b, const char* src,
                     int64_t first, int64_t n) {
  const char* row[GROUP];
  struct rpi_cursor at;
  rpi_cursor_seek(&at, &r->nest, src, first);
  for (int64_t i = 0; i < n; i += GROUP) {
    int64_t m = n - i < GROUP ? n - i : GROUP;
    for (int64_t k = 0; k < m; k++) {
      row[k] = at.at;
      rpi_cursor_skip(&at, &r->nest, 1);
    }
    for (int64_t lane = 0; lane < RPI_LANES && lane < m; lane++) add_lane(r, b, lane, row, m);
  }
}

static void deliver_columns(const struct reduction* r, const struct block* b, int64_t out,
                            int64_t chunk) {
  if (!r->partial && r->column.out == 1) {
    store(r, out, b->acc, b->columns);
    return;
  }
  for (int64_t j = 0; j < b->columns; j++)
    deliver(r, out + j * r->column.out, chunk, b->acc + j * r->item);
}

static void reduce_columns(struct reduction* r, int64_t unit) {
  int64_t chunk = unit % r->chunks, start = unit / r->chunks % r->blocks * r->width, out;
  int64_t n = chunk_size(r, chunk), left = r->column.extent - start;
  int64_t columns = left < r->width ? left : r->width, lanes = rpi_lanes_used(n);
  const char* src = locate(r, unit / r->chunks / r->blocks, &out);
  struct block b = {.columns = columns};
  int64_t sums = (columns * (lanes + 4) * r->item + 15) / 16 * 16; /* raw needs its own alignment */
  b.acc = rpi_alloc((size_t)(sums + 4 * columns * r->in_item));
  if (!b.acc) {
    atomic_store(&r->failed, 1);
    return;
  }
  b.buf = b.acc + lanes * columns * r->item;
  b.raw = b.acc + sums;
  rpi_fill(b.acc, &r->f->identity, r->item, lanes * columns);
  add_rows(r, &b, src + start * r->column.in, chunk * RPI_REDUCE_CHUNK, n);
  for (int64_t w = lanes / 2; w > 0; w /= 2)
    r->f->step(b.acc, b.acc + w * columns * r->item, w * columns);
  deliver_columns(r, &b, out + start * r->column.out, chunk);
  rpi_free(b.acc);
}

/* ---- Planning ---- */

/* Kept and reduced axes apart, each list merged where strides allow. */
static void split_axes(struct reduction* r) {
  const struct view* v = &r->c->in[0];
  int shape[RPI_MAX_NDIM], nreduced = 0, next = r->c->nattr - 1;
  int64_t stride[RPI_MAX_NDIM], out = 1;
  bool is_reduced[RPI_MAX_NDIM] = {false};
  for (; next > 0; next--) is_reduced[r->c->attr[next]] = true;
  for (int d = 0; d < v->ndim; d++) {
    if (!is_reduced[d]) continue;
    shape[nreduced] = v->shape[d];
    stride[nreduced++] = v->stride[d];
  }
  struct view inner = {.shape = shape, .stride = stride, .dtype = v->dtype,
                       .ndim = (uint8_t)nreduced};
  r->n = rpi_shape_size(shape, nreduced);
  rpi_nest_make(&r->nest, &inner);
  for (int d = v->ndim - 1; d >= 0; d--) {
    int64_t extent = v->shape[d], in = v->stride[d] * r->in_item;
    struct axis* last = r->nkept ? &r->kept[r->nkept - 1] : NULL;
    if (is_reduced[d] || extent == 1) continue;
    if (last && in == last->in * last->extent)
      last->extent *= extent;
    else
      r->kept[r->nkept++] = (struct axis){extent, in, out};
    out *= extent;
  }
}

/* The axis whose elements become columns, or -1 for rows. */
static int find_column(const struct reduction* r) {
  for (int d = 0; d < r->nkept && r->n > 1; d++)
    if (r->kept[d].in == r->in_item && r->kept[d].extent >= 4) return d;
  return r->nkept && r->n <= SHORT_ROW && r->kept[0].extent >= 8 ? 0 : -1;
}

static void plan(struct reduction* r) {
  int64_t outputs = r->c->out[0].size, cost = r->n < RPI_REDUCE_CHUNK ? r->n : RPI_REDUCE_CHUNK;
  int d = find_column(r);
  r->chunks = (r->n + RPI_REDUCE_CHUNK - 1) / RPI_REDUCE_CHUNK;
  r->blocks = 1;
  r->column.extent = 0;
  r->units = outputs * r->chunks;
  if (d >= 0) {
    r->column = r->kept[d];
    memmove(&r->kept[d], &r->kept[d + 1], (size_t)(r->nkept - d - 1) * sizeof r->kept[0]);
    r->nkept--;
    r->width = WIDTH * 4 / (r->item < 4 ? 4 : r->item);
    /* Narrower when there would be little to share out. */
    while (r->width > NARROW && outputs / r->width * r->chunks < 32 && outputs * r->n > WORK)
      r->width /= 2;
    r->blocks = (r->column.extent + r->width - 1) / r->width;
    r->units = outputs / r->column.extent * r->blocks * r->chunks;
    cost *= r->width < r->column.extent ? r->width : r->column.extent;
  }
  r->per_task = cost >= WORK ? 1 : WORK / cost;
}

static void run_task(void* ctx, int64_t i) {
  struct reduction* r = ctx;
  int64_t end = (i + 1) * r->per_task < r->units ? (i + 1) * r->per_task : r->units;
  for (int64_t k = i * r->per_task; k < end; k++) {
    if (r->column.extent)
      reduce_columns(r, k);
    else
      reduce_row(r, k);
  }
}

static void combine_chunks(const struct reduction* r) {
  for (int64_t o = 0; o < r->c->out[0].size; o++) {
    char* acc = r->partial + o * r->chunks * r->item;
    for (int64_t k = 1; k < r->chunks; k++) r->f->step(acc, acc + k * r->item, 1);
    store(r, o, acc, 1);
  }
}

static int run(struct reduction* r) {
  size_t bytes = (size_t)(r->c->out[0].size * r->chunks * r->item);
  if (r->chunks > 1 && !(r->partial = rpi_alloc(bytes)))
    return rpi_fail_memory("a reduction", bytes);
  if (r->units <= r->per_task)
    run_task(r, 0);
  else
    rpi_parallel((r->units + r->per_task - 1) / r->per_task, run_task, r);
  int failed = atomic_load(&r->failed);
  if (r->partial && !failed) combine_chunks(r);
  rpi_free(r->partial);
  return failed ? rpi_fail_memory("a reduction", (size_t)(RPI_LANES * r->width * r->item)) : 0;
}

/* Over nothing: the identity everywhere. */
static void fill_identity(const struct reduction* r) {
  char one[8];
  store(r, 0, &r->f->identity, 1);
  int item = (int)rpi_dtype_size(r->c->out[0].dtype);
  memcpy(one, r->c->dst[0], (size_t)item);
  rpi_fill(r->c->dst[0], one, item, r->c->out[0].size);
}

static int reduce(const struct call* c, enum rpi_combine op, int dtype, bool is_truth) {
  int in = c->in[0].dtype;
  if (c->out[0].size == 0) return 0;
  struct reduction r = {.c = c, .in_dtype = in, .dtype = dtype, .is_truth = is_truth};
  r.f = rpi_reducer(op, dtype);
  r.in_item = (int)rpi_dtype_size(in);
  r.item = (int)rpi_dtype_size(dtype);
  r.is_half = in == RPI_FLOAT16 || in == RPI_BFLOAT16;
  r.cast = in != dtype && !r.is_half ? rpi_elem_cast(in, dtype) : NULL;
  atomic_init(&r.failed, 0);
  split_axes(&r);
  if (r.n == 0) {
    fill_identity(&r);
    return 0;
  }
  plan(&r);
  return run(&r);
}

/* Integers wrap, so signed ones are summed as unsigned ones of the result's width. */
static int sum_dtype(int in) {
  switch (rpi_dtype_kind(in)) {
    case RPI_KIND_F: return in == RPI_FLOAT64 ? in : RPI_FLOAT32;
    case RPI_KIND_C: return in;
    default: return rpi_dtype_size(in) == 8 ? RPI_UINT64 : RPI_UINT32;
  }
}

static int extremum_dtype(int in) {
  return in == RPI_FLOAT16 || in == RPI_BFLOAT16 ? RPI_FLOAT32 : in;
}

int rpi_cpu_sum(const struct call* c) {
  return reduce(c, RPI_COMBINE_SUM, sum_dtype(c->in[0].dtype), false);
}

/* A sum over the axes that the second input has not, or has with extent 1. */
int rpi_cpu_sum_like(const struct call* c) {
  const struct view *x = &c->in[0], *y = &c->in[1];
  int64_t attr[1 + RPI_MAX_NDIM] = {true};
  struct call sum = *c;
  sum.attr = attr;
  sum.nattr = 1;
  for (int i = 0; i < x->ndim; i++) {
    int k = i - (x->ndim - y->ndim);
    if (k < 0 || (y->shape[k] == 1 && x->shape[i] != 1)) attr[sum.nattr++] = i;
  }
  return rpi_cpu_sum(&sum);
}

int rpi_cpu_prod(const struct call* c) {
  return reduce(c, RPI_COMBINE_PROD, sum_dtype(c->in[0].dtype), false);
}
int rpi_cpu_min(const struct call* c) {
  return reduce(c, RPI_COMBINE_MIN, extremum_dtype(c->in[0].dtype), false);
}
int rpi_cpu_max(const struct call* c) {
  return reduce(c, RPI_COMBINE_MAX, extremum_dtype(c->in[0].dtype), false);
}
int rpi_cpu_all(const struct call* c) { return reduce(c, RPI_COMBINE_MIN, RPI_BOOL, true); }
int rpi_cpu_any(const struct call* c) { return reduce(c, RPI_COMBINE_MAX, RPI_BOOL, true); }
