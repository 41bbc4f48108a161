/* float64 and complex64 products: a panel of columns of B against all rows of A.
 *
 * The panel is packed, unless its columns lie side by side and exist in full. */
#include "backend/cpu/gemm_wide.h"

#include "backend/cpu/gemm_kernel.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/dtype.h"
#include "op/scalar.h"

enum { ROWS = 256, STACK = 512, INLINE_WORK = 16384 };

struct wide {
  const struct rpi_gemm* g;
  const struct rpi_gemm_kernels* kern;
  int64_t row_blocks;
  int nr;
  _Atomic(int) failed;
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- packing --------------------------------------------------------------------------------- */

static void pack_double(const struct rpi_gemm* g, int64_t j, int cols, int nr, double* b) {
  const double* src = (const double*)g->b + j * g->b_col;
  for (int64_t i = 0; i < g->k; i++, b += nr, src += g->b_row)
    for (int c = 0; c < nr; c++) b[c] = c < cols ? src[c * g->b_col] : 0;
}

static void pack_complex(const struct rpi_gemm* g, int64_t j, int cols, int nr, float* b) {
  const struct rpi_c64* src = (const struct rpi_c64*)g->b + j * g->b_col;
  for (int64_t i = 0; i < g->k; i++, b += 2 * nr, src += g->b_row)
    for (int c = 0; c < nr; c++) {
      struct rpi_c64 x = c < cols ? src[c * g->b_col] : (struct rpi_c64){0, 0};
      b[c] = x.re;
      b[nr + c] = x.im;
    }
}

/* ---- epilogue -------------------------------------------------------------------------------- */

static void add_double(const struct rpi_gemm* g, int64_t row, int64_t col, int64_t n) {
  double* out = (double*)g->out + row * g->ldo + col;
  const double* c = (const double*)g->c + row * g->c_row + col * g->c_col;
  for (int64_t j = 0; j < n; j++) out[j] = RP_FMA(g->beta, c[j * g->c_col], g->alpha * out[j]);
}

static void add_complex(const struct rpi_gemm* g, int64_t row, int64_t col, int64_t n) {
  struct rpi_c64* out = (struct rpi_c64*)g->out + row * g->ldo + col;
  const struct rpi_c64* c = (const struct rpi_c64*)g->c + row * g->c_row + col * g->c_col;
  float alpha = (float)g->alpha, beta = (float)g->beta;
  for (int64_t j = 0; j < n; j++) {
    out[j].re = RP_FMAF(beta, c[j * g->c_col].re, alpha * out[j].re);
    out[j].im = RP_FMAF(beta, c[j * g->c_col].im, alpha * out[j].im);
  }
}

/* ---------------------------------------------------------------------------------------------- */

static void multiply_double(const struct wide* w, int64_t row, int64_t rows, int64_t col, int cols,
                            double* b) {
  const struct rpi_gemm* g = w->g;
  const double* panel = b;
  int64_t b_row = w->nr;
  if (g->b_col == 1 && cols == w->nr) {
    panel = (const double*)g->b + col;
    b_row = g->b_row;
  } else {
    pack_double(g, col, cols, w->nr, b);
  }
  w->kern->rows_double(rows, g->k, (const double*)g->a + row * g->a_row, g->a_row, g->a_col, panel,
                       b_row, (double*)g->out + row * g->ldo + col, g->ldo, cols);
  for (int64_t i = row; i < row + rows && g->c; i++) add_double(g, i, col, cols);
}

static void multiply_complex(const struct wide* w, int64_t row, int64_t rows, int64_t col, int cols,
                             float* b) {
  const struct rpi_gemm* g = w->g;
  pack_complex(g, col, cols, w->nr, b);
  w->kern->rows_complex(rows, g->k, (const struct rpi_c64*)g->a + row * g->a_row, g->a_row, g->a_col,
                        b, (struct rpi_c64*)g->out + row * g->ldo + col, g->ldo, cols);
  for (int64_t i = row; i < row + rows && g->c; i++) add_complex(g, i, col, cols);
}

/* Both dtypes take 8 bytes. */
static void multiply_panel(void* ctx, int64_t chunk) {
  struct wide* w = ctx;
  const struct rpi_gemm* g = w->g;
  int64_t col = chunk / w->row_blocks * w->nr, row = chunk % w->row_blocks * ROWS;
  int64_t rows = smaller(g->m - row, ROWS);
  int cols = (int)smaller(g->n - col, w->nr);
  double stack[STACK];
  double* b = g->k * w->nr <= STACK ? stack : rpi_alloc(sizeof *b * (size_t)(g->k * w->nr));
  if (!b) {
    w->failed = 1;
    return;
  }
  if (g->dtype == RPI_FLOAT64)
    multiply_double(w, row, rows, col, cols, b);
  else
    multiply_complex(w, row, rows, col, cols, (float*)b);
  if (b != stack) rpi_free(b);
}

int rpi_gemm_wide(const struct rpi_gemm* g) {
  struct wide w = {.g = g, .kern = rpi_gemm_kernels(), .row_blocks = (g->m + ROWS - 1) / ROWS};
  w.nr = g->dtype == RPI_FLOAT64 ? w.kern->double_nr : w.kern->complex_nr;
  int64_t chunks = w.row_blocks * ((g->n + w.nr - 1) / w.nr);
  if (g->m * g->n * g->k > INLINE_WORK)
    rpi_parallel(chunks, multiply_panel, &w);
  else
    for (int64_t i = 0; i < chunks; i++) multiply_panel(&w, i);
  return w.failed ? rpi_fail_memory("a matrix product", sizeof(double) * (size_t)(g->k * w.nr)) : 0;
}
