/* Shape and dtype rules of reductions. Attributes: keepdims, then axes, ascending and unique
 * (argreduce: one axis). No axes at all reduces nothing. */
#include "base/err.h"
#include "op/op.h"

static int check_axes(const struct rule* r) {
  if (r->nattr < 1 || r->nattr > 1 + RPI_MAX_NDIM)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d attributes.", r->name, r->nattr);
  for (int i = 1; i < r->nattr; i++) {
    if (r->attr[i] < 0 || r->attr[i] >= r->in[0].ndim)
      return rpi_fail(RP_ERR_INDEX,
                      "[%s] Axis %lld is out of bounds for an array with %d dimensions.", r->name,
                      (long long)r->attr[i], r->in[0].ndim);
    if (i > 1 && r->attr[i] <= r->attr[i - 1])
      return rpi_fail(RP_ERR_ARGUMENT, "[%s] Axes are not ascending.", r->name);
  }
  return 0;
}

/* The reduced shape; kept axes have extent 1. */
static int reduce_shape(struct rule* r, int dtype) {
  const struct operand* x = &r->in[0];
  struct shape* s = &r->out[0].shape;
  int rc = check_axes(r), next = 1;
  if (rc) return rc;
  s->ndim = 0;
  for (int i = 0; i < x->ndim; i++) {
    bool is_reduced = next < r->nattr && r->attr[next] == i;
    next += is_reduced;
    if (!is_reduced)
      s->dim[s->ndim++] = x->shape[i];
    else if (r->attr[0])
      s->dim[s->ndim++] = 1;
  }
  r->out[0].dtype = dtype;
  r->nout = 1;
  return 0;
}

int rpi_rule_sum(struct rule* r) { return reduce_shape(r, rpi_dtype_accumulate(r->in[0].dtype)); }

/* x is the second input's broadcast; the result has that one's shape. */
int rpi_rule_sum_like(struct rule* r) {
  const struct operand *x = &r->in[0], *y = &r->in[1];
  bool fits = y->ndim <= x->ndim && rpi_dtype_is_inexact(x->dtype);
  for (int i = 1; i <= y->ndim && fits; i++) {
    int n = y->shape[y->ndim - i];
    fits = n == 1 || n == x->shape[x->ndim - i];
  }
  rpi_rule_set_like(r, 1, x->dtype);
  if (fits) return 0;
  char from[256], to[256];
  return rpi_fail(RP_ERR_SHAPE, "[%s] %s of shape %s is not a broadcast of shape %s.", r->name,
                  rpi_dtype_names[x->dtype],
                  rpi_shape_text(from, sizeof from, x->shape, x->ndim),
                  rpi_shape_text(to, sizeof to, y->shape, y->ndim));
}

static int refuse_empty(const struct rule* r) {
  for (int i = 1; i < r->nattr; i++)
    if (r->in[0].shape[r->attr[i]] == 0) {
      char text[256];
      return rpi_fail(RP_ERR_SHAPE, "[%s] Nothing to choose from along axis %lld of shape %s.",
                      r->name, (long long)r->attr[i],
                      rpi_shape_text(text, sizeof text, r->in[0].shape, r->in[0].ndim));
    }
  return 0;
}

int rpi_rule_extremum(struct rule* r) {
  int rc = reduce_shape(r, r->in[0].dtype);
  return rc ? rc : refuse_empty(r);
}

int rpi_rule_truth(struct rule* r) { return reduce_shape(r, RPI_BOOL); }

int rpi_rule_float_reduce(struct rule* r) {
  if (rpi_dtype_kind(r->in[0].dtype) != RPI_KIND_F)
    return rpi_fail(RP_ERR_DTYPE, "[%s] Not supported for %s.", r->name,
                    rpi_dtype_names[r->in[0].dtype]);
  return reduce_shape(r, r->in[0].dtype);
}

int rpi_rule_argreduce(struct rule* r) {
  if (r->nattr != 2) return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d attributes.", r->name, r->nattr);
  int rc = reduce_shape(r, RPI_UINT32);
  return rc ? rc : refuse_empty(r);
}
