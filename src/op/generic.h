/* The names of ops.def's expressions, for x and y of any element type (bool is C's bool).
 *
 * rp_NAME(x) picks the scalar function by the type of x, as <tgmath.h> does: inside its own
 * expansion a macro's name is the function for double. Include it last; it is C only (CUDA
 * overloads instead). Beside the picking, this file defines what is one operator per type, and the
 * complex inverses. bool follows logic: + and max are or, * and min are and, - is exclusive or, x
 * ^ y is y implies x. */
#ifndef RPI_OP_GENERIC_H
#define RPI_OP_GENERIC_H

#include <stdbool.h>
#include <stdint.h>

#include "op/scalar.h"

/* Any ordered type. */
#define RP_DEFINE_ORDER(T, S)                                 \
  RP_FN bool rp_equal##S(T x, T y) { return x == y; }         \
  RP_FN bool rp_not_equal##S(T x, T y) { return x != y; }     \
  RP_FN bool rp_less##S(T x, T y) { return x < y; }           \
  RP_FN bool rp_less_equal##S(T x, T y) { return x <= y; }    \
  RP_FN T rp_conjugate##S(T x) { return x; }                  \
  RP_FN T rp_real##S(T x) { return x; }                       \
  RP_FN T rp_imag##S(T x) { return (void)x, (T)0; }

/* Integers and bool. */
#define RP_DEFINE_WHOLE(T, S)                                    \
  RP_DEFINE_ORDER(T, S)                                          \
  RP_FN T rp_ceil##S(T x) { return x; }                          \
  RP_FN T rp_floor##S(T x) { return x; }                         \
  RP_FN T rp_round##S(T x) { return x; }                         \
  RP_FN T rp_bitwise_and##S(T x, T y) { return (T)(x & y); }     \
  RP_FN T rp_bitwise_or##S(T x, T y) { return (T)(x | y); }      \
  RP_FN T rp_bitwise_xor##S(T x, T y) { return (T)(x ^ y); }     \
  RP_FN bool rp_isnan##S(T x) { return (void)x, false; }         \
  RP_FN bool rp_isinf##S(T x) { return (void)x, false; }         \
  RP_FN bool rp_isfinite##S(T x) { return (void)x, true; }       \
  RP_FN bool rp_isposinf##S(T x) { return (void)x, false; }      \
  RP_FN bool rp_isneginf##S(T x) { return (void)x, false; }

#define RP_DEFINE_INTEGER(T, S)                                    \
  RP_DEFINE_WHOLE(T, S)                                            \
  RP_FN T rp_bitwise_invert##S(T x) { return (T)~x; }              \
  RP_FN T rp_left_shift##S(T x, T y) { return rp_shl##S(x, y); }   \
  RP_FN T rp_right_shift##S(T x, T y) { return rp_shr##S(x, y); }

#define RP_DEFINE_FLOATING(T, S, INF)                       \
  RP_DEFINE_ORDER(T, S)                                     \
  RP_FN T rp_add##S(T x, T y) { return x + y; }             \
  RP_FN T rp_sub##S(T x, T y) { return x - y; }             \
  RP_FN T rp_mul##S(T x, T y) { return x * y; }             \
  RP_FN T rp_div##S(T x, T y) { return x / y; }             \
  RP_FN T rp_neg##S(T x) { return -x; }                     \
  RP_FN bool rp_isposinf##S(T x) { return x == INF; }       \
  RP_FN bool rp_isneginf##S(T x) { return x == -INF; }

RP_DEFINE_INTEGER(int8_t, _i8)
RP_DEFINE_INTEGER(int16_t, _i16)
RP_DEFINE_INTEGER(int32_t, _i32)
RP_DEFINE_INTEGER(int64_t, _i64)
RP_DEFINE_INTEGER(uint8_t, _u8)
RP_DEFINE_INTEGER(uint16_t, _u16)
RP_DEFINE_INTEGER(uint32_t, _u32)
RP_DEFINE_INTEGER(uint64_t, _u64)
RP_DEFINE_FLOATING(float, f, RP_INFF)
RP_DEFINE_FLOATING(double, , RP_INF)

/* bool
 * ------------------------------------------------------------------------------------------- */
RP_DEFINE_WHOLE(bool, _bool)
RP_FN bool rp_bitwise_invert_bool(bool x) { return !x; }
RP_FN bool rp_abs_bool(bool x) { return x; }
RP_FN bool rp_sign_bool(bool x) { return x; }
RP_FN bool rp_square_bool(bool x) { return x; }
RP_FN bool rp_add_bool(bool x, bool y) { return x | y; }
RP_FN bool rp_sub_bool(bool x, bool y) { return x ^ y; }
RP_FN bool rp_mul_bool(bool x, bool y) { return x & y; }
RP_FN bool rp_floor_divide_bool(bool x, bool y) { return x & y; }
RP_FN bool rp_remainder_bool(bool x, bool y) { return (void)x, (void)y, false; }
RP_FN bool rp_pow_bool(bool x, bool y) { return x | !y; }
RP_FN bool rp_maximum_bool(bool x, bool y) { return x | y; }
RP_FN bool rp_minimum_bool(bool x, bool y) { return x & y; }
RP_FN bool rp_left_shift_bool(bool x, bool y) { return x & !y; }
RP_FN bool rp_right_shift_bool(bool x, bool y) { return x & !y; }
RP_FN bool rp_logical_not(bool x) { return !x; }
RP_FN bool rp_logical_and(bool x, bool y) { return x & y; }
RP_FN bool rp_logical_or(bool x, bool y) { return x | y; }

/* complex64
 * -------------------------------------------------------------------------------------- */
RP_FN bool rp_equal_c64(struct rp_c64 x, struct rp_c64 y) { return rp_eq_c64(x, y); }
RP_FN bool rp_not_equal_c64(struct rp_c64 x, struct rp_c64 y) { return !rp_eq_c64(x, y); }
RP_FN bool rp_less_c64(struct rp_c64 x, struct rp_c64 y) { return rp_lt_c64(x, y); }
RP_FN bool rp_less_equal_c64(struct rp_c64 x, struct rp_c64 y) { return rp_le_c64(x, y); }
RP_FN float rp_real_c64(struct rp_c64 x) { return x.re; }
RP_FN float rp_imag_c64(struct rp_c64 x) { return x.im; }

RP_FN_LARGE struct rp_c64 rp_sigmoid_c64(struct rp_c64 z) {
  struct rp_c128 e = rp_exp_c128(rp_c128_make(-(double)z.re, -(double)z.im));
  return rp_narrow(rp_div_c128(rp_c128_make(1, 0), rp_c128_make(1 + e.re, e.im)));
}

/* Kahan, "Branch cuts for complex elementary functions" (1987): no cancellation, signs of zeros
 * kept. */
RP_FN_LARGE struct rp_c64 rp_asin_c64(struct rp_c64 z) {
  struct rp_c128 a = rp_sqrt_c128(rp_c128_make(1 - (double)z.re, -(double)z.im));
  struct rp_c128 b = rp_sqrt_c128(rp_c128_make(1 + (double)z.re, (double)z.im));
  double re = rp_atan2((double)z.re, a.re * b.re - a.im * b.im);
  return rp_c64_make((float)re, (float)rp_asinh(a.re * b.im - a.im * b.re));
}

RP_FN_LARGE struct rp_c64 rp_acos_c64(struct rp_c64 z) {
  struct rp_c128 a = rp_sqrt_c128(rp_c128_make(1 - (double)z.re, -(double)z.im));
  struct rp_c128 b = rp_sqrt_c128(rp_c128_make(1 + (double)z.re, (double)z.im));
  double re = 2 * rp_atan2(a.re, b.re);
  return rp_c64_make((float)re, (float)rp_asinh(b.re * a.im - b.im * a.re));
}

RP_FN_LARGE struct rp_c64 rp_acosh_c64(struct rp_c64 z) {
  struct rp_c128 a = rp_sqrt_c128(rp_c128_make((double)z.re - 1, (double)z.im));
  struct rp_c128 b = rp_sqrt_c128(rp_c128_make((double)z.re + 1, (double)z.im));
  double im = 2 * rp_atan2(a.im, b.re);
  return rp_c64_make((float)rp_asinh(a.re * b.re + a.im * b.im), (float)im);
}

RP_FN_LARGE struct rp_c64 rp_atanh_c64(struct rp_c64 z) {
  double x = (double)z.re, y = (double)z.im;
  double re = 0.25 * rp_log1p(4 * rp_abs(x) / ((1 - rp_abs(x)) * (1 - rp_abs(x)) + y * y));
  double im = 0.5 * rp_atan2(2 * y, (1 - x) * (1 + x) - y * y);
  return rp_c64_make((float)rp_copysign(re, x), (float)im);
}

/* f(z) = -i g(i z). */
RP_FN_LARGE struct rp_c64 rp_asinh_c64(struct rp_c64 z) {
  struct rp_c64 w = rp_asin_c64(rp_c64_make(-z.im, z.re));
  return rp_c64_make(w.im, -w.re);
}

RP_FN_LARGE struct rp_c64 rp_atan_c64(struct rp_c64 z) {
  struct rp_c64 w = rp_atanh_c64(rp_c64_make(-z.im, z.re));
  return rp_c64_make(w.im, -w.re);
}

#undef RP_DEFINE_ORDER
#undef RP_DEFINE_WHOLE
#undef RP_DEFINE_INTEGER
#undef RP_DEFINE_FLOATING

/* Picking, by what ops.def's rows take
 * ------------------------------------------------------------- */
#define RP_PICK_FLOAT(name, x) _Generic((x), float: name##f, double: name)
#define RP_PICK_FLOATC(name, x) \
  _Generic((x), float: name##f, double: name, struct rp_c64: name##_c64)
#define RP_INTEGERS(name)                                                                       \
  int8_t : name##_i8, int16_t : name##_i16, int32_t : name##_i32, int64_t : name##_i64,         \
  uint8_t : name##_u8, uint16_t : name##_u16, uint32_t : name##_u32, uint64_t : name##_u64
#define RP_PICK_INT(name, x) _Generic((x), bool: name##_bool, RP_INTEGERS(name))
#define RP_PICK_REAL(name, x) \
  _Generic((x), bool: name##_bool, RP_INTEGERS(name), float: name##f, double: name)
#define RP_PICK_NUM(name, x) \
  _Generic((x), RP_INTEGERS(name), float: name##f, double: name, struct rp_c64: name##_c64)
#define RP_PICK_ANY(name, x)                                                     \
  _Generic((x), bool: name##_bool, RP_INTEGERS(name), float: name##f, double: name, \
           struct rp_c64: name##_c64)

#define rp_abs(x) RP_PICK_ANY(rp_abs, x)(x)
#define rp_neg(x) RP_PICK_NUM(rp_neg, x)(x)
#define rp_sign(x) RP_PICK_ANY(rp_sign, x)(x)
#define rp_square(x) RP_PICK_ANY(rp_square, x)(x)
#define rp_sqrt(x) RP_PICK_FLOATC(rp_sqrt, x)(x)
#define rp_rsqrt(x) RP_PICK_FLOATC(rp_rsqrt, x)(x)
#define rp_reciprocal(x) RP_PICK_FLOATC(rp_reciprocal, x)(x)
#define rp_exp(x) RP_PICK_FLOATC(rp_exp, x)(x)
#define rp_expm1(x) RP_PICK_FLOATC(rp_expm1, x)(x)
#define rp_log(x) RP_PICK_FLOATC(rp_log, x)(x)
#define rp_log2(x) RP_PICK_FLOATC(rp_log2, x)(x)
#define rp_log10(x) RP_PICK_FLOATC(rp_log10, x)(x)
#define rp_log1p(x) RP_PICK_FLOATC(rp_log1p, x)(x)
#define rp_sin(x) RP_PICK_FLOATC(rp_sin, x)(x)
#define rp_cos(x) RP_PICK_FLOATC(rp_cos, x)(x)
#define rp_tan(x) RP_PICK_FLOATC(rp_tan, x)(x)
#define rp_asin(x) RP_PICK_FLOATC(rp_asin, x)(x)
#define rp_acos(x) RP_PICK_FLOATC(rp_acos, x)(x)
#define rp_atan(x) RP_PICK_FLOATC(rp_atan, x)(x)
#define rp_sinh(x) RP_PICK_FLOATC(rp_sinh, x)(x)
#define rp_cosh(x) RP_PICK_FLOATC(rp_cosh, x)(x)
#define rp_tanh(x) RP_PICK_FLOATC(rp_tanh, x)(x)
#define rp_asinh(x) RP_PICK_FLOATC(rp_asinh, x)(x)
#define rp_acosh(x) RP_PICK_FLOATC(rp_acosh, x)(x)
#define rp_atanh(x) RP_PICK_FLOATC(rp_atanh, x)(x)
#define rp_erf(x) RP_PICK_FLOAT(rp_erf, x)(x)
#define rp_erfinv(x) RP_PICK_FLOAT(rp_erfinv, x)(x)
#define rp_sigmoid(x) RP_PICK_FLOATC(rp_sigmoid, x)(x)
#define rp_ceil(x) RP_PICK_REAL(rp_ceil, x)(x)
#define rp_floor(x) RP_PICK_REAL(rp_floor, x)(x)
#define rp_round(x) RP_PICK_ANY(rp_round, x)(x)
#define rp_bitwise_invert(x) RP_PICK_INT(rp_bitwise_invert, x)(x)
#define rp_conjugate(x) RP_PICK_ANY(rp_conjugate, x)(x)
#define rp_real(x) RP_PICK_ANY(rp_real, x)(x)
#define rp_imag(x) RP_PICK_ANY(rp_imag, x)(x)
#define rp_isnan(x) RP_PICK_ANY(rp_isnan, x)(x)
#define rp_isinf(x) RP_PICK_ANY(rp_isinf, x)(x)
#define rp_isfinite(x) RP_PICK_ANY(rp_isfinite, x)(x)
#define rp_isposinf(x) RP_PICK_ANY(rp_isposinf, x)(x)
#define rp_isneginf(x) RP_PICK_ANY(rp_isneginf, x)(x)
#define rp_add(x, y) RP_PICK_ANY(rp_add, x)(x, y)
#define rp_sub(x, y) RP_PICK_ANY(rp_sub, x)(x, y)
#define rp_mul(x, y) RP_PICK_ANY(rp_mul, x)(x, y)
#define rp_div(x, y) RP_PICK_FLOATC(rp_div, x)(x, y)
#define rp_floor_divide(x, y) RP_PICK_REAL(rp_floor_divide, x)(x, y)
#define rp_remainder(x, y) RP_PICK_REAL(rp_remainder, x)(x, y)
#define rp_pow(x, y) RP_PICK_ANY(rp_pow, x)(x, y)
#define rp_maximum(x, y) RP_PICK_ANY(rp_maximum, x)(x, y)
#define rp_minimum(x, y) RP_PICK_ANY(rp_minimum, x)(x, y)
#define rp_atan2(x, y) RP_PICK_FLOAT(rp_atan2, x)(x, y)
#define rp_logaddexp(x, y) RP_PICK_FLOATC(rp_logaddexp, x)(x, y)
#define rp_equal(x, y) RP_PICK_ANY(rp_equal, x)(x, y)
#define rp_not_equal(x, y) RP_PICK_ANY(rp_not_equal, x)(x, y)
#define rp_less(x, y) RP_PICK_ANY(rp_less, x)(x, y)
#define rp_less_equal(x, y) RP_PICK_ANY(rp_less_equal, x)(x, y)
#define rp_bitwise_and(x, y) RP_PICK_INT(rp_bitwise_and, x)(x, y)
#define rp_bitwise_or(x, y) RP_PICK_INT(rp_bitwise_or, x)(x, y)
#define rp_bitwise_xor(x, y) RP_PICK_INT(rp_bitwise_xor, x)(x, y)
#define rp_left_shift(x, y) RP_PICK_INT(rp_left_shift, x)(x, y)
#define rp_right_shift(x, y) RP_PICK_INT(rp_right_shift, x)(x, y)

#endif
