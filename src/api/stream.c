/* stream.h: streams. They are labels; the CPU computes in the thread that evaluates. */
#include <stdio.h>

#include "api/call.h"
#include "api/device.h"
#include "base/err.h"
#include "exec/eval.h"

static int get_stream(struct stream* out, mlx_stream s, const char* name) {
  if (!s.ctx) return rpi_fail(RP_ERR_ARGUMENT, "[%s] The stream handle is empty.", name);
  *out = *(const struct stream*)s.ctx;
  return 0;
}

static int set_stream(mlx_stream* res, struct stream s) {
  struct stream* p = res->ctx ? res->ctx : rpi_alloc(sizeof *p);
  if (!p) return rpi_fail_memory("a stream handle", sizeof *p);
  *p = s;
  res->ctx = p;
  return 0;
}

static mlx_stream wrap(struct stream s) {
  mlx_stream h = {0};
  rpi_report(set_stream(&h, s));
  return h;
}

mlx_stream mlx_stream_new(void) { return (mlx_stream){0}; }

mlx_stream mlx_stream_new_device(mlx_device dev) {
  struct device d = {0};
  if (!rpi_report(rpi_device_get(&d, dev, "stream_new_device"))) return wrap(rpi_stream_new(d));
  return (mlx_stream){0};
}

int mlx_stream_set(mlx_stream* stream, const mlx_stream src) {
  struct stream s = {0};
  int rc = get_stream(&s, src, "stream_set");
  return rpi_report(rc ? rc : set_stream(stream, s));
}

int mlx_stream_free(mlx_stream stream) {
  rpi_free(stream.ctx);
  return 0;
}

int mlx_stream_tostring(mlx_string* str, mlx_stream stream) {
  struct stream s = {0};
  char device[64], text[96];
  int rc = get_stream(&s, stream, "stream_tostring");
  if (rc) return rpi_report(rc);
  snprintf(text, sizeof text, "Stream(%s, %d)", rpi_device_text(device, sizeof device, s.device),
           (int)s.index);
  return rpi_report(rpi_string_set(str, text));
}

bool mlx_stream_equal(mlx_stream lhs, mlx_stream rhs) {
  const struct stream *a = lhs.ctx, *b = rhs.ctx;
  if (!a || !b) return a == b;
  return a->device.type == b->device.type && a->device.index == b->device.index &&
         a->index == b->index;
}

int mlx_stream_get_device(mlx_device* dev, mlx_stream stream) {
  struct stream s = {0};
  int rc = get_stream(&s, stream, "stream_get_device");
  return rpi_report(rc ? rc : rpi_device_set(dev, s.device));
}

int mlx_stream_get_index(int* index, mlx_stream stream) {
  struct stream s = {0};
  int rc = get_stream(&s, stream, "stream_get_index");
  if (!rc) *index = s.index;
  return rpi_report(rc);
}

/* All streams are served by one queue: waiting for all of it includes this one. */
int mlx_synchronize(mlx_stream stream) {
  (void)stream;
  rpi_eval_wait();
  return 0;
}

int mlx_get_default_stream(mlx_stream* stream, mlx_device dev) {
  struct device d = {0};
  int rc = rpi_device_get(&d, dev, "get_default_stream");
  return rpi_report(rc ? rc : set_stream(stream, rpi_default_stream(d)));
}

int mlx_set_default_stream(mlx_stream stream) {
  struct stream s = {0};
  int rc = get_stream(&s, stream, "set_default_stream");
  if (!rc) rpi_set_default_stream(s);
  return rpi_report(rc);
}

mlx_stream mlx_default_cpu_stream_new(void) {
  return wrap(rpi_default_stream((struct device){RPI_CPU, 0}));
}

mlx_stream mlx_default_gpu_stream_new(void) {
  return wrap(rpi_default_stream((struct device){RPI_GPU, 0}));
}
