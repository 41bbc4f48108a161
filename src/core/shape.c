/* Shapes: checks, broadcasting, strides. */
#include "core/shape.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

int64_t rpi_shape_size(const int* dim, int ndim) {
  int64_t n = 1;
  for (int i = 0; i < ndim; i++) n *= dim[i];
  return n;
}

int rpi_shape_check(const struct shape* s, const char* name) {
  int64_t n = 16; /* the widest dtype, so that bytes fit as well */
  for (int i = 0; i < s->ndim; i++)
    if (s->dim[i] == 0) return 0;
  for (int i = 0; i < s->ndim; i++)
    if (rpi_mul_overflows(n, (int64_t)s->dim[i], &n)) {
      char text[160];
      return rpi_fail(RP_ERR_SHAPE, "[%s] Shape %s has too many elements.", name,
                      rpi_shape_text(text, sizeof text, s->dim, s->ndim));
    }
  return 0;
}

int rpi_shape_make(struct shape* out, const char* name, const int* dims, int64_t ndim) {
  if (ndim < 0 || ndim > RPI_MAX_NDIM)
    return rpi_fail(RP_ERR_SHAPE, "[%s] %lld dimensions; at most %d are supported.", name,
                    (long long)ndim, RPI_MAX_NDIM);
  struct shape s = {.ndim = (int)ndim};
  for (int i = 0; i < s.ndim; i++) {
    if (dims[i] < 0)
      return rpi_fail(RP_ERR_SHAPE, "[%s] Negative dimension %d at axis %d.", name, dims[i], i);
    s.dim[i] = dims[i];
  }
  int rc = rpi_shape_check(&s, name);
  if (rc) return rc;
  *out = s;
  return 0;
}

bool rpi_shape_equal(const int* a, int na, const int* b, int nb) {
  return na == nb && (na == 0 || memcmp(a, b, (size_t)na * sizeof *a) == 0);
}

int rpi_shape_broadcast(struct shape* out, const char* name, const int* a, int na, const int* b,
                        int nb) {
  struct shape r = {.ndim = na > nb ? na : nb};

  for (int i = 1; i <= r.ndim; i++) { /* axes counted from the right */
    int m = i <= na ? a[na - i] : 1;
    int n = i <= nb ? b[nb - i] : 1;

    if (m != n && m != 1 && n != 1) {
      char ta[160], tb[160];
      return rpi_fail(RP_ERR_SHAPE, "[%s] Shapes %s and %s cannot be broadcast.", name,
                      rpi_shape_text(ta, sizeof ta, a, na), rpi_shape_text(tb, sizeof tb, b, nb));
    }
    /* Not the larger of the two: 0 against 1 is an empty axis. */
    r.dim[r.ndim - i] = m == 1 ? n : m;
  }
  int rc = rpi_shape_check(&r, name);
  if (rc) return rc;
  *out = r;
  return 0;
}

int rpi_axis(int* out, const char* name, int axis, int ndim) {
  if (axis < -ndim || axis >= ndim)
    return rpi_fail(RP_ERR_INDEX, "[%s] Axis %d is out of bounds for an array with %d dimensions.",
                    name, axis, ndim);
  *out = axis < 0 ? axis + ndim : axis;
  return 0;
}

void rpi_row_major(int64_t* stride, const int* dim, int ndim) {
  int64_t step = 1;
  for (int i = ndim - 1; i >= 0; i--) {
    stride[i] = step;
    step *= dim[i];
  }
}

bool rpi_is_row_major(const int64_t* stride, const int* dim, int ndim) {
  int64_t step = 1;
  for (int i = ndim - 1; i >= 0; i--) {
    if (dim[i] == 0) return true;
    if (dim[i] != 1 && stride[i] != step) return false;
    step *= dim[i];
  }
  return true;
}

const char* rpi_shape_text(char* buf, int n, const int* dim, int ndim) {
  int at = snprintf(buf, (size_t)n, "(");
  for (int i = 0; i < ndim && at < n; i++)
    at += snprintf(buf + at, (size_t)(n - at), i ? ",%d" : "%d", dim[i]);
  if (at < n) snprintf(buf + at, (size_t)(n - at), ")");
  return buf;
}
