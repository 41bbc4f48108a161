/* The forward step of a Llama-architecture model, as a closure to be compiled.
 *
 * Inputs:  tokens int32 (T), positions int32 (T, consecutive), last int32 (1, which row gives logits),
 *          slots int32 (capacity: 0, 1, ...), then for each layer a key and a value cache float32
 *          (1, kv_heads, capacity, head_dim).
 * Outputs: logits float32 (1, vocab), then the caches with rows positions[0] ... written.
 * One trace serves prefill and decode: nothing in it depends on T or on the capacity. */
#ifndef LM_LLAMA_H
#define LM_LLAMA_H

#include "lm/weights.h"

struct lm_llama {
  struct lm_config config;
  struct lm_weights weights;
  mlx_array freqs; /* rope frequencies where scaling changes them, else empty */
};

enum { LM_STEP_TOKENS, LM_STEP_POSITIONS, LM_STEP_LAST, LM_STEP_SLOTS, LM_STEP_CACHES };

/* The closure borrows the model. */
mlx_closure lm_llama_step(struct lm_llama* m);
/* Set m->freqs from the configuration. */
int lm_llama_init_rope(struct lm_llama* m);

#endif
