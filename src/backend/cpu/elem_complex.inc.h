/* Kernels of complex64 for one instruction set: ELEM_ISA is scalar, avx2 or avx512. Not
 * vectorized, but fused multiply-add is an instruction or a call. */
#include "backend/cpu/elem_kernel.h"
#define ELEM_JOIN_(a, b) a##b
#define ELEM_JOIN(a, b) ELEM_JOIN_(a, b)
#define ELEM_IS_STRUCT

#define ELEM_NAME(row) row##_c64
#define ELEM_TABLE ELEM_JOIN(rpi_elem_c64_, ELEM_ISA)
#define ELEM_T struct rp_c64
#define ELEM_MEM struct rp_c64
#define ELEM_PART float
#define ELEM_HAS_FLOAT 0
#define ELEM_HAS_FLOATC 1
#define ELEM_HAS_REAL 0
#define ELEM_HAS_ANY 1
#define ELEM_HAS_NUM 1
#define ELEM_HAS_INT 0
#define ELEM_HAS_LOGIC 0
#include "backend/cpu/elem_loops.inc.h"
