/* Reading GGUF files, versions 2 and 3, little-endian.
 *
 *   "GGUF"  u32 version  u64 tensors  u64 pairs
 *   pairs:   string key, u32 type, value
 *   tensors: string name, u32 ndim, u64 ne[ndim], u32 type, u64 offset
 *   padding to the alignment, then tensor data; offsets count from there
 *   (string: u64 bytes, then the bytes; array: u32 item type, u64 count, then the items)
 *
 * Invariants, once rpi_gguf_parse() has returned 0:
 * 1. Every length, count, offset and size lies inside the file; accessors need no further checks.
 * 2. Every tensor has 1 to 4 dimensions, all above 0, a readable type (blocks.h), whole blocks in
 * each row, an aligned offset, and bytes of its own.
 * 3. Names and keys are unique, not empty, and without NUL bytes.
 * Anything else is refused with a message that names the file, the field and the byte offset, and
 * no allocation is made from a number that the file's size does not bear out.
 *
 * The parsed structure borrows the bytes: keep the source while it, or a view from it, is in use.
 * Reading it is free of side effects, so any number of threads may. */
#ifndef RPI_IO_GGUF_H
#define RPI_IO_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "io/blocks.h"
#include "io/index.h"

enum rpi_gguf_value_type {
  RPI_GGUF_UINT8,
  RPI_GGUF_INT8,
  RPI_GGUF_UINT16,
  RPI_GGUF_INT16,
  RPI_GGUF_UINT32,
  RPI_GGUF_INT32,
  RPI_GGUF_FLOAT32,
  RPI_GGUF_BOOL,
  RPI_GGUF_STRING,
  RPI_GGUF_ARRAY,
  RPI_GGUF_UINT64,
  RPI_GGUF_INT64,
  RPI_GGUF_FLOAT64,
  RPI_GGUF_VALUE_TYPES
};

/* Text in the file: not terminated, any bytes. */
struct rpi_gguf_text {
  const char* at;
  size_t n;
};

/* An array in the file. Items of fixed size are packed at `at`, unaligned, little-endian. */
struct rpi_gguf_array {
  uint32_t type; /* of the items */
  int64_t count;
  const unsigned char* at;
};

/* A metadata pair. `at` is the value (after its type). */
struct rpi_gguf_pair {
  const char* key;
  uint32_t type;
  const unsigned char* at;
  size_t* starts; /* arrays of strings: offset in the file of each string's text; else NULL */
};

struct rpi_gguf_tensor {
  const char* name;
  const struct rpi_block_info* info;
  int ndim;
  int64_t ne[4]; /* file order: ne[0] is the fastest. Row-major shape: ne reversed. */
  size_t offset; /* from the start of the file */
  size_t bytes;
  int64_t elements;
};

struct rpi_gguf {
  const unsigned char* data;
  size_t size;
  uint32_t version;
  uint32_t alignment;
  struct rpi_gguf_pair* pairs; /* file order */
  int64_t npairs;
  struct rpi_gguf_tensor* tensors; /* file order */
  int64_t ntensors;
  struct rpi_name_index by_key, by_name;
  struct rpi_arena arena; /* keys, names, starts */
};

/* Check and index the file of `size` bytes at `data`. `op` and `name` are for messages. On failure
 * *out is left empty; on success rpi_gguf_release() frees it. */
int rpi_gguf_parse(struct rpi_gguf* out, const char* op, const char* name, const void* data,
                   size_t size);
void rpi_gguf_release(struct rpi_gguf* g);

/* "uint32", "string", ...; "unknown" outside the enum. */
const char* rpi_gguf_type_name(uint32_t type);
/* Bytes of a value of that type, 0 for strings and arrays. */
size_t rpi_gguf_type_bytes(uint32_t type);

/* NULL when there is no such pair or tensor. */
const struct rpi_gguf_pair* rpi_gguf_find(const struct rpi_gguf* g, const char* key);
const struct rpi_gguf_tensor* rpi_gguf_find_tensor(const struct rpi_gguf* g, const char* name);

/* The value of a pair, false when it is of another kind (and *out is untouched): int takes every
 * integer type and bool, except a uint64 above INT64_MAX; float takes both float types and
 * integers. */
bool rpi_gguf_get_int(const struct rpi_gguf_pair* p, int64_t* out);
bool rpi_gguf_get_float(const struct rpi_gguf_pair* p, double* out);
bool rpi_gguf_get_text(const struct rpi_gguf_pair* p, struct rpi_gguf_text* out);
bool rpi_gguf_get_array(const struct rpi_gguf_pair* p, struct rpi_gguf_array* out);

/* Item i, 0 <= i < count. The caller has checked the item type: integer or bool; any number; text
 * of a pair that is an array of strings. Constant time, no copy. */
int64_t rpi_gguf_array_int(const struct rpi_gguf_array* a, int64_t i);
double rpi_gguf_array_float(const struct rpi_gguf_array* a, int64_t i);
struct rpi_gguf_text rpi_gguf_array_text(const struct rpi_gguf* g, const struct rpi_gguf_pair* p,
                                         int64_t i);
/* Item i of an array of arrays. Takes time in proportion to i. */
struct rpi_gguf_array rpi_gguf_array_nested(const struct rpi_gguf_array* a, int64_t i);

#endif
