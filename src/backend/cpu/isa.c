/* The instruction set in use: see isa.h. */
#include "backend/cpu/isa.h"

#include <stdatomic.h>

static enum rpi_isa detect(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c") || !__builtin_cpu_supports("bmi2"))
    return RPI_ISA_SCALAR;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return RPI_ISA_AVX512;
  return RPI_ISA_AVX2;
#else
  return RPI_ISA_SCALAR;
#endif
}

static _Atomic(int) in_use; /* 1 more than the instruction set; 0 before the first question */

enum rpi_isa rpi_isa(void) {
  int known = atomic_load_explicit(&in_use, memory_order_relaxed);
  if (known) return (enum rpi_isa)(known - 1);
  enum rpi_isa found = detect();
  atomic_store_explicit(&in_use, (int)found + 1, memory_order_relaxed);
  return found;
}

enum rpi_isa rpi_isa_limit(enum rpi_isa most) {
  enum rpi_isa found = detect();
  if (found > most) found = most;
  atomic_store_explicit(&in_use, (int)found + 1, memory_order_relaxed);
  return found;
}
