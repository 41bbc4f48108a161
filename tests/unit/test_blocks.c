/* Block formats of GGUF against values from an independent decoder, and their affine repacking. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "blocks_golden.h"
#include "io/blocks.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct golden {
  uint32_t type;
  const uint8_t* raw;
  size_t bytes;
  const uint32_t* bits;
  size_t elements;
} goldens[] = {
#define ROW(T, t) \
  {RPI_BLOCK_##T, golden_##t, sizeof golden_##t, golden_##t##_f32, COUNT(golden_##t##_f32)}
    ROW(Q4_0, q4_0), ROW(Q4_1, q4_1), ROW(Q5_0, q5_0), ROW(Q5_1, q5_1),
    ROW(Q8_0, q8_0), ROW(Q4_K, q4_k), ROW(Q5_K, q5_k), ROW(Q6_K, q6_k),
#undef ROW
};

static void every_format_decodes_to_the_bits_of_an_independent_decoder(void** state) {
  for (size_t g = 0; g < COUNT(goldens); g++) {
    const struct rpi_block_info* info = rpi_block_info(goldens[g].type);
    int64_t blocks = (int64_t)goldens[g].bytes / info->bytes;
    uint32_t got[256];

    assert_int_equal(blocks * info->elements, goldens[g].elements);
    rpi_block_dequantize(goldens[g].type, goldens[g].raw, blocks, (float*)got);
    for (size_t i = 0; i < goldens[g].elements; i++)
      if (got[i] != goldens[g].bits[i])
        fail_msg("%s element %zu: %08x, expected %08x", info->name, i, got[i], goldens[g].bits[i]);
  }
}

static void decoding_accepts_any_alignment_and_any_range_of_blocks(void** state) {
  const struct golden* q = &goldens[0];
  uint8_t shifted[COUNT(golden_q4_0) + 1];
  uint32_t got[32];

  memcpy(shifted + 1, q->raw, q->bytes);
  rpi_block_dequantize(q->type, shifted + 1 + 18, 1, (float*)got);
  assert_memory_equal(got, q->bits + 32, sizeof got);
}

/* Rounding to f16 by the compiler's own type, where it has one; else the test has nothing to
 * compare. */
static void decoding_to_f16_rounds_each_value_to_nearest_even(void** state) {
#ifdef __FLT16_MAX__
  for (size_t g = 0; g < COUNT(goldens); g++) {
    const struct rpi_block_info* info = rpi_block_info(goldens[g].type);
    uint16_t got[256];

    rpi_block_dequantize_f16(goldens[g].type, goldens[g].raw,
                             (int64_t)goldens[g].bytes / info->bytes, got);
    for (size_t i = 0; i < goldens[g].elements; i++) {
      float f;
      memcpy(&f, &goldens[g].bits[i], 4);
      _Float16 h = (_Float16)f;
      uint16_t want;
      memcpy(&want, &h, 2);
      if (got[i] != want)
        fail_msg("%s element %zu: %04x, expected %04x", info->name, i, got[i], want);
    }
  }
#else
  skip();
#endif
}

static float half_value(uint16_t h) {
  int e = h >> 10 & 31, m = h & 1023;
  double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
  return (float)(h & 0x8000 ? -v : v);
}

/* What an affine group of 32 says: scale * q + bias. */
static float affine_value(const uint32_t* packed, uint16_t scale, uint16_t bias, int bits, int i) {
  uint32_t q = packed[i * bits / 32] >> (i * bits % 32) & ((1u << bits) - 1);
  return fmaf(half_value(scale), (float)q, half_value(bias));
}

static void affine_repacking_keeps_every_value(void** state) {
  for (size_t g = 0; g < COUNT(goldens); g++) {
    const struct rpi_block_info* info = rpi_block_info(goldens[g].type);
    uint32_t packed[3 * 8];
    uint16_t scales[3], biases[3];

    if (!info->affine_bits) continue;
    assert_true(rpi_block_to_affine(info->type, goldens[g].raw, 3, packed, scales, biases));
    for (int i = 0; i < 96; i++) {
      int b = i / 32;
      float want, got = affine_value(packed + b * info->affine_bits, scales[b], biases[b],
                                     info->affine_bits, i % 32);
      memcpy(&want, &goldens[g].bits[i], 4);
      if (got != want) fail_msg("%s %d: %g, expected %g", info->name, i, got, want);
    }
  }
}

static void affine_words_hold_element_0_in_the_lowest_bits(void** state) {
  uint8_t q4[18] = {0x00, 0x3c}, q8[34] = {0x00, 0x3c};
  uint32_t packed[8];
  uint16_t scale, bias;

  for (int i = 0; i < 16; i++) q4[2 + i] = (uint8_t)(i | (15 - i) << 4);
  assert_true(rpi_block_to_affine(RPI_BLOCK_Q4_0, q4, 1, packed, &scale, &bias));
  assert_int_equal(packed[0], 0x76543210);
  assert_int_equal(packed[1], 0xfedcba98);
  assert_int_equal(packed[2], 0x89abcdef);
  assert_int_equal(packed[3], 0x01234567);
  assert_int_equal(scale, 0x3c00);
  assert_int_equal(bias, 0xc800); /* -8 */

  q8[2] = 0x80, q8[3] = 0xff, q8[4] = 0, q8[5] = 0x7f;
  assert_true(rpi_block_to_affine(RPI_BLOCK_Q8_0, q8, 1, packed, &scale, &bias));
  assert_int_equal(packed[0], 0xff807f00);
  assert_int_equal(bias, 0xd800); /* -128 */
}

/* Every finite f16 scale, in both formats that derive a bias from it. */
static void biases_are_exact_for_every_scale_or_reported(void** state) {
  static const struct {
    uint32_t type;
    float factor;
  } cases[] = {{RPI_BLOCK_Q4_0, -8}, {RPI_BLOCK_Q8_0, -128}};

  for (int c = 0; c < 2; c++)
    for (uint32_t h = 0; h < 0x10000; h++) {
      uint8_t block[34] = {(uint8_t)h, (uint8_t)(h >> 8)};
      uint32_t packed[8];
      uint16_t scale, bias;
      float want = half_value((uint16_t)h) * cases[c].factor;

      if (isnan(want)) continue;
      bool is_exact = rpi_block_to_affine(cases[c].type, block, 1, packed, &scale, &bias);
      assert_int_equal(is_exact, fabsf(want) < 65520);
      if (is_exact && half_value(bias) != want) fail_msg("scale %04x: bias %04x", h, bias);
    }
}

static void unknown_types_have_no_entry_and_unsupported_ones_keep_their_name(void** state) {
  assert_null(rpi_block_info(4));
  assert_null(rpi_block_info(0xffffffff));
  assert_string_equal(rpi_block_info(17)->name, "IQ2_XS");
  assert_false(rpi_block_info(17)->is_readable);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_format_decodes_to_the_bits_of_an_independent_decoder),
      cmocka_unit_test(decoding_accepts_any_alignment_and_any_range_of_blocks),
      cmocka_unit_test(decoding_to_f16_rounds_each_value_to_nearest_even),
      cmocka_unit_test(affine_repacking_keeps_every_value),
      cmocka_unit_test(affine_words_hold_element_0_in_the_lowest_bits),
      cmocka_unit_test(biases_are_exact_for_every_scale_or_reported),
      cmocka_unit_test(unknown_types_have_no_entry_and_unsupported_ones_keep_their_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
