/* io.h: .npy files, one array each. */
#include <string.h>

#include "api/call.h"
#include "api/io.h"
#include "api/io_types.h"
#include "base/err.h"
#include "exec/eval.h"
#include "io/npy.h"

/* ---- loading --------------------------------------------------------------------------------- */

static void copy_swapped(unsigned char* to, const unsigned char* from, size_t bytes, int unit) {
  for (size_t i = 0; i < bytes; i += (size_t)unit)
    for (int k = 0; k < unit; k++) to[i + (size_t)k] = from[i + (size_t)(unit - 1 - k)];
}

static struct array* array_of(struct rpi_source* s, const struct rpi_npy* f,
                              const struct shape* shape) {
  if (!f->swap) return rpi_source_array(s, f->offset, f->bytes, f->dtype, shape->dim, shape->ndim);
  struct buffer* b = rpi_buffer_new(f->bytes);
  if (!b) return NULL;
  copy_swapped(b->data, s->data + f->offset, f->bytes, f->swap);
  return rpi_array_ready(f->dtype, shape->dim, shape->ndim, b);
}

/* The first axis is the fastest. Nobody else sees the array yet. */
static void make_column_major(struct array* a) {
  int64_t step = 1;
  for (int i = 0; i < a->ndim; i++) {
    a->stride[i] = step;
    step *= a->shape[i];
  }
}

static int load(mlx_array* res, struct rpi_source* s, const char* op) {
  struct rpi_npy f;
  struct shape shape;
  int rc = rpi_npy_parse(&f, op, s->name, s->data, s->size);
  if (!rc) rc = rpi_file_shape(&shape, op, s->name, "array", f.shape, f.ndim);
  if (rc) return rc;
  struct array* a = array_of(s, &f, &shape);
  if (!a) return rpi_error_code();
  if (f.is_column_major) make_column_major(a);
  return rpi_handle_set(res, a);
}

int mlx_load_reader(mlx_array* res, mlx_io_reader in_stream, const mlx_stream stream) {
  struct rpi_source_reader reader = {0};
  struct rpi_source* s = NULL;
  int rc = rpi_reader_begin(&reader, in_stream, "load");
  if (rc) return rpi_report(rc);
  rc = rpi_source_read(&s, "load", &reader);
  rpi_reader_end(in_stream);
  if (!rc) rc = load(res, s, "load");
  rpi_source_release(s);
  return rpi_report(rc);
}

int mlx_load(mlx_array* res, const char* file, const mlx_stream stream) {
  struct rpi_source* s = NULL;
  int rc = rpi_source_open(&s, "load", file);
  if (!rc) rc = load(res, s, "load");
  rpi_source_release(s);
  return rpi_report(rc);
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* Write the array and end the sink, which is consumed. */
static int write_array(struct rpi_sink* sink, struct array* a) {
  char header[RPI_NPY_HEADER];
  size_t n = 0;
  int rc = rpi_npy_header(header, &n, "save", a->dtype, a->shape, a->ndim);
  const void* data = rc ? NULL : rpi_array_dense(a, rpi_array_pack);
  if (!rc && !data) rc = rpi_error_code();
  if (!rc) rc = rpi_sink_write(sink, header, n);
  if (!rc) rc = rpi_sink_write(sink, data, rpi_array_bytes(a));
  if (!rc) return rpi_sink_commit(sink);
  rpi_sink_abort(sink);
  return rc;
}

static int get_value(struct array** out, mlx_array a) {
  *out = rpi_handle_get(a, "save");
  if (!*out) return rpi_error_code();
  int rc = rpi_eval(out, 1);
  if (rc) rpi_array_release(*out);
  return rc;
}

int mlx_save_writer(mlx_io_writer out_stream, const mlx_array a) {
  struct rpi_sink_writer writer = {0};
  struct rpi_sink* sink = NULL;
  struct array* x;
  int rc = get_value(&x, a);
  if (rc) return rpi_report(rc);
  rc = rpi_writer_begin(&writer, out_stream, "save");
  if (!rc) {
    rc = rpi_sink_from_writer(&sink, "save", &writer);
    if (!rc) rc = write_array(sink, x);
    rpi_writer_end(out_stream);
  }
  rpi_array_release(x);
  return rpi_report(rc);
}

int mlx_save(const char* file, const mlx_array a) {
  struct rpi_sink* sink = NULL;
  struct array* x;
  int rc = get_value(&x, a);
  if (rc) return rpi_report(rc);
  rc = rpi_sink_create(&sink, "save", file);
  if (!rc) rc = write_array(sink, x);
  rpi_array_release(x);
  return rpi_report(rc);
}
