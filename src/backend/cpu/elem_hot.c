/* Element-wise kernels of int32 and bool, select and the usual conversions, scalar: see
 * elem_kernel.h. */
#define ELEM_ISA scalar
#include "backend/cpu/elem_hot.inc.h"
