/* The float32 kernels, once per instruction set. The including file sets GEMM_ISA to 0 (plain C), 2 or
 * 512, and GEMM_NAME to the table it defines. Every lane does the same chain of fma in every variant. */
#include <math.h>
#include <string.h>

#include "backend/cpu/gemm_kernel.h"
#include "backend/cpu/gemm_vector.h"

enum { NR = VL * NV };

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

RPI_INLINE void pack_typed(float* b, const void* src, int64_t row, int64_t k, int cols,
                           const int dtype) {
  for (int v = 0; v < NV; v++) {
    int left = cols - v * VL;
    for (int64_t i = 0; i < k; i += VL) {
      int n = at_most(k - i, VL);
      vf t[VL];
      if (left > 0)
        load_transposed(t, src, v * VL * row + i, row, left < VL ? left : VL, n, dtype);
      else
        for (int j = 0; j < VL; j++) t[j] = v_zero();
      for (int j = 0; j < n; j++) v_store(b + (i + j) * NR + v * VL, t[j]);
    }
  }
}

static void pack_rows(float* b, const void* src, int64_t row, int64_t k, int cols, int dtype) {
  switch (dtype) {
    case RPI_FLOAT32: pack_typed(b, src, row, k, cols, RPI_FLOAT32); break;
    case RPI_FLOAT16: pack_typed(b, src, row, k, cols, RPI_FLOAT16); break;
    default: pack_typed(b, src, row, k, cols, RPI_BFLOAT16); break;
  }
}

/* nb blocks of VL rows at a time keep enough independent chains in flight. x is [k][mx]. */
RPI_INLINE void skinny_blocks(const int mx, const int nb, const int dtype, int m, int rows, int64_t k,
                              const float* x, const void* w, int64_t at, int64_t row, float* c,
                              int64_t ldc) {
  vf acc[8][4], t[4][VL];
  for (int r = 0; r < mx; r++)
    for (int b = 0; b < nb; b++) acc[r][b] = v_zero();
  for (int64_t i = 0; i < k; i += VL) {
    int n = at_most(k - i, VL);
    for (int b = 0; b < nb; b++) {
      int first = b * VL < rows ? b * VL : rows - 1;
      load_transposed(t[b], w, at + first * row + i, row, at_most(rows - first, VL), n, dtype);
    }
    for (int j = 0; j < n; j++, x += mx)
      for (int r = 0; r < mx; r++) {
        vf xv = v_set1(x[r]);
        for (int b = 0; b < nb; b++) acc[r][b] = v_fma(xv, t[b][j], acc[r][b]);
      }
  }
  for (int r = 0; r < mx; r++)
    for (int b = 0; b < nb; b++)
      if (r < m && b * VL < rows)
        v_store_part(c + r * ldc + b * VL, acc[r][b], at_most(rows - b * VL, VL));
}

/* Blocks of rows of W at once for mx rows of x: what fits the registers. */
#if GEMM_ISA == 512
#define BLOCKS(mx) ((mx) == 8 ? 2 : 4)
#else
#define BLOCKS(mx) ((mx) == 8 ? 1 : (mx) == 4 ? 2 : 4)
#endif

RPI_INLINE void skinny_typed(const int mx, const int dtype, int m, int64_t n, int64_t k,
                             const float* x, const void* w, int64_t row, float* c, int64_t ldc) {
  const int step = BLOCKS(mx) * VL;
  for (int64_t j = 0; j < n; j += step)
    skinny_blocks(mx, BLOCKS(mx), dtype, m, at_most(n - j, step), k, x, w, j * row, row, c + j, ldc);
}

#define FOR_DTYPE(mx)                                                                      \
  switch (dtype) {                                                                         \
    case RPI_FLOAT32: skinny_typed(mx, RPI_FLOAT32, m, n, k, x, w, row, c, ldc); break;    \
    case RPI_FLOAT16: skinny_typed(mx, RPI_FLOAT16, m, n, k, x, w, row, c, ldc); break;    \
    default: skinny_typed(mx, RPI_BFLOAT16, m, n, k, x, w, row, c, ldc); break;            \
  }

static void skinny(int m, int64_t n, int64_t k, const float* x, const void* w, int64_t row, int dtype,
                   float* c, int64_t ldc) {
  switch (rpi_gemm_skinny_rows(m)) {
    case 1: FOR_DTYPE(1) break;
    case 2: FOR_DTYPE(2) break;
    case 4: FOR_DTYPE(4) break;
    default: FOR_DTYPE(8) break;
  }
}

static void add_scaled(float* restrict acc, const float* restrict w, int64_t n, float x) {
  for (int64_t j = 0; j < n; j++) acc[j] = RP_FMAF(x, w[j], acc[j]);
}

#include "backend/cpu/gemm_wide.inc.h"
#include "backend/cpu/qmm_loops.inc.h"

const struct rpi_gemm_kernels GEMM_NAME = {.mr = MR,
                                           .nr = NR,
                                           .micro = micro,
                                           .direct = direct,
                                           .pack_rows = pack_rows,
                                           .skinny = skinny,
                                           .skinny_q = skinny_q,
                                           .dequantize = dequantize,
                                           .add_scaled = add_scaled,
                                           .double_nr = DOUBLE_NR,
                                           .complex_nr = VL,
                                           .rows_double = rows_double,
                                           .rows_complex = rows_complex};
