/* array.h: making arrays, asking about them, reading them. */
#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "backend/backend.h"
#include "base/err.h"
#include "exec/eval.h"

_Static_assert(MLX_COMPLEX64 == (int)RPI_COMPLEX64 && MLX_FLOAT32 == (int)RPI_FLOAT32,
               "dtypes are numbered as in the interface");

size_t mlx_dtype_size(mlx_dtype dtype) {
  return rpi_dtype_valid((int)dtype) ? rpi_dtype_size((int)dtype) : 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

static mlx_array wrap(struct array* a) {
  mlx_array h = {0};
  if (!a || rpi_handle_set(&h, a)) rpi_report(rpi_error_code());
  return h;
}

mlx_array mlx_array_new(void) { return (mlx_array){0}; }

int mlx_array_free(mlx_array arr) {
  struct array_handle* h = arr.ctx;
  if (!h) return 0;
  rpi_array_release(h->array);
  rpi_free(h);
  return 0;
}

static struct array* scalar_bool(bool v) { return rpi_array_scalar(RPI_BOOL, &(uint8_t){v}); }
static struct array* scalar_int(int v) { return rpi_array_scalar(RPI_INT32, &v); }
static struct array* scalar_float(float v) { return rpi_array_scalar(RPI_FLOAT32, &v); }
static struct array* scalar_double(double v) { return rpi_array_scalar(RPI_FLOAT64, &v); }
static struct array* scalar_complex(float re, float im) {
  return rpi_array_scalar(RPI_COMPLEX64, &(struct rpi_c64){re, im});
}

mlx_array mlx_array_new_bool(bool val) { return wrap(scalar_bool(val)); }
mlx_array mlx_array_new_int(int val) { return wrap(scalar_int(val)); }
mlx_array mlx_array_new_float32(float val) { return wrap(scalar_float(val)); }
mlx_array mlx_array_new_float(float val) { return wrap(scalar_float(val)); }
mlx_array mlx_array_new_float64(double val) { return wrap(scalar_double(val)); }
mlx_array mlx_array_new_double(double val) { return wrap(scalar_double(val)); }
mlx_array mlx_array_new_complex(float re, float im) { return wrap(scalar_complex(re, im)); }

static int check_data(struct shape* s, const char* name, const int* shape, int dim,
                      mlx_dtype dtype) {
  if (!rpi_dtype_valid((int)dtype))
    return rpi_fail(RP_ERR_DTYPE, "[%s] %d is not a dtype.", name, (int)dtype);
  return rpi_shape_make(s, name, shape, dim);
}

static struct array* from_data(const void* data, const int* shape, int dim, mlx_dtype dtype) {
  struct shape s;
  if (check_data(&s, "array", shape, dim, dtype)) return NULL;
  if (!data && rpi_size(&s)) {
    rpi_fail(RP_ERR_ARGUMENT, "[array] The data pointer is NULL.");
    return NULL;
  }
  return rpi_array_data((int)dtype, s.dim, s.ndim, data);
}

mlx_array mlx_array_new_data(const void* data, const int* shape, int dim, mlx_dtype dtype) {
  return wrap(from_data(data, shape, dim, dtype));
}

/* The payload is taken in every case: the buffer destroys it, or this function does. */
static struct array* from_managed(void* data, const int* shape, int dim, mlx_dtype dtype,
                                  void* payload, void (*dtor)(void*)) {
  struct shape s;
  struct buffer* b = NULL;
  struct array* a = NULL;
  bool good = check_data(&s, "array", shape, dim, dtype) == 0;
  bool is_aligned = good && (uintptr_t)data % rpi_dtype_size((int)dtype) == 0;
  if (good && is_aligned && (data || !rpi_size(&s)))
    b = rpi_buffer_wrap(data, (size_t)rpi_size(&s) * rpi_dtype_size((int)dtype), dtor, payload);
  else if (good) /* kernels read whole elements: copied */
    a = from_data(data, shape, dim, dtype);
  if (b) return rpi_array_ready((int)dtype, s.dim, s.ndim, b);
  if (dtor) dtor(payload);
  return a;
}

mlx_array mlx_array_new_data_managed_payload(void* data, const int* shape, int dim, mlx_dtype dtype,
                                             void* payload, void (*dtor)(void*)) {
  return wrap(from_managed(data, shape, dim, dtype, payload, dtor));
}

mlx_array mlx_array_new_data_managed(void* data, const int* shape, int dim, mlx_dtype dtype,
                                     void (*dtor)(void*)) {
  return mlx_array_new_data_managed_payload(data, shape, dim, dtype, data, dtor);
}

static int set(mlx_array* arr, struct array* a) {
  return rpi_report(a ? rpi_handle_set(arr, a) : rpi_error_code());
}

int mlx_array_set(mlx_array* arr, const mlx_array src) {
  return set(arr, rpi_handle_get(src, "array_set"));
}
int mlx_array_set_bool(mlx_array* arr, bool val) { return set(arr, scalar_bool(val)); }
int mlx_array_set_int(mlx_array* arr, int val) { return set(arr, scalar_int(val)); }
int mlx_array_set_float32(mlx_array* arr, float val) { return set(arr, scalar_float(val)); }
int mlx_array_set_float(mlx_array* arr, float val) { return set(arr, scalar_float(val)); }
int mlx_array_set_float64(mlx_array* arr, double val) { return set(arr, scalar_double(val)); }
int mlx_array_set_double(mlx_array* arr, double val) { return set(arr, scalar_double(val)); }
int mlx_array_set_complex(mlx_array* arr, float re, float im) {
  return set(arr, scalar_complex(re, im));
}
int mlx_array_set_data(mlx_array* arr, const void* data, const int* shape, int dim,
                       mlx_dtype dtype) {
  return set(arr, from_data(data, shape, dim, dtype));
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* The array of a handle without a reference: valid while the caller keeps the handle as it is. */
static struct array* peek(mlx_array arr, const char* name) {
  struct array* a = rpi_handle_get(arr, name);
  if (!a) rpi_report(rpi_error_code());
  rpi_array_release(a);
  return a;
}

size_t mlx_array_itemsize(const mlx_array arr) {
  const struct array* a = peek(arr, "array_itemsize");
  return a ? rpi_dtype_size(a->dtype) : 0;
}
size_t mlx_array_size(const mlx_array arr) {
  const struct array* a = peek(arr, "array_size");
  return a ? (size_t)a->size : 0;
}
size_t mlx_array_nbytes(const mlx_array arr) {
  const struct array* a = peek(arr, "array_nbytes");
  return a ? rpi_array_bytes(a) : 0;
}
size_t mlx_array_ndim(const mlx_array arr) {
  const struct array* a = peek(arr, "array_ndim");
  return a ? a->ndim : 0;
}
const int* mlx_array_shape(const mlx_array arr) {
  const struct array* a = peek(arr, "array_shape");
  return a ? a->shape : NULL;
}
const size_t* mlx_array_strides(const mlx_array arr) {
  struct array* a = peek(arr, "array_strides");
  if (!a) return NULL;
  const struct dense* d = atomic_load_explicit(&a->dense, memory_order_acquire);
  return (const size_t*)(d ? d->stride : a->stride);
}
int mlx_array_dim(const mlx_array arr, int dim) {
  const struct array* a = peek(arr, "array_dim");
  int axis;
  if (!a) return 0;
  if (rpi_report(rpi_axis(&axis, "array_dim", dim, a->ndim))) return 0;
  return a->shape[axis];
}
mlx_dtype mlx_array_dtype(const mlx_array arr) {
  const struct array* a = peek(arr, "array_dtype");
  return a ? (mlx_dtype)a->dtype : MLX_FLOAT32;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int eval_one(mlx_array arr, const char* name, struct array** out) {
  struct array* a = rpi_handle_get(arr, name);
  if (!a) return rpi_error_code();
  int rc = rpi_eval(&a, 1);
  if (rc || !out)
    rpi_array_release(a);
  else
    *out = a;
  return rc;
}

int mlx_array_eval(mlx_array arr) { return rpi_report(eval_one(arr, "array_eval", NULL)); }

int rpi_array_pack(void* dst, const struct array* a) {
  struct view v = {.shape = a->shape, .stride = a->stride, .size = a->size, .dtype = a->dtype,
                   .ndim = a->ndim};
  return rpi_cpu.pack(dst, rpi_array_ptr(a), &v);
}

static const void* read_data(mlx_array arr) {
  struct array* a;
  const void* data = NULL;
  int rc = eval_one(arr, "array_data", &a);
  if (!rc) {
    data = rpi_array_dense(a, rpi_array_pack);
    if (!data) rc = rpi_error_code();
    rpi_array_release(a);
  }
  rpi_report(rc);
  return data;
}

/* One element converted as astype does; an int32 read as uint32 keeps its bits that way too. */
static int read_item(void* out, mlx_array arr, int dtype) {
  struct build b;
  rpi_begin(&b, "array_item", (mlx_stream){0});
  struct array* a = rpi_arg(&b, arr);
  if (a && a->size != 1) {
    char text[160];
    rpi_build_fail(&b, RP_ERR_SHAPE, "An item needs an array of one element; this one has shape %s.",
                   rpi_shape_text(text, sizeof text, a->shape, a->ndim));
  }
  struct array* item = NULL;
  int rc = rpi_build_end(&b, &item, rpi_astype(&b, a, dtype));
  if (!rc) rc = rpi_eval(&item, 1);
  if (!rc) memcpy(out, rpi_array_ptr(item), rpi_dtype_size(dtype));
  rpi_array_release(item);
  return rpi_report(rc);
}

#define ACCESSORS(suffix, ctype, dtype)                                   \
  int mlx_array_item_##suffix(ctype* res, const mlx_array arr) {          \
    return read_item(res, arr, dtype);                                    \
  }                                                                       \
  const ctype* mlx_array_data_##suffix(const mlx_array arr) { return read_data(arr); }

ACCESSORS(bool, bool, RPI_BOOL)
ACCESSORS(uint8, uint8_t, RPI_UINT8)
ACCESSORS(uint16, uint16_t, RPI_UINT16)
ACCESSORS(uint32, uint32_t, RPI_UINT32)
ACCESSORS(uint64, uint64_t, RPI_UINT64)
ACCESSORS(int8, int8_t, RPI_INT8)
ACCESSORS(int16, int16_t, RPI_INT16)
ACCESSORS(int32, int32_t, RPI_INT32)
ACCESSORS(int64, int64_t, RPI_INT64)
ACCESSORS(float32, float, RPI_FLOAT32)
ACCESSORS(float64, double, RPI_FLOAT64)
ACCESSORS(complex64, mlx_complex64_t, RPI_COMPLEX64)
ACCESSORS(float16, float16_t, RPI_FLOAT16)
ACCESSORS(bfloat16, bfloat16_t, RPI_BFLOAT16)

int _mlx_array_is_available(bool* res, const mlx_array arr) {
  const struct array* a = peek(arr, "array_is_available");
  if (a) *res = rpi_array_is_ready(a);
  return a ? 0 : 1;
}

int _mlx_array_wait(const mlx_array arr) { return mlx_array_eval(arr); }

int _mlx_array_is_row_contiguous(bool* res, const mlx_array arr) {
  const struct array* a = peek(arr, "array_is_row_contiguous");
  if (a) *res = rpi_array_is_row_major(a);
  return a ? 0 : 1;
}

static bool is_column_major(const struct array* a) {
  int64_t step = 1;
  for (int i = 0; i < a->ndim; i++) {
    if (a->shape[i] != 1 && a->stride[i] != step) return false;
    step *= a->shape[i];
  }
  return true;
}

int _mlx_array_is_col_contiguous(bool* res, const mlx_array arr) {
  const struct array* a = peek(arr, "array_is_col_contiguous");
  if (a) *res = is_column_major(a);
  return a ? 0 : 1;
}

int _mlx_array_is_contiguous(bool* res, const mlx_array arr) {
  const struct array* a = peek(arr, "array_is_contiguous");
  if (a) *res = rpi_array_is_row_major(a) || is_column_major(a);
  return a ? 0 : 1;
}
