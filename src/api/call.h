/* The edge of the interface: arguments in, results out, errors reported.
 *
 *   int mlx_mean(mlx_array* res, const mlx_array a, bool keepdims, const mlx_stream s) {
 *     struct build b;
 *     rpi_begin(&b, "mean", s);
 *     struct array* x = rpi_arg(&b, a);
 *     ...
 *     return rpi_finish(&b, res, y);
 *   } */
#ifndef RPI_API_CALL_H
#define RPI_API_CALL_H

#include "api/handle.h"
#include "op/build.h"

void rpi_begin(struct build* b, const char* name, mlx_stream s);
/* The array of a handle, borrowed until the end of the build. An empty handle fails the build. */
struct array* rpi_arg(struct build* b, mlx_array a);
/* The same, but an empty handle is NULL and no failure. */
struct array* rpi_arg_optional(struct build* b, mlx_array a);
/* The arrays of a vector, borrowed; *at is valid until the end of the build. At most
 * RPI_BUILD_LISTS of them. Returns the count, or -1. */
int64_t rpi_arg_vector(struct build* b, struct array*** at, mlx_vector_array v);
/* End the build: on success set *res and return 0, else report the error and return 1. */
int rpi_finish(struct build* b, mlx_array* res, struct array* y);
int rpi_finish_vector(struct build* b, mlx_vector_array* res, struct array* const* y, int64_t n);

/* For functions that are not builds: `rc` as it is if 0, else report the error and return 1. */
int rpi_report(int rc);

#endif
