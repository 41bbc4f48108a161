/* Norms of rows: see norm_rows.inc.h. */
#define KERNELS rpi_norm_avx2
#include "backend/cpu/norm_rows.inc.h"
