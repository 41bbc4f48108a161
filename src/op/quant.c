/* Shapes of affine quantization: groups along the last axis, values packed into uint32 words.
 *
 * A row of n values in `bits` bits takes n bits / 32 words, value i in bits [i bits, (i + 1) bits)
 * of the row read as one little-endian number, and has n / group scales and biases. */
#include <limits.h>
#include <string.h>

#include "base/err.h"
#include "op/op.h"

enum { TEXT = 160 };

static int check_format(const struct rule* r, int64_t group, int64_t bits) {
  if (group != 32 && group != 64 && group != 128)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] The group size is %lld; supported are 32, 64 and 128.",
                    r->name, (long long)group);
  if (bits < 2 || bits > 8 || bits == 7)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] %lld bits; supported are 2, 3, 4, 5, 6 and 8.", r->name,
                    (long long)bits);
  return 0;
}

static bool is_real_float(int d) { return rpi_dtype_kind(d) == RPI_KIND_F && d != RPI_FLOAT64; }

static int check_attrs(const struct rule* r, int words) {
  if (r->nattr < words)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d attributes; expected %d.", r->name, r->nattr, words);
  return 0;
}

static void set_out(struct rule* r, int i, const struct operand* like, int last, int dtype) {
  struct shape* s = &r->out[i].shape;
  s->ndim = like->ndim;
  memcpy(s->dim, like->shape, (size_t)like->ndim * sizeof(int));
  s->dim[s->ndim - 1] = last;
  r->out[i].dtype = dtype;
}

int rpi_rule_quantize(struct rule* r) {
  const struct operand* w = &r->in[0];
  int rc = check_attrs(r, 2);
  if (rc || (rc = check_format(r, r->attr[0], r->attr[1]))) return rc;
  int group = (int)r->attr[0], bits = (int)r->attr[1];
  char text[TEXT];
  if (w->ndim < 2)
    return rpi_fail(RP_ERR_SHAPE, "[%s] The matrix has shape %s; at least 2 dimensions are needed.",
                    r->name, rpi_shape_text(text, sizeof text, w->shape, w->ndim));
  if (!is_real_float(w->dtype))
    return rpi_fail(RP_ERR_DTYPE, "[%s] Not supported for %s.", r->name, rpi_dtype_names[w->dtype]);
  int n = w->shape[w->ndim - 1];
  if (n % group)
    return rpi_fail(RP_ERR_SHAPE,
                    "[%s] The last dimension of shape %s is not divisible by the group "
                    "size %d.",
                    r->name, rpi_shape_text(text, sizeof text, w->shape, w->ndim), group);
  r->nout = 3;
  set_out(r, 0, w, (int)((int64_t)n * bits / 32), RPI_UINT32);
  set_out(r, 1, w, n / group, w->dtype);
  set_out(r, 2, w, n / group, w->dtype);
  return 0;
}

static int refuse_parts(const struct rule* r, const struct operand* w, const struct operand* s) {
  char tw[TEXT], ts[TEXT];
  return rpi_fail(RP_ERR_SHAPE,
                  "[%s] The packed matrix with shape %s does not go with scales or biases "
                  "of shape %s.",
                  r->name, rpi_shape_text(tw, sizeof tw, w->shape, w->ndim),
                  rpi_shape_text(ts, sizeof ts, s->shape, s->ndim));
}

/* Packed words w, scales and biases of one matrix; *n is its number of columns. */
static int check_matrix(const struct rule* r, int first, int64_t group, int64_t bits, int64_t* n) {
  const struct operand *w = &r->in[first], *s = w + 1, *b = w + 2;
  int rc = check_format(r, group, bits);
  if (rc) return rc;
  if (w->dtype != RPI_UINT32)
    return rpi_fail(RP_ERR_DTYPE, "[%s] The packed matrix is %s; uint32 is needed.", r->name,
                    rpi_dtype_names[w->dtype]);
  if (!is_real_float(s->dtype) || !is_real_float(b->dtype))
    return rpi_fail(RP_ERR_DTYPE,
                    "[%s] Scales are %s and biases %s; float16, bfloat16 or float32 are "
                    "needed.",
                    r->name, rpi_dtype_names[s->dtype], rpi_dtype_names[b->dtype]);
  if (s->dtype != b->dtype)
    return rpi_fail(RP_ERR_DTYPE, "[%s] Scales are %s and biases %s; one dtype is needed.", r->name,
                    rpi_dtype_names[s->dtype], rpi_dtype_names[b->dtype]);
  if (w->ndim < 2 || w->ndim != s->ndim ||
      memcmp(w->shape, s->shape, (size_t)(w->ndim - 1) * sizeof(int)))
    return refuse_parts(r, w, s);
  if (!rpi_shape_equal(s->shape, s->ndim, b->shape, b->ndim)) return refuse_parts(r, w, b);
  *n = (int64_t)s->shape[s->ndim - 1] * group;
  if ((int64_t)w->shape[w->ndim - 1] * 32 != *n * bits) return refuse_parts(r, w, s);
  if (*n > INT_MAX)
    return rpi_fail(RP_ERR_SHAPE, "[%s] %lld columns are too many.", r->name, (long long)*n);
  return 0;
}

int rpi_rule_dequantize(struct rule* r) {
  int64_t n;
  int rc = check_attrs(r, 3);
  if (rc || (rc = check_matrix(r, 0, r->attr[0], r->attr[1], &n))) return rc;
  int dtype = (int)r->attr[2];
  if (!rpi_dtype_valid(dtype) || !is_real_float(dtype))
    return rpi_fail(RP_ERR_DTYPE, "[%s] Not supported to %s.", r->name,
                    rpi_dtype_valid(dtype) ? rpi_dtype_names[dtype] : "an unknown dtype");
  r->nout = 1;
  set_out(r, 0, &r->in[0], (int)n, dtype);
  return rpi_shape_check(&r->out[0].shape, r->name);
}

/* x (..., K) with the matrix (..., N, K) when transposed, else (..., K, N); batch axes broadcast.
 */
int rpi_rule_quantized_matmul(struct rule* r) {
  const struct operand *x = &r->in[0], *w = &r->in[1];
  struct shape* out = &r->out[0].shape;
  int64_t columns;
  int rc = check_attrs(r, 3);
  if (rc || (rc = check_matrix(r, 1, r->attr[1], r->attr[2], &columns))) return rc;
  int64_t rows = w->shape[w->ndim - 2];
  int64_t k = r->attr[0] ? columns : rows, n = r->attr[0] ? rows : columns;
  char tx[TEXT], tw[TEXT];
  if (x->ndim < 1 || x->shape[x->ndim - 1] != k)
    return rpi_fail(RP_ERR_SHAPE,
                    "[%s] Last dimension of first input with shape %s must be %lld for the "
                    "packed matrix with shape %s.",
                    r->name, rpi_shape_text(tx, sizeof tx, x->shape, x->ndim), (long long)k,
                    rpi_shape_text(tw, sizeof tw, w->shape, w->ndim));
  int dtype = rpi_dtype_promote(x->dtype, rpi_dtype_promote(r->in[2].dtype, r->in[3].dtype));
  if (!is_real_float(x->dtype) || x->dtype != dtype)
    return rpi_fail(RP_ERR_DTYPE, "[%s] The first input is %s; %s is needed.", r->name,
                    rpi_dtype_names[x->dtype], rpi_dtype_names[dtype]);
  rc = rpi_shape_broadcast(out, r->name, x->shape, x->ndim > 2 ? x->ndim - 2 : 0, w->shape,
                           w->ndim - 2);
  if (rc) return rc;
  if (out->ndim + 2 > RPI_MAX_NDIM)
    return rpi_fail(RP_ERR_SHAPE, "[%s] More than %d dimensions.", r->name, RPI_MAX_NDIM);
  if (x->ndim > 1) out->dim[out->ndim++] = x->shape[x->ndim - 2];
  out->dim[out->ndim++] = (int)n;
  r->nout = 1;
  r->out[0].dtype = dtype;
  return rpi_shape_check(out, r->name);
}
