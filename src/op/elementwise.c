/* Shape and dtype rules of element-wise operations. Inputs stretch to one shape; public functions
 * have promoted them to one dtype before. */
#include "base/err.h"
#include "op/op.h"

static int broadcast_inputs(struct rule* r) {
  struct shape s = {.ndim = r->in[0].ndim};
  memcpy(s.dim, r->in[0].shape, (size_t)s.ndim * sizeof(int));
  for (int i = 1; i < r->nin; i++) {
    const struct operand* o = &r->in[i];
    if (rpi_shape_equal(s.dim, s.ndim, o->shape, o->ndim)) continue;
    int rc = rpi_shape_broadcast(&s, r->name, s.dim, s.ndim, o->shape, o->ndim);
    if (rc) return rc;
  }
  r->out[0].shape.ndim = s.ndim;
  memcpy(r->out[0].shape.dim, s.dim, (size_t)s.ndim * sizeof(int));
  r->nout = 1;
  return 0;
}

static bool takes(int take, int dtype) {
  int kind = rpi_dtype_kind(dtype);
  switch (take) {
    case RPI_TAKE_FLOAT: return kind == RPI_KIND_F;
    case RPI_TAKE_FLOATC: return kind == RPI_KIND_F || kind == RPI_KIND_C;
    case RPI_TAKE_REAL: return kind != RPI_KIND_C;
    case RPI_TAKE_NUM: return kind != RPI_KIND_B;
    case RPI_TAKE_INT: return kind != RPI_KIND_F && kind != RPI_KIND_C;
    case RPI_TAKE_LOGIC: return kind == RPI_KIND_B;
    default: return true;
  }
}

static int check_dtypes(const struct rule* r, int first) {
  for (int i = first + 1; i < r->nin; i++)
    if (r->in[i].dtype != r->in[first].dtype)
      return rpi_fail(RP_ERR_DTYPE, "[%s] Inputs are %s and %s.", r->name,
                      rpi_dtype_names[r->in[first].dtype], rpi_dtype_names[r->in[i].dtype]);
  return 0;
}

int rpi_rule_elem(struct rule* r) {
  const struct op_def* def = &rpi_ops[r->op];
  int dtype = r->in[0].dtype, rc = check_dtypes(r, 0);
  if (rc) return rc;
  if (!takes(def->take, dtype))
    return rpi_fail(RP_ERR_DTYPE, "[%s] Not supported for %s.", r->name, rpi_dtype_names[dtype]);
  if (def->give == RPI_GIVE_BOOL) dtype = RPI_BOOL;
  if (def->give == RPI_GIVE_PART && dtype == RPI_COMPLEX64) dtype = RPI_FLOAT32;
  r->out[0].dtype = dtype;
  return broadcast_inputs(r);
}

/* attr: dtype */
int rpi_rule_astype(struct rule* r) {
  if (r->nattr != 1 || r->attr[0] < 0 || r->attr[0] >= RPI_DTYPE_COUNT)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] There is no such dtype.", r->name);
  rpi_rule_set_like(r, 0, (int)r->attr[0]);
  return 0;
}

int rpi_rule_round(struct rule* r) {
  rpi_rule_set_like(r, 0, r->in[0].dtype);
  return 0;
}

int rpi_rule_select(struct rule* r) {
  if (r->in[0].dtype != RPI_BOOL)
    return rpi_fail(RP_ERR_DTYPE, "[%s] The condition is %s, not bool.", r->name,
                    rpi_dtype_names[r->in[0].dtype]);
  int rc = check_dtypes(r, 1);
  if (rc) return rc;
  r->out[0].dtype = r->in[1].dtype;
  return broadcast_inputs(r);
}
