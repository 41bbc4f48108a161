/* The steps of every reducer and their table for one instruction set: REDUCE_ISA is scalar, avx2 or
 * avx512. */
#include "backend/cpu/reduce.h"

#include <string.h>

#include "op/scalar.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define DEFINE_STEPS(name, T, OP)                                                                 \
  static void name##_step(void* acc, const void* a, int64_t n) {                                  \
    T* restrict r = acc;                                                                          \
    const T* x = a;                                                                               \
    for (int64_t j = 0; j < n; j++) r[j] = OP(r[j], x[j]);                                        \
  }                                                                                               \
  static void name##_step4(void* acc, const void* a, const void* b, const void* c, const void* d, \
                           int64_t n) {                                                           \
    T* restrict r = acc;                                                                          \
    const T *x = a, *y = b, *z = c, *w = d;                                                       \
    for (int64_t j = 0; j < n; j++) r[j] = OP(OP(OP(OP(r[j], x[j]), y[j]), z[j]), w[j]);          \
  }                                                                                               \
  static void name##_lanes(void* acc, const void* x, int64_t n) {                                 \
    const T* p = x;                                                                               \
    int64_t i = 0;                                                                                \
    for (; i + 4 * RPI_LANES <= n; i += 4 * RPI_LANES)                                            \
      name##_step4(acc, p + i, p + i + RPI_LANES, p + i + 2 * RPI_LANES, p + i + 3 * RPI_LANES,   \
                   RPI_LANES);                                                                    \
    for (; i < n; i += RPI_LANES) name##_step(acc, p + i, RPI_LANES);                             \
  }                                                                                               \
  static void name##_fold(void* acc, int width) {                                                 \
    T* r = acc;                                                                                   \
    for (int w = width / 2; w > 0; w /= 2)                                                        \
      for (int i = 0; i < w; i++) r[i] = OP(r[i], r[i + w]);                                      \
  }

#define ADD(x, y) ((x) + (y))
#define MUL(x, y) ((x) * (y))
#define LESS(x, y) ((x) < (y) ? (x) : (y))
#define MORE(x, y) ((x) > (y) ? (x) : (y))

DEFINE_STEPS(sum_u32, uint32_t, ADD)
DEFINE_STEPS(sum_u64, uint64_t, ADD)
DEFINE_STEPS(sum_f32, float, ADD)
DEFINE_STEPS(sum_f64, double, ADD)
DEFINE_STEPS(sum_c64, struct rp_c64, rp_add_c64)
DEFINE_STEPS(prod_u32, uint32_t, MUL)
DEFINE_STEPS(prod_u64, uint64_t, MUL)
DEFINE_STEPS(prod_f32, float, MUL)
DEFINE_STEPS(prod_f64, double, MUL)
DEFINE_STEPS(prod_c64, struct rp_c64, rp_mul_c64)

#define DEFINE_ORDER(S, T)           \
  DEFINE_STEPS(min_##S, T, LESS)     \
  DEFINE_STEPS(max_##S, T, MORE)
DEFINE_ORDER(u8, uint8_t)
DEFINE_ORDER(u16, uint16_t)
DEFINE_ORDER(u32, uint32_t)
DEFINE_ORDER(u64, uint64_t)
DEFINE_ORDER(i8, int8_t)
DEFINE_ORDER(i16, int16_t)
DEFINE_ORDER(i32, int32_t)
DEFINE_ORDER(i64, int64_t)
DEFINE_STEPS(min_f32, float, rp_minimumf)
DEFINE_STEPS(max_f32, float, rp_maximumf)
DEFINE_STEPS(min_f64, double, rp_minimum)
DEFINE_STEPS(max_f64, double, rp_maximum)
DEFINE_STEPS(min_c64, struct rp_c64, rp_minimum_c64)
DEFINE_STEPS(max_c64, struct rp_c64, rp_maximum_c64)

#define ENTRY(name, bits) {name##_step, name##_step4, name##_lanes, name##_fold, bits}
#define INF32 0x7F800000ull
#define INF64 0x7FF0000000000000ull
#define MINUS32 0xFF800000ull

const rpi_reducer_table JOIN(rpi_reducers_, REDUCE_ISA) = {
    [RPI_COMBINE_SUM] = {[RPI_UINT32] = ENTRY(sum_u32, 0), [RPI_UINT64] = ENTRY(sum_u64, 0),
                         [RPI_FLOAT32] = ENTRY(sum_f32, 0), [RPI_FLOAT64] = ENTRY(sum_f64, 0),
                         [RPI_COMPLEX64] = ENTRY(sum_c64, 0)},
    [RPI_COMBINE_PROD] = {[RPI_UINT32] = ENTRY(prod_u32, 1), [RPI_UINT64] = ENTRY(prod_u64, 1),
                          [RPI_FLOAT32] = ENTRY(prod_f32, 0x3F800000),
                          [RPI_FLOAT64] = ENTRY(prod_f64, 0x3FF0000000000000ull),
                          [RPI_COMPLEX64] = ENTRY(prod_c64, 0x3F800000)},
    [RPI_COMBINE_MIN] = {[RPI_BOOL] = ENTRY(min_u8, 1),
                         [RPI_UINT8] = ENTRY(min_u8, 0xFF),
                         [RPI_UINT16] = ENTRY(min_u16, 0xFFFF),
                         [RPI_UINT32] = ENTRY(min_u32, 0xFFFFFFFF),
                         [RPI_UINT64] = ENTRY(min_u64, UINT64_MAX),
                         [RPI_INT8] = ENTRY(min_i8, INT8_MAX),
                         [RPI_INT16] = ENTRY(min_i16, INT16_MAX),
                         [RPI_INT32] = ENTRY(min_i32, INT32_MAX),
                         [RPI_INT64] = ENTRY(min_i64, INT64_MAX),
                         [RPI_FLOAT32] = ENTRY(min_f32, INF32),
                         [RPI_FLOAT64] = ENTRY(min_f64, INF64),
                         [RPI_COMPLEX64] = ENTRY(min_c64, INF32 << 32 | INF32)},
    [RPI_COMBINE_MAX] = {[RPI_BOOL] = ENTRY(max_u8, 0),
                         [RPI_UINT8] = ENTRY(max_u8, 0),
                         [RPI_UINT16] = ENTRY(max_u16, 0),
                         [RPI_UINT32] = ENTRY(max_u32, 0),
                         [RPI_UINT64] = ENTRY(max_u64, 0),
                         [RPI_INT8] = ENTRY(max_i8, 1ull << 7),
                         [RPI_INT16] = ENTRY(max_i16, 1ull << 15),
                         [RPI_INT32] = ENTRY(max_i32, 1ull << 31),
                         [RPI_INT64] = ENTRY(max_i64, 1ull << 63),
                         [RPI_FLOAT32] = ENTRY(max_f32, MINUS32),
                         [RPI_FLOAT64] = ENTRY(max_f64, INF64 | 1ull << 63),
                         [RPI_COMPLEX64] = ENTRY(max_c64, MINUS32 << 32 | MINUS32)},
};
