/* The planner's working state, shared by its passes (plan.c, fuse.c, memory.c). */
#ifndef RPI_COMPILE_PLANNER_H
#define RPI_COMPILE_PLANNER_H

#include "compile/program.h"

/* A value while planning: its view, and where it lies once it has a place. */
struct pvalue {
  struct view view;
  int storage; /* -1 until placed */
  size_t offset;
  int producer;   /* node, or -1 for a leaf */
  bool is_needed; /* outside the group that makes it */
};

/* Element-wise nodes that run as one instruction. */
struct pgroup {
  int parent; /* union-find */
  int nsteps;
  bool is_sealed; /* something outside has read it: later nodes may not join */
  int first, tail; /* member nodes, linked through next_member, in order */
};

struct planner {
  const struct graph* g;
  const struct plan_options* options;
  struct program* p;
  struct rpi_arena scratch;
  struct pvalue* value;
  struct pgroup* group; /* by node */
  int* next_member;
  int* stamp; /* by value: number within the group being emitted, +1 */
  RPI_VEC(struct storage) storage;
  RPI_VEC(struct instr) instr;
};

/* fuse.c: decide which element-wise nodes share an instruction. */
void rpi_plan_group(struct planner* pl);
int rpi_plan_find(struct planner* pl, int node); /* the group of an element-wise node */
/* fuse.c: emit the instruction of the group whose last member is `node`. */
int rpi_plan_emit_group(struct planner* pl, int node);

/* plan.c: for the emitters. */
int rpi_plan_storage(struct planner* pl, size_t bytes); /* a new arena storage, or -1 */
/* A new instruction for `nin` + `nout` operands, or NULL. Fill the views, then place the operands. */
struct instr* rpi_plan_instr(struct planner* pl, int op, int nin, int nout);
void rpi_plan_operand(struct instr* in, int i, int storage, size_t offset);
int rpi_plan_out_of_memory(void);

/* memory.c: lifetimes, in-place steps, own buffers, arena offsets. */
int rpi_plan_memory(struct planner* pl);

#endif
