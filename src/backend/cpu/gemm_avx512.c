#define GEMM_ISA 512
#define GEMM_NAME rpi_gemm_avx512
#include "backend/cpu/gemm_loops.inc.h"
