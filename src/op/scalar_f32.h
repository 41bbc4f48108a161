/* Elementary functions of float, branch-free. See scalar_base.h for the invariants.
 *
 * The hot ones (exp, log, tanh, sigmoid, erf and kin) stay in float; the others compute in double
 * with short polynomials and round once, which costs half the lanes and gives nearly always the
 * nearest float. C99 Annex F throughout. Error bounds in ulp: 2, erfinv 4. */
#ifndef RPI_OP_SCALAR_F32_H
#define RPI_OP_SCALAR_F32_H

#include "op/scalar_base.h"
#include "op/scalar_f64.h"
#include "op/scalar_poly.h"

#define RP_LN2F 0x1.62e430p-1f
#define RP_LN2F_LO (-0x1.05c610p-29f)
#define RP_LOG2EF 0x1.715476p+0f

/* exp family ----------------------------------------------------------------------------------- */

/* 2^k for an integer k in [-126, 127]. */
RP_FN float rp_pow2if(float k) {
  return rp_from_bitsf(rp_bitsf(k + (RP_MAGICF + 127)) << 23);
}

/* p 2^k for an integer |k| < 250, rounded once. */
RP_FN float rp_scale2f(float p, float k) {
  float a = (k * 0.5f + RP_MAGICF) - RP_MAGICF;
  return p * rp_pow2if(a) * rp_pow2if(k - a);
}

RP_FN float rp_clampf(float x, float lo, float hi) {
  x = x < lo ? lo : x;
  return x > hi ? hi : x;
}

/* exp(x) = 2^k (1 + r + t) for |x| < 200. */
struct rp_exp_partsf {
  float k, r, t;
};

RP_FN struct rp_exp_partsf rp_exp_splitf(float x) {
  struct rp_exp_partsf e;
  float k = RP_FMAF(x, RP_LOG2EF, RP_MAGICF) - RP_MAGICF;
  float r = RP_FMAF(-k, RP_LN2F_LO, RP_FMAF(-k, RP_LN2F, x));
  e.k = k;
  e.r = r;
  e.t = r * r * rp_poly_expf(r);
  return e;
}

RP_FN float rp_expf(float x) {
  struct rp_exp_partsf e = rp_exp_splitf(rp_clampf(x, -105, 89));
  float r = rp_scale2f(1 + (e.r + e.t), e.k);
  return x == x ? r : x;
}

RP_FN float rp_exp2f(float x) {
  float c = rp_clampf(x, -151, 129), k = (c + RP_MAGICF) - RP_MAGICF, r = (c - k) * RP_LN2F;
  float v = rp_scale2f(1 + RP_FMAF(r * r, rp_poly_expf(r), r), k);
  return x == x ? v : x;
}

RP_FN float rp_expm1f(float x) {
  struct rp_exp_partsf e = rp_exp_splitf(rp_clampf(x, -30, 89));
  float half = rp_pow2if(e.k - 1), q = e.r + e.t, q_lo = (e.r - q) + e.t; /* 2^128 would not fit */
  float a = half - 0.5f, b = half * q, s = a + b, bb = s - a;
  float lo = ((a - (s - bb)) + (b - bb)) + half * q_lo;
  float v = e.k == 0 ? q : 2 * (s + lo);
  v = x == 0 ? x : v;
  return x == x ? v : x;
}

RP_FN float rp_sigmoidf(float x) {
  float e = rp_expf(-rp_absf(x)); /* never overflows */
  float r = (x < 0 ? e : 1) / (1 + e);
  return x == x ? r : x;
}

RP_FN float rp_tanhf(float x) {
  float a = rp_absf(x), z = a * a;
  float small = RP_FMAF(a * z, rp_poly_tanhf(z), a);
  struct rp_exp_partsf e = rp_exp_splitf(2 * (a > 10 ? 10 : a));
  float t = (1 + (e.r + e.t)) * rp_pow2if(e.k);
  float large = 1 - 2 / (1 + t);
  float r = rp_copysignf(a < 0.625f ? small : large, x);
  return x == x ? r : x;
}

/* log family ----------------------------------------------------------------------------------- */

struct rp_log_partsf {
  float f, e;
};

/* As rp_log_split. */
RP_FN struct rp_log_partsf rp_log_splitf(float x) {
  struct rp_log_partsf p;
  const uint32_t low = 0x3F3504F3u; /* sqrt(1/2) */
  int tiny = x < 0x1p-126f;
  uint32_t t = rp_bitsf(tiny ? x * 0x1p24f : x) - low + (128u << 23);
  float e = (float)((int32_t)(t >> 23) - 128);
  p.e = tiny ? e - 24 : e;
  p.f = rp_from_bitsf((t & 0x007FFFFFu) + low) - 1;
  return p;
}

/* e ln2 + log(1 + f) + c. */
RP_FN float rp_log_joinf(struct rp_log_partsf p, float c) {
  float f = p.f, z = f * f;
  float rest = RP_FMAF(f * z, rp_poly_logf(f), RP_FMAF(p.e, RP_LN2F_LO, c));
  return RP_FMAF(p.e, RP_LN2F, f - RP_FMAF(0.5f, z, -rest));
}

RP_FN float rp_log_endsf(float x, float r) {
  r = x > 0 ? r : x == 0 ? -RP_INFF : RP_NANF;
  return x < RP_INFF ? r : x;
}

RP_FN float rp_logf(float x) {
  return rp_log_endsf(x, rp_log_joinf(rp_log_splitf(x), 0));
}

RP_FN float rp_log1pf(float x) {
  float u = 1 + x, b = u - 1, lo = (1 - (u - b)) + (x - b);
  struct rp_log_partsf p = rp_log_splitf(u);
  float r = rp_log_joinf(p, lo * rp_pow2if(p.e > 100 ? -100 : -p.e) / (1 + p.f));
  r = x > -1 ? r : x == -1 ? -RP_INFF : RP_NANF;
  r = x < RP_INFF ? r : x;
  return x == 0 ? x : r;
}

/* The larger one plus log(1 + exp(-distance)); where the two terms cancel, the error is absolute.
 * */
RP_FN float rp_logaddexpf(float x, float y) {
  float top = rp_maximumf(x, y), d = rp_absf(x - y);
  d = x == y ? 0 : d; /* inf - inf */
  float r = top + rp_log1pf(rp_expf(-d));
  return top == top ? r : top;
}

/* erf ------------------------------------------------------------------------------------------ */

RP_FN float rp_erff(float x) {
  float a = rp_absf(x), z = a * a;
  float small = RP_FMAF(a, rp_poly_erff(z), a);
  float b = rp_clampf(a, 1, 4);
  struct rp_exp_partsf e = rp_exp_splitf(rp_poly_log_erfcf(b));
  float large = RP_FMAF(-(1 + (e.r + e.t)), rp_pow2if(e.k), 1.0f);
  float r = rp_copysignf(a < 1 ? small : large, x);
  return x == x ? r : x;
}

RP_FN float rp_erfinvf(float x) {
  float a = rp_absf(x), w = -rp_logf(RP_FMAF(-a, a, 1.0f));
  int far = w >= 5;
  float r = x * rp_poly_erfinvf(far ? RP_SQRTF(w) - 3 : w - 2.5f, far);
  return a < 1 ? r : a == 1 ? rp_copysignf(RP_INFF, x) : RP_NANF;
}

/* Through double ------------------------------------------------------------------------------- */

/* exp and log of about 42 bits. The double's exponent range spares all care for overflow. */
RP_FN double rp_exp2_short(double p) { /* |p| < 1000 */
  double k = (p + RP_MAGIC) - RP_MAGIC, r = (p - k) * RP_LN2;
  return RP_FMA(r * r, rp_poly_exp_short(r), 1 + r) * rp_pow2i(k);
}

/* x positive, finite and normal as a double. m: log(1 + f). */
struct rp_short_log {
  double m, e;
};

RP_FN struct rp_short_log rp_log_short_split(double x) {
  const uint64_t low = 0x3FE6A09E667F3BCDull;
  uint64_t t = rp_bits(x) - low + (1024ull << 52);
  double f = rp_from_bits((t & 0x000FFFFFFFFFFFFFull) + low) - 1, s = f / (2 + f), z = s * s;
  struct rp_short_log r;
  r.e = rp_from_bits((t >> 52) | 0x4330000000000000ull) - (0x1p52 + 1024);
  r.m = RP_FMA(s * z, rp_poly_log_short(z), 2 * s);
  return r;
}

RP_FN double rp_log_short(double x) {
  struct rp_short_log l = rp_log_short_split(x);
  return RP_FMA(l.e, RP_LN2, l.m);
}

RP_FN double rp_log2_short(double x) {
  struct rp_short_log l = rp_log_short_split(x);
  return RP_FMA(l.m, RP_LOG2E, l.e);
}

RP_FN float rp_log2f(float x) {
  return rp_log_endsf(x, (float)rp_log2_short((double)x));
}

RP_FN float rp_log10f(float x) {
  struct rp_short_log l = rp_log_short_split((double)x);
  return rp_log_endsf(x, (float)RP_FMA(l.e, RP_LOG10_2, l.m * RP_LOG10E));
}

RP_FN float rp_powf(float x, float y) {
  double p = (double)y * rp_log2_short((double)rp_absf(x));
  return rp_pow_endsf(x, y, (float)rp_exp2_short(rp_clamp(p, -200, 200)));
}

RP_FN float rp_sinhf(float x) {
  float a = rp_absf(x), z = a * a, small = RP_FMAF(a * z, rp_poly_sinhf(z), a);
  double t = rp_exp2_short((double)(a > 100 ? 100 : a) * RP_LOG2E);
  float large = (float)(0.5 * t - 0.5 / t);
  float r = rp_copysignf(a < 1 ? small : large, x);
  return x == x ? r : x;
}

RP_FN float rp_coshf(float x) {
  float a = rp_absf(x);
  double t = rp_exp2_short((double)(a > 100 ? 100 : a) * RP_LOG2E);
  float r = (float)(0.5 * t + 0.5 / t);
  return x == x ? r : x;
}

RP_FN float rp_asinhf(float x) {
  double a = (double)rp_absf(x), z = a * a;
  double r = rp_log_short(a + RP_SQRT(z + 1));
  r = a < 0x1p-12 ? a - a * z * (1.0 / 6) : r;
  return rp_copysignf(a < RP_INF ? (float)r : (float)a, x);
}

RP_FN float rp_acoshf(float x) {
  double t = (double)x - 1;
  float r = (float)rp_log_short(1 + (t + RP_SQRT(t * (t + 2))));
  r = x >= 1 ? r : RP_NANF;
  return x < RP_INFF ? r : x;
}

RP_FN float rp_atanhf(float x) {
  float b = rp_absf(x);
  double a = (double)b, r = 0.5 * rp_log_short((1 + a) / (1 - a));
  r = a < 0x1p-12 ? a + a * a * a * (1.0 / 3) : r;
  float v = b < 1 ? (float)r : b == 1 ? RP_INFF : RP_NANF;
  return rp_copysignf(v, x);
}

/* |x| as (q + 4 n) pi/2 + r, exact to about 2^-55 for every finite float. Five ranges of 26
 * binades each have their bits of 2/pi, in two pieces of 29 bits (exact products) and a rest;
 * multiples of 4 are left out. */
RP_FN struct rp_angle rp_reduce_anglef(float a) {
  double x = a < RP_INFF ? (double)a : 0;
  int r1 = x >= 0x1p26, r2 = x >= 0x1p52, r3 = x >= 0x1p78, r4 = x >= 0x1p104;
  double c0 = r1 ? 0x1.17cc1b4p-3 : 0x1.45f306dp-1;
  double c1 = 0x1.9391054p-30;
  double c2 = 0x1.4fe13abe8fa9ap-59;
  c0 = r2 ? 0x1.c9c8828p-29 : c0;
  c1 = r2 ? 0x1.29fc275p-56 : c1;
  c2 = r2 ? 0x1.f47d4d377036ep-86 : c2;
  c0 = r3 ? 0x1.4a7f09cp-54 : c0;
  c1 = r3 ? 0x1.5f47d4dp-82 : c1;
  c2 = r3 ? 0x1.bb81b6c52b328p-113 : c2;
  c0 = r4 ? 0x1.57d1f52p-80 : c0;
  c1 = r4 ? 0x1.4ddc0dbp-108 : c1;
  c2 = r4 ? 0x1.8a5664f10e410p-138 : c2;
  double p0 = x * c0, p1 = x * c1;
  double m0 = p0 - 4 * ((p0 * 0.25 + RP_MAGIC) - RP_MAGIC);
  double m1 = p1 - 4 * ((p1 * 0.25 + RP_MAGIC) - RP_MAGIC);
  double n = ((m0 + m1) + RP_MAGIC) - RP_MAGIC;
  double f = ((m0 - n) + m1) + x * c2;
  struct rp_angle r;
  r.hi = f * RP_PI_2;
  r.lo = 0;
  r.q = rp_bits(n + RP_MAGIC);
  return r;
}

RP_FN double rp_sin_short(double r) {
  double z = r * r;
  return RP_FMA(r * z, rp_poly_sin_short(z), r);
}

RP_FN double rp_cos_short(double r) {
  double z = r * r;
  return RP_FMA(z * z, rp_poly_cos_short(z), RP_FMA(-0.5, z, 1.0));
}

RP_FN float rp_sinf(float x) {
  float a = rp_absf(x);
  struct rp_angle r = rp_reduce_anglef(a);
  double s = rp_sin_short(r.hi), c = rp_cos_short(r.hi), v = r.q & 1 ? c : s;
  float t = (float)rp_from_bits(rp_bits(v) ^ (r.q << 62 & RP_SIGN_BIT));
  return a < RP_INFF ? rp_from_bitsf(rp_bitsf(t) ^ (rp_bitsf(x) & RP_SIGN_BITF)) : RP_NANF;
}

RP_FN float rp_cosf(float x) {
  float a = rp_absf(x);
  struct rp_angle r = rp_reduce_anglef(a);
  double s = rp_sin_short(r.hi), c = rp_cos_short(r.hi), v = r.q & 1 ? s : c;
  float t = (float)rp_from_bits(rp_bits(v) ^ ((r.q + 1) << 62 & RP_SIGN_BIT));
  return a < RP_INFF ? t : RP_NANF;
}

RP_FN float rp_tanf(float x) {
  float a = rp_absf(x);
  struct rp_angle r = rp_reduce_anglef(a);
  double s = rp_sin_short(r.hi), c = rp_cos_short(r.hi);
  int odd = (r.q & 1) != 0;
  float t = (float)((odd ? -c : s) / (odd ? s : c));
  return a < RP_INFF ? rp_from_bitsf(rp_bitsf(t) ^ (rp_bitsf(x) & RP_SIGN_BITF)) : RP_NANF;
}

RP_FN float rp_asinf(float x) {
  double a = (double)rp_absf(x), zl = 0.5 * (1 - a);
  int small = a < 0.5;
  double s = small ? a : RP_SQRT(zl), z = small ? a * a : zl;
  double v = RP_FMA(s * z, rp_poly_asin_short(z), s);
  float r = (float)(small ? v : RP_FMA(-2.0, v, RP_PI_2));
  return a <= 1 ? rp_copysignf(r, x) : RP_NANF;
}

RP_FN float rp_acosf(float x) {
  double d = (double)x, a = rp_abs(d), zl = 0.5 * (1 - a);
  int small = a < 0.5;
  double s = small ? d : RP_SQRT(zl), z = small ? a * a : zl;
  double v = RP_FMA(s * z, rp_poly_asin_short(z), s);
  double far = d < 0 ? RP_FMA(-2.0, v, RP_PI) : 2 * v;
  return a <= 1 ? (float)(small ? RP_PI_2 - v : far) : RP_NANF;
}

/* atan(num / den), in double; see rp_atan_ratio. */
RP_FN double rp_atan_short(double num, double den) {
  int mid = num > 0.41421356237309503 * den, above = num > 2.414213562373095 * den;
  double n = mid ? num - den : num, d = mid ? num + den : den;
  n = above ? -den : n;
  d = above ? num : d;
  double base = mid ? RP_PI_4 : 0;
  base = above ? RP_PI_2 : base;
  double t = n / d, z;
  t = n == 0 ? 0 : t; /* 0 / 0 */
  z = t * t;
  return base + RP_FMA(t * z, rp_poly_atan_short(z), t);
}

RP_FN float rp_atanf(float x) {
  float r = rp_copysignf((float)rp_atan_short((double)rp_absf(x), 1), x);
  return x == x ? r : x;
}

RP_FN float rp_atan2f(float y, float x) {
  double ay = (double)rp_absf(y), ax = (double)rp_absf(x);
  int both = (ay == RP_INF) & (ax == RP_INF);
  double r = rp_atan_short(both ? 1 : ay, both ? 1 : ax);
  r = rp_signbitf(x) ? RP_PI - r : r;
  float v = rp_copysignf((float)r, y);
  v = y == y ? v : y;
  return x == x ? v : x;
}

#endif
