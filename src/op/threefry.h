/* Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1,
 * 2, 3", 2011): a bijection of two counter words for each key. */
#ifndef RPI_OP_THREEFRY_H
#define RPI_OP_THREEFRY_H

#include "op/scalar_base.h"

#define RPI_ROTATE(x, r) ((x) << (r) | (x) >> (32 - (r)))
#define RPI_MIX(a, b, r) a += b, b = RPI_ROTATE(b, r), b ^= a
#define RPI_MIX_4(a, b, r0, r1, r2, r3) \
  RPI_MIX(a, b, r0), RPI_MIX(a, b, r1), RPI_MIX(a, b, r2), RPI_MIX(a, b, r3)

/* The words *a and *b of the counter become random. */
RP_FN void rpi_threefry(uint32_t k0, uint32_t k1, uint32_t* a, uint32_t* b) {
  uint32_t k2 = k0 ^ k1 ^ 0x1BD11BDAu, x = *a + k0, y = *b + k1;
  RPI_MIX_4(x, y, 13, 15, 26, 6), x += k1, y += k2 + 1;
  RPI_MIX_4(x, y, 17, 29, 16, 24), x += k2, y += k0 + 2;
  RPI_MIX_4(x, y, 13, 15, 26, 6), x += k0, y += k1 + 3;
  RPI_MIX_4(x, y, 17, 29, 16, 24), x += k1, y += k2 + 4;
  RPI_MIX_4(x, y, 13, 15, 26, 6), x += k2, y += k0 + 5;
  *a = x;
  *b = y;
}

#endif
