/* Rows along axes: see along.h. */
#include "backend/cpu/along.h"

#include <string.h>

#include "backend/cpu/strided.h"
#include "base/err.h"
#include "base/thread.h"

enum { WORK = 1 << 16 /* additions per block, about */ };

struct permuted {
  struct view view;
  int shape[RPI_MAX_NDIM];
  int64_t stride[RPI_MAX_NDIM];
};

/* The view with the given axes last. */
static void permute(struct permuted* p, const struct view* v, const int64_t* axes, int naxes) {
  int n = 0, next = 0, tail = v->ndim - naxes;
  for (int i = 0; i < v->ndim; i++) {
    bool is_last = next < naxes && axes[next] == i;
    int to = is_last ? tail + next++ : n++;
    p->shape[to] = v->shape[i];
    p->stride[to] = v->stride[i];
  }
  p->view = *v;
  p->view.shape = p->shape;
  p->view.stride = p->stride;
  p->view.is_row_major = rpi_is_row_major(p->stride, p->shape, v->ndim);
}

static int load(struct along* a, const struct call* c, const int64_t* axes, int naxes) {
  struct permuted p;
  permute(&p, &c->in[0], axes, naxes);
  a->n = 1;
  for (int i = 0; i < naxes; i++) a->n *= c->in[0].shape[axes[i]];
  a->rows = a->n ? c->in[0].size / a->n : 0;
  a->call = c;
  a->src = c->src[0];
  a->dst = c->dst[0];
  a->in = a->out = NULL;
  atomic_init(&a->failed, 0);
  if (p.view.is_row_major || c->in[0].size == 0) return 0;
  a->in = rpi_buffer_new((size_t)c->in[0].size * rpi_dtype_size(c->in[0].dtype));
  if (!a->in) return rpi_error_code();
  a->src = a->in->data;
  int rc = rpi_cpu_pack(a->in->data, c->src[0], &p.view);
  if (rc) rpi_buffer_release(a->in);
  return rc;
}

int rpi_along_reduce(struct along* a, const struct call* c, const int64_t* axes, int naxes) {
  a->axis = -1;
  return load(a, c, axes, naxes);
}

/* Whether rows of the output lie in memory as they are: nothing but extents of 1 behind the axis.
 */
static bool is_last(const struct view* v, int axis) {
  for (int i = axis + 1; i < v->ndim; i++)
    if (v->shape[i] != 1) return false;
  return true;
}

int rpi_along_map(struct along* a, const struct call* c, int axis) {
  int64_t axes[] = {axis};
  int rc = load(a, c, axes, 1);
  a->axis = axis;
  if (rc || is_last(&c->out[0], axis) || c->out[0].size == 0) return rc;
  a->out = rpi_buffer_new((size_t)c->out[0].size * rpi_dtype_size(c->out[0].dtype));
  if (!a->out) {
    rpi_buffer_release(a->in);
    return rpi_error_code();
  }
  a->dst = a->out->data;
  return 0;
}

/* The packed rows, seen with the axis back in its place. */
static int put_back(struct along* a) {
  const struct view* v = &a->call->out[0];
  struct permuted p;
  int64_t step = a->n;
  p.view = *v;
  p.view.shape = v->shape;
  p.view.stride = p.stride;
  p.view.is_row_major = false;
  for (int i = v->ndim - 1; i >= 0; i--) {
    p.stride[i] = i == a->axis ? 1 : step;
    if (i != a->axis) step *= v->shape[i];
  }
  return rpi_cpu_pack(a->call->dst[0], a->dst, &p.view);
}

int rpi_along_finish(struct along* a) {
  int rc = atomic_load(&a->failed);
  if (rc) rc = rpi_fail_memory("the rows of an axis", (unsigned long long)a->n);
  if (!rc && a->out) rc = put_back(a);
  rpi_buffer_release(a->in);
  rpi_buffer_release(a->out);
  return rc;
}

struct blocks {
  struct along* a;
  int64_t rows;
  void (*fn)(struct along* a, int64_t first, int64_t last);
};

static void run_block(void* ctx, int64_t i) {
  const struct blocks* b = ctx;
  int64_t first = i * b->rows, last = first + b->rows;
  b->fn(b->a, first, last < b->a->rows ? last : b->a->rows);
}

void rpi_along_each(struct along* a, int64_t cost,
                    void (*fn)(struct along* a, int64_t first, int64_t last)) {
  if (a->rows == 0) return;
  int64_t per_row = (a->n ? a->n : 1) * cost;
  struct blocks b = {a, per_row >= WORK ? 1 : WORK / per_row, fn};
  if (a->rows <= b.rows)
    fn(a, 0, a->rows);
  else
    rpi_parallel((a->rows + b.rows - 1) / b.rows, run_block, &b);
}
