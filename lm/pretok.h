/* Pre-tokenizers: cut text into the words inside which byte pairs may merge. */
#ifndef LM_PRETOK_H
#define LM_PRETOK_H

#include <stdbool.h>
#include <stddef.h>

enum lm_pretok_kind {
  LM_PRETOK_GPT2,
  LM_PRETOK_SMOLLM, /* every digit alone, then GPT-2 in between */
  LM_PRETOK_LLAMA3,
  LM_PRETOK_QWEN2,
  LM_PRETOK_COUNT
};

struct lm_pretok; /* a compiled pattern, shared by threads */

int lm_pretok_new(struct lm_pretok** out, enum lm_pretok_kind kind);
void lm_pretok_free(struct lm_pretok* p);

/* The kind for a GGUF file's tokenizer.ggml.pre. Errors: RP_ERR_UNSUPPORTED naming it. */
int lm_pretok_from_gguf(enum lm_pretok_kind* out, const char* pre);

/* Does `regex` (the text of a Split in a tokenizer.json) say the same as this kind's pattern? */
bool lm_pretok_is_regex(enum lm_pretok_kind kind, const char* regex);

/* One thread's walk over one text, which must be valid UTF-8. */
struct lm_pretok_walk {
  const struct lm_pretok* pretok;
  void* match;
};
int lm_pretok_walk_init(struct lm_pretok_walk* w, const struct lm_pretok* p);
void lm_pretok_walk_free(struct lm_pretok_walk* w);

/* The end of the word that begins at `start` < n; the words of a text cover it without gaps.
 * Errors: RP_ERR_MEMORY, RP_ERR_INTERNAL. */
int lm_pretok_next(struct lm_pretok_walk* w, const char* text, size_t n, size_t start, size_t* end);

#endif
