/* Shape rules of indexing and joining.
 *
 * Slice sizes of gather and slice_dynamic are kept so that they replay: -1 is the whole axis, which
 * is what a size equal to the extent of an axis without an index means. */
#include "op/index.h"

#include <limits.h>
#include <string.h>

#include "base/err.h"
#include "op/op.h"
#include "op/slice.h"

enum { TEXT = 160 };

static int check_words(const struct rule* r, int64_t words) {
  if (r->nattr < words)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d attributes; expected %lld.", r->name, r->nattr,
                    (long long)words);
  return 0;
}

static int check_axis(const struct rule* r, int64_t axis, int ndim) {
  if (axis < 0 || axis >= ndim)
    return rpi_fail(RP_ERR_INDEX, "[%s] Axis %lld is out of bounds; the array has %d dimensions.",
                    r->name, (long long)axis, ndim);
  return 0;
}

/* n different axes of `ndim`, in any order. */
static int check_axes(const struct rule* r, const int64_t* axis, int64_t n, int ndim) {
  bool seen[RPI_MAX_NDIM] = {false};
  for (int64_t i = 0; i < n; i++) {
    int rc = check_axis(r, axis[i], ndim);
    if (rc) return rc;
    if (seen[axis[i]])
      return rpi_fail(RP_ERR_ARGUMENT, "[%s] Axis %lld is given twice.", r->name,
                      (long long)axis[i]);
    seen[axis[i]] = true;
  }
  return 0;
}

static int check_index(const struct rule* r, const struct operand* index) {
  if (!rpi_dtype_is_integer(index->dtype))
    return rpi_fail(RP_ERR_DTYPE, "[%s] Indices must be integers, not %s.", r->name,
                    rpi_dtype_names[index->dtype]);
  return 0;
}

static int refuse_pair(const struct rule* r, const char* what, const struct operand* x,
                       const struct operand* y) {
  char a[TEXT], b[TEXT];
  return rpi_fail(RP_ERR_SHAPE, "[%s] %s: shapes %s and %s.", r->name, what,
                  rpi_shape_text(a, sizeof a, x->shape, x->ndim),
                  rpi_shape_text(b, sizeof b, y->shape, y->ndim));
}

static int set_extent(struct rule* r, int axis, int64_t extent) {
  if (extent > INT_MAX)
    return rpi_fail(RP_ERR_SHAPE, "[%s] Axis %d would have %lld elements; at most %d are possible.",
                    r->name, axis, (long long)extent, INT_MAX);
  r->out[0].shape.dim[axis] = (int)extent;
  return 0;
}

/* An array without elements cannot fill a result that has some. */
static int check_source(const struct rule* r, int axis) {
  if (r->in[0].shape[axis] == 0 && rpi_size(&r->out[0].shape))
    return rpi_fail(RP_ERR_INDEX, "[%s] Axis %d has no elements to take.", r->name, axis);
  return rpi_shape_check(&r->out[0].shape, r->name);
}

static int join_too_many(const struct rule* r, int ndim) {
  if (ndim > RPI_MAX_NDIM)
    return rpi_fail(RP_ERR_SHAPE, "[%s] %d dimensions; at most %d are supported.", r->name, ndim,
                    RPI_MAX_NDIM);
  return 0;
}

int rpi_rule_take(struct rule* r) {
  const struct operand *a = &r->in[0], *index = &r->in[1];
  int rc = check_words(r, 1);
  if (rc || (rc = check_axis(r, r->attr[0], a->ndim)) || (rc = check_index(r, index))) return rc;
  int axis = (int)r->attr[0], tail = a->ndim - axis - 1;
  struct shape* out = &r->out[0].shape;
  if ((rc = join_too_many(r, a->ndim - 1 + index->ndim))) return rc;
  out->ndim = a->ndim - 1 + index->ndim;
  memcpy(out->dim, a->shape, (size_t)axis * sizeof(int));
  memcpy(out->dim + axis, index->shape, (size_t)index->ndim * sizeof(int));
  memcpy(out->dim + axis + index->ndim, a->shape + axis + 1, (size_t)tail * sizeof(int));
  r->out[0].dtype = a->dtype;
  r->nout = 1;
  return check_source(r, axis);
}

/* The other axes of both inputs are broadcast together. */
int rpi_rule_take_along_axis(struct rule* r) {
  const struct operand *a = &r->in[0], *index = &r->in[1];
  int rc = check_words(r, 1);
  if (rc || (rc = check_axis(r, r->attr[0], a->ndim)) || (rc = check_index(r, index))) return rc;
  int axis = (int)r->attr[0];
  if (a->ndim != index->ndim)
    return refuse_pair(r, "Array and indices need equal numbers of dimensions", a, index);
  rpi_rule_set_like(r, 1, a->dtype);
  for (int i = 0; i < a->ndim; i++) {
    int m = a->shape[i], n = index->shape[i];
    if (i == axis) continue;
    if (m != n && m != 1 && n != 1)
      return refuse_pair(r, "Array and indices cannot be broadcast", a, index);
    r->out[0].shape.dim[i] = n == 1 ? m : n;
  }
  return check_source(r, axis);
}

/* One slice size: what is wanted of an extent, which may be the whole (-1). */
static int slice_size(int* out, const struct rule* r, int axis, int64_t want, int extent) {
  int64_t n = want == -1 ? extent : want;
  if (n < 0 || n > extent)
    return rpi_fail(RP_ERR_SHAPE, "[%s] A slice of %lld of axis %d, which has extent %d.", r->name,
                    (long long)n, axis, extent);
  *out = (int)n;
  return 0;
}

/* attr: n, axes, then one slice size per axis of the first input; fills `size`. */
static int read_sizes(int* size, const struct rule* r, const struct operand* a) {
  int rc = check_words(r, 1);
  int64_t n = rc ? 0 : r->attr[0];
  if (rc) return rc;
  if (n < 0 || n > a->ndim)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] %lld axes for an array with %d dimensions.", r->name,
                    (long long)n, a->ndim);
  if (r->nattr != 1 + n + a->ndim)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] %lld slice sizes for an array with %d dimensions.",
                    r->name, (long long)(r->nattr - 1 - n), a->ndim);
  if ((rc = check_axes(r, r->attr + 1, n, a->ndim))) return rc;
  for (int i = 0; i < a->ndim && !rc; i++)
    rc = slice_size(&size[i], r, i, r->attr[1 + n + i], a->shape[i]);
  return rc;
}

int rpi_rule_gather(struct rule* r) {
  const struct operand* a = &r->in[0];
  int size[RPI_MAX_NDIM], rc = read_sizes(size, r, a);
  if (rc) return rc;
  struct shape joint = {.ndim = 0};
  if (r->nin - 1 != r->attr[0])
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d index arrays for %lld axes.", r->name, r->nin - 1,
                    (long long)r->attr[0]);
  for (int i = 1; i < r->nin; i++) {
    const struct operand* index = &r->in[i];
    if ((rc = check_index(r, index))) return rc;
    rc = rpi_shape_broadcast(&joint, r->name, joint.dim, joint.ndim, index->shape, index->ndim);
    if (rc) return rc;
  }
  if ((rc = join_too_many(r, joint.ndim + a->ndim))) return rc;
  memcpy(joint.dim + joint.ndim, size, (size_t)a->ndim * sizeof(int));
  joint.ndim += a->ndim;
  r->out[0].shape = joint;
  r->out[0].dtype = a->dtype;
  r->nout = 1;
  return rpi_shape_check(&joint, r->name);
}

int rpi_rule_concatenate(struct rule* r) {
  const struct operand* first = &r->in[0];
  int rc = check_words(r, 1);
  if (rc || (rc = check_axis(r, r->attr[0], first->ndim))) return rc;
  int axis = (int)r->attr[0];
  int64_t total = 0;
  rpi_rule_set_like(r, 0, first->dtype);
  for (int i = 0; i < r->nin; i++) {
    const struct operand* x = &r->in[i];
    bool fits = x->ndim == first->ndim;
    for (int d = 0; fits && d < x->ndim; d++) fits = d == axis || x->shape[d] == first->shape[d];
    if (!fits) return refuse_pair(r, "Arrays differ beside the joined axis", first, x);
    if (x->dtype != first->dtype)
      return rpi_fail(RP_ERR_DTYPE, "[%s] Arrays of %s and %s.", r->name,
                      rpi_dtype_names[first->dtype], rpi_dtype_names[x->dtype]);
    total += x->shape[axis];
  }
  rc = set_extent(r, axis, total);
  return rc ? rc : rpi_shape_check(&r->out[0].shape, r->name);
}

int rpi_rule_pad(struct rule* r) {
  const struct operand *a = &r->in[0], *value = &r->in[1];
  int rc = check_words(r, 1 + 2 * a->ndim);
  if (rc) return rc;
  if (value->ndim || value->dtype != a->dtype)
    return rpi_fail(RP_ERR_SHAPE, "[%s] The value to pad with must be one %s.", r->name,
                    rpi_dtype_names[a->dtype]);
  rpi_rule_set_like(r, 0, a->dtype);
  for (int i = 0; i < a->ndim; i++) {
    int64_t low = r->attr[1 + 2 * i], high = r->attr[2 + 2 * i];
    if (low < 0 || high < 0 || low > INT_MAX || high > INT_MAX)
      return rpi_fail(RP_ERR_ARGUMENT, "[%s] Axis %d is padded by %lld and %lld.", r->name, i,
                      (long long)low, (long long)high);
    if (r->attr[0] == RPI_PAD_EDGE && a->shape[i] == 0 && low + high)
      return rpi_fail(RP_ERR_SHAPE, "[%s] Axis %d has no edge to repeat.", r->name, i);
    if ((rc = set_extent(r, i, low + a->shape[i] + high))) return rc;
  }
  return rpi_shape_check(&r->out[0].shape, r->name);
}

static int check_update(const struct rule* r, const struct operand* update) {
  if (update->dtype != r->in[0].dtype)
    return rpi_fail(RP_ERR_DTYPE, "[%s] An update of %s for an array of %s.", r->name,
                    rpi_dtype_names[update->dtype], rpi_dtype_names[r->in[0].dtype]);
  return 0;
}

/* The update stretches to the slice. */
int rpi_rule_slice_update(struct rule* r) {
  const struct operand *a = &r->in[0], *update = &r->in[1];
  struct rule slice = *r;
  int rc = check_update(r, update);
  if (rc) return rc;
  slice.nin = 1;
  if ((rc = rpi_rule_slice(&slice))) return rc;
  const struct shape* s = &slice.out[0].shape;
  struct operand part = {s->dim, s->ndim, a->dtype};
  bool fits = update->ndim <= s->ndim;
  for (int i = 1; fits && i <= update->ndim; i++) {
    int n = update->shape[update->ndim - i];
    fits = n == 1 || n == s->dim[s->ndim - i];
  }
  if (!fits) return refuse_pair(r, "The update does not fit the slice", update, &part);
  rpi_rule_set_like(r, 0, a->dtype);
  return 0;
}

/* One integer per axis: 1-d, or 0-d for a single axis. */
static int check_start(const struct rule* r, const struct operand* start, int64_t n) {
  int rc = check_index(r, start);
  int64_t given = rpi_shape_size(start->shape, start->ndim);
  if (rc) return rc;
  if (start->ndim > 1 || given != n)
    return rpi_fail(RP_ERR_SHAPE, "[%s] %lld starts with %d dimensions for %lld axes.", r->name,
                    (long long)given, start->ndim, (long long)n);
  return 0;
}

int rpi_rule_slice_dynamic(struct rule* r) {
  const struct operand* a = &r->in[0];
  int size[RPI_MAX_NDIM], rc = read_sizes(size, r, a);
  if (rc || (rc = check_start(r, &r->in[1], r->attr[0]))) return rc;
  rpi_rule_set_like(r, 0, a->dtype);
  memcpy(r->out[0].shape.dim, size, (size_t)a->ndim * sizeof(int));
  return 0;
}

int rpi_rule_slice_update_dynamic(struct rule* r) {
  const struct operand *a = &r->in[0], *update = &r->in[1];
  int rc = check_update(r, update);
  if (rc || (rc = check_axes(r, r->attr, r->nattr, a->ndim))) return rc;
  if ((rc = check_start(r, &r->in[2], r->nattr))) return rc;
  bool fits = update->ndim <= a->ndim;
  for (int i = 1; fits && i <= update->ndim; i++)
    fits = update->shape[update->ndim - i] <= a->shape[a->ndim - i];
  /* An axis that the update lacks and that has a start is written at one place: it needs one. */
  for (int k = 0; fits && k < r->nattr; k++)
    fits = r->attr[k] >= a->ndim - update->ndim || a->shape[r->attr[k]] > 0;
  if (!fits) return refuse_pair(r, "The update does not fit the array", update, a);
  rpi_rule_set_like(r, 0, a->dtype);
  return 0;
}
