/* The pool: every chunk exactly once, finished before the call returns, whatever happens around it.
 * With the argument `time` it prints what a call costs instead. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/thread.h"
#include "reprise/runtime.h"

enum { N = 1000 };

static void count_chunk(void* ctx, int64_t i) { ((int*)ctx)[i]++; } /* plain on purpose */

static void check_counts(const int* counts, int64_t n, int want) {
  for (int64_t i = 0; i < n; i++)
    if (counts[i] != want) fail_msg("chunk %ld ran %d times, not %d", (long)i, counts[i], want);
}

static void every_chunk_runs_once_for_any_thread_count(void** state) {
  static const int threads[] = {1, 2, 3, 8, 2, 16, 1, 4};
  for (size_t t = 0; t < RPI_COUNT_OF(threads); t++) {
    assert_int_equal(rp_set_num_threads(threads[t]), 0);
    assert_int_equal(rp_get_num_threads(), threads[t]);
    for (int64_t n = 0; n < 70; n++) {
      int counts[70] = {0};
      rpi_parallel(n, count_chunk, counts);
      check_counts(counts, n, 1);
    }
  }
}

/* Two jobs with different functions and contexts, back to back, so that a late worker which mixed
 * them up would write to the wrong place. */
static void add_one(void* ctx, int64_t i) { ((int*)ctx)[i] += 1; }
static void add_thousand(void* ctx, int64_t i) { ((int*)ctx)[i] += 1000; }

static void alternating_jobs_are_never_mixed_up(void** state) {
  int a[7] = {0}, b[3] = {0};
  rpi_set_threads(4);
  for (int round = 0; round < 20000; round++) {
    rpi_parallel(7, add_one, a);
    rpi_parallel(3, add_thousand, b);
  }
  check_counts(a, 7, 20000);
  check_counts(b, 3, 20000 * 1000);
}

static void sleep_a_little(void* ctx, int64_t i) {
  nanosleep(&(struct timespec){.tv_nsec = i == 0 ? 100000 : 2000000}, NULL);
  ((int*)ctx)[i] = 1;
}

static void a_call_waits_for_chunks_that_others_still_run(void** state) {
  rpi_set_threads(4);
  for (int round = 0; round < 20; round++) {
    int done[4] = {0};
    rpi_parallel(4, sleep_a_little, done);
    check_counts(done, 4, 1);
  }
}

static void work_resumes_after_the_workers_have_parked(void** state) {
  rpi_set_threads(3);
  for (int round = 0; round < 50; round++) {
    int counts[32] = {0};
    nanosleep(&(struct timespec){.tv_nsec = round * 20000}, NULL); /* around the time of parking */
    rpi_parallel(32, count_chunk, counts);
    check_counts(counts, 32, 1);
  }
}

static void run_nested(void* ctx, int64_t i) { rpi_parallel(10, count_chunk, (int*)ctx + 10 * i); }

static void a_call_from_inside_a_chunk_runs_inline(void** state) {
  int counts[200] = {0};
  rpi_set_threads(4);
  rpi_parallel(20, run_nested, counts);
  check_counts(counts, 200, 1);
}

static void* call_many_times(void* unused) {
  for (int round = 0; round < 500; round++) {
    int counts[20] = {0};
    rpi_parallel(20, count_chunk, counts);
    for (int i = 0; i < 20; i++)
      if (counts[i] != 1) return "a chunk did not run once";
  }
  return NULL;
}

static void host_threads_may_call_at_the_same_time_and_change_the_setting(void** state) {
  pthread_t host[4];
  for (int t = 0; t < 4; t++) pthread_create(&host[t], NULL, call_many_times, NULL);
  for (int k = 0; k < 200; k++) {
    rpi_set_threads(1 + k % 5);
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
  }
  for (int t = 0; t < 4; t++) {
    void* complaint = NULL;
    pthread_join(host[t], &complaint);
    if (complaint) fail_msg("%s", (char*)complaint);
  }
}

static void read_mask(void* ctx, int64_t i) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  ((int*)ctx)[i] = sigismember(&mask, SIGUSR1) && sigismember(&mask, SIGINT);
  nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
  ((int*)ctx)[i] += 2 * !pthread_equal(pthread_self(), *(pthread_t*)((int*)ctx + 64));
}

static void workers_block_signals_and_the_caller_keeps_its_mask(void** state) {
  _Alignas(16) int seen[64 + 8] = {0};
  pthread_t self = pthread_self();
  int by_workers = 0;

  memcpy(seen + 64, &self, sizeof self);
  rpi_set_threads(4);
  rpi_parallel(64, read_mask, seen);
  for (int i = 0; i < 64; i++) {
    assert_true(seen[i] == 0 || seen[i] == 3); /* caller and open, or worker and blocked */
    by_workers += seen[i] == 3;
  }
  assert_true(by_workers > 0);
}

static int count_tasks(void) {
  char line[256];
  int n = -1;
  FILE* f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f)) sscanf(line, "Threads: %d", &n);
  if (f) fclose(f);
  return n;
}

static void fewer_threads_are_kept_after_shrinking(void** state) {
  int counts[64] = {0};
  rpi_set_threads(1);
  for (int wait = 0; count_tasks() > 1 && wait < 2000; wait++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  int alone = count_tasks();
  rpi_set_threads(6);
  rpi_parallel(64, count_chunk, counts);
  assert_int_equal(count_tasks(), alone + 5);
  rpi_set_threads(2);
  for (int wait = 0; count_tasks() > alone + 1 && wait < 2000; wait++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  assert_int_equal(count_tasks(), alone + 1);
  rpi_parallel(64, count_chunk, counts);
  assert_int_equal(count_tasks(), alone + 1);
  check_counts(counts, 64, 2);
}

static void a_forked_child_computes(void** state) {
#ifdef __SANITIZE_THREAD__
  skip(); /* this sanitizer does not allow threads in a forked child */
#endif
  int counts[64] = {0}, status = -1;
  rpi_set_threads(4);
  rpi_parallel(64, count_chunk, counts);
  pid_t child = fork();
  if (child == 0) {
    alarm(10);
    for (int round = 0; round < 100; round++) rpi_parallel(64, count_chunk, counts);
    for (int i = 0; i < 64; i++)
      if (counts[i] != 101) _exit(1);
    _exit(count_tasks() == 4 ? 0 : 2);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  rpi_parallel(64, count_chunk, counts);
  check_counts(counts, 64, 2);
}

static void bad_counts_are_refused_and_change_nothing(void** state) {
  rpi_set_threads(3);
  assert_int_equal(rp_set_num_threads(-1), RP_ERR_ARGUMENT);
  assert_int_equal(rp_set_num_threads(257), RP_ERR_ARGUMENT);
  assert_int_equal(rp_get_num_threads(), 3);
}

static void the_default_comes_from_the_environment(void** state) {
  assert_int_equal(rp_set_num_threads(0), 0);
  assert_int_equal(rp_get_num_threads(), 5); /* set in main, before the first use */
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void do_nothing(void* ctx, int64_t i) {}

static int spin_rounds;
static void compute_2us(void* ctx, int64_t i) {
  volatile unsigned x = 1;
  for (int k = 0; k < spin_rounds; k++) x = x * 1664525u + 1013904223u;
}

static int compare_doubles(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void time_calls(const char* what, int64_t chunks, void (*fn)(void*, int64_t)) {
  static double t[5001];
  for (int i = 0; i < 1000; i++) rpi_parallel(chunks, fn, NULL);
  for (int i = 0; i < 5001; i++) {
    double start = now_us();
    rpi_parallel(chunks, fn, NULL);
    t[i] = now_us() - start;
  }
  qsort(t, 5001, sizeof *t, compare_doubles);
  printf("%-34s %d threads: median %6.2f us, p10 %6.2f, p90 %6.2f\n", what, rpi_threads(), t[2500],
         t[500], t[4500]);
}

static int print_times(void) {
  spin_rounds = 1000;
  double start = now_us();
  for (int i = 0; i < 1000; i++) compute_2us(NULL, i);
  spin_rounds = (int)(1000 * 2000.0 / (now_us() - start));
  for (int threads = 1; threads <= 4; threads++) {
    rpi_set_threads(threads);
    time_calls("2 empty chunks", 2, do_nothing);
    time_calls("2 chunks of 2 us", 2, compute_2us);
    time_calls("8 chunks of 2 us", 8, compute_2us);
  }
  return 0;
}

int main(int argc, char** argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_default_comes_from_the_environment),
      cmocka_unit_test(every_chunk_runs_once_for_any_thread_count),
      cmocka_unit_test(alternating_jobs_are_never_mixed_up),
      cmocka_unit_test(a_call_waits_for_chunks_that_others_still_run),
      cmocka_unit_test(work_resumes_after_the_workers_have_parked),
      cmocka_unit_test(a_call_from_inside_a_chunk_runs_inline),
      cmocka_unit_test(host_threads_may_call_at_the_same_time_and_change_the_setting),
      cmocka_unit_test(workers_block_signals_and_the_caller_keeps_its_mask),
      cmocka_unit_test(fewer_threads_are_kept_after_shrinking),
      cmocka_unit_test(a_forked_child_computes),
      cmocka_unit_test(bad_counts_are_refused_and_change_nothing),
  };
  if (argc > 1 && !strcmp(argv[1], "time")) return print_times();
  setenv("REPRISE_THREADS", "5", 1);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
