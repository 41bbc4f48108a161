/* Attention of one tile: see sdpa_tile.inc.h. */
#define KERNELS rpi_sdpa_base
#include "backend/cpu/sdpa_tile.inc.h"
