/* softmax and running reductions against plain loops in double, in every layout. */
#include <float.h>
#include <math.h>

#include "kernel_harness.h"

#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "base/thread.h"
#include "mlx/c/mlx.h"
#include "op/scalar_half.h"

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

static uint64_t raw_of(double x, int dtype) {
  uint64_t bits = 0;
  float f = (float)x;
  switch (dtype) {
    case RPI_FLOAT16: return rp_f32_to_f16(f);
    case RPI_BFLOAT16: return rp_f32_to_bf16(f);
    case RPI_FLOAT32: memcpy(&bits, &f, 4); return bits;
    case RPI_FLOAT64: memcpy(&bits, &x, 8); return bits;
    case RPI_COMPLEX64: memcpy(&bits, &f, 4); return bits;
    default: return (uint64_t)(int64_t)x;
  }
}

static double number_of(uint64_t raw, int dtype) {
  double d;
  switch (dtype) {
    case RPI_FLOAT16: return (double)rp_f16_to_f32((uint16_t)raw);
    case RPI_BFLOAT16: return (double)rp_bf16_to_f32((uint16_t)raw);
    case RPI_COMPLEX64:
    case RPI_FLOAT32: return (double)rp_from_bitsf((uint32_t)raw);
    case RPI_FLOAT64: memcpy(&d, &raw, 8); return d;
    case RPI_INT8: return (int8_t)raw;
    case RPI_INT16: return (int16_t)raw;
    case RPI_INT32: return (int32_t)raw;
    case RPI_INT64: return (double)(int64_t)raw;
    default: return (double)raw;
  }
}

/* The number of an axis's element `i` on line `line`, row-major. */
static int64_t element(const int* shape, int ndim, int axis, int64_t line, int64_t i) {
  int64_t inner = 1;
  for (int d = axis + 1; d < ndim; d++) inner *= shape[d];
  return line / inner * inner * shape[axis] + line % inner + i * inner;
}

static struct tensor* run(int (*rule)(struct rule*), int (*kernel)(const struct call*),
                          struct tensor* x, int axis, bool reverse, bool inclusive) {
  struct launch l = {.rule = rule, .kernel = kernel, .nin = 1, .nattr = 3, .in = {x},
                     .attr = (int64_t[]){axis, reverse, inclusive}};
  return launch(&l);
}

/* ---- Running reductions ---- */

static double join(int k, double a, double x) {
  switch (k) {
    case 0: return a + x;
    case 1: return a * x;
    case 2: return x < a ? x : a;
    default: return x > a ? x : a;
  }
}

static double start_of(int k, int dtype) {
  bool is_float = rpi_dtype_kind(dtype) >= RPI_KIND_F,
       is_signed = rpi_dtype_kind(dtype) == RPI_KIND_I;
  int bits = 8 * (int)rpi_dtype_size(dtype) - is_signed;
  if (k < 2) return k;
  if (is_float) return k == 2 ? INFINITY : -INFINITY;
  if (dtype == RPI_BOOL) return k == 2;
  if (k == 3) return is_signed ? -ldexp(1, bits) : 0;
  return ldexp(1, bits) - 1; /* compared as rounded to double */
}

/* Small values, exact in every dtype. Complex ones are real, which orders them as their real parts.
 */
static void fill(struct tensor* x, int k) {
  int dtype = x->view.dtype;
  for (int64_t i = 0; i < x->view.size; i++) {
    int64_t h = (int64_t)((uint32_t)i * 2654435761u >> 29);
    double v =
        k == 1 ? 1 + (i % 61 == 3) : (double)(h - (rpi_dtype_kind(dtype) == RPI_KIND_U ? 0 : 3));
    if (k == 0 && rpi_dtype_size(dtype) == 1) v = h == 7; /* sums of 300 that fit */
    tensor_put(x, i, raw_of(dtype == RPI_BOOL ? h > 3 : v, dtype));
  }
}

static void check_scan(int k, const struct tensor* x, const struct tensor* y, int axis,
                       bool reverse, bool inclusive) {
  int64_t n = x->shape[axis], lines = n ? x->view.size / n : 0;
  for (int64_t line = 0; line < lines; line++) {
    double acc = start_of(k, y->view.dtype);
    for (int64_t j = 0; j < n; j++) {
      int64_t e = element(x->shape, x->view.ndim, axis, line, reverse ? n - 1 - j : j);
      double before = acc;
      acc = join(k, acc, number_of(tensor_get(x, e), x->view.dtype));
      double want = inclusive ? acc : before, got = number_of(tensor_get(y, e), y->view.dtype);
      if (got != want)
        fail_msg("op %d dtype %d axis %d: %g, not %g", k, x->view.dtype, axis, got, want);
    }
  }
}

static void every_scan_dtype_layout_axis_and_direction_agrees_with_a_loop(void** state) {
  (void)state;
  static int (*const kernels[])(const struct call*) = {rpi_cpu_cumsum, rpi_cpu_cumprod,
                                                       rpi_cpu_cummin, rpi_cpu_cummax};
  static const int shapes[][3] = {{3, 5, 7}, {2, 20, 300}, {1, 1, 9}, {4, 0, 2}};
  for (int k = 0; k < 4; k++)
    for (int dtype = 0; dtype < RPI_DTYPE_COUNT; dtype++)
      for (size_t s = 0; s < RPI_COUNT_OF(shapes); s++)
        for (int layout = 0; layout < LAYOUTS; layout++)
          for (int mode = 0; mode < 12; mode++) {
            if (k == 1 && dtype == RPI_BOOL) continue; /* its rule depends on the op */
            int axis = mode / 4;
            bool reverse = mode & 1, inclusive = mode & 2;
            struct tensor* x = tensor_new(dtype, shapes[s], 3, (enum layout)layout);
            fill(x, k);
            struct tensor* y = run(k < 2 ? rpi_rule_cumsum : rpi_rule_along_axis, kernels[k], x,
                                   axis, reverse, inclusive);
            check_scan(k, x, y, axis, reverse, inclusive);
            tensor_free(x), tensor_free(y);
          }
}

static void logcumsumexp_agrees_with_sums_in_double(void** state) {
  (void)state;
  for (int layout = 0; layout < LAYOUTS; layout++)
    for (int axis = 0; axis < 2; axis++) {
      struct tensor* x = tensor_new(RPI_FLOAT32, (int[]){40, 60}, 2, (enum layout)layout);
      for (int64_t i = 0; i < x->view.size; i++)
        tensor_put(x, i, raw_of(sin((double)i) * 10, RPI_FLOAT32));
      struct tensor* y = run(rpi_rule_along_axis, rpi_cpu_logcumsumexp, x, axis, false, true);
      for (int64_t line = 0; line < (axis ? 40 : 60); line++) {
        double sum = 0;
        for (int64_t j = 0; j < x->shape[axis]; j++) {
          int64_t e = element(x->shape, 2, axis, line, j);
          sum += exp(number_of(tensor_get(x, e), RPI_FLOAT32));
          /* Each of up to 60 steps may add a rounding of about one ulp of 15. */
          assert_true(fabs(number_of(tensor_get(y, e), RPI_FLOAT32) - log(sum)) < 60 * 0x1p-20);
        }
      }
      tensor_free(x), tensor_free(y);
    }
}

static mlx_array vec(const float* x, int n) { return mlx_array_new_data(x, &n, 1, MLX_FLOAT32); }
#define VEC(...) vec((float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}) / 4)

static void half_scans_carry_a_float(void** state) {
  (void)state;
  static const mlx_dtype dtypes[] = {MLX_FLOAT16, MLX_BFLOAT16};
  static const float want[] = {5000, 4992};
  for (int i = 0; i < 2; i++)
    for (int wide = 0; wide < 2; wide++) {
      mlx_array a = {0}, y = {0};
      ok(mlx_ones(&a, (int[]){5000, 1 + wide}, 2, dtypes[i], cpu));
      ok(mlx_cumsum(&y, a, 0, false, true, cpu));
      assert_int_equal(mlx_array_dtype(y), dtypes[i]);
      ok(mlx_astype(&y, y, MLX_FLOAT32, cpu));
      assert_true(mlx_array_data_float32(y)[5000 * (1 + wide) - 1] == want[i]);
      mlx_array_free(a), mlx_array_free(y);
    }
}

static void running_extremes_keep_nan(void** state) {
  (void)state;
  mlx_array a = VEC(1, 3, NAN, 5, 4), y = {0};
  ok(mlx_cummax(&y, a, 0, false, true, cpu));
  const float* x = mlx_array_data_float32(y);
  assert_true(x[0] == 1 && x[1] == 3 && isnan(x[2]) && isnan(x[3]) && isnan(x[4]));
  ok(mlx_cummin(&y, a, -1, true, true, cpu));
  x = mlx_array_data_float32(y);
  assert_true(x[4] == 4 && x[3] == 4 && isnan(x[2]) && isnan(x[1]) && isnan(x[0]));
  mlx_array_free(a), mlx_array_free(y);
}

static void running_sums_of_bool_count(void** state) {
  (void)state;
  bool bits[] = {true, true, false, true};
  mlx_array a = mlx_array_new_data(bits, (int[]){4}, 1, MLX_BOOL), y = {0};
  ok(mlx_cumsum(&y, a, 0, false, true, cpu));
  assert_int_equal(mlx_array_dtype(y), MLX_INT32);
  assert_int_equal(mlx_array_data_int32(y)[3], 3);
  ok(mlx_cumprod(&y, a, 0, false, true, cpu));
  assert_int_equal(mlx_array_dtype(y), MLX_BOOL);
  assert_true(mlx_array_data_bool(y)[1] && !mlx_array_data_bool(y)[3]);
  assert_int_equal(mlx_cumsum(&y, a, 1, false, true, cpu), 1);
  mlx_array_free(a), mlx_array_free(y);
}

/* ---- softmax ---- */

/* Relative to a reference in double: exp, sum and division, each within a few roundings. */
static void softmax_is_within_its_error_in_every_dtype_layout_and_axis(void** state) {
  (void)state;
  static const int dtypes[] = {RPI_FLOAT32, RPI_FLOAT16, RPI_BFLOAT16, RPI_FLOAT64};
  static const double errors[] = {4e-6, 1.0 / 2000, 1.0 / 250, 1e-14};
  static const int shapes[][2] = {{70, 90}, {3, 1500}, {1, 1}, {600, 2}};
  for (int t = 0; t < 4; t++)
    for (size_t s = 0; s < RPI_COUNT_OF(shapes); s++)
      for (int layout = 0; layout < LAYOUTS; layout++)
        for (int axis = 0; axis < 2; axis++) {
          struct tensor* x = tensor_new(dtypes[t], shapes[s], 2, (enum layout)layout);
          for (int64_t i = 0; i < x->view.size; i++)
            tensor_put(x, i, raw_of(sin((double)i) * 4, dtypes[t]));
          struct tensor* y = run(rpi_rule_along_axis, rpi_cpu_softmax, x, axis, 0, 0);
          int64_t n = x->shape[axis];
          for (int64_t line = 0; line < x->view.size / n; line++) {
            double sum = 0;
            for (int64_t j = 0; j < n; j++)
              sum += exp(number_of(tensor_get(x, element(x->shape, 2, axis, line, j)), dtypes[t]));
            for (int64_t j = 0; j < n; j++) {
              int64_t e = element(x->shape, 2, axis, line, j);
              double want = exp(number_of(tensor_get(x, e), dtypes[t])) / sum;
              double got = number_of(tensor_get(y, e), dtypes[t]);
              if (fabs(got - want) > errors[t] * want + (dtypes[t] == RPI_FLOAT16 ? 0x1p-24 : 0))
                fail_msg("dtype %d axis %d: %g, not %g", dtypes[t], axis, got, want);
            }
          }
          tensor_free(x), tensor_free(y);
        }
}

static void softmax_has_the_same_bits_for_every_instruction_set_layout_and_thread(void** state) {
  (void)state;
  enum rpi_isa most = rpi_isa();
  int threads = rpi_threads();
  struct tensor* want = NULL;
  for (int isa = 0; isa <= (int)most; isa++)
    for (int layout = 0; layout < LAYOUTS; layout++)
      for (int t = 1; t < 4; t += 2) {
        rpi_isa_limit((enum rpi_isa)isa);
        rpi_set_threads(t);
        struct tensor* x = tensor_new(RPI_FLOAT32, (int[]){99, 777}, 2, (enum layout)layout);
        for (int64_t i = 0; i < x->view.size; i++)
          tensor_put(x, i, raw_of(sin((double)i) * 30, RPI_FLOAT32));
        struct tensor* y = run(rpi_rule_along_axis, rpi_cpu_softmax, x, 1, 0, 0);
        if (want) assert_memory_equal(y->first, want->first, 99 * 777 * 4);
        tensor_free(x);
        if (want)
          tensor_free(y);
        else
          want = y;
      }
  rpi_isa_limit(most);
  rpi_set_threads(threads);
  tensor_free(want);
}

static void softmax_of_minus_infinity_alone_is_nan(void** state) {
  (void)state;
  mlx_array a = VEC(-INFINITY, -INFINITY), b = VEC(-INFINITY, 1), y = {0};
  ok(mlx_softmax_axis(&y, a, -1, true, cpu));
  assert_true(isnan(mlx_array_data_float32(y)[0]));
  ok(mlx_softmax(&y, b, false, cpu));
  assert_true(mlx_array_data_float32(y)[0] == 0 && mlx_array_data_float32(y)[1] == 1);
  mlx_array_free(a), mlx_array_free(b), mlx_array_free(y);
}

static void softmax_over_several_axes_sums_to_one(void** state) {
  (void)state;
  mlx_array a = {0}, y = {0}, sum = {0};
  ok(mlx_arange(&a, 0, 6, 1, MLX_INT32, cpu));
  ok(mlx_reshape(&a, a, (int[]){2, 3}, 2, cpu));
  ok(mlx_softmax(&y, a, false, cpu));
  assert_int_equal(mlx_array_dtype(y), MLX_FLOAT32);
  ok(mlx_sum(&sum, y, false, cpu));
  assert_true(fabsf(*mlx_array_data_float32(sum) - 1) < 1e-6f);
  ok(mlx_zeros(&a, (int[]){0, 3}, 2, MLX_FLOAT32, cpu));
  ok(mlx_softmax(&y, a, false, cpu));
  assert_int_equal(mlx_array_size(y), 0);
  mlx_array_free(a), mlx_array_free(y), mlx_array_free(sum);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_scan_dtype_layout_axis_and_direction_agrees_with_a_loop),
      cmocka_unit_test(logcumsumexp_agrees_with_sums_in_double),
      cmocka_unit_test(half_scans_carry_a_float),
      cmocka_unit_test(running_extremes_keep_nan),
      cmocka_unit_test(running_sums_of_bool_count),
      cmocka_unit_test(softmax_is_within_its_error_in_every_dtype_layout_and_axis),
      cmocka_unit_test(softmax_has_the_same_bits_for_every_instruction_set_layout_and_thread),
      cmocka_unit_test(softmax_of_minus_infinity_alone_is_nan),
      cmocka_unit_test(softmax_over_several_axes_sums_to_one),
  };
  return cmocka_run_group_tests(tests, silence, NULL);
}
