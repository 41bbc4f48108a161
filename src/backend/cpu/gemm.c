/* Matrix products: which path a product takes. All paths do the same chain for every element.
 *
 * Small float32 products and those with one or two rows run on the operands where they lie. Others are
 * packed: A into panels of a few rows, B panel by panel by the thread that uses it. */
#include "backend/cpu/gemm.h"

#include <string.h>

#include "backend/cpu/elem.h"
#include "backend/cpu/gemm_kernel.h"
#include "backend/cpu/gemm_plain.h"
#include "backend/cpu/isa.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/dtype.h"
#include "op/scalar.h"

const struct rpi_gemm_kernels* rpi_gemm_kernels(void) {
  switch (rpi_isa()) {
#if defined(__x86_64__)
    case RPI_ISA_AVX512: return &rpi_gemm_avx512;
    case RPI_ISA_AVX2: return &rpi_gemm_avx2;
#endif
    default: return &rpi_gemm_base;
  }
}

enum { INLINE_WORK = 32768, ROW_BLOCK = 384 };

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static float load_float(const void* p, int64_t i, int dtype) {
  if (dtype == RPI_FLOAT32) return ((const float*)p)[i];
  uint16_t h = ((const uint16_t*)p)[i];
  return dtype == RPI_FLOAT16 ? rp_f16_to_f32(h) : rp_bf16_to_f32(h);
}

/* ---- epilogue -------------------------------------------------------------------------------- */

/* From float32 sums to the result: alpha, beta, and one rounding. */
static void finish_row(const struct rpi_gemm* g, int64_t row, int64_t col, int64_t n, float* sum) {
  if (g->c) {
    float alpha = (float)g->alpha, beta = (float)g->beta;
    int64_t at = row * g->c_row + col * g->c_col;
    for (int64_t j = 0; j < n; j++)
      sum[j] = RP_FMAF(beta, load_float(g->c, at + j * g->c_col, g->dtype), alpha * sum[j]);
  }
  char* out = (char*)g->out + (row * g->ldo + col) * (int64_t)rpi_dtype_size(g->dtype);
  if ((void*)out != (void*)sum) rpi_cpu_from_f32(out, g->dtype, sum, n);
}

static bool needs_finish(const struct rpi_gemm* g) { return g->c || g->dtype != RPI_FLOAT32; }

/* ---- packing --------------------------------------------------------------------------------- */

struct packed {
  const struct rpi_gemm* g;
  const struct rpi_gemm_kernels* kern;
  float* a; /* panels of mr rows, one after another: [k][mr], the last one narrower */
  int64_t row_blocks, col_panels;
  _Atomic(int) failed;
  /* B panel j as [k][nr]; `scratch` holds nr * k floats. */
  void (*pack_b)(const struct packed* p, int64_t j, int cols, float* b, float* scratch);
  const void* source; /* for pack_b */
};

static void pack_a_panel(void* ctx, int64_t panel) {
  const struct packed* p = ctx;
  const struct rpi_gemm* g = p->g;
  int64_t first = panel * p->kern->mr;
  int rows = (int)smaller(g->m - first, p->kern->mr);
  float* out = p->a + first * g->k;
  int64_t base = first * g->a_row;
  if (g->dtype == RPI_FLOAT32) {
    const float* src = (const float*)g->a + base;
    for (int64_t i = 0; i < g->k; i++)
      for (int r = 0; r < rows; r++) out[i * rows + r] = src[r * g->a_row + i * g->a_col];
    return;
  }
  for (int64_t i = 0; i < g->k; i++)
    for (int r = 0; r < rows; r++)
      out[i * rows + r] = load_float(g->a, base + r * g->a_row + i * g->a_col, g->dtype);
}

/* Rows of B that lie one after another. */
static void pack_b_columns(const struct packed* p, int64_t j, int cols, float* b) {
  const struct rpi_gemm* g = p->g;
  int nr = p->kern->nr;
  size_t item = rpi_dtype_size(g->dtype);
  for (int64_t i = 0; i < g->k; i++, b += nr) {
    const char* src = (const char*)g->b + (i * g->b_row + j) * (int64_t)item;
    rpi_cpu_to_f32(b, src, g->dtype, cols);
    for (int c = cols; c < nr; c++) b[c] = 0;
  }
}

static void pack_b_strided(const struct packed* p, int64_t j, int cols, float* b) {
  const struct rpi_gemm* g = p->g;
  int nr = p->kern->nr;
  for (int64_t i = 0; i < g->k; i++, b += nr)
    for (int c = 0; c < nr; c++)
      b[c] = c < cols ? load_float(g->b, i * g->b_row + (j + c) * g->b_col, g->dtype) : 0;
}

static void pack_dense_b(const struct packed* p, int64_t j, int cols, float* b, float* scratch) {
  const struct rpi_gemm* g = p->g;
  if (g->b_row == 1 && g->dtype == RPI_FLOAT32) {
    p->kern->pack_rows(b, (const float*)g->b + j * g->b_col, g->b_col, g->k, cols);
  } else if (g->b_row == 1) {
    for (int c = 0; c < cols; c++)
      rpi_cpu_to_f32(scratch + c * g->k, (const uint16_t*)g->b + (j + c) * g->b_col, g->dtype, g->k);
    p->kern->pack_rows(b, scratch, g->k, g->k, cols);
  } else if (g->b_col == 1) {
    pack_b_columns(p, j, cols, b);
  } else {
    pack_b_strided(p, j, cols, b);
  }
}

/* One block of rows against one panel of columns. */
static void multiply_block(const struct packed* p, int64_t first, int64_t rows, int64_t col,
                           int cols, const float* b) {
  const struct rpi_gemm* g = p->g;
  float tile[12 * RPI_GEMM_MAX_NR];
  bool finish = needs_finish(g);
  for (int64_t i = first; i < first + rows; i += p->kern->mr) {
    int n = (int)smaller(first + rows - i, p->kern->mr);
    float* c = finish ? tile : (float*)g->out + i * g->ldo + col;
    int64_t ldc = finish ? RPI_GEMM_MAX_NR : g->ldo;
    p->kern->micro(g->k, n, p->a + i * g->k, b, c, ldc, cols);
    for (int r = 0; r < n && finish; r++) finish_row(g, i + r, col, cols, tile + r * ldc);
  }
}

static void multiply_panel(void* ctx, int64_t chunk) {
  struct packed* p = ctx;
  const struct rpi_gemm* g = p->g;
  int64_t panel = chunk / p->row_blocks, block = chunk % p->row_blocks;
  int64_t col = panel * p->kern->nr, first = block * ROW_BLOCK;
  int cols = (int)smaller(g->n - col, p->kern->nr);
  size_t floats = (size_t)(g->k * p->kern->nr);
  float* b = rpi_alloc(sizeof *b * 2 * floats + 1);
  if (!b) {
    p->failed = 1;
    return;
  }
  p->pack_b(p, col, cols, b, b + floats);
  multiply_block(p, first, smaller(g->m - first, ROW_BLOCK), col, cols, b);
  rpi_free(b);
}

/* ROW_BLOCK is a multiple of every mr, so panels of A do not straddle blocks. */
static int run_packed(struct packed* p) {
  const struct rpi_gemm* g = p->g;
  int64_t a_panels = (g->m + p->kern->mr - 1) / p->kern->mr;
  size_t bytes = sizeof *p->a * (size_t)(g->m * g->k);
  p->row_blocks = (g->m + ROW_BLOCK - 1) / ROW_BLOCK;
  p->col_panels = (g->n + p->kern->nr - 1) / p->kern->nr;
  p->a = rpi_alloc(bytes + 1);
  if (!p->a) return rpi_fail_memory("a matrix product", bytes);
  rpi_parallel(a_panels, pack_a_panel, p);
  rpi_parallel(p->row_blocks * p->col_panels, multiply_panel, p);
  rpi_free(p->a);
  return p->failed ? rpi_fail_memory("a matrix product", bytes) : 0;
}

struct filler {
  rpi_gemm_fill* fill;
  const void* source;
};

static void pack_filled_b(const struct packed* p, int64_t j, int cols, float* b, float* scratch) {
  const struct filler* f = p->source;
  f->fill(f->source, j, cols, p->kern->nr, b, scratch);
}

int rpi_gemm_with_panels(const struct rpi_gemm* g, rpi_gemm_fill* fill, const void* source) {
  struct filler f = {fill, source};
  struct packed p = {.g = g, .kern = rpi_gemm_kernels(), .pack_b = pack_filled_b, .source = &f};
  return run_packed(&p);
}

/* ---- products with few rows ------------------------------------------------------------------ */

struct skinny {
  const struct rpi_gemm* g;
  const struct rpi_gemm_kernels* kern;
  int64_t columns; /* in one chunk */
  bool by_rows;    /* B is a transpose: its columns lie one after another */
};

static void skinny_chunk(void* ctx, int64_t chunk) {
  const struct skinny* s = ctx;
  const struct rpi_gemm* g = s->g;
  int64_t j = chunk * s->columns, n = smaller(g->n - j, s->columns);
  float* out = (float*)g->out + j;
  if (s->by_rows)
    s->kern->skinny((int)g->m, n, g->k, g->a, g->a_row, (const float*)g->b + j * g->b_col, g->b_col,
                    out, g->ldo);
  else
    s->kern->direct(g->m, n, g->k, g->a, g->a_row, g->a_col, (const float*)g->b + j, g->b_row, out,
                    g->ldo);
  for (int64_t r = 0; r < g->m && g->c; r++) finish_row(g, r, j, n, out + r * g->ldo);
}

static bool is_unit(int64_t stride, int64_t extent) { return stride == 1 || extent == 1; }

/* float32 on the operands where they lie. */
static bool run_in_place(const struct rpi_gemm* g) {
  struct skinny s = {g, rpi_gemm_kernels(), 256, false};
  bool rows = g->b_row == 1 && g->m <= RPI_GEMM_SKINNY && is_unit(g->a_col, g->k);
  bool columns = is_unit(g->b_col, g->n);
  int64_t work = g->m * g->n * g->k;
  if (g->dtype != RPI_FLOAT32 || !(rows || (columns && (g->m <= 4 || work <= INLINE_WORK))))
    return false;
  s.by_rows = rows;
  if (work <= INLINE_WORK) {
    s.columns = g->n;
    skinny_chunk(&s, 0);
  } else {
    rpi_parallel((g->n + s.columns - 1) / s.columns, skinny_chunk, &s);
  }
  return true;
}

/* No terms at all: zeros, or beta * c. */
static void run_empty(const struct rpi_gemm* g) {
  float zero[64];
  for (int64_t i = 0; i < g->m; i++)
    for (int64_t j = 0; j < g->n; j += 64) {
      memset(zero, 0, sizeof zero);
      finish_row(g, i, j, smaller(g->n - j, 64), zero);
    }
}

static bool sums_in_float(int dtype) {
  return dtype == RPI_FLOAT32 || dtype == RPI_FLOAT16 || dtype == RPI_BFLOAT16;
}

int rpi_gemm(const struct rpi_gemm* g) {
  if (g->m == 0 || g->n == 0) return 0;
  if (!sums_in_float(g->dtype)) return rpi_gemm_plain(g);
  if (g->k == 0) {
    run_empty(g);
    return 0;
  }
  if (run_in_place(g)) return 0;
  struct packed p = {.g = g, .kern = rpi_gemm_kernels(), .pack_b = pack_dense_b};
  return run_packed(&p);
}
