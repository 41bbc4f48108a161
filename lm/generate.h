/* Text from a model: prompt in, pieces of text out. */
#ifndef LM_GENERATE_H
#define LM_GENERATE_H

#include "lm/model.h"
#include "lm/sampler.h"

enum lm_finish { LM_FINISH_END, LM_FINISH_STOP, LM_FINISH_LENGTH, LM_FINISH_CANCELLED };

struct lm_generation {
  struct lm_sampling sampling;
  int max_tokens;          /* 0: as many as the context allows */
  int chunk;               /* prompt tokens in one step; 0: 256 */
  const char* const* stop; /* strings that end the text, which does not contain them */
  size_t nstop;
  /* Called with each complete piece of text on the calling thread; non-zero cancels. May be NULL. */
  int (*on_text)(void* user, const char* text, size_t n);
  void* user;
};

struct lm_generated {
  enum lm_finish finish;
  int prompt_tokens, tokens; /* the end token is counted, its text is not part of the output */
  double prefill_s, decode_s; /* seconds: the prompt with its first token, and the rest */
};

struct lm_generation lm_generation_default(void);
const char* lm_finish_name(enum lm_finish f); /* "end", "stop", "length", "cancelled" */

/* The prompt of a chat: system (NULL: the template's default) and one user message. */
int lm_chat_prompt(const struct lm_model* m, const char* system, const char* user,
                   struct lm_ids* out);

/* Continue `prompt`. `ids` (may be NULL) receives the new tokens. Errors: RP_ERR_ARGUMENT when the prompt
 * is empty or, with at least one new token, does not fit the model's context. */
int lm_generate(struct lm_model* m, const int32_t* prompt, int n, const struct lm_generation* options,
                struct lm_ids* ids, struct lm_generated* out);

#endif
