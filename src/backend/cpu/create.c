/* Kernels that make values from attributes and shapes: arange, number_of_elements.
 *
 * arange: value i is start + i * step, computed in double and rounded once; for integer dtypes it is
 * the truncated start plus i times the difference of the first two truncated values, exactly. */
#include "backend/backend.h"
#include "base/err.h"
#include "base/thread.h"
#include "op/scalar_half.h"

enum { CHUNK = 32768 };

/* NaN gives 0 and what is out of range the nearest end. */
static int64_t to_int64(double x) {
  if (x != x) return 0;
  return x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)x;
}
static uint64_t to_uint64(double x) {
  if (!(x > 0)) return (uint64_t)to_int64(x);
  return x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
}

struct range {
  const struct call* c;
  double start, step;
  uint64_t first, next; /* integers wrap at the width of their dtype */
  int64_t count;
};

#define FILL_REAL(name, type, store)                                           \
  static void fill_##name(const struct range* r, int64_t i, int64_t end) {     \
    type* out = r->c->dst[0];                                                  \
    for (; i < end; i++) out[i] = store(r->start + (double)i * r->step);       \
  }
#define FILL_WHOLE(name, type)                                                 \
  static void fill_##name(const struct range* r, int64_t i, int64_t end) {     \
    type *out = r->c->dst[0], step = (type)(r->next - r->first);               \
    for (; i < end; i++) out[i] = (type)((type)r->first + (type)i * step);     \
  }
FILL_REAL(f64, double, (double))
FILL_REAL(f32, float, (float))
FILL_REAL(f16, uint16_t, rp_f64_to_f16)
FILL_REAL(bf16, uint16_t, rp_f64_to_bf16)
FILL_WHOLE(w8, uint8_t)
FILL_WHOLE(w16, uint16_t)
FILL_WHOLE(w32, uint32_t)
FILL_WHOLE(w64, uint64_t)

static void fill_chunk(void* ctx, int64_t chunk) {
  const struct range* r = ctx;
  int64_t i = chunk * CHUNK, end = i + CHUNK < r->count ? i + CHUNK : r->count;
  switch (r->c->out[0].dtype) {
    case RPI_FLOAT16: fill_f16(r, i, end); break;
    case RPI_BFLOAT16: fill_bf16(r, i, end); break;
    case RPI_FLOAT32: fill_f32(r, i, end); break;
    case RPI_FLOAT64: fill_f64(r, i, end); break;
    default:
      switch (rpi_dtype_size(r->c->out[0].dtype)) {
        case 1: fill_w8(r, i, end); break;
        case 2: fill_w16(r, i, end); break;
        case 4: fill_w32(r, i, end); break;
        default: fill_w64(r, i, end); break;
      }
  }
}

int rpi_cpu_arange(const struct call* c) {
  struct range r = {.c = c, .start = rpi_attr_to_double(c->attr[0]),
                    .step = rpi_attr_to_double(c->attr[1]), .count = c->out[0].size};
  bool is_unsigned = rpi_dtype_kind(c->out[0].dtype) == RPI_KIND_U;
  r.first = is_unsigned ? to_uint64(r.start) : (uint64_t)to_int64(r.start);
  r.next = is_unsigned ? to_uint64(r.start + r.step) : (uint64_t)to_int64(r.start + r.step);
  if (r.count <= CHUNK)
    fill_chunk(&r, 0);
  else
    rpi_parallel((r.count + CHUNK - 1) / CHUNK, fill_chunk, &r);
  return 0;
}

static void store(void* out, int dtype, double x) {
  int64_t whole = to_int64(x);
  switch (dtype) {
    case RPI_BOOL: *(uint8_t*)out = x != 0; break;
    case RPI_UINT8: *(uint8_t*)out = (uint8_t)(whole > UINT8_MAX ? UINT8_MAX : whole); break;
    case RPI_UINT16: *(uint16_t*)out = (uint16_t)(whole > UINT16_MAX ? UINT16_MAX : whole); break;
    case RPI_UINT32: *(uint32_t*)out = (uint32_t)(whole > UINT32_MAX ? UINT32_MAX : whole); break;
    case RPI_INT8: *(int8_t*)out = (int8_t)(whole > INT8_MAX ? INT8_MAX : whole); break;
    case RPI_INT16: *(int16_t*)out = (int16_t)(whole > INT16_MAX ? INT16_MAX : whole); break;
    case RPI_INT32: *(int32_t*)out = (int32_t)(whole > INT32_MAX ? INT32_MAX : whole); break;
    case RPI_UINT64:
    case RPI_INT64: *(int64_t*)out = whole; break;
    case RPI_FLOAT16: *(uint16_t*)out = rp_f64_to_f16(x); break;
    case RPI_BFLOAT16: *(uint16_t*)out = rp_f64_to_bf16(x); break;
    case RPI_FLOAT32: *(float*)out = (float)x; break;
    case RPI_FLOAT64: *(double*)out = x; break;
    default: *(struct rpi_c64*)out = (struct rpi_c64){(float)x, 0}; break;
  }
}

/* The product of the extents of the axes given, or of all if none is; or 1 over that. */
int rpi_cpu_number_of_elements(const struct call* c) {
  const struct view* x = &c->in[0];
  int64_t n = c->nattr > 2 ? 1 : x->size;
  for (int i = 2; i < c->nattr; i++) n *= x->shape[c->attr[i]];
  store(c->dst[0], c->out[0].dtype, c->attr[0] ? 1.0 / (double)n : (double)n);
  return 0;
}
