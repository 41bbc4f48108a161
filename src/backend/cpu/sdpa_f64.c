/* Attention in double: one row after another, the scores computed twice instead of kept.
 *
 * Keys are taken in order, those that are masked (or get -inf added) are not looked at. */
#include "backend/cpu/sdpa_f64.h"

#include "backend/cpu/rows.h"
#include "base/thread.h"
#include "op/scalar_f64.h"

struct job {
  const struct call* c;
  const struct view *q, *k, *v, *mask, *sinks;
  const char *mask_at, *sinks_at;
};

struct row {
  int64_t b, h, hkv, t;
  double scale;
};

static double get(const void* at, int64_t i, int dtype) {
  return dtype == RPI_FLOAT64 ? ((const double*)at)[i] : (double)row_get(at, i, dtype);
}

/* Whether the row attends to the key, and what is added to its score. */
static bool attends(const struct job* j, const struct row* r, int64_t key, double* add) {
  *add = 0;
  if (j->c->attr[1] && key > r->t + j->k->shape[2] - j->q->shape[2]) return false;
  if (!j->mask) return true;
  int64_t index[4] = {r->b, r->h, r->t, key}, at = 0;
  for (int d = 0; d < j->mask->ndim; d++)
    if (j->mask->shape[d] != 1) at += index[4 - j->mask->ndim + d] * j->mask->stride[d];
  if (j->mask->dtype == RPI_BOOL) return j->mask_at[at] != 0;
  *add = get(j->mask_at, at, j->mask->dtype);
  return *add != -RP_INF;
}

static double score(const struct job* j, const struct row* r, int64_t key) {
  const int64_t *qs = j->q->stride, *ks = j->k->stride;
  const double* q = (const double*)j->c->src[0] + r->b * qs[0] + r->h * qs[1] + r->t * qs[2];
  const double* k = (const double*)j->c->src[1] + r->b * ks[0] + r->hkv * ks[1] + key * ks[2];
  double s = 0;
  for (int64_t d = 0; d < j->q->shape[3]; d++) s = RP_FMA(q[d * qs[3]] * r->scale, k[d * ks[3]], s);
  return s;
}

static double top_score(const struct job* j, const struct row* r) {
  double top = j->sinks ? get(j->sinks_at, r->h * j->sinks->stride[0], j->sinks->dtype) : -RP_INF;
  double add;
  for (int64_t key = 0; key < j->k->shape[2]; key++)
    if (attends(j, r, key, &add)) top = rp_maximum(top, score(j, r, key) + add);
  return top;
}

static void run_row(void* ctx, int64_t i) {
  const struct job* j = ctx;
  int64_t heads = j->q->shape[1], tq = j->q->shape[2], dv = j->v->shape[3];
  struct row r = {.b = i / (heads * tq), .h = i / tq % heads, .t = i % tq};
  r.hkv = r.h / (heads / j->k->shape[1]);
  r.scale = rpi_attr_to_double(j->c->attr[0]);
  double* out = (double*)j->c->dst[0] + i * dv;
  double top = top_score(j, &r), sum = 0, add;
  memset(out, 0, (size_t)dv * sizeof *out);
  if (top == -RP_INF) return;
  if (j->sinks) sum = rp_exp(get(j->sinks_at, r.h * j->sinks->stride[0], j->sinks->dtype) - top);
  for (int64_t key = 0; key < j->k->shape[2]; key++) {
    if (!attends(j, &r, key, &add)) continue;
    double p = rp_exp(score(j, &r, key) + add - top);
    const int64_t* vs = j->v->stride;
    const double* v = (const double*)j->c->src[2] + r.b * vs[0] + r.hkv * vs[1] + key * vs[2];
    sum += p;
    for (int64_t d = 0; d < dv; d++) out[d] = RP_FMA(p, v[d * vs[3]], out[d]);
  }
  for (int64_t d = 0; d < dv; d++) out[d] /= sum;
}

int rpi_sdpa_f64(const struct call* c) {
  struct job j = {.c = c, .q = &c->in[0], .k = &c->in[1], .v = &c->in[2]};
  int next = 3;
  if (c->attr[2]) {
    j.mask = &c->in[next];
    j.mask_at = c->src[next++];
  }
  if (c->attr[3]) {
    j.sinks = &c->in[next];
    j.sinks_at = c->src[next];
  }
  int64_t rows = (int64_t)j.q->shape[0] * j.q->shape[1] * j.q->shape[2];
  rpi_parallel(rows, run_row, &j);
  return 0;
}
