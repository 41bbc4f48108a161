/* Hugging Face's tokenizer.json, read into the same arrays that a GGUF file holds.
 *
 * Accepted: model BPE without dropout, prefixes, suffixes and byte fallback; no normalizer or NFC;
 * the pre-tokenizers of pretok.h; the ByteLevel decoder; a post-processor that puts at most one
 * special token in front. Everything else changes ids or text, so it is refused by name. */
#include <stdlib.h>
#include <string.h>

#include "lm/err.h"
#include "lm/json.h"
#include "lm/tokenizer_impl.h"

/* Ids may have holes, but an id far beyond the number of tokens is a broken file. */
enum { HOLES_MAX = 1 << 20 };

struct reader {
  const char* path;
  const cJSON* root;
  const char** tokens;
  int32_t* types;
  uint8_t* strip;
  const char** merges;
  struct lm_text pairs; /* merges that were stored as pairs, joined */
  struct lm_vocab v;
  struct lm_vocab_extra x;
};

static int refuse(const struct reader* r, const char* part, const char* what) {
  return lm_fail(RP_ERR_UNSUPPORTED, "[tokenizer] %s: the %s '%.64s' is not supported.", r->path,
                 part, what ? what : "(unnamed)");
}

static const char* type_of(const cJSON* item) { return lm_json_string(item, "type"); }

static bool has_type(const cJSON* item, const char* type) {
  const char* s = type_of(item);
  return s && strcmp(s, type) == 0;
}

static int read_model(struct reader* r) {
  const cJSON* m = lm_json_get(r->root, "model");
  const char *prefix = lm_json_string(m, "continuing_subword_prefix"),
             *suffix = lm_json_string(m, "end_of_word_suffix");

  if (!m) return lm_fail(RP_ERR_FORMAT, "[tokenizer] %s has no model.", r->path);
  /* Files from before the field existed hold merges only for BPE. */
  if (!has_type(m, "BPE") && (type_of(m) || !lm_json_get(m, "merges")))
    return refuse(r, "model type", type_of(m));
  if (lm_json_bool(m, "byte_fallback", false)) return refuse(r, "model option", "byte_fallback");
  if (lm_json_get(m, "dropout") && lm_json_get(m, "dropout")->valuedouble > 0)
    return refuse(r, "model option", "dropout");
  if (prefix && *prefix) return refuse(r, "continuing_subword_prefix", prefix);
  if (suffix && *suffix) return refuse(r, "end_of_word_suffix", suffix);
  r->x.ignore_merges = lm_json_bool(m, "ignore_merges", false);
  return 0;
}

static int read_normalizer(struct reader* r) {
  const cJSON* n = lm_json_get(r->root, "normalizer");
  const cJSON* inner = lm_json_get(n, "normalizers");

  if (has_type(n, "Sequence") && cJSON_GetArraySize(inner) == 0) return 0;
  if (has_type(n, "Sequence") && cJSON_GetArraySize(inner) == 1) n = inner->child;
  if (n && !has_type(n, "NFC")) return refuse(r, "normalizer", type_of(n));
  r->x.nfc = n != NULL;
  return 0;
}

static int read_split(struct reader* r, const cJSON* split) {
  const char* regex = lm_json_string(lm_json_get(split, "pattern"), "Regex");
  const char* behavior = lm_json_string(split, "behavior");

  if (!behavior || strcmp(behavior, "Isolated") != 0 || lm_json_bool(split, "invert", false))
    return refuse(r, "behavior of Split", behavior);
  for (int k = 0; regex && k < LM_PRETOK_COUNT; k++)
    if (lm_pretok_is_regex((enum lm_pretok_kind)k, regex)) {
      r->x.pretok = (enum lm_pretok_kind)k;
      return 0;
    }
  return refuse(r, "pre-tokenizer pattern", regex);
}

/* ByteLevel must leave spaces alone, and cut (or not) as the steps before it expect. */
static int check_byte_level(const struct reader* r, const cJSON* b, bool use_regex) {
  if (!has_type(b, "ByteLevel")) return refuse(r, "pre-tokenizer", type_of(b));
  if (lm_json_bool(b, "add_prefix_space", true)) return refuse(r, "option", "add_prefix_space");
  if (lm_json_bool(b, "use_regex", true) != use_regex) return refuse(r, "option", "use_regex");
  return 0;
}

static int read_pretok(struct reader* r) {
  const cJSON* p = lm_json_get(r->root, "pre_tokenizer");
  const cJSON* steps = lm_json_get(p, "pretokenizers");

  if (!has_type(p, "Sequence")) {
    r->x.pretok = LM_PRETOK_GPT2;
    return check_byte_level(r, p, true);
  }
  if (cJSON_GetArraySize(steps) != 2) return refuse(r, "pre-tokenizer", "Sequence of other length");
  const cJSON *first = steps->child, *second = first->next;
  if (has_type(first, "Digits")) {
    r->x.pretok = LM_PRETOK_SMOLLM;
    if (!lm_json_bool(first, "individual_digits", false))
      return refuse(r, "option", "grouped Digits");
    return check_byte_level(r, second, true);
  }
  if (!has_type(first, "Split")) return refuse(r, "pre-tokenizer", type_of(first));
  int err = read_split(r, first);
  return err ? err : check_byte_level(r, second, false);
}

static int check_decoder(const struct reader* r) {
  const cJSON* d = lm_json_get(r->root, "decoder");
  return d && !has_type(d, "ByteLevel") ? refuse(r, "decoder", type_of(d)) : 0;
}

static bool in_vocab_range(const cJSON* item, size_t count, int64_t* id) {
  return lm_json_int(item, 0, (int64_t)count + HOLES_MAX, id);
}

/* One past the largest id of the model's vocabulary and the added tokens. */
static int count_tokens(struct reader* r, const cJSON* vocab, const cJSON* added, size_t* n) {
  size_t count = (size_t)cJSON_GetArraySize(vocab) + (size_t)cJSON_GetArraySize(added);
  const cJSON* item;
  int64_t id = 0;

  *n = 0;
  cJSON_ArrayForEach(item, vocab) {
    if (!in_vocab_range(item, count, &id))
      return lm_fail(RP_ERR_FORMAT, "[tokenizer] %s: the token '%.64s' has no usable id.", r->path,
                     item->string);
    if ((size_t)id >= *n) *n = (size_t)id + 1;
  }
  cJSON_ArrayForEach(item, added) {
    if (!in_vocab_range(lm_json_get(item, "id"), count, &id) || !lm_json_string(item, "content"))
      return lm_fail(RP_ERR_FORMAT, "[tokenizer] %s: an added token has no usable id or content.",
                     r->path);
    if ((size_t)id >= *n) *n = (size_t)id + 1;
  }
  return 0;
}

static int place_added(struct reader* r, const cJSON* item) {
  const char* content = lm_json_string(item, "content");
  int64_t id = 0;

  lm_json_int(lm_json_get(item, "id"), 0, INT32_MAX, &id);
  if (lm_json_bool(item, "single_word", false)) return refuse(r, "single_word token", content);
  r->tokens[id] = content;
  r->types[id] = lm_json_bool(item, "special", false) ? LM_TOKEN_CONTROL : LM_TOKEN_USER_DEFINED;
  r->strip[id] = (lm_json_bool(item, "lstrip", false) ? LM_FLAG_LSTRIP : 0) |
                 (lm_json_bool(item, "rstrip", false) ? LM_FLAG_RSTRIP : 0);
  return 0;
}

static int read_tokens(struct reader* r) {
  const cJSON* vocab = lm_json_get(lm_json_get(r->root, "model"), "vocab");
  const cJSON* added = lm_json_get(r->root, "added_tokens");
  const cJSON* item;
  size_t n = 0;

  if (!cJSON_IsObject(vocab))
    return lm_fail(RP_ERR_FORMAT, "[tokenizer] %s has no vocabulary.", r->path);
  int err = count_tokens(r, vocab, added, &n);
  if (err) return err;
  r->tokens = malloc((n + 1) * sizeof *r->tokens);
  r->types = malloc((n + 1) * sizeof *r->types);
  r->strip = calloc(n + 1, 1);
  if (!r->tokens || !r->types || !r->strip)
    return lm_fail_memory("the vocabulary", n * sizeof *r->tokens);
  for (size_t i = 0; i < n; i++) {
    r->tokens[i] = "";
    r->types[i] = LM_TOKEN_UNUSED;
  }
  cJSON_ArrayForEach(item, vocab) {
    r->tokens[(size_t)item->valuedouble] = item->string;
    r->types[(size_t)item->valuedouble] = LM_TOKEN_NORMAL;
  }
  cJSON_ArrayForEach(item, added) if (!err) err = place_added(r, item);
  r->v.n_tokens = n;
  return err;
}

/* Append "left right" and a NUL for a merge that is stored as ["left", "right"]. */
static int join_pair(struct reader* r, const cJSON* item, size_t number) {
  const cJSON* left = cJSON_IsArray(item) ? item->child : NULL;
  const cJSON* right = left ? left->next : NULL;

  if (!cJSON_IsString(left) || !cJSON_IsString(right) || right->next)
    return lm_fail(RP_ERR_FORMAT,
                   "[tokenizer] %s: merge %zu is neither \"a b\" nor [\"a\", \"b\"].", r->path,
                   number);
  int err = lm_text_append_str(&r->pairs, left->valuestring);
  if (!err) err = lm_text_append(&r->pairs, " ", 1);
  if (!err) err = lm_text_append(&r->pairs, right->valuestring, strlen(right->valuestring) + 1);
  return err;
}

static int read_merges(struct reader* r) {
  const cJSON* list = lm_json_get(lm_json_get(r->root, "model"), "merges");
  size_t n = (size_t)cJSON_GetArraySize(list), i = 0, at = 0;
  const cJSON* item;
  int err = 0;

  if (!cJSON_IsArray(list)) return lm_fail(RP_ERR_FORMAT, "[tokenizer] %s has no merges.", r->path);
  r->merges = malloc((n + 1) * sizeof *r->merges);
  if (!r->merges) return lm_fail_memory("merges", n * sizeof *r->merges);
  cJSON_ArrayForEach(item, list) {
    if (!cJSON_IsString(item) && !err) err = join_pair(r, item, i);
    i++;
  }
  if (err) return err;
  i = 0;
  cJSON_ArrayForEach(item, list) { /* only now, as `pairs` moves while it grows */
    r->merges[i] = cJSON_IsString(item) ? item->valuestring : r->pairs.data + at;
    if (!cJSON_IsString(item)) at += strlen(r->merges[i]) + 1;
    i++;
  }
  r->v.n_merges = n;
  return 0;
}

static int32_t find_token(const struct reader* r, const char* text) {
  for (size_t i = 0; text && i < r->v.n_tokens; i++)
    if (strcmp(r->tokens[i], text) == 0) return (int32_t)i;
  return -1;
}

/* TemplateProcessing for one text: [special token] text. */
static int read_template(struct reader* r, const cJSON* p) {
  const cJSON* step = lm_json_get(p, "single") ? lm_json_get(p, "single")->child : NULL;
  const cJSON* first = lm_json_get(step, "SpecialToken");

  if (first) {
    r->v.bos_id = find_token(r, lm_json_string(first, "id"));
    r->v.add_bos = r->v.bos_id >= 0;
    step = step->next;
  }
  if (!lm_json_get(step, "Sequence") || step->next || (first && r->v.bos_id < 0))
    return refuse(r, "post-processor", "TemplateProcessing with other tokens than one in front");
  return 0;
}

static int read_post(struct reader* r) {
  const cJSON* p = lm_json_get(r->root, "post_processor");
  bool is_list = has_type(p, "Sequence");
  const cJSON* list = is_list ? lm_json_get(p, "processors") : NULL;
  int err = 0;

  for (const cJSON* s = is_list ? (list ? list->child : NULL) : p; s && !err;
       s = is_list ? s->next : NULL) {
    if (has_type(s, "ByteLevel")) continue; /* changes offsets only */
    err = has_type(s, "TemplateProcessing") ? read_template(r, s)
                                            : refuse(r, "post-processor", type_of(s));
  }
  return err;
}

/* A special token of tokenizer_config.json: "text" or {"content": "text"}. */
static void set_special(const struct reader* r, const cJSON* config, const char* key, int32_t* id) {
  const char* text = lm_json_string(config, key);
  if (!text) text = lm_json_string(lm_json_get(config, key), "content");

  int32_t found = find_token(r, text);
  if (found >= 0) *id = found;
}

/* The template itself, or the one called "default" of a list of {name, template}. */
static const char* pick_template(const cJSON* config) {
  const cJSON* item;

  if (lm_json_string(config, "chat_template")) return lm_json_string(config, "chat_template");
  cJSON_ArrayForEach(item, lm_json_get(config, "chat_template")) {
    const char* name = lm_json_string(item, "name");
    if (name && strcmp(name, "default") == 0) return lm_json_string(item, "template");
  }
  return NULL;
}

static void read_config(struct reader* r, const cJSON* config) {
  set_special(r, config, "bos_token", &r->v.bos_id);
  set_special(r, config, "eos_token", &r->v.eos_id);
  set_special(r, config, "pad_token", &r->v.pad_id);
  r->v.add_bos = lm_json_bool(config, "add_bos_token", r->v.add_bos);
  r->v.chat_template = pick_template(config);
}

static int read_all(struct reader* r, const cJSON* config, struct lm_tokenizer** out) {
  int err = read_model(r);

  if (!err) err = read_normalizer(r);
  if (!err) err = read_pretok(r);
  if (!err) err = check_decoder(r);
  if (!err) err = read_tokens(r);
  if (!err) err = read_merges(r);
  if (!err) err = read_post(r);
  if (err) return err;
  if (config) read_config(r, config);
  r->v.tokens = r->tokens;
  r->v.types = r->types;
  r->v.merges = r->merges;
  r->x.strip = r->strip;
  return lm_tokenizer_build(out, &r->v, &r->x);
}

int lm_tokenizer_from_json(struct lm_tokenizer** out, const char* path, const char* config_path) {
  struct reader r = {.path = path, .v = {.bos_id = -1, .eos_id = -1, .pad_id = -1}};
  cJSON *root = NULL, *config = NULL;

  int err = lm_json_read(&root, path);
  if (!err && config_path) err = lm_json_read(&config, config_path);
  r.root = root;
  if (!err) err = read_all(&r, config, out);
  free(r.tokens);
  free(r.types);
  free(r.strip);
  free(r.merges);
  lm_text_free(&r.pairs);
  cJSON_Delete(root);
  cJSON_Delete(config);
  return err;
}
