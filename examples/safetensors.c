/* Save arrays and metadata as safetensors, and load them again.
 *
 * Prints: loaded 'weight': 2 x 3, last value 6, made by: an example
 */
#define _DEFAULT_SOURCE /* mkstemps */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mlx/c/mlx.h"

static int save(const char* path) {
  const float data[] = {1, 2, 3, 4, 5, 6};
  mlx_map_string_to_array arrays = mlx_map_string_to_array_new();
  mlx_map_string_to_string texts = mlx_map_string_to_string_new();
  mlx_array a = mlx_array_new_data(data, (int[]){2, 3}, 2, MLX_FLOAT32);
  int rc = mlx_map_string_to_array_insert(arrays, "weight", a);
  if (!rc) rc = mlx_map_string_to_string_insert(texts, "made by", "an example");
  if (!rc) rc = mlx_save_safetensors(path, arrays, texts);
  mlx_array_free(a);
  mlx_map_string_to_array_free(arrays);
  mlx_map_string_to_string_free(texts);
  return rc;
}

static int load(const char* path) {
  mlx_stream s = mlx_default_cpu_stream_new();
  mlx_map_string_to_array arrays = mlx_map_string_to_array_new();
  mlx_map_string_to_string texts = mlx_map_string_to_string_new();
  mlx_array a = mlx_array_new();
  const char* maker = "";
  int rc = mlx_load_safetensors(&arrays, &texts, path, s);
  if (!rc) rc = mlx_map_string_to_array_get(&a, arrays, "weight");
  if (!rc) rc = mlx_map_string_to_string_get(&maker, texts, "made by");
  const float* values = rc ? NULL : mlx_array_data_float32(a);
  if (values)
    printf("loaded 'weight': %d x %d, last value %g, made by: %s\n", mlx_array_dim(a, 0),
           mlx_array_dim(a, 1), values[5], maker);
  mlx_array_free(a);
  mlx_map_string_to_array_free(arrays);
  mlx_map_string_to_string_free(texts);
  mlx_stream_free(s);
  return values ? 0 : 1;
}

int main(void) {
  char path[] = "/tmp/example-XXXXXX.safetensors";
  int fd = mkstemps(path, 12);
  if (fd < 0) return 1;
  close(fd);
  int rc = save(path);
  if (!rc) rc = load(path);
  remove(path);
  return rc;
}
