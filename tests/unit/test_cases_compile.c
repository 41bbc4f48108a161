/* Compiled functions in cases that users of other libraries ran into: values that fusion got wrong,
 * and functions traced at one size and called at others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine_help.h"
#include "reprise/error.h"
#include "reprise/stats.h"

#define INTS(...) (int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define LEN(list) (int)(sizeof(list) / sizeof *(list))

static char message[1024];
static const mlx_array none;

static void remember(const char* text, void* data) {
  strncpy(message, text, sizeof message - 1);
}

static int set_up(void** state) {
  message[0] = 0;
  return mlx_set_error_handler(remember, NULL, NULL), 0;
}

/* Values that differ, of either sign, with ties. */
static mlx_array values(const int* shape, int ndim) {
  float at[512];
  int n = 1;
  for (int i = 0; i < ndim; i++) n *= shape[i];
  assert_true(n <= LEN(at));
  for (int k = 0; k < n; k++) at[k] = (float)(k * 7919 % 101 % 37) / 8 - 2;
  return mlx_array_new_data(at, shape, ndim, MLX_FLOAT32);
}

typedef int body(mlx_array* res, const mlx_array x);

static mlx_closure compiled(body* f, bool shapeless) {
  mlx_closure plain = mlx_closure_new_unary(f), c = mlx_closure_new();
  assert_int_equal(mlx_compile(&c, plain, shapeless), 0);
  mlx_closure_free(plain);
  return c;
}

static mlx_closure compiled_many(int (*f)(mlx_vector_array*, const mlx_vector_array),
                                 bool shapeless) {
  mlx_closure plain = mlx_closure_new_func(f), c = mlx_closure_new();
  assert_int_equal(mlx_compile(&c, plain, shapeless), 0);
  mlx_closure_free(plain);
  return c;
}

static uint64_t traces(mlx_closure f) {
  rp_closure_stats s = {0};
  assert_int_equal(rp_closure_get_stats(&s, f), 0);
  return s.traces;
}

static int give(mlx_vector_array* res, mlx_array y, int rc) {
  if (!rc) rc = mlx_vector_array_set_value(res, y);
  mlx_array_free(y);
  return rc;
}

/* Result `i` of an application to arrays that are given up, evaluated. */
static int apply(mlx_array* out, mlx_closure f, const mlx_array* in, size_t n, size_t i) {
  mlx_vector_array x = mlx_vector_array_new_data(in, n), y = mlx_vector_array_new();
  for (size_t k = 0; k < n; k++) mlx_array_free(in[k]);
  int rc = mlx_closure_apply(&y, f, x);
  if (!rc) rc = mlx_vector_array_get(out, y, i);
  if (!rc) rc = mlx_array_eval(*out);
  mlx_vector_array_free(x), mlx_vector_array_free(y);
  return rc;
}

static void expect_same(mlx_array got, mlx_array want, int row, int n) {
  size_t bytes = mlx_array_nbytes(want);
  bool same = mlx_array_ndim(got) == mlx_array_ndim(want) && mlx_array_nbytes(got) == bytes &&
              mlx_array_dtype(got) == mlx_array_dtype(want);
  for (size_t i = 0; same && i < mlx_array_ndim(want); i++)
    same = mlx_array_dim(got, (int)i) == mlx_array_dim(want, (int)i);
  if (!same || memcmp(mlx_array_data_uint8(got), mlx_array_data_uint8(want), bytes))
    fail_msg("row %d differs at size %d", row, n);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* base[::-1] += 2 * x[::-1] where base is x. */
static int add_reversed(mlx_array* res, const mlx_array x) {
  mlx_array r = mlx_array_new(), old = mlx_array_new(), two = mlx_array_new_float(2);
  int first = 5, last = -7, back = -1;
  int rc = mlx_slice(&r, x, &first, 1, &last, 1, &back, 1, cpu());
  if (!rc) rc = mlx_slice(&old, x, &first, 1, &last, 1, &back, 1, cpu());
  if (!rc) rc = mlx_multiply(&r, r, two, cpu());
  if (!rc) rc = mlx_add(&r, old, r, cpu());
  if (!rc) rc = mlx_slice_update(res, x, r, &first, 1, &last, 1, &back, 1, cpu());
  mlx_array_free(r), mlx_array_free(old), mlx_array_free(two);
  return rc;
}

static void adding_to_a_reversed_slice_reaches_every_element(void** state) { /* C01 */
  mlx_closure f = compiled(add_reversed, false);
  mlx_array x = floats((float[]){0, 1, 2, 3, 4, 5}, 6), y = mlx_array_new();
  assert_int_equal(apply(&y, f, &x, 1, 0), 0);
  assert_true(has_values(y, (float[]){0, 3, 6, 9, 12, 15}, 6));
  mlx_array_free(y);
  mlx_closure_free(f);
}

static int cast_and_multiply(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array x = input(in, 0), y = input(in, 1), z = mlx_array_new();
  int rc = mlx_astype(&x, x, MLX_INT32, cpu());
  if (!rc) rc = mlx_astype(&x, x, MLX_FLOAT32, cpu());
  if (!rc) rc = mlx_astype(&y, y, MLX_FLOAT32, cpu());
  if (!rc) rc = mlx_matmul(&z, x, y, cpu());
  mlx_array_free(x), mlx_array_free(y);
  return give(res, z, rc);
}

static void a_chain_of_casts_before_a_product_converts(void** state) { /* C03 */
  mlx_closure f = compiled_many(cast_and_multiply, false);
  for (int call = 0; call < 2; call++) {
    mlx_array in[] = {mlx_array_new_data((uint16_t[]){10, 20}, INTS(2, 1), MLX_UINT16),
                      mlx_array_new_data((int8_t[]){1, 2}, INTS(1, 2), MLX_INT8)};
    mlx_array y = mlx_array_new();
    assert_int_equal(apply(&y, f, in, 2, 0), 0);
    assert_true(has_values(y, (float[]){10, 20, 20, 40}, 4));
    mlx_array_free(y);
  }
  mlx_closure_free(f);
}

static int max_and_where(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array x = input(in, 0), both[] = {mlx_array_new(), mlx_array_new()};
  int rc = mlx_max_axes(&both[0], x, (int[]){0, 2}, 2, true, cpu());
  if (!rc) rc = mlx_equal(&both[1], x, both[0], cpu());
  if (!rc) rc = mlx_vector_array_set_data(res, both, 2);
  mlx_array_free(x), mlx_array_free(both[0]), mlx_array_free(both[1]);
  return rc;
}

static void a_fused_comparison_with_a_maximum_finds_it(void** state) { /* C04 */
  mlx_closure f = compiled_many(max_and_where, false);
  for (int call = 0; call < 2; call++) {
    float at[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    mlx_array x = mlx_array_new_data(at, INTS(2, 2, 2), MLX_FLOAT32), y = mlx_array_new();
    assert_int_equal(apply(&y, f, &x, 1, 0), 0);
    assert_true(has_values(y, (float[]){5, 7}, 2));
    x = mlx_array_new_data(at, INTS(2, 2, 2), MLX_FLOAT32);
    assert_int_equal(apply(&y, f, &x, 1, 1), 0);
    for (int k = 0; k < 8; k++)
      assert_int_equal(mlx_array_data_bool(y)[k], k == 5 || k == 7); /* (1,0,1) and (1,1,1) */
    mlx_array_free(y);
  }
  mlx_closure_free(f);
}

/* (a+b)(c+d)(e+f)(g+h) */
static int four_sums(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array product = mlx_array_new();
  int rc = 0;
  for (size_t i = 0; i < 8 && !rc; i += 2) {
    mlx_array a = input(in, i), b = input(in, i + 1), sum = mlx_array_new();
    rc = mlx_add(&sum, a, b, cpu());
    if (!rc) rc = i ? mlx_multiply(&product, product, sum, cpu()) : mlx_array_set(&product, sum);
    mlx_array_free(a), mlx_array_free(b), mlx_array_free(sum);
  }
  return give(res, product, rc);
}

static void eight_half_inputs_fuse(void** state) { /* C22 */
  mlx_closure f = compiled_many(four_sums, false);
  mlx_array one = mlx_array_new_float(1), in[8], y = mlx_array_new();
  for (int i = 0; i < 8; i++) {
    in[i] = mlx_array_new();
    assert_int_equal(mlx_full(&in[i], INTS(16384), one, MLX_FLOAT16, cpu()), 0);
  }
  assert_int_equal(apply(&y, f, in, 8, 0), 0);
  assert_int_equal(mlx_array_dtype(y), MLX_FLOAT16);
  assert_int_equal(mlx_array_size(y), 16384);
  for (int k = 0; k < 16384; k++) assert_int_equal(mlx_array_data_uint16(y)[k], 0x4C00); /* 16.0 */
  mlx_array_free(one), mlx_array_free(y);
  mlx_closure_free(f);
}

/* ---- sizes: every operation follows ---------------------------------------------------------- */

static int take_sum(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array a = input(in, 0), at = input(in, 1), y[] = {mlx_array_new(), mlx_array_new()};
  int rc = mlx_take(&a, a, at, cpu());
  if (!rc) rc = mlx_sum(&y[0], a, false, cpu());
  if (!rc) rc = mlx_mean(&y[1], a, false, cpu());
  if (!rc) rc = mlx_vector_array_set_data(res, y, 2);
  mlx_array_free(a), mlx_array_free(at), mlx_array_free(y[0]), mlx_array_free(y[1]);
  return rc;
}

static void a_sum_of_taken_elements_follows_the_number_of_indices(void** state) { /* C12 */
  const float sums[] = {10, 30, 60, 100, 150}, means[] = {10, 15, 20, 25, 30};
  mlx_closure f = compiled_many(take_sum, true);
  for (int n = 1; n <= 5; n++)
    for (size_t i = 0; i < 2; i++) {
      mlx_array in[] = {floats((float[]){10, 20, 30, 40, 50}, 5),
                        mlx_array_new_data((int[]){0, 1, 2, 3, 4}, &n, 1, MLX_INT32)};
      mlx_array y = mlx_array_new();
      assert_int_equal(apply(&y, f, in, 2, i), 0);
      assert_true(is_near(y, i ? &means[n - 1] : &sums[n - 1], 1));
      mlx_array_free(y);
    }
  assert_int_equal(traces(f), 1);
  mlx_closure_free(f);
}

static int square_plus_x(mlx_array* res, const mlx_array x) {
  int rc = mlx_multiply(res, x, x, cpu());
  return rc ? rc : mlx_add(res, *res, x, cpu());
}
static int softmax(mlx_array* res, const mlx_array x) {
  return mlx_softmax_axis(res, x, -1, false, cpu());
}
static int where_positive(mlx_array* res, const mlx_array x) {
  mlx_array zero = mlx_array_new_float(0), is = mlx_array_new(), y = mlx_array_new();
  int rc = mlx_greater(&is, x, zero, cpu());
  if (!rc) rc = mlx_negative(&y, x, cpu());
  if (!rc) rc = mlx_where(res, is, x, y, cpu());
  mlx_array_free(zero), mlx_array_free(is), mlx_array_free(y);
  return rc;
}
static int sort(mlx_array* res, const mlx_array x) { return mlx_sort_axis(res, x, -1, cpu()); }
static int argsort(mlx_array* res, const mlx_array x) { return mlx_argsort(res, x, cpu()); }
static int layer_norm(mlx_array* res, const mlx_array x) {
  return mlx_fast_layer_norm(res, x, none, none, 1e-5f, cpu());
}
static int take_ends(mlx_array* res, const mlx_array x) {
  mlx_array at = mlx_array_new_data((int[]){-1, 0, 1, -2}, INTS(4), MLX_INT32);
  int rc = mlx_take_axis(res, x, at, -1, cpu());
  mlx_array_free(at);
  return rc;
}
static int flatten(mlx_array* res, const mlx_array x) { return mlx_flatten(res, x, 0, -1, cpu()); }
static int doubled(mlx_array* res, const mlx_array x) {
  mlx_vector_array v = mlx_vector_array_new_data((mlx_array[]){x, x}, 2);
  int rc = mlx_concatenate_axis(res, v, -1, cpu());
  mlx_vector_array_free(v);
  return rc;
}
static int gram(mlx_array* res, const mlx_array x) { /* x xT of the flattened rows */
  mlx_array rows = mlx_array_new(), t = mlx_array_new();
  int rc = mlx_reshape(&rows, x, INTS(2, -1), cpu());
  if (!rc) rc = mlx_transpose(&t, rows, cpu());
  if (!rc) rc = mlx_matmul(res, rows, t, cpu());
  mlx_array_free(rows), mlx_array_free(t);
  return rc;
}
static int all_but_the_first(mlx_array* res, const mlx_array x) {
  int start[] = {0, 0}, stop[] = {0x7fffffff, 0x7fffffff}, step[] = {1, 1};
  size_t n = mlx_array_ndim(x);
  start[n - 1] = 1;
  return mlx_slice(res, x, start, n, stop, n, step, n, cpu());
}
static int to_the_size_it_reads(mlx_array* res, const mlx_array x) {
  int start[] = {0, 0}, stop[] = {0, 0}, step[] = {1, 1}, n = (int)mlx_array_ndim(x);
  for (int i = 0; i < n; i++) stop[i] = mlx_array_dim(x, i);
  step[n - 1] = 2;
  return mlx_slice(res, x, start, (size_t)n, stop, (size_t)n, step, (size_t)n, cpu());
}
static int largest_two(mlx_array* res, const mlx_array x) {
  return mlx_topk_axis(res, x, 2, -1, cpu());
}
static int half(mlx_array* res, const mlx_array x) {
  mlx_vector_array v = mlx_vector_array_new();
  int rc = mlx_split(&v, x, 2, -1, cpu());
  if (!rc) rc = mlx_vector_array_get(res, v, 1);
  mlx_vector_array_free(v);
  return rc;
}
static int cumsum(mlx_array* res, const mlx_array x) {
  return mlx_cumsum(res, x, -1, false, true, cpu());
}
static int mean(mlx_array* res, const mlx_array x) { return mlx_mean(res, x, false, cpu()); }
static int mean_axis(mlx_array* res, const mlx_array x) {
  return mlx_mean_axis(res, x, -1, true, cpu());
}
static int variance(mlx_array* res, const mlx_array x) {
  return mlx_var_axis(res, x, -1, false, 1, cpu());
}
static int sum_by_count(mlx_array* res, const mlx_array x) {
  mlx_array n = mlx_array_new();
  int rc = mlx_number_of_elements(&n, x, (int[]){-1}, 1, true, MLX_FLOAT32, cpu());
  if (!rc) rc = mlx_sum(res, x, false, cpu());
  if (!rc) rc = mlx_multiply(res, *res, n, cpu());
  mlx_array_free(n);
  return rc;
}

static void every_operation_follows_the_size_of_the_call(void** state) {
  static body* const bodies[] = {
      square_plus_x, softmax,   where_positive,    sort,        argsort,
      layer_norm,    take_ends, flatten,           doubled,     gram,
      largest_two,   half,      cumsum,            mean,        to_the_size_it_reads,
      variance,      mean_axis, all_but_the_first, sum_by_count};
  const int sizes[] = {4, 2, 10, 64, 6};
  for (int row = 0; row < LEN(bodies); row++)
    for (int ndim = 1; ndim <= 2; ndim++) {
      mlx_closure f = compiled(bodies[row], true);
      for (int i = 0; i < LEN(sizes); i++) {
        int shape[] = {ndim == 1 ? sizes[i] : 3 + i, sizes[i]};
        mlx_array x = values(shape, ndim), got = mlx_array_new(), want = mlx_array_new();
        assert_int_equal(bodies[row](&want, x), 0);
        assert_int_equal(mlx_array_eval(want), 0);
        if (apply(&got, f, &x, 1, 0)) fail_msg("row %d, size %d: %s", row, sizes[i], message);
        expect_same(got, want, row, sizes[i]);
        mlx_array_free(got), mlx_array_free(want);
      }
      assert_int_equal(traces(f), 1);
      mlx_closure_free(f);
    }
}

/* ---- sizes that the function has read and baked in ------------------------------------------- */

static int plus_arange(mlx_array* res, const mlx_array x) {
  mlx_array r = mlx_array_new();
  int rc = mlx_arange(&r, 0, mlx_array_dim(x, 0), 1, MLX_FLOAT32, cpu());
  if (!rc) rc = mlx_add(res, r, x, cpu());
  mlx_array_free(r);
  return rc;
}

static int to_two_rows(mlx_array* res, const mlx_array x) {
  return mlx_reshape(res, x, INTS(2, mlx_array_dim(x, 0) / 2), cpu());
}

static void a_baked_in_range_is_an_error_at_another_size(void** state) {
  mlx_closure f = compiled(plus_arange, true);
  for (int n = 4; n >= 2; n--) {
    mlx_array x = full_of(1, n), y = mlx_array_new();
    int rc = apply(&y, f, &x, 1, 0);
    if (n == 4) {
      assert_int_equal(rc, 0);
      assert_true(has_values(y, (float[]){1, 2, 3, 4}, 4));
    } else {
      assert_int_not_equal(rc, 0);
      assert_int_equal(rp_last_error(NULL), RP_ERR_SHAPE);
      assert_non_null(strstr(message, "[add]"));
      assert_non_null(strstr(message, "(4)"));
      assert_null(y.ctx);
    }
    mlx_array_free(y);
  }
  assert_true(is_usable());
  mlx_closure_free(f);
}

static int to_its_own_shape(mlx_array* res, const mlx_array x) {
  return mlx_broadcast_to(res, x, mlx_array_shape(x), mlx_array_ndim(x), cpu());
}

static int plus_weights(mlx_array* res, const mlx_array x) { /* (2,4) */
  mlx_array w = mlx_array_new_data((float[]){1, 2, 3, 4, 5, 6, 7, 8}, INTS(2, 4), MLX_FLOAT32);
  int rc = mlx_add(res, x, w, cpu());
  mlx_array_free(w);
  return rc;
}

/* Broadcasting would hide the size that the function has read: it is traced again. */
static void a_constant_is_never_spread_over_an_axis_that_became_one(void** state) {
  static body* const bodies[] = {plus_arange, to_its_own_shape, plus_weights};
  for (int row = 0; row < LEN(bodies); row++) {
    mlx_closure f = compiled(bodies[row], true);
    for (int call = 0; call < 6; call++) {
      int shape[] = {row < 2 ? 1 + 3 * !(call % 2) : 1 + call % 2, row < 2 ? 1 : 4};
      mlx_array x = values(shape, row < 2 ? 1 : 2), got = mlx_array_new(), want = mlx_array_new();
      assert_int_equal(bodies[row](&want, x), 0);
      assert_int_equal(mlx_array_eval(want), 0);
      rp_clear_error();
      assert_int_equal(apply(&got, f, &x, 1, 0), 0);
      assert_int_equal(rp_last_error(NULL), RP_OK);
      expect_same(got, want, row, shape[0]);
      mlx_array_free(got), mlx_array_free(want);
    }
    assert_int_equal(traces(f), row < 2 ? 2 : 1); /* weights at 1 came first: nothing had met */
    mlx_closure_free(f);
  }
}

static void a_baked_in_reshape_is_an_error_that_names_it(void** state) {
  mlx_closure f = compiled(to_two_rows, true);
  mlx_array x = full_of(1, 4), y = mlx_array_new();
  assert_int_equal(apply(&y, f, &x, 1, 0), 0);
  assert_int_equal(mlx_array_dim(y, 1), 2);
  mlx_array_free(y);
  y = mlx_array_new();
  x = full_of(1, 8);
  assert_int_not_equal(apply(&y, f, &x, 1, 0), 0);
  assert_int_equal(rp_last_error(NULL), RP_ERR_SHAPE);
  assert_non_null(strstr(message, "[reshape]"));
  assert_non_null(strstr(message, "8"));
  assert_null(y.ctx);
  x = full_of(1, 4); /* the trace is still good */
  assert_int_equal(apply(&y, f, &x, 1, 0), 0);
  assert_int_equal(traces(f), 1);
  mlx_array_free(y);
  mlx_closure_free(f);
}

/* ---- caches ---------------------------------------------------------------------------------- */

static void thousands_of_shapes_stay_right_and_the_latest_are_kept(void** state) {
  enum { SIZES = UNDER_SANITIZER ? 1500 : 4000 };
  for (int shapeless = 0; shapeless < 2; shapeless++) {
    mlx_closure f = compiled(square_plus_x, shapeless);
    for (int round = 0; round < 2; round++)
      for (int n = 1; n <= SIZES; n++) {
        mlx_array x = full_of(3, n), y = mlx_array_new();
        assert_int_equal(apply(&y, f, &x, 1, 0), 0);
        assert_int_equal(mlx_array_size(y), n);
        assert_true(mlx_array_data_float32(y)[0] == 12 && mlx_array_data_float32(y)[n - 1] == 12);
        mlx_array_free(y);
      }
    uint64_t before = traces(f);
    for (int n = SIZES; n > SIZES - 100; n--) {
      mlx_array x = full_of(3, n), y = mlx_array_new();
      assert_int_equal(apply(&y, f, &x, 1, 0), 0);
      mlx_array_free(y);
    }
    assert_int_equal(traces(f), before);
    if (shapeless) assert_int_equal(before, 1);
    mlx_closure_free(f);
  }
}

static void a_compiled_function_may_be_compiled_again(void** state) {
  mlx_closure f = compiled(square_plus_x, true), g = mlx_closure_new(), h = mlx_closure_new();
  assert_int_equal(mlx_compile(&g, f, false), 0);
  assert_int_equal(mlx_compile(&h, f, true), 0);
  mlx_closure all[] = {f, g, h};
  for (int n = 1; n <= 3; n++)
    for (int i = 0; i < 3; i++) {
      mlx_array x = full_of(3, n), y = mlx_array_new();
      assert_int_equal(apply(&y, all[i], &x, 1, 0), 0);
      assert_true(has_values(y, (float[]){12, 12, 12}, n));
      mlx_array_free(y);
    }
  for (int i = 0; i < 3; i++) mlx_closure_free(all[i]);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(adding_to_a_reversed_slice_reaches_every_element),
      TEST(a_chain_of_casts_before_a_product_converts),
      TEST(a_fused_comparison_with_a_maximum_finds_it),
      TEST(eight_half_inputs_fuse),
      TEST(a_sum_of_taken_elements_follows_the_number_of_indices),
      TEST(every_operation_follows_the_size_of_the_call),
      TEST(a_baked_in_range_is_an_error_at_another_size),
      TEST(a_constant_is_never_spread_over_an_axis_that_became_one),
      TEST(a_baked_in_reshape_is_an_error_that_names_it),
      TEST(thousands_of_shapes_stay_right_and_the_latest_are_kept),
      TEST(a_compiled_function_may_be_compiled_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
