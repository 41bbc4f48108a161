/* Reading and writing safetensors files.
 *
 *   u64 n   n bytes of JSON   tensor data
 *   JSON: { "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
 *           "__metadata__": {"key": "text", ...} }      offsets count from the end of the JSON
 *
 * Invariants, once rpi_safetensors_parse() has returned 0:
 * 1. Every tensor's bytes lie inside the file, are exactly what dtype and shape need, and are its
 * own.
 * 2. Names and metadata keys are unique UTF-8 without NUL; at most 64 dimensions.
 * Anything else is refused with a message that names the file, the field and the byte offset, and
 * no allocation is made from a number that the file's size does not bear out. Bytes that no tensor
 * claims are allowed. Unknown fields of a tensor are skipped.
 *
 * The 8-bit float types F8_E4M3, F8_E5M2 and F8_E8M0 load as their bytes, dtype uint8. */
#ifndef RPI_IO_SAFETENSORS_H
#define RPI_IO_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "io/sink.h"

struct rpi_safetensors_tensor {
  const char* name;
  int dtype; /* number of mlx_dtype */
  int ndim;
  const int64_t* shape;
  size_t offset; /* from the start of the file; of any alignment */
  size_t bytes;
};

struct rpi_safetensors_pair {
  const char* key;
  const char* value;
};

struct rpi_safetensors {
  struct rpi_safetensors_tensor* tensors; /* file order */
  int64_t ntensors;
  struct rpi_safetensors_pair* pairs; /* the metadata, file order */
  int64_t npairs;
  struct rpi_arena arena; /* names, shapes, texts */
};

/* Check and index the file of `size` bytes at `data`; nothing in *out points into it. `op` and
 * `name` are for messages. On failure *out is left empty; on success rpi_safetensors_release()
 * frees it. */
int rpi_safetensors_parse(struct rpi_safetensors* out, const char* op, const char* name,
                          const void* data, size_t size);
void rpi_safetensors_release(struct rpi_safetensors* st);

/* A tensor to write: contiguous row-major data. */
struct rpi_safetensors_item {
  const char* name;
  int dtype;
  int ndim;
  const int64_t* shape;
  const void* data;
};

/* Write a whole file to a sink (which the caller commits or aborts). Tensors are laid out by
 * falling size of their elements, then by name, and the header is padded to 8 bytes, so every
 * tensor is aligned and the bytes do not depend on the order of `items`. */
int rpi_safetensors_write(struct rpi_sink* sink, const struct rpi_safetensors_item* items,
                          int64_t nitems, const struct rpi_safetensors_pair* pairs, int64_t npairs);

/* The same to the file at `path`, replaced as a whole or left as it was: `items` may point into a
 * mapping of that very file. */
int rpi_safetensors_save(const char* op, const char* path, const struct rpi_safetensors_item* items,
                         int64_t nitems, const struct rpi_safetensors_pair* pairs, int64_t npairs);

#endif
