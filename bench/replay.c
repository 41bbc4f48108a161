/* What a call costs beyond its arithmetic: building operations, evaluating them eagerly, and replaying a
 * compiled chain of 10 x (10x10 matmul + add). Times are medians in microseconds, the least of several
 * rounds: on a shared machine a neighbour can halve the speed for seconds at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mlx/c/mlx.h"

enum { STEPS = 10, RUNS = 2000, ROUNDS = 8 };

static mlx_stream stream;
static mlx_array weight, bias;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static double median(double* t, int n) {
  qsort(t, (size_t)n, sizeof *t, by_value);
  return t[n / 2];
}

static void chain(mlx_array* out, mlx_array x) {
  mlx_array_set(out, x);
  for (int i = 0; i < STEPS; i++) {
    mlx_matmul(out, weight, *out, stream);
    mlx_add(out, *out, bias, stream);
  }
}

static int traced(mlx_vector_array* res, const mlx_vector_array in) {
  mlx_array x = mlx_array_new(), y = mlx_array_new();
  mlx_vector_array_get(&x, in, 0);
  chain(&y, x);
  int rc = mlx_vector_array_set_value(res, y);
  mlx_array_free(x);
  mlx_array_free(y);
  return rc;
}

static mlx_array square(float v) {
  mlx_array k = mlx_array_new_float(v), a = mlx_array_new(), b = mlx_array_new();
  mlx_full(&a, (int[]){10, 10}, 2, k, MLX_FLOAT32, stream);
  mlx_copy(&b, a, stream);
  mlx_array_eval(b);
  mlx_array_free(k);
  mlx_array_free(a);
  return b;
}

static double time_replay(mlx_array x) {
  static double t[RUNS];
  mlx_closure f = mlx_closure_new_func(traced), c = mlx_closure_new();
  mlx_compile(&c, f, false);
  mlx_vector_array in = mlx_vector_array_new_value(x);
  for (int i = -100; i < RUNS; i++) {
    double start = now_us();
    mlx_vector_array out = mlx_vector_array_new();
    mlx_closure_apply(&out, c, in);
    mlx_eval(out);
    mlx_vector_array_free(out);
    if (i >= 0) t[i] = now_us() - start;
  }
  mlx_vector_array_free(in);
  mlx_closure_free(f);
  mlx_closure_free(c);
  return median(t, RUNS);
}

static double time_eager(mlx_array x) {
  static double t[RUNS];
  for (int i = -100; i < RUNS; i++) {
    double start = now_us();
    mlx_array y = mlx_array_new();
    chain(&y, x);
    mlx_array_eval(y);
    mlx_array_free(y);
    if (i >= 0) t[i] = now_us() - start;
  }
  return median(t, RUNS);
}

/* One operation built and dropped again, never evaluated. */
static double time_build(mlx_array x) {
  static double t[RUNS];
  for (int i = -100; i < RUNS; i++) {
    double start = now_us();
    for (int k = 0; k < 100; k++) {
      mlx_array y = mlx_array_new();
      mlx_add(&y, x, bias, stream);
      mlx_array_free(y);
    }
    if (i >= 0) t[i] = (now_us() - start) / 100;
  }
  return median(t, RUNS);
}

int main(void) {
  double (*const measure[])(mlx_array) = {time_replay, time_eager, time_build};
  double best[] = {1e9, 1e9, 1e9};
  stream = mlx_default_cpu_stream_new();
  weight = square(0.1f);
  bias = square(0.5f);
  mlx_array x = square(1);
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < 3; i++) {
      double t = measure[i](x);
      if (t < best[i]) best[i] = t;
    }
  printf("replay and evaluate  %8.2f us  (bar: 5)\n", best[0]);
  printf("build and evaluate   %8.2f us  (bar: 15)\n", best[1]);
  printf("build one operation  %8.3f us  (bar: 0.3)\n", best[2]);
  mlx_array_free(x);
  mlx_array_free(weight);
  mlx_array_free(bias);
  mlx_stream_free(stream);
  return 0;
}
