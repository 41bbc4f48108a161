/* The work-claiming pool.
 *
 *   ticket   | generation (40 bits) | chunks nobody has claimed yet (24 bits) |
 *
 * Invariants:
 * 1. Whoever lowers `ticket` by one owns chunk `count - unclaimed`. The word says by itself that
 *    nothing is left, so a worker never needs the job's fields to decide that.
 * 2. The job's fields are written only while the pool is held and nothing of the last job is
 *    unclaimed or running. A claim that succeeds proves that the ticket's job was still open, hence
 *    that the fields read just before belong to it; those read before a failed claim are dropped.
 * 3. `running` counts chunks that have not finished. The holder leaves when it is 0.
 * 4. A worker parks only after announcing itself in `parked` and looking at the ticket once more;
 *    the holder looks at `parked` after writing the ticket. One of them sees the other.
 * 5. Workers never touch memory of the caller after their chunk has finished: only this file's.
 *
 * A fork inside a chunk leaves a child that may only exec or exit. */
#define _GNU_SOURCE
#include "base/thread.h"

#include <errno.h>
#include <fenv.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/err.h"
#include "reprise/runtime.h"

enum { MAX_THREADS = 256, SPIN_NS = 20000, STACK_BYTES = 256 * 1024, COUNT_BITS = 24 };
#define COUNT_MASK (((uint64_t)1 << COUNT_BITS) - 1)

typedef void (*chunk_fn)(void* ctx, int64_t i);

static struct {
  /* Written by the holder for each job; read by everybody. */
  _Alignas(128) _Atomic(chunk_fn) fn;
  _Atomic(void*) ctx;
  _Atomic(int64_t) first; /* index of the ticket's first chunk */
  _Atomic(uint32_t) count;
  _Alignas(128) _Atomic(uint64_t) ticket;
  _Alignas(128) _Atomic(uint32_t) running; /* also the futex the holder sleeps on */
  _Atomic(uint32_t) holder_sleeps;
  _Alignas(128) _Atomic(uint32_t) bell; /* futex of parked workers */
  _Atomic(int) parked;
  _Atomic(int) workers; /* alive and not on their way out */
  _Alignas(128) _Atomic(bool) held;
  _Atomic(bool) start_failed; /* no more attempts until the setting changes */
  _Atomic(int) setting;       /* threads asked for; 0: the default */
  _Atomic(int) by_default;    /* 0: not known yet */
} pool;

static _Thread_local bool is_inside; /* running a chunk, or holding the pool */

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void futex_wait(_Atomic(uint32_t)* word, uint32_t seen) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(_Atomic(uint32_t)* word, int waiters) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters, NULL, NULL, 0);
}

/* Claim and run one chunk; false when the ticket has none left. */
static bool run_one(void) {
  uint64_t ticket = atomic_load_explicit(&pool.ticket, memory_order_acquire);

  while (ticket & COUNT_MASK) {
    chunk_fn fn = atomic_load_explicit(&pool.fn, memory_order_relaxed);
    void* ctx = atomic_load_explicit(&pool.ctx, memory_order_relaxed);
    int64_t first = atomic_load_explicit(&pool.first, memory_order_relaxed);
    uint32_t count = atomic_load_explicit(&pool.count, memory_order_relaxed);

    if (!atomic_compare_exchange_weak_explicit(&pool.ticket, &ticket, ticket - 1,
                                               memory_order_acq_rel, memory_order_acquire))
      continue;
    fn(ctx, first + (int64_t)(count - (uint32_t)(ticket & COUNT_MASK)));
    if (atomic_fetch_sub(&pool.running, 1) == 1 && atomic_load(&pool.holder_sleeps))
      futex_wake(&pool.running, 1);
    return true;
  }
  return false;
}

/* Whether this worker is one too many; if so it has left the count. */
static bool leave_if_surplus(void) {
  int n = atomic_load_explicit(&pool.workers, memory_order_relaxed);
  while (n > rpi_threads() - 1)
    if (atomic_compare_exchange_weak(&pool.workers, &n, n - 1)) return true;
  return false;
}

static bool has_work(void) { return atomic_load(&pool.ticket) & COUNT_MASK; }

static bool spin_for_work(void) {
  int64_t end = now_ns() + SPIN_NS;
  do {
    for (int i = 0; i < 32; i++) {
      if (has_work()) return true;
      relax();
    }
  } while (now_ns() < end);
  return false;
}

static void park(void) {
  atomic_fetch_add(&pool.parked, 1);
  uint32_t seen = atomic_load(&pool.bell);
  /* A setting changed since the last look rang the bell before `seen` was read, or will. */
  if (!has_work() && atomic_load(&pool.workers) <= rpi_threads() - 1) futex_wait(&pool.bell, seen);
  atomic_fetch_sub(&pool.parked, 1);
}

static void* work(void* unused) {
  is_inside = true;
  /* Chunks round the same way on every thread, whatever the creating thread had set. */
  fesetenv(FE_DFL_ENV);
  pthread_setname_np(pthread_self(), "reprise");
  while (!leave_if_surplus()) {
    if (run_one()) continue;
    if (!spin_for_work()) park();
  }
  return NULL;
}

/* The child of a fork has no workers and nobody holds the pool. */
static void reset_in_child(void) {
  atomic_store(&pool.ticket, 0);
  atomic_store(&pool.running, 0);
  atomic_store(&pool.holder_sleeps, 0);
  atomic_store(&pool.parked, 0);
  atomic_store(&pool.workers, 0);
  atomic_store(&pool.start_failed, false);
  atomic_store(&pool.held, false);
}

RPI_CONSTRUCTOR static void watch_forks(void) { pthread_atfork(NULL, NULL, reset_in_child); }

static bool start_worker(void) {
  pthread_attr_t attr;
  pthread_t thread;
  sigset_t all, before;

  if (pthread_attr_init(&attr)) return false;
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attr, STACK_BYTES);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited: workers take no signal */
  bool ok = !pthread_create(&thread, &attr, work, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  return ok;
}

/* Too few threads are no error: the caller does what nobody else does. */
static void start_workers(int want) {
  while (atomic_load(&pool.workers) < want && !atomic_load(&pool.start_failed)) {
    atomic_fetch_add(&pool.workers, 1);
    if (start_worker()) continue;
    atomic_fetch_sub(&pool.workers, 1);
    atomic_store(&pool.start_failed, true);
  }
}

static void wait_for_running(void) {
  int64_t end = 0;

  while (atomic_load_explicit(&pool.running, memory_order_acquire)) {
    relax();
    if (!end) end = now_ns() + SPIN_NS;
    if (now_ns() < end) continue;
    uint32_t n;
    atomic_store(&pool.holder_sleeps, 1);
    while ((n = atomic_load(&pool.running))) futex_wait(&pool.running, n);
    atomic_store(&pool.holder_sleeps, 0);
  }
}

/* Wake as many parked workers as there is work for beyond those that are awake. Both counts may be
 * out of date, which costs speed at most. */
static void wake_workers(uint32_t useful) {
  int parked = atomic_load(&pool.parked);
  if (!parked) return;

  int awake = atomic_load_explicit(&pool.workers, memory_order_relaxed) - parked;
  int wake = useful < MAX_THREADS ? (int)useful - awake : MAX_THREADS;
  if (wake <= 0) return;
  atomic_fetch_add(&pool.bell, 1);
  futex_wake(&pool.bell, wake);
}

static void run_job(uint32_t count, int64_t first, chunk_fn fn, void* ctx) {
  uint64_t last = atomic_load_explicit(&pool.ticket, memory_order_relaxed);

  atomic_store_explicit(&pool.fn, fn, memory_order_relaxed);
  atomic_store_explicit(&pool.ctx, ctx, memory_order_relaxed);
  atomic_store_explicit(&pool.first, first, memory_order_relaxed);
  atomic_store_explicit(&pool.count, count, memory_order_relaxed);
  atomic_store_explicit(&pool.running, count, memory_order_relaxed);
  atomic_store(&pool.ticket, ((last >> COUNT_BITS) + 1) << COUNT_BITS | count);

  wake_workers(count - 1);
  while (run_one()) continue;
  wait_for_running();
}

void rpi_parallel(int64_t chunks, void (*fn)(void* ctx, int64_t i), void* ctx) {
  int threads = chunks > 1 && !is_inside ? rpi_threads() : 1;

  if (threads == 1 || atomic_exchange_explicit(&pool.held, true, memory_order_acquire)) {
    for (int64_t i = 0; i < chunks; i++) fn(ctx, i);
    return;
  }
  is_inside = true;
  start_workers(threads - 1);
  for (int64_t i = 0; i < chunks; i += (int64_t)COUNT_MASK) {
    int64_t n = chunks - i;
    run_job((uint32_t)(n < (int64_t)COUNT_MASK ? n : (int64_t)COUNT_MASK), i, fn, ctx);
  }
  is_inside = false;
  atomic_store_explicit(&pool.held, false, memory_order_release);
}

static int count_allowed_cpus(void) {
  enum { CPUS = 8192 }; /* the kernel's own limit */
  unsigned long mask[CPUS / CHAR_BIT / sizeof(unsigned long)] = {0};
  int n = 0;

  if (sched_getaffinity(0, sizeof mask, (cpu_set_t*)mask)) return 1;
  for (size_t i = 0; i < RPI_COUNT_OF(mask); i++) n += __builtin_popcountl(mask[i]);
  return n;
}

static int find_default(void) {
  const char* text = getenv("REPRISE_THREADS");
  char* end = NULL;
  long n = text ? strtol(text, &end, 10) : 0;

  if (!text || end == text || *end || n < 1) n = count_allowed_cpus(); /* not a count: ignored */
  return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (int)n;
}

int rpi_threads(void) {
  int n = atomic_load_explicit(&pool.setting, memory_order_relaxed);
  if (n) return n;
  n = atomic_load_explicit(&pool.by_default, memory_order_relaxed);
  if (RPI_LIKELY(n)) return n;
  int found = find_default();
  /* Of two threads that race here the first one's answer stays. */
  return atomic_compare_exchange_strong(&pool.by_default, &n, found) ? found : n;
}

int rpi_set_threads(int threads) {
  if (threads < 0 || threads > MAX_THREADS)
    return rpi_fail(RP_ERR_ARGUMENT, "[set_num_threads] %d threads: expected 0 to %d.", threads,
                    MAX_THREADS);
  atomic_store(&pool.setting, threads);
  atomic_store(&pool.start_failed, false);
  atomic_fetch_add(&pool.bell, 1);
  futex_wake(&pool.bell, INT_MAX); /* parked workers that are now too many leave */
  return 0;
}

int rp_set_num_threads(int threads) { return rpi_set_threads(threads); }

int rp_get_num_threads(void) { return rpi_threads(); }
