/* Random bits as MLX lays them out. A key's bytes are words w[0..n), the last one cut off if it
 * does not fit. With h = n / 2 and g = n - h, counters (i, g + i) give the words w[i] and w[g + i];
 * if n is odd, counter (h, 0) gives w[h] and a word that is dropped. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/thread.h"
#include "op/threefry.h"

enum { BLOCK = 256, TASK = 8192 /* counters */ };

struct bits {
  const struct call* c;
  int64_t bytes, half, gap, tasks; /* per key */
};

static void read_key(const struct bits* b, int64_t k, uint32_t key[2]) {
  const struct view* v = &b->c->in[0];
  const uint32_t* src = b->c->src[0];
  for (int d = v->ndim - 2; d >= 0; d--) {
    src += k % v->shape[d] * v->stride[d];
    k /= v->shape[d];
  }
  key[0] = src[0];
  key[1] = src[v->stride[v->ndim - 1]];
}

static void put_words(const struct bits* b, char* out, int64_t first, const uint32_t* w,
                      int64_t n) {
  int64_t left = b->bytes - 4 * first;
  memcpy(out + 4 * first, w, (size_t)(4 * n < left ? 4 * n : left));
}

static void fill_task(void* ctx, int64_t i) {
  const struct bits* b = ctx;
  uint32_t x[BLOCK], y[BLOCK], key[2];
  int64_t task = i % b->tasks, first = task * TASK;
  int64_t end = first + TASK < b->half ? first + TASK : b->half;
  char* out = (char*)b->c->dst[0] + i / b->tasks * b->bytes;
  read_key(b, i / b->tasks, key);
  for (; first < end; first += BLOCK) {
    int64_t n = end - first < BLOCK ? end - first : BLOCK;
    for (int64_t k = 0; k < n; k++) {
      uint32_t p = (uint32_t)(first + k), q = (uint32_t)(first + k + b->gap);
      rpi_threefry(key[0], key[1], &p, &q);
      x[k] = p;
      y[k] = q;
    }
    put_words(b, out, first, x, n);
    put_words(b, out, first + b->gap, y, n);
  }
  if (task == 0 && b->gap > b->half) {
    uint32_t p = (uint32_t)b->half, q = 0;
    rpi_threefry(key[0], key[1], &p, &q);
    put_words(b, out, b->half, &p, 1);
  }
}

int rpi_cpu_random_bits(const struct call* c) {
  int64_t keys = c->in[0].size / 2;
  if (c->out[0].size == 0) return 0;
  struct bits b = {.c = c};
  b.bytes = c->out[0].size / keys * (int64_t)rpi_dtype_size(c->out[0].dtype);
  int64_t words = (b.bytes + 3) / 4;
  b.half = words / 2;
  b.gap = words - b.half;
  b.tasks = b.half > TASK ? (b.half + TASK - 1) / TASK : 1;
  if (keys * b.tasks == 1)
    fill_task(&b, 0);
  else
    rpi_parallel(keys * b.tasks, fill_task, &b);
  return 0;
}
