/* Arrays in files: NumPy's .npy, safetensors, GGUF.
 *
 * Loading checks the whole header and every extent before it returns; the values are read when they
 * are evaluated, and a file that fails then is RP_ERR_IO. Saving evaluates, writes beside the file
 * and renames, so that a failure leaves the old file. RP_ERR_IO when the system refuses,
 * RP_ERR_FORMAT when a file does not follow its format. */
#ifndef MLX_C_IO_H
#define MLX_C_IO_H

#include "mlx/c/array.h"
#include "mlx/c/io_types.h"
#include "mlx/c/map.h"
#include "mlx/c/stream.h"
#include "mlx/c/string.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Loading ----------------------------------------------------------------------------------- */

/* One array of an .npy stream or file; column-major files are transposed. */
int mlx_load_reader(mlx_array* res, mlx_io_reader in_stream, const mlx_stream s);
int mlx_load(mlx_array* res, const char* file, const mlx_stream s);

/* Arrays and metadata of a GGUF file. Blocks of a format that mlx_dequantize knows are kept packed
 * as weights, scales and biases; others are expanded to float16. */
int mlx_load_gguf(mlx_io_gguf* gguf, const char* file, const mlx_stream s);

/* Arrays (`*res_0`) and metadata (`*res_1`) of a safetensors stream or file. */
int mlx_load_safetensors_reader(mlx_map_string_to_array* res_0, mlx_map_string_to_string* res_1,
                                mlx_io_reader in_stream, const mlx_stream s);
int mlx_load_safetensors(mlx_map_string_to_array* res_0, mlx_map_string_to_string* res_1,
                         const char* file, const mlx_stream s);

/* Saving ------------------------------------------------------------------------------------ */

/* One array as .npy. bfloat16 has no name there and is RP_ERR_DTYPE. */
int mlx_save_writer(mlx_io_writer out_stream, const mlx_array a);
int mlx_save(const char* file, const mlx_array a);

int mlx_save_gguf(const char* file, mlx_io_gguf gguf);

/* Arrays and metadata (may be an empty handle) as safetensors. */
int mlx_save_safetensors_writer(mlx_io_writer in_stream, const mlx_map_string_to_array param,
                                const mlx_map_string_to_string metadata);
int mlx_save_safetensors(const char* file, const mlx_map_string_to_array param,
                         const mlx_map_string_to_string metadata);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
