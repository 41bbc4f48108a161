/* Arrays over the bytes of files. */
#ifndef RPI_API_IO_H
#define RPI_API_IO_H

#include "core/array.h"
#include "io/source.h"

/* An array of `bytes` bytes at `offset` of a source, which keeps the source alive; a copy where the
 * bytes are not aligned for the dtype. NULL after raising. */
struct array* rpi_source_array(struct rpi_source* s, size_t offset, size_t bytes, int dtype,
                               const int* shape, int ndim);

/* Extents of a file as a shape, checked; `what` names the tensor for the message. */
int rpi_file_shape(struct shape* out, const char* op, const char* file, const char* what,
                   const int64_t* dims, int ndim);

#endif
