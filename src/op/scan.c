/* Shape and dtype rules of operations along one axis that keep the shape. The first attribute is
 * the axis; running reductions have reverse and inclusive behind it, partitions kth. */
#include "base/err.h"
#include "op/op.h"

static int check_axis(const struct rule* r, int nattr) {
  if (r->nattr < nattr)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d attributes.", r->name, r->nattr);
  if (r->attr[0] < 0 || r->attr[0] >= r->in[0].ndim)
    return rpi_fail(RP_ERR_INDEX,
                    "[%s] Axis %lld is out of bounds for an array with %d dimensions.", r->name,
                    (long long)r->attr[0], r->in[0].ndim);
  return 0;
}

static int refuse_dtype(const struct rule* r) {
  return rpi_fail(RP_ERR_DTYPE, "[%s] Not supported for %s.", r->name,
                  rpi_dtype_names[r->in[0].dtype]);
}

int rpi_rule_along_axis(struct rule* r) {
  bool is_running =
      r->op == RPI_OP_cummin || r->op == RPI_OP_cummax || r->op == RPI_OP_logcumsumexp;
  int rc = check_axis(r, is_running ? 3 : 1);
  if (rc) return rc;
  bool is_float = rpi_dtype_kind(r->in[0].dtype) == RPI_KIND_F;
  if (r->op == RPI_OP_softmax && !is_float) return refuse_dtype(r);
  if (r->op == RPI_OP_logcumsumexp && !rpi_dtype_is_inexact(r->in[0].dtype))
    return refuse_dtype(r);
  rpi_rule_set_like(r, 0, r->in[0].dtype);
  return 0;
}

/* Sums of bool count; a product of bool is one. */
int rpi_rule_cumsum(struct rule* r) {
  int rc = check_axis(r, 3), dtype = r->in[0].dtype;
  if (rc) return rc;
  rpi_rule_set_like(r, 0, dtype == RPI_BOOL && r->op != RPI_OP_cumprod ? RPI_INT32 : dtype);
  return 0;
}

int rpi_rule_argsort(struct rule* r) {
  int rc = check_axis(r, 1);
  if (rc) return rc;
  rpi_rule_set_like(r, 0, RPI_UINT32);
  return 0;
}

int rpi_rule_partition(struct rule* r) {
  int rc = check_axis(r, 2);
  if (rc) return rc;
  int64_t extent = r->in[0].shape[r->attr[0]], kth = r->attr[1];
  if (kth < -extent || kth >= extent)
    return rpi_fail(RP_ERR_INDEX,
                    "[%s] Position %lld is out of bounds for axis %lld with extent %lld.", r->name,
                    (long long)kth, (long long)r->attr[0], (long long)extent);
  rpi_rule_set_like(r, 0, r->op == RPI_OP_argpartition ? RPI_UINT32 : r->in[0].dtype);
  return 0;
}
