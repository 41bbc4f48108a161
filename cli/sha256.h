/* SHA-256 (FIPS 180-4), to check what was downloaded. */
#ifndef CLI_SHA256_H
#define CLI_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct sha256 {
  uint32_t h[8];
  uint64_t bytes;
  unsigned char block[64];
};

void sha256_begin(struct sha256* s);
void sha256_add(struct sha256* s, const void* data, size_t n);
/* The digest in lower-case hexadecimal, terminated. Spends `s`. */
void sha256_end(struct sha256* s, char hex[65]);

#endif
