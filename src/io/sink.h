/* Where a saved file's bytes go: a new file that replaces the old one as a whole, or a caller's
 * writer.
 *
 * Invariants:
 * 1. Until commit, the file at the path is untouched; after a failure or abort the temporary file
 * is gone. So arrays that point into a mapping of the old file may be the source of the new one.
 * 2. After a successful commit the bytes are on the disk (fsync), under the name and mode of the
 * old file; a symbolic link is followed. Paths to character devices are written directly; FIFOs,
 * sockets and directories are refused. */
#ifndef RPI_IO_SINK_H
#define RPI_IO_SINK_H

#include <stdbool.h>
#include <stddef.h>

struct rpi_sink;

/* A caller's writer; a failed write is told by `good` afterwards. `label` may be NULL. */
struct rpi_sink_writer {
  void* ctx;
  bool (*is_open)(void* ctx);
  bool (*good)(void* ctx);
  void (*write)(void* ctx, const char* data, size_t n);
  const char* (*label)(void* ctx);
};

/* `op` is for messages and must outlive the sink. */
int rpi_sink_create(struct rpi_sink** out, const char* op, const char* path);
int rpi_sink_from_writer(struct rpi_sink** out, const char* op,
                         const struct rpi_sink_writer* writer);

int rpi_sink_write(struct rpi_sink* s, const void* data, size_t n);

/* Both consume the sink, also when commit fails. NULL is allowed for abort. */
int rpi_sink_commit(struct rpi_sink* s);
void rpi_sink_abort(struct rpi_sink* s);

/* The operation's name and the path or label, for messages of what is written through it. */
const char* rpi_sink_op(const struct rpi_sink* s);
const char* rpi_sink_name(const struct rpi_sink* s);

#endif
