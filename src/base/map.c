/* A table of indices (open addressing, linear probing) over an array of entries in insertion order.
 *
 * Keys come from files, so the hash starts from a number the process draws at its start: a file
 * cannot be written to make every key collide. */
#include "base/map.h"

#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/mem.h"

enum { FIRST_SLOTS = 16 };
static const int64_t MAX_KEYS = (int64_t)1 << 30;

static uint64_t seed(void) {
  uint64_t s = 0x9e3779b97f4a7c15u;
  const void* random = (const void*)getauxval(AT_RANDOM); /* 16 bytes from the kernel */
  if (random) memcpy(&s, random, sizeof s);
  return s;
}

static uint64_t mix(uint64_t h) {
  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
  h = (h ^ (h >> 29)) * 0xa0761d6478bd642fu;
  return h ^ (h >> 32);
}

static uint64_t hash_bytes(const char* key, size_t bytes) {
  uint64_t h = seed() ^ bytes;
  for (; bytes >= 8; key += 8, bytes -= 8) {
    uint64_t word;
    memcpy(&word, key, 8);
    h = mix(h ^ word);
  }
  uint64_t tail = 0;
  memcpy(&tail, key, bytes);
  return mix(h ^ tail);
}

/* The slot that holds the key, or the free one where it would go. */
static int64_t probe(const struct rpi_map* m, const char* key, size_t bytes, uint64_t hash) {
  int64_t i = (int64_t)(hash & (uint64_t)(m->slots - 1));
  for (; m->slot[i]; i = (i + 1) & (m->slots - 1)) {
    const struct rpi_map_entry* e = &m->at[m->slot[i] - 1];
    if (e->hash == hash && e->key_bytes == bytes && !memcmp(e->key, key, bytes)) break;
  }
  return i;
}

static int grow_slots(struct rpi_map* m) {
  int64_t slots = m->slots ? m->slots * 2 : FIRST_SLOTS;
  int32_t* slot = rpi_calloc((size_t)slots, sizeof *slot);
  if (!slot) return 1;
  for (int64_t k = 0; k < m->n; k++) {
    int64_t i = (int64_t)(m->at[k].hash & (uint64_t)(slots - 1));
    while (slot[i]) i = (i + 1) & (slots - 1);
    slot[i] = (int32_t)k + 1;
  }
  rpi_free(m->slot);
  m->slot = slot;
  m->slots = slots;
  return 0;
}

static int grow_entries(struct rpi_map* m) {
  int64_t cap = m->cap ? m->cap * 2 : FIRST_SLOTS / 2;
  struct rpi_map_entry* at = rpi_realloc(m->at, (size_t)cap * sizeof *at);
  if (!at) return 1;
  m->at = at;
  m->cap = cap;
  return 0;
}

int rpi_map_put_n(struct rpi_map* m, const char* key, size_t bytes, void* value, void** old) {
  struct rpi_map_entry* e = rpi_map_find_n(m, key, bytes);
  if (e) {
    if (old) *old = e->value;
    e->value = value;
    return 0;
  }

  if (m->n >= MAX_KEYS || bytes == SIZE_MAX) return 1;
  if (m->n == m->cap && grow_entries(m)) return 1;
  if (m->n + 1 > m->slots / 4 * 3 && grow_slots(m)) return 1;
  char* copy = rpi_alloc(bytes + 1);
  if (!copy) return 1;
  memcpy(copy, key, bytes);
  copy[bytes] = 0;

  uint64_t hash = hash_bytes(copy, bytes);
  int64_t i = probe(m, copy, bytes, hash);
  m->at[m->n++] = (struct rpi_map_entry){copy, bytes, hash, value};
  m->slot[i] = (int32_t)m->n;
  if (old) *old = NULL;
  return 0;
}

int rpi_map_put(struct rpi_map* m, const char* key, void* value, void** old) {
  return rpi_map_put_n(m, key, strlen(key), value, old);
}

struct rpi_map_entry* rpi_map_find_n(const struct rpi_map* m, const char* key, size_t bytes) {
  if (!m->n) return NULL;
  int64_t i = probe(m, key, bytes, hash_bytes(key, bytes));
  return m->slot[i] ? &m->at[m->slot[i] - 1] : NULL;
}

struct rpi_map_entry* rpi_map_find(const struct rpi_map* m, const char* key) {
  return rpi_map_find_n(m, key, strlen(key));
}

void* rpi_map_get(const struct rpi_map* m, const char* key) {
  const struct rpi_map_entry* e = rpi_map_find(m, key);
  return e ? e->value : NULL;
}

void rpi_map_release(struct rpi_map* m) {
  for (int64_t k = 0; k < m->n; k++) rpi_free(m->at[k].key);
  rpi_free(m->at);
  rpi_free(m->slot);
  *m = (struct rpi_map){0};
}
