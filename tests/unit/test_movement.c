/* Shape and view rules: single cases, and random chains against copies made index by index. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "op/op.h"
#include "op/slice.h"

typedef int rule_fn(struct rule*);
typedef int view_fn(struct view_rule*);

/* Where elements lie: `base` is memory of int32. */
struct place {
  struct shape shape;
  int64_t stride[RPI_MAX_NDIM], offset;
  int32_t* base;
};

static struct rule run(int* rc, rule_fn* fn, const struct shape* in, const int64_t* attr, int nattr) {
  static struct operand x;
  x = (struct operand){in->dim, in->ndim, RPI_INT32};
  struct rule r = {.name = "test", .nin = 1, .in = &x, .attr = attr, .nattr = nattr};
  *rc = fn(&r);
  return r;
}

static struct view_rule look(view_fn* fn, const struct place* p, const struct rule* r) {
  struct view_rule v = {.name = "test",
                        .in = {p->shape.dim, p->shape.ndim, RPI_INT32},
                        .in_stride = p->stride,
                        .attr = r->attr,
                        .nattr = r->nattr,
                        .shape = &r->out[0].shape,
                        .dtype = r->out[0].dtype};
  assert_int_equal(fn(&v), 0);
  return v;
}

static bool next_index(int* index, const struct shape* s) {
  for (int i = s->ndim - 1; i >= 0; i--) {
    if (++index[i] < s->dim[i]) return true;
    index[i] = 0;
  }
  return false;
}

/* The elements in row-major order; the caller frees. */
static int32_t* values(const struct place* p) {
  int64_t n = rpi_size(&p->shape), k = 0;
  int32_t* out = malloc(sizeof *out * (size_t)(n + 1));
  int index[RPI_MAX_NDIM] = {0};
  if (n) do {
      int64_t at = p->offset;
      for (int i = 0; i < p->shape.ndim; i++) at += index[i] * p->stride[i];
      out[k++] = p->base[at];
    } while (next_index(index, &p->shape));
  return out;
}

static struct place fresh(const int* dim, int ndim) {
  struct place p = {.shape = {.ndim = ndim}};
  memcpy(p.shape.dim, dim, sizeof(int) * (size_t)ndim);
  rpi_row_major(p.stride, dim, ndim);
  int64_t n = rpi_size(&p.shape);
  p.base = malloc(sizeof *p.base * (size_t)(n + 1));
  for (int64_t i = 0; i < n; i++) p.base[i] = (int32_t)i;
  return p;
}
#define DIMS(...) (int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define WORDS(...) \
  (int64_t[]){__VA_ARGS__}, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Replace p by the view (a packed copy first where asked for); returns whether a copy was needed. */
static bool step(struct place* p, rule_fn* rule, view_fn* view, const int64_t* attr, int nattr) {
  int rc;
  struct rule r = run(&rc, rule, &p->shape, attr, nattr);
  assert_int_equal(rc, 0);
  struct view_rule v = look(view, p, &r);
  bool was_copied = v.needs_copy;
  if (was_copied) {
    int32_t* packed = values(p);
    free(p->base);
    p->base = packed;
    p->offset = 0;
    rpi_row_major(p->stride, p->shape.dim, p->shape.ndim);
    v = look(view, p, &r);
    assert_false(v.needs_copy);
  }
  p->shape = r.out[0].shape;
  p->offset += v.offset;
  memcpy(p->stride, v.stride, sizeof v.stride);
  return was_copied;
}

static void assert_shape(const struct shape* s, const int* dim, int ndim) {
  assert_int_equal(s->ndim, ndim);
  for (int i = 0; i < ndim; i++) assert_int_equal(s->dim[i], dim[i]);
}

static void expect(rule_fn* fn, const int* in, int nin, const int64_t* attr, int nattr,
                   const int* out, int nout) {
  struct shape s = {.ndim = nin};
  int rc;
  memcpy(s.dim, in, sizeof(int) * (size_t)nin);
  struct rule r = run(&rc, fn, &s, attr, nattr);
  assert_int_equal(rc, 0);
  assert_shape(&r.out[0].shape, out, nout);
}

static void refuse(rule_fn* fn, int code, const int* in, int nin, const int64_t* attr, int nattr) {
  struct shape s = {.ndim = nin};
  int rc;
  memcpy(s.dim, in, sizeof(int) * (size_t)nin);
  run(&rc, fn, &s, attr, nattr);
  assert_int_equal(rc, code);
}

static void reshape_infers_one_extent_at_every_size(void** state) {
  expect(rpi_rule_reshape, DIMS(4, 6), WORDS(-1, 3), DIMS(8, 3));
  expect(rpi_rule_reshape, DIMS(5, 6), WORDS(-1, 3), DIMS(10, 3));
  expect(rpi_rule_reshape, DIMS(0, 6), WORDS(-1, 3), DIMS(0, 3));
  expect(rpi_rule_reshape, DIMS(0, 6), WORDS(7, 0), DIMS(7, 0));
  expect(rpi_rule_unflatten, DIMS(2, 12), WORDS(1, 3, -1), DIMS(2, 3, 4));
  expect(rpi_rule_flatten, DIMS(2, 3, 4, 5), WORDS(1, 2), DIMS(2, 12, 5));
}

static void reshape_refuses_what_does_not_fit(void** state) {
  refuse(rpi_rule_reshape, RP_ERR_SHAPE, DIMS(4, 6), WORDS(5, 5));
  refuse(rpi_rule_reshape, RP_ERR_SHAPE, DIMS(4, 6), WORDS(-1, 5));
  refuse(rpi_rule_reshape, RP_ERR_SHAPE, DIMS(4, 6), WORDS(-1, -1));
  refuse(rpi_rule_reshape, RP_ERR_SHAPE, DIMS(4, 6), WORDS(-2, 12));
  refuse(rpi_rule_reshape, RP_ERR_SHAPE, DIMS(0, 6), WORDS(0, -1));
  refuse(rpi_rule_unflatten, RP_ERR_SHAPE, DIMS(2, 12), WORDS(1, 5, -1));
}

static void an_extent_of_two_to_the_31_is_a_clear_error(void** state) {
  refuse(rpi_rule_flatten, RP_ERR_SHAPE, DIMS(1 << 30, 2), WORDS(0, 1));
  assert_non_null(strstr(rpi_error_text(), "2147483648"));
  refuse(rpi_rule_reshape, RP_ERR_SHAPE, DIMS(1 << 30, 2), WORDS(-1));
  expect(rpi_rule_flatten, DIMS((1 << 30) - 1, 2), WORDS(0, 1), DIMS(INT_MAX - 1));
}

static void slices_clamp_to_the_extent_they_meet(void** state) {
  expect(rpi_rule_slice, DIMS(5), WORDS(1, INT_MAX, 2), DIMS(2));
  expect(rpi_rule_slice, DIMS(8), WORDS(1, INT_MAX, 2), DIMS(4));
  expect(rpi_rule_slice, DIMS(0), WORDS(1, INT_MAX, 2), DIMS(0));
  expect(rpi_rule_slice, DIMS(5), WORDS(-2, INT_MAX, 1), DIMS(2));
  expect(rpi_rule_slice, DIMS(1), WORDS(-2, INT_MAX, 1), DIMS(1));
  expect(rpi_rule_slice, DIMS(5), WORDS(INT_MAX, INT_MIN, -2), DIMS(3));
  expect(rpi_rule_slice, DIMS(5), WORDS(3, 1, 1), DIMS(0));
  refuse(rpi_rule_slice, RP_ERR_ARGUMENT, DIMS(5), WORDS(0, 5, 0));
}

static void words_of_a_slice_keep_meaning_the_ends(void** state) {
  int64_t w[3];
  rpi_slice_words(w, 4, -6, -1, 5); /* all of 5, reversed */
  expect(rpi_rule_slice, DIMS(9), w, 3, DIMS(9));
  rpi_slice_words(w, 0, 5, 1, 5);
  expect(rpi_rule_slice, DIMS(9), w, 3, DIMS(9));
  rpi_slice_words(w, -3, 5, 1, 5);
  expect(rpi_rule_slice, DIMS(9), w, 3, DIMS(3));
  rpi_slice_words(w, 1, 3, 1, 5);
  expect(rpi_rule_slice, DIMS(9), w, 3, DIMS(2));
}

static void equal_parts_follow_the_extent(void** state) {
  expect(rpi_rule_part, DIMS(2, 6), WORDS(1, 2, 3), DIMS(2, 2));
  expect(rpi_rule_part, DIMS(2, 9), WORDS(1, 2, 3), DIMS(2, 3));
  refuse(rpi_rule_part, RP_ERR_SHAPE, DIMS(2, 7), WORDS(1, 2, 3));
}

static void broadcasting_only_stretches(void** state) {
  expect(rpi_rule_broadcast_to, DIMS(3, 1), WORDS(2, 3, 4), DIMS(2, 3, 4));
  expect(rpi_rule_broadcast_to, DIMS(1), WORDS(0), DIMS(0));
  refuse(rpi_rule_broadcast_to, RP_ERR_SHAPE, DIMS(3, 2), WORDS(3, 1));
  refuse(rpi_rule_broadcast_to, RP_ERR_SHAPE, DIMS(3, 1), WORDS(3));
  refuse(rpi_rule_broadcast_to, RP_ERR_SHAPE, DIMS(1), WORDS(-1));
}

static void batch_axes_join_and_leave_the_trailing_ones(void** state) {
  struct operand in[2] = {{(int[]){4, 1, 5, 6}, 4, RPI_FLOAT32}, {(int[]){3, 6, 7}, 3, RPI_FLOAT32}};
  struct rule r = {.name = "test", .nin = 2, .in = in, .attr = (int64_t[]){2}, .nattr = 1};
  assert_int_equal(rpi_rule_broadcast_join(&r), 0);
  assert_shape(&r.out[0].shape, DIMS(4, 3, 5, 6));
}

static void strides_may_not_reach_outside(void** state) {
  expect(rpi_rule_as_strided, DIMS(10), WORDS(2, 2, 3, 2, 2, 3), DIMS(3, 2)); /* highest: 2+4+3 */
  refuse(rpi_rule_as_strided, RP_ERR_INDEX, DIMS(10), WORDS(3, 2, 3, 2, 2, 3));
  refuse(rpi_rule_as_strided, RP_ERR_INDEX, DIMS(10), WORDS(1, 1, 3, -1));
  expect(rpi_rule_as_strided, DIMS(10), WORDS(2, 1, 3, -1), DIMS(3));
  refuse(rpi_rule_as_strided, RP_ERR_INDEX, DIMS(10), WORDS(0, 1, 3, INT64_MAX));
  expect(rpi_rule_as_strided, DIMS(10), WORDS(99, 1, 0, 1), DIMS(0));
}

static void a_view_of_bits_scales_the_last_axis(void** state) {
  expect(rpi_rule_view, DIMS(3, 4), WORDS(RPI_UINT8), DIMS(3, 16));
  expect(rpi_rule_view, DIMS(3, 4), WORDS(RPI_COMPLEX64), DIMS(3, 2));
  refuse(rpi_rule_view, RP_ERR_SHAPE, DIMS(3, 3), WORDS(RPI_INT64));
  refuse(rpi_rule_view, RP_ERR_DTYPE, DIMS(3, 3), WORDS(99));
  struct shape scalar = {.ndim = 0};
  int rc;
  run(&rc, rpi_rule_view, &scalar, WORDS(RPI_INT8));
  assert_int_equal(rc, RP_ERR_SHAPE);
}

static void reshape_copies_only_where_strides_do_not_allow_a_view(void** state) {
  struct place p = fresh(DIMS(4, 6));
  assert_false(step(&p, rpi_rule_reshape, rpi_view_reshape, WORDS(2, 2, 3, 2)));
  assert_false(step(&p, rpi_rule_reshape, rpi_view_reshape, WORDS(8, 3)));
  assert_false(step(&p, rpi_rule_transpose, rpi_view_transpose, WORDS(1, 0)));   /* (3,8) */
  assert_false(step(&p, rpi_rule_reshape, rpi_view_reshape, WORDS(3, 2, 1, 4))); /* splits an axis */
  assert_false(step(&p, rpi_rule_flatten, rpi_view_reshape, WORDS(1, 3)));       /* joins them */
  assert_true(step(&p, rpi_rule_reshape, rpi_view_reshape, WORDS(24)));
  free(p.base);
  p = fresh(DIMS(3, 1));
  assert_false(step(&p, rpi_rule_broadcast_to, rpi_view_broadcast, WORDS(2, 4, 3, 5)));
  assert_false(step(&p, rpi_rule_flatten, rpi_view_reshape, WORDS(0, 1)));
  free(p.base);
  p = fresh(DIMS(3, 4));
  assert_false(step(&p, rpi_rule_slice, rpi_view_slice,
                    WORDS(INT_MAX, INT_MIN, -1, INT_MAX, INT_MIN, -1)));
  assert_false(step(&p, rpi_rule_flatten, rpi_view_reshape, WORDS(0, 1)));
  int32_t* v = values(&p);
  for (int i = 0; i < 12; i++) assert_int_equal(v[i], 11 - i);
  free(v);
  free(p.base);
}

static void an_even_number_of_reversals_restores_the_array(void** state) {
  struct place p = fresh(DIMS(17, 3));
  int64_t flip[] = {INT_MAX, INT_MIN, -1, 0, INT_MAX, 1};
  for (int times = 1; times <= 4; times++) {
    assert_false(step(&p, rpi_rule_slice, rpi_view_slice, flip, 6));
    int32_t* v = values(&p);
    assert_int_equal(v[0], times % 2 ? 48 : 0);
    assert_int_equal(v[2], times % 2 ? 50 : 2);
    free(v);
  }
  free(p.base);
}

/* ---- Random chains ---- */

static uint64_t seed = 88172645463325252u;
static int draw(int n) { /* [0, n) */
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (int)(seed % (uint64_t)n);
}

/* What the view must hold, element by element from the dense values of its input. */
typedef void source_fn(int* from, const int* index, const int64_t* attr, const struct shape* in,
                       const struct shape* out);

static int64_t flat(const int* index, const struct shape* s) {
  int64_t at = 0;
  for (int i = 0; i < s->ndim; i++) at = at * s->dim[i] + index[i];
  return at;
}

static void same_order(int* from, const int* index, const int64_t* attr, const struct shape* in,
                       const struct shape* out) {
  int64_t at = flat(index, out);
  for (int i = in->ndim - 1; i >= 0; i--) {
    from[i] = (int)(at % in->dim[i]);
    at /= in->dim[i];
  }
}

static void permuted(int* from, const int* index, const int64_t* attr, const struct shape* in,
                     const struct shape* out) {
  for (int i = 0; i < out->ndim; i++) from[attr[i]] = index[i];
}

static void stretched(int* from, const int* index, const int64_t* attr, const struct shape* in,
                      const struct shape* out) {
  for (int i = 0; i < in->ndim; i++)
    from[i] = in->dim[i] == 1 ? 0 : index[i + out->ndim - in->ndim];
}

static void sliced(int* from, const int* index, const int64_t* attr, const struct shape* in,
                   const struct shape* out) {
  for (int i = 0; i < in->ndim; i++) { /* walk, as a loop over the axis would */
    int64_t start = attr[3 * i], step = attr[3 * i + 2], n = in->dim[i];
    int64_t at = start < 0 ? start + n : start;
    if (step < 0 && at > n - 1) at = n - 1;
    if (step > 0 && at < 0) at = 0;
    from[i] = (int)(at + index[i] * step);
  }
}

static void parted(int* from, const int* index, const int64_t* attr, const struct shape* in,
                   const struct shape* out) {
  memcpy(from, index, sizeof(int) * (size_t)in->ndim);
  from[attr[0]] += (int)(attr[1] * out->dim[attr[0]]);
}

static void check_step(struct place* p, rule_fn* rule, view_fn* view, source_fn* source,
                       const int64_t* attr, int nattr) {
  int32_t* before = values(p);
  struct shape in = p->shape;
  step(p, rule, view, attr, nattr);
  int32_t* after = values(p);
  int index[RPI_MAX_NDIM] = {0}, from[RPI_MAX_NDIM] = {0};
  int64_t k = 0;
  if (rpi_size(&p->shape)) do {
      source(from, index, attr, &in, &p->shape);
      assert_int_equal(after[k++], before[flat(from, &in)]);
    } while (next_index(index, &p->shape));
  free(before);
  free(after);
}

/* Random extents with the product n (> 0). */
static int factor(int64_t* out, int64_t n) {
  int count = 0;
  while (n > 1 && count < 5) {
    int64_t f = 1 + draw((int)(n < 12 ? n : 12));
    if (n % f == 0) {
      out[count++] = f;
      n /= f;
    }
  }
  if (n > 1 || draw(3) == 0) out[count++] = n;
  return count;
}

static void random_reshape(struct place* p) {
  int64_t attr[RPI_MAX_NDIM], n = rpi_size(&p->shape);
  if (n == 0) return;
  int count = factor(attr, n);
  if (count && draw(2)) attr[draw(count)] = -1;
  check_step(p, rpi_rule_reshape, rpi_view_reshape, same_order, attr, count);
}

static void random_transpose(struct place* p) {
  int64_t attr[RPI_MAX_NDIM];
  int n = p->shape.ndim;
  for (int i = 0; i < n; i++) attr[i] = i;
  for (int i = n - 1; i > 0; i--) {
    int j = draw(i + 1);
    int64_t t = attr[i];
    attr[i] = attr[j];
    attr[j] = t;
  }
  check_step(p, rpi_rule_transpose, rpi_view_transpose, permuted, attr, n);
}

static void random_slice(struct place* p) {
  int64_t attr[3 * RPI_MAX_NDIM];
  for (int i = 0; i < p->shape.ndim; i++) {
    int n = p->shape.dim[i], step = draw(3) + 1;
    int kind = draw(4);
    attr[3 * i] = kind == 0 ? 0 : draw(n + 3) - (kind == 1 ? n : 0);
    attr[3 * i + 1] = kind == 2 ? draw(n + 3) : INT_MAX;
    if (kind == 3) {
      attr[3 * i] = draw(2) ? INT_MAX : draw(n + 3);
      attr[3 * i + 1] = draw(2) ? INT_MIN : draw(n + 1) - n;
      step = -step;
    }
    attr[3 * i + 2] = step;
  }
  check_step(p, rpi_rule_slice, rpi_view_slice, sliced, attr, 3 * p->shape.ndim);
}

static void random_stretch(struct place* p) {
  int64_t attr[RPI_MAX_NDIM];
  int lead = draw(2), n = p->shape.ndim + lead;
  if (n > 6) return;
  for (int i = 0; i < n; i++) {
    int extent = i < lead ? 1 : p->shape.dim[i - lead];
    attr[i] = extent == 1 && rpi_size(&p->shape) < 500 ? draw(3) + 1 : extent;
  }
  check_step(p, rpi_rule_broadcast_to, rpi_view_broadcast, stretched, attr, n);
}

static void random_axes(struct place* p) {
  int64_t attr[RPI_MAX_NDIM];
  int n = p->shape.ndim, count = 0;
  if (n < 6 && draw(2)) {
    attr[0] = draw(n + 1);
    check_step(p, rpi_rule_expand_dims, rpi_view_expand_dims, same_order, attr, 1);
    return;
  }
  for (int i = 0; i < n; i++)
    if (p->shape.dim[i] == 1 && draw(2)) attr[count++] = i;
  check_step(p, rpi_rule_squeeze, rpi_view_squeeze, same_order, attr, count);
}

static void random_cut(struct place* p) {
  if (p->shape.ndim == 0) return;
  int axis = draw(p->shape.ndim), extent = p->shape.dim[axis], count = 1 + draw(4);
  if (extent % count) count = 1;
  if (draw(2)) {
    int64_t attr[] = {axis, draw(count), count};
    check_step(p, rpi_rule_part, rpi_view_part, parted, attr, 3);
  } else {
    int64_t attr[] = {axis, axis + draw(p->shape.ndim - axis)};
    check_step(p, rpi_rule_flatten, rpi_view_reshape, same_order, attr, 2);
  }
}

static void random_chains_of_views_hold_what_copies_would(void** state) {
  static void (*const op[])(struct place*) = {random_reshape, random_transpose, random_slice,
                                              random_stretch, random_axes,      random_cut};
  for (int round = 0; round < 3000; round++) {
    int dim[4], ndim = draw(5);
    for (int i = 0; i < ndim; i++) dim[i] = draw(6) + (draw(20) > 0);
    struct place p = fresh(dim, ndim);
    for (int k = 0; k < 8; k++) op[draw(6)](&p);
    free(p.base);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reshape_infers_one_extent_at_every_size),
      cmocka_unit_test(reshape_refuses_what_does_not_fit),
      cmocka_unit_test(an_extent_of_two_to_the_31_is_a_clear_error),
      cmocka_unit_test(slices_clamp_to_the_extent_they_meet),
      cmocka_unit_test(words_of_a_slice_keep_meaning_the_ends),
      cmocka_unit_test(equal_parts_follow_the_extent),
      cmocka_unit_test(broadcasting_only_stretches),
      cmocka_unit_test(batch_axes_join_and_leave_the_trailing_ones),
      cmocka_unit_test(strides_may_not_reach_outside),
      cmocka_unit_test(a_view_of_bits_scales_the_last_axis),
      cmocka_unit_test(reshape_copies_only_where_strides_do_not_allow_a_view),
      cmocka_unit_test(an_even_number_of_reversals_restores_the_array),
      cmocka_unit_test(random_chains_of_views_hold_what_copies_would),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
