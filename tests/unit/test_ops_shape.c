/* Movement, indexing, joining and creation through the public interface: eager, and compiled at sizes that
 * the trace has not seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "mlx/c/mlx.h"
#include "reprise/error.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define INTS(...) (int[]){__VA_ARGS__}, LEN(((int[]){__VA_ARGS__}))

static mlx_stream cpu;

static void ignore(const char* text, void* data) {}

static int set_up(void** state) {
  mlx_set_error_handler(ignore, NULL, NULL);
  cpu = mlx_default_cpu_stream_new();
  return 0;
}

static int tear_down(void** state) { return mlx_stream_free(cpu); }

/* 0, 1, 2, ... in a shape. */
static mlx_array count(mlx_dtype dtype, const int* shape, size_t ndim) {
  mlx_array line = mlx_array_new(), res = mlx_array_new();
  int n = 1;
  for (size_t i = 0; i < ndim; i++) n *= shape[i];
  assert_int_equal(mlx_arange(&line, 0, n, 1, dtype, cpu), 0);
  assert_int_equal(mlx_reshape(&res, line, shape, ndim, cpu), 0);
  mlx_array_free(line);
  return res;
}

static mlx_array ints(const int* values, size_t n) {
  int shape = (int)n;
  return mlx_array_new_data(values, &shape, 1, MLX_INT32);
}

static void assert_shape(mlx_array a, const int* shape, size_t ndim) {
  assert_int_equal(mlx_array_ndim(a), ndim);
  for (size_t i = 0; i < ndim; i++) assert_int_equal(mlx_array_dim(a, (int)i), shape[i]);
}

/* Takes the array. */
static void expect(mlx_array a, const int* shape, size_t ndim, const int* values, size_t n) {
  mlx_array whole = mlx_array_new();
  assert_shape(a, shape, ndim);
  assert_int_equal(mlx_astype(&whole, a, MLX_INT32, cpu), 0);
  assert_int_equal(mlx_array_size(whole), n);
  const int32_t* data = n ? mlx_array_data_int32(whole) : NULL;
  assert_true(n == 0 || data);
  for (size_t i = 0; i < n; i++) assert_int_equal(data[i], values[i]);
  mlx_array_free(whole);
  mlx_array_free(a);
}

static mlx_vector_array list(mlx_array a, mlx_array b) {
  return mlx_vector_array_new_data((mlx_array[]){a, b}, 2);
}

static mlx_array item(mlx_vector_array v, size_t i) {
  mlx_array a = mlx_array_new();
  assert_int_equal(mlx_vector_array_get(&a, v, i), 0);
  return a;
}

/* ---- Cases of the interface ---- */

static void an_index_outside_is_an_error_that_names_it(void** state) {
  mlx_array a = ints((int[]){1, 2}, 2), at = ints((int[]){2}, 1), res = mlx_array_new();
  assert_int_not_equal(mlx_take(&res, a, at, cpu), 0);
  assert_int_equal(rp_last_error(NULL), RP_ERR_INDEX);
  mlx_array_free(at);
  at = ints((int[]){-2, 1}, 2);
  assert_int_equal(mlx_take(&res, a, at, cpu), 0);
  expect(res, INTS(2), INTS(1, 2));
  mlx_array_free(a);
  mlx_array_free(at);
}

static void negative_extents_and_other_ranks_are_errors(void** state) {
  mlx_array zero = mlx_array_new_int(0), res = mlx_array_new();
  assert_int_not_equal(mlx_full(&res, INTS(-1), zero, MLX_INT32, cpu), 0);
  mlx_array a = count(MLX_INT32, INTS(2)), b = count(MLX_INT32, INTS(2, 2));
  mlx_vector_array v = list(a, b);
  assert_int_not_equal(mlx_concatenate_axis(&res, v, 0, cpu), 0);
  assert_int_not_equal(mlx_stack(&res, v, cpu), 0);
  assert_null(res.ctx);
  mlx_vector_array_free(v);
  mlx_array_free(a);
  mlx_array_free(b);
  mlx_array_free(zero);
}

static mlx_array flip(mlx_array a) {
  mlx_array res = mlx_array_new();
  int rows = mlx_array_dim(a, 0), cols = mlx_array_dim(a, 1);
  assert_int_equal(mlx_slice(&res, a, INTS(rows - 1, 0), INTS(-rows - 1, cols), INTS(-1, 1), cpu), 0);
  mlx_array_free(a);
  return res;
}

static void reversing_rows_an_even_number_of_times_changes_nothing(void** state) {
  mlx_array a = count(MLX_INT32, INTS(17, 3));
  for (int i = 0; i < 3; i++) a = flip(a);
  mlx_array row = mlx_array_new();
  assert_int_equal(mlx_slice(&row, a, INTS(0, 0), INTS(1, 3), INTS(1, 1), cpu), 0);
  expect(row, INTS(1, 3), INTS(48, 49, 50));
  int values[51];
  for (int i = 0; i < 51; i++) values[i] = i;
  expect(flip(a), INTS(17, 3), values, 51);
}

static void an_extent_past_int_is_a_clear_error(void** state) {
  mlx_array a = mlx_array_new(), res = mlx_array_new();
  assert_int_equal(mlx_zeros(&a, INTS(1 << 30, 2), MLX_INT8, cpu), 0);
  assert_int_not_equal(mlx_flatten(&res, a, 0, -1, cpu), 0);
  assert_int_equal(rp_last_error(NULL), RP_ERR_SHAPE);
  mlx_array_free(a);
}

static void concatenate_promotes_and_flattens_without_an_axis(void** state) {
  mlx_array a = count(MLX_INT8, INTS(2, 1)), b = count(MLX_FLOAT16, INTS(2, 2)), res = mlx_array_new();
  mlx_vector_array v = list(a, b);
  assert_int_equal(mlx_concatenate_axis(&res, v, -1, cpu), 0);
  assert_int_equal(mlx_array_dtype(res), MLX_FLOAT16);
  expect(res, INTS(2, 3), INTS(0, 0, 1, 1, 2, 3));
  res = mlx_array_new();
  assert_int_equal(mlx_concatenate(&res, v, cpu), 0);
  expect(res, INTS(6), INTS(0, 1, 0, 1, 2, 3));
  mlx_vector_array_free(v);
  v = list(b, b);
  res = mlx_array_new();
  assert_int_equal(mlx_stack_axis(&res, v, 1, cpu), 0);
  expect(res, INTS(2, 2, 2), INTS(0, 1, 0, 1, 2, 3, 2, 3));
  mlx_vector_array_free(v);
  mlx_array_free(a);
  mlx_array_free(b);
}

static void split_cuts_equal_parts_or_sections(void** state) {
  mlx_array a = count(MLX_INT32, INTS(2, 6));
  mlx_vector_array v = mlx_vector_array_new();
  assert_int_equal(mlx_split(&v, a, 3, 1, cpu), 0);
  assert_int_equal(mlx_vector_array_size(v), 3);
  expect(item(v, 1), INTS(2, 2), INTS(2, 3, 8, 9));
  assert_int_not_equal(mlx_split(&v, a, 4, 1, cpu), 0);
  assert_int_equal(mlx_split_sections(&v, a, INTS(1, -2), 1, cpu), 0);
  assert_int_equal(mlx_vector_array_size(v), 3);
  expect(item(v, 0), INTS(2, 1), INTS(0, 6));
  expect(item(v, 1), INTS(2, 3), INTS(1, 2, 3, 7, 8, 9));
  expect(item(v, 2), INTS(2, 2), INTS(4, 5, 10, 11));
  mlx_vector_array_free(v);
  mlx_array_free(a);
}

static void axes_are_moved_and_added(void** state) {
  mlx_array a = count(MLX_INT32, INTS(2, 3, 4)), res = mlx_array_new();
  assert_int_equal(mlx_moveaxis(&res, a, 0, -1, cpu), 0);
  assert_shape(res, INTS(3, 4, 2));
  assert_int_equal(mlx_swapaxes(&res, a, 0, 2, cpu), 0);
  assert_shape(res, INTS(4, 3, 2));
  assert_int_equal(mlx_transpose(&res, a, cpu), 0);
  assert_shape(res, INTS(4, 3, 2));
  assert_int_equal(mlx_expand_dims_axes(&res, a, INTS(0, -1), cpu), 0);
  assert_shape(res, INTS(1, 2, 3, 4, 1));
  assert_int_equal(mlx_squeeze(&res, res, cpu), 0);
  assert_shape(res, INTS(2, 3, 4));
  mlx_array line = count(MLX_INT32, INTS(5));
  assert_int_equal(mlx_atleast_3d(&res, line, cpu), 0);
  assert_shape(res, INTS(1, 5, 1));
  assert_int_equal(mlx_atleast_2d(&res, line, cpu), 0);
  assert_shape(res, INTS(1, 5));
  mlx_array_free(line);
  mlx_array_free(a);
  mlx_array_free(res);
}

static void views_of_memory_read_what_lies_there(void** state) {
  mlx_array a = count(MLX_INT32, INTS(3, 4)), t = mlx_array_new(), res = mlx_array_new();
  assert_int_equal(mlx_transpose(&t, a, cpu), 0);
  assert_int_equal(mlx_as_strided(&res, t, INTS(2, 2), (int64_t[]){3, 1}, 2, 1, cpu), 0);
  expect(res, INTS(2, 2), INTS(4, 8, 5, 9)); /* of 0 4 8 1 5 9 2 ... */
  res = mlx_array_new();
  assert_int_equal(mlx_view(&res, a, MLX_INT64, cpu), 0);
  assert_shape(res, INTS(3, 2));
  assert_int_equal(mlx_view(&res, res, MLX_INT32, cpu), 0);
  expect(res, INTS(3, 4), INTS(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  mlx_array_free(a);
  mlx_array_free(t);
}

static void slices_are_updated_in_a_copy(void** state) {
  mlx_array a = count(MLX_INT32, INTS(2, 3)), one = mlx_array_new_float(7.9f), res = mlx_array_new();
  assert_int_equal(mlx_slice_update(&res, a, one, INTS(0, 1), INTS(2, 3), INTS(1, 1), cpu), 0);
  assert_int_equal(mlx_array_dtype(res), MLX_INT32);
  expect(res, INTS(2, 3), INTS(0, 7, 7, 3, 7, 7));
  expect(a, INTS(2, 3), INTS(0, 1, 2, 3, 4, 5));
  mlx_array_free(one);
}

static void dynamic_slices_start_where_an_array_says(void** state) {
  mlx_array a = count(MLX_INT32, INTS(4, 2)), at = ints((int[]){2}, 1), res = mlx_array_new();
  assert_int_equal(mlx_slice_dynamic(&res, a, at, INTS(0), INTS(2, 2), cpu), 0);
  mlx_array up = mlx_array_new();
  assert_int_equal(mlx_slice_update_dynamic(&up, a, a, at, INTS(0), cpu), 0);
  expect(res, INTS(2, 2), INTS(4, 5, 6, 7));
  expect(up, INTS(4, 2), INTS(0, 1, 2, 3, 4, 5, 6, 7)); /* does not fit at 2: moved to 0 */
  mlx_array_free(a);
  mlx_array_free(at);
}

static void repeat_tile_and_roll_rearrange(void** state) {
  mlx_array a = count(MLX_INT32, INTS(2, 2)), res = mlx_array_new();
  assert_int_equal(mlx_repeat_axis(&res, a, 2, 1, cpu), 0);
  expect(res, INTS(2, 4), INTS(0, 0, 1, 1, 2, 2, 3, 3));
  res = mlx_array_new();
  assert_int_equal(mlx_repeat(&res, a, 2, cpu), 0);
  expect(res, INTS(8), INTS(0, 0, 1, 1, 2, 2, 3, 3));
  res = mlx_array_new();
  assert_int_equal(mlx_tile(&res, a, INTS(2, 1, 2), cpu), 0);
  expect(res, INTS(2, 2, 4), INTS(0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3));
  res = mlx_array_new();
  assert_int_equal(mlx_roll(&res, a, INTS(1), cpu), 0);
  expect(res, INTS(2, 2), INTS(3, 0, 1, 2));
  res = mlx_array_new();
  assert_int_equal(mlx_roll_axes(&res, a, INTS(-1, 5), INTS(0, 1), cpu), 0);
  expect(res, INTS(2, 2), INTS(3, 2, 1, 0));
  mlx_array_free(a);
}

static void pad_takes_axes_and_modes(void** state) {
  mlx_array a = count(MLX_INT32, INTS(2)), value = mlx_array_new_int(9), res = mlx_array_new();
  assert_int_equal(mlx_pad(&res, a, INTS(-1), INTS(1), INTS(2), value, "constant", cpu), 0);
  expect(res, INTS(5), INTS(9, 0, 1, 9, 9));
  res = mlx_array_new();
  assert_int_equal(mlx_pad_symmetric(&res, a, 1, value, "edge", cpu), 0);
  expect(res, INTS(4), INTS(0, 0, 1, 1));
  res = mlx_array_new();
  assert_int_not_equal(mlx_pad_symmetric(&res, a, 1, value, "reflect", cpu), 0);
  assert_int_not_equal(mlx_pad_symmetric(&res, a, -1, value, "edge", cpu), 0);
  mlx_array_free(a);
  mlx_array_free(value);
}

static void ranges_have_their_ends(void** state) {
  mlx_array res = mlx_array_new();
  assert_int_equal(mlx_arange(&res, 5, 0, -2, MLX_INT64, cpu), 0);
  expect(res, INTS(3), INTS(5, 3, 1));
  res = mlx_array_new();
  assert_int_equal(mlx_arange(&res, 5, 0, 2, MLX_FLOAT32, cpu), 0);
  assert_shape(res, INTS(0));
  assert_int_not_equal(mlx_arange(&res, 0, 1, 0, MLX_FLOAT32, cpu), 0);
  assert_int_equal(mlx_linspace(&res, 0, 10, 5, MLX_INT32, cpu), 0);
  expect(res, INTS(5), INTS(0, 2, 5, 7, 10));
  res = mlx_array_new();
  assert_int_equal(mlx_linspace(&res, 0.1, 0.7, 300, MLX_FLOAT32, cpu), 0);
  assert_int_equal(mlx_array_eval(res), 0);
  assert_true(mlx_array_data_float32(res)[0] == 0.1f);
  assert_true(mlx_array_data_float32(res)[299] == 0.7f);
  assert_int_equal(mlx_linspace(&res, 3, 10, 1, MLX_INT32, cpu), 0);
  expect(res, INTS(1), INTS(3));
}

static void diagonals_and_triangles(void** state) {
  mlx_array a = count(MLX_INT32, INTS(2, 3)), res = mlx_array_new();
  assert_int_equal(mlx_tril(&res, a, 0, cpu), 0);
  expect(res, INTS(2, 3), INTS(0, 0, 0, 3, 4, 0));
  res = mlx_array_new();
  assert_int_equal(mlx_triu(&res, a, 1, cpu), 0);
  expect(res, INTS(2, 3), INTS(0, 1, 2, 0, 0, 5));
  res = mlx_array_new();
  assert_int_equal(mlx_diagonal(&res, a, 1, 0, 1, cpu), 0);
  expect(res, INTS(2), INTS(1, 5));
  res = mlx_array_new();
  assert_int_equal(mlx_diagonal(&res, a, -5, 0, 1, cpu), 0);
  assert_shape(res, INTS(0));
  assert_int_equal(mlx_eye(&res, 2, 3, 1, MLX_FLOAT32, cpu), 0);
  expect(res, INTS(2, 3), INTS(0, 1, 0, 0, 0, 1));
  res = mlx_array_new();
  assert_int_equal(mlx_tri(&res, 2, 2, 0, MLX_BOOL, cpu), 0);
  expect(res, INTS(2, 2), INTS(1, 0, 1, 1));
  mlx_array line = ints((int[]){5, 6}, 2);
  res = mlx_array_new();
  assert_int_equal(mlx_diag(&res, line, -1, cpu), 0);
  expect(res, INTS(3, 3), INTS(0, 0, 0, 5, 0, 0, 0, 6, 0));
  mlx_array_free(line);
  mlx_array_free(a);
}

static void empty_and_0d_arrays_pass_through(void** state) {
  mlx_array none = mlx_array_new(), one = mlx_array_new_int(7), res = mlx_array_new(), at = ints(NULL, 0);
  assert_int_equal(mlx_zeros(&none, INTS(2, 0, 3), MLX_INT32, cpu), 0);
  assert_int_equal(mlx_tril(&res, none, 0, cpu), 0);
  expect(res, INTS(2, 0, 3), NULL, 0);
  res = mlx_array_new();
  assert_int_equal(mlx_take_axis(&res, none, at, 1, cpu), 0);
  expect(res, INTS(2, 0, 3), NULL, 0);
  res = mlx_array_new();
  assert_int_equal(mlx_roll(&res, none, INTS(2), cpu), 0);
  expect(res, INTS(2, 0, 3), NULL, 0);
  res = mlx_array_new();
  assert_int_equal(mlx_diagonal(&res, none, 0, 1, 2, cpu), 0);
  expect(res, INTS(2, 0), NULL, 0);
  res = mlx_array_new();
  assert_int_equal(mlx_tile(&res, one, INTS(2, 2), cpu), 0);
  expect(res, INTS(2, 2), INTS(7, 7, 7, 7));
  res = mlx_array_new();
  assert_int_equal(mlx_flatten(&res, one, 0, -1, cpu), 0);
  expect(res, INTS(1), INTS(7));
  res = mlx_array_new();
  assert_int_not_equal(mlx_take(&res, one, one, cpu), 0); /* index 7 of one element */
  assert_int_equal(mlx_squeeze(&res, one, cpu), 0);
  assert_int_equal(mlx_array_ndim(res), 0);
  assert_int_equal(mlx_pad_symmetric(&res, none, 1, one, "constant", cpu), 0);
  assert_shape(res, INTS(4, 2, 5));
  assert_int_not_equal(mlx_pad_symmetric(&res, none, 1, one, "edge", cpu), 0);
  mlx_array_free(none);
  mlx_array_free(one);
  mlx_array_free(at);
  mlx_array_free(res);
}

static void grids_and_joint_shapes(void** state) {
  mlx_array a = count(MLX_INT32, INTS(2)), b = count(MLX_INT32, INTS(3));
  mlx_vector_array v = list(a, b), res = mlx_vector_array_new();
  assert_int_equal(mlx_meshgrid(&res, v, false, "xy", cpu), 0);
  expect(item(res, 0), INTS(3, 2), INTS(0, 1, 0, 1, 0, 1));
  expect(item(res, 1), INTS(3, 2), INTS(0, 0, 1, 1, 2, 2));
  assert_int_equal(mlx_meshgrid(&res, v, true, "ij", cpu), 0);
  assert_int_equal(mlx_broadcast_arrays(&res, res, cpu), 0);
  expect(item(res, 0), INTS(2, 3), INTS(0, 0, 0, 1, 1, 1));
  expect(item(res, 1), INTS(2, 3), INTS(0, 1, 2, 0, 1, 2));
  mlx_vector_array_free(v);
  mlx_vector_array_free(res);
  mlx_array_free(a);
  mlx_array_free(b);
}

/* ---- Traces replay at sizes that they have not seen ---- */

typedef int body(mlx_array* res, const mlx_array x);

static int reverse(mlx_array* res, const mlx_array x) {
  int n = mlx_array_dim(x, 0), m = mlx_array_dim(x, 1);
  return mlx_slice(res, x, INTS(n - 1, 0), INTS(-n - 1, m), INTS(-1, 1), cpu);
}
static int last_two(mlx_array* res, const mlx_array x) {
  return mlx_slice(res, x, INTS(-2, 0), INTS(mlx_array_dim(x, 0), mlx_array_dim(x, 1)), INTS(1, 1), cpu);
}
static int lower(mlx_array* res, const mlx_array x) { return mlx_tril(res, x, -1, cpu); }
static int rotate(mlx_array* res, const mlx_array x) { return mlx_roll_axis(res, x, INTS(4), 0, cpu); }
static int rotate_all(mlx_array* res, const mlx_array x) { return mlx_roll(res, x, INTS(-5), cpu); }
static int twice(mlx_array* res, const mlx_array x) { return mlx_repeat_axis(res, x, 2, 0, cpu); }
static int tiled(mlx_array* res, const mlx_array x) { return mlx_tile(res, x, INTS(2, 3), cpu); }
static int ones(mlx_array* res, const mlx_array x) { return mlx_ones_like(res, x, cpu); }
static int flat(mlx_array* res, const mlx_array x) { return mlx_reshape(res, x, INTS(-1), cpu); }
static int padded(mlx_array* res, const mlx_array x) {
  return mlx_pad_symmetric(res, x, 1, mlx_array_new(), "constant", cpu);
}
static int second_half(mlx_array* res, const mlx_array x) {
  mlx_vector_array v = mlx_vector_array_new();
  int rc = mlx_split(&v, x, 2, 0, cpu);
  if (!rc) rc = mlx_vector_array_get(res, v, 1);
  mlx_vector_array_free(v);
  return rc;
}

static void a_shapeless_trace_follows_every_size(void** state) {
  static body* const bodies[] = {reverse, last_two, lower,  rotate, rotate_all, twice,
                                 tiled,   ones,     padded, flat,   second_half};
  for (size_t k = 0; k < LEN(bodies); k++) {
    mlx_closure plain = mlx_closure_new_unary(bodies[k]), fast = mlx_closure_new();
    assert_int_equal(mlx_compile(&fast, plain, true), 0);
    for (int n = 4; n <= 10; n += 2) {
      mlx_array x = count(MLX_INT32, INTS(n, 3)), want = mlx_array_new();
      mlx_vector_array in = mlx_vector_array_new_value(x), out = mlx_vector_array_new();
      assert_int_equal(bodies[k](&want, x), 0);
      assert_int_equal(mlx_closure_apply(&out, fast, in), 0);
      mlx_array got = item(out, 0);
      size_t ndim = mlx_array_ndim(want), size = mlx_array_size(want);
      assert_int_equal(mlx_array_eval(want), 0);
      expect(got, mlx_array_shape(want), ndim, (const int*)mlx_array_data_int32(want), size);
      mlx_vector_array_free(in);
      mlx_vector_array_free(out);
      mlx_array_free(want);
      mlx_array_free(x);
    }
    mlx_closure_free(fast);
    mlx_closure_free(plain);
  }
}

static int baked(mlx_array* res, const mlx_array x) { return mlx_diagonal(res, x, 0, 0, 1, cpu); }

static void a_size_that_a_trace_has_baked_in_is_an_error_elsewhere(void** state) {
  mlx_closure plain = mlx_closure_new_unary(baked), fast = mlx_closure_new();
  assert_int_equal(mlx_compile(&fast, plain, true), 0);
  for (int n = 3; n < 5; n++) {
    mlx_array x = count(MLX_INT32, INTS(n, n));
    mlx_vector_array in = mlx_vector_array_new_value(x), out = mlx_vector_array_new();
    int rc = mlx_closure_apply(&out, fast, in);
    if (!rc) {
      mlx_array y = item(out, 0);
      rc = mlx_array_eval(y);
      if (!rc) assert_shape(y, INTS(n));
      mlx_array_free(y);
    }
    if (n == 3) assert_int_equal(rc, 0);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_array_free(x);
  }
  mlx_closure_free(fast);
  mlx_closure_free(plain);
}

/* ---- Without memory ---- */

/* Build and evaluate something of everything; 0 if all went well. */
static int build_all(mlx_array a, mlx_array b, mlx_array at) {
  mlx_array y = mlx_array_new(), none = mlx_array_new();
  mlx_vector_array v = list(a, b), parts = mlx_vector_array_new();
  int rc = v.ctx ? mlx_concatenate_axis(&y, v, 0, cpu) : 1;
  if (!rc) rc = mlx_tile(&y, y, INTS(2, 1), cpu);
  if (!rc) rc = mlx_take_axis(&y, y, at, 0, cpu);
  if (!rc) rc = mlx_pad_symmetric(&y, y, 1, none, "edge", cpu);
  if (!rc) rc = mlx_tril(&y, y, 0, cpu);
  if (!rc) rc = mlx_roll(&y, y, INTS(3), cpu);
  if (!rc) rc = mlx_split_sections(&parts, y, INTS(1, 2), 0, cpu);
  if (!rc) rc = mlx_vector_array_get(&y, parts, 1);
  if (!rc) rc = mlx_array_eval(y);
  mlx_vector_array_free(v);
  mlx_vector_array_free(parts);
  mlx_array_free(y);
  return rc;
}

/* Traced: the forms of the compositions that follow a size. */
static int trace_all(mlx_array* res, const mlx_array x) {
  int rc = mlx_tril(res, x, 0, cpu);
  if (!rc) rc = mlx_roll(res, *res, INTS(1), cpu);
  if (!rc) rc = mlx_roll_axis(res, *res, INTS(1), 1, cpu);
  if (!rc) rc = mlx_repeat_axis(res, *res, 2, 0, cpu);
  if (!rc) rc = mlx_diagonal(res, *res, 1, 0, 1, cpu);
  if (!rc) rc = mlx_diag(res, *res, 1, cpu);
  return rc;
}

static int compile_all(mlx_array a) {
  mlx_closure plain = mlx_closure_new_unary(trace_all), fast = mlx_closure_new();
  mlx_vector_array in = mlx_vector_array_new_value(a), out = mlx_vector_array_new();
  int rc = plain.ctx && in.ctx ? mlx_compile(&fast, plain, true) : 1;
  if (!rc) rc = mlx_closure_apply(&out, fast, in);
  mlx_vector_array_free(in);
  mlx_vector_array_free(out);
  mlx_closure_free(fast);
  mlx_closure_free(plain);
  return rc;
}

static void an_allocation_that_fails_in_a_trace_is_an_error_too(void** state) {
  mlx_array a = count(MLX_INT32, INTS(3, 4));
  assert_int_equal(mlx_array_eval(a), 0);
  int failures = 0, fired = 1;
  for (int n = 1; fired && n < 3000; n++) {
    rpi_mem_fail_at(n);
    failures += compile_all(a) != 0;
    fired = rpi_mem_fail_at(0);
  }
  assert_false(fired);
  assert_true(failures > 50);
  assert_int_equal(compile_all(a), 0);
  mlx_array_free(a);
}

static void an_allocation_that_fails_is_an_error_and_no_more(void** state) {
  mlx_array a = count(MLX_INT32, INTS(2, 3)), b = count(MLX_FLOAT32, INTS(1, 3));
  mlx_array at = ints((int[]){0, -1, 2}, 3);
  assert_int_equal(mlx_array_eval(a), 0);
  assert_int_equal(mlx_array_eval(b), 0);
  int failures = 0, fired = 1;
  for (int n = 1; fired && n < 2000; n++) {
    rpi_mem_fail_at(n);
    int rc = build_all(a, b, at);
    fired = rpi_mem_fail_at(0);
    if (rc) {
      assert_int_equal(rp_last_error(NULL), RP_ERR_MEMORY);
      failures++;
    }
  }
  assert_false(fired);
  assert_true(failures > 20);
  assert_int_equal(build_all(a, b, at), 0);
  mlx_array_free(a);
  mlx_array_free(b);
  mlx_array_free(at);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_index_outside_is_an_error_that_names_it),
      cmocka_unit_test(negative_extents_and_other_ranks_are_errors),
      cmocka_unit_test(reversing_rows_an_even_number_of_times_changes_nothing),
      cmocka_unit_test(an_extent_past_int_is_a_clear_error),
      cmocka_unit_test(concatenate_promotes_and_flattens_without_an_axis),
      cmocka_unit_test(split_cuts_equal_parts_or_sections),
      cmocka_unit_test(axes_are_moved_and_added),
      cmocka_unit_test(views_of_memory_read_what_lies_there),
      cmocka_unit_test(slices_are_updated_in_a_copy),
      cmocka_unit_test(dynamic_slices_start_where_an_array_says),
      cmocka_unit_test(repeat_tile_and_roll_rearrange),
      cmocka_unit_test(pad_takes_axes_and_modes),
      cmocka_unit_test(ranges_have_their_ends),
      cmocka_unit_test(diagonals_and_triangles),
      cmocka_unit_test(empty_and_0d_arrays_pass_through),
      cmocka_unit_test(grids_and_joint_shapes),
      cmocka_unit_test(a_shapeless_trace_follows_every_size),
      cmocka_unit_test(a_size_that_a_trace_has_baked_in_is_an_error_elsewhere),
      cmocka_unit_test(an_allocation_that_fails_is_an_error_and_no_more),
      cmocka_unit_test(an_allocation_that_fails_in_a_trace_is_an_error_too),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
