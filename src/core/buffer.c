/* Pooled buffers: size classes with LIFO lists, so that the block freed last (warm in cache, its pages
 * touched) is the next one given out. First touch of fresh pages costs far more than any kernel. */
#include "core/buffer.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

enum { POOLED, MAPPED, FOREIGN };
enum { ALIGN = 64, HEADER = 64, CLASSES = 160, MAP_FROM = 1 << 17, HUGE_FROM = 4 << 20 };

_Static_assert(sizeof(struct buffer) <= HEADER, "the header is one cache line before the data");

static struct {
  pthread_mutex_t lock;
  struct buffer* list[CLASSES];
  size_t limit, cache_limit;
  _Atomic(size_t) active, peak, cached;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void lock_pool(void) { pthread_mutex_lock(&pool.lock); }
static void unlock_pool(void) { pthread_mutex_unlock(&pool.lock); }

static void set_defaults(void) {
  size_t ram = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  pool.limit = ram / 20 * 19;
  pool.cache_limit = ram / 8 < ((size_t)1 << 30) ? ram / 8 : (size_t)1 << 30;
}

void rpi_buffer_guard_fork(void) { pthread_atfork(lock_pool, unlock_pool, unlock_pool); }

/* Four classes per doubling keep waste under 25 %: class c holds (4 + c%4) << (c/4 + 4) bytes. */
static int class_of(size_t bytes) {
  if (bytes <= 64) return 0;
  int top = 63 - __builtin_clzll(bytes - 1);
  int step = (int)((bytes - 1) >> (top - 2)) & 3;
  return (top - 6) * 4 + step + 1;
}

static size_t class_bytes(int c) { return (size_t)(4 + c % 4) << (c / 4 + 4); }

static void count_active(size_t bytes) {
  size_t now = atomic_fetch_add_explicit(&pool.active, bytes, memory_order_relaxed) + bytes;
  size_t peak = atomic_load_explicit(&pool.peak, memory_order_relaxed);
  while (now > peak && !atomic_compare_exchange_weak(&pool.peak, &peak, now)) {
  }
}

static void give_back(struct buffer* b) {
  if (b->kind == MAPPED)
    munmap((char*)b, class_bytes(b->size_class) + HEADER);
  else
    rpi_free(b->payload);
}

/* Under the lock: unlink cached blocks, largest first, until at most `keep` bytes stay cached. */
static struct buffer* take_excess(size_t keep) {
  struct buffer* out = NULL;
  for (int c = CLASSES - 1; c >= 0 && pool.cached > keep; c--)
    while (pool.list[c] && pool.cached > keep) {
      struct buffer* b = pool.list[c];
      pool.list[c] = b->next;
      atomic_fetch_sub(&pool.cached, class_bytes(c));
      b->next = out;
      out = b;
    }
  return out;
}

static void drop_list(struct buffer* b) {
  while (b) {
    struct buffer* next = b->next;
    give_back(b);
    b = next;
  }
}

static struct buffer* take_cached(int c) {
  lock_pool();
  struct buffer* b = pool.list[c];
  if (b) {
    pool.list[c] = b->next;
    atomic_fetch_sub_explicit(&pool.cached, class_bytes(c), memory_order_relaxed);
  }
  unlock_pool();
  return b;
}

static struct buffer* map_block(int c) {
  size_t total = class_bytes(c) + HEADER;
  void* p = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
  if (total >= HUGE_FROM) madvise(p, total, MADV_HUGEPAGE); /* one fault per 2 MB instead of 512 */
  struct buffer* b = p;
  b->kind = MAPPED;
  return b;
}

static struct buffer* new_block(int c) {
  if (class_bytes(c) >= MAP_FROM) return map_block(c);
  char* raw = rpi_alloc(class_bytes(c) + HEADER + ALIGN);
  if (!raw) return NULL;
  struct buffer* b = (struct buffer*)(((uintptr_t)raw + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
  b->kind = POOLED;
  b->payload = raw;
  return b;
}

/* Make room under the memory limit by dropping cached memory; 0 if `bytes` fit then. */
static int make_room(size_t bytes) {
  size_t active = rpi_memory_active();
  if (bytes > pool.limit || active > pool.limit - bytes)
    return rpi_fail(RP_ERR_MEMORY, "[malloc] %zu bytes with %zu active pass the memory limit of %zu.",
                    bytes, active, pool.limit);
  size_t keep = pool.limit - bytes - active;
  if (rpi_memory_cached() <= keep) return 0;
  lock_pool();
  struct buffer* excess = take_excess(keep);
  unlock_pool();
  drop_list(excess);
  return 0;
}

struct buffer* rpi_buffer_new(size_t bytes) {
  pthread_once(&once, set_defaults);
  if (bytes > (size_t)1 << 46) {
    rpi_fail_memory("an array", bytes);
    return NULL;
  }
  int c = class_of(bytes);
  struct buffer* b = take_cached(c);
  if (!b) {
    if (make_room(class_bytes(c))) return NULL;
    b = new_block(c);
    if (!b) {
      rpi_memory_clear_cache();
      b = new_block(c);
    }
    if (!b) {
      rpi_fail_memory("an array", bytes);
      return NULL;
    }
  }
  atomic_store_explicit(&b->refs, 1, memory_order_relaxed);
  b->size_class = (uint8_t)c;
  b->bytes = class_bytes(c);
  b->data = (char*)b + HEADER;
  b->dtor = NULL;
  count_active(b->bytes);
  return b;
}

struct buffer* rpi_buffer_wrap(void* data, size_t bytes, void (*dtor)(void*), void* payload) {
  struct buffer* b = rpi_calloc(1, sizeof *b);
  if (!b) {
    rpi_fail_memory("a buffer header", sizeof *b);
    return NULL;
  }
  b->refs = 1;
  b->kind = FOREIGN;
  b->bytes = bytes;
  b->data = data;
  b->dtor = dtor;
  b->payload = payload;
  return b;
}

int rpi_buffer_may_write(const struct buffer* b) {
  return b->kind != FOREIGN && atomic_load_explicit(&b->refs, memory_order_acquire) == 1;
}

static void recycle(struct buffer* b) {
  struct buffer* excess = NULL;
  atomic_fetch_sub_explicit(&pool.active, b->bytes, memory_order_relaxed);
  lock_pool();
  if (b->bytes > pool.cache_limit) {
    b->next = NULL;
    excess = b;
  } else {
    b->next = pool.list[b->size_class];
    pool.list[b->size_class] = b;
    atomic_fetch_add_explicit(&pool.cached, b->bytes, memory_order_relaxed);
    if (pool.cached > pool.cache_limit) excess = take_excess(pool.cache_limit);
  }
  unlock_pool();
  drop_list(excess);
}

void rpi_buffer_release(struct buffer* b) {
  if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
  if (b->kind != FOREIGN) {
    recycle(b);
    return;
  }
  if (b->dtor) b->dtor(b->payload);
  rpi_free(b);
}

size_t rpi_memory_active(void) { return atomic_load_explicit(&pool.active, memory_order_relaxed); }
size_t rpi_memory_peak(void) { return atomic_load(&pool.peak); }
size_t rpi_memory_cached(void) { return atomic_load_explicit(&pool.cached, memory_order_relaxed); }
void rpi_memory_reset_peak(void) { atomic_store(&pool.peak, 0); }

void rpi_memory_clear_cache(void) {
  lock_pool();
  struct buffer* excess = take_excess(0);
  unlock_pool();
  drop_list(excess);
}

size_t rpi_memory_limit(void) {
  pthread_once(&once, set_defaults);
  return pool.limit;
}

size_t rpi_memory_set_limit(size_t bytes) {
  pthread_once(&once, set_defaults);
  lock_pool();
  size_t old = pool.limit;
  pool.limit = bytes;
  size_t active = rpi_memory_active();
  struct buffer* excess = take_excess(bytes > active ? bytes - active : 0);
  unlock_pool();
  drop_list(excess);
  return old;
}

size_t rpi_memory_set_cache_limit(size_t bytes) {
  pthread_once(&once, set_defaults);
  lock_pool();
  size_t old = pool.cache_limit;
  pool.cache_limit = bytes;
  struct buffer* excess = take_excess(bytes);
  unlock_pool();
  drop_list(excess);
  return old;
}
