/* NVIDIA GPUs. */
#ifndef MLX_C_CUDA_H
#define MLX_C_CUDA_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Whether this build can compute on a GPU of this machine. */
int mlx_cuda_is_available(bool* res);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
