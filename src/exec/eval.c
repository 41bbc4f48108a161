/* Eager evaluation: claim the graph, plan it with the passes off, run it, hand out the values. */
#include "exec/eval.h"

#include <string.h>

#include "base/err.h"
#include "compile/graph.h"
#include "exec/replay.h"
#include "exec/run.h"

/* One evaluation in progress. */
struct eval {
  struct walk walk;
  int64_t nclaimed; /* nodes of the walk that are ours and retained */
  struct graph g;
  RPI_VEC(struct array*) outputs; /* retained */
  RPI_VEC(int) numbers;           /* their value numbers */
  struct leaf* leaf;
  struct run_leaf* run_leaf;
  struct run_result* result;
};

static int refuse(const struct walk* w, struct array* root) {
  if (w->lost)
    return rpi_fail(RP_ERR_ARGUMENT,
                    "[eval] An input was given up to an operation that failed; its value is gone.");
  const char* op = root->node ? rpi_ops[root->node->op].name : "an input";
  return rpi_fail(RP_ERR_TRACE,
                  "[eval] The result of '%s' depends on input %d of a function that is being traced, "
                  "so it has no value. Return it from the function, or choose with where instead of "
                  "a branch of the host.",
                  op, w->stray->index);
}

/* Under the lock: every living output of the nodes; those somebody else holds become results. */
static int claim_node(struct eval* e, struct node* n) {
  n->state = RPI_NODE_CLAIMED;
  atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
  for (int i = 0; i < n->nout; i++) {
    struct array* a = n->out[i];
    if (!a) continue;
    if (rpi_vec_push(&e->outputs, a)) return rpi_fail_memory("an evaluation", 0);
    if (!rpi_array_retain_alive(a)) {
      e->outputs.n--;
      n->out[i] = NULL;
      continue;
    }
    int uses = a->mark == e->walk.mark ? a->uses : 0;
    if (atomic_load_explicit(&a->refs, memory_order_relaxed) - 1 == uses) {
      e->outputs.n--; /* only nodes of this graph hold it */
      atomic_fetch_sub_explicit(&a->refs, 1, memory_order_relaxed);
    }
  }
  return 0;
}

static int claim(struct eval* e) {
  int rc = 0;
  while (e->nclaimed < e->walk.nodes.n && !rc) rc = claim_node(e, e->walk.nodes.at[e->nclaimed++]);
  if (!rc) rc = rpi_graph_from_walk(&e->g, &e->walk, false);
  for (int64_t i = 0; i < e->outputs.n && !rc; i++)
    if (rpi_vec_push(&e->numbers, e->outputs.at[i]->slot)) rc = rpi_fail_memory("an evaluation", 0);
  e->g.output = e->numbers.at;
  e->g.noutputs = (int)e->numbers.n;
  return rc;
}

/* Leaves as the planner and the runner see them. `uses` is read here, still under the lock. */
static int describe_leaves(struct eval* e) {
  size_t n = (size_t)e->walk.leaves.n;
  e->leaf = rpi_arena_alloc(&e->g.mem, sizeof *e->leaf * n + 1);
  e->run_leaf = rpi_arena_alloc(&e->g.mem, sizeof *e->run_leaf * n + 1);
  e->result = rpi_arena_alloc(&e->g.mem, sizeof *e->result * (size_t)e->outputs.n + 1);
  if (!e->leaf || !e->run_leaf || !e->result) return rpi_fail_memory("an evaluation", 0);
  for (size_t i = 0; i < n; i++) {
    struct array* a = e->walk.leaves.at[i];
    e->leaf[i] = (struct leaf){a->shape, a->stride, a->dtype, a->ndim};
    e->run_leaf[i] = (struct run_leaf){.buf = a->buf, .ptr = rpi_array_ptr(a)};
    e->run_leaf[i].may_take = atomic_load_explicit(&a->refs, memory_order_acquire) == a->uses;
  }
  return 0;
}

static int execute(struct eval* e) {
  struct program* p;
  int rc = rpi_plan(&p, &e->g, e->leaf, rpi_eager_options());
  if (rc) return rc;
  rc = rpi_program_run(p, e->run_leaf, e->result);
  if (!rc) {
    rpi_graph_lock();
    for (int64_t i = 0; i < e->outputs.n; i++) {
      struct array* a = e->outputs.at[i];
      /* Only a count goes down: `claim` holds the node until `finish`. */
      rpi_node_release(rpi_array_settle(a, e->result[i].buf, e->result[i].offset,
                                        p->output[i].view.stride));
    }
    rpi_graph_unlock();
  }
  rpi_payload_release(&p->base);
  return rc;
}

/* Under the lock, after a failure: what was overwritten has no value any more. */
static void mark_lost(struct eval* e) {
  for (int64_t i = 0; e->run_leaf && i < e->walk.leaves.n; i++)
    if (e->run_leaf[i].taken) atomic_store(&e->walk.leaves.at[i]->state, RPI_LOST);
}

/* Let go of the nodes: ended ones are dropped with their inputs, the others are as before. */
static void finish(struct eval* e, int rc) {
  struct walk* w = &e->walk;
  rpi_graph_lock();
  for (int64_t k = 0; k < e->nclaimed && rc; k++) w->nodes.at[k]->state = RPI_NODE_IDLE;
  if (rc) mark_lost(e);
  rpi_graph_leave(); /* wakes who waits for these nodes */
  rpi_graph_unlock();
  for (int64_t i = 0; i < e->outputs.n; i++) rpi_array_release(e->outputs.at[i]);
  for (int64_t k = e->nclaimed - 1; k >= 0; k--) rpi_node_release(w->nodes.at[k]);
}

static void free_eval(struct eval* e) {
  rpi_walk_free(&e->walk);
  rpi_vec_free(&e->outputs);
  rpi_vec_free(&e->numbers);
  rpi_graph_release(&e->g);
}

static bool all_ready(struct array* const* roots, int n) {
  for (int i = 0; i < n; i++)
    if (!rpi_array_is_ready(roots[i])) return false;
  return true;
}

/* Walk until nothing on the way is in another thread's hands. Returns with the lock held if 0. */
static int walk_unclaimed(struct eval* e, struct array* const* roots, int n) {
  rpi_graph_lock();
  rpi_graph_enter();
  for (;;) {
    int rc = rpi_walk_run(&e->walk, NULL, 0, roots, n);
    if (!rc && !e->walk.claimed && (e->walk.stray || e->walk.lost)) rc = refuse(&e->walk, roots[0]);
    if (!rc && !e->walk.claimed) return 0;
    bool wait = !rc;
    if (wait) rpi_graph_wait();
    rpi_walk_free(&e->walk);
    if (!wait) {
      rpi_graph_leave();
      rpi_graph_unlock();
      return rc;
    }
  }
}

int rpi_eval(struct array* const* roots, int n) {
  if (all_ready(roots, n)) return 0;
  struct eval e;
  memset(&e, 0, sizeof e);
  int rc = walk_unclaimed(&e, roots, n);
  if (rc) return rc;
  rc = claim(&e);
  if (!rc) rc = describe_leaves(&e);
  rpi_graph_unlock();
  if (!rc) rc = execute(&e);
  finish(&e, rc);
  free_eval(&e);
  return rc;
}
