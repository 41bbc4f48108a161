/* Conversions between element types, as astype does: CAST_DEFINE(FROM, TO) makes a block kernel
 * FROM_to_TO. Float to integer goes toward zero, NaN to 0, and saturates; integers wrap; bool is
 * x != 0; complex gives its real part. The half formats go through float32. */
#include "backend/cpu/elem_kernel.h"
#include "op/generic.h"

#define CAST_MEM_BOOL uint8_t
#define CAST_MEM_UINT8 uint8_t
#define CAST_MEM_UINT16 uint16_t
#define CAST_MEM_UINT32 uint32_t
#define CAST_MEM_UINT64 uint64_t
#define CAST_MEM_INT8 int8_t
#define CAST_MEM_INT16 int16_t
#define CAST_MEM_INT32 int32_t
#define CAST_MEM_INT64 int64_t
#define CAST_MEM_FLOAT16 uint16_t
#define CAST_MEM_FLOAT32 float
#define CAST_MEM_FLOAT64 double
#define CAST_MEM_BFLOAT16 uint16_t
#define CAST_MEM_COMPLEX64 struct rp_c64

/* The conversions by the kind of the source: I whole, F float32, D float64, C complex64, H and B
 * halves. */
#define CAST_KIND_BOOL I
#define CAST_KIND_UINT8 I
#define CAST_KIND_UINT16 I
#define CAST_KIND_UINT32 I
#define CAST_KIND_UINT64 I
#define CAST_KIND_INT8 I
#define CAST_KIND_INT16 I
#define CAST_KIND_INT32 I
#define CAST_KIND_INT64 I
#define CAST_KIND_FLOAT16 H
#define CAST_KIND_FLOAT32 F
#define CAST_KIND_FLOAT64 D
#define CAST_KIND_BFLOAT16 B
#define CAST_KIND_COMPLEX64 C

#define CAST_I_BOOL(x) ((x) != 0)
#define CAST_I_UINT8(x) ((uint8_t)(x))
#define CAST_I_UINT16(x) ((uint16_t)(x))
#define CAST_I_UINT32(x) ((uint32_t)(x))
#define CAST_I_UINT64(x) ((uint64_t)(x))
#define CAST_I_INT8(x) ((int8_t)(x))
#define CAST_I_INT16(x) ((int16_t)(x))
#define CAST_I_INT32(x) ((int32_t)(x))
#define CAST_I_INT64(x) ((int64_t)(x))
#define CAST_I_FLOAT32(x) ((float)(x))
#define CAST_I_FLOAT64(x) ((double)(x))
#define CAST_I_COMPLEX64(x) rp_c64_make((float)(x), 0)

#define CAST_F_BOOL(x) rp_f32_to_bool(x)
#define CAST_F_UINT8(x) rp_f32_to_u8(x)
#define CAST_F_UINT16(x) rp_f32_to_u16(x)
#define CAST_F_UINT32(x) rp_f32_to_u32(x)
#define CAST_F_UINT64(x) rp_f32_to_u64(x)
#define CAST_F_INT8(x) rp_f32_to_i8(x)
#define CAST_F_INT16(x) rp_f32_to_i16(x)
#define CAST_F_INT32(x) rp_f32_to_i32(x)
#define CAST_F_INT64(x) rp_f32_to_i64(x)
#define CAST_F_FLOAT16(x) rp_f32_to_f16(x)
#define CAST_F_FLOAT32(x) (x)
#define CAST_F_FLOAT64(x) ((double)(x))
#define CAST_F_BFLOAT16(x) rp_f32_to_bf16(x)
#define CAST_F_COMPLEX64(x) rp_c64_make((x), 0)

#define CAST_D_BOOL(x) rp_f64_to_bool(x)
#define CAST_D_UINT8(x) rp_f64_to_u8(x)
#define CAST_D_UINT16(x) rp_f64_to_u16(x)
#define CAST_D_UINT32(x) rp_f64_to_u32(x)
#define CAST_D_UINT64(x) rp_f64_to_u64(x)
#define CAST_D_INT8(x) rp_f64_to_i8(x)
#define CAST_D_INT16(x) rp_f64_to_i16(x)
#define CAST_D_INT32(x) rp_f64_to_i32(x)
#define CAST_D_INT64(x) rp_f64_to_i64(x)
#define CAST_D_FLOAT16(x) rp_f64_to_f16(x)
#define CAST_D_FLOAT32(x) ((float)(x))
#define CAST_D_BFLOAT16(x) rp_f64_to_bf16(x)
#define CAST_D_COMPLEX64(x) rp_c64_make((float)(x), 0)

/* Nonzero if either part is. */
#define CAST_C_BOOL(x) (((x).re != 0) | ((x).im != 0))
#define CAST_C_UINT8(x) rp_f32_to_u8((x).re)
#define CAST_C_UINT16(x) rp_f32_to_u16((x).re)
#define CAST_C_UINT32(x) rp_f32_to_u32((x).re)
#define CAST_C_UINT64(x) rp_f32_to_u64((x).re)
#define CAST_C_INT8(x) rp_f32_to_i8((x).re)
#define CAST_C_INT16(x) rp_f32_to_i16((x).re)
#define CAST_C_INT32(x) rp_f32_to_i32((x).re)
#define CAST_C_INT64(x) rp_f32_to_i64((x).re)
#define CAST_C_FLOAT32(x) ((x).re)
#define CAST_C_FLOAT64(x) ((double)(x).re)

#define CAST_H_FLOAT32(x) rp_f16_to_f32(x)
#define CAST_B_FLOAT32(x) rp_bf16_to_f32(x)

#define CAST_CAT_(a, b, c, d) a##b##c##d
#define CAST_CAT(a, b, c, d) CAST_CAT_(a, b, c, d)

#define CAST_DEFINE(FROM, TO)                                                       \
  static void FROM##_to_##TO(int64_t n, void* out, const void* const* in) {         \
    const CAST_MEM_##FROM* a = in[0];                                               \
    CAST_MEM_##TO* r = out;                                                         \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)                            \
      r[i] = CAST_CAT(CAST_, CAST_KIND_##FROM, _, TO)(a[i]);                        \
  }
#define CAST_ENTRY(FROM, TO) [RPI_##FROM][RPI_##TO] = FROM##_to_##TO,
