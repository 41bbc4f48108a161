/* Error handlers: who is called, with what, and when the data goes. */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "mlx/c/mlx.h"
#include "reprise/error.h"

struct log {
  _Atomic(int) calls, destroyed;
  pthread_t thread;
  char text[256];
};

static void record(const char* msg, void* data) {
  struct log* l = data;
  l->thread = pthread_self();
  snprintf(l->text, sizeof l->text, "%s", msg);
  atomic_fetch_add(&l->calls, 1);
}

static void count(const char* msg, void* data) {
  (void)msg;
  atomic_fetch_add(&((struct log*)data)->calls, 1);
}

static void destroy(void* data) { atomic_fetch_add(&((struct log*)data)->destroyed, 1); }

static int put_default_back(void** state) {
  (void)state;
  mlx_set_error_handler(NULL, NULL, NULL);
  return 0;
}

static int break_it(void) {
  int got;
  return mlx_vector_int_get(&got, (mlx_vector_int){0}, 0);
}

static void the_handler_gets_the_message_before_the_call_returns(void** state) {
  struct log l = {0};
  mlx_set_error_handler(record, &l, NULL);
  assert_int_equal(break_it(), 1);
  assert_int_equal(l.calls, 1);
  assert_string_equal(l.text, "[vector_int_get] The list handle is empty.");
  const char* text;
  assert_int_equal(rp_last_error(&text), RP_ERR_ARGUMENT);
  assert_string_equal(text, l.text);
}

static void a_replaced_handler_is_destroyed_once_and_not_called_again(void** state) {
  struct log a = {0}, b = {0};
  mlx_set_error_handler(record, &a, destroy);
  assert_int_equal(a.destroyed, 0);
  mlx_set_error_handler(record, &b, destroy);
  assert_int_equal(a.destroyed, 1);
  break_it();
  assert_int_equal(a.calls, 0);
  assert_int_equal(b.calls, 1);
  mlx_set_error_handler(NULL, NULL, NULL);
  assert_int_equal(a.destroyed, 1);
  assert_int_equal(b.destroyed, 1);
}

static void replace_itself(const char* msg, void* data) {
  struct log* l = data;
  mlx_set_error_handler(record, l, NULL);
  l->calls += 10;
  assert_int_equal(l->destroyed, 0); /* this call still uses it */
}

static void a_handler_may_replace_itself(void** state) {
  struct log l = {0};
  mlx_set_error_handler(replace_itself, &l, destroy);
  break_it();
  assert_int_equal(l.calls, 10);
  assert_int_equal(l.destroyed, 1);
  break_it();
  assert_int_equal(l.calls, 11);
}

static void fail_again(const char* msg, void* data) {
  char before[256];
  snprintf(before, sizeof before, "%s", msg);
  ((struct log*)data)->calls++;
  mlx_device_count(&(int){0}, (mlx_device_type)77);
  assert_string_equal(msg, before);
}

static void a_handler_that_fails_itself_ends_and_leaves_the_first_error(void** state) {
  struct log l = {0};
  const char* text;
  mlx_set_error_handler(fail_again, &l, NULL);
  assert_int_equal(break_it(), 1);
  assert_true(l.calls > 1);
  assert_int_equal(rp_last_error(&text), RP_ERR_ARGUMENT);
  assert_string_equal(text, "[vector_int_get] The list handle is empty.");
}

static void* fail_there(void* thread) {
  break_it();
  *(pthread_t*)thread = pthread_self();
  return NULL;
}

static void the_handler_runs_on_the_thread_that_failed(void** state) {
  struct log l = {0};
  pthread_t t, inside;
  mlx_set_error_handler(record, &l, NULL);
  rp_clear_error();
  pthread_create(&t, NULL, fail_there, &inside);
  pthread_join(t, NULL);
  assert_int_equal(l.calls, 1);
  assert_true(pthread_equal(l.thread, inside));
  assert_int_equal(rp_last_error(NULL), RP_OK); /* of this thread */
}

static void an_error_of_the_host_is_formatted_and_never_a_format(void** state) {
  struct log l = {0};
  mlx_set_error_handler(record, &l, NULL);
  _mlx_error("host.c", 12, "bad %s %d", "%n%s", 3);
  assert_string_equal(l.text, "bad %n%s 3 at host.c:12");
  assert_int_equal(rp_last_error(NULL), RP_ERR_CALLBACK);
}

static void without_memory_the_old_handler_stays_and_is_told(void** state) {
  struct log a = {0}, b = {0};
  mlx_set_error_handler(record, &a, destroy);
  rpi_mem_fail_at(1);
  mlx_set_error_handler(record, &b, destroy);
  assert_true(rpi_mem_fail_at(0));
  assert_int_equal(a.calls, 1);
  assert_int_equal(a.destroyed, 0);
  assert_int_equal(b.destroyed, 1);
  break_it();
  assert_int_equal(a.calls, 2);
}

/* Standard error goes into a pipe meanwhile. */
static void the_default_handler_prints_one_line_and_returns(void** state) {
  int ends[2], saved = dup(2);
  char got[256];
  assert_int_equal(pipe(ends), 0);
  dup2(ends[1], 2);
  int rc = break_it();
  dup2(saved, 2);
  close(saved);
  close(ends[1]);
  ssize_t n = read(ends[0], got, sizeof got - 1);
  close(ends[0]);
  got[n > 0 ? n : 0] = '\0';
  assert_int_equal(rc, 1);
  assert_string_equal(got, "reprise: [vector_int_get] The list handle is empty.\n");
}

enum { THREADS = 3, ROUNDS = 500 };
static struct log many[ROUNDS];
static _Atomic(int) is_over;

static void* keep_failing(void* unused) {
  while (!atomic_load(&is_over)) break_it();
  return unused;
}

static void handlers_may_be_replaced_while_threads_fail(void** state) {
  pthread_t t[THREADS];
  mlx_set_error_handler(count, &many[0], destroy);
  for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, keep_failing, NULL);
  for (int i = 1; i < ROUNDS; i++) mlx_set_error_handler(count, &many[i], destroy);
  atomic_store(&is_over, 1);
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  for (int i = 0; i < ROUNDS - 1; i++) assert_int_equal(many[i].destroyed, 1);
  assert_int_equal(many[ROUNDS - 1].destroyed, 0);
}

int main(void) {
#define TEST(f) cmocka_unit_test_teardown(f, put_default_back)
  const struct CMUnitTest tests[] = {
      TEST(the_handler_gets_the_message_before_the_call_returns),
      TEST(a_replaced_handler_is_destroyed_once_and_not_called_again),
      TEST(a_handler_may_replace_itself),
      TEST(a_handler_that_fails_itself_ends_and_leaves_the_first_error),
      TEST(the_handler_runs_on_the_thread_that_failed),
      TEST(an_error_of_the_host_is_formatted_and_never_a_format),
      TEST(without_memory_the_old_handler_stays_and_is_told),
      TEST(the_default_handler_prints_one_line_and_returns),
      TEST(handlers_may_be_replaced_while_threads_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
