/* Elementary functions of double, branch-free. See scalar_base.h for the invariants.
 *
 * Every function follows C99 Annex F for NaN, infinities, subnormals and signed zeros. Error
 * bounds (in units of the last place, tests/unit/test_scalar.c): 1 nearly everywhere, 2 at most;
 * erfinv 4. Where one double does not carry enough, a value is a sum of two, hi + lo, |lo| <=
 * ulp(hi). */
#ifndef RPI_OP_SCALAR_F64_H
#define RPI_OP_SCALAR_F64_H

#include "op/scalar_base.h"
#include "op/scalar_poly.h"

#define RP_LN2 0x1.62e42fefa39efp-1
#define RP_LN2_LO 0x1.abc9e3b39803fp-56
/* 41 bits, so that a multiple below 2^12 is exact, and the rest. */
#define RP_LN2_SHORT 0x1.62e42fefa3000p-1
#define RP_LN2_REST 0x1.3de6af278ece6p-42
#define RP_LOG2E 0x1.71547652b82fep+0
#define RP_LOG2E_LO 0x1.777d0ffda0d24p-56
#define RP_LOG10E 0x1.bcb7b1526e50ep-2
#define RP_LOG10E_LO 0x1.95355baaafad3p-57
#define RP_LOG10_2 0x1.34413509f79ffp-2
#define RP_LOG10_2_LO (-0x1.9dc1da994fd21p-59)
#define RP_PI 0x1.921fb54442d18p+1
#define RP_PI_LO 0x1.1a62633145c07p-53
#define RP_PI_2 0x1.921fb54442d18p+0
#define RP_PI_2_LO 0x1.1a62633145c07p-54
#define RP_PI_4 0x1.921fb54442d18p-1
#define RP_PI_4_LO 0x1.1a62633145c07p-55

struct rp_two {
  double hi, lo;
};

/* a + b exactly. */
RP_FN struct rp_two rp_two_sum(double a, double b) {
  struct rp_two r;
  double t;
  r.hi = a + b;
  t = r.hi - a;
  r.lo = (a - (r.hi - t)) + (b - t);
  return r;
}

/* a + b exactly, for |a| >= |b| or a = 0. */
RP_FN struct rp_two rp_fast_sum(double a, double b) {
  struct rp_two r;
  r.hi = a + b;
  r.lo = (a - r.hi) + b;
  return r;
}

/* 2^k for an integer k in [-1022, 1023]. */
RP_FN double rp_pow2i(double k) {
  return rp_from_bits(rp_bits(k + (RP_MAGIC + 1023)) << 52);
}

/* p 2^k for an integer |k| < 2040, rounded once: the first of the two products is exact. */
RP_FN double rp_scale2(double p, double k) {
  double a = (k * 0.5 + RP_MAGIC) - RP_MAGIC;
  return p * rp_pow2i(a) * rp_pow2i(k - a);
}

/* exp family ----------------------------------------------------------------------------------- */

/* exp(x) = 2^k (1 + hi + lo) for |x| < 2000. */
struct rp_exp_parts {
  double k, hi, lo;
};

RP_FN struct rp_exp_parts rp_exp_reduced(double k, double r, double rl) {
  struct rp_exp_parts e;
  struct rp_two s = rp_fast_sum(r, RP_FMA(r * r, rp_poly_exp(r), rl));
  e.k = k;
  e.hi = s.hi;
  e.lo = s.lo;
  return e;
}

RP_FN struct rp_exp_parts rp_exp_split(double x) {
  double k = RP_FMA(x, RP_LOG2E, RP_MAGIC) - RP_MAGIC;
  double t = RP_FMA(-k, RP_LN2_SHORT, x); /* exact */
  double r = RP_FMA(-k, RP_LN2_REST, t);
  return rp_exp_reduced(k, r, RP_FMA(-k, RP_LN2_REST, t - r));
}

/* The clamps keep NaN. */
RP_FN double rp_clamp(double x, double lo, double hi) {
  x = x < lo ? lo : x;
  return x > hi ? hi : x;
}

RP_FN double rp_exp(double x) {
  struct rp_exp_parts e = rp_exp_split(rp_clamp(x, -750, 710));
  double r = rp_scale2(1 + (e.hi + e.lo), e.k);
  return x == x ? r : x;
}

RP_FN double rp_exp2(double x) {
  double c = rp_clamp(x, -1080, 1025);
  double k = (c + RP_MAGIC) - RP_MAGIC, f = c - k, r = f * RP_LN2;
  struct rp_exp_parts e = rp_exp_reduced(k, r, RP_FMA(f, RP_LN2_LO, RP_FMA(f, RP_LN2, -r)));
  double v = rp_scale2(1 + (e.hi + e.lo), k);
  return x == x ? v : x;
}

/* exp(x) - 1 as hi + lo. hi is infinite, and lo finite, where it overflows. */
RP_FN struct rp_two rp_expm1_two(double x) {
  struct rp_exp_parts e = rp_exp_split(rp_clamp(x, -50, 710));
  double half = rp_pow2i(e.k - 1); /* 2^1024 would not fit */
  struct rp_two s = rp_two_sum(half - 0.5, half * e.hi);
  s.lo += half * e.lo;
  s.hi = e.k == 0 ? e.hi : 2 * s.hi;
  s.lo = e.k == 0 ? e.lo : 2 * s.lo;
  return s;
}

RP_FN double rp_expm1(double x) {
  struct rp_two s = rp_expm1_two(x);
  double r = s.hi + s.lo;
  r = x == 0 ? x : r;
  return x == x ? r : x;
}

/* 2^-1 exp(|x|), for the hyperbolic functions; exp itself overflows too early. */
RP_FN double rp_half_exp(double a) {
  struct rp_exp_parts e = rp_exp_split(a > 712 ? 712 : a);
  return rp_scale2(1 + (e.hi + e.lo), e.k - 1);
}

RP_FN double rp_sinh(double x) {
  double a = rp_abs(x), z = a * a, t = rp_half_exp(a);
  double small = RP_FMA(a * z, rp_poly_sinh(z), a);
  double r = rp_copysign(a < 1 ? small : t - 0.25 / t, x);
  return x == x ? r : x;
}

RP_FN double rp_cosh(double x) {
  double t = rp_half_exp(rp_abs(x));
  double r = t + 0.25 / t;
  return x == x ? r : x;
}

/* E / (E + 2) with E = exp(2|x|) - 1; the quotient is corrected by its remainder. */
RP_FN double rp_tanh(double x) {
  double a = rp_abs(x);
  struct rp_two e = rp_expm1_two(2 * (a > 22 ? 22 : a));
  struct rp_two d = rp_two_sum(e.hi, 2);
  double inv = 1 / d.hi, q = e.hi * inv;
  double rest = RP_FMA(-q, d.hi, e.hi) + (e.lo - q * (d.lo + e.lo));
  double r = rp_copysign(RP_FMA(rest, inv, q), x);
  return x == x ? r : x;
}

RP_FN double rp_sigmoid(double x) {
  double e = rp_exp(-rp_abs(x)); /* never overflows */
  double r = (x < 0 ? e : 1) / (1 + e);
  return x == x ? r : x;
}

/* log family ----------------------------------------------------------------------------------- */

/* x = 2^e (1 + f) for positive finite x, 1 + f in [sqrt(1/2), sqrt(2)), f exact. */
struct rp_log_parts {
  double f, e;
};

RP_FN struct rp_log_parts rp_log_split(double x) {
  struct rp_log_parts p;
  const uint64_t low = 0x3FE6A09E667F3BCDull; /* sqrt(1/2) */
  int tiny = x < 0x1p-1022;
  uint64_t t = rp_bits(tiny ? x * 0x1p54 : x) - low + (1024ull << 52);
  double e = rp_from_bits((t >> 52) | 0x4330000000000000ull) - (0x1p52 + 1024);
  p.e = tiny ? e - 54 : e;
  p.f = rp_from_bits((t & 0x000FFFFFFFFFFFFFull) + low) - 1;
  return p;
}

/* e ln2 + log(1 + f) + c. With s = f / (2 + f), log(1 + f) = f - f^2/2 + s (f^2/2 + s-series). */
RP_FN double rp_log_join(struct rp_log_parts p, double c) {
  double f = p.f, s = f / (2 + f), z = s * s, hf = 0.5 * f * f;
  double rest = RP_FMA(s, hf + rp_poly_log(z), RP_FMA(p.e, RP_LN2_LO, c));
  return RP_FMA(p.e, RP_LN2, f - (hf - rest));
}

/* The ends of log's domain, for a logarithm r of x. */
RP_FN double rp_log_ends(double x, double r) {
  r = x > 0 ? r : x == 0 ? -RP_INF : RP_NAN;
  return x < RP_INF ? r : x;
}

RP_FN double rp_log(double x) {
  return rp_log_ends(x, rp_log_join(rp_log_split(x), 0));
}

/* log(1 + f) as hi + lo with about 60 bits. */
RP_FN struct rp_two rp_log_mantissa(double f) {
  double s = f / (2 + f), z = s * s, hf = 0.5 * f * f;
  double hf_lo = RP_FMA(0.5 * f, f, -hf);
  struct rp_two r = rp_fast_sum(f, -hf);
  r.lo += RP_FMA(s, hf + rp_poly_log(z), -hf_lo);
  return rp_fast_sum(r.hi, r.lo);
}

RP_FN double rp_log2(double x) {
  struct rp_log_parts p = rp_log_split(x);
  struct rp_two m = rp_log_mantissa(p.f);
  double h = m.hi * RP_LOG2E;
  double l = RP_FMA(m.hi, RP_LOG2E, -h) + RP_FMA(m.lo, RP_LOG2E, m.hi * RP_LOG2E_LO);
  struct rp_two s = rp_fast_sum(p.e, h);
  return rp_log_ends(x, s.hi + (s.lo + l));
}

RP_FN double rp_log10(double x) {
  struct rp_log_parts p = rp_log_split(x);
  struct rp_two m = rp_log_mantissa(p.f);
  double h = m.hi * RP_LOG10E, eh = p.e * RP_LOG10_2;
  double l = RP_FMA(m.hi, RP_LOG10E, -h) + RP_FMA(m.lo, RP_LOG10E, m.hi * RP_LOG10E_LO);
  double el = RP_FMA(p.e, RP_LOG10_2, -eh) + p.e * RP_LOG10_2_LO;
  struct rp_two s = rp_fast_sum(eh, h);
  return rp_log_ends(x, s.hi + (s.lo + (l + el)));
}

/* log(u 2^more) for u = u.hi + u.lo >= 2^-54; u.lo enters to first order. */
RP_FN double rp_log_sum(struct rp_two u, double more) {
  struct rp_log_parts p = rp_log_split(u.hi);
  double c = u.lo * rp_pow2i(p.e > 1000 ? -1000 : -p.e) / (1 + p.f);
  p.e += more;
  return rp_log_join(p, c);
}

/* log(1 + v). */
RP_FN double rp_log1p_two(struct rp_two v) {
  struct rp_two u = rp_two_sum(1, v.hi);
  u.lo += v.lo;
  return rp_log_sum(u, 0);
}

RP_FN double rp_log1p(double x) {
  struct rp_two v = {x, 0};
  double r = rp_log1p_two(v);
  r = x > -1 ? r : x == -1 ? -RP_INF : RP_NAN;
  r = x < RP_INF ? r : x;
  return x == 0 ? x : r;
}

RP_FN double rp_logaddexp(double x, double y) {
  double top = rp_maximum(x, y), d = rp_abs(x - y);
  d = x == y ? 0 : d; /* inf - inf */
  double r = top + rp_log1p(rp_exp(-d));
  return top == top ? r : top;
}

/* sqrt(w.hi + w.lo) as a sum of two; 0 gives 0. */
RP_FN struct rp_two rp_sqrt_two(struct rp_two w) {
  struct rp_two r;
  double s = RP_SQRT(w.hi), rest = RP_FMA(-s, s, w.hi) + w.lo;
  r.hi = s;
  r.lo = s > 0 ? rest / (2 * s) : 0;
  return r;
}

/* log(a + sqrt(a^2 + 1)); for large a, log(2a). */
RP_FN double rp_asinh(double x) {
  double a = rp_abs(x), z = a * a;
  int large = a > 0x1p30;
  double small = RP_FMA(a * z, rp_poly_asinh(z), a);
  struct rp_two w = rp_two_sum(z, 1), s, u;
  w.lo += RP_FMA(a, a, -z);
  s = rp_sqrt_two(w);
  u = rp_two_sum(a, s.hi);
  u.hi = large ? a : u.hi;
  u.lo = large ? 0 : u.lo + s.lo;
  double r = rp_log_sum(u, large ? 1 : 0);
  r = a < 0.5 ? small : r;
  return a < RP_INF ? rp_copysign(r, x) : x;
}

/* log(1 + t + sqrt(t (t + 2))) with t = x - 1, which is exact below 2^53. */
RP_FN double rp_acosh(double x) {
  int large = x > 0x1p30;
  double t = x - 1, p = t * t;
  struct rp_two w = rp_two_sum(2 * t, p), s, v, u;
  w.lo += RP_FMA(t, t, -p);
  s = rp_sqrt_two(w);
  v = rp_two_sum(t, s.hi);
  u = rp_two_sum(1, v.hi);
  u.hi = large ? x : u.hi;
  u.lo = large ? 0 : u.lo + (v.lo + s.lo);
  double r = rp_log_sum(u, large ? 1 : 0);
  r = x >= 1 ? r : RP_NAN;
  return x < RP_INF ? r : x;
}

/* log(1 + 2a / (1 - a)) / 2. */
RP_FN double rp_atanh(double x) {
  double a = rp_abs(x);
  struct rp_two d = rp_two_sum(1, -a), v;
  v.hi = 2 * a / d.hi;
  v.lo = (RP_FMA(-v.hi, d.hi, 2 * a) - v.hi * d.lo) / d.hi;
  double r = 0.5 * rp_log1p_two(v);
  r = a < 1 ? r : a == 1 ? RP_INF : RP_NAN;
  return rp_copysign(a < 0x1p-28 ? a : r, x);
}

/* Trigonometric functions ---------------------------------------------------------------------- */

/* 2/pi times 2^(32 g), without its multiples of 2^54, as a sum of four doubles. Four arrays, and
 * bits that a store of doubles cannot alias: so loops over the lookup vectorize, as gathers. */
#ifndef RP_TABLE
#define RP_TABLE static const
#endif
RP_TABLE uint64_t rp_two_over_pi_0[32] = {
    0x3FE45F306DC9C883ull, 0x41E45F306DC9C883ull, 0x434CC1B727220A95ull, 0x431054A7F09D5F48ull,
    0x4343ABE8FA9A6EE0ull, 0x434A6EE06DB14ACDull, 0x43414ACC9E21C821ull, 0x430C820FF28B1D5Full,
    0x433163ABDEBBC562ull, 0x434DE2B0DB92371Dull, 0x4342371D2126E970ull, 0x432BA5C00C925DD4ull,
    0x43225DD413A3243Aull, 0x4331921CFE1DEB1Dull, 0x433DEB1CB129A73Full, 0x4344D39F74411AFBull,
    0x4301AFA975DA2427ull, 0x434DA24274CE3813ull, 0x433C7026B45F7E41ull, 0x433F7E413991D63Aull,
    0x4331D639835339F5ull, 0x433339F49C845F8Cull, 0x43117E2EF7E4A0ECull, 0x434C941D8FFC4C00ull,
    0x434C4BFFEF02CC08ull, 0x4316603FBCBC462Dull, 0x434788C5AD053690ull, 0x4324DA3EDA6CFD9Eull,
    0x434B3F6793E584DCull, 0x4326136E9E8C7ECDull, 0x4318FD9A797FA8B6ull, 0x433FEA2D7527BAC8ull,
};
RP_TABLE uint64_t rp_two_over_pi_1[32] = {
    0xBC86B01EC5417056ull, 0xBE86B01EC5417056ull, 0xBF8EC54170565912ull, 0xBFA596447E493AD5ull,
    0x3FEB6C52B3278872ull, 0xBFE8778DF7C035D4ull, 0xBF7AE9C5421443AAull, 0xBF7443A9E48DB91Cull,
    0xBFD236E4716F6C8Bull, 0x3FD09374B801924Cull, 0x3F9924BBA8274648ull, 0x3FA3A32439FC3BD6ull,
    0xBF7E214E34ED658Cull, 0xBFD3B5963045DF73ull, 0xBFB77DCA0AD144BBull, 0xBFEA28976F62CC72ull,
    0x3FA338E04D68BEFDull, 0x3FE68BEFC827323Bull, 0x3FCCC8EB1CC1A99Dull, 0xBFDF2B3182D8DEE8ull,
    0xBFD8DEE81D1081B6ull, 0xBFD081B5F13801DAull, 0x3FBFF897FFDE0598ull, 0xBFC0FD33F8086877ull,
    0xBFB0D0EE74A5F593ull, 0x3FBA0A6D1F6D367Full, 0xBFE25930261B069Full, 0x3FC3E584DBA7A320ull,
    0xBFE61738132C3403ull, 0x3FBE5FEA2D7527BBull, 0xBFA5B08A7028341Dull, 0xBFB41A0E84C2F8C6ull,
};
RP_TABLE uint64_t rp_two_over_pi_2[32] = {
    0xB926447E493AD4CEull, 0xBB26447E493AD4CEull, 0x3BEB6C52B3278872ull, 0x3C393C439041FE51ull,
    0x3C507F9458EAF7AFull, 0x3C8D5EF5DE2B0DB9ull, 0x3BFB7246E3A424DDull, 0xBC16F6C8B47FE6DBull,
    0xBC71FF9B6D115F63ull, 0xBC715F62E6DE301Eull, 0x3C3CFE1DEB1CB12Aull, 0x3C3CB129A73EE882ull,
    0xBBF177DCA0AD144Cull, 0x3C7F52EBB4484E9Aull, 0xBC5EC598E3F652E8ull, 0x3C435A2FBF209CC9ull,
    0xBC4F633714E33E56ull, 0xBC7C67CACC60B638ull, 0xBC26C6F740E8840Eull, 0xBC5D1081B5F13802ull,
    0x3C4D8FFC4BFFEF03ull, 0xBBC0FD33F8086877ull, 0x3C2FDE5E2316B415ull, 0xBC5D297D64B824B2ull,
    0x3C3F6D367ECF27CBull, 0xBC486C1A7B24585Dull, 0x3C7B74F463F669E6ull, 0xBC632C3402BA515Bull,
    0x3C816BA93DD63F5Full, 0xBC4C0A0D0742617Cull, 0xBC130BE31821D6B6ull, 0xBC20EB5ADA2B2809ull,
};
RP_TABLE uint64_t rp_two_over_pi_3[32] = {
    0x35CE21C820FF28B2ull, 0x37CE21C820FF28B2ull, 0x38507F9458EAF7AFull, 0x38D8EAF7AEF1586Eull,
    0xB8CD4F246DC8E2DFull, 0x3911B8E909374B80ull, 0x388700324977504Full, 0xB8B115F62E6DE302ull,
    0x38F921CFE1DEB1CBull, 0xB900A71A76B2C609ull, 0xB8D63045DF7282B4ull, 0x38CAFA975DA24275ull,
    0x389213A671C09AD1ull, 0xB90C7ECA5D040DF6ull, 0xB8E037D8CDC538D0ull, 0xB8C4E33E566305B2ull,
    0xB8E8C16C6F740E88ull, 0x39117E2EF7E4A0ECull, 0x38C41D8FFC4BFFEFull, 0x38E2FFFBC0B301FEull,
    0xB8D9FC04343B9D29ull, 0xB85D297D64B824B2ull, 0xB8B2E092C98130D8ull, 0xB8F8130D834F648Bull,
    0x38A36E9E8C7ECD3Dull, 0x38CFB34F2FF516BBull, 0xB8B5D28AD8453814ull, 0xB8D14E050683A131ull,
    0x3917C5ECF41CE7DEull, 0xB8E8C10EB5ADA2B3ull, 0x38B2EA6BFB5FB120ull, 0xB8C0277039517BD5ull,
};

/* |x| = (q + 4 n) pi/2 + r.hi + r.lo, |r| <= pi/4 (and a hair), for every finite x. The product
 * with 2/pi keeps about 200 bits and drops multiples of 4, as Payne and Hanek do. */
struct rp_angle {
  double hi, lo;
  uint64_t q;
};

RP_FN double rp_mod4(double x) { /* in [-2, 2], exact */
  double t = x * 0.25;
  return x - 4 * rp_round(t);
}

RP_FN struct rp_angle rp_reduce_angle(double a) {
  /* The group without a comparison, which a compiler would turn into a branch around the lookup:
   * bit 11 of t tells that the exponent t - 2048 is not negative. Infinity and NaN take group 0
   * and give NaN. */
  uint64_t t = (rp_bits(a) >> 52) + 1025;
  uint64_t g = (t & (0 - (t >> 11)) & 1023) >> 5;
  double x = rp_from_bits(rp_bits(a) - (g << 57)); /* below 2^32 */
  double c0 = rp_from_bits(rp_two_over_pi_0[g]), c1 = rp_from_bits(rp_two_over_pi_1[g]);
  double c2 = rp_from_bits(rp_two_over_pi_2[g]), c3 = rp_from_bits(rp_two_over_pi_3[g]);
  double p0 = x * c0, p1 = x * c1, p2 = x * c2;
  double e0 = RP_FMA(x, c0, -p0), e1 = RP_FMA(x, c1, -p1), e2 = RP_FMA(x, c2, -p2);
  struct rp_two s = rp_two_sum(rp_mod4(p0), rp_mod4(e0));
  struct rp_two v = rp_two_sum(s.hi, rp_mod4(p1));
  double n = (v.hi + RP_MAGIC) - RP_MAGIC;
  struct rp_two h = rp_two_sum(v.hi - n, v.lo), h2, h3, h4;
  struct rp_angle r;
  h2 = rp_two_sum(h.hi, s.lo);
  h3 = rp_two_sum(h2.hi, e1);
  h4 = rp_two_sum(h3.hi, p2);
  double low = h4.lo + (h3.lo + (h2.lo + h.lo)) + RP_FMA(x, c3, e2);
  struct rp_two f = rp_fast_sum(h4.hi, low);
  double rh = f.hi * RP_PI_2;
  r.hi = rh;
  r.lo = RP_FMA(f.hi, RP_PI_2, -rh) + RP_FMA(f.hi, RP_PI_2_LO, f.lo * RP_PI_2);
  r.q = rp_bits(n + RP_MAGIC);
  return r;
}

RP_FN struct rp_two rp_sin_reduced(struct rp_angle r) {
  double z = r.hi * r.hi;
  double t = RP_FMA(r.hi * z, rp_poly_sin(z), RP_FMA(-0.5 * z, r.lo, r.lo));
  return rp_fast_sum(r.hi, t);
}

RP_FN struct rp_two rp_cos_reduced(struct rp_angle r) {
  double z = r.hi * r.hi, zl = RP_FMA(r.hi, r.hi, -z);
  struct rp_two w = rp_fast_sum(1, -0.5 * z);
  w.lo += RP_FMA(z * z, rp_poly_cos(z), -RP_FMA(r.hi, r.lo, 0.5 * zl));
  return rp_fast_sum(w.hi, w.lo);
}

RP_FN double rp_sin(double x) {
  double a = rp_abs(x);
  struct rp_angle r = rp_reduce_angle(a);
  double s = rp_sin_reduced(r).hi, c = rp_cos_reduced(r).hi;
  double v = r.q & 1 ? c : s;
  uint64_t sign = (r.q << 62 & RP_SIGN_BIT) ^ (rp_bits(x) & RP_SIGN_BIT);
  v = a < 0x1p-28 ? x : rp_from_bits(rp_bits(v) ^ sign);
  return a < RP_INF ? v : RP_NAN;
}

RP_FN double rp_cos(double x) {
  double a = rp_abs(x);
  struct rp_angle r = rp_reduce_angle(a);
  double s = rp_sin_reduced(r).hi, c = rp_cos_reduced(r).hi;
  double v = r.q & 1 ? s : c;
  uint64_t sign = (r.q + 1) << 62 & RP_SIGN_BIT;
  return a < RP_INF ? rp_from_bits(rp_bits(v) ^ sign) : RP_NAN;
}

RP_FN double rp_tan(double x) {
  double a = rp_abs(x);
  struct rp_angle r = rp_reduce_angle(a);
  struct rp_two s = rp_sin_reduced(r), c = rp_cos_reduced(r);
  int odd = (r.q & 1) != 0;
  double nh = odd ? -c.hi : s.hi, nl = odd ? -c.lo : s.lo;
  double dh = odd ? s.hi : c.hi, dl = odd ? s.lo : c.lo;
  double inv = 1 / dh, q = nh * inv;
  double rest = RP_FMA(-q, dh, nh) + (nl - q * dl);
  double v = RP_FMA(rest, inv, q);
  v = a < 0x1p-28 ? x : rp_from_bits(rp_bits(v) ^ (rp_bits(x) & RP_SIGN_BIT));
  return a < RP_INF ? v : RP_NAN;
}

/* Inverse trigonometric functions -------------------------------------------------------------- */

/* asin(s) - s for |s| <= 1/2. */
RP_FN double rp_asin_tail(double s) {
  double z = s * s;
  return s * z * rp_poly_asin(z);
}

/* asin(sqrt((1 - a) / 2)), for a in [1/2, 1], as hi + lo: half of acos(a). */
RP_FN struct rp_two rp_half_acos(double a) {
  double z = 0.5 * (1 - a), s = RP_SQRT(z);
  double lo = s > 0 ? RP_FMA(-s, s, z) / (2 * s) : 0;
  struct rp_two r;
  r.hi = s;
  r.lo = RP_FMA(s * z, rp_poly_asin(z), lo);
  return r;
}

RP_FN double rp_asin(double x) {
  double a = rp_abs(x);
  struct rp_two h = rp_half_acos(a);
  struct rp_two t = rp_fast_sum(RP_PI_2, -2 * h.hi);
  double large = t.hi + (t.lo + RP_FMA(-2.0, h.lo, RP_PI_2_LO));
  double r = a < 0.5 ? a + rp_asin_tail(a) : large;
  return a <= 1 ? rp_copysign(r, x) : RP_NAN;
}

RP_FN double rp_acos(double x) {
  double a = rp_abs(x);
  struct rp_two h = rp_half_acos(a);
  struct rp_two m = rp_fast_sum(RP_PI_2, -x), n = rp_fast_sum(RP_PI, -2 * h.hi);
  double mid = m.hi + (m.lo + (RP_PI_2_LO - rp_asin_tail(x)));
  double neg = n.hi + (n.lo + RP_FMA(-2.0, h.lo, RP_PI_LO));
  double r = x < 0 ? neg : 2 * (h.hi + h.lo);
  r = a < 0.5 ? mid : r;
  return a <= 1 ? r : RP_NAN;
}

/* atan(num / den) for num, den >= 0, both finite, as hi + lo. An octave around the diagonal is
 * turned by pi/4, what lies above it by pi/2, so that the argument stays within tan(pi / 8). */
RP_FN struct rp_two rp_atan_ratio(double num, double den) {
  int mid = num > 0.41421356237309503 * den, above = num > 2.414213562373095 * den;
  double n = mid ? num - den : num, d = mid ? num + den : den;
  n = above ? -den : n;
  d = above ? num : d;
  double base = mid ? RP_PI_4 : 0;
  base = above ? RP_PI_2 : base;
  double base_lo = mid ? RP_PI_4_LO : 0;
  base_lo = above ? RP_PI_2_LO : base_lo;
  double t = n / d, z = t * t;
  t = n == 0 ? n : t; /* 0 / 0 */
  double tail = RP_FMA(t * z, rp_poly_atan(z), base_lo);
  tail = n == 0 ? base_lo : tail;
  struct rp_two s = rp_two_sum(base, t);
  s.lo += tail;
  return s;
}

RP_FN double rp_atan(double x) {
  double a = rp_abs(x);
  struct rp_two s = rp_atan_ratio(a > 0x1p1000 ? 0x1p1000 : a, 1);
  double r = rp_copysign(s.hi + s.lo, x);
  return x == x ? r : x;
}

RP_FN double rp_atan2(double y, double x) {
  double ay = rp_abs(y), ax = rp_abs(x);
  int both = (ay == RP_INF) & (ax == RP_INF);
  ay = both ? 1 : ay;
  ax = both ? 1 : ax;
  /* One infinity: any finite ratio beyond 2^54 stands for it. */
  int y_inf = ay == RP_INF, x_inf = ax == RP_INF;
  double down = (ay > 0x1p1000) | (ax > 0x1p1000) ? 0x1p-100 : 1;
  double num = y_inf ? 1 : x_inf ? 0 : ay * down, den = x_inf ? 1 : y_inf ? 0 : ax * down;
  struct rp_two s = rp_atan_ratio(num, den);
  struct rp_two back = rp_fast_sum(RP_PI, -s.hi);
  double r = rp_signbit(x) ? back.hi + (back.lo + (RP_PI_LO - s.lo)) : s.hi + s.lo;
  r = rp_copysign(r, y);
  r = y == y ? r : y;
  return x == x ? r : x;
}

/* erf ------------------------------------------------------------------------------------------ */

RP_FN double rp_erf(double x) {
  double a = rp_abs(x), z = a * a;
  double small = RP_FMA(a, rp_poly_erf(z), a);
  double b = rp_clamp(a, 1, 6), t = (b - 2) / (b + 2);
  double large = 1 - rp_exp(-b * b) * rp_poly_erfcx(t);
  double r = rp_copysign(a < 1 ? small : large, x);
  return x == x ? r : x;
}

RP_FN double rp_erfinv(double x) {
  double a = rp_abs(x), w = -rp_log(RP_FMA(-a, a, 1.0)), s = RP_SQRT(w);
  int mid = w >= 6.25, far = w >= 16;
  double v = far ? s - 5 : mid ? s - 3.25 : w - 3.125;
  double r = x * rp_poly_erfinv(v, mid, far);
  return a < 1 ? r : a == 1 ? rp_copysign(RP_INF, x) : RP_NAN;
}

/* pow ------------------------------------------------------------------------------------------ */

/* log2(x) for positive finite x, as hi + lo with about 66 bits. */
RP_FN struct rp_two rp_log2_two(double x) {
  struct rp_log_parts p = rp_log_split(x);
  double f = p.f;
  struct rp_two d = rp_fast_sum(2, f), v, m, s2;
  double s = f / d.hi, sl = (RP_FMA(-s, d.hi, f) - s * d.lo) / d.hi;
  double z = s * s, zl = RP_FMA(2 * s, sl, RP_FMA(s, s, -z));
  /* log(1 + f) = 2 s + s (2/3 z + z^2 tail) */
  double w = z * 0x1.5555555555555p-1;
  double wl = RP_FMA(z, 0x1.5555555555555p-1, -w);
  wl += RP_FMA(z, 0x1.5555555555555p-55, zl * (2.0 / 3));
  v = rp_fast_sum(w, z * z * rp_poly_log_tail(z));
  v.lo += wl;
  double t = s * v.hi, tl = RP_FMA(s, v.hi, -t) + RP_FMA(s, v.lo, sl * v.hi);
  m = rp_fast_sum(2 * s, t);
  m = rp_fast_sum(m.hi, m.lo + RP_FMA(2.0, sl, tl));
  double h = m.hi * RP_LOG2E;
  double l = RP_FMA(m.hi, RP_LOG2E, -h) + RP_FMA(m.lo, RP_LOG2E, m.hi * RP_LOG2E_LO);
  s2 = rp_fast_sum(p.e, h);
  return rp_fast_sum(s2.hi, s2.lo + l);
}

RP_FN double rp_pow(double x, double y) {
  struct rp_two g = rp_log2_two(rp_abs(x));
  double p = y * g.hi, pl = RP_FMA(y, g.lo, RP_FMA(y, g.hi, -p));
  int out = !(rp_abs(p) < 1100);
  p = out ? rp_clamp(p, -1100, 1100) : p;
  pl = out ? 0 : pl;
  double k = (p + RP_MAGIC) - RP_MAGIC;
  struct rp_two f = rp_fast_sum(p - k, pl);
  double r = f.hi * RP_LN2;
  double rl = RP_FMA(f.hi, RP_LN2, -r) + RP_FMA(f.hi, RP_LN2_LO, f.lo * RP_LN2);
  struct rp_exp_parts e = rp_exp_reduced(k, r, rl);
  return rp_pow_ends(x, y, rp_scale2(1 + (e.hi + e.lo), k));
}

#endif
