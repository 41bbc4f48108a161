/* Products of integers and bool. */
#ifndef RPI_BACKEND_CPU_GEMM_PLAIN_H
#define RPI_BACKEND_CPU_GEMM_PLAIN_H

#include "backend/cpu/gemm.h"

int rpi_gemm_plain(const struct rpi_gemm* g);

#endif
