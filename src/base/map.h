/* A hash map from text to pointers that keeps the order of insertion.
 *
 * Zero-initialised is empty. Keys are copied and may hold any bytes; values are the caller's, and a
 * release does not touch them. Entries are never removed one by one, so `at[0 .. n)` is the order
 * of insertion, and an index stays valid until the release. Not thread-safe for writers. */
#ifndef RPI_BASE_MAP_H
#define RPI_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct rpi_map_entry {
  char* key; /* terminated */
  size_t key_bytes;
  uint64_t hash;
  void* value; /* may be replaced in place */
};

struct rpi_map {
  struct rpi_map_entry* at;
  int64_t n, cap;
  int32_t* slot; /* index of an entry + 1, or 0; open addressing */
  int64_t slots; /* a power of two, at least 4/3 n */
};

/* Set key to value. `*old` (may be NULL) receives the value that was replaced, or NULL. Returns 0,
 * or non-zero when memory ran out or the map is full (2^30 keys): nothing is changed then. */
int rpi_map_put(struct rpi_map* m, const char* key, void* value, void** old);
int rpi_map_put_n(struct rpi_map* m, const char* key, size_t bytes, void* value, void** old);

/* The entry of a key, or NULL. Valid until the next put of a new key. */
struct rpi_map_entry* rpi_map_find(const struct rpi_map* m, const char* key);
struct rpi_map_entry* rpi_map_find_n(const struct rpi_map* m, const char* key, size_t bytes);

/* The value of a key, or NULL. */
void* rpi_map_get(const struct rpi_map* m, const char* key);

void rpi_map_release(struct rpi_map* m);

#endif
