/* The loops of rope: see rope_loops.inc.h. */
#define KERNELS rpi_rope_avx512
#include "backend/cpu/rope_loops.inc.h"
