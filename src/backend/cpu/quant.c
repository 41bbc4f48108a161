/* Affine quantization: from views to rows and products (qmm.h, which states format and arithmetic).
 *
 * Packed matrices whose rows lie one after another are read in place; others are packed row-major
 * first. Batch axes are walked by stride, 0 where one is broadcast. */
#include <stdatomic.h>

#include "backend/cpu/batch.h"
#include "backend/cpu/qmm.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/strided.h"
#include "base/err.h"
#include "base/thread.h"

enum { CHUNK = 16384, PIECE = 512 }; /* PIECE: a multiple of every group */
static const int64_t small_product = 65536;

/* Where row `i` of a view starts (axes before the last), in elements. */
static int64_t row_offset(const struct view* v, int64_t i) {
  int64_t at = 0;
  for (int d = v->ndim - 2; d >= 0; d--) {
    at += i % v->shape[d] * v->stride[d];
    i /= v->shape[d];
  }
  return at;
}

/* Rows of quantize and dequantize, shared out by the shape. */
struct rows_job {
  const struct call* c;
  void (*row)(const struct rows_job* j, int64_t i);
  int64_t n, rows, rows_per_chunk; /* n: values of a row */
  int group, bits;
  /* dequantize */
  const void *w, *scales, *biases;
};

static void run_rows(void* ctx, int64_t chunk) {
  const struct rows_job* j = ctx;
  int64_t i = chunk * j->rows_per_chunk, end = i + j->rows_per_chunk;
  if (end > j->rows) end = j->rows;
  for (; i < end; i++) j->row(j, i);
}

static void share_rows(struct rows_job* j, const struct view* values) {
  j->n = values->shape[values->ndim - 1];
  j->rows = values->size / j->n;
  j->rows_per_chunk = j->n < CHUNK ? CHUNK / j->n : 1;
  rpi_parallel((j->rows + j->rows_per_chunk - 1) / j->rows_per_chunk, run_rows, j);
}

/* ---- quantize -------------------------------------------------------------------------------- */

static void quantize_row(const struct rows_job* j, int64_t row) {
  const struct view* x = &j->c->in[0];
  int64_t words = j->n * j->bits / 32, groups = j->n / j->group;
  int64_t item = (int64_t)rpi_dtype_size(x->dtype), stride = x->stride[x->ndim - 1];
  const char* src = (const char*)j->c->src[0] + row_offset(x, row) * item;
  uint32_t* w = (uint32_t*)j->c->dst[0] + row * words;
  float value[PIECE], scale[PIECE / 32], bias[PIECE / 32];
  memset(w, 0, (size_t)words * sizeof *w);
  for (int64_t at = 0; at < j->n; at += PIECE) {
    int64_t n = j->n - at < PIECE ? j->n - at : PIECE, first = row * groups + at / j->group;
    row_load(value, src + at * stride * item, stride, n, x->dtype);
    rpi_quantize_row(value, n, j->bits, j->group, w + at * j->bits / 32, scale, bias);
    row_store((char*)j->c->dst[1] + first * item, scale, n / j->group, x->dtype);
    row_store((char*)j->c->dst[2] + first * item, bias, n / j->group, x->dtype);
  }
}

int rpi_cpu_quantize(const struct call* c) {
  struct rows_job j = {
      .c = c, .row = quantize_row, .group = (int)c->attr[0], .bits = (int)c->attr[1]};
  if (c->in[0].size) share_rows(&j, &c->in[0]);
  return 0;
}

/* ---- packed matrices ------------------------------------------------------------------------- */

/* Words, scales and biases as inputs first, first + 1, first + 2 of a call, each with the matrices
 * of a batch row after row. What is not gets a row-major copy. */
struct packed {
  struct view view[3];
  const void* at[3];
  void* copy[3];
  int64_t stride[3][RPI_MAX_NDIM];
};

static bool has_dense_matrix(const struct view* v) {
  return v->size == 0 || rpi_is_row_major(v->stride + v->ndim - 2, v->shape + v->ndim - 2, 2);
}

static void close_packed(struct packed* p) {
  for (int i = 0; i < 3; i++) rpi_free(p->copy[i]);
}

static int open_packed(struct packed* p, const struct call* c, int first) {
  memset(p->copy, 0, sizeof p->copy);
  for (int i = 0; i < 3; i++) {
    const struct view* v = &c->in[first + i];
    p->view[i] = *v;
    p->at[i] = c->src[first + i];
    if (has_dense_matrix(v)) continue;
    size_t bytes = (size_t)v->size * rpi_dtype_size(v->dtype);
    p->copy[i] = rpi_alloc(bytes);
    int rc = p->copy[i] ? rpi_cpu_pack(p->copy[i], p->at[i], v) : rpi_fail_memory(c->name, bytes);
    if (rc) {
      close_packed(p);
      return rc;
    }
    rpi_row_major(p->stride[i], v->shape, v->ndim);
    p->view[i].stride = p->stride[i];
    p->at[i] = p->copy[i];
  }
  return 0;
}

/* The first matrix, of `rows` rows. */
static struct rpi_qweights weights_of(const struct packed* p, int group, int bits) {
  const struct view *w = &p->view[0], *s = &p->view[1];
  return (struct rpi_qweights){.w = p->at[0],
                               .scales = p->at[1],
                               .biases = p->at[2],
                               .scale_dtype = s->dtype,
                               .rows = w->shape[w->ndim - 2],
                               .cols = (int64_t)s->shape[s->ndim - 1] * group,
                               .bits = bits,
                               .group = group};
}

/* Matrix `i` of a batch whose operands `first`, ... are words, scales and biases. */
static void move_to(struct rpi_qweights* w, const struct rpi_batch* b, int first, int64_t i) {
  int64_t item = (int64_t)rpi_dtype_size(w->scale_dtype);
  w->w += rpi_batch_at(b, first, i);
  w->scales = (const char*)w->scales + rpi_batch_at(b, first + 1, i) * item;
  w->biases = (const char*)w->biases + rpi_batch_at(b, first + 2, i) * item;
}

/* ---- dequantize ------------------------------------------------------------------------------ */

struct dequantize_job {
  struct rpi_qweights w; /* of item 0 */
  struct rpi_batch batch;
  char* out;
  int dtype;
  int64_t rows, rows_per_chunk; /* of all items */
};

static void dequantize_chunk(void* ctx, int64_t chunk) {
  const struct dequantize_job* j = ctx;
  int64_t r = chunk * j->rows_per_chunk, end = r + j->rows_per_chunk;
  int64_t item = (int64_t)rpi_dtype_size(j->dtype);
  float value[PIECE];
  if (end > j->rows) end = j->rows;
  for (; r < end; r++) {
    struct rpi_qweights w = j->w;
    move_to(&w, &j->batch, 0, r / w.rows);
    for (int64_t at = 0; at < w.cols; at += PIECE) {
      int64_t n = w.cols - at < PIECE ? w.cols - at : PIECE;
      rpi_qmm_row(&w, r % w.rows, at, n, value);
      row_store(j->out + (r * w.cols + at) * item, value, n, j->dtype);
    }
  }
}

int rpi_cpu_dequantize(const struct call* c) {
  const struct view* y = &c->out[0];
  struct packed p;
  if (y->size == 0) return 0;
  int rc = open_packed(&p, c, 0), nbatch = y->ndim - 2;
  if (rc) return rc;
  struct dequantize_job j = {
      .w = weights_of(&p, (int)c->attr[0], (int)c->attr[1]), .out = c->dst[0], .dtype = y->dtype};
  rpi_batch_make(&j.batch, y, nbatch);
  for (int i = 0; i < 3; i++) rpi_batch_add(&j.batch, i, y, nbatch, &p.view[i], 2);
  j.rows = j.batch.count * j.w.rows;
  j.rows_per_chunk = j.w.cols < CHUNK ? CHUNK / j.w.cols : 1;
  rpi_parallel((j.rows + j.rows_per_chunk - 1) / j.rows_per_chunk, dequantize_chunk, &j);
  close_packed(&p);
  return 0;
}

/* ---- quantized_matmul ------------------------------------------------------------------------ */

struct product_job {
  struct rpi_qweights w;  /* of item 0 */
  struct rpi_batch batch; /* operands x, words, scales, biases */
  bool transpose;
  int dtype;
  int64_t m, n, x_row, x_col, per_chunk;
  const char* x;
  char* out;
  _Atomic(int) failed;
};

static int run_product(const struct product_job* j, int64_t i) {
  int64_t item = (int64_t)rpi_dtype_size(j->dtype);
  struct rpi_qweights w = j->w;
  move_to(&w, &j->batch, 1, i);
  return rpi_qmm(&w, j->transpose, j->dtype, j->m, j->x + rpi_batch_at(&j->batch, 0, i) * item,
                 j->x_row, j->x_col, j->out + i * j->m * j->n * item, j->n);
}

static void run_products(void* ctx, int64_t chunk) {
  struct product_job* j = ctx;
  int64_t i = chunk * j->per_chunk, end = i + j->per_chunk;
  if (end > j->batch.count) end = j->batch.count;
  for (; i < end; i++)
    if (run_product(j, i)) atomic_store_explicit(&j->failed, 1, memory_order_relaxed);
}

/* Items that are large are shared out by themselves, small ones together. */
static int run_batch(struct product_job* j) {
  double work = (double)j->m * (double)j->w.rows * (double)j->w.cols + 1;
  int rc = 0;
  if (work >= (double)small_product || j->batch.count == 1) {
    for (int64_t i = 0; i < j->batch.count && !rc; i++) rc = run_product(j, i);
    return rc;
  }
  j->per_chunk = (int64_t)((double)small_product / work) + 1;
  rpi_parallel((j->batch.count + j->per_chunk - 1) / j->per_chunk, run_products, j);
  return j->failed ? rpi_fail_memory("a quantized product", 0) : 0;
}

/* A batch of rows that meets one matrix is one product. */
static void merge_rows(struct product_job* j) {
  struct rpi_batch* b = &j->batch;
  while (b->ndim > 0) {
    int last = b->ndim - 1;
    if (b->step[1][last] || b->step[2][last] || b->step[3][last]) return;
    if (!rpi_batch_continues(b, 0, j->m, &j->x_row)) return;
    rpi_batch_merge(b, &j->m);
  }
}

int rpi_cpu_quantized_matmul(const struct call* c) {
  const struct view *x = &c->in[0], *out = &c->out[0];
  bool is_row = x->ndim == 1;
  int nbatch = out->ndim - (is_row ? 1 : 2);
  struct packed p;
  if (out->size == 0) return 0;
  int rc = open_packed(&p, c, 1);
  if (rc) return rc;
  struct product_job j = {.w = weights_of(&p, (int)c->attr[1], (int)c->attr[2]),
                          .transpose = c->attr[0] != 0,
                          .dtype = x->dtype,
                          .m = is_row ? 1 : x->shape[x->ndim - 2],
                          .n = out->shape[out->ndim - 1],
                          .x_row = is_row ? 0 : x->stride[x->ndim - 2],
                          .x_col = x->stride[x->ndim - 1],
                          .x = c->src[0],
                          .out = c->dst[0]};
  rpi_batch_make(&j.batch, out, nbatch);
  rpi_batch_add(&j.batch, 0, out, nbatch, x, is_row ? 1 : 2);
  for (int i = 0; i < 3; i++) rpi_batch_add(&j.batch, 1 + i, out, nbatch, &p.view[i], 2);
  merge_rows(&j);
  rc = run_batch(&j);
  close_packed(&p);
  return rc;
}
