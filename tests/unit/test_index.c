/* Indexing and joining: kernels over every layout and size of element, against element-wise reference. */
#include "kernel_harness.h"

#include <limits.h>

#include "op/index.h"

int rpi_cpu_take(const struct call*);
int rpi_cpu_take_along_axis(const struct call*);
int rpi_cpu_gather(const struct call*);
int rpi_cpu_concatenate(const struct call*);
int rpi_cpu_pad(const struct call*);
int rpi_cpu_slice_update(const struct call*);
int rpi_cpu_slice_dynamic(const struct call*);
int rpi_cpu_slice_update_dynamic(const struct call*);

static const int items[] = {RPI_UINT8, RPI_BFLOAT16, RPI_FLOAT32, RPI_COMPLEX64};
static const int index_dtypes[] = {RPI_INT32, RPI_UINT32, RPI_INT64, RPI_UINT64,
                                   RPI_INT8,  RPI_UINT8,  RPI_INT16, RPI_UINT16};

static void release(struct launch* l, struct tensor* out) {
  for (int i = 0; i < l->nin; i++) tensor_free(l->in[i]);
  tensor_free(out);
}

/* Row-major index of element k of `shape`. */
static void unravel(int* index, int64_t k, const int* shape, int ndim) {
  for (int i = ndim - 1; i >= 0; i--) {
    index[i] = (int)(k % shape[i]);
    k /= shape[i];
  }
}
static int64_t ravel(const int* index, const int* shape, int ndim) {
  int64_t k = 0;
  for (int i = 0; i < ndim; i++) k = k * shape[i] + index[i];
  return k;
}

static struct launch taking(struct tensor* a, struct tensor* index, const int64_t* axis) {
  return (struct launch){rpi_rule_take, rpi_cpu_take, 2, 1, {a, index}, axis, false};
}

static void take_agrees_with_a_loop_in_every_layout(void** state) {
  const int64_t picks[] = {2, -1, 0, 1, 1, -3};
  for (int64_t axis = 0; axis < 3; axis++)
    for (int la = 0; la < LAYOUTS; la++)
      for (int li = 0; li < LAYOUTS; li++)
        for (size_t d = 0; d < RPI_COUNT_OF(items); d++) {
          struct launch l = taking(tensor_count(items[d], DIMS(3, 4, 5), la),
                                   tensor_of(RPI_INT32, DIMS(2, 3), li, picks), &axis);
          struct tensor* out = launch(&l);
          for (int64_t k = 0; k < out->view.size; k++) {
            int at[4], from[3];
            unravel(at, k, out->shape, 4);
            for (int i = 0; i < 3; i++) from[i] = at[i < axis ? i : i + 1];
            int64_t pick = picks[at[axis] * 3 + at[axis + 1]];
            from[axis] = (int)(pick < 0 ? pick + l.in[0]->shape[axis] : pick);
            assert_int_equal(tensor_get(out, k), ravel(from, l.in[0]->shape, 3));
          }
          release(&l, out);
        }
}

static void take_accepts_every_integer_dtype_and_no_other(void** state) {
  int64_t axis = 0;
  for (size_t d = 0; d < RPI_COUNT_OF(index_dtypes); d++) {
    struct launch l = taking(tensor_count(RPI_FLOAT32, DIMS(100), DENSE),
                             tensor_of(index_dtypes[d], DIMS(3), DENSE, WORDS(7, 99, 0)), &axis);
    struct tensor* out = launch(&l);
    expect_values(out, WORDS(7, 99, 0), 3);
    release(&l, out);
  }
  for (int d = 0; d < RPI_DTYPE_COUNT; d++) {
    struct launch l = taking(tensor_count(RPI_FLOAT32, DIMS(4), DENSE),
                             tensor_new(d, DIMS(2), DENSE), &axis);
    assert_int_equal(launch_check(&l), rpi_dtype_is_integer(d) ? 0 : RP_ERR_DTYPE);
    release(&l, NULL);
  }
}

static void take_outside_clamps_and_reads_nothing_foreign(void** state) {
  int64_t axis = 0;
  struct launch l = taking(tensor_count(RPI_INT32, DIMS(4), DENSE),
                           tensor_of(RPI_INT64, DIMS(5), DENSE,
                                     WORDS(4, 1000000000, -5, INT64_MIN, INT64_MAX)), &axis);
  struct tensor* out = launch(&l);
  expect_values(out, WORDS(3, 3, 0, 0, 3), 5);
  release(&l, out);
  l = taking(tensor_count(RPI_INT32, DIMS(4), DENSE),
             tensor_of(RPI_UINT64, DIMS(2), DENSE, WORDS(-1, 1)), &axis); /* 2^64 - 1 */
  out = launch(&l);
  expect_values(out, WORDS(3, 1), 2);
  release(&l, out);
}

static void take_from_nothing_is_an_error_unless_nothing_is_taken(void** state) {
  int64_t axis = 0;
  struct launch l = taking(tensor_new(RPI_INT32, DIMS(0, 3), DENSE),
                           tensor_new(RPI_INT32, DIMS(2), DENSE), &axis);
  assert_int_equal(launch_check(&l), RP_ERR_INDEX);
  tensor_free(l.in[1]);
  l.in[1] = tensor_new(RPI_INT32, DIMS(0), DENSE);
  struct tensor* out = launch(&l);
  expect_shape(out, DIMS(0, 3));
  release(&l, out);
}

/* The shapes of case C12: a shapeless take over indices of another length. */
static void take_follows_the_length_of_its_indices(void** state) {
  static const int64_t sums[] = {10, 30, 60, 100, 150};
  int64_t axis = 0;
  for (int n = 1; n <= 5; n++) {
    struct launch l = taking(tensor_of(RPI_INT32, DIMS(5), DENSE, WORDS(10, 20, 30, 40, 50)),
                             tensor_count(RPI_INT32, &n, 1, DENSE), &axis);
    struct tensor* out = launch(&l);
    int64_t sum = 0;
    for (int k = 0; k < n; k++) sum += (int64_t)tensor_get(out, k);
    assert_int_equal(sum, sums[n - 1]);
    release(&l, out);
  }
}

/* Big enough for many chunks: rows of an embedding, single elements, and rows with gaps. */
static void large_takes_equal_small_ones(void** state) {
  for (int layout = 0; layout < LAYOUTS; layout++)
    for (int64_t axis = 0; axis < 2; axis++) {
      struct launch l = taking(tensor_count(RPI_UINT32, DIMS(300, 200), layout),
                               tensor_new(RPI_INT32, DIMS(1000), DENSE), &axis);
      for (int k = 0; k < 1000; k++) tensor_put(l.in[1], k, (uint64_t)(k * 37 % 200));
      struct tensor* out = launch(&l);
      for (int64_t k = 0; k < out->view.size; k++) {
        int64_t row = axis ? k / 1000 : k / 200 * 37 % 200, col = axis ? k % 1000 * 37 % 200 : k % 200;
        if (tensor_get(out, k) != (uint64_t)(row * 200 + col)) fail_msg("element %d", (int)k);
      }
      release(&l, out);
    }
}

static void take_along_axis_agrees_with_a_loop_and_broadcasts(void** state) {
  static const int a_shapes[][3] = {{3, 4, 5}, {1, 4, 5}, {3, 4, 1}};
  static const int i_shapes[][3] = {{3, 4, 5}, {3, 4, 1}, {1, 1, 5}};
  for (int64_t axis = 0; axis < 3; axis++)
    for (size_t sa = 0; sa < 3; sa++)
      for (size_t si = 0; si < 3; si++)
        for (int layout = 0; layout < LAYOUTS; layout++)
          for (size_t d = 0; d < RPI_COUNT_OF(items); d++) {
            struct tensor* index = tensor_new(RPI_INT16, i_shapes[si], 3, layout);
            int extent = a_shapes[sa][axis];
            for (int64_t k = 0; k < index->view.size; k++)
              tensor_put(index, k, (uint64_t)(k * 7 % (2 * extent) - extent));
            struct launch l = {rpi_rule_take_along_axis, rpi_cpu_take_along_axis, 2, 1,
                               {tensor_count(items[d], a_shapes[sa], 3, layout), index}, &axis, false};
            struct tensor* out = launch(&l);
            for (int64_t k = 0; k < out->view.size; k++) {
              int at[3], i_at[3], from[3];
              unravel(at, k, out->shape, 3);
              for (int i = 0; i < 3; i++) {
                i_at[i] = i_shapes[si][i] == 1 ? 0 : at[i];
                from[i] = a_shapes[sa][i] == 1 ? 0 : at[i];
              }
              from[axis] = (int)((ravel(i_at, i_shapes[si], 3) * 7 % (2 * extent) + extent) % extent);
              assert_int_equal(tensor_get(out, k), ravel(from, a_shapes[sa], 3));
            }
            release(&l, out);
          }
}

static void take_along_axis_walks_long_rows_in_blocks(void** state) {
  for (int64_t axis = 0; axis < 2; axis++) {
    struct launch l = {rpi_rule_take_along_axis, rpi_cpu_take_along_axis, 2, 1,
                       {tensor_count(RPI_UINT32, DIMS(50, 1500), TRANSPOSED),
                        tensor_new(RPI_UINT8, DIMS(50, 1500), DENSE)}, &axis, false};
    for (int64_t k = 0; k < 75000; k++) tensor_put(l.in[1], k, (uint64_t)(k % 47));
    struct tensor* out = launch(&l);
    for (int64_t k = 0; k < 75000; k++) {
      int64_t want = axis ? k / 1500 * 1500 + k % 47 : k % 47 * 1500 + k % 1500;
      if (tensor_get(out, k) != (uint64_t)want) fail_msg("element %d", (int)k);
    }
    release(&l, out);
  }
}

static void gather_joins_its_indices_and_appends_the_slice(void** state) {
  for (int layout = 0; layout < LAYOUTS; layout++) {
    /* rows {2,0,1} and columns {1,-1}: slices of (1, 2, 3) of a (3, 4, 3) array */
    struct launch l = {rpi_rule_gather, rpi_cpu_gather, 3, 6,
                       {tensor_count(RPI_INT32, DIMS(3, 4, 3), layout),
                        tensor_of(RPI_INT32, DIMS(3, 1), layout, WORDS(2, 0, 1)),
                        tensor_of(RPI_UINT8, DIMS(2), layout, WORDS(1, 3))},
                       WORDS(2, 0, 1, 1, 2, -1), false};
    struct tensor* out = launch(&l);
    expect_shape(out, DIMS(3, 2, 1, 2, 3));
    for (int64_t k = 0; k < out->view.size; k++) {
      int at[5];
      unravel(at, k, out->shape, 5);
      int row = (int[]){2, 0, 1}[at[0]], col = (int[]){1, 2}[at[1]]; /* 3 is moved to fit 2 columns */
      assert_int_equal(tensor_get(out, k), row * 12 + (col + at[3]) * 3 + at[4]);
    }
    release(&l, out);
  }
}

static void gather_without_indices_is_the_first_slice(void** state) {
  struct launch l = {rpi_rule_gather, rpi_cpu_gather, 1, 3,
                     {tensor_count(RPI_INT32, DIMS(3, 4), REVERSED)}, WORDS(0, 2, 2), false};
  struct tensor* out = launch(&l);
  expect_values(out, WORDS(0, 1, 4, 5), 4);
  release(&l, out);
}

static void gather_refuses_sizes_and_axes_that_do_not_fit(void** state) {
  struct launch l = {rpi_rule_gather, rpi_cpu_gather, 2, 4,
                     {tensor_count(RPI_INT32, DIMS(3, 4), DENSE), tensor_new(RPI_INT32, DIMS(2), DENSE)},
                     NULL, false};
  l.attr = WORDS(1, 0, 4, 4);
  assert_int_equal(launch_check(&l), RP_ERR_SHAPE);
  l.attr = WORDS(1, 2, 1, 4);
  assert_int_equal(launch_check(&l), RP_ERR_INDEX);
  l.attr = WORDS(2, 0, 0, 1, 4);
  l.nattr = 5;
  assert_int_equal(launch_check(&l), RP_ERR_ARGUMENT);
  release(&l, NULL);
}

static void concatenate_puts_one_after_another(void** state) {
  for (int64_t axis = 0; axis < 3; axis++)
    for (int layout = 0; layout < LAYOUTS; layout++)
      for (size_t d = 0; d < RPI_COUNT_OF(items); d++) {
        struct launch l = {rpi_rule_concatenate, rpi_cpu_concatenate, 3, 1, {NULL}, &axis, false};
        for (int i = 0; i < 3; i++) {
          int shape[] = {2, 3, 4};
          shape[axis] = i; /* the first is empty */
          l.in[i] = tensor_new(items[d], shape, 3, layout);
          for (int64_t k = 0; k < l.in[i]->view.size; k++) tensor_put(l.in[i], k, (uint64_t)(100 * i + k));
        }
        struct tensor* out = launch(&l);
        assert_int_equal(out->shape[axis], 3);
        for (int64_t k = 0; k < out->view.size; k++) {
          int at[3];
          unravel(at, k, out->shape, 3);
          int which = at[axis] == 0 ? 1 : 2;
          if (which == 2) at[axis]--;
          int64_t want = 100 * which + ravel(at, l.in[which]->shape, 3);
          assert_int_equal(tensor_get(out, k), (items[d] == RPI_UINT8 ? want & 255 : want));
        }
        release(&l, out);
      }
}

static void concatenate_refuses_other_ranks_and_extents(void** state) {
  int64_t axis = 0;
  struct launch l = {rpi_rule_concatenate, rpi_cpu_concatenate, 2, 1,
                     {tensor_new(RPI_INT32, DIMS(2), DENSE), tensor_new(RPI_INT32, DIMS(2, 2), DENSE)},
                     &axis, false};
  assert_int_equal(launch_check(&l), RP_ERR_SHAPE);
  tensor_free(l.in[0]);
  l.in[0] = tensor_new(RPI_INT32, DIMS(2, 3), DENSE);
  assert_int_equal(launch_check(&l), RP_ERR_SHAPE);
  release(&l, NULL);
}

static void large_transposed_inputs_are_joined_right(void** state) {
  int64_t axis = 1;
  struct launch l = {rpi_rule_concatenate, rpi_cpu_concatenate, 2, 1,
                     {tensor_count(RPI_BFLOAT16, DIMS(210, 130), TRANSPOSED),
                      tensor_count(RPI_BFLOAT16, DIMS(210, 170), TRANSPOSED)}, &axis, false};
  struct tensor* out = launch(&l);
  for (int64_t k = 0; k < out->view.size; k++) {
    int64_t row = k / 300, col = k % 300, want = col < 130 ? row * 130 + col : row * 170 + col - 130;
    if (tensor_get(out, k) != (uint64_t)(want & 0xFFFF)) fail_msg("element %d", (int)k);
  }
  release(&l, out);
}

static void pad_surrounds_with_the_value_or_the_edge(void** state) {
  for (int layout = 0; layout < LAYOUTS; layout++)
    for (int mode = 0; mode < 2; mode++)
      for (size_t d = 0; d < RPI_COUNT_OF(items); d++) {
        int64_t attr[] = {mode ? RPI_PAD_EDGE : RPI_PAD_CONSTANT, 1, 2, 0, 1, 3, 0};
        struct launch l = {rpi_rule_pad, rpi_cpu_pad, 2, 7,
                           {tensor_count(items[d], DIMS(2, 3, 4), layout),
                            tensor_of(items[d], NULL, 0, DENSE, WORDS(77))}, attr, false};
        struct tensor* out = launch(&l);
        expect_shape(out, DIMS(5, 4, 7));
        for (int64_t k = 0; k < out->view.size; k++) {
          int at[3];
          bool is_inside = true;
          unravel(at, k, out->shape, 3);
          for (int i = 0; i < 3; i++) {
            int from = at[i] - (int)attr[1 + 2 * i], n = l.in[0]->shape[i];
            is_inside = is_inside && from >= 0 && from < n;
            at[i] = from < 0 ? 0 : from >= n ? n - 1 : from;
          }
          int64_t want = is_inside || mode ? ravel(at, l.in[0]->shape, 3) : 77;
          assert_int_equal(tensor_get(out, k), want);
        }
        release(&l, out);
      }
}

static void pad_of_nothing_has_values_but_no_edge(void** state) {
  struct launch l = {rpi_rule_pad, rpi_cpu_pad, 2, 3,
                     {tensor_new(RPI_INT32, DIMS(0), DENSE), tensor_of(RPI_INT32, NULL, 0, DENSE, WORDS(9))},
                     WORDS(RPI_PAD_CONSTANT, 1, 2), false};
  struct tensor* out = launch(&l);
  expect_values(out, WORDS(9, 9, 9), 3);
  l.attr = WORDS(RPI_PAD_EDGE, 1, 2);
  assert_int_equal(launch_check(&l), RP_ERR_SHAPE);
  l.attr = WORDS(RPI_PAD_CONSTANT, -1, 2);
  assert_int_equal(launch_check(&l), RP_ERR_ARGUMENT);
  release(&l, out);
}

static void slice_update_writes_the_slice_and_keeps_the_rest(void** state) {
  for (int in_place = 0; in_place < 2; in_place++)
    for (int layout = 0; layout < LAYOUTS; layout++) {
      /* rows 2, 0 (backwards) and columns 1 to the end; the update is one row stretched */
      struct launch l = {rpi_rule_slice_update, rpi_cpu_slice_update, 2, 6,
                         {tensor_count(RPI_INT32, DIMS(3, 4), in_place ? DENSE : layout),
                          tensor_of(RPI_INT32, DIMS(3), layout, WORDS(-1, -2, -3))},
                         WORDS(INT_MAX, INT_MIN, -2, 1, INT_MAX, 1), in_place};
      struct tensor* out = launch(&l);
      expect_values(out, WORDS(0, -1, -2, -3, 4, 5, 6, 7, 8, -1, -2, -3), 12);
      release(&l, out);
    }
}

static void slice_update_goes_backwards_with_a_negative_step(void** state) {
  struct launch l = {rpi_rule_slice_update, rpi_cpu_slice_update, 2, 3,
                     {tensor_count(RPI_UINT8, DIMS(5), DENSE),
                      tensor_of(RPI_UINT8, DIMS(2), DENSE, WORDS(50, 60))},
                     WORDS(3, 0, -2), false};
  struct tensor* out = launch(&l);
  expect_values(out, WORDS(0, 60, 2, 50, 4), 5);
  tensor_free(l.in[1]);
  l.in[1] = tensor_new(RPI_UINT8, DIMS(3), DENSE);
  assert_int_equal(launch_check(&l), RP_ERR_SHAPE);
  release(&l, out);
}

static void dynamic_slices_are_moved_inside(void** state) {
  static const int64_t start[] = {0, 1, 2, 9, -1, -2};
  static const int64_t first[] = {0, 1, 2, 2, 2, 2}; /* two of the four rows */
  for (int k = 0; k < 6; k++)
    for (int layout = 0; layout < LAYOUTS; layout++) {
      struct launch l = {rpi_rule_slice_dynamic, rpi_cpu_slice_dynamic, 2, 4,
                         {tensor_count(RPI_INT32, DIMS(4, 3), layout),
                          tensor_of(RPI_INT32, DIMS(1), layout, &start[k])},
                         WORDS(1, 0, 2, -1), false};
      struct tensor* out = launch(&l);
      int64_t want[6];
      for (int i = 0; i < 6; i++) want[i] = first[k] * 3 + i;
      expect_values(out, want, 6);
      release(&l, out);
    }
}

static void dynamic_updates_are_written_at_their_start(void** state) {
  for (int in_place = 0; in_place < 2; in_place++) {
    struct launch l = {rpi_rule_slice_update_dynamic, rpi_cpu_slice_update_dynamic, 3, 2,
                       {tensor_count(RPI_INT32, DIMS(3, 4), DENSE),
                        tensor_of(RPI_INT32, DIMS(2, 1), TRANSPOSED, WORDS(-1, -2)),
                        tensor_of(RPI_INT64, DIMS(2), REVERSED, WORDS(2, 7))},
                       WORDS(1, 0), in_place}; /* column 2, row 7: moved to 1 */
    struct tensor* out = launch(&l);
    expect_values(out, WORDS(0, 1, 2, 3, 4, 5, -1, 7, 8, 9, -2, 11), 12);
    release(&l, out);
  }
}

static void an_update_without_leading_axes_is_repeated_along_them(void** state) {
  struct launch l = {rpi_rule_slice_update_dynamic, rpi_cpu_slice_update_dynamic, 3, 1,
                     {tensor_count(RPI_INT32, DIMS(2, 3), DENSE),
                      tensor_of(RPI_INT32, DIMS(1), DENSE, WORDS(-9)),
                      tensor_of(RPI_UINT32, NULL, 0, DENSE, WORDS(1))},
                     WORDS(1), false};
  struct tensor* out = launch(&l);
  expect_values(out, WORDS(0, -9, 2, 3, -9, 5), 6);
  l.attr = WORDS(0); /* row 1 only, column 0 */
  tensor_free(out);
  out = launch(&l);
  expect_values(out, WORDS(0, 1, 2, -9, 4, 5), 6);
  release(&l, out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(take_agrees_with_a_loop_in_every_layout),
      cmocka_unit_test(take_accepts_every_integer_dtype_and_no_other),
      cmocka_unit_test(take_outside_clamps_and_reads_nothing_foreign),
      cmocka_unit_test(take_from_nothing_is_an_error_unless_nothing_is_taken),
      cmocka_unit_test(take_follows_the_length_of_its_indices),
      cmocka_unit_test(large_takes_equal_small_ones),
      cmocka_unit_test(take_along_axis_agrees_with_a_loop_and_broadcasts),
      cmocka_unit_test(take_along_axis_walks_long_rows_in_blocks),
      cmocka_unit_test(gather_joins_its_indices_and_appends_the_slice),
      cmocka_unit_test(gather_without_indices_is_the_first_slice),
      cmocka_unit_test(gather_refuses_sizes_and_axes_that_do_not_fit),
      cmocka_unit_test(concatenate_puts_one_after_another),
      cmocka_unit_test(concatenate_refuses_other_ranks_and_extents),
      cmocka_unit_test(large_transposed_inputs_are_joined_right),
      cmocka_unit_test(pad_surrounds_with_the_value_or_the_edge),
      cmocka_unit_test(pad_of_nothing_has_values_but_no_edge),
      cmocka_unit_test(slice_update_writes_the_slice_and_keeps_the_rest),
      cmocka_unit_test(slice_update_goes_backwards_with_a_negative_step),
      cmocka_unit_test(dynamic_slices_are_moved_inside),
      cmocka_unit_test(dynamic_updates_are_written_at_their_start),
      cmocka_unit_test(an_update_without_leading_axes_is_repeated_along_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
