/* Steps of reductions, scalar: see reduce.h. */
#define REDUCE_ISA scalar
#include "backend/cpu/reduce_steps.inc.h"
