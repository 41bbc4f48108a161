/* Closures: functions from arrays to arrays, counted, callable from any thread.
 *
 * A closure is a small object with one method; functions of the host (src/api), compiled functions
 * (src/exec) and, later, transforms are its kinds. Ids grow and are never reused, so a cache keyed by
 * them cannot confuse two closures that happened to live at one address. */
#ifndef RPI_TRACE_CLOSURE_H
#define RPI_TRACE_CLOSURE_H

#include "core/array.h"

/* What a closure call produced: retained arrays in memory of rpi_alloc. */
struct results {
  struct array** at;
  int64_t n;
};

struct closure {
  struct payload base;
  uint64_t id;
  /* Borrows the inputs. On success fills `out`; on failure raises and leaves it alone. No lock of the
   * library is held when it is called. */
  int (*call)(struct closure* c, struct results* out, struct array* const* in, int64_t nin);
};

void rpi_closure_init(struct closure* c, void (*destroy)(struct payload*),
                      int (*call)(struct closure*, struct results*, struct array* const*, int64_t));
static inline struct closure* rpi_closure_retain(struct closure* c) {
  atomic_fetch_add_explicit(&c->base.refs, 1, memory_order_relaxed);
  return c;
}
static inline void rpi_closure_release(struct closure* c) {
  if (c) rpi_payload_release(&c->base);
}

/* Room for n results, or an error. */
int rpi_results_new(struct results* r, int64_t n);
void rpi_results_free(struct results* r); /* releases the arrays */

/* How many traces are in progress on this thread. */
int rpi_trace_depth(void);
void rpi_trace_enter(void);
void rpi_trace_leave(void);

#endif
