/* Memory is accounted for, bounded and given back; graphs of any depth are dropped; buffers that
 * nobody else holds are updated in place. */
#define _GNU_SOURCE
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "engine_help.h"
#include "reprise/error.h"

/* Sanitizers make everything several times slower; the depth of a graph is what finds recursion. */
enum { DEEP = UNDER_SANITIZER ? 30000 : 100000 };

static void ignore(const char* msg, void* data) { (void)msg, (void)data; }

static int setup(void** state) {
  (void)state;
  mlx_set_error_handler(ignore, NULL, NULL);
  return 0;
}

/* n values, lazy, in memory of their own once evaluated (a filled array may be one stretched
 * value). */
static mlx_array solid(float v, int n) {
  mlx_array x = full_of(v, n), zero = mlx_array_new_float(0);
  mlx_add(&x, x, zero, cpu());
  mlx_array_free(zero);
  return x;
}

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Two siblings that hold each other would keep everything alive. */
static int split_and_join(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array x = input(in, 0), y = mlx_array_new();
  mlx_vector_array parts = mlx_vector_array_new();
  int rc = mlx_split(&parts, x, 2, 0, cpu());
  if (!rc) rc = mlx_concatenate_axis(&y, parts, 0, cpu());
  if (!rc) rc = mlx_vector_array_append_value(*res, y);
  mlx_array_free(x), mlx_array_free(y);
  mlx_vector_array_free(parts);
  return rc;
}

static void a_compiled_function_of_many_outputs_leaves_nothing_behind(void** state) {
  (void)state;
  enum { N = 6 << 16 };
  size_t before = active_memory();
  for (int round = 0; round < 100; round++) {
    mlx_closure f = mlx_closure_new_func(split_and_join), c = mlx_closure_new();
    mlx_array y = mlx_array_new();
    assert_int_equal(mlx_compile(&c, f, false), 0);
    assert_int_equal(apply_one(&y, c, full_of(1, N)), 0);
    const float* v = mlx_array_data_float32(y);
    assert_non_null(v);
    assert_true(v[0] == 1 && v[N / 2] == 1 && v[N - 1] == 1);
    mlx_array_free(y);
    mlx_closure_free(f), mlx_closure_free(c);
    assert_int_equal(active_memory(), before);
  }
}

static mlx_array deep_sine(void) {
  mlx_array x = floats((float[]){1, 2}, 2);
  for (int i = 0; i < DEEP; i++) mlx_sin(&x, x, cpu());
  return x;
}

static mlx_array deep_split(void) {
  mlx_array x = floats((float[]){1, 2}, 2);
  for (int i = 0; i < DEEP; i++) {
    mlx_vector_array parts = mlx_vector_array_new();
    mlx_split(&parts, x, 2, 0, cpu());
    mlx_concatenate_axis(&x, parts, 0, cpu());
    mlx_vector_array_free(parts);
  }
  return x;
}

/* sin iterated n times goes to sqrt(3 / n) from any start. */
static void a_deep_chain_is_evaluated_and_freed(void** state) {
  (void)state;
  size_t before = active_memory();
  mlx_array y = deep_sine();
  const float* v = mlx_array_data_float32(y);
  assert_non_null(v);
  float want = DEEP == 100000 ? 0.005477f : 0.0099995f;
  assert_float_equal(v[0], want, 2e-6f);
  assert_float_equal(v[1], want, 2e-6f);
  mlx_array_free(y);
  mlx_array_free(deep_sine()); /* never evaluated */
  assert_int_equal(active_memory(), before);
}

static void a_deep_chain_of_splits_is_evaluated_and_freed(void** state) {
  (void)state;
  size_t before = active_memory();
  mlx_array y = deep_split();
  assert_true(has_values(y, (float[]){1, 2}, 2));
  mlx_array_free(y);
  mlx_array_free(deep_split());
  assert_int_equal(active_memory(), before);
}

/* ---- compiled functions ---------------------------------------------------------------------- */

static int add_constant(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  mlx_array x = input(in, 0), y = mlx_array_new(), k = mlx_array_new_float(*(float*)payload);
  int rc = mlx_add(&y, x, k, cpu());
  if (!rc) rc = mlx_vector_array_append_value(*res, y);
  mlx_array_free(x), mlx_array_free(y), mlx_array_free(k);
  return rc;
}

static mlx_closure adder(float k) {
  float* payload = malloc(sizeof *payload);
  *payload = k;
  return mlx_closure_new_func_payload(add_constant, payload, free);
}

static void apply_adder(mlx_closure c, float k) {
  mlx_array y = mlx_array_new();
  assert_int_equal(apply_one(&y, c, floats((float[]){1}, 1)), 0);
  assert_true(has_values(y, &(float){1 + k}, 1));
  mlx_array_free(y);
}

/* One function id, a constant of the host in each signature. */
static void call_with_id(int k) {
  mlx_closure f = adder((float)k), c = mlx_closure_new();
  assert_int_equal(mlx_detail_compile(&c, f, 777, false, &(uint64_t){(uint64_t)k}, 1), 0);
  apply_adder(c, (float)k);
  mlx_closure_free(f), mlx_closure_free(c);
}

static void call_alone(int k) {
  mlx_closure f = adder((float)k), c = mlx_closure_new();
  assert_int_equal(mlx_compile(&c, f, false), 0);
  apply_adder(c, (float)k);
  mlx_closure_free(f), mlx_closure_free(c);
}

/* The first thousand calls warm up; a search through all earlier ones would cost far more than 3
 * times as much. */
static void assert_flat(void (*call)(int)) {
  enum { PART = 1000, PARTS = UNDER_SANITIZER ? 3 : 10 };
  double seconds[PARTS];
  for (int part = 0; part < PARTS; part++) {
    double start = cpu_seconds();
    for (int k = 0; k < PART; k++) call(part * PART + k);
    seconds[part] = cpu_seconds() - start;
  }
  double a = seconds[PARTS - 1], b = seconds[PARTS - 2]; /* the quieter of two */
  assert_true((a < b ? a : b) < 3 * seconds[0]);
}

static void constants_of_one_function_cost_the_same_however_many_there_are(void** state) {
  (void)state;
  assert_flat(call_with_id);
  assert_int_equal(mlx_detail_compile_erase(777), 0);
}

static void compiled_functions_cost_the_same_however_many_there_were(void** state) {
  (void)state;
  assert_flat(call_alone);
}

static void compiled_functions_that_are_freed_leave_nothing_behind(void** state) {
  (void)state;
  size_t memory[3], heap[3];
  for (int round = 0; round < 3; round++) {
    for (int k = 0; k < 1000; k++) call_alone(k);
    memory[round] = active_memory() + cached_memory();
    heap[round] = mallinfo2().uordblks;
  }
  assert_int_equal(memory[2], memory[1]);
  assert_true(heap[2] <= heap[1] + 4096);
}

static int add_zero_often(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  mlx_array x = input(in, 0), zero = mlx_array_new_float(0);
  int rc = 0;
  for (int i = 0; i < *(int*)payload && !rc; i++) rc = mlx_add(&x, x, zero, cpu());
  if (!rc) rc = mlx_vector_array_append_value(*res, x);
  mlx_array_free(x), mlx_array_free(zero);
  return rc;
}

static double seconds_of_sum(int n) {
  double start = cpu_seconds();
  mlx_closure f = mlx_closure_new_func_payload(add_zero_often, &n, NULL), c = mlx_closure_new();
  mlx_array y = mlx_array_new();
  assert_int_equal(mlx_compile(&c, f, false), 0);
  assert_int_equal(apply_one(&y, c, floats((float[]){1}, 1)), 0);
  assert_true(has_values(y, (float[]){1}, 1));
  mlx_array_free(y);
  mlx_closure_free(f), mlx_closure_free(c);
  return cpu_seconds() - start;
}

/* Of three runs, so that a busy machine does not count. */
static double least_seconds(int n) {
  double least = seconds_of_sum(n);
  for (int i = 0; i < 2; i++) {
    double again = seconds_of_sum(n);
    if (again < least) least = again;
  }
  return least;
}

/* One scalar with tens of thousands of readers. */
static void compile_time_grows_with_the_graph_and_not_faster(void** state) {
  (void)state;
  seconds_of_sum(1000);
  double half = least_seconds(DEEP / 5 * 2), whole = least_seconds(DEEP / 5 * 4);
  assert_true(whole < 3 * half);
  assert_true(whole < 20);
}

/* ---- counts and limits ----------------------------------------------------------------------- */

static void the_cache_keeps_to_its_limit(void** state) {
  (void)state;
  enum { LIMIT = 16 << 20, MOST = UNDER_SANITIZER ? 5000 : 20000 };
  size_t old, before = active_memory();
  assert_int_equal(mlx_set_cache_limit(&old, LIMIT), 0);
  for (int n = 1; n <= MOST; n += 7) {
    mlx_array x = solid(1, n * 100), sum = mlx_array_new();
    float v = 0;
    assert_int_equal(mlx_array_eval(x), 0);
    assert_int_equal(mlx_sum(&sum, x, false, cpu()), 0);
    assert_int_equal(mlx_array_item_float32(&v, sum), 0);
    assert_true(v == (float)(n * 100));
    mlx_array_free(x), mlx_array_free(sum);
    assert_true(cached_memory() <= LIMIT);
  }
  assert_int_equal(active_memory(), before);
  assert_int_equal(mlx_set_cache_limit(&old, old), 0);
  assert_int_equal(old, LIMIT);
}

static void counts_of_memory_are_exact(void** state) {
  (void)state;
  enum { N = 1 << 20 };
  size_t before = active_memory(), peak = 0;
  assert_int_equal(mlx_reset_peak_memory(), 0);
  mlx_array x = solid(1, N), y = mlx_array_new();
  assert_int_equal(mlx_sin(&y, x, cpu()), 0);
  mlx_array_free(x);
  assert_int_equal(mlx_array_eval(y), 0);
  assert_true(active_memory() - before >= N * sizeof(float));
  assert_true(active_memory() - before < 2 * N * sizeof(float));
  mlx_get_peak_memory(&peak);
  assert_true(peak >= active_memory());
  mlx_array_free(y);
  assert_int_equal(active_memory(), before);
  assert_true(cached_memory() >= N * sizeof(float));
  assert_int_equal(mlx_clear_cache(), 0);
  assert_int_equal(cached_memory(), 0);
  assert_int_equal(mlx_reset_peak_memory(), 0);
  mlx_get_peak_memory(&peak);
  assert_true(peak < N * sizeof(float));
}

/* Also when the memory would have come from the cache. */
static void passing_the_memory_limit_is_an_error_and_no_more(void** state) {
  (void)state;
  enum { N = 1 << 20 };
  for (int from_cache = 0; from_cache < 2; from_cache++) {
    size_t old, limit;
    mlx_clear_cache();
    if (from_cache) {
      mlx_array warm = solid(2, N);
      mlx_array_eval(warm);
      mlx_array_free(warm);
      assert_true(cached_memory() > 0);
    }
    mlx_array x = solid(2, N);
    assert_int_equal(mlx_set_memory_limit(&old, active_memory() + (1 << 20)), 0);
    assert_int_not_equal(mlx_array_eval(x), 0);
    assert_int_equal(rp_last_error(NULL), RP_ERR_MEMORY);
    assert_true(is_usable());
    assert_int_equal(mlx_set_memory_limit(&limit, old), 0);
    const float* v = mlx_array_data_float32(x);
    assert_non_null(v);
    assert_true(v[0] == 2 && v[N - 1] == 2);
    mlx_array_free(x);
  }
}

/* ---- in place -------------------------------------------------------------------------------- */

enum { LENGTH = 4096 };

/* Element `at` becomes v. */
static int put(mlx_array* res, mlx_array x, int at, mlx_array v) {
  return mlx_slice_update(res, x, v, &at, 1, &(int){at + 1}, 1, &(int){1}, 1, cpu());
}

static void an_update_of_what_nobody_else_holds_happens_in_place(void** state) {
  (void)state;
  mlx_array x = solid(1, LENGTH), v = floats((float[]){7}, 1);
  assert_int_equal(mlx_array_eval(x), 0);
  const float* data = mlx_array_data_float32(x);
  for (int i = 0; i < 20; i++) {
    assert_int_equal(put(&x, x, i, v), 0);
    assert_int_equal(mlx_array_eval(x), 0);
    assert_ptr_equal(mlx_array_data_float32(x), data);
    assert_true(data[i] == 7 && data[i + 1] == 1);
  }
  mlx_array_free(x), mlx_array_free(v);
}

static void an_update_of_what_another_handle_holds_leaves_it_alone(void** state) {
  (void)state;
  mlx_array x = solid(1, LENGTH), y = mlx_array_new(), v = floats((float[]){7}, 1);
  assert_int_equal(mlx_array_eval(x), 0);
  const float* data = mlx_array_data_float32(x);
  assert_int_equal(put(&y, x, 3, v), 0);
  assert_int_equal(mlx_array_eval(y), 0);
  assert_ptr_not_equal(mlx_array_data_float32(y), data);
  assert_ptr_equal(mlx_array_data_float32(x), data);
  assert_true(data[3] == 1 && mlx_array_data_float32(y)[3] == 7);
  mlx_array_free(x), mlx_array_free(y), mlx_array_free(v);
}

/* A view shares the memory: writing it would change the view. */
static void an_update_of_what_a_view_looks_at_leaves_the_view_alone(void** state) {
  (void)state;
  mlx_array x = solid(1, LENGTH), view = mlx_array_new(), v = floats((float[]){7}, 1);
  assert_int_equal(mlx_array_eval(x), 0);
  assert_int_equal(mlx_slice(&view, x, &(int){0}, 1, &(int){8}, 1, &(int){2}, 1, cpu()), 0);
  assert_int_equal(mlx_array_eval(view), 0);
  assert_int_equal(put(&x, x, 2, v), 0);
  assert_int_equal(mlx_array_eval(x), 0);
  assert_true(mlx_array_data_float32(x)[2] == 7);
  assert_true(has_values(view, (float[]){1, 1, 1, 1}, 4));
  mlx_array_free(x), mlx_array_free(view), mlx_array_free(v);
}

static int write_step(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array x = input(in, 0), v = input(in, 1), y = mlx_array_new();
  int rc = put(&y, x, 5, v);
  if (!rc) rc = mlx_vector_array_append_value(*res, y);
  mlx_array_free(x), mlx_array_free(v), mlx_array_free(y);
  return rc;
}

/* y = step(x, v); the caller's handle to x is dropped before y is evaluated, or not. */
static void apply_step(mlx_array* y, mlx_closure c, mlx_array x, float value, bool drop) {
  mlx_array v = floats(&value, 1);
  mlx_vector_array in = mlx_vector_array_new_data((mlx_array[]){x, v}, 2);
  mlx_vector_array out = mlx_vector_array_new();
  assert_int_equal(mlx_closure_apply(&out, c, in), 0);
  assert_int_equal(mlx_vector_array_get(y, out, 0), 0);
  mlx_vector_array_free(in), mlx_vector_array_free(out);
  mlx_array_free(v);
  if (drop) mlx_array_free(x);
  assert_int_equal(mlx_array_eval(*y), 0);
}

static void a_compiled_step_updates_in_place_what_was_given_up(void** state) {
  (void)state;
  mlx_closure f = mlx_closure_new_func(write_step), c = mlx_closure_new();
  assert_int_equal(mlx_compile(&c, f, false), 0);
  mlx_array x = solid(1, LENGTH);
  assert_int_equal(mlx_array_eval(x), 0);
  const float* data = mlx_array_data_float32(x);
  for (int i = 0; i < 10; i++) {
    mlx_array y = mlx_array_new();
    apply_step(&y, c, x, (float)i, true);
    x = y;
    assert_ptr_equal(mlx_array_data_float32(x), data);
    assert_true(data[5] == (float)i && data[6] == 1);
  }
  mlx_array y = mlx_array_new();
  apply_step(&y, c, x, 99, false);
  assert_ptr_not_equal(mlx_array_data_float32(y), data);
  assert_true(data[5] == 9 && mlx_array_data_float32(y)[5] == 99);
  mlx_array_free(x), mlx_array_free(y);
  mlx_closure_free(f), mlx_closure_free(c);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_compiled_function_of_many_outputs_leaves_nothing_behind),
      TEST(a_deep_chain_is_evaluated_and_freed),
      TEST(a_deep_chain_of_splits_is_evaluated_and_freed),
      TEST(constants_of_one_function_cost_the_same_however_many_there_are),
      TEST(compiled_functions_cost_the_same_however_many_there_were),
      TEST(compiled_functions_that_are_freed_leave_nothing_behind),
      TEST(compile_time_grows_with_the_graph_and_not_faster),
      TEST(the_cache_keeps_to_its_limit),
      TEST(counts_of_memory_are_exact),
      TEST(passing_the_memory_limit_is_an_error_and_no_more),
      TEST(an_update_of_what_nobody_else_holds_happens_in_place),
      TEST(an_update_of_what_another_handle_holds_leaves_it_alone),
      TEST(an_update_of_what_a_view_looks_at_leaves_the_view_alone),
      TEST(a_compiled_step_updates_in_place_what_was_given_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
