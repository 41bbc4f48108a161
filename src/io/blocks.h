/* Element types of GGUF tensors, and the block formats among them.
 *
 * A block format stores a fixed number of neighbouring elements of a row (32 or 256) as small
 * integers with shared scales. Rows are whole blocks and follow each other without gaps, so a range
 * of rows is a range of blocks: callers split work by passing ranges. Source pointers need no
 * alignment. Everything is little-endian. Source of the layouts: the public GGUF / ggml
 * quantization formats. */
#ifndef RPI_IO_BLOCKS_H
#define RPI_IO_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Type numbers of tensor records in GGUF files (the ones that are read). */
enum rpi_block_type {
  RPI_BLOCK_F32 = 0,
  RPI_BLOCK_F16 = 1,
  RPI_BLOCK_Q4_0 = 2,
  RPI_BLOCK_Q4_1 = 3,
  RPI_BLOCK_Q5_0 = 6,
  RPI_BLOCK_Q5_1 = 7,
  RPI_BLOCK_Q8_0 = 8,
  RPI_BLOCK_Q4_K = 12,
  RPI_BLOCK_Q5_K = 13,
  RPI_BLOCK_Q6_K = 14,
  RPI_BLOCK_I8 = 24,
  RPI_BLOCK_I16 = 25,
  RPI_BLOCK_I32 = 26,
  RPI_BLOCK_I64 = 27,
  RPI_BLOCK_F64 = 28,
  RPI_BLOCK_BF16 = 30
};

struct rpi_block_info {
  uint32_t type;
  const char* name;
  int elements;     /* of a block; 1 for plain types */
  int bytes;        /* of a block */
  int dtype;        /* number of the same plain dtype (mlx_dtype), or -1 for blocks */
  int affine_bits;  /* 4 or 8 when rpi_block_to_affine() takes it, else 0 */
  bool is_readable; /* false: the name is known, the format is not supported */
};

/* NULL when no such type is known. */
const struct rpi_block_info* rpi_block_info(uint32_t type);

/* Names of every readable type, for messages: "F32, F16, ...". */
const char* rpi_block_readable_names(void);

/* Decode `blocks` blocks into elements * blocks floats. `type` must be a readable block format. The
 * value is d * q (+ m), computed in f32 in the order of the format's definition. */
void rpi_block_dequantize(uint32_t type, const void* src, int64_t blocks, float* dst);

/* The same, each value then rounded to f16 (nearest, ties to even; overflow gives infinity). */
void rpi_block_dequantize_f16(uint32_t type, const void* src, int64_t blocks, uint16_t* dst);

/* Repack Q4_0, Q4_1 or Q8_0 blocks as affine quantized groups of 32: w = scale * q + bias, q
 * unsigned, element 0 in the lowest bits of the first word. Each block gives 4 (4-bit) or 8 (8-bit)
 * words, one f16 scale and one f16 bias: Q4_0  q as stored, bias = -8 d     Q4_1  q as stored, bias
 * = m     Q8_0  q + 128, bias = -128 d The biases are exact unless they overflow f16 (|d| > 8188 or
 * 511.75) or d is infinite; returns true when all blocks were exact. When false, such a block's
 * bias is infinite: dequantize instead. */
bool rpi_block_to_affine(uint32_t type, const void* src, int64_t blocks, uint32_t* packed,
                         uint16_t* scales, uint16_t* biases);

#endif
