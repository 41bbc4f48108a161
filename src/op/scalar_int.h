/* Integer arithmetic and conversions to integers, defined for all inputs: nothing here is
 * undefined or traps.
 *
 * Rules: +, -, * and abs wrap. x / 0 and x % 0 are 0; INT_MIN / -1 wraps to INT_MIN, INT_MIN % -1
 * is 0. Quotients floor, remainders take the divisor's sign. A shift by the width or more (or a
 * negative count) gives 0, but an arithmetic right shift gives the sign. x ^ -n is 0, except that
 * 1 and -1 keep their meaning. float -> integer: toward zero, NaN gives 0, out of range saturates;
 * float -> bool: x != 0, NaN is true.
 *
 * Names: rp_OP_TYPE (rp_add_i32, rp_pow_u8), rp_FROM_to_TO (rp_f32_to_i8). pow and the 64-bit
 * quotients have data-dependent time and do not vectorize; all else does, given instructions for
 * it. */
#ifndef RPI_OP_SCALAR_INT_H
#define RPI_OP_SCALAR_INT_H

#include "op/scalar_base.h"

/* T: the type; U: its unsigned twin; W: unsigned, wide enough not to be promoted to int. */
#define RP_DEFINE_INT(N, T, U, W, BITS)                                                           \
  RP_FN T rp_add_##N(T x, T y) { return (T)((W)x + (W)y); }                                       \
  RP_FN T rp_sub_##N(T x, T y) { return (T)((W)x - (W)y); }                                       \
  RP_FN T rp_mul_##N(T x, T y) { return (T)((W)x * (W)y); }                                       \
  RP_FN T rp_neg_##N(T x) { return (T)(0 - (W)x); }                                               \
  RP_FN T rp_square_##N(T x) { return (T)((W)x * (W)x); }                                         \
  RP_FN T rp_maximum_##N(T x, T y) { return x > y ? x : y; }                                      \
  RP_FN T rp_minimum_##N(T x, T y) { return x < y ? x : y; }                                      \
  RP_FN T rp_shl_##N(T x, T y) {                                                                  \
    W n = (W)(U)y, r = (W)x << (n & (BITS - 1));                                                  \
    return (T)(n < BITS ? r : 0);                                                                 \
  }                                                                                               \
  RP_FN T rp_square_step_##N(T base, W e, T r) { return (T)(e & 1 ? (W)r * (W)base : (W)r); }     \
  RP_FN T rp_pow_natural_##N(T x, U y) {                                                          \
    T r = 1;                                                                                      \
    for (W e = y; e != 0; e >>= 1) {                                                              \
      r = rp_square_step_##N(x, e, r);                                                            \
      x = rp_square_##N(x);                                                                       \
    }                                                                                             \
    return r;                                                                                     \
  }

/* QUOTIENT(x, d): x / d toward zero, for d != 0 and not INT_MIN / -1. */
#define RP_DEFINE_SIGNED(N, T, U, W, BITS, QUOTIENT)                                              \
  RP_DEFINE_INT(N, T, U, W, BITS)                                                                 \
  RP_FN T rp_abs_##N(T x) { return (T)(x < 0 ? 0 - (W)x : (W)x); }                                \
  RP_FN T rp_sign_##N(T x) { return (T)((x > 0) - (x < 0)); }                                     \
  RP_FN T rp_shr_##N(T x, T y) {                                                                  \
    W n = (W)(U)y;                                                                                \
    return (T)(x >> (n < BITS ? n : BITS - 1));                                                   \
  }                                                                                               \
  RP_FN T rp_floor_divide_##N(T x, T y) {                                                         \
    T d = (y == 0) | (y == -1) ? 1 : y, q = QUOTIENT(x, d);                                       \
    T r = (T)((W)x - (W)q * (W)d);                                                                \
    q = (T)((W)q - ((r != 0) & ((r ^ d) < 0) ? 1 : 0));                                           \
    q = y == -1 ? rp_neg_##N(x) : q;                                                              \
    return y == 0 ? 0 : q;                                                                        \
  }                                                                                               \
  RP_FN T rp_remainder_##N(T x, T y) {                                                            \
    T r = (T)((W)x - (W)rp_floor_divide_##N(x, y) * (W)y);                                        \
    return y == 0 ? 0 : r;                                                                        \
  }                                                                                               \
  RP_FN T rp_pow_##N(T x, T y) {                                                                  \
    T odd = (T)(y & 1 ? x : 1);                                                                   \
    T below = (T)(x == 1 ? 1 : x == -1 ? odd : 0);                                                \
    return y < 0 ? below : rp_pow_natural_##N(x, (U)y);                                           \
  }

#define RP_DEFINE_UNSIGNED(N, T, W, BITS, QUOTIENT)                                               \
  RP_DEFINE_INT(N, T, T, W, BITS)                                                                 \
  RP_FN T rp_abs_##N(T x) { return x; }                                                           \
  RP_FN T rp_sign_##N(T x) { return (T)(x != 0); }                                                \
  RP_FN T rp_shr_##N(T x, T y) {                                                                  \
    W n = (W)y, r = (W)x >> (n & (BITS - 1));                                                     \
    return (T)(n < BITS ? r : 0);                                                                 \
  }                                                                                               \
  RP_FN T rp_floor_divide_##N(T x, T y) {                                                         \
    T d = y == 0 ? 1 : y, q = QUOTIENT(x, d);                                                     \
    return y == 0 ? 0 : q;                                                                        \
  }                                                                                               \
  RP_FN T rp_remainder_##N(T x, T y) {                                                            \
    T r = (T)((W)x - (W)rp_floor_divide_##N(x, y) * (W)y);                                        \
    return y == 0 ? 0 : r;                                                                        \
  }                                                                                               \
  RP_FN T rp_pow_##N(T x, T y) { return rp_pow_natural_##N(x, y); }

/* A quotient of n-bit integers misses the next integer by 2^-n of itself at least, so that a
 * format with n + 1 bits or more never rounds it up; and there are vector divisions of floats, not
 * of integers. */
#define RP_QUOTIENT_F32(x, d) ((int32_t)((float)(x) / (float)(d)))
#define RP_QUOTIENT_F64(x, d) ((int32_t)((double)(x) / (double)(d)))
#define RP_QUOTIENT_U32(x, d) ((uint32_t)((double)(x) / (double)(d)))
#define RP_QUOTIENT_INT(x, d) ((x) / (d))

RP_DEFINE_SIGNED(i8, int8_t, uint8_t, uint32_t, 8, RP_QUOTIENT_F32)
RP_DEFINE_SIGNED(i16, int16_t, uint16_t, uint32_t, 16, RP_QUOTIENT_F32)
RP_DEFINE_SIGNED(i32, int32_t, uint32_t, uint32_t, 32, RP_QUOTIENT_F64)
RP_DEFINE_SIGNED(i64, int64_t, uint64_t, uint64_t, 64, RP_QUOTIENT_INT)
RP_DEFINE_UNSIGNED(u8, uint8_t, uint32_t, 8, RP_QUOTIENT_F32)
RP_DEFINE_UNSIGNED(u16, uint16_t, uint32_t, 16, RP_QUOTIENT_F32)
RP_DEFINE_UNSIGNED(u32, uint32_t, uint32_t, 32, RP_QUOTIENT_U32)
RP_DEFINE_UNSIGNED(u64, uint64_t, uint64_t, 64, RP_QUOTIENT_INT)

/* Both bounds of an 8- or 16-bit type are exact floats: clamp, then convert. */
#define RP_DEFINE_CAST_SMALL(F, SRC, N, T, LO, HI)                                                \
  RP_FN T rp_##F##_to_##N(SRC x) {                                                                \
    SRC c = x == x ? x : 0;                                                                       \
    c = c < (SRC)(LO) ? (SRC)(LO) : c;                                                            \
    c = c > (SRC)(HI) ? (SRC)(HI) : c;                                                            \
    return (T)(int32_t)c;                                                                         \
  }

/* LO and the bound OVER (the first value too large, a power of two) are exact, HI may not be. */
#define RP_DEFINE_CAST(F, SRC, N, T, LO, HI, OVER)                                                \
  RP_FN T rp_##F##_to_##N(SRC x) {                                                                \
    SRC c = (x > (SRC)(LO)) & (x < (SRC)(OVER)) ? x : 0;                                          \
    T r = (T)c;                                                                                   \
    r = x <= (SRC)(LO) ? (T)(LO) : r;                                                             \
    return x >= (SRC)(OVER) ? (T)(HI) : r;                                                        \
  }

#define RP_DEFINE_CASTS(F, SRC)                                                                   \
  RP_DEFINE_CAST_SMALL(F, SRC, i8, int8_t, -128, 127)                                             \
  RP_DEFINE_CAST_SMALL(F, SRC, u8, uint8_t, 0, 255)                                               \
  RP_DEFINE_CAST_SMALL(F, SRC, i16, int16_t, -32768, 32767)                                       \
  RP_DEFINE_CAST_SMALL(F, SRC, u16, uint16_t, 0, 65535)                                           \
  RP_DEFINE_CAST(F, SRC, i32, int32_t, -0x1p31, 2147483647, 0x1p31)                               \
  RP_DEFINE_CAST(F, SRC, u32, uint32_t, 0, 4294967295u, 0x1p32)                                   \
  RP_DEFINE_CAST(F, SRC, i64, int64_t, -0x1p63, 9223372036854775807ll, 0x1p63)                    \
  RP_DEFINE_CAST(F, SRC, u64, uint64_t, 0, 18446744073709551615ull, 0x1p64)                       \
  RP_FN uint8_t rp_##F##_to_bool(SRC x) { return x != 0; }

RP_DEFINE_CASTS(f32, float)
RP_DEFINE_CASTS(f64, double)

#undef RP_DEFINE_INT
#undef RP_DEFINE_SIGNED
#undef RP_DEFINE_UNSIGNED
#undef RP_DEFINE_CAST_SMALL
#undef RP_DEFINE_CAST
#undef RP_DEFINE_CASTS
#endif
