/* Steps of softmax, scalar: see softmax.h. */
#define SOFTMAX_ISA scalar
#include "backend/cpu/softmax_steps.inc.h"
