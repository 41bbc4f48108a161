/* Lazy arrays and the nodes that produce them.
 *
 * Invariants:
 * 1. An array is READY (it has a buffer, offset and strides, and no node), or PENDING: it has the node
 *    that will produce it, or, if it is a tracer without a node, it stands for an input of a trace. LOST
 *    is the rare end of an array whose memory an operation took over and then failed.
 * 2. An array holds one reference to its node; a node holds one to each input and none to its outputs
 *    (node->out[i] is weak, and read only under the graph lock with rpi_array_retain_alive).
 * 3. Shape and dtype never change. PENDING becomes READY once, under the graph lock, and the state is
 *    stored last with release order; whoever reads READY with acquire order may read the rest freely.
 * 4. A node's inputs are dropped when its outputs become READY: an evaluated graph holds nothing.
 * 5. Releasing never recurses and never waits for anything but the short critical sections here. */
#ifndef RPI_CORE_ARRAY_H
#define RPI_CORE_ARRAY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/stream.h"

enum rpi_array_state { RPI_PENDING, RPI_READY, RPI_LOST };

/* A packed copy, made when the host asks for the data of an array that is not row-contiguous. */
struct dense {
  struct buffer* buf;
  int64_t stride[];
};

struct array {
  _Atomic(int) refs;
  _Atomic(uint8_t) state;
  uint8_t dtype;
  uint8_t ndim;
  uint8_t is_tracer; /* depends on the input of a trace in progress */
  int index;         /* which output of `node` */
  int64_t size;
  struct node* node;
  struct buffer* buf;
  size_t offset; /* bytes from buf->data to the first element */
  _Atomic(struct dense*) dense;
  /* Scratch of whoever holds the graph lock and owns `mark` (a fresh number from rpi_graph_mark). */
  uint64_t mark;
  int slot;
  int uses;
  struct array* next; /* work list of release */
  int64_t* stride;    /* ndim, elements; set when READY */
  int* shape;         /* ndim */
};

/* What a node carries beside attributes, e.g. the program of a call. Counted by its owner. */
struct payload {
  _Atomic(int) refs;
  void (*destroy)(struct payload*);
};

enum rpi_node_state { RPI_NODE_IDLE, RPI_NODE_CLAIMED };

struct node {
  _Atomic(int) refs;
  uint16_t op; /* enum rpi_op, src/op */
  uint8_t state; /* under the graph lock */
  uint8_t is_tracer;
  int nin, nout, nattr;
  struct stream stream;
  uint64_t seq; /* creation order: inputs come before */
  uint64_t mark; /* scratch, as in array */
  struct array** in;
  struct array** out; /* weak */
  int64_t* attr;
  struct payload* payload;
};

/* Arrays. NULL after raising. */
struct array* rpi_array_ready(int dtype, const int* shape, int ndim, struct buffer* buf); /* takes buf */
struct array* rpi_array_scalar(int dtype, const void* value); /* 0-d, copies one element */
struct array* rpi_array_data(int dtype, const int* shape, int ndim, const void* data); /* copies */
struct array* rpi_array_placeholder(int dtype, const int* shape, int ndim); /* a tracer */

static inline struct array* rpi_array_retain(struct array* a) {
  atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
  return a;
}
void rpi_array_release(struct array* a); /* NULL is fine */
/* Under the graph lock: retain unless the last reference is already gone. */
bool rpi_array_retain_alive(struct array* a);

static inline bool rpi_array_is_ready(const struct array* a) {
  return atomic_load_explicit(&a->state, memory_order_acquire) == RPI_READY;
}
static inline void* rpi_array_ptr(const struct array* a) { return (char*)a->buf->data + a->offset; }
static inline size_t rpi_array_bytes(const struct array* a) {
  return (size_t)a->size * rpi_dtype_size(a->dtype);
}
bool rpi_array_is_row_major(const struct array* a); /* READY only */

/* A node over `nin` inputs (retained) with room for `nout` outputs; out[i] must then be made with
 * rpi_node_output. The payload reference is taken, also on failure. The node starts with the one
 * reference of the caller, who releases it after making the outputs. */
struct node* rpi_node_new(int op, struct array* const* in, int nin, int nout, const int64_t* attr,
                          int nattr, struct payload* payload, struct stream stream);
struct array* rpi_node_output(struct node* n, int index, int dtype, const int* shape, int ndim);
void rpi_node_release(struct node* n);

void rpi_payload_release(struct payload* p);

/* The graph lock: guards node states, weak outputs, marks, and the step from PENDING to READY. Short
 * sections only: nothing is executed and no callback made while it is held. Fork-safe: a fork waits
 * for the evaluations in progress on other threads, and new ones wait for the fork. */
void rpi_graph_lock(void);
void rpi_graph_unlock(void);
uint64_t rpi_graph_mark(void); /* a fresh number, under the lock */
/* Give up the lock until another thread calls rpi_graph_wake (which needs the lock), then take it. */
void rpi_graph_wait(void);
void rpi_graph_wake(void);
/* Under the lock: an evaluation begins (before it walks; may wait as rpi_graph_wait does) and ends. */
void rpi_graph_enter(void);
void rpi_graph_leave(void);

/* Under the graph lock: give a PENDING array its value (buf is taken) and cut it from its node. The
 * caller gets the node reference to release after unlocking. */
struct node* rpi_array_settle(struct array* a, struct buffer* buf, size_t offset,
                              const int64_t* stride);

/* READY arrays: pointer to row-contiguous data, packed once if needed (`pack` copies strided elements
 * from a to dst); NULL after raising. */
const void* rpi_array_dense(struct array* a, int (*pack)(void* dst, const struct array* a));

#endif
