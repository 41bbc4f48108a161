/* Text to token ids: added tokens are cut out first (leftmost, longest), what lies between is cut
 * into valid UTF-8 and raw bytes, the valid parts into words, and byte pairs merge inside a word.
 *
 * Words repeat: a small direct-mapped table, which lives for one call so that tokenizers need no
 * lock, remembers where in the output the last word of the same hash went. */
#include <stdlib.h>
#include <string.h>

#include "lm/err.h"
#include "lm/nfc.h"
#include "lm/tokenizer_impl.h"
#include "lm/utf8.h"

enum { CACHE_MAX = 4096, CACHED_WORD_MAX = 32 };

/* A word seen before: its first bytes, zero-padded, and its ids in the output. */
struct seen_word {
  char bytes[CACHED_WORD_MAX];
  uint32_t len, n_ids;
  size_t at;
};

struct encoder {
  const struct lm_tokenizer* t;
  struct lm_ids* ids;
  struct lm_bpe_work work;
  struct lm_pretok_walk walk;
  struct lm_text normal; /* the segment in form C, for tokenizers that ask for it */
  struct seen_word* cache;
  size_t cache_mask;
  unsigned flags;
};

static int merge_word(struct encoder* e, const char* word, size_t n) {
  if (e->t->ignore_merges) {
    int32_t id = lm_tokenizer_by_bytes(e->t, word, n);
    if (id >= 0) return lm_ids_push(e->ids, id);
  }
  return lm_bpe_word(&e->t->bpe, &e->work, word, n, e->flags & LM_ENCODE_LOSSY, e->ids);
}

static struct seen_word* cache_slot(const struct encoder* e, const char* padded, size_t n) {
  uint64_t h = n;

  for (size_t i = 0; i < n; i += 8) {
    uint64_t w;
    memcpy(&w, padded + i, 8);
    h = (h ^ w) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
  }
  return &e->cache[h >> 7 & e->cache_mask];
}

static int encode_word(struct encoder* e, const char* word, size_t n) {
  if (!e->cache || n > CACHED_WORD_MAX) return merge_word(e, word, n);

  char padded[CACHED_WORD_MAX] = {0};
  memcpy(padded, word, n);
  struct seen_word* s = cache_slot(e, padded, n);
  if (s->len == n && memcmp(s->bytes, padded, CACHED_WORD_MAX) == 0) {
    int err = lm_ids_reserve(e->ids, s->n_ids); /* first: the source is in the same buffer */
    return err ? err : lm_ids_append(e->ids, e->ids->data + s->at, s->n_ids);
  }
  size_t at = e->ids->len;
  int err = merge_word(e, word, n);
  if (err) return err;
  memcpy(s->bytes, padded, CACHED_WORD_MAX);
  s->len = (uint32_t)n;
  s->at = at;
  s->n_ids = (uint32_t)(e->ids->len - at);
  return 0;
}

static int encode_valid(struct encoder* e, const char* text, size_t n) {
  int err = 0;

  if (e->t->nfc && !lm_nfc_is_plain(text, n)) {
    e->normal.len = 0;
    err = lm_nfc(text, n, &e->normal);
    text = e->normal.data;
    n = e->normal.len;
  }
  for (size_t i = 0, end = 0; i < n && !err; i = end) {
    err = lm_pretok_next(&e->walk, text, n, i, &end);
    if (!err) err = encode_word(e, text + i, end - i);
  }
  return err;
}

/* Bytes at the front of s[0..n) that belong to no valid character. */
static size_t invalid_prefix(const char* s, size_t n) {
  size_t i = 0;

  while (i < n && lm_utf8_char((const unsigned char*)s + i, n - i) <= 0) i++;
  return i;
}

/* A segment without added tokens. Bytes that are not UTF-8 are words of their own. */
static int encode_segment(struct encoder* e, const char* text, size_t n) {
  int err = 0;

  for (size_t i = 0; i < n && !err;) {
    size_t valid = lm_utf8_valid_prefix(text + i, n - i);
    if (valid) err = encode_valid(e, text + i, valid);
    i += valid;
    size_t raw = invalid_prefix(text + i, n - i);
    if (raw && !err) err = merge_word(e, text + i, raw);
    i += raw;
  }
  return err;
}

/* First of added[lo..hi) whose byte `depth` is >= c (> c if `above`). All of them share the bytes
 * before `depth`; one that ends there counts as smallest. */
static size_t bound(const struct lm_tokenizer* t, size_t lo, size_t hi, size_t depth,
                    unsigned char c, bool above) {
  while (lo < hi) {
    size_t mid = lo + (hi - lo) / 2;
    int32_t id = t->added[mid];
    size_t len = t->offset[id + 1] - t->offset[id];
    int b = depth < len ? (unsigned char)t->blob[t->offset[id] + depth] : -1;
    if (b < c || (above && b == c))
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

/* The longest added token that text[0..n) begins with, or -1. */
static int32_t match_added(const struct encoder* e, const char* text, size_t n) {
  const struct lm_tokenizer* t = e->t;
  size_t lo = 0, hi = t->n_added;
  int32_t best = -1;

  for (size_t depth = 0; depth < n && lo < hi; depth++) {
    lo = bound(t, lo, hi, depth, (unsigned char)text[depth], false);
    hi = bound(t, lo, hi, depth, (unsigned char)text[depth], true);
    for (size_t i = lo; i < hi; i++) { /* those that end here come first */
      int32_t id = t->added[i];
      if (t->offset[id + 1] - t->offset[id] != depth + 1) break;
      if (t->flags[id] & LM_FLAG_SPECIAL && !(e->flags & LM_ENCODE_SPECIAL)) continue;
      best = id;
      break;
    }
  }
  return best;
}

/* Bytes of white space (Unicode's White_Space) at s, of at most n; 0 if there is none. */
static size_t space_at(const char* text, size_t n) {
  const unsigned char* s = (const unsigned char*)text;

  if (n >= 1 && (s[0] == ' ' || (s[0] >= 9 && s[0] <= 13))) return 1;
  if (n >= 2 && s[0] == 0xC2 && (s[1] == 0x85 || s[1] == 0xA0)) return 2;
  if (n < 3 || s[0] < 0xE1 || s[0] > 0xE3) return 0;
  unsigned cp = (s[0] & 0xFu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu);
  bool is_space = cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 || cp == 0x2029 ||
                  cp == 0x202F || cp == 0x205F || cp == 0x3000;
  return is_space ? 3 : 0;
}

/* Where the white space that ends at text[end] begins, not before `from`. */
static size_t strip_left(const char* text, size_t from, size_t end) {
  for (;;) {
    size_t k = 1;
    while (k <= 3 && k <= end - from && space_at(text + end - k, k) != k) k++;
    if (k > 3 || k > end - from) return end;
    end -= k;
  }
}

static int encode_text(struct encoder* e, const char* text, size_t n) {
  size_t from = 0;
  int err = 0;

  for (size_t i = 0; i < n && !err;) {
    int32_t id = e->t->added_first[(unsigned char)text[i]] ? match_added(e, text + i, n - i) : -1;
    if (id < 0) {
      i++;
      continue;
    }
    uint8_t flags = e->t->flags[id];
    err = encode_segment(e, text + from,
                         (flags & LM_FLAG_LSTRIP ? strip_left(text, from, i) : i) - from);
    if (!err) err = lm_ids_push(e->ids, id);
    i += e->t->offset[id + 1] - e->t->offset[id];
    for (size_t k = 1; flags & LM_FLAG_RSTRIP && k; i += k) k = space_at(text + i, n - i);
    from = i;
  }
  return err ? err : encode_segment(e, text + from, n - from);
}

/* A table only where the text is long enough to repay clearing it. */
static void make_cache(struct encoder* e, size_t n) {
  size_t size = 16;

  while (size < CACHE_MAX && size < n / 16) size *= 2;
  e->cache = n < 512 ? NULL : calloc(size, sizeof *e->cache); /* without it all still works */
  e->cache_mask = size - 1;
}

int lm_tokenizer_encode(const struct lm_tokenizer* t, const char* text, size_t len, unsigned flags,
                        struct lm_ids* ids) {
  struct encoder e = {.t = t, .ids = ids, .flags = flags};
  size_t start = ids->len;

  if (len > INT32_MAX)
    return lm_fail(RP_ERR_ARGUMENT, "[encode] A text of %zu bytes is too long.", len);
  int err = lm_pretok_walk_init(&e.walk, t->pretok);
  if (!err) err = lm_ids_reserve(ids, len / 4 + 8);
  if (!err && flags & LM_ENCODE_BOS && t->add_bos) err = lm_ids_push(ids, t->bos_id);
  if (!err) {
    make_cache(&e, len);
    err = encode_text(&e, text, len);
  }
  if (err) ids->len = start;
  free(e.cache);
  lm_text_free(&e.normal);
  lm_bpe_work_free(&e.work);
  lm_pretok_walk_free(&e.walk);
  return err;
}
