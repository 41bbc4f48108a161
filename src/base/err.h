/* Typed errors, one per thread.
 *
 * Invariants:
 * 1. A fallible internal function returns 0, or the code that rpi_fail() returned where the failure
 *    was known; callers pass it up unchanged.
 * 2. Raising never allocates and never calls out: it is legal on an out-of-memory path, under a lock
 *    and on any thread. The error handler runs later, at the edge of the interface (src/api).
 * 3. Text from outside is always an argument of the format, never the format. */
#ifndef RPI_BASE_ERR_H
#define RPI_BASE_ERR_H

#include "base/attr.h"
#include "reprise/error.h"

enum { RPI_ERROR_TEXT = 1024 };

/* One error as a value, to carry it from the thread that met it to the one that reports it. */
struct rpi_error {
  int code;
  char text[RPI_ERROR_TEXT];
};

/* Record an error for this thread and return `code` (never 0). Messages read "[op] Sentence." */
int rpi_fail(rp_error_code code, const char* fmt, ...) RPI_PRINTF(2, 3);

/* Put text in front of this thread's current message, keeping its code, and return that code. */
int rpi_fail_prefix(const char* fmt, ...) RPI_PRINTF(1, 2);

/* The usual out-of-memory error; `what` says what was being allocated. */
int rpi_fail_memory(const char* what, unsigned long long bytes);

int rpi_error_code(void);
const char* rpi_error_text(void);
void rpi_error_save(struct rpi_error* out);
int rpi_error_restore(const struct rpi_error* e); /* returns its code */
void rpi_error_clear(void);

#endif
