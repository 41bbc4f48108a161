/* random.h: keys, and distributions composed of random bits.
 *
 * The process's own sequence is one 64-bit word, a key: taking the next key splits it, by compare
 * and swap. A function without a key takes one when it is called; in a trace that key is a constant
 * of the trace. Formulas and their order of rounding are MLX's, so that values agree for a key. */
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "api/call.h"
#include "op/reduce.h"
#include "op/threefry.h"

/* ---- Keys ---- */

static _Atomic(uint64_t) sequence; /* high word first, as in a key */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t words(uint32_t high, uint32_t low) { return (uint64_t)high << 32 | low; }

static void seed_by_time(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  atomic_store(&sequence, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
}

/* Four words of bits of a key are two keys: the sequence goes on with the first and gives the
 * second. */
static void next_key(uint32_t key[2]) {
  pthread_once(&once, seed_by_time);
  uint64_t now = atomic_load(&sequence), then;
  do {
    uint32_t a = 0, c = 2, b = 1, d = 3;
    rpi_threefry((uint32_t)(now >> 32), (uint32_t)now, &a, &c);
    rpi_threefry((uint32_t)(now >> 32), (uint32_t)now, &b, &d);
    then = words(a, b);
    key[0] = c;
    key[1] = d;
  } while (!atomic_compare_exchange_weak(&sequence, &now, then));
}

int mlx_random_seed(uint64_t seed) {
  pthread_once(&once, seed_by_time); /* not later, over this seed */
  atomic_store(&sequence, seed);
  return 0;
}

int mlx_random_key(mlx_array* res, uint64_t seed) {
  struct build b;
  uint32_t key[] = {(uint32_t)(seed >> 32), (uint32_t)seed};
  rpi_begin(&b, "random_key", (mlx_stream){0});
  return rpi_finish(&b, res, rpi_own(&b, rpi_array_data(RPI_UINT32, (int[]){2}, 1, key)));
}

/* The key given, or the next one of the sequence if the handle is empty. */
static struct array* key_arg(struct build* b, mlx_array key) {
  uint32_t next[2];
  char text[256];
  if (b->failed) return NULL;
  if (!key.ctx) {
    next_key(next);
    return rpi_own(b, rpi_array_data(RPI_UINT32, (int[]){2}, 1, next));
  }
  struct array* k = rpi_arg(b, key);
  if (k && k->dtype != RPI_UINT32)
    return rpi_build_fail(b, RP_ERR_DTYPE, "The key is %s, not uint32.", rpi_dtype_names[k->dtype]);
  if (k && (k->ndim != 1 || k->shape[0] != 2))
    return rpi_build_fail(b, RP_ERR_SHAPE, "The key has shape %s, not (2).",
                          rpi_shape_text(text, sizeof text, k->shape, k->ndim));
  return k;
}

/* ---- Bits ---- */

static struct array* make_bits(struct build* b, const struct shape* s, int width,
                               struct array* key) {
  int64_t attr[1 + RPI_MAX_NDIM] = {width};
  if (b->failed || !key) return NULL;
  for (int i = 0; i < s->ndim; i++) attr[1 + i] = s->dim[i];
  return rpi_op(b, RPI_OP_random_bits, &key, 1, attr, 1 + s->ndim);
}

/* The caller's shape; 0, or the build failed. */
static int shape_arg(struct build* b, struct shape* s, const int* shape, size_t n) {
  if (!b->failed)
    b->failed = rpi_shape_make(s, b->name, shape, n > INT_MAX ? INT_MAX : (int64_t)n);
  return b->failed;
}

static int append(struct build* b, struct shape* s, int extent) {
  if (s->ndim == RPI_MAX_NDIM)
    rpi_build_fail(b, RP_ERR_SHAPE, "More than %d dimensions.", RPI_MAX_NDIM);
  else
    s->dim[s->ndim++] = extent;
  return b->failed;
}

/* y, unless parameters have made it larger than the shape that was asked for. */
static struct array* with_shape(struct build* b, struct array* y, const struct shape* s) {
  char want[256], got[256];
  if (b->failed || !y || rpi_shape_equal(y->shape, y->ndim, s->dim, s->ndim)) return y;
  return rpi_build_fail(b, RP_ERR_SHAPE, "Parameters make the result %s; its shape was to be %s.",
                        rpi_shape_text(got, sizeof got, y->shape, y->ndim),
                        rpi_shape_text(want, sizeof want, s->dim, s->ndim));
}

int mlx_random_bits(mlx_array* res, const int* shape, size_t shape_num, int width,
                    const mlx_array key, const mlx_stream s) {
  struct build b;
  struct shape want;
  rpi_begin(&b, "random_bits", s);
  if (shape_arg(&b, &want, shape, shape_num)) return rpi_finish(&b, res, NULL);
  return rpi_finish(&b, res, make_bits(&b, &want, width, key_arg(&b, key)));
}

int mlx_random_split_num(mlx_array* res, const mlx_array key, int num, const mlx_stream s) {
  struct build b;
  struct shape want;
  rpi_begin(&b, "random_split", s);
  struct array* k = key.ctx ? key_arg(&b, key) : rpi_arg(&b, key); /* the key is not optional */
  if (shape_arg(&b, &want, (int[]){num, 2}, 2)) k = NULL;
  return rpi_finish(&b, res, make_bits(&b, &want, 4, k));
}

int mlx_random_split(mlx_array* res_0, mlx_array* res_1, const mlx_array key, const mlx_stream s) {
  struct build b;
  struct array* half[2];
  rpi_begin(&b, "random_split", s);
  struct array* k = key.ctx ? key_arg(&b, key) : rpi_arg(&b, key);
  struct array* keys = make_bits(&b, &(struct shape){.ndim = 2, .dim = {2, 2}}, 4, k);
  for (int i = 0; i < 2; i++) {
    struct array* row = keys ? rpi_slice_axis(&b, keys, 0, i, i + 1) : NULL;
    half[i] = row ? rpi_reshape(&b, row, (int[]){2}, 1) : NULL;
    if (half[i]) rpi_array_retain(half[i]);
  }
  if (b.failed || !half[0] || !half[1]) {
    rpi_array_release(half[0]);
    rpi_array_release(half[1]);
    return rpi_finish(&b, res_0, NULL);
  }
  rpi_build_abandon(&b);
  int rc = rpi_handle_set(res_0, half[0]), rc1 = rpi_handle_set(res_1, half[1]);
  return rpi_report(rc ? rc : rc1);
}

/* ---- Uniform ---- */

static bool is_real(int dtype) { return rpi_dtype_kind(dtype) == RPI_KIND_F; }

static int float_dtype(struct build* b, mlx_dtype dtype) {
  if (b->failed) return b->failed;
  if (!rpi_dtype_valid((int)dtype) || !is_real((int)dtype))
    rpi_build_fail(b, RP_ERR_DTYPE, "Only floating dtypes are possible, not %s.",
                   rpi_dtype_valid((int)dtype) ? rpi_dtype_names[dtype] : "this one");
  return b->failed;
}

/* The greatest number below 1, of at most the precision of float. */
static double below_one(int dtype) {
  return dtype == RPI_FLOAT16 ? 1 - 0x1p-11 : dtype == RPI_BFLOAT16 ? 1 - 0x1p-8 : 1 - 0x1p-24;
}

/* Multiples of 2^-32 rounded to float32, in [0, 1). */
static struct array* unit(struct build* b, const struct shape* s, int dtype, struct array* key) {
  int wide = dtype == RPI_FLOAT64 ? RPI_FLOAT64 : RPI_FLOAT32;
  struct array* u = rpi_astype(b, make_bits(b, s, 4, key), wide);
  u = rpi_op2(b, RPI_OP_divide, u, rpi_const(b, 0x1p32, wide));
  if (wide == RPI_FLOAT32) u = rpi_op2(b, RPI_OP_minimum, u, rpi_const(b, below_one(dtype), wide));
  return rpi_astype(b, u, dtype);
}

static struct array* uniform(struct build* b, struct array* low, struct array* high,
                             const struct shape* s, int dtype, struct array* key) {
  struct array *lo = rpi_astype(b, low, dtype), *hi = rpi_astype(b, high, dtype);
  struct array* range = rpi_op2(b, RPI_OP_subtract, hi, lo);
  struct array* y = rpi_op2(b, RPI_OP_multiply, range, unit(b, s, dtype, key));
  return with_shape(b, rpi_op2(b, RPI_OP_add, y, lo), s);
}

/* low + range * u can round up to `high`: such a value becomes `low`, which is as likely as any
 * other. */
static struct array* below_high(struct build* b, struct array* y, struct array* low,
                                struct array* high) {
  if (b->failed || !y) return NULL;
  struct array *lo = rpi_astype(b, low, y->dtype), *hi = rpi_astype(b, high, y->dtype);
  struct array* is_over = rpi_op2(b, RPI_OP_logical_and, rpi_op2(b, RPI_OP_greater_equal, y, hi),
                                  rpi_op2(b, RPI_OP_greater, hi, lo));
  return rpi_op(b, RPI_OP_select, (struct array*[]){is_over, lo, y}, 3, NULL, 0);
}

int mlx_random_uniform(mlx_array* res, const mlx_array low, const mlx_array high, const int* shape,
                       size_t shape_num, mlx_dtype dtype, const mlx_array key, const mlx_stream s) {
  struct build b;
  struct shape want;
  struct array* y = NULL;
  rpi_begin(&b, "random_uniform", s);
  struct array *lo = rpi_arg(&b, low), *hi = rpi_arg(&b, high);
  if (!float_dtype(&b, dtype) && !shape_arg(&b, &want, shape, shape_num)) {
    y = uniform(&b, lo, hi, &want, (int)dtype, key_arg(&b, key));
    y = below_high(&b, y, lo, hi);
  }
  return rpi_finish(&b, res, y);
}

/* In (-1, 1), float32. */
static struct array* both_signs(struct build* b, const struct shape* s, struct array* key) {
  return uniform(b, rpi_const(b, -1 + 0x1p-24, RPI_FLOAT32), rpi_const(b, 1, RPI_FLOAT32), s,
                 RPI_FLOAT32, key);
}

/* ---- Normal and kin ---- */

static struct array* complex_normal(struct build* b, struct shape s, struct array* loc,
                                    struct array* scale, struct array* key) {
  if (append(b, &s, 2)) return NULL;
  struct array* y = rpi_unary(b, RPI_OP_erfinv, both_signs(b, &s, key));
  if (!y) return NULL;
  y = rpi_op(b, RPI_OP_view, &y, 1, (int64_t[]){RPI_COMPLEX64}, 1);
  y = rpi_squeeze(b, y, (int[]){-1}, 1);
  if (scale) y = rpi_binary(b, RPI_OP_multiply, scale, y);
  return loc ? rpi_binary(b, RPI_OP_add, loc, y) : y;
}

/* `loc` and `scale` may be NULL. */
static struct array* normal(struct build* b, const struct shape* s, int dtype, struct array* loc,
                            struct array* scale, struct array* key) {
  if (dtype == RPI_COMPLEX64) return complex_normal(b, *s, loc, scale, key);
  struct array* factor = rpi_const(b, sqrt(2.0), dtype);
  if (scale) factor = rpi_op2(b, RPI_OP_multiply, factor, rpi_astype(b, scale, dtype));
  struct array* y = rpi_unary(b, RPI_OP_erfinv, both_signs(b, s, key));
  y = rpi_op2(b, RPI_OP_multiply, factor, rpi_astype(b, y, dtype));
  return loc ? rpi_op2(b, RPI_OP_add, rpi_astype(b, loc, dtype), y) : y;
}

static int normal_dtype(struct build* b, mlx_dtype dtype) {
  return dtype == MLX_COMPLEX64 ? b->failed : float_dtype(b, dtype);
}

int mlx_random_normal(mlx_array* res, const int* shape, size_t shape_num, mlx_dtype dtype,
                      float loc, float scale, const mlx_array key, const mlx_stream s) {
  struct build b;
  struct shape want;
  struct array* y = NULL;
  rpi_begin(&b, "random_normal", s);
  if (!normal_dtype(&b, dtype) && !shape_arg(&b, &want, shape, shape_num)) {
    struct array* add = loc == 0 ? NULL : rpi_const(&b, (double)loc, (int)dtype);
    struct array* factor = scale == 1 ? NULL : rpi_const(&b, (double)scale, (int)dtype);
    y = normal(&b, &want, (int)dtype, add, factor, key_arg(&b, key));
  }
  return rpi_finish(&b, res, y);
}

int mlx_random_normal_broadcast(mlx_array* res, const int* shape, size_t shape_num, mlx_dtype dtype,
                                const mlx_array loc, const mlx_array scale, const mlx_array key,
                                const mlx_stream s) {
  struct build b;
  struct shape want;
  struct array* y = NULL;
  rpi_begin(&b, "random_normal", s);
  struct array *add = rpi_arg_optional(&b, loc), *factor = rpi_arg_optional(&b, scale);
  if (!normal_dtype(&b, dtype) && !shape_arg(&b, &want, shape, shape_num))
    y = with_shape(&b, normal(&b, &want, (int)dtype, add, factor, key_arg(&b, key)), &want);
  return rpi_finish(&b, res, y);
}

/* The inverse distribution function of a variable in (-1, 1): -sign(u) log(1 - |u|). */
static struct array* laplace(struct build* b, const struct shape* s, int dtype, float loc,
                             float scale, struct array* key) {
  struct array* u = both_signs(b, s, key);
  struct array* away = rpi_unary(b, RPI_OP_negative, rpi_unary(b, RPI_OP_abs, u));
  struct array* y = rpi_unary(b, RPI_OP_log1p, away);
  y = rpi_astype(b, rpi_binary(b, RPI_OP_multiply, rpi_unary(b, RPI_OP_sign, u), y), dtype);
  if (scale != 1) y = rpi_op2(b, RPI_OP_multiply, rpi_const(b, (double)scale, dtype), y);
  return loc != 0 ? rpi_op2(b, RPI_OP_add, rpi_const(b, (double)loc, dtype), y) : y;
}

int mlx_random_laplace(mlx_array* res, const int* shape, size_t shape_num, mlx_dtype dtype,
                       float loc, float scale, const mlx_array key, const mlx_stream s) {
  struct build b;
  struct shape want;
  struct array* y = NULL;
  rpi_begin(&b, "random_laplace", s);
  if (!float_dtype(&b, dtype) && !shape_arg(&b, &want, shape, shape_num))
    y = laplace(&b, &want, (int)dtype, loc, scale, key_arg(&b, key));
  return rpi_finish(&b, res, y);
}

int mlx_random_truncated_normal(mlx_array* res, const mlx_array lower, const mlx_array upper,
                                const int* shape, size_t shape_num, mlx_dtype dtype,
                                const mlx_array key, const mlx_stream s) {
  struct build b;
  struct shape want;
  struct array* y = NULL;
  rpi_begin(&b, "random_truncated_normal", s);
  struct array *lo = rpi_arg(&b, lower), *hi = rpi_arg(&b, upper);
  if (!float_dtype(&b, dtype) && !shape_arg(&b, &want, shape, shape_num)) {
    struct array* root = rpi_const(&b, sqrt(2.0), (int)dtype);
    lo = rpi_astype(&b, lo, (int)dtype);
    hi = rpi_astype(&b, hi, (int)dtype);
    struct array* from = rpi_unary(&b, RPI_OP_erf, rpi_op2(&b, RPI_OP_divide, lo, root));
    struct array* to = rpi_unary(&b, RPI_OP_erf, rpi_op2(&b, RPI_OP_divide, hi, root));
    y = uniform(&b, from, to, &want, (int)dtype, key_arg(&b, key));
    y = rpi_op2(&b, RPI_OP_multiply, root, rpi_unary(&b, RPI_OP_erfinv, y));
    y = rpi_op2(&b, RPI_OP_maximum, rpi_op2(&b, RPI_OP_minimum, hi, y), lo);
  }
  return rpi_finish(&b, res, y);
}

/* -log(-log(u)) */
static struct array* gumbel(struct build* b, const struct shape* s, int dtype, struct array* key) {
  struct array *zero = rpi_const(b, 0, dtype), *one = rpi_const(b, 1, dtype);
  struct array* y = rpi_unary(b, RPI_OP_log, uniform(b, zero, one, s, dtype, key));
  y = rpi_unary(b, RPI_OP_log, rpi_unary(b, RPI_OP_negative, y));
  return rpi_unary(b, RPI_OP_negative, y);
}

int mlx_random_gumbel(mlx_array* res, const int* shape, size_t shape_num, mlx_dtype dtype,
                      const mlx_array key, const mlx_stream s) {
  struct build b;
  struct shape want;
  struct array* y = NULL;
  rpi_begin(&b, "random_gumbel", s);
  if (!float_dtype(&b, dtype) && !shape_arg(&b, &want, shape, shape_num))
    y = gumbel(&b, &want, (int)dtype, key_arg(&b, key));
  return rpi_finish(&b, res, y);
}

/* ---- Discrete ---- */

int mlx_random_bernoulli(mlx_array* res, const mlx_array p, const int* shape, size_t shape_num,
                         const mlx_array key, const mlx_stream s) {
  struct build b;
  struct shape want;
  struct array* y = NULL;
  rpi_begin(&b, "random_bernoulli", s);
  struct array* x = rpi_arg(&b, p);
  if (x && !is_real(x->dtype))
    rpi_build_fail(&b, RP_ERR_DTYPE, "The probability is %s, not floating.",
                   rpi_dtype_names[x->dtype]);
  if (!b.failed && !shape_arg(&b, &want, shape, shape_num)) {
    /* 512 above 2^32, so that a probability of 1 is certain. */
    x = rpi_binary(&b, RPI_OP_multiply, x, rpi_const(&b, 0x1p32 + 512, RPI_FLOAT32));
    y = rpi_binary(&b, RPI_OP_less, make_bits(&b, &want, 4, key_arg(&b, key)), x);
    y = with_shape(&b, y, &want);
  }
  return rpi_finish(&b, res, y);
}

static void erase_axis(struct shape* s, const struct array* x, int axis) {
  s->ndim = 0;
  for (int i = 0; i < x->ndim; i++)
    if (i != axis) s->dim[s->ndim++] = x->shape[i];
}

/* The largest of logits plus Gumbel noise, drawn for `s` with the axis put back in its place. */
static struct array* categorical(struct build* b, struct array* logits, int axis,
                                 const struct shape* s, struct array* key) {
  struct shape noisy = *s;
  int at = axis + s->ndim - logits->ndim + 1;
  if (append(b, &noisy, 0)) return NULL;
  for (int i = noisy.ndim - 1; i > at; i--) noisy.dim[i] = noisy.dim[i - 1];
  noisy.dim[at] = logits->shape[axis];
  struct array* y = rpi_binary(b, RPI_OP_add, gumbel(b, &noisy, RPI_FLOAT32, key), logits);
  return rpi_argreduce(b, RPI_OP_argmax, y, at, false);
}

/* An array and its axis made non-negative, or NULL. */
static struct array* axis_arg(struct build* b, mlx_array logits, int* axis) {
  struct array* x = rpi_arg(b, logits);
  if (!x || (b->failed = rpi_axis(axis, b->name, *axis, x->ndim))) return NULL;
  return x;
}

int mlx_random_categorical(mlx_array* res, const mlx_array logits, int axis, const mlx_array key,
                           const mlx_stream s) {
  struct build b;
  struct shape want;
  rpi_begin(&b, "random_categorical", s);
  struct array *x = axis_arg(&b, logits, &axis), *y = NULL;
  if (x) {
    erase_axis(&want, x, axis);
    y = categorical(&b, x, axis, &want, key_arg(&b, key));
  }
  return rpi_finish(&b, res, y);
}

int mlx_random_categorical_num_samples(mlx_array* res, const mlx_array logits_, int axis,
                                       int num_samples, const mlx_array key, const mlx_stream s) {
  struct build b;
  struct shape want;
  rpi_begin(&b, "random_categorical", s);
  struct array *x = axis_arg(&b, logits_, &axis), *y = NULL;
  if (x && num_samples < 0)
    x = rpi_build_fail(&b, RP_ERR_ARGUMENT, "The number of samples %d is negative.", num_samples);
  if (x) x = rpi_expand_dims(&b, x, (int[]){-1}, 1);
  if (x) {
    erase_axis(&want, x, axis);
    want.dim[want.ndim - 1] = num_samples;
    y = categorical(&b, x, axis, &want, key_arg(&b, key));
  }
  return rpi_finish(&b, res, y);
}

int mlx_random_categorical_shape(mlx_array* res, const mlx_array logits, int axis, const int* shape,
                                 size_t shape_num, const mlx_array key, const mlx_stream s) {
  struct build b;
  struct shape want, rest, both;
  char text[2][256];
  rpi_begin(&b, "random_categorical", s);
  struct array *x = axis_arg(&b, logits, &axis), *y = NULL;
  if (x && !shape_arg(&b, &want, shape, shape_num)) {
    erase_axis(&rest, x, axis);
    b.failed = rpi_shape_broadcast(&both, b.name, want.dim, want.ndim, rest.dim, rest.ndim);
    if (!b.failed && !rpi_shape_equal(both.dim, both.ndim, want.dim, want.ndim))
      rpi_build_fail(&b, RP_ERR_SHAPE, "Samples of shape %s do not fit logits without axis %d, %s.",
                     rpi_shape_text(text[0], 256, want.dim, want.ndim), axis,
                     rpi_shape_text(text[1], 256, rest.dim, rest.ndim));
    if (!b.failed) y = categorical(&b, x, axis, &want, key_arg(&b, key));
  }
  return rpi_finish(&b, res, y);
}

/* ---- Integers ---- */

/* floor of a uniform float32, held within the bounds: exact for bounds up to 2^24. */
static struct array* randint_narrow(struct build* b, struct array* low, struct array* high,
                                    const struct shape* s, int dtype, struct array* key) {
  struct array* y = uniform(b, low, high, s, RPI_FLOAT32, key);
  y = rpi_astype(b, rpi_unary(b, RPI_OP_floor, y), dtype);
  struct array* last = rpi_op2(b, RPI_OP_subtract, high, rpi_const(b, 1, RPI_INT64));
  y = rpi_op2(b, RPI_OP_minimum, y, rpi_astype(b, last, dtype));
  return rpi_op2(b, RPI_OP_maximum, y, rpi_astype(b, low, dtype));
}

/* 64 random bits modulo the range; everything wraps at 64 bits, so any range is exact. */
static struct array* randint_wide(struct build* b, struct array* low, struct array* high,
                                  const struct shape* s, int dtype, struct array* key) {
  struct shape pairs = *s;
  if (append(b, &pairs, 2)) return NULL;
  struct array* r = make_bits(b, &pairs, 4, key);
  if (!r) return NULL;
  r = rpi_op(b, RPI_OP_view, &r, 1, (int64_t[]){RPI_UINT64}, 1);
  r = rpi_squeeze(b, r, (int[]){-1}, 1);
  struct array* from = rpi_astype(b, low, RPI_UINT64);
  struct array* range = rpi_op2(b, RPI_OP_subtract, rpi_astype(b, high, RPI_UINT64), from);
  struct array* y = rpi_op2(b, RPI_OP_add, from, rpi_op2(b, RPI_OP_remainder, r, range));
  struct array* in[] = {rpi_op2(b, RPI_OP_greater, high, low), rpi_astype(b, y, dtype),
                        rpi_astype(b, low, dtype)};
  return with_shape(b, rpi_op(b, RPI_OP_select, in, 3, NULL, 0), s);
}

enum { NARROW = 1 << 24 };

static bool is_between(int64_t x) { return x >= -NARROW && x <= NARROW; }

/* Whether an integer bound that is known by now is small: 1, 0, or -1 if it is not known. */
static int is_small(const struct array* x) {
  if (!x || !rpi_array_is_ready(x) || x->ndim != 0) return -1;
  const void* at = rpi_array_ptr(x);
  switch (x->dtype) {
    case RPI_INT32: return is_between(*(const int32_t*)at);
    case RPI_UINT32: return is_between(*(const uint32_t*)at);
    case RPI_INT64: return is_between(*(const int64_t*)at);
    case RPI_UINT64: return *(const uint64_t*)at <= NARROW;
    default: return rpi_dtype_is_inexact(x->dtype) ? -1 : 1; /* at most 16 bits */
  }
}

static struct array* small_mask(struct build* b, struct array* x) {
  struct array* low = rpi_op2(b, RPI_OP_less_equal, x, rpi_const(b, NARROW, RPI_INT64));
  struct array* high = rpi_op2(b, RPI_OP_greater_equal, x, rpi_const(b, -NARROW, RPI_INT64));
  return rpi_op2(b, RPI_OP_logical_and, low, high);
}

/* Bounds as int64, or uint64 when a result may need it. Bounds that are known decide the way. */
static struct array* randint(struct build* b, struct array* low, struct array* high,
                             const struct shape* s, int dtype, struct array* key) {
  if (b->failed || !low || !high || !key) return NULL;
  int known = is_small(low), known_high = is_small(high);
  bool is_narrow = known == 1 && known_high == 1;
  int wide = dtype == RPI_UINT64 && !is_narrow ? RPI_UINT64 : RPI_INT64;
  low = rpi_astype(b, low, wide);
  high = rpi_astype(b, high, wide);
  if (is_narrow) return randint_narrow(b, low, high, s, dtype, key);
  if (known == 0 || known_high == 0 || wide == RPI_UINT64)
    return randint_wide(b, low, high, s, dtype, key);
  struct array* mask = rpi_op2(b, RPI_OP_logical_and, small_mask(b, low), small_mask(b, high));
  struct array* in[] = {mask, randint_narrow(b, low, high, s, dtype, key),
                        randint_wide(b, low, high, s, dtype, key)};
  return rpi_op(b, RPI_OP_select, in, 3, NULL, 0);
}

int mlx_random_randint(mlx_array* res, const mlx_array low, const mlx_array high, const int* shape,
                       size_t shape_num, mlx_dtype dtype, const mlx_array key, const mlx_stream s) {
  struct build b;
  struct shape want;
  struct array* y = NULL;
  rpi_begin(&b, "random_randint", s);
  struct array *lo = rpi_arg(&b, low), *hi = rpi_arg(&b, high);
  if (!b.failed && (!rpi_dtype_valid((int)dtype) || rpi_dtype_is_inexact((int)dtype)))
    rpi_build_fail(&b, RP_ERR_DTYPE, "Only integer dtypes and bool are possible, not %s.",
                   rpi_dtype_valid((int)dtype) ? rpi_dtype_names[dtype] : "this one");
  if (!b.failed && !shape_arg(&b, &want, shape, shape_num))
    y = randint(&b, lo, hi, &want, (int)dtype, key_arg(&b, key));
  return rpi_finish(&b, res, y);
}

/* ---- Permutations ---- */

static struct array* permutation(struct build* b, int n, struct array* key) {
  struct array* r = make_bits(b, &(struct shape){.ndim = 1, .dim = {n}}, 4, key);
  return rpi_sort(b, RPI_OP_argsort, r, 0);
}

int mlx_random_permutation(mlx_array* res, const mlx_array x, int axis, const mlx_array key,
                           const mlx_stream s) {
  struct build b;
  struct array* y = NULL;
  rpi_begin(&b, "random_permutation", s);
  struct array* a = axis_arg(&b, x, &axis);
  if (a) y = rpi_take(&b, a, permutation(&b, a->shape[axis], key_arg(&b, key)), axis);
  return rpi_finish(&b, res, y);
}

int mlx_random_permutation_arange(mlx_array* res, int x, const mlx_array key, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "random_permutation", s);
  if (x < 0) {
    rpi_build_fail(&b, RP_ERR_ARGUMENT, "There are no %d integers.", x);
    return rpi_finish(&b, res, NULL);
  }
  return rpi_finish(&b, res, permutation(&b, x, key_arg(&b, key)));
}
