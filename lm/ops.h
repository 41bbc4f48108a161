/* Building arrays through the C interface as straight-line code with one sticky error.
 *
 * A scope owns every array that its functions return; they are borrowed until lm_scope_end. After a
 * failure every call returns an empty handle at once. A scope belongs to one thread. */
#ifndef LM_OPS_H
#define LM_OPS_H

#include "mlx/c/mlx.h"

struct lm_scope {
  mlx_stream stream;
  int failed; /* a code of lm_fail, 0 while all is well */
  mlx_array* keep;
  size_t n, cap;
};

void lm_scope_begin(struct lm_scope* g);
/* Release everything; returns `failed`. */
int lm_scope_end(struct lm_scope* g);
/* Record what the library reported as the scope's failure. */
int lm_scope_check(struct lm_scope* g, int rc);
/* Put a handle under the scope's care. */
mlx_array lm_own(struct lm_scope* g, mlx_array a);
/* A reference of its own for the caller to keep (an empty handle after a failure). */
mlx_array lm_export(struct lm_scope* g, mlx_array a);

mlx_array lm_int(struct lm_scope* g, int value);
mlx_array lm_float(struct lm_scope* g, float value);
mlx_array lm_ints(struct lm_scope* g, const int32_t* at, int n);

mlx_array lm_add(struct lm_scope* g, mlx_array a, mlx_array b);
mlx_array lm_mul(struct lm_scope* g, mlx_array a, mlx_array b);
mlx_array lm_silu(struct lm_scope* g, mlx_array a); /* a * sigmoid(a) */
mlx_array lm_astype(struct lm_scope* g, mlx_array a, mlx_dtype dtype);
mlx_array lm_take(struct lm_scope* g, mlx_array a, mlx_array indices, int axis);
mlx_array lm_slice_axis(struct lm_scope* g, mlx_array a, int axis, int start, int stop);
mlx_array lm_expand(struct lm_scope* g, mlx_array a, int axis);
mlx_array lm_transpose(struct lm_scope* g, mlx_array a, const int* axes, size_t n);
mlx_array lm_reshape(struct lm_scope* g, mlx_array a, const int* shape, size_t n);
mlx_array lm_unflatten(struct lm_scope* g, mlx_array a, int axis, const int* shape, size_t n);
mlx_array lm_flatten(struct lm_scope* g, mlx_array a, int first, int last);
mlx_array lm_concat(struct lm_scope* g, const mlx_array* at, size_t n, int axis);

#endif
