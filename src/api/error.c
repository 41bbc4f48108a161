/* error.h: how failures are reported to the host.
 *
 * Invariants:
 * 1. A handler is counted: the thread that calls it holds a reference, so that replacing it
 *    meanwhile takes its data away only when the last call has returned. Its destructor runs once.
 * 2. No lock is held while a handler or a destructor runs.
 * 3. A handler may fail in functions of its own; those failures are reported as well, a few levels
 *    deep, and the thread's last error is afterwards the one of the call that failed first. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "api/call.h"
#include "base/err.h"
#include "base/mem.h"

enum { MAX_DEPTH = 4 };

struct handler {
  _Atomic(int) refs;
  mlx_error_handler_func func;
  void* data;
  void (*dtor)(void*);
};

static struct {
  struct lock lock;
  struct handler* handler; /* NULL is the default */
} current;

static _Thread_local int depth;

static void release_handler(struct handler* h) {
  if (!h || atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) != 1) return;
  if (h->dtor) h->dtor(h->data);
  rpi_free(h);
}

static void lock_current(void) { rpi_lock(&current.lock); }
static void unlock_current(void) { rpi_unlock(&current.lock); }

RPI_CONSTRUCTOR static void guard_fork(void) {
  pthread_atfork(lock_current, unlock_current, unlock_current);
}

static struct handler* get_handler(void) {
  rpi_lock(&current.lock);
  struct handler* h = current.handler;
  if (h) atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
  rpi_unlock(&current.lock);
  return h;
}

static RPI_NOINLINE void call_handler(void) {
  struct rpi_error e;
  struct handler* h = get_handler();
  rpi_error_save(&e); /* the handler may raise errors of its own */
  if (h)
    h->func(e.text, h->data);
  else
    fprintf(stderr, "reprise: %s\n", e.text);
  release_handler(h);
  rpi_error_restore(&e);
}

int rpi_report(int rc) {
  if (!rc) return 0;
  if (depth < MAX_DEPTH) {
    depth++;
    call_handler();
    depth--;
  }
  return 1;
}

static struct handler* new_handler(mlx_error_handler_func func, void* data, void (*dtor)(void*)) {
  struct handler* h = rpi_alloc(sizeof *h);
  if (!h) return NULL;
  *h = (struct handler){.func = func, .data = data, .dtor = dtor};
  atomic_init(&h->refs, 1);
  return h;
}

/* Without memory the old handler stays, is told, and the new data is destroyed. */
void mlx_set_error_handler(mlx_error_handler_func handler, void* data, void (*dtor)(void*)) {
  struct handler* h = handler ? new_handler(handler, data, dtor) : NULL;
  if (!h && dtor) dtor(data); /* the default handler has no use for it */
  if (!h && handler) {
    rpi_report(rpi_fail_memory("an error handler", sizeof *h));
    return;
  }
  rpi_lock(&current.lock);
  struct handler* old = current.handler;
  current.handler = h;
  rpi_unlock(&current.lock);
  release_handler(old);
}

void _mlx_error(const char* file, const int line, const char* fmt, ...) {
  char text[RPI_ERROR_TEXT];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  rpi_report(rpi_fail(RP_ERR_CALLBACK, "%s at %s:%d", text, file ? file : "?", line));
}
