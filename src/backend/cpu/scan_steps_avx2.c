/* Steps of running reductions, avx2: see scan.h. */
#define SCAN_ISA avx2
#include "backend/cpu/scan_steps.inc.h"
