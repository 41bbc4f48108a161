/* The bounded map. */
#include "compile/cache.h"

#include <string.h>

struct cache_entry {
  struct cache_entry* chain;          /* in its bucket */
  struct cache_entry *newer, *older;  /* by use */
  uint64_t hash;
  struct payload* object;
  size_t bytes;
  char key[];
};

static uint64_t hash_bytes(const void* key, size_t bytes) {
  const char* p = key;
  uint64_t h = 0x9e3779b97f4a7c15u ^ bytes, w;
  for (; bytes >= 8; p += 8, bytes -= 8) {
    memcpy(&w, p, 8);
    h = (h ^ w) * 0xd6e8feb86659fd93u;
    h ^= h >> 32;
  }
  w = 0;
  memcpy(&w, p, bytes);
  h = (h ^ w) * 0xd6e8feb86659fd93u;
  return h ^ (h >> 29);
}

void rpi_cache_init(struct cache* c, int limit) {
  memset(c, 0, sizeof *c);
  pthread_mutex_init(&c->lock, NULL);
  c->limit = limit;
}

static struct cache_entry* find(struct cache* c, uint64_t hash, const void* key, size_t bytes) {
  if (!c->nbuckets) return NULL;
  struct cache_entry* e = c->bucket[hash & (uint64_t)(c->nbuckets - 1)];
  while (e && (e->hash != hash || e->bytes != bytes || memcmp(e->key, key, bytes))) e = e->chain;
  return e;
}

static void unlink_use(struct cache* c, struct cache_entry* e) {
  *(e->newer ? &e->newer->older : &c->newest) = e->older;
  *(e->older ? &e->older->newer : &c->oldest) = e->newer;
}

static void link_newest(struct cache* c, struct cache_entry* e) {
  e->newer = NULL;
  e->older = c->newest;
  *(c->newest ? &c->newest->newer : &c->oldest) = e;
  c->newest = e;
}

static struct payload* retain(struct payload* p) {
  atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
  return p;
}

struct payload* rpi_cache_get(struct cache* c, const void* key, size_t bytes) {
  uint64_t hash = hash_bytes(key, bytes);
  struct payload* p = NULL;
  pthread_mutex_lock(&c->lock);
  struct cache_entry* e = find(c, hash, key, bytes);
  if (e) {
    p = retain(e->object);
    if (c->newest != e) {
      unlink_use(c, e);
      link_newest(c, e);
    }
  }
  pthread_mutex_unlock(&c->lock);
  return p;
}

/* Twice the buckets; without memory the chains just get longer. */
static int grow(struct cache* c) {
  if (c->count < c->nbuckets) return 0;
  int n = c->nbuckets ? c->nbuckets * 2 : 8;
  struct cache_entry** more = rpi_calloc((size_t)n, sizeof(struct cache_entry*));
  if (!more) return c->nbuckets == 0;
  rpi_free(c->bucket);
  c->bucket = more;
  c->nbuckets = n;
  for (struct cache_entry* e = c->newest; e; e = e->older) {
    struct cache_entry** at = &c->bucket[e->hash & (uint64_t)(n - 1)];
    e->chain = *at;
    *at = e;
  }
  return 0;
}

static void unchain(struct cache* c, struct cache_entry* e) {
  struct cache_entry** at = &c->bucket[e->hash & (uint64_t)(c->nbuckets - 1)];
  while (*at != e) at = &(*at)->chain;
  *at = e->chain;
}

static struct cache_entry* detach(struct cache* c, struct cache_entry* e) {
  if (!e) return NULL;
  unlink_use(c, e);
  unchain(c, e);
  c->count--;
  return e;
}

static void insert(struct cache* c, struct cache_entry* e) {
  struct cache_entry** at = &c->bucket[e->hash & (uint64_t)(c->nbuckets - 1)];
  e->chain = *at;
  *at = e;
  link_newest(c, e);
  c->count++;
}

static void drop_entry(struct cache_entry* e) {
  if (!e) return;
  rpi_payload_release(e->object);
  rpi_free(e);
}

int rpi_cache_put(struct cache* c, const void* key, size_t bytes, struct payload* p,
                  struct payload** kept) {
  uint64_t hash = hash_bytes(key, bytes);
  struct cache_entry *old = NULL, *fresh = rpi_alloc(sizeof *fresh + bytes);
  *kept = retain(p);
  if (!fresh) return 1;
  *fresh = (struct cache_entry){.hash = hash, .object = retain(p), .bytes = bytes};
  memcpy(fresh->key, key, bytes);
  pthread_mutex_lock(&c->lock);
  struct cache_entry* there = find(c, hash, key, bytes);
  if (there || grow(c)) {
    if (there) *kept = retain(there->object);
    old = fresh;
  } else {
    if (c->count >= c->limit) old = detach(c, c->oldest);
    insert(c, fresh);
  }
  pthread_mutex_unlock(&c->lock);
  if (*kept != p) rpi_payload_release(p); /* the reference *kept had on p */
  drop_entry(old);
  return 0;
}

void rpi_cache_remove(struct cache* c, const void* key, size_t bytes) {
  pthread_mutex_lock(&c->lock);
  struct cache_entry* e = detach(c, find(c, hash_bytes(key, bytes), key, bytes));
  pthread_mutex_unlock(&c->lock);
  drop_entry(e);
}

void rpi_cache_clear(struct cache* c) {
  for (;;) {
    pthread_mutex_lock(&c->lock);
    struct cache_entry* e = detach(c, c->oldest);
    pthread_mutex_unlock(&c->lock);
    if (!e) return;
    drop_entry(e);
  }
}

void rpi_cache_free(struct cache* c) {
  rpi_cache_clear(c);
  rpi_free(c->bucket);
  pthread_mutex_destroy(&c->lock);
}
