/* Failures: every one is a return code with a typed error, nothing leaks, and the library and all
 * other arrays stay usable. Run under AddressSanitizer as well. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine_help.h"
#include "reprise/error.h"

static void ignore(const char* msg, void* data) { (void)msg, (void)data; }

static int setup(void** state) {
  (void)state;
  mlx_set_error_handler(ignore, NULL, NULL);
  return 0;
}

/* ---- allocations that fail ------------------------------------------------------------------- */

/* Whether a step of a scenario succeeded; if not, it must have been for want of memory. */
static bool ok(int rc) {
  if (!rc) return true;
  assert_int_equal(rp_last_error(NULL), RP_ERR_MEMORY);
  return false;
}

#define MADE(handle) ok((handle).ctx == NULL)

/* Run the scenario with each of its allocations failing once, until none is left to fail. */
static void fail_everywhere(bool (*scenario)(void)) {
  assert_true(scenario()); /* what is made once and kept */
  size_t before = active_memory();
  for (int n = 1;; n++) {
    assert_true(n < 20000);
    rpi_mem_fail_at(n);
    bool good = scenario();
    bool fired = rpi_mem_fail_at(0);
    assert_int_equal(active_memory(), before);
    if (!fired) {
      assert_true(good);
      assert_true(n > 2); /* something did fail */
      break;
    }
    assert_true(is_usable());
  }
  assert_true(scenario());
}

static bool add_and_sum(void) {
  mlx_array x = floats((float[]){1, 2, 3}, 3), y = {0}, z = {0}, t = {0};
  bool good = MADE(x) && ok(mlx_add(&y, x, x, cpu())) && ok(mlx_sin(&t, y, cpu())) &&
              ok(mlx_multiply(&y, y, x, cpu())) && ok(mlx_sum(&z, y, false, cpu()));
  mlx_vector_array v = {0};
  good = good && MADE(v = mlx_vector_array_new_data((mlx_array[]){z, t}, 2)) && ok(mlx_eval(v));
  float sum = 0;
  good = good && ok(mlx_array_item_float32(&sum, z));
  if (good) assert_true(sum == 28);
  mlx_vector_array_free(v);
  mlx_array_free(x), mlx_array_free(y), mlx_array_free(z), mlx_array_free(t);
  return good;
}

/* Views, packed copies, joins and products. */
static bool move_and_multiply(void) {
  const float data[] = {1, 2, 3, 4, 5, 6};
  mlx_array x = {0}, t = {0}, y = {0}, z = {0};
  mlx_vector_array parts = {0};
  bool good = MADE(x = mlx_array_new_data(data, (int[]){2, 3}, 2, MLX_FLOAT32)) &&
              MADE(parts = mlx_vector_array_new()) && ok(mlx_transpose(&t, x, cpu())) &&
              ok(mlx_matmul(&y, t, x, cpu())) && ok(mlx_split(&parts, y, 3, 0, cpu())) &&
              ok(mlx_concatenate_axis(&z, parts, 1, cpu())) &&
              ok(mlx_softmax_axis(&t, t, 0, true, cpu()));
  const float* v = good ? mlx_array_data_float32(z) : NULL;
  good = good && ok(v == NULL) && ok(mlx_array_data_float32(t) == NULL);
  if (good) assert_true(v[0] == 17 && v[8] == 45);
  mlx_array_free(x), mlx_array_free(t), mlx_array_free(y), mlx_array_free(z);
  mlx_vector_array_free(parts);
  return good;
}

/* 2x + 1 through a host function that stops at its first error. */
static int twice_plus_one(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array x = mlx_array_new(), one = mlx_array_new_float(1);
  int rc = one.ctx ? mlx_vector_array_get(&x, in, 0) : 1;
  if (!rc) rc = mlx_add(&x, x, x, cpu());
  if (!rc) rc = mlx_add(&x, x, one, cpu());
  if (!rc) rc = mlx_vector_array_append_value(*res, x);
  mlx_array_free(x), mlx_array_free(one);
  return rc;
}

/* The callback's own code is what the caller is told; its cause must have been memory. */
static bool ok_callback(int rc) {
  if (!rc) return true;
  assert_true(rp_last_error(NULL) == RP_ERR_MEMORY || rp_last_error(NULL) == RP_ERR_CALLBACK);
  return false;
}

static bool compile_and_apply(void) {
  mlx_closure f = {0}, c = {0};
  mlx_array x = {0}, y = {0}, t = {0};
  mlx_vector_array in = {0}, out = {0};
  bool good = MADE(f = mlx_closure_new_func(twice_plus_one)) &&
              MADE(x = floats((float[]){1, 2}, 2)) &&
              MADE(in = mlx_vector_array_new_value(x)) && MADE(out = mlx_vector_array_new()) &&
              ok(mlx_compile(&c, f, true));
  for (int call = 0; call < 2 && good; call++)
    good = ok_callback(mlx_closure_apply(&out, c, in)) && ok(mlx_vector_array_get(&y, out, 0)) &&
           ok(mlx_add(&t, y, x, cpu())) && ok(mlx_array_eval(t));
  if (good) assert_true(has_values(t, (float[]){4, 7}, 2) && has_values(y, (float[]){3, 5}, 2));
  mlx_closure_free(f), mlx_closure_free(c);
  mlx_array_free(x), mlx_array_free(y), mlx_array_free(t);
  mlx_vector_array_free(in), mlx_vector_array_free(out);
  return good;
}

static bool use_lists_and_maps(void) {
  mlx_array x = {0}, y = {0};
  mlx_vector_array v = {0}, w = {0};
  mlx_map_string_to_array m = {0};
  bool good = MADE(x = mlx_array_new_float(5)) && MADE(v = mlx_vector_array_new()) &&
              MADE(w = mlx_vector_array_new()) && MADE(m = mlx_map_string_to_array_new());
  for (int i = 0; i < 20 && good; i++) {
    char key[8];
    snprintf(key, sizeof key, "k%d", i);
    good = ok(mlx_vector_array_append_value(v, x)) && ok(mlx_map_string_to_array_insert(m, key, x));
  }
  good = good && ok(mlx_vector_array_set(&w, v)) && ok(mlx_map_string_to_array_get(&y, m, "k7"));
  if (good) assert_int_equal(mlx_vector_array_size(w), 20);
  float got = 0;
  good = good && ok(mlx_array_item_float32(&got, y));
  if (good) assert_true(got == 5);
  mlx_array_free(x), mlx_array_free(y);
  mlx_vector_array_free(v), mlx_vector_array_free(w);
  mlx_map_string_to_array_free(m);
  return good;
}

static int destroyed;
static void count_destruction(void* p) { (void)p, destroyed++; }

/* The data is destroyed once whether or not the handler could be installed. */
static bool set_handlers(void) {
  int data;
  destroyed = 0;
  mlx_set_error_handler(ignore, &data, count_destruction);
  mlx_set_error_handler(ignore, NULL, NULL);
  bool kept = destroyed == 0;
  if (kept) mlx_set_error_handler(ignore, NULL, NULL); /* the second one had failed */
  assert_int_equal(destroyed, 1);
  return true;
}

static bool wrap_memory(void) {
  static float data[4] = {1, 2, 3, 4};
  destroyed = 0;
  mlx_array x = mlx_array_new_data_managed(data, &(int){4}, 1, MLX_FLOAT32, count_destruction);
  bool good = MADE(x);
  mlx_array_free(x);
  assert_int_equal(destroyed, 1);
  return good;
}

static bool evaluate_async(void) {
  mlx_array x = floats((float[]){1, 2}, 2), y = mlx_array_new();
  bool good = MADE(x) && ok(mlx_add(&y, x, x, cpu()));
  mlx_vector_array v = {0};
  good = good && MADE(v = mlx_vector_array_new_value(y)) && ok(mlx_async_eval(v)) &&
         ok(mlx_synchronize(cpu())) && ok(mlx_array_eval(y));
  if (good) assert_true(has_values(y, (float[]){2, 4}, 2));
  mlx_array_free(x), mlx_array_free(y);
  mlx_vector_array_free(v);
  mlx_synchronize(cpu());
  return good;
}

/* Kernels that need room of their own: a sort, a gather, a reduction of a view, a draw. */
static bool use_scratch_memory(void) {
  enum { N = 5000 };
  mlx_array x = {0}, y = {0}, i = {0}, key = {0}, r = {0};
  bool good = ok(mlx_arange(&x, N, 0, -1, MLX_FLOAT32, cpu())) && ok(mlx_sort(&y, x, cpu())) &&
              ok(mlx_argsort(&i, x, cpu())) && ok(mlx_take(&x, x, i, cpu())) &&
              ok(mlx_subtract(&y, y, x, cpu())) &&
              ok(mlx_reshape(&y, y, (int[]){50, 100}, 2, cpu())) &&
              ok(mlx_transpose(&y, y, cpu())) && ok(mlx_cumsum(&y, y, 0, false, true, cpu())) &&
              ok(mlx_sum_axis(&y, y, 1, false, cpu())) && ok(mlx_random_key(&key, 3)) &&
              ok(mlx_random_normal(&r, (int[]){100}, 1, MLX_FLOAT32, 0, 0, key, cpu())) &&
              ok(mlx_add(&y, y, r, cpu()));
  float sum = 1;
  good = good && ok(mlx_sum(&y, y, false, cpu())) && ok(mlx_array_item_float32(&sum, y));
  if (good) assert_true(sum == 0);
  mlx_array_free(x), mlx_array_free(y), mlx_array_free(i);
  mlx_array_free(key), mlx_array_free(r);
  return good;
}

static bool quantize_and_multiply(void) {
  const mlx_optional_int group = {64, true}, bits = {4, true};
  mlx_array w = {0}, y = {0}, codes = {0}, scales = {0}, biases = {0}, none = {0};
  mlx_vector_array q = {0};
  bool good = ok(mlx_ones(&w, (int[]){8, 64}, 2, MLX_FLOAT32, cpu())) &&
              ok(mlx_quantize(&q, w, group, bits, "affine", none, cpu())) &&
              ok(mlx_vector_array_get(&codes, q, 0)) && ok(mlx_vector_array_get(&scales, q, 1)) &&
              ok(mlx_vector_array_get(&biases, q, 2)) &&
              ok(mlx_quantized_matmul(&y, w, codes, scales, biases, true, group, bits, "affine",
                                      cpu()));
  const float* v = good ? mlx_array_data_float32(y) : NULL;
  good = good && ok(v == NULL);
  if (good) assert_float_equal(v[63], 64, 1e-3);
  mlx_array_free(w), mlx_array_free(y), mlx_array_free(codes);
  mlx_array_free(scales), mlx_array_free(biases);
  mlx_vector_array_free(q);
  return good;
}

static bool save_and_load(void) {
  static char path[64];
  if (!path[0]) snprintf(path, sizeof path, "/tmp/reprise_faults_%d", (int)getpid());
  mlx_array x = {0}, y = {0};
  mlx_map_string_to_array out = {0}, in = {0};
  mlx_map_string_to_string meta = {0}, text = {0};
  bool good = MADE(x = floats((float[]){1, 2, 3}, 3)) &&
              MADE(out = mlx_map_string_to_array_new()) &&
              MADE(meta = mlx_map_string_to_string_new()) &&
              ok(mlx_map_string_to_string_insert(meta, "format", "pt")) &&
              ok(mlx_map_string_to_array_insert(out, "x", x)) &&
              ok(mlx_save_safetensors(path, out, meta)) &&
              ok(mlx_load_safetensors(&in, &text, path, cpu())) &&
              ok(mlx_map_string_to_array_get(&y, in, "x")) && ok(mlx_add(&y, y, x, cpu()));
  const float* v = good ? mlx_array_data_float32(y) : NULL;
  good = good && ok(v == NULL);
  if (good) assert_true(v[0] == 2 && v[2] == 6);
  mlx_array_free(x), mlx_array_free(y);
  mlx_map_string_to_array_free(out), mlx_map_string_to_array_free(in);
  mlx_map_string_to_string_free(meta), mlx_map_string_to_string_free(text);
  unlink(path);
  return good;
}

#define FAULT_TEST(name, scenario) \
  static void name(void** state) { \
    (void)state;                   \
    fail_everywhere(scenario);     \
  }

FAULT_TEST(building_and_evaluating_survives_every_failed_allocation, add_and_sum)
FAULT_TEST(moving_data_survives_every_failed_allocation, move_and_multiply)
FAULT_TEST(compiling_and_applying_survives_every_failed_allocation, compile_and_apply)
FAULT_TEST(lists_and_maps_survive_every_failed_allocation, use_lists_and_maps)
FAULT_TEST(error_handlers_survive_every_failed_allocation, set_handlers)
FAULT_TEST(wrapped_memory_survives_every_failed_allocation, wrap_memory)
FAULT_TEST(kernels_with_scratch_memory_survive_every_failed_allocation, use_scratch_memory)
FAULT_TEST(quantization_survives_every_failed_allocation, quantize_and_multiply)
FAULT_TEST(files_survive_every_failed_allocation, save_and_load)
FAULT_TEST(async_evaluation_survives_every_failed_allocation, evaluate_async)

/* The memory limit stops an evaluation at each of its buffers. */
static void an_evaluation_that_ran_out_of_memory_can_be_repeated(void** state) {
  (void)state;
  enum { N = 1 << 16, STEP = N * 4 };
  int failures = 0;
  bool good = false;
  for (int room = 0; !good; room++) {
    assert_true(room < 100);
    mlx_array x = full_of(1, N), y = plus_ones(x, 3), z = mlx_array_new();
    assert_int_equal(mlx_sort(&z, y, cpu()), 0);
    mlx_vector_array v = mlx_vector_array_new_data((mlx_array[]){y, z}, 2);
    size_t old;
    mlx_clear_cache();
    assert_int_equal(mlx_set_memory_limit(&old, active_memory() + (size_t)room * STEP / 2), 0);
    good = mlx_eval(v) == 0;
    if (!good) assert_int_equal(rp_last_error(NULL), RP_ERR_MEMORY);
    failures += !good;
    assert_int_equal(mlx_set_memory_limit(&old, old), 0);
    assert_int_equal(mlx_eval(v), 0);
    assert_true(mlx_array_data_float32(y)[N - 1] == 4 && mlx_array_data_float32(z)[0] == 4);
    mlx_array_free(x), mlx_array_free(y), mlx_array_free(z);
    mlx_vector_array_free(v);
  }
  assert_true(failures > 1);
}

/* 4 TB are more than any machine here has. */
static void an_array_beside_one_that_fails_keeps_its_value(void** state) {
  (void)state;
  mlx_array a = full_of(3, 4), b = mlx_array_new();
  assert_int_equal(mlx_zeros(&b, (int[]){1 << 20, 1 << 20}, 2, MLX_FLOAT32, cpu()), 0);
  assert_int_equal(mlx_sin(&b, b, cpu()), 0);
  mlx_vector_array v = mlx_vector_array_new_data((mlx_array[]){a, b}, 2);
  assert_int_not_equal(mlx_eval(v), 0);
  assert_int_equal(rp_last_error(NULL), RP_ERR_MEMORY);
  assert_true(has_values(a, (float[]){3, 3, 3, 3}, 4));
  assert_int_not_equal(mlx_array_eval(b), 0);
  mlx_array_free(a), mlx_array_free(b);
  mlx_vector_array_free(v);
}

/* ---- functions of the host that fail --------------------------------------------------------- */

static int refuse(mlx_vector_array* res, const mlx_vector_array in) {
  (void)res, (void)in;
  return 1;
}

static int give_empty_handle(mlx_vector_array* res, const mlx_vector_array in) {
  (void)in;
  mlx_vector_array_free(*res);
  *res = (mlx_vector_array){0};
  return 0;
}

static int give_nothing(mlx_vector_array* res, const mlx_vector_array in) {
  (void)res, (void)in;
  return 0;
}

static int replace_result(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array x = input(in, 0);
  mlx_vector_array_free(*res);
  *res = mlx_vector_array_new_value(x);
  mlx_array_free(x);
  return 0;
}

static int set_result(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array x = input(in, 0);
  mlx_vector_array_append_value(*res, x);
  mlx_vector_array_append_value(*res, x);
  int rc = mlx_vector_array_set_value(res, x);
  mlx_array_free(x);
  return rc;
}

static int give_input_three_times(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array x = input(in, 0);
  int rc = mlx_vector_array_append_data(*res, (mlx_array[]){x, x, x}, 3);
  mlx_array_free(x);
  return rc;
}

/* Outputs of the function on [1, 2], each of which must be [1, 2]; -1 if applying failed. */
static int apply_and_count(mlx_closure f, bool with_input) {
  mlx_array x = floats((float[]){1, 2}, 2);
  mlx_vector_array in = mlx_vector_array_new(), out = mlx_vector_array_new();
  if (with_input) mlx_vector_array_append_value(in, x);
  int rc = mlx_closure_apply(&out, f, in), n = rc ? -1 : (int)mlx_vector_array_size(out);
  if (!rc) assert_int_equal(mlx_eval(out), 0);
  for (int i = 0; i < n; i++) {
    mlx_array y = input(out, (size_t)i);
    assert_true(has_values(y, (float[]){1, 2}, 2));
    mlx_array_free(y);
  }
  mlx_array_free(x);
  mlx_vector_array_free(in), mlx_vector_array_free(out);
  return n;
}

static void expect_outputs(int (*fun)(mlx_vector_array*, const mlx_vector_array), int want) {
  mlx_closure f = mlx_closure_new_func(fun), c = mlx_closure_new();
  assert_int_equal(mlx_compile(&c, f, false), 0);
  for (int call = 0; call < 2; call++) {
    assert_int_equal(apply_and_count(f, true), want);
    assert_int_equal(apply_and_count(c, true), want);
    if (want < 0) assert_int_equal(rp_last_error(NULL), RP_ERR_CALLBACK);
    if (want <= 0) assert_int_equal(apply_and_count(c, false), want);
    assert_true(is_usable());
  }
  mlx_closure_free(f), mlx_closure_free(c);
}

static void a_function_that_fails_makes_every_call_fail(void** state) {
  (void)state;
  expect_outputs(refuse, -1);
  expect_outputs(give_empty_handle, -1);
}

static void a_result_may_be_replaced_set_appended_to_or_left_empty(void** state) {
  (void)state;
  expect_outputs(replace_result, 1);
  expect_outputs(set_result, 1);
  expect_outputs(give_input_three_times, 3);
  expect_outputs(give_nothing, 0);
}

/* ---- error handlers -------------------------------------------------------------------------- */

static int* seen_data;
static void remember_data(const char* msg, void* data) { (void)msg, seen_data = data; }

static int cause_error(void) {
  mlx_array x = full_of(1, 2), y = full_of(1, 3), z = mlx_array_new();
  int rc = mlx_add(&z, x, y, cpu());
  mlx_array_free(x), mlx_array_free(y), mlx_array_free(z);
  return rc;
}

static void a_handler_keeps_its_data_with_and_without_a_destructor(void** state) {
  (void)state;
  int data = 0;
  destroyed = 0;
  mlx_set_error_handler(remember_data, &data, NULL);
  assert_int_not_equal(cause_error(), 0);
  assert_ptr_equal(seen_data, &data);
  seen_data = NULL;
  mlx_set_error_handler(remember_data, &data, count_destruction);
  assert_int_not_equal(cause_error(), 0);
  assert_ptr_equal(seen_data, &data);
  assert_int_equal(destroyed, 0);
  mlx_set_error_handler(ignore, NULL, NULL);
  assert_int_equal(destroyed, 1);
}

static void the_default_handler_returns(void** state) {
  (void)state;
  if (UNDER_TSAN) skip();
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    if (!freopen("/dev/null", "w", stderr)) _exit(3);
    mlx_set_error_handler(NULL, NULL, NULL);
    _exit(cause_error() && is_usable() ? 42 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

/* ---- reading on the host --------------------------------------------------------------------- */

static void the_data_of_a_lazy_array_is_evaluated(void** state) {
  (void)state;
  mlx_array one = mlx_array_new_float(1), two = mlx_array_new();
  assert_int_equal(mlx_add(&two, one, one, cpu()), 0);
  const float* v = mlx_array_data_float32(two);
  assert_non_null(v);
  assert_true(*v == 2);
  mlx_array_free(one), mlx_array_free(two);
}

/* After the pointer was asked for, strides belong to it. */
static void assert_read(mlx_array a, const float* want, int n) {
  const float* v = mlx_array_data_float32(a);
  assert_non_null(v);
  assert_int_equal(mlx_array_size(a), n);
  size_t ndim = mlx_array_ndim(a);
  const size_t* stride = mlx_array_strides(a);
  for (int i = 0; i < n; i++) {
    int64_t at = 0, rest = i;
    for (size_t d = ndim; d-- > 0; rest /= mlx_array_dim(a, (int)d))
      at += rest % mlx_array_dim(a, (int)d) * (int64_t)stride[d];
    assert_int_equal(at, i); /* packed */
    assert_true(v[at] == want[i]);
  }
}

static void the_data_of_a_view_is_what_the_view_shows(void** state) {
  (void)state;
  mlx_array x = mlx_array_new(), m = mlx_array_new(), y = mlx_array_new();
  assert_int_equal(mlx_arange(&x, 0, 9, 1, MLX_FLOAT32, cpu()), 0);
  assert_int_equal(mlx_reshape(&m, x, (int[]){3, 3}, 2, cpu()), 0);
  const int start[] = {0, 1}, stop[] = {2, 3}, step[] = {1, 1};
  assert_int_equal(mlx_slice(&y, m, start, 2, stop, 2, step, 2, cpu()), 0);
  assert_read(y, (float[]){1, 2, 4, 5}, 4);
  assert_int_equal(mlx_transpose(&y, m, cpu()), 0);
  assert_read(y, (float[]){0, 3, 6, 1, 4, 7, 2, 5, 8}, 9);
  assert_int_equal(mlx_slice(&y, x, (int[]){0}, 1, (int[]){9}, 1, (int[]){2}, 1, cpu()), 0);
  assert_read(y, (float[]){0, 2, 4, 6, 8}, 5);
  assert_int_equal(mlx_slice(&y, x, (int[]){8}, 1, (int[]){-10}, 1, (int[]){-1}, 1, cpu()), 0);
  assert_read(y, (float[]){8, 7, 6, 5, 4, 3, 2, 1, 0}, 9);
  mlx_array_free(x), mlx_array_free(m), mlx_array_free(y);
}

static void the_data_of_a_broadcast_is_every_element(void** state) {
  (void)state;
  mlx_array x = mlx_array_new_float(2.5f), y = mlx_array_new();
  assert_int_equal(mlx_broadcast_to(&y, x, (int[]){4}, 1, cpu()), 0);
  assert_read(y, (float[]){2.5f, 2.5f, 2.5f, 2.5f}, 4);
  uint32_t three = 3;
  assert_int_equal(mlx_array_set_data(&x, &three, NULL, 0, MLX_UINT32), 0);
  assert_int_equal(mlx_broadcast_to(&y, x, (int[]){4}, 1, cpu()), 0);
  const uint32_t* v = mlx_array_data_uint32(y);
  assert_non_null(v);
  for (int i = 0; i < 4; i++) assert_int_equal(v[i], 3);
  mlx_array_free(x), mlx_array_free(y);
}

static void items_are_converted(void** state) {
  (void)state;
  mlx_array x = mlx_array_new_float(3.7f);
  int32_t i = 99;
  uint32_t u = 0;
  assert_int_equal(mlx_array_item_int32(&i, x), 0);
  assert_int_equal(i, 3);
  assert_int_equal(mlx_array_set_float(&x, NAN), 0);
  assert_int_equal(mlx_array_item_int32(&i, x), 0);
  assert_int_equal(i, 0);
  assert_int_equal(mlx_array_set_int(&x, -1), 0);
  assert_int_equal(mlx_array_item_uint32(&u, x), 0);
  assert_int_equal(u, 0xFFFFFFFFu);
  mlx_array_free(x);
  x = full_of(1, 2);
  assert_int_not_equal(mlx_array_item_uint32(&u, x), 0);
  assert_int_equal(rp_last_error(NULL), RP_ERR_SHAPE);
  mlx_array_free(x);
}

static void bfloat16_is_read_by_its_bits(void** state) {
  (void)state;
  mlx_array x = floats((float[]){1, -2, 0.5f}, 3), y = mlx_array_new();
  assert_int_equal(mlx_astype(&y, x, MLX_BFLOAT16, cpu()), 0);
  const uint16_t* v = mlx_array_data_uint16(y);
  assert_non_null(v);
  assert_int_equal(v[0], 0x3F80);
  assert_int_equal(v[1], 0xC000);
  assert_int_equal(v[2], 0x3F00);
  mlx_array_free(x), mlx_array_free(y);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void an_index_outside_never_reads_foreign_memory(void** state) {
  (void)state;
  mlx_array x = floats((float[]){1, 2}, 2), y = mlx_array_new(), i = mlx_array_new();
  const int bad[] = {2, -3, 1000000000, -1000000000};
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    assert_int_equal(mlx_array_set_data(&i, &bad[k], (int[]){1}, 1, MLX_INT32), 0);
    assert_int_not_equal(mlx_take(&y, x, i, cpu()), 0);
    assert_int_equal(rp_last_error(NULL), RP_ERR_INDEX);
    mlx_array zero = mlx_array_new_int(0); /* the same index, known only when it is computed */
    assert_int_equal(mlx_add(&i, i, zero, cpu()), 0);
    mlx_array_free(zero);
    if (mlx_take(&y, x, i, cpu())) continue;
    const float* v = mlx_array_data_float32(y);
    if (v) assert_true(*v == 1 || *v == 2);
  }
  assert_true(is_usable());
  mlx_array_free(x), mlx_array_free(y), mlx_array_free(i);
}

static void integer_division_by_zero_is_zero(void** state) {
  (void)state;
  const int a[] = {7, -7, 0, INT32_MIN}, b[] = {0, 0, 0, -1};
  mlx_array x = mlx_array_new_data(a, &(int){4}, 1, MLX_INT32), r = mlx_array_new();
  mlx_array y = mlx_array_new_data(b, &(int){4}, 1, MLX_INT32);
  assert_int_equal(mlx_floor_divide(&r, x, y, cpu()), 0);
  const int32_t* v = mlx_array_data_int32(r);
  assert_non_null(v);
  for (int i = 0; i < 3; i++) assert_int_equal(v[i], 0);
  assert_int_equal(mlx_remainder(&r, x, y, cpu()), 0);
  v = mlx_array_data_int32(r);
  assert_non_null(v);
  for (int i = 0; i < 4; i++) assert_int_equal(v[i], 0);
  mlx_array_free(x), mlx_array_free(y), mlx_array_free(r);
}

static void a_size_past_an_int_is_an_error(void** state) {
  (void)state;
  mlx_array x = mlx_array_new(), y = mlx_array_new();
  assert_int_equal(mlx_zeros(&x, (int[]){1 << 30, 2}, 2, MLX_INT8, cpu()), 0);
  assert_int_not_equal(mlx_flatten(&y, x, 0, -1, cpu()), 0);
  assert_int_equal(rp_last_error(NULL), RP_ERR_SHAPE);
  mlx_array_free(x), mlx_array_free(y);
}

static void memory_of_the_host_is_given_back_once(void** state) {
  (void)state;
  static _Alignas(16) char data[64];
  const struct {
    int offset, dim;
    mlx_dtype dtype;
    bool good;
  } rows[] = {{0, 4, MLX_FLOAT32, true},
              {1, 4, MLX_FLOAT32, true}, /* copied */
              {4, 4, MLX_FLOAT64, true},
              {0, -1, MLX_FLOAT32, false},
              {0, 4, (mlx_dtype)99, false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    destroyed = 0;
    mlx_array x = mlx_array_new_data_managed(data + rows[i].offset, &rows[i].dim, 1, rows[i].dtype,
                                             count_destruction);
    assert_int_equal(x.ctx != NULL, rows[i].good);
    mlx_array y = mlx_array_new();
    if (rows[i].good) assert_int_equal(mlx_add(&y, x, x, cpu()), 0);
    mlx_array_free(x);
    mlx_array_eval(y);
    mlx_array_free(y);
    assert_int_equal(destroyed, 1);
  }
}

/* ---- devices and threads --------------------------------------------------------------------- */

static mlx_array shared;
static mlx_stream shared_stream;

static void* add_three(void* p) {
  mlx_array three = mlx_array_new_float(3);
  int* rc = p;
  *rc = mlx_add(&shared, shared, three, shared_stream) || mlx_array_eval(shared);
  mlx_array_free(three);
  return NULL;
}

static void a_default_stream_serves_every_thread(void** state) {
  (void)state;
  pthread_t t;
  int rc = 1;
  shared = mlx_array_new_float(2);
  shared_stream = mlx_default_cpu_stream_new();
  assert_int_equal(pthread_create(&t, NULL, add_three, &rc), 0);
  pthread_join(t, NULL);
  assert_int_equal(rc, 0);
  assert_true(has_values(shared, (float[]){5}, 1));
  mlx_array_free(shared);
  mlx_stream_free(shared_stream);
}

static void the_default_device_computes_and_describes_itself(void** state) {
  (void)state;
  mlx_device d = mlx_device_new();
  mlx_device_info info = mlx_device_info_new();
  assert_int_equal(mlx_get_default_device(&d), 0);
  assert_int_equal(mlx_device_info_get(&info, d), 0);
  mlx_array x = mlx_array_new(), ten = mlx_array_new_float(10);
  float mean = 0;
  assert_int_equal(mlx_ones(&x, (int[]){2, 3}, 2, MLX_FLOAT32, cpu()), 0);
  assert_int_equal(mlx_add(&x, x, ten, cpu()), 0);
  assert_int_equal(mlx_mean(&x, x, false, cpu()), 0);
  assert_int_equal(mlx_array_item_float32(&mean, x), 0);
  assert_float_equal(mean, 11, 1e-5);
  mlx_array_free(x), mlx_array_free(ten);
  mlx_device_info_free(info);
  mlx_device_free(d);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(building_and_evaluating_survives_every_failed_allocation),
      TEST(moving_data_survives_every_failed_allocation),
      TEST(compiling_and_applying_survives_every_failed_allocation),
      TEST(lists_and_maps_survive_every_failed_allocation),
      TEST(error_handlers_survive_every_failed_allocation),
      TEST(wrapped_memory_survives_every_failed_allocation),
      TEST(kernels_with_scratch_memory_survive_every_failed_allocation),
      TEST(quantization_survives_every_failed_allocation),
      TEST(files_survive_every_failed_allocation),
      TEST(async_evaluation_survives_every_failed_allocation),
      TEST(an_evaluation_that_ran_out_of_memory_can_be_repeated),
      TEST(an_array_beside_one_that_fails_keeps_its_value),
      TEST(a_function_that_fails_makes_every_call_fail),
      TEST(a_result_may_be_replaced_set_appended_to_or_left_empty),
      TEST(a_handler_keeps_its_data_with_and_without_a_destructor),
      TEST(the_default_handler_returns),
      TEST(the_data_of_a_lazy_array_is_evaluated),
      TEST(the_data_of_a_view_is_what_the_view_shows),
      TEST(the_data_of_a_broadcast_is_every_element),
      TEST(items_are_converted),
      TEST(bfloat16_is_read_by_its_bits),
      TEST(an_index_outside_never_reads_foreign_memory),
      TEST(integer_division_by_zero_is_zero),
      TEST(a_size_past_an_int_is_an_error),
      TEST(memory_of_the_host_is_given_back_once),
      TEST(a_default_stream_serves_every_thread),
      TEST(the_default_device_computes_and_describes_itself),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
