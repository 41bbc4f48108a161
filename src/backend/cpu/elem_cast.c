/* astype for every pair of dtypes: see elem_cast.inc.h. The pairs that models use all the time are
 * here as well, as the fallback, and once per instruction set in elem_hot.inc.h. */
#include "backend/cpu/elem_cast.inc.h"

#define EACH_WHOLE(X, F) \
  X(F, BOOL) X(F, UINT8) X(F, UINT16) X(F, UINT32) X(F, UINT64) \
  X(F, INT8) X(F, INT16) X(F, INT32) X(F, INT64)
#define EACH_PAIR(X)                                                              \
  EACH_FROM_WHOLE(X, BOOL) EACH_FROM_WHOLE(X, UINT8) EACH_FROM_WHOLE(X, UINT16)   \
  EACH_FROM_WHOLE(X, UINT32) EACH_FROM_WHOLE(X, UINT64) EACH_FROM_WHOLE(X, INT8)  \
  EACH_FROM_WHOLE(X, INT16) EACH_FROM_WHOLE(X, INT32) EACH_FROM_WHOLE(X, INT64)   \
  EACH_WHOLE(X, FLOAT32) X(FLOAT32, FLOAT16) X(FLOAT32, FLOAT64) X(FLOAT32, BFLOAT16)  \
  X(FLOAT32, COMPLEX64)                                                           \
  EACH_WHOLE(X, FLOAT64) X(FLOAT64, FLOAT16) X(FLOAT64, FLOAT32) X(FLOAT64, BFLOAT16)  \
  X(FLOAT64, COMPLEX64)                                                           \
  EACH_WHOLE(X, COMPLEX64) X(COMPLEX64, FLOAT32) X(COMPLEX64, FLOAT64)            \
  X(FLOAT16, FLOAT32) X(BFLOAT16, FLOAT32)
#define EACH_FROM_WHOLE(X, F) EACH_WHOLE(X, F) X(F, FLOAT32) X(F, FLOAT64) X(F, COMPLEX64)

EACH_PAIR(CAST_DEFINE)

const rpi_elem_fn rpi_elem_casts[RPI_DTYPE_COUNT][RPI_DTYPE_COUNT] = {EACH_PAIR(CAST_ENTRY)};
