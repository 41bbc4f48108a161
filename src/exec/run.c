/* The instruction loop. */
#include "exec/run.h"

#include <string.h>

#include "base/err.h"

/* A storage during one run. */
struct slot {
  char* base;
  struct buffer* buf; /* OWN: one reference; INPUT: borrowed */
};

enum { STACK_SLOTS = 96, STACK_OPERANDS = 24 };

struct run {
  const struct program* p;
  struct run_leaf* leaves;
  struct slot* slot;
  const void** src; /* widest operands: inputs, then outputs */
  struct buffer* arena;
};

static int begin_storage(struct run* r, int s) {
  const struct storage* st = &r->p->storage[s];
  struct slot* slot = &r->slot[s];
  if (st->donor >= 0) {
    struct run_leaf* leaf = &r->leaves[r->p->storage[st->donor].input];
    if (leaf->may_take && !leaf->taken && rpi_buffer_may_write(leaf->buf)) {
      leaf->taken = true;
      slot->buf = rpi_buffer_retain(leaf->buf);
      slot->base = leaf->ptr;
      return 0;
    }
  }
  slot->buf = rpi_buffer_new(st->bytes);
  if (!slot->buf) return rpi_error_code();
  slot->base = slot->buf->data;
  return 0;
}

static void end_storages(struct run* r, const struct instr* in) {
  for (int i = 0; i < in->nend; i++) {
    struct slot* slot = &r->slot[in->event[in->nbegin + i]];
    rpi_buffer_release(slot->buf);
    slot->buf = NULL;
  }
}

/* What an operand of a call is to the callee. It may be taken over if it ends here, is a buffer of its
 * own, and is passed once. */
static void pass_operand(struct run* r, const struct instr* in, struct run_leaf* leaves, int i) {
  int s = in->storage[i];
  const struct storage* st = &r->p->storage[s];
  bool is_own = st->kind == RPI_STORE_OWN || r->leaves[st->input].may_take;
  leaves[i] = (struct run_leaf){.buf = r->slot[s].buf, .ptr = r->slot[s].base + in->offset[i]};
  leaves[i].may_take = is_own && st->last == (int)(in - r->p->instr);
  for (int j = 0; j < i; j++)
    if (in->storage[j] == s) leaves[i].may_take = leaves[j].may_take = false;
}

static void take_call_results(struct run* r, const struct instr* in, struct run_leaf* leaves,
                              struct run_result* results, int rc) {
  for (int i = 0; i < in->call.nin; i++) {
    const struct storage* st = &r->p->storage[in->storage[i]];
    if (leaves[i].taken && st->kind == RPI_STORE_INPUT) r->leaves[st->input].taken = true;
  }
  for (int i = 0; i < in->call.nout && !rc; i++) {
    struct slot* slot = &r->slot[in->storage[in->call.nin + i]];
    slot->buf = results[i].buf;
    slot->base = (char*)results[i].buf->data + results[i].offset;
  }
}

/* Operands of a call go in as leaves, then the callee's constants; its results become storages here. */
static int run_call(struct run* r, const struct instr* in) {
  const struct program* callee = in->callee;
  size_t nleaves = (size_t)callee->nleaves, nout = (size_t)in->call.nout;
  size_t bytes = sizeof(struct run_leaf) * nleaves + sizeof(struct run_result) * nout;
  _Alignas(16) char stack[1536];
  struct run_leaf* leaves = bytes <= sizeof stack ? (void*)stack : rpi_alloc(bytes);
  if (!leaves) return rpi_fail_memory("a call", bytes);
  struct run_result* results = (struct run_result*)(leaves + nleaves);
  for (int i = 0; i < in->call.nin; i++) pass_operand(r, in, leaves, i);
  for (int i = 0; i < callee->nconstants; i++) {
    const struct array* a = callee->constant[i];
    leaves[in->call.nin + i] = (struct run_leaf){.buf = a->buf, .ptr = rpi_array_ptr(a)};
  }
  int rc = rpi_program_run(callee, leaves, results);
  take_call_results(r, in, leaves, results, rc);
  if ((void*)leaves != (void*)stack) rpi_free(leaves);
  return rc;
}

static int step(struct run* r, const struct instr* in) {
  for (int i = 0; i < in->nbegin; i++) {
    int rc = begin_storage(r, in->event[i]);
    if (rc) return rc;
  }
  int rc;
  if (RPI_LIKELY(in->run)) {
    int n = in->call.nin + in->call.nout;
    for (int i = 0; i < n; i++) r->src[i] = r->slot[in->storage[i]].base + in->offset[i];
    struct call c = in->call;
    c.src = r->src;
    c.dst = (void* const*)(r->src + c.nin);
    rc = in->run(&c);
  } else {
    rc = run_call(r, in);
  }
  if (RPI_UNLIKELY(in->nend)) end_storages(r, in);
  return rc;
}

static int open_run(struct run* r) {
  const struct program* p = r->p;
  char* arena = NULL;
  memset(r->slot, 0, sizeof *r->slot * (size_t)p->nstorages);
  if (p->arena_bytes) {
    r->arena = rpi_buffer_new(p->arena_bytes);
    if (!r->arena) return rpi_error_code();
    arena = r->arena->data;
  }
  for (int s = 0; s < p->nstorages; s++) {
    const struct storage* st = &p->storage[s];
    if (st->kind == RPI_STORE_INPUT) {
      r->slot[s].base = r->leaves[st->input].ptr;
      r->slot[s].buf = r->leaves[st->input].buf;
    } else if (st->kind == RPI_STORE_ARENA) {
      r->slot[s].base = arena + st->offset;
    }
  }
  return 0;
}

static void take_results(struct run* r, struct run_result* results) {
  for (int i = 0; i < r->p->noutputs; i++) {
    const struct place* out = &r->p->output[i];
    const struct slot* slot = &r->slot[out->storage];
    results[i].buf = rpi_buffer_retain(slot->buf);
    results[i].offset = (size_t)(slot->base - (char*)slot->buf->data) + out->offset;
  }
}

static void close_run(struct run* r) {
  for (int s = 0; s < r->p->nstorages; s++)
    if (r->p->storage[s].kind == RPI_STORE_OWN) rpi_buffer_release(r->slot[s].buf);
  rpi_buffer_release(r->arena);
}

static int run_all(struct run* r, struct run_result* results) {
  int rc = open_run(r);
  for (int i = 0; i < r->p->ninstrs && !rc; i++) rc = step(r, &r->p->instr[i]);
  if (!rc) take_results(r, results);
  close_run(r);
  return rc;
}

int rpi_program_run(const struct program* p, struct run_leaf* leaves, struct run_result* results) {
  struct slot slots[STACK_SLOTS];
  const void* operands[STACK_OPERANDS];
  struct run r = {.p = p, .leaves = leaves, .slot = slots, .src = operands};
  if (p->nstorages <= STACK_SLOTS && p->widest <= STACK_OPERANDS) return run_all(&r, results);
  size_t bytes = sizeof(struct slot) * (size_t)p->nstorages + sizeof(void*) * (size_t)p->widest;
  r.slot = rpi_alloc(bytes + 1);
  if (!r.slot) return rpi_fail_memory("a run", bytes);
  r.src = (const void**)(r.slot + p->nstorages);
  int rc = run_all(&r, results);
  rpi_free(r.slot);
  return rc;
}
