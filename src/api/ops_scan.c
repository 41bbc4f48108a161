/* ops.h: softmax and running reductions. */
#include <limits.h>

#include "api/call.h"
#include "op/reduce.h"

int mlx_softmax_axes(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
                     bool precise, const mlx_stream s) {
  struct build b;
  (void)precise;
  rpi_begin(&b, "softmax", s);
  int64_t n = axes_num > INT_MAX ? INT_MAX : (int64_t)axes_num;
  return rpi_finish(&b, res, rpi_softmax(&b, rpi_arg(&b, a), axes, n));
}

int mlx_softmax_axis(mlx_array* res, const mlx_array a, int axis, bool precise,
                     const mlx_stream s) {
  return mlx_softmax_axes(res, a, &axis, 1, precise, s);
}

int mlx_softmax(mlx_array* res, const mlx_array a, bool precise, const mlx_stream s) {
  struct build b;
  (void)precise;
  rpi_begin(&b, "softmax", s);
  return rpi_finish(&b, res, rpi_softmax(&b, rpi_arg(&b, a), NULL, -1));
}

#define DEFINE_SCAN(name)                                                                      \
  int mlx_##name(mlx_array* res, const mlx_array a, int axis, bool reverse, bool inclusive,    \
                 const mlx_stream s) {                                                         \
    struct build b;                                                                            \
    rpi_begin(&b, #name, s);                                                                   \
    struct array* x = rpi_arg(&b, a);                                                          \
    return rpi_finish(&b, res, rpi_scan(&b, RPI_OP_##name, x, axis, reverse, inclusive));      \
  }
DEFINE_SCAN(cumsum)
DEFINE_SCAN(cumprod)
DEFINE_SCAN(cummax)
DEFINE_SCAN(cummin)

int mlx_logcumsumexp(mlx_array* res, const mlx_array a, int axis, bool reverse, bool inclusive,
                     const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "logcumsumexp", s);
  struct array* x = rpi_arg(&b, a);
  if (x) x = rpi_astype(&b, x, rpi_dtype_at_least_float(x->dtype));
  return rpi_finish(&b, res, rpi_scan(&b, RPI_OP_logcumsumexp, x, axis, reverse, inclusive));
}
