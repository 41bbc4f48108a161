/* Steps of softmax and logsumexp for one instruction set. */
#ifndef RPI_BACKEND_CPU_SOFTMAX_H
#define RPI_BACKEND_CPU_SOFTMAX_H

#include <stdint.h>

/* All work on runs of float or of double; `dst` may be `src`. */
struct rpi_exp_steps {
  void (*exp_less)(void* dst, const void* src, const void* top, int64_t n); /* exp(src[i] - *top) */
  void (*divide)(void* dst, const void* src, const void* by, int64_t n);
};

/* [0] for float, [1] for double. */
extern const struct rpi_exp_steps rpi_exp_steps_scalar[2], rpi_exp_steps_avx2[2],
    rpi_exp_steps_avx512[2];

#endif
