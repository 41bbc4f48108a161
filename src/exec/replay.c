/* Compiled functions.
 *
 * Invariants:
 * 1. A trace is published only after it succeeded; a failed one leaves nothing behind.
 * 2. No lock is held while the host's function runs: two threads may trace the same signature at once,
 *    and the first one published serves both.
 * 3. A trace holds the graph and its constants, no nodes. Plans hold the constants too, not the trace.
 * 4. Inside another trace a compiled function is called directly: its operations join the outer trace. */
#include "exec/replay.h"

#include <string.h>

#include "base/err.h"
#include "compile/cache.h"
#include "exec/eval.h"

enum { MAX_TRACES = 1024, MAX_PLANS = 128, MAX_IDS = 4096 };

/* Arrays that a trace captured by value. */
struct constants {
  struct payload base;
  int n;
  struct array* at[];
};

struct trace {
  struct payload base;
  struct graph g;
  int nin;
  bool fuse;
  struct constants* constants;
  struct cache plans;
  struct counters* counters;
};

struct counters {
  struct payload base;
  _Atomic(uint64_t) traces, replays, plans, instructions, fused, arena_bytes;
};

/* Where traces are kept; shared by compiled closures of one id. */
struct table {
  struct payload base;
  struct cache traces;
};

struct compiled {
  struct closure base;
  struct closure* inner;
  struct table* table;
  struct counters* counters;
  bool shapeless;
  size_t nconstants;
  uint64_t constants[]; /* part of every signature */
};

/* What a call node carries: the trace, and the plan that fits if all operands are row-major. */
struct replay {
  struct payload base;
  struct trace* trace;
  struct program* program;
  bool is_row_major;
};

static _Atomic(int) mode = RPI_COMPILE_ENABLED;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct cache tables;

static void lock_tables(void) { pthread_mutex_lock(&tables.lock); }
static void unlock_tables(void) { pthread_mutex_unlock(&tables.lock); }

static void init_tables(void) {
  rpi_cache_init(&tables, MAX_IDS);
  pthread_atfork(lock_tables, unlock_tables, unlock_tables);
}

void rpi_compile_set_mode(int m) { atomic_store(&mode, m); }
int rpi_compile_mode(void) { return atomic_load(&mode); }

static void* retain(void* p) {
  atomic_fetch_add_explicit(&((struct payload*)p)->refs, 1, memory_order_relaxed);
  return p;
}

/* A zeroed counted object, or NULL after raising. */
static void* new_object(size_t bytes, void (*destroy)(struct payload*)) {
  struct payload* p = rpi_calloc(1, bytes);
  if (!p) {
    rpi_fail_memory("a compiled function", bytes);
    return NULL;
  }
  p->refs = 1;
  p->destroy = destroy;
  return p;
}

static void free_object(struct payload* p) { rpi_free(p); }

/* ---- signatures ------------------------------------------------------------------------------ */

enum { KEY_STACK = 1024 };

/* Bytes of a key, on the stack while they are few. */
struct key {
  char* at;
  size_t n, cap;
  char stack[KEY_STACK];
};

static void key_begin(struct key* k) {
  k->at = k->stack;
  k->n = 0;
  k->cap = sizeof k->stack;
}

static void key_free(struct key* k) {
  if (k->at != k->stack) rpi_free(k->at);
}

static int key_add(struct key* k, const void* bytes, size_t n) {
  if (k->n + n > k->cap) {
    char* more = rpi_alloc((k->n + n) * 2);
    if (!more) return rpi_fail_memory("a signature", (k->n + n) * 2);
    memcpy(more, k->at, k->n);
    key_free(k);
    k->at = more;
    k->cap = (k->n + n) * 2;
  }
  if (n) memcpy(k->at + k->n, bytes, n);
  k->n += n;
  return 0;
}

static int sign_inputs(struct key* k, const struct compiled* c, bool shapeless,
                       struct array* const* in, int64_t nin) {
  uint8_t head[2] = {shapeless, (uint8_t)rpi_compile_mode()};
  int rc = key_add(k, head, sizeof head);
  if (!rc) rc = key_add(k, c->constants, sizeof *c->constants * c->nconstants);
  for (int64_t i = 0; i < nin && !rc; i++) {
    uint8_t kind[2] = {in[i]->dtype, in[i]->ndim};
    rc = key_add(k, kind, sizeof kind);
    if (!rc && !shapeless) rc = key_add(k, in[i]->shape, sizeof(int) * in[i]->ndim);
  }
  return rc;
}

/* Shapes, and strides only where they are not the obvious ones. */
static int sign_layout(struct key* k, const struct leaf* leaf, int n, bool* is_row_major) {
  int rc = 0;
  *is_row_major = true;
  for (int i = 0; i < n && !rc; i++) {
    bool dense = rpi_is_row_major(leaf[i].stride, leaf[i].shape, leaf[i].ndim);
    rc = key_add(k, &dense, 1);
    if (!rc) rc = key_add(k, leaf[i].shape, sizeof(int) * leaf[i].ndim);
    if (!rc && !dense) rc = key_add(k, leaf[i].stride, sizeof(int64_t) * leaf[i].ndim);
    *is_row_major &= dense;
  }
  return rc;
}

/* ---- traces ---------------------------------------------------------------------------------- */

static void destroy_constants(struct payload* p) {
  struct constants* c = (struct constants*)p;
  for (int i = 0; i < c->n; i++) rpi_array_release(c->at[i]);
  rpi_free(c);
}

static void destroy_trace(struct payload* p) {
  struct trace* t = (struct trace*)p;
  rpi_cache_free(&t->plans);
  if (t->constants) rpi_payload_release(&t->constants->base);
  if (t->counters) rpi_payload_release(&t->counters->base);
  rpi_graph_release(&t->g);
  rpi_free(t);
}

/* Lazy arrays that the trace reaches but no tracer does: captured by value. Under the lock. */
static int collect_captured(struct results* out, const struct walk* w, const struct results* roots) {
  int64_t n = 0, cap = roots->n;
  for (int64_t k = 0; k < w->nodes.n; k++) cap += w->nodes.at[k]->nin;
  int rc = rpi_results_new(out, cap);
  if (rc) return rc;
  for (int64_t i = 0; i < roots->n; i++)
    if (!rpi_array_is_ready(roots->at[i]) && !roots->at[i]->is_tracer)
      out->at[n++] = rpi_array_retain(roots->at[i]);
  for (int64_t k = 0; k < w->nodes.n; k++) {
    const struct node* node = w->nodes.at[k];
    for (int i = 0; i < node->nin && node->is_tracer; i++)
      if (!rpi_array_is_ready(node->in[i]) && !node->in[i]->is_tracer)
        out->at[n++] = rpi_array_retain(node->in[i]);
  }
  out->n = n;
  return 0;
}

/* Under the lock: check a finished walk and write the trace's graph and constants. */
static int write_trace(struct trace* t, struct walk* w, const struct results* roots) {
  if (w->stray)
    return rpi_fail(RP_ERR_TRACE,
                    "[compile] The function returned something that depends on input %d of another "
                    "trace. Pass it as an input instead.",
                    w->stray->index);
  int rc = rpi_graph_from_walk(&t->g, w, true);
  if (rc) return rc;
  int nconstants = t->g.nleaves - t->nin;
  t->constants = new_object(sizeof *t->constants + sizeof(struct array*) * (size_t)nconstants,
                            destroy_constants);
  t->g.output = rpi_arena_alloc(&t->g.mem, sizeof(int) * (size_t)roots->n + 1);
  if (!t->constants || !t->g.output) return rpi_fail_memory("a trace", 0);
  for (int i = 0; i < nconstants; i++)
    t->constants->at[i] = rpi_array_retain(w->leaves.at[t->nin + i]);
  t->constants->n = nconstants;
  for (int64_t i = 0; i < roots->n; i++) t->g.output[i] = roots->at[i]->slot;
  t->g.noutputs = (int)roots->n;
  return 0;
}

/* From what the function returned to a graph; captured lazy arrays are evaluated first. */
static int capture_graph(struct trace* t, struct array* const* inputs, const struct results* roots) {
  for (;;) {
    struct walk w;
    struct results captured = {0};
    rpi_graph_lock();
    int rc = rpi_walk_run(&w, inputs, t->nin, roots->at, (int)roots->n);
    bool busy = !rc && w.claimed;
    if (!rc && !busy) rc = collect_captured(&captured, &w, roots);
    bool done = !rc && !busy && captured.n == 0;
    if (done) rc = write_trace(t, &w, roots);
    if (busy) rpi_graph_wait();
    rpi_graph_unlock();
    rpi_walk_free(&w);
    if (captured.n) rc = rpi_eval(captured.at, (int)captured.n);
    rpi_results_free(&captured);
    if (rc || done) return rc;
  }
}

static int make_placeholders(struct results* out, struct array* const* in, int64_t nin) {
  int rc = rpi_results_new(out, nin);
  for (int64_t i = 0; i < nin && !rc; i++) {
    out->at[i] = rpi_array_placeholder(in[i]->dtype, in[i]->shape, in[i]->ndim);
    if (!out->at[i]) return rpi_error_code();
    out->at[i]->index = (int)i;
  }
  return rc;
}

static int call_traced(struct compiled* c, struct results* out, const struct results* inputs) {
  rpi_trace_enter();
  int rc = c->inner->call(c->inner, out, inputs->at, inputs->n);
  rpi_trace_leave();
  return rc;
}

static int fill_trace(struct trace* t, struct compiled* c, struct array* const* in, int64_t nin) {
  struct results inputs = {0}, roots = {0};
  t->nin = (int)nin;
  int rc = make_placeholders(&inputs, in, nin);
  if (!rc) rc = call_traced(c, &roots, &inputs);
  if (!rc) rc = capture_graph(t, inputs.at, &roots);
  if (!rc && rpi_compile_mode() != RPI_COMPILE_NO_SIMPLIFY)
    rc = rpi_graph_simplify(&t->g, t->constants->at, t->nin);
  rpi_results_free(&roots);
  rpi_results_free(&inputs);
  return rc;
}

static struct trace* new_trace(struct compiled* c, struct array* const* in, int64_t nin) {
  struct trace* t = new_object(sizeof *t, destroy_trace);
  if (!t) return NULL;
  rpi_cache_init(&t->plans, MAX_PLANS);
  t->counters = retain(c->counters);
  t->fuse = rpi_compile_mode() != RPI_COMPILE_NO_FUSE;
  if (fill_trace(t, c, in, nin) == 0) return t;
  rpi_payload_release(&t->base);
  return NULL;
}

static struct trace* find_trace(struct compiled* c, bool shapeless, struct array* const* in,
                                int64_t nin) {
  struct key k;
  key_begin(&k);
  struct payload* p = NULL;
  if (sign_inputs(&k, c, shapeless, in, nin) == 0) {
    p = rpi_cache_get(&c->table->traces, k.at, k.n);
    if (!p) {
      struct trace* t = new_trace(c, in, nin);
      if (t) {
        c->counters->traces++;
        rpi_cache_put(&c->table->traces, k.at, k.n, &t->base, &p);
        rpi_payload_release(&t->base);
      }
    }
  }
  key_free(&k);
  return (struct trace*)p;
}

/* ---- plans ----------------------------------------------------------------------------------- */

static struct program* make_plan(struct trace* t, const struct leaf* inputs, bool* is_spread) {
  struct plan_options options = {.fuse = t->fuse, .backend = &rpi_cpu, .is_spread = is_spread};
  struct constants* k = t->constants;
  struct leaf* leaf = rpi_alloc(sizeof *leaf * (size_t)(t->nin + k->n) + 1);
  if (!leaf) {
    rpi_fail_memory("a plan", 0);
    return NULL;
  }
  for (int i = 0; i < t->nin; i++) leaf[i] = inputs[i];
  for (int i = 0; i < k->n; i++) {
    const struct array* a = k->at[i];
    leaf[t->nin + i] = (struct leaf){a->shape, a->stride, a->dtype, a->ndim};
  }
  struct program* p = NULL;
  if (rpi_plan(&p, &t->g, leaf, &options) == 0) {
    p->owner = retain(k);
    p->constant = k->at;
    p->nconstants = k->n;
    t->counters->plans++;
    t->counters->instructions = (uint64_t)p->ninstrs;
    t->counters->fused = (uint64_t)(p->nfused - p->ngroups);
    t->counters->arena_bytes = p->arena_bytes;
  }
  rpi_free(leaf);
  return p;
}

/* The plan for these input layouts, with a reference; NULL after raising, or with *is_spread. */
static struct program* find_plan(struct trace* t, const struct leaf* inputs, bool* is_row_major,
                                 bool* is_spread) {
  struct key k;
  key_begin(&k);
  struct payload* p = NULL;
  if (sign_layout(&k, inputs, t->nin, is_row_major) == 0) {
    p = rpi_cache_get(&t->plans, k.at, k.n);
    if (!p) {
      struct program* made = make_plan(t, inputs, is_spread);
      if (made) {
        rpi_cache_put(&t->plans, k.at, k.n, &made->base, &p);
        rpi_payload_release(&made->base);
      }
    }
  }
  key_free(&k);
  return (struct program*)p;
}

static void destroy_replay(struct payload* p) {
  struct replay* r = (struct replay*)p;
  if (r->program) rpi_payload_release(&r->program->base);
  rpi_payload_release(&r->trace->base);
  rpi_free(r);
}

/* When a call is evaluated: the plan chosen when it was built fits if its operands are as expected. */
static int plan_call(struct program** out, struct payload* callee, const struct view* in, int nin) {
  struct replay* r = (struct replay*)callee;
  bool dense = true;
  for (int i = 0; i < nin; i++) dense &= in[i].is_row_major;
  if (dense && r->is_row_major) {
    *out = retain(r->program);
    return 0;
  }
  struct leaf* leaf = rpi_alloc(sizeof *leaf * (size_t)nin + 1);
  if (!leaf) return rpi_fail_memory("a plan", 0);
  for (int i = 0; i < nin; i++)
    leaf[i] = (struct leaf){in[i].shape, in[i].stride, in[i].dtype, in[i].ndim};
  *out = find_plan(r->trace, leaf, &dense, NULL);
  rpi_free(leaf);
  return *out ? 0 : rpi_error_code();
}

const struct plan_options* rpi_eager_options(void) {
  static const struct plan_options options = {.backend = &rpi_cpu, .plan_call = plan_call};
  return &options;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct replay* new_replay(struct trace* t, struct array* const* in, int64_t nin,
                                 bool* is_spread) {
  struct replay* r = new_object(sizeof *r, destroy_replay);
  if (!r) return NULL;
  r->trace = retain(t);
  struct leaf stack[16];
  struct leaf* leaf = nin <= 16 ? stack : rpi_alloc(sizeof *leaf * (size_t)nin);
  if (leaf) {
    for (int64_t i = 0; i < nin; i++)
      leaf[i] = (struct leaf){in[i]->shape, in[i]->stride, in[i]->dtype, in[i]->ndim};
    r->program = find_plan(t, leaf, &r->is_row_major, is_spread);
    if (leaf != stack) rpi_free(leaf);
  } else {
    rpi_fail_memory("a call", 0);
  }
  if (r->program) return r;
  rpi_payload_release(&r->base);
  return NULL;
}

/* One lazy node whose outputs have the shapes of the plan. */
static int build_call(struct trace* t, struct results* out, struct array* const* in, int64_t nin,
                      bool* is_spread) {
  struct replay* r = new_replay(t, in, nin, is_spread);
  if (!r) return *is_spread ? RP_ERR_SHAPE : rpi_error_code();
  const struct program* p = r->program; /* the node keeps it */
  struct results made;
  int rc = rpi_results_new(&made, p->noutputs);
  if (rc) {
    rpi_payload_release(&r->base);
    return rc;
  }
  struct stream s = rpi_default_stream(rpi_default_device());
  struct node* n = rpi_node_new(RPI_OP_call, in, (int)nin, p->noutputs, NULL, 0, &r->base, s);
  for (int i = 0; n && i < p->noutputs && !rc; i++) {
    const struct view* v = &p->output[i].view;
    made.at[i] = rpi_node_output(n, i, v->dtype, v->shape, v->ndim);
    if (!made.at[i]) rc = rpi_error_code();
  }
  if (!n) rc = rpi_error_code();
  rpi_node_release(n);
  if (rc)
    rpi_results_free(&made);
  else
    *out = made;
  return rc;
}

static bool any_tracer(struct array* const* in, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (in[i]->is_tracer) return true;
  return false;
}

static int call_traced_once(struct compiled* c, bool shapeless, struct results* out,
                            struct array* const* in, int64_t nin, bool* is_spread) {
  struct trace* t = find_trace(c, shapeless, in, nin);
  if (!t) return rpi_error_code();
  int rc = build_call(t, out, in, nin, is_spread);
  rpi_payload_release(&t->base);
  return rc;
}

static int call_compiled(struct closure* base, struct results* out, struct array* const* in,
                         int64_t nin) {
  struct compiled* c = (struct compiled*)base;
  if (rpi_compile_mode() == RPI_COMPILE_DISABLED || rpi_trace_depth() > 0 || any_tracer(in, nin))
    return c->inner->call(c->inner, out, in, nin);
  bool is_spread = false;
  atomic_fetch_add_explicit(&c->counters->replays, 1, memory_order_relaxed);
  int rc = call_traced_once(c, c->shapeless, out, in, nin, &is_spread);
  /* Broadcasting would hide that the host has read a size: these shapes get a trace of their own. */
  if (is_spread) rc = call_traced_once(c, false, out, in, nin, &is_spread);
  return rc;
}

/* ---- compiled closures ----------------------------------------------------------------------- */

static void destroy_table(struct payload* p) {
  rpi_cache_free(&((struct table*)p)->traces);
  rpi_free(p);
}

static struct table* new_table(void) {
  struct table* t = new_object(sizeof *t, destroy_table);
  if (t) rpi_cache_init(&t->traces, MAX_TRACES);
  return t;
}

static void destroy_compiled(struct payload* p) {
  struct compiled* c = (struct compiled*)p;
  rpi_closure_release(c->inner);
  if (c->table) rpi_payload_release(&c->table->base);
  if (c->counters) rpi_payload_release(&c->counters->base);
  rpi_free(c);
}

/* Takes the reference to `table`, also on failure. */
static struct closure* new_compiled(struct closure* inner, struct table* table, bool shapeless,
                                    const uint64_t* constants, size_t nconstants) {
  size_t bytes = sizeof(struct compiled) + sizeof *constants * nconstants;
  struct compiled* c = table ? new_object(bytes, destroy_compiled) : NULL;
  if (!c) {
    if (table) rpi_payload_release(&table->base);
    return NULL;
  }
  rpi_closure_init(&c->base, destroy_compiled, call_compiled);
  c->inner = rpi_closure_retain(inner);
  c->table = table;
  c->shapeless = shapeless;
  c->nconstants = nconstants;
  if (nconstants) memcpy(c->constants, constants, sizeof *constants * nconstants);
  c->counters = new_object(sizeof *c->counters, free_object);
  if (c->counters) return &c->base;
  rpi_closure_release(&c->base);
  return NULL;
}

struct closure* rpi_compile(struct closure* inner, bool shapeless) {
  return new_compiled(inner, new_table(), shapeless, NULL, 0);
}

struct closure* rpi_compile_with_id(struct closure* inner, uint64_t id, bool shapeless,
                                    const uint64_t* constants, size_t nconstants) {
  pthread_once(&once, init_tables);
  struct payload* table = rpi_cache_get(&tables, &id, sizeof id);
  if (!table) {
    struct table* fresh = new_table();
    if (!fresh) return NULL;
    rpi_cache_put(&tables, &id, sizeof id, &fresh->base, &table);
    rpi_payload_release(&fresh->base);
  }
  return new_compiled(inner, (struct table*)table, shapeless, constants, nconstants);
}

void rpi_compile_erase(uint64_t id) {
  pthread_once(&once, init_tables);
  struct payload* table = rpi_cache_get(&tables, &id, sizeof id);
  if (!table) return;
  rpi_cache_clear(&((struct table*)table)->traces);
  rpi_cache_remove(&tables, &id, sizeof id);
  rpi_payload_release(table);
}

void rpi_compile_clear(void) {
  pthread_once(&once, init_tables);
  rpi_cache_clear(&tables);
}

bool rpi_compile_stats(const struct closure* base, struct replay_stats* out) {
  if (base->call != call_compiled) return false;
  const struct counters* k = ((const struct compiled*)base)->counters;
  *out = (struct replay_stats){k->traces, k->replays,  k->plans,
                               k->instructions, k->fused, k->arena_bytes};
  return true;
}
