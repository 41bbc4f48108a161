/* The sampler: a list of candidates (ids ascending) that each filter shortens in place.
 *
 * 1. Candidates stay in the order of their ids, so that a draw walks them as it would walk the
 *    whole row; a dropped one has weight 0 there.
 * 2. Nothing sorts the vocabulary: top-k keeps a heap of k logits, top-p partitions what is
 * probable enough to matter.
 * 3. Weights are exp((logit - largest) / temperature): the largest is 1, nothing overflows. Sums
 *    are in double. Loops over the row go in blocks of LANES for the vectorizer: a block that holds
 *    nothing of interest costs a few instructions. */
#include "lm/sampler.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lm/err.h"

enum { LANES = 16 };

struct lm_sampler {
  struct lm_sampling set;
  struct lm_key key;
  size_t n;
  size_t row;    /* n rounded up to LANES; what lies behind n is -inf */
  float* logits; /* row: NaN replaced, penalty applied */
  float* kept;   /* the candidates' logits */
  float* weights;
  int32_t* ids;
  uint32_t* order; /* top-p's positions of candidates */
  size_t m;        /* number of candidates */
  float* top;      /* top-k's heap */
  uint8_t* is_seen;
  int32_t* seen;
  size_t n_seen;
};

struct lm_sampling lm_sampling_default(void) {
  return (struct lm_sampling){.top_p = 1, .repetition_penalty = 1};
}

static int check(const struct lm_sampling* p) {
  const struct {
    const char* name;
    double value;
    bool is_good;
  } rows[] = {
      {"temperature", p->temperature, p->temperature >= 0 && p->temperature < INFINITY},
      {"top_k", p->top_k, p->top_k >= 0},
      {"top_p", p->top_p, p->top_p >= 0 && p->top_p <= 1},
      {"min_p", p->min_p, p->min_p >= 0 && p->min_p <= 1},
      {"repetition_penalty", p->repetition_penalty,
       p->repetition_penalty > 0 && p->repetition_penalty < INFINITY},
  };

  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!rows[i].is_good)
      return lm_fail(RP_ERR_ARGUMENT, "[sample] %s is %g; it is to be %s.", rows[i].name,
                     rows[i].value,
                     i == 2 || i == 3 ? "in [0, 1]"
                     : i == 4         ? "above 0"
                                      : "0 or above");
  return 0;
}

static int alloc_rows(struct lm_sampler* s) {
  size_t row = s->row;

  s->logits = malloc(row * sizeof *s->logits);
  s->kept = malloc(row * sizeof *s->kept);
  s->weights = malloc(row * sizeof *s->weights);
  s->ids = malloc(row * sizeof *s->ids);
  s->order = malloc(row * sizeof *s->order);
  s->top = malloc(((size_t)s->set.top_k < s->n ? (size_t)s->set.top_k + 1 : 1) * sizeof *s->top);
  s->seen = malloc(row * sizeof *s->seen);
  s->is_seen = calloc(row, 1);
  if (s->logits && s->kept && s->weights && s->ids && s->order && s->top && s->seen && s->is_seen)
    return 0;
  return lm_fail_memory("a sampler", row * 25);
}

int lm_sampler_new(struct lm_sampler** out, const struct lm_sampling* settings, size_t n_vocab) {
  int err = check(settings);
  if (err) return err;
  if (n_vocab == 0 || n_vocab > INT32_MAX / 4)
    return lm_fail(RP_ERR_ARGUMENT, "[sample] A vocabulary of %zu.", n_vocab);

  struct lm_sampler* s = calloc(1, sizeof *s);
  if (!s) return lm_fail_memory("a sampler", sizeof *s);
  s->set = *settings;
  s->n = n_vocab;
  s->row = (n_vocab + LANES - 1) / LANES * LANES;
  err = alloc_rows(s);
  if (err) {
    lm_sampler_free(s);
    return err;
  }
  lm_sampler_reset(s, settings->seed);
  *out = s;
  return 0;
}

void lm_sampler_free(struct lm_sampler* s) {
  if (!s) return;
  free(s->logits);
  free(s->kept);
  free(s->weights);
  free(s->ids);
  free(s->order);
  free(s->top);
  free(s->seen);
  free(s->is_seen);
  free(s);
}

void lm_sampler_see(struct lm_sampler* s, const int32_t* ids, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (ids[i] < 0 || (size_t)ids[i] >= s->n || s->is_seen[ids[i]]) continue;
    s->is_seen[ids[i]] = 1;
    s->seen[s->n_seen++] = ids[i];
  }
}

void lm_sampler_reset(struct lm_sampler* s, uint64_t seed) {
  for (size_t i = 0; i < s->n_seen; i++) s->is_seen[s->seen[i]] = 0;
  s->n_seen = 0;
  s->key = lm_key_from_seed(seed);
}

/* ---- the row ---- */

static float clean(float x) { return x == x ? x : -INFINITY; }

static void clean_row(float* restrict out, const float* restrict x, size_t n) {
  size_t b = 0;

  for (; b + LANES <= n; b += LANES)
    for (int j = 0; j < LANES; j++) out[b + j] = clean(x[b + j]);
  for (; b < n; b++) out[b] = clean(x[b]);
}

/* How many of a block's LANES values are at least `least`. */
static int count_at_least(const float* x, float least) {
  int hits = 0;

  for (int j = 0; j < LANES; j++) hits += x[j] >= least;
  return hits;
}

/* Copy the row, NaN becoming -inf, and punish seen tokens. */
static void load_row(struct lm_sampler* s, const float* logits) {
  float penalty = s->set.repetition_penalty;

  clean_row(s->logits, logits, s->n);
  for (size_t i = s->n; i < s->row; i++) s->logits[i] = -INFINITY;
  for (size_t i = 0; penalty != 1 && i < s->n_seen; i++) {
    float* x = &s->logits[s->seen[i]];
    *x = *x > 0 ? *x / penalty : *x * penalty;
  }
}

/* The largest of x[0..n), NaN passed over; -inf if there is nothing else. */
static float largest(const float* x, size_t n) {
  float m[LANES];
  size_t b = 0;

  for (int j = 0; j < LANES; j++) m[j] = -INFINITY;
  for (; b + LANES <= n; b += LANES)
    for (int j = 0; j < LANES; j++) m[j] = x[b + j] > m[j] ? x[b + j] : m[j];
  for (; b < n; b++) m[0] = x[b] > m[0] ? x[b] : m[0];
  for (int j = 1; j < LANES; j++) m[0] = m[j] > m[0] ? m[j] : m[0];
  return m[0];
}

/* The lowest index of `max`, the largest of the row. */
static size_t find_largest(const float* x, size_t n, float max) {
  size_t i = 0;

  while (i + LANES <= n && !count_at_least(x + i, max)) i += LANES;
  while (x[i] != max) i++;
  return i;
}

/* ---- top-k ---- */

/* Sink h[i] of a heap whose smallest is h[0]. */
static void sink_float(float* h, size_t n, size_t i) {
  float x = h[i];

  for (size_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && h[child + 1] < h[child]) child++;
    if (h[child] >= x) break;
    h[i] = h[child];
  }
  h[i] = x;
}

/* Let a block's values replace the smallest of the heap. */
static void offer(float* heap, size_t k, const float* x, size_t n) {
  for (size_t j = 0; j < n; j++) {
    if (x[j] <= heap[0]) continue;
    heap[0] = x[j];
    sink_float(heap, k, 0);
  }
}

/* The k-th largest of the row, 1 <= k < n. */
static float kth_largest(struct lm_sampler* s, size_t k) {
  size_t b = k;

  memcpy(s->top, s->logits, k * sizeof *s->top);
  for (size_t i = k / 2; i-- > 0;) sink_float(s->top, k, i);
  for (; b + LANES <= s->n; b += LANES)
    if (count_at_least(s->logits + b, s->top[0])) offer(s->top, k, s->logits + b, LANES);
  offer(s->top, k, s->logits + b, s->n - b);
  return s->top[0];
}

static size_t list_block(struct lm_sampler* s, size_t m, size_t b, float least) {
  for (size_t i = b; i < b + LANES; i++) {
    s->ids[m] = (int32_t)i;
    s->kept[m] = s->logits[i];
    m += s->logits[i] >= least;
  }
  return m;
}

/* List what is at least the k-th largest: ties with it stay, -inf goes. */
static void list_candidates(struct lm_sampler* s) {
  size_t k = (size_t)s->set.top_k, m = 0;
  float least = k > 0 && k < s->n ? kth_largest(s, k) : -INFINITY;

  if (least == -INFINITY) least = -FLT_MAX;
  for (size_t b = 0; b < s->row; b += LANES) {
    int hits = count_at_least(s->logits + b, least);
    if (hits == LANES) {
      memcpy(s->kept + m, s->logits + b, LANES * sizeof *s->kept);
      for (int j = 0; j < LANES; j++) s->ids[m + (size_t)j] = (int32_t)b + j;
      m += LANES;
    } else if (hits) {
      m = list_block(s, m, b, least);
    }
  }
  s->m = m;
}

/* ---- weights ---- */

/* 2^x for x <= 0, 0 below -125: 2^whole by the exponent's bits times the Taylor series of 2^part,
 * |part| <= 1/2, whose error is 1.2e-7. Branch-free. */
static float exp2_negative(float x) {
  float y = x > -125.0f ? x : -125.0f;
  float shifted = y + 12582912.0f; /* 1.5 * 2^23: the nearest integer lands in the low bits */
  float part = y - (shifted - 12582912.0f);
  float p = 1.540353e-4f;
  p = p * part + 1.3333558e-3f;
  p = p * part + 9.6181291e-3f;
  p = p * part + 5.5504109e-2f;
  p = p * part + 2.4022651e-1f;
  p = p * part + 6.9314718e-1f;
  p = p * part + 1.0f;
  uint32_t whole, bits;
  memcpy(&whole, &shifted, 4);
  memcpy(&bits, &p, 4);
  bits += whole << 23;
  memcpy(&p, &bits, 4);
  return x > -125.0f ? p : 0.0f;
}

static void exp_row(float* restrict out, const float* restrict x, size_t row, float max, float t) {
  /* The bound keeps 0 * infinity out; below it all but the largest weigh 0 anyway. */
  float scale = 1.44269504f / (t > 1e-30f ? t : 1e-30f);

  for (size_t b = 0; b < row; b += LANES)
    for (int j = 0; j < LANES; j++) out[b + j] = exp2_negative((x[b + j] - max) * scale);
}

static void weigh(struct lm_sampler* s, float max) {
  size_t row = (s->m + LANES - 1) / LANES * LANES;

  for (size_t i = s->m; i < row; i++) s->kept[i] = -INFINITY;
  if (max < INFINITY) {
    exp_row(s->weights, s->kept, row, max, s->set.temperature);
    return;
  }
  for (size_t i = 0; i < s->m; i++) s->weights[i] = s->kept[i] == INFINITY;
}

static double total_weight(const struct lm_sampler* s) {
  double lane[8] = {0}, total = 0;
  size_t i = 0;

  for (; i + 8 <= s->m; i += 8)
    for (int j = 0; j < 8; j++) lane[j] += s->weights[i + j];
  for (int j = 0; j < 8; j++) total += lane[j];
  for (; i < s->m; i++) total += s->weights[i];
  return total;
}

/* Keep the candidates whose key[] is at least `least`, and of those that equal it the ones from
 * position `from` on. `key` is s->kept or s->weights. */
static void keep_at_least(struct lm_sampler* s, const float* key, float least, size_t from) {
  size_t m = 0;

  for (size_t b = 0; b < s->m; b += LANES) {
    if (!count_at_least(key + b, least)) continue;
    size_t end = b + LANES < s->m ? b + LANES : s->m;
    for (size_t i = b; i < end; i++) {
      float k = key[i];
      s->ids[m] = s->ids[i];
      s->kept[m] = s->kept[i];
      s->weights[m] = s->weights[i];
      m += k > least || (k == least && i >= from);
    }
  }
  s->m = m;
}

/* ---- top-p ---- */

/* Is candidate a taken before b? The larger logit first, of equal ones the larger id. */
static bool is_before(const struct lm_sampler* s, uint32_t a, uint32_t b) {
  return s->kept[a] != s->kept[b] ? s->kept[a] > s->kept[b] : a > b;
}

/* List the candidates that top-p can keep in s->order. All others weigh less than (1 - p) / m of
 * the total each, so less than 1 - p together, and the rule drops them. */
static size_t list_probable(struct lm_sampler* s, double total, float rest) {
  float least = (float)(rest * total / (double)s->m * 0.999999);
  size_t n = 0;

  for (size_t b = 0; b < s->m; b += LANES) {
    if (!count_at_least(s->weights + b, least)) continue;
    size_t end = b + LANES < s->m ? b + LANES : s->m;
    for (size_t i = b; i < end; i++) {
      s->order[n] = (uint32_t)i;
      n += s->weights[i] >= least;
    }
  }
  return n;
}

/* Move what is before a middle one of order[lo..hi) to the front and that one behind it; returns
 * its place. The order is strict, so equal logits do no harm. */
static size_t partition(struct lm_sampler* s, size_t lo, size_t hi) {
  uint32_t *h = s->order, pivot = h[lo + (hi - lo) / 2];
  size_t m = lo;

  h[lo + (hi - lo) / 2] = h[hi - 1];
  for (size_t i = lo; i + 1 < hi; i++) {
    uint32_t x = h[i];
    h[i] = h[m];
    h[m] = x;
    m += is_before(s, x, pivot);
  }
  h[hi - 1] = h[m];
  h[m] = pivot;
  return m;
}

/* Is a candidate kept when those before it weigh `above`? Then it and all behind it are more than
 * 1 - p; the first one always is. */
static bool is_within(double above, double total, float rest) {
  return above == 0 || (float)((total - above) / total) > rest;
}

/* The last candidate, in the order of is_before, that the rule keeps. */
static uint32_t find_last(struct lm_sampler* s, double total, float rest) {
  size_t lo = 0, hi = list_probable(s, total, rest);
  double above = 0; /* weight of everything before order[lo] */
  uint32_t last = s->order[0];

  while (lo < hi) {
    size_t m = partition(s, lo, hi);
    double upper = above;
    for (size_t i = lo; i < m; i++) upper += s->weights[s->order[i]];
    if (is_within(upper, total, rest)) {
      last = s->order[m];
      above = upper + s->weights[last];
      lo = m + 1;
    } else {
      hi = m;
    }
  }
  return last;
}

/* Drop where the sum of this and all less probable candidates is at most 1 - p, but never the
 * most probable one. */
static void apply_top_p(struct lm_sampler* s) {
  uint32_t last = find_last(s, total_weight(s), 1.0f - s->set.top_p);

  keep_at_least(s, s->kept, s->kept[last], last);
}

/* ---- choosing ---- */

static int fail_empty(void) {
  return lm_fail(RP_ERR_NUMERIC, "[sample] Every logit is NaN or -inf.");
}

static int choose_greedy(struct lm_sampler* s, const float* logits, int32_t* token) {
  const float* row = logits;

  if (s->n_seen && s->set.repetition_penalty != 1) {
    load_row(s, logits);
    row = s->logits;
  }
  float max = largest(row, s->n);
  if (max == -INFINITY) return fail_empty();
  *token = (int32_t)find_largest(row, s->n, max);
  return 0;
}

static int filter(struct lm_sampler* s, const float* logits) {
  load_row(s, logits);
  float max = largest(s->logits, s->n);
  if (max == -INFINITY) return fail_empty();
  list_candidates(s);
  weigh(s, max);
  if (s->set.top_p < 1) apply_top_p(s);
  if (s->set.min_p > 0) keep_at_least(s, s->weights, s->set.min_p, 0); /* the largest is 1 */
  return 0;
}

static double block_weight(const struct lm_sampler* s, size_t b) {
  double sum = 0;

  for (size_t i = b; i < b + LANES && i < s->m; i++) sum += s->weights[i];
  return sum;
}

/* The first candidate whose cumulative weight exceeds (1 - u) of the total. */
static int32_t draw(const struct lm_sampler* s, float u) {
  double aim = total_weight(s) * (1.0 - (double)u), sum = 0;
  size_t b = 0;

  for (; b + LANES < s->m; b += LANES) { /* whole blocks that end before the aim */
    double w = block_weight(s, b);
    if (sum + w > aim) break;
    sum += w;
  }
  for (size_t i = b; i < s->m; i++) {
    sum += s->weights[i];
    if (sum > aim && s->weights[i] > 0) return s->ids[i];
  }
  size_t last = s->m - 1; /* u is 0, or the sums rounded down */
  while (s->weights[last] == 0) last--;
  return s->ids[last];
}

int lm_sampler_next(struct lm_sampler* s, const float* logits, int32_t* token) {
  struct lm_key next[2];
  int32_t chosen = -1;
  int err = s->set.temperature == 0 ? choose_greedy(s, logits, &chosen) : filter(s, logits);

  if (err) return err;
  lm_key_split(s->key, next);
  s->key = next[0];
  if (chosen < 0) chosen = draw(s, lm_key_uniform(next[1]));
  lm_sampler_see(s, &chosen, 1);
  *token = chosen;
  return 0;
}

int lm_sampler_candidates(struct lm_sampler* s, const float* logits, const int32_t** ids,
                          const float** weights, size_t* n) {
  int err = s->set.temperature == 0 ? choose_greedy(s, logits, &s->ids[0]) : filter(s, logits);
  if (err) return err;

  if (s->set.temperature == 0) {
    s->weights[0] = 1;
    s->m = 1;
  }
  *ids = s->ids;
  *weights = s->weights;
  *n = s->m;
  return 0;
}
