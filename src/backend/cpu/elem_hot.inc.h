/* Kernels of int32 and bool, select and the usual conversions, for one instruction set: ELEM_ISA is
 * scalar, avx2 or avx512. */
#include <string.h>

#include "backend/cpu/elem_cast.inc.h"
#if defined(__F16C__)
#include <immintrin.h>
#endif

#define ELEM_JOIN_(a, b) a##b
#define ELEM_JOIN(a, b) ELEM_JOIN_(a, b)

#define ELEM_NAME(row) row##_i32
#define ELEM_TABLE ELEM_JOIN(rpi_elem_i32_, ELEM_ISA)
#define ELEM_T int32_t
#define ELEM_MEM int32_t
#define ELEM_PART int32_t
#define ELEM_HAS_FLOAT 0
#define ELEM_HAS_FLOATC 0
#define ELEM_HAS_REAL 1
#define ELEM_HAS_ANY 1
#define ELEM_HAS_NUM 1
#define ELEM_HAS_INT 1
#define ELEM_HAS_LOGIC 0
#include "backend/cpu/elem_loops.inc.h"

#define ELEM_NAME(row) row##_bool
#define ELEM_TABLE ELEM_JOIN(rpi_elem_bool_, ELEM_ISA)
#define ELEM_T bool
#define ELEM_MEM uint8_t
#define ELEM_PART uint8_t
#define ELEM_HAS_FLOAT 0
#define ELEM_HAS_FLOATC 0
#define ELEM_HAS_REAL 1
#define ELEM_HAS_ANY 1
#define ELEM_HAS_NUM 0
#define ELEM_HAS_INT 1
#define ELEM_HAS_LOGIC 1
#include "backend/cpu/elem_loops.inc.h"

/* Only whether a condition is zero counts; x and y move as bits. */
#define SELECT_DEFINE(name, T)                                          \
  static void name(int64_t n, void* out, const void* const* in) {       \
    const uint8_t* c = in[0];                                           \
    const T *a = in[1], *b = in[2];                                     \
    T* r = out;                                                         \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) {              \
      T x = a[i], y = b[i];                                             \
      r[i] = c[i] ? x : y;                                              \
    }                                                                   \
  }
SELECT_DEFINE(select_8, uint8_t)
SELECT_DEFINE(select_16, uint16_t)
SELECT_DEFINE(select_32, uint32_t)
SELECT_DEFINE(select_64, uint64_t)

const rpi_elem_fn ELEM_JOIN(rpi_elem_select_, ELEM_ISA)[4] = {select_8, select_16, select_32,
                                                              select_64};

/* float16 has instructions, with the bits of scalar_half.h. */
#if defined(__F16C__)
static void FLOAT16_to_FLOAT32(int64_t n, void* out, const void* const* in) {
  const uint16_t* a = in[0];
  float* r = out;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(r + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(a + i))));
  for (; i < n; i++) r[i] = rp_f16_to_f32(a[i]);
}

static void FLOAT32_to_FLOAT16(int64_t n, void* out, const void* const* in) {
  const float* a = in[0];
  uint16_t* r = out;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128((__m128i*)(r + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(a + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; i++) r[i] = rp_f32_to_f16(a[i]);
}
#else
CAST_DEFINE(FLOAT16, FLOAT32)
CAST_DEFINE(FLOAT32, FLOAT16)
#endif

/* bfloat16: the integer code of scalar_half.h; narrowing 32 to 16 bits is where AVX2 needs a
 * hand. */
#if defined(__AVX2__) && !defined(__AVX512F__)
static inline __m256i to_bfloat16(const float* a) {
  __m256 f = _mm256_loadu_ps(a);
  __m256i u = _mm256_castps_si256(f), high = _mm256_srli_epi32(u, 16);
  __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  __m256i r = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7FFF)), odd);
  __m256i nan = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(f, f, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(_mm256_srli_epi32(r, 16), nan, is_nan);
}

static void FLOAT32_to_BFLOAT16(int64_t n, void* out, const void* const* in) {
  const float* a = in[0];
  uint16_t* r = out;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    __m256i both = _mm256_packus_epi32(to_bfloat16(a + i), to_bfloat16(a + i + 8));
    _mm256_storeu_si256((__m256i*)(r + i), _mm256_permute4x64_epi64(both, 0xD8));
  }
  for (; i < n; i++) r[i] = rp_f32_to_bf16(a[i]);
}
#else
CAST_DEFINE(FLOAT32, BFLOAT16)
#endif

#define EACH_HOT(X)                                                                             \
  X(BFLOAT16, FLOAT32) X(FLOAT32, INT32) X(FLOAT32, UINT32) X(FLOAT32, UINT8) \
  X(FLOAT32, BOOL) X(FLOAT32, FLOAT64) X(FLOAT64, FLOAT32) X(INT32, FLOAT32) X(INT32, BOOL)     \
  X(INT32, UINT32) X(INT32, INT64) X(INT64, INT32) X(UINT32, FLOAT32) X(UINT32, INT32)          \
  X(UINT8, FLOAT32) X(UINT8, INT32) X(BOOL, FLOAT32) X(BOOL, INT32) X(BOOL, UINT32)

EACH_HOT(CAST_DEFINE)

const rpi_elem_fn ELEM_JOIN(rpi_elem_hot_cast_, ELEM_ISA)[RPI_DTYPE_COUNT][RPI_DTYPE_COUNT] = {
    EACH_HOT(CAST_ENTRY) CAST_ENTRY(FLOAT16, FLOAT32) CAST_ENTRY(FLOAT32, FLOAT16)
        CAST_ENTRY(FLOAT32, BFLOAT16)};
