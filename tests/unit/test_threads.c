/* Handles, evaluation and compiled functions used from many threads at once. Run under ThreadSanitizer
 * as well (make SAN=thread test-threads). */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mlx/c/mlx.h"
#include "reprise/stats.h"

enum { THREADS = 4, ROUNDS = 300 };

static void ignore(const char* msg, void* data) { (void)msg, (void)data; }

static int setup(void** state) {
  (void)state;
  mlx_set_error_handler(ignore, NULL, NULL);
  return 0;
}

static mlx_array floats(const float* at, int n) { return mlx_array_new_data(at, &n, 1, MLX_FLOAT32); }

/* cmocka's asserts belong to the main thread: workers count what went wrong. */
static _Atomic(int) wrong;
static _Atomic(int) waiting;

#define EXPECT(claim) ((claim) ? (void)0 : (void)wrong++)

static void run_threads(void* (*fun)(void*), void* arg) {
  pthread_t t[THREADS];
  wrong = 0;
  waiting = THREADS;
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, fun, arg), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  assert_int_equal(wrong, 0);
}

/* All threads go on together. */
static void meet(_Atomic(int)* counter) {
  (*counter)--;
  while (*counter > 0) sched_yield();
}

static mlx_array lazy_chain(mlx_array x, mlx_stream s) {
  mlx_array y = mlx_array_new(), one = mlx_array_new_float(1);
  mlx_array_set(&y, x);
  for (int i = 0; i < 20; i++) mlx_add(&y, y, one, s);
  mlx_array_free(one);
  return y;
}

static void* eval_shared(void* p) {
  mlx_array* shared = p;
  meet(&waiting);
  EXPECT(mlx_array_eval(*shared) == 0);
  const float* v = mlx_array_data_float32(*shared);
  EXPECT(v && v[0] == 21 && v[1] == 22);
  return NULL;
}

static void threads_may_evaluate_the_same_handle(void** state) {
  (void)state;
  mlx_stream s = mlx_default_cpu_stream_new();
  for (int round = 0; round < ROUNDS; round++) {
    mlx_array x = floats((float[]){1, 2}, 2), y = lazy_chain(x, s);
    run_threads(eval_shared, &y);
    mlx_array_free(x), mlx_array_free(y);
  }
  mlx_stream_free(s);
}

/* Each thread builds on a shared lazy prefix and evaluates its own end of it. */
static void* eval_branch(void* p) {
  mlx_array* shared = p;
  mlx_stream s = mlx_default_cpu_stream_new();
  meet(&waiting);
  mlx_array y = lazy_chain(*shared, s);
  const float* v = mlx_array_data_float32(y);
  EXPECT(v && v[0] == 41);
  mlx_array_free(y);
  mlx_stream_free(s);
  return NULL;
}

static void threads_may_share_parts_of_a_graph(void** state) {
  (void)state;
  mlx_stream s = mlx_default_cpu_stream_new();
  for (int round = 0; round < ROUNDS; round++) {
    mlx_array x = floats((float[]){1, 2}, 2), y = lazy_chain(x, s);
    run_threads(eval_branch, &y);
    mlx_array_free(x), mlx_array_free(y);
  }
  mlx_stream_free(s);
}

static void* set_and_read(void* p) {
  mlx_array* shared = p;
  mlx_array mine = floats((float[]){1, 2}, 2);
  for (int i = 0; i < ROUNDS; i++) {
    mlx_array copy = mlx_array_new();
    EXPECT(mlx_array_set(shared, mine) == 0);
    EXPECT(mlx_array_set(&copy, *shared) == 0);
    EXPECT(mlx_array_data_float32(copy)[1] == 2);
    mlx_array_free(copy);
  }
  mlx_array_free(mine);
  return NULL;
}

static void a_handle_may_be_set_while_another_thread_reads_it(void** state) {
  (void)state;
  mlx_array shared = floats((float[]){1, 2}, 2);
  run_threads(set_and_read, &shared);
  mlx_array_free(shared);
}

static void* append(void* p) {
  mlx_vector_array* v = p;
  mlx_array mine = floats((float[]){1}, 1);
  for (int i = 0; i < ROUNDS; i++) EXPECT(mlx_vector_array_append_value(*v, mine) == 0);
  mlx_array_free(mine);
  return NULL;
}

static void threads_may_append_to_one_vector(void** state) {
  (void)state;
  mlx_vector_array v = mlx_vector_array_new();
  run_threads(append, &v);
  assert_int_equal(mlx_vector_array_size(v), THREADS * ROUNDS);
  mlx_vector_array_free(v);
}

static _Atomic(int) calls;

/* 2x + 1 */
static int double_plus_one(mlx_vector_array* res, const mlx_vector_array in) {
  calls++;
  mlx_stream s = mlx_default_cpu_stream_new();
  mlx_array x = mlx_array_new(), two = mlx_array_new_float(2), one = mlx_array_new_float(1);
  mlx_vector_array_get(&x, in, 0);
  mlx_multiply(&x, x, two, s);
  mlx_add(&x, x, one, s);
  int rc = mlx_vector_array_set_value(res, x);
  mlx_array_free(x), mlx_array_free(two), mlx_array_free(one);
  mlx_stream_free(s);
  return rc;
}

static void check_apply(mlx_closure c) {
  mlx_array x = floats((float[]){1, 2}, 2), y = mlx_array_new();
  mlx_vector_array in = mlx_vector_array_new_value(x), out = mlx_vector_array_new();
  EXPECT(mlx_closure_apply(&out, c, in) == 0);
  EXPECT(mlx_vector_array_get(&y, out, 0) == 0);
  const float* v = mlx_array_data_float32(y);
  EXPECT(v && v[0] == 3 && v[1] == 5);
  mlx_array_free(x), mlx_array_free(y);
  mlx_vector_array_free(in), mlx_vector_array_free(out);
}

static void* compile_and_apply(void* p) {
  (void)p;
  mlx_closure f = mlx_closure_new_func(double_plus_one);
  for (int i = 0; i < ROUNDS; i++) {
    mlx_closure c = mlx_closure_new();
    EXPECT(mlx_compile(&c, f, i % 2) == 0);
    check_apply(c);
    mlx_closure_free(c);
  }
  mlx_closure_free(f);
  return NULL;
}

static void threads_may_compile_and_trace_at_once(void** state) {
  (void)state;
  run_threads(compile_and_apply, NULL);
}

static void* apply_shared(void* p) {
  meet(&waiting);
  for (int i = 0; i < ROUNDS; i++) check_apply(*(mlx_closure*)p);
  return NULL;
}

static void one_compiled_closure_serves_all_threads_with_one_trace(void** state) {
  (void)state;
  mlx_closure f = mlx_closure_new_func(double_plus_one), c = mlx_closure_new();
  calls = 0;
  assert_int_equal(mlx_compile(&c, f, false), 0);
  wrong = 0;
  check_apply(c);
  run_threads(apply_shared, &c);
  assert_int_equal(calls, 1);
  rp_closure_stats s;
  assert_int_equal(rp_closure_get_stats(&s, c), 0);
  assert_int_equal(s.traces, 1);
  assert_int_equal(s.replays, THREADS * ROUNDS + 1);
  mlx_closure_free(f), mlx_closure_free(c);
}

/* ---- tracing in one thread, evaluating in another -------------------------------------------- */

static _Atomic(int) inside, go_on;

static int pause_inside(mlx_vector_array* res, const mlx_vector_array in) {
  inside = 1;
  while (!go_on) sched_yield();
  return double_plus_one(res, in);
}

static void* trace_paused(void* p) {
  (void)p;
  mlx_closure f = mlx_closure_new_func(pause_inside), c = mlx_closure_new();
  EXPECT(mlx_compile(&c, f, false) == 0);
  check_apply(c);
  mlx_closure_free(f), mlx_closure_free(c);
  return NULL;
}

static void a_trace_in_one_thread_does_not_disturb_another(void** state) {
  (void)state;
  pthread_t t;
  mlx_stream s = mlx_default_cpu_stream_new();
  wrong = inside = go_on = 0;
  assert_int_equal(pthread_create(&t, NULL, trace_paused, NULL), 0);
  while (!inside) sched_yield();
  mlx_array one = mlx_array_new_float(1), two = mlx_array_new();
  float v = 0;
  assert_int_equal(mlx_add(&two, one, one, s), 0);
  assert_int_equal(mlx_array_item_float32(&v, two), 0);
  assert_true(v == 2);
  go_on = 1;
  pthread_join(t, NULL);
  assert_int_equal(wrong, 0);
  mlx_array_free(one), mlx_array_free(two);
  mlx_stream_free(s);
}

/* ---- a host that serves callbacks from another thread ---------------------------------------- */

struct request {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int state; /* 0 idle, 1 asked, 2 answered, 3 quit */
  mlx_vector_array* res;
  mlx_vector_array in;
};

static int ask_host(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  struct request* r = payload;
  pthread_mutex_lock(&r->lock);
  r->res = res;
  r->in = in;
  r->state = 1;
  pthread_cond_broadcast(&r->changed);
  while (r->state != 2) pthread_cond_wait(&r->changed, &r->lock);
  r->state = 0;
  pthread_mutex_unlock(&r->lock);
  return 0;
}

/* y = 0.1 * ones(10,10); ten times y = 0.1 * ones @ y, built here for the thread that traces. */
static void build_products(mlx_vector_array* res, mlx_vector_array in) {
  mlx_stream s = mlx_default_cpu_stream_new();
  mlx_array y = mlx_array_new(), w = mlx_array_new();
  mlx_vector_array_get(&w, in, 0);
  mlx_array_set(&y, w);
  for (int i = 0; i < 10; i++) mlx_matmul(&y, w, y, s);
  mlx_vector_array_set_value(res, y);
  mlx_array_free(y), mlx_array_free(w);
  mlx_stream_free(s);
}

static void* serve_host(void* p) {
  struct request* r = p;
  pthread_mutex_lock(&r->lock);
  while (r->state != 3) {
    if (r->state == 1) {
      build_products(r->res, r->in);
      r->state = 2;
      pthread_cond_broadcast(&r->changed);
    }
    if (r->state != 3) pthread_cond_wait(&r->changed, &r->lock);
  }
  pthread_mutex_unlock(&r->lock);
  return NULL;
}

static void a_callback_may_be_served_by_another_thread(void** state) {
  (void)state;
  struct request r = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  pthread_t host;
  float data[100];
  for (int i = 0; i < 100; i++) data[i] = 0.1f;
  assert_int_equal(pthread_create(&host, NULL, serve_host, &r), 0);
  mlx_closure f = mlx_closure_new_func_payload(ask_host, &r, NULL), c = mlx_closure_new();
  assert_int_equal(mlx_compile(&c, f, false), 0);
  mlx_array w = mlx_array_new_data(data, (int[]){10, 10}, 2, MLX_FLOAT32), y = mlx_array_new();
  mlx_vector_array in = mlx_vector_array_new_value(w), out = mlx_vector_array_new();
  assert_int_equal(mlx_closure_apply(&out, c, in), 0);
  mlx_vector_array_get(&y, out, 0);
  const float* v = mlx_array_data_float32(y);
  for (int i = 0; i < 100; i++) assert_float_equal(v[i], 0.1f, 1e-5f);
  pthread_mutex_lock(&r.lock);
  r.state = 3;
  pthread_cond_broadcast(&r.changed);
  pthread_mutex_unlock(&r.lock);
  pthread_join(host, NULL);
  mlx_array_free(w), mlx_array_free(y);
  mlx_vector_array_free(in), mlx_vector_array_free(out);
  mlx_closure_free(f), mlx_closure_free(c);
}

static void* async_chain(void* p) {
  mlx_stream s = mlx_default_cpu_stream_new();
  (void)p;
  for (int i = 0; i < ROUNDS; i++) {
    mlx_array x = floats((float[]){1, 2}, 2), y = lazy_chain(x, s);
    mlx_vector_array v = mlx_vector_array_new_value(y);
    EXPECT(mlx_async_eval(v) == 0);
    if (i % 3 == 0) EXPECT(mlx_synchronize(s) == 0);
    EXPECT(mlx_array_data_float32(y)[0] == 21);
    mlx_vector_array_free(v);
    mlx_array_free(x), mlx_array_free(y);
  }
  mlx_stream_free(s);
  return NULL;
}

static void asynchronous_evaluation_gives_the_same_values(void** state) {
  (void)state;
  run_threads(async_chain, NULL);
}

static void* use_stream_of_another(void* p) {
  mlx_array two = mlx_array_new_float(2), three = mlx_array_new_float(3), y = mlx_array_new();
  float v = 0;
  EXPECT(mlx_add(&y, two, three, *(mlx_stream*)p) == 0);
  EXPECT(mlx_array_item_float32(&v, y) == 0 && v == 5);
  mlx_array_free(two), mlx_array_free(three), mlx_array_free(y);
  return NULL;
}

static void a_stream_made_on_one_thread_works_on_every_other(void** state) {
  (void)state;
  mlx_stream s = mlx_default_gpu_stream_new();
  run_threads(use_stream_of_another, &s);
  mlx_stream_free(s);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(threads_may_evaluate_the_same_handle),
      TEST(threads_may_share_parts_of_a_graph),
      TEST(a_handle_may_be_set_while_another_thread_reads_it),
      TEST(threads_may_append_to_one_vector),
      TEST(threads_may_compile_and_trace_at_once),
      TEST(one_compiled_closure_serves_all_threads_with_one_trace),
      TEST(a_trace_in_one_thread_does_not_disturb_another),
      TEST(a_callback_may_be_served_by_another_thread),
      TEST(asynchronous_evaluation_gives_the_same_values),
      TEST(a_stream_made_on_one_thread_works_on_every_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
