/* ops.h: sorting, partitions and the largest elements. Without an axis, of the flattened array. */
#include <limits.h>

#include "api/call.h"
#include "op/reduce.h"

static struct array* flat(struct build* b, struct array* x) {
  return x ? rpi_flatten(b, x, 0, -1) : NULL;
}

#define DEFINE_SORT(name)                                                                    \
  int mlx_##name##_axis(mlx_array* res, const mlx_array a, int axis, const mlx_stream s) {   \
    struct build b;                                                                          \
    rpi_begin(&b, #name, s);                                                                 \
    return rpi_finish(&b, res, rpi_sort(&b, RPI_OP_##name, rpi_arg(&b, a), axis));           \
  }                                                                                          \
  int mlx_##name(mlx_array* res, const mlx_array a, const mlx_stream s) {                    \
    struct build b;                                                                          \
    rpi_begin(&b, #name, s);                                                                 \
    return rpi_finish(&b, res, rpi_sort(&b, RPI_OP_##name, flat(&b, rpi_arg(&b, a)), 0));    \
  }
DEFINE_SORT(sort)
DEFINE_SORT(argsort)

#define DEFINE_PARTITION(name)                                                                     \
  int mlx_##name##_axis(mlx_array* res, const mlx_array a, int kth, int axis,                      \
                        const mlx_stream s) {                                                      \
    struct build b;                                                                                \
    rpi_begin(&b, #name, s);                                                                       \
    return rpi_finish(&b, res, rpi_partition(&b, RPI_OP_##name, rpi_arg(&b, a), kth, axis));       \
  }                                                                                                \
  int mlx_##name(mlx_array* res, const mlx_array a, int kth, const mlx_stream s) {                 \
    struct build b;                                                                                \
    rpi_begin(&b, #name, s);                                                                       \
    struct array* x = flat(&b, rpi_arg(&b, a));                                                    \
    return rpi_finish(&b, res, rpi_partition(&b, RPI_OP_##name, x, kth, 0));                       \
  }
DEFINE_PARTITION(partition)
DEFINE_PARTITION(argpartition)

/* The last k of a partition, counted from its end so that the size is the graph's own. */
static struct array* largest(struct build* b, struct array* x, int k, int axis) {
  int a;
  if (b->failed || !x) return NULL;
  if ((b->failed = rpi_axis(&a, b->name, axis, x->ndim))) return NULL;
  if (k < 0 || k > x->shape[a])
    return rpi_build_fail(b, RP_ERR_ARGUMENT, "k is %d along an axis of extent %d.", k,
                          x->shape[a]);
  if (k == 0) return rpi_slice_axis(b, x, a, 0, 0);
  return rpi_slice_axis(b, rpi_partition(b, RPI_OP_partition, x, -k, a), a, -k, INT_MAX);
}

int mlx_topk_axis(mlx_array* res, const mlx_array a, int k, int axis, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "topk", s);
  return rpi_finish(&b, res, largest(&b, rpi_arg(&b, a), k, axis));
}

int mlx_topk(mlx_array* res, const mlx_array a, int k, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "topk", s);
  return rpi_finish(&b, res, largest(&b, flat(&b, rpi_arg(&b, a)), k, 0));
}
