/* Scaled dot-product attention: tiles of query rows over spans of keys. See sdpa.h for the
 * arithmetic.
 *
 * A tile holds the query heads that share a key head, for up to 48 rows, so that keys and values
 * are read once for all of them; heads are found by stride, never copied. Few tiles (decoding) are
 * split further over spans, whose results are merged in order, exactly as one thread would. Keys
 * that a mask excludes for everybody at either end are found by a scan first. float64 has a plain
 * kernel of its own (sdpa_f64.c). */
#include "backend/cpu/sdpa.h"

#include <stdatomic.h>

#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/sdpa_f64.h"
#include "base/err.h"
#include "base/thread.h"

enum { FEW_TILES = 16, SCANNED_ROWS = 64 };
static const int64_t small_work = 100000; /* multiply-adds not worth another thread */

struct job {
  struct sdpa a;
  const struct sdpa_kernels* k;
  int64_t tiles, per_head,
      per_tile; /* tiles in all, of one (batch, key head), and their positions */
  int64_t first_span, spans;
  float* parts; /* [tile][span] when split */
  int64_t part_floats;
  _Atomic(int) failed;
};

static const struct sdpa_kernels* kernels(void) {
  switch (rpi_isa()) {
#if defined(__x86_64__)
    case RPI_ISA_AVX512:
      return &rpi_sdpa_avx512;
    case RPI_ISA_AVX2:
      return &rpi_sdpa_avx2;
#endif
    default:
      return &rpi_sdpa_base;
  }
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* ---- the problem ----------------------------------------------------------------------------- */

/* An input broadcast to four axes. */
static struct sdpa_in input_of(const struct call* c, int i) {
  const struct view* v = &c->in[i];
  struct sdpa_in in = {.at = c->src[i], .dtype = v->dtype};
  for (int d = 0; d < v->ndim; d++)
    in.stride[4 - v->ndim + d] = v->shape[d] == 1 ? 0 : v->stride[d];
  return in;
}

static void describe(struct sdpa* a, const struct call* c) {
  const struct view *q = &c->in[0], *k = &c->in[1], *v = &c->in[2];
  bool has_mask = c->attr[2] != 0, has_sinks = c->attr[3] != 0;
  *a = (struct sdpa){.q = input_of(c, 0), .k = input_of(c, 1), .v = input_of(c, 2)};
  if (has_mask) a->mask = input_of(c, 3);
  if (has_sinks) {
    a->sinks = input_of(c, 3 + has_mask);
    a->sinks.stride[1] = a->sinks.stride[3];
  }
  /* An extent of 1 along the elements is as good as packed. */
  if (q->shape[3] == 1) a->q.stride[3] = a->k.stride[3] = 1;
  if (v->shape[3] == 1) a->v.stride[3] = 1;
  a->out = c->dst[0];
  a->batch = q->shape[0];
  a->heads = q->shape[1];
  a->kv_heads = k->shape[1];
  a->group = a->kv_heads ? a->heads / a->kv_heads : 0;
  a->tq = q->shape[2];
  a->tk = k->shape[2];
  a->d = q->shape[3];
  a->dv = v->shape[3];
  a->dp = round_up(a->d, 8);
  a->vp = round_up(a->dv, 8);
  a->last = a->tk;
  a->is_causal = c->attr[1] != 0;
  a->scale = (float)rpi_attr_to_double(c->attr[0]);
}

/* The first and one past the last true byte of a row of n; n and 0 if there is none. */
static void scan_row(const uint8_t* m, int64_t n, int64_t* first, int64_t* last) {
  int64_t at = 0, end = n;
  uint64_t word;
  for (; at + 8 <= n; at += 8) {
    memcpy(&word, m + at, 8);
    if (word) break;
  }
  while (at < n && !m[at]) at++;
  for (; end - at >= 8; end -= 8) {
    memcpy(&word, m + end - 8, 8);
    if (word) break;
  }
  while (end > at && !m[end - 1]) end--;
  *first = at;
  *last = at < n ? end : 0;
}

/* Narrow [first, last) by a boolean mask of few rows. */
static void scan_mask(struct sdpa* a) {
  const int64_t* s = a->mask.stride;
  int64_t nb = s[0] ? a->batch : 1, nh = s[1] ? a->heads : 1, nt = s[2] ? a->tq : 1;
  if (!a->mask.at || a->mask.dtype != RPI_BOOL || s[3] != 1 || nb * nh * nt > SCANNED_ROWS) return;
  int64_t first = a->tk, last = 0;
  for (int64_t i = 0; i < nb * nh * nt; i++) {
    int64_t at = i / (nh * nt) * s[0] + i / nt % nh * s[1] + i % nt * s[2], f, l;
    scan_row((const uint8_t*)a->mask.at + at, a->tk, &f, &l);
    first = least(first, f);
    last = l > last ? l : last;
  }
  a->first = first;
  a->last = last;
}

/* ---- running --------------------------------------------------------------------------------- */

static struct sdpa_part part_at(const struct job* j, float* at, int rows) {
  return (struct sdpa_part){.o = at, .m = at + rows * j->a.vp, .l = at + rows * j->a.vp + rows};
}

static int64_t part_floats(const struct job* j, int rows) {
  return round_up(rows * (j->a.vp + 2), 8);
}

static struct sdpa_tile tile_at(const struct job* j, int64_t i) {
  int64_t head = i / j->per_head, t0 = i % j->per_head * j->per_tile;
  return (struct sdpa_tile){.b = head / j->a.kv_heads,
                            .hkv = head % j->a.kv_heads,
                            .t0 = t0,
                            .rows = (int)(least(j->per_tile, j->a.tq - t0) * j->a.group)};
}

/* Scratch of a tile and `parts` partial results after it, in one piece; NULL after noting the
 * failure. */
static float* open_tile(struct job* j, struct sdpa_tile* t, int parts) {
  const struct sdpa* a = &j->a;
  int64_t rows = t->rows, q = rows * a->dp, s = rows * SDPA_BLOCK;
  int64_t k = SDPA_BLOCK * a->dp, v = SDPA_BLOCK * a->vp, c = round_up(rows, 8);
  int64_t floats = q + s + k + v + c + 2 * c + parts * part_floats(j, t->rows);
  float* at = rpi_alloc((size_t)floats * sizeof *at);
  if (!at) {
    atomic_store_explicit(&j->failed, 1, memory_order_relaxed);
    return NULL;
  }
  t->bits = (uint64_t*)at;
  t->c = at + 2 * c;
  t->q = t->c + c;
  t->s = t->q + q;
  t->k = t->s + s;
  t->v = t->k + k;
  return at;
}

/* One past the last key that the tile's rows can see, from the causal rule alone. */
static int64_t tile_end(const struct sdpa* a, const struct sdpa_tile* t) {
  if (!a->is_causal) return a->last;
  return least(a->last, t->t0 + t->rows / a->group + a->tk - a->tq);
}

static void run_tile(void* ctx, int64_t i) {
  struct job* j = ctx;
  struct sdpa_tile t = tile_at(j, i);
  float* room = open_tile(j, &t, 2);
  if (!room) return;
  struct sdpa_part sum = part_at(j, t.v + SDPA_BLOCK * j->a.vp, t.rows);
  struct sdpa_part part = part_at(j, sum.o + part_floats(j, t.rows), t.rows);
  j->k->begin(&j->a, &t);
  int64_t first = j->first_span * SDPA_SPAN, end = tile_end(&j->a, &t);
  j->k->span(&j->a, &t, &sum, first); /* also empties it */
  for (int64_t key = first + SDPA_SPAN; key < end; key += SDPA_SPAN) {
    j->k->span(&j->a, &t, &part, key);
    j->k->merge(&j->a, t.rows, &sum, &part);
  }
  j->k->finish(&j->a, &t, &sum);
  rpi_free(room);
}

static void run_span(void* ctx, int64_t i) {
  struct job* j = ctx;
  struct sdpa_tile t = tile_at(j, i / j->spans);
  float* room = open_tile(j, &t, 0);
  if (!room) return;
  struct sdpa_part part = part_at(j, j->parts + i * j->part_floats, t.rows);
  j->k->begin(&j->a, &t);
  j->k->span(&j->a, &t, &part, (j->first_span + i % j->spans) * SDPA_SPAN);
  rpi_free(room);
}

static void finish_tile(struct job* j, int64_t i) {
  struct sdpa_tile t = tile_at(j, i);
  float* at = j->parts + i * j->spans * j->part_floats;
  struct sdpa_part sum = part_at(j, at, t.rows);
  for (int64_t s = 1; s < j->spans; s++) {
    struct sdpa_part part = part_at(j, at + s * j->part_floats, t.rows);
    j->k->merge(&j->a, t.rows, &sum, &part);
  }
  j->k->finish(&j->a, &t, &sum);
}

static int run_split(struct job* j) {
  j->part_floats = part_floats(j, (int)(j->per_tile * j->a.group));
  size_t bytes = (size_t)(j->tiles * j->spans * j->part_floats) * sizeof *j->parts;
  j->parts = rpi_alloc(bytes);
  if (!j->parts) return rpi_fail_memory("attention", bytes);
  rpi_parallel(j->tiles * j->spans, run_span, j);
  if (!j->failed)
    for (int64_t i = 0; i < j->tiles; i++) finish_tile(j, i);
  rpi_free(j->parts);
  return 0;
}

static int run(struct job* j) {
  const struct sdpa* a = &j->a;
  int64_t keys = a->last > a->first ? a->last - a->first : 0;
  double work = (double)(a->batch * a->heads * a->tq) * (double)keys * (double)(a->d + a->dv);
  int rc = 0;
  if (work < (double)small_work)
    for (int64_t i = 0; i < j->tiles; i++) run_tile(j, i);
  else if (j->tiles < FEW_TILES && j->spans > 1)
    rc = run_split(j);
  else
    rpi_parallel(j->tiles, run_tile, j);
  if (!rc && j->failed) rc = rpi_fail_memory("attention", 0);
  return rc;
}

int rpi_cpu_sdpa(const struct call* c) {
  struct job j = {.k = kernels()};
  if (c->out[0].size == 0) return 0;
  if (c->in[0].dtype == RPI_FLOAT64) return rpi_sdpa_f64(c);
  struct sdpa* a = &j.a;
  describe(a, c);
  scan_mask(a);
  j.per_tile = a->group < SDPA_ROWS ? SDPA_ROWS / a->group : 1;
  j.per_head = (a->tq + j.per_tile - 1) / j.per_tile;
  if (j.per_tile > a->tq) j.per_tile = a->tq;
  j.tiles = a->batch * a->kv_heads * j.per_head;
  j.first_span = a->first < a->last ? a->first / SDPA_SPAN : 0;
  j.spans = a->first < a->last ? (a->last + SDPA_SPAN - 1) / SDPA_SPAN - j.first_span : 0;
  return run(&j);
}
