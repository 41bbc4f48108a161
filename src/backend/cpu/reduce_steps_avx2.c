/* Steps of reductions, avx2: see reduce.h. */
#define REDUCE_ISA avx2
#include "backend/cpu/reduce_steps.inc.h"
