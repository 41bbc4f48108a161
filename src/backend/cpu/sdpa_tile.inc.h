/* Attention of one tile: see sdpa.h for the arithmetic. KERNELS names the table of this instruction
 * set. */
#include "backend/cpu/sdpa.h"

#include "backend/cpu/rows.h"
#include "op/scalar_f32.h"

#define MINUS_INF (-RP_INFF)

static const uint8_t every[SDPA_BLOCK] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

/* The keys of a block for some rows: n indices. */
struct keys {
  const uint8_t* at;
  int n;
};

static inline struct keys list_keys(uint64_t bits, uint8_t* room) {
  struct keys k = {every, __builtin_popcountll(bits)};
  if ((bits & (bits + 1)) == 0) return k;
  k.at = room;
  for (int i = 0; bits; bits &= bits - 1) room[i++] = (uint8_t)__builtin_ctzll(bits);
  return k;
}

/* exp of x <= 0 (or NaN); 0 below -87. */
RPI_INLINE float decay(float x) {
  struct rp_exp_partsf e = rp_exp_splitf(x < -87 ? -87 : x);
  float p = (1 + (e.r + e.t)) * rp_pow2if(e.k);
  return x < -87 ? 0 : p;
}

RPI_INLINE float add_lanes(const float* l) {
  return ((l[0] + l[1]) + (l[2] + l[3])) + ((l[4] + l[5]) + (l[6] + l[7]));
}

/* ---- which keys ------------------------------------------------------------------------------ */

static inline uint64_t low_bits(int64_t n) {
  return n <= 0 ? 0 : n >= SDPA_BLOCK ? ~0ull : (1ull << n) - 1;
}

static uint64_t bool_bits(const uint8_t* m, int64_t stride, int n) {
  uint64_t bits = 0;
#ifdef __AVX2__
  if (stride == 1 && n == SDPA_BLOCK) {
    __m256i zero = _mm256_setzero_si256();
    __m256i a = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i*)m), zero);
    __m256i b = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i*)(m + 32)), zero);
    return ~((uint64_t)(uint32_t)_mm256_movemask_epi8(a) |
             (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32);
  }
#endif
  for (int i = 0; i < n; i++) bits |= (uint64_t)(m[i * stride] != 0) << i;
  return bits;
}

static inline const char* mask_row(const struct sdpa* a, const struct sdpa_tile* t, int64_t pos,
                                   int64_t g, int64_t key) {
  const int64_t* s = a->mask.stride;
  int64_t at = t->b * s[0] + (t->hkv * a->group + g) * s[1] + (t->t0 + pos) * s[2] + key * s[3];
  return a->mask.at + at * (int64_t)rpi_dtype_size(a->mask.dtype);
}

static uint64_t mask_bits(const struct sdpa* a, const char* m, int n) {
  if (a->mask.dtype == RPI_BOOL) return bool_bits((const uint8_t*)m, a->mask.stride[3], n);
  float value[SDPA_BLOCK];
  uint64_t bits = 0;
  row_load(value, m, a->mask.stride[3], n, a->mask.dtype);
  for (int i = 0; i < n; i++) bits |= (uint64_t)(value[i] != MINUS_INF) << i;
  return bits;
}

/* Fill t->bits for the block at `key`; the union of all rows. */
static uint64_t find_keys(const struct sdpa* a, const struct sdpa_tile* t, int64_t key) {
  int64_t n = a->last - key < SDPA_BLOCK ? a->last - key : SDPA_BLOCK;
  uint64_t any = 0, bits = 0;
  int64_t r = 0;
  for (int64_t pos = 0; r < t->rows; pos++) {
    uint64_t seen = low_bits(n);
    if (a->is_causal) seen &= low_bits(t->t0 + pos + a->tk - a->tq + 1 - key);
    for (int64_t g = 0; g < a->group; g++, r++) {
      bool is_new = g == 0 || (a->mask.at && a->mask.stride[1]);
      if (is_new)
        bits = a->mask.at && seen ? mask_bits(a, mask_row(a, t, pos, g, key), (int)n) & seen : seen;
      t->bits[r] = bits;
      any |= bits;
    }
  }
  return any;
}

/* ---- scores ---------------------------------------------------------------------------------- */

#ifdef __AVX2__
/* Sums of the lanes of four vectors. */
RPI_INLINE __m128 add_lanes4(const __m256* a) {
  __m256 h = _mm256_hadd_ps(_mm256_hadd_ps(a[0], a[1]), _mm256_hadd_ps(a[2], a[3]));
  return _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
}

/* R rows by N keys (a multiple of 4), for keys at j, ..., j + N - 1 of the list; past its end the
 * last one. */
RPI_INLINE void score_some(float* s, const float* q, int64_t dp, const float* k, int64_t stride,
                           struct keys keys, int j, const int R, const int N) {
  __m256 acc[3][8];
  const float* at[8];
  for (int i = 0; i < N; i++) at[i] = k + keys.at[j + i < keys.n ? j + i : keys.n - 1] * stride;
  for (int r = 0; r < R; r++)
    for (int i = 0; i < N; i++) acc[r][i] = _mm256_setzero_ps();
  for (int64_t d = 0; d < dp; d += 8) {
    __m256 x[3];
    for (int r = 0; r < R; r++) x[r] = _mm256_loadu_ps(q + r * dp + d);
    for (int i = 0; i < N; i++) {
      __m256 y = _mm256_loadu_ps(at[i] + d);
      for (int r = 0; r < R; r++) acc[r][i] = _mm256_fmadd_ps(x[r], y, acc[r][i]);
    }
  }
  for (int r = 0; r < R; r++)
    for (int i = 0; i < N; i += 4)
      _mm_storeu_ps(s + r * SDPA_BLOCK + j + i, add_lanes4(acc[r] + i));
}

static void score_rows(float* s, const float* q, int64_t dp, const float* k, int64_t stride,
                       struct keys keys, int rows) {
  for (int j = 0; rows == 3 && j < keys.n; j += 4) score_some(s, q, dp, k, stride, keys, j, 3, 4);
  for (int j = 0; rows == 2 && j < keys.n; j += 4) score_some(s, q, dp, k, stride, keys, j, 2, 4);
  for (int j = 0; rows == 1 && j < keys.n; j += 8) score_some(s, q, dp, k, stride, keys, j, 1, 8);
}
#else
static void score_rows(float* s, const float* q, int64_t dp, const float* k, int64_t stride,
                       struct keys keys, int rows) {
  for (int r = 0; r < rows; r++)
    for (int j = 0; j < keys.n; j++) {
      const float *x = q + r * dp, *y = k + keys.at[j] * stride;
      float lane[8] = {0};
      for (int64_t d = 0; d < dp; d += 8)
        for (int l = 0; l < 8; l++) lane[l] = RP_FMAF(x[d + l], y[d + l], lane[l]);
      s[r * SDPA_BLOCK + j] = add_lanes(lane);
    }
}
#endif

/* Rows that look at the same keys go together, by threes. */
static inline int rows_alike(const struct sdpa_tile* t, int r) {
  int n = 1;
  while (n < 3 && r + n < t->rows && t->bits[r + n] == t->bits[r]) n++;
  return n;
}

static void score_block(const struct sdpa* a, const struct sdpa_tile* t, const float* k,
                        int64_t stride) {
  uint8_t room[SDPA_BLOCK];
  for (int r = 0, n; r < t->rows; r += n) {
    n = rows_alike(t, r);
    if (!t->bits[r]) continue;
    score_rows(t->s + r * SDPA_BLOCK, t->q + r * a->dp, a->dp, k, stride,
               list_keys(t->bits[r], room), n);
  }
}

/* ---- softmax --------------------------------------------------------------------------------- */

static void add_mask(const struct sdpa* a, const struct sdpa_tile* t, int r, int64_t key) {
  float value[SDPA_BLOCK];
  uint8_t room[SDPA_BLOCK];
  struct keys keys = list_keys(t->bits[r], room);
  int n = keys.at[keys.n - 1] + 1;
  row_load(value, mask_row(a, t, r / a->group, r % a->group, key), a->mask.stride[3], n,
           a->mask.dtype);
  for (int i = 0; i < keys.n; i++) t->s[r * SDPA_BLOCK + i] += value[keys.at[i]];
}

/* The largest of m and end scores (a multiple of 8). */
RPI_INLINE float top_of(const float* s, int end, float m) {
#ifdef __AVX2__
  __m256 top = _mm256_set1_ps(m);
  for (int i = 0; i < end; i += 8) top = _mm256_max_ps(_mm256_loadu_ps(s + i), top);
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(top), _mm256_extractf128_ps(top, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
#else
  for (int i = 0; i < end; i++) m = s[i] > m ? s[i] : m;
  return m;
#endif
}

/* The sum of end weights in 8 lanes. */
RPI_INLINE float sum_of(const float* s, int end) {
  float lane[8] = {0};
#ifdef __AVX2__
  __m256 sum = _mm256_setzero_ps();
  for (int i = 0; i < end; i += 8) sum = _mm256_add_ps(sum, _mm256_loadu_ps(s + i));
  _mm256_storeu_ps(lane, sum);
#else
  for (int i = 0; i < end; i += 8)
    for (int k = 0; k < 8; k++) lane[k] += s[i + k];
#endif
  return add_lanes(lane);
}

static inline void decay_all(float* s, int end, float max) {
  if (end == SDPA_BLOCK) /* the usual length, unrolled */
    for (int i = 0; i < SDPA_BLOCK; i++) s[i] = decay(s[i] - max);
  else
    for (int i = 0; i < end; i++) s[i] = decay(s[i] - max);
}

/* The n scores of a row become weights; returns the factor of what was accumulated before. A NaN
 * among them may or may not be taken for the maximum, but always reaches the sum. */
static float weigh(float* s, int n, float* m, float* l) {
  int end = (n + 7) & ~7;
  float before = *m;
  for (int i = n; i < end; i++) s[i] = MINUS_INF;
  float max = top_of(s, end, before);
  bool is_empty = max == MINUS_INF; /* only scores of -inf so far */
  if (is_empty) max = 0;
  float c = before == max ? 1 : decay(before - max);
  decay_all(s, end, max);
  *l = RP_FMAF(*l, c, sum_of(s, end));
  *m = is_empty && *l == 0 ? MINUS_INF : max;
  return c;
}

static void weigh_block(const struct sdpa* a, const struct sdpa_tile* t, const struct sdpa_part* p,
                        int64_t key) {
  bool adds = a->mask.at && a->mask.dtype != RPI_BOOL;
  for (int r = 0; r < t->rows; r++) {
    if (!t->bits[r]) continue;
    if (adds) add_mask(a, t, r, key);
    t->c[r] = weigh(t->s + r * SDPA_BLOCK, __builtin_popcountll(t->bits[r]), &p->m[r], &p->l[r]);
  }
}

/* ---- values ---------------------------------------------------------------------------------- */

#ifdef __AVX2__
/* R rows by W vectors of the output. */
RPI_INLINE void value_some(float* o, int64_t vp, const float* c, const float* s, const float* v,
                           int64_t stride, struct keys keys, const int R, const int W) {
  __m256 acc[3][8];
  for (int r = 0; r < R; r++)
    for (int w = 0; w < W; w++)
      acc[r][w] = _mm256_mul_ps(_mm256_loadu_ps(o + r * vp + 8 * w), _mm256_set1_ps(c[r]));
  for (int j = 0; j < keys.n; j++) {
    const float* y = v + keys.at[j] * stride;
    __m256 p[3];
    for (int r = 0; r < R; r++) p[r] = _mm256_broadcast_ss(s + r * SDPA_BLOCK + j);
    for (int w = 0; w < W; w++) {
      __m256 x = _mm256_loadu_ps(y + 8 * w);
      for (int r = 0; r < R; r++) acc[r][w] = _mm256_fmadd_ps(p[r], x, acc[r][w]);
    }
  }
  for (int r = 0; r < R; r++)
    for (int w = 0; w < W; w++) _mm256_storeu_ps(o + r * vp + 8 * w, acc[r][w]);
}

static void value_rows(float* o, int64_t vp, const float* c, const float* s, const float* v,
                       int64_t stride, struct keys keys, int rows) {
  int64_t at = 0;
  for (; rows == 1 && at + 64 <= vp; at += 64)
    value_some(o + at, vp, c, s, v + at, stride, keys, 1, 8);
  for (; rows == 3 && at + 32 <= vp; at += 32)
    value_some(o + at, vp, c, s, v + at, stride, keys, 3, 4);
  for (; rows == 2 && at + 32 <= vp; at += 32)
    value_some(o + at, vp, c, s, v + at, stride, keys, 2, 4);
  for (; rows == 3 && at < vp; at += 8) value_some(o + at, vp, c, s, v + at, stride, keys, 3, 1);
  for (; rows == 2 && at < vp; at += 8) value_some(o + at, vp, c, s, v + at, stride, keys, 2, 1);
  for (; at < vp; at += 8) value_some(o + at, vp, c, s, v + at, stride, keys, 1, 1);
}
#else
static void value_rows(float* o, int64_t vp, const float* c, const float* s, const float* v,
                       int64_t stride, struct keys keys, int rows) {
  for (int r = 0; r < rows; r++) {
    float* restrict out = o + r * vp;
    for (int64_t i = 0; i < vp; i++) out[i] *= c[r];
    for (int j = 0; j < keys.n; j++) {
      const float* y = v + keys.at[j] * stride;
      float p = s[r * SDPA_BLOCK + j];
      for (int64_t i = 0; i < vp; i++) out[i] = RP_FMAF(p, y[i], out[i]);
    }
  }
}
#endif

static void value_block(const struct sdpa* a, const struct sdpa_tile* t, const struct sdpa_part* p,
                        const float* v, int64_t stride) {
  uint8_t room[SDPA_BLOCK];
  for (int r = 0, n; r < t->rows; r += n) {
    n = rows_alike(t, r);
    if (!t->bits[r]) continue;
    value_rows(p->o + r * a->vp, a->vp, t->c + r, t->s + r * SDPA_BLOCK, v, stride,
               list_keys(t->bits[r], room), n);
  }
}

/* ---- a tile ---------------------------------------------------------------------------------- */

/* Rows of the block at `key` that anybody attends to, as floats with a padded end: in place if they
 * are. */
static const float* block_rows(const struct sdpa_in* x, const struct sdpa_tile* t, float* room,
                               int64_t width, int64_t padded, int64_t key, uint64_t any,
                               int64_t* stride) {
  int64_t bytes = (int64_t)rpi_dtype_size(x->dtype);
  const char* at =
      x->at + (t->b * x->stride[0] + t->hkv * x->stride[1] + key * x->stride[2]) * bytes;
  if (x->dtype == RPI_FLOAT32 && x->stride[3] == 1 && width == padded) {
    *stride = x->stride[2];
    return (const float*)at;
  }
  *stride = padded;
  for (; any; any &= any - 1) {
    int64_t i = __builtin_ctzll(any);
    row_load(room + i * padded, at + i * x->stride[2] * bytes, x->stride[3], width, x->dtype);
    for (int64_t d = width; d < padded; d++) room[i * padded + d] = 0;
  }
  return room;
}

static void begin(const struct sdpa* a, const struct sdpa_tile* t) {
  int64_t bytes = (int64_t)rpi_dtype_size(a->q.dtype);
  for (int r = 0; r < t->rows; r++) {
    int64_t h = t->hkv * a->group + r % a->group, pos = t->t0 + r / a->group;
    int64_t at = t->b * a->q.stride[0] + h * a->q.stride[1] + pos * a->q.stride[2];
    float* restrict q = t->q + r * a->dp;
    row_load(q, a->q.at + at * bytes, a->q.stride[3], a->d, a->q.dtype);
    for (int64_t i = 0; i < a->d; i++) q[i] *= a->scale;
    for (int64_t i = a->d; i < a->dp; i++) q[i] = 0;
  }
}

static void span(const struct sdpa* a, const struct sdpa_tile* t, const struct sdpa_part* p,
                 int64_t key) {
  memset(p->o, 0, sizeof(float) * (size_t)(t->rows * a->vp));
  for (int r = 0; r < t->rows; r++) {
    p->m[r] = MINUS_INF;
    p->l[r] = 0;
  }
  int64_t end = key + SDPA_SPAN < a->last ? key + SDPA_SPAN : a->last;
  for (; key < end; key += SDPA_BLOCK) {
    uint64_t any = find_keys(a, t, key);
    if (!any) continue;
    int64_t stride;
    const float* k = block_rows(&a->k, t, t->k, a->d, a->dp, key, any, &stride);
    score_block(a, t, k, stride);
    weigh_block(a, t, p, key);
    const float* v = block_rows(&a->v, t, t->v, a->dv, a->vp, key, any, &stride);
    value_block(a, t, p, v, stride);
  }
}

static void merge_row(float* restrict o, float* m, float* l, const float* restrict o2, float m2,
                      float l2, int64_t n) {
  if (m2 == MINUS_INF && l2 == 0) return;
  if (*m == MINUS_INF && *l == 0) {
    if (o2) memcpy(o, o2, sizeof *o * (size_t)n);
    *m = m2;
    *l = l2;
    return;
  }
  float max = m2 > *m ? m2 : *m;
  float c = *m == max ? 1 : decay(*m - max), c2 = m2 == max ? 1 : decay(m2 - max);
  *m = max;
  *l = RP_FMAF(*l, c, l2 * c2);
  if (o2) {
    for (int64_t i = 0; i < n; i++) o[i] = RP_FMAF(o[i], c, o2[i] * c2);
  } else {
    for (int64_t i = 0; i < n; i++) o[i] *= c;
  }
}

static void merge(const struct sdpa* a, int rows, const struct sdpa_part* into,
                  const struct sdpa_part* from) {
  for (int r = 0; r < rows; r++)
    merge_row(into->o + r * a->vp, &into->m[r], &into->l[r], from->o + r * a->vp, from->m[r],
              from->l[r], a->vp);
}

/* The sink, the division and the store. `p` is used up. */
static void finish(const struct sdpa* a, const struct sdpa_tile* t, const struct sdpa_part* p) {
  int64_t bytes = (int64_t)rpi_dtype_size(a->q.dtype);
  for (int r = 0; r < t->rows; r++) {
    int64_t h = t->hkv * a->group + r % a->group, pos = t->t0 + r / a->group;
    float* restrict o = p->o + r * a->vp;
    if (a->sinks.at)
      merge_row(o, &p->m[r], &p->l[r], NULL,
                row_get(a->sinks.at, h * a->sinks.stride[1], a->sinks.dtype), 1, a->vp);
    float factor = p->l[r] == 0 ? 0 : 1 / p->l[r];
    for (int64_t i = 0; i < a->dv; i++) o[i] *= factor;
    char* out = a->out + ((t->b * a->heads + h) * a->tq + pos) * a->dv * bytes;
    row_store(out, o, a->dv, a->q.dtype);
  }
}

const struct sdpa_kernels KERNELS = {begin, span, merge, finish};
