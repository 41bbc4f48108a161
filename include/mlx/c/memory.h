/* Memory of arrays. Counts are exact and in bytes, for the whole process. */
#ifndef MLX_C_MEMORY_H
#define MLX_C_MEMORY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Give freed memory that is kept for reuse back to the system. */
int mlx_clear_cache(void);

/* In use by arrays; kept for reuse; the limit that is in force; the largest use since the start or
 * the last reset. */
int mlx_get_active_memory(size_t* res);
int mlx_get_cache_memory(size_t* res);
int mlx_get_memory_limit(size_t* res);
int mlx_get_peak_memory(size_t* res);

int mlx_reset_peak_memory(void);

/* Set a limit; `*res` receives the one before. The cache keeps at most its limit. An allocation
 * that would pass the memory limit fails with RP_ERR_MEMORY. The wired limit is recorded and has no
 * effect here. */
int mlx_set_cache_limit(size_t* res, size_t limit);
int mlx_set_memory_limit(size_t* res, size_t limit);
int mlx_set_wired_limit(size_t* res, size_t limit);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
