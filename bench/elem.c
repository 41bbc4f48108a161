/* Element-wise groups straight through the kernels: GB/s of single operations and of chains, in
 * memory and in the cache, and the cost of the smallest calls. Medians of 21 runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/cpu/elem.h"
#include "backend/cpu/strided.h"
#include "base/thread.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

struct bench {
  const char* name;
  int nin, nsteps, dtype;
  struct elem_step step[16];
  bool is_scalar[4]; /* inputs of one element */
};

#define F RPI_FLOAT32
#define S1(o, a) {.op = RPI_OP_##o, .nin = 1, .in = {a}, .in_dtype = F, .out_dtype = F}
#define S2(o, a, b) {.op = RPI_OP_##o, .nin = 2, .in = {a, b}, .in_dtype = F, .out_dtype = F}
static const struct bench benches[] = {
    {"add", 2, 1, F, {S2(add, 0, 1)}, {0}},
    {"add scalar", 2, 1, F, {S2(add, 0, 1)}, {0, true}},
    {"exp", 1, 1, F, {S1(exp, 0)}, {0}},
    {"tanh", 1, 1, F, {S1(tanh, 0)}, {0}},
    {"sin", 1, 1, F, {S1(sin, 0)}, {0}},
    {"silu", 1, 2, F, {S1(sigmoid, 0), S2(multiply, 0, 1)}, {0}},
    {"gelu (erf)", 4, 5, F,
     {S2(multiply, 0, 1), S1(erf, 4), S2(add, 5, 2), S2(multiply, 6, 3), S2(multiply, 7, 0)},
     {0, true, true, true}},
    {"10 mul/add", 2, 10, F,
     {S2(multiply, 0, 1), S2(add, 2, 0), S2(multiply, 3, 1), S2(add, 4, 0), S2(multiply, 5, 1),
      S2(add, 6, 0), S2(multiply, 7, 1), S2(add, 8, 0), S2(multiply, 9, 1), S2(add, 10, 0)},
     {0, true}},
#undef F
#define F RPI_BFLOAT16
    {"add bf16", 2, 1, F, {S2(add, 0, 1)}, {0}},
    {"silu bf16", 1, 2, F, {S1(sigmoid, 0), S2(multiply, 0, 1)}, {0}},
#undef F
#define F RPI_FLOAT16
    {"add f16", 2, 1, F, {S2(add, 0, 1)}, {0}},
};

static float* numbers;
static void *memory[4], *result;

/* Seconds per run; *prepare is set to seconds per preparation. */
static double run(const struct bench* b, int64_t n, double* prepare) {
  static const int64_t one[1] = {1}, none[1] = {0};
  int shape[1] = {(int)n}, number = b->nin + b->nsteps - 1;
  struct view in[4], out = {.shape = shape, .stride = one, .size = n, .dtype = (uint8_t)b->dtype,
                            .ndim = 1, .is_row_major = true};
  const void* src[4];
  for (int i = 0; i < b->nin; i++) {
    in[i] = out;
    src[i] = memory[i];
    if (b->is_scalar[i]) in[i].stride = none, in[i].is_row_major = false;
  }
  struct elem_group g = {.ndim = 1, .shape = shape, .nin = b->nin, .nsteps = b->nsteps, .nout = 1,
                         .in = in, .step = b->step, .out = &number};
  void* dst[1] = {result};
  struct call c = {.name = b->name, .nin = b->nin, .nout = 1, .in = in, .out = &out, .src = src,
                   .dst = dst};
  struct rpi_arena mem = {0};
  int reps = n < 10000 ? 2000 : n < 1000000 ? 50 : 1;
  double sample[21], start = now();
  for (int i = 0; i < 400; i++)
    if (rpi_cpu_elem_prepare(&c.state, &g, &mem)) exit(1);
  *prepare = (now() - start) / 400;
  for (int k = -2; k < 21; k++) {
    start = now();
    for (int i = 0; i < reps; i++)
      if (rpi_cpu_elem_run(&c)) exit(1);
    if (k >= 0) sample[k] = (now() - start) / reps;
  }
  rpi_arena_release(&mem);
  qsort(sample, 21, sizeof *sample, by_value);
  return sample[10];
}

static void report(const struct bench* b, int64_t large) {
  for (int i = 0; i < 4; i++) rpi_cpu_from_f32(memory[i], b->dtype, numbers, large);
  double prepare, bytes = (double)rpi_dtype_bytes[b->dtype], streams = 1;
  for (int k = 0; k < b->nin; k++) streams += !b->is_scalar[k];
  rpi_set_threads(1);
  double one = run(b, large, &prepare), middle = run(b, 100000, &prepare);
  double small = run(b, 200, &prepare);
  rpi_set_threads(0);
  double all = run(b, large, &(double){0});
  double unit = 1e-9 * bytes * streams;
  printf("%-12s %5.1f GB/s %5.1f GB/s %5.1f GB/s | %5.0f ns %5.0f ns\n", b->name,
         unit * (double)large / one, unit * (double)large / all, unit * 1e5 / middle, small * 1e9,
         prepare * 1e9);
}

int main(void) {
  enum { LARGE = 10000000 };
  for (int i = 0; i < 4; i++)
    if (!(memory[i] = malloc((size_t)LARGE * 4))) return 1;
  if (!(numbers = malloc((size_t)LARGE * 4))) return 1;
  for (int64_t k = 0; k < LARGE; k++) numbers[k] = (float)(k % 1000) * 0.004f - 1.9f;
  if (!(result = calloc(LARGE, 4))) return 1;
  printf("%-12s %10s %10s %10s | %8s %8s\n", "", "1e7 1T", "1e7 all", "1e5 1T", "200", "prepare");
  for (size_t i = 0; i < sizeof benches / sizeof *benches; i++) report(&benches[i], LARGE);
  return 0;
}
