/* The version. */
#ifndef MLX_C_VERSION_H
#define MLX_C_VERSION_H

#include "mlx/c/string.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Set `*str_` to the version of the interface that this library implements. */
int mlx_version(mlx_string* str_);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
