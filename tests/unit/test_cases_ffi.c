/* Callbacks, errors and threads in cases that hosts of other libraries ran into. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine_help.h"
#include "reprise/error.h"
#include "reprise/stats.h"

enum { ROUNDS = UNDER_SANITIZER ? 200 : 1000 };

static char message[1024];

static void remember(const char* text, void* data) {
  strncpy(message, text, sizeof message - 1);
}
static void ignore(const char* text, void* data) {}

static int set_up(void** state) {
  message[0] = 0;
  return mlx_set_error_handler(remember, NULL, NULL), 0;
}

struct host {
  int calls, code; /* code: what the callback returns when an operation has failed, -1: its rc */
};

static mlx_closure compiled(int (*f)(mlx_vector_array*, const mlx_vector_array, void*),
                            struct host* h) {
  mlx_closure plain = mlx_closure_new_func_payload(f, h, NULL), c = mlx_closure_new();
  assert_int_equal(mlx_compile(&c, plain, false), 0);
  mlx_closure_free(plain);
  return c;
}

/* ---- errors of a compiled closure ------------------------------------------------------------ */

/* x + const(3), where x has two elements at the first call. F03, C10 */
static int add_three(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  struct host* h = payload;
  mlx_array x = input(in, 0), k = full_of(1, 3), y = mlx_array_new();
  h->calls++;
  int rc = mlx_add(&y, x, k, cpu());
  if (!rc) rc = mlx_vector_array_set_value(res, y);
  mlx_array_free(x), mlx_array_free(k), mlx_array_free(y);
  return rc && h->code >= 0 ? h->code : rc;
}

static void shapes_that_do_not_fit_inside_a_compiled_closure_are_named(void** state) {
  for (int code = -1; code < 2; code++) { /* 0: the host swallows the error and sets nothing */
    struct host h = {.code = code};
    mlx_closure f = compiled(add_three, &h);
    mlx_array y = mlx_array_new();
    assert_int_not_equal(apply_one(&y, f, full_of(1, 2)), 0);
    assert_null(y.ctx);
    if (code) {
      assert_non_null(strstr(message, "(2)"));
      assert_non_null(strstr(message, "(3)"));
      assert_int_equal(rp_last_error(NULL), RP_ERR_SHAPE);
    }
    assert_true(is_usable());
    assert_int_equal(apply_one(&y, f, full_of(2, 3)), 0);
    assert_true(has_values(y, (float[]){3, 3, 3}, 3));
    assert_int_equal(h.calls, 2);
    mlx_array_free(y);
    mlx_closure_free(f);
  }
}

/* Looks at x + 1 although it is traced, and goes on. */
static int look_and_go_on(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  struct host* h = payload;
  mlx_array x = input(in, 0), one = mlx_array_new_float(1), y = mlx_array_new();
  float v = -7;
  int rc = mlx_add(&y, x, one, cpu());
  if (mlx_array_eval(y)) h->calls++;
  if (mlx_array_item_float32(&v, y)) h->calls++;
  if (!mlx_array_data_float32(y)) h->calls++;
  if (v != -7) h->calls = 99;
  if (!rc) rc = mlx_vector_array_set_value(res, y);
  mlx_array_free(x), mlx_array_free(one), mlx_array_free(y);
  return rc;
}

static void a_trace_goes_on_when_the_host_ignores_that_a_value_cannot_be_read(void** state) {
  struct host h = {0};
  mlx_closure f = compiled(look_and_go_on, &h);
  mlx_array y = mlx_array_new();
  assert_int_equal(apply_one(&y, f, full_of(1, 1)), 0);
  assert_int_equal(h.calls, 3); /* eval, item and data each failed, none has crashed */
  assert_int_equal(rp_last_error(NULL), RP_ERR_TRACE);
  assert_true(has_values(y, (float[]){2}, 1));
  assert_int_equal(apply_one(&y, f, full_of(4, 1)), 0);
  assert_true(has_values(y, (float[]){5}, 1));
  assert_int_equal(h.calls, 3);
  mlx_array_free(y);
  mlx_closure_free(f);
}

static int first_and_sum(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  mlx_array a = input(in, 0), b = input(in, 1), c = mlx_array_new();
  int rc = mlx_add(&c, a, b, cpu());
  if (!rc) rc = mlx_vector_array_set_data(res, (mlx_array[]){a, c, a, b}, 4);
  mlx_array_free(a), mlx_array_free(b), mlx_array_free(c);
  return rc;
}

static void every_output_comes_back_also_repeated_and_unchanged_ones(void** state) { /* C19 */
  mlx_closure f = compiled(first_and_sum, NULL);
  const float want[4][2] = {{1, 2}, {4, 6}, {1, 2}, {3, 4}};
  for (int call = 0; call < 2; call++) {
    mlx_array in[] = {floats((float[]){1, 2}, 2), floats((float[]){3, 4}, 2)};
    mlx_vector_array x = mlx_vector_array_new_data(in, 2), y = mlx_vector_array_new();
    assert_int_equal(mlx_closure_apply(&y, f, x), 0);
    mlx_vector_array_free(x);
    mlx_array_free(in[0]), mlx_array_free(in[1]); /* the outputs hold what they need */
    assert_int_equal(mlx_vector_array_size(y), 4);
    for (size_t i = 0; i < 4; i++) {
      mlx_array out = input(y, i);
      assert_true(has_values(out, want[i], 2));
      mlx_array_free(out);
    }
    mlx_vector_array_free(y);
  }
  mlx_closure_free(f);
}

/* ---- threads --------------------------------------------------------------------------------- */

static _Atomic(int) wrong;
#define EXPECT(claim) ((claim) ? (void)0 : (void)wrong++)

static void run_two(void* (*fun)(void*), void* arg) {
  pthread_t t[2];
  wrong = 0;
  mlx_set_error_handler(ignore, NULL, NULL);
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&t[i], NULL, fun, arg), 0);
  for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
  assert_int_equal(wrong, 0);
}

static int double_plus_one(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  mlx_array x = input(in, 0), two = mlx_array_new_float(2), one = mlx_array_new_float(1);
  int rc = mlx_multiply(&x, x, two, cpu());
  if (!rc) rc = mlx_add(&x, x, one, cpu());
  if (!rc) rc = mlx_vector_array_set_value(res, x);
  mlx_array_free(x), mlx_array_free(two), mlx_array_free(one);
  return rc;
}

static void* compile_apply_erase(void* p) {
  for (int i = 0; i < ROUNDS; i++) {
    mlx_closure c = mlx_closure_new();
    mlx_array y = mlx_array_new();
    EXPECT(mlx_detail_compile(&c, *(mlx_closure*)p, 77, false, NULL, 0) == 0);
    EXPECT(apply_one(&y, c, floats((float[]){1, 2}, 2)) == 0);
    EXPECT(has_values(y, (float[]){3, 5}, 2));
    if (i % 3 == 0) EXPECT(mlx_detail_compile_erase(77) == 0);
    mlx_array_free(y);
    mlx_closure_free(c);
  }
  return NULL;
}

static void two_threads_may_compile_and_erase_the_same_entry(void** state) { /* F07 */
  mlx_closure f = mlx_closure_new_func_payload(double_plus_one, NULL, NULL);
  run_two(compile_apply_erase, &f);
  assert_int_equal(mlx_detail_compile_erase(77), 0);
  mlx_closure_free(f);
}

struct shared {
  mlx_stream stream;
  mlx_array ready;
};

/* Independent graphs over one evaluated array: on the shared stream, one's own, and new ones. */
static void* build_and_read(void* p) {
  struct shared* s = p;
  mlx_stream own = mlx_default_cpu_stream_new();
  mlx_device cpu_device = mlx_device_new_type(MLX_CPU, 0);
  for (int i = 0; i < ROUNDS; i++) {
    mlx_stream fresh = mlx_stream_new_device(cpu_device);
    mlx_stream all[] = {s->stream, own, fresh};
    for (int k = 0; k < 3; k++) {
      mlx_array y = mlx_array_new();
      EXPECT(mlx_add(&y, s->ready, s->ready, all[k]) == 0);
      EXPECT(mlx_multiply(&y, y, s->ready, all[k]) == 0);
      EXPECT(has_values(y, (float[]){2, 8}, 2));
      mlx_array_free(y);
    }
    mlx_stream_free(fresh);
  }
  mlx_device_free(cpu_device);
  mlx_stream_free(own);
  return NULL;
}

static void threads_build_on_one_evaluated_array_over_any_streams(void** state) {
  struct shared s = {mlx_default_cpu_stream_new(), floats((float[]){1, 2}, 2)};
  assert_int_equal(mlx_array_eval(s.ready), 0);
  run_two(build_and_read, &s);
  assert_true(has_values(s.ready, (float[]){1, 2}, 2));
  mlx_array_free(s.ready);
  mlx_stream_free(s.stream);
}

static _Atomic(int) turns;

static int wait_for_the_other(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  turns++;
  for (int i = 0; turns < 2 && i < 10000000; i++) sched_yield();
  EXPECT(turns >= 2); /* both are inside their callbacks: no lock is held across one */
  return double_plus_one(res, in, payload);
}

static void* trace_meeting(void* p) {
  struct host h = {0};
  mlx_closure plain = mlx_closure_new_func_payload(wait_for_the_other, &h, NULL);
  mlx_closure c = mlx_closure_new();
  mlx_array y = mlx_array_new();
  EXPECT(mlx_compile(&c, plain, true) == 0);
  EXPECT(apply_one(&y, c, floats((float[]){1, 2}, 2)) == 0);
  EXPECT(has_values(y, (float[]){3, 5}, 2));
  mlx_array_free(y);
  mlx_closure_free(c), mlx_closure_free(plain);
  return NULL;
}

static void two_threads_are_inside_traces_at_the_same_time(void** state) { /* E06 */
  for (int i = 0; i < 20; i++) {
    turns = 0;
    run_two(trace_meeting, NULL);
  }
}

/* Frees what the other thread made and evaluated, and what it only built. */
static void* free_all(void* p) {
  mlx_array* at = p;
  for (int i = 0; i < 100; i++) mlx_array_free(at[i]);
  return NULL;
}

static void arrays_are_freed_by_another_thread_at_once(void** state) {
  size_t before = active_memory();
  mlx_array at[100], x = full_of(1, 1000);
  pthread_t t;
  assert_int_equal(mlx_array_eval(x), 0);
  for (int i = 0; i < 100; i++) {
    at[i] = plus_ones(x, 3);
    if (i % 2) assert_int_equal(mlx_array_eval(at[i]), 0);
  }
  mlx_array_free(x);
  assert_int_equal(pthread_create(&t, NULL, free_all, at), 0);
  pthread_join(t, NULL);
  assert_int_equal(active_memory(), before);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(shapes_that_do_not_fit_inside_a_compiled_closure_are_named),
      TEST(a_trace_goes_on_when_the_host_ignores_that_a_value_cannot_be_read),
      TEST(every_output_comes_back_also_repeated_and_unchanged_ones),
      TEST(two_threads_may_compile_and_erase_the_same_entry),
      TEST(threads_build_on_one_evaluated_array_over_any_streams),
      TEST(two_threads_are_inside_traces_at_the_same_time),
      TEST(arrays_are_freed_by_another_thread_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
