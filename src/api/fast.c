/* fast.h: norms, rotary positions and attention. The kernels of other machines are in
 * fast_kernel.c. */
#include "api/call.h"

#include <string.h>

/* x in the dtype it gets together with the other inputs (NULL where not given), at least floating.
 */
static struct array* promoted(struct build* b, struct array* x, struct array* const* with, int n) {
  if (b->failed) return NULL;
  int d = x->dtype;
  for (int i = 0; i < n; i++)
    if (with[i]) d = rpi_dtype_promote(d, with[i]->dtype);
  if (rpi_dtype_kind(x->dtype) != RPI_KIND_F || rpi_dtype_kind(d) != RPI_KIND_F)
    return rpi_build_fail(b, RP_ERR_DTYPE, "Not supported for %s.",
                          rpi_dtype_names[rpi_dtype_kind(x->dtype) != RPI_KIND_F ? x->dtype : d]);
  return rpi_astype(b, x, d);
}

/* Weights are widened by the kernels, which only have no mixtures with float64, nor integers. */
static struct array* weight_for(struct build* b, struct array* x, struct array* w) {
  if (b->failed || !w) return NULL;
  bool fits = rpi_dtype_kind(w->dtype) == RPI_KIND_F &&
              (w->dtype == RPI_FLOAT64) == (x->dtype == RPI_FLOAT64);
  return fits ? w : rpi_astype(b, w, x->dtype);
}

int mlx_fast_layer_norm(mlx_array* res, const mlx_array x, const mlx_array weight,
                        const mlx_array bias, float eps, const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "layer_norm", s);
  struct array *in = rpi_arg(&b, x), *w = rpi_arg_optional(&b, weight);
  struct array* c = rpi_arg_optional(&b, bias);
  in = promoted(&b, in, (struct array*[]){w, c}, 2);
  struct array* all[3] = {in};
  int n = 1;
  if (w) all[n++] = weight_for(&b, in, w);
  if (c) all[n++] = weight_for(&b, in, c);
  int64_t attr[2] = {rpi_attr_from_double((double)eps), (w ? 1 : 0) | (c ? 2 : 0)};
  return rpi_finish(&b, res, b.failed ? NULL : rpi_op(&b, RPI_OP_layer_norm, all, n, attr, 2));
}

int mlx_fast_rms_norm(mlx_array* res, const mlx_array x, const mlx_array weight, float eps,
                      const mlx_stream s) {
  struct build b;
  rpi_begin(&b, "rms_norm", s);
  struct array *in = rpi_arg(&b, x), *w = rpi_arg_optional(&b, weight);
  in = promoted(&b, in, &w, 1);
  struct array* all[2] = {in, weight_for(&b, in, w)};
  int64_t attr[1] = {rpi_attr_from_double((double)eps)};
  return rpi_finish(&b, res,
                    b.failed ? NULL : rpi_op(&b, RPI_OP_rms_norm, all, w ? 2 : 1, attr, 1));
}

struct rope_args {
  int dims;
  bool traditional;
  mlx_optional_float base;
  float scale;
};

static struct array* rope(struct build* b, mlx_array x, const struct rope_args* r,
                          struct array* offset, mlx_array freqs) {
  struct array *in = rpi_arg(b, x), *f = rpi_arg_optional(b, freqs);
  if (b->failed) return NULL;
  if (r->base.has_value == (f != NULL))
    return rpi_build_fail(b, RP_ERR_ARGUMENT, "%s base and freqs are given; exactly one is needed.",
                          f ? "Both" : "Neither");
  int64_t attr[4] = {r->dims, r->traditional, rpi_attr_from_double(f ? 0.0 : (double)r->base.value),
                     rpi_attr_from_double((double)r->scale)};
  return rpi_op(b, RPI_OP_rope, (struct array*[]){in, offset, f}, f ? 3 : 2, attr, 4);
}

int mlx_fast_rope(mlx_array* res, const mlx_array x, int dims, bool traditional,
                  mlx_optional_float base, float scale, int offset, const mlx_array freqs,
                  const mlx_stream s) {
  struct rope_args r = {dims, traditional, base, scale};
  struct build b;
  rpi_begin(&b, "rope", s);
  struct array* at = rpi_const(&b, offset, RPI_INT32);
  return rpi_finish(&b, res, rope(&b, x, &r, at, freqs));
}

int mlx_fast_rope_dynamic(mlx_array* res, const mlx_array x, int dims, bool traditional,
                          mlx_optional_float base, float scale, const mlx_array offset,
                          const mlx_array freqs, const mlx_stream s) {
  struct rope_args r = {dims, traditional, base, scale};
  struct build b;
  rpi_begin(&b, "rope", s);
  struct array* at = rpi_arg(&b, offset);
  return rpi_finish(&b, res, rope(&b, x, &r, at, freqs));
}

/* Which of the mask's forms is meant: whether it is causal, and whether an array is to come. */
static void read_mask_mode(struct build* b, const char* mode, bool has_mask, bool* is_causal,
                           bool* is_array) {
  mode = mode ? mode : "";
  *is_causal = strcmp(mode, "causal") == 0;
  *is_array = strcmp(mode, "array") == 0 || (!*mode && has_mask);
  if (*mode && !*is_causal && !*is_array)
    rpi_build_fail(b, RP_ERR_ARGUMENT,
                   "The mask mode \"%.40s\" is none of \"\", \"causal\", \"array\".", mode);
  else if (*is_causal && has_mask)
    rpi_build_fail(b, RP_ERR_ARGUMENT, "A causal mask and an array are given.");
  else if (*is_array && !has_mask)
    rpi_build_fail(b, RP_ERR_ARGUMENT, "The mask mode is \"array\" and the mask is empty.");
}

/* An additive mask or sinks as the kernel takes them: floating, and promoting to the queries' dtype. */
static struct array* fitting(struct build* b, struct array* x, int dtype, const char* what) {
  if (b->failed || !x) return NULL;
  if (rpi_dtype_promote(x->dtype, dtype) != dtype)
    return rpi_build_fail(b, RP_ERR_DTYPE, "%s is %s, which does not promote to %s.", what,
                          rpi_dtype_names[x->dtype], rpi_dtype_names[dtype]);
  return rpi_dtype_kind(x->dtype) == RPI_KIND_F ? x : rpi_astype(b, x, dtype);
}

static struct array* attention(struct build* b, struct array* const* qkv, float scale,
                               bool is_causal, struct array* mask, struct array* sinks) {
  struct array* all[5];
  int n = 3;
  if (b->failed) return NULL;
  for (int i = 0; i < 3; i++) all[i] = promoted(b, qkv[i], qkv, 3);
  if (b->failed) return NULL;
  int d = all[0]->dtype;
  if (mask) all[n++] = mask->dtype == RPI_BOOL ? mask : fitting(b, mask, d, "The mask");
  if (sinks) all[n++] = fitting(b, sinks, d, "The array of sinks");
  if (b->failed) return NULL;
  int64_t attr[4] = {rpi_attr_from_double((double)scale), is_causal, mask != NULL, sinks != NULL};
  return rpi_op(b, RPI_OP_sdpa, all, n, attr, 4);
}

int mlx_fast_scaled_dot_product_attention(mlx_array* res, const mlx_array queries,
                                          const mlx_array keys, const mlx_array values, float scale,
                                          const char* mask_mode, const mlx_array mask_arr,
                                          const mlx_array sinks, const mlx_stream s) {
  struct build b;
  bool is_causal, is_array;
  rpi_begin(&b, "scaled_dot_product_attention", s);
  struct array* qkv[3] = {rpi_arg(&b, queries), rpi_arg(&b, keys), rpi_arg(&b, values)};
  struct array *mask = rpi_arg_optional(&b, mask_arr), *sink = rpi_arg_optional(&b, sinks);
  read_mask_mode(&b, mask_mode, mask != NULL, &is_causal, &is_array);
  return rpi_finish(&b, res, attention(&b, qkv, scale, is_causal, mask, sink));
}
