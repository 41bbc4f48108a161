/* Sorting, partitions and the largest elements: order, stability, NaN, every dtype and layout. */
#include <math.h>

#include "kernel_harness.h"

#include "backend/cpu/cpu.h"
#include "mlx/c/mlx.h"
#include "op/scalar.h"

static const mlx_stream cpu = {0};
#define ok(call) assert_int_equal(call, 0)

static void ignore(const char* msg, void* data) {
  (void)msg;
  (void)data;
}
static int silence(void** state) {
  (void)state;
  mlx_set_error_handler(ignore, NULL, NULL);
  return 0;
}

/* Order of two raw values by the definitions, not by keys: below 0, 0, above 0. NaN is last. */
static int compare_floats(double a, double b) {
  if (isnan(a) || isnan(b)) return !isnan(b) ? 1 : !isnan(a) ? -1 : 0;
  return (a > b) - (a < b);
}

static int compare(uint64_t x, uint64_t y, int dtype) {
  double a, b;
  float re[2], im[2];
  switch (dtype) {
    case RPI_FLOAT16:
      return compare_floats((double)rp_f16_to_f32((uint16_t)x), (double)rp_f16_to_f32((uint16_t)y));
    case RPI_BFLOAT16:
      return compare_floats((double)rp_bf16_to_f32((uint16_t)x),
                            (double)rp_bf16_to_f32((uint16_t)y));
    case RPI_FLOAT32:
      return compare_floats((double)rp_from_bitsf((uint32_t)x), (double)rp_from_bitsf((uint32_t)y));
    case RPI_FLOAT64:
      memcpy(&a, &x, 8), memcpy(&b, &y, 8);
      return compare_floats(a, b);
    case RPI_COMPLEX64: {
      re[0] = rp_from_bitsf((uint32_t)x), im[0] = rp_from_bitsf((uint32_t)(x >> 32));
      re[1] = rp_from_bitsf((uint32_t)y), im[1] = rp_from_bitsf((uint32_t)(y >> 32));
      bool bad[] = {isnan(re[0]) || isnan(im[0]), isnan(re[1]) || isnan(im[1])};
      if (bad[0] || bad[1]) return bad[0] - bad[1];
      return re[0] != re[1] ? (re[0] > re[1]) - (re[0] < re[1]) : (im[0] > im[1]) - (im[0] < im[1]);
    }
    default: break;
  }
  int shift = 64 - 8 * (int)rpi_dtype_size(dtype);
  if (rpi_dtype_kind(dtype) == RPI_KIND_I) {
    int64_t i = (int64_t)(x << shift), j = (int64_t)(y << shift);
    return (i > j) - (i < j);
  }
  return (x > y) - (x < y);
}

/* Random bits with many repeats; among floats these are infinities, NaN of both signs and zeros. */
static uint64_t value_at(int64_t i, int dtype) {
  uint64_t h = ((uint64_t)i + 1) * 0x9E3779B97F4A7C15ull, few = h >> 61;
  h ^= h >> 29;
  if (dtype == RPI_BOOL) return h & 1;
  int bits = 8 * (int)rpi_dtype_size(dtype);
  if (few == 0) h = 1ull << (bits - 1); /* -0 */
  if (few == 1) h = 0;
  return bits == 64 ? h : h & ((1ull << bits) - 1);
}

static struct tensor* run(int (*rule)(struct rule*), int (*kernel)(const struct call*),
                          struct tensor* x, int axis) {
  struct launch l = {.rule = rule, .kernel = kernel, .nin = 1, .nattr = 1, .in = {x},
                     .attr = (int64_t[]){axis}};
  return launch(&l);
}

static void check_line(const struct tensor* x, const struct tensor* sorted,
                       const struct tensor* order, int64_t first, int64_t step, int64_t n) {
  int dtype = x->view.dtype;
  uint64_t last = 0, last_index = 0;
  uint8_t* seen = calloc((size_t)n + 1, 1);
  for (int64_t j = 0; j < n; j++) {
    uint64_t index = tensor_get(order, first + j * step), v = tensor_get(sorted, first + j * step);
    if (index >= (uint64_t)n || seen[index]) fail_msg("dtype %d: index %d", dtype, (int)index);
    seen[index] = 1;
    if (v != tensor_get(x, first + (int64_t)index * step)) fail_msg("dtype %d: values", dtype);
    int c = j ? compare(last, v, dtype) : -1;
    if (c > 0 || (c == 0 && last_index >= index)) fail_msg("dtype %d: order at %d", dtype, (int)j);
    last = v;
    last_index = index;
  }
  free(seen);
}

static void sorting_is_stable_in_every_dtype_layout_and_axis(void** state) {
  (void)state;
  static const int shapes[][2] = {{30, 7}, {3, 500}, {45, 41}, {1, 0}, {1, 1}, {900, 40}};
  for (int dtype = 0; dtype < RPI_DTYPE_COUNT; dtype++)
    for (size_t s = 0; s < RPI_COUNT_OF(shapes); s++)
      for (int layout = 0; layout < LAYOUTS; layout++)
        for (int axis = 0; axis < 2; axis++) {
          struct tensor* x = tensor_new(dtype, shapes[s], 2, (enum layout)layout);
          for (int64_t i = 0; i < x->view.size; i++) tensor_put(x, i, value_at(i, dtype));
          struct tensor* y = run(rpi_rule_along_axis, rpi_cpu_sort, x, axis);
          struct tensor* i = run(rpi_rule_argsort, rpi_cpu_argsort, x, axis);
          assert_int_equal(i->view.dtype, RPI_UINT32);
          int64_t n = x->shape[axis], cols = x->shape[1];
          for (int64_t line = 0; n && line < x->view.size / n; line++)
            check_line(x, y, i, axis ? line * cols : line, axis ? 1 : cols, n);
          tensor_free(x), tensor_free(y), tensor_free(i);
        }
}

static void nan_and_zeros_keep_their_bits(void** state) {
  (void)state;
  static const uint32_t in[] = {0xFFC00001, 0x00000000, 0x80000000, 0x7FC00002, 0xFF800000};
  static const uint32_t want[] = {0xFF800000, 0x00000000, 0x80000000, 0xFFC00001, 0x7FC00002};
  mlx_array a = mlx_array_new_data(in, (int[]){5}, 1, MLX_FLOAT32), y = {0};
  ok(mlx_sort(&y, a, cpu));
  assert_memory_equal(mlx_array_data_float32(y), want, sizeof want);
  mlx_array_free(a), mlx_array_free(y);
}

static void reversed_rows_sort_by_their_own_strides(void** state) {
  (void)state;
  static const int want[] = {8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3}, top[] = {11, 7, 3};
  mlx_array a = {0}, y = {0};
  ok(mlx_arange(&a, 0, 12, 1, MLX_INT32, cpu));
  ok(mlx_reshape(&a, a, (int[]){3, 4}, 2, cpu));
  ok(mlx_slice(&a, a, (int[]){2, 0}, 2, (int[]){-4, 4}, 2, (int[]){-1, 1}, 2, cpu));
  ok(mlx_sort_axis(&y, a, 1, cpu));
  assert_memory_equal(mlx_array_data_int32(y), want, sizeof want);
  ok(mlx_topk_axis(&y, a, 1, -1, cpu));
  ok(mlx_contiguous(&y, y, false, cpu));
  assert_memory_equal(mlx_array_data_int32(y), top, sizeof top);
  mlx_array_free(a), mlx_array_free(y);
}

static void partitions_take_positions_from_both_ends(void** state) {
  (void)state;
  int values[] = {3, 4, 2, 1};
  mlx_array a = mlx_array_new_data(values, (int[]){4}, 1, MLX_INT32), y = {0}, i = {0};
  for (int kth = -2; kth <= 2; kth += 4) {
    ok(mlx_partition(&y, a, kth, cpu));
    ok(mlx_argpartition_axis(&i, a, kth, 0, cpu));
    const int* x = mlx_array_data_int32(y);
    const uint32_t* p = mlx_array_data_uint32(i);
    assert_int_equal(x[2], 3);
    assert_int_equal(p[2], 0);
    assert_int_equal(x[3], 4);
    assert_int_equal(p[3], 1);
    assert_int_equal(x[0] + x[1], 3);
  }
  assert_int_equal(mlx_partition(&y, a, 4, cpu), 1);
  assert_int_equal(mlx_argpartition(&i, a, -5, cpu), 1);
  mlx_array_free(a), mlx_array_free(y), mlx_array_free(i);
}

static void the_largest_are_as_many_as_asked_for(void** state) {
  (void)state;
  float values[] = {5, 1, 9, 3, 7};
  mlx_array a = mlx_array_new_data(values, (int[]){5}, 1, MLX_FLOAT32), y = {0}, sum = {0};
  static const float sums[] = {0, 9, 16, 21, 24, 25};
  for (int k = 0; k <= 5; k++) {
    ok(mlx_topk(&y, a, k, cpu));
    assert_int_equal(mlx_array_size(y), k);
    ok(mlx_sum(&sum, y, false, cpu));
    assert_true(*mlx_array_data_float32(sum) == sums[k]);
  }
  assert_int_equal(mlx_topk(&y, a, 6, cpu), 1);
  assert_int_equal(mlx_topk_axis(&y, a, -1, 0, cpu), 1);
  mlx_array_free(a), mlx_array_free(y), mlx_array_free(sum);
}

static void without_an_axis_the_flattened_array_is_sorted(void** state) {
  (void)state;
  int values[] = {4, 1, 3, 2};
  static const int want[] = {1, 2, 3, 4};
  static const uint32_t order[] = {1, 3, 2, 0};
  mlx_array a = mlx_array_new_data(values, (int[]){2, 2}, 2, MLX_INT32), y = {0};
  ok(mlx_sort(&y, a, cpu));
  assert_int_equal(mlx_array_ndim(y), 1);
  assert_memory_equal(mlx_array_data_int32(y), want, sizeof want);
  ok(mlx_argsort(&y, a, cpu));
  assert_memory_equal(mlx_array_data_uint32(y), order, sizeof order);
  assert_int_equal(mlx_sort_axis(&y, a, 2, cpu), 1);
  mlx_array_free(a), mlx_array_free(y);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sorting_is_stable_in_every_dtype_layout_and_axis),
      cmocka_unit_test(nan_and_zeros_keep_their_bits),
      cmocka_unit_test(reversed_rows_sort_by_their_own_strides),
      cmocka_unit_test(partitions_take_positions_from_both_ends),
      cmocka_unit_test(the_largest_are_as_many_as_asked_for),
      cmocka_unit_test(without_an_axis_the_flattened_array_is_sorted),
  };
  return cmocka_run_group_tests(tests, silence, NULL);
}
