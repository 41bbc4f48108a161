/* Building a byte-level BPE tokenizer from a vocabulary, and ids back to bytes.
 *
 * 1. Tokens are kept as the bytes they stand for. GPT-2's byte alphabet (each byte written as a
 *    printable character) is undone once, here; added tokens are plain text already.
 * 2. Normal tokens shadow added ones of the same bytes in the table that merges are resolved by.
 * 3. A tokenizer is written only here; afterwards all threads read it. */
#include "lm/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "lm/err.h"
#include "lm/tokenizer_impl.h"
#include "lm/utf8.h"

enum { ALPHABET = 256 + 68 }; /* 188 bytes stand for themselves, 68 moved to U+0100 and on */

static void byte_alphabet(int16_t byte_of[ALPHABET]) {
  int next = 256;

  memset(byte_of, 0xFF, ALPHABET * sizeof *byte_of);
  for (int b = 0; b < 256; b++) {
    bool is_printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    byte_of[is_printable ? b : next++] = (int16_t)b;
  }
}

/* Undo the byte alphabet. Returns the length, or -1 if a character is not of the alphabet. `out`
 * has room for strlen(s) bytes. */
static int64_t undo_alphabet(const int16_t byte_of[ALPHABET], const char* s, char* out) {
  const unsigned char* p = (const unsigned char*)s;
  int64_t n = 0;

  while (*p) {
    int cp = *p++;
    if (cp >= 0xC2 && cp <= 0xC5 && (*p & 0xC0) == 0x80)
      cp = (cp & 0x1F) << 6 | (*p++ & 0x3F);
    else if (cp >= 0x80)
      return -1;
    if (cp >= ALPHABET || byte_of[cp] < 0) return -1;
    out[n++] = (char)byte_of[cp];
  }
  return n;
}

static uint64_t hash_bytes(const char* s, size_t n) {
  uint64_t h = 0x9E3779B97F4A7C15u ^ n;

  for (; n >= 8; s += 8, n -= 8) {
    uint64_t w;
    memcpy(&w, s, 8);
    h = (h ^ w) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  }
  for (; n; s++, n--) h = (h ^ (unsigned char)*s) * 0x100000001B3u;
  h *= 0xD6E8FEB86659FD93u;
  return h ^ h >> 32;
}

static bool is_token(const struct lm_tokenizer* t, int32_t id, const char* bytes, size_t n) {
  size_t at = t->offset[id];
  return t->offset[id + 1] - at == n && memcmp(t->blob + at, bytes, n) == 0;
}

/* The slot of these bytes, or the empty slot where they belong. */
static int32_t* find_slot(const struct lm_tokenizer* t, const char* bytes, size_t n) {
  size_t i = hash_bytes(bytes, n) & t->by_bytes_mask;

  while (t->by_bytes[i] >= 0 && !is_token(t, t->by_bytes[i], bytes, n))
    i = (i + 1) & t->by_bytes_mask;
  return &t->by_bytes[i];
}

int32_t lm_tokenizer_by_bytes(const struct lm_tokenizer* t, const char* bytes, size_t n) {
  return *find_slot(t, bytes, n);
}

static uint8_t flags_of_type(int32_t type) {
  switch (type) {
    case LM_TOKEN_UNKNOWN:
    case LM_TOKEN_CONTROL:
      return LM_FLAG_ADDED | LM_FLAG_SPECIAL;
    case LM_TOKEN_USER_DEFINED:
      return LM_FLAG_ADDED;
    case LM_TOKEN_UNUSED:
      return LM_FLAG_UNUSED;
    default:
      return 0;
  }
}

static int alloc_tokens(struct lm_tokenizer* t, const struct lm_vocab* v) {
  size_t bytes = 1, slots = 16;

  if (v->n_tokens == 0 || v->n_tokens > INT32_MAX / 4)
    return lm_fail(RP_ERR_FORMAT, "[tokenizer] A vocabulary of %zu tokens.", v->n_tokens);
  for (size_t i = 0; i < v->n_tokens; i++) bytes += strlen(v->tokens[i]);
  if (bytes > UINT32_MAX)
    return lm_fail(RP_ERR_FORMAT, "[tokenizer] A vocabulary of %zu bytes.", bytes);
  while (slots < v->n_tokens * 2) slots *= 2;
  t->blob = malloc(bytes);
  t->offset = malloc((v->n_tokens + 1) * sizeof *t->offset);
  t->flags = malloc(v->n_tokens);
  t->by_bytes = malloc(slots * sizeof *t->by_bytes);
  if (!t->blob || !t->offset || !t->flags || !t->by_bytes)
    return lm_fail_memory("the vocabulary", bytes);
  memset(t->by_bytes, 0xFF, slots * sizeof *t->by_bytes);
  t->by_bytes_mask = slots - 1;
  t->n_tokens = v->n_tokens;
  return 0;
}

/* Store the bytes of every token. A normal token outside the byte alphabet stands for its text. */
static void copy_tokens(struct lm_tokenizer* t, const struct lm_vocab* v,
                        const struct lm_vocab_extra* x, const int16_t* byte_of) {
  uint32_t at = 0;

  for (size_t i = 0; i < v->n_tokens; i++) {
    const char* s = v->tokens[i];
    int64_t n = -1;
    t->flags[i] = flags_of_type(v->types ? v->types[i] : LM_TOKEN_NORMAL);
    if (!*s) t->flags[i] = LM_FLAG_UNUSED;
    if (x->strip && t->flags[i] & LM_FLAG_ADDED) t->flags[i] |= x->strip[i];
    if (!(t->flags[i] & LM_FLAG_ADDED)) n = undo_alphabet(byte_of, s, t->blob + at);
    if (n < 0) {
      n = (int64_t)strlen(s);
      memcpy(t->blob + at, s, (size_t)n);
    }
    t->offset[i] = at;
    at += (uint32_t)n;
  }
  t->offset[v->n_tokens] = at;
}

/* Enter the tokens whose ADDED flag is `added`; the first of equal ones stays. */
static void index_tokens(struct lm_tokenizer* t, bool added) {
  for (size_t i = 0; i < t->n_tokens; i++) {
    if (t->flags[i] & LM_FLAG_UNUSED || !!(t->flags[i] & LM_FLAG_ADDED) != added) continue;
    const char* bytes = t->blob + t->offset[i];
    int32_t* slot = find_slot(t, bytes, t->offset[i + 1] - t->offset[i]);
    if (*slot < 0) *slot = (int32_t)i;
  }
}

static int compare_tokens(const struct lm_tokenizer* t, int32_t a, int32_t b) {
  size_t na = t->offset[a + 1] - t->offset[a], nb = t->offset[b + 1] - t->offset[b];
  int c = memcmp(t->blob + t->offset[a], t->blob + t->offset[b], na < nb ? na : nb);

  if (c) return c;
  if (na != nb) return na < nb ? -1 : 1;
  return a < b ? -1 : a > b;
}

/* Shell sort of the added tokens (tens to a few thousand): qsort() passes no context. */
static void sort_added(struct lm_tokenizer* t) {
  for (size_t gap = t->n_added / 2; gap; gap = gap == 2 ? 1 : gap * 5 / 11)
    for (size_t i = gap; i < t->n_added; i++) {
      int32_t id = t->added[i];
      size_t j = i;
      for (; j >= gap && compare_tokens(t, t->added[j - gap], id) > 0; j -= gap)
        t->added[j] = t->added[j - gap];
      t->added[j] = id;
    }
}

static int list_added(struct lm_tokenizer* t) {
  size_t n = 0;

  for (size_t i = 0; i < t->n_tokens; i++) n += t->flags[i] & LM_FLAG_ADDED;
  t->added = malloc((n ? n : 1) * sizeof *t->added);
  if (!t->added) return lm_fail_memory("added tokens", n * sizeof *t->added);
  for (size_t i = 0; i < t->n_tokens; i++) {
    if (!(t->flags[i] & LM_FLAG_ADDED)) continue;
    t->added[t->n_added++] = (int32_t)i;
    t->added_first[(unsigned char)t->blob[t->offset[i]]] = true;
  }
  sort_added(t);
  return 0;
}

/* Resolve one rule "left right". `room` has strlen(rule) bytes. */
static int add_rule(struct lm_tokenizer* t, const int16_t* byte_of, char* rule, size_t number,
                    char* room) {
  char* space = strchr(rule, ' ');
  int64_t nl = -1, nr = -1;

  if (space) {
    *space = '\0';
    nl = undo_alphabet(byte_of, rule, room);
    if (nl > 0) nr = undo_alphabet(byte_of, space + 1, room + nl);
    *space = ' ';
  }
  if (nl <= 0 || nr <= 0)
    return lm_fail(RP_ERR_FORMAT, "[tokenizer] Merge %zu, '%.64s', is not two tokens.", number,
                   rule);

  int32_t left = lm_tokenizer_by_bytes(t, room, (size_t)nl);
  int32_t right = lm_tokenizer_by_bytes(t, room + nl, (size_t)nr);
  int32_t both = lm_tokenizer_by_bytes(t, room, (size_t)(nl + nr));
  if (left < 0 || right < 0 || both < 0)
    return lm_fail(RP_ERR_FORMAT, "[tokenizer] Merge %zu, '%.64s': %s is not in the vocabulary.",
                   number, rule,
                   left < 0    ? "the left"
                   : right < 0 ? "the right"
                               : "the result");
  lm_bpe_add(&t->bpe, left, right, both);
  return 0;
}

static int add_rules(struct lm_tokenizer* t, const struct lm_vocab* v, const int16_t* byte_of) {
  struct lm_text rule = {0}, room = {0};
  int err = lm_bpe_init(&t->bpe, v->n_merges);

  for (int b = 0; b < 256 && !err; b++) {
    char c = (char)b;
    t->bpe.byte_id[b] = lm_tokenizer_by_bytes(t, &c, 1);
  }
  for (size_t i = 0; i < v->n_merges && !err; i++) {
    rule.len = 0;
    err = lm_text_append_str(&rule, v->merges[i]); /* a copy, to be cut in two */
    if (!err) err = lm_text_reserve(&room, rule.len);
    if (!err) err = add_rule(t, byte_of, rule.data, i, room.data);
  }
  lm_text_free(&rule);
  lm_text_free(&room);
  return err;
}

static int check_id(const char* what, int32_t id, size_t n) {
  if (id >= -1 && (id < 0 || (size_t)id < n)) return 0;
  return lm_fail(RP_ERR_FORMAT, "[tokenizer] The %s token is %d, the vocabulary has %zu.", what,
                 (int)id, n);
}

static int fill(struct lm_tokenizer* t, const struct lm_vocab* v, const struct lm_vocab_extra* x) {
  int16_t byte_of[ALPHABET];
  int err = alloc_tokens(t, v);

  if (!err) err = check_id("bos", v->bos_id, v->n_tokens);
  if (!err) err = check_id("eos", v->eos_id, v->n_tokens);
  if (!err) err = check_id("pad", v->pad_id, v->n_tokens);
  if (err) return err;
  t->bos_id = v->bos_id;
  t->eos_id = v->eos_id;
  t->pad_id = v->pad_id;
  t->add_bos = v->add_bos && v->bos_id >= 0;
  t->ignore_merges = x->ignore_merges;
  t->nfc = x->nfc;

  byte_alphabet(byte_of);
  copy_tokens(t, v, x, byte_of);
  index_tokens(t, false);
  index_tokens(t, true);
  err = list_added(t);
  if (!err) err = add_rules(t, v, byte_of);
  if (!err) err = lm_pretok_new(&t->pretok, x->pretok);
  if (!err) err = lm_tokenizer_set_template(t, v->chat_template);
  return err;
}

int lm_tokenizer_build(struct lm_tokenizer** out, const struct lm_vocab* v,
                       const struct lm_vocab_extra* x) {
  struct lm_tokenizer* t = calloc(1, sizeof *t);
  if (!t) return lm_fail_memory("a tokenizer", sizeof *t);

  int err = fill(t, v, x);
  if (err) {
    lm_tokenizer_free(t);
    return err;
  }
  *out = t;
  return 0;
}

int lm_tokenizer_from_vocab(struct lm_tokenizer** out, const struct lm_vocab* v) {
  struct lm_vocab_extra x = {0};

  if (v->model && strcmp(v->model, "gpt2") != 0)
    return lm_fail(
        RP_ERR_UNSUPPORTED,
        "[tokenizer] The tokenizer model '%.64s' is not supported (gpt2, byte-level BPE, "
        "is).",
        v->model);
  int err = lm_pretok_from_gguf(&x.pretok, v->pre);
  if (err) return err;
  x.ignore_merges = x.pretok == LM_PRETOK_LLAMA3; /* GGUF does not say; Llama 3 does */
  return lm_tokenizer_build(out, v, &x);
}

void lm_tokenizer_free(struct lm_tokenizer* t) {
  if (!t) return;
  free(t->blob);
  free(t->offset);
  free(t->flags);
  free(t->by_bytes);
  free(t->added);
  free(t->chat_template);
  lm_bpe_free(&t->bpe);
  lm_pretok_free(t->pretok);
  free(t);
}

int lm_tokenizer_set_template(struct lm_tokenizer* t, const char* jinja) {
  char* copy = NULL;

  if (jinja) {
    copy = strdup(jinja);
    if (!copy) return lm_fail_memory("a chat template", strlen(jinja));
  }
  free(t->chat_template);
  t->chat_template = copy;
  return 0;
}

static bool has_id(const struct lm_tokenizer* t, int32_t id) {
  return id >= 0 && (size_t)id < t->n_tokens;
}

const char* lm_tokenizer_token_bytes(const struct lm_tokenizer* t, int32_t id, size_t* len) {
  *len = has_id(t, id) ? t->offset[id + 1] - t->offset[id] : 0;
  return has_id(t, id) ? t->blob + t->offset[id] : NULL;
}

int lm_tokenizer_decode(const struct lm_tokenizer* t, const int32_t* ids, size_t n, unsigned flags,
                        struct lm_text* out) {
  size_t start = out->len;
  int err = lm_text_reserve(out, 0);

  for (size_t i = 0; i < n && !err; i++) {
    size_t len;
    const char* bytes = lm_tokenizer_token_bytes(t, ids[i], &len);
    if (!bytes)
      err = lm_fail(RP_ERR_INDEX, "[decode] Token %d is outside the vocabulary of %zu.",
                    (int)ids[i], t->n_tokens);
    else if (!(flags & LM_DECODE_SKIP_SPECIAL && t->flags[ids[i]] & LM_FLAG_SPECIAL))
      err = lm_text_append(out, bytes, len);
  }
  if (err && out->data) {
    out->len = start;
    out->data[start] = '\0';
  }
  return err;
}

int32_t lm_tokenizer_find(const struct lm_tokenizer* t, const char* text) {
  size_t n = strlen(text);

  for (size_t i = 0; i < t->n_added; i++)
    if (is_token(t, t->added[i], text, n)) return t->added[i];
  return lm_tokenizer_by_bytes(t, text, n);
}

bool lm_tokenizer_is_special(const struct lm_tokenizer* t, int32_t id) {
  return has_id(t, id) && t->flags[id] & LM_FLAG_SPECIAL;
}

size_t lm_tokenizer_size(const struct lm_tokenizer* t) { return t->n_tokens; }
int32_t lm_tokenizer_bos(const struct lm_tokenizer* t) { return t->bos_id; }
int32_t lm_tokenizer_eos(const struct lm_tokenizer* t) { return t->eos_id; }
int32_t lm_tokenizer_pad(const struct lm_tokenizer* t) { return t->pad_id; }
const char* lm_tokenizer_chat_template(const struct lm_tokenizer* t) { return t->chat_template; }

static int push_once(struct lm_ids* ids, int32_t id) {
  if (id < 0) return 0;
  for (size_t i = 0; i < ids->len; i++)
    if (ids->data[i] == id) return 0;
  return lm_ids_push(ids, id);
}

int lm_tokenizer_end_ids(const struct lm_tokenizer* t, struct lm_ids* ids) {
  static const char* const names[] = {"<|im_end|>", "<|endoftext|>",   "<|eot_id|>",
                                      "<|eom_id|>", "<|end_of_text|>", "<|end|>",
                                      "</s>"};
  int err = push_once(ids, t->eos_id);

  for (size_t i = 0; i < sizeof names / sizeof *names && !err; i++) {
    int32_t id = lm_tokenizer_find(t, names[i]);
    if (lm_tokenizer_is_special(t, id)) err = push_once(ids, id);
  }
  return err;
}
