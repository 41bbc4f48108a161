/* Element-wise kernels of int32 and bool, select and the usual conversions, avx512: see
 * elem_kernel.h. */
#define ELEM_ISA avx512
#include "backend/cpu/elem_hot.inc.h"
