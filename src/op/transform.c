/* The tables of rules, the rules that many rows share, and the tools they are written with. */
#include "op/transform.h"

#include "op/reduce.h"

const rpi_vjp_rule rpi_vjp_rules[RPI_OP_COUNT] = {
#define ELEM(name, inputs, take, give, expr, vjp_rule) [RPI_OP_##name] = rpi_vjp_##vjp_rule,
#define ELEMX(name, inputs, vjp_rule) [RPI_OP_##name] = rpi_vjp_##vjp_rule,
#define VIEW(name, inputs, rule, view, vjp_rule, vmap_rule) [RPI_OP_##name] = rpi_vjp_##vjp_rule,
#define PRIM(name, min, max, outputs, flags, rule, vjp_rule, vmap_rule) \
  [RPI_OP_##name] = rpi_vjp_##vjp_rule,
#include "op/ops.def"
};

const rpi_vmap_rule rpi_vmap_rules[RPI_OP_COUNT] = {
#define ELEM(name, ...) [RPI_OP_##name] = rpi_vmap_leading,
#define ELEMX(name, ...) [RPI_OP_##name] = rpi_vmap_leading,
#define VIEW(name, inputs, rule, view, vjp_rule, vmap_rule) [RPI_OP_##name] = rpi_vmap_##vmap_rule,
#define PRIM(name, min, max, outputs, flags, rule, vjp_rule, vmap_rule) \
  [RPI_OP_##name] = rpi_vmap_##vmap_rule,
#include "op/ops.def"
};

int rpi_vjp_zero(struct vjp* v) { return v->b->failed; }

int rpi_vjp_none(struct vjp* v) {
  rpi_build_fail(v->b, RP_ERR_UNSUPPORTED,
                 "%s has no derivative. Wrap it with mlx_custom_vjp, or cut it off with "
                 "mlx_stop_gradient.",
                 rpi_ops[v->op].name);
  return v->b->failed;
}

int rpi_vmap_none(struct vmap* v) {
  rpi_build_fail(v->b, RP_ERR_UNSUPPORTED, "%s cannot be mapped over an axis.",
                 rpi_ops[v->op].name);
  return v->b->failed;
}

/* Mapping -------------------------------------------------------------------------------------- */

static struct array* first_mapped(struct vmap* v) {
  for (int i = 0; i < v->nin; i++)
    if (v->is_mapped[i]) return v->in[i];
  return NULL;
}

struct array* rpi_vmap_in(struct vmap* v, int i, bool spread) {
  if (v->is_mapped[i]) return v->in[i];
  struct array* x = rpi_expand_dims(v->b, v->in[i], (int[]){0}, 1);
  return spread ? rpi_op2(v->b, RPI_OP_broadcast_front, x, first_mapped(v)) : x;
}

struct array* rpi_vmap_align(struct vmap* v, int i, int rank) {
  int axes[RPI_MAX_NDIM], n = 0;
  for (int k = v->rank[i]; k < rank; k++, n++) axes[n] = 1 + n;
  return rpi_expand_dims(v->b, rpi_vmap_in(v, i, false), axes, n);
}

int rpi_vmap_leading(struct vmap* v) {
  struct array* in[64];
  int rank = 0;
  if (v->nin > 64) return rpi_vmap_none(v);
  for (int i = 0; i < v->nin; i++)
    if (v->rank[i] > rank) rank = v->rank[i];
  /* An input without the axis broadcasts as it is. */
  for (int i = 0; i < v->nin; i++)
    in[i] = v->is_mapped[i] ? rpi_vmap_align(v, i, rank) : v->in[i];
  return rpi_op_multi(v->b, v->out, v->op, in, v->nin, v->attr, v->nattr);
}

static int with_shifted_axes(struct vmap* v, int first) {
  int64_t attr[4 + RPI_MAX_NDIM];
  if (v->nattr > 4 + RPI_MAX_NDIM) return rpi_vmap_none(v);
  for (int i = 0; i < v->nattr; i++) attr[i] = v->attr[i] + (i >= first);
  return rpi_op_multi(v->b, v->out, v->op, v->in, v->nin, attr, v->nattr);
}

int rpi_vmap_reduce(struct vmap* v) { return with_shifted_axes(v, 1); }

int rpi_vmap_axis(struct vmap* v) {
  int64_t attr[8];
  if (v->nattr > 8) return rpi_vmap_none(v);
  for (int i = 0; i < v->nattr; i++) attr[i] = v->attr[i] + (i == 0);
  return rpi_op_multi(v->b, v->out, v->op, v->in, v->nin, attr, v->nattr);
}

/* Tools ---------------------------------------------------------------------------------------- */

struct array* rpi_broadcast_like(struct build* b, struct array* x, struct array* like) {
  if (b->failed || !x || !like) return NULL;
  bool equal = rpi_shape_equal(x->shape, x->ndim, like->shape, like->ndim);
  if (equal && !x->is_tracer && !like->is_tracer) return x;
  return rpi_op2(b, RPI_OP_broadcast_like, x, like);
}

struct array* rpi_reshape_like(struct build* b, struct array* x, struct array* like) {
  if (b->failed || !x || !like) return NULL;
  bool equal = rpi_shape_equal(x->shape, x->ndim, like->shape, like->ndim);
  if (equal && !x->is_tracer && !like->is_tracer) return x;
  return rpi_op2(b, RPI_OP_reshape_like, x, like);
}

struct array* rpi_sum_like(struct build* b, struct array* x, struct array* like) {
  if (b->failed || !x || !like) return NULL;
  bool equal = rpi_shape_equal(x->shape, x->ndim, like->shape, like->ndim);
  if (equal && !x->is_tracer && !like->is_tracer) return x;
  return rpi_op2(b, RPI_OP_sum_like, x, like);
}

struct array* rpi_zeros_like(struct build* b, struct array* x) {
  return b->failed || !x ? NULL : rpi_broadcast_like(b, rpi_const(b, 0, x->dtype), x);
}

struct array* rpi_ones_like(struct build* b, struct array* x) {
  return b->failed || !x ? NULL : rpi_broadcast_like(b, rpi_const(b, 1, x->dtype), x);
}

struct array* rpi_sum(struct build* b, struct array* x, const int* axes, int64_t n, bool keepdims) {
  return rpi_reduce(b, RPI_OP_sum, x, axes, n, keepdims);
}

struct array* rpi_add(struct build* b, struct array* x, struct array* y) {
  return rpi_binary(b, RPI_OP_add, x, y);
}

struct array* rpi_subtract(struct build* b, struct array* x, struct array* y) {
  return rpi_binary(b, RPI_OP_subtract, x, y);
}

struct array* rpi_multiply(struct build* b, struct array* x, struct array* y) {
  return rpi_binary(b, RPI_OP_multiply, x, y);
}

struct array* rpi_divide(struct build* b, struct array* x, struct array* y) {
  return rpi_binary(b, RPI_OP_divide, x, y);
}

struct array* rpi_negative(struct build* b, struct array* x) {
  return rpi_unary(b, RPI_OP_negative, x);
}

struct array* rpi_scale(struct build* b, struct array* x, double factor) {
  return b->failed || !x ? NULL : rpi_op2(b, RPI_OP_multiply, x, rpi_const(b, factor, x->dtype));
}

struct array* rpi_select(struct build* b, struct array* condition, struct array* x,
                         struct array* y) {
  if (b->failed || !condition || !x || !y) return NULL;
  int d = rpi_dtype_promote(x->dtype, y->dtype);
  struct array* in[] = {rpi_astype(b, condition, RPI_BOOL), rpi_astype(b, x, d),
                        rpi_astype(b, y, d)};
  return rpi_op(b, RPI_OP_select, in, 3, NULL, 0);
}

struct array* rpi_conj(struct build* b, struct array* x) {
  return b->failed || !x || x->dtype != RPI_COMPLEX64 ? x : rpi_op1(b, RPI_OP_conjugate, x);
}
