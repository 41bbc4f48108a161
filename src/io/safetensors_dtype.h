/* Names of dtypes in safetensors headers. Reading takes the first row of that name, writing the
 * first of that dtype. */
#ifndef RPI_IO_SAFETENSORS_DTYPE_H
#define RPI_IO_SAFETENSORS_DTYPE_H

enum { RPI_SAFETENSORS_DTYPES = 17, RPI_SAFETENSORS_MAX_DIMS = 64 };

static const struct {
  const char* name;
  int dtype; /* number of mlx_dtype */
  int bytes;
} rpi_safetensors_dtypes[RPI_SAFETENSORS_DTYPES] = {
    {"BOOL", 0, 1},    {"U8", 1, 1},      {"U16", 2, 2},   {"U32", 3, 4},  {"U64", 4, 8},
    {"I8", 5, 1},      {"I16", 6, 2},     {"I32", 7, 4},   {"I64", 8, 8},  {"F16", 9, 2},
    {"F32", 10, 4},    {"F64", 11, 8},    {"BF16", 12, 2}, {"C64", 13, 8}, {"F8_E4M3", 1, 1},
    {"F8_E5M2", 1, 1}, {"F8_E8M0", 1, 1},
};

#endif
