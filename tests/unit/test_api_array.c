/* The text of an array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mlx/c/mlx.h"

static void assert_text(mlx_array a, const char* want) {
  mlx_string s = mlx_string_new();
  assert_int_equal(mlx_array_tostring(&s, a), 0);
  assert_string_equal(mlx_string_data(s), want);
  mlx_string_free(s);
  mlx_array_free(a);
}

static void a_scalar_is_written_without_brackets(void** state) {
  (void)state;
  assert_text(mlx_array_new_float(1.5f), "array(1.5, dtype=float32)");
  assert_text(mlx_array_new_bool(true), "array(True, dtype=bool)");
  assert_text(mlx_array_new_complex(1, -2), "array(1-2j, dtype=complex64)");
}

static void rows_are_written_below_each_other(void** state) {
  (void)state;
  int32_t v[] = {1, 2, 3, 4};
  assert_text(mlx_array_new_data(v, (int[]){2, 2}, 2, MLX_INT32),
              "array([[1, 2],\n       [3, 4]], dtype=int32)");
  assert_text(mlx_array_new_data(v, (int[]){0, 2}, 2, MLX_INT32), "array([], dtype=int32)");
}

static void long_axes_are_shortened_and_views_are_read_in_order(void** state) {
  (void)state;
  mlx_stream s = mlx_default_cpu_stream_new();
  mlx_array a = mlx_array_new(), t = mlx_array_new();
  assert_int_equal(mlx_arange(&a, 0, 100, 1, MLX_INT32, s), 0);
  assert_text(a, "array([0, 1, 2, ..., 97, 98, 99], dtype=int32)");
  int32_t v[] = {1, 2, 3, 4, 5, 6};
  a = mlx_array_new_data(v, (int[]){2, 3}, 2, MLX_INT32);
  assert_int_equal(mlx_transpose(&t, a, s), 0);
  assert_text(t, "array([[1, 4],\n       [2, 5],\n       [3, 6]], dtype=int32)");
  mlx_array_free(a);
  mlx_stream_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_scalar_is_written_without_brackets),
      cmocka_unit_test(rows_are_written_below_each_other),
      cmocka_unit_test(long_axes_are_shortened_and_views_are_read_in_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
