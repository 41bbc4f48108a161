/* Random numbers: golden bits, formulas recomputed from them, bounds, keys from many threads. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mlx/c/mlx.h"
#include "reprise/error.h"
#include "reprise/runtime.h"

static const mlx_stream cpu = {0};
static const mlx_array none = {0};

static void ignore(const char* msg, void* data) {
  (void)msg;
  (void)data;
}

static int silence(void** state) {
  (void)state;
  mlx_set_error_handler(ignore, NULL, NULL);
  return 0;
}

#define ok(call) assert_int_equal(call, 0)
#define SHAPE(...) (int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int)

static mlx_array key_of(uint64_t seed) {
  mlx_array k = {0};
  ok(mlx_random_key(&k, seed));
  return k;
}

static void expect_u32(mlx_array a, const uint32_t* want, size_t n) {
  assert_int_equal(mlx_array_dtype(a), MLX_UINT32);
  assert_int_equal(mlx_array_size(a), n);
  const uint32_t* got = mlx_array_data_uint32(a);
  assert_non_null(got);
  for (size_t i = 0; i < n; i++) assert_int_equal(got[i], want[i]);
}
#define expect_words(a, ...)                                        \
  expect_u32(a, (uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / 4)

/* The array as float32, `n` values that the caller frees. */
static float* floats(mlx_array a, size_t n) {
  mlx_array f = {0};
  float* copy = malloc(n * sizeof *copy);
  ok(mlx_astype(&f, a, MLX_FLOAT32, cpu));
  assert_int_equal(mlx_array_size(f), n);
  const float* x = mlx_array_data_float32(f);
  assert_non_null(x);
  memcpy(copy, x, n * sizeof *copy);
  mlx_array_free(f);
  return copy;
}

/* ---- Keys and bits: values of JAX's threefry, which MLX's tests hold too ---- */

static void a_key_is_the_two_words_of_its_seed(void** state) {
  (void)state;
  mlx_array k = key_of((1ull << 32) + 1);
  expect_words(k, 1, 1);
  mlx_array_free(k);
}

static void a_split_key_has_the_published_bits(void** state) {
  (void)state;
  mlx_array k = key_of(0), a = {0}, b = {0}, many = {0};
  ok(mlx_random_split(&a, &b, k, cpu));
  expect_words(a, 4146024105u, 967050713u);
  expect_words(b, 2718843009u, 1272950319u);
  ok(mlx_random_split_num(&many, k, 3, cpu));
  expect_words(many, 2467461003u, 428148500u, 3186719485u, 3840466878u, 2562233961u, 1946702221u);
  assert_int_equal(mlx_array_shape(many)[0], 3);
  mlx_array_free(k), mlx_array_free(a), mlx_array_free(b), mlx_array_free(many);
}

static void bits_are_the_published_ones_at_every_width(void** state) {
  (void)state;
  static const uint16_t eight[] = {20137, 63263, 1497, 14756, 16513, 41486, 44591, 19423};
  static const uint16_t five[] = {20137, 63263, 64300, 20622, 16513};
  mlx_array k = key_of(0), a = {0};
  ok(mlx_random_bits(&a, NULL, 0, 4, k, cpu));
  expect_words(a, 1797259609u);
  ok(mlx_random_bits(&a, NULL, 0, 2, k, cpu));
  assert_int_equal(*mlx_array_data_uint16(a), 345);
  ok(mlx_random_bits(&a, NULL, 0, 1, k, cpu));
  assert_int_equal(*mlx_array_data_uint8(a), 89);
  ok(mlx_random_bits(&a, SHAPE(3, 1), 4, k, cpu));
  expect_words(a, 4146024105u, 1351547692u, 2718843009u);
  ok(mlx_random_bits(&a, SHAPE(8), 2, k, cpu));
  assert_memory_equal(mlx_array_data_uint16(a), eight, sizeof eight);
  ok(mlx_random_bits(&a, SHAPE(5), 2, k, cpu));
  assert_memory_equal(mlx_array_data_uint16(a), five, sizeof five);
  mlx_array_free(a), mlx_array_free(k);
}

static void bits_of_nothing_are_empty(void** state) {
  (void)state;
  mlx_array k = key_of(0), a = {0};
  ok(mlx_random_bits(&a, SHAPE(3, 0), 4, k, cpu));
  assert_int_equal(mlx_array_size(a), 0);
  ok(mlx_array_eval(a));
  mlx_array_free(a), mlx_array_free(k);
}

static void bits_do_not_depend_on_the_number_of_threads(void** state) {
  (void)state;
  enum { N = 100001 };
  mlx_array k = key_of(7), a = {0}, b = {0};
  int before = rp_get_num_threads();
  ok(rp_set_num_threads(1));
  ok(mlx_random_bits(&a, SHAPE(N), 1, k, cpu));
  const uint8_t* one = mlx_array_data_uint8(a);
  ok(rp_set_num_threads(4));
  ok(mlx_random_bits(&b, SHAPE(N), 1, k, cpu));
  assert_memory_equal(one, mlx_array_data_uint8(b), N);
  ok(rp_set_num_threads(before));
  mlx_array_free(a), mlx_array_free(b), mlx_array_free(k);
}

static void wrong_keys_and_widths_are_refused(void** state) {
  (void)state;
  mlx_array k = key_of(0), a = {0}, bad = {0};
  assert_int_equal(mlx_random_bits(&a, NULL, 0, 3, k, cpu), 1);
  assert_int_equal(rp_last_error(NULL), RP_ERR_ARGUMENT);
  ok(mlx_reshape(&bad, k, SHAPE(1, 2), cpu));
  assert_int_equal(mlx_random_bits(&a, NULL, 0, 4, bad, cpu), 1);
  assert_int_equal(rp_last_error(NULL), RP_ERR_SHAPE);
  ok(mlx_astype(&bad, k, MLX_INT32, cpu));
  assert_int_equal(mlx_random_bits(&a, NULL, 0, 4, bad, cpu), 1);
  assert_int_equal(rp_last_error(NULL), RP_ERR_DTYPE);
  assert_int_equal(mlx_random_bits(&a, SHAPE(2, -1), 4, k, cpu), 1);
  assert_null(a.ctx);
  mlx_array_free(bad), mlx_array_free(k);
}

static void a_seed_restarts_the_sequence(void** state) {
  (void)state;
  mlx_array a[2] = {{0}}, b[2] = {{0}};
  ok(mlx_random_seed(4));
  for (int i = 0; i < 2; i++) ok(mlx_random_bits(&a[i], NULL, 0, 4, none, cpu));
  ok(mlx_random_seed(4));
  for (int i = 0; i < 2; i++) ok(mlx_random_bits(&b[i], NULL, 0, 4, none, cpu));
  for (int i = 0; i < 2; i++)
    assert_int_equal(*mlx_array_data_uint32(a[i]), *mlx_array_data_uint32(b[i]));
  assert_int_not_equal(*mlx_array_data_uint32(a[0]), *mlx_array_data_uint32(a[1]));
  for (int i = 0; i < 2; i++) mlx_array_free(a[i]), mlx_array_free(b[i]);
}

/* The sequence of seed 0 hands out the second half of a split, and goes on with the first. */
static void the_sequence_splits_its_key(void** state) {
  (void)state;
  mlx_array k = key_of(0), left = {0}, right = {0}, a = {0}, b = {0};
  ok(mlx_random_split(&left, &right, k, cpu));
  ok(mlx_random_seed(0));
  ok(mlx_random_bits(&a, NULL, 0, 4, none, cpu));
  ok(mlx_random_bits(&b, NULL, 0, 4, right, cpu));
  assert_int_equal(*mlx_array_data_uint32(a), *mlx_array_data_uint32(b));
  mlx_array_free(a), mlx_array_free(b), mlx_array_free(k);
  mlx_array_free(left), mlx_array_free(right);
}

/* ---- Uniform ---- */

static void uniform_divides_bits_by_their_range(void** state) {
  (void)state;
  static const uint32_t bits[] = {4146024105u, 1351547692u, 2718843009u};
  mlx_array k = key_of(0), a = {0}, zero = mlx_array_new_float(0), one = mlx_array_new_float(1);
  ok(mlx_random_uniform(&a, zero, one, SHAPE(3, 1), MLX_FLOAT32, k, cpu));
  const float* x = mlx_array_data_float32(a);
  for (int i = 0; i < 3; i++) assert_true(x[i] == (float)bits[i] / 4294967296.0f);
  mlx_array_free(a), mlx_array_free(k), mlx_array_free(zero), mlx_array_free(one);
}

static void uniform_stays_below_its_upper_bound(void** state) {
  (void)state;
  enum { N = 1000000 };
  static const mlx_dtype dtypes[] = {MLX_FLOAT32, MLX_FLOAT16, MLX_BFLOAT16};
  static const float bounds[][2] = {{0, 1}, {1, 2}};
  mlx_array k = key_of(3), a = {0};
  for (int d = 0; d < 3; d++)
    for (int j = 0; j < 2; j++) {
      mlx_array low = mlx_array_new_float(bounds[j][0]), high = mlx_array_new_float(bounds[j][1]);
      ok(mlx_random_uniform(&a, low, high, SHAPE(N), dtypes[d], k, cpu));
      float* x = floats(a, N);
      double sum = 0;
      for (int i = 0; i < N; i++) {
        if (x[i] < bounds[j][0] || x[i] >= bounds[j][1]) fail_msg("%d %d: %g", d, j, (double)x[i]);
        sum += (double)x[i];
      }
      /* bfloat16 in [1, 2) has 128 values, rounded to nearest but for the last one. */
      assert_true(fabs(sum / N - (double)bounds[j][0] - 0.5) < 0.01);
      free(x);
      mlx_array_free(low), mlx_array_free(high);
    }
  mlx_array_free(a), mlx_array_free(k);
}

static void parameters_that_enlarge_the_shape_are_refused(void** state) {
  (void)state;
  float zeros[9] = {0};
  mlx_array k = key_of(3), a = {0}, one = mlx_array_new_float(1);
  mlx_array low = mlx_array_new_data(zeros, (int[]){3, 3}, 2, MLX_FLOAT32);
  assert_int_equal(mlx_random_uniform(&a, low, one, SHAPE(1, 3), MLX_FLOAT32, k, cpu), 1);
  assert_int_equal(rp_last_error(NULL), RP_ERR_SHAPE);
  assert_int_equal(mlx_random_uniform(&a, low, one, SHAPE(3, 3), MLX_INT32, k, cpu), 1);
  assert_int_equal(rp_last_error(NULL), RP_ERR_DTYPE);
  mlx_array_free(k), mlx_array_free(one), mlx_array_free(low);
}

/* ---- Normal and kin: moments of 10^5 draws; bounds are about five deviations of the mean ---- */

static void expect_moments(mlx_array a, double mean, double deviation) {
  enum { N = 100000 };
  float* x = floats(a, N);
  double sum = 0, squares = 0;
  for (int i = 0; i < N; i++) {
    assert_true(isfinite(x[i]));
    sum += (double)x[i];
  }
  for (int i = 0; i < N; i++) squares += ((double)x[i] - sum / N) * ((double)x[i] - sum / N);
  assert_true(fabs(sum / N - mean) < 5 * deviation / sqrt(N));
  assert_true(fabs(sqrt(squares / N) / deviation - 1) < 0.03);
  free(x);
}

static void distributions_have_their_moments(void** state) {
  (void)state;
  static const mlx_dtype dtypes[] = {MLX_FLOAT32, MLX_FLOAT16, MLX_BFLOAT16, MLX_FLOAT64};
  mlx_array k = key_of(11), a = {0};
  for (int d = 0; d < 4; d++) {
    ok(mlx_random_normal(&a, SHAPE(100000), dtypes[d], 1, 2, k, cpu));
    assert_int_equal(mlx_array_dtype(a), dtypes[d]);
    expect_moments(a, 1, 2);
    ok(mlx_random_laplace(&a, SHAPE(100000), dtypes[d], 0, 1, k, cpu));
    expect_moments(a, 0, sqrt(2));
  }
  ok(mlx_random_gumbel(&a, SHAPE(100000), MLX_FLOAT32, k, cpu));
  expect_moments(a, 0.5772156649, 1.2825498302);
  mlx_array_free(a), mlx_array_free(k);
}

static void normal_takes_parameters_that_broadcast(void** state) {
  (void)state;
  mlx_array k = key_of(1), a = {0}, b = {0}, c = {0};
  float zeros[2] = {0, 100};
  mlx_array loc = mlx_array_new_data(zeros, (int[]){2}, 1, MLX_FLOAT32);
  ok(mlx_random_normal_broadcast(&a, SHAPE(3, 2), MLX_FLOAT32, loc, none, k, cpu));
  ok(mlx_random_normal(&b, SHAPE(3, 2), MLX_FLOAT32, 0, 1, k, cpu));
  const float *x = mlx_array_data_float32(a), *y = mlx_array_data_float32(b);
  for (int i = 0; i < 6; i++) assert_true(x[i] == zeros[i % 2] + y[i]);
  assert_int_equal(mlx_random_normal_broadcast(&c, SHAPE(3), MLX_FLOAT32, loc, none, k, cpu), 1);
  ok(mlx_random_normal(&c, SHAPE(2, 3), MLX_COMPLEX64, 0, 1, k, cpu));
  assert_int_equal(mlx_array_ndim(c), 2);
  assert_int_equal(mlx_array_size(c), 6);
  mlx_array_free(a), mlx_array_free(b), mlx_array_free(c), mlx_array_free(k), mlx_array_free(loc);
}

static void truncated_normal_stays_within_its_bounds(void** state) {
  (void)state;
  float low[] = {-2, 0}, high[] = {0, 1, 2};
  mlx_array k = key_of(5), a = {0};
  mlx_array lo = mlx_array_new_data(low, (int[]){1, 2}, 2, MLX_FLOAT32);
  mlx_array hi = mlx_array_new_data(high, (int[]){3, 1}, 2, MLX_FLOAT32);
  ok(mlx_random_truncated_normal(&a, lo, hi, SHAPE(3, 2), MLX_FLOAT32, k, cpu));
  const float* x = mlx_array_data_float32(a);
  for (int i = 0; i < 6; i++) assert_true(x[i] >= low[i % 2] && x[i] <= high[i / 2]);
  mlx_array_free(a), mlx_array_free(lo), mlx_array_free(hi), mlx_array_free(k);
}

/* ---- Discrete ---- */

static void bernoulli_is_certain_at_0_and_1(void** state) {
  (void)state;
  float p[] = {0, 1, -2, 2};
  mlx_array k = key_of(5), a = {0}, prob = mlx_array_new_data(p, (int[]){4}, 1, MLX_FLOAT32);
  ok(mlx_random_bernoulli(&a, prob, SHAPE(1000, 4), k, cpu));
  const bool* x = mlx_array_data_bool(a);
  for (int i = 0; i < 4000; i++) assert_int_equal(x[i], i % 2);
  assert_int_equal(mlx_random_bernoulli(&a, prob, SHAPE(2), k, cpu), 1);
  assert_int_equal(mlx_random_bernoulli(&a, k, SHAPE(2), k, cpu), 1);
  assert_int_equal(rp_last_error(NULL), RP_ERR_DTYPE);
  mlx_array_free(a), mlx_array_free(prob), mlx_array_free(k);
}

static void categorical_has_the_documented_shapes(void** state) {
  (void)state;
  float zeros[200] = {0};
  mlx_array k = key_of(5), a = {0};
  mlx_array x = mlx_array_new_data(zeros, (int[]){10, 20}, 2, MLX_FLOAT32);
  ok(mlx_random_categorical(&a, x, -1, k, cpu));
  assert_int_equal(mlx_array_ndim(a), 1);
  assert_int_equal(mlx_array_shape(a)[0], 10);
  assert_int_equal(mlx_array_dtype(a), MLX_UINT32);
  ok(mlx_random_categorical(&a, x, 0, k, cpu));
  assert_int_equal(mlx_array_shape(a)[0], 20);
  ok(mlx_random_categorical_shape(&a, x, 0, SHAPE(5, 20), k, cpu));
  assert_int_equal(mlx_array_shape(a)[0], 5);
  ok(mlx_random_categorical_num_samples(&a, x, 1, 7, k, cpu));
  assert_int_equal(mlx_array_shape(a)[0], 10);
  assert_int_equal(mlx_array_shape(a)[1], 7);
  assert_int_equal(mlx_random_categorical_shape(&a, x, 1, SHAPE(11), k, cpu), 1);
  assert_int_equal(mlx_random_categorical(&a, x, 2, k, cpu), 1);
  mlx_array_free(a), mlx_array_free(x), mlx_array_free(k);
}

static void categorical_draws_by_probability(void** state) {
  (void)state;
  enum { N = 40000 };
  float logits[] = {0, logf(3), -INFINITY, logf(4)};
  int count[4] = {0};
  mlx_array k = key_of(5), a = {0}, x = mlx_array_new_data(logits, (int[]){4}, 1, MLX_FLOAT32);
  ok(mlx_random_categorical_num_samples(&a, x, 0, N, k, cpu));
  const uint32_t* draw = mlx_array_data_uint32(a);
  for (int i = 0; i < N; i++) count[draw[i]]++;
  assert_true(abs(count[0] - N / 8) < 350);
  assert_true(abs(count[1] - N * 3 / 8) < 500);
  assert_int_equal(count[2], 0);
  mlx_array_free(a), mlx_array_free(x), mlx_array_free(k);
}

struct draw {
  int64_t low, high;
  mlx_dtype dtype;
  int n;
};

/* The draws as int64, read by the caller before the next call. */
static const int64_t* draw(mlx_array* a, const struct draw* d, bool known, mlx_array key) {
  mlx_array lo = mlx_array_new_data(&d->low, NULL, 0, MLX_INT64);
  mlx_array hi = mlx_array_new_data(&d->high, NULL, 0, MLX_INT64);
  if (!known) { /* bounds with an axis are not looked at */
    ok(mlx_reshape(&lo, lo, SHAPE(1), cpu));
    ok(mlx_reshape(&hi, hi, SHAPE(1), cpu));
  }
  ok(mlx_random_randint(a, lo, hi, &d->n, 1, d->dtype, key, cpu));
  assert_int_equal(mlx_array_dtype(*a), d->dtype);
  ok(mlx_astype(a, *a, MLX_INT64, cpu));
  mlx_array_free(lo), mlx_array_free(hi);
  return mlx_array_data_int64(*a);
}

static void integers_cover_their_range_and_no_more(void** state) {
  (void)state;
  static const struct draw draws[] = {
      {1 << 24, (1 << 24) + 2, MLX_INT32, 1000}, {1 << 24, (1 << 24) + 2, MLX_UINT32, 1000},
      {1ll << 40, (1ll << 40) + 1024, MLX_INT64, 1000}, {-5, 5, MLX_INT32, 20000},
      {0, 2, MLX_BOOL, 1000}, {0, 1, MLX_BOOL, 1000}, {INT64_MIN, INT64_MAX, MLX_INT64, 1000},
      {0, INT64_MAX, MLX_UINT64, 1000}, {0, 256, MLX_UINT8, 20000}, {7, 7, MLX_INT32, 10},
      {10, -10, MLX_INT32, 10}, {1ll << 41, 1ll << 40, MLX_INT64, 10}};
  mlx_array k = key_of(9), a = {0};
  for (size_t i = 0; i < sizeof draws / sizeof draws[0]; i++)
    for (int known = 0; known < 2; known++) {
      const struct draw* d = &draws[i];
      const int64_t* x = draw(&a, d, known, k);
      int64_t least = INT64_MAX, most = INT64_MIN, last = d->high > d->low ? d->high - 1 : d->low;
      for (int j = 0; j < d->n; j++) {
        if (x[j] < d->low || x[j] > last) fail_msg("row %zu: %lld", i, (long long)x[j]);
        if (x[j] < least) least = x[j];
        if (x[j] > most) most = x[j];
      }
      /* Short ranges are met at both ends, long ones near them. */
      double span = (double)last - (double)d->low;
      assert_true((double)least - (double)d->low <= span / 50);
      assert_true((double)last - (double)most <= span / 50);
    }
  mlx_array_free(a), mlx_array_free(k);
}

static void integers_refuse_floating_dtypes(void** state) {
  (void)state;
  mlx_array k = key_of(9), a = {0}, lo = mlx_array_new_int(0), hi = mlx_array_new_int(4);
  assert_int_equal(mlx_random_randint(&a, lo, hi, SHAPE(3), MLX_FLOAT32, k, cpu), 1);
  assert_int_equal(rp_last_error(NULL), RP_ERR_DTYPE);
  mlx_array_free(k), mlx_array_free(lo), mlx_array_free(hi);
}

static void a_permutation_holds_every_index_once(void** state) {
  (void)state;
  enum { N = 1000 };
  bool seen[N] = {false};
  int moved = 0;
  mlx_array k = key_of(2), a = {0}, x = {0};
  ok(mlx_random_permutation_arange(&a, N, k, cpu));
  const uint32_t* p = mlx_array_data_uint32(a);
  for (int i = 0; i < N; i++) {
    assert_true(p[i] < N && !seen[p[i]]);
    seen[p[i]] = true;
    moved += p[i] != (uint32_t)i;
  }
  assert_true(moved > N * 9 / 10);
  ok(mlx_arange(&x, 0, 12, 1, MLX_INT32, cpu));
  ok(mlx_reshape(&x, x, SHAPE(3, 4), cpu));
  ok(mlx_random_permutation(&a, x, 1, k, cpu));
  ok(mlx_sort_axis(&a, a, 1, cpu));
  const int* y = mlx_array_data_int32(a);
  for (int i = 0; i < 12; i++) assert_int_equal(y[i], i);
  mlx_array_free(a), mlx_array_free(x), mlx_array_free(k);
}

/* ---- Threads ---- */

enum { THREADS = 8, DRAWS = 200 };

static void draw_sums(mlx_array keys, int row, uint64_t* sum) {
  mlx_array key = {0}, a = {0}, index = mlx_array_new_int(row);
  mlx_take_axis(&key, keys, index, 0, cpu);
  for (int i = 0; i < DRAWS; i++) {
    mlx_array left = {0}, right = {0};
    mlx_random_split(&left, &right, key, cpu);
    mlx_random_bits(&a, NULL, 0, 4, right, cpu);
    *sum = *sum * 31 + *mlx_array_data_uint32(a);
    mlx_array_free(key);
    mlx_array_free(right);
    key = left;
  }
  mlx_array_free(key), mlx_array_free(a), mlx_array_free(index);
}

struct job {
  mlx_array keys;
  int row;
  uint64_t sum;
};

static void* run_job(void* arg) {
  struct job* j = arg;
  draw_sums(j->keys, j->row, &j->sum);
  mlx_array a = {0};
  for (int i = 0; i < 50; i++) mlx_random_bits(&a, NULL, 0, 4, none, cpu); /* the shared sequence */
  mlx_array_free(a);
  return NULL;
}

static void draws_of_a_key_do_not_depend_on_other_threads(void** state) {
  (void)state;
  pthread_t thread[THREADS];
  struct job job[THREADS];
  mlx_array k = key_of(1), keys = {0};
  ok(mlx_random_split_num(&keys, k, THREADS, cpu));
  ok(mlx_array_eval(keys));
  for (int i = 0; i < THREADS; i++) {
    job[i] = (struct job){keys, i, 0};
    ok(pthread_create(&thread[i], NULL, run_job, &job[i]));
  }
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  for (int i = 0; i < THREADS; i++) {
    uint64_t want = 0;
    draw_sums(keys, i, &want);
    assert_true(job[i].sum == want);
  }
  mlx_array_free(k), mlx_array_free(keys);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_key_is_the_two_words_of_its_seed),
      cmocka_unit_test(a_split_key_has_the_published_bits),
      cmocka_unit_test(bits_are_the_published_ones_at_every_width),
      cmocka_unit_test(bits_of_nothing_are_empty),
      cmocka_unit_test(bits_do_not_depend_on_the_number_of_threads),
      cmocka_unit_test(wrong_keys_and_widths_are_refused),
      cmocka_unit_test(a_seed_restarts_the_sequence),
      cmocka_unit_test(the_sequence_splits_its_key),
      cmocka_unit_test(uniform_divides_bits_by_their_range),
      cmocka_unit_test(uniform_stays_below_its_upper_bound),
      cmocka_unit_test(parameters_that_enlarge_the_shape_are_refused),
      cmocka_unit_test(distributions_have_their_moments),
      cmocka_unit_test(normal_takes_parameters_that_broadcast),
      cmocka_unit_test(truncated_normal_stays_within_its_bounds),
      cmocka_unit_test(bernoulli_is_certain_at_0_and_1),
      cmocka_unit_test(categorical_has_the_documented_shapes),
      cmocka_unit_test(categorical_draws_by_probability),
      cmocka_unit_test(integers_cover_their_range_and_no_more),
      cmocka_unit_test(integers_refuse_floating_dtypes),
      cmocka_unit_test(a_permutation_holds_every_index_once),
      cmocka_unit_test(draws_of_a_key_do_not_depend_on_other_threads),
  };
  return cmocka_run_group_tests(tests, silence, NULL);
}
