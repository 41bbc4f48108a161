/* The scalar functions: accuracy against wider arithmetic, special values, exact conversions,
 * integer edges, and the same bits from scalar, AVX2 and AVX-512 loops. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <complex.h>
#include <immintrin.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "op/scalar.h"

/* name, reference of double, reference of long double, bounds in ulp: float, double */
#define UNARY(F)                                                                                  \
  F(exp, exp, expl, 1.1, 1)                                                                       \
  F(exp2, exp2, exp2l, 1.1, 1)                                                                    \
  F(expm1, expm1, expm1l, 1.3, 1)                                                                 \
  F(log, log, logl, 1, 1)                                                                         \
  F(log2, log2, log2l, 0.6, 0.7)                                                                  \
  F(log10, log10, log10l, 0.6, 0.7)                                                               \
  F(log1p, log1p, log1pl, 1, 1)                                                                   \
  F(sin, sin, sinl, 0.6, 0.8)                                                                     \
  F(cos, cos, cosl, 0.6, 0.8)                                                                     \
  F(tan, tan, tanl, 0.6, 1)                                                                       \
  F(asin, asin, asinl, 0.6, 0.8)                                                                  \
  F(acos, acos, acosl, 0.6, 0.8)                                                                  \
  F(atan, atan, atanl, 0.6, 1.8)                                                                  \
  F(sinh, sinh, sinhl, 1, 1.6)                                                                    \
  F(cosh, cosh, coshl, 0.6, 1.4)                                                                  \
  F(tanh, tanh, tanhl, 1.5, 1)                                                                    \
  F(asinh, asinh, asinhl, 0.6, 1)                                                                 \
  F(acosh, acosh, acoshl, 0.6, 1)                                                                 \
  F(atanh, atanh, atanhl, 0.6, 1)                                                                 \
  F(erf, erf, erfl, 1.2, 1)                                                                       \
  F(erfinv, erfinv_double, erfinv_long, 3, 3)                                                     \
  F(sigmoid, sigmoid_double, sigmoid_long, 2, 2)                                                  \
  F(rsqrt, rsqrt_double, rsqrt_long, 1.6, 1.6)                                                    \
  F(sqrt, sqrt, sqrtl, 0.5, 0.5)                                                                  \
  F(round, rint, rintl, 0, 0)                                                                     \
  F(floor, floor, floorl, 0, 0)                                                                   \
  F(ceil, ceil, ceill, 0, 0)                                                                      \
  F(trunc, trunc, truncl, 0, 0)

/* Two steps of Halley's method on erf (or on its complement) from the value under test. */
static long double erfinv_long(long double x) {
  long double y = rp_erfinv((double)x);
  if (!isfinite(y) || y == 0) return y;
  for (int i = 0; i < 2; i++) {
    long double e = fabsl(x) < 0.5L ? erfl(y) - x
                    : x > 0         ? (1 - x) - erfcl(y)
                                    : erfcl(-y) - (1 + x);
    long double u = e / (1.1283791670955125738961589L * expl(-y * y));
    y -= u / (1 + u * y);
  }
  return y;
}

static double erfinv_double(double x) { return (double)erfinv_long(x); }
static long double sigmoid_long(long double x) { return 1 / (1 + expl(-x)); }
static double sigmoid_double(double x) { return (double)sigmoid_long(x); }
static long double rsqrt_long(long double x) { return 1 / sqrtl(x); }
static double rsqrt_double(double x) { return 1 / sqrt(x); }

static uint64_t random_state = 88172645463325252ull;

static uint64_t next_random(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}

/* Distance in units of the last place of `want` in a format of `digits` bits, least exponent
 * `low`, greatest value `top`; 1e9 where kind or sign differ. */
static double ulps_apart(long double got, long double want, int digits, int low, long double top) {
  int e;
  if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : 1e9;
  if (isinf(got)) return !!signbit(got) == !!signbit(want) && fabsl(want) > top ? 0 : 1e9;
  if (isinf(want)) return 1e9;
  if (!!signbit(got) != !!signbit(want)) return 1e9;
  frexpl(want, &e);
  e = e - digits < low ? low : e - digits;
  return (double)ldexpl(fabsl(got - want), -e);
}

static double ulps_float(float got, long double want) {
  return ulps_apart(got, want, 24, -149, 0x1.fffffefp127L);
}

static double ulps_double(double got, long double want) {
  return ulps_apart(got, want, 53, -1074, 0x1.fffffffffffff7p1023L);
}

struct function {
  const char *name;
  float (*f)(float);
  double (*d)(double);
  double (*ref)(double);
  long double (*refl)(long double);
  double bound_f, bound_d;
};

#define WRAP(n, r, rl, bf, bd)                                                                    \
  static float call_##n##f(float x) { return rp_##n##f(x); }                                      \
  static double call_##n(double x) { return rp_##n(x); }
UNARY(WRAP)
#define ROW(n, r, rl, bf, bd) {#n, call_##n##f, call_##n, r, rl, bf, bd},
static const struct function functions[] = {UNARY(ROW)};

static void every_float_function_is_within_its_bound_over_all_bit_patterns(void **state) {
  for (size_t i = 0; i < RPI_COUNT_OF(functions); i++) {
    const struct function *f = &functions[i];
    for (uint64_t u = 0; u < 1ull << 32; u += 60013) {
      float x = rp_from_bitsf((uint32_t)u);
      double off = ulps_float(f->f(x), f->ref(x));
      if (!(off <= f->bound_f)) {
        print_error("%sf(%a) is off by %g ulp\n", f->name, x, off);
        assert_true(off <= f->bound_f);
      }
    }
  }
}

/* Half of the samples from all bit patterns, half within 2^-20 ... 2^12. */
static double sample_double(int i) {
  uint64_t u = next_random();
  if (i & 1) return rp_from_bits(u);
  u = (u & 0x800FFFFFFFFFFFFFull) | (1003 + next_random() % 32) << 52;
  return rp_from_bits(u);
}

static void every_double_function_is_within_its_bound_on_random_arguments(void **state) {
  for (size_t i = 0; i < RPI_COUNT_OF(functions); i++) {
    const struct function *f = &functions[i];
    for (int k = 0; k < 12000; k++) {
      double x = sample_double(k), off = ulps_double(f->d(x), f->refl(x));
      if (!(off <= f->bound_d)) {
        print_error("%s(%a) is off by %g ulp\n", f->name, x, off);
        assert_true(off <= f->bound_d);
      }
    }
  }
}

static void pow_and_atan2_are_within_their_bounds(void **state) {
  for (int k = 0; k < 60000; k++) {
    double x = sample_double(k), y = sample_double(k / 2);
    if (k % 3 == 0) y = 700 / log(fabs(x)) * (double)(next_random() >> 11) * 0x1p-53;
    assert_true(ulps_double(rp_pow(x, y), powl(x, y)) <= 1);
    assert_true(ulps_double(rp_atan2(x, y), atan2l(x, y)) <= 2);
    float xf = (float)x, yf = (float)y;
    assert_true(ulps_float(rp_powf(xf, yf), powl(xf, yf)) <= 0.6);
    assert_true(ulps_float(rp_atan2f(xf, yf), atan2l(xf, yf)) <= 0.6);
  }
}

/* From Python and mpmath with 200 digits. */
static void huge_angles_are_reduced_exactly(void **state) {
  assert_true(rp_sin(0x1.fffffffffffffp1023) == 0.004961954789184062);
  assert_true(rp_cos(0x1.fffffffffffffp1023) == -0.9999876894265599);
  assert_true(rp_sin(1e22) == -0.8522008497671888);
  assert_true(rp_sinf(0x1.fffffep127f) == (float)-0.5218765233336585);
  assert_true(rp_cosf(0x1.fffffep127f) == (float)0.8530210398303042);
  /* The double closest to a multiple of pi/2. */
  assert_true(rp_abs(rp_cos(6381956970095103.0 * 0x1p797) - -4.68716592425462761112e-19) < 1e-34);
}

static const double edges[] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 1e300, 0x1p53, INFINITY, NAN, 0x1p-1074, 0x1p-1022};

static void pow_has_the_special_cases_of_annex_f(void **state) {
  int n = 2 * (int)RPI_COUNT_OF(edges);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double x = i & 1 ? -edges[i / 2] : edges[i / 2], y = j & 1 ? -edges[j / 2] : edges[j / 2];
      assert_true(ulps_double(rp_pow(x, y), powl(x, y)) <= 1);
      assert_true(ulps_double(rp_atan2(x, y), atan2l(x, y)) <= 1);
      assert_true(ulps_float(rp_powf((float)x, (float)y), powl((float)x, (float)y)) <= 1);
      assert_true(ulps_float(rp_atan2f((float)x, (float)y), atan2l((float)x, (float)y)) <= 1);
    }
}

static void unary_functions_have_the_special_cases_of_annex_f(void **state) {
  for (size_t k = 0; k < RPI_COUNT_OF(functions); k++)
    for (size_t i = 0; i < 2 * RPI_COUNT_OF(edges); i++) {
      double x = i & 1 ? -edges[i / 2] : edges[i / 2];
      const struct function *f = &functions[k];
      if (f->ref == rsqrt_double && x == 0) continue; /* 1 / -0 */
      if (!(ulps_double(f->d(x), f->refl(x)) <= f->bound_d) ||
          !(ulps_float(f->f((float)x), f->ref((float)x)) <= f->bound_f))
        print_error("%s(%a)\n", f->name, x);
      assert_true(ulps_double(f->d(x), f->refl(x)) <= f->bound_d);
      assert_true(ulps_float(f->f((float)x), f->ref((float)x)) <= f->bound_f);
    }
}

static void expm1_does_not_cancel(void **state) {
  const float x[] = {-88, -86, -0.1f, 0, 0.1f, 87, 89, 90};
  const float want[] = {-1, -1, -0.09516258f, 0, 0.10517092f, 6.07603e37f, INFINITY, INFINITY};
  for (int i = 0; i < 8; i++)
    assert_true(rp_expm1f(x[i]) == want[i] || fabsf(rp_expm1f(x[i]) / want[i] - 1) < 1e-6f);
  assert_true(rp_log1pf(INFINITY) == INFINITY && rp_log1p(INFINITY) == INFINITY);
}

/* x, y, x % y, x // y as Python gives them. */
static void float_quotients_follow_python(void **state) {
  static const double t[][4] = {{-1, 5, 4, -1},           {1, -5, -4, -1},
                                {7, 2, 1, 3},             {-7, 2, 1, -4},
                                {1, -INFINITY, -INFINITY, -1}, {-1, INFINITY, INFINITY, -1},
                                {INFINITY, 3, NAN, NAN},  {-INFINITY, 3, NAN, NAN},
                                {3, INFINITY, 3, 0},      {5, 0, NAN, INFINITY},
                                {1, 0.1, 0.09999999999999995, 9}, {1e300, 7, 1, 1.4285714285714286e299}};
  for (size_t i = 0; i < RPI_COUNT_OF(t); i++) {
    assert_true(ulps_double(rp_remainder(t[i][0], t[i][1]), t[i][2]) == 0);
    assert_true(ulps_double(rp_floor_divide(t[i][0], t[i][1]), t[i][3]) == 0);
    if (i >= 10) continue;
    assert_true(ulps_float(rp_remainderf((float)t[i][0], (float)t[i][1]), t[i][2]) == 0);
    assert_true(ulps_float(rp_floor_dividef((float)t[i][0], (float)t[i][1]), t[i][3]) == 0);
  }
}

static void extremes_let_nan_through_and_logaddexp_takes_infinities(void **state) {
  assert_true(isnan(rp_maximumf(NAN, 1)) && isnan(rp_maximumf(1, NAN)));
  assert_true(isnan(rp_minimum(NAN, 1)) && isnan(rp_minimum(1, NAN)));
  assert_true(rp_logaddexpf(INFINITY, INFINITY) == INFINITY);
  assert_true(rp_logaddexpf(-INFINITY, -INFINITY) == -INFINITY);
  assert_true(rp_logaddexp(INFINITY, -INFINITY) == INFINITY && rp_logaddexp(-INFINITY, 2) == 2);
  assert_true(isnan(rp_logaddexp(NAN, INFINITY)) && isnan(rp_logaddexpf(1, NAN)));
  assert_true(ulps_double(rp_logaddexp(1, 2), logl(expl(1) + expl(2))) <= 1);
  assert_true(isnan(rp_signf(NAN)) && rp_signf(-3) == -1 && rp_sign(-0.0) == 0 && rp_sign(9) == 1);
}

/* Conversions ---------------------------------------------------------------------------------- */

__attribute__((target("f16c"))) static float widen_by_hardware(uint16_t h) { return _cvtsh_ss(h); }
__attribute__((target("f16c"))) static uint16_t narrow_by_hardware(float x) { return _cvtss_sh(x, 0); }

static void half_conversions_equal_the_hardware_for_all_inputs(void **state) {
  if (!__builtin_cpu_supports("f16c")) skip();
  for (uint32_t h = 0; h < 0x10000; h++)
    assert_int_equal(rp_bitsf(rp_f16_to_f32((uint16_t)h)), rp_bitsf(widen_by_hardware((uint16_t)h)));
  uint32_t wrong = 0;
  for (uint64_t u = 0; u < 1ull << 32; u += 61)
    wrong += rp_f32_to_f16(rp_from_bitsf((uint32_t)u)) != narrow_by_hardware(rp_from_bitsf((uint32_t)u));
  for (uint64_t u = 0; u < 1ull << 32; u += 0x1000) /* ties and their neighbours */
    for (uint32_t d = 0; d < 3; d++) {
      float x = rp_from_bitsf((uint32_t)u + d - 1);
      wrong += rp_f32_to_f16(x) != narrow_by_hardware(x);
    }
  assert_int_equal(wrong, 0);
}

static void half_survives_a_round_trip(void **state) {
  for (uint32_t h = 0; h < 0x10000; h++) {
    int is_nan = (h & 0x7FFF) > 0x7C00, is_bnan = (h & 0x7FFF) > 0x7F80;
    assert_int_equal(rp_f32_to_f16(rp_f16_to_f32((uint16_t)h)), is_nan ? h | 0x200 : h);
    assert_int_equal(rp_f64_to_f16(rp_f16_to_f32((uint16_t)h)), is_nan ? h | 0x200 : h);
    assert_int_equal(rp_f32_to_bf16(rp_bf16_to_f32((uint16_t)h)), is_bnan ? h | 0x40 : h);
    assert_int_equal(rp_f64_to_bf16(rp_bf16_to_f32((uint16_t)h)), is_bnan ? h | 0x40 : h);
  }
}

/* Between each two neighbours: the middle goes to the even one, a hair off it to the nearer one. */
static void double_to_half_rounds_once(void **state) {
  for (uint32_t h = 0; h < 0x7BFF; h++) {
    double a = rp_f16_to_f32((uint16_t)h), b = rp_f16_to_f32((uint16_t)(h + 1)), m = (a + b) / 2;
    assert_int_equal(rp_f64_to_f16(m), h + (h & 1));
    assert_int_equal(rp_f64_to_f16(nextafter(m, 0)), h);
    assert_int_equal(rp_f64_to_f16(-nextafter(m, 1e9)), (h + 1) | 0x8000);
  }
  for (uint32_t h = 0; h < 0x7F7F; h++) {
    double a = rp_bf16_to_f32((uint16_t)h), b = rp_bf16_to_f32((uint16_t)(h + 1)), m = (a + b) / 2;
    assert_int_equal(rp_f64_to_bf16(m), h + (h & 1));
    assert_int_equal(rp_f64_to_bf16(nextafter(m, 0)), h);
    assert_int_equal(rp_f64_to_bf16(-nextafter(m, 1e300)), (h + 1) | 0x8000);
    assert_int_equal(rp_f32_to_bf16((float)m), h + (h & 1));
  }
  assert_int_equal(rp_f64_to_f16(65520), 0x7C00);
  assert_int_equal(rp_f64_to_f16(65519.99999999), 0x7BFF);
  assert_int_equal(rp_f64_to_bf16(1e308), 0x7F80);
}

static void float_to_integer_saturates_and_nan_gives_zero(void **state) {
  const float big[] = {1e30f, INFINITY};
  for (int i = 0; i < 2; i++) {
    float x = big[i];
    assert_true(rp_f32_to_i8(x) == INT8_MAX && rp_f32_to_i8(-x) == INT8_MIN);
    assert_true(rp_f32_to_u8(x) == UINT8_MAX && rp_f32_to_u8(-x) == 0);
    assert_true(rp_f32_to_i16(x) == INT16_MAX && rp_f32_to_i16(-x) == INT16_MIN);
    assert_true(rp_f32_to_u16(x) == UINT16_MAX && rp_f32_to_u16(-x) == 0);
    assert_true(rp_f32_to_i32(x) == INT32_MAX && rp_f32_to_i32(-x) == INT32_MIN);
    assert_true(rp_f32_to_u32(x) == UINT32_MAX && rp_f32_to_u32(-x) == 0);
    assert_true(rp_f32_to_i64(x) == INT64_MAX && rp_f32_to_i64(-x) == INT64_MIN);
    assert_true(rp_f32_to_u64(x) == UINT64_MAX && rp_f32_to_u64(-x) == 0);
    assert_true(rp_f64_to_i32(x) == INT32_MAX && rp_f64_to_i32(-(double)x) == INT32_MIN);
    assert_true(rp_f64_to_i64(x) == INT64_MAX && rp_f64_to_u64(x) == UINT64_MAX);
  }
  assert_true(rp_f32_to_i8(NAN) == 0 && rp_f32_to_u32(NAN) == 0 && rp_f64_to_i64(NAN) == 0);
  assert_true(rp_f64_to_i32(2147483647.9) == INT32_MAX && rp_f64_to_i32(-2147483648.9) == INT32_MIN);
  assert_true(rp_f64_to_u32(4294967295.9) == UINT32_MAX && rp_f64_to_u32(-0.9) == 0);
  assert_true(rp_f32_to_i8(-127.9f) == -127 && rp_f32_to_u8(255.9f) == 255);
  assert_true(rp_f32_to_u64(0x1.fffffep63f) == 0xFFFFFF0000000000ull && rp_f32_to_i32(-2.9f) == -2);
  assert_true(rp_f32_to_bool(NAN) && rp_f32_to_bool(0x1p-149f) && !rp_f64_to_bool(-0.0));
}

/* Integers ------------------------------------------------------------------------------------- */

static void eight_bit_quotients_floor_for_all_pairs(void **state) {
  for (int x = -128; x < 128; x++)
    for (int y = -128; y < 128; y++) {
      double q = y == 0 ? 0 : floor((double)x / y);
      assert_int_equal(rp_floor_divide_i8((int8_t)x, (int8_t)y), (int8_t)(int)q);
      assert_int_equal(rp_remainder_i8((int8_t)x, (int8_t)y), y == 0 ? 0 : x - (int)q * y);
      int a = x + 128, b = y + 128;
      assert_int_equal(rp_floor_divide_u8((uint8_t)a, (uint8_t)b), b == 0 ? 0 : a / b);
      assert_int_equal(rp_remainder_u8((uint8_t)a, (uint8_t)b), b == 0 ? 0 : a % b);
    }
}

static int64_t floor_quotient(int64_t x, int64_t y) {
  int64_t q;
  if (y == 0) return 0;
  q = x / y;
  return q - (x % y != 0 && (x < 0) != (y < 0));
}

static void wider_quotients_floor(void **state) {
  for (int i = 0; i < 300000; i++) {
    int32_t x = (int32_t)next_random(), y = (int32_t)next_random() >> (i % 32);
    if (i % 7 == 0) x = INT32_MIN + i % 3;
    if (i % 5 == 0 && y != 0) x = (int32_t)((int64_t)y * ((int64_t)x / y) - 1); /* just below a multiple */
    assert_int_equal(rp_floor_divide_i32(x, y), (int32_t)floor_quotient(x, y));
    assert_int_equal(rp_remainder_i32(x, y), y == 0 ? 0 : (int32_t)(x - floor_quotient(x, y) * y));
    uint32_t a = (uint32_t)x, b = (uint32_t)y;
    assert_int_equal(rp_floor_divide_u32(a, b), b == 0 ? 0 : a / b);
    int16_t s = (int16_t)x, t = (int16_t)y;
    assert_int_equal(rp_floor_divide_i16(s, t), (int16_t)floor_quotient(s, t));
    assert_int_equal(rp_remainder_u16((uint16_t)a, (uint16_t)b), (uint16_t)b == 0 ? 0 : (uint16_t)a % (uint16_t)b);
    int64_t v = (int64_t)next_random(), w = (int64_t)next_random() >> (i % 64);
    assert_true(rp_floor_divide_i64(v, w) == (w == -1 ? -v : floor_quotient(v, w)));
  }
  assert_true(rp_floor_divide_i64(INT64_MIN, -1) == INT64_MIN && rp_remainder_i64(INT64_MIN, -1) == 0);
  assert_true(rp_floor_divide_i32(INT32_MIN, -1) == INT32_MIN && rp_remainder_i32(INT32_MIN, -1) == 0);
  assert_true(rp_floor_divide_u64(7, 0) == 0 && rp_remainder_u64(7, 0) == 0 && rp_remainder_i64(7, 0) == 0);
}

static void integer_arithmetic_wraps(void **state) {
  assert_true(rp_add_i32(INT32_MAX, 1) == INT32_MIN && rp_sub_i64(INT64_MIN, 1) == INT64_MAX);
  assert_true(rp_mul_u16(65535, 65535) == 1 && rp_mul_i32(INT32_MIN, -1) == INT32_MIN);
  assert_true(rp_abs_i8(-128) == -128 && rp_abs_i64(INT64_MIN) == INT64_MIN && rp_abs_i16(-5) == 5);
  assert_true(rp_sign_i8(-9) == -1 && rp_sign_u8(200) == 1 && rp_sign_i64(0) == 0 && rp_neg_u8(1) == 255);
  assert_true(rp_maximum_i8(-1, 1) == 1 && rp_minimum_u8(255, 1) == 1);
}

static void shifts_by_the_width_or_more_are_defined(void **state) {
  assert_true(rp_shl_i32(1, 31) == INT32_MIN && rp_shl_i32(1, 32) == 0 && rp_shl_i8(1, 8) == 0);
  assert_true(rp_shl_u64(1, 64) == 0 && rp_shl_i16(1, -1) == 0);
  assert_true(rp_shr_i8(-128, 7) == -1 && rp_shr_i8(-128, 8) == -1 && rp_shr_i64(-1, 200) == -1);
  assert_true(rp_shr_i32(INT32_MAX, 40) == 0 && rp_shr_u32(UINT32_MAX, 32) == 0 && rp_shr_u8(255, 7) == 1);
}

static void integer_powers_wrap_and_negative_ones_vanish(void **state) {
  assert_true(rp_pow_i32(3, 4) == 81 && rp_pow_i32(-2, 31) == INT32_MIN && rp_pow_i8(2, 8) == 0);
  assert_true(rp_pow_u64(3, 40) == 12157665459056928801ull && rp_pow_i64(7, 0) == 1);
  assert_true(rp_pow_i32(2, -1) == 0 && rp_pow_i32(1, -5) == 1 && rp_pow_i32(0, -1) == 0);
  assert_true(rp_pow_i16(-1, -3) == -1 && rp_pow_i16(-1, -4) == 1 && rp_pow_i8(-1, -128) == 1);
}

/* Complex -------------------------------------------------------------------------------------- */

static double complex_error(struct rp_c64 got, double complex want) {
  double n = cabs(want), e = hypot(got.re - creal(want), got.im - cimag(want));
  return n < 0x1p-100 ? e : e / n;
}

static void complex_functions_agree_with_double_precision(void **state) {
  for (int i = 0; i < 20000; i++) {
    double re = (double)(int64_t)next_random() * 0x1p-61, im = (double)(int64_t)next_random() * 0x1p-61;
    /* Also a test of the flags: without -fno-tree-slp-vectorize, gcc 12 pairs these up in vectors
     * and then drops the rounding in double -> float -> double. */
    float part[] = {(float)re, (float)im, (float)(im * 0.7 + 0.1), (float)(re * 0.3 - 0.2),
                    (float)cos(re), (float)sin(re)};
    struct rp_c64 z = {part[0], part[1]}, w = {part[2], part[3]};
    if (i % 4 == 0) z = rp_c64_make(part[4], part[5]); /* the unit circle */
    double complex c = CMPLX(z.re, z.im), d = CMPLX(w.re, w.im);
    assert_true(complex_error(rp_mul_c64(z, w), c * d) < 1e-7);
    assert_true(complex_error(rp_div_c64(z, w), c / d) < 1e-7);
    assert_true(complex_error(rp_reciprocal_c64(z), 1 / c) < 1e-7);
    assert_true(complex_error(rp_square_c64(z), c * c) < 1e-7);
    assert_true(complex_error(rp_exp_c64(z), cexp(c)) < 1e-7);
    assert_true(complex_error(rp_log_c64(z), clog(c)) < 1e-7);
    assert_true(complex_error(rp_log1p_c64(z), clog(1 + c)) < 1e-6);
    assert_true(complex_error(rp_expm1_c64(z), cexp(c) - 1) < 1e-6);
    assert_true(complex_error(rp_sqrt_c64(z), csqrt(c)) < 1e-7);
    assert_true(complex_error(rp_rsqrt_c64(z), 1 / csqrt(c)) < 1e-7);
    assert_true(complex_error(rp_sin_c64(z), csin(c)) < 1e-7);
    assert_true(complex_error(rp_cos_c64(z), ccos(c)) < 1e-7);
    assert_true(complex_error(rp_tan_c64(z), ctan(c)) < 1e-7);
    assert_true(complex_error(rp_sinh_c64(z), csinh(c)) < 1e-7);
    assert_true(complex_error(rp_cosh_c64(z), ccosh(c)) < 1e-7);
    assert_true(complex_error(rp_tanh_c64(z), ctanh(c)) < 1e-7);
    assert_true(complex_error(rp_pow_c64(z, w), cpow(c, d)) < 1e-7);
    assert_true(fabs(rp_abs_c64(z) - cabs(c)) < 1e-7 * cabs(c));
  }
}

static int same(struct rp_c64 z, float re, float im) {
  return ulps_float(z.re, re) == 0 && ulps_float(z.im, im) == 0;
}

static void complex_functions_take_zeros_and_infinities(void **state) {
  struct rp_c64 zero = {0, 0}, one = {1, 0}, inf_nan = {INFINITY, NAN}, huge = {3e38f, 3e38f};
  assert_true(rp_abs_c64(inf_nan) == INFINITY && rp_abs_c64(rp_c64_make(3e38f, 0)) == 3e38f);
  assert_true(same(rp_div_c64(huge, huge), 1, 0) && same(rp_pow_c64(zero, zero), 1, 0));
  assert_true(same(rp_pow_c64(zero, one), 0, 0) && same(rp_sign_c64(zero), 0, 0));
  assert_true(same(rp_sqrt_c64(rp_c64_make(-4, 0)), 0, 2) && same(rp_sqrt_c64(rp_c64_make(-4, -0.0f)), 0, -2));
  assert_true(same(rp_log_c64(zero), -INFINITY, 0) && same(rp_exp_c64(rp_c64_make(-INFINITY, NAN)), 0, 0));
  assert_true(same(rp_tanh_c64(rp_c64_make(90, 1)), 1, 0) && same(rp_sin_c64(zero), 0, 0));
  assert_true(same(rp_exp_c64(rp_c64_make(INFINITY, 0)), INFINITY, 0));
  assert_true(isinf(rp_mul_c64(rp_c64_make(INFINITY, INFINITY), one).re));
}

static void complex_order_is_lexicographic(void **state) {
  struct rp_c64 a = {1, 5}, b = {2, -5}, c = {1, 6}, n = {NAN, 0}, m = {0, NAN};
  assert_true(rp_lt_c64(a, b) && rp_lt_c64(a, c) && !rp_lt_c64(c, a) && rp_le_c64(a, a) && rp_eq_c64(a, a));
  assert_false(rp_lt_c64(a, n) | rp_lt_c64(n, a) | rp_lt_c64(m, a) | rp_eq_c64(n, n));
  assert_true(same(rp_maximum_c64(a, c), 1, 6) && same(rp_minimum_c64(a, b), 1, 5));
  assert_true(rp_isnan_c64(rp_maximum_c64(n, a)) && rp_isnan_c64(rp_minimum_c64(a, m)));
}

/* Widths --------------------------------------------------------------------------------------- */

#define BATCH 512 /* a multiple of every vector, and the loops have a tail elsewhere */
#define AVX2 __attribute__((target("avx2,fma"), optimize("O3"), noinline))
#define AVX512                                                                     \
  __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512"), \
                 optimize("O3"), noinline))

#define LOOP(isa, n, T, f)                                                                        \
  isa static void loop_##n(T *restrict out, const T *restrict x) {                                \
    for (int i = 0; i < BATCH; i++) out[i] = f(x[i]);                                             \
  }
#define LOOPS(n, r, rl, bf, bd)                                                                   \
  LOOP(AVX2, n##f_avx2, float, rp_##n##f)                                                         \
  LOOP(AVX2, n##_avx2, double, rp_##n)                                                            \
  LOOP(AVX512, n##f_avx512, float, rp_##n##f)                                                     \
  LOOP(AVX512, n##_avx512, double, rp_##n)
UNARY(LOOPS)

struct loops {
  const char *name;
  float (*f)(float);
  double (*d)(double);
  void (*f2)(float *, const float *), (*f5)(float *, const float *);
  void (*d2)(double *, const double *), (*d5)(double *, const double *);
};

#define LOOP_ROW(n, r, rl, bf, bd)                                                                \
  {#n, call_##n##f, call_##n, loop_##n##f_avx2, loop_##n##f_avx512, loop_##n##_avx2, loop_##n##_avx512},
static const struct loops all_loops[] = {UNARY(LOOP_ROW)};

/* One batch through both formats; all bits count, those of a NaN too. */
static int same_bits(const struct loops *l, int wide) {
  static float x[BATCH], got[BATCH];
  static double xd[BATCH], gotd[BATCH];
  int ok = 1;
  for (int i = 0; i < BATCH; i++) {
    xd[i] = sample_double(i);
    x[i] = i & 1 ? rp_from_bitsf((uint32_t)next_random()) : (float)xd[i];
  }
  (wide ? l->f5 : l->f2)(got, x);
  (wide ? l->d5 : l->d2)(gotd, xd);
  for (int i = 0; i < BATCH; i++) {
    ok &= rp_bitsf(got[i]) == rp_bitsf(l->f(x[i]));
    ok &= rp_bits(gotd[i]) == rp_bits(l->d(xd[i]));
  }
  if (!ok) print_error("%s differs\n", l->name);
  return ok;
}

static void avx2_loops_give_the_bits_of_scalar_calls(void **state) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) skip();
  for (size_t i = 0; i < RPI_COUNT_OF(all_loops); i++)
    for (int k = 0; k < 10; k++) assert_true(same_bits(&all_loops[i], 0));
}

static void avx512_loops_give_the_bits_of_scalar_calls(void **state) {
  if (!__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq")) skip();
  for (size_t i = 0; i < RPI_COUNT_OF(all_loops); i++)
    for (int k = 0; k < 10; k++) assert_true(same_bits(&all_loops[i], 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_float_function_is_within_its_bound_over_all_bit_patterns),
      cmocka_unit_test(every_double_function_is_within_its_bound_on_random_arguments),
      cmocka_unit_test(pow_and_atan2_are_within_their_bounds),
      cmocka_unit_test(huge_angles_are_reduced_exactly),
      cmocka_unit_test(pow_has_the_special_cases_of_annex_f),
      cmocka_unit_test(unary_functions_have_the_special_cases_of_annex_f),
      cmocka_unit_test(expm1_does_not_cancel),
      cmocka_unit_test(float_quotients_follow_python),
      cmocka_unit_test(extremes_let_nan_through_and_logaddexp_takes_infinities),
      cmocka_unit_test(half_conversions_equal_the_hardware_for_all_inputs),
      cmocka_unit_test(half_survives_a_round_trip),
      cmocka_unit_test(double_to_half_rounds_once),
      cmocka_unit_test(float_to_integer_saturates_and_nan_gives_zero),
      cmocka_unit_test(eight_bit_quotients_floor_for_all_pairs),
      cmocka_unit_test(wider_quotients_floor),
      cmocka_unit_test(integer_arithmetic_wraps),
      cmocka_unit_test(shifts_by_the_width_or_more_are_defined),
      cmocka_unit_test(integer_powers_wrap_and_negative_ones_vanish),
      cmocka_unit_test(complex_functions_agree_with_double_precision),
      cmocka_unit_test(complex_functions_take_zeros_and_infinities),
      cmocka_unit_test(complex_order_is_lexicographic),
      cmocka_unit_test(avx2_loops_give_the_bits_of_scalar_calls),
      cmocka_unit_test(avx512_loops_give_the_bits_of_scalar_calls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
