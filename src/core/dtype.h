/* Dtypes: sizes, kinds, names and promotion. The numbering is mlx_dtype's. */
#ifndef RPI_CORE_DTYPE_H
#define RPI_CORE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rpi_c64 {
  float re, im;
};

enum rpi_dtype {
#define DTYPE(name, ctype, bytes, kind, label) RPI_##name,
#include "core/dtype.def"
#undef DTYPE
  RPI_DTYPE_COUNT
};

enum rpi_kind { RPI_KIND_B, RPI_KIND_U, RPI_KIND_I, RPI_KIND_F, RPI_KIND_C };

extern const uint8_t rpi_dtype_bytes[RPI_DTYPE_COUNT];
extern const uint8_t rpi_dtype_kinds[RPI_DTYPE_COUNT];
extern const char* const rpi_dtype_names[RPI_DTYPE_COUNT];

static inline size_t rpi_dtype_size(int d) { return rpi_dtype_bytes[d]; }
static inline int rpi_dtype_kind(int d) { return rpi_dtype_kinds[d]; }
static inline bool rpi_dtype_valid(int d) { return d >= 0 && d < RPI_DTYPE_COUNT; }
/* Floating or complex. */
static inline bool rpi_dtype_is_inexact(int d) { return rpi_dtype_kinds[d] >= RPI_KIND_F; }
static inline bool rpi_dtype_is_integer(int d) {
  return rpi_dtype_kinds[d] == RPI_KIND_U || rpi_dtype_kinds[d] == RPI_KIND_I;
}

/* The dtype that holds both, as MLX promotes: float16 with bfloat16 is float32, uint64 with a signed
 * integer is float32, integers with floats take the float. */
int rpi_dtype_promote(int a, int b);
/* The dtype itself if floating or complex, else float32. */
static inline int rpi_dtype_at_least_float(int d) {
  return rpi_dtype_is_inexact(d) ? d : RPI_FLOAT32;
}
/* The dtype that sums and products of bool and small integers are computed and returned in. */
int rpi_dtype_accumulate(int d);

#endif
