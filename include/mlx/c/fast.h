/* Operations that models spend their time in, each as one kernel.
 *
 * All accumulate in float32 (float64 for float64) and round once, at the store. */
#ifndef MLX_C_FAST_H
#define MLX_C_FAST_H

#include <stdbool.h>
#include <stddef.h>

#include "mlx/c/array.h"
#include "mlx/c/optional.h"
#include "mlx/c/stream.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Normalisation ----------------------------------------------------------------------------- */

/* Over the last axis, with `weight` and `bias` of its extent: (x - mean) / sqrt(variance + eps),
 * scaled and shifted if given. */
int mlx_fast_layer_norm(mlx_array* res, const mlx_array x,
                        const mlx_array weight /* may be empty */,
                        const mlx_array bias /* may be empty */, float eps, const mlx_stream s);

/* Over the last axis: x / sqrt(mean of squares + eps), scaled if `weight` is given. */
int mlx_fast_rms_norm(mlx_array* res, const mlx_array x, const mlx_array weight /* may be empty */,
                      float eps, const mlx_stream s);

/* Attention --------------------------------------------------------------------------------- */

/* Rotary positions on x (..., T, D), at `offset` + t along the second-last axis: pairs of the first
 * `dims` (even, at least 2) elements are rotated by angles from `base`, or from `freqs` (dims / 2
 * periods); exactly one of the two is given. `scale` multiplies positions. Neighbours form a pair
 * when `traditional`, else elements dims / 2 apart. In the second form the offset is an array, of
 * one element or one for each item of the batch. */
int mlx_fast_rope(mlx_array* res, const mlx_array x, int dims, bool traditional,
                  mlx_optional_float base, float scale, int offset,
                  const mlx_array freqs /* may be empty */, const mlx_stream s);
int mlx_fast_rope_dynamic(mlx_array* res, const mlx_array x, int dims, bool traditional,
                          mlx_optional_float base, float scale, const mlx_array offset,
                          const mlx_array freqs /* may be empty */, const mlx_stream s);

/* softmax(scale queries keysᵀ + mask) values, for queries (B, N, Tq, D), keys (B, Nkv, Tk, D) and
 * values (B, Nkv, Tk, Dv), where Nkv divides N. `mask_mode` is "" (none), "causal" (the last query
 * sees all keys) or "array", with `mask_arr` boolean (true: attend) or added to the scores,
 * broadcast to (B, N, Tq, Tk). `sinks` (N) are logits that join each softmax and have no value. The
 * dtypes of an added mask and of sinks promote to that of queries, keys and values; others are an
 * error. A query that sees nothing gives 0. */
int mlx_fast_scaled_dot_product_attention(
    mlx_array* res, const mlx_array queries, const mlx_array keys, const mlx_array values,
    float scale, const char* mask_mode, const mlx_array mask_arr /* may be empty */,
    const mlx_array sinks /* may be empty */, const mlx_stream s);

/* Kernels as CUDA source -------------------------------------------------------------------- */

/* Shapes, grid and template arguments of one application. */
typedef struct mlx_fast_cuda_kernel_config_ {
  void* ctx;
} mlx_fast_cuda_kernel_config;

/* A kernel from source. It can be made on any machine; applying it without CUDA is
 * RP_ERR_UNSUPPORTED. */
typedef struct mlx_fast_cuda_kernel_ {
  void* ctx;
} mlx_fast_cuda_kernel;

mlx_fast_cuda_kernel_config mlx_fast_cuda_kernel_config_new(void);
void mlx_fast_cuda_kernel_config_free(mlx_fast_cuda_kernel_config cls);

/* Add an output; the threads in all and in a block; what outputs hold at the start; print the
 * source. */
int mlx_fast_cuda_kernel_config_add_output_arg(mlx_fast_cuda_kernel_config cls, const int* shape,
                                               size_t size, mlx_dtype dtype);
int mlx_fast_cuda_kernel_config_set_grid(mlx_fast_cuda_kernel_config cls, int grid1, int grid2,
                                         int grid3);
int mlx_fast_cuda_kernel_config_set_thread_group(mlx_fast_cuda_kernel_config cls, int thread1,
                                                 int thread2, int thread3);
int mlx_fast_cuda_kernel_config_set_init_value(mlx_fast_cuda_kernel_config cls, float value);
int mlx_fast_cuda_kernel_config_set_verbose(mlx_fast_cuda_kernel_config cls, bool verbose);

/* Template arguments by name. */
int mlx_fast_cuda_kernel_config_add_template_arg_dtype(mlx_fast_cuda_kernel_config cls,
                                                       const char* name, mlx_dtype dtype);
int mlx_fast_cuda_kernel_config_add_template_arg_int(mlx_fast_cuda_kernel_config cls,
                                                     const char* name, int value);
int mlx_fast_cuda_kernel_config_add_template_arg_bool(mlx_fast_cuda_kernel_config cls,
                                                      const char* name, bool value);

/* Texts are copied; `header` (may be NULL) goes before the function, whose body is `source`.
 * `shared_memory` is in bytes. Empty on failure. */
mlx_fast_cuda_kernel mlx_fast_cuda_kernel_new(const char* name, const mlx_vector_string input_names,
                                              const mlx_vector_string output_names,
                                              const char* source, const char* header,
                                              bool ensure_row_contiguous, int shared_memory);

void mlx_fast_cuda_kernel_free(mlx_fast_cuda_kernel cls);
int mlx_fast_cuda_kernel_apply(mlx_vector_array* outputs, mlx_fast_cuda_kernel cls,
                               const mlx_vector_array inputs,
                               const mlx_fast_cuda_kernel_config config, const mlx_stream stream);

/* Kernels as Metal source ------------------------------------------------------------------- */

/* As for CUDA. There is no Metal here: applying is RP_ERR_UNSUPPORTED. */
typedef struct mlx_fast_metal_kernel_config_ {
  void* ctx;
} mlx_fast_metal_kernel_config;

typedef struct mlx_fast_metal_kernel_ {
  void* ctx;
} mlx_fast_metal_kernel;

mlx_fast_metal_kernel_config mlx_fast_metal_kernel_config_new(void);
void mlx_fast_metal_kernel_config_free(mlx_fast_metal_kernel_config cls);
int mlx_fast_metal_kernel_config_add_output_arg(mlx_fast_metal_kernel_config cls, const int* shape,
                                                size_t size, mlx_dtype dtype);
int mlx_fast_metal_kernel_config_set_grid(mlx_fast_metal_kernel_config cls, int grid1, int grid2,
                                          int grid3);
int mlx_fast_metal_kernel_config_set_thread_group(mlx_fast_metal_kernel_config cls, int thread1,
                                                  int thread2, int thread3);
int mlx_fast_metal_kernel_config_set_init_value(mlx_fast_metal_kernel_config cls, float value);
int mlx_fast_metal_kernel_config_set_verbose(mlx_fast_metal_kernel_config cls, bool verbose);
int mlx_fast_metal_kernel_config_add_template_arg_dtype(mlx_fast_metal_kernel_config cls,
                                                        const char* name, mlx_dtype dtype);
int mlx_fast_metal_kernel_config_add_template_arg_int(mlx_fast_metal_kernel_config cls,
                                                      const char* name, int value);
int mlx_fast_metal_kernel_config_add_template_arg_bool(mlx_fast_metal_kernel_config cls,
                                                       const char* name, bool value);

mlx_fast_metal_kernel mlx_fast_metal_kernel_new(
    const char* name, const mlx_vector_string input_names, const mlx_vector_string output_names,
    const char* source, const char* header, bool ensure_row_contiguous, bool atomic_outputs);
void mlx_fast_metal_kernel_free(mlx_fast_metal_kernel cls);
int mlx_fast_metal_kernel_apply(mlx_vector_array* outputs, mlx_fast_metal_kernel cls,
                                const mlx_vector_array inputs,
                                const mlx_fast_metal_kernel_config config, const mlx_stream stream);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
