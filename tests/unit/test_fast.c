/* Norms, rotary positions and attention: against naive loops in double, and bit for bit against
 * themselves in other layouts, chunks, thread counts and instruction sets. */
#include "float_tensor.h"

#include "backend/cpu/isa.h"
#include "base/thread.h"

int rpi_cpu_rms_norm(const struct call* c);
int rpi_cpu_layer_norm(const struct call* c);
int rpi_cpu_rope(const struct call* c);
int rpi_cpu_sdpa(const struct call* c);

/* ---- norms ----------------------------------------------------------------------------------- */

static struct tensor* rms(struct tensor* x, struct tensor* w) {
  return launch(&(struct launch){.rule = rpi_rule_norm,
                                 .kernel = rpi_cpu_rms_norm,
                                 .nin = w ? 2 : 1,
                                 .in = {x, w},
                                 .nattr = 1,
                                 .attr = WORDS(rpi_attr_from_double(1e-5))});
}

static struct tensor* layer(struct tensor* x, struct tensor* w, struct tensor* b) {
  return launch(
      &(struct launch){.rule = rpi_rule_norm,
                       .kernel = rpi_cpu_layer_norm,
                       .nin = 1 + !!w + !!b,
                       .in = {x, w ? w : b, w ? b : NULL},
                       .nattr = 2,
                       .attr = WORDS(rpi_attr_from_double(1e-5), (w ? 1 : 0) | (b ? 2 : 0))});
}

static double norm_reference(const struct tensor* x, const struct tensor* w, const struct tensor* b,
                             bool centred, int64_t row, int64_t i) {
  int64_t n = x->shape[x->view.ndim - 1];
  double mean = 0, var = 0;
  for (int64_t k = 0; k < n && centred; k++) mean += value_at(x, row * n + k) / (double)n;
  for (int64_t k = 0; k < n; k++) {
    double d = value_at(x, row * n + k) - mean;
    var += d * d / (double)n;
  }
  double y = (value_at(x, row * n + i) - mean) / sqrt(var + 1e-5);
  return y * (w ? value_at(w, i) : 1) + (b ? value_at(b, i) : 0);
}

static double tolerance_of(int dtype) {
  return dtype == RPI_FLOAT64   ? 1e-13
         : dtype == RPI_FLOAT32 ? 4e-6
         : dtype == RPI_FLOAT16 ? 4e-3
                                : 3e-2;
}

static void check_norms(int dtype, int width) {
  struct tensor* x = random_tensor(dtype, DIMS(3, 5, width), STEPPED, 1);
  struct tensor* w = random_tensor(dtype, DIMS(width), DENSE, 2);
  struct tensor* b = random_tensor(dtype, DIMS(width), REVERSED, 3);
  struct tensor *y = rms(x, w), *z = layer(x, w, b), *u = layer(x, NULL, b), *v = rms(x, NULL);
  for (int64_t k = 0; k < x->view.size; k++) {
    double tol = tolerance_of(dtype);
    expect_near(value_at(y, k), norm_reference(x, w, NULL, false, k / width, k % width), tol);
    expect_near(value_at(z, k), norm_reference(x, w, b, true, k / width, k % width), tol);
    expect_near(value_at(u, k), norm_reference(x, NULL, b, true, k / width, k % width), tol);
    expect_near(value_at(v, k), norm_reference(x, NULL, NULL, false, k / width, k % width), tol);
  }
  struct tensor *dense = copy_as(x, DENSE), *again = layer(dense, w, b), *rms2 = rms(dense, w);
  expect_same_bits(again, z);
  expect_same_bits(rms2, y);
  struct tensor* all[] = {x, w, b, y, z, u, v, dense, again, rms2};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) tensor_free(all[i]);
}

static void norms_equal_the_definition_in_every_dtype_and_layout(void** state) {
  int dtypes[] = {RPI_FLOAT16, RPI_BFLOAT16, RPI_FLOAT32, RPI_FLOAT64};
  int widths[] = {1, 7, 64, 576, 1000};
  for (int d = 0; d < 4; d++)
    for (int i = 0; i < 5; i++) check_norms(dtypes[d], widths[i]);
}

static void norms_have_the_same_bits_on_every_instruction_set(void** state) {
  int dtypes[] = {RPI_FLOAT16, RPI_BFLOAT16, RPI_FLOAT32};
  for (int d = 0; d < 3; d++) {
    struct tensor* x = random_tensor(dtypes[d], DIMS(4, 577), DENSE, 7);
    struct tensor* w = random_tensor(RPI_FLOAT16, DIMS(577), DENSE, 8);
    rpi_isa_limit(RPI_ISA_SCALAR);
    struct tensor *a = rms(x, w), *c = layer(x, w, NULL);
    rpi_isa_limit(RPI_ISA_AVX2);
    struct tensor *b = rms(x, w), *e = layer(x, w, NULL);
    rpi_isa_limit(RPI_ISA_AVX512);
    struct tensor* f = layer(x, w, NULL);
    expect_same_bits(a, b);
    expect_same_bits(c, e);
    expect_same_bits(c, f);
    struct tensor* all[] = {x, w, a, b, c, e, f};
    for (int i = 0; i < 7; i++) tensor_free(all[i]);
  }
}

/* ---- rope ------------------------------------------------------------------------------------ */

static struct tensor* rope(struct tensor* x, struct tensor* offset, struct tensor* freqs, int dims,
                           bool traditional, double scale) {
  return launch(&(struct launch){
      .rule = rpi_rule_rope,
      .kernel = rpi_cpu_rope,
      .nin = freqs ? 3 : 2,
      .in = {x, offset, freqs},
      .nattr = 4,
      .attr = WORDS(dims, traditional, rpi_attr_from_double(10000), rpi_attr_from_double(scale))});
}

static struct tensor* whole(int64_t value) {
  return tensor_of(RPI_INT32, (int[]){1}, 0, DENSE, &value);
}

static double rope_reference(const struct tensor* x, int64_t position, const struct tensor* freqs,
                             int dims, bool traditional, double scale, int64_t row, int i) {
  int width = x->shape[x->view.ndim - 1], half = dims / 2;
  if (i >= dims) return value_at(x, row * width + i);
  int pair = traditional ? i / 2 : i % half, gap = traditional ? 1 : half;
  bool second = traditional ? i % 2 : i >= half;
  /* The angle is the float product that is promised; only then does double take over. */
  float inv = freqs ? 1 / (float)value_at(freqs, pair) : (float)pow(10000, -(double)pair / half);
  double angle = (double)((float)scale * (float)position * inv);
  double a = value_at(x, row * width + i - second * gap);
  double b = value_at(x, row * width + i + !second * gap);
  return second ? a * sin(angle) + b * cos(angle) : a * cos(angle) - b * sin(angle);
}

static void check_rope(int dtype, bool traditional, int dims, enum layout layout, bool with_freqs) {
  enum { B = 2, H = 3, T = 5, D = 12 };
  struct tensor* x = random_tensor(dtype, DIMS(B, H, T, D), layout, 11);
  int64_t at[B] = {40, 7};
  struct tensor* offset = tensor_of(RPI_INT64, DIMS(B), DENSE, at);
  struct tensor* freqs = with_freqs ? random_tensor(RPI_FLOAT32, DIMS(dims / 2), DENSE, 5) : NULL;
  struct tensor* y = rope(x, offset, freqs, dims, traditional, 0.5);
  for (int64_t k = 0; k < x->view.size; k++) {
    int64_t row = k / D, t = row % T, b = row / (T * H);
    expect_near(value_at(y, k),
                rope_reference(x, at[b] + t, freqs, dims, traditional, 0.5, row, (int)(k % D)),
                tolerance_of(dtype == RPI_FLOAT64 ? RPI_FLOAT32 : dtype));
  }
  struct tensor *dense = copy_as(x, DENSE),
                *again = rope(dense, offset, freqs, dims, traditional, 0.5);
  expect_same_bits(again, y);
  struct tensor* all[] = {x, offset, freqs, y, dense, again};
  for (int i = 0; i < 6; i++) tensor_free(all[i]);
}

static void rope_equals_the_definition(void** state) {
  int dtypes[] = {RPI_FLOAT16, RPI_BFLOAT16, RPI_FLOAT32, RPI_FLOAT64};
  for (int d = 0; d < 4; d++)
    for (int i = 0; i < 8; i++)
      check_rope(dtypes[d], i & 1, i & 2 ? 8 : 12, i & 4 ? TRANSPOSED : STEPPED,
                 dtypes[d] != RPI_FLOAT64 && i & 4);
}

static void rope_of_70000_positions_equals_each_row_alone(void** state) { /* L09 */
  enum { T = 70000, D = 64 };
  struct tensor* x = random_tensor(RPI_FLOAT32, DIMS(1, T, 1, D), DENSE, 3);
  struct tensor* moved = part_of(x, 0, 0, 1); /* (1, 1, T, D) */
  moved->shape[1] = 1;
  moved->shape[2] = T;
  moved->stride[1] = T * D;
  moved->stride[2] = D;
  struct tensor *zero = whole(0), *y = rope(moved, zero, NULL, D, false, 1);
  for (int t = 0; t < T; t += 6999) {
    struct tensor *row = part_of(moved, 2, t, t + 1), *at = whole(t);
    struct tensor* alone = rope(row, at, NULL, D, false, 1);
    for (int i = 0; i < D; i++)
      assert_int_equal(tensor_get(alone, i), tensor_get(y, (int64_t)t * D + i));
    tensor_free(alone);
    tensor_free(at);
    free(row);
  }
  free(moved);
  tensor_free(x);
  tensor_free(zero);
  tensor_free(y);
}

static void rope_has_the_same_bits_on_every_instruction_set(void** state) {
  struct tensor *x = random_tensor(RPI_FLOAT16, DIMS(2, 3, 9, 70), DENSE, 4), *at = whole(1000);
  for (int traditional = 0; traditional < 2; traditional++) {
    rpi_isa_limit(RPI_ISA_SCALAR);
    struct tensor* a = rope(x, at, NULL, 70, traditional, 1);
    rpi_isa_limit(RPI_ISA_AVX512);
    struct tensor* b = rope(x, at, NULL, 70, traditional, 1);
    expect_same_bits(a, b);
    tensor_free(a);
    tensor_free(b);
  }
  tensor_free(x);
  tensor_free(at);
}

/* ---- attention ------------------------------------------------------------------------------- */

struct attention {
  struct tensor *q, *k, *v, *mask, *sinks;
  bool causal;
  double scale;
};

static struct launch launch_of(const struct attention* a) {
  static int64_t attr[4];
  struct launch l = {.rule = rpi_rule_sdpa,
                     .kernel = rpi_cpu_sdpa,
                     .nin = 3,
                     .in = {a->q, a->k, a->v},
                     .nattr = 4,
                     .attr = attr};
  attr[0] = rpi_attr_from_double(a->scale);
  attr[1] = a->causal;
  attr[2] = a->mask != NULL;
  attr[3] = a->sinks != NULL;
  if (a->mask) l.in[l.nin++] = a->mask;
  if (a->sinks) l.in[l.nin++] = a->sinks;
  return l;
}

static struct tensor* attend(const struct attention* a) {
  struct launch l = launch_of(a);
  return launch(&l);
}

static void free_attention(struct attention* a) {
  struct tensor* all[] = {a->q, a->k, a->v, a->mask, a->sinks};
  for (int i = 0; i < 5; i++) tensor_free(all[i]);
}

static double mask_value(const struct attention* a, int64_t b, int64_t h, int64_t t, int64_t key) {
  if (a->causal && key > t + a->k->shape[2] - a->q->shape[2]) return -INFINITY;
  if (!a->mask) return 0;
  int64_t index[4] = {b, h, t, key}, at = 0;
  const struct tensor* m = a->mask;
  for (int d = 0; d < m->view.ndim; d++)
    at = at * m->shape[d] + (m->shape[d] == 1 ? 0 : index[4 - m->view.ndim + d]);
  double x = value_at(m, at);
  return m->view.dtype == RPI_BOOL ? (x != 0 ? 0 : -INFINITY) : x;
}

/* Compare with the definition, row by row. */
static void check_attention(const struct attention* a, double tol) {
  const int *q = a->q->shape, *v = a->v->shape;
  int64_t tk = a->k->shape[2], d = q[3], dv = v[3], hkv = v[1];
  struct tensor* y = attend(a);
  double* s = malloc((size_t)(tk + 1) * sizeof *s);
  expect_shape(y, DIMS(q[0], q[1], q[2], (int)dv));
  for (int64_t row = 0; row < (int64_t)q[0] * q[1] * q[2]; row++) {
    int64_t t = row % q[2], h = row / q[2] % q[1], b = row / q[2] / q[1],
            kv = b * hkv + h / (q[1] / hkv);
    double top = a->sinks ? value_at(a->sinks, h) : -INFINITY, sum = 0;
    for (int64_t j = 0; j < tk; j++) {
      s[j] = 0;
      for (int64_t i = 0; i < d; i++)
        s[j] += value_at(a->q, row * d + i) * value_at(a->k, (kv * tk + j) * d + i);
      s[j] = s[j] * a->scale + mask_value(a, b, h, t, j);
      top = fmax(top, s[j]);
    }
    for (int64_t j = 0; j < tk && top > -INFINITY; j++) sum += s[j] = exp(s[j] - top);
    if (a->sinks) sum += exp(value_at(a->sinks, h) - top);
    for (int64_t i = 0; i < dv; i++) {
      double want = 0;
      for (int64_t j = 0; j < tk && sum > 0; j++)
        want += s[j] / sum * value_at(a->v, (kv * tk + j) * dv + i);
      expect_near(value_at(y, row * dv + i), want, tol);
    }
  }
  free(s);
  tensor_free(y);
}

static struct attention make(int dtype, enum layout layout, int b, int hq, int hkv, int tq, int tk,
                             int d, int dv) {
  return (struct attention){.q = random_tensor(dtype, DIMS(b, hq, tq, d), layout, 21),
                            .k = random_tensor(dtype, DIMS(b, hkv, tk, d), layout, 22),
                            .v = random_tensor(dtype, DIMS(b, hkv, tk, dv), layout, 23),
                            .scale = 1.7};
}

/* A boolean mask with about a third of its elements false. */
static struct tensor* holes(const int* shape, int ndim) {
  struct tensor* m = tensor_new(RPI_BOOL, shape, ndim, DENSE);
  for (int64_t k = 0; k < m->view.size; k++) tensor_put(m, k, noise(31, k) > -0.33);
  return m;
}

static void attention_equals_the_definition(void** state) {
  int dtypes[] = {RPI_FLOAT32, RPI_FLOAT16, RPI_BFLOAT16, RPI_FLOAT64};
  for (int d = 0; d < 4; d++)
    for (int i = 0; i < 16; i++) {
      struct attention a = make(dtypes[d], i & 1 ? TRANSPOSED : DENSE, 2, 6, i & 2 ? 2 : 6,
                                i & 4 ? 1 : 19, i & 8 ? 330 : 65, i & 1 ? 13 : 16, i & 2 ? 24 : 40);
      check_attention(&a, tolerance_of(dtypes[d]));
      a.causal = true;
      check_attention(&a, tolerance_of(dtypes[d]));
      free_attention(&a);
    }
}

static void masks_broadcast_and_sinks_join(void** state) {
  for (int i = 0; i < 6; i++) {
    struct attention a = make(RPI_FLOAT32, STEPPED, 2, 4, 2, 7, 150, 16, 8);
    if (i == 0) a.mask = holes(DIMS(150));
    if (i == 1) a.mask = holes(DIMS(7, 150));
    if (i == 2) a.mask = holes(DIMS(2, 4, 7, 150));
    if (i == 3) a.mask = random_tensor(RPI_FLOAT32, DIMS(4, 7, 150), STEPPED, 3);
    if (i == 4) a.mask = random_tensor(RPI_FLOAT16, DIMS(2, 1, 1, 150), DENSE, 3);
    if (i == 5) a.mask = holes(DIMS(2, 1, 7, 1));
    for (int k = 0; i == 3 && k < 400; k += 3) set_value(a.mask, k, -INFINITY);
    check_attention(&a, 4e-6);
    a.causal = true;
    a.sinks = random_tensor(RPI_FLOAT32, DIMS(4), DENSE, 9);
    check_attention(&a, 4e-6);
    free_attention(&a);
  }
}

static void a_fully_masked_row_gives_zero(void** state) { /* N31 */
  struct attention a = make(RPI_FLOAT32, DENSE, 1, 1, 1, 1, 4, 1, 1);
  for (int k = 0; k < 4; k++) {
    set_value(a.k, k, 0);
    set_value(a.v, k, k + 1);
  }
  struct tensor* y = attend(&a);
  assert_true(value_at(y, 0) == 2.5);
  a.mask = tensor_new(RPI_BOOL, DIMS(4), DENSE);
  struct tensor* z = attend(&a);
  assert_true(value_at(z, 0) == 0);
  tensor_free(y);
  tensor_free(z);
  free_attention(&a);
  a = make(RPI_FLOAT64, DENSE, 1, 1, 1, 3, 2, 2, 2); /* causal: row 0 sees nothing */
  a.causal = true;
  y = attend(&a);
  assert_true(value_at(y, 0) == 0 && value_at(y, 2) != 0);
  tensor_free(y);
  free_attention(&a);
}

static void the_output_has_the_width_of_the_values(void** state) { /* C16 */
  for (int tk = 5; tk <= 7; tk += 2) {
    struct attention a = make(RPI_FLOAT32, DENSE, 1, 2, 2, 3, tk, 4, 6);
    for (int64_t k = 0; k < a.k->view.size; k++) set_value(a.k, k, 0);
    for (int64_t k = 0; k < a.v->view.size; k++) set_value(a.v, k, (double)(k / 6 % tk));
    struct tensor* y = attend(&a);
    expect_shape(y, DIMS(1, 2, 3, 6));
    for (int64_t k = 0; k < 36; k++) expect_near(value_at(y, k), (tk - 1) / 2.0, 1e-6);
    tensor_free(y);
    free_attention(&a);
  }
}

/* Rows [from, to) of the queries against the first `keys` keys give the rows of the whole, bit for
 * bit. */
static void expect_rows(const struct attention* whole_a, const struct tensor* y, int from, int to,
                        int keys) {
  struct attention a = *whole_a;
  a.q = part_of(a.q, 2, from, to);
  a.k = part_of(a.k, 2, 0, keys);
  a.v = part_of(a.v, 2, 0, keys);
  struct tensor *z = attend(&a), *want = part_of(y, 2, from, to);
  expect_same_bits(z, want);
  tensor_free(z);
  free(want);
  free(a.q);
  free(a.k);
  free(a.v);
}

static void a_row_alone_equals_the_row_of_a_prompt(void** state) {
  int groups[] = {1, 2, 3, 5};
  for (int g = 0; g < 4; g++)
    for (int dtype = RPI_FLOAT16; dtype <= RPI_FLOAT32; dtype++) {
      struct attention a = make(dtype, DENSE, 1, 2 * groups[g], 2, 300, 300, 32, 40);
      a.causal = true;
      struct tensor* y = attend(&a);
      for (int t = 0; t < 300; t += 23) expect_rows(&a, y, t, t + 1, t + 1);
      expect_rows(&a, y, 0, 77, 77);
      expect_rows(&a, y, 77, 300, 300);
      expect_rows(&a, y, 129, 140, 140);
      tensor_free(y);
      free_attention(&a);
    }
}

static void masked_keys_after_the_end_do_not_matter(void** state) {
  for (int p = 1; p <= 400; p += 37) {
    struct attention a = make(RPI_FLOAT32, DENSE, 1, 6, 2, 1, 1000, 64, 64);
    a.mask = tensor_new(RPI_BOOL, DIMS(1, 1, 1, 1000), DENSE);
    for (int k = 0; k < p; k++) tensor_put(a.mask, k, 1);
    /* Whatever lies in the unused part of a cache. */
    for (int64_t k = 0; k < a.k->view.size; k++)
      if (k / 64 % 1000 >= p) {
        set_value(a.k, k, k % 3 ? NAN : INFINITY);
        set_value(a.v, k, NAN);
      }
    struct tensor *y = attend(&a), *mask = a.mask;
    a.mask = NULL;
    expect_rows(&a, y, 0, 1, p);
    a.mask = tensor_new(RPI_FLOAT32, DIMS(1000), DENSE); /* the same as an added mask */
    for (int k = p; k < 1000; k++) set_value(a.mask, k, -INFINITY);
    struct tensor* z = attend(&a);
    expect_same_bits(z, y);
    tensor_free(mask);
    tensor_free(y);
    tensor_free(z);
    free_attention(&a);
  }
}

static void attention_has_the_same_bits_with_any_threads_layout_and_instruction_set(void** state) {
  for (int i = 0; i < 8; i++) {
    struct attention a =
        make(i & 1 ? RPI_FLOAT32 : RPI_FLOAT16, DENSE, 1, 6, 2, i & 2 ? 1 : 70, 900, 20, 72);
    if (i & 4) a.mask = holes(DIMS(1, 6, 1, 900));
    rpi_set_threads(1);
    struct tensor* one = attend(&a);
    rpi_set_threads(2);
    struct tensor* two = attend(&a);
    expect_same_bits(two, one);
    rpi_isa_limit(RPI_ISA_SCALAR);
    struct tensor* scalar = attend(&a);
    rpi_isa_limit(RPI_ISA_AVX2);
    struct tensor* avx2 = attend(&a);
    rpi_isa_limit(RPI_ISA_AVX512);
    expect_same_bits(scalar, one);
    expect_same_bits(avx2, one);
    for (int layout = TRANSPOSED; layout < LAYOUTS; layout++) {
      struct attention b = a;
      b.q = copy_as(a.q, layout);
      b.k = copy_as(a.k, layout);
      b.v = copy_as(a.v, layout);
      b.mask = a.mask ? copy_as(a.mask, layout) : NULL;
      struct tensor* y = attend(&b);
      expect_same_bits(y, one);
      tensor_free(y);
      free_attention(&b);
    }
    tensor_free(one);
    tensor_free(two);
    tensor_free(scalar);
    tensor_free(avx2);
    free_attention(&a);
  }
  rpi_set_threads(0);
}

static void attention_without_keys_rows_or_elements_is_empty_or_zero(void** state) {
  struct attention a = make(RPI_FLOAT32, DENSE, 1, 2, 2, 3, 0, 4, 5);
  struct tensor* y = attend(&a);
  for (int64_t k = 0; k < 30; k++) assert_true(value_at(y, k) == 0);
  tensor_free(y);
  free_attention(&a);
  a = make(RPI_FLOAT32, DENSE, 1, 2, 2, 0, 4, 4, 5);
  y = attend(&a);
  assert_int_equal(y->view.size, 0);
  tensor_free(y);
  free_attention(&a);
}

static void nan_in_an_attended_key_shows(void** state) {
  struct attention a = make(RPI_FLOAT32, DENSE, 1, 1, 1, 2, 70, 8, 8);
  a.causal = true;
  set_value(a.k, 69 * 8, NAN);
  struct tensor* y = attend(&a);
  assert_false(isnan(value_at(y, 0)));
  assert_true(isnan(value_at(y, 8)));
  tensor_free(y);
  free_attention(&a);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void wrong_shapes_are_refused(void** state) {
  struct attention a = make(RPI_FLOAT32, DENSE, 1, 3, 2, 1, 4, 4, 4);
  struct launch l = launch_of(&a);
  assert_int_equal(launch_check(&l), RP_ERR_SHAPE);
  assert_non_null(strstr(rpi_error_text(), "3 heads"));
  free_attention(&a);
  a = make(RPI_FLOAT32, DENSE, 1, 2, 2, 1, 4, 4, 4);
  a.mask = tensor_new(RPI_BOOL, DIMS(1, 5), DENSE);
  l = launch_of(&a);
  assert_int_equal(launch_check(&l), RP_ERR_SHAPE);
  assert_non_null(strstr(rpi_error_text(), "(1,5)"));
  struct tensor *x = tensor_new(RPI_FLOAT32, DIMS(4, 6), DENSE), *at = whole(0);
  l = (struct launch){
      .rule = rpi_rule_rope, .nin = 2, .in = {x, at}, .nattr = 4, .attr = WORDS(4, 0, 0, 0)};
  assert_int_equal(launch_check(&l), RP_ERR_SHAPE);
  struct tensor* w = tensor_new(RPI_FLOAT32, DIMS(5), DENSE);
  l = (struct launch){.rule = rpi_rule_norm, .nin = 2, .in = {x, w}, .nattr = 1, .attr = WORDS(0)};
  assert_int_equal(launch_check(&l), RP_ERR_SHAPE);
  tensor_free(x);
  tensor_free(at);
  tensor_free(w);
  free_attention(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(norms_equal_the_definition_in_every_dtype_and_layout),
      cmocka_unit_test(norms_have_the_same_bits_on_every_instruction_set),
      cmocka_unit_test(rope_equals_the_definition),
      cmocka_unit_test(rope_of_70000_positions_equals_each_row_alone),
      cmocka_unit_test(rope_has_the_same_bits_on_every_instruction_set),
      cmocka_unit_test(attention_equals_the_definition),
      cmocka_unit_test(masks_broadcast_and_sinks_join),
      cmocka_unit_test(a_fully_masked_row_gives_zero),
      cmocka_unit_test(the_output_has_the_width_of_the_values),
      cmocka_unit_test(a_row_alone_equals_the_row_of_a_prompt),
      cmocka_unit_test(masked_keys_after_the_end_do_not_matter),
      cmocka_unit_test(attention_has_the_same_bits_with_any_threads_layout_and_instruction_set),
      cmocka_unit_test(attention_without_keys_rows_or_elements_is_empty_or_zero),
      cmocka_unit_test(nan_in_an_attended_key_shows),
      cmocka_unit_test(wrong_shapes_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
