/* Element-wise kernels of the integers but int32: see elem_kernel.h. */

#define ELEM_NAME(row) row##_u8
#define ELEM_TABLE rpi_elem_u8
#define ELEM_T uint8_t
#define ELEM_MEM uint8_t
#define ELEM_PART uint8_t
#define ELEM_HAS_FLOAT 0
#define ELEM_HAS_FLOATC 0
#define ELEM_HAS_REAL 1
#define ELEM_HAS_ANY 1
#define ELEM_HAS_NUM 1
#define ELEM_HAS_INT 1
#define ELEM_HAS_LOGIC 0
#include "backend/cpu/elem_loops.inc.h"

#define ELEM_NAME(row) row##_u16
#define ELEM_TABLE rpi_elem_u16
#define ELEM_T uint16_t
#define ELEM_MEM uint16_t
#define ELEM_PART uint16_t
#define ELEM_HAS_FLOAT 0
#define ELEM_HAS_FLOATC 0
#define ELEM_HAS_REAL 1
#define ELEM_HAS_ANY 1
#define ELEM_HAS_NUM 1
#define ELEM_HAS_INT 1
#define ELEM_HAS_LOGIC 0
#include "backend/cpu/elem_loops.inc.h"

#define ELEM_NAME(row) row##_u32
#define ELEM_TABLE rpi_elem_u32
#define ELEM_T uint32_t
#define ELEM_MEM uint32_t
#define ELEM_PART uint32_t
#define ELEM_HAS_FLOAT 0
#define ELEM_HAS_FLOATC 0
#define ELEM_HAS_REAL 1
#define ELEM_HAS_ANY 1
#define ELEM_HAS_NUM 1
#define ELEM_HAS_INT 1
#define ELEM_HAS_LOGIC 0
#include "backend/cpu/elem_loops.inc.h"

#define ELEM_NAME(row) row##_u64
#define ELEM_TABLE rpi_elem_u64
#define ELEM_T uint64_t
#define ELEM_MEM uint64_t
#define ELEM_PART uint64_t
#define ELEM_HAS_FLOAT 0
#define ELEM_HAS_FLOATC 0
#define ELEM_HAS_REAL 1
#define ELEM_HAS_ANY 1
#define ELEM_HAS_NUM 1
#define ELEM_HAS_INT 1
#define ELEM_HAS_LOGIC 0
#include "backend/cpu/elem_loops.inc.h"

#define ELEM_NAME(row) row##_i8
#define ELEM_TABLE rpi_elem_i8
#define ELEM_T int8_t
#define ELEM_MEM int8_t
#define ELEM_PART int8_t
#define ELEM_HAS_FLOAT 0
#define ELEM_HAS_FLOATC 0
#define ELEM_HAS_REAL 1
#define ELEM_HAS_ANY 1
#define ELEM_HAS_NUM 1
#define ELEM_HAS_INT 1
#define ELEM_HAS_LOGIC 0
#include "backend/cpu/elem_loops.inc.h"

#define ELEM_NAME(row) row##_i16
#define ELEM_TABLE rpi_elem_i16
#define ELEM_T int16_t
#define ELEM_MEM int16_t
#define ELEM_PART int16_t
#define ELEM_HAS_FLOAT 0
#define ELEM_HAS_FLOATC 0
#define ELEM_HAS_REAL 1
#define ELEM_HAS_ANY 1
#define ELEM_HAS_NUM 1
#define ELEM_HAS_INT 1
#define ELEM_HAS_LOGIC 0
#include "backend/cpu/elem_loops.inc.h"

#define ELEM_NAME(row) row##_i64
#define ELEM_TABLE rpi_elem_i64
#define ELEM_T int64_t
#define ELEM_MEM int64_t
#define ELEM_PART int64_t
#define ELEM_HAS_FLOAT 0
#define ELEM_HAS_FLOATC 0
#define ELEM_HAS_REAL 1
#define ELEM_HAS_ANY 1
#define ELEM_HAS_NUM 1
#define ELEM_HAS_INT 1
#define ELEM_HAS_LOGIC 0
#include "backend/cpu/elem_loops.inc.h"
