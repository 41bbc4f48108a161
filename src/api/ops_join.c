/* ops.h: from one array to several, and back. */
#include <limits.h>
#include <string.h>

#include "api/call.h"
#include "base/err.h"
#include "base/mem.h"

/* A list of n pointers (at least one); NULL after failing the build. */
static struct array** new_list(struct build* b, int64_t n) {
  size_t bytes = sizeof(struct array*) * (size_t)(n > 0 ? n : 1);
  struct array** list = b->failed ? NULL : rpi_alloc(bytes);
  if (!list && !b->failed) b->failed = rpi_fail_memory("a list of arrays", bytes);
  return list;
}

/* The arrays of a vector in a list of its own, that lasts while more arrays are made. */
static struct array** read_list(struct build* b, int64_t* n, mlx_vector_array v) {
  struct array** at;
  *n = rpi_arg_vector(b, &at, v);
  struct array** list = new_list(b, *n);
  if (list && *n > 0) memcpy(list, at, sizeof *list * (size_t)*n);
  return list;
}

static int finish_list(struct build* b, mlx_vector_array* res, struct array** list, int64_t n) {
  int rc = rpi_finish_vector(b, res, list, n);
  rpi_free(list);
  return rc;
}

static int finish_one(struct build* b, mlx_array* res, struct array** list, struct array* y) {
  rpi_free(list);
  return rpi_finish(b, res, y);
}

/* ---- joining --------------------------------------------------------------------------------- */

int mlx_concatenate_axis(mlx_array* res, const mlx_vector_array arrays, int axis,
                         const mlx_stream s) {
  struct build b;
  int64_t n;
  rpi_begin(&b, "concatenate", s);
  struct array** x = read_list(&b, &n, arrays);
  return finish_one(&b, res, x, rpi_concatenate(&b, x, n, axis));
}

/* All arrays flattened. */
int mlx_concatenate(mlx_array* res, const mlx_vector_array arrays, const mlx_stream s) {
  struct build b;
  int64_t n;
  rpi_begin(&b, "concatenate", s);
  struct array** x = read_list(&b, &n, arrays);
  for (int64_t i = 0; i < n && !b.failed; i++) x[i] = rpi_flatten(&b, x[i], 0, -1);
  return finish_one(&b, res, x, rpi_concatenate(&b, x, n, 0));
}

int mlx_stack_axis(mlx_array* res, const mlx_vector_array arrays, int axis, const mlx_stream s) {
  struct build b;
  int64_t n;
  rpi_begin(&b, "stack", s);
  struct array** x = read_list(&b, &n, arrays);
  return finish_one(&b, res, x, rpi_stack(&b, x, n, axis));
}

int mlx_stack(mlx_array* res, const mlx_vector_array arrays, const mlx_stream s) {
  return mlx_stack_axis(res, arrays, 0, s);
}

/* ---- one shape for all ----------------------------------------------------------------------- */

static struct array* join_shape(struct build* b, struct array* x, struct array* y) {
  if (b->failed || !x || !y) return NULL;
  return rpi_op(b, RPI_OP_broadcast_join, (struct array*[]){x, y}, 2, (int64_t[]){0}, 1);
}

/* The first array gathers the joint shape, which the others then take: both follow in a trace. */
static void broadcast_all(struct build* b, struct array** x, int64_t n) {
  if (n < 2 || b->failed) return;
  struct array* joint = x[0];
  for (int64_t i = 1; i < n; i++) joint = join_shape(b, joint, x[i]);
  for (int64_t i = 0; i < n && joint; i++)
    if (x[i]->is_tracer || joint->is_tracer ||
        !rpi_shape_equal(x[i]->shape, x[i]->ndim, joint->shape, joint->ndim))
      x[i] = rpi_op2(b, RPI_OP_broadcast_like, x[i], joint);
}

int mlx_broadcast_arrays(mlx_vector_array* res, const mlx_vector_array inputs, const mlx_stream s) {
  struct build b;
  int64_t n;
  rpi_begin(&b, "broadcast_arrays", s);
  struct array** x = read_list(&b, &n, inputs);
  broadcast_all(&b, x, n);
  return finish_list(&b, res, x, n);
}

/* Each array along an axis of its own; for "xy" the first two axes change places. */
static void spread(struct build* b, struct array** x, int64_t n, bool is_xy) {
  int shape[RPI_MAX_NDIM];
  if (!b->failed && n > RPI_MAX_NDIM)
    rpi_build_fail(b, RP_ERR_SHAPE, "%lld arrays; at most %d are supported.", (long long)n,
                   RPI_MAX_NDIM);
  for (int64_t i = 0; i < n && !b->failed; i++) {
    int64_t axis = is_xy && n > 1 && i < 2 ? 1 - i : i;
    for (int64_t k = 0; k < n; k++) shape[k] = k == axis ? -1 : 1;
    x[i] = rpi_reshape(b, x[i], shape, n);
  }
}

int mlx_meshgrid(mlx_vector_array* res, const mlx_vector_array arrays, bool sparse,
                 const char* indexing, const mlx_stream s) {
  struct build b;
  int64_t n;
  rpi_begin(&b, "meshgrid", s);
  struct array** x = read_list(&b, &n, arrays);
  bool is_xy = indexing && strcmp(indexing, "xy") == 0;
  if (!is_xy && (!indexing || strcmp(indexing, "ij")))
    rpi_build_fail(&b, RP_ERR_ARGUMENT, "Indexing is \"xy\" or \"ij\", not \"%.40s\".",
                   indexing ? indexing : "");
  spread(&b, x, n, is_xy);
  if (!sparse) broadcast_all(&b, x, n);
  return finish_list(&b, res, x, n);
}

/* ---- cutting --------------------------------------------------------------------------------- */

int mlx_split(mlx_vector_array* res, const mlx_array a, int num_splits, int axis,
              const mlx_stream s) {
  struct build b;
  int at;
  rpi_begin(&b, "split", s);
  struct array* x = rpi_arg(&b, a);
  if (!b.failed) b.failed = rpi_axis(&at, b.name, axis, x->ndim);
  if (!b.failed && (num_splits < 1 || x->shape[at] % num_splits))
    rpi_build_fail(&b, RP_ERR_SHAPE, "Axis %d of extent %d cannot be cut into %d equal parts.", at,
                   x->shape[at], num_splits);
  struct array** part = new_list(&b, num_splits);
  for (int i = 0; i < num_splits && !b.failed; i++)
    part[i] = rpi_op(&b, RPI_OP_part, &x, 1, (int64_t[]){at, i, num_splits}, 3);
  return finish_list(&b, res, part, num_splits);
}

int mlx_split_sections(mlx_vector_array* res, const mlx_array a, const int* indices,
                       size_t indices_num, int axis, const mlx_stream s) {
  struct build b;
  int64_t n = (int64_t)indices_num;
  int at;
  rpi_begin(&b, "split", s);
  struct array* x = rpi_arg(&b, a);
  if (!b.failed) b.failed = rpi_axis(&at, b.name, axis, x->ndim);
  struct array** part = new_list(&b, n + 1);
  for (int64_t i = 0; i <= n && !b.failed; i++)
    part[i] = rpi_slice_axis(&b, x, at, i ? indices[i - 1] : 0, i < n ? indices[i] : INT_MAX);
  return finish_list(&b, res, part, n + 1);
}
