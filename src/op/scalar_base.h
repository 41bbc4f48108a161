/* What the scalar functions are built from: the inline marker, fused multiply-add, bit views.
 *
 * Invariants:
 * 1. Everything here and in scalar_*.h is the common subset of C and CUDA C. A CUDA translation
 *    unit defines RP_FN, RP_FMA and RP_FMAF before including, and compiles without contraction.
 * 2. A fused multiply-add is always written as RP_FMA or RP_FMAF; all other arithmetic rounds each
 *    step. Needs -ffp-contract=off, round to nearest, no flush of subnormals.
 * 3. A NaN argument comes back as it is (the first of two), unless a function says so: which NaN
 *    an instruction with several picks depends on the order of operands, which belongs to the
 *    compiler.
 * 4. No branch that depends on data, unless a function says so: conditions are selects, so that a
 *    plain loop over any of these vectorizes, with the same bits at every width. */
#ifndef RPI_OP_SCALAR_BASE_H
#define RPI_OP_SCALAR_BASE_H

#ifndef RP_FN
#include "base/attr.h"
#include <stdint.h>
#define RP_FN RPI_INLINE
#define RP_FMA(a, b, c) __builtin_fma(a, b, c)
#define RP_FMAF(a, b, c) __builtin_fmaf(a, b, c)
#define RP_SQRT(x) __builtin_sqrt(x)
#define RP_SQRTF(x) __builtin_sqrtf(x)
#define RP_FMOD(x, y) __builtin_fmod(x, y)
#define RP_FMODF(x, y) __builtin_fmodf(x, y)
#endif

/* Functions too large to be worth inlining or vectorizing (complex ones). */
#ifndef RP_FN_LARGE
#define RP_FN_LARGE static inline
#endif

/* Added and taken away again, it rounds |x| < 2^51 (2^22) to an integer, halves to even; while it
 * is added, the integer stands in the low bits. */
#define RP_MAGIC 0x1.8p52
#define RP_MAGICF 0x1.8p23f

union rp_view64 {
  double f;
  uint64_t u;
};

union rp_view32 {
  float f;
  uint32_t u;
};

RP_FN uint64_t rp_bits(double x) {
  union rp_view64 v;
  v.f = x;
  return v.u;
}

RP_FN double rp_from_bits(uint64_t u) {
  union rp_view64 v;
  v.u = u;
  return v.f;
}

RP_FN uint32_t rp_bitsf(float x) {
  union rp_view32 v;
  v.f = x;
  return v.u;
}

RP_FN float rp_from_bitsf(uint32_t u) {
  union rp_view32 v;
  v.u = u;
  return v.f;
}

#define RP_SIGN_BIT 0x8000000000000000ull
#define RP_SIGN_BITF 0x80000000u
#define RP_INF rp_from_bits(0x7FF0000000000000ull)
#define RP_NAN rp_from_bits(0x7FF8000000000000ull)
#define RP_INFF rp_from_bitsf(0x7F800000u)
#define RP_NANF rp_from_bitsf(0x7FC00000u)

/* What every floating type has, once for double and once for float.
 * BIG: from this magnitude on, every value is an integer. */
#define RP_DEFINE_BASIC(T, S, U, BITS, FROM_BITS, SIGN, INF, NAN_, BIG, SQRT, FMOD)               \
  RP_FN T rp_abs##S(T x) { return FROM_BITS(BITS(x) & ~SIGN); }                                   \
  RP_FN T rp_copysign##S(T x, T s) { return FROM_BITS((BITS(x) & ~SIGN) | (BITS(s) & SIGN)); }    \
  RP_FN int rp_signbit##S(T x) { return (BITS(x) & SIGN) != 0; }                                  \
  RP_FN int rp_isnan##S(T x) { return (BITS(x) & ~SIGN) > BITS(INF); }                            \
  RP_FN int rp_isinf##S(T x) { return (BITS(x) & ~SIGN) == BITS(INF); }                           \
  RP_FN int rp_isfinite##S(T x) { return (BITS(x) & ~SIGN) < BITS(INF); }                         \
  /* Half to even. */                                                                             \
  RP_FN T rp_round##S(T x) {                                                                      \
    T a = rp_abs##S(x), r = (a + BIG) - BIG;                                                      \
    return a < BIG ? rp_copysign##S(r, x) : x;                                                    \
  }                                                                                               \
  RP_FN T rp_floor##S(T x) {                                                                      \
    T r = rp_round##S(x);                                                                         \
    return rp_copysign##S(r > x ? r - 1 : r, x);                                                  \
  }                                                                                               \
  RP_FN T rp_ceil##S(T x) {                                                                       \
    T r = rp_round##S(x);                                                                         \
    return rp_copysign##S(r < x ? r + 1 : r, x);                                                  \
  }                                                                                               \
  RP_FN T rp_trunc##S(T x) {                                                                      \
    T a = rp_abs##S(x), r = rp_round##S(a);                                                       \
    return rp_copysign##S(r > a ? r - 1 : r, x);                                                  \
  }                                                                                               \
  /* -1, +0, 1; NaN gives NaN. */                                                                 \
  RP_FN T rp_sign##S(T x) {                                                                       \
    T r = x > 0 ? (T)1 : (T)0;                                                                    \
    r = x < 0 ? (T)-1 : r;                                                                        \
    return x != x ? x : r;                                                                        \
  }                                                                                               \
  RP_FN T rp_square##S(T x) { return x * x; }                                                     \
  RP_FN T rp_reciprocal##S(T x) { return 1 / x; }                                                 \
  RP_FN T rp_sqrt##S(T x) { return SQRT(x); }                                                     \
  RP_FN T rp_rsqrt##S(T x) { return 1 / SQRT(x); }                                                \
  /* NaN wins, the first one; of two equal values the second is taken. */                         \
  RP_FN T rp_maximum##S(T x, T y) {                                                               \
    T r = x > y ? x : y;                                                                          \
    return x != x ? x : r;                                                                        \
  }                                                                                               \
  RP_FN T rp_minimum##S(T x, T y) {                                                               \
    T r = x < y ? x : y;                                                                          \
    return x != x ? x : r;                                                                        \
  }                                                                                               \
  /* The special cases of pow; r: |x|^y. From 2 BIG on, integers are even. */ \
  RP_FN T rp_pow_ends##S(T x, T y, T r) {                                                         \
    T a = rp_abs##S(x), half = y * (T)0.5, edge = (a == 0) == (y < 0) ? INF : 0;                  \
    int is_int = rp_floor##S(y) == y;                                                             \
    int is_odd = is_int & (rp_floor##S(half) != half) & (rp_abs##S(y) < 2 * BIG);                 \
    r = (a == 0) | (a == INF) ? edge : r;                                                         \
    r = a == 1 ? 1 : r;                                                                           \
    r = is_odd & rp_signbit##S(x) ? -r : r;                                                       \
    r = (x < 0) & (a < INF) & !is_int ? NAN_ : r;                                                 \
    r = y == y ? r : y;                                                                           \
    r = x == x ? r : x;                                                                           \
    return (y == 0) | (x == 1) ? 1 : r;                                                           \
  }                                                                                               \
  /* Python's %: the divisor's sign, exact; 1 % -inf is -inf. Does not vectorize. */ \
  RP_FN T rp_remainder##S(T x, T y) {                                                             \
    T r = FMOD(x, y);                                                                             \
    r = (r != 0) & ((r < 0) != (y < 0)) ? r + y : r;                                              \
    return r == 0 ? rp_copysign##S(r, y) : r;                                                     \
  }                                                                                               \
  /* Python's //; where Python raises (y = 0), the quotient x / y. Does not vectorize. */         \
  RP_FN T rp_floor_divide##S(T x, T y) {                                                          \
    T r = FMOD(x, y), q = (x - r) / y; /* an integer but for its rounding */                      \
    q = rp_round##S((r != 0) & ((r < 0) != (y < 0)) ? q - 1 : q);                                 \
    q = q == 0 ? rp_copysign##S(0, x / y) : q;                                                    \
    return y == 0 ? x / y : q;                                                                    \
  }

RP_DEFINE_BASIC(double, , uint64_t, rp_bits, rp_from_bits, RP_SIGN_BIT, RP_INF, RP_NAN, 0x1p52,
                RP_SQRT, RP_FMOD)
RP_DEFINE_BASIC(float, f, uint32_t, rp_bitsf, rp_from_bitsf, RP_SIGN_BITF, RP_INFF, RP_NANF,
                0x1p23f,
                RP_SQRTF, RP_FMODF)

#undef RP_DEFINE_BASIC
#endif
