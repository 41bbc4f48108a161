/* Errors of the language-model layer: one typed error per thread.
 *
 * Fallible functions of lm/ return 0, or the code that lm_fail() returned where the failure was
 * known; callers pass it up unchanged. Raising never allocates. Text from outside is always an
 * argument of the format, never the format. */
#ifndef LM_ERR_H
#define LM_ERR_H

#include <stddef.h>

#include "reprise/error.h"

#define LM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Record an error for this thread and return `code`. Messages read "[tokenizer] Sentence." Texts
 * longer than 1 KB are cut. An argument may be this thread's current lm_error_text(). */
int lm_fail(rp_error_code code, const char* fmt, ...) LM_PRINTF(2, 3);

/* The usual out-of-memory error; `what` says what was being allocated. */
int lm_fail_memory(const char* what, size_t bytes);

/* This thread's last error: RP_OK and "" if there was none. The text is overwritten by the next
 * failure on the same thread. */
rp_error_code lm_error_code(void);
const char* lm_error_text(void);
void lm_error_clear(void);

#endif
