#define GEMM_ISA 0
#define GEMM_NAME rpi_gemm_base
#include "backend/cpu/gemm_loops.inc.h"
