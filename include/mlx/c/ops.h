/* The operations on arrays.
 *
 * mlx.h says what all of them share: results, streams, empty handles, axes, broadcasting and
 * promotion. In short: nothing is computed here; shapes and dtypes are checked at once; `*res` may
 * be an input. float16 and bfloat16 are computed in float32 and rounded once, at the store. */
#ifndef MLX_C_OPS_H
#define MLX_C_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mlx/c/array.h"
#include "mlx/c/optional.h"
#include "mlx/c/stream.h"
#include "mlx/c/string.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Element by element: arithmetic ------------------------------------------------------------ */

/* Of one array; same shape and dtype. Unsigned abs and sign are as expected, abs of a complex is a
 * float. */
int mlx_abs(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_negative(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_sign(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_square(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_copy(mlx_array* res, const mlx_array a, const mlx_stream s);

/* Rounding; integers come back unchanged. Halves go to even; `decimals` may be negative. */
int mlx_ceil(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_floor(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_round(mlx_array* res, const mlx_array a, int decimals, const mlx_stream s);

/* Of two arrays, broadcast and promoted. Integers wrap. */
int mlx_add(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_subtract(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_multiply(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_maximum(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_minimum(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Division: true division gives floats. Integer quotients and remainders are floored, so that the
 * remainder has the sign of `b`; division of an integer by 0 gives 0. divmod gives the list
 * (quotient, remainder). */
int mlx_divide(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_floor_divide(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_remainder(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_divmod(mlx_vector_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* a to the power of b; an integer to a negative power is 0, except for bases 1 and -1. */
int mlx_power(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* log(exp(a) + exp(b)) without overflow. */
int mlx_logaddexp(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Between a_min and a_max, broadcast; at least one must be given. NaN stays NaN. */
int mlx_clip(mlx_array* res, const mlx_array a, const mlx_array a_min /* may be empty */,
             const mlx_array a_max /* may be empty */, const mlx_stream s);

/* Replace NaN, +inf and -inf; the largest finite values when not given. Other dtypes come back
 * unchanged. */
int mlx_nan_to_num(mlx_array* res, const mlx_array a, float nan, mlx_optional_float posinf,
                   mlx_optional_float neginf, const mlx_stream s);

/* Element by element: functions ------------------------------------------------------------- */

/* Floats and complex; integers become float32. */
int mlx_exp(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_expm1(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_log(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_log2(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_log10(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_log1p(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_sqrt(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_rsqrt(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_reciprocal(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_sigmoid(mlx_array* res, const mlx_array a, const mlx_stream s);

int mlx_sin(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_cos(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_tan(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_arcsin(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_arccos(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_arctan(mlx_array* res, const mlx_array a, const mlx_stream s);

int mlx_sinh(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_cosh(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_tanh(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_arcsinh(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_arccosh(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_arctanh(mlx_array* res, const mlx_array a, const mlx_stream s);

/* Real only. The error function and its inverse; the angle of (b, a); conversion between radians
 * and degrees. */
int mlx_erf(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_erfinv(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_arctan2(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_degrees(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_radians(mlx_array* res, const mlx_array a, const mlx_stream s);

/* Complex numbers; of a real array, the array itself, and 0 for the imaginary part. */
int mlx_conjugate(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_real(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_imag(mlx_array* res, const mlx_array a, const mlx_stream s);

/* Element by element: comparisons and logic (bool results) ---------------------------------- */

/* Broadcast and promoted. Comparisons with NaN are false, but for not_equal. */
int mlx_equal(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_not_equal(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_greater(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_greater_equal(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_less(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_less_equal(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Anything but 0 is true. */
int mlx_logical_and(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_logical_or(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_logical_not(mlx_array* res, const mlx_array a, const mlx_stream s);

int mlx_isfinite(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_isinf(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_isnan(mlx_array* res, const mlx_array a, const mlx_stream s);
/* Equal to -inf, to inf; a complex number has the imaginary part 0 then. */
int mlx_isneginf(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_isposinf(mlx_array* res, const mlx_array a, const mlx_stream s);

/* |a - b| <= atol + rtol |b| for each element, equal infinities included, and NaN with NaN when
 * `equal_nan`; allclose: for all of them, as a scalar. */
int mlx_isclose(mlx_array* res, const mlx_array a, const mlx_array b, double rtol, double atol,
                bool equal_nan, const mlx_stream s);
int mlx_allclose(mlx_array* res, const mlx_array a, const mlx_array b, double rtol, double atol,
                 bool equal_nan, const mlx_stream s);

/* Whether shapes and all elements are equal, as a scalar. */
int mlx_array_equal(mlx_array* res, const mlx_array a, const mlx_array b, bool equal_nan,
                    const mlx_stream s);

/* `x` where the condition holds, else `y`; all three broadcast, x and y promoted. */
int mlx_where(mlx_array* res, const mlx_array condition, const mlx_array x, const mlx_array y,
              const mlx_stream s);

/* Bits (integers and bool) ------------------------------------------------------------------ */

/* Broadcast and promoted. A shift by the width or more gives 0, or the sign. */
int mlx_bitwise_and(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_bitwise_or(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_bitwise_xor(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_bitwise_invert(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_left_shift(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_right_shift(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Dtypes ------------------------------------------------------------------------------------ */

/* Convert. Floats become integers by truncation, saturating, NaN as 0; wider integers wrap; a
 * complex loses its imaginary part. */
int mlx_astype(mlx_array* res, const mlx_array a, mlx_dtype dtype, const mlx_stream s);

/* The same bytes as another dtype; the last axis scales with the element size and must fit. */
int mlx_view(mlx_array* res, const mlx_array a, mlx_dtype dtype, const mlx_stream s);

/* 8-bit floats (e4m3) in uint8, saturating; and back to a float dtype. */
int mlx_to_fp8(mlx_array* res, const mlx_array x, const mlx_stream s);
int mlx_from_fp8(mlx_array* res, const mlx_array x, mlx_dtype dtype, const mlx_stream s);

/* Reductions -------------------------------------------------------------------------------- */

/* Each in three forms: over `axes` (none given: no axis, the array itself), over one axis, over
 * all. Reduced axes stay with extent 1 when `keepdims`.
 *
 * Whether all, or any, elements are not 0; over nothing true and false. */
int mlx_all_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num, bool keepdims,
                 const mlx_stream s);
int mlx_all_axis(mlx_array* res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_all(mlx_array* res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_any_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num, bool keepdims,
                 const mlx_stream s);
int mlx_any_axis(mlx_array* res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_any(mlx_array* res, const mlx_array a, bool keepdims, const mlx_stream s);

/* Sums and products; bool and small integers become int32, or uint32. 0 and 1 over nothing. */
int mlx_sum_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num, bool keepdims,
                 const mlx_stream s);
int mlx_sum_axis(mlx_array* res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_sum(mlx_array* res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_prod_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
                  bool keepdims, const mlx_stream s);
int mlx_prod_axis(mlx_array* res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_prod(mlx_array* res, const mlx_array a, bool keepdims, const mlx_stream s);

/* NaN if any element is. Over nothing: RP_ERR_SHAPE. */
int mlx_max_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num, bool keepdims,
                 const mlx_stream s);
int mlx_max_axis(mlx_array* res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_max(mlx_array* res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_min_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num, bool keepdims,
                 const mlx_stream s);
int mlx_min_axis(mlx_array* res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_min(mlx_array* res, const mlx_array a, bool keepdims, const mlx_stream s);

/* Floats, integers as float32. var and std divide by count - ddof. */
int mlx_mean_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
                  bool keepdims, const mlx_stream s);
int mlx_mean_axis(mlx_array* res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_mean(mlx_array* res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_var_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num, bool keepdims,
                 int ddof, const mlx_stream s);
int mlx_var_axis(mlx_array* res, const mlx_array a, int axis, bool keepdims, int ddof,
                 const mlx_stream s);
int mlx_var(mlx_array* res, const mlx_array a, bool keepdims, int ddof, const mlx_stream s);
int mlx_std_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num, bool keepdims,
                 int ddof, const mlx_stream s);
int mlx_std_axis(mlx_array* res, const mlx_array a, int axis, bool keepdims, int ddof,
                 const mlx_stream s);
int mlx_std(mlx_array* res, const mlx_array a, bool keepdims, int ddof, const mlx_stream s);

/* The middle element, or the mean of the two; over all axes when none is given. */
int mlx_median(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num, bool keepdims,
               const mlx_stream s);

/* log(sum(exp(a))) without overflow; -inf over nothing. */
int mlx_logsumexp_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
                       bool keepdims, const mlx_stream s);
int mlx_logsumexp_axis(mlx_array* res, const mlx_array a, int axis, bool keepdims,
                       const mlx_stream s);
int mlx_logsumexp(mlx_array* res, const mlx_array a, bool keepdims, const mlx_stream s);

/* The product of the extents of `axes` as a scalar, or one over it when `inverted`. It follows the
 * input's size in a shapeless trace. */
int mlx_number_of_elements(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
                           bool inverted, mlx_dtype dtype, const mlx_stream s);

/* exp(a) over its sum; floats, integers as float32. `precise` has no effect: sums are always in
 * float32. */
int mlx_softmax_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
                     bool precise, const mlx_stream s);
int mlx_softmax_axis(mlx_array* res, const mlx_array a, int axis, bool precise, const mlx_stream s);
int mlx_softmax(mlx_array* res, const mlx_array a, bool precise, const mlx_stream s);

/* Positions and order ----------------------------------------------------------------------- */

/* Index (uint32) of the first largest or smallest element, or of the first NaN. Without an axis,
 * into the flattened array. */
int mlx_argmax_axis(mlx_array* res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_argmax(mlx_array* res, const mlx_array a, bool keepdims, const mlx_stream s);
int mlx_argmin_axis(mlx_array* res, const mlx_array a, int axis, bool keepdims, const mlx_stream s);
int mlx_argmin(mlx_array* res, const mlx_array a, bool keepdims, const mlx_stream s);

/* Ascending and stable, NaN last; along the last axis of the flattened array when none is
 * given. */
int mlx_sort_axis(mlx_array* res, const mlx_array a, int axis, const mlx_stream s);
int mlx_sort(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_argsort_axis(mlx_array* res, const mlx_array a, int axis, const mlx_stream s);
int mlx_argsort(mlx_array* res, const mlx_array a, const mlx_stream s);

/* Element `kth` where sorting would put it, smaller ones before and larger ones behind it in some
 * order. */
int mlx_partition_axis(mlx_array* res, const mlx_array a, int kth, int axis, const mlx_stream s);
int mlx_partition(mlx_array* res, const mlx_array a, int kth, const mlx_stream s);
int mlx_argpartition_axis(mlx_array* res, const mlx_array a, int kth, int axis, const mlx_stream s);
int mlx_argpartition(mlx_array* res, const mlx_array a, int kth, const mlx_stream s);

/* The `k` largest along an axis, or of all, in some order. */
int mlx_topk_axis(mlx_array* res, const mlx_array a, int k, int axis, const mlx_stream s);
int mlx_topk(mlx_array* res, const mlx_array a, int k, const mlx_stream s);

/* Running reductions ------------------------------------------------------------------------ */

/* Along `axis`, from its end when `reverse`; without the element itself when not `inclusive`. */
int mlx_cumsum(mlx_array* res, const mlx_array a, int axis, bool reverse, bool inclusive,
               const mlx_stream s);
int mlx_cumprod(mlx_array* res, const mlx_array a, int axis, bool reverse, bool inclusive,
                const mlx_stream s);
int mlx_cummax(mlx_array* res, const mlx_array a, int axis, bool reverse, bool inclusive,
               const mlx_stream s);
int mlx_cummin(mlx_array* res, const mlx_array a, int axis, bool reverse, bool inclusive,
               const mlx_stream s);
int mlx_logcumsumexp(mlx_array* res, const mlx_array a, int axis, bool reverse, bool inclusive,
                     const mlx_stream s);

/* New arrays -------------------------------------------------------------------------------- */

/* start, start + step, ... up to and without stop; `step` 0 is an error. */
int mlx_arange(mlx_array* res, double start, double stop, double step, mlx_dtype dtype,
               const mlx_stream s);

/* `num` numbers from start to stop, both included. */
int mlx_linspace(mlx_array* res, double start, double stop, int num, mlx_dtype dtype,
                 const mlx_stream s);

/* Filled with 0, 1, or `vals`, which broadcasts. The like forms take shape (and dtype) from
 * `a`. */
int mlx_zeros(mlx_array* res, const int* shape, size_t shape_num, mlx_dtype dtype,
              const mlx_stream s);
int mlx_zeros_like(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_ones(mlx_array* res, const int* shape, size_t shape_num, mlx_dtype dtype,
             const mlx_stream s);
int mlx_ones_like(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_full(mlx_array* res, const int* shape, size_t shape_num, const mlx_array vals,
             mlx_dtype dtype, const mlx_stream s);
int mlx_full_like(mlx_array* res, const mlx_array a, const mlx_array vals, mlx_dtype dtype,
                  const mlx_stream s);

/* Matrices n by m (0: square) of 0 with 1 on diagonal k; with 1 on it and below; square with the
 * main diagonal. */
int mlx_eye(mlx_array* res, int n, int m, int k, mlx_dtype dtype, const mlx_stream s);
int mlx_tri(mlx_array* res, int n, int m, int k, mlx_dtype type, const mlx_stream s);
int mlx_identity(mlx_array* res, int n, mlx_dtype dtype, const mlx_stream s);

/* Windows of M points, float32. */
int mlx_bartlett(mlx_array* res, int M, const mlx_stream s);
int mlx_blackman(mlx_array* res, int M, const mlx_stream s);
int mlx_hamming(mlx_array* res, int M, const mlx_stream s);
int mlx_hanning(mlx_array* res, int M, const mlx_stream s);

/* One grid for each of the 1-d `arrays`, "xy" or "ij" indexing; not broadcast when `sparse`. */
int mlx_meshgrid(mlx_vector_array* res, const mlx_vector_array arrays, bool sparse,
                 const char* indexing, const mlx_stream s);

/* Diagonals and triangles ------------------------------------------------------------------- */

/* A matrix with `a` on diagonal k, or that diagonal of a matrix. */
int mlx_diag(mlx_array* res, const mlx_array a, int k, const mlx_stream s);

/* Diagonal `offset` over two axes, put last; its sum, in `dtype`. */
int mlx_diagonal(mlx_array* res, const mlx_array a, int offset, int axis1, int axis2,
                 const mlx_stream s);
int mlx_trace(mlx_array* res, const mlx_array a, int offset, int axis1, int axis2, mlx_dtype dtype,
              const mlx_stream s);

/* Set what is above, or below, diagonal k of the last two axes to 0. */
int mlx_tril(mlx_array* res, const mlx_array x, int k, const mlx_stream s);
int mlx_triu(mlx_array* res, const mlx_array x, int k, const mlx_stream s);

/* Shape ------------------------------------------------------------------------------------- */

/* Same elements in row-major order. One extent may be -1: it follows from the others. */
int mlx_reshape(mlx_array* res, const mlx_array a, const int* shape, size_t shape_num,
                const mlx_stream s);

/* Merge axes start to end into one; split one into `shape`, of which one extent may be -1. */
int mlx_flatten(mlx_array* res, const mlx_array a, int start_axis, int end_axis,
                const mlx_stream s);
int mlx_unflatten(mlx_array* res, const mlx_array a, int axis, const int* shape, size_t shape_num,
                  const mlx_stream s);

/* Remove axes of extent 1 (the given, or all); add such axes, at their places in the result. */
int mlx_squeeze_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
                     const mlx_stream s);
int mlx_squeeze_axis(mlx_array* res, const mlx_array a, int axis, const mlx_stream s);
int mlx_squeeze(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_expand_dims_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
                         const mlx_stream s);
int mlx_expand_dims(mlx_array* res, const mlx_array a, int axis, const mlx_stream s);

/* Leading axes of extent 1 until there are that many (in 3-d, a vector becomes (1, n, 1) and a
 * matrix (m, n, 1)). */
int mlx_atleast_1d(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_atleast_2d(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_atleast_3d(mlx_array* res, const mlx_array a, const mlx_stream s);

/* Axes in another order; reversed when none are given. */
int mlx_transpose_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
                       const mlx_stream s);
int mlx_transpose(mlx_array* res, const mlx_array a, const mlx_stream s);
int mlx_swapaxes(mlx_array* res, const mlx_array a, int axis1, int axis2, const mlx_stream s);
int mlx_moveaxis(mlx_array* res, const mlx_array a, int source, int destination,
                 const mlx_stream s);

/* Stretch axes of extent 1, and add leading ones, to reach `shape`; or to reach a common shape. */
int mlx_broadcast_to(mlx_array* res, const mlx_array a, const int* shape, size_t shape_num,
                     const mlx_stream s);
int mlx_broadcast_arrays(mlx_vector_array* res, const mlx_vector_array inputs, const mlx_stream s);

/* A view with any strides (elements, may be negative or 0) from `offset`, over the row-major
 * elements of `a`. One that would reach outside is an error. */
int mlx_as_strided(mlx_array* res, const mlx_array a, const int* shape, size_t shape_num,
                   const int64_t* strides, size_t strides_num, size_t offset, const mlx_stream s);

/* The same values laid out in row-major order (or column-major, when allowed and so already). */
int mlx_contiguous(mlx_array* res, const mlx_array a, bool allow_col_major, const mlx_stream s);

/* Joining, splitting, repeating ------------------------------------------------------------- */

/* Along an existing axis (all flattened when none is given), promoted; along a new one (the first
 * when none is given). An empty list is an error. */
int mlx_concatenate_axis(mlx_array* res, const mlx_vector_array arrays, int axis,
                         const mlx_stream s);
int mlx_concatenate(mlx_array* res, const mlx_vector_array arrays, const mlx_stream s);
int mlx_stack_axis(mlx_array* res, const mlx_vector_array arrays, int axis, const mlx_stream s);
int mlx_stack(mlx_array* res, const mlx_vector_array arrays, const mlx_stream s);

/* Into equal parts, which must fit; at the given indices. */
int mlx_split(mlx_vector_array* res, const mlx_array a, int num_splits, int axis,
              const mlx_stream s);
int mlx_split_sections(mlx_vector_array* res, const mlx_array a, const int* indices,
                       size_t indices_num, int axis, const mlx_stream s);

/* Each element `repeats` times along an axis, or flattened; the whole `reps` times along each
 * axis. */
int mlx_repeat_axis(mlx_array* res, const mlx_array arr, int repeats, int axis, const mlx_stream s);
int mlx_repeat(mlx_array* res, const mlx_array arr, int repeats, const mlx_stream s);
int mlx_tile(mlx_array* res, const mlx_array arr, const int* reps, size_t reps_num,
             const mlx_stream s);

/* Add elements around the listed axes, or around all: "constant" with `pad_value`, or "edge". */
int mlx_pad(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
            const int* low_pad_size, size_t low_pad_size_num, const int* high_pad_size,
            size_t high_pad_size_num, const mlx_array pad_value, const char* mode,
            const mlx_stream s);
int mlx_pad_symmetric(mlx_array* res, const mlx_array a, int pad_width, const mlx_array pad_value,
                      const char* mode, const mlx_stream s);

/* Rotate by `shift` along axes, one shift each (or one for all); flattened when no axis is
 * given. */
int mlx_roll_axis(mlx_array* res, const mlx_array a, const int* shift, size_t shift_num, int axis,
                  const mlx_stream s);
int mlx_roll_axes(mlx_array* res, const mlx_array a, const int* shift, size_t shift_num,
                  const int* axes, size_t axes_num, const mlx_stream s);
int mlx_roll(mlx_array* res, const mlx_array a, const int* shift, size_t shift_num,
             const mlx_stream s);

/* Slices ------------------------------------------------------------------------------------ */

/* From start to stop by strides, one of each for every axis, clamped; negative indices count from
 * the end, and strides may be negative. */
int mlx_slice(mlx_array* res, const mlx_array a, const int* start, size_t start_num,
              const int* stop, size_t stop_num, const int* strides, size_t strides_num,
              const mlx_stream s);

/* `src` with that slice replaced by, or combined with, `update`, which broadcasts to it. */
int mlx_slice_update(mlx_array* res, const mlx_array src, const mlx_array update, const int* start,
                     size_t start_num, const int* stop, size_t stop_num, const int* strides,
                     size_t strides_num, const mlx_stream s);
int mlx_slice_update_add(mlx_array* res, const mlx_array src, const mlx_array update,
                         const int* start, size_t start_num, const int* stop, size_t stop_num,
                         const int* strides, size_t strides_num, const mlx_stream s);
int mlx_slice_update_max(mlx_array* res, const mlx_array src, const mlx_array update,
                         const int* start, size_t start_num, const int* stop, size_t stop_num,
                         const int* strides, size_t strides_num, const mlx_stream s);
int mlx_slice_update_min(mlx_array* res, const mlx_array src, const mlx_array update,
                         const int* start, size_t start_num, const int* stop, size_t stop_num,
                         const int* strides, size_t strides_num, const mlx_stream s);
int mlx_slice_update_prod(mlx_array* res, const mlx_array src, const mlx_array update,
                          const int* start, size_t start_num, const int* stop, size_t stop_num,
                          const int* strides, size_t strides_num, const mlx_stream s);

/* The start is an integer array with one entry for each of `axes`, clamped so that the slice fits.
 * `slice_size` has an extent for every axis. */
int mlx_slice_dynamic(mlx_array* res, const mlx_array a, const mlx_array start, const int* axes,
                      size_t axes_num, const int* slice_size, size_t slice_size_num,
                      const mlx_stream s);
int mlx_slice_update_dynamic(mlx_array* res, const mlx_array src, const mlx_array update,
                             const mlx_array start, const int* axes, size_t axes_num,
                             const mlx_stream s);

/* Gather and scatter ------------------------------------------------------------------------ */

/* Indices are integers and count from the end when negative. Out of range: RP_ERR_INDEX if their
 * values are known by now, else they are clamped; memory outside an array is never touched.
 *
 * The slices of `a` at `indices` along an axis, or elements of the flattened array. The shape of
 * the indices takes the place of the axis. */
int mlx_take_axis(mlx_array* res, const mlx_array a, const mlx_array indices, int axis,
                  const mlx_stream s);
int mlx_take(mlx_array* res, const mlx_array a, const mlx_array indices, const mlx_stream s);

/* Element by element along an axis: indices broadcast with `a` but for that axis. Read; write; add
 * to. */
int mlx_take_along_axis(mlx_array* res, const mlx_array a, const mlx_array indices, int axis,
                        const mlx_stream s);
int mlx_put_along_axis(mlx_array* res, const mlx_array a, const mlx_array indices,
                       const mlx_array values, int axis, const mlx_stream s);
int mlx_scatter_add_axis(mlx_array* res, const mlx_array a, const mlx_array indices,
                         const mlx_array values, int axis, const mlx_stream s);

/* Slices of `slice_sizes` at the places that `indices`, one array for each of `axes`, give; the
 * result's shape is theirs, broadcast, followed by the slice's. */
int mlx_gather(mlx_array* res, const mlx_array a, const mlx_vector_array indices, const int* axes,
               size_t axes_num, const int* slice_sizes, size_t slice_sizes_num, const mlx_stream s);
int mlx_gather_single(mlx_array* res, const mlx_array a, const mlx_array indices, int axis,
                      const int* slice_sizes, size_t slice_sizes_num, const mlx_stream s);

/* `a` with the slices at those places replaced by, or combined with, `updates`, whose shape is that
 * of the gather. Combining is in index order; of several replacements the last stays. */
int mlx_scatter(mlx_array* res, const mlx_array a, const mlx_vector_array indices,
                const mlx_array updates, const int* axes, size_t axes_num, const mlx_stream s);
int mlx_scatter_single(mlx_array* res, const mlx_array a, const mlx_array indices,
                       const mlx_array updates, int axis, const mlx_stream s);
int mlx_scatter_add(mlx_array* res, const mlx_array a, const mlx_vector_array indices,
                    const mlx_array updates, const int* axes, size_t axes_num, const mlx_stream s);
int mlx_scatter_add_single(mlx_array* res, const mlx_array a, const mlx_array indices,
                           const mlx_array updates, int axis, const mlx_stream s);
int mlx_scatter_max(mlx_array* res, const mlx_array a, const mlx_vector_array indices,
                    const mlx_array updates, const int* axes, size_t axes_num, const mlx_stream s);
int mlx_scatter_max_single(mlx_array* res, const mlx_array a, const mlx_array indices,
                           const mlx_array updates, int axis, const mlx_stream s);
int mlx_scatter_min(mlx_array* res, const mlx_array a, const mlx_vector_array indices,
                    const mlx_array updates, const int* axes, size_t axes_num, const mlx_stream s);
int mlx_scatter_min_single(mlx_array* res, const mlx_array a, const mlx_array indices,
                           const mlx_array updates, int axis, const mlx_stream s);
int mlx_scatter_prod(mlx_array* res, const mlx_array a, const mlx_vector_array indices,
                     const mlx_array updates, const int* axes, size_t axes_num, const mlx_stream s);
int mlx_scatter_prod_single(mlx_array* res, const mlx_array a, const mlx_array indices,
                            const mlx_array updates, int axis, const mlx_stream s);

/* `a` with its elements at true places of `mask` replaced by the elements of `src`, in order. */
int mlx_masked_scatter(mlx_array* res, const mlx_array a, const mlx_array mask, const mlx_array src,
                       const mlx_stream s);

/* Products ---------------------------------------------------------------------------------- */

/* (..., m, k) by (..., k, n); leading axes broadcast, floats promoted. A vector is a row on the
 * left, a column on the right, and that axis is dropped again. */
int mlx_matmul(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* beta c + alpha (a b), rounded once. */
int mlx_addmm(mlx_array* res, const mlx_array c, const mlx_array a, const mlx_array b, float alpha,
              float beta, const mlx_stream s);

/* Sums of products over the last axes; of all pairs; of the listed pairs of axes, or the last
 * `axis` of `a` with the first of `b`. */
int mlx_inner(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_outer(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);
int mlx_tensordot(mlx_array* res, const mlx_array a, const mlx_array b, const int* axes_a,
                  size_t axes_a_num, const int* axes_b, size_t axes_b_num, const mlx_stream s);
int mlx_tensordot_axis(mlx_array* res, const mlx_array a, const mlx_array b, int axis,
                       const mlx_stream s);

/* The Kronecker product: every element of a times all of b. Empty arrays are an error. */
int mlx_kron(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s);

/* Einstein's notation, such as "ij,jk->ik"; the order of contraction is chosen. */
int mlx_einsum(mlx_array* res, const char* subscripts, const mlx_vector_array operands,
               const mlx_stream s);

/* Products of blocks of 32 or 64: those masked out are taken as 0, or scaled by a mask of
 * floats. */
int mlx_block_masked_mm(mlx_array* res, const mlx_array a, const mlx_array b, int block_size,
                        const mlx_array mask_out /* may be empty */,
                        const mlx_array mask_lhs /* may be empty */,
                        const mlx_array mask_rhs /* may be empty */, const mlx_stream s);

/* Matrices picked from the batches by indices (0, 1, ... when not given), which broadcast.
 * `sorted_indices` promises that the right ones ascend; results do not depend on it. */
int mlx_gather_mm(mlx_array* res, const mlx_array a, const mlx_array b,
                  const mlx_array lhs_indices /* may be empty */,
                  const mlx_array rhs_indices /* may be empty */, bool sorted_indices,
                  const mlx_stream s);

/* One product for each pair (from, to) in `segments`, over that range of the inner axis. */
int mlx_segmented_mm(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_array segments,
                     const mlx_stream s);

/* The last axis times a Hadamard matrix, scaled (1 / sqrt(n) when not given); its extent n is m 2^k
 * with m of 1, 12, 20 or 28. */
int mlx_hadamard_transform(mlx_array* res, const mlx_array a, mlx_optional_float scale,
                           const mlx_stream s);

/* Quantised matrices ------------------------------------------------------------------------ */

/* `mode` is "affine" (groups of 32, 64 or 128 with a scale and a bias, 2 to 6 or 8 bits; 64 and 4
 * when not given), "mxfp4", "mxfp8" or "nvfp4" (no biases). The last axis is packed into uint32.
 *
 * To the list (w, scales) or (w, scales, biases), and back, in `dtype` or that of the scales. */
int mlx_quantize(mlx_vector_array* res, const mlx_array w, mlx_optional_int group_size,
                 mlx_optional_int bits, const char* mode,
                 const mlx_array global_scale /* may be empty */, const mlx_stream s);
int mlx_dequantize(mlx_array* res, const mlx_array w, const mlx_array scales,
                   const mlx_array biases /* may be empty */, mlx_optional_int group_size,
                   mlx_optional_int bits, const char* mode,
                   const mlx_array global_scale /* may be empty */, mlx_optional_dtype dtype,
                   const mlx_stream s);

/* x times wᵀ when `transpose`, else w, of a quantised w; picked by indices as in mlx_gather_mm. */
int mlx_quantized_matmul(mlx_array* res, const mlx_array x, const mlx_array w,
                         const mlx_array scales, const mlx_array biases /* may be empty */,
                         bool transpose, mlx_optional_int group_size, mlx_optional_int bits,
                         const char* mode, const mlx_stream s);
int mlx_gather_qmm(mlx_array* res, const mlx_array x, const mlx_array w, const mlx_array scales,
                   const mlx_array biases /* may be empty */,
                   const mlx_array lhs_indices /* may be empty */,
                   const mlx_array rhs_indices /* may be empty */, bool transpose,
                   mlx_optional_int group_size, mlx_optional_int bits, const char* mode,
                   bool sorted_indices, const mlx_stream s);

/* The same with `x` quantised too; `w` may be given unquantised, without scales. */
int mlx_qqmm(mlx_array* res, const mlx_array x, const mlx_array w,
             const mlx_array w_scales /* may be empty */, mlx_optional_int group_size,
             mlx_optional_int bits, const char* mode,
             const mlx_array global_scale_x /* may be empty */,
             const mlx_array global_scale_w /* may be empty */, const mlx_stream s);

/* Convolutions (channels last) -------------------------------------------------------------- */

/* input (N, spatial..., C_in), weight (C_out, spatial..., C_in / groups). Not flipped: a
 * correlation. */
int mlx_conv1d(mlx_array* res, const mlx_array input, const mlx_array weight, int stride,
               int padding, int dilation, int groups, const mlx_stream s);
int mlx_conv2d(mlx_array* res, const mlx_array input, const mlx_array weight, int stride_0,
               int stride_1, int padding_0, int padding_1, int dilation_0, int dilation_1,
               int groups, const mlx_stream s);
int mlx_conv3d(mlx_array* res, const mlx_array input, const mlx_array weight, int stride_0,
               int stride_1, int stride_2, int padding_0, int padding_1, int padding_2,
               int dilation_0, int dilation_1, int dilation_2, int groups, const mlx_stream s);

/* The transposes, that is the gradients for their input; `output_padding` is added at the far
 * side. */
int mlx_conv_transpose1d(mlx_array* res, const mlx_array input, const mlx_array weight, int stride,
                         int padding, int dilation, int output_padding, int groups,
                         const mlx_stream s);
int mlx_conv_transpose2d(mlx_array* res, const mlx_array input, const mlx_array weight,
                         int stride_0, int stride_1, int padding_0, int padding_1, int dilation_0,
                         int dilation_1, int output_padding_0, int output_padding_1, int groups,
                         const mlx_stream s);
int mlx_conv_transpose3d(mlx_array* res, const mlx_array input, const mlx_array weight,
                         int stride_0, int stride_1, int stride_2, int padding_0, int padding_1,
                         int padding_2, int dilation_0, int dilation_1, int dilation_2,
                         int output_padding_0, int output_padding_1, int output_padding_2,
                         int groups, const mlx_stream s);

/* Any number of spatial axes (1 to 3), with padding on either side, negative too; lists of one
 * count for all axes. `flip` turns the kernel round. */
int mlx_conv_general(mlx_array* res, const mlx_array input, const mlx_array weight,
                     const int* stride, size_t stride_num, const int* padding_lo,
                     size_t padding_lo_num, const int* padding_hi, size_t padding_hi_num,
                     const int* kernel_dilation, size_t kernel_dilation_num,
                     const int* input_dilation, size_t input_dilation_num, int groups, bool flip,
                     const mlx_stream s);

/* Graph ------------------------------------------------------------------------------------- */

/* The array, as a constant for gradients. */
int mlx_stop_gradient(mlx_array* res, const mlx_array a, const mlx_stream s);

/* The inputs, computed only after the dependencies. */
int mlx_depends(mlx_vector_array* res, const mlx_vector_array inputs,
                const mlx_vector_array dependencies);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
