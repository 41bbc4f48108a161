/* How operations are differentiated and mapped over an axis: one rule per row and transform.
 *
 * A rule builds graph with the functions of op/build.h from the arrays it is given. It must not read
 * values, nor take an extent from an array's shape where the input's own shape can say it at replay.
 * Forward mode needs no rules of its own: it is the reverse rule transposed (trace/jvp.c), so a reverse
 * rule must itself be made of differentiable operations, linear in the cotangents. */
#ifndef RPI_OP_TRANSFORM_H
#define RPI_OP_TRANSFORM_H

#include "op/build.h"

/* One use of a reverse rule. Given everything but `grad`; all arrays are borrowed.
 * Cotangents have the shape and dtype of their outputs. A gradient may be left NULL (zero), and may have
 * the shape to which its input was broadcast, or another dtype: the caller sums and converts. */
struct vjp {
  struct build* b;
  int op, nin, nout, nattr;
  const int64_t* attr;
  struct payload* payload;
  struct array* const* in;  /* primals */
  struct array* const* out; /* what the operation made of them */
  struct array* const* cot; /* one per output; NULL is zero, but not all are NULL */
  const bool* wants;        /* which inputs need a gradient */
  struct array** grad;      /* one per input, NULL at first */
};

/* One use of a mapping rule. A mapped input has one more axis, its first (axis 0), of the same extent in
 * all mapped inputs; the others are as the operation was written for. `rank` is each input's rank
 * without that axis. Every output gets the axis first too. */
struct vmap {
  struct build* b;
  int op, nin, nout, nattr;
  const int64_t* attr;
  struct payload* payload;
  struct array* const* in;
  const bool* is_mapped;
  const int* rank;
  struct array** out; /* to be set; owned by the build */
};

typedef int (*rpi_vjp_rule)(struct vjp* v);   /* 0, or the build's error */
typedef int (*rpi_vmap_rule)(struct vmap* v); /* likewise */

#define ELEM(name, inputs, take, give, expr, vjp_rule) int rpi_vjp_##vjp_rule(struct vjp* v);
#define ELEMX(name, inputs, vjp_rule) int rpi_vjp_##vjp_rule(struct vjp* v);
#define VIEW(name, inputs, rule, view, vjp_rule, vmap_rule) \
  int rpi_vjp_##vjp_rule(struct vjp* v);                    \
  int rpi_vmap_##vmap_rule(struct vmap* v);
#define PRIM(name, min, max, outputs, flags, rule, vjp_rule, vmap_rule) \
  int rpi_vjp_##vjp_rule(struct vjp* v);                                \
  int rpi_vmap_##vmap_rule(struct vmap* v);
#include "op/ops.def"

/* By enum rpi_op; never NULL. */
extern const rpi_vjp_rule rpi_vjp_rules[RPI_OP_COUNT];
extern const rpi_vmap_rule rpi_vmap_rules[RPI_OP_COUNT];

/* Rules that many rows share. */
int rpi_vjp_zero(struct vjp* v);
int rpi_vjp_none(struct vjp* v);
int rpi_vmap_none(struct vmap* v);
int rpi_vmap_axis(struct vmap* v);    /* one input; attr[0] is an axis */
int rpi_vmap_reduce(struct vmap* v);  /* one input; attributes are keepdims, axes... */
int rpi_vmap_leading(struct vmap* v); /* leading axes are a batch that broadcasts, as in matmul */

/* Input i with the mapped axis in front. An input that has none gets one: of extent 1, or, with `spread`,
 * of the extent of the mapped inputs (a view). */
struct array* rpi_vmap_in(struct vmap* v, int i, bool spread);
/* Likewise, and with ones after the mapped axis so that the rank is 1 + rank. */
struct array* rpi_vmap_align(struct vmap* v, int i, int rank);

/* Tools of rules. Everything returned is owned by the build. */
struct array* rpi_zeros_like(struct build* b, struct array* x);
struct array* rpi_ones_like(struct build* b, struct array* x);
/* x summed over the axes along which `like` was broadcast to x's shape, so that it has like's shape. */
struct array* rpi_sum_like(struct build* b, struct array* x, struct array* like);
/* x broadcast to the shape of `like`. */
struct array* rpi_broadcast_like(struct build* b, struct array* x, struct array* like);
/* x reshaped to the shape of `like`, which has as many elements. */
struct array* rpi_reshape_like(struct build* b, struct array* x, struct array* like);
struct array* rpi_sum(struct build* b, struct array* x, const int* axes, int64_t n, bool keepdims);
/* Arithmetic by dtype promotion, as the public functions do it. */
struct array* rpi_add(struct build* b, struct array* x, struct array* y);
struct array* rpi_subtract(struct build* b, struct array* x, struct array* y);
struct array* rpi_multiply(struct build* b, struct array* x, struct array* y);
struct array* rpi_divide(struct build* b, struct array* x, struct array* y);
struct array* rpi_negative(struct build* b, struct array* x);
/* x times a number, in x's dtype. */
struct array* rpi_scale(struct build* b, struct array* x, double factor);
struct array* rpi_select(struct build* b, struct array* condition, struct array* x, struct array* y);
/* x with its complex conjugate taken, if x is complex. */
struct array* rpi_conj(struct build* b, struct array* x);

#endif
