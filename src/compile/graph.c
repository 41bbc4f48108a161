/* From arrays and nodes to numbers. */
#include "compile/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "op/op.h"

static int out_of_memory(void) { return rpi_fail_memory("a graph", 0); }

static int reach_array(struct walk* w, struct array* a) {
  if (a->mark == w->mark) {
    a->uses++;
    return 0;
  }
  a->mark = w->mark;
  a->uses = 1;
  if (!rpi_array_is_ready(a) && a->node) return rpi_vec_push(&w->stack, a);
  if (a->state == RPI_LOST)
    w->lost = a;
  else if (!rpi_array_is_ready(a))
    w->stray = a;
  a->slot = (int)w->leaves.n;
  return rpi_vec_push(&w->leaves, a);
}

static int reach_node(struct walk* w, struct node* n) {
  if (n->mark == w->mark) return 0;
  n->mark = w->mark;
  if (n->state == RPI_NODE_CLAIMED) {
    w->claimed = n;
    return 0;
  }
  for (int i = 0; i < n->nin; i++)
    if (reach_array(w, n->in[i])) return 1;
  return rpi_vec_push(&w->nodes, n);
}

static int by_creation(const void* a, const void* b) {
  uint64_t x = (*(struct node* const*)a)->seq, y = (*(struct node* const*)b)->seq;
  return x < y ? -1 : x > y;
}

/* A walk from the end of a chain finds it backwards: turning that round is most of the sorting there is. */
static void sort_nodes(struct walk* w) {
  struct node** at = w->nodes.at;
  int64_t n = w->nodes.n;
  for (int64_t i = 0; i < n / 2; i++) {
    struct node* last = at[n - 1 - i];
    at[n - 1 - i] = at[i];
    at[i] = last;
  }
  for (int64_t i = 1; i < n; i++)
    if (at[i - 1]->seq > at[i]->seq) {
      qsort(at, (size_t)n, sizeof *at, by_creation);
      return;
    }
}

/* Leaves are numbered as they are found, node outputs after the last leaf. */
static void number_outputs(struct walk* w) {
  int next = (int)w->leaves.n;
  for (int64_t k = 0; k < w->nodes.n; k++) {
    struct node* n = w->nodes.at[k];
    for (int i = 0; i < n->nout; i++, next++)
      if (n->out[i]) n->out[i]->slot = next;
  }
}

int rpi_walk_run(struct walk* w, struct array* const* first, int nfirst, struct array* const* roots,
                 int nroots) {
  memset(w, 0, sizeof *w);
  w->mark = rpi_graph_mark();
  for (int i = 0; i < nfirst; i++) {
    first[i]->mark = w->mark;
    first[i]->uses = 0;
    first[i]->slot = i;
    if (rpi_vec_push(&w->leaves, first[i])) return out_of_memory();
  }
  for (int i = 0; i < nroots; i++) {
    if (reach_array(w, roots[i])) return out_of_memory();
    roots[i]->uses--; /* a root is not a use by a node */
  }
  while (w->stack.n && !w->claimed) {
    struct array* a = w->stack.at[--w->stack.n];
    if (reach_node(w, a->node)) return out_of_memory();
  }
  sort_nodes(w);
  number_outputs(w);
  return 0;
}

void rpi_walk_free(struct walk* w) {
  rpi_vec_free(&w->nodes);
  rpi_vec_free(&w->leaves);
  rpi_vec_free(&w->stack);
}

static void write_value(struct gvalue* v, const struct array* a, bool own) {
  v->dtype = a->dtype;
  v->ndim = a->ndim;
  v->shape = own ? NULL : a->shape;
}

static uint64_t common_extents(const struct array* a, const int* shape, int ndim) {
  uint64_t axes = 0;
  for (int i = 1; i <= a->ndim && i <= ndim; i++)
    if (a->shape[a->ndim - i] > 1 && a->shape[a->ndim - i] == shape[ndim - i])
      axes |= 1ull << (i - 1);
  return axes;
}

static uint64_t axes_met(const struct node* n) {
  uint64_t axes = 0;
  if (n->op == RPI_OP_broadcast_to) {
    int shape[RPI_MAX_NDIM];
    for (int i = 0; i < n->nattr; i++) shape[i] = (int)n->attr[i];
    return n->in[0]->is_tracer ? common_extents(n->in[0], shape, n->nattr) : 0;
  }
  if (rpi_ops[n->op].kind != RPI_ELEM) return 0;
  for (int i = 0; i < n->nin; i++)
    for (int k = 0; k < n->nin && n->in[i]->is_tracer; k++)
      if (!n->in[k]->is_tracer) axes |= common_extents(n->in[i], n->in[k]->shape, n->in[k]->ndim);
  return axes;
}

/* One node: its inputs by number, its attributes by copy or by reference. */
static void write_node(struct graph* g, struct gnode* gn, const struct node* n, int out, int* in,
                       int64_t* attr) {
  *gn = (struct gnode){.op = n->op, .nin = n->nin, .nout = n->nout, .nattr = n->nattr, .out = out,
                       .in = in, .attr = n->attr, .payload = n->payload};
  if (attr && n->nattr) {
    memcpy(attr, n->attr, (size_t)n->nattr * sizeof *attr);
    gn->attr = attr;
  }
  if (attr) gn->met = axes_met(n);
  for (int i = 0; i < n->nin; i++) in[i] = n->in[i]->slot;
  for (int i = 0; i < n->nout; i++)
    if (n->out[i]) write_value(&g->value[out + i], n->out[i], attr != NULL);
}

int rpi_graph_from_walk(struct graph* g, struct walk* w, bool own) {
  memset(g, 0, sizeof *g);
  size_t nin = 0, nattr = 0, nout = 0;
  for (int64_t k = 0; k < w->nodes.n; k++) {
    nin += (size_t)w->nodes.at[k]->nin;
    nout += (size_t)w->nodes.at[k]->nout;
    nattr += own ? (size_t)w->nodes.at[k]->nattr : 0;
  }
  g->nleaves = (int)w->leaves.n;
  g->nnodes = (int)w->nodes.n;
  g->nvalues = g->nleaves + (int)nout;
  g->value = rpi_arena_alloc(&g->mem, sizeof *g->value * (size_t)g->nvalues);
  g->node = rpi_arena_alloc(&g->mem, sizeof *g->node * (size_t)g->nnodes);
  int* in = rpi_arena_alloc(&g->mem, sizeof *in * nin);
  int64_t* attr = own ? rpi_arena_alloc(&g->mem, sizeof *attr * (nattr + 1)) : NULL;
  if (!g->value || !g->node || !in || (own && !attr)) return out_of_memory();
  for (int i = 0; i < g->nleaves; i++) write_value(&g->value[i], w->leaves.at[i], own);
  int out = g->nleaves;
  for (int k = 0; k < g->nnodes; k++) {
    const struct node* n = w->nodes.at[k];
    write_node(g, &g->node[k], n, out, in, attr);
    out += n->nout;
    in += n->nin;
    if (own) attr += n->nattr;
  }
  return 0;
}

void rpi_graph_release(struct graph* g) { rpi_arena_release(&g->mem); }
