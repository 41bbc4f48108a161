/* Matrix products.
 *
 * The one order of summation: every output element is the chain acc = fma(a[m,k], b[k,n], acc) over
 * k = 0, 1, ..., K-1 from acc = 0, in float32 (float64 for float64). Half formats are widened exactly
 * and the result is rounded once. SIMD lanes run across outputs, never across k, and K is never split
 * into partial sums, so the bits do not depend on M, N, strides, packing, threads or instruction set.
 * Integers wrap. complex64: re = fma(-ai, bi, fma(ar, br, re)), im = fma(ai, br, fma(ar, bi, im)). */
#ifndef RPI_BACKEND_CPU_GEMM_H
#define RPI_BACKEND_CPU_GEMM_H

#include <stdbool.h>
#include <stdint.h>

/* out[m,n] = sum_k a[m,k] b[k,n], or with `c`: alpha * sum + beta * c[m,n], where the sum is not rounded
 * in between (fma(beta, c, alpha * sum) in float32, rounded once). Strides count elements and may be zero
 * or negative; out is row-major with rows `ldo` apart and overlaps nothing. */
struct rpi_gemm {
  int dtype; /* of all operands */
  int64_t m, n, k;
  const void *a, *b, *c; /* c may be NULL */
  int64_t a_row, a_col, b_row, b_col, c_row, c_col;
  void* out;
  int64_t ldo;
  double alpha, beta;
};

/* 0, or out of memory. Uses the thread pool where the product is large. */
int rpi_gemm(const struct rpi_gemm* g);

/* The same with B made panel by panel instead of read: fill(source, j, cols, nr, b, scratch) writes
 * columns j ... j + cols of B as b[k][nr], zero beyond; scratch holds nr * RPI_GEMM_PIECE floats. g->b is
 * not used. */
enum { RPI_GEMM_PIECE = 256 };
typedef void rpi_gemm_fill(const void* source, int64_t j, int cols, int nr, float* b,
                           float* scratch);
int rpi_gemm_with_panels(const struct rpi_gemm* g, rpi_gemm_fill* fill, const void* source);

/* Rows of `a` as the kernels for few rows read them (gemm_kernel.h): [k][mx] floats. NULL: out of memory. */
float* rpi_gemm_interleave(int dtype, int64_t m, int64_t k, const void* a, int64_t row, int64_t col);

#endif
