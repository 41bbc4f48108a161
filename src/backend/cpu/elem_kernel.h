/* Block kernels of the element-wise operations: one flat loop per row of ops.def and dtype.
 *
 * Invariants:
 * 1. Inputs and output are contiguous; the output may be the memory of an input of the same item
 *    size (element i is read before it is written). Any alignment, any n.
 * 2. float16 and bfloat16 have no kernels of their own beyond conversion to and from float32,
 *    copying and selecting: a group is planned with conversions around the float32 kernel
 *    (elem_plan.c), which is what rounding once at the store means.
 * 3. Every instruction set gives the same bits: the tables differ in speed only. */
#ifndef RPI_BACKEND_CPU_ELEM_KERNEL_H
#define RPI_BACKEND_CPU_ELEM_KERNEL_H

#include <stdint.h>

#include "backend/cpu/isa.h"
#include "core/dtype.h"
#include "op/op.h"

typedef void (*rpi_elem_fn)(int64_t n, void* out, const void* const* in);

enum { RPI_ELEM_ROWS = RPI_OP_select + 1 };

/* A row's kernel for inputs of one dtype (select: of its last two), or NULL. Not for astype. */
rpi_elem_fn rpi_elem_kernel(int op, int dtype);
/* astype's kernel. To and from the half formats there is float32, and from float64 to them. */
rpi_elem_fn rpi_elem_cast(int from, int to);

/* Tables per file; the hot ones exist once per instruction set. Indexed by row, resp.
 * [from][to]. */
#define RPI_ELEM_TABLES(isa)                                         \
  extern const rpi_elem_fn rpi_elem_f32_##isa[RPI_ELEM_ROWS];        \
  extern const rpi_elem_fn rpi_elem_i32_##isa[RPI_ELEM_ROWS];        \
  extern const rpi_elem_fn rpi_elem_bool_##isa[RPI_ELEM_ROWS];       \
  extern const rpi_elem_fn rpi_elem_f64_##isa[RPI_ELEM_ROWS];        \
  extern const rpi_elem_fn rpi_elem_c64_##isa[RPI_ELEM_ROWS];        \
  extern const rpi_elem_fn rpi_elem_select_##isa[4]; /* by log2 of the item's bytes */ \
  extern const rpi_elem_fn rpi_elem_hot_cast_##isa[RPI_DTYPE_COUNT][RPI_DTYPE_COUNT];
RPI_ELEM_TABLES(scalar)
RPI_ELEM_TABLES(avx2)
RPI_ELEM_TABLES(avx512)
#undef RPI_ELEM_TABLES

extern const rpi_elem_fn rpi_elem_u8[RPI_ELEM_ROWS], rpi_elem_u16[RPI_ELEM_ROWS];
extern const rpi_elem_fn rpi_elem_u32[RPI_ELEM_ROWS], rpi_elem_u64[RPI_ELEM_ROWS];
extern const rpi_elem_fn rpi_elem_i8[RPI_ELEM_ROWS], rpi_elem_i16[RPI_ELEM_ROWS];
extern const rpi_elem_fn rpi_elem_i64[RPI_ELEM_ROWS];
extern const rpi_elem_fn rpi_elem_copy[4];
extern const rpi_elem_fn rpi_elem_casts[RPI_DTYPE_COUNT][RPI_DTYPE_COUNT];

#endif
