/* Sinks of bytes: see sink.h. */
#include "io/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

/* One write(2) moves at most 2 GB; stay well below. */
#define WRITE_PIECE ((size_t)256 << 20)

struct rpi_sink {
  const char* op;
  char* name; /* as the caller gave it */
  char* path; /* the file to replace, links resolved; NULL for writers and devices */
  char* temp; /* beside it; NULL as path is */
  int fd;     /* -1 for writers */
  mode_t mode;
  bool keeps_mode; /* the file exists and `mode` is its mode */
  struct rpi_sink_writer writer;
};

const char* rpi_sink_op(const struct rpi_sink* s) { return s->op; }
const char* rpi_sink_name(const struct rpi_sink* s) { return s->name; }

static int fail_system(const struct rpi_sink* s, const char* verb) {
  return rpi_fail(RP_ERR_IO, "[%s] Cannot %s '%s': %m.", s->op, verb, s->name);
}

static void free_sink(struct rpi_sink* s) {
  rpi_free(s->name);
  rpi_free(s->path);
  rpi_free(s->temp);
  rpi_free(s);
}

static int new_sink(struct rpi_sink** out, const char* op, const char* name) {
  struct rpi_sink* s = rpi_calloc(1, sizeof *s);

  if (s) s->name = rpi_strdup(name);
  if (!s || !s->name) {
    rpi_free(s);
    return rpi_fail_memory("a sink of bytes", sizeof *s + strlen(name));
  }
  s->op = op;
  s->fd = -1;
  *out = s;
  return 0;
}

/* Note what stands at the path. Sets is_device when it is written in place. */
static int examine_target(struct rpi_sink* s, bool* is_device) {
  struct stat st;

  *is_device = false;
  if (stat(s->name, &st) != 0) {
    if (errno != ENOENT) return fail_system(s, "examine");
    s->path = rpi_strdup(s->name);
    return s->path ? 0 : rpi_fail_memory("a path", strlen(s->name));
  }
  if (S_ISDIR(st.st_mode)) return rpi_fail(RP_ERR_IO, "[%s] '%s' is a directory.", s->op, s->name);
  *is_device = S_ISCHR(st.st_mode);
  if (*is_device) return 0;
  if (!S_ISREG(st.st_mode))
    return rpi_fail(RP_ERR_IO, "[%s] '%s' is not a regular file.", s->op, s->name);
  if (access(s->name, W_OK) != 0) return fail_system(s, "write");

  s->mode = st.st_mode & 07777;
  s->keeps_mode = true;
  char* real = realpath(s->name, NULL);
  if (!real) return fail_system(s, "resolve");
  s->path = rpi_strdup(real);
  free(real);
  return s->path ? 0 : rpi_fail_memory("a path", strlen(s->name));
}

/* A new file in the directory of s->path, under a name that nobody has. */
static int create_temp(struct rpi_sink* s) {
  static atomic_uint counter;
  const char* slash = strrchr(s->path, '/');
  size_t dir = slash ? (size_t)(slash - s->path) + 1 : 0, room = dir + 48;

  s->temp = rpi_alloc(room);
  if (!s->temp) return rpi_fail_memory("a path", room);
  memcpy(s->temp, s->path, dir);
  for (int tries = 0; tries < 1000; tries++) {
    snprintf(s->temp + dir, room - dir, ".rp-%ld-%u.tmp", (long)getpid(),
             atomic_fetch_add(&counter, 1));
    s->fd = open(s->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (s->fd >= 0 || errno != EEXIST) break;
  }
  return s->fd < 0 ? fail_system(s, "create a file beside") : 0;
}

int rpi_sink_create(struct rpi_sink** out, const char* op, const char* path) {
  struct rpi_sink* s;
  bool is_device;

  if (!path || !*path) return rpi_fail(RP_ERR_ARGUMENT, "[%s] The path is empty.", op);
  int code = new_sink(&s, op, path);
  if (code) return code;
  code = examine_target(s, &is_device);
  if (!code && is_device) {
    s->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (s->fd < 0) code = fail_system(s, "open");
  } else if (!code) {
    code = create_temp(s);
  }
  if (code) {
    free_sink(s); /* a temporary file, if any, was not created */
    return code;
  }
  *out = s;
  return 0;
}

int rpi_sink_from_writer(struct rpi_sink** out, const char* op,
                         const struct rpi_sink_writer* writer) {
  const char* label = writer->label ? writer->label(writer->ctx) : NULL;
  struct rpi_sink* s;

  if (!label) label = "writer";
  if (!writer->is_open(writer->ctx) || !writer->good(writer->ctx))
    return rpi_fail(RP_ERR_IO, "[%s] The writer '%s' is not open.", op, label);
  int code = new_sink(&s, op, label);
  if (code) return code;
  s->writer = *writer;
  *out = s;
  return 0;
}

static int write_to_writer(struct rpi_sink* s, const void* data, size_t n) {
  s->writer.write(s->writer.ctx, data, n);
  if (s->writer.good(s->writer.ctx)) return 0;
  return rpi_fail(RP_ERR_IO, "[%s] Writing %zu bytes to '%s' failed.", s->op, n, s->name);
}

int rpi_sink_write(struct rpi_sink* s, const void* data, size_t n) {
  const char* p = data;

  if (n == 0) return 0;
  if (s->fd < 0) return write_to_writer(s, data, n);
  while (n > 0) {
    ssize_t k = write(s->fd, p, n < WRITE_PIECE ? n : WRITE_PIECE);

    if (k < 0 && errno == EINTR) continue;
    if (k < 0) return fail_system(s, "write");
    p += k;
    n -= (size_t)k;
  }
  return 0;
}

/* Make the rename itself durable. Some file systems refuse; the file is in place all the same. */
static void sync_directory(char* path) {
  char* slash = strrchr(path, '/');
  if (slash) slash[slash == path] = '\0';

  int fd = open(slash ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

static int replace_file(struct rpi_sink* s) {
  if (s->keeps_mode && fchmod(s->fd, s->mode) != 0) return fail_system(s, "set the mode of");
  if (fsync(s->fd) != 0 && errno != EINVAL) return fail_system(s, "flush");
  int code = close(s->fd);
  s->fd = -1;
  if (code != 0) return fail_system(s, "close");
  if (rename(s->temp, s->path) != 0) return fail_system(s, "replace");
  rpi_free(s->temp);
  s->temp = NULL;
  sync_directory(s->path);
  return 0;
}

int rpi_sink_commit(struct rpi_sink* s) {
  int code = s->temp ? replace_file(s) : 0;

  rpi_sink_abort(s); /* what is left: nothing, after a success */
  return code;
}

void rpi_sink_abort(struct rpi_sink* s) {
  if (!s) return;
  if (s->fd >= 0) close(s->fd);
  if (s->temp) unlink(s->temp);
  free_sink(s);
}
