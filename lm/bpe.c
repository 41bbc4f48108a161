/* Byte-pair merging with a heap: the pair of lowest rank, leftmost first, is merged until no
 * neighbouring pair has a rule.
 *
 * The word is a doubly linked list of symbols in an array. Each symbol stores the rank of the rule
 * for itself and its right neighbour; a heap entry (rank, position) is stale, and skipped, when the
 * symbol no longer has that rank. At most three entries are pushed per symbol, so a word of n bytes
 * takes O(n log n) whatever its text. */
#include "lm/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "lm/err.h"

static const uint32_t NO_RULE = UINT32_MAX;

struct lm_bpe_slot {
  int32_t left, right; /* left is -1 in an empty slot */
  uint32_t rank;
};

struct lm_bpe_symbol {
  int32_t id;
  int32_t prev, next; /* positions, -1 at the ends */
  uint32_t rank;      /* of (this, next); NO_RULE also once merged away */
};

int lm_bpe_init(struct lm_bpe* b, size_t n_rules) {
  size_t size = 16;

  memset(b, 0, sizeof *b);
  for (int i = 0; i < 256; i++) b->byte_id[i] = -1;
  if (n_rules >= UINT32_MAX / 4)
    return lm_fail(RP_ERR_FORMAT, "[tokenizer] %zu merges are too many.", n_rules);
  while (size < n_rules * 2) size *= 2;
  b->slots = malloc(size * sizeof *b->slots);
  b->result = malloc((n_rules ? n_rules : 1) * sizeof *b->result);
  if (!b->slots || !b->result) {
    lm_bpe_free(b);
    return lm_fail_memory("merges", size * sizeof *b->slots);
  }
  memset(b->slots, 0xFF, size * sizeof *b->slots);
  b->mask = size - 1;
  return 0;
}

void lm_bpe_free(struct lm_bpe* b) {
  free(b->slots);
  free(b->result);
  memset(b, 0, sizeof *b);
}

void lm_bpe_work_free(struct lm_bpe_work* w) {
  free(w->symbols);
  free(w->heap);
  *w = (struct lm_bpe_work){0};
}

/* The slot of a pair, or the empty slot where it belongs. */
static struct lm_bpe_slot* find(const struct lm_bpe* b, int32_t left, int32_t right) {
  uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
  size_t i = (key * 0x9E3779B97F4A7C15u >> 20) & b->mask;

  while (b->slots[i].left >= 0 && (b->slots[i].left != left || b->slots[i].right != right))
    i = (i + 1) & b->mask;
  return &b->slots[i];
}

void lm_bpe_add(struct lm_bpe* b, int32_t left, int32_t right, int32_t result) {
  struct lm_bpe_slot* s = find(b, left, right);

  if (s->left < 0) *s = (struct lm_bpe_slot){left, right, (uint32_t)b->n_rules};
  b->result[b->n_rules++] = result;
}

static int reserve(struct lm_bpe_work* w, size_t n) {
  if (n > w->symbols_cap) {
    size_t cap = n < 64 ? 64 : n;
    struct lm_bpe_symbol* p = realloc(w->symbols, cap * sizeof *p);
    if (!p) return lm_fail_memory("symbols of a word", cap * sizeof *p);
    w->symbols = p;
    w->symbols_cap = cap;
  }
  /* One entry for each pair at first, then two for each of at most n - 1 merges. */
  if (3 * n > w->heap_cap) {
    size_t cap = 3 * (n < 64 ? 64 : n);
    uint64_t* p = realloc(w->heap, cap * sizeof *p);
    if (!p) return lm_fail_memory("merges of a word", cap * sizeof *p);
    w->heap = p;
    w->heap_cap = cap;
  }
  return 0;
}

static void push(struct lm_bpe_work* w, uint64_t key) {
  size_t i = w->heap_len++;

  while (i && w->heap[(i - 1) / 2] > key) {
    w->heap[i] = w->heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  w->heap[i] = key;
}

static uint64_t pop(struct lm_bpe_work* w) {
  uint64_t top = w->heap[0], last = w->heap[--w->heap_len];
  size_t i = 0, child;

  while ((child = 2 * i + 1) < w->heap_len) {
    if (child + 1 < w->heap_len && w->heap[child + 1] < w->heap[child]) child++;
    if (w->heap[child] >= last) break;
    w->heap[i] = w->heap[child];
    i = child;
  }
  w->heap[i] = last;
  return top;
}

/* Look the rule of (symbol, next) up again, and queue it. */
static void rank_pair(const struct lm_bpe* b, struct lm_bpe_work* w, int32_t pos) {
  struct lm_bpe_symbol* s = &w->symbols[pos];

  s->rank = NO_RULE;
  if (s->next < 0) return;
  const struct lm_bpe_slot* slot = find(b, s->id, w->symbols[s->next].id);
  if (slot->left < 0) return;
  s->rank = slot->rank;
  push(w, (uint64_t)s->rank << 32 | (uint32_t)pos);
}

/* Put one symbol per byte into the work area; *count is how many. */
static int load_bytes(const struct lm_bpe* b, struct lm_bpe_work* w, const unsigned char* word,
                      size_t n, bool lossy, int32_t* count) {
  int32_t m = 0;

  for (size_t i = 0; i < n; i++) {
    int32_t id = b->byte_id[word[i]];
    if (id < 0 && lossy) continue;
    if (id < 0)
      return lm_fail(RP_ERR_UNSUPPORTED,
                     "[tokenizer] The vocabulary has no token for the byte 0x%02X.", word[i]);
    w->symbols[m] = (struct lm_bpe_symbol){id, m - 1, m + 1, NO_RULE};
    m++;
  }
  if (m) w->symbols[m - 1].next = -1;
  *count = m;
  return 0;
}

static void merge_all(const struct lm_bpe* b, struct lm_bpe_work* w) {
  while (w->heap_len) {
    uint64_t key = pop(w);
    uint32_t rank = (uint32_t)(key >> 32);
    int32_t pos = (int32_t)(uint32_t)key;
    struct lm_bpe_symbol* s = &w->symbols[pos];
    if (s->rank != rank) continue;

    struct lm_bpe_symbol* gone = &w->symbols[s->next];
    gone->rank = NO_RULE;
    s->id = b->result[rank];
    s->next = gone->next;
    if (s->next >= 0) w->symbols[s->next].prev = pos;
    rank_pair(b, w, pos);
    if (s->prev >= 0) rank_pair(b, w, s->prev);
  }
}

int lm_bpe_word(const struct lm_bpe* b, struct lm_bpe_work* w, const char* word, size_t n,
                bool lossy, struct lm_ids* out) {
  int32_t count = 0;
  int err = reserve(w, n);

  if (!err) err = load_bytes(b, w, (const unsigned char*)word, n, lossy, &count);
  if (err || !count) return err;
  w->heap_len = 0;
  for (int32_t i = 0; i + 1 < count; i++) rank_pair(b, w, i);
  merge_all(b, w);
  for (int32_t i = 0; i >= 0 && !err; i = w->symbols[i].next)
    err = lm_ids_push(out, w->symbols[i].id);
  return err;
}
