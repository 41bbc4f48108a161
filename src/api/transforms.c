/* transforms.h: evaluation. */
#include "api/call.h"
#include "base/err.h"
#include "exec/eval.h"

static int eval_vector(const mlx_vector_array outputs, const char* name,
                       int (*eval)(struct array* const*, int)) {
  struct array** at;
  int64_t n;
  int rc = rpi_vector_get(&at, &n, outputs, name);
  if (rc) return rpi_report(rc);
  rc = eval(at, (int)n);
  rpi_vector_drop(at, n);
  return rpi_report(rc);
}

int mlx_eval(const mlx_vector_array outputs) { return eval_vector(outputs, "eval", rpi_eval); }

int mlx_async_eval(const mlx_vector_array outputs) {
  return eval_vector(outputs, "async_eval", rpi_eval_async);
}
