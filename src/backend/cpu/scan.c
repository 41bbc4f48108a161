/* Running reductions along one axis: strictly one element after another.
 *
 * The running value of half formats is a float; each result is rounded once. The input is packed
 * first unless it is row-major. With elements behind the axis, WIDTH neighbours run side by side.
 */
#include "backend/cpu/scan.h"

#include "backend/cpu/cpu.h"
#include "backend/cpu/elem.h"
#include "backend/cpu/elem_kernel.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/strided.h"
#include "base/err.h"
#include "base/thread.h"
#include "core/buffer.h"

enum { BLOCK = 512, WIDTH = 256, WORK = 32768 };

struct scan {
  const struct rpi_scanner* f;
  const char* src;
  char* dst;
  int in, out, dtype; /* of elements, results and running values */
  int in_item, out_item, item;
  rpi_elem_fn cast; /* of the input, or NULL */
  bool is_half, reverse, inclusive;
  int64_t n, inner, blocks, units, per_task;
};

static const struct rpi_scanner* find_scanner(enum rpi_scan op, int dtype) {
  const rpi_scanner_table* t = &rpi_scanners_scalar;
#if defined(__x86_64__)
  if (rpi_isa() == RPI_ISA_AVX2) t = &rpi_scanners_avx2;
  if (rpi_isa() == RPI_ISA_AVX512) t = &rpi_scanners_avx512;
#endif
  return &(*t)[op][dtype];
}

static const void* load(const struct scan* s, void* buf, const void* src, int64_t n) {
  if (s->is_half)
    rpi_cpu_to_f32(buf, src, s->in, n);
  else if (s->cast)
    s->cast(n, buf, &src);
  else
    return src;
  return buf;
}

static void scan_row(const struct scan* s, int64_t row) {
  char buf[BLOCK * 8], carry[8];
  const char* src = s->src + row * s->n * s->in_item;
  char* dst = s->dst + row * s->n * s->out_item;
  rpi_fill(carry, &s->f->identity, s->item, 1);
  for (int64_t done = 0; done < s->n; done += BLOCK) {
    int64_t m = s->n - done < BLOCK ? s->n - done : BLOCK;
    int64_t first = s->reverse ? s->n - done - m : done;
    const char* x = load(s, buf, src + first * s->in_item, m);
    char* y = s->is_half ? buf : dst + first * s->out_item;
    int64_t start = s->reverse ? m - 1 : 0;
    s->f->row(y + start * s->item, x + start * s->item, m, s->reverse ? -1 : 1, carry,
              s->inclusive);
    if (s->is_half) rpi_cpu_from_f32(dst + first * s->out_item, s->out, (float*)buf, m);
  }
}

static void scan_columns(const struct scan* s, int64_t unit) {
  char buf[WIDTH * 8], carry[WIDTH * 8];
  int64_t start = unit % s->blocks * WIDTH, left = s->inner - start;
  int64_t columns = left < WIDTH ? left : WIDTH, base = unit / s->blocks * s->n * s->inner + start;
  rpi_fill(carry, &s->f->identity, s->item, columns);
  for (int64_t k = 0; k < s->n; k++) {
    int64_t at = base + (s->reverse ? s->n - 1 - k : k) * s->inner;
    const void* x = load(s, buf, s->src + at * s->in_item, columns);
    char* dst = s->dst + at * s->out_item;
    s->f->columns(s->is_half ? buf : dst, x, columns, carry, s->inclusive);
    if (s->is_half) rpi_cpu_from_f32(dst, s->out, (float*)buf, columns);
  }
}

static void run_task(void* ctx, int64_t i) {
  const struct scan* s = ctx;
  int64_t end = (i + 1) * s->per_task < s->units ? (i + 1) * s->per_task : s->units;
  for (int64_t k = i * s->per_task; k < end; k++) {
    if (s->inner == 1)
      scan_row(s, k);
    else
      scan_columns(s, k);
  }
}

static void plan(struct scan* s, const struct view* v, int axis) {
  s->n = v->shape[axis];
  s->inner = rpi_shape_size(v->shape + axis + 1, v->ndim - axis - 1);
  s->blocks = (s->inner + WIDTH - 1) / WIDTH;
  s->units = v->size / s->n / s->inner * s->blocks;
  int64_t cost = s->n * (s->inner < WIDTH ? s->inner : WIDTH);
  s->per_task = cost >= WORK ? 1 : WORK / cost;
}

static int scan(const struct call* c, enum rpi_scan op) {
  const struct view* v = &c->in[0];
  struct buffer* packed = NULL;
  if (v->size == 0) return 0;
  struct scan s = {.src = c->src[0], .dst = c->dst[0], .in = v->dtype, .out = c->out[0].dtype,
                   .reverse = c->attr[1], .inclusive = c->attr[2]};
  s.is_half = s.in == RPI_FLOAT16 || s.in == RPI_BFLOAT16;
  s.dtype = s.is_half ? RPI_FLOAT32 : s.out;
  s.cast = s.in != s.dtype && !s.is_half ? rpi_elem_cast(s.in, s.dtype) : NULL;
  s.in_item = (int)rpi_dtype_size(s.in);
  s.out_item = (int)rpi_dtype_size(s.out);
  s.item = (int)rpi_dtype_size(s.dtype);
  s.f = find_scanner(op, s.dtype);
  if (!v->is_row_major) {
    packed = rpi_buffer_new((size_t)(v->size * s.in_item));
    if (!packed) return rpi_error_code();
    int rc = rpi_cpu_pack(packed->data, c->src[0], v);
    if (rc) return rpi_buffer_release(packed), rc;
    s.src = packed->data;
  }
  plan(&s, v, (int)c->attr[0]);
  if (s.units <= s.per_task)
    run_task(&s, 0);
  else
    rpi_parallel((s.units + s.per_task - 1) / s.per_task, run_task, &s);
  rpi_buffer_release(packed);
  return 0;
}

int rpi_cpu_cumsum(const struct call* c) { return scan(c, RPI_SCAN_SUM); }
int rpi_cpu_cumprod(const struct call* c) { return scan(c, RPI_SCAN_PROD); }
int rpi_cpu_cummin(const struct call* c) { return scan(c, RPI_SCAN_MIN); }
int rpi_cpu_cummax(const struct call* c) { return scan(c, RPI_SCAN_MAX); }
int rpi_cpu_logcumsumexp(const struct call* c) { return scan(c, RPI_SCAN_LOGSUMEXP); }
