/* The patterns, compiled by PCRE2 (with its JIT where the system allows one).
 *
 * 1. Every pattern matches at every position of a non-empty text, so words leave no gaps.
 * 2. \s is spelled out as Unicode's White_Space: PCRE2's own takes U+180E and leaves U+0085 out,
 *    against the engines the models were trained with.
 * 3. Repetitions whose follower cannot match the repeated class are possessive: the same words,
 *    without a backtracking position per character.
 *
 * Letters and numbers are PCRE2's Unicode version (14 in 10.42): characters assigned later count as
 * neither, which affects the cut only, never the bytes. */
#include "lm/pretok.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "lm/err.h"

#define SPACES                                                                       \
  "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}" \
  "\\x{202f}\\x{205f}\\x{3000}"
#define S "[" SPACES "]"
#define OTHER "[^" SPACES "\\p{L}\\p{N}]"
#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define RUN_OF_SPACES S "+(?![^" SPACES "])|" S "+"
#define WORDS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}++"
#define LINES " ?" OTHER "++[\\r\\n]*+|" S "*[\\r\\n]+|" RUN_OF_SPACES

static const char* const patterns[LM_PRETOK_COUNT] = {
    [LM_PRETOK_GPT2] = CONTRACTIONS "| ?\\p{L}++| ?\\p{N}++| ?" OTHER "++|" RUN_OF_SPACES,
    /* The cut before a digit also ends a run of spaces, hence its other lookahead. */
    [LM_PRETOK_SMOLLM] =
        CONTRACTIONS "| ?\\p{L}++|\\p{N}| ?" OTHER "++|" S "+(?![^" SPACES "\\p{N}])|" S "+",
    [LM_PRETOK_LLAMA3] = "(?i:" CONTRACTIONS ")|" WORDS "|\\p{N}{1,3}|" LINES,
    [LM_PRETOK_QWEN2] = "(?i:" CONTRACTIONS ")|" WORDS "|\\p{N}|" LINES,
};

/* The same patterns as tokenizer.json files spell them. SmolLM's is two steps, not one regex. */
#define JSON_TAIL " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define JSON_HEAD "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
static const char* const json_patterns[LM_PRETOK_COUNT] = {
    [LM_PRETOK_GPT2] =
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    [LM_PRETOK_LLAMA3] = JSON_HEAD "\\p{N}{1,3}|" JSON_TAIL,
    [LM_PRETOK_QWEN2] = JSON_HEAD "\\p{N}|" JSON_TAIL,
};

/* Names in GGUF files. Models that share a pattern have names of their own there. */
static const struct {
  const char* name;
  enum lm_pretok_kind kind;
} gguf_names[] = {
    {"default", LM_PRETOK_GPT2},  {"gpt-2", LM_PRETOK_GPT2},
    {"gpt2", LM_PRETOK_GPT2},     {"phi-2", LM_PRETOK_GPT2},
    {"olmo", LM_PRETOK_GPT2},     {"mpt", LM_PRETOK_GPT2},
    {"smollm", LM_PRETOK_SMOLLM}, {"starcoder", LM_PRETOK_SMOLLM},
    {"refact", LM_PRETOK_SMOLLM}, {"llama-bpe", LM_PRETOK_LLAMA3},
    {"llama3", LM_PRETOK_LLAMA3}, {"llama-v3", LM_PRETOK_LLAMA3},
    {"qwen2", LM_PRETOK_QWEN2},   {"deepseek-r1-qwen", LM_PRETOK_QWEN2},
};

struct lm_pretok {
  pcre2_code* code;
  bool has_jit;
};

int lm_pretok_new(struct lm_pretok** out, enum lm_pretok_kind kind) {
  struct lm_pretok* p = calloc(1, sizeof *p);
  if (!p) return lm_fail_memory("a pre-tokenizer", sizeof *p);

  int code = 0;
  PCRE2_SIZE at = 0;
  p->code = pcre2_compile((PCRE2_SPTR)patterns[kind], PCRE2_ZERO_TERMINATED,
                          PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &code, &at, NULL);
  if (!p->code) {
    free(p);
    if (code == PCRE2_ERROR_HEAP_FAILED) return lm_fail_memory("a pre-tokenizer", 0);
    return lm_fail(RP_ERR_INTERNAL, "[tokenizer] PCRE2 error %d at %zu of a pattern.", code, at);
  }
  p->has_jit = pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE) == 0;
  *out = p;
  return 0;
}

void lm_pretok_free(struct lm_pretok* p) {
  if (!p) return;
  pcre2_code_free(p->code);
  free(p);
}

int lm_pretok_from_gguf(enum lm_pretok_kind* out, const char* pre) {
  for (size_t i = 0; i < sizeof gguf_names / sizeof *gguf_names; i++) {
    if (strcmp(pre ? pre : "default", gguf_names[i].name) != 0) continue;
    *out = gguf_names[i].kind;
    return 0;
  }
  return lm_fail(RP_ERR_UNSUPPORTED,
                 "[tokenizer] The pre-tokenizer '%.64s' is not supported (gpt-2, smollm, llama-bpe "
                 "and qwen2 are).",
                 pre);
}

bool lm_pretok_is_regex(enum lm_pretok_kind kind, const char* regex) {
  return json_patterns[kind] && strcmp(json_patterns[kind], regex) == 0;
}

int lm_pretok_walk_init(struct lm_pretok_walk* w, const struct lm_pretok* p) {
  w->pretok = p;
  w->match = pcre2_match_data_create(1, NULL);
  return w->match ? 0 : lm_fail_memory("a regular expression match", 0);
}

void lm_pretok_walk_free(struct lm_pretok_walk* w) {
  if (w->match) pcre2_match_data_free(w->match);
  w->match = NULL;
}

int lm_pretok_next(struct lm_pretok_walk* w, const char* text, size_t n, size_t start,
                   size_t* end) {
  const struct lm_pretok* p = w->pretok;
  PCRE2_SPTR subject = (PCRE2_SPTR)text;
  int rc = PCRE2_ERROR_JIT_STACKLIMIT;

  if (p->has_jit) rc = pcre2_jit_match(p->code, subject, n, start, 0, w->match, NULL);
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter keeps its frames on the heap */
    rc = pcre2_match(p->code, subject, n, start, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, w->match, NULL);
  if (rc == PCRE2_ERROR_NOMEMORY || rc == PCRE2_ERROR_HEAPLIMIT)
    return lm_fail_memory("a regular expression match", 0);

  size_t stop = rc > 0 ? pcre2_get_ovector_pointer(w->match)[1] : start;
  if (stop <= start)
    return lm_fail(RP_ERR_INTERNAL, "[tokenizer] The pattern fails at byte %zu (PCRE2 %d).", start,
                   rc);
  *end = stop;
  return 0;
}
