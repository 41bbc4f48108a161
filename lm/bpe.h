/* Byte-pair merging of one word. */
#ifndef LM_BPE_H
#define LM_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lm/text.h"

/* Merge rules. A rule's number is its rank: the lowest applies first. Immutable once built. */
struct lm_bpe {
  int32_t byte_id[256]; /* token of each single byte, -1 if the vocabulary lacks it */
  int32_t* result;      /* rank -> token that the rule makes */
  size_t n_rules;
  struct lm_bpe_slot* slots; /* open addressing, a power of two */
  size_t mask;
};

/* Scratch memory of one encoding thread; zeroed is empty, reused from word to word. */
struct lm_bpe_work {
  struct lm_bpe_symbol* symbols;
  size_t symbols_cap;
  uint64_t* heap;
  size_t heap_len, heap_cap;
};

/* Make room for `n_rules` rules and set byte_id to -1. */
int lm_bpe_init(struct lm_bpe* b, size_t n_rules);
void lm_bpe_free(struct lm_bpe* b);
void lm_bpe_work_free(struct lm_bpe_work* w);

/* Add the next rule. A pair that has a rule already keeps its first one. */
void lm_bpe_add(struct lm_bpe* b, int32_t left, int32_t right, int32_t result);

/* Append the tokens of word[0..n), n <= INT32_MAX, in O(n log n). Bytes without a token are left
 * out when `lossy`, else RP_ERR_UNSUPPORTED. */
int lm_bpe_word(const struct lm_bpe* b, struct lm_bpe_work* w, const char* word, size_t n,
                bool lossy, struct lm_ids* out);

#endif
