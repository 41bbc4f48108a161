/* What the interface's handles point to.
 *
 * A handle's `ctx` is one of these objects. Reading and setting the same handle from two threads is
 * safe: the short lock inside covers the pointer it holds, never any work. */
#ifndef RPI_API_HANDLE_H
#define RPI_API_HANDLE_H

#include <stdatomic.h>

#include "base/vec.h"
#include "core/array.h"
#include "mlx/c/mlx.h"

struct lock {
  _Atomic(int) held;
};
void rpi_lock(struct lock* l); /* spins briefly, then yields; sections are a few instructions */
void rpi_unlock(struct lock* l);

struct array_handle {
  struct lock lock;
  struct array* array;
};

struct vector_array {
  struct lock lock;
  RPI_VEC(struct array*) v; /* each retained */
};

/* A retained array, or NULL after raising that the handle is empty. */
struct array* rpi_handle_get(mlx_array h, const char* name);
/* Put `a` (the reference is taken, also on failure) into the handle, making it if it is empty. */
int rpi_handle_set(mlx_array* h, struct array* a);

/* A new vector handle object over copies of the pointers (each retained); NULL after raising. */
struct vector_array* rpi_vector_new(struct array* const* at, int64_t n);
void rpi_vector_release(struct vector_array* v);
/* Replace the contents of *res, making it if it is empty; the references are retained. */
int rpi_vector_set(mlx_vector_array* res, struct array* const* at, int64_t n);
/* A snapshot of a vector: retained pointers in memory that the caller frees with rpi_vector_drop. */
int rpi_vector_get(struct array*** at, int64_t* n, mlx_vector_array v, const char* name);
void rpi_vector_drop(struct array** at, int64_t n);

/* For rpi_array_dense: copy the elements of a READY array to dst in row-major order. */
int rpi_array_pack(void* dst, const struct array* a);

struct stream rpi_stream_of(mlx_stream s); /* an empty handle is the default stream */

#endif
