/* Operations over all processes of a group. In a group of one, reductions give their input
 * back. */
#ifndef MLX_C_DISTRIBUTED_H
#define MLX_C_DISTRIBUTED_H

#include <stddef.h>

#include "mlx/c/array.h"
#include "mlx/c/distributed_group.h"
#include "mlx/c/stream.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Concatenate every process's `x` along the first axis, in order of rank. */
int mlx_distributed_all_gather(mlx_array* res, const mlx_array x,
                               const mlx_distributed_group group /* may be empty */,
                               const mlx_stream S);

/* Element by element over the processes; the same result everywhere, of x's shape and dtype. */
int mlx_distributed_all_max(mlx_array* res, const mlx_array x,
                            const mlx_distributed_group group /* may be empty */,
                            const mlx_stream s);
int mlx_distributed_all_min(mlx_array* res, const mlx_array x,
                            const mlx_distributed_group group /* may be empty */,
                            const mlx_stream s);
int mlx_distributed_all_sum(mlx_array* res, const mlx_array x,
                            const mlx_distributed_group group /* may be empty */,
                            const mlx_stream s);

/* Receive an array of known shape and dtype, or of those of `x`, from rank `src`. */
int mlx_distributed_recv(mlx_array* res, const int* shape, size_t shape_num, mlx_dtype dtype,
                         int src, const mlx_distributed_group group /* may be empty */,
                         const mlx_stream s);
int mlx_distributed_recv_like(mlx_array* res, const mlx_array x, int src,
                              const mlx_distributed_group group /* may be empty */,
                              const mlx_stream s);

/* Send `x` to rank `dst`; `*res` is `x`, to be evaluated for the sending to happen. */
int mlx_distributed_send(mlx_array* res, const mlx_array x, int dst,
                         const mlx_distributed_group group /* may be empty */, const mlx_stream s);

/* Sum over the processes; each keeps its part of the first axis, which the group's size must
 * divide. */
int mlx_distributed_sum_scatter(mlx_array* res, const mlx_array x,
                                const mlx_distributed_group group /* may be empty */,
                                const mlx_stream s);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
