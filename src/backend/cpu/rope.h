/* Pieces of rope for each instruction set. */
#ifndef RPI_BACKEND_CPU_ROPE_H
#define RPI_BACKEND_CPU_ROPE_H

#include <stdint.h>

struct rope_kernels {
  /* exp(-i log_step), computed in double. */
  void (*frequencies)(float* f, double log_step, int64_t n);
  /* cos and sin of position * inv_freq[i], the product rounded to float. */
  void (*table)(float* cos, float* sin, const float* inv_freq, float position, int64_t n);
  /* (a, b) -> (a cos - b sin, a sin + b cos), n pairs of floats. In place if out is in. */
  void (*rotate)(float* out_a, float* out_b, const float* a, const float* b, const float* cos,
                 const float* sin, int64_t n);
  void (*load)(float* dst, const void* src, int64_t stride, int64_t n, int dtype);
  void (*store)(void* dst, const float* src, int64_t n, int dtype);
};

extern const struct rope_kernels rpi_rope_base, rpi_rope_avx2, rpi_rope_avx512;

#endif
