/* Loops of float32 for one instruction set: ELEM_ISA is scalar, avx2 or avx512. */
#include "backend/cpu/elem_kernel.h"
#define ELEM_JOIN_(a, b) a##b
#define ELEM_JOIN(a, b) ELEM_JOIN_(a, b)

#define ELEM_NAME(row) row##_f32
#define ELEM_TABLE ELEM_JOIN(rpi_elem_f32_, ELEM_ISA)
#define ELEM_T float
#define ELEM_MEM float
#define ELEM_PART float
#define ELEM_HAS_FLOAT 1
#define ELEM_HAS_FLOATC 1
#define ELEM_HAS_REAL 1
#define ELEM_HAS_ANY 1
#define ELEM_HAS_NUM 1
#define ELEM_HAS_INT 0
#define ELEM_HAS_LOGIC 0
#include "backend/cpu/elem_loops.inc.h"
