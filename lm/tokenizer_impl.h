/* The inside of a tokenizer, shared by tokenizer.c (build, decode), encode.c and
 * tokenizer_json.c. */
#ifndef LM_TOKENIZER_IMPL_H
#define LM_TOKENIZER_IMPL_H

#include "lm/bpe.h"
#include "lm/pretok.h"
#include "lm/tokenizer.h"

enum lm_token_flags {
  LM_FLAG_ADDED = 1,   /* matched as plain text before anything else */
  LM_FLAG_SPECIAL = 2, /* only with LM_ENCODE_SPECIAL */
  LM_FLAG_LSTRIP = 4,  /* takes white space in front with it */
  LM_FLAG_RSTRIP = 8,
  LM_FLAG_UNUSED = 16 /* not to be found by its text */
};

struct lm_tokenizer {
  char* blob; /* the bytes of all tokens; token i is blob[offset[i] .. offset[i + 1]) */
  uint32_t* offset;
  uint8_t* flags;
  size_t n_tokens;

  int32_t* by_bytes; /* open addressing, -1 is empty */
  size_t by_bytes_mask;

  int32_t* added; /* ids of added tokens, ordered by their bytes */
  size_t n_added;
  bool added_first[256]; /* some added token begins with this byte */

  struct lm_bpe bpe;
  struct lm_pretok* pretok;
  bool ignore_merges; /* a whole word that is a token is that token */
  bool nfc;           /* normalize to Unicode's form C first */

  int32_t bos_id, eos_id, pad_id;
  bool add_bos;
  char* chat_template;
};

/* What the public lm_vocab cannot say. */
struct lm_vocab_extra {
  const uint8_t* strip; /* LM_FLAG_LSTRIP | LM_FLAG_RSTRIP by id, or NULL */
  enum lm_pretok_kind pretok;
  bool ignore_merges, nfc;
};

/* lm_tokenizer_from_vocab() with v->model and v->pre already understood. */
int lm_tokenizer_build(struct lm_tokenizer** out, const struct lm_vocab* v,
                       const struct lm_vocab_extra* x);

/* The normal token of exactly these bytes, else an added one, else -1. */
int32_t lm_tokenizer_by_bytes(const struct lm_tokenizer* t, const char* bytes, size_t n);

/* Replace the template by a copy of `jinja` (NULL: none). */
int lm_tokenizer_set_template(struct lm_tokenizer* t, const char* jinja);

#endif
