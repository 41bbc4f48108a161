/* What a compiled function did: how often it was traced and replayed, and what its plan costs. */
#ifndef REPRISE_STATS_H
#define REPRISE_STATS_H

#include <stdint.h>

#include "mlx/c/closure.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* Counters since mlx_compile. `plans`, unlike `traces`, grow with new input layouts without any call to
 * the host. The last three describe the plan that was made last. */
typedef struct rp_closure_stats_ {
  uint64_t traces;       /* calls of the host's function */
  uint64_t replays;      /* applications that a trace served, the first included */
  uint64_t plans;        /* layouts planned */
  uint64_t instructions; /* steps of the plan */
  uint64_t fused;        /* operations that fusion saved a step */
  uint64_t arena_bytes;  /* scratch memory of one run */
} rp_closure_stats;

/* Fill `*out` for a closure made by mlx_compile; an error for any other. Any thread. */
int rp_closure_get_stats(rp_closure_stats* out, mlx_closure cls);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
