/* matmul and addmm from views: shapes of every rank, broadcast batches, dtypes, and messages. The
 * values are small integers where exact results are wanted. */
#include "float_tensor.h"

#include "base/thread.h"

int rpi_cpu_matmul(const struct call* c);
int rpi_cpu_addmm(const struct call* c);

static struct launch product_of(struct tensor* a, struct tensor* b) {
  return (struct launch){.rule = rpi_rule_matmul, .kernel = rpi_cpu_matmul, .nin = 2, .in = {a, b}};
}

static struct tensor* multiply(struct tensor* a, struct tensor* b) {
  struct launch l = product_of(a, b);
  return launch(&l);
}

static struct tensor* add_multiply(struct tensor* a, struct tensor* b, struct tensor* c,
                                   double alpha, double beta) {
  return launch(
      &(struct launch){.rule = rpi_rule_addmm,
                       .kernel = rpi_cpu_addmm,
                       .nin = 3,
                       .in = {a, b, c},
                       .nattr = 2,
                       .attr = WORDS(rpi_attr_from_double(alpha), rpi_attr_from_double(beta))});
}

/* Whole numbers from -4 to 4. */
static struct tensor* whole_numbers(int dtype, const int* shape, int ndim, enum layout layout,
                                    uint64_t seed) {
  struct tensor* t = tensor_new(dtype, shape, ndim, layout);
  bool is_unsigned = rpi_dtype_kind(dtype) == RPI_KIND_U;
  for (int64_t k = 0; k < t->view.size; k++)
    set_value(t, k, is_unsigned ? floor(fabs(noise(seed, k)) * 4) : round(noise(seed, k) * 4));
  return t;
}

/* The index of an operand's element from that of the output's batch: aligned on the right, extent 1
 * stretches. */
static int64_t batch_index(const struct tensor* t, int inner, const struct tensor* out,
                           int out_inner, int64_t batch) {
  int nt = t->view.ndim - inner, no = out->view.ndim - out_inner;
  int64_t at = 0, step = 1;
  for (int d = 1; d <= no; d++) {
    int64_t i = batch % out->shape[no - d];
    batch /= out->shape[no - d];
    if (d > nt) continue;
    if (t->shape[nt - d] != 1) at += i * step;
    step *= t->shape[nt - d];
  }
  return at;
}

static double product_at(const struct tensor* a, const struct tensor* b, const struct tensor* y,
                         int64_t i) {
  bool is_row = a->view.ndim == 1, is_col = b->view.ndim == 1;
  int64_t m = is_row ? 1 : a->shape[a->view.ndim - 2], k = a->shape[a->view.ndim - 1];
  int64_t n = is_col ? 1 : b->shape[b->view.ndim - 1];
  int64_t batch = i / (m * n), row = i / n % m, col = i % n;
  int64_t ba = batch_index(a, is_row ? 1 : 2, y, !is_row + !is_col, batch);
  int64_t bb = batch_index(b, is_col ? 1 : 2, y, !is_row + !is_col, batch);
  double sum = 0;
  for (int64_t j = 0; j < k; j++)
    sum += value_at(a, (ba * m + row) * k + j) * value_at(b, (bb * k + j) * n + col);
  return sum;
}

static void check(int dtype, enum layout la, enum layout lb, const int* sa, int na, const int* sb,
                  int nb) {
  struct tensor* a = whole_numbers(dtype, sa, na, la, 1);
  struct tensor* b = whole_numbers(dtype, sb, nb, lb, 2);
  struct tensor* y = multiply(a, b);
  for (int64_t i = 0; i < y->view.size; i++) {
    double want = product_at(a, b, y, i), got = value_at(y, i);
    if (got != want) fail_msg("%s: got %g, want %g", rpi_dtype_names[dtype], got, want);
  }
  tensor_free(a);
  tensor_free(b);
  tensor_free(y);
}

static const int dtypes[] = {RPI_FLOAT32, RPI_FLOAT16, RPI_BFLOAT16, RPI_FLOAT64, RPI_INT32,
                             RPI_INT64,   RPI_INT8,    RPI_UINT16,   RPI_UINT8};

static void every_rank_multiplies_in_every_dtype_and_layout(void** state) {
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
    for (int layout = 0; layout < LAYOUTS; layout++) {
      int t = dtypes[d];
      check(t, layout, DENSE, DIMS(3), DIMS(3));
      check(t, layout, layout, DIMS(3), DIMS(3, 4));
      check(t, DENSE, layout, DIMS(5, 3), DIMS(3));
      check(t, layout, layout, DIMS(5, 3), DIMS(3, 4));
      check(t, layout, layout, DIMS(2, 5, 3), DIMS(3, 4));
      check(t, layout, layout, DIMS(5, 3), DIMS(2, 3, 4));
      check(t, layout, layout, DIMS(2, 1, 5, 3), DIMS(4, 3, 6));
      check(t, layout, layout, DIMS(3, 2, 1, 3), DIMS(3, 4));
      check(t, layout, layout, DIMS(3), DIMS(2, 3, 4));
      check(t, layout, layout, DIMS(2, 1, 4, 3), DIMS(3));
    }
}

static void a_dot_product_is_14(void** state) { /* L06 */
  int some[] = {RPI_FLOAT16, RPI_BFLOAT16, RPI_INT32};
  for (int d = 0; d < 3; d++) {
    struct tensor* a = tensor_new(some[d], DIMS(3), DENSE);
    for (int i = 0; i < 3; i++) set_value(a, i, i + 1);
    struct tensor* y = multiply(a, a);
    assert_int_equal(y->view.ndim, 0);
    assert_true(value_at(y, 0) == 14);
    tensor_free(a);
    tensor_free(y);
  }
}

static void an_empty_inner_axis_gives_zeros(void** state) { /* N15 */
  struct tensor *a = tensor_new(RPI_FLOAT32, DIMS(2, 0), DENSE),
                *b = tensor_new(RPI_FLOAT32, DIMS(0, 3), DENSE);
  struct tensor* y = multiply(a, b);
  expect_shape(y, DIMS(2, 3));
  for (int i = 0; i < 6; i++) assert_true(value_at(y, i) == 0);
  tensor_free(y);
  struct tensor* e = tensor_new(RPI_FLOAT32, DIMS(0), DENSE);
  y = multiply(e, e);
  assert_true(y->view.ndim == 0 && value_at(y, 0) == 0);
  tensor_free(y);
  struct tensor* z = tensor_new(RPI_FLOAT32, DIMS(0, 0), DENSE);
  y = add_multiply(z, z, z, 1, 1);
  expect_shape(y, DIMS(0, 0));
  tensor_free(y);
  tensor_free(a);
  tensor_free(b);
  tensor_free(e);
  tensor_free(z);
}

static void half_addmm_uses_alpha_and_beta(void** state) { /* N16 */
  struct tensor* a = tensor_new(RPI_FLOAT16, DIMS(2, 3), DENSE);
  struct tensor* b = tensor_new(RPI_FLOAT16, DIMS(3, 2), DENSE);
  struct tensor* c = tensor_new(RPI_FLOAT16, DIMS(2, 1), DENSE);
  for (int i = 0; i < 6; i++) {
    set_value(a, i, i);
    set_value(b, i % 3 * 2 + i / 3, i);
  }
  set_value(c, 0, 1);
  set_value(c, 1, 1);
  struct tensor* y = add_multiply(a, b, c, 0.7, 1.3);
  double want[] = {4.80078125, 11.1015625, 11.1015625, 36.3125};
  for (int i = 0; i < 4; i++) assert_true(value_at(y, i) == want[i]);
  struct tensor* all[] = {a, b, c, y};
  for (int i = 0; i < 4; i++) tensor_free(all[i]);
}

static void check_term(const int* sa, int na, const int* sb, int nb, const int* sc, int nc) {
  for (size_t d = 0; d < 5; d++)
    for (int layout = 0; layout < LAYOUTS; layout++) {
      struct tensor* a = whole_numbers(dtypes[d], sa, na, layout, 1);
      struct tensor* b = whole_numbers(dtypes[d], sb, nb, layout, 2);
      struct tensor* c = whole_numbers(dtypes[d], sc, nc, layout, 3);
      struct tensor* y = add_multiply(a, b, c, 2, 3);
      for (int64_t i = 0; i < y->view.size; i++) {
        double got = value_at(y, i);
        int64_t at = batch_index(c, 0, y, 0, i);
        double term = value_at(c, at);
        struct tensor* p = multiply(a, b);
        double sum = value_at(p, i);
        tensor_free(p);
        if (got != 2 * sum + 3 * term) fail_msg("got %g, want %g", got, 2 * sum + 3 * term);
      }
      struct tensor* all[] = {a, b, c, y};
      for (int i = 0; i < 4; i++) tensor_free(all[i]);
    }
}

static void the_added_term_broadcasts(void** state) {
  check_term(DIMS(3, 2), DIMS(2, 4), DIMS(3, 4));
  check_term(DIMS(3, 2), DIMS(2, 4), DIMS(4));
  check_term(DIMS(3, 2), DIMS(2, 4), DIMS(3, 1));
  check_term(DIMS(5, 3, 2), DIMS(2, 4), DIMS(5, 1, 4));
  check_term(DIMS(5, 3, 2), DIMS(2, 4), DIMS(3, 4));
  check_term(DIMS(5, 3, 2), DIMS(5, 2, 4), DIMS(5, 3, 4));
  check_term(DIMS(5, 1, 2), DIMS(2, 4), DIMS(1, 4));
  check_term(DIMS(2), DIMS(2, 4), DIMS(4));
  check_term(DIMS(5, 3, 2), DIMS(2), DIMS(5, 1));
}

/* 1 and 2 threads; a row of a batch alone; a batch by itself. */
static void the_bits_do_not_depend_on_batch_or_threads(void** state) {
  struct tensor* a = random_tensor(RPI_FLOAT32, DIMS(6, 30, 100), DENSE, 1);
  struct tensor* b = random_tensor(RPI_FLOAT32, DIMS(100, 70), TRANSPOSED, 2);
  rpi_set_threads(1);
  struct tensor* one = multiply(a, b);
  rpi_set_threads(2);
  struct tensor* two = multiply(a, b);
  expect_same_bits(one, two);
  rpi_set_threads(0);
  struct tensor *item = part_of(a, 0, 4, 5), *row = part_of(item, 1, 17, 18);
  struct tensor* alone = multiply(row, b);
  for (int64_t j = 0; j < 70; j++)
    assert_int_equal(tensor_get(alone, j), tensor_get(one, (4 * 30 + 17) * 70 + j));
  free(item);
  free(row);
  struct tensor* all[] = {a, b, one, two, alone};
  for (int i = 0; i < 5; i++) tensor_free(all[i]);
}

static void mismatches_name_both_shapes(void** state) {
  struct tensor *a = tensor_new(RPI_FLOAT32, DIMS(2, 3), DENSE),
                *b = tensor_new(RPI_FLOAT32, DIMS(4, 5), DENSE);
  struct launch l = product_of(a, b);
  assert_int_equal(launch_check(&l), RP_ERR_SHAPE);
  assert_non_null(strstr(rpi_error_text(), "(2,3)"));
  assert_non_null(strstr(rpi_error_text(), "(4,5)"));
  struct tensor* s = tensor_new(RPI_FLOAT32, (int[]){1}, 0, DENSE);
  l = product_of(a, s);
  assert_int_equal(launch_check(&l), RP_ERR_SHAPE);
  struct tensor *c = tensor_new(RPI_FLOAT32, DIMS(2, 3, 4), DENSE),
                *d = tensor_new(RPI_FLOAT32, DIMS(3, 4, 2), DENSE);
  l = product_of(c, d);
  assert_int_equal(launch_check(&l), RP_ERR_SHAPE);
  struct tensor* e = tensor_new(RPI_INT32, DIMS(3, 2), DENSE);
  l = product_of(a, e);
  assert_int_equal(launch_check(&l), RP_ERR_DTYPE);
  struct tensor* all[] = {a, b, s, c, d, e};
  for (int i = 0; i < 6; i++) tensor_free(all[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_rank_multiplies_in_every_dtype_and_layout),
      cmocka_unit_test(a_dot_product_is_14),
      cmocka_unit_test(an_empty_inner_axis_gives_zeros),
      cmocka_unit_test(half_addmm_uses_alpha_and_beta),
      cmocka_unit_test(the_added_term_broadcasts),
      cmocka_unit_test(the_bits_do_not_depend_on_batch_or_threads),
      cmocka_unit_test(mismatches_name_both_shapes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
