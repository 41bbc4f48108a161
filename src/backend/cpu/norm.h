/* One row of a norm, for each instruction set. */
#ifndef RPI_BACKEND_CPU_NORM_H
#define RPI_BACKEND_CPU_NORM_H

#include <stdint.h>

struct norm_row {
  const void *x, *weight, *bias; /* weight and bias may be NULL */
  void* y;                       /* packed, of x's dtype */
  int64_t n, x_stride, weight_stride, bias_stride;
  int dtype, weight_dtype, bias_dtype;
  double eps;
};

struct norm_kernels {
  void (*rms)(const struct norm_row* r);
  void (*layer)(const struct norm_row* r);
};

extern const struct norm_kernels rpi_norm_base, rpi_norm_avx2, rpi_norm_avx512;

#endif
