/* Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * 2011), used as jax.random and MLX use it: a key is two words, split hashes four counters. */
#include "lm/sampler.h"

#include <string.h>

static uint32_t rotate(uint32_t x, int by) { return x << by | x >> (32 - by); }

/* Hash the counter (x[0], x[1]) in place. */
static void threefry(struct lm_key key, uint32_t x[2]) {
  static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t ks[3] = {key.word[0], key.word[1], key.word[0] ^ key.word[1] ^ 0x1BD11BDA};

  x[0] += ks[0];
  x[1] += ks[1];
  for (uint32_t group = 0; group < 5; group++) {
    for (int i = 0; i < 4; i++) {
      x[0] += x[1];
      x[1] = rotate(x[1], rotations[group % 2][i]) ^ x[0];
    }
    x[0] += ks[(group + 1) % 3];
    x[1] += ks[(group + 2) % 3] + group + 1;
  }
}

struct lm_key lm_key_from_seed(uint64_t seed) {
  return (struct lm_key){{(uint32_t)(seed >> 32), (uint32_t)seed}};
}

/* The counters 0..3, hashed in the pairs (0, 2) and (1, 3). */
void lm_key_split(struct lm_key key, struct lm_key out[2]) {
  uint32_t a[2] = {0, 2}, b[2] = {1, 3};

  threefry(key, a);
  threefry(key, b);
  out[0] = (struct lm_key){{a[0], b[0]}};
  out[1] = (struct lm_key){{a[1], b[1]}};
}

uint32_t lm_key_bits(struct lm_key key) {
  uint32_t x[2] = {0, 0};

  threefry(key, x);
  return x[0];
}

/* The upper 23 bits as the fraction of a float in [1, 2), less 1. */
float lm_key_uniform(struct lm_key key) {
  struct lm_key pair[2];
  float one_to_two;

  lm_key_split(key, pair);
  uint32_t bits = lm_key_bits(pair[1]) >> 9 | 0x3F800000;
  memcpy(&one_to_two, &bits, sizeof one_to_two);
  return one_to_two - 1.0f;
}
