/* What closure handles point to. */
#ifndef RPI_API_CLOSURE_H
#define RPI_API_CLOSURE_H

#include "api/handle.h"
#include "trace/closure.h"

struct closure_handle {
  struct lock lock;
  struct closure* closure;
};

/* A handle around `c` (the reference is taken, also on failure, which is reported); NULL gives an empty
 * handle after reporting the thread's error. */
mlx_closure rpi_closure_wrap(struct closure* c);
/* The closure with a reference, or NULL after raising. */
struct closure* rpi_closure_get(mlx_closure h, const char* name);
/* Put `c` (taken; NULL reports the thread's error) into the handle. 0 or 1. */
int rpi_closure_set(mlx_closure* res, struct closure* c);

#endif
