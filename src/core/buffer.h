/* Memory of arrays: counted, 64-byte aligned, recycled.
 *
 * Invariants:
 * 1. `active` is the exact sum of bytes of live buffers, `peak` its maximum, `cached` the bytes kept for
 *    reuse; cached never exceeds the cache limit, active + cached are brought under the memory limit
 *    by dropping cached memory first, and past it an allocation is an error.
 * 2. A buffer is released exactly once, from any thread, without blocking on another thread's work; a
 *    foreign buffer's destructor runs then, once, with no lock held. */
#ifndef RPI_CORE_BUFFER_H
#define RPI_CORE_BUFFER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
  _Atomic(int) refs;
  uint8_t kind; /* enum in buffer.c: pooled, mapped or foreign memory */
  uint8_t size_class;
  size_t bytes;      /* counted bytes */
  void* data;
  void (*dtor)(void*); /* foreign: called with `payload` at the end */
  void* payload;
  struct buffer* next; /* in the cache's lists */
};

/* A buffer of at least `bytes` bytes with one reference; contents are undefined. NULL after raising. */
struct buffer* rpi_buffer_new(size_t bytes);

/* Wrap memory of the host or a mapped file; `dtor` may be NULL. Counted as 0 bytes: it is not ours. On
 * failure NULL after raising, and `dtor` has not been called. */
struct buffer* rpi_buffer_wrap(void* data, size_t bytes, void (*dtor)(void*), void* payload);

static inline struct buffer* rpi_buffer_retain(struct buffer* b) {
  atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
  return b;
}
void rpi_buffer_release(struct buffer* b); /* NULL is fine */

/* Whether the caller's reference is the only one and the memory is ours, so that it may write. */
int rpi_buffer_may_write(const struct buffer* b);

/* Hold the pool's lock across forks. Called once, before the graph lock is guarded. */
void rpi_buffer_guard_fork(void);

size_t rpi_memory_active(void);
size_t rpi_memory_peak(void);
size_t rpi_memory_cached(void);
void rpi_memory_reset_peak(void);
void rpi_memory_clear_cache(void);
/* Limits in bytes; setters return the previous value. */
size_t rpi_memory_limit(void);
size_t rpi_memory_set_limit(size_t bytes);
size_t rpi_memory_set_cache_limit(size_t bytes);

#endif
