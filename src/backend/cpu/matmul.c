/* matmul and addmm: from views to products (gemm.h, which states the arithmetic).
 *
 * A 1-D first input is one row, a 1-D second one is one column. Operands are read where they lie; a
 * batch of rows that meets one matrix becomes one product of all rows, other batches are products
 * one by one, many small ones shared out by the shape. */
#include <stdatomic.h>

#include "backend/cpu/batch.h"
#include "backend/cpu/gemm.h"
#include "base/err.h"
#include "base/thread.h"

static const int64_t small_product = 65536; /* multiply-adds that one thread does best */

struct job {
  struct rpi_gemm g;      /* of item 0 */
  struct rpi_batch batch; /* operands a, b, c */
  int64_t per_chunk;
  _Atomic(int) failed;
};

static void describe(struct rpi_gemm* g, const struct call* c) {
  const struct view *a = &c->in[0], *b = &c->in[1];
  bool is_row = a->ndim == 1, is_col = b->ndim == 1;
  g->dtype = a->dtype;
  g->m = is_row ? 1 : a->shape[a->ndim - 2];
  g->k = a->shape[a->ndim - 1];
  g->n = is_col ? 1 : b->shape[b->ndim - 1];
  g->a = c->src[0];
  g->b = c->src[1];
  g->c = NULL;
  g->a_row = is_row ? 0 : a->stride[a->ndim - 2];
  g->a_col = a->stride[a->ndim - 1];
  g->b_row = b->stride[is_col ? 0 : b->ndim - 2];
  g->b_col = is_col ? 0 : b->stride[b->ndim - 1];
  g->c_row = g->c_col = 0;
  g->out = c->dst[0];
  g->ldo = g->n;
  g->alpha = 1;
  g->beta = 0;
}

/* The added term as broadcast to the output, whose axes are: batch, row (unless is_row), column. */
static void describe_term(struct rpi_gemm* g, const struct call* c, bool is_row, bool is_col) {
  const struct view* v = &c->in[2];
  int row = v->ndim - 1 - !is_col, col = v->ndim - 1;
  g->c = c->src[2];
  if (!is_col && col >= 0 && v->shape[col] != 1) g->c_col = v->stride[col];
  if (!is_row && row >= 0 && v->shape[row] != 1) g->c_row = v->stride[row];
  g->alpha = rpi_attr_to_double(c->attr[0]);
  g->beta = rpi_attr_to_double(c->attr[1]);
}

static int run_item(const struct job* j, int64_t i) {
  struct rpi_gemm g = j->g;
  int64_t item = (int64_t)rpi_dtype_size(g.dtype);
  g.a = (const char*)g.a + rpi_batch_at(&j->batch, 0, i) * item;
  g.b = (const char*)g.b + rpi_batch_at(&j->batch, 1, i) * item;
  if (g.c) g.c = (const char*)g.c + rpi_batch_at(&j->batch, 2, i) * item;
  g.out = (char*)g.out + i * g.m * g.n * item;
  return rpi_gemm(&g);
}

static void run_chunk(void* ctx, int64_t chunk) {
  struct job* j = ctx;
  int64_t i = chunk * j->per_chunk, end = i + j->per_chunk;
  if (end > j->batch.count) end = j->batch.count;
  for (; i < end; i++)
    if (run_item(j, i)) atomic_store_explicit(&j->failed, 1, memory_order_relaxed);
}

static int run_batch(struct job* j) {
  double work = (double)j->g.m * (double)j->g.n * (double)(j->g.k + 1);
  if (work >= (double)small_product) { /* each is shared out by itself */
    for (int64_t i = 0; i < j->batch.count; i++) {
      int rc = run_item(j, i);
      if (rc) return rc;
    }
    return 0;
  }
  j->per_chunk = (int64_t)((double)small_product / work) + 1;
  rpi_parallel((j->batch.count + j->per_chunk - 1) / j->per_chunk, run_chunk, j);
  return j->failed ? rpi_fail_memory("a matrix product", 0) : 0;
}

/* Batch axes that only lengthen the rows of `a` (and c) join them. */
static void merge_rows(struct job* j) {
  struct rpi_gemm* g = &j->g;
  while (j->batch.ndim > 0) {
    if (j->batch.step[1][j->batch.ndim - 1] != 0) return;
    if (!rpi_batch_continues(&j->batch, 0, g->m, &g->a_row)) return;
    if (g->c && !rpi_batch_continues(&j->batch, 2, g->m, &g->c_row)) return;
    rpi_batch_merge(&j->batch, &g->m);
  }
}

static int multiply(const struct call* c, bool has_term) {
  const struct view *a = &c->in[0], *b = &c->in[1], *out = &c->out[0];
  bool is_row = a->ndim == 1, is_col = b->ndim == 1;
  int nbatch = out->ndim - !is_row - !is_col;
  struct job j;
  describe(&j.g, c);
  if (has_term) describe_term(&j.g, c, is_row, is_col);
  if (nbatch == 0) return rpi_gemm(&j.g);
  j.failed = 0;
  rpi_batch_make(&j.batch, out, nbatch);
  rpi_batch_add(&j.batch, 0, out, nbatch, a, is_row ? 1 : 2);
  rpi_batch_add(&j.batch, 1, out, nbatch, b, is_col ? 1 : 2);
  if (has_term) rpi_batch_add(&j.batch, 2, out, nbatch, &c->in[2], !is_row + !is_col);
  merge_rows(&j);
  return j.batch.count == 1 ? rpi_gemm(&j.g) : run_batch(&j);
}

int rpi_cpu_matmul(const struct call* c) { return c->out[0].size == 0 ? 0 : multiply(c, false); }

int rpi_cpu_addmm(const struct call* c) { return c->out[0].size == 0 ? 0 : multiply(c, true); }
