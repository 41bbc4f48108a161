/* Norms of one row; KERNELS names the table of this instruction set.
 *
 * Sums run in 64 lanes, element i in lane i % 64, ascending; lane i then takes lane i + 32, i + 16,
 * ..., i + 1. Everything is float (double for float64); the result is rounded once. */
#include "backend/cpu/norm.h"
#include "backend/cpu/rows.h"

enum { LANES = 64, BLOCK = 512 };

#define DEFINE_SUMS(T, S)                                                                       \
  static inline T add_lanes##S(T* lane) {                                                       \
    for (int half = LANES / 2; half; half /= 2)                                                 \
      for (int i = 0; i < half; i++) lane[i] += lane[i + half];                                 \
    return lane[0];                                                                             \
  }                                                                                             \
  /* Blocks start at multiples of 64, so lanes continue. */                                     \
  static inline void sum_block##S(T* restrict lane, const T* restrict x, int64_t n) {           \
    int64_t i = 0;                                                                              \
    for (; i + LANES <= n; i += LANES)                                                          \
      for (int l = 0; l < LANES; l++) lane[l] += x[i + l];                                      \
    for (int l = 0; i + l < n; l++) lane[l] += x[i + l];                                        \
  }                                                                                             \
  static inline void sum_squares##S(T* restrict lane, const T* restrict x, int64_t n, T mean) { \
    int64_t i = 0;                                                                              \
    for (; i + LANES <= n; i += LANES)                                                          \
      for (int l = 0; l < LANES; l++) {                                                         \
        T d = x[i + l] - mean;                                                                  \
        lane[l] += d * d;                                                                       \
      }                                                                                         \
    for (int l = 0; i + l < n; l++) {                                                           \
      T d = x[i + l] - mean;                                                                    \
      lane[l] += d * d;                                                                         \
    }                                                                                           \
  }
DEFINE_SUMS(float, )
DEFINE_SUMS(double, _f64)

/* Elements [at, at + n) as floats: in place where they are that already, else through `room`. */
static inline const float* block_of(float* room, const void* src, int64_t stride, int64_t at,
                                    int64_t n, int dtype) {
  if (dtype == RPI_FLOAT32 && stride == 1) return (const float*)src + at;
  row_load(room, (const char*)src + at * stride * (int64_t)rpi_dtype_size(dtype), stride, n, dtype);
  return room;
}

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static float mean_of_row(const struct norm_row* r) {
  float room[BLOCK], lane[LANES] = {0};
  for (int64_t at = 0; at < r->n; at += BLOCK) {
    int64_t n = least(BLOCK, r->n - at);
    sum_block(lane, block_of(room, r->x, r->x_stride, at, n, r->dtype), n);
  }
  return add_lanes(lane) * (1.0f / (float)r->n);
}

static float factor_of_row(const struct norm_row* r, float mean) {
  float room[BLOCK], lane[LANES] = {0};
  for (int64_t at = 0; at < r->n; at += BLOCK) {
    int64_t n = least(BLOCK, r->n - at);
    sum_squares(lane, block_of(room, r->x, r->x_stride, at, n, r->dtype), n, mean);
  }
  float variance = add_lanes(lane) * (1.0f / (float)r->n);
  return 1.0f / __builtin_sqrtf(variance + (float)r->eps);
}

/* y = (x - mean) factor weight + bias, each step rounded to float. x - 0 is x. */
static void write_row(const struct norm_row* r, float mean, float factor) {
  float room[BLOCK], room2[BLOCK], out[BLOCK];
  for (int64_t at = 0; at < r->n; at += BLOCK) {
    int64_t n = least(BLOCK, r->n - at);
    bool in_place = r->dtype == RPI_FLOAT32;
    float* restrict y = in_place ? (float*)r->y + at : out;
    const float* x = block_of(room, r->x, r->x_stride, at, n, r->dtype);
    if (r->weight) {
      const float* w = block_of(room2, r->weight, r->weight_stride, at, n, r->weight_dtype);
      for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * factor * w[i];
    } else {
      for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * factor;
    }
    if (r->bias) {
      const float* b = block_of(room2, r->bias, r->bias_stride, at, n, r->bias_dtype);
      for (int64_t i = 0; i < n; i++) y[i] += b[i];
    }
    if (!in_place) row_store((uint16_t*)r->y + at, out, n, r->dtype);
  }
}

/* float64: plain, strided as it comes. */
static void norm_f64(const struct norm_row* r, bool is_layer) {
  const double *x = r->x, *w = r->weight, *b = r->bias;
  double *y = r->y, lane[LANES] = {0}, mean = 0;
  if (is_layer) {
    for (int64_t i = 0; i < r->n; i++) lane[i % LANES] += x[i * r->x_stride];
    mean = add_lanes_f64(lane) * (1.0 / (double)r->n);
    memset(lane, 0, sizeof lane);
  }
  for (int64_t i = 0; i < r->n; i++) {
    double d = x[i * r->x_stride] - mean;
    lane[i % LANES] += d * d;
  }
  double factor = 1 / __builtin_sqrt(add_lanes_f64(lane) * (1.0 / (double)r->n) + r->eps);
  for (int64_t i = 0; i < r->n; i++) {
    y[i] = (x[i * r->x_stride] - mean) * factor;
    if (w) y[i] *= w[i * r->weight_stride];
    if (b) y[i] += b[i * r->bias_stride];
  }
}

static void rms_row(const struct norm_row* r) {
  if (r->dtype == RPI_FLOAT64) {
    norm_f64(r, false);
    return;
  }
  write_row(r, 0, factor_of_row(r, 0));
}

static void layer_row(const struct norm_row* r) {
  if (r->dtype == RPI_FLOAT64) {
    norm_f64(r, true);
    return;
  }
  float mean = mean_of_row(r);
  write_row(r, mean, factor_of_row(r, mean));
}

const struct norm_kernels KERNELS = {rms_row, layer_row};
