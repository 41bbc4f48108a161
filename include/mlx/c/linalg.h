/* Linear algebra on the last two axes; leading axes are a batch.
 *
 * Inputs are float32 or float64, others RP_ERR_DTYPE, but for norms and products, which take any; a
 * shape that does not fit is RP_ERR_SHAPE. A matrix without an answer (singular, not positive
 * definite, no convergence) is RP_ERR_NUMERIC when it is evaluated. */
#ifndef MLX_C_LINALG_H
#define MLX_C_LINALG_H

#include <stdbool.h>
#include <stddef.h>

#include "mlx/c/array.h"
#include "mlx/c/stream.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Factorisations ---------------------------------------------------------------------------- */

/* L with L Lᵀ = a, or U with Uᵀ U = a when `upper`. a is symmetric and positive definite; the other
 * triangle is not read. */
int mlx_linalg_cholesky(mlx_array* res, const mlx_array a, bool upper, const mlx_stream s);

/* The inverse of a, given its Cholesky factor. */
int mlx_linalg_cholesky_inv(mlx_array* res, const mlx_array a, bool upper, const mlx_stream s);

/* The permutation as row indices (uint32), L and U, for a (..., m, n); or both triangles packed in
 * one matrix (`*res_0`) with the row swaps (`*res_1`, uint32). */
int mlx_linalg_lu(mlx_vector_array* res, const mlx_array a, const mlx_stream s);
int mlx_linalg_lu_factor(mlx_array* res_0, mlx_array* res_1, const mlx_array a, const mlx_stream s);

/* Q (`*res_0`) and R (`*res_1`), reduced. */
int mlx_linalg_qr(mlx_array* res_0, mlx_array* res_1, const mlx_array a, const mlx_stream s);

/* U, S and Vᵀ with full U and V, S in descending order; S alone unless `compute_uv`. */
int mlx_linalg_svd(mlx_vector_array* res, const mlx_array a, bool compute_uv, const mlx_stream s);

/* Eigenvalues ------------------------------------------------------------------------------- */

/* Of any square matrix: values (complex64, `*res_0`) and column vectors (`*res_1`); or values
 * alone. */
int mlx_linalg_eig(mlx_array* res_0, mlx_array* res_1, const mlx_array a, const mlx_stream s);
int mlx_linalg_eigvals(mlx_array* res, const mlx_array a, const mlx_stream s);

/* Of a symmetric matrix, from the triangle `UPLO` ("L" or "U"): values in ascending order
 * (`*res_0`) and column vectors (`*res_1`); or values alone. */
int mlx_linalg_eigh(mlx_array* res_0, mlx_array* res_1, const mlx_array a, const char* UPLO,
                    const mlx_stream s);
int mlx_linalg_eigvalsh(mlx_array* res, const mlx_array a, const char* UPLO, const mlx_stream s);

/* Inverses and systems ---------------------------------------------------------------------- */

/* Of a square matrix; of a triangular one; Moore and Penrose's of any. */
int mlx_linalg_inv(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_linalg_tri_inv(mlx_array* res, const mlx_array a, bool upper, const mlx_stream s);
int mlx_linalg_pinv(mlx_array* res, const mlx_array a, const mlx_stream s);

/* x with a x = b, for a (..., n, n) and b (..., n) or (..., n, k); a triangular in the second. */
int mlx_linalg_solve(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_linalg_solve_triangular(mlx_array* res, const mlx_array a, const mlx_array b, bool upper,
                                const mlx_stream s);

/* Norms and products ------------------------------------------------------------------------ */

/* Over `axis`: none for all elements, one for vectors, two for matrices. `ord` as in NumPy, a
 * number or "fro" or "nuc"; the last form is the 2-norm of vectors and the Frobenius norm of
 * matrices. The reduced axes stay with extent 1 when `keepdims`. */
int mlx_linalg_norm(mlx_array* res, const mlx_array a, double ord,
                    const int* axis /* may be NULL */, size_t axis_num, bool keepdims,
                    const mlx_stream s);
int mlx_linalg_norm_matrix(mlx_array* res, const mlx_array a, const char* ord,
                           const int* axis /* may be NULL */, size_t axis_num, bool keepdims,
                           const mlx_stream s);
int mlx_linalg_norm_l2(mlx_array* res, const mlx_array a, const int* axis /* may be NULL */,
                       size_t axis_num, bool keepdims, const mlx_stream s);

/* Cross product along an axis of extent 3 (or 2, taken as having a third of 0). Broadcast and
 * promoted. */
int mlx_linalg_cross(mlx_array* res, const mlx_array a, const mlx_array b, int axis,
                     const mlx_stream s);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
