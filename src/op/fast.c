/* Shapes of the fused layers of networks: norms, rotary positions, attention. */
#include <string.h>

#include "base/err.h"
#include "op/op.h"

enum { TEXT = 160 };

static int check_attrs(const struct rule* r, int words) {
  if (r->nattr < words)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d attributes; expected %d.", r->name, r->nattr, words);
  return 0;
}

static int check_float(const struct rule* r, int input) {
  int d = r->in[input].dtype;
  if (rpi_dtype_kind(d) != RPI_KIND_F)
    return rpi_fail(RP_ERR_DTYPE, "[%s] Not supported for %s.", r->name, rpi_dtype_names[d]);
  return 0;
}

/* Weights may have any floating dtype: they are widened exactly. float64 goes only with itself. */
static int check_weight(const struct rule* r, int input) {
  const struct operand *x = &r->in[0], *w = &r->in[input];
  char text[TEXT];
  int rc = check_float(r, input);
  if (rc) return rc;
  if (w->ndim != 1 || w->shape[0] != x->shape[x->ndim - 1])
    return rpi_fail(RP_ERR_SHAPE, "[%s] A weight or bias has shape %s; (%d) is needed.", r->name,
                    rpi_shape_text(text, sizeof text, w->shape, w->ndim), x->shape[x->ndim - 1]);
  if ((w->dtype == RPI_FLOAT64) != (x->dtype == RPI_FLOAT64))
    return rpi_fail(RP_ERR_DTYPE, "[%s] Input and weight are %s and %s.", r->name,
                    rpi_dtype_names[x->dtype], rpi_dtype_names[w->dtype]);
  return 0;
}

/* rms_norm: eps. layer_norm: eps, which inputs follow x (1 weight, 2 bias). Over the last axis. */
int rpi_rule_norm(struct rule* r) {
  int rc = check_attrs(r, r->op == RPI_OP_layer_norm ? 2 : 1);
  if (rc || (rc = check_float(r, 0))) return rc;
  if (r->in[0].ndim < 1)
    return rpi_fail(RP_ERR_SHAPE, "[%s] The input is a scalar; at least one dimension is needed.",
                    r->name);
  for (int i = 1; i < r->nin; i++)
    if ((rc = check_weight(r, i))) return rc;
  if (r->op == RPI_OP_layer_norm) {
    int64_t given = r->attr[1];
    if (given < 0 || given > 3 || r->nin != 1 + (int)(given & 1) + (int)(given >> 1))
      return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d inputs do not go with attribute %lld.", r->name,
                      r->nin, (long long)given);
  }
  rpi_rule_set_like(r, 0, r->in[0].dtype);
  return 0;
}

static int check_offset(const struct rule* r) {
  const struct operand *x = &r->in[0], *o = &r->in[1];
  char text[TEXT];
  if (!rpi_dtype_is_integer(o->dtype))
    return rpi_fail(RP_ERR_DTYPE, "[%s] The offset is %s; an integer is needed.", r->name,
                    rpi_dtype_names[o->dtype]);
  bool is_one = rpi_shape_size(o->shape, o->ndim) == 1 && o->ndim <= 1;
  if (!is_one && (o->ndim != 1 || o->shape[0] != x->shape[0]))
    return rpi_fail(RP_ERR_SHAPE, "[%s] The offset has shape %s; one element or %d are needed.",
                    r->name, rpi_shape_text(text, sizeof text, o->shape, o->ndim), x->shape[0]);
  return 0;
}

/* dims, traditional, base, scale; x, offset, freqs. */
int rpi_rule_rope(struct rule* r) {
  const struct operand* x = &r->in[0];
  char text[TEXT];
  int rc = check_attrs(r, 4);
  if (rc || (rc = check_float(r, 0))) return rc;
  if (x->ndim < 3)
    return rpi_fail(RP_ERR_SHAPE, "[%s] The input has shape %s; at least 3 dimensions are needed.",
                    r->name, rpi_shape_text(text, sizeof text, x->shape, x->ndim));
  int64_t dims = r->attr[0];
  if (dims <= 0 || dims % 2 || dims > x->shape[x->ndim - 1])
    return rpi_fail(RP_ERR_ARGUMENT,
                    "[%s] %lld dims to rotate; a positive even number up to the last dimension "
                    "%d is needed.",
                    r->name, (long long)dims, x->shape[x->ndim - 1]);
  if ((rc = check_offset(r))) return rc;
  if (r->nin > 2) {
    const struct operand* f = &r->in[2];
    if ((rc = check_float(r, 2))) return rc;
    if (f->ndim != 1 || f->shape[0] != dims / 2)
      return rpi_fail(RP_ERR_SHAPE, "[%s] The freqs have shape %s; (%lld) is needed.", r->name,
                      rpi_shape_text(text, sizeof text, f->shape, f->ndim), (long long)(dims / 2));
  }
  rpi_rule_set_like(r, 0, x->dtype);
  return 0;
}

static int refuse_attention(const struct rule* r) {
  const struct operand *q = &r->in[0], *k = &r->in[1], *v = &r->in[2];
  char tq[TEXT], tk[TEXT], tv[TEXT];
  return rpi_fail(RP_ERR_SHAPE, "[%s] Queries %s, keys %s and values %s do not go together.",
                  r->name, rpi_shape_text(tq, sizeof tq, q->shape, q->ndim),
                  rpi_shape_text(tk, sizeof tk, k->shape, k->ndim),
                  rpi_shape_text(tv, sizeof tv, v->shape, v->ndim));
}

static int check_attention(const struct rule* r) {
  const struct operand *q = &r->in[0], *k = &r->in[1], *v = &r->in[2];
  int rc = check_float(r, 0);
  if (rc) return rc;
  if (k->dtype != q->dtype || v->dtype != q->dtype)
    return rpi_fail(RP_ERR_DTYPE, "[%s] Queries, keys and values are %s, %s and %s.", r->name,
                    rpi_dtype_names[q->dtype], rpi_dtype_names[k->dtype],
                    rpi_dtype_names[v->dtype]);
  if (q->ndim != 4 || k->ndim != 4 || v->ndim != 4) return refuse_attention(r);
  bool fits = k->shape[0] == q->shape[0] && v->shape[0] == q->shape[0] &&
              k->shape[1] == v->shape[1] && k->shape[2] == v->shape[2] &&
              k->shape[3] == q->shape[3];
  if (!fits) return refuse_attention(r);
  int hq = q->shape[1], hkv = k->shape[1];
  if (hkv == 0 ? hq != 0 : hq % hkv)
    return rpi_fail(RP_ERR_SHAPE,
                    "[%s] %d heads of queries are not a multiple of %d heads of keys.", r->name, hq,
                    hkv);
  return 0;
}

static int check_mask(const struct rule* r, const struct operand* m) {
  const struct operand *q = &r->in[0], *k = &r->in[1];
  int want[4] = {q->shape[0], q->shape[1], q->shape[2], k->shape[2]};
  bool fits = m->ndim <= 4;
  char tm[TEXT], tw[TEXT];
  for (int i = 1; fits && i <= m->ndim; i++)
    fits = m->shape[m->ndim - i] == 1 || m->shape[m->ndim - i] == want[4 - i];
  if (!fits)
    return rpi_fail(RP_ERR_SHAPE, "[%s] The mask with shape %s does not broadcast to %s.", r->name,
                    rpi_shape_text(tm, sizeof tm, m->shape, m->ndim),
                    rpi_shape_text(tw, sizeof tw, want, 4));
  if (m->dtype != RPI_BOOL && rpi_dtype_kind(m->dtype) != RPI_KIND_F)
    return rpi_fail(RP_ERR_DTYPE, "[%s] The mask is %s; bool or a floating dtype is needed.",
                    r->name, rpi_dtype_names[m->dtype]);
  return 0;
}

/* scale, causal, has mask, has sinks; q (B, H, Tq, D), k (B, Hkv, Tk, D), v (B, Hkv, Tk, Dv). */
int rpi_rule_sdpa(struct rule* r) {
  const struct operand *q = &r->in[0], *v = &r->in[2];
  int rc = check_attrs(r, 4);
  if (rc) return rc;
  bool has_mask = r->attr[2] != 0, has_sinks = r->attr[3] != 0;
  if (r->nin != 3 + has_mask + has_sinks)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d inputs do not go with the attributes.", r->name,
                    r->nin);
  if ((rc = check_attention(r))) return rc;
  if (has_mask && (rc = check_mask(r, &r->in[3]))) return rc;
  if (has_sinks) {
    const struct operand* s = &r->in[3 + has_mask];
    char text[TEXT];
    if ((rc = check_float(r, 3 + has_mask))) return rc;
    if (s->ndim != 1 || s->shape[0] != q->shape[1])
      return rpi_fail(RP_ERR_SHAPE, "[%s] The sinks have shape %s; (%d) is needed.", r->name,
                      rpi_shape_text(text, sizeof text, s->shape, s->ndim), q->shape[1]);
  }
  r->nout = 1;
  r->out[0].dtype = q->dtype;
  r->out[0].shape =
      (struct shape){.ndim = 4, .dim = {q->shape[0], q->shape[1], q->shape[2], v->shape[3]}};
  return rpi_shape_check(&r->out[0].shape, r->name);
}
