/* Rows along one axis or several: the operand with those axes last, and packed unless it is
 * already. */
#ifndef RPI_BACKEND_CPU_ALONG_H
#define RPI_BACKEND_CPU_ALONG_H

#include <stdatomic.h>

#include "backend/backend.h"
#include "core/buffer.h"

struct along {
  const char* src; /* row i starts at src + i * n * item bytes of the input's dtype */
  char* dst;       /* likewise, of the output's dtype */
  int64_t rows, n; /* n may be 0, rows too */
  struct buffer *in, *out; /* what had to be moved, or NULL */
  const struct call* call;
  int axis; /* of a result that keeps the shape */
  _Atomic(int) failed;
};

/* Rows over the `naxes` ascending axes, row-major. The output is the call's: one element per row.
 */
int rpi_along_reduce(struct along* a, const struct call* c, const int64_t* axes, int naxes);
/* Rows along one axis; the output has the input's shape, and rpi_along_finish puts it in place. */
int rpi_along_map(struct along* a, const struct call* c, int axis);
/* Release; 0, or the code of a failure during the work (`failed` is set). */
int rpi_along_finish(struct along* a);

/* Run fn(a, first, last) over blocks of rows, in parallel if it is much work; `cost` is the work
 * per element in additions, about. */
void rpi_along_each(struct along* a, int64_t cost,
                    void (*fn)(struct along* a, int64_t first, int64_t last));

#endif
