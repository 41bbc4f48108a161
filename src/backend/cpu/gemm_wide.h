/* Products of float64 and complex64. */
#ifndef RPI_BACKEND_CPU_GEMM_WIDE_H
#define RPI_BACKEND_CPU_GEMM_WIDE_H

#include "backend/cpu/gemm.h"

int rpi_gemm_wide(const struct rpi_gemm* g);

#endif
