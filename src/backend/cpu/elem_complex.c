/* Element-wise kernels of complex64, scalar: see elem_kernel.h. */
#define ELEM_ISA scalar
#include "backend/cpu/elem_complex.inc.h"
