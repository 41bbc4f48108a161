/* The .npy format of NumPy, versions 1 to 3: one array.
 *
 *   "\x93NUMPY"  u8 major  u8 minor  u16 or u32 n   n bytes of header   data
 *   header: a Python dict, {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, then spaces
 *   and a newline
 *
 * Once rpi_npy_parse() has returned 0 the data lies inside the file. Refused: records, texts,
 * objects, dates and types that no dtype stands for; anything that is not those three keys. Bytes
 * after the data are allowed. Source: NEP 1 and the format's page of NumPy. */
#ifndef RPI_IO_NPY_H
#define RPI_IO_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RPI_NPY_NDIM = 32, RPI_NPY_HEADER = 640 };

struct rpi_npy {
  int dtype; /* number of mlx_dtype */
  int item;  /* bytes of an element */
  int swap;  /* reverse each group of this many bytes to read it here; 0: as it is */
  bool is_column_major;
  int ndim;
  int64_t shape[RPI_NPY_NDIM];
  size_t offset; /* of the data, from the start of the file */
  size_t bytes;
};

/* Check the file of `size` bytes at `data`; `op` and `name` are for messages. */
int rpi_npy_parse(struct rpi_npy* out, const char* op, const char* name, const void* data,
                  size_t size);

/* Everything before the data of a row-major array, a multiple of 64 bytes, into `out` of
 * RPI_NPY_HEADER bytes; `*n` is its length. RP_ERR_DTYPE for a dtype that has no name there. */
int rpi_npy_header(char* out, size_t* n, const char* op, int dtype, const int* shape, int ndim);

#endif
