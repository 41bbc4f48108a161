/* sort, argsort and partitions along one axis: stable, NaN last.
 *
 * Every element becomes a pair of an unsigned key and its index. Keys order as the elements do: -0
 * and 0 have one key, all NaN have the greatest one, and complex values order by real, then
 * imaginary part. Pairs are sorted by their keys' bytes, least significant byte first, without the
 * bytes that are the same in all keys; short rows by insertion. A partition is a sorted row: that
 * is no slower, and says more. */
#include <string.h>

#include "backend/cpu/along.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/strided.h"
#include "op/scalar.h"

enum { SHORT_ROW = 40, COST = 16 };

struct wide_pair {
  uint64_t key;
  uint64_t index;
};

/* ---- Keys ---- */

static inline uint16_t key_half(uint16_t x, uint16_t inf) {
  uint16_t a = x & 0x7FFF, key = x & 0x8000 ? (uint16_t)~x : (uint16_t)(x | 0x8000);
  key = a == 0 ? 0x8000 : key;
  return a > inf ? 0xFFFF : key;
}

static inline uint32_t key_float(uint32_t x) {
  uint32_t a = x & 0x7FFFFFFFu, key = x >> 31 ? ~x : x | 0x80000000u;
  key = a == 0 ? 0x80000000u : key;
  return a > 0x7F800000u ? UINT32_MAX : key;
}

static inline uint64_t key_double(uint64_t x) {
  uint64_t a = x & ~RP_SIGN_BIT, key = x >> 63 ? ~x : x | RP_SIGN_BIT;
  key = a == 0 ? RP_SIGN_BIT : key;
  return a > 0x7FF0000000000000ull ? UINT64_MAX : key;
}

static inline uint64_t key_complex(struct rp_c64 x) {
  uint64_t re = key_float(rp_bitsf(x.re)), im = key_float(rp_bitsf(x.im));
  return rp_isnan_c64(x) ? UINT64_MAX : re << 32 | im;
}

#define DEFINE_PAIRS(name, T, KEY)                                        \
  static void pairs_##name(uint64_t* p, const void* src, int64_t n) {     \
    const T* a = src;                                                     \
    for (int64_t i = 0; i < n; i++) {                                     \
      T x = a[i];                                                         \
      p[i] = (uint64_t)(KEY) << 32 | (uint64_t)i;                         \
    }                                                                     \
  }
DEFINE_PAIRS(u8, uint8_t, x)
DEFINE_PAIRS(i8, uint8_t, x ^ 0x80)
DEFINE_PAIRS(u16, uint16_t, x)
DEFINE_PAIRS(i16, uint16_t, x ^ 0x8000)
DEFINE_PAIRS(f16, uint16_t, key_half(x, 0x7C00))
DEFINE_PAIRS(bf16, uint16_t, key_half(x, 0x7F80))
DEFINE_PAIRS(u32, uint32_t, x)
DEFINE_PAIRS(i32, uint32_t, x ^ 0x80000000u)
DEFINE_PAIRS(f32, uint32_t, key_float(x))

#define DEFINE_WIDE(name, T, KEY)                                              \
  static void wide_##name(struct wide_pair* p, const void* src, int64_t n) {   \
    const T* a = src;                                                          \
    for (int64_t i = 0; i < n; i++) {                                          \
      T x = a[i];                                                              \
      p[i] = (struct wide_pair){KEY, (uint64_t)i};                             \
    }                                                                          \
  }
DEFINE_WIDE(u64, uint64_t, x)
DEFINE_WIDE(i64, uint64_t, x ^ RP_SIGN_BIT)
DEFINE_WIDE(f64, uint64_t, key_double(x))
DEFINE_WIDE(c64, struct rp_c64, key_complex(x))

static void (*const make_pairs[RPI_DTYPE_COUNT])(uint64_t*, const void*, int64_t) = {
    [RPI_BOOL] = pairs_u8,    [RPI_UINT8] = pairs_u8,    [RPI_INT8] = pairs_i8,
    [RPI_UINT16] = pairs_u16, [RPI_INT16] = pairs_i16,   [RPI_FLOAT16] = pairs_f16,
    [RPI_BFLOAT16] = pairs_bf16, [RPI_UINT32] = pairs_u32, [RPI_INT32] = pairs_i32,
    [RPI_FLOAT32] = pairs_f32,
};
static void (*const make_wide[RPI_DTYPE_COUNT])(struct wide_pair*, const void*, int64_t) = {
    [RPI_UINT64] = wide_u64, [RPI_INT64] = wide_i64, [RPI_FLOAT64] = wide_f64,
    [RPI_COMPLEX64] = wide_c64,
};

/* ---- Sorting ---- */

/* Sort p by `bytes` bytes of KEY(pair) with q as the other half; returns the one that holds the
 * result. */
#define DEFINE_SORT(name, P, KEY)                                              \
  static void insert_##name(P* p, int64_t n) {                                 \
    for (int64_t i = 1; i < n; i++) {                                          \
      P x = p[i];                                                              \
      int64_t k = i;                                                           \
      for (; k > 0 && KEY(p[k - 1]) > KEY(x); k--) p[k] = p[k - 1];            \
      p[k] = x;                                                                \
    }                                                                          \
  }                                                                            \
  static void count_##name(uint32_t (*count)[256], const P* p, int64_t n, int bytes) { \
    memset(count, 0, (size_t)bytes * sizeof *count);                           \
    for (int64_t i = 0; i < n; i++) {                                          \
      uint64_t key = KEY(p[i]);                                                \
      for (int b = 0; b < bytes; b++) count[b][key >> 8 * b & 0xFF]++;         \
    }                                                                          \
  }                                                                            \
  static P* radix_##name(P* p, P* q, int64_t n, int bytes) {                   \
    uint32_t count[8][256];                                                    \
    count_##name(count, p, n, bytes);                                          \
    for (int b = 0; b < bytes; b++) {                                          \
      if (count[b][KEY(p[0]) >> 8 * b & 0xFF] == n) continue;                  \
      uint32_t sum = 0;                                                        \
      for (int d = 0; d < 256; d++) {                                          \
        uint32_t c = count[b][d];                                              \
        count[b][d] = sum;                                                     \
        sum += c;                                                              \
      }                                                                        \
      for (int64_t i = 0; i < n; i++) q[count[b][KEY(p[i]) >> 8 * b & 0xFF]++] = p[i]; \
      P* t = p;                                                                \
      p = q;                                                                   \
      q = t;                                                                   \
    }                                                                          \
    return p;                                                                  \
  }
#define KEY_OF_PAIR(p) ((p) >> 32)
#define KEY_OF_WIDE(p) ((p).key)
DEFINE_SORT(pair, uint64_t, KEY_OF_PAIR)
DEFINE_SORT(wide, struct wide_pair, KEY_OF_WIDE)

/* ---- Rows ---- */

#define DEFINE_OUT(name, P, INDEX)                                                     \
  static void out_##name(void* dst, const void* src, const P* p, int64_t n, int item,  \
                         bool wants_index) {                                           \
    if (wants_index)                                                                   \
      for (int64_t i = 0; i < n; i++) ((uint32_t*)dst)[i] = (uint32_t)INDEX(p[i]);     \
    else if (item == 1)                                                                \
      for (int64_t i = 0; i < n; i++)                                                  \
        ((uint8_t*)dst)[i] = ((const uint8_t*)src)[(uint32_t)INDEX(p[i])];             \
    else if (item == 2)                                                                \
      for (int64_t i = 0; i < n; i++)                                                  \
        ((uint16_t*)dst)[i] = ((const uint16_t*)src)[(uint32_t)INDEX(p[i])];           \
    else if (item == 4)                                                                \
      for (int64_t i = 0; i < n; i++)                                                  \
        ((uint32_t*)dst)[i] = ((const uint32_t*)src)[(uint32_t)INDEX(p[i])];           \
    else                                                                               \
      for (int64_t i = 0; i < n; i++)                                                  \
        ((uint64_t*)dst)[i] = ((const uint64_t*)src)[(uint32_t)INDEX(p[i])];           \
  }
#define INDEX_OF_PAIR(p) (p)
#define INDEX_OF_WIDE(p) ((p).index)
DEFINE_OUT(pair, uint64_t, INDEX_OF_PAIR)
DEFINE_OUT(wide, struct wide_pair, INDEX_OF_WIDE)

static void sort_pairs(char* dst, const char* src, int64_t n, int dtype, uint64_t* p,
                       bool wants_index) {
  int item = (int)rpi_dtype_size(dtype);
  make_pairs[dtype](p, src, n);
  if (n <= SHORT_ROW)
    insert_pair(p, n);
  else
    p = radix_pair(p, p + n, n, item);
  out_pair(dst, src, p, n, item, wants_index);
}

static void sort_wide(char* dst, const char* src, int64_t n, int dtype, struct wide_pair* p,
                      bool wants_index) {
  make_wide[dtype](p, src, n);
  if (n <= SHORT_ROW)
    insert_wide(p, n);
  else
    p = radix_wide(p, p + n, n, 8);
  out_wide(dst, src, p, n, 8, wants_index);
}

static void sort_some(struct along* a, int64_t first, int64_t last, bool wants_index) {
  struct wide_pair few[SHORT_ROW], *pairs = few;
  int dtype = a->call->in[0].dtype;
  int64_t in = a->n * (int64_t)rpi_dtype_size(dtype);
  int64_t out = a->n * (int64_t)rpi_dtype_size(a->call->out[0].dtype);
  bool is_wide = make_wide[dtype] != NULL;
  size_t bytes = (size_t)a->n * 2 * (is_wide ? sizeof *pairs : sizeof(uint64_t));
  if (a->n > SHORT_ROW && !(pairs = rpi_alloc(bytes))) {
    atomic_store(&a->failed, 1);
    return;
  }
  for (int64_t i = first; i < last; i++) {
    if (is_wide)
      sort_wide(a->dst + i * out, a->src + i * in, a->n, dtype, pairs, wants_index);
    else
      sort_pairs(a->dst + i * out, a->src + i * in, a->n, dtype, (uint64_t*)pairs, wants_index);
  }
  if (pairs != few) rpi_free(pairs);
}

static void sort_rows(struct along* a, int64_t first, int64_t last) {
  sort_some(a, first, last, false);
}
static void argsort_rows(struct along* a, int64_t first, int64_t last) {
  sort_some(a, first, last, true);
}

static int sort(const struct call* c, void (*fn)(struct along*, int64_t, int64_t)) {
  struct along a;
  int rc = rpi_along_map(&a, c, (int)c->attr[0]);
  if (rc) return rc;
  rpi_along_each(&a, COST, fn);
  return rpi_along_finish(&a);
}

int rpi_cpu_sort(const struct call* c) { return sort(c, sort_rows); }
int rpi_cpu_argsort(const struct call* c) { return sort(c, argsort_rows); }
int rpi_cpu_partition(const struct call* c) { return sort(c, sort_rows); }
int rpi_cpu_argpartition(const struct call* c) { return sort(c, argsort_rows); }
