/* io_types.h: streams of bytes that the host implements. io_contents.c has the contents of GGUF. */
#include "api/io_types.h"

#include "api/call.h"
#include "base/err.h"

struct io_stream {
  void* desc;
  mlx_io_vtable host;
  _Atomic(int) is_busy;
};

/* On failure `desc` is destroyed: its `free` runs exactly once in every case. */
static struct io_stream* new_stream(void* desc, const mlx_io_vtable* host, bool is_complete,
                                    const char* name) {
  struct io_stream* s = NULL;
  if (!is_complete)
    rpi_fail(RP_ERR_ARGUMENT, "[%s] A function of the stream is NULL.", name);
  else if (!(s = rpi_calloc(1, sizeof *s)))
    rpi_fail_memory("a stream", sizeof *s);
  if (!s) {
    struct rpi_error e;
    rpi_error_save(&e); /* the host's function may fail in calls of its own */
    if (host->free) host->free(desc);
    rpi_report(rpi_error_restore(&e));
    return NULL;
  }
  s->desc = desc;
  s->host = *host;
  return s;
}

static void free_stream(struct io_stream* s) {
  if (s && s->host.free) s->host.free(s->desc);
  rpi_free(s);
}

static int get_descriptor(void** out, const struct io_stream* s, const char* name) {
  if (!s) return rpi_fail(RP_ERR_ARGUMENT, "[%s] The stream handle is empty.", name);
  *out = s->desc;
  return 0;
}

static int get_label(mlx_string* res, const struct io_stream* s, const char* name) {
  if (!s) return rpi_fail(RP_ERR_ARGUMENT, "[%s] The stream handle is empty.", name);
  const char* label = s->host.label ? s->host.label(s->desc) : NULL;
  return rpi_string_set(res, label ? label : "stream");
}

static int begin_use(struct io_stream* s, const char* name) {
  if (!s) return rpi_fail(RP_ERR_ARGUMENT, "[%s] The stream handle is empty.", name);
  if (!atomic_exchange_explicit(&s->is_busy, 1, memory_order_acquire)) return 0;
  return rpi_fail(RP_ERR_ARGUMENT, "[%s] The stream is in use by another call.", name);
}

static void end_use(struct io_stream* s) {
  atomic_store_explicit(&s->is_busy, 0, memory_order_release);
}

/* ---- readers --------------------------------------------------------------------------------- */

mlx_io_reader mlx_io_reader_new(void* desc, mlx_io_vtable v) {
  bool is_complete = v.is_open && v.good && v.tell && v.seek && v.read;
  return (mlx_io_reader){new_stream(desc, &v, is_complete, "io_reader")};
}

int mlx_io_reader_descriptor(void** desc_, mlx_io_reader io) {
  return rpi_report(get_descriptor(desc_, io.ctx, "io_reader_descriptor"));
}

int mlx_io_reader_tostring(mlx_string* str_, mlx_io_reader io) {
  return rpi_report(get_label(str_, io.ctx, "io_reader_tostring"));
}

int mlx_io_reader_free(mlx_io_reader io) {
  free_stream(io.ctx);
  return 0;
}

int rpi_reader_begin(struct rpi_source_reader* out, mlx_io_reader io, const char* name) {
  const struct io_stream* s = io.ctx;
  int rc = begin_use(io.ctx, name);
  if (rc) return rc;
  *out = (struct rpi_source_reader){.ctx = s->desc,
                                    .is_open = s->host.is_open,
                                    .good = s->host.good,
                                    .tell = s->host.tell,
                                    .seek = s->host.seek,
                                    .read = s->host.read,
                                    .label = s->host.label};
  return 0;
}

void rpi_reader_end(mlx_io_reader io) { end_use(io.ctx); }

/* ---- writers --------------------------------------------------------------------------------- */

mlx_io_writer mlx_io_writer_new(void* desc, mlx_io_vtable v) {
  bool is_complete = v.is_open && v.good && v.write;
  return (mlx_io_writer){new_stream(desc, &v, is_complete, "io_writer")};
}

int mlx_io_writer_descriptor(void** desc_, mlx_io_writer io) {
  return rpi_report(get_descriptor(desc_, io.ctx, "io_writer_descriptor"));
}

int mlx_io_writer_tostring(mlx_string* str_, mlx_io_writer io) {
  return rpi_report(get_label(str_, io.ctx, "io_writer_tostring"));
}

int mlx_io_writer_free(mlx_io_writer io) {
  free_stream(io.ctx);
  return 0;
}

int rpi_writer_begin(struct rpi_sink_writer* out, mlx_io_writer io, const char* name) {
  const struct io_stream* s = io.ctx;
  int rc = begin_use(io.ctx, name);
  if (rc) return rc;
  *out = (struct rpi_sink_writer){.ctx = s->desc,
                                  .is_open = s->host.is_open,
                                  .good = s->host.good,
                                  .write = s->host.write,
                                  .label = s->host.label};
  return 0;
}

void rpi_writer_end(mlx_io_writer io) { end_use(io.ctx); }
