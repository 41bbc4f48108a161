/* rms_norm and layer_norm over the last axis: rows of any layout, shared out by the shape alone. */
#include "backend/cpu/norm.h"

#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "base/thread.h"

enum { CHUNK = 16384 }; /* elements of work */

struct job {
  const struct call* c;
  struct norm_row row; /* of row 0 */
  void (*run)(const struct norm_row* r);
  int64_t rows, rows_per_chunk;
};

static const struct norm_kernels* kernels(void) {
  switch (rpi_isa()) {
#if defined(__x86_64__)
    case RPI_ISA_AVX512:
      return &rpi_norm_avx512;
    case RPI_ISA_AVX2:
      return &rpi_norm_avx2;
#endif
    default:
      return &rpi_norm_base;
  }
}

/* Where row `i` of the input starts, in elements. */
static int64_t row_offset(const struct view* v, int64_t i) {
  int64_t at = 0;
  for (int d = v->ndim - 2; d >= 0; d--) {
    at += i % v->shape[d] * v->stride[d];
    i /= v->shape[d];
  }
  return at;
}

static void run_chunk(void* ctx, int64_t chunk) {
  const struct job* j = ctx;
  const struct view* x = &j->c->in[0];
  int64_t bytes = (int64_t)rpi_dtype_size(x->dtype);
  int64_t end = (chunk + 1) * j->rows_per_chunk;
  if (end > j->rows) end = j->rows;
  for (int64_t i = chunk * j->rows_per_chunk; i < end; i++) {
    struct norm_row row = j->row;
    int64_t at = x->is_row_major ? i * row.n : row_offset(x, i);
    row.x = (const char*)row.x + at * bytes;
    row.y = (char*)row.y + i * row.n * bytes;
    j->run(&row);
  }
}

static void share_out(struct job* j) {
  const struct view* x = &j->c->in[0];
  int64_t n = x->shape[x->ndim - 1];
  if (x->size == 0) return;
  j->row.x = j->c->src[0];
  j->row.y = j->c->dst[0];
  j->row.n = n;
  j->row.x_stride = x->stride[x->ndim - 1];
  j->row.dtype = x->dtype;
  j->row.eps = rpi_attr_to_double(j->c->attr[0]);
  j->rows = x->size / n;
  j->rows_per_chunk = n < CHUNK ? CHUNK / n : 1;
  int64_t chunks = (j->rows + j->rows_per_chunk - 1) / j->rows_per_chunk;
  if (chunks == 1)
    run_chunk(j, 0);
  else
    rpi_parallel(chunks, run_chunk, j);
}

static void set_weight(struct job* j, int input) {
  j->row.weight = j->c->src[input];
  j->row.weight_stride = j->c->in[input].stride[0];
  j->row.weight_dtype = j->c->in[input].dtype;
}

int rpi_cpu_rms_norm(const struct call* c) {
  struct job j = {.c = c, .run = kernels()->rms};
  if (c->nin > 1) set_weight(&j, 1);
  share_out(&j);
  return 0;
}

int rpi_cpu_layer_norm(const struct call* c) {
  struct job j = {.c = c, .run = kernels()->layer};
  bool has_weight = c->attr[1] & 1, has_bias = c->attr[1] & 2;
  if (has_weight) set_weight(&j, 1);
  if (has_bias) {
    int i = 1 + has_weight;
    j.row.bias = c->src[i];
    j.row.bias_stride = c->in[i].stride[0];
    j.row.bias_dtype = c->in[i].dtype;
  }
  share_out(&j);
  return 0;
}
