/* Row by row: acc[n] takes a[m,k] * b[k,n] for k in order, over a block of columns. The loops are for the
 * vectorizer; the chain of each element is the one of gemm.h. */
#include "backend/cpu/gemm_plain.h"

#include <string.h>

#include "base/thread.h"
#include "core/dtype.h"

enum { COLUMNS = 256 };

/* One row of one block of columns. */
typedef void row_func(const struct rpi_gemm* g, int64_t row, int64_t col, int64_t n);

#define ROW_FUNC(name, T, MULTIPLY, SCALE)                                                      \
  static void name(const struct rpi_gemm* g, int64_t row, int64_t col, int64_t n) {             \
    T acc[COLUMNS];                                                                             \
    const T* a = (const T*)g->a + row * g->a_row;                                               \
    const T* b = (const T*)g->b + col * g->b_col;                                               \
    T* out = (T*)g->out + row * g->ldo + col;                                                   \
    for (int64_t j = 0; j < n; j++) acc[j] = 0;                                                 \
    for (int64_t i = 0; i < g->k; i++, b += g->b_row) {                                         \
      T x = a[i * g->a_col];                                                                    \
      if (g->b_col == 1)                                                                        \
        for (int64_t j = 0; j < n; j++) acc[j] = MULTIPLY(x, b[j], acc[j]);                     \
      else                                                                                      \
        for (int64_t j = 0; j < n; j++) acc[j] = MULTIPLY(x, b[j * g->b_col], acc[j]);          \
    }                                                                                           \
    if (g->c) {                                                                                 \
      const T* c = (const T*)g->c + row * g->c_row + col * g->c_col;                            \
      for (int64_t j = 0; j < n; j++) acc[j] = SCALE(acc[j], c[j * g->c_col]);                  \
    }                                                                                           \
    memcpy(out, acc, sizeof *acc * (size_t)n);                                                  \
  }

/* In the unsigned type, so that wrapping is defined for signed integers too. */
#define WRAP(x, y, acc) ((acc) + (x) * (y))
/* uint16_t operands would be multiplied as int, which can overflow. */
#define WRAP_16(x, y, acc) (uint16_t)((acc) + (uint32_t)(x) * (y))
#define SCALE_INTEGER(sum, c) ((sum) * (uint64_t)(int64_t)g->alpha + (c) * (uint64_t)(int64_t)g->beta)
#define OR(x, y, acc) ((acc) | ((x) & (y)))
#define OR_C(sum, c) (((sum) && g->alpha != 0) || ((c) && g->beta != 0))

ROW_FUNC(row_8, uint8_t, WRAP, SCALE_INTEGER)
ROW_FUNC(row_16, uint16_t, WRAP_16, SCALE_INTEGER)
ROW_FUNC(row_32, uint32_t, WRAP, SCALE_INTEGER)
ROW_FUNC(row_64, uint64_t, WRAP, SCALE_INTEGER)
ROW_FUNC(row_bool, uint8_t, OR, OR_C)

static row_func* row_for(int dtype) {
  if (dtype == RPI_BOOL) return row_bool;
  switch (rpi_dtype_size(dtype)) {
    case 1: return row_8;
    case 2: return row_16;
    case 4: return row_32;
    default: return row_64;
  }
}

struct plain {
  const struct rpi_gemm* g;
  row_func* row;
  int64_t blocks; /* of columns in a row */
};

static void run_block(void* ctx, int64_t chunk) {
  const struct plain* p = ctx;
  int64_t row = chunk / p->blocks, col = chunk % p->blocks * COLUMNS;
  int64_t left = p->g->n - col;
  p->row(p->g, row, col, left < COLUMNS ? left : COLUMNS);
}

int rpi_gemm_plain(const struct rpi_gemm* g) {
  struct plain p = {g, row_for(g->dtype), (g->n + COLUMNS - 1) / COLUMNS};
  int64_t chunks = p.blocks * g->m;
  if (g->m * g->n * g->k > 32768)
    rpi_parallel(chunks, run_block, &p);
  else
    for (int64_t i = 0; i < chunks; i++) run_block(&p, i);
  return 0;
}
