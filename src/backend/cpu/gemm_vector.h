/* Vectors of VL floats in the instruction set GEMM_ISA (0: plain C, 2, 512), for the kernels that are
 * built once per instruction set. MR rows by NV vectors are the register tile of the product. */
#ifndef RPI_BACKEND_CPU_GEMM_VECTOR_H
#define RPI_BACKEND_CPU_GEMM_VECTOR_H

#include <stdint.h>
#include <string.h>

#include "base/attr.h"
#include "core/dtype.h"
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
#define v_or(x, y) _mm512_or_si512(x, y)
#define v_shift_left(x, n) _mm512_slli_epi32(x, n)
#define v_load_bits(p) _mm512_loadu_si512(p)
/* VL halves, widened exactly. */
RPI_INLINE vf v_load_f16(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256((const void*)p));
}
RPI_INLINE vf v_load_bf16(const uint16_t* p) {
  __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void*)p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
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
#define v_or(x, y) _mm256_or_si256(x, y)
#define v_shift_left(x, n) _mm256_slli_epi32(x, n)
#define v_load_bits(p) _mm256_loadu_si256((const void*)(p))
/* VL halves, widened exactly. */
RPI_INLINE vf v_load_f16(const uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128((const void*)p));
}
RPI_INLINE vf v_load_bf16(const uint16_t* p) {
  __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void*)p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
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
#define v_or(x, y) ((x) | (y))
#define v_shift_left(x, n) ((vi)((uint32_t)(x) << (n)))
RPI_INLINE vi v_load_bits(const void* p) {
  vi x;
  memcpy(&x, p, sizeof x);
  return x;
}
RPI_INLINE vf v_load_f16(const uint16_t* p) { return rp_f16_to_f32(*p); }
RPI_INLINE vf v_load_bf16(const uint16_t* p) { return rp_bf16_to_f32(*p); }
RPI_INLINE vf v_load_part(const float* p, int n) { return n > 0 ? *p : 0; }
RPI_INLINE void v_store_part(float* p, vf x, int n) {
  if (n > 0) *p = x;
}
RPI_INLINE void transpose(vf r[1]) { (void)r; }
#endif

RPI_INLINE int at_most(int64_t n, int limit) { return n < limit ? (int)n : limit; }

/* Element i of float32, float16 or bfloat16 values. */
RPI_INLINE float load_one(const void* p, int64_t i, int dtype) {
  if (dtype == RPI_FLOAT32) return ((const float*)p)[i];
  uint16_t h = ((const uint16_t*)p)[i];
  return dtype == RPI_FLOAT16 ? rp_f16_to_f32(h) : rp_bf16_to_f32(h);
}

/* Elements i ... i + VL, of which n exist; the others are 0. */
RPI_INLINE vf load_any(const void* p, int64_t i, int n, const int dtype) {
  float part[VL];
  if (dtype == RPI_FLOAT32)
    return n == VL ? v_load((const float*)p + i) : v_load_part((const float*)p + i, n);
  if (RPI_LIKELY(n == VL))
    return dtype == RPI_FLOAT16 ? v_load_f16((const uint16_t*)p + i)
                                : v_load_bf16((const uint16_t*)p + i);
  for (int j = 0; j < VL; j++) part[j] = j < n ? load_one(p, i + j, dtype) : 0;
  return v_load(part);
}

/* VL rows of up to VL values, transposed: out[j] has element j of every row. Rows past `rows` repeat the
 * last one (their results are dropped), elements past `n` are 0. */
RPI_INLINE void load_transposed(vf out[VL], const void* src, int64_t at, int64_t row, int rows, int n,
                                const int dtype) {
  if (RPI_LIKELY(rows == VL && n == VL))
    for (int r = 0; r < VL; r++) out[r] = load_any(src, at + r * row, VL, dtype);
  else
    for (int r = 0; r < VL; r++)
      out[r] = load_any(src, at + (r < rows ? r : rows - 1) * row, n, dtype);
  transpose(out);
}

#endif
