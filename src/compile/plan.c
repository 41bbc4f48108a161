/* Planning: shapes, then groups, then instructions, then memory. */
#include <limits.h>
#include <string.h>

#include "base/err.h"
#include "compile/planner.h"

int rpi_plan_out_of_memory(void) { return rpi_fail_memory("a plan", 0); }

static void destroy_program(struct payload* base) {
  struct program* p = (struct program*)base;
  for (int i = 0; i < p->ninstrs; i++)
    if (p->instr[i].callee) rpi_payload_release(&p->instr[i].callee->base);
  rpi_payload_release(p->owner);
  struct rpi_arena mem = p->mem;
  rpi_arena_release(&mem);
  rpi_free(p);
}

static void set_view(struct view* v, const int* shape, const int64_t* stride, int ndim, int dtype) {
  *v = (struct view){.shape = shape, .stride = stride, .dtype = (uint8_t)dtype,
                     .ndim = (uint8_t)ndim};
  v->size = rpi_shape_size(shape, ndim);
  v->is_row_major = rpi_is_row_major(stride, shape, ndim);
}

/* Copies of shape and strides that live as long as the program. */
static int keep_view(struct planner* pl, struct view* v, const int* shape, const int64_t* stride,
                     int ndim, int dtype) {
  size_t n = (size_t)ndim;
  int64_t* kept = rpi_arena_alloc(&pl->p->mem, n * (sizeof *kept + sizeof(int)) + 1);
  if (!kept) return rpi_plan_out_of_memory();
  int* kept_shape = (int*)(kept + n);
  if (n) memcpy(kept_shape, shape, n * sizeof *shape);
  if (stride && n)
    memcpy(kept, stride, n * sizeof *stride);
  else
    rpi_row_major(kept, shape, ndim);
  set_view(v, kept_shape, kept, ndim, dtype);
  return 0;
}

static int place_leaves(struct planner* pl, const struct leaf* leaves) {
  for (int i = 0; i < pl->g->nleaves; i++) {
    const struct leaf* l = &leaves[i];
    struct storage s = {.kind = RPI_STORE_INPUT, .input = i, .donor = -1, .same_as = i, .last = -1};
    struct pvalue* v = &pl->value[i];
    int rc = keep_view(pl, &v->view, l->shape, l->stride, l->ndim, l->dtype);
    if (rc) return rc;
    v->producer = -1;
    v->storage = i;
    if (rpi_vec_push(&pl->storage, s)) return rpi_plan_out_of_memory();
  }
  return 0;
}

/* Whether an axis that had a constant's extent in the trace has 1 here, and the result has not. */
static bool is_spread(struct planner* pl, const struct gnode* n) {
  const struct view* y = &pl->value[n->out].view;
  for (int i = 0; i < n->nin; i++) {
    const struct view* x = &pl->value[n->in[i]].view;
    for (int a = 1; a <= x->ndim && a <= y->ndim; a++)
      if (n->met >> (a - 1) & 1 && x->shape[x->ndim - a] == 1 && y->shape[y->ndim - a] != 1)
        return true;
  }
  return false;
}

/* Run a node's rule on the shapes of this plan. */
static int infer_node(struct planner* pl, const struct gnode* n) {
  struct operand stack[8], *in = stack;
  if (n->nin > 8 && !(in = rpi_arena_alloc(&pl->scratch, sizeof *in * (size_t)n->nin)))
    return rpi_plan_out_of_memory();
  for (int i = 0; i < n->nin; i++) {
    const struct view* v = &pl->value[n->in[i]].view;
    in[i] = (struct operand){v->shape, v->ndim, v->dtype};
  }
  struct rule r;
  r.name = NULL;
  r.op = n->op;
  r.nin = n->nin;
  r.in = in;
  r.attr = n->attr;
  r.nattr = n->nattr;
  int rc = rpi_rule_run(&r);
  for (int i = 0; i < n->nout && !rc; i++)
    rc = keep_view(pl, &pl->value[n->out + i].view, r.out[i].shape.dim, NULL, r.out[i].shape.ndim,
                   r.out[i].dtype);
  if (!rc && n->met && pl->options->is_spread && is_spread(pl, n)) {
    *pl->options->is_spread = true;
    return RP_ERR_SHAPE;
  }
  return rc;
}

static bool shapes_known(const struct graph* g, const struct gnode* n) {
  for (int i = 0; i < n->nout; i++)
    if (!g->value[n->out + i].shape) return false;
  return true;
}

/* Row-major views of every node's outputs; view operations and calls replace theirs when emitted. */
static int infer_shapes(struct planner* pl) {
  const struct graph* g = pl->g;
  for (int k = 0; k < g->nnodes; k++) {
    const struct gnode* n = &g->node[k];
    int rc = 0;
    for (int i = 0; i < n->nout; i++) {
      pl->value[n->out + i].producer = k;
      pl->value[n->out + i].storage = -1;
    }
    if (n->op == RPI_OP_call) continue;
    if (!shapes_known(g, n)) {
      rc = infer_node(pl, n);
    } else {
      for (int i = 0; i < n->nout && !rc; i++) {
        const struct gvalue* v = &g->value[n->out + i];
        rc = keep_view(pl, &pl->value[n->out + i].view, v->shape, NULL, v->ndim, v->dtype);
      }
    }
    if (rc) return rc;
  }
  return 0;
}

int rpi_plan_storage(struct planner* pl, size_t bytes) {
  int id = (int)pl->storage.n;
  struct storage s = {.kind = RPI_STORE_ARENA, .donor = -1, .same_as = id, .last = -1,
                      .bytes = bytes};
  if (rpi_vec_push(&pl->storage, s)) {
    rpi_plan_out_of_memory();
    return -1;
  }
  return id;
}

struct instr* rpi_plan_instr(struct planner* pl, int op, int nin, int nout) {
  size_t n = (size_t)(nin + nout);
  struct instr in = {.call = {.name = rpi_ops[op].name, .op = op, .nin = nin, .nout = nout}};
  struct view* views = rpi_arena_alloc(&pl->p->mem, sizeof *views * n + 1);
  size_t* offset = rpi_arena_alloc(&pl->p->mem, (sizeof *offset + sizeof(int)) * n + 1);
  if (!views || !offset || rpi_vec_push(&pl->instr, in)) {
    rpi_plan_out_of_memory();
    return NULL;
  }
  struct instr* made = &pl->instr.at[pl->instr.n - 1];
  made->call.in = views;
  made->call.out = views + nin;
  made->offset = offset;
  made->storage = (int*)(offset + n);
  if (nin + nout > pl->p->widest) pl->p->widest = nin + nout;
  return made;
}

void rpi_plan_operand(struct instr* in, int i, int storage, size_t offset) {
  ((int*)in->storage)[i] = storage;
  ((size_t*)in->offset)[i] = offset;
}

static void place_input(struct instr* in, int i, const struct pvalue* v) {
  ((struct view*)in->call.in)[i] = v->view;
  rpi_plan_operand(in, i, v->storage, v->offset);
}

/* A fresh row-major storage for output i of an instruction. */
static int place_output(struct planner* pl, struct instr* in, int i, struct pvalue* v) {
  int s = rpi_plan_storage(pl, (size_t)v->view.size * rpi_dtype_size(v->view.dtype));
  if (s < 0) return rpi_plan_out_of_memory();
  v->storage = s;
  v->offset = 0;
  ((struct view*)in->call.out)[i] = v->view;
  rpi_plan_operand(in, in->call.nin + i, s, 0);
  return 0;
}

static int keep_attrs(struct planner* pl, struct instr* in, const struct gnode* n) {
  if (!n->nattr) return 0;
  int64_t* attr = rpi_arena_alloc(&pl->p->mem, sizeof *attr * (size_t)n->nattr);
  if (!attr) return rpi_plan_out_of_memory();
  memcpy(attr, n->attr, sizeof *attr * (size_t)n->nattr);
  in->call.attr = attr;
  in->call.nattr = n->nattr;
  return 0;
}

static int emit_kernel(struct planner* pl, const struct gnode* n) {
  struct instr* in = rpi_plan_instr(pl, n->op, n->nin, n->nout);
  if (!in) return rpi_error_code();
  in->run = pl->options->backend->kernel[n->op];
  if (!in->run)
    return rpi_fail(RP_ERR_UNSUPPORTED, "[%s] Not available on %s.", rpi_ops[n->op].name,
                    pl->options->backend->name);
  int rc = keep_attrs(pl, in, n);
  for (int i = 0; i < n->nin; i++) place_input(in, i, &pl->value[n->in[i]]);
  for (int i = 0; i < n->nout && !rc; i++) rc = place_output(pl, in, i, &pl->value[n->out + i]);
  return rc;
}

static int run_pack(const struct call* c) {
  return ((const struct backend*)c->state)->pack(c->dst[0], c->src[0], &c->in[0]);
}

/* A packed copy of a value, as a value of its own. */
static int emit_pack(struct planner* pl, struct pvalue* packed, const struct pvalue* v) {
  struct instr* in = rpi_plan_instr(pl, RPI_OP_contiguous, 1, 1);
  if (!in) return rpi_error_code();
  in->run = run_pack;
  in->call.state = (void*)pl->options->backend;
  place_input(in, 0, v);
  int rc = keep_view(pl, &packed->view, v->view.shape, NULL, v->view.ndim, v->view.dtype);
  return rc ? rc : place_output(pl, in, 0, packed);
}

static int run_view_rule(struct view_rule* r, const struct gnode* n, const struct pvalue* from,
                         const struct shape* shape, int dtype) {
  r->name = rpi_ops[n->op].name;
  r->in = (struct operand){from->view.shape, from->view.ndim, from->view.dtype};
  r->in_stride = from->view.stride;
  r->attr = n->attr;
  r->nattr = n->nattr;
  r->shape = shape;
  r->dtype = dtype;
  r->offset = 0;
  r->needs_copy = false;
  return rpi_ops[n->op].view(r);
}

/* The result lies in its input's memory, or in a packed copy of it. */
static int emit_view(struct planner* pl, const struct gnode* n) {
  struct pvalue* v = &pl->value[n->out];
  struct pvalue from = pl->value[n->in[0]];
  struct shape shape = {.ndim = v->view.ndim};
  memcpy(shape.dim, v->view.shape, sizeof(int) * (size_t)shape.ndim);
  struct view_rule r;
  int rc = run_view_rule(&r, n, &from, &shape, v->view.dtype);
  if (!rc && r.needs_copy) {
    rc = emit_pack(pl, &from, &pl->value[n->in[0]]);
    if (!rc) rc = run_view_rule(&r, n, &from, &shape, v->view.dtype);
  }
  if (rc) return rc;
  v->storage = from.storage;
  v->offset = from.offset + (size_t)(r.offset * (int64_t)rpi_dtype_size(from.view.dtype));
  memcpy((int64_t*)v->view.stride, r.stride, sizeof *r.stride * (size_t)shape.ndim);
  v->view.is_row_major = rpi_is_row_major(r.stride, shape.dim, shape.ndim);
  return 0;
}

/* Operands and results of a call pass as whole buffers. */
static int emit_call(struct planner* pl, const struct gnode* n) {
  struct instr* in = rpi_plan_instr(pl, n->op, n->nin, n->nout);
  if (!in) return rpi_error_code();
  for (int i = 0; i < n->nin; i++) {
    struct pvalue* v = &pl->value[n->in[i]];
    place_input(in, i, v);
    if (pl->storage.at[v->storage].kind == RPI_STORE_ARENA)
      pl->storage.at[v->storage].kind = RPI_STORE_OWN;
  }
  int rc = pl->options->plan_call(&in->callee, n->payload, in->call.in, n->nin);
  for (int i = 0; i < n->nout && !rc; i++) {
    struct pvalue* v = &pl->value[n->out + i];
    const struct view* made = &in->callee->output[i].view;
    rc = keep_view(pl, &v->view, made->shape, made->stride, made->ndim, made->dtype);
    if (!rc) rc = place_output(pl, in, i, v);
    if (rc) break;
    pl->storage.at[v->storage].kind = RPI_STORE_OWN;
    pl->storage.at[v->storage].by_call = true;
  }
  return rc;
}

/* An ALIAS row whose output is its input. */
static bool emit_alias(struct planner* pl, const struct gnode* n) {
  const struct pvalue* from = &pl->value[n->in[0]];
  struct pvalue* to = &pl->value[n->out];
  if (!(rpi_ops[n->op].flags & RPI_ALIAS)) return false;
  if (!rpi_shape_equal(from->view.shape, from->view.ndim, to->view.shape, to->view.ndim)) return false;
  to->view = from->view;
  to->storage = from->storage;
  to->offset = from->offset;
  return true;
}

static int emit_node(struct planner* pl, int k) {
  const struct gnode* n = &pl->g->node[k];
  if (n->op == RPI_OP_call) return emit_call(pl, n);
  if (emit_alias(pl, n)) return 0;
  switch (rpi_ops[n->op].kind) {
    case RPI_VIEW: return emit_view(pl, n);
    case RPI_PRIM: return emit_kernel(pl, n);
    default: {
      const struct pgroup* group = &pl->group[rpi_plan_find(pl, k)];
      return group->tail == k ? rpi_plan_emit_group(pl, k) : 0;
    }
  }
}

static int place_results(struct planner* pl) {
  const struct graph* g = pl->g;
  struct program* p = pl->p;
  p->noutputs = g->noutputs;
  p->output = rpi_arena_alloc(&p->mem, sizeof *p->output * (size_t)g->noutputs + 1);
  if (!p->output) return rpi_plan_out_of_memory();
  for (int i = 0; i < g->noutputs; i++) {
    const struct pvalue* v = &pl->value[g->output[i]];
    p->output[i] = (struct place){.storage = v->storage, .offset = v->offset, .view = v->view};
  }
  return 0;
}

static int prepare(struct planner* pl) {
  const struct graph* g = pl->g;
  pl->value = rpi_arena_alloc(&pl->scratch, sizeof *pl->value * (size_t)g->nvalues + 1);
  pl->group = rpi_arena_alloc(&pl->scratch, sizeof *pl->group * (size_t)g->nnodes + 1);
  pl->next_member = rpi_arena_alloc(&pl->scratch, sizeof(int) * (size_t)g->nnodes + 1);
  pl->stamp = rpi_arena_alloc(&pl->scratch, sizeof(int) * (size_t)g->nvalues + 1);
  if (rpi_vec_reserve(&pl->instr, g->nnodes) || rpi_vec_reserve(&pl->storage, g->nvalues))
    return rpi_plan_out_of_memory();
  if (!pl->value || !pl->group || !pl->next_member || !pl->stamp) return rpi_plan_out_of_memory();
  for (int i = 0; i < g->noutputs; i++) pl->value[g->output[i]].is_needed = true;
  return 0;
}

/* Move instructions and storages from the scratch vectors into the program. */
static int keep_lists(struct planner* pl) {
  struct program* p = pl->p;
  p->nleaves = pl->g->nleaves;
  p->nstorages = (int)pl->storage.n;
  p->storage = rpi_arena_alloc(&p->mem, sizeof *p->storage * (size_t)p->nstorages + 1);
  struct instr* kept = rpi_arena_alloc(&p->mem, sizeof *kept * (size_t)pl->instr.n + 1);
  if (!p->storage || !kept) return rpi_plan_out_of_memory();
  if (p->nstorages) memcpy(p->storage, pl->storage.at, sizeof *p->storage * (size_t)p->nstorages);
  if (pl->instr.n) memcpy(kept, pl->instr.at, sizeof *kept * (size_t)pl->instr.n);
  p->instr = kept;
  p->ninstrs = (int)pl->instr.n;
  return 0;
}

static int plan(struct planner* pl, const struct leaf* leaves) {
  int rc = prepare(pl);
  if (!rc) rc = place_leaves(pl, leaves);
  if (!rc) rc = infer_shapes(pl);
  if (!rc) rpi_plan_group(pl);
  for (int k = 0; k < pl->g->nnodes && !rc; k++) rc = emit_node(pl, k);
  if (!rc) rc = place_results(pl);
  if (!rc) rc = rpi_plan_memory(pl);
  if (!rc) rc = keep_lists(pl);
  return rc;
}

int rpi_plan(struct program** out, const struct graph* g, const struct leaf* leaves,
             const struct plan_options* options) {
  struct planner pl = {.g = g, .options = options};
  pl.p = rpi_calloc(1, sizeof *pl.p);
  if (!pl.p) return rpi_plan_out_of_memory();
  pl.p->base = (struct payload){.refs = 1, .destroy = destroy_program};
  int rc = plan(&pl, leaves);
  if (rc) {
    for (int64_t i = 0; i < pl.instr.n; i++)
      if (pl.instr.at[i].callee) rpi_payload_release(&pl.instr.at[i].callee->base);
    rpi_payload_release(&pl.p->base);
  } else {
    *out = pl.p;
  }
  rpi_vec_free(&pl.storage);
  rpi_vec_free(&pl.instr);
  rpi_arena_release(&pl.scratch);
  return rc;
}
