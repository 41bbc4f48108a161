/* The steps of softmax for one instruction set: SOFTMAX_ISA is scalar, avx2 or avx512. */
#include "backend/cpu/softmax.h"
#include "op/scalar.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define DEFINE_STEPS(T, EXP)                                                              \
  static void exp_less_##T(void* dst, const void* src, const void* top, int64_t n) {      \
    T *y = dst, m = *(const T*)top;                                                       \
    const T* x = src;                                                                     \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) y[i] = EXP(x[i] - m);            \
  }                                                                                       \
  static void divide_##T(void* dst, const void* src, const void* by, int64_t n) {         \
    T *y = dst, s = *(const T*)by;                                                        \
    const T* x = src;                                                                     \
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) y[i] = x[i] / s;                 \
  }
DEFINE_STEPS(float, rp_expf)
DEFINE_STEPS(double, rp_exp)

const struct rpi_exp_steps JOIN(rpi_exp_steps_, SOFTMAX_ISA)[2] = {{exp_less_float, divide_float},
                                                                  {exp_less_double, divide_double}};
