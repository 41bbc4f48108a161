/* ops.h: matrix products, also of quantised matrices. */
#include <string.h>

#include "api/call.h"

/* ---- products -------------------------------------------------------------------------------- */

/* The dtype that products of `d` are computed and returned in: bool counts. */
static int product_dtype(int d) { return d == RPI_BOOL ? RPI_INT32 : d; }

static struct array* product(struct build* b, struct array* x, struct array* y) {
  if (b->failed || !x || !y) return NULL;
  int d = product_dtype(rpi_dtype_promote(x->dtype, y->dtype));
  return rpi_op2(b, RPI_OP_matmul, rpi_astype(b, x, d), rpi_astype(b, y, d));
}

int mlx_matmul(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s) {
  struct build m;
  rpi_begin(&m, "matmul", s);
  struct array *x = rpi_arg(&m, a), *y = rpi_arg(&m, b);
  return rpi_finish(&m, res, product(&m, x, y));
}

int mlx_addmm(mlx_array* res, const mlx_array c, const mlx_array a, const mlx_array b, float alpha,
              float beta, const mlx_stream s) {
  struct build m;
  struct array* y = NULL;
  rpi_begin(&m, "addmm", s);
  struct array *z = rpi_arg(&m, c), *in[3] = {rpi_arg(&m, a), rpi_arg(&m, b), z};
  if (!m.failed) {
    int d = rpi_dtype_promote(rpi_dtype_promote(in[0]->dtype, in[1]->dtype), z->dtype);
    d = product_dtype(d);
    for (int i = 0; i < 3; i++) in[i] = rpi_astype(&m, in[i], d);
    int64_t attr[2] = {rpi_attr_from_double((double)alpha), rpi_attr_from_double((double)beta)};
    y = rpi_op(&m, RPI_OP_addmm, in, 3, attr, 2);
  }
  return rpi_finish(&m, res, y);
}

/* ---- sums of products over other axes -------------------------------------------------------- */

/* The summed axes as one, at the end (of the first factor) or in front (of the second, whose other
 * axes become one too). The first factor keeps its other axes: they are a batch, or none. */
static struct array* as_factor(struct build* b, struct array* x, const int* sum, int nsum,
                               bool is_first) {
  int perm[RPI_MAX_NDIM] = {0}, nfree = 0, at = 0;
  bool is_sum[RPI_MAX_NDIM] = {false};
  if (b->failed || !x) return NULL;
  for (int i = 0; i < nsum; i++) is_sum[sum[i]] = true;
  for (int i = 0; !is_first && i < nsum; i++) perm[at++] = sum[i];
  for (int i = 0; i < x->ndim; i++)
    if (!is_sum[i]) perm[at++] = i, nfree++;
  for (int i = 0; is_first && i < nsum; i++) perm[at++] = sum[i];
  x = rpi_transpose(b, x, perm, at);
  if (!is_first && nfree > 1) x = rpi_flatten(b, x, nsum, at - 1);
  int start = is_first ? nfree : 0;
  if (nsum > 1) x = rpi_flatten(b, x, start, start + nsum - 1);
  return nsum ? x : rpi_expand_dims(b, x, &start, 1);
}

/* The extents of the axes that are not summed; their number. */
static int free_extents(const struct array* x, const int* sum, int nsum, int* shape) {
  int n = 0;
  for (int i = 0; i < x->ndim; i++) {
    bool is_sum = false;
    for (int k = 0; k < nsum; k++) is_sum |= sum[k] == i;
    if (!is_sum) shape[n++] = x->shape[i];
  }
  return n;
}

static struct array* contract(struct build* b, struct array* x, struct array* y, const int* ax,
                              const int* ay, int n) {
  int shape[RPI_MAX_NDIM];
  if (b->failed) return NULL;
  for (int i = 0; i < n; i++)
    if (x->shape[ax[i]] != y->shape[ay[i]])
      return rpi_build_fail(b, RP_ERR_SHAPE,
                            "Axis %d of the first input has %d elements and axis %d "
                            "of the second %d.",
                            ax[i], x->shape[ax[i]], ay[i], y->shape[ay[i]]);
  int nfree = free_extents(y, ay, n, shape), out = x->ndim - n + nfree;
  if (out > RPI_MAX_NDIM)
    return rpi_build_fail(b, RP_ERR_SHAPE, "%d dimensions; at most %d are supported.", out,
                          RPI_MAX_NDIM);
  struct array* p = product(b, as_factor(b, x, ax, n, true), as_factor(b, y, ay, n, false));
  return nfree > 1 && p ? rpi_unflatten(b, p, p->ndim - 1, shape, nfree) : p;
}

int mlx_inner(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s) {
  struct build m;
  struct array* r = NULL;
  rpi_begin(&m, "inner", s);
  struct array *x = rpi_arg(&m, a), *y = rpi_arg(&m, b);
  if (!m.failed && (x->ndim == 0 || y->ndim == 0))
    r = rpi_binary(&m, RPI_OP_multiply, x, y);
  else if (!m.failed)
    r = contract(&m, x, y, (int[]){x->ndim - 1}, (int[]){y->ndim - 1}, 1);
  return rpi_finish(&m, res, r);
}

int mlx_outer(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s) {
  struct build m;
  rpi_begin(&m, "outer", s);
  struct array* x = rpi_flatten(&m, rpi_arg(&m, a), 0, -1);
  struct array* y = rpi_flatten(&m, rpi_arg(&m, b), 0, -1);
  x = rpi_expand_dims(&m, x, (int[]){1}, 1);
  return rpi_finish(&m, res, rpi_binary(&m, RPI_OP_multiply, x, y));
}

/* Axes given by the caller to non-negative ones, in the caller's order, without repetition. */
static int pair_axes(struct build* b, int* out, const int* axes, int n, int ndim) {
  for (int i = 0; i < n; i++) {
    if ((b->failed = rpi_axis(&out[i], b->name, axes[i], ndim))) return b->failed;
    for (int k = 0; k < i; k++)
      if (out[k] == out[i]) rpi_build_fail(b, RP_ERR_ARGUMENT, "Axis %d is given twice.", axes[i]);
    if (b->failed) return b->failed;
  }
  return 0;
}

int mlx_tensordot(mlx_array* res, const mlx_array a, const mlx_array b, const int* axes_a,
                  size_t axes_a_num, const int* axes_b, size_t axes_b_num, const mlx_stream s) {
  struct build m;
  struct array* r = NULL;
  int ax[RPI_MAX_NDIM], ay[RPI_MAX_NDIM];
  rpi_begin(&m, "tensordot", s);
  struct array *x = rpi_arg(&m, a), *y = rpi_arg(&m, b);
  if (axes_a_num != axes_b_num || axes_a_num > RPI_MAX_NDIM)
    rpi_build_fail(&m, RP_ERR_ARGUMENT, "%zu axes of the first input and %zu of the second.",
                   axes_a_num, axes_b_num);
  int n = (int)axes_a_num;
  if (!m.failed && !pair_axes(&m, ax, axes_a, n, x->ndim) && !pair_axes(&m, ay, axes_b, n, y->ndim))
    r = contract(&m, x, y, ax, ay, n);
  return rpi_finish(&m, res, r);
}

int mlx_tensordot_axis(mlx_array* res, const mlx_array a, const mlx_array b, int axis,
                       const mlx_stream s) {
  struct build m;
  struct array* r = NULL;
  int ax[RPI_MAX_NDIM], ay[RPI_MAX_NDIM];
  rpi_begin(&m, "tensordot", s);
  struct array *x = rpi_arg(&m, a), *y = rpi_arg(&m, b);
  if (!m.failed && (axis < 0 || axis > x->ndim || axis > y->ndim))
    rpi_build_fail(&m, RP_ERR_ARGUMENT, "%d axes of inputs with %d and %d dimensions.", axis,
                   x->ndim, y->ndim);
  for (int i = 0; i < axis && !m.failed; i++) {
    ax[i] = x->ndim - axis + i;
    ay[i] = i;
  }
  if (!m.failed) r = contract(&m, x, y, ax, ay, axis);
  return rpi_finish(&m, res, r);
}

/* Axes of 1 are put between those of x (after each) and y (before each); the product's pairs then
 * merge. */
static struct array* kron(struct build* b, struct array* x, struct array* y) {
  int axes[RPI_MAX_NDIM];
  if (b->failed) return NULL;
  if (rpi_shape_size(x->shape, x->ndim) == 0 || rpi_shape_size(y->shape, y->ndim) == 0)
    return rpi_build_fail(b, RP_ERR_SHAPE, "An input is empty.");
  int n = x->ndim > y->ndim ? x->ndim : y->ndim;
  if (2 * n > RPI_MAX_NDIM)
    return rpi_build_fail(b, RP_ERR_SHAPE, "%d dimensions; at most %d are supported.", n,
                          RPI_MAX_NDIM / 2);
  for (int i = 0; i < n; i++) axes[i] = i;
  if (x->ndim < n) x = rpi_expand_dims(b, x, axes, n - x->ndim);
  if (x && y->ndim < n) y = rpi_expand_dims(b, y, axes, n - y->ndim);
  for (int i = 0; i < n; i++) axes[i] = 2 * i + 1;
  x = rpi_expand_dims(b, x, axes, n);
  for (int i = 0; i < n; i++) axes[i] = 2 * i;
  y = rpi_expand_dims(b, y, axes, n);
  struct array* p = rpi_binary(b, RPI_OP_multiply, x, y);
  for (int i = 0; i < n && p; i++) p = rpi_flatten(b, p, i, i + 1);
  return p;
}

int mlx_kron(mlx_array* res, const mlx_array a, const mlx_array b, const mlx_stream s) {
  struct build m;
  rpi_begin(&m, "kron", s);
  struct array *x = rpi_arg(&m, a), *y = rpi_arg(&m, b);
  return rpi_finish(&m, res, kron(&m, x, y));
}

/* ---- quantised ------------------------------------------------------------------------------- */

struct format {
  int group, bits;
};

/* 64 and 4 where not given. Only affine quantization exists. */
static struct format read_format(struct build* b, mlx_optional_int group, mlx_optional_int bits,
                                 const char* mode) {
  struct format f = {group.has_value ? group.value : 64, bits.has_value ? bits.value : 4};
  if (!mode || strcmp(mode, "affine") == 0) return f;
  bool is_known =
      strcmp(mode, "mxfp4") == 0 || strcmp(mode, "mxfp8") == 0 || strcmp(mode, "nvfp4") == 0;
  rpi_build_fail(b, is_known ? RP_ERR_UNSUPPORTED : RP_ERR_ARGUMENT,
                 is_known ? "The quantization mode \"%.40s\" is not supported; \"affine\" is."
                          : "The quantization mode \"%.40s\" is unknown.",
                 mode);
  return f;
}

static void refuse_global_scale(struct build* b, mlx_array scale) {
  if (scale.ctx)
    rpi_build_fail(b, RP_ERR_ARGUMENT, "A global scale does not go with mode \"affine\".");
}

int mlx_quantize(mlx_vector_array* res, const mlx_array w, mlx_optional_int group_size,
                 mlx_optional_int bits, const char* mode, const mlx_array global_scale,
                 const mlx_stream s) {
  struct build b;
  struct array* out[3] = {NULL};
  rpi_begin(&b, "quantize", s);
  struct format f = read_format(&b, group_size, bits, mode);
  refuse_global_scale(&b, global_scale);
  struct array* in = rpi_arg(&b, w);
  rpi_op_multi(&b, out, RPI_OP_quantize, &in, 1, (int64_t[]){f.group, f.bits}, 2);
  return rpi_finish_vector(&b, res, out, 3);
}

static struct array* need_biases(struct build* b, mlx_array biases) {
  if (!b->failed && !biases.ctx)
    return rpi_build_fail(b, RP_ERR_ARGUMENT, "Mode \"affine\" needs biases.");
  return rpi_arg(b, biases);
}

/* Scales and biases in one dtype; returns it. */
static int join_sides(struct build* b, struct array** scales, struct array** biases) {
  int d = rpi_dtype_promote((*scales)->dtype, (*biases)->dtype);
  *scales = rpi_astype(b, *scales, d);
  *biases = rpi_astype(b, *biases, d);
  return d;
}

int mlx_dequantize(mlx_array* res, const mlx_array w, const mlx_array scales,
                   const mlx_array biases, mlx_optional_int group_size, mlx_optional_int bits,
                   const char* mode, const mlx_array global_scale, mlx_optional_dtype dtype,
                   const mlx_stream s) {
  struct build b;
  struct array* y = NULL;
  rpi_begin(&b, "dequantize", s);
  struct format f = read_format(&b, group_size, bits, mode);
  refuse_global_scale(&b, global_scale);
  struct array* in[3] = {rpi_arg(&b, w), rpi_arg(&b, scales), need_biases(&b, biases)};
  if (!b.failed) {
    int d = join_sides(&b, &in[1], &in[2]);
    int64_t attr[3] = {f.group, f.bits, dtype.has_value ? (int)dtype.value : d};
    y = rpi_op(&b, RPI_OP_dequantize, in, 3, attr, 3);
  }
  return rpi_finish(&b, res, y);
}

int mlx_quantized_matmul(mlx_array* res, const mlx_array x, const mlx_array w,
                         const mlx_array scales, const mlx_array biases, bool transpose,
                         mlx_optional_int group_size, mlx_optional_int bits, const char* mode,
                         const mlx_stream s) {
  struct build b;
  struct array* y = NULL;
  rpi_begin(&b, "quantized_matmul", s);
  struct format f = read_format(&b, group_size, bits, mode);
  struct array* in[4] = {rpi_arg(&b, x), rpi_arg(&b, w), rpi_arg(&b, scales),
                         need_biases(&b, biases)};
  if (!b.failed) {
    int d = join_sides(&b, &in[2], &in[3]);
    in[0] = rpi_astype(&b, in[0], rpi_dtype_promote(in[0]->dtype, d));
    int64_t attr[3] = {transpose, f.group, f.bits};
    y = rpi_op(&b, RPI_OP_quantized_matmul, in, 4, attr, 3);
  }
  return rpi_finish(&b, res, y);
}
