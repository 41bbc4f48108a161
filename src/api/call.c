/* Arguments in, results out. */
#include "api/call.h"

#include "base/err.h"

void rpi_begin(struct build* b, const char* name, mlx_stream s) {
  rpi_build_begin(b, name, rpi_stream_of(s));
}

struct array* rpi_arg(struct build* b, mlx_array a) {
  return b->failed ? NULL : rpi_own(b, rpi_handle_get(a, b->name));
}

struct array* rpi_arg_optional(struct build* b, mlx_array a) { return a.ctx ? rpi_arg(b, a) : NULL; }

int64_t rpi_arg_vector(struct build* b, struct array*** at, mlx_vector_array v) {
  int64_t n;
  if (b->failed) return -1;
  b->failed = rpi_vector_get(at, &n, v, b->name);
  if (b->failed) return -1;
  b->list[b->nlists].at = *at;
  b->list[b->nlists++].n = n;
  return n;
}

int rpi_finish(struct build* b, mlx_array* res, struct array* y) {
  struct array* out = NULL;
  int rc = rpi_build_end(b, &out, y);
  if (!rc) rc = rpi_handle_set(res, out);
  return rpi_report(rc);
}

int rpi_finish_vector(struct build* b, mlx_vector_array* res, struct array* const* y, int64_t n) {
  int rc = b->failed;
  for (int64_t i = 0; i < n && !rc; i++)
    if (!y[i]) rc = b->failed = rpi_error_code();
  if (!rc) rc = b->failed = rpi_vector_set(res, y, n);
  rpi_build_abandon(b);
  return rpi_report(rc);
}
