/* Scopes over the C interface. */
#include "lm/ops.h"

#include <stdlib.h>
#include <string.h>

#include "lm/err.h"

void lm_scope_begin(struct lm_scope* g) {
  memset(g, 0, sizeof *g);
  g->stream = mlx_default_cpu_stream_new();
}

int lm_scope_end(struct lm_scope* g) {
  for (size_t i = 0; i < g->n; i++) mlx_array_free(g->keep[i]);
  free(g->keep);
  mlx_stream_free(g->stream);
  return g->failed;
}

int lm_scope_check(struct lm_scope* g, int rc) {
  if (rc && !g->failed) {
    const char* text;
    rp_error_code code = rp_last_error(&text);
    g->failed = lm_fail(code ? code : RP_ERR_INTERNAL, "%s", code ? text : "a call failed");
  }
  return g->failed;
}

mlx_array lm_own(struct lm_scope* g, mlx_array a) {
  if (g->n == g->cap) {
    size_t cap = g->cap ? g->cap * 2 : 64;
    mlx_array* more = realloc(g->keep, cap * sizeof *more);
    if (!more) {
      if (!g->failed) g->failed = lm_fail_memory("a graph", cap * sizeof *more);
      mlx_array_free(a);
      return (mlx_array){0};
    }
    g->keep = more;
    g->cap = cap;
  }
  g->keep[g->n++] = a;
  return a;
}

mlx_array lm_export(struct lm_scope* g, mlx_array a) {
  mlx_array out = {0};
  if (!g->failed) lm_scope_check(g, mlx_array_set(&out, a));
  return out;
}

/* Run one call that fills `out` and hand the result out. */
#define RETURN_CALL(call)                      \
  mlx_array out = {0};                         \
  if (g->failed) return out;                   \
  if (lm_scope_check(g, (call))) {             \
    mlx_array_free(out);                       \
    return (mlx_array){0};                     \
  }                                            \
  return lm_own(g, out)

mlx_array lm_int(struct lm_scope* g, int value) { RETURN_CALL(mlx_array_set_int(&out, value)); }
mlx_array lm_float(struct lm_scope* g, float value) {
  RETURN_CALL(mlx_array_set_float(&out, value));
}
mlx_array lm_ints(struct lm_scope* g, const int32_t* at, int n) {
  RETURN_CALL(mlx_array_set_data(&out, at, &n, 1, MLX_INT32));
}
mlx_array lm_add(struct lm_scope* g, mlx_array a, mlx_array b) {
  RETURN_CALL(mlx_add(&out, a, b, g->stream));
}
mlx_array lm_mul(struct lm_scope* g, mlx_array a, mlx_array b) {
  RETURN_CALL(mlx_multiply(&out, a, b, g->stream));
}
static mlx_array sigmoid(struct lm_scope* g, mlx_array a) {
  RETURN_CALL(mlx_sigmoid(&out, a, g->stream));
}
mlx_array lm_silu(struct lm_scope* g, mlx_array a) { return lm_mul(g, a, sigmoid(g, a)); }
mlx_array lm_astype(struct lm_scope* g, mlx_array a, mlx_dtype dtype) {
  RETURN_CALL(mlx_astype(&out, a, dtype, g->stream));
}
mlx_array lm_take(struct lm_scope* g, mlx_array a, mlx_array indices, int axis) {
  RETURN_CALL(mlx_take_axis(&out, a, indices, axis, g->stream));
}
mlx_array lm_expand(struct lm_scope* g, mlx_array a, int axis) {
  RETURN_CALL(mlx_expand_dims(&out, a, axis, g->stream));
}
mlx_array lm_transpose(struct lm_scope* g, mlx_array a, const int* axes, size_t n) {
  RETURN_CALL(mlx_transpose_axes(&out, a, axes, n, g->stream));
}
mlx_array lm_reshape(struct lm_scope* g, mlx_array a, const int* shape, size_t n) {
  RETURN_CALL(mlx_reshape(&out, a, shape, n, g->stream));
}
mlx_array lm_unflatten(struct lm_scope* g, mlx_array a, int axis, const int* shape, size_t n) {
  RETURN_CALL(mlx_unflatten(&out, a, axis, shape, n, g->stream));
}
mlx_array lm_flatten(struct lm_scope* g, mlx_array a, int first, int last) {
  RETURN_CALL(mlx_flatten(&out, a, first, last, g->stream));
}

static mlx_array slice(struct lm_scope* g, mlx_array a, const int* start, const int* stop,
                       const int* step, size_t n) {
  RETURN_CALL(mlx_slice(&out, a, start, n, stop, n, step, n, g->stream));
}

enum { MAX_RANK = 8 };

/* All of every axis but one. A size that the trace should not fix is the largest int, not an extent. */
mlx_array lm_slice_axis(struct lm_scope* g, mlx_array a, int axis, int start, int stop) {
  int from[MAX_RANK] = {0}, to[MAX_RANK], step[MAX_RANK];
  if (g->failed) return (mlx_array){0};
  size_t n = mlx_array_ndim(a);
  for (size_t i = 0; i < n && i < MAX_RANK; i++) {
    to[i] = 0x7fffffff;
    step[i] = 1;
  }
  from[axis] = start;
  to[axis] = stop;
  return slice(g, a, from, to, step, n);
}

static mlx_array concat_vector(struct lm_scope* g, mlx_vector_array v, int axis) {
  RETURN_CALL(mlx_concatenate_axis(&out, v, axis, g->stream));
}

mlx_array lm_concat(struct lm_scope* g, const mlx_array* at, size_t n, int axis) {
  if (g->failed) return (mlx_array){0};
  mlx_vector_array v = mlx_vector_array_new_data(at, n);
  mlx_array out = concat_vector(g, v, axis);
  mlx_vector_array_free(v);
  return out;
}
