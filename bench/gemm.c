/* Matrix products: GF/s of dense and GB/s of packed weights for the shapes of a small language model.
 *
 * usage: bench/gemm [THREADS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/cpu/gemm.h"
#include "backend/cpu/qmm.h"
#include "base/thread.h"
#include "core/dtype.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

/* Median of at least 20 runs, after a warm-up. */
static double median_time(void (*run)(void*), void* ctx) {
  enum { MAX = 2000 };
  static double t[MAX];
  int n = 0;
  run(ctx);
  for (double begin = now(); n < MAX && (n < 20 || now() - begin < 0.3); n++) {
    double start = now();
    run(ctx);
    t[n] = now() - start;
  }
  qsort(t, (size_t)n, sizeof *t, by_value);
  return t[n / 2];
}

static void run_dense(void* g) { rpi_gemm(g); }

static void dense(int64_t m, int64_t n, int64_t k, int transposed) {
  float *a = calloc((size_t)(m * k), 4), *b = calloc((size_t)(n * k), 4),
        *c = calloc((size_t)(m * n), 4);
  struct rpi_gemm g = {.dtype = RPI_FLOAT32, .m = m, .n = n, .k = k, .a = a, .a_row = k, .a_col = 1,
                       .b = b, .b_row = transposed ? 1 : n, .b_col = transposed ? k : 1, .out = c,
                       .ldo = n};
  double t = median_time(run_dense, &g);
  printf("f32 %5lldx%5lldx%5lld%s %10.2f us %7.1f GF/s\n", (long long)m, (long long)n, (long long)k,
         transposed ? " B^T" : "    ", t * 1e6, 2e-9 * (double)(m * n * k) / t);
  free(a), free(b), free(c);
}

struct qcall {
  struct rpi_qweights w;
  int64_t m;
  float *x, *out;
};

static void run_quantized(void* p) {
  struct qcall* q = p;
  rpi_qmm(&q->w, true, RPI_FLOAT32, q->m, q->x, q->w.cols, 1, q->out, q->w.rows);
}

static void quantized(int64_t m, int64_t n, int64_t k, int bits) {
  size_t bytes = (size_t)(n * k * bits / 8), groups = (size_t)(n * k / 32);
  void *w = malloc(bytes), *s = calloc(groups, 2), *b = calloc(groups, 2);
  memset(w, 0x5a, bytes);
  struct qcall q = {{w, s, b, RPI_FLOAT16, n, k, bits, 32}, m, calloc((size_t)(m * k), 4),
                    calloc((size_t)(m * n), 4)};
  double t = median_time(run_quantized, &q);
  printf("q%d  %5lldx%5lldx%5lld     %10.2f us %7.1f GF/s %6.1f GB/s\n", bits, (long long)m,
         (long long)n, (long long)k, t * 1e6, 2e-9 * (double)(m * n * k) / t,
         1e-9 * (double)(bytes + 4 * groups) / t);
  free(w), free(s), free(b), free(q.x), free(q.out);
}

int main(int argc, char** argv) {
  if (argc > 1) rpi_set_threads(atoi(argv[1]));
  printf("%d threads\n", rpi_threads());
  dense(10, 10, 10, 0);
  dense(128, 1024, 256, 0);
  dense(1024, 1024, 1024, 0);
  dense(512, 1536, 576, 1);
  dense(1, 1536, 576, 1);
  dense(1, 1536, 576, 0);
  quantized(1, 960, 576, 4);
  quantized(1, 3072, 576, 4);
  quantized(1, 576, 1536, 4);
  quantized(1, 49152, 576, 8);
  quantized(2, 3072, 576, 4);
  quantized(4, 3072, 576, 4);
  quantized(8, 3072, 576, 4);
  quantized(1, 3072, 576, 6);
  quantized(512, 3072, 576, 4);
  return 0;
}
