/* Matrix products against the plain chain of fma, on every instruction set, and for every position. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/gemm.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/qmm.h"
#include "base/thread.h"
#include "core/dtype.h"
#include "op/scalar.h"

static uint32_t seed = 1;
static float noise(void) {
  seed = seed * 1664525u + 1013904223u;
  return (float)(int32_t)seed * (1.0f / 2147483648.0f);
}

static float* random_floats(int64_t n) {
  float* p = malloc(sizeof *p * (size_t)(n + 1));
  for (int64_t i = 0; i < n; i++) p[i] = noise();
  return p;
}

/* The chain that gemm.h states, one element at a time. */
static float chain(const struct rpi_gemm* g, int64_t i, int64_t j) {
  float acc = 0;
  for (int64_t k = 0; k < g->k; k++)
    acc = fmaf(((const float*)g->a)[i * g->a_row + k * g->a_col],
               ((const float*)g->b)[k * g->b_row + j * g->b_col], acc);
  return acc;
}

static void assert_same_bits(const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (memcmp(&a[i], &b[i], sizeof *a)) {
      print_error("element %lld: %.9g against %.9g\n", (long long)i, (double)a[i], (double)b[i]);
      fail();
    }
}

static void check_shape(int64_t m, int64_t n, int64_t k, bool transposed) {
  float *a = random_floats(m * k), *b = random_floats(k * n);
  float *out = malloc(sizeof(float) * (size_t)(m * n + 1)), *want = malloc(sizeof(float) * (size_t)(m * n + 1));
  struct rpi_gemm g = {.dtype = RPI_FLOAT32, .m = m, .n = n, .k = k, .a = a, .b = b, .out = out,
                       .a_row = k, .a_col = 1, .b_row = transposed ? 1 : n,
                       .b_col = transposed ? k : 1, .ldo = n};
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) want[i * n + j] = chain(&g, i, j);
  out[m * n] = 77;
  assert_int_equal(rpi_gemm(&g), 0);
  assert_same_bits(out, want, m * n);
  assert_true(out[m * n] == 77);
  free(a), free(b), free(out), free(want);
}

static void for_every_isa(void (*check)(void)) {
  for (int isa = RPI_ISA_SCALAR; isa < RPI_ISA_COUNT; isa++)
    if (rpi_isa_limit(isa) == (enum rpi_isa)isa) check();
  rpi_isa_limit(RPI_ISA_COUNT - 1);
}

static void check_shapes(void) {
  static const int64_t sizes[] = {1, 2, 3, 5, 8, 13, 17, 33};
  for (size_t i = 0; i < 8; i++)
    for (size_t j = 0; j < 8; j++)
      for (size_t k = 0; k < 8; k++)
        for (int t = 0; t < 2; t++) check_shape(sizes[i], sizes[j], sizes[k], t);
  check_shape(70, 130, 65, false);
  check_shape(70, 130, 65, true);
  check_shape(1, 600, 300, false);
  check_shape(1, 600, 300, true);
  check_shape(2, 301, 299, true);
  check_shape(400, 33, 20, true);
}

static void every_shape_and_instruction_set_gives_the_stated_chain(void** state) {
  (void)state;
  for_every_isa(check_shapes);
}

static void odd_strides_give_the_same_bits(void** state) {
  (void)state;
  enum { M = 20, N = 41, K = 37 };
  float *a = random_floats(2 * M * K), *b = random_floats(3 * K * N), out[M * N];
  struct rpi_gemm g = {.dtype = RPI_FLOAT32, .m = M, .n = N, .k = K, .a = a + (M - 1) * 2 * K,
                       .a_row = -2 * K, .a_col = 2, .b = b, .b_row = 3 * N, .b_col = 3, .out = out,
                       .ldo = N};
  assert_int_equal(rpi_gemm(&g), 0);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) assert_true(out[i * N + j] == chain(&g, i, j));
  g.a_row = 0; /* every row the same */
  assert_int_equal(rpi_gemm(&g), 0);
  assert_same_bits(out, out + 7 * N, N);
  free(a), free(b);
}

static void threads_do_not_change_the_bits(void** state) {
  (void)state;
  enum { M = 64, N = 200, K = 150 };
  float *a = random_floats(M * K), *b = random_floats(K * N), *one = random_floats(M * N), *two = random_floats(M * N);
  struct rpi_gemm g = {.dtype = RPI_FLOAT32, .m = M, .n = N, .k = K, .a = a, .a_row = K, .a_col = 1,
                       .b = b, .b_row = N, .b_col = 1, .out = one, .ldo = N};
  rpi_set_threads(1);
  assert_int_equal(rpi_gemm(&g), 0);
  rpi_set_threads(4);
  g.out = two;
  assert_int_equal(rpi_gemm(&g), 0);
  rpi_set_threads(0);
  assert_same_bits(one, two, M * N);
  free(a), free(b), free(one), free(two);
}

static void addmm_scales_the_unrounded_sum(void** state) {
  (void)state;
  uint16_t a[6], c[2], out[4];
  for (int i = 0; i < 6; i++) a[i] = rp_f32_to_f16((float)i);
  c[0] = c[1] = rp_f32_to_f16(1);
  struct rpi_gemm g = {.dtype = RPI_FLOAT16, .m = 2, .n = 2, .k = 3, .a = a, .a_row = 3, .a_col = 1,
                       .b = a, .b_row = 1, .b_col = 3, .c = c, .c_row = 1, .c_col = 0, .out = out,
                       .ldo = 2, .alpha = 0.7, .beta = 1.3};
  assert_int_equal(rpi_gemm(&g), 0);
  assert_int_equal(out[0], rp_f32_to_f16(4.8f));
  assert_int_equal(out[1], rp_f32_to_f16(11.1f));
  assert_int_equal(out[3], rp_f32_to_f16(36.3f));
}

static void no_terms_give_zeros(void** state) {
  (void)state;
  float out[6] = {1, 1, 1, 1, 1, 1};
  struct rpi_gemm g = {.dtype = RPI_FLOAT32, .m = 2, .n = 3, .k = 0, .out = out, .ldo = 3};
  assert_int_equal(rpi_gemm(&g), 0);
  for (int i = 0; i < 6; i++) assert_true(out[i] == 0);
}

static void integers_wrap_and_doubles_keep_their_precision(void** state) {
  (void)state;
  int32_t a[3] = {1, 2, 3}, out;
  struct rpi_gemm g = {.dtype = RPI_INT32, .m = 1, .n = 1, .k = 3, .a = a, .a_row = 3, .a_col = 1,
                       .b = a, .b_row = 1, .b_col = 1, .out = &out, .ldo = 1};
  assert_int_equal(rpi_gemm(&g), 0);
  assert_int_equal(out, 14);
  int8_t big[2] = {127, 127}, small;
  g.dtype = RPI_INT8, g.k = 2, g.a = g.b = big, g.out = &small;
  assert_int_equal(rpi_gemm(&g), 0);
  assert_int_equal(small, 2); /* 32258 = 126 * 256 + 2 */
  double d[2] = {1, 1e-12}, one[2] = {1, 1}, sum;
  g.dtype = RPI_FLOAT64, g.a = d, g.b = one, g.out = &sum;
  assert_int_equal(rpi_gemm(&g), 0);
  assert_true(sum == 1 + 1e-12);
}

/* Odd strides, so that every operand is packed or copied; column j of B starts at 2 j. */
enum { WIDE_K = 19 };
static struct rpi_gemm wide_product(int dtype, int64_t m, int64_t n, const void* a, const void* b,
                                    void* out) {
  return (struct rpi_gemm){.dtype = dtype, .m = m, .n = n, .k = WIDE_K, .a = a, .a_row = WIDE_K,
                           .a_col = 1, .b = b, .b_row = 2 * n, .b_col = 2, .c = a, .c_row = 1,
                           .c_col = 0, .out = out, .ldo = n, .alpha = 0.5, .beta = 3};
}

static void check_doubles(void) {
  for (int64_t m = 1; m < 7; m++)
    for (int64_t n = 1; n < 40; n += 6) {
      double a[6 * WIDE_K], b[2 * WIDE_K * 40], out[6 * 40];
      for (int64_t i = 0; i < m * WIDE_K; i++) a[i] = noise() / 3.0;
      for (int64_t i = 0; i < 2 * WIDE_K * n; i++) b[i] = noise() / 7.0;
      struct rpi_gemm g = wide_product(RPI_FLOAT64, m, n, a, b, out);
      assert_int_equal(rpi_gemm(&g), 0);
      for (int64_t i = 0; i < m * n; i++) {
        double sum = 0;
        for (int k = 0; k < WIDE_K; k++)
          sum = fma(a[i / n * WIDE_K + k], b[2 * (k * n + i % n)], sum);
        sum = fma(3, a[i / n], 0.5 * sum);
        assert_memory_equal(&sum, &out[i], sizeof sum);
      }
    }
}

static void check_complex(void) {
  for (int64_t m = 1; m < 7; m++)
    for (int64_t n = 1; n < 40; n += 6) {
      struct rpi_c64 a[6 * WIDE_K], b[2 * WIDE_K * 40], out[6 * 40];
      for (int64_t i = 0; i < m * WIDE_K; i++) a[i] = (struct rpi_c64){noise(), noise()};
      for (int64_t i = 0; i < 2 * WIDE_K * n; i++) b[i] = (struct rpi_c64){noise(), noise()};
      struct rpi_gemm g = wide_product(RPI_COMPLEX64, m, n, a, b, out);
      assert_int_equal(rpi_gemm(&g), 0);
      for (int64_t i = 0; i < m * n; i++) {
        struct rpi_c64 sum = {0, 0}, c = a[i / n];
        for (int k = 0; k < WIDE_K; k++) {
          struct rpi_c64 x = a[i / n * WIDE_K + k], y = b[2 * (k * n + i % n)];
          sum.re = fmaf(-x.im, y.im, fmaf(x.re, y.re, sum.re));
          sum.im = fmaf(x.im, y.re, fmaf(x.re, y.im, sum.im));
        }
        sum = (struct rpi_c64){fmaf(3, c.re, 0.5f * sum.re), fmaf(3, c.im, 0.5f * sum.im)};
        assert_memory_equal(&sum, &out[i], sizeof sum);
      }
    }
}

static void doubles_and_complex_numbers_follow_the_stated_chain(void** state) {
  (void)state;
  for_every_isa(check_doubles);
  for_every_isa(check_complex);
}

/* Weights read as rows (a transposed B), by few rows and by many. */
static void check_halves(void) {
  static const int64_t rows[] = {1, 2, 3, 4, 5, 8, 9, 30};
  enum { N = 67, K = 75 };
  for (int t = 0; t < 16; t++) {
    int64_t m = rows[t / 2];
    int dtype = t % 2 ? RPI_FLOAT16 : RPI_BFLOAT16;
    uint16_t a[30 * K], b[N * K], out[30 * N];
    float wide_a[30 * K], wide_b[N * K];
    for (int i = 0; i < 30 * K + N * K; i++) {
      float x = noise();
      uint16_t h = dtype == RPI_FLOAT16 ? rp_f32_to_f16(x) : rp_f32_to_bf16(x);
      *(i < 30 * K ? &a[i] : &b[i - 30 * K]) = h;
      *(i < 30 * K ? &wide_a[i] : &wide_b[i - 30 * K]) =
          dtype == RPI_FLOAT16 ? rp_f16_to_f32(h) : rp_bf16_to_f32(h);
    }
    struct rpi_gemm g = {.dtype = dtype, .m = m, .n = N, .k = K, .a = a, .a_row = K, .a_col = 1,
                         .b = b, .b_row = 1, .b_col = K, .out = out, .ldo = N};
    struct rpi_gemm wide = g;
    wide.a = wide_a, wide.b = wide_b;
    assert_int_equal(rpi_gemm(&g), 0);
    for (int64_t i = 0; i < m * N; i++) {
      float sum = chain(&wide, i / N, i % N);
      assert_int_equal(out[i], dtype == RPI_FLOAT16 ? rp_f32_to_f16(sum) : rp_f32_to_bf16(sum));
    }
  }
}

static void half_formats_are_summed_in_float32_and_rounded_once(void** state) {
  (void)state;
  for_every_isa(check_halves);
}

/* ---- quantized ------------------------------------------------------------------------------- */

struct quantized {
  struct rpi_qweights w;
  float* dense; /* rows x cols, dequantized by the definition */
};

static struct quantized random_weights(int64_t rows, int64_t cols, int bits, int group) {
  struct quantized q = {.w = {.rows = rows, .cols = cols, .bits = bits, .group = group,
                              .scale_dtype = RPI_FLOAT16}};
  size_t words = (size_t)(rows * cols * bits / 32), groups = (size_t)(rows * cols / group);
  uint32_t* w = malloc(sizeof *w * words);
  uint16_t *s = malloc(sizeof *s * groups), *b = malloc(sizeof *b * groups);
  for (size_t i = 0; i < words; i++) w[i] = (uint32_t)(noise() * 2e9f) ^ ((uint32_t)i * 2654435761u);
  for (size_t i = 0; i < groups; i++) s[i] = rp_f32_to_f16(noise()), b[i] = rp_f32_to_f16(noise());
  q.dense = malloc(sizeof *q.dense * (size_t)(rows * cols));
  for (int64_t i = 0; i < rows * cols; i++) {
    int64_t row = i / cols, col = i % cols, at = col * bits;
    const uint8_t* p = (const uint8_t*)(w + row * cols * bits / 32);
    unsigned v = 0;
    for (int k = 0; k < bits; k++) v |= (unsigned)(p[(at + k) / 8] >> ((at + k) % 8) & 1) << k;
    int64_t g = row * (cols / group) + col / group;
    q.dense[i] = fmaf((float)v, rp_f16_to_f32(s[g]), rp_f16_to_f32(b[g]));
  }
  q.w.w = w, q.w.scales = s, q.w.biases = b;
  return q;
}

static void free_weights(struct quantized* q) {
  free((void*)q->w.w), free((void*)q->w.scales), free((void*)q->w.biases), free(q->dense);
}

static void check_quantized(int64_t m, int64_t rows, int64_t cols, int bits, int group,
                            bool transpose) {
  struct quantized q = random_weights(rows, cols, bits, group);
  int64_t n = transpose ? rows : cols, k = transpose ? cols : rows;
  float *x = random_floats(m * k), *out = random_floats(m * n), *want = random_floats(m * n);
  struct rpi_gemm g = {.dtype = RPI_FLOAT32, .m = m, .n = n, .k = k, .a = x, .a_row = k, .a_col = 1,
                       .b = q.dense, .b_row = transpose ? 1 : cols, .b_col = transpose ? cols : 1,
                       .out = want, .ldo = n};
  for (int64_t i = 0; i < m * n; i++) want[i] = chain(&g, i / n, i % n);
  assert_int_equal(rpi_qmm(&q.w, transpose, RPI_FLOAT32, m, x, k, 1, out, n), 0);
  assert_same_bits(out, want, m * n);
  free(x), free(out), free(want);
  free_weights(&q);
}

static void check_quantized_shapes(void) {
  static const int bits[] = {2, 3, 4, 5, 6, 8};
  for (int i = 0; i < 6; i++)
    for (int m = 1; m <= 9; m += m < 5 ? 1 : 2) {
      check_quantized(m, 33, 64, bits[i], 32, true);
      check_quantized(m, 5, 384, bits[i], 128, true);
      check_quantized(m, 40, 64, bits[i], 64, false);
    }
  check_quantized(1, 130, 576, 4, 32, true);
  check_quantized(1, 67, 1536, 4, 32, true);
  check_quantized(2, 67, 320, 8, 32, true);
  check_quantized(14, 67, 320, 4, 64, true);
}

static void quantized_products_equal_dense_ones_of_the_same_weights(void** state) {
  (void)state;
  for_every_isa(check_quantized_shapes);
}

static void a_row_is_the_same_alone_and_in_a_batch(void** state) {
  (void)state;
  enum { M = 40, N = 70, K = 576 };
  struct quantized q = random_weights(N, K, 4, 32);
  float *x = random_floats(M * K), *all = random_floats(M * N), one[N];
  assert_int_equal(rpi_qmm(&q.w, true, RPI_FLOAT32, M, x, K, 1, all, N), 0);
  for (int i = 0; i < M; i++) {
    assert_int_equal(rpi_qmm(&q.w, true, RPI_FLOAT32, 1, x + i * K, K, 1, one, N), 0);
    assert_same_bits(one, all + i * N, N);
  }
  free(x), free(all);
  free_weights(&q);
}

static void few_rows_of_weights_are_right(void** state) { /* not a multiple of any block */
  (void)state;
  enum { K = 64 };
  float w[33 * K], x[K], out[33];
  uint32_t packed[33 * K / 8];
  float scales[33 * 2], biases[33 * 2];
  memset(packed, 0, sizeof packed);
  for (int i = 0; i < 33 * K; i++) w[i] = (float)(i / K + 1);
  for (int i = 0; i < K; i++) x[i] = 1;
  for (int r = 0; r < 33; r++)
    rpi_quantize_row(w + r * K, K, 4, 32, packed + r * K / 8, scales + 2 * r, biases + 2 * r);
  struct rpi_qweights q = {packed, scales, biases, RPI_FLOAT32, 4, K, 4, 32};
  assert_int_equal(rpi_qmm(&q, true, RPI_FLOAT32, 1, x, K, 1, out, 4), 0);
  for (int r = 0; r < 4; r++) assert_float_equal(out[r], 64.0f * (float)(r + 1), 1e-2f);
  q.rows = 33;
  assert_int_equal(rpi_qmm(&q, true, RPI_FLOAT32, 1, x, K, 1, out, 33), 0);
  assert_float_equal(out[32], 2112.0f, 0.3f);
}

static void quantization_rounds_half_away_from_zero(void** state) {
  (void)state;
  float w[32], scale, bias;
  uint32_t packed[8] = {0};
  for (int i = 0; i < 32; i++) w[i] = (float)i - 16; /* edge -16, scale 31/15 -> 16/8 = 2 */
  rpi_quantize_row(w, 32, 4, 32, packed, &scale, &bias);
  assert_true(scale == 2 && bias == -16);
  assert_int_equal(packed[0] & 15, 0);
  assert_int_equal(packed[0] >> 4 & 15, 1); /* 0.5 */
  assert_int_equal(packed[0] >> 12 & 15, 2); /* 1.5 */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_shape_and_instruction_set_gives_the_stated_chain),
      cmocka_unit_test(odd_strides_give_the_same_bits),
      cmocka_unit_test(threads_do_not_change_the_bits),
      cmocka_unit_test(addmm_scales_the_unrounded_sum),
      cmocka_unit_test(no_terms_give_zeros),
      cmocka_unit_test(integers_wrap_and_doubles_keep_their_precision),
      cmocka_unit_test(doubles_and_complex_numbers_follow_the_stated_chain),
      cmocka_unit_test(half_formats_are_summed_in_float32_and_rounded_once),
      cmocka_unit_test(quantized_products_equal_dense_ones_of_the_same_weights),
      cmocka_unit_test(a_row_is_the_same_alone_and_in_a_batch),
      cmocka_unit_test(few_rows_of_weights_are_right),
      cmocka_unit_test(quantization_rounds_half_away_from_zero),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
