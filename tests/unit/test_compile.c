/* Compiled functions: traced once, replayed at every size, failing without a trace behind. */
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
#include "reprise/stats.h"

/* ---- helpers --------------------------------------------------------------------------------- */

static char last_message[1024];

static void remember(const char* msg, void* data) {
  (void)data;
  strncpy(last_message, msg, sizeof last_message - 1);
}

static int setup(void** state) {
  (void)state;
  mlx_set_error_handler(remember, NULL, NULL);
  last_message[0] = 0;
  return 0;
}

static mlx_stream cpu(void) {
  static mlx_stream s;
  if (!s.ctx) s = mlx_default_cpu_stream_new();
  return s;
}

static mlx_array floats(const float* at, int n) { return mlx_array_new_data(at, &n, 1, MLX_FLOAT32); }

/* Apply to arrays that are given up; the first result, evaluated, is returned. */
static int apply(mlx_array* out, mlx_closure f, const mlx_array* in, size_t n) {
  mlx_vector_array x = mlx_vector_array_new_data(in, n), y = mlx_vector_array_new();
  for (size_t i = 0; i < n; i++) mlx_array_free(in[i]);
  int rc = mlx_closure_apply(&y, f, x);
  if (!rc) rc = mlx_vector_array_get(out, y, 0);
  if (!rc) rc = mlx_array_eval(*out);
  mlx_vector_array_free(x);
  mlx_vector_array_free(y);
  return rc;
}

static void assert_values(mlx_array a, const float* want, int n) {
  assert_int_equal(mlx_array_size(a), n);
  const float* got = mlx_array_data_float32(a);
  assert_non_null(got);
  for (int i = 0; i < n; i++) assert_float_equal(got[i], want[i], 1e-5 * fabs(want[i]) + 1e-6);
}

static void assert_usable(void) { /* 1 + 1 = 2 */
  mlx_array one = mlx_array_new_float(1), two = mlx_array_new();
  float v = 0;
  assert_int_equal(mlx_add(&two, one, one, cpu()), 0);
  assert_int_equal(mlx_array_item_float32(&v, two), 0);
  assert_true(v == 2);
  mlx_array_free(one), mlx_array_free(two);
}

static uint64_t traces(mlx_closure f) {
  rp_closure_stats s;
  assert_int_equal(rp_closure_get_stats(&s, f), 0);
  return s.traces;
}

struct payload {
  int calls, destroyed, fail_first;
  float k;
};

static void count_destruction(void* p) { ((struct payload*)p)->destroyed++; }

static mlx_closure compiled(int (*fun)(mlx_vector_array*, const mlx_vector_array, void*),
                            struct payload* p, bool shapeless) {
  mlx_closure f = mlx_closure_new_func_payload(fun, p, count_destruction), c = mlx_closure_new();
  assert_int_equal(mlx_compile(&c, f, shapeless), 0);
  mlx_closure_free(f);
  return c;
}

static mlx_array arg(const mlx_vector_array in, size_t i) {
  mlx_array a = mlx_array_new();
  mlx_vector_array_get(&a, in, i);
  return a;
}

/* x * x + k */
static int square_plus(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  struct payload* p = payload;
  p->calls++;
  mlx_array x = arg(in, 0), y = mlx_array_new(), k = mlx_array_new_float(p->k);
  int rc = mlx_multiply(&y, x, x, cpu());
  if (!rc) rc = mlx_add(&y, y, k, cpu());
  if (!rc) rc = mlx_vector_array_set_value(res, y);
  mlx_array_free(x), mlx_array_free(y), mlx_array_free(k);
  return rc;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_shapeless_function_is_traced_once_for_every_length(void** state) {
  (void)state;
  struct payload p = {.k = 1};
  mlx_closure f = compiled(square_plus, &p, true);
  for (int n = 1; n <= 64; n++) {
    float x[64], want[64];
    for (int i = 0; i < n; i++) x[i] = (float)i, want[i] = (float)(i * i + 1);
    mlx_array y = mlx_array_new(), in = floats(x, n);
    assert_int_equal(apply(&y, f, &in, 1), 0);
    assert_values(y, want, n);
    mlx_array_free(y);
  }
  assert_int_equal(p.calls, 1);
  assert_int_equal(traces(f), 1);
  mlx_closure_free(f);
  assert_int_equal(p.destroyed, 1);
}

static void a_shaped_function_is_traced_once_for_each_shape(void** state) {
  (void)state;
  struct payload p = {.k = 1};
  mlx_closure f = compiled(square_plus, &p, false);
  for (int round = 0; round < 3; round++)
    for (int n = 1; n <= 4; n++) {
      mlx_array y = mlx_array_new(), in = floats((float[]){1, 2, 3, 4}, n);
      assert_int_equal(apply(&y, f, &in, 1), 0);
      assert_values(y, (float[]){2, 5, 10, 17}, n);
      mlx_array_free(y);
    }
  assert_int_equal(p.calls, 4);
  mlx_closure_free(f);
}

static void captured_constants_keep_their_bits(void** state) {
  (void)state;
  const float k[] = {1.0f / 3, 0.088388347648f, 0.70710678118f};
  const uint32_t bits[] = {0x3EAAAAAB, 0x3DB504F3, 0x3F3504F3};
  for (int i = 0; i < 3; i++) {
    struct payload p = {.k = k[i]};
    mlx_closure f = compiled(square_plus, &p, false);
    for (int call = 0; call < 2; call++) {
      mlx_array y = mlx_array_new(), in = floats((float[]){0}, 1);
      assert_int_equal(apply(&y, f, &in, 1), 0);
      uint32_t got;
      memcpy(&got, mlx_array_data_float32(y), 4);
      assert_int_equal(got, bits[i]);
      mlx_array_free(y);
    }
    mlx_closure_free(f);
  }
}

static void closures_of_one_function_with_other_payloads_do_not_share_traces(void** state) {
  (void)state;
  struct payload one = {.k = 1}, two = {.k = 2};
  mlx_closure f = compiled(square_plus, &one, false), g = compiled(square_plus, &two, false);
  mlx_array y = mlx_array_new(), in = floats((float[]){3}, 1);
  assert_int_equal(apply(&y, f, &in, 1), 0);
  assert_values(y, (float[]){10}, 1);
  mlx_closure_free(f);
  in = floats((float[]){3}, 1);
  assert_int_equal(apply(&y, g, &in, 1), 0);
  assert_values(y, (float[]){11}, 1);
  mlx_closure_free(g);
  mlx_array_free(y);
  assert_int_equal(one.destroyed + two.destroyed, 2);
}

/* Fails the first time, with or without a cause of its own. */
static int fail_first(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  struct payload* p = payload;
  if (p->calls++ == 0) {
    if (p->fail_first == 2) { /* shapes (2) and (3) */
      mlx_array a = floats((float[]){1, 2}, 2), b = floats((float[]){1, 2, 3}, 3);
      mlx_array c = mlx_array_new();
      int rc = mlx_add(&c, a, b, cpu());
      mlx_array_free(a), mlx_array_free(b), mlx_array_free(c);
      return rc;
    }
    return 7;
  }
  mlx_array x = mlx_vector_array_size(in) ? arg(in, 0) : floats((float[]){1, 2}, 2);
  mlx_array one = mlx_array_new_float(1), y = mlx_array_new();
  int rc = mlx_add(&y, x, one, cpu());
  if (!rc) rc = mlx_vector_array_append_value(*res, y);
  mlx_array_free(x), mlx_array_free(y), mlx_array_free(one);
  return rc;
}

static void a_failed_trace_is_not_kept(void** state) {
  (void)state;
  for (size_t nin = 0; nin < 2; nin++) {
    struct payload p = {.fail_first = 1};
    mlx_closure f = compiled(fail_first, &p, false);
    mlx_array y = mlx_array_new(), in = floats((float[]){1, 2}, 2);
    assert_int_not_equal(apply(&y, f, &in, nin), 0);
    assert_non_null(strstr(last_message, "7")); /* the host's code is not lost */
    assert_usable();
    if (nin) in = floats((float[]){1, 2}, 2);
    assert_int_equal(apply(&y, f, &in, nin), 0);
    assert_values(y, (float[]){2, 3}, 2);
    if (!nin) mlx_array_free(in);
    mlx_array_free(y);
    mlx_closure_free(f);
  }
}

static void the_cause_of_an_error_inside_a_trace_comes_back(void** state) {
  (void)state;
  struct payload p = {.fail_first = 2};
  mlx_closure f = compiled(fail_first, &p, false);
  mlx_array y = mlx_array_new(), in = floats((float[]){1, 2}, 2);
  assert_int_not_equal(apply(&y, f, &in, 1), 0);
  assert_non_null(strstr(last_message, "(2)"));
  assert_non_null(strstr(last_message, "(3)"));
  const char* text;
  assert_int_equal(rp_last_error(&text), RP_ERR_SHAPE);
  assert_usable();
  in = floats((float[]){3, 4}, 2);
  assert_int_equal(apply(&y, f, &in, 1), 0);
  assert_values(y, (float[]){4, 5}, 2);
  mlx_array_free(y);
  mlx_closure_free(f);
}

/* Reads x + 1 on the host. */
static int read_inside(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  struct payload* p = payload;
  mlx_array x = arg(in, 0), one = mlx_array_new_float(1), y = mlx_array_new();
  float v;
  mlx_add(&y, x, one, cpu());
  int rc = p->calls++ == 0 ? mlx_array_item_float32(&v, y) : 0;
  if (!rc) rc = mlx_vector_array_set_value(res, y);
  mlx_array_free(x), mlx_array_free(y), mlx_array_free(one);
  return rc;
}

static void reading_a_tracer_is_a_clear_error_and_the_function_can_be_tried_again(void** state) {
  (void)state;
  struct payload p = {0};
  mlx_closure f = compiled(read_inside, &p, false);
  mlx_array y = mlx_array_new(), in = floats((float[]){1}, 1);
  assert_int_not_equal(apply(&y, f, &in, 1), 0);
  assert_non_null(strstr(last_message, "input 0"));
  assert_non_null(strstr(last_message, "add"));
  assert_usable();
  in = floats((float[]){1}, 1);
  assert_int_equal(apply(&y, f, &in, 1), 0);
  assert_values(y, (float[]){2}, 1);
  mlx_array_free(y);
  mlx_closure_free(f);
}

static mlx_array escaped;

static int let_escape(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  struct payload* p = payload;
  p->calls++;
  mlx_array x = arg(in, 0), y = arg(in, 1), z = mlx_array_new(), out = mlx_array_new();
  int rc = mlx_add(&z, x, y, cpu());
  mlx_array_set(&escaped, z);
  if (!rc) rc = mlx_exp(&out, z, cpu());
  if (!rc) rc = mlx_vector_array_set_value(res, out);
  mlx_array_free(x), mlx_array_free(y), mlx_array_free(z), mlx_array_free(out);
  return rc;
}

static void an_array_that_escaped_a_trace_is_an_error_when_read(void** state) {
  (void)state;
  struct payload p = {0};
  mlx_closure f = compiled(let_escape, &p, false);
  mlx_array y = mlx_array_new();
  for (int call = 0; call < 2; call++) {
    mlx_array in[] = {floats((float[]){1}, 1), floats((float[]){2}, 1)};
    assert_int_equal(apply(&y, f, in, 2), 0);
    assert_values(y, (float[]){20.0855369f}, 1);
  }
  assert_int_equal(p.calls, 1);
  assert_null(mlx_array_data_float32(escaped));
  assert_non_null(strstr(last_message, "traced"));
  mlx_array_free(escaped), mlx_array_free(y);
  mlx_closure_free(f);
}

/* (a + b, a) */
static int sum_and_first(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  ((struct payload*)payload)->calls++;
  mlx_array a = arg(in, 0), b = arg(in, 1), c = mlx_array_new();
  mlx_add(&c, a, b, cpu());
  mlx_array both[] = {c, a};
  int rc = mlx_vector_array_set_data(res, both, 2);
  mlx_array_free(a), mlx_array_free(b), mlx_array_free(c);
  return rc;
}

static void outputs_that_are_unchanged_inputs_are_kept(void** state) {
  (void)state;
  struct payload p = {0};
  mlx_closure f = compiled(sum_and_first, &p, false);
  for (int call = 0; call < 2; call++) {
    mlx_array in[] = {floats((float[]){1, 2}, 2), floats((float[]){3, 4}, 2)}, y = mlx_array_new();
    mlx_vector_array x = mlx_vector_array_new_data(in, 2), out = mlx_vector_array_new();
    assert_int_equal(mlx_closure_apply(&out, f, x), 0);
    assert_int_equal(mlx_vector_array_size(out), 2);
    mlx_vector_array_get(&y, out, 0);
    assert_values(y, (float[]){4, 6}, 2);
    mlx_vector_array_get(&y, out, 1);
    assert_values(y, (float[]){1, 2}, 2);
    mlx_array_free(in[0]), mlx_array_free(in[1]), mlx_array_free(y);
    mlx_vector_array_free(x), mlx_vector_array_free(out);
  }
  mlx_closure_free(f);
}

/* A chain of `calls` additions of k, ended by adding `fail_first`. */
static int long_chain(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  struct payload* p = payload;
  mlx_array x = arg(in, 0), k = mlx_array_new_float(p->k), last = mlx_array_new_float((float)p->fail_first);
  int rc = 0;
  for (int i = 0; i < p->calls && !rc; i++) rc = mlx_add(&x, x, k, cpu());
  if (!rc) rc = mlx_add(&x, x, last, cpu());
  if (!rc) rc = mlx_vector_array_set_value(res, x);
  mlx_array_free(x), mlx_array_free(k), mlx_array_free(last);
  return rc;
}

static void long_chains_that_differ_at_the_end_are_told_apart(void** state) {
  (void)state;
  struct payload up = {.calls = 59, .k = 1, .fail_first = 1}, down = {.calls = 59, .k = 1, .fail_first = -1};
  mlx_closure f = compiled(long_chain, &up, false), g = compiled(long_chain, &down, false);
  mlx_array y = mlx_array_new(), in = floats((float[]){0}, 1);
  assert_int_equal(apply(&y, f, &in, 1), 0);
  assert_values(y, (float[]){60}, 1);
  in = floats((float[]){0}, 1);
  assert_int_equal(apply(&y, g, &in, 1), 0);
  assert_values(y, (float[]){58}, 1);
  mlx_array_free(y);
  mlx_closure_free(f), mlx_closure_free(g);
}

static void a_graph_of_100000_operations_compiles_and_runs(void** state) {
  (void)state;
  struct payload p = {.calls = 100000};
  mlx_closure f = compiled(long_chain, &p, true);
  for (int call = 0; call < 2; call++) {
    mlx_array y = mlx_array_new(), in = floats((float[]){1}, 1);
    assert_int_equal(apply(&y, f, &in, 1), 0);
    assert_values(y, (float[]){1}, 1);
    mlx_array_free(y);
  }
  mlx_closure_free(f);
}

/* s = p[0], b = p[1]; sum over i of (s*i + b - 2i)^2 */
static int many_terms(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  ((struct payload*)payload)->calls++;
  int step = 1, at[] = {0, 1, 2};
  mlx_array p = arg(in, 0), s = mlx_array_new(), b = mlx_array_new(), sum = mlx_array_new_float(0);
  mlx_slice(&s, p, &at[0], 1, &at[1], 1, &step, 1, cpu());
  mlx_slice(&b, p, &at[1], 1, &at[2], 1, &step, 1, cpu());
  for (int i = 0; i < 200; i++) {
    mlx_array n = mlx_array_new_float((float)i), m = mlx_array_new_float(2.0f * (float)i);
    mlx_array t = mlx_array_new();
    mlx_multiply(&t, s, n, cpu());
    mlx_add(&t, t, b, cpu());
    mlx_subtract(&t, t, m, cpu());
    mlx_square(&t, t, cpu());
    mlx_add(&sum, sum, t, cpu());
    mlx_array_free(n), mlx_array_free(m), mlx_array_free(t);
  }
  int rc = mlx_vector_array_set_value(res, sum);
  mlx_array_free(p), mlx_array_free(s), mlx_array_free(b), mlx_array_free(sum);
  return rc;
}

static void a_graph_with_many_terms_gives_the_same_on_every_call(void** state) {
  (void)state;
  struct payload p = {0};
  mlx_closure f = compiled(many_terms, &p, false);
  for (int call = 0; call < 3; call++) {
    mlx_array y = mlx_array_new(), in = floats((float[]){2, 1}, 2);
    assert_int_equal(apply(&y, f, &in, 1), 0);
    assert_values(y, (float[]){200}, 1);
    mlx_array_free(y);
  }
  mlx_closure_free(f);
}

static int add_two(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  ((struct payload*)payload)->calls++;
  mlx_array a = arg(in, 0), b = arg(in, 1), c = mlx_array_new();
  int rc = mlx_add(&c, a, b, cpu());
  if (!rc) rc = mlx_vector_array_set_value(res, c);
  mlx_array_free(a), mlx_array_free(b), mlx_array_free(c);
  return rc;
}

static mlx_array filled(int rows, int cols, float v) {
  mlx_array k = mlx_array_new_float(v), out = mlx_array_new();
  mlx_full(&out, (int[]){rows, cols}, 2, k, MLX_FLOAT32, cpu());
  mlx_array_free(k);
  return out;
}

static void sizes_of_one_and_zero_are_not_baked_in(void** state) {
  (void)state;
  struct payload p = {0};
  mlx_closure f = compiled(add_two, &p, true);
  const int rows[] = {1, 4, 0};
  for (int i = 0; i < 3; i++) {
    mlx_array in[] = {filled(rows[i], 3, 1), filled(i == 0 ? 4 : rows[i], 3, 2)}, y = mlx_array_new();
    assert_int_equal(apply(&y, f, in, 2), 0);
    assert_int_equal(mlx_array_dim(y, 0), i == 0 ? 4 : rows[i]);
    assert_int_equal(mlx_array_dim(y, 1), 3);
    for (size_t k = 0; k < mlx_array_size(y); k++) assert_true(mlx_array_data_float32(y)[k] == 3);
    mlx_array_free(y);
  }
  assert_int_equal(p.calls, 1);
  mlx_closure_free(f);
}

/* x + zeros_like(x) */
static int plus_zeros(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  ((struct payload*)payload)->calls++;
  mlx_array x = arg(in, 0), z = mlx_array_new();
  int rc = mlx_zeros_like(&z, x, cpu());
  if (!rc) rc = mlx_add(&z, x, z, cpu());
  if (!rc) rc = mlx_vector_array_set_value(res, z);
  mlx_array_free(x), mlx_array_free(z);
  return rc;
}

static void zeros_like_follows_the_size_of_the_call(void** state) {
  (void)state;
  struct payload p = {0};
  mlx_closure f = compiled(plus_zeros, &p, true);
  for (int n = 2; n <= 5; n += 3) {
    const float x[] = {1, 2, 3, 4, 5};
    mlx_array y = mlx_array_new(), in = floats(x, n);
    assert_int_equal(apply(&y, f, &in, 1), 0);
    assert_values(y, x, n);
    mlx_array_free(y);
  }
  assert_int_equal(p.calls, 1);
  mlx_closure_free(f);
}

/* u16 -> i32 -> f32 */
static int cast_chain(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  (void)payload;
  mlx_array x = arg(in, 0), one = mlx_array_new_float(1);
  mlx_astype(&x, x, MLX_INT32, cpu());
  mlx_astype(&x, x, MLX_FLOAT32, cpu());
  mlx_multiply(&x, x, one, cpu());
  int rc = mlx_vector_array_set_value(res, x);
  mlx_array_free(x), mlx_array_free(one);
  return rc;
}

static void chains_of_casts_convert_values(void** state) {
  (void)state;
  struct payload p = {0};
  mlx_closure f = compiled(cast_chain, &p, false);
  uint16_t x[] = {10, 20};
  int n = 2;
  mlx_array in = mlx_array_new_data(x, &n, 1, MLX_UINT16), y = mlx_array_new();
  assert_int_equal(apply(&y, f, &in, 1), 0);
  assert_values(y, (float[]){10, 20}, 2);
  mlx_array_free(y);
  mlx_closure_free(f);
}

/* base[::-1] = 2 * x[::-1] */
static int write_reversed(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  (void)payload;
  int first = 5, last = -7, back = -1;
  mlx_array x = arg(in, 0), r = mlx_array_new(), two = mlx_array_new_float(2), base = mlx_array_new();
  mlx_zeros_like(&base, x, cpu());
  mlx_slice(&r, x, &first, 1, &last, 1, &back, 1, cpu());
  mlx_multiply(&r, r, two, cpu());
  int rc = mlx_slice_update(&r, base, r, &first, 1, &last, 1, &back, 1, cpu());
  if (!rc) rc = mlx_vector_array_set_value(res, r);
  mlx_array_free(x), mlx_array_free(r), mlx_array_free(two), mlx_array_free(base);
  return rc;
}

static void a_fused_write_into_a_reversed_slice_reaches_every_element(void** state) {
  (void)state;
  struct payload p = {0};
  mlx_closure f = compiled(write_reversed, &p, false);
  mlx_array in = floats((float[]){0, 1, 2, 3, 4, 5}, 6), y = mlx_array_new();
  assert_int_equal(apply(&y, f, &in, 1), 0);
  assert_values(y, (float[]){0, 2, 4, 6, 8, 10}, 6);
  mlx_array_free(y);
  mlx_closure_free(f);
}

static void a_cached_id_is_erased(void** state) {
  (void)state;
  struct payload p = {.k = 1};
  mlx_closure f = mlx_closure_new_func_payload(square_plus, &p, NULL);
  for (int round = 0; round < 2; round++) {
    for (int call = 0; call < 3; call++) {
      mlx_closure c = mlx_closure_new();
      assert_int_equal(mlx_detail_compile(&c, f, 4711, false, NULL, 0), 0);
      mlx_array in = floats((float[]){2}, 1), y = mlx_array_new();
      assert_int_equal(apply(&y, c, &in, 1), 0);
      assert_values(y, (float[]){5}, 1);
      mlx_array_free(y);
      mlx_closure_free(c);
    }
    assert_int_equal(p.calls, round + 1);
    assert_int_equal(mlx_detail_compile_erase(4711), 0);
  }
  mlx_closure_free(f);
}

static void compile_can_be_switched_off(void** state) {
  (void)state;
  struct payload p = {.k = 1};
  mlx_closure f = compiled(square_plus, &p, false);
  assert_int_equal(mlx_disable_compile(), 0);
  for (int call = 0; call < 2; call++) {
    mlx_array in = floats((float[]){2}, 1), y = mlx_array_new();
    assert_int_equal(apply(&y, f, &in, 1), 0);
    mlx_array_free(y);
  }
  assert_int_equal(mlx_enable_compile(), 0);
  assert_int_equal(p.calls, 2);
  mlx_closure_free(f);
}

static void every_mode_gives_the_same_bits(void** state) {
  (void)state;
  float x[1000], first[1000];
  for (int i = 0; i < 1000; i++) x[i] = sinf((float)i);
  for (int mode = MLX_COMPILE_MODE_DISABLED; mode <= MLX_COMPILE_MODE_ENABLED; mode++) {
    struct payload p = {.calls = 20, .k = 0.1f};
    assert_int_equal(mlx_set_compile_mode(mode), 0);
    mlx_closure f = compiled(long_chain, &p, false);
    mlx_array in = floats(x, 1000), y = mlx_array_new();
    assert_int_equal(apply(&y, f, &in, 1), 0);
    if (mode == MLX_COMPILE_MODE_DISABLED) memcpy(first, mlx_array_data_float32(y), sizeof first);
    assert_memory_equal(first, mlx_array_data_float32(y), sizeof first);
    mlx_array_free(y);
    mlx_closure_free(f);
  }
}

static void traces_are_bounded_and_ten_thousand_closures_leave_nothing(void** state) {
  (void)state;
  struct payload p = {.k = 1};
  size_t before = 0, after = 0;
  for (int i = 0; i < 10000; i++) {
    mlx_closure f = compiled(square_plus, &p, false);
    mlx_array in = floats((float[]){2}, 1), y = mlx_array_new();
    assert_int_equal(apply(&y, f, &in, 1), 0);
    mlx_array_free(y);
    mlx_closure_free(f);
    if (i == 10) mlx_get_active_memory(&before);
  }
  mlx_get_active_memory(&after);
  assert_int_equal(before, after);
  assert_int_equal(p.destroyed, 10000);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_shapeless_function_is_traced_once_for_every_length),
      TEST(a_shaped_function_is_traced_once_for_each_shape),
      TEST(captured_constants_keep_their_bits),
      TEST(closures_of_one_function_with_other_payloads_do_not_share_traces),
      TEST(a_failed_trace_is_not_kept),
      TEST(the_cause_of_an_error_inside_a_trace_comes_back),
      TEST(reading_a_tracer_is_a_clear_error_and_the_function_can_be_tried_again),
      TEST(an_array_that_escaped_a_trace_is_an_error_when_read),
      TEST(outputs_that_are_unchanged_inputs_are_kept),
      TEST(long_chains_that_differ_at_the_end_are_told_apart),
      TEST(a_graph_of_100000_operations_compiles_and_runs),
      TEST(a_graph_with_many_terms_gives_the_same_on_every_call),
      TEST(sizes_of_one_and_zero_are_not_baked_in),
      TEST(zeros_like_follows_the_size_of_the_call),
      TEST(chains_of_casts_convert_values),
      TEST(a_fused_write_into_a_reversed_slice_reaches_every_element),
      TEST(a_cached_id_is_erased),
      TEST(compile_can_be_switched_off),
      TEST(every_mode_gives_the_same_bits),
      TEST(traces_are_bounded_and_ten_thousand_closures_leave_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
