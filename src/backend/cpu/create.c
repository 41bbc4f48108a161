/* Kernels that make values from attributes and shapes: arange, number_of_elements.
 *
 * arange: value i is start + i * step, computed in double and rounded once; for integer dtypes it is
 * the truncated start plus i times the difference of the first two truncated values, exactly. */
#include "backend/backend.h"
#include "base/err.h"
#include "base/thread.h"
#include "op/number.h"
#include "op/scalar_half.h"

enum { CHUNK = 32768 };

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
  int wide = rpi_dtype_kind(c->out[0].dtype) == RPI_KIND_U ? RPI_UINT64 : RPI_INT64;
  rpi_store_double(&r.first, wide, r.start);
  rpi_store_double(&r.next, wide, r.start + r.step);
  if (r.count <= CHUNK)
    fill_chunk(&r, 0);
  else
    rpi_parallel((r.count + CHUNK - 1) / CHUNK, fill_chunk, &r);
  return 0;
}

/* The product of the extents of the axes given, or of all if none is; or 1 over that. */
int rpi_cpu_number_of_elements(const struct call* c) {
  const struct view* x = &c->in[0];
  int64_t n = c->nattr > 2 ? 1 : x->size;
  for (int i = 2; i < c->nattr; i++) n *= x->shape[c->attr[i]];
  rpi_store_double(c->dst[0], c->out[0].dtype, c->attr[0] ? 1.0 / (double)n : (double)n);
  return 0;
}
