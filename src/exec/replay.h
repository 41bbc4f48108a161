/* Compiled functions: trace once, keep the graph, plan per layout, replay without the host. */
#ifndef RPI_EXEC_REPLAY_H
#define RPI_EXEC_REPLAY_H

#include "compile/program.h"
#include "trace/closure.h"

enum rpi_compile_mode { RPI_COMPILE_DISABLED, RPI_COMPILE_NO_SIMPLIFY, RPI_COMPILE_NO_FUSE,
                        RPI_COMPILE_ENABLED };

void rpi_compile_set_mode(int mode); /* process-wide; applies to traces and plans made afterwards */
int rpi_compile_mode(void);

/* A closure that traces `inner` (retained) once per signature and replays it: a signature is dtypes and
 * ranks when shapeless, dtypes and shapes otherwise. NULL after raising. */
struct closure* rpi_compile(struct closure* inner, bool shapeless);
/* The same, with traces kept under `id` for whoever compiles with it, and told apart by `constants`. */
struct closure* rpi_compile_with_id(struct closure* inner, uint64_t id, bool shapeless,
                                    const uint64_t* constants, size_t nconstants);
void rpi_compile_erase(uint64_t id); /* forget the traces of an id */
void rpi_compile_clear(void);        /* forget those of all ids */

/* Counters of a compiled closure since it was made; false if it is not one. */
struct replay_stats {
  uint64_t traces, replays, plans;
  uint64_t instructions, fused; /* of the plan made last: its length; operations inside groups */
  uint64_t arena_bytes;         /* of the plan made last */
};
bool rpi_compile_stats(const struct closure* c, struct replay_stats* out);

/* How eager evaluation plans: passes off, calls resolved. */
const struct plan_options* rpi_eager_options(void);

#endif
