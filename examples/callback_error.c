/* An error raised in a compiled function of the host: the call fails with the message, and the
 * library stays usable.
 *
 * Prints: still usable: 5
 */
#include <stdio.h>

#include "mlx/c/mlx.h"
#include "reprise/error.h"

static int refuse(mlx_vector_array* res, const mlx_vector_array in) {
  (void)res;
  (void)in;
  mlx_error("this function refuses its input");
  return 1;
}

static void stay_silent(const char* message, void* data) {
  (void)message;
  (void)data;
}

static int add_two_and_three(float* value) {
  mlx_stream s = mlx_default_cpu_stream_new();
  mlx_array a = mlx_array_new_float(2), b = mlx_array_new_float(3), c = mlx_array_new();
  int rc = mlx_add(&c, a, b, s);
  if (!rc) rc = mlx_array_item_float32(value, c);
  mlx_array_free(a);
  mlx_array_free(b);
  mlx_array_free(c);
  mlx_stream_free(s);
  return rc;
}

int main(void) {
  mlx_set_error_handler(stay_silent, NULL, NULL); /* the last error is read below */
  mlx_closure fun = mlx_closure_new_func(refuse), compiled = mlx_closure_new();
  mlx_array x = mlx_array_new_float(1);
  mlx_vector_array in = mlx_vector_array_new_value(x), out = mlx_vector_array_new();
  const char* message = "";
  float value = 0;
  int rc = mlx_compile(&compiled, fun, true);
  if (!rc && !mlx_closure_apply(&out, compiled, in)) rc = 1; /* it has to fail */
  if (!rc) {
    rp_error_code code = rp_last_error(&message);
    printf("%s error: %s\n", rp_error_name(code), message);
    rc = add_two_and_three(&value);
  }
  if (!rc) printf("still usable: %g\n", value);
  mlx_array_free(x);
  mlx_vector_array_free(in);
  mlx_vector_array_free(out);
  mlx_closure_free(fun);
  mlx_closure_free(compiled);
  return rc ? 1 : 0;
}
