/* Arrays: a shape, a dtype, and values that may not have been computed yet.
 *
 * An array never changes once made; only the handle that names it can be set to another one.
 * Handles that were set to it share it and are counted, so that setting and freeing are cheap and
 * may happen on any thread. */
#ifndef MLX_C_ARRAY_H
#define MLX_C_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mlx/c/half.h"
#include "mlx/c/string.h"

#ifdef __cplusplus
#include <complex>
/* Two floats, real part first. */
typedef std::complex<float> mlx_complex64_t;
#else
/* Two floats, real part first. */
typedef float _Complex mlx_complex64_t;
#endif

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Element types. The values are part of the binary interface. */
typedef enum mlx_dtype_ {
  MLX_BOOL,
  MLX_UINT8,
  MLX_UINT16,
  MLX_UINT32,
  MLX_UINT64,
  MLX_INT8,
  MLX_INT16,
  MLX_INT32,
  MLX_INT64,
  MLX_FLOAT16,
  MLX_FLOAT32,
  MLX_FLOAT64,
  MLX_BFLOAT16,
  MLX_COMPLEX64
} mlx_dtype;

/* Bytes of one element; 0 for an unknown value. */
size_t mlx_dtype_size(mlx_dtype dtype);

/* A handle to an array. Free with mlx_array_free. */
typedef struct mlx_array_ {
  void* ctx;
} mlx_array;

/* Making arrays ----------------------------------------------------------------------------- */

/* An empty handle. */
mlx_array mlx_array_new(void);

/* Release this reference. An empty handle is fine. The values live on while something else refers
 * to them. */
int mlx_array_free(mlx_array arr);

/* Arrays without axes (scalars) of dtype bool, int32, float32, float64 and complex64. Empty on
 * failure. */
mlx_array mlx_array_new_bool(bool val);
mlx_array mlx_array_new_int(int val);
mlx_array mlx_array_new_float32(float val);
mlx_array mlx_array_new_float(float val);
mlx_array mlx_array_new_float64(double val);
mlx_array mlx_array_new_double(double val);
mlx_array mlx_array_new_complex(float real_val, float imag_val);

/* An array of `dim` axes with the extents `shape` (each 0 or more; may be NULL when `dim` is 0).
 * The row-major elements at `data` are copied. `data` may be NULL when there are no elements. */
mlx_array mlx_array_new_data(const void* data, const int* shape, int dim, mlx_dtype dtype);

/* The same without a copy: `data` must stay valid and unchanged until `dtor` is called, exactly
 * once, on whichever thread releases the last reference, and also when the call fails. It receives
 * `data`, or `payload` in the second form. `dtor` may be NULL. */
mlx_array mlx_array_new_data_managed(void* data, const int* shape, int dim, mlx_dtype dtype,
                                     void (*dtor)(void*));
mlx_array mlx_array_new_data_managed_payload(void* data, const int* shape, int dim, mlx_dtype dtype,
                                             void* payload, void (*dtor)(void*));

/* Make `*arr` name another array, releasing the one it named. `*arr` may be empty, or `src`. */
int mlx_array_set(mlx_array* arr, const mlx_array src);

/* The same with a new scalar, or with a copy of the data as in mlx_array_new_data. */
int mlx_array_set_bool(mlx_array* arr, bool val);
int mlx_array_set_int(mlx_array* arr, int val);
int mlx_array_set_float32(mlx_array* arr, float val);
int mlx_array_set_float(mlx_array* arr, float val);
int mlx_array_set_float64(mlx_array* arr, double val);
int mlx_array_set_double(mlx_array* arr, double val);
int mlx_array_set_complex(mlx_array* arr, float real_val, float imag_val);
int mlx_array_set_data(mlx_array* arr, const void* data, const int* shape, int dim,
                       mlx_dtype dtype);

/* What an array is (known without computing it) --------------------------------------------- */

/* Bytes of an element, number of elements, bytes of all elements, number of axes. 0 for an empty
 * handle. */
size_t mlx_array_itemsize(const mlx_array arr);
size_t mlx_array_size(const mlx_array arr);
size_t mlx_array_nbytes(const mlx_array arr);
size_t mlx_array_ndim(const mlx_array arr);

/* The extents, one for each axis; borrowed, valid while the array lives. NULL for an empty
 * handle. */
const int* mlx_array_shape(const mlx_array arr);

/* Distances between neighbours along each axis, in elements, of the data that mlx_array_data_*
 * returns; borrowed, valid while the array lives. Evaluates the array if need be; NULL on
 * failure. */
const size_t* mlx_array_strides(const mlx_array arr);

/* The extent of axis `dim`, which may count from the end. 0 after an error. */
int mlx_array_dim(const mlx_array arr, int dim);

/* The element type. MLX_BOOL after an error. */
mlx_dtype mlx_array_dtype(const mlx_array arr);

/* Values ------------------------------------------------------------------------------------ */

/* Compute the array now and wait for it. An error when it is the input of a trace in progress, or
 * depends on one. */
int mlx_array_eval(mlx_array arr);

/* The value of an array with one element, converted as mlx_astype converts (an int32 read as uint32
 * keeps its bits). Evaluates the array; an error for any other size. */
int mlx_array_item_bool(bool* res, const mlx_array arr);
int mlx_array_item_uint8(uint8_t* res, const mlx_array arr);
int mlx_array_item_uint16(uint16_t* res, const mlx_array arr);
int mlx_array_item_uint32(uint32_t* res, const mlx_array arr);
int mlx_array_item_uint64(uint64_t* res, const mlx_array arr);
int mlx_array_item_int8(int8_t* res, const mlx_array arr);
int mlx_array_item_int16(int16_t* res, const mlx_array arr);
int mlx_array_item_int32(int32_t* res, const mlx_array arr);
int mlx_array_item_int64(int64_t* res, const mlx_array arr);
int mlx_array_item_float32(float* res, const mlx_array arr);
int mlx_array_item_float64(double* res, const mlx_array arr);
int mlx_array_item_complex64(mlx_complex64_t* res, const mlx_array arr);
int mlx_array_item_float16(float16_t* res, const mlx_array arr);
int mlx_array_item_bfloat16(bfloat16_t* res, const mlx_array arr);

/* The elements in row-major order, read as they are in memory: the dtype is not converted, so that
 * bfloat16 may be read through mlx_array_data_uint16. Evaluates the array. Borrowed, 64-byte
 * aligned, valid while the array lives, not to be written. NULL on failure. */
const bool* mlx_array_data_bool(const mlx_array arr);
const uint8_t* mlx_array_data_uint8(const mlx_array arr);
const uint16_t* mlx_array_data_uint16(const mlx_array arr);
const uint32_t* mlx_array_data_uint32(const mlx_array arr);
const uint64_t* mlx_array_data_uint64(const mlx_array arr);
const int8_t* mlx_array_data_int8(const mlx_array arr);
const int16_t* mlx_array_data_int16(const mlx_array arr);
const int32_t* mlx_array_data_int32(const mlx_array arr);
const int64_t* mlx_array_data_int64(const mlx_array arr);
const float* mlx_array_data_float32(const mlx_array arr);
const double* mlx_array_data_float64(const mlx_array arr);
const mlx_complex64_t* mlx_array_data_complex64(const mlx_array arr);
const float16_t* mlx_array_data_float16(const mlx_array arr);
const bfloat16_t* mlx_array_data_bfloat16(const mlx_array arr);

/* A text with the values, shape and dtype; large arrays are abridged. Evaluates the array. */
int mlx_array_tostring(mlx_string* str, const mlx_array arr);

/* State of the values ----------------------------------------------------------------------- */

/* Whether they have been computed. Never waits. */
int _mlx_array_is_available(bool* res, const mlx_array arr);

/* Wait for a computation that mlx_async_eval has begun. */
int _mlx_array_wait(const mlx_array arr);

/* Whether the elements lie in memory without gaps; without gaps in row-major order; in column-major
 * order. An error before the array is evaluated. */
int _mlx_array_is_contiguous(bool* res, const mlx_array arr);
int _mlx_array_is_row_contiguous(bool* res, const mlx_array arr);
int _mlx_array_is_col_contiguous(bool* res, const mlx_array arr);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
