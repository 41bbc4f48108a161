/* The last error of each thread, kept in thread-local storage so that raising cannot fail. */
#include "lm/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ERROR_TEXT = 1024 };

static _Thread_local rp_error_code last_code;
static _Thread_local char last_text[ERROR_TEXT];

int lm_fail(rp_error_code code, const char* fmt, ...) {
  char text[ERROR_TEXT]; /* apart from last_text, which may be an argument */
  va_list args;

  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  memcpy(last_text, text, sizeof text);
  last_code = code;
  return code;
}

int lm_fail_memory(const char* what, size_t bytes) {
  return lm_fail(RP_ERR_MEMORY, "[lm] Out of memory: %zu bytes for %s.", bytes, what);
}

rp_error_code lm_error_code(void) { return last_code; }

const char* lm_error_text(void) { return last_text; }

void lm_error_clear(void) {
  last_code = RP_OK;
  last_text[0] = '\0';
}
