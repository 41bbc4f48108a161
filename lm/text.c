/* Growing buffers: doubling, with every size checked before it is used. */
#include "lm/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lm/err.h"

/* New capacity for len + extra elements of `size` bytes, or 0 if that does not fit a size_t. */
static size_t grown(size_t cap, size_t len, size_t extra, size_t size) {
  size_t limit = (size_t)PTRDIFF_MAX / size;

  if (extra >= limit || len >= limit - extra) return 0;
  size_t need = len + extra;
  size_t twice = cap < limit / 2 ? cap * 2 : need;
  return need > twice ? need : twice < 16 ? 16 : twice;
}

int lm_text_reserve(struct lm_text* t, size_t extra) {
  if (t->data && extra < t->cap - t->len) return 0; /* one byte stays for the NUL */
  size_t cap = grown(t->cap, t->len, extra < SIZE_MAX ? extra + 1 : extra, 1);
  char* data = cap ? realloc(t->data, cap) : NULL;
  if (!data) return lm_fail_memory("text", extra);
  data[t->len] = '\0';
  t->data = data;
  t->cap = cap;
  return 0;
}

int lm_ids_reserve(struct lm_ids* v, size_t extra) {
  if (extra <= v->cap - v->len) return 0;
  size_t cap = grown(v->cap, v->len, extra, sizeof *v->data);
  int32_t* data = cap ? realloc(v->data, cap * sizeof *data) : NULL;
  if (!data) return lm_fail_memory("token ids", extra);
  v->data = data;
  v->cap = cap;
  return 0;
}

int lm_text_append(struct lm_text* t, const char* bytes, size_t n) {
  int err = lm_text_reserve(t, n);

  if (err) return err;
  if (n) memcpy(t->data + t->len, bytes, n);
  t->len += n;
  t->data[t->len] = '\0';
  return 0;
}

int lm_text_append_str(struct lm_text* t, const char* s) { return lm_text_append(t, s, strlen(s)); }

int lm_ids_append(struct lm_ids* v, const int32_t* ids, size_t n) {
  int err = lm_ids_reserve(v, n);

  if (err) return err;
  if (n) memcpy(v->data + v->len, ids, n * sizeof *ids);
  v->len += n;
  return 0;
}

int lm_ids_push(struct lm_ids* v, int32_t id) { return lm_ids_append(v, &id, 1); }

void lm_text_free(struct lm_text* t) {
  free(t->data);
  *t = (struct lm_text){0};
}

void lm_ids_free(struct lm_ids* v) {
  free(v->data);
  *v = (struct lm_ids){0};
}

/* Read until the end rather than trust the size: the path may be a pipe. */
static int read_all(struct lm_text* t, FILE* f, const char* path, size_t limit) {
  size_t start = t->len;

  for (;;) {
    int err = lm_text_reserve(t, 1 << 16);
    if (err) return err;
    size_t got = fread(t->data + t->len, 1, 1 << 16, f);
    t->len += got;
    t->data[t->len] = '\0';
    if (t->len - start > limit)
      return lm_fail(RP_ERR_FORMAT, "[read] %s is larger than %zu bytes.", path, limit);
    if (got) continue;
    if (ferror(f)) return lm_fail(RP_ERR_IO, "[read] %s: %s.", path, strerror(errno));
    return 0;
  }
}

int lm_text_read_file(struct lm_text* t, const char* path, size_t limit) {
  FILE* f = fopen(path, "rbe");
  if (!f) return lm_fail(RP_ERR_IO, "[read] %s: %s.", path, strerror(errno));

  size_t start = t->len;
  int err = read_all(t, f, path, limit);
  if (err && t->data) {
    t->len = start;
    t->data[start] = '\0';
  }
  fclose(f);
  return err;
}
