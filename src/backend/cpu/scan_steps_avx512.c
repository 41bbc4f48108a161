/* Steps of running reductions, avx512: see scan.h. */
#define SCAN_ISA avx512
#include "backend/cpu/scan_steps.inc.h"
