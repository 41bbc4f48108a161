/* Conversions of contiguous runs: see elem.h. */
#include <string.h>

#include "backend/cpu/elem.h"
#include "backend/cpu/elem_kernel.h"

void rpi_cpu_to_f32(float* dst, const void* src, int dtype, int64_t n) {
  rpi_elem_cast(dtype, RPI_FLOAT32)(n, dst, &src);
}

void rpi_cpu_from_f32(void* dst, int dtype, const float* src, int64_t n) {
  const void* in = src;
  rpi_elem_cast(RPI_FLOAT32, dtype)(n, dst, &in);
}

void rpi_cpu_to_f64(double* dst, const void* src, int dtype, int64_t n) {
  enum { RUN = 256 };
  float part[RUN];
  const void* in = src;
  if (dtype != RPI_FLOAT16 && dtype != RPI_BFLOAT16) {
    rpi_elem_cast(dtype, RPI_FLOAT64)(n, dst, &in);
    return;
  }
  rpi_elem_fn widen = rpi_elem_cast(RPI_FLOAT32, RPI_FLOAT64);
  for (int64_t i = 0; i < n; i += RUN) {
    int64_t run = n - i < RUN ? n - i : RUN;
    const void* floats = part;
    rpi_cpu_to_f32(part, (const uint16_t*)src + i, dtype, run);
    widen(run, dst + i, &floats);
  }
}

void rpi_cpu_from_f64(void* dst, int dtype, const double* src, int64_t n) {
  const void* in = src;
  rpi_elem_cast(RPI_FLOAT64, dtype)(n, dst, &in);
}
