/* Shape rules of created values. */
#include <limits.h>

#include "base/err.h"
#include "op/op.h"

/* attr: start, step (bits of double), count, dtype. */
int rpi_rule_arange(struct rule* r) {
  if (r->nattr < 4) return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d attributes.", r->name, r->nattr);
  int64_t count = r->attr[2], dtype = r->attr[3];
  if (!rpi_dtype_valid((int)dtype) || dtype == RPI_BOOL || dtype == RPI_COMPLEX64)
    return rpi_fail(RP_ERR_DTYPE, "[%s] Not supported for %s.", r->name,
                    rpi_dtype_valid((int)dtype) ? rpi_dtype_names[dtype] : "this dtype");
  if (count < 0 || count > INT_MAX)
    return rpi_fail(RP_ERR_SHAPE, "[%s] %lld values; at most %d are possible.", r->name,
                    (long long)count, INT_MAX);
  r->out[0].shape.ndim = 1;
  r->out[0].shape.dim[0] = (int)count;
  r->out[0].dtype = (int)dtype;
  r->nout = 1;
  return 0;
}

/* attr: inverted, dtype, axes. */
int rpi_rule_number_of_elements(struct rule* r) {
  if (r->nattr < 2) return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d attributes.", r->name, r->nattr);
  if (!rpi_dtype_valid((int)r->attr[1]))
    return rpi_fail(RP_ERR_DTYPE, "[%s] %lld is not a dtype.", r->name, (long long)r->attr[1]);
  for (int i = 2; i < r->nattr; i++)
    if (r->attr[i] < 0 || r->attr[i] >= r->in[0].ndim)
      return rpi_fail(RP_ERR_INDEX,
                      "[%s] Axis %lld is out of bounds for an array with %d dimensions.", r->name,
                      (long long)r->attr[i], r->in[0].ndim);
  r->out[0].shape.ndim = 0;
  r->out[0].dtype = (int)r->attr[1];
  r->nout = 1;
  return 0;
}
