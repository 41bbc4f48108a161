/* Which instruction set the kernels use: found once, from the processor. All give the same bits. */
#ifndef RPI_BACKEND_CPU_ISA_H
#define RPI_BACKEND_CPU_ISA_H

enum rpi_isa { RPI_ISA_SCALAR, RPI_ISA_AVX2, RPI_ISA_AVX512, RPI_ISA_COUNT };

/* AVX2 includes FMA, F16C and BMI2; AVX512 includes F, BW, DQ and VL. */
enum rpi_isa rpi_isa(void);

/* For tests: use at most this one from now on (plans already prepared keep theirs). Returns the one
 * now in use, which is lower when the processor lacks `most`. */
enum rpi_isa rpi_isa_limit(enum rpi_isa most);

#endif
