/* The float32 kernels, once per instruction set. The including file sets GEMM_ISA to 0 (plain C), 2 or
 * 512, and GEMM_NAME to the table it defines. Every lane does the same chain of fma in every variant. */
#include <math.h>
#include <string.h>

#include "backend/cpu/gemm_kernel.h"
#include "base/attr.h"
#include "op/scalar.h"

#if GEMM_ISA == 512
#include <immintrin.h>
typedef __m512 vf;
typedef __m512i vi;
enum { VL = 16, MR = 12, NV = 2 };
#define v_load _mm512_loadu_ps
#define v_store _mm512_storeu_ps
#define v_set1 _mm512_set1_ps
#define v_zero _mm512_setzero_ps
#define v_fma _mm512_fmadd_ps
#define v_from_int(x) _mm512_cvtepi32_ps(x)
#define v_and(x, m) _mm512_and_si512(x, _mm512_set1_epi32(m))
#define v_shift(x, n) _mm512_srli_epi32(x, n)
#define v_load_bits(p) _mm512_loadu_si512(p)
RPI_INLINE vf v_load_part(const float* p, int n) {
  return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
RPI_INLINE void v_store_part(float* p, vf x, int n) {
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), x);
}
RPI_INLINE void transpose(vf r[16]) {
  vf t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; j++) {
      __m512d lo = _mm512_castps_pd(t[i + j]), hi = _mm512_castps_pd(t[i + j + 2]);
      r[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(lo, hi));
      r[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(lo, hi));
    }
  for (int i = 0; i < 4; i++) {
    vf a = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88), b = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
    vf c = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
    vf d = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    t[i] = _mm512_shuffle_f32x4(a, c, 0x88);
    t[i + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
    t[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
  }
  for (int i = 0; i < 16; i++) r[i] = t[i];
}
#elif GEMM_ISA == 2
#include <immintrin.h>
typedef __m256 vf;
typedef __m256i vi;
enum { VL = 8, MR = 6, NV = 2 };
#define v_load _mm256_loadu_ps
#define v_store _mm256_storeu_ps
#define v_set1 _mm256_set1_ps
#define v_zero _mm256_setzero_ps
#define v_fma _mm256_fmadd_ps
#define v_from_int(x) _mm256_cvtepi32_ps(x)
#define v_and(x, m) _mm256_and_si256(x, _mm256_set1_epi32(m))
#define v_shift(x, n) _mm256_srli_epi32(x, n)
#define v_load_bits(p) _mm256_loadu_si256((const void*)(p))
RPI_INLINE __m256i lane_mask(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
RPI_INLINE vf v_load_part(const float* p, int n) { return _mm256_maskload_ps(p, lane_mask(n)); }
RPI_INLINE void v_store_part(float* p, vf x, int n) { _mm256_maskstore_ps(p, lane_mask(n), x); }
RPI_INLINE void transpose(vf r[8]) {
  vf t[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; j++) {
      r[i + 2 * j] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0x44);
      r[i + 2 * j + 1] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0xee);
    }
  for (int i = 0; i < 4; i++) {
    t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
    t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
  }
  for (int i = 0; i < 8; i++) r[i] = t[i];
}
#else
typedef float vf;
typedef int32_t vi;
enum { VL = 1, MR = 4, NV = 4 };
#define v_load(p) (*(p))
#define v_store(p, x) (*(p) = (x))
#define v_set1(x) (x)
#define v_zero() 0.0f
#define v_fma(a, b, c) RP_FMAF(a, b, c)
#define v_from_int(x) ((float)(x))
#define v_and(x, m) ((x) & (m))
#define v_shift(x, n) ((vi)((uint32_t)(x) >> (n)))
RPI_INLINE vi v_load_bits(const void* p) {
  vi x;
  memcpy(&x, p, sizeof x);
  return x;
}
RPI_INLINE vf v_load_part(const float* p, int n) { return n > 0 ? *p : 0; }
RPI_INLINE void v_store_part(float* p, vf x, int n) {
  if (n > 0) *p = x;
}
RPI_INLINE void transpose(vf r[1]) { (void)r; }
#endif

enum { NR = VL * NV };

RPI_INLINE int at_most(int64_t n, int limit) { return n < limit ? (int)n : limit; }

/* ---- full tiles ------------------------------------------------------------------------------ */

RPI_INLINE void store_row(float* c, const vf* acc, int cols) {
  for (int v = 0; v < NV; v++) {
    int left = cols - v * VL;
    if (left >= VL)
      v_store(c + v * VL, acc[v]);
    else if (left > 0)
      v_store_part(c + v * VL, acc[v], left);
  }
}

RPI_INLINE void micro_rows(int64_t k, const int rows, const float* a, const float* b, float* c,
                           int64_t ldc, int cols) {
  vf acc[MR][NV];
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < NV; v++) acc[r][v] = v_zero();
  for (int64_t i = 0; i < k; i++, a += rows, b += NR) {
    vf bv[NV];
    for (int v = 0; v < NV; v++) bv[v] = v_load(b + v * VL);
    for (int r = 0; r < rows; r++) {
      vf x = v_set1(a[r]);
      for (int v = 0; v < NV; v++) acc[r][v] = v_fma(x, bv[v], acc[r][v]);
    }
  }
  for (int r = 0; r < rows; r++) store_row(c + r * ldc, acc[r], cols);
}

static void micro(int64_t k, int rows, const float* a, const float* b, float* c, int64_t ldc,
                  int cols) {
  switch (rows) { /* a constant count of rows keeps the tile in registers */
    case 1: micro_rows(k, 1, a, b, c, ldc, cols); break;
    case 2: micro_rows(k, 2, a, b, c, ldc, cols); break;
    case 3: micro_rows(k, 3, a, b, c, ldc, cols); break;
    case 4: micro_rows(k, 4, a, b, c, ldc, cols); break;
#if GEMM_ISA != 0
    case 5: micro_rows(k, 5, a, b, c, ldc, cols); break;
    case 6: micro_rows(k, 6, a, b, c, ldc, cols); break;
#endif
#if GEMM_ISA == 512
    case 7: micro_rows(k, 7, a, b, c, ldc, cols); break;
    case 8: micro_rows(k, 8, a, b, c, ldc, cols); break;
    case 9: micro_rows(k, 9, a, b, c, ldc, cols); break;
    case 10: micro_rows(k, 10, a, b, c, ldc, cols); break;
    case 11: micro_rows(k, 11, a, b, c, ldc, cols); break;
    case 12: micro_rows(k, 12, a, b, c, ldc, cols); break;
#endif
    default: break;
  }
}

/* ---- unpacked operands ----------------------------------------------------------------------- */

/* `rows` rows by `nv` vectors of columns of which `cols` exist. */
RPI_INLINE void direct_tile(const int rows, const int nv, int cols, int64_t k, const float* a,
                            int64_t a_row, int64_t a_col, const float* b, int64_t b_row, float* c,
                            int64_t ldc) {
  vf acc[4][8];
  int last = cols - (nv - 1) * VL; /* columns of the last vector */
  for (int r = 0; r < rows; r++)
    for (int v = 0; v < nv; v++) acc[r][v] = v_zero();
  for (int64_t i = 0; i < k; i++, b += b_row) {
    vf bv[8];
    for (int v = 0; v < nv - 1; v++) bv[v] = v_load(b + v * VL);
    bv[nv - 1] = last == VL ? v_load(b + (nv - 1) * VL) : v_load_part(b + (nv - 1) * VL, last);
    for (int r = 0; r < rows; r++) {
      vf x = v_set1(a[r * a_row + i * a_col]);
      for (int v = 0; v < nv; v++) acc[r][v] = v_fma(x, bv[v], acc[r][v]);
    }
  }
  for (int r = 0; r < rows; r++) {
    for (int v = 0; v < nv - 1; v++) v_store(c + r * ldc + v * VL, acc[r][v]);
    v_store_part(c + r * ldc + (nv - 1) * VL, acc[r][nv - 1], last);
  }
}

RPI_INLINE void direct_columns(const int rows, int64_t n, int64_t k, const float* a, int64_t a_row,
                               int64_t a_col, const float* b, int64_t b_row, float* c,
                               int64_t ldc) {
  int64_t j = 0;
  if (rows == 1)
    for (; n - j >= 8 * VL; j += 8 * VL)
      direct_tile(rows, 8, 8 * VL, k, a, a_row, a_col, b + j, b_row, c + j, ldc);
  for (; n - j > VL; j += 2 * VL)
    direct_tile(rows, 2, at_most(n - j, 2 * VL), k, a, a_row, a_col, b + j, b_row, c + j, ldc);
  if (n > j)
    direct_tile(rows, 1, (int)(n - j), k, a, a_row, a_col, b + j, b_row, c + j, ldc);
}

static void direct(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_row, int64_t a_col,
                   const float* b, int64_t b_row, float* c, int64_t ldc) {
  int64_t i = 0;
  for (; m - i >= 4; i += 4)
    direct_columns(4, n, k, a + i * a_row, a_row, a_col, b, b_row, c + i * ldc, ldc);
  a += i * a_row;
  c += i * ldc;
  switch (m - i) {
    case 1: direct_columns(1, n, k, a, a_row, a_col, b, b_row, c, ldc); break;
    case 2: direct_columns(2, n, k, a, a_row, a_col, b, b_row, c, ldc); break;
    case 3: direct_columns(3, n, k, a, a_row, a_col, b, b_row, c, ldc); break;
    default: break;
  }
}

/* ---- transposed operands --------------------------------------------------------------------- */

/* VL rows of up to VL floats, transposed: out[j] has element j of every row. Rows past `rows` repeat the
 * last one (their results are dropped), elements past `n` are 0. */
RPI_INLINE void load_transposed(vf out[VL], const float* src, int64_t row, int rows, int n) {
  if (RPI_LIKELY(rows == VL && n == VL)) {
    for (int r = 0; r < VL; r++) out[r] = v_load(src + r * row);
  } else {
    for (int r = 0; r < VL; r++)
      out[r] = v_load_part(src + (r < rows ? r : rows - 1) * row, n);
  }
  transpose(out);
}

static void pack_rows(float* b, const float* src, int64_t row, int64_t k, int cols) {
  for (int v = 0; v < NV; v++) {
    int left = cols - v * VL;
    for (int64_t i = 0; i < k; i += VL) {
      int n = at_most(k - i, VL);
      vf t[VL];
      if (left > 0)
        load_transposed(t, src + v * VL * row + i, row, left < VL ? left : VL, n);
      else
        for (int j = 0; j < VL; j++) t[j] = v_zero();
      for (int j = 0; j < n; j++) v_store(b + (i + j) * NR + v * VL, t[j]);
    }
  }
}

/* nb blocks of VL rows at a time keep enough independent chains in flight. */
RPI_INLINE void skinny_blocks(const int m, const int nb, int rows, int64_t k, const float* x,
                              int64_t ldx, const float* w, int64_t row, float* c, int64_t ldc) {
  vf acc[RPI_GEMM_SKINNY][4], t[4][VL];
  for (int r = 0; r < m; r++)
    for (int b = 0; b < nb; b++) acc[r][b] = v_zero();
  for (int64_t i = 0; i < k; i += VL) {
    int n = at_most(k - i, VL);
    for (int b = 0; b < nb; b++) {
      int first = b * VL < rows ? b * VL : rows - 1;
      load_transposed(t[b], w + first * row + i, row, at_most(rows - first, VL), n);
    }
    for (int j = 0; j < n; j++)
      for (int r = 0; r < m; r++) {
        vf xv = v_set1(x[r * ldx + i + j]);
        for (int b = 0; b < nb; b++) acc[r][b] = v_fma(xv, t[b][j], acc[r][b]);
      }
  }
  for (int r = 0; r < m; r++)
    for (int b = 0; b < nb; b++)
      if (b * VL < rows) v_store_part(c + r * ldc + b * VL, acc[r][b], at_most(rows - b * VL, VL));
}

#define BY_ROWS(call)                        \
  switch (m) {                               \
    case 1: call(1, 4); break;               \
    case 2: call(2, 4); break;               \
    default: break;                          \
  }

static void skinny(int m, int64_t n, int64_t k, const float* x, int64_t ldx, const float* w,
                   int64_t row, float* c, int64_t ldc) {
  int step = 4 * VL;
  for (int64_t j = 0; j < n; j += step) {
    int rows = at_most(n - j, step);
#define CALL(rows_m, blocks) \
  skinny_blocks(rows_m, blocks, rows, k, x, ldx, w + j * row, row, c + j, ldc)
    BY_ROWS(CALL)
#undef CALL
  }
}

/* ---- quantized rows -------------------------------------------------------------------------- */

RPI_INLINE float half_to_float(const void* p, int64_t i, int dtype) {
  if (dtype == 10) return ((const float*)p)[i];
  uint16_t h = ((const uint16_t*)p)[i];
  return dtype == 9 ? rp_f16_to_f32(h) : rp_bf16_to_f32(h);
}

/* VL consecutive scales or biases of one row, of which n exist. */
RPI_INLINE vf load_scales(const void* p, int64_t i, int n, int dtype) {
#if GEMM_ISA == 2
  if (RPI_LIKELY(dtype == 9 && n == VL))
    return _mm256_cvtph_ps(_mm_loadu_si128((const void*)((const uint16_t*)p + i)));
#elif GEMM_ISA == 512
  if (RPI_LIKELY(dtype == 9 && n == VL))
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void*)((const uint16_t*)p + i)));
#endif
  float part[VL];
  for (int j = 0; j < VL; j++) part[j] = j < n ? half_to_float(p, i + j, dtype) : 0;
  return v_load(part);
}

/* out[g] holds scale g of VL rows. */
RPI_INLINE void transpose_scales(vf out[VL], const void* p, int64_t first_row, int rows,
                                 int64_t row_groups, int64_t g, int n, int dtype) {
  for (int r = 0; r < VL; r++)
    out[r] = load_scales(p, (first_row + (r < rows ? r : rows - 1)) * row_groups + g, n, dtype);
  transpose(out);
}

/* The window of one block of VL rows: VL groups of scales, VL words of weights. */
struct qblock {
  vf scale[VL], bias[VL], word[VL];
};

RPI_INLINE void apply_word(const int m, const int nb, const int bits, struct qblock* blk, int g,
                           int word, const float* x, int64_t ldx, vf acc[RPI_GEMM_SKINNY][4]) {
  vi v[4];
#pragma GCC unroll 4
  for (int b = 0; b < nb; b++) v[b] = v_load_bits(&blk[b].word[word]);
#pragma GCC unroll 8
  for (int j = 0; j < 32 / bits; j++) {
    vf xv[RPI_GEMM_SKINNY];
#pragma GCC unroll 2
    for (int r = 0; r < m; r++) xv[r] = v_set1(x[r * ldx + j]);
#pragma GCC unroll 4
    for (int b = 0; b < nb; b++) {
      vf w = v_fma(v_from_int(v_and(v[b], (1 << bits) - 1)), blk[b].scale[g], blk[b].bias[g]);
      v[b] = v_shift(v[b], bits);
#pragma GCC unroll 2
      for (int r = 0; r < m; r++) acc[r][b] = v_fma(xv[r], w, acc[r][b]);
    }
  }
}

RPI_INLINE void load_window(struct qblock* blk, const struct rpi_qrows* q, int64_t first, int rows,
                            int64_t g, int n) {
  transpose_scales(blk->scale, q->scales, first, rows, q->row_groups, g, n, q->dtype);
  transpose_scales(blk->bias, q->biases, first, rows, q->row_groups, g, n, q->dtype);
}

/* Rows are read side by side, which the processor's own prefetcher does not follow: ask for the next
 * rows, which lie in one piece behind these, as many bytes at a time as are being used up. */
RPI_INLINE void prefetch_bytes(const void* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) RPI_PREFETCH((const char*)p + i);
}

RPI_INLINE void prefetch_scales(const struct rpi_qrows* q, int64_t row, int rows) {
  int64_t item = q->dtype == 10 ? 4 : 2, at = row * q->row_groups * item;
  prefetch_bytes((const char*)q->scales + at, rows * q->row_groups * item);
  prefetch_bytes((const char*)q->biases + at, rows * q->row_groups * item);
}

RPI_INLINE void skinny_q_blocks(const int m, const int nb, const int bits, int64_t first, int rows,
                                int64_t k, const float* x, int64_t ldx, const struct rpi_qrows* q,
                                float* c, int64_t ldc) {
  vf acc[RPI_GEMM_SKINNY][4];
  struct qblock blk[4];
  int words = q->group * bits / 32; /* of one group */
  int64_t groups = k / q->group;
  int from[4], count[4]; /* rows of each block */
  for (int b = 0; b < nb; b++) {
    from[b] = b * VL < rows ? b * VL : rows - 1;
    count[b] = at_most(rows - from[b], VL);
    for (int r = 0; r < m; r++) acc[r][b] = v_zero();
  }
  prefetch_scales(q, first + nb * VL, nb * VL);
  for (int64_t g0 = 0; g0 < groups; g0 += VL) {
    int ng = at_most(groups - g0, VL);
    /* The last window starts early where it can, so that its scales are whole vectors too. */
    int early = groups >= VL ? VL - ng : 0;
    for (int b = 0; b < nb; b++)
      load_window(&blk[b], q, first + from[b], count[b], g0 - early, ng + early);
    for (int w0 = 0; w0 < ng * words; w0 += VL) {
      int nw = at_most(ng * words - w0, VL);
      int64_t word = g0 * words + w0;
      prefetch_bytes(q->w + (first + nb * VL) * q->row_words + word * nb * VL,
                     (int64_t)sizeof *q->w * nb * VL * VL);
      for (int b = 0; b < nb; b++)
        load_transposed(blk[b].word, (const float*)q->w + (first + from[b]) * q->row_words + word,
                        q->row_words, count[b], nw);
      for (int i = 0; i < nw; i++)
        apply_word(m, nb, bits, blk, early + (w0 + i) / words, i, x + (word + i) * (32 / bits), ldx,
                   acc);
    }
  }
  for (int r = 0; r < m; r++)
    for (int b = 0; b < nb; b++)
      if (b * VL < rows) v_store_part(c + r * ldc + b * VL, acc[r][b], at_most(rows - b * VL, VL));
}

static void skinny_q(int m, int64_t n, int64_t k, const float* x, int64_t ldx,
                     const struct rpi_qrows* q, float* c, int64_t ldc) {
  int step = 4 * VL;
  for (int64_t j = 0; j < n; j += step) {
    int rows = at_most(n - j, step);
#define CALL4(rows_m, blocks) \
  skinny_q_blocks(rows_m, blocks, 4, j, rows, k, x, ldx, q, c + j, ldc)
#define CALL8(rows_m, blocks) \
  skinny_q_blocks(rows_m, blocks, 8, j, rows, k, x, ldx, q, c + j, ldc)
    if (q->bits == 4) {
      BY_ROWS(CALL4)
    } else {
      BY_ROWS(CALL8)
    }
#undef CALL4
#undef CALL8
  }
}

static void dequantize(float* dst, const uint32_t* w, int64_t n, int bits, int group,
                       const float* scales, const float* biases) {
  const uint8_t* p = (const uint8_t*)w;
  for (int64_t i = 0; i < n; i += group, scales++, biases++) {
    if (bits == 8) {
      for (int j = 0; j < group; j++) dst[i + j] = RP_FMAF((float)p[i + j], *scales, *biases);
      continue;
    }
    for (int j = 0; j < group / 2; j++) {
      uint8_t both = p[i / 2 + j];
      dst[i + 2 * j] = RP_FMAF((float)(both & 15), *scales, *biases);
      dst[i + 2 * j + 1] = RP_FMAF((float)(both >> 4), *scales, *biases);
    }
  }
}

const struct rpi_gemm_kernels GEMM_NAME = {MR, NR, micro, direct, pack_rows, skinny, skinny_q,
                                           dequantize};
