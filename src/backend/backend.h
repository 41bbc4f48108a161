/* What a backend offers: kernels over views. The rest of the library reaches devices only through it.
 *
 * A kernel gets operands with any strides (negative and zero included, extents may be 0) and writes
 * outputs that are row-contiguous, fresh and do not overlap the inputs, except an INPLACE row's output
 * 0, which may be the memory of input 0 (same pointer, same layout). It may split its work over
 * rpi_parallel, with chunk bounds that depend on the shape alone. It returns 0 or raises. */
#ifndef RPI_BACKEND_BACKEND_H
#define RPI_BACKEND_BACKEND_H

#include "base/mem.h"
#include "op/op.h"

struct view {
  const int* shape;      /* ndim extents */
  const int64_t* stride; /* ndim, in elements */
  int64_t size;          /* number of elements */
  uint8_t dtype, ndim;
  bool is_row_major; /* elements lie one after another */
};

struct call {
  const char* name; /* for messages */
  int op, nin, nout, nattr;
  const struct view *in, *out;
  const void* const* src; /* first element of each input */
  void* const* dst;       /* first element of each output */
  const int64_t* attr;
  void* state; /* what prepare made, or NULL */
};

/* A group of element-wise operations over one shape, run block by block. Values are numbered: the
 * inputs first, then one per step. Input views are already broadcast to `shape` (stride 0). */
struct elem_step {
  int op; /* an ELEM or ELEMX row */
  int nin;
  int in[3]; /* value numbers */
  uint8_t in_dtype;  /* of the last input: select's condition is always bool */
  uint8_t out_dtype;
};

struct elem_group {
  int ndim;
  const int* shape;
  int nin, nsteps, nout;
  const struct view* in;
  const struct elem_step* step;
  const int* out; /* value numbers of the outputs */
};

struct backend {
  const char* name;
  int (*kernel[RPI_OP_COUNT])(const struct call* c); /* PRIM rows; NULL for the others */
  /* Prepare a group once per plan: the state lives in `mem`, is read-only afterwards and may be run by
   * several threads at once. A call of the group has the group's inputs and outputs in order. */
  int (*elem_prepare)(void** state, const struct elem_group* g, struct rpi_arena* mem);
  int (*elem_run)(const struct call* c);
  /* Copy a strided view into row-contiguous memory. */
  int (*pack)(void* dst, const void* src, const struct view* v);
};

extern const struct backend rpi_cpu;

#endif
