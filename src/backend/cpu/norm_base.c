/* Norms of rows: see norm_rows.inc.h. */
#define KERNELS rpi_norm_base
#include "backend/cpu/norm_rows.inc.h"
