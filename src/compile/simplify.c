/* Simplification: common subexpressions become one, what nothing needs goes.
 *
 * Equal means the same operation, attributes (bits) and inputs; constants of one element are equal by
 * dtype, rank and bits. One pass with a hash table, so the time is linear also where one scalar has tens
 * of thousands of readers. */
#include <string.h>

#include "base/err.h"
#include "compile/graph.h"
#include "op/op.h"

struct merger {
  struct graph* g;
  int* same;  /* value number -> the value that stands for it */
  int* table; /* open addressing: node or leaf index + 1 */
  uint64_t mask;
};

static uint64_t mix(uint64_t h, uint64_t w) {
  h = (h ^ w) * 0xd6e8feb86659fd93u;
  return h ^ (h >> 32);
}

static uint64_t hash_node(const struct merger* m, const struct gnode* n) {
  uint64_t h = mix(0x51ed270b9f3a1d2du, n->op);
  for (int i = 0; i < n->nin; i++) h = mix(h, (uint64_t)m->same[n->in[i]]);
  for (int i = 0; i < n->nattr; i++) h = mix(h, (uint64_t)n->attr[i]);
  return h;
}

static bool equal_nodes(const struct merger* m, const struct gnode* a, const struct gnode* b) {
  if (a->op != b->op || a->nin != b->nin || a->nattr != b->nattr || a->nout != b->nout)
    return false;
  for (int i = 0; i < a->nin; i++)
    if (m->same[a->in[i]] != m->same[b->in[i]]) return false;
  return a->nattr == 0 || memcmp(a->attr, b->attr, sizeof *a->attr * (size_t)a->nattr) == 0;
}

static void merge_node(struct merger* m, int k) {
  const struct gnode* n = &m->g->node[k];
  for (uint64_t at = hash_node(m, n);; at++) {
    int* cell = &m->table[at & m->mask];
    if (!*cell) {
      *cell = k + 1;
      return;
    }
    const struct gnode* twin = &m->g->node[*cell - 1];
    if (!equal_nodes(m, n, twin)) continue;
    for (int i = 0; i < n->nout; i++) m->same[n->out + i] = twin->out + i;
    return;
  }
}

static uint64_t scalar_bits(const struct array* a) {
  uint64_t bits = 0;
  memcpy(&bits, rpi_array_ptr(a), rpi_dtype_size(a->dtype));
  return bits;
}

static void merge_constant(struct merger* m, struct array* const* constant, int nin, int i) {
  const struct array* a = constant[i];
  if (a->size != 1) return;
  uint64_t bits = scalar_bits(a);
  for (uint64_t at = mix(mix(a->dtype, a->ndim), bits);; at++) {
    int* cell = &m->table[at & m->mask];
    if (!*cell) {
      *cell = i + 1;
      return;
    }
    const struct array* b = constant[*cell - 1];
    if (a->dtype != b->dtype || a->ndim != b->ndim || bits != scalar_bits(b)) continue;
    m->same[nin + i] = nin + *cell - 1;
    return;
  }
}

/* Keep the nodes whose outputs something needs, walking from the last to the first. */
static void prune(struct graph* g, const int* same, bool* needed) {
  for (int i = 0; i < g->noutputs; i++) {
    g->output[i] = same[g->output[i]];
    needed[g->output[i]] = true;
  }
  for (int k = g->nnodes - 1; k >= 0; k--) {
    struct gnode* n = &g->node[k];
    bool keep = false;
    for (int i = 0; i < n->nout; i++) keep |= needed[n->out + i];
    for (int i = 0; i < n->nin; i++) {
      ((int*)n->in)[i] = same[n->in[i]];
      needed[n->in[i]] |= keep;
    }
    if (!keep) n->nout = 0; /* marks it for removal below */
  }
  int kept = 0;
  for (int k = 0; k < g->nnodes; k++)
    if (g->node[k].nout) g->node[kept++] = g->node[k];
  g->nnodes = kept;
}

int rpi_graph_simplify(struct graph* g, struct array* const* constant, int nin) {
  struct rpi_arena scratch = {0};
  size_t cells = 16;
  while (cells < 2 * (size_t)(g->nvalues + 1)) cells *= 2;
  struct merger m = {.g = g, .mask = cells - 1};
  m.same = rpi_arena_alloc(&scratch, sizeof(int) * (size_t)g->nvalues + 1);
  m.table = rpi_arena_alloc(&scratch, sizeof(int) * cells);
  bool* needed = rpi_arena_alloc(&scratch, (size_t)g->nvalues + 1);
  int rc = m.same && m.table && needed ? 0 : rpi_fail_memory("a trace", 0);
  if (!rc) {
    for (int i = 0; i < g->nvalues; i++) m.same[i] = i;
    for (int i = nin; i < g->nleaves; i++) merge_constant(&m, constant, nin, i - nin);
    memset(m.table, 0, sizeof(int) * cells);
    for (int k = 0; k < g->nnodes; k++) merge_node(&m, k);
    prune(g, m.same, needed);
  }
  rpi_arena_release(&scratch);
  return rc;
}
