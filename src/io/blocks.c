/* The block formats of GGUF: see blocks.h.
 *
 *   bytes of one block (d, m: f16)
 *   Q4_0  d, 16 x two 4-bit q: element i in the low half of byte i, i + 16 in the high half
 *   Q4_1  d, m, 16 x two 4-bit q
 *   Q5_0  d, 32 fifth bits, 16 x two 4-bit q         Q5_1  d, m, then the same
 *   Q8_0  d, 32 x int8
 *   Q4_K  d, dmin, 12 bytes = 8 x (6-bit scale, 6-bit min), 128 x two 4-bit q
 *   Q5_K  d, dmin, 12 bytes, 256 fifth bits, 128 x two 4-bit q
 *   Q6_K  256 x low 4 bits, 256 x high 2 bits, 16 x int8 scale, d
 */
#include "io/blocks.h"

#include <math.h>
#include <string.h>

#include "base/attr.h"

static const struct rpi_block_info types[] = {
    {RPI_BLOCK_F32, "F32", 1, 4, 10, 0, true},
    {RPI_BLOCK_F16, "F16", 1, 2, 9, 0, true},
    {RPI_BLOCK_Q4_0, "Q4_0", 32, 18, -1, 4, true},
    {RPI_BLOCK_Q4_1, "Q4_1", 32, 20, -1, 4, true},
    {RPI_BLOCK_Q5_0, "Q5_0", 32, 22, -1, 0, true},
    {RPI_BLOCK_Q5_1, "Q5_1", 32, 24, -1, 0, true},
    {RPI_BLOCK_Q8_0, "Q8_0", 32, 34, -1, 8, true},
    {9, "Q8_1", 32, 40, -1, 0, false},
    {10, "Q2_K", 256, 84, -1, 0, false},
    {11, "Q3_K", 256, 110, -1, 0, false},
    {RPI_BLOCK_Q4_K, "Q4_K", 256, 144, -1, 0, true},
    {RPI_BLOCK_Q5_K, "Q5_K", 256, 176, -1, 0, true},
    {RPI_BLOCK_Q6_K, "Q6_K", 256, 210, -1, 0, true},
    {15, "Q8_K", 256, 292, -1, 0, false},
    {16, "IQ2_XXS", 256, 66, -1, 0, false},
    {17, "IQ2_XS", 256, 74, -1, 0, false},
    {18, "IQ3_XXS", 256, 98, -1, 0, false},
    {19, "IQ1_S", 256, 50, -1, 0, false},
    {20, "IQ4_NL", 32, 18, -1, 0, false},
    {21, "IQ3_S", 256, 110, -1, 0, false},
    {22, "IQ2_S", 256, 82, -1, 0, false},
    {23, "IQ4_XS", 256, 136, -1, 0, false},
    {RPI_BLOCK_I8, "I8", 1, 1, 5, 0, true},
    {RPI_BLOCK_I16, "I16", 1, 2, 6, 0, true},
    {RPI_BLOCK_I32, "I32", 1, 4, 7, 0, true},
    {RPI_BLOCK_I64, "I64", 1, 8, 8, 0, true},
    {RPI_BLOCK_F64, "F64", 1, 8, 11, 0, true},
    {29, "IQ1_M", 256, 56, -1, 0, false},
    {RPI_BLOCK_BF16, "BF16", 1, 2, 12, 0, true},
    {34, "TQ1_0", 256, 54, -1, 0, false},
    {35, "TQ2_0", 256, 66, -1, 0, false},
    {39, "MXFP4", 32, 17, -1, 0, false},
    {40, "NVFP4", 64, 36, -1, 0, false},
    {41, "Q1_0", 128, 18, -1, 0, false},
};

const struct rpi_block_info* rpi_block_info(uint32_t type) {
  for (size_t i = 0; i < RPI_COUNT_OF(types); i++)
    if (types[i].type == type) return &types[i];
  return NULL;
}

const char* rpi_block_readable_names(void) {
  return "F32, F16, BF16, F64, I8, I16, I32, I64, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K";
}

/* ---- f16 ---- */

static uint16_t read_u16(const uint8_t* p) { return (uint16_t)(p[0] | p[1] << 8); }

static float half_to_float(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023, bits;
  float f;

  if (exponent == 0) { /* zero and subnormals: exact in f32 */
    f = (float)fraction * 0x1p-24f;
    return sign ? -f : f;
  }
  bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static float read_half(const uint8_t* p) { return half_to_float(read_u16(p)); }

/* Nearest, ties to even. */
static uint16_t float_to_half(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);

  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return (uint16_t)(sign | 0x7e00);
  if (bits >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and up */
  if (bits < 0x38800000) {                                  /* below 2^-14: a multiple of 2^-24 */
    float magnitude;
    memcpy(&magnitude, &bits, sizeof magnitude);
    return (uint16_t)(sign | (uint16_t)lrintf(magnitude * 0x1p24f));
  }
  bits += 0xfff + (bits >> 13 & 1);
  return (uint16_t)(sign | (uint16_t)((bits - 0x38000000) >> 13));
}

/* -h * 2^k. Exact except on overflow to infinity, which clears *is_exact (as an infinite h does).
 */
static uint16_t negate_scaled(uint16_t h, int k, bool* is_exact) {
  int exponent = h >> 10 & 31;

  if (exponent > 0 && exponent + k < 31) return (uint16_t)((h ^ 0x8000) + (k << 10));
  uint16_t r = float_to_half(-half_to_float(h) * (float)(1 << k));
  if ((r & 0x7fff) == 0x7c00) *is_exact = false;
  return r;
}

/* ---- blocks to floats ---- */

static void decode_q4(const uint8_t* q, float d, float add, int zero, float* y) {
  for (int i = 0; i < 16; i++) {
    y[i] = (float)((q[i] & 15) - zero) * d + add;
    y[i + 16] = (float)((q[i] >> 4) - zero) * d + add;
  }
}

static void decode_q5(const uint8_t* high, const uint8_t* q, float d, float add, int zero,
                      float* y) {
  uint32_t h = high[0] | (uint32_t)high[1] << 8 | (uint32_t)high[2] << 16 | (uint32_t)high[3] << 24;

  for (int i = 0; i < 16; i++) {
    int lo = (int)(q[i] & 15) | (int)(h >> i & 1) << 4;
    int hi = (int)(q[i] >> 4) | (int)(h >> (i + 16) & 1) << 4;
    y[i] = (float)(lo - zero) * d + add;
    y[i + 16] = (float)(hi - zero) * d + add;
  }
}

static void decode_q4_0(const uint8_t* b, float* y) {
  decode_q4(b + 2, read_half(b), -0.0f, 8, y); /* x + -0 is x, -0 included */
}

static void decode_q4_1(const uint8_t* b, float* y) {
  decode_q4(b + 4, read_half(b), read_half(b + 2), 0, y);
}

static void decode_q5_0(const uint8_t* b, float* y) {
  decode_q5(b + 2, b + 6, read_half(b), -0.0f, 16, y);
}

static void decode_q5_1(const uint8_t* b, float* y) {
  decode_q5(b + 4, b + 8, read_half(b), read_half(b + 2), 0, y);
}

static void decode_q8_0(const uint8_t* b, float* y) {
  float d = read_half(b);

  for (int i = 0; i < 32; i++) y[i] = (float)(int8_t)b[2 + i] * d;
}

/* The j-th of 8 scales and mins, 6 bits each: the first four lie in the low 6 bits of bytes 0-3 and
 * 4-7, the rest have their low 4 bits in bytes 8-11 and their high 2 bits on top of bytes 0-7. */
static void unpack_scale(const uint8_t* s, int j, int* scale, int* min) {
  if (j < 4) {
    *scale = s[j] & 63;
    *min = s[j + 4] & 63;
  } else {
    *scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
    *min = (s[j + 4] >> 4) | (s[j] >> 6) << 4;
  }
}

/* Q4_K, and Q5_K when `high` (32 bytes; bit 2g and 2g + 1 of byte l extend group g) is not NULL. */
static void decode_k45(const uint8_t* b, const uint8_t* high, const uint8_t* q, float* y) {
  float d = read_half(b), dmin = read_half(b + 2);

  for (int j = 0; j < 8; j++) {
    const uint8_t* qj = q + 32 * (j / 2);
    int scale, min, shift = 4 * (j & 1);

    unpack_scale(b + 4, j, &scale, &min);
    float dj = d * (float)scale, mj = dmin * (float)min;
    for (int l = 0; l < 32; l++) {
      int v = (qj[l] >> shift & 15) | (high ? (high[l] >> j & 1) << 4 : 0);
      y[32 * j + l] = dj * (float)v - mj;
    }
  }
}

static void decode_q4_k(const uint8_t* b, float* y) { decode_k45(b, NULL, b + 16, y); }
static void decode_q5_k(const uint8_t* b, float* y) { decode_k45(b, b + 16, b + 48, y); }

/* Halves of 128 elements; in each, quarter k of 32 takes low bits from 64 bytes (two quarters to a
 * byte) and bits 2k, 2k + 1 of 32 high bytes. */
static void decode_q6_k(const uint8_t* b, float* y) {
  float d = read_half(b + 208);

  for (int half = 0; half < 2; half++) {
    const uint8_t *low = b + 64 * half, *high = b + 128 + 32 * half;
    const int8_t* scale = (const int8_t*)b + 192 + 8 * half;

    for (int k = 0; k < 4; k++)
      for (int l = 0; l < 32; l++) {
        int q = (low[l + 32 * (k & 1)] >> 4 * (k / 2) & 15) | (high[l] >> 2 * k & 3) << 4;
        y[128 * half + 32 * k + l] = d * (float)scale[2 * k + l / 16] * (float)(q - 32);
      }
  }
}

typedef void decode_fn(const uint8_t* block, float* y);

static decode_fn* decoder(uint32_t type) {
  switch (type) {
    case RPI_BLOCK_Q4_0:
      return decode_q4_0;
    case RPI_BLOCK_Q4_1:
      return decode_q4_1;
    case RPI_BLOCK_Q5_0:
      return decode_q5_0;
    case RPI_BLOCK_Q5_1:
      return decode_q5_1;
    case RPI_BLOCK_Q8_0:
      return decode_q8_0;
    case RPI_BLOCK_Q4_K:
      return decode_q4_k;
    case RPI_BLOCK_Q5_K:
      return decode_q5_k;
    case RPI_BLOCK_Q6_K:
      return decode_q6_k;
    default:
      return NULL;
  }
}

void rpi_block_dequantize(uint32_t type, const void* src, int64_t blocks, float* dst) {
  const struct rpi_block_info* info = rpi_block_info(type);
  decode_fn* decode = decoder(type);
  const uint8_t* b = src;

  for (int64_t i = 0; i < blocks; i++) decode(b + i * info->bytes, dst + i * info->elements);
}

void rpi_block_dequantize_f16(uint32_t type, const void* src, int64_t blocks, uint16_t* dst) {
  const struct rpi_block_info* info = rpi_block_info(type);
  decode_fn* decode = decoder(type);
  const uint8_t* b = src;
  float y[256];

  for (int64_t i = 0; i < blocks; i++) {
    decode(b + i * info->bytes, y);
    for (int k = 0; k < info->elements; k++) dst[i * info->elements + k] = float_to_half(y[k]);
  }
}

/* ---- blocks to affine groups ---- */

/* Eight bytes with a value below 16 in each, to eight neighbouring 4-bit fields. */
static uint32_t squeeze_nibbles(uint64_t x) {
  x = (x | x >> 4) & 0x00ff00ff00ff00ff;
  x = (x | x >> 8) & 0x0000ffff0000ffff;
  return (uint32_t)(x | x >> 16);
}

static void repack_q4(const uint8_t* q, uint32_t* out) {
  const uint64_t low = 0x0f0f0f0f0f0f0f0f;
  uint64_t a, b;

  memcpy(&a, q, 8);
  memcpy(&b, q + 8, 8);
  out[0] = squeeze_nibbles(a & low);
  out[1] = squeeze_nibbles(b & low);
  out[2] = squeeze_nibbles(a >> 4 & low);
  out[3] = squeeze_nibbles(b >> 4 & low);
}

static bool convert_q4_0(const uint8_t* b, int64_t blocks, uint32_t* packed, uint16_t* scales,
                         uint16_t* biases) {
  bool is_exact = true;

  for (int64_t i = 0; i < blocks; i++, b += 18) {
    repack_q4(b + 2, packed + 4 * i);
    scales[i] = read_u16(b);
    biases[i] = negate_scaled(scales[i], 3, &is_exact);
  }
  return is_exact;
}

static void convert_q4_1(const uint8_t* b, int64_t blocks, uint32_t* packed, uint16_t* scales,
                         uint16_t* biases) {
  for (int64_t i = 0; i < blocks; i++, b += 20) {
    repack_q4(b + 4, packed + 4 * i);
    scales[i] = read_u16(b);
    biases[i] = read_u16(b + 2);
  }
}

static bool convert_q8_0(const uint8_t* b, int64_t blocks, uint32_t* packed, uint16_t* scales,
                         uint16_t* biases) {
  bool is_exact = true;

  for (int64_t i = 0; i < blocks; i++, b += 34) {
    for (int k = 0; k < 4; k++) {
      uint64_t q;
      memcpy(&q, b + 2 + 8 * k, 8);
      q ^= 0x8080808080808080; /* int8 q to q + 128 */
      memcpy(packed + 8 * i + 2 * k, &q, 8);
    }
    scales[i] = read_u16(b);
    biases[i] = negate_scaled(scales[i], 7, &is_exact);
  }
  return is_exact;
}

bool rpi_block_to_affine(uint32_t type, const void* src, int64_t blocks, uint32_t* packed,
                         uint16_t* scales, uint16_t* biases) {
  switch (type) {
    case RPI_BLOCK_Q4_0:
      return convert_q4_0(src, blocks, packed, scales, biases);
    case RPI_BLOCK_Q8_0:
      return convert_q8_0(src, blocks, packed, scales, biases);
    default:
      convert_q4_1(src, blocks, packed, scales, biases);
      return true;
  }
}
