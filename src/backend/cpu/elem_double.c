/* Element-wise kernels of float64, scalar: see elem_kernel.h. */
#define ELEM_ISA scalar
#include "backend/cpu/elem_double.inc.h"
