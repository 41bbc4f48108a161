/* Steps of reductions, avx512: see reduce.h. */
#define REDUCE_ISA avx512
#include "backend/cpu/reduce_steps.inc.h"
