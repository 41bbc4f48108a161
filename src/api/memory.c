/* memory.h: counts and limits of the memory of arrays. */
#include <stdatomic.h>

#include "core/buffer.h"
#include "mlx/c/memory.h"

int mlx_clear_cache(void) {
  rpi_memory_clear_cache();
  return 0;
}

int mlx_get_active_memory(size_t* res) {
  *res = rpi_memory_active();
  return 0;
}

int mlx_get_cache_memory(size_t* res) {
  *res = rpi_memory_cached();
  return 0;
}

int mlx_get_memory_limit(size_t* res) {
  *res = rpi_memory_limit();
  return 0;
}

int mlx_get_peak_memory(size_t* res) {
  *res = rpi_memory_peak();
  return 0;
}

int mlx_reset_peak_memory(void) {
  rpi_memory_reset_peak();
  return 0;
}

int mlx_set_cache_limit(size_t* res, size_t limit) {
  *res = rpi_memory_set_cache_limit(limit);
  return 0;
}

int mlx_set_memory_limit(size_t* res, size_t limit) {
  *res = rpi_memory_set_limit(limit);
  return 0;
}

/* Memory that a GPU may not page out: nothing to do without one. */
int mlx_set_wired_limit(size_t* res, size_t limit) {
  static _Atomic(size_t) wired;
  *res = atomic_exchange(&wired, limit);
  return 0;
}
