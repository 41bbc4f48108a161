/* Conversions of float16 and bfloat16, kept in uint16_t. Branch-free integer code.
 *
 * float16 gives bit for bit what VCVTPH2PS and VCVTPS2PH (nearest even) give for all inputs:
 * subnormals are kept, a signaling NaN comes out quiet with the payload that fits. bfloat16
 * follows the same rules, except that widening is a plain shift and leaves a NaN as it is. */
#ifndef RPI_OP_SCALAR_HALF_H
#define RPI_OP_SCALAR_HALF_H

#include "op/scalar_base.h"

RP_FN float rp_f16_to_f32(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16, a = h & 0x7FFFu;
  uint32_t normal = (a << 13) + (112u << 23);
  uint32_t special = (a << 13) | 0x7F800000u | (a > 0x7C00u ? 0x00400000u : 0u);
  /* A subnormal: its integer in the low bits of 2^-1 (whose ulp is 2^-24), less 2^-1. */
  uint32_t small = rp_bitsf(rp_from_bitsf(0x3F000000u | a) - 0.5f);
  uint32_t r = a < 0x0400u ? small : normal;
  r = a >= 0x7C00u ? special : r;
  return rp_from_bitsf(r | sign);
}

RP_FN uint16_t rp_f32_to_f16(float x) {
  uint32_t u = rp_bitsf(x), a = u & 0x7FFFFFFFu;
  uint32_t normal = (a - (112u << 23) + 0x0FFFu + ((a >> 13) & 1u)) >> 13;
  /* Below 2^-14: the sum with 2^-1 rounds to a multiple of 2^-24, the unit of the subnormals. */
  uint32_t small = rp_bitsf(rp_from_bitsf(a) + 0.5f) - 0x3F000000u;
  uint32_t nan = 0x7E00u | ((a >> 13) & 0x3FFu);
  uint32_t r = a < 0x38800000u ? small : normal;
  r = a >= 0x47800000u ? 0x7C00u : r; /* 2^16 and up; 65520 carries into infinity by itself */
  r = a > 0x7F800000u ? nan : r;
  return (uint16_t)(r | ((u >> 16) & 0x8000u));
}

RP_FN float rp_bf16_to_f32(uint16_t h) {
  return rp_from_bitsf((uint32_t)h << 16);
}

RP_FN uint16_t rp_f32_to_bf16(float x) {
  uint32_t u = rp_bitsf(x), a = u & 0x7FFFFFFFu;
  uint32_t r = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;
  return (uint16_t)(a > 0x7F800000u ? (u >> 16) | 0x0040u : r);
}

/* The float next to x whose last bit tells that something was cut off (round to odd): rounding it
 * again to a format at least two bits shorter gives what one rounding of x gives. */
RP_FN float rp_f64_to_f32_odd(double x) {
  float f = (float)x;
  uint32_t u = rp_bitsf(f);
  u = rp_abs((double)f) > rp_abs(x) ? u - 1 : u;
  u = (double)f != x ? u | 1u : u;
  return rp_from_bitsf(u);
}

RP_FN uint16_t rp_f64_to_f16(double x) {
  return rp_f32_to_f16(rp_f64_to_f32_odd(x));
}

RP_FN uint16_t rp_f64_to_bf16(double x) {
  return rp_f32_to_bf16(rp_f64_to_f32_odd(x));
}

#endif
