/* Which block kernel serves a row and dtype, on the instruction set in use. */
#include <string.h>

#include "backend/cpu/elem_kernel.h"

static void copy_8(int64_t n, void* out, const void* const* in) {
  memmove(out, in[0], (size_t)n);
}
static void copy_16(int64_t n, void* out, const void* const* in) {
  memmove(out, in[0], (size_t)n * 2);
}
static void copy_32(int64_t n, void* out, const void* const* in) {
  memmove(out, in[0], (size_t)n * 4);
}
static void copy_64(int64_t n, void* out, const void* const* in) {
  memmove(out, in[0], (size_t)n * 8);
}

const rpi_elem_fn rpi_elem_copy[4] = {copy_8, copy_16, copy_32, copy_64};

static int log2_bytes(int dtype) {
  return rpi_dtype_bytes[dtype] == 8 ? 3 : rpi_dtype_bytes[dtype] >> 1;
}

typedef const rpi_elem_fn (*table)[RPI_ELEM_ROWS];

#if defined(__x86_64__)
#define BY_ISA(name) {&name##_scalar, &name##_avx2, &name##_avx512}
#else
#define BY_ISA(name) {&name##_scalar, &name##_scalar, &name##_scalar}
#endif
#define ALWAYS(name) {&name, &name, &name}

static const table tables[RPI_DTYPE_COUNT][RPI_ISA_COUNT] = {
    [RPI_BOOL] = BY_ISA(rpi_elem_bool),
    [RPI_UINT8] = ALWAYS(rpi_elem_u8),
    [RPI_UINT16] = ALWAYS(rpi_elem_u16),
    [RPI_UINT32] = ALWAYS(rpi_elem_u32),
    [RPI_UINT64] = ALWAYS(rpi_elem_u64),
    [RPI_INT8] = ALWAYS(rpi_elem_i8),
    [RPI_INT16] = ALWAYS(rpi_elem_i16),
    [RPI_INT32] = BY_ISA(rpi_elem_i32),
    [RPI_INT64] = ALWAYS(rpi_elem_i64),
    [RPI_FLOAT32] = BY_ISA(rpi_elem_f32),
    [RPI_FLOAT64] = BY_ISA(rpi_elem_f64),
#if defined(__x86_64__)
    /* Not vectorized: wider registers would change nothing. */
    [RPI_COMPLEX64] = {&rpi_elem_c64_scalar, &rpi_elem_c64_avx2, &rpi_elem_c64_avx2},
#else
    [RPI_COMPLEX64] = ALWAYS(rpi_elem_c64_scalar),
#endif
};

static const rpi_elem_fn (*const selects[RPI_ISA_COUNT])[4] = BY_ISA(rpi_elem_select);
static const rpi_elem_fn (*const hot_casts[RPI_ISA_COUNT])[RPI_DTYPE_COUNT][RPI_DTYPE_COUNT] =
    BY_ISA(rpi_elem_hot_cast);

rpi_elem_fn rpi_elem_kernel(int op, int dtype) {
  enum rpi_isa isa = rpi_isa();
  if (op == RPI_OP_select) return (*selects[isa])[log2_bytes(dtype)];
  if (op == RPI_OP_copy) return rpi_elem_copy[log2_bytes(dtype)];
  return tables[dtype][isa] ? (*tables[dtype][isa])[op] : NULL;
}

rpi_elem_fn rpi_elem_cast(int from, int to) {
  rpi_elem_fn hot = (*hot_casts[rpi_isa()])[from][to];
  if (hot) return hot;
  return from == to ? rpi_elem_copy[log2_bytes(from)] : rpi_elem_casts[from][to];
}
