/* Building graphs: see build.h. */
#include "op/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

void rpi_build_begin(struct build* b, const char* name, struct stream s) {
  b->name = name;
  b->stream = s;
  b->failed = 0;
  b->nkeep = 0;
  b->nlists = 0;
  b->cap = RPI_BUILD_KEEP;
  b->keep = b->inline_keep;
}

void rpi_build_abandon(struct build* b) {
  for (int i = 0; i < b->nkeep; i++) rpi_array_release(b->keep[i]);
  if (b->keep != b->inline_keep) rpi_free(b->keep);
  for (int k = 0; k < b->nlists; k++) {
    for (int64_t i = 0; i < b->list[k].n; i++) rpi_array_release(b->list[k].at[i]);
    rpi_free(b->list[k].at);
  }
}

int rpi_build_end(struct build* b, struct array** out, struct array* result) {
  if (!result && !b->failed) b->failed = rpi_error_code() ? rpi_error_code() : RP_ERR_INTERNAL;
  if (!b->failed) *out = rpi_array_retain(result);
  rpi_build_abandon(b);
  return b->failed;
}

static int grow_keep(struct build* b) {
  struct array** more = rpi_alloc(sizeof *more * 2 * (size_t)b->cap);
  if (!more) return rpi_fail_memory("a graph", sizeof *more * 2 * (size_t)b->cap);
  memcpy(more, b->keep, sizeof *more * (size_t)b->nkeep);
  if (b->keep != b->inline_keep) rpi_free(b->keep);
  b->keep = more;
  b->cap *= 2;
  return 0;
}

struct array* rpi_own(struct build* b, struct array* a) {
  if (!a || b->failed || (b->nkeep == b->cap && grow_keep(b))) {
    if (!b->failed) b->failed = rpi_error_code();
    rpi_array_release(a);
    return NULL;
  }
  b->keep[b->nkeep++] = a;
  return a;
}

struct array* rpi_build_fail(struct build* b, rp_error_code code, const char* fmt, ...) {
  if (b->failed) return NULL;
  char text[RPI_ERROR_TEXT - 64];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  b->failed = rpi_fail(code, "[%s] %s", b->name, text);
  return NULL;
}

/* The rule decides shapes and dtypes; the node and its outputs follow. */
static int apply(struct build* b, struct array** out, int op, struct array* const* in, int nin,
                 const int64_t* attr, int nattr) {
  struct operand stack[8], *operand = stack;
  if (nin > 8 && !(operand = rpi_alloc(sizeof *operand * (size_t)nin)))
    return rpi_fail_memory("a graph node", sizeof *operand * (size_t)nin);
  for (int i = 0; i < nin; i++)
    operand[i] = (struct operand){in[i]->shape, in[i]->ndim, in[i]->dtype};
  struct rule r;
  r.name = b->name;
  r.op = op;
  r.nin = nin;
  r.in = operand;
  r.attr = attr;
  r.nattr = nattr;
  int rc = rpi_rule_run(&r);
  if (operand != stack) rpi_free(operand);
  if (rc) return rc;
  struct node* n = rpi_node_new(op, in, nin, r.nout, attr, nattr, NULL, b->stream);
  if (!n) return rpi_error_code();
  for (int i = 0; i < r.nout && !rc; i++) {
    out[i] = rpi_own(b, rpi_node_output(n, i, r.out[i].dtype, r.out[i].shape.dim,
                                        r.out[i].shape.ndim));
    if (!out[i]) rc = b->failed;
  }
  rpi_node_release(n);
  return rc;
}

int rpi_op_multi(struct build* b, struct array** out, int op, struct array* const* in, int nin,
                 const int64_t* attr, int nattr) {
  for (int i = 0; i < nin && !b->failed; i++)
    if (!in[i]) b->failed = rpi_error_code() ? rpi_error_code() : RP_ERR_INTERNAL;
  if (!b->failed) b->failed = apply(b, out, op, in, nin, attr, nattr);
  return b->failed;
}

struct array* rpi_op(struct build* b, int op, struct array* const* in, int nin, const int64_t* attr,
                     int nattr) {
  struct array* out[RPI_RULE_OUTPUTS];
  return rpi_op_multi(b, out, op, in, nin, attr, nattr) ? NULL : out[0];
}

struct array* rpi_op1(struct build* b, int op, struct array* x) {
  return rpi_op(b, op, &x, 1, NULL, 0);
}

struct array* rpi_op2(struct build* b, int op, struct array* x, struct array* y) {
  return rpi_op(b, op, (struct array*[]){x, y}, 2, NULL, 0);
}

struct array* rpi_astype(struct build* b, struct array* x, int dtype) {
  if (b->failed || !x || x->dtype == dtype) return x;
  return rpi_op(b, RPI_OP_astype, &x, 1, (int64_t[]){dtype}, 1);
}

/* The dtype the kernels of a row want for inputs that promote to `d`; -1 if it takes none. */
static int taken_dtype(int take, int d) {
  int kind = rpi_dtype_kind(d);
  switch (take) {
    case RPI_TAKE_FLOAT: return kind == RPI_KIND_C ? -1 : rpi_dtype_at_least_float(d);
    case RPI_TAKE_FLOATC: return rpi_dtype_at_least_float(d);
    case RPI_TAKE_REAL: return kind == RPI_KIND_C ? -1 : d;
    case RPI_TAKE_NUM: return kind == RPI_KIND_B ? -1 : d;
    case RPI_TAKE_INT: return rpi_dtype_is_inexact(d) ? -1 : d;
    case RPI_TAKE_LOGIC: return RPI_BOOL;
    default: return d;
  }
}

static struct array* refuse_dtype(struct build* b, int d) {
  return rpi_build_fail(b, RP_ERR_DTYPE, "Not supported for %s.", rpi_dtype_names[d]);
}

struct array* rpi_unary(struct build* b, int op, struct array* x) {
  if (b->failed || !x) return NULL;
  int d = taken_dtype(rpi_ops[op].take, x->dtype);
  if (d < 0) return refuse_dtype(b, x->dtype);
  return rpi_op1(b, op, rpi_astype(b, x, d));
}

struct array* rpi_binary(struct build* b, int op, struct array* x, struct array* y) {
  if (b->failed || !x || !y) return NULL;
  int p = rpi_dtype_promote(x->dtype, y->dtype);
  if (p == RPI_BOOL && (op == RPI_OP_left_shift || op == RPI_OP_right_shift)) p = RPI_UINT8;
  int d = taken_dtype(rpi_ops[op].take, p);
  if (d < 0) return refuse_dtype(b, p);
  return rpi_op2(b, op, rpi_astype(b, x, d), rpi_astype(b, y, d));
}

int rpi_axes(struct build* b, int* out, int* nout, const int* axes, int64_t n, int ndim) {
  bool seen[RPI_MAX_NDIM] = {false};
  if (b->failed) return b->failed;
  if (n > RPI_MAX_NDIM) {
    rpi_build_fail(b, RP_ERR_ARGUMENT, "%lld axes given.", (long long)n);
    return b->failed;
  }
  for (int64_t i = 0; i < n; i++) {
    int a;
    b->failed = rpi_axis(&a, b->name, axes[i], ndim);
    if (!b->failed && seen[a]) rpi_build_fail(b, RP_ERR_ARGUMENT, "Axis %d is given twice.", axes[i]);
    if (b->failed) return b->failed;
    seen[a] = true;
  }
  *nout = 0;
  for (int i = 0; i < ndim; i++)
    if (n < 0 || seen[i]) out[(*nout)++] = i;
  return 0;
}
