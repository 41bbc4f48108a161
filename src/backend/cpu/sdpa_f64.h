/* Attention in double. */
#ifndef RPI_BACKEND_CPU_SDPA_F64_H
#define RPI_BACKEND_CPU_SDPA_F64_H

#include "backend/backend.h"

int rpi_sdpa_f64(const struct call* c);

#endif
