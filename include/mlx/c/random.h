/* Random numbers: threefry counters, a function of the key alone.
 *
 * The bits for a key are the same on every machine, thread count and path. A key is a uint32 array
 * of shape (2); an empty one takes the next key of this process's own sequence. `shape` is the
 * shape of the result. */
#ifndef MLX_C_RANDOM_H
#define MLX_C_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "mlx/c/array.h"
#include "mlx/c/stream.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Keys -------------------------------------------------------------------------------------- */

/* The key of a seed. */
int mlx_random_key(mlx_array* res, uint64_t seed);

/* Restart this process's own sequence. */
int mlx_random_seed(uint64_t seed);

/* Two new keys from one; or `num` keys as an array (num, 2). */
int mlx_random_split(mlx_array* res_0, mlx_array* res_1, const mlx_array key, const mlx_stream s);
int mlx_random_split_num(mlx_array* res, const mlx_array key, int num, const mlx_stream s);

/* Distributions ----------------------------------------------------------------------------- */

/* Uniform bits as unsigned integers of `width` bytes: 1, 2 or 4. */
int mlx_random_bits(mlx_array* res, const int* shape, size_t shape_num, int width,
                    const mlx_array key /* may be empty */, const mlx_stream s);

/* Booleans, true with probability `p`, which broadcasts to `shape`. */
int mlx_random_bernoulli(mlx_array* res, const mlx_array p, const int* shape, size_t shape_num,
                         const mlx_array key /* may be empty */, const mlx_stream s);

/* Indices into `axis` of unnormalised log-probabilities, uint32. One sample, without the axis;
 * `num_samples`, as a last axis; or samples of `shape`, which must fit the logits without the
 * axis. */
int mlx_random_categorical(mlx_array* res, const mlx_array logits, int axis,
                           const mlx_array key /* may be empty */, const mlx_stream s);
int mlx_random_categorical_num_samples(mlx_array* res, const mlx_array logits_, int axis,
                                       int num_samples, const mlx_array key /* may be empty */,
                                       const mlx_stream s);
int mlx_random_categorical_shape(mlx_array* res, const mlx_array logits, int axis, const int* shape,
                                 size_t shape_num, const mlx_array key /* may be empty */,
                                 const mlx_stream s);

/* Standard Gumbel; Laplace; normal. The dtype is a floating-point one. */
int mlx_random_gumbel(mlx_array* res, const int* shape, size_t shape_num, mlx_dtype dtype,
                      const mlx_array key /* may be empty */, const mlx_stream s);
int mlx_random_laplace(mlx_array* res, const int* shape, size_t shape_num, mlx_dtype dtype,
                       float loc, float scale, const mlx_array key /* may be empty */,
                       const mlx_stream s);
int mlx_random_normal(mlx_array* res, const int* shape, size_t shape_num, mlx_dtype dtype,
                      float loc, float scale, const mlx_array key /* may be empty */,
                      const mlx_stream s);

/* Normal with array parameters, which broadcast to `shape`; empty ones are 0 and 1. */
int mlx_random_normal_broadcast(mlx_array* res, const int* shape, size_t shape_num, mlx_dtype dtype,
                                const mlx_array loc /* may be empty */,
                                const mlx_array scale /* may be empty */,
                                const mlx_array key /* may be empty */, const mlx_stream s);

/* Jointly normal: `mean` (..., n) and `cov` (..., n, n), float32; the result is `shape` followed by
 * (n), where `shape` fits the leading axes. */
int mlx_random_multivariate_normal(mlx_array* res, const mlx_array mean, const mlx_array cov,
                                   const int* shape, size_t shape_num, mlx_dtype dtype,
                                   const mlx_array key /* may be empty */, const mlx_stream s);

/* Integers from `low` up to and without `high`, which broadcast to `shape`. */
int mlx_random_randint(mlx_array* res, const mlx_array low, const mlx_array high, const int* shape,
                       size_t shape_num, mlx_dtype dtype, const mlx_array key /* may be empty */,
                       const mlx_stream s);

/* Standard normal between the bounds, which broadcast to `shape`. */
int mlx_random_truncated_normal(mlx_array* res, const mlx_array lower, const mlx_array upper,
                                const int* shape, size_t shape_num, mlx_dtype dtype,
                                const mlx_array key /* may be empty */, const mlx_stream s);

/* Uniform from `low` up to and without `high`, which broadcast to `shape`. */
int mlx_random_uniform(mlx_array* res, const mlx_array low, const mlx_array high, const int* shape,
                       size_t shape_num, mlx_dtype dtype, const mlx_array key /* may be empty */,
                       const mlx_stream s);

/* The slices of `x` along `axis` in random order; the integers below `x` in random order. */
int mlx_random_permutation(mlx_array* res, const mlx_array x, int axis,
                           const mlx_array key /* may be empty */, const mlx_stream s);
int mlx_random_permutation_arange(mlx_array* res, int x, const mlx_array key /* may be empty */,
                                  const mlx_stream s);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
