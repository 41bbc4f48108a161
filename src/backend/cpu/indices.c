/* Index arrays: see indices.h. */
#include "backend/cpu/indices.h"

#define ADD(name, type)                                                                          \
  static void add_##name(int64_t* out, const void* src, int64_t n, int64_t step,                 \
                         struct index_range r) {                                                 \
    const type* s = src;                                                                         \
    int64_t high = r.extent - r.size;                                                            \
    for (int64_t k = 0; k < n; k++) {                                                            \
      /* An index past int64 is past every end, not before the beginning. */                     \
      int64_t at = sizeof(type) == 8 && (type)-1 > 0 && s[k * step] > (type)INT64_MAX            \
                       ? INT64_MAX                                                               \
                       : (int64_t)s[k * step];                                                   \
      at += at < 0 ? r.extent : 0;                                                               \
      at = at > high ? high : at;                                                                \
      out[k] += (at < 0 ? 0 : at) * r.stride;                                                    \
    }                                                                                            \
  }
ADD(u8, uint8_t)
ADD(u16, uint16_t)
ADD(u32, uint32_t)
ADD(u64, uint64_t)
ADD(i8, int8_t)
ADD(i16, int16_t)
ADD(i32, int32_t)
ADD(i64, int64_t)

void rpi_indices_add(int64_t* out, const void* src, int dtype, int64_t n, int64_t step,
                     struct index_range range) {
  switch (dtype) {
    case RPI_UINT8: add_u8(out, src, n, step, range); break;
    case RPI_UINT16: add_u16(out, src, n, step, range); break;
    case RPI_UINT32: add_u32(out, src, n, step, range); break;
    case RPI_UINT64: add_u64(out, src, n, step, range); break;
    case RPI_INT8: add_i8(out, src, n, step, range); break;
    case RPI_INT16: add_i16(out, src, n, step, range); break;
    case RPI_INT32: add_i32(out, src, n, step, range); break;
    default: add_i64(out, src, n, step, range); break;
  }
}

void rpi_indices_add_all(int64_t* out, const void* src, const struct view* v, const int* shape,
                         int ndim, struct index_range range) {
  int64_t item = (int64_t)rpi_dtype_size(v->dtype), stride[RPI_MAX_NDIM];
  int64_t cols = ndim ? shape[ndim - 1] : 1, rows = 1;
  for (int i = 0; i < ndim; i++) {
    int from = i - (ndim - v->ndim);
    stride[i] = from >= 0 && v->shape[from] != 1 ? v->stride[from] : 0;
    if (i < ndim - 1) rows *= shape[i];
  }
  for (int64_t r = 0; r < rows && cols; r++) {
    int64_t at = 0, rest = r;
    for (int i = ndim - 2; i >= 0; i--) {
      at += rest % shape[i] * stride[i];
      rest /= shape[i];
    }
    rpi_indices_add(out + r * cols, (const char*)src + at * item, v->dtype, cols,
                    ndim ? stride[ndim - 1] : 0, range);
  }
}
