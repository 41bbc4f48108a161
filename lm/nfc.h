/* Unicode normalization form C, which the tokenizers of Qwen 2 apply to text first. */
#ifndef LM_NFC_H
#define LM_NFC_H

#include <stdbool.h>
#include <stddef.h>

#include "lm/text.h"

/* A quick look: true if all characters are below U+0300, so that form C changes nothing. */
bool lm_nfc_is_plain(const char* s, size_t n);

/* Append the form C of valid UTF-8, in linear time. Errors: RP_ERR_MEMORY. */
int lm_nfc(const char* s, size_t n, struct lm_text* out);

#endif
