/* argmin and argmax: the index of the first extreme, or of the first NaN if there is one. The
 * extreme is found by the reducers, then the first element that equals it. */
#include <stdbool.h>

#include "backend/cpu/along.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/elem.h"
#include "backend/cpu/reduce.h"
#include "backend/cpu/strided.h"
#include "op/scalar.h"

enum { BLOCK = 512 };

/* The first of n elements for which EQUAL(x, m) holds, or n. */
#define DEFINE_FIND(name, T, EQUAL)                                         \
  static int64_t find_##name(const void* src, const void* value, int64_t n) { \
    const T* x = src;                                                       \
    T m RPI_UNUSED = *(const T*)value;                                      \
    int64_t i = 0;                                                          \
    for (; i + 64 <= n; i += 64) {                                          \
      int any = 0;                                                          \
      for (int k = 0; k < 64; k++) any |= EQUAL(x[i + k], m);               \
      if (any) break;                                                       \
    }                                                                       \
    while (i < n && !(EQUAL(x[i], m))) i++;                                 \
    return i;                                                               \
  }
#define SAME(x, m) ((x) == (m))
#define NOT_ITSELF(x, m) ((x) != (x))
#define IS_NAN_C64(x, m) rp_isnan_c64(x)
DEFINE_FIND(8, uint8_t, SAME)
DEFINE_FIND(16, uint16_t, SAME)
DEFINE_FIND(32, uint32_t, SAME)
DEFINE_FIND(64, uint64_t, SAME)
DEFINE_FIND(f32, float, SAME)
DEFINE_FIND(f64, double, SAME)
DEFINE_FIND(c64, struct rp_c64, rp_eq_c64)
DEFINE_FIND(nan_f32, float, NOT_ITSELF)
DEFINE_FIND(nan_f64, double, NOT_ITSELF)
DEFINE_FIND(nan_c64, struct rp_c64, IS_NAN_C64)

static int64_t find(const void* x, const void* m, int64_t n, int dtype) {
  switch (dtype) {
    case RPI_FLOAT32:
      return rp_isnanf(*(const float*)m) ? find_nan_f32(x, m, n) : find_f32(x, m, n);
    case RPI_FLOAT64:
      return rp_isnan(*(const double*)m) ? find_nan_f64(x, m, n) : find_f64(x, m, n);
    case RPI_COMPLEX64:
      return rp_isnan_c64(*(const struct rp_c64*)m) ? find_nan_c64(x, m, n) : find_c64(x, m, n);
    default: break;
  }
  switch (rpi_dtype_size(dtype)) {
    case 1: return find_8(x, m, n);
    case 2: return find_16(x, m, n);
    case 4: return find_32(x, m, n);
    default: return find_64(x, m, n);
  }
}

struct search {
  const struct rpi_reducer* f;
  int in, dtype; /* of elements and of comparisons */
};

/* `n` elements of the row from `i`, at most BLOCK of them if they are converted. */
static const void* elements(const struct search* s, float* buf, const char* row, int64_t i,
                            int64_t n) {
  const char* src = row + i * (int64_t)rpi_dtype_size(s->in);
  if (s->in == s->dtype) return src;
  rpi_cpu_to_f32(buf, src, s->in, n);
  return buf;
}

static void find_extreme(const struct search* s, char* acc, const char* row, int64_t n) {
  float buf[BLOCK];
  int item = (int)rpi_dtype_size(s->dtype);
  rpi_fill(acc, &s->f->identity, item, RPI_LANES);
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t m = n - i < BLOCK ? n - i : BLOCK, whole = m & ~(int64_t)(RPI_LANES - 1);
    const char* x = elements(s, buf, row, i, m);
    s->f->lanes(acc, x, whole);
    s->f->step(acc, x + whole * item, m - whole);
  }
  s->f->fold(acc, RPI_LANES);
}

static uint32_t search_row(const struct search* s, const char* row, int64_t n) {
  _Alignas(64) char acc[RPI_LANES * 8];
  float buf[BLOCK];
  find_extreme(s, acc, row, n);
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t m = n - i < BLOCK ? n - i : BLOCK;
    int64_t at = find(elements(s, buf, row, i, m), acc, m, s->dtype);
    if (at < m) return (uint32_t)(i + at);
  }
  return 0;
}

static void search_rows(struct along* a, int64_t first, int64_t last, enum rpi_combine op) {
  struct search s = {.in = a->call->in[0].dtype};
  bool is_half = s.in == RPI_FLOAT16 || s.in == RPI_BFLOAT16;
  s.dtype = is_half ? RPI_FLOAT32 : s.in;
  s.f = rpi_reducer(op, s.dtype);
  uint32_t* out = (uint32_t*)a->dst;
  int64_t bytes = a->n * (int64_t)rpi_dtype_size(s.in);
  for (int64_t i = first; i < last; i++) out[i] = search_row(&s, a->src + i * bytes, a->n);
}

static void search_least(struct along* a, int64_t first, int64_t last) {
  search_rows(a, first, last, RPI_COMBINE_MIN);
}
static void search_largest(struct along* a, int64_t first, int64_t last) {
  search_rows(a, first, last, RPI_COMBINE_MAX);
}

static int search(const struct call* c, void (*fn)(struct along*, int64_t, int64_t)) {
  struct along a;
  int rc = rpi_along_reduce(&a, c, &c->attr[1], 1);
  if (rc) return rc;
  rpi_along_each(&a, 2, fn);
  return rpi_along_finish(&a);
}

int rpi_cpu_argmin(const struct call* c) { return search(c, search_least); }
int rpi_cpu_argmax(const struct call* c) { return search(c, search_largest); }
