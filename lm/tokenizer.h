/* Byte-level BPE tokenizers: text to token ids and back, exactly.
 *
 * Built from the arrays of a GGUF file (lm_vocab) or from a Hugging Face tokenizer.json. A built
 * tokenizer is immutable: any number of threads may encode and decode with it at once.
 *
 * Pre-tokenizers: GPT-2, Llama 3, Qwen 2, and SmolLM's (single digits, then GPT-2). Anything else
 * (SentencePiece, WordPiece, Unigram, other patterns or normalizers) is refused by name.
 * decode(encode(text)) == text for any bytes, valid UTF-8 or not, as long as the vocabulary has
 * those bytes (SmolLM2's lacks 21, see LM_ENCODE_LOSSY) and there is no normalizer (Qwen 2's
 * tokenizer.json asks for form C). */
#ifndef LM_TOKENIZER_H
#define LM_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lm/text.h"

struct lm_tokenizer;

/* Token types as GGUF numbers them. Control and unknown tokens are special: their text is matched
 * only with LM_ENCODE_SPECIAL. User-defined ones are matched in any text. */
enum lm_token_type {
  LM_TOKEN_NORMAL = 1,
  LM_TOKEN_UNKNOWN = 2,
  LM_TOKEN_CONTROL = 3,
  LM_TOKEN_USER_DEFINED = 4,
  LM_TOKEN_UNUSED = 5
};

/* A vocabulary as GGUF stores it; everything is borrowed for the call only. */
struct lm_vocab {
  const char* model;         /* tokenizer.ggml.model; NULL or "gpt2", anything else is refused */
  const char* pre;           /* tokenizer.ggml.pre: "smollm", "gpt-2", "llama-bpe", "qwen2", ...;
                                NULL and "default" mean GPT-2's pattern */
  const char* const* tokens; /* in GPT-2's byte alphabet ("Ġthe"); added tokens are plain text */
  const int32_t* types;      /* enum lm_token_type each, or NULL: all normal */
  size_t n_tokens;
  const char* const* merges; /* "left right", best first */
  size_t n_merges;
  int32_t bos_id, eos_id, pad_id; /* -1 for none */
  bool add_bos;                   /* LM_ENCODE_BOS puts bos_id in front */
  const char* chat_template;      /* Jinja text, or NULL; copied */
};

/* Build a tokenizer; *out is owned by the caller (lm_tokenizer_free). Errors: RP_ERR_UNSUPPORTED
 * (model, pattern), RP_ERR_FORMAT (merge that names no token, ids out of range), RP_ERR_MEMORY. */
int lm_tokenizer_from_vocab(struct lm_tokenizer** out, const struct lm_vocab* v);

/* The same from a tokenizer.json; `config_path` (may be NULL) is its tokenizer_config.json, which
 * adds bos, eos, pad, add_bos_token and the chat template. */
int lm_tokenizer_from_json(struct lm_tokenizer** out, const char* path, const char* config_path);

/* The same from a model folder: tokenizer.json, and tokenizer_config.json and chat_template.jinja
 * where they exist. */
int lm_tokenizer_from_folder(struct lm_tokenizer** out, const char* folder);

void lm_tokenizer_free(struct lm_tokenizer* t); /* NULL is fine */

enum lm_encode_flags {
  LM_ENCODE_SPECIAL = 1, /* the text of special tokens becomes these tokens (chat templates) */
  LM_ENCODE_BOS = 2,     /* bos first, if the tokenizer asks for it */
  LM_ENCODE_LOSSY = 4    /* leave out bytes that the vocabulary lacks, instead of an error */
};

/* Append the ids of `text` to `ids`; on failure `ids` is as it was. Errors: RP_ERR_MEMORY,
 * RP_ERR_UNSUPPORTED when a byte has no token in the vocabulary. */
int lm_tokenizer_encode(const struct lm_tokenizer* t, const char* text, size_t len, unsigned flags,
                        struct lm_ids* ids);

enum lm_decode_flags { LM_DECODE_SKIP_SPECIAL = 1 };

/* Append the bytes of `ids` to `out`. A lone id may hold a part of a UTF-8 character: stream
 * through lm_utf8_feed(). Errors: RP_ERR_INDEX for an id outside the vocabulary. */
int lm_tokenizer_decode(const struct lm_tokenizer* t, const int32_t* ids, size_t n, unsigned flags,
                        struct lm_text* out);

/* The bytes of one token, borrowed from the tokenizer, not NUL-terminated; NULL and *len = 0 for
 * an id outside the vocabulary. */
const char* lm_tokenizer_token_bytes(const struct lm_tokenizer* t, int32_t id, size_t* len);

/* The id whose text is exactly `text` (plain text, not the byte alphabet), or -1. */
int32_t lm_tokenizer_find(const struct lm_tokenizer* t, const char* text);

bool lm_tokenizer_is_special(const struct lm_tokenizer* t, int32_t id);
size_t lm_tokenizer_size(const struct lm_tokenizer* t); /* one past the largest id */
int32_t lm_tokenizer_bos(const struct lm_tokenizer* t); /* -1 for none; the same below */
int32_t lm_tokenizer_eos(const struct lm_tokenizer* t);
int32_t lm_tokenizer_pad(const struct lm_tokenizer* t);
const char* lm_tokenizer_chat_template(const struct lm_tokenizer* t); /* borrowed, or NULL */

/* Append, each once, the ids that end a text for this tokenizer: eos, and the special tokens that
 * are named as ends by convention (<|im_end|>, <|endoftext|>, <|eot_id|>, ...). The ids of config
 * and generation config are to be added by the caller. */
int lm_tokenizer_end_ids(const struct lm_tokenizer* t, struct lm_ids* ids);

#endif
