/* Quantized products: few rows read the packed weights where they lie, more go through panels. */
#include "backend/cpu/qmm.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/elem.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/gemm_kernel.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/dtype.h"
#include "op/scalar.h"

enum { RUN = 256, CHUNK_ROWS = 64 };

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- weights as float32 ---------------------------------------------------------------------- */

/* Value i of a bit stream; it spans at most two bytes. */
static unsigned read_bits(const uint8_t* p, int64_t i, int bits) {
  int64_t at = i * bits;
  unsigned two = p[at / 8];
  if (at % 8 + bits > 8) two |= (unsigned)p[at / 8 + 1] << 8;
  return two >> (at % 8) & ((1u << bits) - 1);
}

static float load_scale(const void* p, int64_t i, int dtype) {
  if (dtype == RPI_FLOAT32) return ((const float*)p)[i];
  uint16_t h = ((const uint16_t*)p)[i];
  return dtype == RPI_FLOAT16 ? rp_f16_to_f32(h) : rp_bf16_to_f32(h);
}

/* At most RUN columns, from a multiple of 32: blocks of 32 lie within one group and whole words. */
static void dequantize_run(const struct rpi_qweights* w, int64_t row, int64_t from, int64_t n,
                           float* dst) {
  float scales[RUN / 32], biases[RUN / 32];
  int64_t first = row * (w->cols / w->group);
  const uint32_t* words = w->w + row * (w->cols * w->bits / 32) + from / 32 * w->bits;
  for (int64_t i = 0; i < n / 32; i++) {
    scales[i] = load_scale(w->scales, first + (from + 32 * i) / w->group, w->scale_dtype);
    biases[i] = load_scale(w->biases, first + (from + 32 * i) / w->group, w->scale_dtype);
  }
  if (w->bits == 4 || w->bits == 8) {
    rpi_gemm_kernels()->dequantize(dst, words, n, w->bits, 32, scales, biases);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    dst[i] = RP_FMAF((float)read_bits((const uint8_t*)words, i, w->bits), scales[i / 32],
                     biases[i / 32]);
}

void rpi_qmm_row(const struct rpi_qweights* w, int64_t row, int64_t from, int64_t n, float* dst) {
  for (int64_t i = 0; i < n; i += RUN)
    dequantize_run(w, row, from + i, smaller(n - i, RUN), dst + i);
}

/* Panels of W^T: rows of W are columns of B. */
static void fill_transposed(const void* source, int64_t j, int cols, int nr, float* b,
                            float* scratch) {
  const struct rpi_qweights* w = source;
  (void)nr;
  for (int c = 0; c < cols; c++) rpi_qmm_row(w, j + c, 0, w->cols, scratch + c * w->cols);
  rpi_gemm_kernels()->pack_rows(b, scratch, w->cols, w->cols, cols);
}

/* Panels of W: columns j ... of every row, rounded out to where values can be decoded. */
static void fill_straight(const void* source, int64_t j, int cols, int nr, float* b,
                          float* scratch) {
  const struct rpi_qweights* w = source;
  int64_t from = j / 32 * 32, n = (j + cols - from + 31) / 32 * 32;
  (void)scratch;
  for (int64_t i = 0; i < w->rows; i++, b += nr) {
    float part[64];
    rpi_qmm_row(w, i, from, n, part);
    memcpy(b, part + (j - from), sizeof *b * (size_t)cols);
    memset(b + cols, 0, sizeof *b * (size_t)(nr - cols));
  }
}

/* ---- few rows -------------------------------------------------------------------------------- */

struct few {
  const struct rpi_qweights* w;
  struct rpi_qrows rows;
  int m;
  const float* x;
  int64_t ldx;
  float* out;
  int64_t ldo;
};

static void few_chunk(void* ctx, int64_t chunk) {
  const struct few* f = ctx;
  int64_t j = chunk * CHUNK_ROWS, n = smaller(f->w->rows - j, CHUNK_ROWS);
  struct rpi_qrows q = f->rows;
  size_t item = rpi_dtype_size(q.dtype);
  q.w += j * q.row_words;
  q.scales = (const char*)q.scales + j * q.row_groups * (int64_t)item;
  q.biases = (const char*)q.biases + j * q.row_groups * (int64_t)item;
  rpi_gemm_kernels()->skinny_q(f->m, n, f->w->cols, f->x, f->ldx, &q, f->out + j, f->ldo);
}

static void multiply_few(const struct rpi_qweights* w, int m, const float* x, int64_t ldx,
                         float* out, int64_t ldo) {
  struct few f = {.w = w, .m = m, .x = x, .ldx = ldx, .out = out, .ldo = ldo};
  f.rows = (struct rpi_qrows){.w = w->w, .scales = w->scales, .biases = w->biases,
                              .row_words = w->cols * w->bits / 32,
                              .row_groups = w->cols / w->group, .bits = w->bits,
                              .group = w->group, .dtype = w->scale_dtype};
  int64_t chunks = (w->rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
  if (w->rows * w->cols > 32768)
    rpi_parallel(chunks, few_chunk, &f);
  else
    for (int64_t i = 0; i < chunks; i++) few_chunk(&f, i);
}

/* Half formats: widen x, multiply, round. */
static int multiply_few_half(const struct rpi_qweights* w, int dtype, int m, const void* x,
                             int64_t x_row, void* out, int64_t ldo) {
  size_t floats = (size_t)m * (size_t)(w->cols + w->rows);
  float* wide = rpi_alloc(sizeof *wide * floats + 1);
  if (!wide) return rpi_fail_memory("a quantized product", sizeof *wide * floats);
  float* sums = wide + m * w->cols;
  for (int r = 0; r < m; r++)
    rpi_cpu_to_f32(wide + r * w->cols, (const uint16_t*)x + r * x_row, dtype, w->cols);
  multiply_few(w, m, wide, w->cols, sums, w->rows);
  for (int r = 0; r < m; r++)
    rpi_cpu_from_f32((uint16_t*)out + r * ldo, dtype, sums + r * w->rows, w->rows);
  rpi_free(wide);
  return 0;
}

int rpi_qmm(const struct rpi_qweights* w, bool transpose, int dtype, int64_t m, const void* x,
            int64_t x_row, int64_t x_col, void* out, int64_t ldo) {
  int64_t n = transpose ? w->rows : w->cols, k = transpose ? w->cols : w->rows;
  bool few = transpose && m <= RPI_GEMM_SKINNY && x_col == 1 && (w->bits == 4 || w->bits == 8);
  if (m == 0 || n == 0) return 0;
  if (few && dtype == RPI_FLOAT32) {
    multiply_few(w, (int)m, x, x_row, out, ldo);
    return 0;
  }
  if (few) return multiply_few_half(w, dtype, (int)m, x, x_row, out, ldo);
  struct rpi_gemm g = {.dtype = dtype, .m = m, .n = n, .k = k, .a = x, .a_row = x_row,
                       .a_col = x_col, .out = out, .ldo = ldo};
  if (k == 0) return rpi_gemm(&g);
  return rpi_gemm_with_panels(&g, transpose ? fill_transposed : fill_straight, w);
}

/* ---- quantization ---------------------------------------------------------------------------- */

static void write_bits(uint8_t* p, int64_t i, int bits, unsigned q) {
  int64_t at = i * bits;
  unsigned two = q << (at % 8);
  p[at / 8] |= (uint8_t)two;
  if (at % 8 + bits > 8) p[at / 8 + 1] |= (uint8_t)(two >> 8);
}

/* Scale and bias of one group. */
static void fit_group(const float* src, int group, float levels, float* scale, float* bias) {
  float low = src[0], high = src[0];
  for (int i = 1; i < group; i++) {
    low = src[i] < low ? src[i] : low;
    high = src[i] > high ? src[i] : high;
  }
  bool at_low = fabsf(low) > fabsf(high);
  float s = (high - low) / levels;
  if (!(s > 1e-7f)) s = 1e-7f;
  s = at_low ? s : -s;
  float edge = at_low ? low : high, q0 = roundf(edge / s);
  *scale = q0 != 0 ? edge / q0 : s;
  *bias = q0 != 0 ? edge : 0;
}

void rpi_quantize_row(const float* src, int64_t n, int bits, int group, uint32_t* packed,
                      float* scales, float* biases) {
  float levels = (float)((1 << bits) - 1);
  for (int64_t g = 0; g < n / group; g++, src += group) {
    fit_group(src, group, levels, &scales[g], &biases[g]);
    for (int i = 0; i < group; i++) {
      float q = roundf((src[i] - biases[g]) / scales[g]);
      q = q > 0 ? (q < levels ? q : levels) : 0;
      write_bits((uint8_t*)packed, g * group + i, bits, (unsigned)q);
    }
  }
}
