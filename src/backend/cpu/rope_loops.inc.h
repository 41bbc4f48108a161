/* The loops of rope; KERNELS names the table of this instruction set. */
#include "backend/cpu/rope.h"
#include "backend/cpu/rows.h"
#include "op/scalar_f32.h"

static void frequencies(float* f, double log_step, int64_t n) {
  for (int64_t i = 0; i < n; i++) f[i] = (float)rp_exp(-(double)i * log_step);
}

static void table(float* restrict cos, float* restrict sin, const float* restrict inv_freq,
                  float position, int64_t n) {
  for (int64_t i = 0; i < n; i++) cos[i] = rp_cosf(position * inv_freq[i]);
  for (int64_t i = 0; i < n; i++) sin[i] = rp_sinf(position * inv_freq[i]);
}

static void rotate(float* out_a, float* out_b, const float* a, const float* b,
                   const float* restrict cos, const float* restrict sin, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    float x = a[i], y = b[i];
    out_a[i] = x * cos[i] - y * sin[i];
    out_b[i] = x * sin[i] + y * cos[i];
  }
}

const struct rope_kernels KERNELS = {frequencies, table, rotate, row_load, row_store};
