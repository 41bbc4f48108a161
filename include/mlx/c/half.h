/* The 16-bit floating-point types: 2 bytes each, IEEE binary16 and bfloat16.
 *
 * They are the compiler's own types where it has them; HAS_FLOAT16 and HAS_BFLOAT16 are defined
 * then, and arithmetic works. Elsewhere they are the bits in a uint16_t. The accessors of array.h
 * exist either way. */
#ifndef MLX_C_HALF_H
#define MLX_C_HALF_H

#include <stdint.h>

#if defined(__ARM_FEATURE_FP16_SCALAR_ARITHMETIC)
#include <arm_fp16.h> /* has float16_t */
#define HAS_FLOAT16
#elif defined(__FLT16_MANT_DIG__)
__extension__ typedef _Float16 float16_t;
#define HAS_FLOAT16
#else
typedef uint16_t float16_t;
#endif

#if defined(__ARM_FEATURE_BF16)
#include <arm_bf16.h> /* has bfloat16_t */
#define HAS_BFLOAT16
#elif defined(__BFLT16_MANT_DIG__)
__extension__ typedef __bf16 bfloat16_t;
#define HAS_BFLOAT16
#else
typedef uint16_t bfloat16_t;
#endif

#endif
