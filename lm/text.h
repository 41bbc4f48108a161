/* Growing buffers of the language-model layer: bytes and token ids.
 *
 * A zeroed struct is an empty buffer. `data` of a text is NULL or ends with a NUL byte that `len`
 * does not count, so that a text without NUL bytes inside is also a C string. Appending either
 * succeeds or leaves the buffer as it was. */
#ifndef LM_TEXT_H
#define LM_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct lm_text {
  char* data;
  size_t len, cap;
};

struct lm_ids {
  int32_t* data;
  size_t len, cap;
};

/* Make room for `extra` more elements. Errors: RP_ERR_MEMORY. */
int lm_text_reserve(struct lm_text* t, size_t extra);
int lm_ids_reserve(struct lm_ids* v, size_t extra);

int lm_text_append(struct lm_text* t, const char* bytes, size_t n);
int lm_text_append_str(struct lm_text* t, const char* s);
int lm_ids_append(struct lm_ids* v, const int32_t* ids, size_t n);
int lm_ids_push(struct lm_ids* v, int32_t id);

void lm_text_free(struct lm_text* t); /* and makes it empty */
void lm_ids_free(struct lm_ids* v);

/* Append a whole file. Errors: RP_ERR_IO naming the path, RP_ERR_FORMAT above `limit` bytes. */
int lm_text_read_file(struct lm_text* t, const char* path, size_t limit);

#endif
