/* Small host memory.
 *
 * Invariants:
 * 1. An arena block's first bytes are its header; allocations are 16-byte aligned, and zeroed when
 *    they are handed out, so that the unused end of a block costs nothing.
 * 2. A request larger than half a block gets a block of its own, below the top one, so that the
 *    room left in the top block is not lost. */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"

static _Atomic(int64_t) fail_countdown; /* 0 or less: off */
static _Atomic(bool) fail_fired;

static bool must_fail(void) {
  if (RPI_LIKELY(atomic_load_explicit(&fail_countdown, memory_order_relaxed) <= 0)) return false;
  if (atomic_fetch_sub(&fail_countdown, 1) != 1) return false;
  atomic_store(&fail_fired, true);
  return true;
}

int rpi_mem_fail_at(int64_t n) {
  atomic_store(&fail_countdown, 0);
  bool fired = atomic_exchange(&fail_fired, false);
  atomic_store(&fail_countdown, n);
  return fired;
}

void* rpi_alloc(size_t bytes) { return must_fail() ? NULL : malloc(bytes ? bytes : 1); }

void* rpi_calloc(size_t count, size_t bytes) {
  size_t total;
  if (must_fail() || rpi_mul_overflows(count, bytes, &total)) return NULL;
  return calloc(1, total ? total : 1);
}

void* rpi_realloc(void* p, size_t bytes) {
  return must_fail() ? NULL : realloc(p, bytes ? bytes : 1);
}

void rpi_free(void* p) { free(p); }

char* rpi_strdup(const char* s) {
  size_t bytes = strlen(s) + 1;
  char* copy = rpi_alloc(bytes);
  return copy ? memcpy(copy, s, bytes) : NULL;
}

struct rpi_arena_block {
  struct rpi_arena_block* below;
  size_t used; /* header included */
  size_t cap;
};

enum { FIRST_BLOCK = 4096, LAST_BLOCK = 256 * 1024, ALIGN = 16 };
#define HEADER ((sizeof(struct rpi_arena_block) + ALIGN - 1) / ALIGN * ALIGN)

static struct rpi_arena_block* new_block(size_t cap) {
  struct rpi_arena_block* b = rpi_alloc(cap);
  if (!b) return NULL;
  b->used = HEADER;
  b->cap = cap;
  return b;
}

static void* take(struct rpi_arena_block* b, size_t bytes) {
  void* p = (char*)b + b->used;
  b->used += bytes;
  return memset(p, 0, bytes);
}

void* rpi_arena_alloc(struct rpi_arena* a, size_t bytes) {
  struct rpi_arena_block* top = a->top;

  if (bytes > SIZE_MAX / 2) return NULL;
  bytes = bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
  if (top && top->cap - top->used >= bytes) return take(top, bytes);

  size_t cap = !top ? FIRST_BLOCK : top->cap < LAST_BLOCK ? top->cap * 2 : LAST_BLOCK;
  bool own = bytes > cap / 2;
  struct rpi_arena_block* b = new_block(own ? bytes + HEADER : cap);
  if (!b) return NULL;
  if (own && top) {
    b->below = top->below;
    top->below = b;
  } else {
    b->below = top;
    a->top = b;
  }
  return take(b, bytes);
}

void rpi_arena_release(struct rpi_arena* a) {
  while (a->top) {
    struct rpi_arena_block* b = a->top;
    a->top = b->below;
    rpi_free(b);
  }
}
