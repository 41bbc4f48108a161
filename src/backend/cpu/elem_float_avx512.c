/* Element-wise kernels of float32, avx512: see elem_kernel.h. */
#define ELEM_ISA avx512
#include "backend/cpu/elem_float.inc.h"
