/* Tensors of floating values for tests of kernels: filled at random, read as double, compared. */
#ifndef TESTS_FLOAT_TENSOR_H
#define TESTS_FLOAT_TENSOR_H

#include <math.h>

#include "kernel_harness.h"
#include "op/scalar_half.h"

static inline double value_at(const struct tensor* t, int64_t k) {
  uint64_t raw = tensor_get(t, k);
  switch (t->view.dtype) {
    case RPI_FLOAT16:
      return (double)rp_f16_to_f32((uint16_t)raw);
    case RPI_BFLOAT16:
      return (double)rp_bf16_to_f32((uint16_t)raw);
    case RPI_FLOAT32:
      return (double)rp_from_bitsf((uint32_t)raw);
    case RPI_FLOAT64:
      return rp_from_bits(raw);
    default:
      break;
  }
  if (rpi_dtype_kind(t->view.dtype) != RPI_KIND_I) return (double)raw;
  int shift = 64 - 8 * (int)rpi_dtype_size(t->view.dtype);
  return (double)((int64_t)(raw << shift) >> shift);
}

static inline void set_value(struct tensor* t, int64_t k, double x) {
  uint64_t raw;
  switch (t->view.dtype) {
    case RPI_FLOAT16:
      raw = rp_f64_to_f16(x);
      break;
    case RPI_BFLOAT16:
      raw = rp_f64_to_bf16(x);
      break;
    case RPI_FLOAT32:
      raw = rp_bitsf((float)x);
      break;
    case RPI_FLOAT64:
      raw = rp_bits(x);
      break;
    default:
      raw = (uint64_t)(int64_t)x;
  }
  tensor_put(t, k, raw);
}

/* Values in [-1, 1) that depend on the seed and the index only. */
static inline double noise(uint64_t seed, int64_t k) {
  uint64_t z = (seed * 1000003u + (uint64_t)k + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

static inline struct tensor* random_tensor(int dtype, const int* shape, int ndim,
                                           enum layout layout, uint64_t seed) {
  struct tensor* t = tensor_new(dtype, shape, ndim, layout);
  for (int64_t k = 0; k < t->view.size; k++) set_value(t, k, noise(seed, k));
  return t;
}

/* The same values in another layout. */
static inline struct tensor* copy_as(const struct tensor* t, enum layout layout) {
  struct tensor* y = tensor_new(t->view.dtype, t->shape, t->view.ndim, layout);
  for (int64_t k = 0; k < t->view.size; k++) tensor_put(y, k, tensor_get(t, k));
  return y;
}

/* Part [from, to) of an axis, in the tensor's memory; released with free(). */
static inline struct tensor* part_of(const struct tensor* t, int axis, int from, int to) {
  struct tensor* y = malloc(sizeof *y);
  *y = *t;
  y->memory = NULL;
  y->first += from * t->stride[axis] * (int64_t)rpi_dtype_size(t->view.dtype);
  y->shape[axis] = to - from;
  y->view.shape = y->shape;
  y->view.stride = y->stride;
  y->view.size = rpi_shape_size(y->shape, y->view.ndim);
  y->view.is_row_major = rpi_is_row_major(y->stride, y->shape, y->view.ndim);
  return y;
}

static inline void expect_near(double got, double want, double tolerance) {
  if (!(fabs(got - want) <= tolerance)) fail_msg("got %.9g, want %.9g", got, want);
}

static inline void expect_same_bits(const struct tensor* a, const struct tensor* b) {
  expect_shape(a, b->shape, b->view.ndim);
  for (int64_t k = 0; k < a->view.size; k++)
    if (tensor_get(a, k) != tensor_get(b, k))
      fail_msg("element %lld: %.9g and %.9g", (long long)k, value_at(a, k), value_at(b, k));
}

#endif
