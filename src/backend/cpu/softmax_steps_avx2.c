/* Steps of softmax, avx2: see softmax.h. */
#define SOFTMAX_ISA avx2
#include "backend/cpu/softmax_steps.inc.h"
