/* Element-wise kernels of complex64, avx2: see elem_kernel.h. */
#define ELEM_ISA avx2
#include "backend/cpu/elem_complex.inc.h"
