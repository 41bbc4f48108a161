/* Functions of arrays as values: what transforms and compilation take and give.
 *
 * A closure is a C function of the host, alone or with a payload, or the result of a transform.
 * Returning non-zero from the host's function makes the call that ran it fail (RP_ERR_CALLBACK),
 * with an error that the function raised itself kept in the message.
 *
 * In each kind: `new` gives an empty handle; `new_func` wraps a function; in `new_func_payload` the
 * function also receives `payload`, and `dtor` (may be NULL) receives it exactly once, when the
 * last reference goes, on whichever thread that is, or when the call fails; `set` makes `*cls`
 * share the function of `src`; `free` releases one reference; `apply` calls it.
 *
 * Inside the host's function the inputs are borrowed. `*res` starts as an empty list: it may be
 * appended to, or set. What it holds at the return is the result. The function may be called on
 * another thread than the one that applied the closure, and no lock of the library is held
 * meanwhile. */
#ifndef MLX_C_CLOSURE_H
#define MLX_C_CLOSURE_H

#include <stddef.h>

#include "mlx/c/array.h"
#include "mlx/c/map.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Arrays to arrays -------------------------------------------------------------------------- */

typedef struct mlx_closure_ {
  void* ctx;
} mlx_closure;

mlx_closure mlx_closure_new(void);
int mlx_closure_free(mlx_closure cls);
mlx_closure mlx_closure_new_func(int (*fun)(mlx_vector_array*, const mlx_vector_array));
mlx_closure mlx_closure_new_func_payload(int (*fun)(mlx_vector_array*, const mlx_vector_array,
                                                    void*), void* payload, void (*dtor)(void*));
int mlx_closure_set(mlx_closure* cls, const mlx_closure src);
int mlx_closure_apply(mlx_vector_array* res, mlx_closure cls, const mlx_vector_array input);

/* From a function of one array; the closure takes exactly one input and gives one output. */
mlx_closure mlx_closure_new_unary(int (*fun)(mlx_array*, const mlx_array));

/* Arrays and named arrays to arrays --------------------------------------------------------- */

typedef struct mlx_closure_kwargs_ {
  void* ctx;
} mlx_closure_kwargs;

mlx_closure_kwargs mlx_closure_kwargs_new(void);
int mlx_closure_kwargs_free(mlx_closure_kwargs cls);
mlx_closure_kwargs mlx_closure_kwargs_new_func(int (*fun)(mlx_vector_array*, const mlx_vector_array,
                                                          const mlx_map_string_to_array));
mlx_closure_kwargs mlx_closure_kwargs_new_func_payload(
    int (*fun)(mlx_vector_array*, const mlx_vector_array, const mlx_map_string_to_array, void*),
    void* payload, void (*dtor)(void*));
int mlx_closure_kwargs_set(mlx_closure_kwargs* cls, const mlx_closure_kwargs src);
int mlx_closure_kwargs_apply(mlx_vector_array* res, mlx_closure_kwargs cls,
                             const mlx_vector_array input_0, const mlx_map_string_to_array input_1);

/* Values with gradients, as mlx_value_and_grad gives ---------------------------------------- */

typedef struct mlx_closure_value_and_grad_ {
  void* ctx;
} mlx_closure_value_and_grad;

/* The first result is the values, the second the gradients. */
mlx_closure_value_and_grad mlx_closure_value_and_grad_new(void);
int mlx_closure_value_and_grad_free(mlx_closure_value_and_grad cls);
mlx_closure_value_and_grad mlx_closure_value_and_grad_new_func(int (*fun)(mlx_vector_array*,
                                                                          mlx_vector_array*,
                                                                          const mlx_vector_array));
mlx_closure_value_and_grad mlx_closure_value_and_grad_new_func_payload(
    int (*fun)(mlx_vector_array*, mlx_vector_array*, const mlx_vector_array, void*), void* payload,
    void (*dtor)(void*));
int mlx_closure_value_and_grad_set(mlx_closure_value_and_grad* cls,
                                   const mlx_closure_value_and_grad src);
int mlx_closure_value_and_grad_apply(mlx_vector_array* res_0, mlx_vector_array* res_1,
                                     mlx_closure_value_and_grad cls, const mlx_vector_array input);

/* The rules of mlx_custom_function ---------------------------------------------------------- */

typedef struct mlx_closure_custom_ {
  void* ctx;
} mlx_closure_custom;

/* Reverse mode: from the primal inputs, the cotangents of the outputs and the outputs, one
 * cotangent for each input, of the input's shape. */
mlx_closure_custom mlx_closure_custom_new(void);
int mlx_closure_custom_free(mlx_closure_custom cls);
mlx_closure_custom mlx_closure_custom_new_func(int (*fun)(mlx_vector_array*, const mlx_vector_array,
                                                          const mlx_vector_array,
                                                          const mlx_vector_array));
mlx_closure_custom mlx_closure_custom_new_func_payload(
    int (*fun)(mlx_vector_array*, const mlx_vector_array, const mlx_vector_array,
               const mlx_vector_array, void*), void* payload, void (*dtor)(void*));
int mlx_closure_custom_set(mlx_closure_custom* cls, const mlx_closure_custom src);
int mlx_closure_custom_apply(mlx_vector_array* res, mlx_closure_custom cls,
                             const mlx_vector_array input_0, const mlx_vector_array input_1,
                             const mlx_vector_array input_2);

typedef struct mlx_closure_custom_jvp_ {
  void* ctx;
} mlx_closure_custom_jvp;

/* Forward mode: from the primal inputs, tangents, and the indices of the inputs that the tangents
 * belong to, one tangent for each output. */
mlx_closure_custom_jvp mlx_closure_custom_jvp_new(void);
int mlx_closure_custom_jvp_free(mlx_closure_custom_jvp cls);
mlx_closure_custom_jvp mlx_closure_custom_jvp_new_func(int (*fun)(mlx_vector_array*,
                                                                  const mlx_vector_array,
                                                                  const mlx_vector_array,
                                                                  const int*, size_t _num));
mlx_closure_custom_jvp mlx_closure_custom_jvp_new_func_payload(
    int (*fun)(mlx_vector_array*, const mlx_vector_array, const mlx_vector_array, const int*,
               size_t _num, void*), void* payload, void (*dtor)(void*));
int mlx_closure_custom_jvp_set(mlx_closure_custom_jvp* cls, const mlx_closure_custom_jvp src);
int mlx_closure_custom_jvp_apply(mlx_vector_array* res, mlx_closure_custom_jvp cls,
                                 const mlx_vector_array input_0, const mlx_vector_array input_1,
                                 const int* input_2, size_t input_2_num);

typedef struct mlx_closure_custom_vmap_ {
  void* ctx;
} mlx_closure_custom_vmap;

/* Vectorisation: from the inputs and, for each, the axis that is mapped over (-1: none), the
 * outputs and the axis of each that holds the map. */
mlx_closure_custom_vmap mlx_closure_custom_vmap_new(void);
int mlx_closure_custom_vmap_free(mlx_closure_custom_vmap cls);
mlx_closure_custom_vmap mlx_closure_custom_vmap_new_func(int (*fun)(mlx_vector_array*,
                                                                    mlx_vector_int*,
                                                                    const mlx_vector_array,
                                                                    const int*, size_t _num));
mlx_closure_custom_vmap mlx_closure_custom_vmap_new_func_payload(
    int (*fun)(mlx_vector_array*, mlx_vector_int*, const mlx_vector_array, const int*, size_t _num,
               void*), void* payload, void (*dtor)(void*));
int mlx_closure_custom_vmap_set(mlx_closure_custom_vmap* cls, const mlx_closure_custom_vmap src);
int mlx_closure_custom_vmap_apply(mlx_vector_array* res_0, mlx_vector_int* res_1,
                                  mlx_closure_custom_vmap cls, const mlx_vector_array input_0,
                                  const int* input_1, size_t input_1_num);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
