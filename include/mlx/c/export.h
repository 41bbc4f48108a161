/* Functions as files: trace once, save the graph, run it elsewhere. */
#ifndef MLX_C_EXPORT_H
#define MLX_C_EXPORT_H

#include <stdbool.h>

#include "mlx/c/closure.h"
#include "mlx/c/map.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Trace `fun` at the shapes of `args` (and `kwargs`, which may be an empty handle) and write the
 * graph with the constants it captured. `shapeless` files run at other sizes of the same ranks. An
 * existing file is replaced only on success. */
int mlx_export_function(const char* file, const mlx_closure fun, const mlx_vector_array args,
                        bool shapeless);
int mlx_export_function_kwargs(const char* file, const mlx_closure_kwargs fun,
                               const mlx_vector_array args, const mlx_map_string_to_array kwargs,
                               bool shapeless);

/* Writes one file with a trace for each signature that it is applied to. */
typedef struct mlx_function_exporter_ {
  void* ctx;
} mlx_function_exporter;

/* Begin a file; empty on failure. Each apply traces and adds. Freeing finishes the file. */
mlx_function_exporter mlx_function_exporter_new(const char* file, const mlx_closure fun,
                                                bool shapeless);
int mlx_function_exporter_free(mlx_function_exporter xfunc);
int mlx_function_exporter_apply(const mlx_function_exporter xfunc, const mlx_vector_array args);
int mlx_function_exporter_apply_kwargs(const mlx_function_exporter xfunc,
                                       const mlx_vector_array args,
                                       const mlx_map_string_to_array kwargs);

typedef struct mlx_imported_function_ {
  void* ctx;
} mlx_imported_function;

/* Read a file; empty on failure (RP_ERR_IO, RP_ERR_FORMAT). Files are not trusted: a broken one is
 * an error. */
mlx_imported_function mlx_imported_function_new(const char* file);

int mlx_imported_function_free(mlx_imported_function xfunc);

/* Run the trace whose signature fits the inputs; RP_ERR_SHAPE when none does. */
int mlx_imported_function_apply(mlx_vector_array* res, const mlx_imported_function xfunc,
                                const mlx_vector_array args);
int mlx_imported_function_apply_kwargs(mlx_vector_array* res, const mlx_imported_function xfunc,
                                       const mlx_vector_array args,
                                       const mlx_map_string_to_array kwargs);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
