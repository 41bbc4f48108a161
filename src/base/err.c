/* The calling thread's last error: one fixed buffer per thread, so that raising cannot fail.
 *
 * Invariants:
 * 1. The text is always terminated and never ends inside a UTF-8 sequence (hosts decode strictly).
 * 2. Arguments of a message may point into the current message. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct rpi_error last;

/* Drop a sequence that the end of the buffer cut in two. `n` is the length of the text. */
static void trim_partial_utf8(char* text, size_t n) {
  size_t tail = 0;
  while (tail < 3 && tail < n && ((unsigned char)text[n - 1 - tail] & 0xC0) == 0x80) tail++;
  if (tail >= n) return;

  unsigned char lead = (unsigned char)text[n - 1 - tail];
  size_t want = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
  if (tail < want) text[n - 1 - tail] = 0;
}

static void set_text(const char* fmt, va_list args) RPI_PRINTF(1, 0);
static void set_text(const char* fmt, va_list args) {
  char text[RPI_ERROR_TEXT];
  int n = vsnprintf(text, sizeof text, fmt, args);

  if (n < 0) text[0] = 0;
  if (n >= (int)sizeof text) trim_partial_utf8(text, sizeof text - 1);
  memcpy(last.text, text, strlen(text) + 1);
}

int rpi_fail(rp_error_code code, const char* fmt, ...) {
  va_list args;

  va_start(args, fmt);
  set_text(fmt, args);
  va_end(args);
  last.code = code > RP_OK && code < RP_ERR_COUNT ? (int)code : RP_ERR_INTERNAL;
  return last.code;
}

int rpi_fail_prefix(const char* fmt, ...) {
  char text[RPI_ERROR_TEXT];
  va_list args;

  va_start(args, fmt);
  int n = vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  if (n > 0 && n < (int)sizeof text) {
    int m = snprintf(text + n, sizeof text - (size_t)n, "%s", last.text);
    if (n + m >= (int)sizeof text) trim_partial_utf8(text, sizeof text - 1);
    memcpy(last.text, text, sizeof text);
  }
  if (last.code == RP_OK) last.code = RP_ERR_INTERNAL; /* prefixing what was never raised */
  return last.code;
}

int rpi_fail_memory(const char* what, unsigned long long bytes) {
  return rpi_fail(RP_ERR_MEMORY, "[%s] Out of memory (%llu bytes).", what, bytes);
}

int rpi_error_code(void) { return last.code; }

const char* rpi_error_text(void) { return last.text; }

void rpi_error_save(struct rpi_error* out) { *out = last; }

int rpi_error_restore(const struct rpi_error* e) {
  if (e != &last) last = *e;
  return last.code;
}

void rpi_error_clear(void) {
  last.code = RP_OK;
  last.text[0] = 0;
}

rp_error_code rp_last_error(const char** message) {
  if (message) *message = last.text;
  return (rp_error_code)last.code;
}

const char* rp_error_name(rp_error_code code) {
  static const char* const names[RP_ERR_COUNT] = {
      [RP_OK] = "ok",
      [RP_ERR_ARGUMENT] = "argument",
      [RP_ERR_SHAPE] = "shape",
      [RP_ERR_DTYPE] = "dtype",
      [RP_ERR_INDEX] = "index",
      [RP_ERR_MEMORY] = "memory",
      [RP_ERR_CALLBACK] = "callback",
      [RP_ERR_TRACE] = "trace",
      [RP_ERR_IO] = "io",
      [RP_ERR_FORMAT] = "format",
      [RP_ERR_NUMERIC] = "numeric",
      [RP_ERR_UNSUPPORTED] = "unsupported",
      [RP_ERR_INTERNAL] = "internal",
  };
  return (unsigned)code < RP_ERR_COUNT ? names[code] : "unknown";
}

void rp_clear_error(void) { rpi_error_clear(); }
