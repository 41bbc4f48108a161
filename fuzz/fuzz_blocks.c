/* libFuzzer entry for block formats: decoding any bytes stays inside its buffers. The first byte
 * picks the type, the rest are blocks. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/blocks.h"

static void decode(const struct rpi_block_info* info, const uint8_t* data, int64_t blocks) {
  size_t n = (size_t)(blocks * info->elements);
  float* f = malloc(n * sizeof *f);
  uint16_t *h = malloc(n * sizeof *h), *scales = malloc((size_t)blocks * 4);
  uint32_t* packed = malloc(n);

  if (f && h && scales && packed) {
    rpi_block_dequantize(info->type, data, blocks, f);
    rpi_block_dequantize_f16(info->type, data, blocks, h);
    if (info->affine_bits)
      rpi_block_to_affine(info->type, data, blocks, packed, scales, scales + blocks);
  }
  free(f);
  free(h);
  free(scales);
  free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const struct rpi_block_info* info = rpi_block_info(data[0] & 63);
  if (!info || !info->is_readable || info->dtype >= 0) return 0;
  int64_t blocks = (int64_t)(size - 1) / info->bytes;
  if (blocks) decode(info, data + 1, blocks);
  return 0;
}
