/* Compilation: trace a function once, replay it without calling the host. */
#ifndef MLX_C_COMPILE_H
#define MLX_C_COMPILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mlx/c/closure.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* What the passes do; see mlx_set_compile_mode. */
typedef enum mlx_compile_mode_ {
  MLX_COMPILE_MODE_DISABLED,
  MLX_COMPILE_MODE_NO_SIMPLIFY,
  MLX_COMPILE_MODE_NO_FUSE,
  MLX_COMPILE_MODE_ENABLED
} mlx_compile_mode;

/* A closure that computes what `fun` does. The first call at a signature calls `fun` with stand-ins
 * for its inputs and keeps the graph; later calls replay that, with the same bits as an uncompiled
 * call. A signature is the number, dtypes and shapes of the inputs; when `shapeless`, it is the
 * number, dtypes and ranks, and one trace serves all sizes (but for shapes at which broadcasting
 * would hide a size that `fun` has read: those are traced again). Reading a value that depends on an
 * input while tracing is RP_ERR_TRACE. A failed trace is not kept. `*res` shares `fun`. */
int mlx_compile(mlx_closure* res, const mlx_closure fun, bool shapeless);

/* The same with the identity of the function given by the host: traces are shared by equal
 * `fun_id`, and the bits of the `constants` that the function captured are part of the
 * signature. */
int mlx_detail_compile(mlx_closure* res, const mlx_closure fun, uintptr_t fun_id, bool shapeless,
                       const uint64_t* constants, size_t constants_num);

/* Drop all traces; drop those of one `fun_id`. A call in progress finishes. */
int mlx_detail_compile_clear_cache(void);
int mlx_detail_compile_erase(uintptr_t fun_id);

/* Process-wide: compiled closures call their functions directly while disabled. */
int mlx_disable_compile(void);
int mlx_enable_compile(void);

/* Process-wide: disabled, without the simplifying passes, without fusion, or everything (the
 * default). Results do not depend on it. */
int mlx_set_compile_mode(mlx_compile_mode mode);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
