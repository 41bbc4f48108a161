/* A graph as numbers: what arrays and nodes become before they are planned or kept.
 *
 * Values are numbered: the leaves first (inputs, then constants), then the outputs of node 0, node 1, ...
 * Invariants:
 * 1. Nodes are in creation order, so a node's inputs have smaller numbers than its outputs.
 * 2. A graph holds no reference to nodes; leaves are held by whoever gathered. Attributes are either
 *    borrowed from nodes that outlive the graph (eager) or copied into `mem` (traces). */
#ifndef RPI_COMPILE_GRAPH_H
#define RPI_COMPILE_GRAPH_H

#include "base/vec.h"
#include "core/array.h"

struct gvalue {
  const int* shape; /* known extents (eager), or NULL: the rule says at each plan */
  uint8_t dtype, ndim;
};

struct gnode {
  uint16_t op;
  int nin, nout, nattr;
  int out; /* number of the first output */
  const int* in;
  const int64_t* attr;
  struct payload* payload; /* borrowed; calls only */
  /* Traces: axes, as bits counted from the right, where an extent above 1 that follows the inputs
   * met the same extent of a constant. The host may have read it: at extent 1 the constant would be
   * spread. */
  uint64_t met;
};

struct graph {
  struct rpi_arena mem;
  int nleaves, nvalues, nnodes, noutputs;
  struct gvalue* value;
  struct gnode* node;
  int* output; /* value numbers */
};

/* The walk from roots to leaves. Lives under one hold of the graph lock until rpi_walk_number. */
struct walk {
  uint64_t mark;
  RPI_VEC(struct node*) nodes;   /* sorted by rpi_walk_run; not retained */
  RPI_VEC(struct array*) leaves; /* READY arrays, or the placeholders given first */
  RPI_VEC(struct array*) stack;
  struct array* lost;  /* a leaf whose memory is gone */
  struct array* stray; /* a tracer without a node that is not among the placeholders */
  struct node* claimed; /* a node that another evaluation is working on */
};

/* Under the graph lock. `first` are leaves numbered ahead of all others (placeholders of a trace). On
 * return every array reached has `mark`, its number in `slot` and in `uses` the count of its uses by nodes.
 * 0, or an out-of-memory error; the caller looks at lost, stray and claimed. Ends with rpi_walk_free. */
int rpi_walk_run(struct walk* w, struct array* const* first, int nfirst, struct array* const* roots,
                 int nroots);
void rpi_walk_free(struct walk* w);

/* Under the same hold of the lock: write the graph of a finished walk. With `own`, attributes are copied
 * and shapes left unknown. Outputs are set by the caller. */
int rpi_graph_from_walk(struct graph* g, struct walk* w, bool own);
void rpi_graph_release(struct graph* g);

/* Merge equal nodes and equal one-element constants, then drop what no output needs; linear in the size.
 * Leaves from `nin` on are constants: constant[i] is leaf nin + i. They stay numbered. */
int rpi_graph_simplify(struct graph* g, struct array* const* constant, int nin);

#endif
