/* Files and callers' readers as bytes, and files replaced as a whole. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <dirent.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "io/sink.h"
#include "io/source.h"

static char dir[] = "/tmp/test_source.XXXXXX";

static int make_dir(void** state) { return mkdtemp(dir) && chdir(dir) == 0 ? 0 : 1; }

static int remove_dir(void** state) {
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", dir);
  return chdir("/") || system(command);
}

static void write_file(const char* name, const char* text) {
  FILE* f = fopen(name, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static void assert_file_is(const char* name, const char* text) {
  char got[100] = "";
  FILE* f = fopen(name, "r");
  assert_non_null(f);
  got[fread(got, 1, sizeof got - 1, f)] = '\0';
  fclose(f);
  assert_string_equal(got, text);
}

static int files_here(void) {
  int n = 0;
  DIR* d = opendir(".");
  for (struct dirent* e; (e = readdir(d));) n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
  closedir(d);
  return n;
}

static void a_mapping_outlives_the_file(void** state) {
  struct rpi_source* s;

  write_file("f", "abc");
  assert_int_equal(rpi_source_open(&s, "load", "f"), 0);
  unlink("f");
  assert_int_equal(s->size, 3);
  assert_memory_equal(s->data, "abc", 3);
  struct rpi_source* other = rpi_source_retain(s);
  rpi_source_release(s);
  assert_memory_equal(other->data, "abc", 3);
  rpi_source_release(other);
}

static void what_is_not_a_file_with_bytes_is_refused(void** state) {
  static const struct {
    const char *path, *says;
    int code;
  } rows[] = {{"absent", "[load] Cannot open 'absent': No such file", RP_ERR_IO},
              {".", "is a directory", RP_ERR_IO},
              {"empty", "[load] 'empty' is empty.", RP_ERR_FORMAT},
              {"/dev/zero", "is not a regular file", RP_ERR_IO},
              {"fifo", "is not a regular file", RP_ERR_IO}, /* and does not wait for a writer */
              {"", "The path is empty", RP_ERR_ARGUMENT},
              {NULL, "The path is empty", RP_ERR_ARGUMENT}};
  struct rpi_source* s;

  write_file("empty", "");
  assert_int_equal(mkfifo("fifo", 0600), 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal(rpi_source_open(&s, "load", rows[i].path), rows[i].code);
    if (!strstr(rpi_error_text(), rows[i].says)) fail_msg("%s", rpi_error_text());
  }
  unlink("fifo");
}

static void more_files_stay_open_than_there_are_descriptors(void** state) {
  struct rlimit was, few;
  struct rpi_source* all[400];

  write_file("shard", "1");
  getrlimit(RLIMIT_NOFILE, &was);
  few = was;
  few.rlim_cur = 64;
  setrlimit(RLIMIT_NOFILE, &few);
  for (int i = 0; i < 400; i++)
    if (rpi_source_open(&all[i], "load", "shard")) fail_msg("%d: %s", i, rpi_error_text());
  setrlimit(RLIMIT_NOFILE, &was);
  for (int i = 0; i < 400; i++) rpi_source_release(all[i]);
}

/* ---- a caller's reader over memory ---- */

struct memory {
  const char* at;
  size_t n, claimed, pos;
  bool is_bad, is_closed;
};

static bool m_open(void* c) { return !((struct memory*)c)->is_closed; }
static bool m_good(void* c) { return !((struct memory*)c)->is_bad; }
static size_t m_tell(void* c) { return ((struct memory*)c)->pos; }
static void m_seek(void* c, int64_t off, int whence) {
  struct memory* m = c;
  m->pos = (size_t)off + (whence == SEEK_END ? m->claimed : whence == SEEK_CUR ? m->pos : 0);
}
static void m_read(void* c, char* data, size_t n) {
  struct memory* m = c;
  m->is_bad = m->pos > m->n || n > m->n - m->pos;
  if (!m->is_bad) memcpy(data, m->at + m->pos, n);
  m->pos += n;
}
static const char* m_label(void* c) { return "memory"; }

static struct rpi_source_reader reader_of(struct memory* m) {
  return (struct rpi_source_reader){m, m_open, m_good, m_tell, m_seek, m_read, m_label};
}

static void a_reader_is_read_from_its_position_to_its_end(void** state) {
  struct memory m = {"xxhello", 7, 7, 2, false, false};
  struct rpi_source_reader r = reader_of(&m);
  struct rpi_source* s;

  assert_int_equal(rpi_source_read(&s, "load", &r), 0);
  assert_int_equal(s->size, 5);
  assert_memory_equal(s->data, "hello", 5);
  assert_string_equal(s->name, "memory");
  rpi_source_release(s);
}

static void a_reader_that_fails_or_claims_too_much_is_an_error(void** state) {
  static const struct {
    size_t claimed;
    bool is_bad, is_closed;
    const char* says;
  } rows[] = {{5, true, false, "[load] The reader 'memory' is not open."},
              {5, false, true, "is not open"},
              {0, false, false, "is empty"},
              {6, false, false, "Reading 6 bytes at byte 0 of 'memory' failed"},
              {(size_t)1 << 40, false, false, "of 'memory' failed"},
              {(size_t)1 << 60, false, false, "memory"}};

  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct memory m = {"hello", 5, rows[i].claimed, 0, rows[i].is_bad, rows[i].is_closed};
    struct rpi_source_reader r = reader_of(&m);
    struct rpi_source* s;

    assert_int_not_equal(rpi_source_read(&s, "load", &r), 0);
    if (!strstr(rpi_error_text(), rows[i].says)) fail_msg("%s", rpi_error_text());
  }
}

/* ---- sinks ---- */

static void a_commit_replaces_the_file_and_keeps_its_mode(void** state) {
  struct rpi_sink* s;
  struct stat st;

  write_file("f", "old");
  chmod("f", 0640);
  assert_int_equal(rpi_sink_create(&s, "save", "f"), 0);
  assert_int_equal(rpi_sink_write(s, "ne", 2), 0);
  assert_int_equal(rpi_sink_write(s, "w", 1), 0);
  assert_file_is("f", "old"); /* until the commit */
  assert_int_equal(rpi_sink_commit(s), 0);
  assert_file_is("f", "new");
  assert_int_equal(stat("f", &st), 0);
  assert_int_equal(st.st_mode & 07777, 0640);
}

static void a_new_file_gets_the_mode_that_the_umask_leaves(void** state) {
  struct rpi_sink* s;
  struct stat st;
  mode_t was = umask(027);

  assert_int_equal(rpi_sink_create(&s, "save", "brand-new"), 0);
  assert_int_equal(rpi_sink_commit(s), 0);
  umask(was);
  assert_int_equal(stat("brand-new", &st), 0);
  assert_int_equal(st.st_mode & 07777, 0640);
}

static void an_abort_leaves_no_trace(void** state) {
  struct rpi_sink* s;

  write_file("f", "old");
  int before = files_here();
  assert_int_equal(rpi_sink_create(&s, "save", "f"), 0);
  assert_int_equal(rpi_sink_write(s, "new", 3), 0);
  assert_int_equal(files_here(), before + 1);
  rpi_sink_abort(s);
  assert_int_equal(files_here(), before);
  assert_file_is("f", "old");
}

static void a_symbolic_link_is_followed(void** state) {
  struct rpi_sink* s;
  struct stat st;

  write_file("target", "old");
  assert_int_equal(symlink("target", "link"), 0);
  assert_int_equal(rpi_sink_create(&s, "save", "link"), 0);
  assert_int_equal(rpi_sink_write(s, "new", 3), 0);
  assert_int_equal(rpi_sink_commit(s), 0);
  assert_file_is("target", "new");
  assert_int_equal(lstat("link", &st), 0);
  assert_true(S_ISLNK(st.st_mode));
}

static void a_full_device_is_an_error(void** state) {
  struct rpi_sink* s;

  if (access("/dev/full", W_OK) != 0) skip();
  assert_int_equal(rpi_sink_create(&s, "save", "/dev/full"), 0);
  assert_int_equal(rpi_sink_write(s, "x", 1), RP_ERR_IO);
  assert_non_null(strstr(rpi_error_text(), "[save] Cannot write '/dev/full': No space left"));
  rpi_sink_abort(s);
}

static void places_that_cannot_take_a_file_are_refused(void** state) {
  static const char* const paths[] = {"", ".", "absent/f", "fifo2"};
  struct rpi_sink* s;

  assert_int_equal(mkfifo("fifo2", 0600), 0);
  int before = files_here();
  for (int i = 0; i < 4; i++) assert_int_not_equal(rpi_sink_create(&s, "save", paths[i]), 0);
  assert_int_equal(files_here(), before);
}

static char written[16];
static size_t nwritten;
static void m_write(void* c, const char* data, size_t n) {
  struct memory* m = c;
  m->is_bad = n > sizeof written - nwritten;
  if (m->is_bad) return;
  memcpy(written + nwritten, data, n);
  nwritten += n;
}

static void a_writer_gets_the_bytes_and_its_failure_is_an_error(void** state) {
  struct memory m = {0};
  struct rpi_sink_writer w = {&m, m_open, m_good, m_write, m_label};
  struct rpi_sink* s;

  assert_int_equal(rpi_sink_from_writer(&s, "save", &w), 0);
  assert_int_equal(rpi_sink_write(s, "hello", 5), 0);
  assert_memory_equal(written, "hello", 5);
  assert_int_equal(rpi_sink_write(s, "hello hello hello", 17), RP_ERR_IO);
  assert_string_equal(rpi_error_text(), "[save] Writing 17 bytes to 'memory' failed.");
  rpi_sink_abort(s);
  assert_int_equal(rpi_sink_from_writer(&s, "save", &w), RP_ERR_IO); /* not good any more */
}

static void running_out_of_memory_leaves_no_file(void** state) {
  struct rpi_sink* s;
  int before = files_here(), n = 0, code;

  do {
    rpi_mem_fail_at(++n);
    code = rpi_sink_create(&s, "save", "never");
    if (code) assert_int_equal(code, RP_ERR_MEMORY);
    if (code) assert_int_equal(files_here(), before);
  } while (code);
  rpi_mem_fail_at(0);
  assert_int_equal(n, 5); /* sink, name, path, temporary name */
  rpi_sink_abort(s);
  assert_int_equal(files_here(), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_mapping_outlives_the_file),
      cmocka_unit_test(what_is_not_a_file_with_bytes_is_refused),
      cmocka_unit_test(more_files_stay_open_than_there_are_descriptors),
      cmocka_unit_test(a_reader_is_read_from_its_position_to_its_end),
      cmocka_unit_test(a_reader_that_fails_or_claims_too_much_is_an_error),
      cmocka_unit_test(a_commit_replaces_the_file_and_keeps_its_mode),
      cmocka_unit_test(a_new_file_gets_the_mode_that_the_umask_leaves),
      cmocka_unit_test(an_abort_leaves_no_trace),
      cmocka_unit_test(a_symbolic_link_is_followed),
      cmocka_unit_test(a_full_device_is_an_error),
      cmocka_unit_test(places_that_cannot_take_a_file_are_refused),
      cmocka_unit_test(a_writer_gets_the_bytes_and_its_failure_is_an_error),
      cmocka_unit_test(running_out_of_memory_leaves_no_file),
  };
  return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
