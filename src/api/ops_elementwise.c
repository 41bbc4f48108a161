/* Element-wise functions of ops.h: one per row of ops.def, and the compositions. */
#include <math.h>
#include <stdlib.h>

#include "api/call.h"
#include "base/err.h"

/* One function per row: promote, convert to what the row takes, apply. */
#define DEFINE_1(name)                                                          \
  int mlx_##name(mlx_array* res, const mlx_array a, const mlx_stream s) {       \
    struct build b;                                                             \
    rpi_begin(&b, #name, s);                                                    \
    return rpi_finish(&b, res, rpi_unary(&b, RPI_OP_##name, rpi_arg(&b, a)));   \
  }
#define DEFINE_2(name)                                                                          \
  int mlx_##name(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s) {    \
    struct build g;                                                                             \
    rpi_begin(&g, #name, s);                                                                    \
    struct array *x = rpi_arg(&g, a), *y = rpi_arg(&g, b);                                      \
    return rpi_finish(&g, res, rpi_binary(&g, RPI_OP_##name, x, y));                            \
  }
#define ELEM(name, inputs, take, give, expr, ...) DEFINE_##inputs(name)
#include "op/ops.def"

static struct array* op1(struct build* b, int op, struct array* x) { return rpi_unary(b, op, x); }

static struct array* op2(struct build* b, int op, struct array* x, struct array* y) {
  return rpi_binary(b, op, x, y);
}

static struct array* choose(struct build* b, struct array* c, struct array* x, struct array* y) {
  if (b->failed || !c || !x || !y) return NULL;
  int d = rpi_dtype_promote(x->dtype, y->dtype);
  struct array* in[3] = {rpi_astype(b, c, RPI_BOOL), rpi_astype(b, x, d), rpi_astype(b, y, d)};
  return rpi_op(b, RPI_OP_select, in, 3, NULL, 0);
}

/* Choosing and bounding ------------------------------------------------------------------------ */

int mlx_where(mlx_array* res, const mlx_array condition, const mlx_array x, const mlx_array y,
              const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "where", s);
  struct array *c = rpi_arg(&b, condition), *p = rpi_arg(&b, x), *q = rpi_arg(&b, y);
  return rpi_finish(&b, res, choose(&b, c, p, q));
}

int mlx_clip(mlx_array* res, const mlx_array a, const mlx_array a_min, const mlx_array a_max,
             const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "clip", s);
  struct array* x = rpi_arg(&b, a);
  struct array *lo = rpi_arg_optional(&b, a_min), *hi = rpi_arg_optional(&b, a_max);
  if (!lo && !hi) rpi_build_fail(&b, RP_ERR_ARGUMENT, "Neither a_min nor a_max is given.");
  if (lo) x = op2(&b, RPI_OP_maximum, x, lo);
  if (hi) x = op2(&b, RPI_OP_minimum, x, hi);
  return rpi_finish(&b, res, x);
}

/* The largest finite value. */
static double largest(int dtype) {
  switch (dtype) {
    case RPI_FLOAT16: return 65504;
    case RPI_BFLOAT16: return 0x1.FEp127;
    case RPI_FLOAT32: return 0x1.FFFFFEp127;
    default: return 0x1.FFFFFFFFFFFFFp1023;
  }
}

int mlx_nan_to_num(mlx_array* res, const mlx_array a, float nan, mlx_optional_float posinf,
                   mlx_optional_float neginf, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "nan_to_num", s);
  struct array* x = rpi_arg(&b, a);
  if (!x || !rpi_dtype_is_inexact(x->dtype)) return rpi_finish(&b, res, x);
  int d = x->dtype;
  if (d == RPI_COMPLEX64)
    rpi_build_fail(&b, RP_ERR_DTYPE, "Not supported for %s.", rpi_dtype_names[d]);
  double over = posinf.has_value ? (double)posinf.value : largest(d);
  double under = neginf.has_value ? (double)neginf.value : -largest(d);
  struct array *is_nan = op1(&b, RPI_OP_isnan, x), *is_over = op1(&b, RPI_OP_isposinf, x);
  struct array* is_under = op1(&b, RPI_OP_isneginf, x);
  struct array* y = choose(&b, is_nan, rpi_const(&b, nan, d), x);
  y = choose(&b, is_over, rpi_const(&b, over, d), y);
  return rpi_finish(&b, res, choose(&b, is_under, rpi_const(&b, under, d), y));
}

/* Conversions ---------------------------------------------------------------------------------- */

int mlx_astype(mlx_array* res, const mlx_array a, mlx_dtype dtype, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "astype", s);
  return rpi_finish(&b, res, rpi_astype(&b, rpi_arg(&b, a), (int)dtype));
}

/* Multiples of 10^-decimals, in a format that holds the scaled values: halves in float32, integers
 * (which only negative decimals change) in float64. */
static struct array* round_decimals(struct build* b, struct array* x, int decimals) {
  int d = x->dtype;
  int wide = rpi_dtype_size(d) == 2 ? RPI_FLOAT32 : rpi_dtype_is_inexact(d) ? d : RPI_FLOAT64;
  struct array* scale = rpi_const(b, pow(10, abs(decimals)), wide);
  int up = decimals > 0 ? RPI_OP_multiply : RPI_OP_divide;
  int down = decimals > 0 ? RPI_OP_divide : RPI_OP_multiply;
  struct array* y = op2(b, up, rpi_astype(b, x, wide), scale);
  y = y ? rpi_op1(b, RPI_OP_round, y) : NULL;
  return rpi_astype(b, op2(b, down, y, scale), d);
}

int mlx_round(mlx_array* res, const mlx_array a, int decimals, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "round", s);
  struct array* x = rpi_arg(&b, a);
  if (!x) return rpi_finish(&b, res, NULL);
  if (x->dtype == RPI_BOOL || (decimals >= 0 && !rpi_dtype_is_inexact(x->dtype)))
    return rpi_finish(&b, res, x);
  if (decimals < -400 || decimals > 400)
    rpi_build_fail(&b, RP_ERR_ARGUMENT, "%d decimals; from -400 to 400 are possible.", decimals);
  struct array* y = decimals ? round_decimals(&b, x, decimals) : rpi_op1(&b, RPI_OP_round, x);
  return rpi_finish(&b, res, y);
}

static int scale_angle(mlx_array* res, const char* name, mlx_array a, double factor, mlx_stream s) {
  struct build b;
  rpi_begin(&b, name, s);
  struct array* x = rpi_arg(&b, a);
  if (!x) return rpi_finish(&b, res, NULL);
  int d = rpi_dtype_at_least_float(x->dtype);
  return rpi_finish(&b, res, op2(&b, RPI_OP_multiply, x, rpi_const(&b, factor, d)));
}

int mlx_degrees(mlx_array* res, const mlx_array a, const mlx_stream s) {
  return scale_angle(res, "degrees", a, 180 / M_PI, s);
}

int mlx_radians(mlx_array* res, const mlx_array a, const mlx_stream s) {
  return scale_angle(res, "radians", a, M_PI / 180, s);
}

int mlx_divmod(mlx_vector_array* res, const mlx_array a, const mlx_array b, const mlx_stream s) {
  struct build g;
  rpi_begin(&g, "divmod", s);
  struct array *x = rpi_arg(&g, a), *y = rpi_arg(&g, b);
  struct array* both[2] = {op2(&g, RPI_OP_floor_divide, x, y), op2(&g, RPI_OP_remainder, x, y)};
  return rpi_finish_vector(&g, res, both, 2);
}

/* Closeness ------------------------------------------------------------------------------------ */

static struct array* both_nan(struct build* b, struct array* x, struct array* y) {
  return op2(b, RPI_OP_logical_and, op1(b, RPI_OP_isnan, x), op1(b, RPI_OP_isnan, y));
}

/* |x - y|, also where a difference of unsigned numbers would wrap. */
static struct array* distance(struct build* b, struct array* x, struct array* y) {
  if (!x || !y) return NULL;
  if (rpi_dtype_is_inexact(rpi_dtype_promote(x->dtype, y->dtype)))
    return op1(b, RPI_OP_abs, op2(b, RPI_OP_subtract, x, y));
  return op2(b, RPI_OP_subtract, op2(b, RPI_OP_maximum, x, y), op2(b, RPI_OP_minimum, x, y));
}

static struct array* is_close(struct build* b, struct array* x, struct array* y, double rtol,
                              double atol, bool equal_nan) {
  if (!x || !y) return NULL;
  int wide = rpi_dtype_promote(x->dtype, y->dtype) == RPI_FLOAT64 ? RPI_FLOAT64 : RPI_FLOAT32;
  struct array* room = op2(b, RPI_OP_multiply, rpi_const(b, rtol, wide), op1(b, RPI_OP_abs, y));
  room = op2(b, RPI_OP_add, rpi_const(b, atol, wide), room);
  struct array* close = op2(b, RPI_OP_less_equal, distance(b, x, y), room);
  /* An infinity has room for everything: finite values only, or equality. */
  struct array* finite = op2(b, RPI_OP_logical_and, op1(b, RPI_OP_isfinite, x),
                             op1(b, RPI_OP_isfinite, y));
  close = op2(b, RPI_OP_logical_and, close, finite);
  close = op2(b, RPI_OP_logical_or, close, op2(b, RPI_OP_equal, x, y));
  return equal_nan ? op2(b, RPI_OP_logical_or, close, both_nan(b, x, y)) : close;
}

static struct array* all_of(struct build* b, struct array* x) {
  int64_t attr[1 + RPI_MAX_NDIM] = {0}; /* keepdims, axes */
  if (!x) return NULL;
  for (int i = 0; i < x->ndim; i++) attr[1 + i] = i;
  return rpi_op(b, RPI_OP_all, &x, 1, attr, 1 + x->ndim);
}

int mlx_isclose(mlx_array* res, const mlx_array a, const mlx_array b, double rtol, double atol,
                bool equal_nan, const mlx_stream s) {
  struct build g;
  rpi_begin(&g, "isclose", s);
  struct array *x = rpi_arg(&g, a), *y = rpi_arg(&g, b);
  return rpi_finish(&g, res, is_close(&g, x, y, rtol, atol, equal_nan));
}

int mlx_allclose(mlx_array* res, const mlx_array a, const mlx_array b, double rtol, double atol,
                 bool equal_nan, const mlx_stream s) {
  struct build g;
  rpi_begin(&g, "allclose", s);
  struct array *x = rpi_arg(&g, a), *y = rpi_arg(&g, b);
  return rpi_finish(&g, res, all_of(&g, is_close(&g, x, y, rtol, atol, equal_nan)));
}

int mlx_array_equal(mlx_array* res, const mlx_array a, const mlx_array b, bool equal_nan,
                    const mlx_stream s) {
  struct build g;
  rpi_begin(&g, "array_equal", s);
  struct array *x = rpi_arg(&g, a), *y = rpi_arg(&g, b);
  if (!x || !y) return rpi_finish(&g, res, NULL);
  if (!rpi_shape_equal(x->shape, x->ndim, y->shape, y->ndim))
    return rpi_finish(&g, res, rpi_const(&g, 0, RPI_BOOL));
  struct array* same = op2(&g, RPI_OP_equal, x, y);
  if (equal_nan && rpi_dtype_is_inexact(rpi_dtype_promote(x->dtype, y->dtype)))
    same = op2(&g, RPI_OP_logical_or, same, both_nan(&g, x, y));
  return rpi_finish(&g, res, all_of(&g, same));
}
