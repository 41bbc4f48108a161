/* The kernels that exist once per instruction set (gemm_loops.inc.h, gemm_wide.inc.h, qmm_loops.inc.h). */
#ifndef RPI_BACKEND_CPU_GEMM_KERNEL_H
#define RPI_BACKEND_CPU_GEMM_KERNEL_H

#include <stdint.h>

#include "core/dtype.h"

enum { RPI_GEMM_MAX_MR = 12, RPI_GEMM_MAX_NR = 32, RPI_GEMM_SKINNY = 8 };

/* Products with up to RPI_GEMM_SKINNY rows read x as [k][mx]: mx floats at a time, zeros past the rows
 * that exist. mx is 1, 2, 4 or 8. */
static inline int rpi_gemm_skinny_rows(int m) { return m <= 2 ? m : m <= 4 ? 4 : 8; }

/* Rows of quantized weights, one after another. */
struct rpi_qrows {
  const uint32_t* w; /* rows of k * bits / 32 words */
  const void *scales, *biases; /* rows of k / group values of `dtype` */
  int64_t row_words, row_groups;
  int bits, group, dtype;
};

struct rpi_gemm_kernels {
  int mr, nr; /* rows and columns of a full register tile */
  /* c[0..rows) x [0..cols) = A panel x B panel: a is [k][rows], b is [k][nr], rows <= mr, cols <= nr. */
  void (*micro)(int64_t k, int rows, const float* a, const float* b, float* c, int64_t ldc, int cols);
  /* The same on unpacked operands: b has rows `b_row` apart and unit columns. Any m, n. */
  void (*direct)(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_row, int64_t a_col,
                 const float* b, int64_t b_row, float* c, int64_t ldc);
  /* b[k][nr] from rows of k values that are `row` apart (a transposed operand); cols rows, rest zero.
   * dtype is float32, float16 or bfloat16. */
  void (*pack_rows)(float* b, const void* src, int64_t row, int64_t k, int cols, int dtype);
  /* c (m x n) = x ([k][mx]) times the transpose of n rows of `dtype`; m <= RPI_GEMM_SKINNY. */
  void (*skinny)(int m, int64_t n, int64_t k, const float* x, const void* w, int64_t row, int dtype,
                 float* c, int64_t ldc);
  /* The same with quantized rows of 4 or 8 bits; k is a multiple of the group. */
  void (*skinny_q)(int m, int64_t n, int64_t k, const float* x, const struct rpi_qrows* q, float* c,
                   int64_t ldc);
  /* dst[i] = fma(q[i], scale, bias) for n values (a multiple of 32) of one row from value 0, with one
   * scale and bias for every 32. */
  void (*dequantize)(float* dst, const uint32_t* w, int64_t n, int bits, const float* scales,
                     const float* biases);
  /* acc[j] = fma(x, w[j], acc[j]) */
  void (*add_scaled)(float* acc, const float* w, int64_t n, float x);
  int double_nr, complex_nr;
  /* c[0..m) x [0..cols) = A x one panel of B: double_nr columns that can be read (b[k][...], rows `b_row`
   * apart), or complex_nr columns as [k][2][complex_nr] floats, real parts first. */
  void (*rows_double)(int64_t m, int64_t k, const double* a, int64_t a_row, int64_t a_col,
                      const double* b, int64_t b_row, double* c, int64_t ldc, int cols);
  void (*rows_complex)(int64_t m, int64_t k, const struct rpi_c64* a, int64_t a_row, int64_t a_col,
                       const float* b, struct rpi_c64* c, int64_t ldc, int cols);
};

extern const struct rpi_gemm_kernels rpi_gemm_base, rpi_gemm_avx2, rpi_gemm_avx512;
const struct rpi_gemm_kernels* rpi_gemm_kernels(void); /* for the instruction set in use */

#endif
