/* SHA-256 as FIPS 180-4 states it. The constants are the leading 32 fraction bits of the cube roots
 * of the first 64 primes, and of the square roots of the first 8. */
#include "cli/sha256.h"

#include <stdio.h>
#include <string.h>

static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void expand(uint32_t w[64], const unsigned char* p) {
  for (int i = 0; i < 16; i++, p += 4)
    w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
  for (int i = 16; i < 64; i++) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
           (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
  }
}

static void mix(uint32_t h[8], const unsigned char* block) {
  uint32_t w[64], s[8];
  expand(w, block);
  memcpy(s, h, sizeof s);
  for (int i = 0; i < 64; i++) {
    uint32_t a = s[0], e = s[4];
    uint32_t t = s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                 ((e & s[5]) ^ (~e & s[6])) + k[i] + w[i];
    uint32_t u = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                 ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += t;
    s[0] = t + u;
  }
  for (int i = 0; i < 8; i++) h[i] += s[i];
}

void sha256_begin(struct sha256* s) {
  static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(s->h, start, sizeof start);
  s->bytes = 0;
}

void sha256_add(struct sha256* s, const void* data, size_t n) {
  const unsigned char* p = data;
  size_t used = s->bytes % 64;
  s->bytes += n;
  while (n) {
    if (!used && n >= 64) {
      mix(s->h, p);
      p += 64, n -= 64;
      continue;
    }
    size_t take = n < 64 - used ? n : 64 - used;
    memcpy(s->block + used, p, take);
    p += take, n -= take, used += take;
    if (used < 64) return;
    mix(s->h, s->block);
    used = 0;
  }
}

void sha256_end(struct sha256* s, char hex[65]) {
  unsigned char tail[72] = {0x80};
  uint64_t bits = s->bytes * 8;
  size_t pad = 1 + (119 - s->bytes % 64) % 64; /* up to 8 bytes below a whole block */
  for (int i = 0; i < 8; i++) tail[pad + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
  sha256_add(s, tail, pad + 8);
  for (int i = 0; i < 8; i++) snprintf(hex + 8 * i, 9, "%08x", s->h[i]);
}
