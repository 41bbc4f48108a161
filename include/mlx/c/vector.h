/* Growing lists of arrays, of lists of arrays, of ints and of texts.
 *
 * For each kind X: `new` gives an empty list; `new_data` and `new_value` copy their items into a new
 * list; `set*` replace what `*vec` holds, which may be an empty handle; `append*` add to the list
 * itself, so that every copy of the handle sees it; `size` of an empty handle is 0. Items that are
 * arrays are shared, not duplicated. An index past the end is RP_ERR_INDEX. */
#ifndef MLX_C_VECTOR_H
#define MLX_C_VECTOR_H

#include <stddef.h>

#include "mlx/c/array.h"
#include "mlx/c/string.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Lists of arrays --------------------------------------------------------------------------- */

typedef struct mlx_vector_array_ {
  void* ctx;
} mlx_vector_array;

/* An empty list. */
mlx_vector_array mlx_vector_array_new(void);

/* Make `*vec` a copy of the list `src`. */
int mlx_vector_array_set(mlx_vector_array* vec, const mlx_vector_array src);

int mlx_vector_array_free(mlx_vector_array vec);

/* A list of the `size` arrays at `data`, or of one array. Empty on failure. */
mlx_vector_array mlx_vector_array_new_data(const mlx_array* data, size_t size);
mlx_vector_array mlx_vector_array_new_value(const mlx_array val);

/* Replace the items. */
int mlx_vector_array_set_data(mlx_vector_array* vec, const mlx_array* data, size_t size);
int mlx_vector_array_set_value(mlx_vector_array* vec, const mlx_array val);

/* Add items at the end. */
int mlx_vector_array_append_data(mlx_vector_array vec, const mlx_array* data, size_t size);
int mlx_vector_array_append_value(mlx_vector_array vec, const mlx_array val);

size_t mlx_vector_array_size(mlx_vector_array vec);

/* Make `*res` name item `idx`; the caller frees it. */
int mlx_vector_array_get(mlx_array* res, const mlx_vector_array vec, size_t idx);

/* Lists of lists of arrays ------------------------------------------------------------------ */

typedef struct mlx_vector_vector_array_ {
  void* ctx;
} mlx_vector_vector_array;

/* As for lists of arrays; the items are copied lists. */
mlx_vector_vector_array mlx_vector_vector_array_new(void);
int mlx_vector_vector_array_set(mlx_vector_vector_array* vec, const mlx_vector_vector_array src);
int mlx_vector_vector_array_free(mlx_vector_vector_array vec);
mlx_vector_vector_array mlx_vector_vector_array_new_data(const mlx_vector_array* data, size_t size);
mlx_vector_vector_array mlx_vector_vector_array_new_value(const mlx_vector_array val);
int mlx_vector_vector_array_set_data(mlx_vector_vector_array* vec, const mlx_vector_array* data,
                                     size_t size);
int mlx_vector_vector_array_set_value(mlx_vector_vector_array* vec, const mlx_vector_array val);
int mlx_vector_vector_array_append_data(mlx_vector_vector_array vec, const mlx_vector_array* data,
                                        size_t size);
int mlx_vector_vector_array_append_value(mlx_vector_vector_array vec, const mlx_vector_array val);
size_t mlx_vector_vector_array_size(mlx_vector_vector_array vec);
int mlx_vector_vector_array_get(mlx_vector_array* res, const mlx_vector_vector_array vec,
                                size_t idx);

/* Lists of ints ----------------------------------------------------------------------------- */

typedef struct mlx_vector_int_ {
  void* ctx;
} mlx_vector_int;

/* As for lists of arrays. `data` is only read. */
mlx_vector_int mlx_vector_int_new(void);
int mlx_vector_int_set(mlx_vector_int* vec, const mlx_vector_int src);
int mlx_vector_int_free(mlx_vector_int vec);
mlx_vector_int mlx_vector_int_new_data(int* data, size_t size);
mlx_vector_int mlx_vector_int_new_value(int val);
int mlx_vector_int_set_data(mlx_vector_int* vec, int* data, size_t size);
int mlx_vector_int_set_value(mlx_vector_int* vec, int val);
int mlx_vector_int_append_data(mlx_vector_int vec, int* data, size_t size);
int mlx_vector_int_append_value(mlx_vector_int vec, int val);
size_t mlx_vector_int_size(mlx_vector_int vec);
int mlx_vector_int_get(int* res, const mlx_vector_int vec, size_t idx);

/* Lists of texts ---------------------------------------------------------------------------- */

typedef struct mlx_vector_string_ {
  void* ctx;
} mlx_vector_string;

/* As for lists of arrays; texts are copied, and must not be NULL. */
mlx_vector_string mlx_vector_string_new(void);
int mlx_vector_string_set(mlx_vector_string* vec, const mlx_vector_string src);
int mlx_vector_string_free(mlx_vector_string vec);
mlx_vector_string mlx_vector_string_new_data(const char** data, size_t size);
mlx_vector_string mlx_vector_string_new_value(const char* val);
int mlx_vector_string_set_data(mlx_vector_string* vec, const char** data, size_t size);
int mlx_vector_string_set_value(mlx_vector_string* vec, const char* val);
int mlx_vector_string_append_data(mlx_vector_string vec, const char** data, size_t size);
int mlx_vector_string_append_value(mlx_vector_string vec, const char* val);
size_t mlx_vector_string_size(mlx_vector_string vec);

/* Point `*res` at item `idx`: borrowed until the list is changed or freed, not to be written. */
int mlx_vector_string_get(char** res, const mlx_vector_string vec, size_t idx);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
