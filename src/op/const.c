/* Constants of graphs: see build.h. */
#include "op/build.h"
#include "op/number.h"

struct array* rpi_const(struct build* b, double value, int dtype) {
  uint64_t bits;
  if (b->failed) return NULL;
  rpi_store_double(&bits, dtype, value);
  return rpi_own(b, rpi_array_scalar(dtype, &bits));
}
