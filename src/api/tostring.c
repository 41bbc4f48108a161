/* mlx_array_tostring: "array([1, 2, 3], dtype=int32)", long axes shortened to three at either end. */
#include <stdio.h>

#include "api/call.h"
#include "api/text.h"
#include "backend/backend.h"
#include "base/err.h"
#include "base/str.h"
#include "exec/eval.h"
#include "op/scalar.h"

enum { EDGE = 3 };

/* The host's locale may write a comma; the text does not depend on it. */
static void add_number(struct rpi_str* s, const char* format, double x) {
  char text[32];
  snprintf(text, sizeof text, format, x);
  for (char* c = text; *c; c++)
    if (*c == ',') *c = '.';
  rpi_str_add(s, text);
}

static void add_float(struct rpi_str* s, double x) { add_number(s, "%g", x); }

static void add_element(struct rpi_str* s, const void* data, int64_t i, int dtype) {
  const struct rpi_c64* c = (const struct rpi_c64*)data + i;
  switch (dtype) {
    case RPI_BOOL: rpi_str_add(s, ((const uint8_t*)data)[i] ? "True" : "False"); break;
    case RPI_UINT8: rpi_str_addf(s, "%u", ((const uint8_t*)data)[i]); break;
    case RPI_UINT16: rpi_str_addf(s, "%u", ((const uint16_t*)data)[i]); break;
    case RPI_UINT32: rpi_str_addf(s, "%u", ((const uint32_t*)data)[i]); break;
    case RPI_UINT64: rpi_str_addf(s, "%llu", ((const unsigned long long*)data)[i]); break;
    case RPI_INT8: rpi_str_addf(s, "%d", ((const int8_t*)data)[i]); break;
    case RPI_INT16: rpi_str_addf(s, "%d", ((const int16_t*)data)[i]); break;
    case RPI_INT32: rpi_str_addf(s, "%d", ((const int32_t*)data)[i]); break;
    case RPI_INT64: rpi_str_addf(s, "%lld", ((const long long*)data)[i]); break;
    case RPI_FLOAT16: add_float(s, (double)rp_f16_to_f32(((const uint16_t*)data)[i])); break;
    case RPI_BFLOAT16: add_float(s, (double)rp_bf16_to_f32(((const uint16_t*)data)[i])); break;
    case RPI_FLOAT32: add_float(s, (double)((const float*)data)[i]); break;
    case RPI_FLOAT64: add_float(s, ((const double*)data)[i]); break;
    default:
      add_float(s, (double)c->re);
      add_number(s, "%+gj", (double)c->im);
  }
}

/* One axis; `first` is the number of its first element in row-major order. Depth is at most the rank. */
static void add_axis(struct rpi_str* s, const struct array* a, const void* data, int64_t first,
                     int axis) {
  int n = a->shape[axis];
  bool is_last = axis == a->ndim - 1;
  int64_t step = rpi_shape_size(a->shape + axis + 1, a->ndim - axis - 1);
  rpi_str_add(s, "[");
  for (int i = 0; i < n; i++) {
    if (i) rpi_str_add(s, is_last ? ", " : ",\n");
    for (int k = 0; i && !is_last && k < 7 + axis; k++) rpi_str_add(s, " ");
    if (i == EDGE && n > 2 * EDGE) {
      rpi_str_add(s, "...");
      i = n - EDGE - 1;
    } else if (is_last) {
      add_element(s, data, first + i, a->dtype);
    } else {
      add_axis(s, a, data, first + i * step, axis + 1);
    }
  }
  rpi_str_add(s, "]");
}

static int write_text(mlx_string* out, struct array* a) {
  struct rpi_str s = {0};
  const void* data = rpi_array_dense(a, rpi_array_pack);
  if (!data) return rpi_error_code();
  rpi_str_add(&s, "array(");
  if (a->ndim)
    add_axis(&s, a, data, 0, 0);
  else
    add_element(&s, data, 0, a->dtype);
  rpi_str_addf(&s, ", dtype=%s)", rpi_dtype_names[a->dtype]);
  char* text = rpi_str_take(&s);
  int rc = text ? rpi_string_set(out, text) : rpi_fail_memory("a text", 0);
  rpi_free(text);
  return rc;
}

int mlx_array_tostring(mlx_string* str, const mlx_array arr) {
  struct array* a = rpi_handle_get(arr, "array_tostring");
  if (!a) return rpi_report(rpi_error_code());
  int rc = rpi_eval(&a, 1);
  if (!rc) rc = write_text(str, a);
  rpi_array_release(a);
  return rpi_report(rc);
}
