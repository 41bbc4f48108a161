/* Rotary positions.
 *
 * Angles are position * inv_freq in float, position = scale * (offset + t), inv_freq = base^(-2 i /
 * dims) rounded once or 1 / freqs[i]; cos and sin are those of the scalar functions. One table of
 * them serves all heads and, if they share the offset, all items of the batch. float64 is computed
 * in double throughout. A chunk is a range of positions (of one batch item, if each has its offset)
 * and depends on the shape. */
#include "backend/cpu/rope.h"

#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "base/err.h"
#include "base/thread.h"
#include "op/scalar_f64.h"

enum { CHUNK = 16384, TABLE = 512, KEEP = 128 };

struct job {
  const struct call* c;
  const struct rope_kernels* k;
  const struct view* x;
  int64_t batch, rows, positions, width; /* rows: of one batch item and position */
  int64_t half, step;                    /* step: positions in a chunk */
  bool is_traditional, has_offsets;
  float scale;
  double log_step;       /* log(base) / half */
  const float* inv_freq; /* half, or NULL for float64 */
};

static const struct rope_kernels* kernels(void) {
  switch (rpi_isa()) {
#if defined(__x86_64__)
    case RPI_ISA_AVX512:
      return &rpi_rope_avx512;
    case RPI_ISA_AVX2:
      return &rpi_rope_avx2;
#endif
    default:
      return &rpi_rope_base;
  }
}

static int64_t integer_at(const void* p, int64_t at, int dtype) {
  switch (dtype) {
    case RPI_UINT8:
      return ((const uint8_t*)p)[at];
    case RPI_UINT16:
      return ((const uint16_t*)p)[at];
    case RPI_UINT32:
      return ((const uint32_t*)p)[at];
    case RPI_UINT64:
      return (int64_t)((const uint64_t*)p)[at];
    case RPI_INT8:
      return ((const int8_t*)p)[at];
    case RPI_INT16:
      return ((const int16_t*)p)[at];
    case RPI_INT32:
      return ((const int32_t*)p)[at];
    default:
      return ((const int64_t*)p)[at];
  }
}

static int64_t offset_of(const struct job* j, int64_t b) {
  const struct view* o = &j->c->in[1];
  return integer_at(j->c->src[1], j->has_offsets ? b * o->stride[0] : 0, o->dtype);
}

/* base^(-2 i / dims), from the logarithm of the base, or the reciprocal of a period. */
static double frequency(const struct job* j, int64_t i) {
  const struct call* c = j->c;
  if (c->nin > 2) {
    const struct view* f = &c->in[2];
    const char* at = (const char*)c->src[2] + i * f->stride[0] * (int64_t)rpi_dtype_size(f->dtype);
    float period;
    if (f->dtype == RPI_FLOAT64) return 1 / *(const double*)at;
    j->k->load(&period, at, 1, 1, f->dtype);
    return (double)(1 / period);
  }
  return rp_exp(-(double)i * j->log_step);
}

/* Where row `r` of a batch item starts at position 0: axes 1 to ndim - 3. */
static int64_t row_offset(const struct view* x, int64_t r) {
  int64_t at = 0;
  for (int d = x->ndim - 3; d > 0; d--) {
    at += r % x->shape[d] * x->stride[d];
    r /= x->shape[d];
  }
  return at;
}

/* Pairs [first, first + n) of one row. */
static void rotate_part(const struct job* j, char* y, const char* x, int64_t first, int64_t n,
                        const float* cos, const float* sin) {
  int dtype = j->x->dtype;
  int64_t bytes = (int64_t)rpi_dtype_size(dtype), stride = j->x->stride[j->x->ndim - 1];
  int64_t gap = j->is_traditional ? 1 : j->half, step = j->is_traditional ? 2 : 1;
  const char* a = x + first * step * stride * bytes;
  const char* b = a + gap * stride * bytes;
  char* out = y + first * step * bytes;
  float va[TABLE], vb[TABLE];
  if (dtype == RPI_FLOAT32 && step * stride == 1) {
    j->k->rotate((float*)out, (float*)out + gap, (const float*)a, (const float*)b, cos, sin, n);
    return;
  }
  j->k->load(va, a, step * stride, n, dtype);
  j->k->load(vb, b, step * stride, n, dtype);
  j->k->rotate(va, vb, va, vb, cos, sin, n);
  if (!j->is_traditional) {
    j->k->store(out, va, n, dtype);
    j->k->store(out + gap * bytes, vb, n, dtype);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    j->k->store(out + 2 * i * bytes, va + i, 1, dtype);
    j->k->store(out + (2 * i + 1) * bytes, vb + i, 1, dtype);
  }
}

/* The elements that are not rotated. */
static void copy_rest(const struct job* j, char* y, const char* x) {
  int64_t bytes = (int64_t)rpi_dtype_size(j->x->dtype), stride = j->x->stride[j->x->ndim - 1];
  for (int64_t i = 2 * j->half; i < j->width; i++)
    memcpy(y + i * bytes, x + i * stride * bytes, (size_t)bytes);
}

static void rotate_f64(const struct job* j, double* y, const double* x, int64_t position) {
  int64_t stride = j->x->stride[j->x->ndim - 1];
  int64_t gap = j->is_traditional ? 1 : j->half, step = j->is_traditional ? 2 : 1;
  double scale = rpi_attr_to_double(j->c->attr[3]);
  for (int64_t i = 0; i < j->half; i++) {
    double angle = scale * (double)position * frequency(j, i), c = rp_cos(angle), s = rp_sin(angle);
    double a = x[i * step * stride], b = x[(i * step + gap) * stride];
    y[i * step] = a * c - b * s;
    y[i * step + gap] = a * s + b * c;
  }
}

/* A position of batch items [b, b + nb), which share their offset. */
static void run_position(const struct job* j, int64_t b, int64_t nb, int64_t t) {
  const struct view* x = j->x;
  int64_t bytes = (int64_t)rpi_dtype_size(x->dtype), position = offset_of(j, b) + t;
  float cos[TABLE], sin[TABLE];
  int64_t first = 0;
  do {
    int64_t n = j->half - first < TABLE ? j->half - first : TABLE;
    if (j->inv_freq) j->k->table(cos, sin, j->inv_freq + first, j->scale * (float)position, n);
    for (int64_t i = b * j->rows; i < (b + nb) * j->rows; i++) {
      int64_t at =
          i / j->rows * x->stride[0] + row_offset(x, i % j->rows) + t * x->stride[x->ndim - 2];
      const char* src = (const char*)j->c->src[0] + at * bytes;
      char* dst = (char*)j->c->dst[0] + (i * j->positions + t) * j->width * bytes;
      if (!j->inv_freq)
        rotate_f64(j, (double*)dst, (const double*)src, position);
      else
        rotate_part(j, dst, src, first, n, cos, sin);
      if (first == 0) copy_rest(j, dst, src);
    }
    first += n;
  } while (first < j->half && j->inv_freq);
}

static void run_chunk(void* ctx, int64_t chunk) {
  const struct job* j = ctx;
  int64_t per_item = (j->positions + j->step - 1) / j->step;
  int64_t b = j->has_offsets ? chunk / per_item : 0, nb = j->has_offsets ? 1 : j->batch;
  int64_t t = chunk % per_item * j->step, end = t + j->step;
  if (end > j->positions) end = j->positions;
  for (; t < end; t++) run_position(j, b, nb, t);
}

static void share_out(struct job* j) {
  int64_t items = j->has_offsets ? j->batch : 1;
  int64_t work = j->x->size / j->positions / items; /* for one position */
  j->step = work < CHUNK ? CHUNK / work : 1;
  int64_t chunks = items * ((j->positions + j->step - 1) / j->step);
  if (j->x->size <= CHUNK) {
    for (int64_t i = 0; i < chunks; i++) run_chunk(j, i);
    return;
  }
  rpi_parallel(chunks, run_chunk, j);
}

int rpi_cpu_rope(const struct call* c) {
  const struct view* x = &c->in[0];
  if (x->size == 0) return 0;
  struct job j = {.c = c,
                  .k = kernels(),
                  .x = x,
                  .batch = x->shape[0],
                  .positions = x->shape[x->ndim - 2],
                  .width = x->shape[x->ndim - 1],
                  .half = c->attr[0] / 2,
                  .is_traditional = c->attr[1] != 0,
                  .has_offsets = c->in[1].size > 1,
                  .scale = (float)rpi_attr_to_double(c->attr[3])};
  float keep[KEEP], *inv_freq = keep;
  if (c->nin == 2 && j.half) j.log_step = rp_log(rpi_attr_to_double(c->attr[2])) / (double)j.half;
  j.rows = x->size / (j.batch * j.positions * j.width);
  if (x->dtype != RPI_FLOAT64) {
    if (j.half > KEEP && !(inv_freq = rpi_alloc((size_t)j.half * sizeof *inv_freq)))
      return rpi_fail_memory("rope", (unsigned long long)j.half * sizeof *inv_freq);
    if (c->nin > 2)
      for (int64_t i = 0; i < j.half; i++) inv_freq[i] = (float)frequency(&j, i);
    else
      j.k->frequencies(inv_freq, j.log_step, j.half);
    j.inv_freq = inv_freq;
  }
  share_out(&j);
  if (inv_freq != keep) rpi_free(inv_freq);
  return 0;
}
