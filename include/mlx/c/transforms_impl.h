/* The two halves of vmap, which the host joins. */
#ifndef MLX_C_TRANSFORMS_IMPL_H
#define MLX_C_TRANSFORMS_IMPL_H

#include <stddef.h>

#include "mlx/c/array.h"
#include "mlx/c/closure.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Call `fun` with stand-ins for `inputs` without their mapped axes. `in_axes` has one axis for each
 * input, -1 for one that is not mapped. `*res_0` are the stand-ins and `*res_1` the outputs made
 * from them. */
int mlx_detail_vmap_trace(mlx_vector_array* res_0, mlx_vector_array* res_1, const mlx_closure fun,
                          const mlx_vector_array inputs, const int* in_axes, size_t in_axes_num);

/* From what mlx_detail_vmap_trace gave, the outputs over `inputs`, with the map at `out_axes` (-1:
 * not mapped, an error if the output depends on a mapped input). */
int mlx_detail_vmap_replace(mlx_vector_array* res, const mlx_vector_array inputs,
                            const mlx_vector_array s_inputs, const mlx_vector_array s_outputs,
                            const int* in_axes, size_t in_axes_num, const int* out_axes,
                            size_t out_axes_num);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
