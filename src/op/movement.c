/* Shape rules of the operations whose result looks into their input's memory.
 *
 * The words of slices are described in op/slice.h, where the results lie in op/movement_view.c. */
#include <limits.h>
#include <string.h>

#include "base/err.h"
#include "op/op.h"
#include "op/slice.h"

enum { TEXT = 160 };

static int set_extent(struct rule* r, int axis, int64_t extent) {
  if (extent > INT_MAX)
    return rpi_fail(RP_ERR_SHAPE, "[%s] Axis %d would have %lld elements; at most %d are possible.",
                    r->name, axis, (long long)extent, INT_MAX);
  r->out[0].shape.dim[axis] = (int)extent;
  return 0;
}

static int check_ndim(const struct rule* r, int64_t ndim) {
  if (ndim > RPI_MAX_NDIM)
    return rpi_fail(RP_ERR_SHAPE, "[%s] %lld dimensions; at most %d are supported.", r->name,
                    (long long)ndim, RPI_MAX_NDIM);
  return 0;
}

static int check_axis(const struct rule* r, int64_t axis, int ndim) {
  if (axis < 0 || axis >= ndim)
    return rpi_fail(RP_ERR_INDEX, "[%s] Axis %lld is out of bounds; the array has %d dimensions.",
                    r->name, (long long)axis, ndim);
  return 0;
}

/* `n` different axes of `ndim`, ascending. */
static int check_axes(const struct rule* r, const int64_t* axis, int n, int ndim) {
  for (int i = 0; i < n; i++) {
    int rc = check_axis(r, axis[i], ndim);
    if (rc) return rc;
    if (i && axis[i] <= axis[i - 1])
      return rpi_fail(RP_ERR_ARGUMENT, "[%s] The axes are not in ascending order.", r->name);
  }
  return 0;
}

static int check_words(const struct rule* r, int words) {
  if (r->nattr < words)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d attributes; expected %d.", r->name, r->nattr, words);
  return 0;
}

int rpi_rule_like(struct rule* r) {
  rpi_rule_set_like(r, 0, r->in[0].dtype);
  return 0;
}

static int refuse_reshape(const struct rule* r, int64_t size, const int64_t* want, int n) {
  char from[TEXT], to[TEXT];
  int dim[RPI_MAX_NDIM];
  for (int i = 0; i < n; i++) dim[i] = (int)want[i];
  return rpi_fail(RP_ERR_SHAPE, "[%s] Cannot reshape %lld elements of shape %s into %s.", r->name,
                  (long long)size, rpi_shape_text(from, sizeof from, r->in[0].shape, r->in[0].ndim),
                  rpi_shape_text(to, sizeof to, dim, n));
}

/* Write n wanted extents from output axis `at` on, inferring one -1, so that they hold `size`. */
static int fill_extents(struct rule* r, int at, const int64_t* want, int n, int64_t size) {
  int64_t known = 1;
  int infer = -1;
  for (int i = 0; i < n; i++) {
    if (want[i] == -1 && infer >= 0)
      return rpi_fail(RP_ERR_SHAPE, "[%s] Only one extent can be inferred.", r->name);
    if (want[i] < -1)
      return rpi_fail(RP_ERR_SHAPE, "[%s] Negative dimension %lld.", r->name, (long long)want[i]);
    if (want[i] == -1)
      infer = i;
    else if (rpi_mul_overflows(known, want[i], &known))
      return refuse_reshape(r, size, want, n);
  }
  if (infer >= 0 && known == 0)
    return rpi_fail(RP_ERR_SHAPE, "[%s] No extent can be inferred beside an extent of 0.", r->name);
  if (infer >= 0 ? size % known != 0 : size != known) return refuse_reshape(r, size, want, n);
  for (int i = 0; i < n; i++) {
    int rc = set_extent(r, at + i, i == infer ? size / known : want[i]);
    if (rc) return rc;
  }
  return 0;
}

int rpi_rule_reshape(struct rule* r) {
  int rc = check_ndim(r, r->nattr);
  if (rc) return rc;
  r->nout = 1;
  r->out[0].dtype = r->in[0].dtype;
  r->out[0].shape.ndim = r->nattr;
  rc = fill_extents(r, 0, r->attr, r->nattr, rpi_shape_size(r->in[0].shape, r->in[0].ndim));
  return rc ? rc : rpi_shape_check(&r->out[0].shape, r->name);
}

int rpi_rule_reshape_like(struct rule* r) {
  const struct operand *x = &r->in[0], *y = &r->in[1];
  char from[TEXT], to[TEXT];
  rpi_rule_set_like(r, 1, x->dtype);
  if (rpi_shape_size(x->shape, x->ndim) == rpi_shape_size(y->shape, y->ndim)) return 0;
  return rpi_fail(RP_ERR_SHAPE, "[%s] Shape %s does not hold as many elements as %s.", r->name,
                  rpi_shape_text(from, sizeof from, x->shape, x->ndim),
                  rpi_shape_text(to, sizeof to, y->shape, y->ndim));
}

int rpi_rule_flatten(struct rule* r) {
  const struct operand* x = &r->in[0];
  int rc = check_words(r, 2);
  if (rc) return rc;
  int first = (int)r->attr[0], last = (int)r->attr[1];
  r->nout = 1;
  r->out[0].dtype = x->dtype;
  if (x->ndim == 0) {
    r->out[0].shape = (struct shape){.ndim = 1, .dim = {1}};
    return 0;
  }
  if ((rc = check_axis(r, first, x->ndim)) || (rc = check_axis(r, last, x->ndim))) return rc;
  if (last < first)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] The first axis %d comes after the last axis %d.",
                    r->name, first, last);
  struct shape* out = &r->out[0].shape;
  out->ndim = x->ndim - (last - first);
  memcpy(out->dim, x->shape, (size_t)first * sizeof(int));
  memcpy(out->dim + first + 1, x->shape + last + 1, (size_t)(x->ndim - last - 1) * sizeof(int));
  return set_extent(r, first, rpi_shape_size(x->shape + first, last - first + 1));
}

int rpi_rule_unflatten(struct rule* r) {
  const struct operand* x = &r->in[0];
  int n = r->nattr - 1, rc = check_words(r, 2);
  if (rc) return rc;
  if ((rc = check_axis(r, r->attr[0], x->ndim)) || (rc = check_ndim(r, x->ndim - 1 + n))) return rc;
  int axis = (int)r->attr[0];
  struct shape* out = &r->out[0].shape;
  r->nout = 1;
  r->out[0].dtype = x->dtype;
  out->ndim = x->ndim - 1 + n;
  memcpy(out->dim, x->shape, (size_t)axis * sizeof(int));
  memcpy(out->dim + axis + n, x->shape + axis + 1, (size_t)(x->ndim - axis - 1) * sizeof(int));
  rc = fill_extents(r, axis, r->attr + 1, n, x->shape[axis]);
  return rc ? rc : rpi_shape_check(out, r->name);
}

int rpi_rule_expand_dims(struct rule* r) {
  const struct operand* x = &r->in[0];
  struct shape* out = &r->out[0].shape;
  int rc = check_ndim(r, x->ndim + r->nattr);
  if (rc || (rc = check_axes(r, r->attr, r->nattr, x->ndim + r->nattr))) return rc;
  out->ndim = x->ndim + r->nattr;
  for (int i = 0, at = 0, from = 0; i < out->ndim; i++) {
    bool is_new = at < r->nattr && r->attr[at] == i;
    at += is_new;
    out->dim[i] = is_new ? 1 : x->shape[from++];
  }
  r->nout = 1;
  r->out[0].dtype = x->dtype;
  return 0;
}

int rpi_rule_squeeze(struct rule* r) {
  const struct operand* x = &r->in[0];
  struct shape* out = &r->out[0].shape;
  int rc = check_axes(r, r->attr, r->nattr, x->ndim);
  if (rc) return rc;
  for (int k = 0; k < r->nattr; k++) {
    if (x->shape[r->attr[k]] != 1) {
      char text[TEXT];
      return rpi_fail(RP_ERR_SHAPE, "[%s] Axis %d of shape %s does not have extent 1.", r->name,
                      (int)r->attr[k], rpi_shape_text(text, sizeof text, x->shape, x->ndim));
    }
  }
  out->ndim = 0;
  for (int i = 0, at = 0; i < x->ndim; i++) {
    if (at < r->nattr && r->attr[at] == i)
      at++;
    else
      out->dim[out->ndim++] = x->shape[i];
  }
  r->nout = 1;
  r->out[0].dtype = x->dtype;
  return 0;
}

int rpi_rule_transpose(struct rule* r) {
  const struct operand* x = &r->in[0];
  bool seen[RPI_MAX_NDIM] = {false};
  if (r->nattr != x->ndim)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d axes for an array with %d dimensions.", r->name,
                    r->nattr, x->ndim);
  for (int i = 0; i < x->ndim; i++) {
    int rc = check_axis(r, r->attr[i], x->ndim);
    if (rc) return rc;
    if (seen[r->attr[i]])
      return rpi_fail(RP_ERR_ARGUMENT, "[%s] Axis %d is given twice.", r->name, (int)r->attr[i]);
    seen[r->attr[i]] = true;
    r->out[0].shape.dim[i] = x->shape[r->attr[i]];
  }
  r->out[0].shape.ndim = x->ndim;
  r->out[0].dtype = x->dtype;
  r->nout = 1;
  return 0;
}

/* The result has `shape` if the input stretches to it. */
static int stretch(struct rule* r, const int* shape, int ndim) {
  const struct operand* x = &r->in[0];
  struct shape joint;
  bool fits = x->ndim <= ndim;
  for (int i = 1; fits && i <= x->ndim; i++) {
    int n = x->shape[x->ndim - i];
    fits = n == 1 || n == shape[ndim - i];
  }
  if (!fits) {
    char from[TEXT], to[TEXT];
    return rpi_fail(RP_ERR_SHAPE, "[%s] Cannot broadcast shape %s to %s.", r->name,
                    rpi_shape_text(from, sizeof from, x->shape, x->ndim),
                    rpi_shape_text(to, sizeof to, shape, ndim));
  }
  int rc = rpi_shape_make(&joint, r->name, shape, ndim);
  if (rc) return rc;
  r->out[0].shape = joint;
  r->out[0].dtype = x->dtype;
  r->nout = 1;
  return 0;
}

int rpi_rule_broadcast_to(struct rule* r) {
  int dim[RPI_MAX_NDIM], rc = check_ndim(r, r->nattr);
  if (rc) return rc;
  for (int i = 0; i < r->nattr; i++) {
    if (r->attr[i] < 0)
      return rpi_fail(RP_ERR_SHAPE, "[%s] Negative dimension %lld at axis %d.", r->name,
                      (long long)r->attr[i], i);
    dim[i] = (int)r->attr[i];
  }
  return stretch(r, dim, r->nattr);
}

int rpi_rule_broadcast_like(struct rule* r) {
  return stretch(r, r->in[1].shape, r->in[1].ndim);
}

int rpi_rule_broadcast_front(struct rule* r) {
  const struct operand *x = &r->in[0], *y = &r->in[1];
  int dim[RPI_MAX_NDIM];
  if (x->ndim < 1 || y->ndim < 1)
    return rpi_fail(RP_ERR_SHAPE, "[%s] A 0-d array has no first axis.", r->name);
  memcpy(dim, x->shape, sizeof *dim * (size_t)x->ndim);
  dim[0] = y->shape[0];
  return stretch(r, dim, x->ndim);
}

/* attr[0] trailing axes of both inputs take no part; the result keeps those of input 0. */
int rpi_rule_broadcast_join(struct rule* r) {
  const struct operand *x = &r->in[0], *y = &r->in[1];
  int tail = r->nattr ? (int)r->attr[0] : 0;
  struct shape joint;
  if (x->ndim < tail || y->ndim < tail)
    return rpi_fail(RP_ERR_SHAPE, "[%s] Arrays with %d and %d dimensions; at least %d are needed.",
                    r->name, x->ndim, y->ndim, tail);
  int rc = rpi_shape_broadcast(&joint, r->name, x->shape, x->ndim - tail, y->shape, y->ndim - tail);
  if (rc || (rc = check_ndim(r, joint.ndim + tail))) return rc;
  for (int i = 0; i < tail; i++) joint.dim[joint.ndim++] = x->shape[x->ndim - tail + i];
  return stretch(r, joint.dim, joint.ndim);
}

int rpi_rule_slice(struct rule* r) {
  const struct operand* x = &r->in[0];
  if (r->nattr != RPI_SLICE_WORDS * x->ndim)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] Bounds for %d axes; the array has %d dimensions.",
                    r->name, r->nattr / RPI_SLICE_WORDS, x->ndim);
  for (int i = 0; i < x->ndim; i++) {
    const int64_t* word = r->attr + RPI_SLICE_WORDS * i;
    int64_t first, count;
    if (word[2] == 0)
      return rpi_fail(RP_ERR_ARGUMENT, "[%s] The step of axis %d is 0.", r->name, i);
    rpi_slice_resolve(&first, &count, word, x->shape[i]);
    r->out[0].shape.dim[i] = (int)count;
  }
  r->out[0].shape.ndim = x->ndim;
  r->out[0].dtype = x->dtype;
  r->nout = 1;
  return 0;
}

int rpi_rule_part(struct rule* r) {
  const struct operand* x = &r->in[0];
  int rc = check_words(r, 3);
  if (rc || (rc = check_axis(r, r->attr[0], x->ndim))) return rc;
  int64_t axis = r->attr[0], index = r->attr[1], count = r->attr[2];
  if (count < 1 || index < 0 || index >= count)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] Part %lld of %lld.", r->name, (long long)index,
                    (long long)count);
  if (x->shape[axis] % count)
    return rpi_fail(RP_ERR_SHAPE, "[%s] Axis %lld of extent %d has no %lld equal parts.",
                    r->name, (long long)axis, x->shape[axis], (long long)count);
  rpi_rule_set_like(r, 0, x->dtype);
  r->out[0].shape.dim[axis] = (int)(x->shape[axis] / count);
  return 0;
}

/* Every element of the result must be one of the input's. */
static int check_reach(const struct rule* r, const int64_t* stride) {
  const struct shape* s = &r->out[0].shape;
  int64_t low = r->attr[0], high = low, size = rpi_shape_size(r->in[0].shape, r->in[0].ndim);
  bool fits = low >= 0;
  if (rpi_size(s) == 0) return 0;
  for (int i = 0; i < s->ndim && fits; i++) {
    int64_t way;
    fits = !rpi_mul_overflows(stride[i], (int64_t)(s->dim[i] - 1), &way) &&
           !(way < 0 ? rpi_add_overflows(low, way, &low) : rpi_add_overflows(high, way, &high));
  }
  if (!fits || low < 0 || high >= size)
    return rpi_fail(RP_ERR_INDEX, "[%s] The strides reach outside of the array's %lld elements.",
                    r->name, (long long)size);
  return 0;
}

int rpi_rule_as_strided(struct rule* r) {
  int dim[RPI_MAX_NDIM], rc = check_words(r, 2);
  if (rc) return rc;
  int64_t n = r->attr[1];
  if ((rc = check_ndim(r, n)) || (rc = check_words(r, 2 + 2 * (int)n))) return rc;
  for (int i = 0; i < n; i++) dim[i] = (int)r->attr[2 + i];
  rc = rpi_shape_make(&r->out[0].shape, r->name, dim, n);
  if (rc) return rc;
  r->out[0].dtype = r->in[0].dtype;
  r->nout = 1;
  return check_reach(r, r->attr + 2 + n);
}

int rpi_rule_view(struct rule* r) {
  const struct operand* x = &r->in[0];
  int rc = check_words(r, 1);
  if (rc) return rc;
  int dtype = (int)r->attr[0];
  if (!rpi_dtype_valid(dtype))
    return rpi_fail(RP_ERR_DTYPE, "[%s] %d is not a dtype.", r->name, dtype);
  int64_t from = (int64_t)rpi_dtype_size(x->dtype), to = (int64_t)rpi_dtype_size(dtype);
  rpi_rule_set_like(r, 0, dtype);
  if (from == to) return 0;
  if (x->ndim == 0)
    return rpi_fail(RP_ERR_SHAPE, "[%s] A 0-d %s cannot be viewed as %s of another size.", r->name,
                    rpi_dtype_names[x->dtype], rpi_dtype_names[dtype]);
  int64_t bytes = x->shape[x->ndim - 1] * from;
  if (bytes % to)
    return rpi_fail(RP_ERR_SHAPE, "[%s] A last axis of %lld bytes is not a whole number of %s.",
                    r->name, (long long)bytes, rpi_dtype_names[dtype]);
  return set_extent(r, x->ndim - 1, bytes / to);
}
