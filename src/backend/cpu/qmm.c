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

enum { RUN = RPI_GEMM_PIECE, CHUNK_ROWS = 64, CHUNK_COLUMNS = 256 };

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- weights as float32 ---------------------------------------------------------------------- */

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
  rpi_gemm_kernels()->dequantize(dst, words, n, w->bits, scales, biases);
}

void rpi_qmm_row(const struct rpi_qweights* w, int64_t row, int64_t from, int64_t n, float* dst) {
  for (int64_t i = 0; i < n; i += RUN)
    dequantize_run(w, row, from + i, smaller(n - i, RUN), dst + i);
}

/* Panels of W^T: rows of W are columns of B. */
static void fill_transposed(const void* source, int64_t j, int cols, int nr, float* b,
                            float* scratch) {
  const struct rpi_qweights* w = source;
  for (int64_t at = 0; at < w->cols; at += RUN) {
    int64_t n = smaller(w->cols - at, RUN);
    for (int c = 0; c < cols; c++) dequantize_run(w, j + c, at, n, scratch + c * RUN);
    rpi_gemm_kernels()->pack_rows(b + at * nr, scratch, RUN, n, cols, RPI_FLOAT32);
  }
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
  const struct rpi_gemm_kernels* kern;
  int m, dtype;
  const float* x; /* [k][mx] */
  void* out;
  int64_t ldo;
  _Atomic(int) failed;
};

/* m rows of n sums to columns j ... of the result. */
static void store_sums(const struct few* f, int64_t j, int64_t n, const float* sums, int64_t ld) {
  int64_t item = (int64_t)rpi_dtype_size(f->dtype);
  for (int r = 0; r < f->m; r++)
    rpi_cpu_from_f32((char*)f->out + (r * f->ldo + j) * item, f->dtype, sums + r * ld, n);
}

/* Rows j ... j + n of W as they are. */
static void multiply_packed(const struct few* f, int64_t j, int64_t n, float* out, int64_t ldo) {
  const struct rpi_qweights* w = f->w;
  int64_t words = w->cols * w->bits / 32, groups = w->cols / w->group;
  int64_t at = j * groups * (int64_t)rpi_dtype_size(w->scale_dtype);
  struct rpi_qrows q = {.w = w->w + j * words, .scales = (const char*)w->scales + at,
                        .biases = (const char*)w->biases + at, .row_words = words,
                        .row_groups = groups, .bits = w->bits, .group = w->group,
                        .dtype = w->scale_dtype};
  f->kern->skinny_q(f->m, n, w->cols, f->x, &q, out, ldo);
}

/* Rows j ... j + n of W as floats: the widths whose values straddle words, which are rare. */
static bool multiply_unpacked(const struct few* f, int64_t j, int64_t n, float* out, int64_t ldo) {
  int64_t cols = f->w->cols;
  float* wide = rpi_alloc(sizeof *wide * (size_t)(n * cols));
  if (!wide) return false;
  for (int64_t r = 0; r < n; r++) rpi_qmm_row(f->w, j + r, 0, cols, wide + r * cols);
  f->kern->skinny(f->m, n, cols, f->x, wide, cols, RPI_FLOAT32, out, ldo);
  rpi_free(wide);
  return true;
}

static void multiply_rows(void* ctx, int64_t chunk) {
  struct few* f = ctx;
  float tile[RPI_GEMM_SKINNY * CHUNK_ROWS];
  int64_t j = chunk * CHUNK_ROWS, n = smaller(f->w->rows - j, CHUNK_ROWS);
  bool in_place = f->dtype == RPI_FLOAT32;
  float* out = in_place ? (float*)f->out + j : tile;
  int64_t ldo = in_place ? f->ldo : CHUNK_ROWS;
  if (f->w->bits == 4 || f->w->bits == 8)
    multiply_packed(f, j, n, out, ldo);
  else if (!multiply_unpacked(f, j, n, out, ldo))
    f->failed = 1;
  if (!in_place) store_sums(f, j, n, tile, CHUNK_ROWS);
}

/* Columns of W, row after row. */
static void multiply_columns(void* ctx, int64_t chunk) {
  struct few* f = ctx;
  float sums[RPI_GEMM_SKINNY * CHUNK_COLUMNS] = {0}, part[CHUNK_COLUMNS];
  int64_t j = chunk * CHUNK_COLUMNS, n = smaller(f->w->cols - j, CHUNK_COLUMNS);
  int mx = rpi_gemm_skinny_rows(f->m);
  for (int64_t i = 0; i < f->w->rows; i++) {
    dequantize_run(f->w, i, j, n, part);
    for (int r = 0; r < f->m; r++)
      f->kern->add_scaled(sums + r * CHUNK_COLUMNS, part, n, f->x[i * mx + r]);
  }
  store_sums(f, j, n, sums, CHUNK_COLUMNS);
}

static int multiply_few(struct few* f, bool transpose, int64_t x_row, int64_t x_col, const void* x) {
  int64_t k = transpose ? f->w->cols : f->w->rows, n = transpose ? f->w->rows : f->w->cols;
  int64_t width = transpose ? CHUNK_ROWS : CHUNK_COLUMNS, chunks = (n + width - 1) / width;
  void (*fn)(void*, int64_t) = transpose ? multiply_rows : multiply_columns;
  bool in_place = f->dtype == RPI_FLOAT32 && f->m == 1 && x_col == 1;
  float* wide = in_place ? NULL : rpi_gemm_interleave(f->dtype, f->m, k, x, x_row, x_col);
  if (!in_place && !wide) return rpi_fail_memory("a quantized product", sizeof *wide * (size_t)k);
  f->x = in_place ? x : wide;
  if (n * k > 32768)
    rpi_parallel(chunks, fn, f);
  else
    for (int64_t i = 0; i < chunks; i++) fn(f, i);
  rpi_free(wide);
  return f->failed ? rpi_fail_memory("a quantized product", sizeof *wide * (size_t)k) : 0;
}

int rpi_qmm(const struct rpi_qweights* w, bool transpose, int dtype, int64_t m, const void* x,
            int64_t x_row, int64_t x_col, void* out, int64_t ldo) {
  int64_t n = transpose ? w->rows : w->cols, k = transpose ? w->cols : w->rows;
  if (m == 0 || n == 0) return 0;
  struct rpi_gemm g = {.dtype = dtype, .m = m, .n = n, .k = k, .a = x, .a_row = x_row,
                       .a_col = x_col, .out = out, .ldo = ldo};
  if (k == 0) return rpi_gemm(&g);
  if (m > RPI_GEMM_SKINNY)
    return rpi_gemm_with_panels(&g, transpose ? fill_transposed : fill_straight, w);
  struct few f = {.w = w, .kern = rpi_gemm_kernels(), .m = (int)m, .dtype = dtype, .out = out,
                  .ldo = ldo};
  return multiply_few(&f, transpose, x_row, x_col, x);
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
