/* What the tests of the engine share: small arrays, values read back, "1 + 1 = 2". */
#ifndef TESTS_ENGINE_HELP_H
#define TESTS_ENGINE_HELP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "mlx/c/mlx.h"

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#else
#define UNDER_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#else
#define UNDER_SANITIZER 0
#endif

static inline mlx_stream cpu(void) { return (mlx_stream){0}; } /* the default stream */

static inline mlx_array floats(const float* at, int n) {
  return mlx_array_new_data(at, &n, 1, MLX_FLOAT32);
}

static inline mlx_array full_of(float v, int n) {
  mlx_array x = mlx_array_new(), k = mlx_array_new_float(v);
  mlx_full(&x, &n, 1, k, MLX_FLOAT32, cpu());
  mlx_array_free(k);
  return x;
}

/* Whether the float32 array has exactly these values. */
static inline bool has_values(mlx_array a, const float* want, int n) {
  if (!a.ctx || mlx_array_size(a) != (size_t)n) return false;
  const float* got = mlx_array_data_float32(a);
  return got && memcmp(got, want, sizeof *got * (size_t)n) == 0;
}

/* Within a relative error of 1e-5, for functions that round. */
static inline bool is_near(mlx_array a, const float* want, int n) {
  if (!a.ctx || mlx_array_size(a) != (size_t)n) return false;
  const float* got = mlx_array_data_float32(a);
  for (int i = 0; got && i < n; i++) {
    float d = got[i] - want[i], bound = 1e-5f * (want[i] < 0 ? -want[i] : want[i]) + 1e-7f;
    if (!(d <= bound && -d <= bound)) return false;
  }
  return got != NULL;
}

/* The library works: 1 + 1 = 2. */
static inline bool is_usable(void) {
  mlx_array one = mlx_array_new_float(1), two = mlx_array_new();
  float v = 0;
  bool good = mlx_add(&two, one, one, cpu()) == 0 && mlx_array_item_float32(&v, two) == 0 && v == 2;
  mlx_array_free(one), mlx_array_free(two);
  return good;
}

/* x with x + 1 done n times, lazy. */
static inline mlx_array plus_ones(mlx_array x, int n) {
  mlx_array y = mlx_array_new(), one = mlx_array_new_float(1);
  mlx_array_set(&y, x);
  for (int i = 0; i < n; i++) mlx_add(&y, y, one, cpu());
  mlx_array_free(one);
  return y;
}

static inline mlx_array input(const mlx_vector_array in, size_t i) {
  mlx_array a = mlx_array_new();
  mlx_vector_array_get(&a, in, i);
  return a;
}

/* The first result of a closure of one input. The input is given up. */
static inline int apply_one(mlx_array* out, mlx_closure f, mlx_array in) {
  mlx_vector_array x = mlx_vector_array_new_value(in), y = mlx_vector_array_new();
  mlx_array_free(in);
  int rc = mlx_closure_apply(&y, f, x);
  if (!rc) rc = mlx_vector_array_get(out, y, 0);
  mlx_vector_array_free(x);
  mlx_vector_array_free(y);
  return rc;
}

static inline size_t active_memory(void) {
  size_t n = 0;
  mlx_get_active_memory(&n);
  return n;
}

static inline size_t cached_memory(void) {
  size_t n = 0;
  mlx_get_cache_memory(&n);
  return n;
}

#endif
