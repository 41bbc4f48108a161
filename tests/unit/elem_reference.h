/* What a row of ops.def gives for single elements, in the plainest way: its expression, one
 * element at a time; half formats through float. */
#ifndef TEST_ELEM_REFERENCE_H
#define TEST_ELEM_REFERENCE_H

#include <stdint.h>
#include <string.h>

#include "op/generic.h"
#include "op/op.h"

#define REF_IF_1(...) __VA_ARGS__
#define REF_IF_0(...)
#define REF_CAT_(a, b) a##b
#define REF_CAT(a, b) REF_CAT_(a, b)
#define REF_MEM_SAME REF_MEM
#define REF_MEM_BOOL uint8_t
#define REF_MEM_PART REF_PART

/* One function per dtype, a case per row: 0, or 1 if the row does not take it. */
#define REF_ROW(name, inputs, take, give, expr, ...) \
  REF_CAT(REF_IF_, REF_CAT(REF_HAS_, take))( \
      case RPI_OP_##name: { REF_MEM_##give r = (expr); memcpy(out, &r, sizeof r); return 0; })
#define REF_BODY(T)                                    \
  REF_MEM a, b;                                        \
  memcpy(&a, px, sizeof a);                            \
  memcpy(&b, py, sizeof b);                            \
  T x = a, y = b;                                      \
  (void)y;

#define REF_HAS_FLOAT 1
#define REF_HAS_FLOATC 1
#define REF_HAS_REAL 1
#define REF_HAS_ANY 1
#define REF_HAS_NUM 1
#define REF_HAS_INT 0
#define REF_HAS_LOGIC 0
#define REF_MEM float
#define REF_PART float
static int ref_f32(int op, void* out, const void* px, const void* py) {
  REF_BODY(float)
  switch (op) {
#define ELEM REF_ROW
#include "op/ops.def"
    default: return 1;
  }
}
#undef REF_MEM
#undef REF_PART
#define REF_MEM double
#define REF_PART double
static int ref_f64(int op, void* out, const void* px, const void* py) {
  REF_BODY(double)
  switch (op) {
#define ELEM REF_ROW
#include "op/ops.def"
    default: return 1;
  }
}
#undef REF_MEM
#undef REF_PART
#undef REF_HAS_FLOAT
#undef REF_HAS_REAL
#define REF_HAS_FLOAT 0
#define REF_HAS_REAL 0
#define REF_MEM struct rp_c64
#define REF_PART float
static int ref_c64(int op, void* out, const void* px, const void* py) {
  REF_BODY(struct rp_c64)
  switch (op) {
#define ELEM REF_ROW
#include "op/ops.def"
    default: return 1;
  }
}
#undef REF_HAS_FLOATC
#undef REF_HAS_REAL
#undef REF_HAS_INT
#define REF_HAS_FLOATC 0
#define REF_HAS_REAL 1
#define REF_HAS_INT 1
#undef REF_MEM
#undef REF_PART
#define REF_PART REF_MEM
#define REF_INTEGER(name, T)                                                  \
  static int ref_##name(int op, void* out, const void* px, const void* py) { \
    REF_BODY(T)                                                               \
    switch (op) {
#define REF_END      \
  default: return 1; \
    }                \
    }
#define REF_MEM uint8_t
REF_INTEGER(u8, uint8_t)
#define ELEM REF_ROW
#include "op/ops.def"
REF_END
#undef REF_MEM
#define REF_MEM uint16_t
REF_INTEGER(u16, uint16_t)
#define ELEM REF_ROW
#include "op/ops.def"
REF_END
#undef REF_MEM
#define REF_MEM uint32_t
REF_INTEGER(u32, uint32_t)
#define ELEM REF_ROW
#include "op/ops.def"
REF_END
#undef REF_MEM
#define REF_MEM uint64_t
REF_INTEGER(u64, uint64_t)
#define ELEM REF_ROW
#include "op/ops.def"
REF_END
#undef REF_MEM
#define REF_MEM int8_t
REF_INTEGER(i8, int8_t)
#define ELEM REF_ROW
#include "op/ops.def"
REF_END
#undef REF_MEM
#define REF_MEM int16_t
REF_INTEGER(i16, int16_t)
#define ELEM REF_ROW
#include "op/ops.def"
REF_END
#undef REF_MEM
#define REF_MEM int32_t
REF_INTEGER(i32, int32_t)
#define ELEM REF_ROW
#include "op/ops.def"
REF_END
#undef REF_MEM
#define REF_MEM int64_t
REF_INTEGER(i64, int64_t)
#define ELEM REF_ROW
#include "op/ops.def"
REF_END
#undef REF_MEM
#undef REF_HAS_NUM
#undef REF_HAS_LOGIC
#define REF_HAS_NUM 0
#define REF_HAS_LOGIC 1
#define REF_MEM uint8_t
REF_INTEGER(bool, bool)
#define ELEM REF_ROW
#include "op/ops.def"
REF_END
#undef REF_MEM

static inline float ref_widen(int dtype, const void* p) {
  uint16_t h;
  memcpy(&h, p, 2);
  return dtype == RPI_FLOAT16 ? rp_f16_to_f32(h) : rp_bf16_to_f32(h);
}

static inline void ref_narrow(int dtype, void* out, float f) {
  uint16_t h = dtype == RPI_FLOAT16 ? rp_f32_to_f16(f) : rp_f32_to_bf16(f);
  memcpy(out, &h, 2);
}

/* ELEM rows only. */
static inline int ref_row(int op, int in_dtype, int out_dtype, void* out, const void* x,
                          const void* y) {
  float fx, fy, fr;
  switch (in_dtype) {
    case RPI_BOOL: return ref_bool(op, out, x, y);
    case RPI_UINT8: return ref_u8(op, out, x, y);
    case RPI_UINT16: return ref_u16(op, out, x, y);
    case RPI_UINT32: return ref_u32(op, out, x, y);
    case RPI_UINT64: return ref_u64(op, out, x, y);
    case RPI_INT8: return ref_i8(op, out, x, y);
    case RPI_INT16: return ref_i16(op, out, x, y);
    case RPI_INT32: return ref_i32(op, out, x, y);
    case RPI_INT64: return ref_i64(op, out, x, y);
    case RPI_FLOAT32: return ref_f32(op, out, x, y);
    case RPI_FLOAT64: return ref_f64(op, out, x, y);
    case RPI_COMPLEX64: return ref_c64(op, out, x, y);
    default: break;
  }
  if (op == RPI_OP_copy) return memcpy(out, x, 2), 0;
  fx = ref_widen(in_dtype, x);
  fy = ref_widen(in_dtype, y);
  if (ref_f32(op, &fr, &fx, &fy)) return 1;
  if (out_dtype == in_dtype)
    ref_narrow(out_dtype, out, fr);
  else
    memcpy(out, &fr, 1); /* bool */
  return 0;
}

#endif
