#define GEMM_ISA 2
#define GEMM_NAME rpi_gemm_avx2
#include "backend/cpu/gemm_loops.inc.h"
