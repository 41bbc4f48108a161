/* Rows of float16, bfloat16 or float32 with any stride as floats, and back with one rounding.
 *
 * Included by each instruction set's variant of a kernel. The conversions give the bits of
 * op/scalar_half.h everywhere. */
#ifndef RPI_BACKEND_CPU_ROWS_H
#define RPI_BACKEND_CPU_ROWS_H

#include <stdint.h>
#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "core/dtype.h"
#include "op/scalar_half.h"

RPI_INLINE float row_get(const void* src, int64_t at, int dtype) {
  if (dtype == RPI_FLOAT32) return ((const float*)src)[at];
  if (dtype == RPI_FLOAT64) return (float)((const double*)src)[at];
  uint16_t h = ((const uint16_t*)src)[at];
  return dtype == RPI_FLOAT16 ? rp_f16_to_f32(h) : rp_bf16_to_f32(h);
}

RPI_INLINE void row_widen_f16(float* restrict dst, const uint16_t* restrict src, int64_t n) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(src + i))));
#endif
  for (; i < n; i++) dst[i] = rp_f16_to_f32(src[i]);
}

RPI_INLINE void row_narrow_f16(uint16_t* restrict dst, const float* restrict src, int64_t n) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128((__m128i*)(dst + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; i++) dst[i] = rp_f32_to_f16(src[i]);
}

/* n elements from src on, `stride` apart, to dst. Not for float64. */
static inline void row_load(float* restrict dst, const void* src, int64_t stride, int64_t n,
                            int dtype) {
  if (stride != 1) {
    for (int64_t i = 0; i < n; i++) dst[i] = row_get(src, i * stride, dtype);
  } else if (dtype == RPI_FLOAT32) {
    memcpy(dst, src, (size_t)n * sizeof *dst);
  } else if (dtype == RPI_FLOAT16) {
    row_widen_f16(dst, src, n);
  } else {
    const uint16_t* s = src;
    for (int64_t i = 0; i < n; i++) dst[i] = rp_bf16_to_f32(s[i]);
  }
}

static inline void row_store(void* dst, const float* restrict src, int64_t n, int dtype) {
  if (dtype == RPI_FLOAT32) {
    memcpy(dst, src, (size_t)n * sizeof *src);
  } else if (dtype == RPI_FLOAT16) {
    row_narrow_f16(dst, src, n);
  } else {
    uint16_t* d = dst;
    for (int64_t i = 0; i < n; i++) d[i] = rp_f32_to_bf16(src[i]);
  }
}

#endif
