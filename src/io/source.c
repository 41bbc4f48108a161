/* Sources of bytes: see source.h.
 *
 * Both kinds end as one mapping (of the file, or anonymous), so that release is one munmap. */
#include "io/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

/* Pieces in which a caller's reader is drained. */
#define READ_PIECE ((size_t)16 << 20)

struct owned_source {
  struct rpi_source pub; /* first: the two pointers are the same */
  atomic_long refs;
  bool is_file; /* pages can be read again */
  char name[];
};

static int new_source(struct owned_source** out, const char* name) {
  size_t n = strlen(name);
  struct owned_source* s = rpi_calloc(1, sizeof *s + n + 1);

  if (!s) return rpi_fail_memory("a source of bytes", sizeof *s + n + 1);
  memcpy(s->name, name, n + 1);
  s->pub.name = s->name;
  atomic_init(&s->refs, 1);
  *out = s;
  return 0;
}

static int fail_system(const char* op, const char* verb, const char* path) {
  return rpi_fail(RP_ERR_IO, "[%s] Cannot %s '%s': %m.", op, verb, path);
}

/* Check what the descriptor is, then map it. */
static int map_file(struct owned_source* s, const char* op, int fd) {
  struct stat st;

  if (fstat(fd, &st) != 0) return fail_system(op, "examine", s->name);
  if (S_ISDIR(st.st_mode))
    return rpi_fail(RP_ERR_IO, "[%s] '%s' is a directory, not a file.", op, s->name);
  if (!S_ISREG(st.st_mode))
    return rpi_fail(RP_ERR_IO, "[%s] '%s' is not a regular file.", op, s->name);
  if (st.st_size == 0) return rpi_fail(RP_ERR_FORMAT, "[%s] '%s' is empty.", op, s->name);

  void* p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (p == MAP_FAILED) return fail_system(op, "map", s->name);
  s->pub.data = p;
  s->pub.size = (size_t)st.st_size;
  s->is_file = true;
  return 0;
}

int rpi_source_open(struct rpi_source** out, const char* op, const char* path) {
  struct owned_source* s;

  if (!path || !*path) return rpi_fail(RP_ERR_ARGUMENT, "[%s] The path is empty.", op);
  int code = new_source(&s, path);
  if (code) return code;

  /* Not blocking: a FIFO without a writer would hang here. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  code = fd < 0 ? fail_system(op, "open", path) : map_file(s, op, fd);
  if (fd >= 0) close(fd);
  if (code) {
    rpi_free(s);
    return code;
  }
  *out = &s->pub;
  return 0;
}

/* Bytes from the reader's position to its end; the position is as before afterwards. */
static int measure_reader(size_t* size, const char* op, const char* name,
                          const struct rpi_source_reader* r) {
  if (!r->is_open(r->ctx) || !r->good(r->ctx))
    return rpi_fail(RP_ERR_IO, "[%s] The reader '%s' is not open.", op, name);

  size_t start = r->tell(r->ctx);
  r->seek(r->ctx, 0, SEEK_END);
  size_t end = r->tell(r->ctx);
  if (start > (size_t)INT64_MAX || !r->good(r->ctx))
    return rpi_fail(RP_ERR_IO, "[%s] The reader '%s' cannot seek to its end.", op, name);
  r->seek(r->ctx, (int64_t)start, SEEK_SET);
  if (!r->good(r->ctx))
    return rpi_fail(RP_ERR_IO, "[%s] The reader '%s' cannot seek back to byte %zu.", op, name,
                    start);
  if (end <= start) return rpi_fail(RP_ERR_FORMAT, "[%s] '%s' is empty.", op, name);
  *size = end - start;
  return 0;
}

static int drain_reader(struct owned_source* s, const char* op, const struct rpi_source_reader* r) {
  size_t size = 0;
  int code = measure_reader(&size, op, s->name, r);
  if (code) return code;

  /* Pages are committed as they are written, whatever size was claimed. */
  unsigned char* p =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return rpi_fail_memory(s->name, size);
  s->pub.data = p;
  s->pub.size = size;
  for (size_t at = 0; at < size;) {
    size_t n = size - at < READ_PIECE ? size - at : READ_PIECE;

    r->read(r->ctx, (char*)p + at, n);
    if (!r->good(r->ctx))
      return rpi_fail(RP_ERR_IO, "[%s] Reading %zu bytes at byte %zu of '%s' failed.", op, n, at,
                      s->name);
    at += n;
  }
  return 0;
}

int rpi_source_read(struct rpi_source** out, const char* op,
                    const struct rpi_source_reader* reader) {
  const char* label = reader->label ? reader->label(reader->ctx) : NULL;
  struct owned_source* s;
  int code = new_source(&s, label ? label : "reader");

  if (code) return code;
  code = drain_reader(s, op, reader);
  if (code) {
    rpi_source_release(&s->pub);
    return code;
  }
  *out = &s->pub;
  return 0;
}

/* Best effort: what the system refuses costs time or memory, not correctness. */
static void advise(const struct rpi_source* s, size_t offset, size_t bytes, int advice) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t begin = (offset + page - 1) / page * page, end = (offset + bytes) / page * page;

  if (((const struct owned_source*)s)->is_file && begin < end)
    madvise((char*)s->data + begin, end - begin, advice);
}

void rpi_source_expect(const struct rpi_source* s, size_t offset, size_t bytes) {
#ifdef MADV_POPULATE_READ
  advise(s, offset, bytes, MADV_POPULATE_READ);
#else
  advise(s, offset, bytes, MADV_WILLNEED);
#endif
}

void rpi_source_forget(const struct rpi_source* s, size_t offset, size_t bytes) {
  advise(s, offset, bytes, MADV_DONTNEED);
}

struct rpi_source* rpi_source_retain(struct rpi_source* s) {
  atomic_fetch_add_explicit(&((struct owned_source*)s)->refs, 1, memory_order_relaxed);
  return s;
}

void rpi_source_release(struct rpi_source* s) {
  if (!s) return;
  struct owned_source* o = (struct owned_source*)s;
  if (atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1) return;
  if (s->data) munmap((void*)s->data, s->size);
  rpi_free(o);
}
