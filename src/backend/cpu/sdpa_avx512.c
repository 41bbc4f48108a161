/* Attention of one tile: see sdpa_tile.inc.h. */
#define KERNELS rpi_sdpa_avx512
#include "backend/cpu/sdpa_tile.inc.h"
