/* Element-wise kernels of float32, scalar: see elem_kernel.h. */
#define ELEM_ISA scalar
#include "backend/cpu/elem_float.inc.h"
