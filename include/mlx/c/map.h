/* Maps from texts to arrays and to texts, in order of insertion.
 *
 * Keys are copied. Inserting a key again replaces its value and keeps its place. */
#ifndef MLX_C_MAP_H
#define MLX_C_MAP_H

#include "mlx/c/array.h"
#include "mlx/c/string.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Texts to arrays --------------------------------------------------------------------------- */

typedef struct mlx_map_string_to_array_ {
  void* ctx;
} mlx_map_string_to_array;

/* A place in a map. It borrows the map, which must outlive it and must not change meanwhile. */
typedef struct mlx_map_string_to_array_iterator_ {
  void* ctx;
  void* map_ctx;
} mlx_map_string_to_array_iterator;

/* An empty map. */
mlx_map_string_to_array mlx_map_string_to_array_new(void);

/* Make `*map` a copy of `src`, sharing the arrays. */
int mlx_map_string_to_array_set(mlx_map_string_to_array* map, const mlx_map_string_to_array src);

int mlx_map_string_to_array_free(mlx_map_string_to_array map);

int mlx_map_string_to_array_insert(mlx_map_string_to_array map, const char* key,
                                   const mlx_array value);

/* Make `*value` name the array of `key`; the caller frees it. Returns 2, raising nothing and
 * leaving `*value` alone, when there is no such key. */
int mlx_map_string_to_array_get(mlx_array* value, const mlx_map_string_to_array map,
                                const char* key);

/* Before the first entry of `map`. */
mlx_map_string_to_array_iterator mlx_map_string_to_array_iterator_new(mlx_map_string_to_array map);

int mlx_map_string_to_array_iterator_free(mlx_map_string_to_array_iterator it);

/* Read the next entry: `*key` is borrowed from the map, `*value` is set as by mlx_array_set.
 * Returns 2, raising nothing, past the last entry. */
int mlx_map_string_to_array_iterator_next(const char** key, mlx_array* value,
                                          mlx_map_string_to_array_iterator it);

/* Texts to texts ---------------------------------------------------------------------------- */

typedef struct mlx_map_string_to_string_ {
  void* ctx;
} mlx_map_string_to_string;

typedef struct mlx_map_string_to_string_iterator_ {
  void* ctx;
  void* map_ctx;
} mlx_map_string_to_string_iterator;

/* As above; values are copied in, and borrowed from the map when read. */
mlx_map_string_to_string mlx_map_string_to_string_new(void);
int mlx_map_string_to_string_set(mlx_map_string_to_string* map, const mlx_map_string_to_string src);
int mlx_map_string_to_string_free(mlx_map_string_to_string map);
int mlx_map_string_to_string_insert(mlx_map_string_to_string map, const char* key,
                                    const char* value);
int mlx_map_string_to_string_get(const char** value, const mlx_map_string_to_string map,
                                 const char* key);
mlx_map_string_to_string_iterator mlx_map_string_to_string_iterator_new(
    mlx_map_string_to_string map);
int mlx_map_string_to_string_iterator_free(mlx_map_string_to_string_iterator it);
int mlx_map_string_to_string_iterator_next(const char** key, const char** value,
                                           mlx_map_string_to_string_iterator it);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
