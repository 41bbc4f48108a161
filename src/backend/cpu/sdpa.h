/* Attention: what the driver (sdpa.c) and the kernels of each instruction set share.
 *
 * The arithmetic of one query row, which nothing else may change:
 * 1. Keys are taken in blocks of 64 and spans of 256, both by absolute index. Within a block only
 * the keys that the row attends to are looked at, in ascending order; masked keys are never read
 * into a result, so neither their number nor their contents matter, and a block without any does
 * nothing at all.
 * 2. A score is the dot product of (query * scale) and the key: 8 lanes, element d in lane d % 8,
 * ascending, fused; then ((0+1)+(2+3))+((4+5)+(6+7)). Then the mask's value is added.
 * 3. In a span, blocks update (max, sum, output): with m' the new maximum and c = exp(m - m'), p =
 * exp(s - m'): sum = fma(sum, c, P), where P adds p in 8 lanes by position and then as above;
 * output = fma over the keys in order, started from output * c.
 * 4. Spans that attended to something are merged in order, then the sink if there is one; then
 * output / sum. Everything is float; the result is rounded once. */
#ifndef RPI_BACKEND_CPU_SDPA_H
#define RPI_BACKEND_CPU_SDPA_H

#include <stdbool.h>
#include <stdint.h>

enum { SDPA_BLOCK = 64, SDPA_SPAN = 256, SDPA_ROWS = 48 };

struct sdpa_in {
  const char* at;
  int64_t stride[4]; /* of (batch, head, position, element), 0 where broadcast */
  int dtype;
};

struct sdpa {
  struct sdpa_in q, k, v, mask, sinks; /* `at` of mask and sinks may be NULL; sinks use stride[1] */
  char* out;
  int64_t batch, heads, kv_heads, group; /* group = heads / kv_heads */
  int64_t tq, tk, d, dv, dp, vp;         /* dp, vp: d and dv up to a multiple of 8 */
  int64_t first, last;                   /* keys outside are masked for all rows */
  bool is_causal;
  float scale;
};

/* Rows of one batch item and key head: row (t - t0) * group + g is query position t of the g-th
 * head. */
struct sdpa_tile {
  int64_t b, hkv, t0;
  int rows;
  float *q, *s, *k, *v, *c; /* scaled queries [rows][dp], scores [rows][64], one block, factors */
  uint64_t* bits;           /* keys of the block that a row attends to */
};

/* Accumulated rows: o [rows][vp], the maximum and the sum. */
struct sdpa_part {
  float *o, *m, *l;
};

struct sdpa_kernels {
  void (*begin)(const struct sdpa* a, const struct sdpa_tile* t);
  /* Keys of one span, from a multiple of 256 on. */
  void (*span)(const struct sdpa* a, const struct sdpa_tile* t, const struct sdpa_part* p,
               int64_t key);
  void (*merge)(const struct sdpa* a, int rows, const struct sdpa_part* into,
                const struct sdpa_part* from);
  void (*finish)(const struct sdpa* a, const struct sdpa_tile* t, const struct sdpa_part* p);
};

extern const struct sdpa_kernels rpi_sdpa_base, rpi_sdpa_avx2, rpi_sdpa_avx512;

#endif
