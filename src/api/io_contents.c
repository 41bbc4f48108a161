/* io_types.h: the contents of a GGUF file, as arrays by name and metadata by key.
 *
 * Entries are counted and never change: a get keeps one alive while the key is set to another, and
 * the lock covers only the tables. */
#include <stdatomic.h>
#include <string.h>

#include "api/call.h"
#include "api/io_types.h"
#include "api/vector_string.h"
#include "base/err.h"
#include "base/map.h"

enum { MISSING = 2, OTHER_KIND = 3 };
enum kind { ARRAY, TEXT, TEXTS };

struct entry {
  _Atomic(int) refs;
  enum kind kind;
  struct array* array;
  struct text* text;
  struct text** texts;
  int64_t ntexts;
};

struct contents {
  struct lock lock;
  struct rpi_map arrays, meta; /* of struct entry */
};

static void release_entry(struct entry* e) {
  if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1) return;
  rpi_array_release(e->array);
  rpi_text_release(e->text);
  if (e->texts) rpi_texts_drop(e->texts, e->ntexts);
  rpi_free(e);
}

/* Takes what `from` holds, also on failure. */
static struct entry* new_entry(const struct entry* from) {
  struct entry* e = rpi_alloc(sizeof *e);
  if (!e) {
    struct entry given = *from;
    rpi_fail_memory("an entry of a GGUF file", sizeof *e);
    rpi_array_release(given.array);
    rpi_text_release(given.text);
    if (given.texts) rpi_texts_drop(given.texts, given.ntexts);
    return NULL;
  }
  *e = *from;
  atomic_init(&e->refs, 1);
  return e;
}

static int put(struct contents* c, struct rpi_map* m, const char* key, const struct entry* from) {
  void* old = NULL;
  struct entry* e = new_entry(from);
  if (!e) return rpi_error_code();
  rpi_lock(&c->lock);
  int is_full = rpi_map_put(m, key, e, &old);
  rpi_unlock(&c->lock);
  release_entry(is_full ? e : old);
  return is_full ? rpi_fail_memory("an entry of a GGUF file", strlen(key)) : 0;
}

struct contents* rpi_contents_new(void) {
  struct contents* c = rpi_calloc(1, sizeof *c);
  if (!c) rpi_fail_memory("the contents of a GGUF file", sizeof *c);
  return c;
}

static void drop_map(struct rpi_map* m) {
  for (int64_t i = 0; i < m->n; i++) release_entry(m->at[i].value);
  rpi_map_release(m);
}

void rpi_contents_free(struct contents* c) {
  if (!c) return;
  drop_map(&c->arrays);
  drop_map(&c->meta);
  rpi_free(c);
}

void rpi_contents_move(mlx_io_gguf* res, struct contents* c) {
  struct contents* into = res->ctx;
  if (!into) {
    res->ctx = c;
    return;
  }
  rpi_lock(&into->lock);
  struct rpi_map arrays = into->arrays, meta = into->meta;
  into->arrays = c->arrays;
  into->meta = c->meta;
  rpi_unlock(&into->lock);
  c->arrays = arrays;
  c->meta = meta;
  rpi_contents_free(c);
}

bool rpi_contents_has_array(struct contents* c, const char* key) {
  return rpi_map_find(&c->arrays, key) != NULL;
}

int rpi_contents_put_array(struct contents* c, const char* key, struct array* a) {
  return a ? put(c, &c->arrays, key, &(struct entry){.kind = ARRAY, .array = a}) : rpi_error_code();
}

int rpi_contents_put_meta_array(struct contents* c, const char* key, struct array* a) {
  return a ? put(c, &c->meta, key, &(struct entry){.kind = ARRAY, .array = a}) : rpi_error_code();
}

int rpi_contents_put_meta_text(struct contents* c, const char* key, struct text* t) {
  return t ? put(c, &c->meta, key, &(struct entry){.kind = TEXT, .text = t}) : rpi_error_code();
}

int rpi_contents_put_meta_texts(struct contents* c, const char* key, struct text** at, int64_t n) {
  if (!at) return rpi_error_code();
  return put(c, &c->meta, key, &(struct entry){.kind = TEXTS, .texts = at, .ntexts = n});
}

/* ---- the interface --------------------------------------------------------------------------- */

static int check(mlx_io_gguf io, const char* key, const char* name) {
  if (!io.ctx) return rpi_fail(RP_ERR_ARGUMENT, "[%s] The handle is empty.", name);
  return key ? 0 : rpi_fail(RP_ERR_ARGUMENT, "[%s] The key is NULL.", name);
}

/* The entry of a key with a reference of the caller's, or NULL. */
static struct entry* find(struct contents* c, const struct rpi_map* m, const char* key) {
  rpi_lock(&c->lock);
  struct entry* e = rpi_map_get(m, key);
  if (e) atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
  rpi_unlock(&c->lock);
  return e;
}

mlx_io_gguf mlx_io_gguf_new(void) {
  struct contents* c = rpi_contents_new();
  if (!c) rpi_report(rpi_error_code());
  return (mlx_io_gguf){c};
}

int mlx_io_gguf_free(mlx_io_gguf io) {
  rpi_contents_free(io.ctx);
  return 0;
}

int mlx_io_gguf_get_keys(mlx_vector_string* keys, mlx_io_gguf io) {
  struct contents* c = io.ctx;
  if (!c) return rpi_report(check(io, "", "io_gguf_get_keys"));
  mlx_vector_string list = mlx_vector_string_new();
  int rc = list.ctx ? 0 : 1;
  for (int64_t i = 0; !rc; i++) {
    rpi_lock(&c->lock); /* keys stay where they are while the object lives */
    const char* key = i < c->arrays.n ? c->arrays.at[i].key : NULL;
    rpi_unlock(&c->lock);
    if (!key) break;
    rc = mlx_vector_string_append_value(list, key);
  }
  if (!rc) rc = mlx_vector_string_set(keys, list);
  mlx_vector_string_free(list);
  return rc;
}

/* Copy the entry of a key to the one result that is not NULL. */
static int get(struct contents* c, const struct rpi_map* m, const char* key, enum kind kind,
               mlx_array* array, mlx_string* text, mlx_vector_string* texts) {
  struct entry* e = find(c, m, key);
  if (!e) return MISSING;
  int rc = 0;
  if (e->kind != kind) {
    release_entry(e);
    return OTHER_KIND;
  }
  if (array) rc = rpi_handle_set(array, rpi_array_retain(e->array));
  if (text) rc = rpi_string_set_text(text, rpi_text_retain(e->text));
  if (texts) {
    struct text** at = rpi_texts_new(e->ntexts);
    for (int64_t i = 0; at && i < e->ntexts; i++) at[i] = rpi_text_retain(e->texts[i]);
    rc = rpi_texts_set(texts, at, e->ntexts);
  }
  release_entry(e);
  return rpi_report(rc);
}

int mlx_io_gguf_get_array(mlx_array* arr, mlx_io_gguf io, const char* key) {
  struct contents* c = io.ctx;
  int rc = check(io, key, "io_gguf_get_array");
  return rc ? rpi_report(rc) : get(c, &c->arrays, key, ARRAY, arr, NULL, NULL);
}

int mlx_io_gguf_get_metadata_array(mlx_array* arr, mlx_io_gguf io, const char* key) {
  struct contents* c = io.ctx;
  int rc = check(io, key, "io_gguf_get_metadata_array");
  return rc ? rpi_report(rc) : get(c, &c->meta, key, ARRAY, arr, NULL, NULL);
}

int mlx_io_gguf_get_metadata_string(mlx_string* str, mlx_io_gguf io, const char* key) {
  struct contents* c = io.ctx;
  int rc = check(io, key, "io_gguf_get_metadata_string");
  return rc ? rpi_report(rc) : get(c, &c->meta, key, TEXT, NULL, str, NULL);
}

int mlx_io_gguf_get_metadata_vector_string(mlx_vector_string* vstr, mlx_io_gguf io,
                                           const char* key) {
  struct contents* c = io.ctx;
  int rc = check(io, key, "io_gguf_get_metadata_vector_string");
  return rc ? rpi_report(rc) : get(c, &c->meta, key, TEXTS, NULL, NULL, vstr);
}

static int has(bool* flag, mlx_io_gguf io, const char* key, enum kind kind, const char* name) {
  struct contents* c = io.ctx;
  int rc = check(io, key, name);
  if (rc) return rpi_report(rc);
  struct entry* e = find(c, &c->meta, key);
  *flag = e && e->kind == kind;
  rc = e ? 0 : MISSING;
  release_entry(e);
  return rc;
}

int mlx_io_gguf_has_metadata_array(bool* flag, mlx_io_gguf io, const char* key) {
  return has(flag, io, key, ARRAY, "io_gguf_has_metadata_array");
}

int mlx_io_gguf_has_metadata_string(bool* flag, mlx_io_gguf io, const char* key) {
  return has(flag, io, key, TEXT, "io_gguf_has_metadata_string");
}

int mlx_io_gguf_has_metadata_vector_string(bool* flag, mlx_io_gguf io, const char* key) {
  return has(flag, io, key, TEXTS, "io_gguf_has_metadata_vector_string");
}

int mlx_io_gguf_set_array(mlx_io_gguf io, const char* key, const mlx_array arr) {
  const char* name = "io_gguf_set_array";
  int rc = check(io, key, name);
  return rpi_report(rc ? rc : rpi_contents_put_array(io.ctx, key, rpi_handle_get(arr, name)));
}

int mlx_io_gguf_set_metadata_array(mlx_io_gguf io, const char* key, const mlx_array marr) {
  const char* name = "io_gguf_set_metadata_array";
  int rc = check(io, key, name);
  return rpi_report(rc ? rc : rpi_contents_put_meta_array(io.ctx, key, rpi_handle_get(marr, name)));
}

int mlx_io_gguf_set_metadata_string(mlx_io_gguf io, const char* key, const char* mstr) {
  int rc = check(io, key, "io_gguf_set_metadata_string");
  if (!rc && !mstr)
    rc = rpi_fail(RP_ERR_ARGUMENT, "[io_gguf_set_metadata_string] The text is NULL.");
  if (!rc) rc = rpi_contents_put_meta_text(io.ctx, key, rpi_text_new(mstr, strlen(mstr)));
  return rpi_report(rc);
}

int mlx_io_gguf_set_metadata_vector_string(mlx_io_gguf io, const char* key,
                                           const mlx_vector_string mvstr) {
  const char* name = "io_gguf_set_metadata_vector_string";
  struct text** at = NULL;
  int64_t n = 0;
  int rc = check(io, key, name);
  if (!rc) rc = rpi_texts_get(&at, &n, mvstr, name);
  if (!rc) rc = rpi_contents_put_meta_texts(io.ctx, key, at, n);
  return rpi_report(rc);
}
