/* The steps of running reductions for one instruction set: SCAN_ISA is scalar, avx2 or avx512. */
#include "backend/cpu/scan.h"
#include "op/scalar.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define DEFINE_SCAN(name, T, OP)                                                           \
  static void name##_row(void* out, const void* x, int64_t n, int64_t step, void* carry,   \
                         bool inclusive) {                                                 \
    T *y = out, c = *(T*)carry;                                                            \
    const T* a = x;                                                                        \
    for (int64_t i = 0; i < n; i++) {                                                      \
      T next = OP(c, a[i * step]);                                                         \
      y[i * step] = inclusive ? next : c;                                                  \
      c = next;                                                                            \
    }                                                                                      \
    *(T*)carry = c;                                                                        \
  }                                                                                        \
  static void name##_columns(void* out, const void* x, int64_t n, void* carry,             \
                             bool inclusive) {                                             \
    T *y = out, *restrict c = carry;                                                       \
    const T* a = x;                                                                        \
    _Pragma("GCC ivdep") for (int64_t j = 0; j < n; j++) {                                 \
      T last = c[j], next = OP(last, a[j]);                                                \
      y[j] = inclusive ? next : last;                                                      \
      c[j] = next;                                                                         \
    }                                                                                      \
  }

#define ADD(x, y) ((x) + (y))
#define MUL(x, y) ((x) * (y))
/* Two uint16_t multiply as int, which could overflow. */
#define MUL16(x, y) ((uint16_t)((uint32_t)(x) * (y)))
#define LESS(x, y) ((x) < (y) ? (x) : (y))
#define MORE(x, y) ((x) > (y) ? (x) : (y))

#define DEFINE_ARITHMETIC(S, T, SUM, PROD) \
  DEFINE_SCAN(sum_##S, T, SUM)             \
  DEFINE_SCAN(prod_##S, T, PROD)
DEFINE_ARITHMETIC(u8, uint8_t, ADD, MUL)
DEFINE_ARITHMETIC(u16, uint16_t, ADD, MUL16)
DEFINE_ARITHMETIC(u32, uint32_t, ADD, MUL)
DEFINE_ARITHMETIC(u64, uint64_t, ADD, MUL)
DEFINE_ARITHMETIC(f32, float, ADD, MUL)
DEFINE_ARITHMETIC(f64, double, ADD, MUL)
DEFINE_ARITHMETIC(c64, struct rp_c64, rp_add_c64, rp_mul_c64)

#define DEFINE_ORDER(S, T, MIN, MAX) \
  DEFINE_SCAN(min_##S, T, MIN)       \
  DEFINE_SCAN(max_##S, T, MAX)
DEFINE_ORDER(u8, uint8_t, LESS, MORE)
DEFINE_ORDER(u16, uint16_t, LESS, MORE)
DEFINE_ORDER(u32, uint32_t, LESS, MORE)
DEFINE_ORDER(u64, uint64_t, LESS, MORE)
DEFINE_ORDER(i8, int8_t, LESS, MORE)
DEFINE_ORDER(i16, int16_t, LESS, MORE)
DEFINE_ORDER(i32, int32_t, LESS, MORE)
DEFINE_ORDER(i64, int64_t, LESS, MORE)
DEFINE_ORDER(f32, float, rp_minimumf, rp_maximumf)
DEFINE_ORDER(f64, double, rp_minimum, rp_maximum)
DEFINE_ORDER(c64, struct rp_c64, rp_minimum_c64, rp_maximum_c64)
DEFINE_SCAN(lse_f32, float, rp_logaddexpf)
DEFINE_SCAN(lse_f64, double, rp_logaddexp)
DEFINE_SCAN(lse_c64, struct rp_c64, rp_logaddexp_c64)

#define ENTRY(name, bits) {name##_row, name##_columns, bits}
#define INF32 0x7F800000ull
#define MINUS32 0xFF800000ull
#define INF64 0x7FF0000000000000ull
#define MINUS64 0xFFF0000000000000ull
/* A product of bool is 0 or 1 as that of uint8. */
#define ARITHMETIC(op, one, one32, one64)                                                \
  [RPI_BOOL] = ENTRY(op##_u8, one), [RPI_UINT8] = ENTRY(op##_u8, one),                    \
  [RPI_UINT16] = ENTRY(op##_u16, one), [RPI_UINT32] = ENTRY(op##_u32, one),               \
  [RPI_UINT64] = ENTRY(op##_u64, one), [RPI_INT8] = ENTRY(op##_u8, one),                  \
  [RPI_INT16] = ENTRY(op##_u16, one), [RPI_INT32] = ENTRY(op##_u32, one),                 \
  [RPI_INT64] = ENTRY(op##_u64, one), [RPI_FLOAT32] = ENTRY(op##_f32, one32),             \
  [RPI_FLOAT64] = ENTRY(op##_f64, one64), [RPI_COMPLEX64] = ENTRY(op##_c64, one32)

const rpi_scanner_table JOIN(rpi_scanners_, SCAN_ISA) = {
    [RPI_SCAN_SUM] = {ARITHMETIC(sum, 0, 0, 0)},
    [RPI_SCAN_PROD] = {ARITHMETIC(prod, 1, 0x3F800000, 0x3FF0000000000000ull)},
    [RPI_SCAN_MIN] = {[RPI_BOOL] = ENTRY(min_u8, 1),
                      [RPI_UINT8] = ENTRY(min_u8, UINT8_MAX),
                      [RPI_UINT16] = ENTRY(min_u16, UINT16_MAX),
                      [RPI_UINT32] = ENTRY(min_u32, UINT32_MAX),
                      [RPI_UINT64] = ENTRY(min_u64, UINT64_MAX),
                      [RPI_INT8] = ENTRY(min_i8, INT8_MAX),
                      [RPI_INT16] = ENTRY(min_i16, INT16_MAX),
                      [RPI_INT32] = ENTRY(min_i32, INT32_MAX),
                      [RPI_INT64] = ENTRY(min_i64, INT64_MAX),
                      [RPI_FLOAT32] = ENTRY(min_f32, INF32),
                      [RPI_FLOAT64] = ENTRY(min_f64, INF64),
                      [RPI_COMPLEX64] = ENTRY(min_c64, INF32 << 32 | INF32)},
    [RPI_SCAN_MAX] = {[RPI_BOOL] = ENTRY(max_u8, 0),
                      [RPI_UINT8] = ENTRY(max_u8, 0),
                      [RPI_UINT16] = ENTRY(max_u16, 0),
                      [RPI_UINT32] = ENTRY(max_u32, 0),
                      [RPI_UINT64] = ENTRY(max_u64, 0),
                      [RPI_INT8] = ENTRY(max_i8, 1ull << 7),
                      [RPI_INT16] = ENTRY(max_i16, 1ull << 15),
                      [RPI_INT32] = ENTRY(max_i32, 1ull << 31),
                      [RPI_INT64] = ENTRY(max_i64, 1ull << 63),
                      [RPI_FLOAT32] = ENTRY(max_f32, MINUS32),
                      [RPI_FLOAT64] = ENTRY(max_f64, MINUS64),
                      [RPI_COMPLEX64] = ENTRY(max_c64, MINUS32 << 32 | MINUS32)},
    [RPI_SCAN_LOGSUMEXP] = {[RPI_FLOAT32] = ENTRY(lse_f32, MINUS32),
                            [RPI_FLOAT64] = ENTRY(lse_f64, MINUS64),
                            [RPI_COMPLEX64] = ENTRY(lse_c64, MINUS32)},
};
