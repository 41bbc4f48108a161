/* The thread pool that work inside one operation is split over.
 *
 * Invariants:
 * 1. The caller takes part and finishes whatever no worker has started, so a call returns even if
 *    no worker ever runs (one core, a busy machine, a child after fork).
 * 2. Chunk bounds are fixed by the caller from the shape, never from the number of threads: results
 *    cannot depend on how many threads there are.
 * 3. A call from inside a chunk, or while another host thread holds the pool, runs inline.
 * 4. Workers block all signals, are started at the first call that needs them, and are not inherited
 *    by a forked child (it starts its own when it needs them). */
#ifndef RPI_BASE_THREAD_H
#define RPI_BASE_THREAD_H

#include <stdint.h>

/* Run fn(ctx, i) for every i in [0, chunks), in any order, on any of the pool's threads. */
void rpi_parallel(int64_t chunks, void (*fn)(void* ctx, int64_t i), void* ctx);

/* Threads that take part, the caller included. */
int rpi_threads(void);
int rpi_set_threads(int threads); /* 0: the default; an error outside 0 to 256 */

#endif
