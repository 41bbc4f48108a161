/* Fusion: element-wise nodes of one shape that feed each other become one instruction.
 *
 * Invariants:
 * 1. All members of a group have the same output shape, so nothing is computed twice.
 * 2. A group runs where its last member stands. A node joins a group only while nothing outside has read
 *    from it, so every reader comes after that point.
 * 3. Groups are bounded, so that a group's block buffers stay in the L1 cache. */
#include <string.h>

#include "base/err.h"
#include "compile/planner.h"

enum { MAX_STEPS = 48 };

int rpi_plan_find(struct planner* pl, int node) {
  while (pl->group[node].parent != node) {
    pl->group[node].parent = pl->group[pl->group[node].parent].parent;
    node = pl->group[node].parent;
  }
  return node;
}

static bool is_elementwise(const struct planner* pl, int node) {
  return node >= 0 && rpi_ops[pl->g->node[node].op].kind == RPI_ELEM;
}

static const struct view* shape_of(const struct planner* pl, int node) {
  return &pl->value[pl->g->node[node].out].view;
}

static bool may_join(struct planner* pl, int node, int root) {
  const struct pgroup* group = &pl->group[root];
  const struct view *a = shape_of(pl, node), *b = shape_of(pl, root);
  int own = rpi_plan_find(pl, node);
  return pl->options->fuse && !group->is_sealed && own != root &&
         group->nsteps + pl->group[own].nsteps <= MAX_STEPS &&
         rpi_shape_equal(a->shape, a->ndim, b->shape, b->ndim);
}

static void unite(struct planner* pl, int a, int b) {
  pl->group[b].parent = a;
  pl->group[a].nsteps += pl->group[b].nsteps;
}

static void group_node(struct planner* pl, int k) {
  const struct gnode* n = &pl->g->node[k];
  bool elementwise = is_elementwise(pl, k);
  pl->group[k] = (struct pgroup){.parent = k, .nsteps = 1, .first = -1, .tail = -1};
  for (int i = 0; i < n->nin; i++) {
    int m = pl->value[n->in[i]].producer;
    if (!is_elementwise(pl, m)) continue;
    int root = rpi_plan_find(pl, m);
    if (elementwise && may_join(pl, k, root))
      unite(pl, rpi_plan_find(pl, k), root);
    else if (!elementwise || rpi_plan_find(pl, k) != root)
      pl->group[root].is_sealed = true;
  }
}

/* A value is needed if a node outside its group reads it (outputs were marked before). */
static void mark_needed(struct planner* pl, int k) {
  const struct gnode* n = &pl->g->node[k];
  int own = is_elementwise(pl, k) ? rpi_plan_find(pl, k) : -1;
  for (int i = 0; i < n->nin; i++) {
    struct pvalue* v = &pl->value[n->in[i]];
    if (is_elementwise(pl, v->producer) && rpi_plan_find(pl, v->producer) != own)
      v->is_needed = true;
  }
}

void rpi_plan_group(struct planner* pl) {
  for (int k = 0; k < pl->g->nnodes; k++) group_node(pl, k);
  for (int k = 0; k < pl->g->nnodes; k++) {
    mark_needed(pl, k);
    if (!is_elementwise(pl, k)) continue;
    struct pgroup* group = &pl->group[rpi_plan_find(pl, k)];
    pl->next_member[k] = -1;
    if (group->first < 0)
      group->first = k;
    else
      pl->next_member[group->tail] = k;
    group->tail = k;
  }
}

/* What one emission collects: the values read from outside, the steps, the values others need. */
struct gathered {
  int nin, nsteps, nout;
  int* in;  /* value numbers in the graph */
  int* out; /* value numbers in the graph */
  struct elem_step* step;
};

static int allocate(struct planner* pl, struct gathered* x, int root) {
  size_t n = (size_t)pl->group[root].nsteps;
  x->in = rpi_arena_alloc(&pl->scratch, sizeof(int) * n * 3);
  x->out = rpi_arena_alloc(&pl->scratch, sizeof(int) * n);
  x->step = rpi_arena_alloc(&pl->scratch, sizeof *x->step * n);
  return x->in && x->out && x->step ? 0 : rpi_plan_out_of_memory();
}

/* Inputs are numbered first; stamp[v] is the number + 1 while the group is being emitted. */
static void gather_inputs(struct planner* pl, struct gathered* x, int root) {
  for (int k = pl->group[root].first; k >= 0; k = pl->next_member[k]) {
    const struct gnode* n = &pl->g->node[k];
    for (int i = 0; i < n->nin; i++) {
      int v = n->in[i], m = pl->value[v].producer;
      bool inside = is_elementwise(pl, m) && rpi_plan_find(pl, m) == root;
      if (inside || pl->stamp[v]) continue;
      x->in[x->nin++] = v;
      pl->stamp[v] = x->nin;
    }
  }
}

static void gather_steps(struct planner* pl, struct gathered* x, int root) {
  for (int k = pl->group[root].first; k >= 0; k = pl->next_member[k]) {
    const struct gnode* n = &pl->g->node[k];
    struct elem_step* s = &x->step[x->nsteps++];
    *s = (struct elem_step){.op = n->op, .nin = n->nin, .out_dtype = pl->value[n->out].view.dtype,
                            .in_dtype = pl->value[n->in[n->nin - 1]].view.dtype};
    for (int i = 0; i < n->nin; i++) s->in[i] = pl->stamp[n->in[i]] - 1;
    pl->stamp[n->out] = x->nin + x->nsteps;
    if (pl->value[n->out].is_needed) x->out[x->nout++] = n->out;
  }
}

static void clear_stamps(struct planner* pl, const struct gathered* x, int root) {
  for (int i = 0; i < x->nin; i++) pl->stamp[x->in[i]] = 0;
  for (int k = pl->group[root].first; k >= 0; k = pl->next_member[k])
    pl->stamp[pl->g->node[k].out] = 0;
}

/* The view of an outside value stretched to the group's shape with strides of 0. */
static int stretch(struct planner* pl, struct view* out, const struct view* v,
                   const struct view* to) {
  if (rpi_shape_equal(v->shape, v->ndim, to->shape, to->ndim)) {
    *out = *v;
    return 0;
  }
  int64_t* stride = rpi_arena_alloc(&pl->p->mem, sizeof *stride * to->ndim + 1);
  if (!stride) return rpi_plan_out_of_memory();
  int skip = to->ndim - v->ndim;
  for (int i = skip; i < to->ndim; i++)
    stride[i] = v->shape[i - skip] == 1 ? 0 : v->stride[i - skip];
  *out = (struct view){.shape = to->shape, .stride = stride, .size = to->size, .dtype = v->dtype,
                       .ndim = to->ndim};
  out->is_row_major = rpi_is_row_major(stride, to->shape, to->ndim);
  return 0;
}

static int emit(struct planner* pl, const struct gathered* x, const struct view* shape, int op) {
  struct instr* in = rpi_plan_instr(pl, op, x->nin, x->nout);
  if (!in) return rpi_error_code();
  int* outs = rpi_arena_alloc(&pl->scratch, sizeof(int) * (size_t)x->nout);
  if (!outs) return rpi_plan_out_of_memory();
  int rc = 0;
  for (int i = 0; i < x->nin && !rc; i++) {
    const struct pvalue* v = &pl->value[x->in[i]];
    rc = stretch(pl, (struct view*)&in->call.in[i], &v->view, shape);
    rpi_plan_operand(in, i, v->storage, v->offset);
  }
  for (int i = 0; i < x->nout && !rc; i++) {
    struct pvalue* v = &pl->value[x->out[i]];
    outs[i] = pl->stamp[x->out[i]] - 1;
    v->storage = rpi_plan_storage(pl, (size_t)v->view.size * rpi_dtype_size(v->view.dtype));
    if (v->storage < 0) rc = rpi_plan_out_of_memory();
    ((struct view*)in->call.out)[i] = v->view;
    rpi_plan_operand(in, x->nin + i, v->storage, 0);
  }
  if (rc) return rc;
  in->run = pl->options->backend->elem_run;
  struct elem_group group = {.ndim = shape->ndim, .shape = shape->shape, .nin = x->nin,
                             .nsteps = x->nsteps, .nout = x->nout, .in = in->call.in,
                             .step = x->step, .out = outs};
  return pl->options->backend->elem_prepare(&in->call.state, &group, &pl->p->mem);
}

int rpi_plan_emit_group(struct planner* pl, int node) {
  int root = rpi_plan_find(pl, node);
  struct gathered x = {0};
  int rc = allocate(pl, &x, root);
  if (rc) return rc;
  gather_inputs(pl, &x, root);
  gather_steps(pl, &x, root);
  pl->p->ngroups++;
  pl->p->nfused += x.nsteps;
  if (x.nout) rc = emit(pl, &x, shape_of(pl, node), pl->g->node[node].op);
  clear_stamps(pl, &x, root);
  return rc;
}
