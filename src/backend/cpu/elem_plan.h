/* What elem_prepare makes of a group and elem_run walks: a register program over blocks.
 *
 * Values are the group's inputs, then the result of every step. Each value has a place:
 *   MOVING    an input that is row-major, or an output: the caller's memory, a block further
 *             each time
 *   LOADED    an input with other strides: a pointer into it while a block lies in one contiguous
 *             run, else gathered into a block buffer
 *   (a large transposed input is packed before the blocks start, and then is MOVING)
 *   FIXED     the same for all blocks: an input that is one element, and steps on such values only
 *   BUFFER    a block buffer, shared by values that are not alive at the same time
 *
 * Invariants:
 * 1. Half formats are converted around float32 kernels: once per value that is read, once per
 *    result.
 * 2. A step may write to the buffer of an operand that dies there, if the item sizes are equal.
 * 3. An input that is still read after the first output is written has a buffer: it is loaded if
 *    the caller passes the same memory for an output.
 * 4. Chunk bounds depend on the shape and the steps, never on threads. */
#ifndef RPI_BACKEND_CPU_ELEM_PLAN_H
#define RPI_BACKEND_CPU_ELEM_PLAN_H

#include "backend/cpu/elem_kernel.h"
#include "backend/cpu/strided.h"

enum {
  RPI_ELEM_BLOCK = 512,
  /* Block buffers by item size: 4 bytes or fewer, and 8. Not a multiple of 4096, or neighbours
   * fall on the same cache sets. */
  RPI_ELEM_SLOT = RPI_ELEM_BLOCK * 4 + 64,
  RPI_ELEM_WIDE_SLOT = RPI_ELEM_BLOCK * 8 + 64
};

enum elem_place { RPI_ELEM_MOVING, RPI_ELEM_LOADED, RPI_ELEM_FIXED, RPI_ELEM_BUFFER };

struct elem_value {
  uint8_t place;
  uint8_t item;    /* bytes */
  bool is_output;
  int operand;     /* input number, or output number of the call */
  int last;        /* the last step that reads it, -1 if none */
  int as_float;    /* half formats: the value that holds it as float32, or -1 */
  int64_t buffer;  /* bytes into the buffers, or -1 */
};

struct elem_line { /* one step, lowered */
  rpi_elem_fn fn;
  int nin, out, in[3];
};

struct elem_load {
  int value, input;
  bool is_hazard; /* only when its memory is an output's, otherwise MOVING would do */
  struct rpi_nest* nest;
};

struct elem_plan {
  rpi_elem_fn fn; /* one step straight from memory to memory, or NULL */
  int64_t size;
  int64_t chunk; /* elements per chunk; size when it is not worth splitting */
  uint8_t map[3], item[3], out_item, nin;
  /* The general case. */
  int nvalues, nfixed, nlines, nloads, nscalars, nmoving, nfar;
  struct elem_value* value;
  struct elem_line *fixed, *line; /* once, and for every block */
  struct elem_load* load;
  int *scalar, *moving; /* value numbers */
  int* far;             /* inputs to pack first */
  size_t buffers;       /* bytes */
};

#endif
