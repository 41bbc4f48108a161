/* A loaded model: weights, tokenizer, chat template, and its compiled step; and the cache of a sequence.
 *
 * A model may be used by one thread at a time. Caches belong to their model. */
#ifndef LM_MODEL_H
#define LM_MODEL_H

#include "lm/chat.h"
#include "lm/llama.h"
#include "lm/tokenizer.h"

struct lm_model {
  struct lm_llama llama;
  struct lm_tokenizer* tokenizer;
  struct lm_chat* chat; /* NULL: the template is missing or not supported */
  struct lm_ids ends;   /* every token that ends a text: tokenizer, config and generation config */
  mlx_closure step;
  bool is_compiled;
};

/* From a GGUF file or a Hugging Face folder. Errors name the file and what is wrong with it. */
int lm_model_load(struct lm_model** out, const char* path, bool compile);
void lm_model_free(struct lm_model* m);
/* How often the host's step function was traced; 0 when it is not compiled. */
uint64_t lm_model_traces(const struct lm_model* m);
bool lm_model_is_end(const struct lm_model* m, int32_t token);

struct lm_cache {
  int capacity, length; /* positions there is room for, and in use */
  int narrays;
  mlx_array* at; /* keys and values by layer */
  mlx_array slots;
  mlx_array logits; /* of the last step */
};

int lm_cache_new(struct lm_cache* c, const struct lm_model* m, int capacity);
/* Room for at least `capacity` positions; what is there is kept. */
int lm_cache_reserve(struct lm_cache* c, const struct lm_model* m, int capacity);
void lm_cache_free(struct lm_cache* c);

/* Run `n` tokens at the next positions in chunks of `chunk`; *logits are the last token's, float32
 * (vocab), valid until the cache's next step. The cache grows as needed. Errors: RP_ERR_ARGUMENT beyond the
 * model's context, RP_ERR_INDEX for a token outside the vocabulary. */
int lm_model_run(struct lm_model* m, struct lm_cache* c, const int32_t* tokens, int n, int chunk,
                 const float** logits);

#endif
