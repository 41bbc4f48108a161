/* Where the bytes of a file come from: a read-only mapping of a file, or a caller's reader.
 *
 * Invariants:
 * 1. `data` and `size` never change while a reference is held; arrays may point into `data`.
 * 2. No descriptor stays open: a mapping outlives its descriptor, so thousands of shards do not use
 *    up the process's descriptors. A caller's reader is not used after rpi_source_read() returned.
 * 3. References are counted atomically: any thread may retain and release.
 *
 * A mapped file must not be truncated by another program while it is in use; replacing it by
 * rename, as every save of this library does, is safe. */
#ifndef RPI_IO_SOURCE_H
#define RPI_IO_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rpi_source {
  const unsigned char* data; /* page aligned */
  size_t size;               /* bytes, more than 0 */
  const char* name;          /* path or label, for messages */
};

/* A caller's reader. `whence` is SEEK_SET or SEEK_END; `label` may be NULL. A read that fails or
 * comes short is told by `good` afterwards. */
struct rpi_source_reader {
  void* ctx;
  bool (*is_open)(void* ctx);
  bool (*good)(void* ctx);
  size_t (*tell)(void* ctx);
  void (*seek)(void* ctx, int64_t offset, int whence);
  void (*read)(void* ctx, char* data, size_t n);
  const char* (*label)(void* ctx);
};

/* Map the file at `path`. Missing, unreadable, empty and other than regular files are RP_ERR_IO.
 * `op` is the operation's name for messages, e.g. "load_gguf". */
int rpi_source_open(struct rpi_source** out, const char* op, const char* path);

/* Copy everything from the reader's position to its end into memory of our own. Memory is taken as
 * the bytes arrive, so a reader that claims more than it has costs nothing. */
int rpi_source_read(struct rpi_source** out, const char* op,
                    const struct rpi_source_reader* reader);

/* Hints about whole pages inside [offset, offset + bytes): they are read soon; they are not read
 * again for long, and need no memory meanwhile. The bytes stay what they are. */
void rpi_source_expect(const struct rpi_source* s, size_t offset, size_t bytes);
void rpi_source_forget(const struct rpi_source* s, size_t offset, size_t bytes);

struct rpi_source* rpi_source_retain(struct rpi_source* s);
void rpi_source_release(struct rpi_source* s); /* NULL is allowed */

#endif
