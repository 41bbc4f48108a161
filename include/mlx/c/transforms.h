/* Evaluation, and functions made from functions: gradients, custom rules, checkpoints. */
#ifndef MLX_C_TRANSFORMS_H
#define MLX_C_TRANSFORMS_H

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

/* Evaluation -------------------------------------------------------------------------------- */

/* Compute arrays and wait for them. When one fails the others that do not depend on it are still
 * computed. */
int mlx_eval(const mlx_vector_array outputs);

/* Begin computing and return. Reading a value waits; errors are reported there, or by
 * mlx_synchronize. */
int mlx_async_eval(const mlx_vector_array outputs);

/* Derivatives ------------------------------------------------------------------------------- */

/* Call `fun` at `primals` with one tangent for each, of the same shape. `*res_0` are the outputs
 * and `*res_1` the tangents of each. */
int mlx_jvp(mlx_vector_array* res_0, mlx_vector_array* res_1, const mlx_closure fun,
            const mlx_vector_array primals, const mlx_vector_array tangents);

/* Call `fun` at `primals` with one cotangent for each output, of its shape. `*res_0` are the
 * outputs and `*res_1` the cotangents of the primals. */
int mlx_vjp(mlx_vector_array* res_0, mlx_vector_array* res_1, const mlx_closure fun,
            const mlx_vector_array primals, const mlx_vector_array cotangents);

/* A closure that gives the outputs of `fun` and the gradients of the first output, which must be a
 * scalar, for the inputs `argnums` (none: RP_ERR_ARGUMENT). An input that the output does not
 * depend on has a gradient of zeros. */
int mlx_value_and_grad(mlx_closure_value_and_grad* res, const mlx_closure fun, const int* argnums,
                       size_t argnums_num);

/* Rules of the host's own ------------------------------------------------------------------- */

/* A closure that computes as `fun` and is transformed by the given rules. An empty rule means that
 * `fun` itself is transformed. */
int mlx_custom_function(mlx_closure* res, const mlx_closure fun,
                        const mlx_closure_custom fun_vjp /* may be empty */,
                        const mlx_closure_custom_jvp fun_jvp /* may be empty */,
                        const mlx_closure_custom_vmap fun_vmap /* may be empty */);

/* The same with a reverse-mode rule only. */
int mlx_custom_vjp(mlx_closure* res, const mlx_closure fun, const mlx_closure_custom fun_vjp);

/* A closure that computes as `fun`; under a gradient it keeps its inputs only and computes
 * again. */
int mlx_checkpoint(mlx_closure* res, const mlx_closure fun);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
