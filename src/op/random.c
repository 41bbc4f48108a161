/* The rule of random bits. Attributes: bytes per value, then extents. The key is uint32 with a last
 * axis of 2; a key with axes before that is a batch of keys, whose axes come first in the result.
 */
#include <limits.h>

#include "base/err.h"
#include "op/op.h"

int rpi_rule_random_bits(struct rule* r) {
  const struct operand* key = &r->in[0];
  char text[256];
  int64_t width = r->nattr ? r->attr[0] : 0;
  if (width != 1 && width != 2 && width != 4)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] The width is %lld bytes; it can be 1, 2 or 4.", r->name,
                    (long long)width);
  if (key->dtype != RPI_UINT32)
    return rpi_fail(RP_ERR_DTYPE, "[%s] The key is %s, not uint32.", r->name,
                    rpi_dtype_names[key->dtype]);
  if (key->ndim < 1 || key->shape[key->ndim - 1] != 2)
    return rpi_fail(RP_ERR_SHAPE, "[%s] The key has shape %s, not (2).", r->name,
                    rpi_shape_text(text, sizeof text, key->shape, key->ndim));
  struct shape* s = &r->out[0].shape;
  int batch = key->ndim - 1, n = r->nattr - 1;
  if (batch + n > RPI_MAX_NDIM)
    return rpi_fail(RP_ERR_SHAPE, "[%s] %d dimensions; at most %d are possible.", r->name,
                    batch + n, RPI_MAX_NDIM);
  s->ndim = batch + n;
  memcpy(s->dim, key->shape, (size_t)batch * sizeof(int));
  for (int i = 0; i < n; i++) {
    if (r->attr[1 + i] < 0 || r->attr[1 + i] > INT_MAX)
      return rpi_fail(RP_ERR_SHAPE, "[%s] Extent %lld of axis %d is not possible.", r->name,
                      (long long)r->attr[1 + i], i);
    s->dim[batch + i] = (int)r->attr[1 + i];
  }
  r->out[0].dtype = width == 4 ? RPI_UINT32 : width == 2 ? RPI_UINT16 : RPI_UINT8;
  r->nout = 1;
  return rpi_shape_check(s, r->name);
}
