/* Products, quantised products and fused layers through the public interface: eager, and compiled
 * at sizes that the trace has not seen. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "mlx/c/mlx.h"
#include "reprise/error.h"

#define INTS(...) (int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))

static mlx_stream cpu;
static const mlx_array none;

static void ignore(const char* text, void* data) {}

static int set_up(void** state) {
  mlx_set_error_handler(ignore, NULL, NULL);
  cpu = mlx_default_cpu_stream_new();
  return 0;
}

static int tear_down(void** state) { return mlx_stream_free(cpu); }

/* value(k) in a shape. */
static mlx_array make(const int* shape, int ndim, float (*value)(int k)) {
  int n = 1;
  for (int i = 0; i < ndim; i++) n *= shape[i];
  float* at = malloc(sizeof *at * (size_t)(n + 1));
  for (int k = 0; k < n; k++) at[k] = value(k);
  mlx_array a = mlx_array_new_data(at, shape, ndim, MLX_FLOAT32);
  free(at);
  return a;
}

static float one(int k) { return 1; }
static float zero(int k) { return 0; }
static float index_of(int k) { return (float)k; }
static float ragged(int k) { return (float)((k * 7919) % 101) / 50 - 1; }

static void expect(mlx_array a, const int* shape, int ndim, const float* want) {
  int n = 1;
  assert_int_equal(mlx_array_ndim(a), ndim);
  for (int i = 0; i < ndim; i++) {
    assert_int_equal(mlx_array_dim(a, i), shape[i]);
    n *= shape[i];
  }
  assert_int_equal(mlx_array_eval(a), 0);
  const float* got = mlx_array_data_float32(a);
  for (int k = 0; k < n; k++) assert_float_equal(got[k], want[k], 1e-5 * fabs(want[k]) + 1e-6);
  mlx_array_free(a);
}

/* Compile `f` without shapes and apply it to arrays that are given up. */
static mlx_array run(mlx_closure f, const mlx_array* in, size_t n) {
  mlx_vector_array x = mlx_vector_array_new_data(in, n), y = mlx_vector_array_new();
  mlx_array out = mlx_array_new();
  for (size_t i = 0; i < n; i++) mlx_array_free(in[i]);
  assert_int_equal(mlx_closure_apply(&y, f, x), 0);
  assert_int_equal(mlx_vector_array_get(&out, y, 0), 0);
  mlx_vector_array_free(x);
  mlx_vector_array_free(y);
  return out;
}

static mlx_closure compiled(int (*f)(mlx_vector_array*, const mlx_vector_array)) {
  mlx_closure plain = mlx_closure_new_func(f), c = mlx_closure_new();
  assert_int_equal(mlx_compile(&c, plain, true), 0);
  mlx_closure_free(plain);
  return c;
}

static mlx_array arg(const mlx_vector_array v, size_t i) {
  mlx_array a = mlx_array_new();
  assert_int_equal(mlx_vector_array_get(&a, v, i), 0);
  return a;
}

static int give(mlx_vector_array* res, mlx_array y) {
  int rc = mlx_vector_array_set_value(res, y);
  mlx_array_free(y);
  return rc;
}

static int trace_matmul(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array a = arg(in, 0), b = arg(in, 1), y = mlx_array_new();
  int rc = mlx_matmul(&y, a, b, cpu);
  mlx_array_free(a);
  mlx_array_free(b);
  return rc ? rc : give(res, y);
}

static void a_compiled_product_follows_its_inputs(void** state) { /* C13 */
  mlx_closure f = compiled(trace_matmul);
  for (int s = 2; s <= 5; s += 3) {
    float w[12], want[15];
    for (int k = 0; k < 12; k++) w[k] = (float)(k / 3 + k % 3);
    for (int k = 0; k < 15; k++) want[k] = (float)(6 + 4 * (k % 3));
    mlx_array in[2] = {make(INTS(1, s, 4), one), mlx_array_new_data(w, INTS(4, 3), MLX_FLOAT32)};
    expect(run(f, in, 2), INTS(1, s, 3), want);
  }
  mlx_closure_free(f);
}

static void a_compiled_dot_product_follows_its_length(void** state) {
  mlx_closure f = compiled(trace_matmul);
  for (int n = 0; n < 9; n += 3) {
    mlx_array in[2] = {make(INTS(n), one), make(INTS(n), index_of)};
    expect(run(f, in, 2), NULL, 0, (float[]){(float)(n * (n - 1) / 2)});
  }
  mlx_closure_free(f);
}

static int trace_attention(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array q = arg(in, 0), k = arg(in, 1), v = arg(in, 2), y = mlx_array_new();
  int rc = mlx_fast_scaled_dot_product_attention(&y, q, k, v, 0.5f, "", none, none, cpu);
  mlx_array_free(q);
  mlx_array_free(k);
  mlx_array_free(v);
  return rc ? rc : give(res, y);
}

static float row_of_5(int k) { return (float)(k / 6 % 5); }
static float row_of_7(int k) { return (float)(k / 6 % 7); }

static void compiled_attention_follows_keys_and_values(void** state) { /* C16 */
  mlx_closure f = compiled(trace_attention);
  for (int t = 5; t <= 7; t += 2) {
    float want[36];
    for (int k = 0; k < 36; k++) want[k] = (float)(t - 1) / 2;
    mlx_array in[3] = {make(INTS(1, 2, 3, 4), zero), make(INTS(1, 2, t, 4), zero),
                       make(INTS(1, 2, t, 6), t == 5 ? row_of_5 : row_of_7)};
    expect(run(f, in, 3), INTS(1, 2, 3, 6), want);
  }
  mlx_closure_free(f);
}

static int trace_layer(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array x = arg(in, 0), n = mlx_array_new(), y = mlx_array_new();
  int rc = mlx_fast_rms_norm(&n, x, none, 1e-5f, cpu);
  if (!rc) rc = mlx_fast_rope(&y, n, 4, false, (mlx_optional_float){10000, true}, 1, 3, none, cpu);
  mlx_array_free(x);
  mlx_array_free(n);
  return rc ? rc : give(res, y);
}

static void compiled_layers_equal_eager_ones(void** state) {
  mlx_closure plain = mlx_closure_new_func(trace_layer), f = compiled(trace_layer);
  for (int t = 1; t < 6; t++) {
    mlx_array a = make(INTS(2, t, 6), ragged), b = make(INTS(2, t, 6), ragged);
    mlx_array x = run(plain, &a, 1), y = run(f, &b, 1);
    assert_int_equal(mlx_array_eval(x), 0);
    assert_int_equal(mlx_array_eval(y), 0);
    assert_memory_equal(mlx_array_data_float32(x), mlx_array_data_float32(y),
                        sizeof(float) * (size_t)(12 * t));
    mlx_array_free(x);
    mlx_array_free(y);
  }
  mlx_closure_free(plain);
  mlx_closure_free(f);
}

static void sums_over_other_axes(void** state) {
  mlx_array a = make(INTS(2, 3), index_of), b = make(INTS(2, 3), index_of), y = mlx_array_new();
  assert_int_equal(mlx_inner(&y, a, b, cpu), 0);
  expect(y, INTS(2, 2), (float[]){5, 14, 14, 50});
  y = mlx_array_new();
  assert_int_equal(mlx_tensordot(&y, a, b, (int[]){0, 1}, 2, (int[]){0, 1}, 2, cpu), 0);
  expect(y, NULL, 0, (float[]){55});
  y = mlx_array_new();
  assert_int_equal(mlx_tensordot(&y, a, b, (int[]){0}, 1, (int[]){0}, 1, cpu), 0);
  expect(y, INTS(3, 3), (float[]){9, 12, 15, 12, 17, 22, 15, 22, 29});
  mlx_array c = make(INTS(3, 2, 2), index_of);
  y = mlx_array_new();
  assert_int_equal(mlx_tensordot_axis(&y, a, c, 1, cpu), 0);
  expect(y, INTS(2, 2, 2), (float[]){20, 23, 26, 29, 56, 68, 80, 92});
  y = mlx_array_new();
  mlx_array row = make(INTS(1, 2), index_of), two = make(INTS(2), one);
  mlx_array pair = make(INTS(2), index_of), three = make(INTS(3), index_of);
  assert_int_equal(mlx_kron(&y, row, two, cpu), 0);
  expect(y, INTS(1, 4), (float[]){0, 0, 1, 1});
  y = mlx_array_new();
  assert_int_equal(mlx_outer(&y, pair, three, cpu), 0);
  expect(y, INTS(2, 3), (float[]){0, 0, 0, 0, 1, 2});
  mlx_array_free(row), mlx_array_free(two), mlx_array_free(pair), mlx_array_free(three);
  mlx_array_free(a);
  mlx_array_free(b);
  mlx_array_free(c);
}

static void quantised_weights_multiply_like_themselves(void** state) {
  mlx_array w = make(INTS(5, 64), ragged), x = make(INTS(3, 64), ragged), parts[3];
  mlx_vector_array q = mlx_vector_array_new();
  mlx_optional_int group = {32, true}, bits = {0, false};
  assert_int_equal(mlx_quantize(&q, w, group, bits, "affine", none, cpu), 0);
  for (size_t i = 0; i < 3; i++) parts[i] = arg(q, i);
  mlx_array d = mlx_array_new(), y = mlx_array_new(), z = mlx_array_new(), t = mlx_array_new();
  assert_int_equal(mlx_dequantize(&d, parts[0], parts[1], parts[2], group, bits, "affine", none,
                                  (mlx_optional_dtype){0, false}, cpu),
                   0);
  assert_int_equal(mlx_transpose(&t, d, cpu), 0);
  assert_int_equal(mlx_matmul(&y, x, t, cpu), 0);
  assert_int_equal(
      mlx_quantized_matmul(&z, x, parts[0], parts[1], parts[2], true, group, bits, "affine", cpu),
      0);
  assert_int_equal(mlx_array_eval(y), 0);
  expect(z, INTS(3, 5), mlx_array_data_float32(y));
  assert_int_not_equal(mlx_quantize(&q, w, group, bits, "mxfp4", none, cpu), 0);
  mlx_array all[] = {w, x, parts[0], parts[1], parts[2], d, y, t};
  for (int i = 0; i < 8; i++) mlx_array_free(all[i]);
  mlx_vector_array_free(q);
}

/* Takes the arrays, which may be empty handles. */
static int attend(mlx_array mask, mlx_array sinks, mlx_dtype dtype) {
  mlx_array y = mlx_array_new(), x = make(INTS(1, 2, 3, 4), ragged);
  assert_int_equal(mlx_astype(&x, x, dtype, cpu), 0);
  int rc = mlx_fast_scaled_dot_product_attention(&y, x, x, x, 1, "", mask, sinks, cpu);
  mlx_array_free(mask), mlx_array_free(sinks), mlx_array_free(x), mlx_array_free(y);
  return rc ? rp_last_error(NULL) : 0;
}

static mlx_array cast(mlx_array x, mlx_dtype dtype) {
  assert_int_equal(mlx_astype(&x, x, dtype, cpu), 0);
  return x;
}

static void masks_and_sinks_promote_to_the_dtype_of_the_queries(void** state) {
  assert_int_equal(attend(none, make(INTS(2), one), MLX_FLOAT16), RP_ERR_DTYPE);
  assert_int_equal(attend(make(INTS(3, 3), one), none, MLX_FLOAT16), RP_ERR_DTYPE);
  assert_int_equal(attend(none, cast(make(INTS(2), one), MLX_BFLOAT16), MLX_FLOAT16),
                   RP_ERR_DTYPE);
  assert_int_equal(attend(none, cast(make(INTS(2), one), MLX_FLOAT16), MLX_FLOAT32), 0);
  assert_int_equal(attend(none, cast(make(INTS(2), one), MLX_INT32), MLX_FLOAT16), 0);
  assert_int_equal(attend(cast(make(INTS(3, 3), one), MLX_BOOL), none, MLX_FLOAT16), 0);
  assert_int_equal(attend(none, make(INTS(3), one), MLX_FLOAT32), RP_ERR_SHAPE);
}

static int rotate(int dims) {
  mlx_array y = mlx_array_new(), x = make(INTS(1, 2, 8), ragged);
  mlx_optional_float base = {.value = 10000, .has_value = true};
  int rc = mlx_fast_rope(&y, x, dims, false, base, 1, 0, none, cpu);
  mlx_array_free(x), mlx_array_free(y);
  return rc ? rp_last_error(NULL) : 0;
}

static void rope_rotates_a_positive_even_number_of_dims(void** state) {
  assert_int_equal(rotate(8), 0);
  assert_int_equal(rotate(2), 0);
  for (int dims = -2; dims < 2; dims++) assert_int_equal(rotate(dims), RP_ERR_ARGUMENT);
  assert_int_equal(rotate(7), RP_ERR_ARGUMENT);
  assert_int_equal(rotate(10), RP_ERR_ARGUMENT);
}

static void kron_refuses_empty_arrays(void** state) {
  mlx_array y = mlx_array_new(), empty = make(INTS(0), one), x = make(INTS(2), one);
  assert_int_equal(mlx_kron(&y, empty, x, cpu), 1);
  assert_int_equal(rp_last_error(NULL), RP_ERR_SHAPE);
  assert_int_equal(mlx_kron(&y, x, empty, cpu), 1);
  mlx_array_free(y), mlx_array_free(empty), mlx_array_free(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_compiled_product_follows_its_inputs),
      cmocka_unit_test(a_compiled_dot_product_follows_its_length),
      cmocka_unit_test(compiled_attention_follows_keys_and_values),
      cmocka_unit_test(compiled_layers_equal_eager_ones),
      cmocka_unit_test(sums_over_other_axes),
      cmocka_unit_test(masks_and_sinks_promote_to_the_dtype_of_the_queries),
      cmocka_unit_test(rope_rotates_a_positive_even_number_of_dims),
      cmocka_unit_test(kron_refuses_empty_arrays),
      cmocka_unit_test(quantised_weights_multiply_like_themselves),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
