/* Doubles as elements: see number.h. */
#include "op/number.h"

#include <stdint.h>

#include "core/dtype.h"
#include "op/scalar_half.h"

/* `low` and `end` are powers of two or 0: values in [low, end) have a whole part that fits. */
static double cut(double x, double low, double end) {
  if (x != x) return 0;
  return x < low ? low : x >= end ? end - 1 : x;
}

static void store_whole(void* out, int dtype, double x) {
  switch (dtype) {
    case RPI_UINT8: *(uint8_t*)out = (uint8_t)cut(x, 0, 0x1p8); break;
    case RPI_UINT16: *(uint16_t*)out = (uint16_t)cut(x, 0, 0x1p16); break;
    case RPI_UINT32: *(uint32_t*)out = (uint32_t)cut(x, 0, 0x1p32); break;
    case RPI_INT8: *(int8_t*)out = (int8_t)cut(x, -0x1p7, 0x1p7); break;
    case RPI_INT16: *(int16_t*)out = (int16_t)cut(x, -0x1p15, 0x1p15); break;
    case RPI_INT32: *(int32_t*)out = (int32_t)cut(x, -0x1p31, 0x1p31); break;
    /* The doubles end - 1 of 64 bits are the ends themselves. */
    case RPI_UINT64:
      *(uint64_t*)out = x >= 0x1p64 ? UINT64_MAX : (uint64_t)cut(x, 0, 0x1p64);
      break;
    default: *(int64_t*)out = x >= 0x1p63 ? INT64_MAX : (int64_t)cut(x, -0x1p63, 0x1p63); break;
  }
}

void rpi_store_double(void* out, int dtype, double x) {
  switch (dtype) {
    case RPI_BOOL: *(uint8_t*)out = x != 0; break;
    case RPI_FLOAT16: *(uint16_t*)out = rp_f64_to_f16(x); break;
    case RPI_BFLOAT16: *(uint16_t*)out = rp_f64_to_bf16(x); break;
    case RPI_FLOAT32: *(float*)out = (float)x; break;
    case RPI_FLOAT64: *(double*)out = x; break;
    case RPI_COMPLEX64: *(struct rpi_c64*)out = (struct rpi_c64){(float)x, 0}; break;
    default: store_whole(out, dtype, x); break;
  }
}
