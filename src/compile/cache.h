/* A bounded map from byte strings to counted objects; the least recently used leaves.
 *
 * Every function takes the cache's own lock for a few instructions. Objects are released outside of it.
 * Lookups cost a hash of the key and, but for collisions, one comparison. */
#ifndef RPI_COMPILE_CACHE_H
#define RPI_COMPILE_CACHE_H

#include <pthread.h>

#include "base/vec.h"
#include "core/array.h"

struct cache_entry;

struct cache {
  pthread_mutex_t lock;
  int count, limit, nbuckets;
  struct cache_entry** bucket;
  struct cache_entry *newest, *oldest;
};

void rpi_cache_init(struct cache* c, int limit);
/* The object under the key with a reference for the caller, or NULL. */
struct payload* rpi_cache_get(struct cache* c, const void* key, size_t bytes);
/* Add `p` (retained) unless the key is there; *kept is what the cache holds then, with a reference for
 * the caller. 0, or out of memory (then *kept is p itself, retained). */
int rpi_cache_put(struct cache* c, const void* key, size_t bytes, struct payload* p,
                  struct payload** kept);
void rpi_cache_remove(struct cache* c, const void* key, size_t bytes);
void rpi_cache_clear(struct cache* c);
void rpi_cache_free(struct cache* c);

#endif
