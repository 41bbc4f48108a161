/* Reductions: every op, dtype and layout against a reference that follows the stated order
 * literally, and the rules of the interface. */
#include <float.h>
#include <math.h>

#include "kernel_harness.h"

#include "backend/cpu/cpu.h"
#include "backend/cpu/isa.h"
#include "base/thread.h"
#include "core/dtype.h"
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

/* ---- Kernels ---- */

/* Raw bits of a number in a dtype. */
static uint64_t raw_of(double x, int dtype) {
  float f = (float)x;
  uint64_t bits = 0;
  switch (dtype) {
    case RPI_FLOAT16: return rp_f32_to_f16(f);
    case RPI_BFLOAT16: return rp_f32_to_bf16(f);
    case RPI_FLOAT32: memcpy(&bits, &f, 4); return bits;
    case RPI_FLOAT64: memcpy(&bits, &x, 8); return bits;
    case RPI_COMPLEX64: memcpy(&bits, &f, 4); return bits | (uint64_t)rp_bitsf(-f * 0.5f) << 32;
    case RPI_BOOL: return x != 0;
    default: return (uint64_t)(int64_t)x;
  }
}

static double number_of(uint64_t raw, int dtype) {
  float f;
  double d;
  switch (dtype) {
    case RPI_FLOAT16: return (double)rp_f16_to_f32((uint16_t)raw);
    case RPI_BFLOAT16: return (double)rp_bf16_to_f32((uint16_t)raw);
    case RPI_COMPLEX64:
    case RPI_FLOAT32: memcpy(&f, &raw, 4); return (double)f;
    case RPI_FLOAT64: memcpy(&d, &raw, 8); return d;
    case RPI_INT8: return (int8_t)raw;
    case RPI_INT16: return (int16_t)raw;
    case RPI_INT32: return (int32_t)raw;
    case RPI_INT64: return (double)(int64_t)raw;
    default: return (double)raw;
  }
}

/* Sum in the stated order, in float unless `wide`: lanes, tree, chunks. */
static double ordered_sum(const double* x, int64_t n, bool wide) {
  double total = 0;
  for (int64_t c = 0; c < n; c += 65536) {
    double lane[64] = {0};
    int64_t m = n - c < 65536 ? n - c : 65536;
    for (int64_t r = 0; r < m; r++)
      lane[r % 64] =
          wide ? lane[r % 64] + x[c + r] : (double)((float)lane[r % 64] + (float)x[c + r]);
    for (int w = 32; w; w /= 2)
      for (int i = 0; i < w; i++)
        lane[i] = wide ? lane[i] + lane[i + w] : (double)((float)lane[i] + (float)lane[i + w]);
    if (c == 0)
      total = lane[0];
    else
      total = wide ? total + lane[0] : (double)((float)total + (float)lane[0]);
  }
  return total;
}

enum kind { SUM, PROD, MIN, MAX, ALL, ANY, KINDS };
static int (*const kernels[KINDS])(const struct call*) = {rpi_cpu_sum, rpi_cpu_prod, rpi_cpu_min,
                                                          rpi_cpu_max, rpi_cpu_all, rpi_cpu_any};
static int (*const rules[KINDS])(struct rule*) = {rpi_rule_sum, rpi_rule_sum, rpi_rule_extremum,
                                                  rpi_rule_extremum, rpi_rule_truth,
                                                  rpi_rule_truth};

static double reference(enum kind k, const double* x, int64_t n, bool wide) {
  double y = k == PROD || k == ALL ? 1 : k == MIN ? INFINITY : k == MAX ? -INFINITY : 0;
  if (k == SUM) return ordered_sum(x, n, wide);
  for (int64_t i = 0; i < n; i++) switch (k) {
      case PROD: y *= x[i]; break;
      case MIN: y = x[i] < y ? x[i] : y; break;
      case MAX: y = x[i] > y ? x[i] : y; break;
      case ALL: y = y != 0 && x[i] != 0; break;
      default: y = y != 0 || x[i] != 0; break;
    }
  return y;
}

/* Small numbers that are exact in every dtype; sums of floats get fractions that are not. */
static double pattern(int64_t i, enum kind k, int dtype) {
  uint32_t h = (uint32_t)i * 2654435761u;
  if (k == PROD) return i % 97 ? 1 : rpi_dtype_kind(dtype) == RPI_KIND_F && h >> 20 & 1 ? -1 : 2;
  if (k == ALL || k == ANY) return h >> 26 ? k == ALL : k != ALL;
  int64_t small = (int64_t)(h >> 25) - (rpi_dtype_kind(dtype) == RPI_KIND_U ? 0 : 64);
  if (dtype == RPI_BOOL) return small > 0;
  if (dtype == RPI_FLOAT32 || dtype == RPI_FLOAT64)
    return (double)small + (double)(h & 0xFFFF) / 65536;
  return (double)small;
}

/* The reduction of a tensor over the axes in `mask`, against the reference, for each output. */
static void check(enum kind k, const struct tensor* x, const struct tensor* y, unsigned mask) {
  int64_t outputs = y->view.size, n = outputs ? x->view.size / outputs : 0;
  double* row = malloc(sizeof *row * (size_t)(n + 1));
  int64_t* fill = calloc((size_t)outputs + 1, sizeof *fill);
  double* all = malloc(sizeof *all * (size_t)(x->view.size + 1));
  for (int64_t e = 0; e < x->view.size; e++) { /* row-major, so each row fills in order */
    int64_t rest = e, out = 0, step = 1;
    for (int d = x->view.ndim - 1; d >= 0; d--) {
      if (!(mask >> d & 1)) {
        out += rest % x->shape[d] * step;
        step *= x->shape[d];
      }
      rest /= x->shape[d];
    }
    all[out * n + fill[out]++] = number_of(tensor_get(x, e), x->view.dtype);
  }
  for (int64_t o = 0; o < outputs; o++) {
    double want = reference(k, all + o * n, n, x->view.dtype != RPI_FLOAT32);
    uint64_t got = tensor_get(y, o);
    int item = (int)rpi_dtype_size(y->view.dtype);
    uint64_t bits = raw_of(want, y->view.dtype);
    if (y->view.dtype == RPI_COMPLEX64) bits &= 0xFFFFFFFF, got &= 0xFFFFFFFF;
    if (item < 8) bits &= (1ull << 8 * item) - 1;
    if (got != bits)
      fail_msg("kind %d dtype %d mask %u output %lld: %llx, not %llx (%g)", k, x->view.dtype, mask,
               (long long)o, (unsigned long long)got, (unsigned long long)bits, want);
  }
  free(row), free(fill), free(all);
}

static struct tensor* fill_tensor(enum kind k, int dtype, const int* shape, int ndim,
                                  enum layout l) {
  struct tensor* x = tensor_new(dtype, shape, ndim, l);
  for (int64_t i = 0; i < x->view.size; i++) tensor_put(x, i, raw_of(pattern(i, k, dtype), dtype));
  return x;
}

static struct tensor* reduce(enum kind k, struct tensor* x, unsigned mask) {
  int64_t attr[1 + RPI_MAX_NDIM] = {0};
  int n = 1;
  for (int d = 0; d < x->view.ndim; d++)
    if (mask >> d & 1) attr[n++] = d;
  struct launch l = {.rule = rules[k], .kernel = kernels[k], .nin = 1, .nattr = n, .in = {x},
                     .attr = attr};
  return launch(&l);
}

static void every_op_dtype_layout_and_axis_set_follows_the_stated_order(void** state) {
  (void)state;
  static const int shapes[][3] = {{5, 7, 9}, {3, 70, 4}, {300, 3, 2}, {2, 3, 300}, {4, 1, 260}};
  for (int k = 0; k < KINDS; k++)
    for (int dtype = 0; dtype < RPI_DTYPE_COUNT; dtype++)
      for (size_t s = 0; s < RPI_COUNT_OF(shapes); s++)
        for (int layout = 0; layout < LAYOUTS; layout++)
          for (unsigned mask = 0; mask < 8; mask++) {
            if (k == PROD && dtype == RPI_COMPLEX64) continue; /* below */
            struct tensor* x = fill_tensor((enum kind)k, dtype, shapes[s], 3, (enum layout)layout);
            struct tensor* y = reduce((enum kind)k, x, mask);
            check((enum kind)k, x, y, mask);
            tensor_free(x), tensor_free(y);
          }
}

static void several_chunks_are_combined_in_order(void** state) {
  (void)state;
  static const int shapes[][2] = {{1, 200000}, {200000, 1}, {140000, 5}, {5, 140000}};
  for (size_t s = 0; s < RPI_COUNT_OF(shapes); s++)
    for (int layout = 0; layout < LAYOUTS; layout++)
      for (unsigned mask = 1; mask < 4; mask++) {
        struct tensor* x = fill_tensor(SUM, RPI_FLOAT32, shapes[s], 2, (enum layout)layout);
        struct tensor* y = reduce(SUM, x, mask);
        check(SUM, x, y, mask);
        tensor_free(x), tensor_free(y);
      }
}

static void instruction_sets_and_threads_give_the_same_bits(void** state) {
  (void)state;
  static const int shape[] = {100, 90, 20};
  enum rpi_isa most = rpi_isa();
  int threads = rpi_threads();
  for (int k = 0; k < 2; k++)
    for (unsigned mask = 1; mask < 8; mask++) {
      struct tensor *x = fill_tensor(SUM, RPI_FLOAT32, shape, 3, DENSE), *want = NULL;
      for (int isa = 0; isa <= (int)most; isa++)
        for (int t = 1; t < 6; t += 2) {
          rpi_isa_limit((enum rpi_isa)isa);
          rpi_set_threads(t);
          struct tensor* y = reduce(k ? MAX : SUM, x, mask);
          if (!want) {
            want = y;
            continue;
          }
          assert_memory_equal(y->first, want->first, (size_t)y->view.size * 4);
          tensor_free(y);
        }
      tensor_free(x), tensor_free(want);
    }
  rpi_isa_limit(most);
  rpi_set_threads(threads);
}

static void reductions_over_nothing_give_the_identity(void** state) {
  (void)state;
  static const double want[] = {0, 1, 0, 0, 1, 0};
  for (int k = 0; k < KINDS; k++)
    for (int dtype = 0; dtype < RPI_DTYPE_COUNT; dtype++) {
      struct tensor* x = tensor_new(dtype, (int[]){3, 0}, 2, DENSE);
      struct launch l = {.rule = rules[k], .kernel = kernels[k], .nin = 1, .nattr = 2, .in = {x},
                         .attr = (int64_t[]){0, 1}};
      if (k == MIN || k == MAX) {
        assert_int_equal(launch_check(&l), RP_ERR_SHAPE);
      } else {
        struct tensor* y = launch(&l);
        assert_int_equal(y->view.size, 3);
        for (int i = 0; i < 3; i++)
          assert_true(number_of(tensor_get(y, i), y->view.dtype) == want[k]);
        tensor_free(y);
      }
      struct tensor* none = reduce((enum kind)k, x, 1); /* an empty result */
      assert_int_equal(none->view.size, 0);
      tensor_free(none);
      tensor_free(x);
    }
}

static void broadcast_axes_are_read_as_often_as_they_repeat(void** state) {
  (void)state;
  struct tensor* x = fill_tensor(SUM, RPI_FLOAT32, (int[]){90, 80}, 2, DENSE);
  for (unsigned zero = 1; zero < 4; zero++)
    for (unsigned mask = 1; mask < 4; mask++) {
      struct tensor v = *x;
      v.view.shape = v.shape;
      v.view.stride = v.stride;
      v.view.is_row_major = false;
      for (int d = 0; d < 2; d++)
        if (zero >> d & 1) v.stride[d] = 0;
      struct tensor* y = reduce(SUM, &v, mask);
      check(SUM, &v, y, mask);
      tensor_free(y);
    }
  tensor_free(x);
}

static void complex_products_multiply_their_elements(void** state) {
  (void)state;
  struct tensor* x = tensor_new(RPI_COMPLEX64, (int[]){2, 3}, 2, TRANSPOSED);
  /* (1 + i)(2)(3 - i) = 8 + 4i; and i i i = -i */
  static const float z[] = {1, 1, 2, 0, 3, -1, 0, 1, 0, 1, 0, 1};
  for (int i = 0; i < 6; i++)
    tensor_put(x, i, rp_bitsf(z[2 * i]) | (uint64_t)rp_bitsf(z[2 * i + 1]) << 32);
  struct tensor* y = reduce(PROD, x, 2);
  const float* p = (const float*)y->first;
  assert_true(p[0] == 8 && p[1] == 4 && p[2] == 0 && p[3] == -1);
  tensor_free(x), tensor_free(y);
}

/* ---- Through the interface ---- */

static mlx_array f32_array(const float* x, const int* shape, int ndim) {
  return mlx_array_new_data(x, shape, ndim, MLX_FLOAT32);
}
#define VEC(...) f32_array((float[]){__VA_ARGS__}, (int[]){sizeof((float[]){__VA_ARGS__}) / 4}, 1)

static double value_at(mlx_array a, int i) {
  mlx_array d = {0};
  ok(mlx_astype(&d, a, MLX_FLOAT64, cpu));
  double x = mlx_array_data_float64(d)[i];
  mlx_array_free(d);
  return x;
}

static mlx_array ones(int n, mlx_dtype dtype) {
  mlx_array a = {0};
  ok(mlx_ones(&a, &n, 1, dtype, cpu));
  return a;
}

static void half_sums_and_means_do_not_stick(void** state) {
  (void)state;
  mlx_array a = ones(20000, MLX_FLOAT16), b = ones(70000, MLX_BFLOAT16), y = {0};
  ok(mlx_sum(&y, a, false, cpu));
  assert_int_equal(mlx_array_dtype(y), MLX_FLOAT16);
  assert_true(value_at(y, 0) == 20000);
  ok(mlx_sum(&y, b, false, cpu));
  assert_true(value_at(y, 0) == 70144);
  ok(mlx_mean(&y, b, false, cpu));
  assert_int_equal(mlx_array_dtype(y), MLX_BFLOAT16);
  assert_true(value_at(y, 0) == 1);
  mlx_array_free(a);
  a = ones(70000, MLX_FLOAT16); /* the sum is past float16 */
  ok(mlx_mean(&y, a, false, cpu));
  assert_true(value_at(y, 0) == 1);
  ok(mlx_var(&y, a, false, 0, cpu));
  assert_true(fabs(value_at(y, 0)) < 1e-10);
  mlx_array_free(a), mlx_array_free(b), mlx_array_free(y);
}

static void sums_of_small_integers_widen(void** state) {
  (void)state;
  static const mlx_dtype pairs[][2] = {{MLX_BOOL, MLX_INT32},    {MLX_INT8, MLX_INT32},
                                       {MLX_INT16, MLX_INT32},   {MLX_INT32, MLX_INT32},
                                       {MLX_INT64, MLX_INT64},   {MLX_UINT8, MLX_UINT32},
                                       {MLX_UINT16, MLX_UINT32}, {MLX_UINT32, MLX_UINT32},
                                       {MLX_UINT64, MLX_UINT64}, {MLX_FLOAT16, MLX_FLOAT16}};
  for (size_t i = 0; i < RPI_COUNT_OF(pairs); i++) {
    mlx_array a = ones(1000, pairs[i][0]), y = {0};
    ok(mlx_sum(&y, a, false, cpu));
    assert_int_equal(mlx_array_dtype(y), pairs[i][1]);
    assert_true(value_at(y, 0) == 1000);
    ok(mlx_prod_axis(&y, a, 0, true, cpu));
    assert_int_equal(mlx_array_dtype(y), pairs[i][1]);
    assert_int_equal(mlx_array_ndim(y), 1);
    ok(mlx_mean(&y, a, false, cpu));
    assert_int_equal(mlx_array_dtype(y), i == 9 ? MLX_FLOAT16 : MLX_FLOAT32);
    mlx_array_free(a), mlx_array_free(y);
  }
}

static void empty_arrays_sum_to_zero_and_have_no_maximum(void** state) {
  (void)state;
  mlx_array a = {0}, y = {0};
  ok(mlx_zeros(&a, (int[]){0}, 1, MLX_FLOAT32, cpu));
  ok(mlx_sum(&y, a, false, cpu));
  assert_true(value_at(y, 0) == 0);
  ok(mlx_logsumexp(&y, a, false, cpu));
  assert_true(value_at(y, 0) == -INFINITY);
  assert_int_equal(mlx_max(&y, a, false, cpu), 1);
  assert_int_equal(rp_last_error(NULL), RP_ERR_SHAPE);
  assert_int_equal(mlx_argmin(&y, a, false, cpu), 1);
  assert_int_equal(mlx_median(&y, a, NULL, 0, false, cpu), 1);
  mlx_array_free(a), mlx_array_free(y);
}

static void nan_wins_extremes_and_the_first_one_is_found(void** state) {
  (void)state;
  mlx_array a = VEC(3, NAN, 1, 5), b = VEC(1, 2, NAN), c = VEC(INFINITY, NAN, -INFINITY), y = {0};
  const mlx_array in[] = {a, b, c};
  static const uint32_t want[] = {1, 2, 1};
  for (int i = 0; i < 3; i++) {
    ok(mlx_argmax(&y, in[i], false, cpu));
    assert_int_equal(mlx_array_dtype(y), MLX_UINT32);
    assert_int_equal(*mlx_array_data_uint32(y), want[i]);
    ok(mlx_argmin(&y, in[i], true, cpu));
    assert_int_equal(*mlx_array_data_uint32(y), want[i]);
    assert_int_equal(mlx_array_ndim(y), 1);
    ok(mlx_max(&y, in[i], false, cpu));
    assert_true(isnan(value_at(y, 0)));
    ok(mlx_min_axis(&y, in[i], -1, false, cpu));
    assert_true(isnan(value_at(y, 0)));
  }
  for (int i = 0; i < 3; i++) mlx_array_free(in[i]);
  mlx_array_free(y);
}

static void positions_agree_with_extremes_in_every_dtype_and_layout(void** state) {
  (void)state;
  for (int dtype = 0; dtype < RPI_DTYPE_COUNT; dtype++)
    for (int layout = 0; layout < LAYOUTS; layout++)
      for (int axis = 0; axis < 2; axis++) {
        struct tensor* x = fill_tensor(MAX, dtype, (int[]){130, 90}, 2, (enum layout)layout);
        struct launch l = {.rule = rpi_rule_argreduce, .kernel = rpi_cpu_argmax, .nin = 1,
                           .nattr = 2, .in = {x}, .attr = (int64_t[]){0, axis}};
        struct tensor* y = launch(&l);
        for (int64_t o = 0; o < y->view.size; o++) {
          int64_t n = axis ? 90 : 130, best = 0;
          double top = -INFINITY;
          for (int64_t i = 0; i < n; i++) {
            double v = number_of(tensor_get(x, axis ? o * 90 + i : i * 90 + o), dtype);
            if (v > top) top = v, best = i;
          }
          /* Complex values of the pattern order as their real parts, the other way round for equal
           * ones. */
          if (dtype != RPI_COMPLEX64) assert_int_equal(tensor_get(y, o), best);
        }
        tensor_free(x), tensor_free(y);
      }
}

static void logsumexp_has_the_right_infinities(void** state) {
  (void)state;
  float x[] = {INFINITY, 2, 3, 4, 5, 6};
  mlx_array a = f32_array(x, (int[]){2, 3}, 2), b = VEC(-INFINITY, -INFINITY), y = {0};
  ok(mlx_logsumexp_axis(&y, a, 1, false, cpu));
  assert_true(value_at(y, 0) == INFINITY);
  assert_true(fabs(value_at(y, 1) - 6.407606) < 1e-6);
  ok(mlx_logsumexp(&y, b, true, cpu));
  assert_true(value_at(y, 0) == -INFINITY);
  assert_int_equal(mlx_array_ndim(y), 1);
  mlx_array_free(a), mlx_array_free(b), mlx_array_free(y);
}

static void log_softmax_of_large_values_is_exact(void** state) {
  (void)state;
  static const float values[] = {1, 1e4f, 1e8f, 1e20f};
  for (int i = 0; i < 4; i++) {
    mlx_array a = VEC(values[i], values[i]), y = {0}, top = {0};
    ok(mlx_max(&top, a, true, cpu));
    ok(mlx_subtract(&a, a, top, cpu));
    ok(mlx_logsumexp_axis(&y, a, -1, true, cpu));
    ok(mlx_subtract(&y, a, y, cpu));
    for (int j = 0; j < 2; j++) assert_true(fabs(value_at(y, j) + 0.6931472) < 1e-7);
    mlx_array_free(a), mlx_array_free(y), mlx_array_free(top);
  }
}

static void a_maximum_compares_equal_to_its_elements(void** state) {
  (void)state;
  mlx_array x = {0}, m = {0}, e = {0}, n = {0};
  ok(mlx_arange(&x, 0, 8, 1, MLX_FLOAT32, cpu));
  ok(mlx_reshape(&x, x, (int[]){2, 2, 2}, 3, cpu));
  ok(mlx_max_axes(&m, x, (int[]){0, 2}, 2, true, cpu));
  ok(mlx_equal(&e, x, m, cpu));
  ok(mlx_sum(&n, e, false, cpu));
  assert_true(value_at(m, 0) == 5 && value_at(m, 1) == 7);
  assert_true(value_at(n, 0) == 2);
  for (int i = 0; i < 8; i++) assert_true(value_at(e, i) == (i == 5 || i == 7));
  mlx_array_free(x), mlx_array_free(m), mlx_array_free(e), mlx_array_free(n);
}

static void variance_and_deviation_divide_by_the_count_less_ddof(void** state) {
  (void)state;
  mlx_array a = VEC(1, 2, 3, 4), y = {0};
  ok(mlx_var(&y, a, false, 0, cpu));
  assert_true(value_at(y, 0) == 1.25);
  ok(mlx_var_axis(&y, a, 0, true, 1, cpu));
  assert_true(fabs(value_at(y, 0) - 5.0 / 3) < 1e-6);
  ok(mlx_std_axes(&y, a, (int[]){-1}, 1, false, 0, cpu));
  assert_true(fabs(value_at(y, 0) - sqrt(1.25)) < 1e-6);
  mlx_array_free(a), mlx_array_free(y);
}

static void medians_are_middles(void** state) {
  (void)state;
  mlx_array a = VEC(5, 1, 4), b = VEC(4, 1, 3, 2), c = VEC(1, NAN, 2), y = {0};
  ok(mlx_median(&y, a, NULL, 0, false, cpu));
  assert_true(value_at(y, 0) == 4 && mlx_array_ndim(y) == 0);
  ok(mlx_median(&y, b, (int[]){0}, 1, true, cpu));
  assert_true(value_at(y, 0) == 2.5 && mlx_array_ndim(y) == 1);
  ok(mlx_median(&y, c, NULL, 0, false, cpu));
  assert_true(isnan(value_at(y, 0)));
  mlx_array_free(a), mlx_array_free(b), mlx_array_free(c), mlx_array_free(y);
}

static void scalars_reduce_to_themselves(void** state) {
  (void)state;
  mlx_array a = mlx_array_new_float(3), y = {0};
  ok(mlx_sum(&y, a, true, cpu));
  assert_true(value_at(y, 0) == 3 && mlx_array_ndim(y) == 0);
  ok(mlx_mean(&y, a, false, cpu));
  assert_true(value_at(y, 0) == 3);
  ok(mlx_logsumexp(&y, a, false, cpu));
  assert_true(value_at(y, 0) == 3);
  ok(mlx_argmax(&y, a, false, cpu));
  assert_true(value_at(y, 0) == 0);
  assert_int_equal(mlx_sum_axis(&y, a, 0, false, cpu), 1);
  mlx_array_free(a), mlx_array_free(y);
}

static void bad_axes_are_refused(void** state) {
  (void)state;
  mlx_array a = VEC(1, 2), y = {0};
  assert_int_equal(mlx_sum_axis(&y, a, 1, false, cpu), 1);
  assert_int_equal(mlx_sum_axes(&y, a, (int[]){0, -1}, 2, false, cpu), 1);
  assert_int_equal(mlx_softmax_axis(&y, a, -2, false, cpu), 1);
  assert_null(y.ctx);
  mlx_array_free(a);
}

/* A row that is r mod 251 everywhere, seen without its first columns; the full size is 2^31 and
 * more. */
static void maxima_of_large_slices_are_those_of_their_rows(void** state) {
  (void)state;
  bool is_large = getenv("RP_TEST_LARGE") != NULL;
  int rows = is_large ? 32769 : 1029, cols = is_large ? 65536 : 1024;
  mlx_array r = {0}, x = {0}, y = {0};
  ok(mlx_arange(&r, 0, rows, 1, MLX_INT32, cpu));
  mlx_array m = mlx_array_new_int(251);
  ok(mlx_remainder(&r, r, m, cpu));
  ok(mlx_astype(&r, r, MLX_UINT8, cpu));
  ok(mlx_reshape(&r, r, (int[]){rows, 1}, 2, cpu));
  ok(mlx_broadcast_to(&x, r, (int[]){rows, cols}, 2, cpu));
  ok(mlx_contiguous(&x, x, false, cpu));
  ok(mlx_slice(&x, x, (int[]){0, 7}, 2, (int[]){rows, cols}, 2, (int[]){1, 1}, 2, cpu));
  ok(mlx_max_axis(&y, x, 1, false, cpu));
  const uint8_t* top = mlx_array_data_uint8(y);
  for (int i = 0; i < rows; i++) assert_int_equal(top[i], i % 251);
  mlx_array_free(r), mlx_array_free(x), mlx_array_free(y), mlx_array_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_op_dtype_layout_and_axis_set_follows_the_stated_order),
      cmocka_unit_test(several_chunks_are_combined_in_order),
      cmocka_unit_test(instruction_sets_and_threads_give_the_same_bits),
      cmocka_unit_test(reductions_over_nothing_give_the_identity),
      cmocka_unit_test(broadcast_axes_are_read_as_often_as_they_repeat),
      cmocka_unit_test(complex_products_multiply_their_elements),
      cmocka_unit_test(half_sums_and_means_do_not_stick),
      cmocka_unit_test(sums_of_small_integers_widen),
      cmocka_unit_test(empty_arrays_sum_to_zero_and_have_no_maximum),
      cmocka_unit_test(nan_wins_extremes_and_the_first_one_is_found),
      cmocka_unit_test(positions_agree_with_extremes_in_every_dtype_and_layout),
      cmocka_unit_test(logsumexp_has_the_right_infinities),
      cmocka_unit_test(log_softmax_of_large_values_is_exact),
      cmocka_unit_test(a_maximum_compares_equal_to_its_elements),
      cmocka_unit_test(variance_and_deviation_divide_by_the_count_less_ddof),
      cmocka_unit_test(medians_are_middles),
      cmocka_unit_test(scalars_reduce_to_themselves),
      cmocka_unit_test(bad_axes_are_refused),
      cmocka_unit_test(maxima_of_large_slices_are_those_of_their_rows),
  };
  return cmocka_run_group_tests(tests, silence, NULL);
}
