/* Graphs as text. Nothing is evaluated. */
#ifndef MLX_C_GRAPH_UTILS_H
#define MLX_C_GRAPH_UTILS_H

#include <stdio.h>

#include "mlx/c/array.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Names for arrays, used when a graph is printed. */
typedef struct mlx_node_namer_ {
  void* ctx;
} mlx_node_namer;

mlx_node_namer mlx_node_namer_new(void);
int mlx_node_namer_free(mlx_node_namer namer);

/* Copy a name for `arr`, which must outlive the namer's use. */
int mlx_node_namer_set_name(mlx_node_namer namer, const mlx_array arr, const char* name);

/* The name of `arr`, made up if it has none; borrowed until the namer is freed or the name set
 * again. */
int mlx_node_namer_get_name(const char** name, mlx_node_namer namer, const mlx_array arr);

/* Write what `outputs` depend on to `os`, in the DOT language, or one operation a line. */
int mlx_export_to_dot(FILE* os, const mlx_node_namer namer, const mlx_vector_array outputs);
int mlx_print_graph(FILE* os, const mlx_node_namer namer, const mlx_vector_array outputs);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
