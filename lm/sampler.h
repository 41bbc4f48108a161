/* Choosing the next token from logits; docs/sampling.md has the rules and their edge cases.
 *
 * Order: repetition penalty, temperature, top-k, top-p, min-p, one draw. A sampler belongs to one
 * sequence and one thread at a time; what it returns depends only on its own settings, seed, seen
 * tokens and logits. */
#ifndef LM_SAMPLER_H
#define LM_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lm_sampling {
  float temperature;        /* 0: greedy, the lowest index of the largest logit */
  int32_t top_k;            /* 0: off. Ties with the k-th are kept */
  float top_p;              /* 1: off, 0: the most probable one */
  float min_p;              /* 0: off. Drops p < min_p * largest p */
  float repetition_penalty; /* 1: off. Of seen tokens: positive logits / r, negative ones * r */
  uint64_t seed;
};

/* Greedy, every filter off, seed 0. */
struct lm_sampling lm_sampling_default(void);

/* Threefry keys: seeds, splits and bits equal those of mlx_random_*, jax.random and Nx.Random. */
struct lm_key {
  uint32_t word[2];
};
struct lm_key lm_key_from_seed(uint64_t seed); /* [high 32 bits, low 32 bits] */
void lm_key_split(struct lm_key key, struct lm_key out[2]);
uint32_t lm_key_bits(struct lm_key key); /* the first 32 random bits of this key */

/* In [0, 1), a multiple of 2^-23: Nx.Random.uniform's, which splits the key once more and uses the
 * second half (MLX and JAX do not, and MLX divides all 32 bits). */
float lm_key_uniform(struct lm_key key);

struct lm_sampler;

/* Errors: RP_ERR_ARGUMENT naming the setting that is out of range, RP_ERR_MEMORY. */
int lm_sampler_new(struct lm_sampler** out, const struct lm_sampling* settings, size_t n_vocab);
void lm_sampler_free(struct lm_sampler* s);

/* Mark tokens as seen (prompt, generated) for the repetition penalty; ids outside are ignored. */
void lm_sampler_see(struct lm_sampler* s, const int32_t* ids, size_t n);

/* Forget seen tokens and start again from `seed`. */
void lm_sampler_reset(struct lm_sampler* s, uint64_t seed);

/* Choose from logits[0..n_vocab), which are left unchanged; the token becomes seen. One step of
 * the key is used per call, also when greedy. NaN counts as -inf. Errors: RP_ERR_NUMERIC when no
 * logit is above -inf. */
int lm_sampler_next(struct lm_sampler* s, const float* logits, int32_t* token);

/* The choice that lm_sampler_next() would have, without drawing: ids in ascending order with their
 * weights (not normalised), borrowed until the next call. Greedy gives one. */
int lm_sampler_candidates(struct lm_sampler* s, const float* logits, const int32_t** ids,
                          const float** weights, size_t* n);

#endif
