/* Compile a function of the host without fixed sizes: one trace serves every length.
 *
 * Prints: traces: 1
 */
#include <stdio.h>

#include "mlx/c/mlx.h"
#include "reprise/stats.h"

/* sum(x * x) */
static int sum_of_squares(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_stream s = mlx_default_cpu_stream_new();
  mlx_array x = mlx_array_new(), square = mlx_array_new(), sum = mlx_array_new();
  int rc = mlx_vector_array_get(&x, in, 0);
  if (!rc) rc = mlx_multiply(&square, x, x, s);
  if (!rc) rc = mlx_sum(&sum, square, false, s);
  if (!rc) rc = mlx_vector_array_append_value(*res, sum);
  mlx_array_free(x);
  mlx_array_free(square);
  mlx_array_free(sum);
  mlx_stream_free(s);
  return rc;
}

static int apply(mlx_closure f, int length) {
  float data[3] = {1, 2, 3}, value = 0;
  mlx_array x = mlx_array_new_data(data, &length, 1, MLX_FLOAT32), y = mlx_array_new();
  mlx_vector_array in = mlx_vector_array_new_value(x), out = mlx_vector_array_new();
  int rc = mlx_closure_apply(&out, f, in);
  if (!rc) rc = mlx_vector_array_get(&y, out, 0);
  if (!rc) rc = mlx_array_item_float32(&value, y);
  if (!rc) printf("length %d: %g\n", length, value);
  mlx_array_free(x);
  mlx_array_free(y);
  mlx_vector_array_free(in);
  mlx_vector_array_free(out);
  return rc;
}

int main(void) {
  mlx_closure fun = mlx_closure_new_func(sum_of_squares), compiled = mlx_closure_new();
  rp_closure_stats stats = {0};
  int rc = mlx_compile(&compiled, fun, true);
  for (int length = 1; length <= 3 && !rc; length++) rc = apply(compiled, length);
  if (!rc) rc = rp_closure_get_stats(&stats, compiled);
  if (!rc) printf("traces: %llu\n", (unsigned long long)stats.traces);
  mlx_closure_free(fun);
  mlx_closure_free(compiled);
  return rc ? 1 : 0;
}
