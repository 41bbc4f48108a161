/* Created values: arange and number_of_elements. */
#include "kernel_harness.h"

int rpi_cpu_arange(const struct call*);
int rpi_cpu_number_of_elements(const struct call*);

static struct tensor* arange(double start, double step, int64_t count, int dtype) {
  int64_t attr[] = {rpi_attr_from_double(start), rpi_attr_from_double(step), count, dtype};
  struct launch l = {rpi_rule_arange, rpi_cpu_arange, 0, 4, {NULL}, attr, false};
  return launch(&l);
}

static void arange_counts_in_every_integer_dtype(void** state) {
  for (int d = RPI_UINT8; d <= RPI_INT64; d++) {
    struct tensor* t = arange(3, 2, 4, d);
    expect_values(t, WORDS(3, 5, 7, 9), 4);
    tensor_free(t);
  }
  struct tensor* t = arange(2, -3, 3, RPI_INT16);
  expect_values(t, WORDS(2, -1, -4), 3);
  tensor_free(t);
}

static void arange_of_floats_rounds_each_value_once(void** state) {
  struct tensor* t = arange(0, 0.1, 50000, RPI_FLOAT32);
  const float* v = (const float*)t->first;
  for (int i = 0; i < 50000; i++)
    if (v[i] != (float)(i * 0.1)) fail_msg("value %d", i);
  tensor_free(t);
  t = arange(2049, 1, 3, RPI_FLOAT16); /* between 2048 and 4096 float16 has even numbers: 2^11 * 1.n */
  expect_values(t, WORDS(0x6800, 0x6801, 0x6802), 3);
  tensor_free(t);
  t = arange(1, 0.5, 3, RPI_BFLOAT16);
  expect_values(t, WORDS(0x3F80, 0x3FC0, 0x4000), 3);
  tensor_free(t);
}

static void arange_refuses_bool_and_complex(void** state) {
  int64_t attr[] = {0, 0, 3, RPI_BOOL};
  struct launch l = {rpi_rule_arange, rpi_cpu_arange, 0, 4, {NULL}, attr, false};
  assert_int_equal(launch_check(&l), RP_ERR_DTYPE);
  attr[3] = RPI_COMPLEX64;
  assert_int_equal(launch_check(&l), RP_ERR_DTYPE);
  attr[3] = 77;
  assert_int_equal(launch_check(&l), RP_ERR_DTYPE);
}

static void the_number_of_elements_follows_the_shape(void** state) {
  for (int n = 1; n < 4; n++) {
    struct launch l = {rpi_rule_number_of_elements, rpi_cpu_number_of_elements, 1, 4,
                       {tensor_new(RPI_FLOAT16, DIMS(n, 5, 7), REVERSED)},
                       WORDS(0, RPI_INT32, 0, 2), false};
    struct tensor* t = launch(&l);
    expect_values(t, WORDS(n * 7), 1);
    tensor_free(t);
    l.attr = WORDS(1, RPI_FLOAT32);
    l.nattr = 2;
    t = launch(&l);
    assert_true(*(float*)t->first == 1.0f / (float)(n * 35));
    tensor_free(t);
    tensor_free(l.in[0]);
  }
}

static void the_number_of_elements_saturates_small_dtypes(void** state) {
  struct launch l = {rpi_rule_number_of_elements, rpi_cpu_number_of_elements, 1, 2,
                     {tensor_new(RPI_UINT8, DIMS(300), DENSE)}, WORDS(0, RPI_INT8), false};
  struct tensor* t = launch(&l);
  expect_values(t, WORDS(127), 1);
  tensor_free(t);
  tensor_free(l.in[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arange_counts_in_every_integer_dtype),
      cmocka_unit_test(arange_of_floats_rounds_each_value_once),
      cmocka_unit_test(arange_refuses_bool_and_complex),
      cmocka_unit_test(the_number_of_elements_follows_the_shape),
      cmocka_unit_test(the_number_of_elements_saturates_small_dtypes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
