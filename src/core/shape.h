/* Shapes and strides as values.
 *
 * Invariants:
 * 1. An extent is an int (the interface's), 0 to INT_MAX; the number of elements fits int64_t and the
 *    bytes fit int64_t for any dtype.
 * 2. Strides count elements, not bytes, and may be zero or negative. */
#ifndef RPI_CORE_SHAPE_H
#define RPI_CORE_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

enum { RPI_MAX_NDIM = 32 };

struct shape {
  int ndim;
  int dim[RPI_MAX_NDIM];
};

/* Copy `ndim` extents, checking count, sign and the product. `name` is the op for the message. */
int rpi_shape_make(struct shape* out, const char* name, const int* dims, int64_t ndim);

/* The product of extents; they were checked when the shape was made. */
int64_t rpi_shape_size(const int* dim, int ndim);
static inline int64_t rpi_size(const struct shape* s) { return rpi_shape_size(s->dim, s->ndim); }

/* 0 if the product of extents fits, else a shape error that names the op. */
int rpi_shape_check(const struct shape* s, const char* name);

bool rpi_shape_equal(const int* a, int na, const int* b, int nb);

/* Join two shapes under NumPy's rule: align on the right, stretch extents of 1. `out` may alias `a`. */
int rpi_shape_broadcast(struct shape* out, const char* name, const int* a, int na, const int* b,
                        int nb);

/* axis in [-ndim, ndim) to [0, ndim). */
int rpi_axis(int* out, const char* name, int axis, int ndim);

/* Row-major strides of a shape, in elements. */
void rpi_row_major(int64_t* stride, const int* dim, int ndim);
/* Whether elements lie one after another in row-major order (axes of extent 1 do not count). */
bool rpi_is_row_major(const int64_t* stride, const int* dim, int ndim);

/* "(2,3)" into buf of `n` bytes (always terminated); returns buf. */
const char* rpi_shape_text(char* buf, int n, const int* dim, int ndim);

#endif
