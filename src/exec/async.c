/* Evaluation in a library thread: a queue of root sets, served in order by one thread.
 *
 * The queue's lock is never held while evaluating. A forked child starts with an empty queue and no
 * thread: what was queued is simply still lazy there (a fork waits for the evaluation in progress). */
#include <pthread.h>
#include <signal.h>

#include "base/err.h"
#include "base/mem.h"
#include "exec/eval.h"

struct job {
  struct job* next;
  int n;
  struct array* roots[];
};

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct job *first, *last;
  uint64_t queued, done;
  bool has_thread;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void lock_queue(void) { pthread_mutex_lock(&queue.lock); }
static void unlock_queue(void) { pthread_mutex_unlock(&queue.lock); }

static void reset_in_child(void) {
  queue.changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  queue.first = queue.last = NULL;
  queue.done = queue.queued;
  queue.has_thread = false;
  unlock_queue();
}

static void guard_fork(void) { pthread_atfork(lock_queue, unlock_queue, reset_in_child); }

static void finish_job(struct job* j) {
  for (int i = 0; i < j->n; i++) rpi_array_release(j->roots[i]);
  rpi_free(j);
}

/* Errors are dropped here: the arrays stay lazy, and whoever reads them meets the error. */
static void* serve(void* unused) {
  (void)unused;
  lock_queue();
  for (;;) {
    while (!queue.first) pthread_cond_wait(&queue.changed, &queue.lock);
    struct job* j = queue.first;
    queue.first = j->next;
    if (!queue.first) queue.last = NULL;
    unlock_queue();
    (void)rpi_eval(j->roots, j->n);
    finish_job(j);
    lock_queue();
    queue.done++;
    pthread_cond_broadcast(&queue.changed);
  }
  return NULL;
}

/* Under the lock. Hosts handle signals: the thread blocks them all. */
static bool start_thread(void) {
  if (queue.has_thread) return true;
  sigset_t all, old;
  pthread_attr_t attr;
  pthread_t thread;
  sigfillset(&all);
  pthread_attr_init(&attr);
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attr, 512 << 10);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  queue.has_thread = pthread_create(&thread, &attr, serve, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attr);
  return queue.has_thread;
}

int rpi_eval_async(struct array* const* roots, int n) {
  pthread_once(&once, guard_fork);
  for (int i = 0; i < n; i++) /* a tracer fails now, where the mistake is */
    if (roots[i]->is_tracer && !rpi_array_is_ready(roots[i])) return rpi_eval(roots, n);
  struct job* j = rpi_alloc(sizeof *j + sizeof(struct array*) * (size_t)n);
  if (!j) return rpi_eval(roots, n);
  j->next = NULL;
  j->n = n;
  for (int i = 0; i < n; i++) j->roots[i] = rpi_array_retain(roots[i]);
  lock_queue();
  bool started = start_thread();
  if (started) {
    *(queue.last ? &queue.last->next : &queue.first) = j;
    queue.last = j;
    queue.queued++;
    pthread_cond_broadcast(&queue.changed);
  }
  unlock_queue();
  if (started) return 0;
  finish_job(j);
  return rpi_eval(roots, n);
}

void rpi_eval_wait(void) {
  pthread_once(&once, guard_fork);
  lock_queue();
  uint64_t target = queue.queued;
  while (queue.done < target) pthread_cond_wait(&queue.changed, &queue.lock);
  unlock_queue();
}
