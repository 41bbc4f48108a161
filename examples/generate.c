/* What a language model's GGUF file holds: the first step of generating text. The rest of the way
 * is `reprise generate`.
 *
 * Prints: architecture: llama
 */
#include <stdio.h>

#include "mlx/c/mlx.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: generate MODEL.gguf\n");
    return 2;
  }
  mlx_stream s = mlx_default_cpu_stream_new();
  mlx_io_gguf file = mlx_io_gguf_new();
  mlx_vector_string names = mlx_vector_string_new();
  mlx_string text = mlx_string_new();
  int rc = mlx_load_gguf(&file, argv[1], s);
  if (!rc) rc = mlx_io_gguf_get_keys(&names, file);
  if (!rc) rc = mlx_io_gguf_get_metadata_string(&text, file, "general.architecture");
  if (!rc) {
    printf("arrays: %zu\n", mlx_vector_string_size(names));
    printf("architecture: %s\n", mlx_string_data(text));
  }
  mlx_string_free(text);
  mlx_vector_string_free(names);
  mlx_io_gguf_free(file);
  mlx_stream_free(s);
  return rc ? 1 : 0;
}
