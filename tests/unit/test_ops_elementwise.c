/* Element-wise functions through the public interface: semantics with values known beforehand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "mlx/c/mlx.h"
#include "reprise/error.h"

static mlx_stream cpu;

static void ignore(const char* text, void* data) {}

static int set_up(void** state) {
  mlx_set_error_handler(ignore, NULL, NULL);
  cpu = mlx_default_cpu_stream_new();
  return 0;
}

static int tear_down(void** state) { return mlx_stream_free(cpu); }

/* Doubles as an array of a dtype (through float64, whose conversion rounds once). */
static mlx_array make(mlx_dtype dtype, int n, const double* x) {
  mlx_array wide = mlx_array_new_data(x, &n, 1, MLX_FLOAT64), a = mlx_array_new();
  assert_int_equal(mlx_astype(&a, wide, dtype, cpu), 0);
  mlx_array_free(wide);
  return a;
}
#define COUNT(...) ((int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))
#define ARRAY(dtype, ...) make(dtype, COUNT(__VA_ARGS__), (double[]){__VA_ARGS__})

/* Takes the array. NaN expects NaN; zeros compare with their signs. */
static void check(mlx_array a, mlx_dtype dtype, double tolerance, int n, const double* want) {
  mlx_array wide = mlx_array_new();
  assert_int_equal(mlx_array_dtype(a), dtype);
  assert_int_equal(mlx_array_size(a), n);
  assert_int_equal(mlx_astype(&wide, a, MLX_FLOAT64, cpu), 0);
  const double* got = mlx_array_data_float64(wide);
  assert_non_null(got);
  for (int i = 0; i < n; i++) {
    bool same = isnan(want[i]) ? isnan(got[i]) : got[i] == want[i];
    if (!same && !(fabs(got[i] - want[i]) <= tolerance * fabs(want[i])))
      fail_msg("element %d: %.9g, want %.9g", i, got[i], want[i]);
  }
  mlx_array_free(wide);
  mlx_array_free(a);
}
#define EXPECT(a, dtype, ...) check(a, dtype, 0, COUNT(__VA_ARGS__), (double[]){__VA_ARGS__})
#define EXPECT_NEAR(a, dtype, tolerance, ...) \
  check(a, dtype, tolerance, COUNT(__VA_ARGS__), (double[]){__VA_ARGS__})

typedef int unary(mlx_array*, const mlx_array, const mlx_stream);
typedef int binary(mlx_array*, const mlx_array, const mlx_array, const mlx_stream);

/* Both take their arguments. */
static mlx_array call1(unary* f, mlx_array a) {
  mlx_array r = mlx_array_new();
  assert_int_equal(f(&r, a, cpu), 0);
  mlx_array_free(a);
  return r;
}

static mlx_array call2(binary* f, mlx_array a, mlx_array b) {
  mlx_array r = mlx_array_new();
  assert_int_equal(f(&r, a, b, cpu), 0);
  mlx_array_free(a);
  mlx_array_free(b);
  return r;
}

static void refuse1(unary* f, mlx_array a, int code) {
  mlx_array r = mlx_array_new();
  assert_int_not_equal(f(&r, a, cpu), 0);
  assert_int_equal(rp_last_error(NULL), code);
  mlx_array_free(a);
  mlx_array_free(r);
}

static void refuse2(binary* f, mlx_array a, mlx_array b, int code) {
  mlx_array r = mlx_array_new();
  assert_int_not_equal(f(&r, a, b, cpu), 0);
  assert_int_equal(rp_last_error(NULL), code);
  mlx_array_free(a);
  mlx_array_free(b);
  mlx_array_free(r);
}

static mlx_array clip(mlx_array a, mlx_array lo, mlx_array hi) {
  mlx_array r = mlx_array_new();
  assert_int_equal(mlx_clip(&r, a, lo, hi, cpu), 0);
  mlx_array_free(a);
  mlx_array_free(lo);
  mlx_array_free(hi);
  return r;
}

static void clip_maximum_and_minimum_keep_nan(void** state) { /* N04 */
  EXPECT(clip(ARRAY(MLX_FLOAT32, NAN, 3, -3), ARRAY(MLX_FLOAT32, -1), ARRAY(MLX_FLOAT32, 1)),
         MLX_FLOAT32, NAN, 1, -1);
  EXPECT(call2(mlx_maximum, ARRAY(MLX_FLOAT32, NAN, 1), ARRAY(MLX_FLOAT32, 1, NAN)),
         MLX_FLOAT32, NAN, NAN);
  EXPECT(call2(mlx_minimum, ARRAY(MLX_BFLOAT16, NAN, 1), ARRAY(MLX_BFLOAT16, 1, NAN)), MLX_BFLOAT16,
         NAN, NAN);
}

static void clip_takes_one_bound_or_two_and_promotes(void** state) {
  EXPECT(clip(ARRAY(MLX_INT32, -5, 5), ARRAY(MLX_INT32, 0), (mlx_array){0}), MLX_INT32, 0, 5);
  EXPECT(clip(ARRAY(MLX_INT32, -5, 5), (mlx_array){0}, ARRAY(MLX_FLOAT32, 1.5)),
         MLX_FLOAT32, -5, 1.5);
  mlx_array a = ARRAY(MLX_INT32, 1), r = mlx_array_new();
  assert_int_not_equal(mlx_clip(&r, a, (mlx_array){0}, (mlx_array){0}, cpu), 0);
  mlx_array_free(a);
}

static void floor_divide_of_floats_handles_infinity_as_python_does(void** state) { /* N09 */
  EXPECT(call2(mlx_floor_divide, ARRAY(MLX_FLOAT32, 1, -1, INFINITY, -INFINITY, 3, 7),
               ARRAY(MLX_FLOAT32, -INFINITY, INFINITY, 3, 3, INFINITY, -2)),
         MLX_FLOAT32, -1, -1, NAN, NAN, 0, -4);
}

static void remainder_has_the_sign_of_the_divisor(void** state) { /* N10 */
  EXPECT(call2(mlx_remainder, ARRAY(MLX_INT32, -1, 1, 7), ARRAY(MLX_INT32, 5, -5, 0)),
         MLX_INT32, 4, -4, 0);
  EXPECT(call2(mlx_remainder, ARRAY(MLX_FLOAT32, -1, 1), ARRAY(MLX_FLOAT32, 5, -5)), MLX_FLOAT32, 4,
         -4);
}

static void nan_to_num_uses_the_range_of_the_dtype(void** state) { /* N12 */
  mlx_optional_float none = {0, false};
  mlx_array a = ARRAY(MLX_FLOAT16, NAN, INFINITY, -INFINITY, 1.5), r = mlx_array_new();
  assert_int_equal(mlx_nan_to_num(&r, a, 0, none, none, cpu), 0);
  EXPECT(r, MLX_FLOAT16, 0, 65504, -65504, 1.5);
  mlx_array_free(a);
  a = ARRAY(MLX_BFLOAT16, INFINITY, NAN);
  r = mlx_array_new();
  assert_int_equal(mlx_nan_to_num(&r, a, 2, none, none, cpu), 0);
  EXPECT(r, MLX_BFLOAT16, 0x1.FEp127, 2);
  mlx_array_free(a);
  a = ARRAY(MLX_FLOAT32, INFINITY, -INFINITY);
  r = mlx_array_new();
  mlx_optional_float over = {7, true}, under = {-8, true};
  assert_int_equal(mlx_nan_to_num(&r, a, 0, over, under, cpu), 0);
  EXPECT(r, MLX_FLOAT32, 7, -8);
  mlx_array_free(a);
}

static void shifts_keep_their_dtype(void** state) { /* N28 */
  EXPECT(call2(mlx_left_shift, ARRAY(MLX_INT8, 1), ARRAY(MLX_INT8, 3)), MLX_INT8, 8);
  EXPECT(call2(mlx_right_shift, ARRAY(MLX_INT8, -8), ARRAY(MLX_INT8, 1)), MLX_INT8, -4);
  EXPECT(call2(mlx_left_shift, ARRAY(MLX_BOOL, 1), ARRAY(MLX_BOOL, 1)), MLX_UINT8, 2);
  EXPECT(call2(mlx_left_shift, ARRAY(MLX_INT32, 1, 1), ARRAY(MLX_INT32, 31, 32)), MLX_INT32,
         -2147483648.0, 0);
}

static void expm1_and_log1p_are_right_at_the_extremes(void** state) { /* N30 */
  EXPECT_NEAR(call1(mlx_expm1, ARRAY(MLX_FLOAT32, -88, -86, -.1, 0, .1, 87, 89, 90)),
              MLX_FLOAT32, 1e-6, -1, -1, -0.09516258, 0, 0.10517092, 6.0760303e37, INFINITY,
              INFINITY);
  EXPECT(call1(mlx_log1p, ARRAY(MLX_FLOAT32, INFINITY)), MLX_FLOAT32, INFINITY);
}

static void casts_to_integers_saturate_and_take_nan_to_zero(void** state) { /* N36 */
  mlx_array a = ARRAY(MLX_FLOAT32, NAN, INFINITY, -INFINITY, 3e9), r = mlx_array_new();
  assert_int_equal(mlx_astype(&r, a, MLX_INT32, cpu), 0);
  EXPECT(r, MLX_INT32, 0, 2147483647.0, -2147483648.0, 2147483647.0);
  mlx_array_free(a);
}

static void arithmetic_keeps_or_raises_the_dtype(void** state) {
  EXPECT(call2(mlx_divide, ARRAY(MLX_INT32, 1), ARRAY(MLX_INT32, 2)), MLX_FLOAT32, 0.5);
  EXPECT(call2(mlx_power, ARRAY(MLX_INT32, 3, 2), ARRAY(MLX_INT32, 4, 0)), MLX_INT32, 81, 1);
  EXPECT(call2(mlx_add, ARRAY(MLX_BOOL, 1, 0), ARRAY(MLX_BOOL, 1, 0)), MLX_BOOL, 1, 0);
  EXPECT(call2(mlx_maximum, ARRAY(MLX_BOOL, 1, 0), ARRAY(MLX_BOOL, 0, 0)), MLX_BOOL, 1, 0);
  EXPECT(call2(mlx_multiply, ARRAY(MLX_FLOAT16, 3), ARRAY(MLX_BFLOAT16, 3)), MLX_FLOAT32, 9);
  EXPECT(call2(mlx_add, ARRAY(MLX_UINT8, 250), ARRAY(MLX_UINT8, 10)), MLX_UINT8, 4);
  EXPECT(call2(mlx_floor_divide, ARRAY(MLX_INT32, 7, -7, 7), ARRAY(MLX_INT32, 2, 2, 0)),
         MLX_INT32, 3, -4, 0);
  EXPECT(call1(mlx_abs, ARRAY(MLX_UINT8, 200)), MLX_UINT8, 200);
  EXPECT(call1(mlx_sign, ARRAY(MLX_UINT8, 200, 0)), MLX_UINT8, 1, 0);
  EXPECT(call1(mlx_exp, ARRAY(MLX_INT32, 0)), MLX_FLOAT32, 1);
  EXPECT(call1(mlx_logical_not, ARRAY(MLX_FLOAT32, 0, 2, NAN)), MLX_BOOL, 1, 0, 0);
  EXPECT(call2(mlx_logical_and, ARRAY(MLX_FLOAT32, 0.5, 0), ARRAY(MLX_INT32, 256, 1)),
         MLX_BOOL, 1, 0);
}

static void what_a_dtype_cannot_do_is_an_error(void** state) {
  refuse1(mlx_negative, ARRAY(MLX_BOOL, 1), RP_ERR_DTYPE);
  refuse1(mlx_bitwise_invert, ARRAY(MLX_FLOAT32, 1), RP_ERR_DTYPE);
  refuse2(mlx_bitwise_and, ARRAY(MLX_FLOAT32, 1), ARRAY(MLX_INT32, 1), RP_ERR_DTYPE);
  refuse1(mlx_floor, ARRAY(MLX_COMPLEX64, 1), RP_ERR_DTYPE);
  refuse2(mlx_add, ARRAY(MLX_FLOAT32, 1, 2), ARRAY(MLX_FLOAT32, 1, 2, 3), RP_ERR_SHAPE);
}

static mlx_array rounded(mlx_array a, int decimals) {
  mlx_array r = mlx_array_new();
  assert_int_equal(mlx_round(&r, a, decimals, cpu), 0);
  mlx_array_free(a);
  return r;
}

static void round_goes_half_to_even_at_any_decimal(void** state) {
  EXPECT(rounded(ARRAY(MLX_FLOAT32, 0.5, 1.5, -2.5), 0), MLX_FLOAT32, 0, 2, -2);
  EXPECT_NEAR(rounded(ARRAY(MLX_FLOAT32, 1.26, -0.34), 1), MLX_FLOAT32, 1e-7, 1.3, -0.3);
  EXPECT(rounded(ARRAY(MLX_INT32, 15, 25, 2147483647.0), -1), MLX_INT32, 20, 20, 2147483647.0);
  EXPECT(rounded(ARRAY(MLX_INT32, 16777217), 3), MLX_INT32, 16777217);
  EXPECT(rounded(ARRAY(MLX_FLOAT16, 1.2345), 5), MLX_FLOAT16, 1.234375);
}

static void where_promotes_and_broadcasts_all_three(void** state) {
  mlx_array c = ARRAY(MLX_INT32, 0, 5), x = ARRAY(MLX_INT32, 1), y = ARRAY(MLX_FLOAT32, 2.5, 3.5);
  mlx_array r = mlx_array_new();
  assert_int_equal(mlx_where(&r, c, x, y, cpu), 0);
  EXPECT(r, MLX_FLOAT32, 2.5, 1);
  mlx_array_free(c);
  mlx_array_free(x);
  mlx_array_free(y);
}

static void degrees_and_radians_convert(void** state) {
  EXPECT_NEAR(call1(mlx_degrees, ARRAY(MLX_FLOAT32, 3.14159265)), MLX_FLOAT32, 1e-6, 180);
  EXPECT_NEAR(call1(mlx_radians, ARRAY(MLX_INT32, 180)), MLX_FLOAT32, 1e-6, 3.14159265);
}

static void divmod_gives_quotient_and_remainder(void** state) {
  mlx_array a = ARRAY(MLX_INT32, -7), b = ARRAY(MLX_INT32, 2), item = mlx_array_new();
  mlx_vector_array both = mlx_vector_array_new();
  assert_int_equal(mlx_divmod(&both, a, b, cpu), 0);
  assert_int_equal(mlx_vector_array_size(both), 2);
  assert_int_equal(mlx_vector_array_get(&item, both, 0), 0);
  EXPECT(item, MLX_INT32, -4);
  item = mlx_array_new();
  assert_int_equal(mlx_vector_array_get(&item, both, 1), 0);
  EXPECT(item, MLX_INT32, 1);
  mlx_vector_array_free(both);
  mlx_array_free(a);
  mlx_array_free(b);
}

static mlx_array is_close(mlx_array a, mlx_array b, bool equal_nan) {
  mlx_array r = mlx_array_new();
  assert_int_equal(mlx_isclose(&r, a, b, 1e-5, 1e-8, equal_nan, cpu), 0);
  mlx_array_free(a);
  mlx_array_free(b);
  return r;
}

/* Pairs of float32 parts, in one dimension. */
static mlx_array complexes(int n, const float* parts) {
  return mlx_array_new_data(parts, &n, 1, MLX_COMPLEX64);
}
#define COMPLEX(...)                                       \
  complexes((int)(sizeof((float[]){__VA_ARGS__}) / (2 * sizeof(float))), (float[]){__VA_ARGS__})

/* Takes the array. */
static void expect_complex(mlx_array a, int n, const float* parts, double tolerance) {
  assert_int_equal(mlx_array_dtype(a), MLX_COMPLEX64);
  assert_int_equal(mlx_array_size(a), n);
  const float* got = (const float*)mlx_array_data_complex64(a);
  assert_non_null(got);
  for (int i = 0; i < 2 * n; i++)
    if (got[i] != parts[i] && !(fabs((double)got[i] - parts[i]) <= tolerance))
      fail_msg("part %d: %.9g, want %.9g", i, got[i], parts[i]);
  mlx_array_free(a);
}

static void only_real_infinities_of_complex_numbers_have_a_sign(void** state) {
  float parts[] = {INFINITY, 0, -INFINITY, 0, INFINITY, 1, 0, INFINITY, NAN, 0};
  EXPECT(call1(mlx_isposinf, complexes(5, parts)), MLX_BOOL, 1, 0, 0, 0, 0);
  EXPECT(call1(mlx_isneginf, complexes(5, parts)), MLX_BOOL, 0, 1, 0, 0, 0);
}

/* log(exp(1 + i) + exp(1 + i)) = 1 + log 2 + i; equal moduli of opposite directions cancel. */
static void logaddexp_takes_complex_numbers(void** state) {
  mlx_array x = COMPLEX(1, 1, -INFINITY, 0, 2, 0, INFINITY, 0);
  mlx_array y = COMPLEX(1, 1, 3, 2, 0, 0, 5, 1);
  float want[] = {1.69314718f, 1, 3, 2, 2.12692801f, 0, INFINITY, 0};
  expect_complex(call2(mlx_logaddexp, x, y), 4, want, 1e-6);
  mlx_array n = call2(mlx_logaddexp, COMPLEX(NAN, 0), COMPLEX(1, 0));
  assert_true(isnan(((const float*)mlx_array_data_complex64(n))[0]));
  mlx_array_free(n);
}

/* log(e^(1+i) (1 + e + e^2)) and so on; before the first element the sum is empty. */
static void logcumsumexp_takes_complex_numbers_both_ways(void** state) {
  mlx_array x = COMPLEX(1, 1, 2, 1, 3, 1), r = mlx_array_new();
  float up[] = {1, 1, 2.31326169f, 1, 3.40760596f, 1};
  float down[] = {3.31326169f, 1, 3, 1, -INFINITY, 0};
  assert_int_equal(mlx_logcumsumexp(&r, x, -1, false, true, cpu), 0);
  expect_complex(r, 3, up, 1e-6);
  r = mlx_array_new();
  assert_int_equal(mlx_logcumsumexp(&r, x, 0, true, false, cpu), 0);
  expect_complex(r, 3, down, 1e-6);
  mlx_array_free(x);
}

static void logsumexp_of_nothing_is_minus_infinity_for_complex_numbers_too(void** state) {
  mlx_array x = mlx_array_new_data(NULL, (int[]){2, 0}, 2, MLX_COMPLEX64), r = mlx_array_new();
  assert_int_equal(mlx_logsumexp_axis(&r, x, 1, false, cpu), 0);
  expect_complex(r, 2, (float[]){-INFINITY, 0, -INFINITY, 0}, 0);
  mlx_array_free(x);
}

static void closeness_respects_infinities_nan_and_unsigned_numbers(void** state) {
  EXPECT(is_close(ARRAY(MLX_FLOAT32, 1, 1, INFINITY, INFINITY, 1, NAN),
                  ARRAY(MLX_FLOAT32, 1.000001, 1.1, INFINITY, -INFINITY, INFINITY, NAN), false),
         MLX_BOOL, 1, 0, 1, 0, 0, 0);
  EXPECT(is_close(ARRAY(MLX_FLOAT32, NAN), ARRAY(MLX_FLOAT32, NAN), true), MLX_BOOL, 1);
  EXPECT(is_close(ARRAY(MLX_UINT8, 1, 200), ARRAY(MLX_UINT8, 2, 200), false), MLX_BOOL, 0, 1);
}

static void array_equal_compares_shapes_and_elements(void** state) {
  mlx_array a = ARRAY(MLX_FLOAT32, 1, NAN), b = ARRAY(MLX_FLOAT32, 1), r = mlx_array_new();
  assert_int_equal(mlx_array_equal(&r, a, b, true, cpu), 0);
  EXPECT(r, MLX_BOOL, 0);
  r = mlx_array_new();
  assert_int_equal(mlx_array_equal(&r, a, a, true, cpu), 0);
  EXPECT(r, MLX_BOOL, 1);
  r = mlx_array_new();
  assert_int_equal(mlx_array_equal(&r, a, a, false, cpu), 0);
  EXPECT(r, MLX_BOOL, 0);
  mlx_array_free(a);
  mlx_array_free(b);
}

/* (2) to (2, 1) and (1, 2) against each other, from a transposed view. */
static void views_of_any_strides_are_read_where_they_lie(void** state) {
  mlx_array a = ARRAY(MLX_FLOAT32, 1, 2, 3, 4, 5, 6), m = mlx_array_new(), t = mlx_array_new();
  assert_int_equal(mlx_reshape(&m, a, (int[]){2, 3}, 2, cpu), 0);
  assert_int_equal(mlx_transpose(&t, m, cpu), 0);
  EXPECT(call2(mlx_multiply, t, ARRAY(MLX_FLOAT32, 1, 10)), MLX_FLOAT32, 1, 40, 2, 50, 3, 60);
  mlx_array_free(a);
  mlx_array_free(m);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(clip_maximum_and_minimum_keep_nan),
      TEST(clip_takes_one_bound_or_two_and_promotes),
      TEST(floor_divide_of_floats_handles_infinity_as_python_does),
      TEST(remainder_has_the_sign_of_the_divisor),
      TEST(nan_to_num_uses_the_range_of_the_dtype),
      TEST(shifts_keep_their_dtype),
      TEST(expm1_and_log1p_are_right_at_the_extremes),
      TEST(casts_to_integers_saturate_and_take_nan_to_zero),
      TEST(arithmetic_keeps_or_raises_the_dtype),
      TEST(what_a_dtype_cannot_do_is_an_error),
      TEST(round_goes_half_to_even_at_any_decimal),
      TEST(where_promotes_and_broadcasts_all_three),
      TEST(degrees_and_radians_convert),
      TEST(divmod_gives_quotient_and_remainder),
      TEST(only_real_infinities_of_complex_numbers_have_a_sign),
      TEST(logaddexp_takes_complex_numbers),
      TEST(logcumsumexp_takes_complex_numbers_both_ways),
      TEST(logsumexp_of_nothing_is_minus_infinity_for_complex_numbers_too),
      TEST(closeness_respects_infinities_nan_and_unsigned_numbers),
      TEST(array_equal_compares_shapes_and_elements),
      TEST(views_of_any_strides_are_read_where_they_lie),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
