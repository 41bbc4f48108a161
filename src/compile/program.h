/* A program: a flat list of instructions over storages, planned for one set of input layouts.
 *
 * Invariants:
 * 1. Read-only after planning; any number of threads may run it at once, each with its own arena.
 * 2. A storage is input memory, a range of the run's arena, or a buffer of its own (what outlives the run
 *    or passes through a call). The ranges of storages alive at the same time do not overlap.
 * 3. An instruction writes storages that hold nothing still needed; it may write over a dying operand
 *    only where the kernel allows it and the layouts agree.
 * 4. A storage of its own with a `donor` may take over the input's buffer at run time, if nobody else
 *    holds it: no later instruction reads that input. */
#ifndef RPI_COMPILE_PROGRAM_H
#define RPI_COMPILE_PROGRAM_H

#include "backend/backend.h"
#include "compile/graph.h"

enum rpi_store { RPI_STORE_INPUT, RPI_STORE_ARENA, RPI_STORE_OWN };

struct storage {
  uint8_t kind;
  bool is_kept; /* an output of the program lies in it */
  bool by_call; /* its buffer arrives from a call */
  int input;    /* INPUT: leaf number */
  int donor;    /* OWN: storage number of an input that may be taken over, or -1 */
  int same_as;  /* merged into this storage (an in-place step), or itself */
  int first, last; /* instructions between which it is alive; outputs: last = INT_MAX */
  size_t bytes, offset; /* offset: in the arena */
};

/* Where a value lies. */
struct place {
  int storage;
  size_t offset; /* bytes */
  struct view view;
};

struct instr {
  int (*run)(const struct call* c); /* NULL: a call of another program */
  struct call call;                 /* all but src and dst */
  const int* storage;               /* of inputs, then outputs */
  const size_t* offset;
  const int* event; /* storages of their own that begin here, then those that end here */
  int nbegin, nend;
  struct program* callee; /* calls: held by the program */
};

struct program {
  struct payload base;
  struct rpi_arena mem;
  int nleaves, nstorages, ninstrs, noutputs;
  /* The last `nconstants` leaves are these arrays; `owner` keeps them (both may be absent). */
  int nconstants;
  struct array* const* constant;
  struct payload* owner;
  struct storage* storage;
  struct instr* instr;
  struct place* output;
  size_t arena_bytes;
  int widest; /* most operands of one instruction */
  int ngroups, nfused; /* element-wise groups, and operations in them */
};

/* What is known of a leaf when planning. */
struct leaf {
  const int* shape;
  const int64_t* stride;
  uint8_t dtype, ndim;
};

struct plan_options {
  bool fuse;
  const struct backend* backend;
  /* The program of a call node for these operands, with a reference for the caller. NULL where the
   * graph has no calls. */
  int (*plan_call)(struct program** out, struct payload* callee, const struct view* in, int nin);
  /* Set, and nothing raised, when planning ends because a constant would be spread (gnode.met). NULL:
   * it may be. */
  bool* is_spread;
};

/* Plan a graph. The program keeps nothing of the graph. One reference for the caller, released with
 * rpi_payload_release(&p->base). */
int rpi_plan(struct program** out, const struct graph* g, const struct leaf* leaves,
             const struct plan_options* options);

#endif
