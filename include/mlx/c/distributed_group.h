/* Groups of processes that compute together.
 *
 * This build has the group of one process; asking for more is RP_ERR_UNSUPPORTED. */
#ifndef MLX_C_DISTRIBUTED_GROUP_H
#define MLX_C_DISTRIBUTED_GROUP_H

#include <stdbool.h>

#include "mlx/c/stream.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef struct mlx_distributed_group_ {
  void* ctx;
} mlx_distributed_group;

/* An empty handle, which stands for the group of all processes. */
mlx_distributed_group mlx_distributed_group_new(void);

int mlx_distributed_group_free(mlx_distributed_group group);

/* The group of all processes over the transport `bk` ("any" or NULL: whichever there is). When no
 * transport is found, the group of one, or an error if `strict`. */
int mlx_distributed_init(mlx_distributed_group* res, bool strict, const char* bk);

/* This process's number, from 0, and the number of processes. */
int mlx_distributed_group_rank(mlx_distributed_group group);
int mlx_distributed_group_size(mlx_distributed_group group);

/* The processes that pass the same `color`, ordered by `key`. */
int mlx_distributed_group_split(mlx_distributed_group* res, mlx_distributed_group group, int color,
                                int key);

/* Whether a transport for several processes exists. */
bool mlx_distributed_is_available(const char* bk);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
