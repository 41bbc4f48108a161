/* Steps of softmax, avx512: see softmax.h. */
#define SOFTMAX_ISA avx512
#include "backend/cpu/softmax_steps.inc.h"
