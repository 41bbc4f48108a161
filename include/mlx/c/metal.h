/* Apple GPUs: never available here. */
#ifndef MLX_C_METAL_H
#define MLX_C_METAL_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Sets `*res` to false. */
int mlx_metal_is_available(bool* res);

/* Recording of GPU commands: RP_ERR_UNSUPPORTED. */
int mlx_metal_start_capture(const char* path);
int mlx_metal_stop_capture(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
