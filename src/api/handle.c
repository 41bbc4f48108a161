/* Array handles: a counted array behind a short lock. */
#include "api/handle.h"

#include <sched.h>

#include "base/err.h"
#include "base/mem.h"

void rpi_lock(struct lock* l) {
  for (int spins = 0; atomic_exchange_explicit(&l->held, 1, memory_order_acquire); spins++)
    if (spins > 100) sched_yield();
}

void rpi_unlock(struct lock* l) { atomic_store_explicit(&l->held, 0, memory_order_release); }

struct array* rpi_handle_get(mlx_array h, const char* name) {
  struct array_handle* a = h.ctx;
  if (!a) {
    rpi_fail(RP_ERR_ARGUMENT, "[%s] An array handle is empty.", name);
    return NULL;
  }
  rpi_lock(&a->lock);
  struct array* array = rpi_array_retain(a->array);
  rpi_unlock(&a->lock);
  return array;
}

int rpi_handle_set(mlx_array* h, struct array* array) {
  struct array_handle* a = h->ctx;
  if (!a) {
    a = rpi_alloc(sizeof *a);
    if (!a) {
      rpi_array_release(array);
      return rpi_fail_memory("an array handle", sizeof *a);
    }
    *a = (struct array_handle){.array = array};
    h->ctx = a;
    return 0;
  }
  rpi_lock(&a->lock);
  struct array* old = a->array;
  a->array = array;
  rpi_unlock(&a->lock);
  rpi_array_release(old);
  return 0;
}

struct stream rpi_stream_of(mlx_stream s) {
  return s.ctx ? *(const struct stream*)s.ctx : rpi_default_stream(rpi_default_device());
}
