/* Products with affine quantized weights, and quantization itself (MLX's format).
 *
 * A row of W is a little-endian bit stream of `bits`-bit integers (2, 3, 4, 5, 6, 8), value 0 in the
 * lowest bits; the weight is fma(q, scale, bias) in float32 with the scale and bias of its group (32, 64
 * or 128 values), widened exactly. The product then follows gemm.h, so that it equals, bit for bit in
 * float32, the product with the dequantized weights. */
#ifndef RPI_BACKEND_CPU_QMM_H
#define RPI_BACKEND_CPU_QMM_H

#include <stdbool.h>
#include <stdint.h>

struct rpi_qweights {
  const uint32_t* w; /* rows one after another, cols * bits / 32 words each */
  const void *scales, *biases; /* rows of cols / group values */
  int scale_dtype;             /* float16, float32 or bfloat16 */
  int64_t rows, cols;
  int bits, group;
};

/* out[m,n] = x[m,k] W^T (rows = n, cols = k) or, not transposed, x W (rows = k, cols = n). x and out have
 * `dtype` (float32, float16, bfloat16); out is row-major. 0, or out of memory. */
int rpi_qmm(const struct rpi_qweights* w, bool transpose, int dtype, int64_t m, const void* x,
            int64_t x_row, int64_t x_col, void* out, int64_t ldo);

/* dst = the float32 weights of row `row`, columns [from, from + n); from and n are multiples of 32. */
void rpi_qmm_row(const struct rpi_qweights* w, int64_t row, int64_t from, int64_t n, float* dst);

/* Quantize `n` values (a multiple of the group) as MLX 0.31 does: w_max and w_min of the group; the edge
 * is the one of larger magnitude; scale = max((max - min) / (2^bits - 1), 1e-7), negative if the edge is
 * the maximum; q0 = round(edge / scale); if q0 is not 0, scale = edge / q0 and bias = edge, else bias = 0;
 * q = clip(round((w - bias) / scale)), rounding half away from zero. `packed` must be zeroed. */
void rpi_quantize_row(const float* src, int64_t n, int bits, int group, uint32_t* packed,
                      float* scales, float* biases);

#endif
