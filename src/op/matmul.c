/* Shapes of matrix products.
 *
 * A 1-D first input is a row and a 1-D second one a column; the axis they lack is missing in the
 * result too. Batch axes broadcast. Both inputs have one dtype, which is the result's. */
#include <string.h>

#include "base/err.h"
#include "op/op.h"

enum { TEXT = 160 };

static int refuse(const struct rule* r, const struct operand* a, const struct operand* b) {
  char ta[TEXT], tb[TEXT];
  const char* axis = b->ndim > 1 ? "second to last" : "last";
  return rpi_fail(
      RP_ERR_SHAPE,
      "[%s] Last dimension of first input with shape %s must match %s dimension of second "
      "input with shape %s.",
      r->name, rpi_shape_text(ta, sizeof ta, a->shape, a->ndim), axis,
      rpi_shape_text(tb, sizeof tb, b->shape, b->ndim));
}

static int set_product_shape(struct rule* r, const struct operand* a, const struct operand* b) {
  struct shape* out = &r->out[0].shape;
  int batch_a = a->ndim > 2 ? a->ndim - 2 : 0, batch_b = b->ndim > 2 ? b->ndim - 2 : 0;
  int rc = rpi_shape_broadcast(out, r->name, a->shape, batch_a, b->shape, batch_b);
  if (rc) return rc;
  if (out->ndim + (a->ndim > 1) + (b->ndim > 1) > RPI_MAX_NDIM)
    return rpi_fail(RP_ERR_SHAPE, "[%s] More than %d dimensions.", r->name, RPI_MAX_NDIM);
  if (a->ndim > 1) out->dim[out->ndim++] = a->shape[a->ndim - 2];
  if (b->ndim > 1) out->dim[out->ndim++] = b->shape[b->ndim - 1];
  return rpi_shape_check(out, r->name);
}

static int check_product(struct rule* r) {
  const struct operand *a = &r->in[0], *b = &r->in[1];
  if (a->ndim == 0 || b->ndim == 0)
    return rpi_fail(RP_ERR_SHAPE, "[%s] An input is a scalar; at least one dimension is needed.",
                    r->name);
  if (a->dtype != b->dtype)
    return rpi_fail(RP_ERR_DTYPE, "[%s] The inputs are %s and %s; one dtype is needed.", r->name,
                    rpi_dtype_names[a->dtype], rpi_dtype_names[b->dtype]);
  if (a->dtype == RPI_BOOL) return rpi_fail(RP_ERR_DTYPE, "[%s] Not supported for bool.", r->name);
  if (a->shape[a->ndim - 1] != b->shape[b->ndim > 1 ? b->ndim - 2 : 0]) return refuse(r, a, b);
  r->nout = 1;
  r->out[0].dtype = a->dtype;
  return 0;
}

int rpi_rule_matmul(struct rule* r) {
  int rc = check_product(r);
  return rc ? rc : set_product_shape(r, &r->in[0], &r->in[1]);
}

/* c has the dtype of the product and broadcasts to its shape. */
int rpi_rule_addmm(struct rule* r) {
  const struct operand* c = &r->in[2];
  struct shape joined;
  int rc = rpi_rule_matmul(r);
  if (rc) return rc;
  struct shape* out = &r->out[0].shape;
  if (r->nattr < 2)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d attributes; expected 2.", r->name, r->nattr);
  if (c->dtype != r->out[0].dtype)
    return rpi_fail(RP_ERR_DTYPE, "[%s] The product is %s and the term added to it %s.", r->name,
                    rpi_dtype_names[r->out[0].dtype], rpi_dtype_names[c->dtype]);
  rc = rpi_shape_broadcast(&joined, r->name, out->dim, out->ndim, c->shape, c->ndim);
  if (rc) return rc;
  if (!rpi_shape_equal(joined.dim, joined.ndim, out->dim, out->ndim)) {
    char tc[TEXT], to[TEXT];
    return rpi_fail(RP_ERR_SHAPE,
                    "[%s] The term with shape %s does not broadcast to the product's %s.", r->name,
                    rpi_shape_text(tc, sizeof tc, c->shape, c->ndim),
                    rpi_shape_text(to, sizeof to, out->dim, out->ndim));
  }
  return 0;
}
