/* A growing byte string for tests that build files by hand. */
#ifndef TESTS_UNIT_BYTES_H
#define TESTS_UNIT_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
  unsigned char at[4096];
  size_t n;
};

static inline void put(struct bytes* b, const void* p, size_t n) {
  if (n > sizeof b->at - b->n) abort();
  memcpy(b->at + b->n, p, n);
  b->n += n;
}
static inline void put8(struct bytes* b, uint8_t v) { put(b, &v, 1); }
static inline void put16(struct bytes* b, uint16_t v) { put(b, &v, 2); }
static inline void put32(struct bytes* b, uint32_t v) { put(b, &v, 4); }
static inline void put64(struct bytes* b, uint64_t v) { put(b, &v, 8); }
static inline void put_f32(struct bytes* b, float v) { put(b, &v, 4); }
static inline void put_f64(struct bytes* b, double v) { put(b, &v, 8); }
/* u64 length, then the text without its NUL. */
static inline void put_text(struct bytes* b, const char* s) {
  put64(b, strlen(s));
  put(b, s, strlen(s));
}
static inline void pad(struct bytes* b, size_t multiple) {
  while (b->n % multiple) put8(b, 0);
}

#endif
