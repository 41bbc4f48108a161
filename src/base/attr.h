/* The compiler extensions this project uses, in one place. */
#ifndef RPI_BASE_ATTR_H
#define RPI_BASE_ATTR_H

#define RPI_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define RPI_UNUSED __attribute__((unused))
#define RPI_CONSTRUCTOR __attribute__((constructor))
#define RPI_NOINLINE __attribute__((noinline))
#define RPI_INLINE static inline __attribute__((always_inline))
#define RPI_PREFETCH(p) __builtin_prefetch(p)
#define RPI_LIKELY(x) __builtin_expect(!!(x), 1)
#define RPI_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Two's complement wrap, no trap: true when the mathematical result does not fit. */
#define rpi_mul_overflows(a, b, out) __builtin_mul_overflow(a, b, out)
#define rpi_add_overflows(a, b, out) __builtin_add_overflow(a, b, out)
#define RPI_COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

#endif
