/* Messages, standard output, and what the system says about this process. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cli/cli.h"
#include "lm/err.h"
#include "lm/utf8.h"

/* ---- messages -------------------------------------------------------------------------------- */

/* One write, so that lines of several processes do not mix. */
static void print_line(char* line) {
  for (char* p = line; *p; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = '?';
  fprintf(stderr, "reprise: %s\n", line);
}

int cli_fail(const char* fmt, ...) {
  char line[2048];
  va_list args;
  va_start(args, fmt);
  vsnprintf(line, sizeof line, fmt, args);
  va_end(args);
  print_line(line);
  return CLI_FAILED;
}

int cli_misuse(const char* command, const char* fmt, ...) {
  char line[2048];
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(line, sizeof line - 64, fmt, args);
  va_end(args);
  if (n < 0) n = 0;
  if ((size_t)n >= sizeof line - 64) n = sizeof line - 65;
  snprintf(line + n, sizeof line - (size_t)n, " (see `reprise %s%s--help`)", command ? command : "",
           command ? " " : "");
  print_line(line);
  return CLI_MISUSED;
}

int cli_fail_lm(void) { return cli_fail("%s", lm_error_text()); }

int cli_fail_library(void) {
  const char* text;
  rp_error_code code = rp_last_error(&text);
  return cli_fail("%s", code ? text : "a call of the library failed without saying why");
}

/* ---- standard output ------------------------------------------------------------------------- */

static int write_error; /* errno of the first failed write */

static void note_failure(bool is_good) {
  if (!is_good && !write_error) write_error = errno ? errno : EIO;
}

void cli_write(const char* bytes, size_t n) {
  if (!n || write_error) return;
  note_failure(fwrite(bytes, 1, n, stdout) == n);
}

void cli_print(const char* fmt, ...) {
  va_list args;
  if (write_error) return;
  va_start(args, fmt);
  note_failure(vprintf(fmt, args) >= 0);
  va_end(args);
}

static size_t escape(char out[8], unsigned char c) {
  if (c == '\n') return (size_t)snprintf(out, 8, "\\n");
  if (c == '\t') return (size_t)snprintf(out, 8, "\\t");
  return (size_t)snprintf(out, 8, "\\x%02x", c);
}

void cli_print_safe(const char* text, size_t n, size_t columns) {
  size_t used = 0, i = 0;
  char buffer[8];
  while (i < n) {
    int k = lm_utf8_char((const unsigned char*)text + i, n - i);
    unsigned char c = (unsigned char)text[i];
    /* U+0080 to U+009F are control characters of terminals as well. */
    bool is_plain = k > 0 && c >= 0x20 && c != 0x7f &&
                    !(c == 0xc2 && (unsigned char)text[i + 1] < 0xa0);
    size_t take = is_plain ? (size_t)k : 1, width = is_plain ? take : escape(buffer, c);
    if (columns && used + width > columns) {
      cli_write("...", 3);
      return;
    }
    cli_write(is_plain ? text + i : buffer, width);
    used += width;
    i += take;
  }
}

static void print_json_char(const char* s, size_t n) {
  unsigned char c = (unsigned char)s[0];
  if (n > 1)
    cli_write(s, n);
  else if (c == '"' || c == '\\')
    cli_print("\\%c", c);
  else if (c == '\n')
    cli_write("\\n", 2);
  else if (c < 0x20 || c == 0x7f)
    cli_print("\\u%04x", c);
  else
    cli_write(s, 1);
}

void cli_print_json(const char* text, size_t n) {
  cli_write("\"", 1);
  for (size_t i = 0; i < n;) {
    int k = lm_utf8_char((const unsigned char*)text + i, n - i);
    if (k > 0)
      print_json_char(text + i, (size_t)k);
    else
      cli_write("\xef\xbf\xbd", 3);
    i += k > 0 ? (size_t)k : 1;
  }
  cli_write("\"", 1);
}

bool cli_push(void) {
  if (!write_error) note_failure(fflush(stdout) == 0);
  return !write_error;
}

int cli_flush(void) {
  if (cli_push()) return CLI_OK;
  return cli_fail("cannot write to standard output: %s", strerror(write_error));
}

void cli_file_size(char out[16], double bytes) {
  static const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  int u = 0;
  while (bytes >= 999.5 && u < 4) bytes /= 1000, u++;
  snprintf(out, 16, u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
}

/* ---- the system ------------------------------------------------------------------------------ */

double cli_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* getrusage also counts what the process was before exec: a large parent would be reported. */
size_t cli_peak_rss(void) {
  char line[256];
  unsigned long long kb = 0;
  FILE* f = fopen("/proc/self/status", "re");
  while (f && fgets(line, sizeof line, f))
    if (!strncmp(line, "VmHWM:", 6)) kb = strtoull(line + 6, NULL, 10);
  if (f) fclose(f);
  if (kb) return (size_t)kb * 1024;
  struct rusage r;
  return getrusage(RUSAGE_SELF, &r) ? 0 : (size_t)r.ru_maxrss * 1024;
}
