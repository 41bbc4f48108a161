/* Small host memory: checked allocation, an arena, and a switch that makes the n-th call fail.
 *
 * Buffers of arrays do not come from here (core/buffer.h counts those). */
#ifndef RPI_BASE_MEM_H
#define RPI_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* Like malloc, calloc, realloc, but NULL also when the test switch says so. A size of 0 gives a
 * unique pointer. They do not raise: the caller knows what to say. */
void* rpi_alloc(size_t bytes);
void* rpi_calloc(size_t count, size_t bytes);
void* rpi_realloc(void* p, size_t bytes);
void rpi_free(void* p);
char* rpi_strdup(const char* s);

/* Test switch: the `n`-th allocation from now (1 is the next) fails, once; 0 turns it off. Returns
 * whether the previous setting has fired. Process-wide. */
int rpi_mem_fail_at(int64_t n);

/* An arena: blocks that are released together. Zero-initialised is empty. Not thread-safe. */
struct rpi_arena {
  struct rpi_arena_block* top;
};

/* 16-byte aligned, zeroed; NULL on failure. */
void* rpi_arena_alloc(struct rpi_arena* a, size_t bytes);
void rpi_arena_release(struct rpi_arena* a);

#endif
