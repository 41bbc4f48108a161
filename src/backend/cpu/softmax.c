/* softmax along one axis, and logsumexp over any axes.
 *
 * Computed in float, or double for float64: the largest element, then the sum of exp(x - largest)
 * in the order of reduce.h, then exp(x - largest) / sum, rounded once. Of half formats the
 * exponentials are computed twice rather than kept. */
#include "backend/cpu/softmax.h"

#include <string.h>

#include "backend/cpu/along.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/elem.h"
#include "backend/cpu/reduce.h"
#include "backend/cpu/strided.h"
#include "op/scalar.h"

enum { BLOCK = 512, COST = 16 };

struct plan {
  const struct rpi_reducer *max, *sum;
  const struct rpi_exp_steps* steps;
  int in, dtype; /* of elements and of the computation */
  int in_item, item;
};

union number {
  float f;
  double d;
};

static const struct rpi_exp_steps* choose_steps(int dtype) {
  const struct rpi_exp_steps* s = rpi_exp_steps_scalar;
#if defined(__x86_64__)
  if (rpi_isa() == RPI_ISA_AVX2) s = rpi_exp_steps_avx2;
  if (rpi_isa() == RPI_ISA_AVX512) s = rpi_exp_steps_avx512;
#endif
  return &s[dtype == RPI_FLOAT64];
}

static void make_plan(struct plan* p, int in) {
  p->in = in;
  p->dtype = in == RPI_FLOAT64 ? RPI_FLOAT64 : RPI_FLOAT32;
  p->in_item = (int)rpi_dtype_size(in);
  p->item = (int)rpi_dtype_size(p->dtype);
  p->max = rpi_reducer(RPI_COMBINE_MAX, p->dtype);
  p->sum = rpi_reducer(RPI_COMBINE_SUM, p->dtype);
  p->steps = choose_steps(p->dtype);
}

/* Elements i.. of the row in the dtype of the computation, at most BLOCK if they are converted. */
static const char* load(const struct plan* p, void* buf, const char* row, int64_t i, int64_t n) {
  const char* src = row + i * p->in_item;
  if (p->in == p->dtype) return src;
  rpi_cpu_to_f32(buf, src, p->in, n);
  return buf;
}

static void add_run(const struct rpi_reducer* f, int item, char* acc, const char* x, int64_t n) {
  int64_t whole = n & ~(int64_t)(RPI_LANES - 1);
  f->lanes(acc, x, whole);
  if (n > whole) f->step(acc, x + whole * item, n - whole);
}

static void find_max(const struct plan* p, union number* top, const char* row, int64_t n) {
  _Alignas(64) char acc[RPI_LANES * 8], buf[BLOCK * 8];
  rpi_fill(acc, &p->max->identity, p->item, RPI_LANES);
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t m = n - i < BLOCK ? n - i : BLOCK;
    add_run(p->max, p->item, acc, load(p, buf, row, i, m), m);
  }
  p->max->fold(acc, RPI_LANES);
  memcpy(top, acc, (size_t)p->item);
}

/* The sum over one chunk. The exponentials are left in `keep` unless that is NULL. */
static void sum_chunk(const struct plan* p, char* acc, const char* row, int64_t n, const void* top,
                      char* keep) {
  _Alignas(64) char buf[BLOCK * 8];
  rpi_fill(acc, &p->sum->identity, p->item, RPI_LANES);
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t m = n - i < BLOCK ? n - i : BLOCK;
    char* y = keep ? keep + i * p->item : buf;
    p->steps->exp_less(y, load(p, buf, row, i, m), top, m);
    add_run(p->sum, p->item, acc, y, m);
  }
  p->sum->fold(acc, rpi_lanes_used(n));
}

static void sum_exp(const struct plan* p, union number* sum, const char* row, int64_t n,
                    const void* top, char* keep) {
  _Alignas(64) char acc[RPI_LANES * 8];
  for (int64_t i = 0; i < n; i += RPI_REDUCE_CHUNK) {
    int64_t m = n - i < RPI_REDUCE_CHUNK ? n - i : RPI_REDUCE_CHUNK;
    sum_chunk(p, acc, row + i * p->in_item, m, top, keep ? keep + i * p->item : NULL);
    if (i)
      p->sum->step(sum, acc, 1);
    else
      memcpy(sum, acc, (size_t)p->item);
  }
}

static void softmax_row(const struct plan* p, char* out, const char* row, int64_t n) {
  _Alignas(64) char buf[BLOCK * 8];
  union number top, sum;
  bool keeps = p->in == p->dtype;
  find_max(p, &top, row, n);
  sum_exp(p, &sum, row, n, &top, keeps ? out : NULL);
  if (keeps) {
    p->steps->divide(out, out, &sum, n);
    return;
  }
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t m = n - i < BLOCK ? n - i : BLOCK;
    p->steps->exp_less(buf, load(p, buf, row, i, m), &top, m);
    p->steps->divide(buf, buf, &sum, m);
    rpi_cpu_from_f32(out + i * p->in_item, p->in, (float*)buf, m);
  }
}

static void softmax_rows(struct along* a, int64_t first, int64_t last) {
  struct plan p;
  make_plan(&p, a->call->in[0].dtype);
  int64_t bytes = a->n * p.in_item;
  for (int64_t i = first; i < last; i++)
    softmax_row(&p, a->dst + i * bytes, a->src + i * bytes, a->n);
}

int rpi_cpu_softmax(const struct call* c) {
  struct along a;
  int rc = rpi_along_map(&a, c, (int)c->attr[0]);
  if (rc) return rc;
  rpi_along_each(&a, COST, softmax_rows);
  return rpi_along_finish(&a);
}

/* An infinite largest element is the result: -inf of nothing but -inf, inf otherwise. */
static void logsumexp_row(const struct plan* p, char* out, const char* row, int64_t n) {
  union number top, sum;
  find_max(p, &top, row, n);
  if (n) sum_exp(p, &sum, row, n, &top, NULL);
  if (p->dtype == RPI_FLOAT64) {
    double y = rp_isinf(top.d) ? top.d : top.d + rp_log(sum.d);
    memcpy(out, &y, sizeof y);
  } else {
    float y = rp_isinff(top.f) ? top.f : top.f + rp_logf(sum.f);
    rpi_cpu_from_f32(out, p->in, &y, 1);
  }
}

static void logsumexp_rows(struct along* a, int64_t first, int64_t last) {
  struct plan p;
  make_plan(&p, a->call->in[0].dtype);
  for (int64_t i = first; i < last; i++)
    logsumexp_row(&p, a->dst + i * p.in_item, a->src + i * a->n * p.in_item, a->n);
}

int rpi_cpu_logsumexp(const struct call* c) {
  struct along a;
  int rc = rpi_along_reduce(&a, c, c->attr + 1, c->nattr - 1);
  if (rc) return rc;
  a.rows = c->out[0].size; /* also when rows are empty */
  rpi_along_each(&a, COST, logsumexp_rows);
  return rpi_along_finish(&a);
}
