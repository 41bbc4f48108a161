/* Running a program on buffers. */
#ifndef RPI_EXEC_RUN_H
#define RPI_EXEC_RUN_H

#include "compile/program.h"

/* One leaf of a run: borrowed memory, and whether the run may keep or overwrite its buffer (the caller
 * holds the only reference to it and will not read it again). `taken` reports that it did. */
struct run_leaf {
  struct buffer* buf;
  void* ptr; /* the first element */
  bool may_take;
  bool taken;
};

/* One output: a buffer with a reference for the caller, and where in it the value begins. Strides are in
 * program->output[i].view. */
struct run_result {
  struct buffer* buf;
  size_t offset;
};

/* Execute all instructions in order. On failure no result is set, and leaves that were taken hold
 * undefined contents. Any thread; several runs of one program may go on at once. */
int rpi_program_run(const struct program* p, struct run_leaf* leaves, struct run_result* results);

#endif
