/* Functions of complex64, computed in double and rounded once: products and squares of floats are
 * exact in double and its range rules out the overflows that a careful float version would scale
 * away. Not vectorized.
 *
 * Build with -fno-tree-slp-vectorize: gcc 12 pairs re and im up and then drops the rounding in
 * double -> float -> double.
 *
 * Infinities and zeros of multiplication and division follow C99 Annex G. Order is NumPy's: real
 * parts first, then imaginary parts; any NaN makes a comparison false. */
#ifndef RPI_OP_SCALAR_COMPLEX_H
#define RPI_OP_SCALAR_COMPLEX_H

#include "op/scalar_base.h"
#include "op/scalar_f64.h"

struct rp_c64 {
  float re, im;
};

/* The same in double, for intermediate results. */
struct rp_c128 {
  double re, im;
};

RP_FN struct rp_c64 rp_c64_make(float re, float im) {
  struct rp_c64 z;
  z.re = re;
  z.im = im;
  return z;
}

RP_FN struct rp_c128 rp_c128_make(double re, double im) {
  struct rp_c128 z;
  z.re = re;
  z.im = im;
  return z;
}

RP_FN struct rp_c128 rp_widen(struct rp_c64 z) {
  return rp_c128_make((double)z.re, (double)z.im);
}

RP_FN struct rp_c64 rp_narrow(struct rp_c128 z) {
  return rp_c64_make((float)z.re, (float)z.im);
}

RP_FN struct rp_c64 rp_add_c64(struct rp_c64 x, struct rp_c64 y) {
  return rp_c64_make(x.re + y.re, x.im + y.im);
}

RP_FN struct rp_c64 rp_sub_c64(struct rp_c64 x, struct rp_c64 y) {
  return rp_c64_make(x.re - y.re, x.im - y.im);
}

RP_FN struct rp_c64 rp_neg_c64(struct rp_c64 x) {
  return rp_c64_make(-x.re, -x.im);
}

RP_FN struct rp_c64 rp_conjugate_c64(struct rp_c64 x) {
  return rp_c64_make(x.re, -x.im);
}

RP_FN int rp_isnan_c64(struct rp_c64 x) {
  return rp_isnanf(x.re) | rp_isnanf(x.im);
}

RP_FN int rp_isinf_c64(struct rp_c64 x) {
  return rp_isinff(x.re) | rp_isinff(x.im);
}

/* Equal to the real number inf or -inf. */
RP_FN int rp_isposinf_c64(struct rp_c64 x) {
  return (x.re == RP_INFF) & (x.im == 0);
}

RP_FN int rp_isneginf_c64(struct rp_c64 x) {
  return (x.re == -RP_INFF) & (x.im == 0);
}

RP_FN int rp_isfinite_c64(struct rp_c64 x) {
  return rp_isfinitef(x.re) & rp_isfinitef(x.im);
}

/* Comparisons ---------------------------------------------------------------------------------- */

RP_FN int rp_eq_c64(struct rp_c64 x, struct rp_c64 y) {
  return (x.re == y.re) & (x.im == y.im);
}

RP_FN int rp_lt_c64(struct rp_c64 x, struct rp_c64 y) {
  return ((x.re < y.re) & !rp_isnanf(x.im) & !rp_isnanf(y.im)) | ((x.re == y.re) & (x.im < y.im));
}

RP_FN int rp_le_c64(struct rp_c64 x, struct rp_c64 y) {
  return rp_lt_c64(x, y) | rp_eq_c64(x, y);
}

RP_FN struct rp_c64 rp_maximum_c64(struct rp_c64 x, struct rp_c64 y) {
  return rp_isnan_c64(x) | rp_lt_c64(y, x) ? x : y;
}

RP_FN struct rp_c64 rp_minimum_c64(struct rp_c64 x, struct rp_c64 y) {
  return rp_isnan_c64(x) | rp_lt_c64(x, y) ? x : y;
}

/* Multiplication and division ------------------------------------------------------------------ */

/* An infinite part stands for +-1, any other for +-0: the direction of an infinity. */
RP_FN double rp_direction(double x) {
  return rp_copysign(rp_isinf(x) ? 1 : 0, x);
}

RP_FN double rp_nan_to_zero(double x) {
  return x != x ? rp_copysign(0, x) : x;
}

RP_FN_LARGE struct rp_c64 rp_mul_c64(struct rp_c64 x, struct rp_c64 y) {
  double a = (double)x.re, b = (double)x.im, c = (double)y.re, d = (double)y.im;
  struct rp_c128 r = rp_c128_make(a * c - b * d, a * d + b * c);
  if ((r.re != r.re) & (r.im != r.im) & (rp_isinf_c64(x) | rp_isinf_c64(y))) {
    double p = rp_isinf_c64(x) ? rp_direction(a) : rp_nan_to_zero(a);
    double q = rp_isinf_c64(x) ? rp_direction(b) : rp_nan_to_zero(b);
    double s = rp_isinf_c64(y) ? rp_direction(c) : rp_nan_to_zero(c);
    double t = rp_isinf_c64(y) ? rp_direction(d) : rp_nan_to_zero(d);
    r = rp_c128_make(RP_INF * (p * s - q * t), RP_INF * (p * t + q * s));
  }
  return rp_narrow(r);
}

RP_FN_LARGE struct rp_c128 rp_div_c128(struct rp_c128 x, struct rp_c128 y) {
  double a = x.re, b = x.im, c = y.re, d = y.im, n = c * c + d * d;
  struct rp_c128 r = rp_c128_make((a * c + b * d) / n, (b * c - a * d) / n);
  int x_inf = rp_isinf(a) | rp_isinf(b), y_inf = rp_isinf(c) | rp_isinf(d);
  if (!((r.re != r.re) & (r.im != r.im)))
    return r;
  if ((n == 0) & ((a == a) | (b == b)))
    return rp_c128_make(rp_copysign(RP_INF, c) * a, rp_copysign(RP_INF, c) * b);
  if (x_inf & rp_isfinite(c) & rp_isfinite(d)) {
    a = rp_direction(a);
    b = rp_direction(b);
    return rp_c128_make(RP_INF * (a * c + b * d), RP_INF * (b * c - a * d));
  }
  if (y_inf & rp_isfinite(a) & rp_isfinite(b)) {
    c = rp_direction(c);
    d = rp_direction(d);
    return rp_c128_make(0 * (a * c + b * d), 0 * (b * c - a * d));
  }
  return r;
}

RP_FN_LARGE struct rp_c64 rp_div_c64(struct rp_c64 x, struct rp_c64 y) {
  return rp_narrow(rp_div_c128(rp_widen(x), rp_widen(y)));
}

RP_FN_LARGE struct rp_c64 rp_reciprocal_c64(struct rp_c64 x) {
  return rp_narrow(rp_div_c128(rp_c128_make(1, 0), rp_widen(x)));
}

RP_FN_LARGE struct rp_c64 rp_square_c64(struct rp_c64 x) {
  return rp_mul_c64(x, x);
}

/* Modulus, argument, root ---------------------------------------------------------------------- */

RP_FN_LARGE double rp_abs_c128(struct rp_c128 z) {
  double n = RP_SQRT(z.re * z.re + z.im * z.im);
  return rp_isinf(z.re) | rp_isinf(z.im) ? RP_INF : n;
}

RP_FN_LARGE float rp_abs_c64(struct rp_c64 z) {
  return (float)rp_abs_c128(rp_widen(z));
}

/* z / |z|; 0 stays 0. */
RP_FN_LARGE struct rp_c64 rp_sign_c64(struct rp_c64 z) {
  double n = rp_abs_c128(rp_widen(z));
  if (n == 0)
    return rp_c64_make(0, 0);
  return rp_c64_make((float)((double)z.re / n), (float)((double)z.im / n));
}

RP_FN struct rp_c64 rp_round_c64(struct rp_c64 z) {
  return rp_c64_make(rp_roundf(z.re), rp_roundf(z.im));
}

RP_FN_LARGE struct rp_c128 rp_sqrt_c128(struct rp_c128 z) {
  double n = rp_abs_c128(z), t, a = rp_abs(z.re);
  if (rp_isinf(z.im))
    return rp_c128_make(RP_INF, z.im);
  if (rp_isinf(z.re) & (z.im != z.im))
    return z.re > 0 ? z : rp_c128_make(z.im, RP_INF);
  if (rp_isinf(z.re))
    return z.re > 0 ? rp_c128_make(RP_INF, rp_copysign(0, z.im))
                    : rp_c128_make(0, rp_copysign(RP_INF, z.im));
  if (n == 0)
    return rp_c128_make(0, z.im);
  t = RP_SQRT(0.5 * (n + a));
  if (z.re >= 0)
    return rp_c128_make(t, z.im / (2 * t));
  return rp_c128_make(rp_abs(z.im) / (2 * t), rp_copysign(t, z.im));
}

RP_FN_LARGE struct rp_c64 rp_sqrt_c64(struct rp_c64 z) {
  return rp_narrow(rp_sqrt_c128(rp_widen(z)));
}

RP_FN_LARGE struct rp_c64 rp_rsqrt_c64(struct rp_c64 z) {
  return rp_narrow(rp_div_c128(rp_c128_make(1, 0), rp_sqrt_c128(rp_widen(z))));
}

/* exp and log ---------------------------------------------------------------------------------- */

/* s t, where a zero s wins over an infinite t. */
RP_FN double rp_times(double s, double t) {
  return s == 0 ? rp_copysign(s, rp_signbit(s) != rp_signbit(t) ? -1.0 : 1.0) : s * t;
}

RP_FN_LARGE struct rp_c128 rp_exp_c128(struct rp_c128 z) {
  double m = rp_exp(z.re);
  if (z.im == 0)
    return rp_c128_make(m, z.im);
  if (rp_isinf(z.re) & !rp_isfinite(z.im))
    return z.re > 0 ? rp_c128_make(RP_INF, RP_NAN) : rp_c128_make(0, 0);
  return rp_c128_make(rp_times(rp_cos(z.im), m), rp_times(rp_sin(z.im), m));
}

RP_FN_LARGE struct rp_c64 rp_exp_c64(struct rp_c64 z) {
  return rp_narrow(rp_exp_c128(rp_widen(z)));
}

/* Near |z| = 1 the logarithm of the modulus cancels; (a - 1)(a + 1) and b^2 are exact there. */
RP_FN_LARGE struct rp_c128 rp_log_c128(struct rp_c128 z) {
  double x = rp_abs(z.re), y = rp_abs(z.im);
  double a = x > y ? x : y, b = x > y ? y : x, n = a * a + b * b;
  double r = (n > 0.5) & (n < 3) ? rp_log1p((a - 1) * (a + 1) + b * b) : rp_log(n);
  r = rp_isinf(z.re) | rp_isinf(z.im) ? RP_INF : 0.5 * r;
  return rp_c128_make(r, rp_atan2(z.im, z.re));
}

RP_FN_LARGE struct rp_c64 rp_log_c64(struct rp_c64 z) {
  return rp_narrow(rp_log_c128(rp_widen(z)));
}

RP_FN_LARGE struct rp_c64 rp_log2_c64(struct rp_c64 z) {
  struct rp_c128 l = rp_log_c128(rp_widen(z));
  return rp_c64_make((float)(l.re * RP_LOG2E), (float)(l.im * RP_LOG2E));
}

RP_FN_LARGE struct rp_c64 rp_log10_c64(struct rp_c64 z) {
  struct rp_c128 l = rp_log_c128(rp_widen(z));
  return rp_c64_make((float)(l.re * RP_LOG10E), (float)(l.im * RP_LOG10E));
}

RP_FN_LARGE struct rp_c128 rp_log1p_c128(struct rp_c128 z) {
  double a = z.re, b = z.im, n = a * (a + 2) + b * b;
  if (!(n < 3))
    return rp_log_c128(rp_c128_make(1 + a, b));
  return rp_c128_make(0.5 * rp_log1p(n), rp_atan2(b, 1 + a));
}

RP_FN_LARGE struct rp_c64 rp_log1p_c64(struct rp_c64 z) {
  return rp_narrow(rp_log1p_c128(rp_widen(z)));
}

/* The larger one plus log1p(exp(smaller - larger)). With an infinite real part, the larger one. */
RP_FN_LARGE struct rp_c64 rp_logaddexp_c64(struct rp_c64 x, struct rp_c64 y) {
  struct rp_c64 top = rp_maximum_c64(x, y), low = rp_minimum_c64(x, y);
  struct rp_c128 r;
  if (rp_isnan_c64(x) | rp_isnan_c64(y))
    return rp_c64_make(RP_NANF, RP_NANF);
  if ((low.re == -RP_INFF) | (top.re == RP_INFF))
    return top;
  r = rp_exp_c128(rp_c128_make((double)low.re - (double)top.re, (double)low.im - (double)top.im));
  r = rp_log1p_c128(r);
  return rp_narrow(rp_c128_make((double)top.re + r.re, (double)top.im + r.im));
}

/* exp(x) cos y - 1 = (exp(x) - 1) cos y - 2 sin^2(y / 2). */
RP_FN_LARGE struct rp_c64 rp_expm1_c64(struct rp_c64 z) {
  double x = (double)z.re, y = (double)z.im, h = rp_sin(0.5 * y);
  struct rp_c128 e = rp_exp_c128(rp_c128_make(x, y));
  if (!(rp_isfinite(x) & rp_isfinite(y)))
    return rp_c64_make((float)(e.re - 1), (float)e.im);
  return rp_c64_make((float)(rp_times(rp_cos(y), rp_expm1(x)) - 2 * h * h), (float)e.im);
}

/* x^0 = 1; 0^y is 0 for a positive real part of y, NaN otherwise. */
RP_FN_LARGE struct rp_c64 rp_pow_c64(struct rp_c64 x, struct rp_c64 y) {
  double c = (double)y.re, d = (double)y.im;
  struct rp_c128 l;
  if ((c == 0) & (d == 0))
    return rp_c64_make(1, 0);
  if ((x.re == 0) & (x.im == 0))
    return c > 0 ? rp_c64_make(0, 0) : rp_c64_make(RP_NANF, RP_NANF);
  if ((c == 1) & (d == 0))
    return x;
  l = rp_log_c128(rp_widen(x));
  return rp_narrow(rp_exp_c128(rp_c128_make(c * l.re - d * l.im, c * l.im + d * l.re)));
}

/* Trigonometric and hyperbolic: sin z = -i sinh(i z) and so on --------------------------------- */

RP_FN_LARGE struct rp_c64 rp_sinh_c64(struct rp_c64 z) {
  double x = (double)z.re, y = (double)z.im;
  if (y == 0)
    return rp_c64_make((float)rp_sinh(x), z.im);
  return rp_c64_make((float)rp_times(rp_sinh(x), rp_cos(y)), (float)(rp_sin(y) * rp_cosh(x)));
}

RP_FN_LARGE struct rp_c64 rp_cosh_c64(struct rp_c64 z) {
  double x = (double)z.re, y = (double)z.im;
  double im = x == 0 ? rp_times(x, y) : y == 0 ? rp_times(y, x) : rp_sinh(x) * rp_sin(y);
  return rp_c64_make((float)(rp_cosh(x) * (y == 0 ? 1 : rp_cos(y))), (float)im);
}

/* With t = tan y, s = sinh x: (s sqrt(1 + s^2) (1 + t^2) + i t) / (1 + s^2 (1 + t^2)); past |x| =
 * 20, +-1. */
RP_FN_LARGE struct rp_c64 rp_tanh_c64(struct rp_c64 z) {
  double x = (double)z.re, y = (double)z.im, t, s, b, d;
  if (rp_abs(x) > 20) {
    double e = rp_exp(-rp_abs(x)), v = rp_isfinite(y) ? 4 * rp_sin(y) * rp_cos(y) * e * e : 0;
    return rp_c64_make((float)rp_copysign(1, x), (float)v);
  }
  t = y == 0 ? y : rp_tan(y);
  s = rp_sinh(x);
  b = 1 + t * t;
  d = 1 + b * s * s;
  return rp_c64_make((float)(b * RP_SQRT(1 + s * s) * s / d), (float)(t / d));
}

RP_FN_LARGE struct rp_c64 rp_sin_c64(struct rp_c64 z) {
  struct rp_c64 w = rp_sinh_c64(rp_c64_make(-z.im, z.re));
  return rp_c64_make(w.im, -w.re);
}

RP_FN_LARGE struct rp_c64 rp_cos_c64(struct rp_c64 z) {
  return rp_cosh_c64(rp_c64_make(-z.im, z.re));
}

RP_FN_LARGE struct rp_c64 rp_tan_c64(struct rp_c64 z) {
  struct rp_c64 w = rp_tanh_c64(rp_c64_make(-z.im, z.re));
  return rp_c64_make(w.im, -w.re);
}

#endif
