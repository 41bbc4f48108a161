/* Affine quantization from views: the format against a reference of its own, products against
 * double. */
#include "float_tensor.h"

#include "base/thread.h"

int rpi_cpu_quantize(const struct call* c);
int rpi_cpu_dequantize(const struct call* c);
int rpi_cpu_quantized_matmul(const struct call* c);

struct matrix {
  struct tensor *w, *s, *b;
};

static void free_matrix(struct matrix* m) {
  tensor_free(m->w);
  tensor_free(m->s);
  tensor_free(m->b);
}

static struct matrix quantize(const struct tensor* x, int group, int bits) {
  struct operand in = {x->shape, x->view.ndim, x->view.dtype};
  int64_t attr[2] = {group, bits};
  struct rule r = {.name = "test", .nin = 1, .in = &in, .attr = attr, .nattr = 2};
  assert_int_equal(rpi_rule_quantize(&r), 0);
  struct tensor* y[3];
  struct view out[3];
  void* dst[3];
  for (int i = 0; i < 3; i++) {
    y[i] = tensor_new(r.out[i].dtype, r.out[i].shape.dim, r.out[i].shape.ndim, DENSE);
    out[i] = y[i]->view;
    dst[i] = y[i]->first;
  }
  const void* src = x->first;
  struct call c = {.name = "test",
                   .nin = 1,
                   .nout = 3,
                   .nattr = 2,
                   .in = &x->view,
                   .out = out,
                   .src = &src,
                   .dst = dst,
                   .attr = attr};
  assert_int_equal(rpi_cpu_quantize(&c), 0);
  return (struct matrix){y[0], y[1], y[2]};
}

static struct tensor* dequantize(const struct matrix* m, int group, int bits, int dtype) {
  return launch(&(struct launch){.rule = rpi_rule_dequantize,
                                 .kernel = rpi_cpu_dequantize,
                                 .nin = 3,
                                 .in = {m->w, m->s, m->b},
                                 .nattr = 3,
                                 .attr = WORDS(group, bits, dtype)});
}

static struct tensor* multiply(struct tensor* x, const struct matrix* m, bool transpose, int group,
                               int bits) {
  return launch(&(struct launch){.rule = rpi_rule_quantized_matmul,
                                 .kernel = rpi_cpu_quantized_matmul,
                                 .nin = 4,
                                 .in = {x, m->w, m->s, m->b},
                                 .nattr = 3,
                                 .attr = WORDS(transpose, group, bits)});
}

/* Value `i` of row `row`, bit by bit. */
static unsigned code_at(const struct matrix* m, int64_t row, int64_t i, int bits) {
  int64_t words = m->w->shape[m->w->view.ndim - 1];
  unsigned q = 0;
  for (int k = 0; k < bits; k++) {
    int64_t bit = i * bits + k;
    q |= (unsigned)(tensor_get(m->w, row * words + bit / 32) >> (bit % 32) & 1) << k;
  }
  return q;
}

static double weight_at(const struct matrix* m, int64_t row, int64_t i, int group, int bits) {
  int64_t g = row * m->s->shape[m->s->view.ndim - 1] + i / group;
  return code_at(m, row, i, bits) * value_at(m->s, g) + value_at(m->b, g);
}

static const int formats[][2] = {{32, 2}, {64, 3}, {64, 4}, {32, 5}, {128, 6}, {64, 8}, {128, 4}};

static void values_come_back_within_a_level(void** state) {
  int dtypes[] = {RPI_FLOAT32, RPI_FLOAT16, RPI_BFLOAT16};
  for (int d = 0; d < 3; d++)
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
      int group = formats[f][0], bits = formats[f][1], n = 640;
      struct tensor* x = random_tensor(dtypes[d], DIMS(2, 3, n), f & 1 ? STEPPED : DENSE, 5);
      struct matrix m = quantize(x, group, bits);
      expect_shape(m.w, DIMS(2, 3, n * bits / 32));
      expect_shape(m.s, DIMS(2, 3, n / group));
      struct tensor* y = dequantize(&m, group, bits, RPI_FLOAT32);
      for (int64_t k = 0; k < x->view.size; k++) {
        double scale = fabs(value_at(m.s, k / group));
        double slack = dtypes[d] == RPI_FLOAT32 ? 1e-5 : dtypes[d] == RPI_FLOAT16 ? 2e-3 : 2e-2;
        /* The scale is stretched so that the far end is met: the near end may miss by most of a
         * level. */
        expect_near(value_at(y, k), value_at(x, k), scale * 1.01 + slack);
        expect_near(value_at(y, k), weight_at(&m, k / n, k % n, group, bits), 1e-6);
      }
      struct tensor* half = dequantize(&m, group, bits, RPI_FLOAT16);
      for (int64_t k = 0; k < x->view.size; k++)
        assert_true(value_at(half, k) ==
                    (double)rp_f16_to_f32(rp_f32_to_f16((float)value_at(y, k))));
      tensor_free(half);
      tensor_free(x);
      tensor_free(y);
      free_matrix(&m);
    }
}

static void check_product(struct tensor* x, const struct matrix* m, bool transpose, int group,
                          int bits, double tol) {
  struct tensor* y = multiply(x, m, transpose, group, bits);
  int64_t rows = m->w->shape[m->w->view.ndim - 2],
          cols = (int64_t)m->s->shape[m->s->view.ndim - 1] * group;
  int64_t n = transpose ? rows : cols, k = transpose ? cols : rows;
  assert_int_equal(y->shape[y->view.ndim - 1], n);
  for (int64_t i = 0; i < y->view.size; i++) {
    double sum = 0;
    for (int64_t j = 0; j < k; j++)
      sum += value_at(x, i / n * k + j) * (transpose ? weight_at(m, i % n, j, group, bits)
                                                     : weight_at(m, j, i % n, group, bits));
    expect_near(value_at(y, i), sum, tol);
  }
  tensor_free(y);
}

static void products_equal_those_of_the_weights(void** state) {
  for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
    for (int t = 0; t < 2; t++)
      for (int rows = 1; rows <= 9; rows += 8) {
        int group = formats[f][0], bits = formats[f][1];
        struct tensor* w = random_tensor(RPI_FLOAT16, DIMS(t ? 33 : 70, 256), DENSE, 7);
        struct matrix m = quantize(w, group, bits);
        struct tensor* x = random_tensor(RPI_FLOAT32, DIMS(2, rows, t ? 256 : 70),
                                         rows > 1 ? TRANSPOSED : DENSE, 8);
        check_product(x, &m, t, group, bits, 1e-4);
        tensor_free(w);
        tensor_free(x);
        free_matrix(&m);
      }
}

static void a_number_of_rows_that_no_block_divides_is_fine(void** state) { /* Q01 */
  for (int n = 4; n <= 33; n += 29) {
    struct tensor *w = tensor_new(RPI_FLOAT32, DIMS(n, 64), DENSE),
                  *x = tensor_new(RPI_FLOAT32, DIMS(64), DENSE);
    for (int64_t k = 0; k < w->view.size; k++) set_value(w, k, (double)(k / 64 + 1));
    for (int k = 0; k < 64; k++) set_value(x, k, 1);
    struct matrix m = quantize(w, 64, 4);
    struct tensor* y = multiply(x, &m, true, 64, 4);
    expect_shape(y, DIMS(n));
    for (int k = 0; k < n; k++) expect_near(value_at(y, k), 64.0 * (k + 1), 0.01);
    tensor_free(w);
    tensor_free(x);
    tensor_free(y);
    free_matrix(&m);
  }
}

/* (2, 1, ...) seen as (2, 2, ...). */
static struct tensor* repeated(const struct tensor* t) {
  struct tensor* y = part_of(t, 1, 0, 2);
  y->stride[1] = 0;
  y->view.is_row_major = false;
  return y;
}

static void repeated_weights_are_found_by_stride(void** state) { /* Q03 */
  struct tensor* w = tensor_new(RPI_FLOAT32, DIMS(2, 1, 3, 64), DENSE);
  struct tensor* x = tensor_new(RPI_FLOAT32, DIMS(2, 2, 1, 64), DENSE);
  for (int64_t k = 0; k < w->view.size; k++) set_value(w, k, (double)(k / 192 + 1));
  for (int64_t k = 0; k < x->view.size; k++) set_value(x, k, 1);
  struct matrix m = quantize(w, 64, 4), r = {repeated(m.w), repeated(m.s), repeated(m.b)};
  struct tensor* y = multiply(x, &r, true, 64, 4);
  expect_shape(y, DIMS(2, 2, 1, 3));
  for (int k = 0; k < 12; k++) expect_near(value_at(y, k), k < 6 ? 64 : 128, 1e-3);
  free(r.w);
  free(r.s);
  free(r.b);
  tensor_free(w);
  tensor_free(x);
  tensor_free(y);
  free_matrix(&m);
}

static void the_untransposed_product_is_not_zero(void** state) { /* Q04 */
  struct matrix m = {tensor_new(RPI_UINT32, DIMS(1024, 4), DENSE),
                     tensor_new(RPI_FLOAT32, DIMS(1024, 1), DENSE),
                     tensor_new(RPI_FLOAT32, DIMS(1024, 1), DENSE)};
  struct tensor* x = tensor_new(RPI_FLOAT32, DIMS(1, 1024), DENSE);
  for (int k = 0; k < 1024; k++) {
    for (int i = 0; i < 4; i++) tensor_put(m.w, 4 * k + i, 0x11111111);
    set_value(m.s, k, 0.1);
    set_value(x, k, 1);
  }
  struct tensor* y = multiply(x, &m, false, 32, 4);
  expect_shape(y, DIMS(1, 32));
  for (int k = 0; k < 32; k++) expect_near(value_at(y, k), 102.4, 1e-3);
  tensor_free(x);
  tensor_free(y);
  free_matrix(&m);
}

static void the_bits_do_not_depend_on_layout_batch_or_threads(void** state) {
  struct tensor* w = random_tensor(RPI_BFLOAT16, DIMS(40, 128), DENSE, 7);
  struct tensor* x = random_tensor(RPI_FLOAT32, DIMS(20, 128), DENSE, 8);
  struct matrix m = quantize(w, 64, 4);
  rpi_set_threads(1);
  struct tensor* one = multiply(x, &m, true, 64, 4);
  rpi_set_threads(2);
  struct matrix other = {copy_as(m.w, TRANSPOSED), copy_as(m.s, REVERSED), copy_as(m.b, STEPPED)};
  struct tensor* two = multiply(x, &other, true, 64, 4);
  rpi_set_threads(0);
  expect_same_bits(one, two);
  for (int i = 0; i < 20; i += 3) {
    struct tensor *row = part_of(x, 0, i, i + 1), *want = part_of(one, 0, i, i + 1);
    struct tensor* y = multiply(row, &m, true, 64, 4);
    expect_same_bits(y, want);
    tensor_free(y);
    free(row);
    free(want);
  }
  tensor_free(w);
  tensor_free(x);
  tensor_free(one);
  tensor_free(two);
  free_matrix(&m);
  free_matrix(&other);
}

static int refusal(int dtype, const int* shape, int ndim, int group, int bits) {
  struct operand in = {shape, ndim, dtype};
  struct rule r = {.name = "quantize", .nin = 1, .in = &in, .attr = WORDS(group, bits), .nattr = 2};
  return rpi_rule_quantize(&r);
}

static void formats_that_do_not_exist_are_refused(void** state) { /* Q06 */
  assert_int_equal(refusal(RPI_FLOAT32, DIMS(64, 64), 0, 4), RP_ERR_ARGUMENT);
  assert_int_equal(refusal(RPI_FLOAT32, DIMS(64, 64), 64, 0), RP_ERR_ARGUMENT);
  assert_int_equal(refusal(RPI_FLOAT32, DIMS(64, 64), 64, 7), RP_ERR_ARGUMENT);
  assert_int_equal(refusal(RPI_FLOAT32, DIMS(64, 65), 64, 4), RP_ERR_SHAPE);
  assert_int_equal(refusal(RPI_FLOAT32, DIMS(64), 64, 4), RP_ERR_SHAPE);
  assert_int_equal(refusal(RPI_INT32, DIMS(64, 64), 64, 4), RP_ERR_DTYPE);
  assert_int_equal(refusal(RPI_FLOAT32, DIMS(64, 64), 64, 4), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_come_back_within_a_level),
      cmocka_unit_test(products_equal_those_of_the_weights),
      cmocka_unit_test(a_number_of_rows_that_no_block_divides_is_fine),
      cmocka_unit_test(repeated_weights_are_found_by_stride),
      cmocka_unit_test(the_untransposed_product_is_not_zero),
      cmocka_unit_test(the_bits_do_not_depend_on_layout_batch_or_threads),
      cmocka_unit_test(formats_that_do_not_exist_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
