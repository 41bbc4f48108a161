/* Building graphs: straight-line code over borrowed arrays, with one sticky error.
 *
 *   struct build b;
 *   rpi_build_begin(&b, "mean", stream);
 *   struct array* y = rpi_op2(&b, RPI_OP_multiply, rpi_sum(...), ...);
 *   return rpi_build_end(&b, &result, y);
 *
 * Invariants:
 * 1. Every array that a rpi_ function here returns is owned by the build and lives until its end.
 * 2. After a failure every call returns NULL at once and raises nothing more; NULL inputs are fine then.
 * 3. Building never executes anything, takes no lock, and may run on any thread. */
#ifndef RPI_OP_BUILD_H
#define RPI_OP_BUILD_H

#include "base/err.h"
#include "core/array.h"
#include "op/op.h"

enum { RPI_BUILD_KEEP = 24, RPI_BUILD_LISTS = 4 };

struct build {
  const char* name; /* of the public function, for messages */
  struct stream stream;
  int failed; /* the code, 0 while all is well */
  int nkeep, cap;
  struct array** keep;
  struct array* inline_keep[RPI_BUILD_KEEP];
  /* Lists of arrays given by the caller: memory of rpi_alloc, each retained. */
  int nlists;
  struct {
    struct array** at;
    int64_t n;
  } list[RPI_BUILD_LISTS];
};

void rpi_build_begin(struct build* b, const char* name, struct stream s);
/* Hand `result` to the caller with a reference of its own and release the rest. 0, or the code. */
int rpi_build_end(struct build* b, struct array** out, struct array* result);
/* Release everything without a result. */
void rpi_build_abandon(struct build* b);
/* Put an owned reference under the build's care and return it borrowed; NULL marks a failure. */
struct array* rpi_own(struct build* b, struct array* a);
/* Fail with a message unless something failed before; returns NULL for use in a return. */
struct array* rpi_build_fail(struct build* b, rp_error_code code, const char* fmt, ...)
    RPI_PRINTF(3, 4);

/* One operation with one output. */
struct array* rpi_op(struct build* b, int op, struct array* const* in, int nin, const int64_t* attr,
                     int nattr);
/* One operation with several outputs, written to out[0..nout). Returns 0 or the code. */
int rpi_op_multi(struct build* b, struct array** out, int op, struct array* const* in, int nin,
                 const int64_t* attr, int nattr);
struct array* rpi_op1(struct build* b, int op, struct array* x); /* no attributes */
struct array* rpi_op2(struct build* b, int op, struct array* x, struct array* y);

/* Public element-wise semantics: promote, convert to what the row takes, apply. */
struct array* rpi_unary(struct build* b, int op, struct array* x);
struct array* rpi_binary(struct build* b, int op, struct array* x, struct array* y);

/* Conversions and constants. */
struct array* rpi_astype(struct build* b, struct array* x, int dtype); /* x itself if it has it */
struct array* rpi_const(struct build* b, double value, int dtype);     /* 0-d */

/* Movement. Axes may be negative; errors name the build. */
struct array* rpi_reshape(struct build* b, struct array* x, const int* shape, int64_t ndim);
struct array* rpi_flatten(struct build* b, struct array* x, int first, int last);
struct array* rpi_unflatten(struct build* b, struct array* x, int axis, const int* shape, int64_t n);
struct array* rpi_expand_dims(struct build* b, struct array* x, const int* axes, int64_t n);
struct array* rpi_squeeze(struct build* b, struct array* x, const int* axes, int64_t n);
struct array* rpi_transpose(struct build* b, struct array* x, const int* axes, int64_t n);
struct array* rpi_swapaxes(struct build* b, struct array* x, int a, int c);
struct array* rpi_broadcast_to(struct build* b, struct array* x, const int* shape, int64_t ndim);
/* One start, stop and step for each of the axes of x, as in op/slice.h. */
struct array* rpi_slice(struct build* b, struct array* x, const int* start, const int* stop,
                        const int* step, int64_t n);
/* start:stop of one axis; INT_MAX as `stop` is the end at every size. */
struct array* rpi_slice_axis(struct build* b, struct array* x, int axis, int start, int stop);

/* x; in a trace an axis whose extent was baked into something: another extent is an error then. */
struct array* rpi_pin(struct build* b, struct array* x, int axis);

/* Indexing and joining. */
struct array* rpi_take(struct build* b, struct array* x, struct array* index, int axis);
struct array* rpi_take_along_axis(struct build* b, struct array* x, struct array* index, int axis);
struct array* rpi_gather(struct build* b, struct array* x, struct array* const* index, int64_t n,
                         const int* axes, const int* size, int64_t nsize);
struct array* rpi_concatenate(struct build* b, struct array* const* x, int64_t n, int axis);
struct array* rpi_stack(struct build* b, struct array* const* x, int64_t n, int axis);
struct array* rpi_arange(struct build* b, double start, double step, int64_t count, int dtype);
/* 0, 1, ... along an axis as int64, with extent 1 (or 0) elsewhere; it follows x's size in a trace. */
struct array* rpi_axis_index(struct build* b, struct array* x, int axis);

/* Axes given by the caller to ascending unique non-negative ones; n < 0 means all. 0 or the code. */
int rpi_axes(struct build* b, int* out, int* nout, const int* axes, int64_t n, int ndim);

#endif
