/* Steps of running reductions, scalar: see scan.h. */
#define SCAN_ISA scalar
#include "backend/cpu/scan_steps.inc.h"
