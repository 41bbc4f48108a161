/* Tables made from dtype.def, and the promotion rule. */
#include "core/dtype.h"

const uint8_t rpi_dtype_bytes[RPI_DTYPE_COUNT] = {
#define DTYPE(name, ctype, bytes, kind, label) bytes,
#include "core/dtype.def"
#undef DTYPE
};

const uint8_t rpi_dtype_kinds[RPI_DTYPE_COUNT] = {
#define DTYPE(name, ctype, bytes, kind, label) RPI_KIND_##kind,
#include "core/dtype.def"
#undef DTYPE
};

const char* const rpi_dtype_names[RPI_DTYPE_COUNT] = {
#define DTYPE(name, ctype, bytes, kind, label) label,
#include "core/dtype.def"
#undef DTYPE
};

static int promote_integers(int a, int b) {
  int ka = rpi_dtype_kinds[a], kb = rpi_dtype_kinds[b];
  if (ka == kb) return rpi_dtype_bytes[a] >= rpi_dtype_bytes[b] ? a : b;
  int u = ka == RPI_KIND_U ? a : b, i = ka == RPI_KIND_U ? b : a;
  if (rpi_dtype_bytes[i] > rpi_dtype_bytes[u]) return i;
  switch (rpi_dtype_bytes[u]) { /* the next wider signed integer holds both */
    case 1: return RPI_INT16;
    case 2: return RPI_INT32;
    case 4: return RPI_INT64;
    default: return RPI_FLOAT32;
  }
}

int rpi_dtype_promote(int a, int b) {
  if (a == b) return a;
  int ka = rpi_dtype_kinds[a], kb = rpi_dtype_kinds[b];
  if (ka == RPI_KIND_B) return b;
  if (kb == RPI_KIND_B) return a;
  if (ka == RPI_KIND_C || kb == RPI_KIND_C) return RPI_COMPLEX64;
  if (ka != RPI_KIND_F && kb != RPI_KIND_F) return promote_integers(a, b);
  if (ka != kb) return ka == RPI_KIND_F ? a : b;
  if (rpi_dtype_bytes[a] == rpi_dtype_bytes[b]) return RPI_FLOAT32; /* the two half formats */
  return rpi_dtype_bytes[a] > rpi_dtype_bytes[b] ? a : b;
}

int rpi_dtype_accumulate(int d) {
  switch (d) {
    case RPI_BOOL:
    case RPI_INT8:
    case RPI_INT16: return RPI_INT32;
    case RPI_UINT8:
    case RPI_UINT16: return RPI_UINT32;
    default: return d;
  }
}
