/* A good guest: small stacks, forks, signals, standard output and the locale of the host are
 * respected. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine_help.h"
#include "reprise/runtime.h"

/* Sanitizers need room of their own in every frame. */
enum { SMALL_STACK = UNDER_SANITIZER ? 1 << 20 : 128 << 10, CHILD_SECONDS = 60 };

static void ignore(const char* msg, void* data) { (void)msg, (void)data; }

static int setup(void** state) {
  (void)state;
  mlx_set_error_handler(ignore, NULL, NULL);
  return 0;
}

/* ---- small stacks ---------------------------------------------------------------------------- */

struct task {
  bool (*fun)(void);
  bool good;
};

static void* run_task(void* p) {
  struct task* t = p;
  t->good = t->fun();
  return NULL;
}

/* cmocka's asserts belong to the main thread: the function says whether all was well. */
static void on_small_stack(bool (*fun)(void)) {
  struct task t = {.fun = fun};
  pthread_attr_t attr;
  pthread_t thread;
  pthread_attr_init(&attr);
  assert_int_equal(pthread_attr_setstacksize(&attr, SMALL_STACK), 0);
  assert_int_equal(pthread_create(&thread, &attr, run_task, &t), 0);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attr);
  assert_true(t.good);
}

static bool evaluate_long_chain(void) {
  mlx_array x = floats((float[]){1, 2}, 2), y = plus_ones(x, 10000);
  bool good = has_values(y, (float[]){10001, 10002}, 2);
  mlx_array_free(x), mlx_array_free(y);
  return good;
}

static bool free_long_chain(void) {
  mlx_array x = floats((float[]){1, 2}, 2), y = plus_ones(x, 100000);
  mlx_array_free(x), mlx_array_free(y);
  return is_usable();
}

static int add_2000(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array x = input(in, 0), y = plus_ones(x, 2000);
  int rc = mlx_vector_array_append_value(*res, y);
  mlx_array_free(x), mlx_array_free(y);
  return rc;
}

static bool compile_long_function(void) {
  mlx_closure f = mlx_closure_new_func(add_2000), c = mlx_closure_new();
  mlx_array y = mlx_array_new();
  bool good = mlx_compile(&c, f, false) == 0 && apply_one(&y, c, floats((float[]){1, 2}, 2)) == 0 &&
              has_values(y, (float[]){2001, 2002}, 2);
  mlx_closure_free(f), mlx_closure_free(c);
  mlx_array_free(y);
  return good;
}

static bool sort_numbers(void) {
  mlx_array x = mlx_array_new(), y = mlx_array_new();
  bool good = mlx_arange(&x, 5000, 0, -1, MLX_FLOAT32, cpu()) == 0 && mlx_sort(&y, x, cpu()) == 0;
  const float* v = good ? mlx_array_data_float32(y) : NULL;
  for (int i = 0; v && i < 5000; i++) good &= v[i] == (float)(i + 1);
  mlx_array_free(x), mlx_array_free(y);
  return good && v;
}

/* Ones: every element of the product is the inner extent. */
static bool multiply_matrices(void) {
  const int shape[] = {200, 200};
  mlx_array x = mlx_array_new(), y = mlx_array_new();
  bool good = mlx_ones(&x, shape, 2, MLX_FLOAT32, cpu()) == 0 && mlx_matmul(&y, x, x, cpu()) == 0;
  const float* v = good ? mlx_array_data_float32(y) : NULL;
  for (int i = 0; v && i < 200 * 200; i++) good &= v[i] == 200;
  mlx_array_free(x), mlx_array_free(y);
  return good && v;
}

static bool take_softmax(void) {
  mlx_array x = full_of(3, 4096), y = mlx_array_new();
  bool good = mlx_softmax(&y, x, true, cpu()) == 0;
  const float* v = good ? mlx_array_data_float32(y) : NULL;
  for (int i = 0; v && i < 4096; i++) good &= v[i] == 1.0f / 4096;
  mlx_array_free(x), mlx_array_free(y);
  return good && v;
}

/* Row n of the weights is n + 1: four bits hold constant rows exactly. */
static bool multiply_quantized(void) {
  enum { N = 4, K = 64 };
  float rows[N * K], ones[K], want[N] = {64, 128, 192, 256};
  for (int i = 0; i < N * K; i++) rows[i] = (float)(i / K + 1);
  for (int i = 0; i < K; i++) ones[i] = 1;
  const mlx_optional_int group = {64, true}, bits = {4, true};
  mlx_array w = mlx_array_new_data(rows, (int[]){N, K}, 2, MLX_FLOAT32), none = {0};
  mlx_array x = mlx_array_new_data(ones, (int[]){1, K}, 2, MLX_FLOAT32), y = mlx_array_new();
  mlx_vector_array q = mlx_vector_array_new();
  bool good = mlx_quantize(&q, w, group, bits, "affine", none, cpu()) == 0;
  mlx_array codes = input(q, 0), scales = input(q, 1), biases = input(q, 2);
  good = good && mlx_quantized_matmul(&y, x, codes, scales, biases, true, group, bits, "affine",
                                      cpu()) == 0 && is_near(y, want, N);
  mlx_array_free(codes), mlx_array_free(scales), mlx_array_free(biases);
  mlx_array_free(w), mlx_array_free(x), mlx_array_free(y);
  mlx_vector_array_free(q);
  return good;
}

static bool save_and_load(void) {
  char path[] = "/tmp/reprise_guest_XXXXXX";
  int fd = mkstemp(path);
  if (fd < 0) return false;
  close(fd);
  mlx_array x = floats((float[]){1, 2, 3}, 3), y = mlx_array_new();
  mlx_map_string_to_array out = mlx_map_string_to_array_new(), in = mlx_map_string_to_array_new();
  mlx_map_string_to_string meta = mlx_map_string_to_string_new();
  mlx_map_string_to_string text = mlx_map_string_to_string_new();
  mlx_map_string_to_array_insert(out, "x", x);
  bool good = mlx_save_safetensors(path, out, meta) == 0 &&
              mlx_load_safetensors(&in, &text, path, cpu()) == 0 &&
              mlx_map_string_to_array_get(&y, in, "x") == 0 && has_values(y, (float[]){1, 2, 3}, 3);
  mlx_array_free(x), mlx_array_free(y);
  mlx_map_string_to_array_free(out), mlx_map_string_to_array_free(in);
  mlx_map_string_to_string_free(meta), mlx_map_string_to_string_free(text);
  unlink(path);
  return good;
}

static bool meet_an_error(void) {
  mlx_array x = full_of(1, 2), y = full_of(1, 3), z = mlx_array_new();
  bool good = mlx_add(&z, x, y, cpu()) != 0;
  mlx_array_free(x), mlx_array_free(y), mlx_array_free(z);
  return good && is_usable();
}

static bool use_default_handler(void) {
  mlx_set_error_handler(NULL, NULL, NULL);
  bool good = meet_an_error();
  mlx_set_error_handler(ignore, NULL, NULL);
  return good;
}

#define SMALL_STACK_TEST(name, fun)  \
  static void name(void** state) {   \
    (void)state;                     \
    on_small_stack(fun);             \
  }

SMALL_STACK_TEST(a_graph_of_10000_operations_is_evaluated_on_a_small_stack, evaluate_long_chain)
SMALL_STACK_TEST(a_lazy_graph_of_100000_operations_is_freed_on_a_small_stack, free_long_chain)
SMALL_STACK_TEST(a_function_of_2000_operations_is_compiled_on_a_small_stack, compile_long_function)
SMALL_STACK_TEST(sort_runs_on_a_small_stack, sort_numbers)
SMALL_STACK_TEST(matmul_runs_on_a_small_stack, multiply_matrices)
SMALL_STACK_TEST(softmax_runs_on_a_small_stack, take_softmax)
SMALL_STACK_TEST(quantized_matmul_runs_on_a_small_stack, multiply_quantized)
SMALL_STACK_TEST(a_file_is_saved_and_loaded_on_a_small_stack, save_and_load)
SMALL_STACK_TEST(an_error_is_raised_on_a_small_stack, meet_an_error)

/* ---- fork ------------------------------------------------------------------------------------ */

/* Enough elements for work in several threads. */
static bool use_all_threads(void) {
  enum { N = 1 << 20 };
  mlx_array x = full_of(0.5f, N), y = mlx_array_new(), sum = mlx_array_new();
  float v = 0;
  bool good = mlx_multiply(&y, x, x, cpu()) == 0 && mlx_sum(&sum, y, false, cpu()) == 0 &&
              mlx_array_item_float32(&v, sum) == 0 && v == N / 4;
  mlx_array_free(x), mlx_array_free(y), mlx_array_free(sum);
  return good && multiply_matrices();
}

/* Run in a child; true if it came back with success in time. */
static bool in_child(bool (*fun)(void)) {
  pid_t pid = fork();
  if (pid == 0) {
    alarm(CHILD_SECONDS);
    _exit(fun() ? 0 : 1);
  }
  int status = 0;
  return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

/* ThreadSanitizer does not follow threads that are started after a fork. */
static bool skips_forks(void) { return UNDER_TSAN; }

static void a_forked_child_evaluates_after_the_parent_did(void** state) {
  (void)state;
  if (skips_forks()) skip();
  rp_set_num_threads(4);
  assert_true(use_all_threads());
  assert_true(in_child(use_all_threads));
  assert_true(in_child(compile_long_function));
  assert_true(use_all_threads());
  rp_set_num_threads(0);
}

static mlx_array shared_lazy;

static bool read_shared(void) {
  const float* v = mlx_array_data_float32(shared_lazy);
  return v && v[0] == 1001 && v[999] == 1001;
}

/* The parent forks while its library thread is anywhere in its work. Not under a sanitizer: the
 * child may find the lock of the sanitizer's own allocator taken by that thread. */
static void a_forked_child_evaluates_what_was_being_evaluated(void** state) {
  (void)state;
  if (UNDER_SANITIZER) skip();
  for (int round = 0; round < 20; round++) {
    mlx_array x = full_of(1, 1000);
    shared_lazy = plus_ones(x, 1000);
    mlx_vector_array v = mlx_vector_array_new_value(shared_lazy);
    assert_int_equal(mlx_async_eval(v), 0);
    usleep((useconds_t)(round * 100));
    assert_true(in_child(read_shared));
    assert_true(read_shared());
    mlx_array_free(x), mlx_array_free(shared_lazy);
    mlx_vector_array_free(v);
  }
}

static bool evaluate_async(void) {
  mlx_array x = full_of(1, 1000);
  shared_lazy = plus_ones(x, 1000);
  mlx_vector_array v = mlx_vector_array_new_value(shared_lazy);
  bool good = mlx_async_eval(v) == 0 && mlx_synchronize(cpu()) == 0 && read_shared();
  mlx_array_free(x), mlx_array_free(shared_lazy);
  mlx_vector_array_free(v);
  return good;
}

static void a_forked_child_evaluates_asynchronously(void** state) {
  (void)state;
  if (skips_forks()) skip();
  assert_true(evaluate_async());
  assert_true(in_child(evaluate_async));
  assert_true(evaluate_async());
}

static _Atomic(bool) stop_busy;

static void* keep_busy(void* p) {
  bool* good = p;
  while (!stop_busy) *good &= compile_long_function() && evaluate_long_chain();
  return NULL;
}

/* Another thread of the host is in the middle of an evaluation, a trace or an allocation. */
static void a_fork_beside_a_busy_thread_leaves_both_usable(void** state) {
  (void)state;
  if (UNDER_SANITIZER) skip();
  pthread_t thread;
  bool good = true;
  stop_busy = false;
  assert_int_equal(pthread_create(&thread, NULL, keep_busy, &good), 0);
  int failed = 0;
  for (int i = 0; i < 30; i++)
    failed += !in_child(evaluate_async) + !in_child(compile_long_function);
  stop_busy = true;
  pthread_join(thread, NULL);
  assert_int_equal(failed, 0);
  assert_true(good);
}

/* ---- signals, standard output, locale, processes --------------------------------------------- */

static bool do_everything(void) {
  return use_all_threads() && evaluate_async() && compile_long_function() && sort_numbers() &&
         multiply_quantized() && save_and_load() && meet_an_error();
}

/* The bits of a field such as SigBlk in a thread's status; 0 if it is gone meanwhile. */
static uint64_t read_mask(const char* tid, const char* field) {
  char path[300], line[256];
  unsigned long long mask = 0;
  snprintf(path, sizeof path, "/proc/self/task/%s/status", tid);
  FILE* f = fopen(path, "r");
  while (f && fgets(line, sizeof line, f))
    if (strncmp(line, field, strlen(field)) == 0) sscanf(line + strlen(field) + 1, "%llx", &mask);
  if (f) fclose(f);
  return mask;
}

static void threads_of_the_library_block_all_signals(void** state) {
  (void)state;
  if (UNDER_TSAN) skip(); /* it has a thread of its own */
  rp_set_num_threads(4);
  assert_true(do_everything());
  const int sent[] = {SIGINT,  SIGTERM, SIGHUP,  SIGCHLD, SIGALRM,
                      SIGUSR1, SIGUSR2, SIGPROF, SIGPIPE};
  int others = 0;
  DIR* d = opendir("/proc/self/task");
  assert_non_null(d);
  for (struct dirent* e; (e = readdir(d));) {
    if (e->d_name[0] == '.' || atoi(e->d_name) == getpid()) continue;
    uint64_t mask = read_mask(e->d_name, "SigBlk");
    if (!mask) continue;
    others++;
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++)
      assert_true(mask >> (sent[i] - 1) & 1);
  }
  closedir(d);
  assert_true(others >= 3); /* workers and the thread of async evaluation */
  rp_set_num_threads(0);
}

static void read_dispositions(struct sigaction* out) {
  memset(out, 0, sizeof *out * NSIG);
  for (int s = 1; s < NSIG; s++) sigaction(s, NULL, &out[s]);
}

static void signals_and_the_locale_stay_as_they_were(void** state) {
  (void)state;
  static struct sigaction before[NSIG], after[NSIG];
  sigset_t mask_before, mask_after;
  char* locale_before = strdup(setlocale(LC_ALL, NULL));
  pthread_sigmask(SIG_SETMASK, NULL, &mask_before);
  read_dispositions(before);
  assert_true(do_everything());
  read_dispositions(after);
  pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
  for (int s = 1; s < NSIG; s++) {
    assert_ptr_equal(after[s].sa_handler, before[s].sa_handler);
    assert_int_equal(after[s].sa_flags, before[s].sa_flags);
    assert_int_equal(sigismember(&mask_after, s), sigismember(&mask_before, s));
  }
  assert_string_equal(setlocale(LC_ALL, NULL), locale_before);
  free(locale_before);
}

/* In a child whose descriptors 1 and 2 are files: what it wrote there. */
static bool write_to(bool (*fun)(void), off_t* out, off_t* err) {
  FILE *o = tmpfile(), *e = tmpfile();
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(CHILD_SECONDS);
    dup2(fileno(o), 1), dup2(fileno(e), 2);
    bool good = fun();
    fflush(NULL);
    _exit(good ? 0 : 1);
  }
  int status = 1;
  waitpid(pid, &status, 0);
  *out = lseek(fileno(o), 0, SEEK_END);
  *err = lseek(fileno(e), 0, SEEK_END);
  fclose(o), fclose(e);
  return status == 0;
}

static void nothing_is_printed_and_errors_go_to_standard_error(void** state) {
  (void)state;
  if (skips_forks()) skip();
  off_t out, err;
  assert_true(write_to(do_everything, &out, &err));
  assert_int_equal(out, 0);
  assert_int_equal(err, 0); /* the handler of the tests is silent */
  assert_true(write_to(use_default_handler, &out, &err));
  assert_int_equal(out, 0);
  assert_true(err > 0);
}

static int x_sigmoid_x(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array x = input(in, 0), y = mlx_array_new();
  int rc = mlx_sigmoid(&y, x, cpu());
  if (!rc) rc = mlx_multiply(&y, x, y, cpu());
  if (!rc) rc = mlx_vector_array_set_value(res, y);
  mlx_array_free(x), mlx_array_free(y);
  return rc;
}

static _Atomic(int) forks;
static void count_fork(void) { forks++; }

/* No compiler, no PATH, nowhere to write. A process that was started would have become a child of
 * ours, dead or alive, and one made with fork would have been counted. */
static void a_fused_function_needs_no_compiler_and_starts_no_process(void** state) {
  (void)state;
  static bool watched;
  if (!watched) pthread_atfork(count_fork, NULL, NULL);
  watched = true;
  char* path = strdup(getenv("PATH") ? getenv("PATH") : "");
  char* tmp = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
  setenv("PATH", "", 1);
  setenv("TMPDIR", "/nowhere/at/all", 1);
  forks = 0;

  mlx_closure f = mlx_closure_new_func(x_sigmoid_x), c = mlx_closure_new();
  mlx_array y = mlx_array_new();
  assert_int_equal(mlx_compile(&c, f, true), 0);
  assert_int_equal(apply_one(&y, c, floats((float[]){-1, 0, 1, 2}, 4)), 0);
  assert_true(is_near(y, (float[]){-0.2689414f, 0, 0.7310586f, 1.7615942f}, 4));
  assert_int_equal(forks, 0);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
  assert_int_equal(errno, ECHILD);

  mlx_closure_free(f), mlx_closure_free(c);
  mlx_array_free(y);
  setenv("PATH", path, 1);
  tmp ? setenv("TMPDIR", tmp, 1) : unsetenv("TMPDIR");
  free(path), free(tmp);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_graph_of_10000_operations_is_evaluated_on_a_small_stack),
      TEST(a_lazy_graph_of_100000_operations_is_freed_on_a_small_stack),
      TEST(a_function_of_2000_operations_is_compiled_on_a_small_stack),
      TEST(sort_runs_on_a_small_stack),
      TEST(matmul_runs_on_a_small_stack),
      TEST(softmax_runs_on_a_small_stack),
      TEST(quantized_matmul_runs_on_a_small_stack),
      TEST(a_file_is_saved_and_loaded_on_a_small_stack),
      TEST(an_error_is_raised_on_a_small_stack),
      TEST(a_forked_child_evaluates_after_the_parent_did),
      TEST(a_forked_child_evaluates_what_was_being_evaluated),
      TEST(a_forked_child_evaluates_asynchronously),
      TEST(a_fork_beside_a_busy_thread_leaves_both_usable),
      TEST(threads_of_the_library_block_all_signals),
      TEST(signals_and_the_locale_stay_as_they_were),
      TEST(nothing_is_printed_and_errors_go_to_standard_error),
      TEST(a_fused_function_needs_no_compiler_and_starts_no_process),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
