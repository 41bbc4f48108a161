/* Matrix products: which path a product takes. All paths do the same chain for every element.
 *
 * Products with few rows read B where it lies; small ones copy their operands to the stack. Others are
 * packed: A into panels of a few rows, B panel by panel by the thread that uses it. */
#include "backend/cpu/gemm.h"

#include <string.h>

#include "backend/cpu/elem.h"
#include "backend/cpu/gemm_kernel.h"
#include "backend/cpu/gemm_plain.h"
#include "backend/cpu/gemm_wide.h"
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

/* PANEL_FLOATS of B stay in a core's second cache; SMALL operands are copied to the stack. */
enum { INLINE_WORK = 32768, ROW_BLOCK = 1536, PANEL_FLOATS = 1 << 16, MAX_PANELS = 8, SMALL = 1024 };

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
  if ((void*)out == (void*)sum) return;
  if (g->dtype == RPI_FLOAT32)
    memcpy(out, sum, sizeof *sum * (size_t)n);
  else
    rpi_cpu_from_f32(out, g->dtype, sum, n);
}

static bool needs_finish(const struct rpi_gemm* g) { return g->c || g->dtype != RPI_FLOAT32; }

/* ---- packing --------------------------------------------------------------------------------- */

struct packed {
  const struct rpi_gemm* g;
  const struct rpi_gemm_kernels* kern;
  float* a; /* panels of mr rows, one after another: [k][mr], the last one narrower */
  int64_t row_blocks, col_panels;
  int panels; /* of B in one chunk */
  _Atomic(int) failed;
  /* B from column j on, at most nr columns, as [k][nr]; scratch holds nr * RPI_GEMM_PIECE floats. */
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
  const char* src = (const char*)g->b + j * g->b_col * (int64_t)rpi_dtype_size(g->dtype);
  (void)scratch;
  if (g->b_row == 1)
    p->kern->pack_rows(b, src, g->b_col, g->k, cols, g->dtype);
  else if (g->b_col == 1)
    pack_b_columns(p, j, cols, b);
  else
    pack_b_strided(p, j, cols, b);
}

/* One panel of A against one panel of B. */
static void multiply_tile(const struct packed* p, int64_t row, int rows, int64_t col, int cols,
                          const float* b) {
  const struct rpi_gemm* g = p->g;
  const float* a = p->a + row * g->k;
  float tile[RPI_GEMM_MAX_MR * RPI_GEMM_MAX_NR];
  if (!needs_finish(g)) {
    p->kern->micro(g->k, rows, a, b, (float*)g->out + row * g->ldo + col, g->ldo, cols);
    return;
  }
  p->kern->micro(g->k, rows, a, b, tile, RPI_GEMM_MAX_NR, cols);
  for (int r = 0; r < rows; r++) finish_row(g, row + r, col, cols, tile + r * RPI_GEMM_MAX_NR);
}

/* A panel of A meets every panel of the chunk while it is in the first cache. */
static void multiply_panels(const struct packed* p, int64_t first, int64_t rows, int64_t col,
                            int64_t cols, const float* b) {
  int64_t nr = p->kern->nr, panel = p->g->k * nr;
  for (int64_t i = first; i < first + rows; i += p->kern->mr) {
    int n = (int)smaller(first + rows - i, p->kern->mr);
    for (int64_t j = 0; j < cols; j += nr)
      multiply_tile(p, i, n, col + j, (int)smaller(cols - j, nr), b + j / nr * panel);
  }
}

static void multiply_chunk(void* ctx, int64_t chunk) {
  struct packed* p = ctx;
  const struct rpi_gemm* g = p->g;
  int64_t nr = p->kern->nr, wide = nr * p->panels;
  int64_t col = chunk / p->row_blocks * wide, first = chunk % p->row_blocks * ROW_BLOCK;
  int64_t cols = smaller(g->n - col, wide), panel = g->k * nr;
  float* b = rpi_alloc(sizeof *b * (size_t)(panel * p->panels + nr * RPI_GEMM_PIECE));
  if (!b) {
    p->failed = 1;
    return;
  }
  for (int64_t j = 0; j < cols; j += nr)
    p->pack_b(p, col + j, (int)smaller(cols - j, nr), b + j / nr * panel, b + panel * p->panels);
  multiply_panels(p, first, smaller(g->m - first, ROW_BLOCK), col, cols, b);
  rpi_free(b);
}

/* As many panels as stay in cache, but enough chunks to share out. */
static int panels_per_chunk(const struct packed* p) {
  int64_t n = PANEL_FLOATS / (p->g->k * p->kern->nr), share = p->col_panels * p->row_blocks / 16;
  n = smaller(smaller(n, share), MAX_PANELS);
  return n < 1 ? 1 : (int)n;
}

/* ROW_BLOCK is a multiple of every mr, so panels of A do not straddle blocks. */
static int run_packed(struct packed* p) {
  const struct rpi_gemm* g = p->g;
  int64_t a_panels = (g->m + p->kern->mr - 1) / p->kern->mr;
  size_t bytes = sizeof *p->a * (size_t)(g->m * g->k);
  p->row_blocks = (g->m + ROW_BLOCK - 1) / ROW_BLOCK;
  p->col_panels = (g->n + p->kern->nr - 1) / p->kern->nr;
  p->panels = panels_per_chunk(p);
  p->a = rpi_alloc(bytes + 1);
  if (!p->a) return rpi_fail_memory("a matrix product", bytes);
  int64_t chunks = p->row_blocks * ((p->col_panels + p->panels - 1) / p->panels);
  rpi_parallel(a_panels, pack_a_panel, p);
  rpi_parallel(chunks, multiply_chunk, p);
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

float* rpi_gemm_interleave(int dtype, int64_t m, int64_t k, const void* a, int64_t row, int64_t col) {
  int mx = rpi_gemm_skinny_rows((int)m);
  float* x = rpi_alloc(sizeof *x * (size_t)(mx * k) + 1);
  for (int64_t i = 0; x && i < k; i++)
    for (int r = 0; r < mx; r++)
      x[i * mx + r] = r < m ? load_float(a, r * row + i * col, dtype) : 0;
  return x;
}

struct few {
  const struct rpi_gemm* g;
  const struct rpi_gemm_kernels* kern;
  const float* x; /* [k][mx] if B is a transpose */
};

enum { FEW_COLUMNS = 64 };

/* The rows of W = B^T lie one after another. */
static void multiply_few_rows(void* ctx, int64_t chunk) {
  const struct few* s = ctx;
  const struct rpi_gemm* g = s->g;
  float tile[RPI_GEMM_SKINNY * FEW_COLUMNS];
  int64_t j = chunk * FEW_COLUMNS, n = smaller(g->n - j, FEW_COLUMNS);
  const char* w = (const char*)g->b + j * g->b_col * (int64_t)rpi_dtype_size(g->dtype);
  bool finish = needs_finish(g);
  float* out = finish ? tile : (float*)g->out + j;
  int64_t ldo = finish ? FEW_COLUMNS : g->ldo;
  s->kern->skinny((int)g->m, n, g->k, s->x, w, g->b_col, g->dtype, out, ldo);
  for (int64_t r = 0; r < g->m && finish; r++) finish_row(g, r, j, n, tile + r * FEW_COLUMNS);
}

static void multiply_few_columns(void* ctx, int64_t chunk) {
  const struct few* s = ctx;
  const struct rpi_gemm* g = s->g;
  int64_t j = chunk * 256, n = smaller(g->n - j, 256);
  float* out = (float*)g->out + j;
  s->kern->direct(g->m, n, g->k, g->a, g->a_row, g->a_col, (const float*)g->b + j, g->b_row, out,
                  g->ldo);
  for (int64_t r = 0; r < g->m && g->c; r++) finish_row(g, r, j, n, out + r * g->ldo);
}

static void share(const struct rpi_gemm* g, int64_t chunks, void (*fn)(void*, int64_t), void* ctx) {
  if (g->m * g->n * g->k > INLINE_WORK)
    rpi_parallel(chunks, fn, ctx);
  else
    for (int64_t i = 0; i < chunks; i++) fn(ctx, i);
}

static int run_few_rows(const struct rpi_gemm* g) {
  struct few s = {g, rpi_gemm_kernels(), g->a};
  bool in_place = g->m == 1 && g->dtype == RPI_FLOAT32 && (g->a_col == 1 || g->k == 1);
  float* x = NULL;
  if (!in_place) {
    s.x = x = rpi_gemm_interleave(g->dtype, g->m, g->k, g->a, g->a_row, g->a_col);
    if (!x) return rpi_fail_memory("a matrix product", sizeof *x * (size_t)(g->m * g->k));
  }
  share(g, (g->n + FEW_COLUMNS - 1) / FEW_COLUMNS, multiply_few_rows, &s);
  rpi_free(x);
  return 0;
}

static void run_few_columns(const struct rpi_gemm* g) {
  struct few s = {g, rpi_gemm_kernels(), NULL};
  share(g, (g->n + 255) / 256, multiply_few_columns, &s);
}

/* ---- small products -------------------------------------------------------------------------- */

/* Rows of `cols` floats from any strides and dtype. */
static void copy_floats(float* dst, const void* src, int dtype, int64_t rows, int64_t cols,
                        int64_t row, int64_t col) {
  for (int64_t i = 0; i < rows; i++, dst += cols)
    for (int64_t j = 0; j < cols; j++) dst[j] = load_float(src, i * row + j * col, dtype);
}

/* No packing, no allocation, no threads. */
static void run_small(const struct rpi_gemm* g) {
  float b[SMALL], a[SMALL], sum[SMALL];
  copy_floats(b, g->b, g->dtype, g->k, g->n, g->b_row, g->b_col);
  copy_floats(a, g->a, g->dtype, g->m, g->k, g->a_row, g->a_col);
  rpi_gemm_kernels()->direct(g->m, g->n, g->k, a, g->k, 1, b, g->n, sum, g->n);
  for (int64_t i = 0; i < g->m; i++) finish_row(g, i, 0, g->n, sum + i * g->n);
}

static bool is_small(const struct rpi_gemm* g) {
  return g->k * g->n <= SMALL && g->m * g->k <= SMALL && g->m * g->n <= SMALL;
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

/* ---------------------------------------------------------------------------------------------- */

static bool sums_in_float(int dtype) {
  return dtype == RPI_FLOAT32 || dtype == RPI_FLOAT16 || dtype == RPI_BFLOAT16;
}

/* float32 whose columns of B lie side by side, read where it lies. */
static bool is_direct(const struct rpi_gemm* g) {
  return g->dtype == RPI_FLOAT32 && (g->b_col == 1 || g->n == 1) &&
         (g->m <= 4 || g->m * g->n * g->k <= INLINE_WORK);
}

static bool has_few_rows(const struct rpi_gemm* g) {
  return g->m <= RPI_GEMM_SKINNY && (g->b_row == 1 || g->k == 1);
}

int rpi_gemm(const struct rpi_gemm* g) {
  if (g->m == 0 || g->n == 0) return 0;
  if (g->dtype == RPI_FLOAT64 || g->dtype == RPI_COMPLEX64) return rpi_gemm_wide(g);
  if (!sums_in_float(g->dtype)) return rpi_gemm_plain(g);
  if (g->k == 0) {
    run_empty(g);
  } else if (is_direct(g)) {
    run_few_columns(g);
  } else if (is_small(g)) {
    run_small(g);
  } else if (has_few_rows(g)) {
    return run_few_rows(g);
  } else {
    struct packed p = {.g = g, .kern = rpi_gemm_kernels(), .pack_b = pack_dense_b};
    return run_packed(&p);
  }
  return 0;
}
