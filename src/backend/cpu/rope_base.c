/* The loops of rope: see rope_loops.inc.h. */
#define KERNELS rpi_rope_base
#include "backend/cpu/rope_loops.inc.h"
