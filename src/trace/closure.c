/* Closures and the per-thread depth of tracing. */
#include "trace/closure.h"

#include "base/err.h"
#include "base/mem.h"

static _Atomic(uint64_t) last_id;
static _Thread_local int depth;

void rpi_closure_init(struct closure* c, void (*destroy)(struct payload*),
                      int (*call)(struct closure*, struct results*, struct array* const*,
                                  int64_t)) {
  atomic_store_explicit(&c->base.refs, 1, memory_order_relaxed);
  c->base.destroy = destroy;
  c->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
  c->call = call;
}

int rpi_results_new(struct results* r, int64_t n) {
  struct array** at = rpi_calloc((size_t)n + 1, sizeof *at);
  if (!at) return rpi_fail_memory("the results of a call", sizeof *at * (size_t)n);
  r->at = at;
  r->n = n;
  return 0;
}

void rpi_results_free(struct results* r) {
  for (int64_t i = 0; i < r->n; i++) rpi_array_release(r->at[i]);
  rpi_free(r->at);
  r->at = NULL;
  r->n = 0;
}

int rpi_trace_depth(void) { return depth; }
void rpi_trace_enter(void) { depth++; }
void rpi_trace_leave(void) { depth--; }
