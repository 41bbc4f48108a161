/* map.h: maps from text to arrays and to texts.
 *
 * Both are one map of counted pointers; `kind` says how to count them. The lock covers the table;
 * references are dropped outside of it, because a drop may call the host. */
#include "api/map.h"

#include <string.h>

#include "api/call.h"
#include "base/err.h"

enum { MISSING = 2 }; /* what the interface returns for no such key, and past the end */

struct kind {
  const char* name;
  void (*keep)(void*);
  void (*drop)(void*);
};

static void keep_array(void* a) { rpi_array_retain(a); }
static void drop_array(void* a) { rpi_array_release(a); }
static void keep_text(void* t) { rpi_text_retain(t); }
static void drop_text(void* t) { rpi_text_release(t); }

static const struct kind arrays = {"map_string_to_array", keep_array, drop_array};
static const struct kind texts = {"map_string_to_string", keep_text, drop_text};

static int fail_empty(const struct kind* k, const char* verb) {
  return rpi_fail(RP_ERR_ARGUMENT, "[%s_%s] The map handle is empty.", k->name, verb);
}

static int check_key(const struct kind* k, const char* verb, const char* key) {
  return key ? 0 : rpi_fail(RP_ERR_ARGUMENT, "[%s_%s] The key is NULL.", k->name, verb);
}

struct map_handle* rpi_map_handle_new(void) {
  struct map_handle* m = rpi_calloc(1, sizeof *m);
  if (!m) rpi_fail_memory("a map", sizeof *m);
  return m;
}

static void drop_contents(const struct kind* k, struct rpi_map* m) {
  for (int64_t i = 0; i < m->n; i++) k->drop(m->at[i].value);
  rpi_map_release(m);
}

static void free_map(const struct kind* k, struct map_handle* m) {
  if (!m) return;
  drop_contents(k, &m->map);
  rpi_free(m);
}

/* The reference to `value` is taken in every case; NULL passes a failure on. */
static int put(const struct kind* k, struct map_handle* m, const char* key, void* value) {
  void* old = NULL;
  if (!value) return rpi_error_code();
  rpi_lock(&m->lock);
  int is_full = rpi_map_put(&m->map, key, value, &old);
  rpi_unlock(&m->lock);
  if (is_full) {
    k->drop(value);
    return rpi_fail_memory("a map entry", strlen(key));
  }
  if (old) k->drop(old);
  return 0;
}

/* Give *res the contents of `m`, or `m` itself when it is empty. */
static void move_map(const struct kind* k, void** res, struct map_handle* m) {
  struct map_handle* into = *res;
  if (!into) {
    *res = m;
    return;
  }
  rpi_lock(&into->lock);
  struct rpi_map old = into->map;
  into->map = m->map;
  rpi_unlock(&into->lock);
  m->map = old;
  free_map(k, m);
}

static int copy_entries(const struct kind* k, struct map_handle* to, struct map_handle* from) {
  int rc = 0;
  rpi_lock(&from->lock);
  for (int64_t i = 0; i < from->map.n && !rc; i++) {
    const struct rpi_map_entry* e = &from->map.at[i];
    rc = rpi_map_put_n(&to->map, e->key, e->key_bytes, e->value, NULL);
    if (!rc) k->keep(e->value);
  }
  rpi_unlock(&from->lock);
  return rc ? rpi_fail_memory("a copy of a map", 0) : 0;
}

static struct map_handle* copy_map(const struct kind* k, struct map_handle* src) {
  if (!src) {
    fail_empty(k, "set");
    return NULL;
  }
  struct map_handle* copy = rpi_map_handle_new();
  if (copy && copy_entries(k, copy, src)) {
    free_map(k, copy);
    return NULL;
  }
  return copy;
}

static int set_map(const struct kind* k, void** res, struct map_handle* src) {
  struct map_handle* copy = copy_map(k, src);
  if (!copy) return rpi_report(rpi_error_code());
  move_map(k, res, copy);
  return 0;
}

/* The value of a key with a reference of the caller's; *out is NULL when there is none. */
static int look_up(const struct kind* k, void** out, struct map_handle* m, const char* key) {
  if (!m) return fail_empty(k, "get");
  int rc = check_key(k, "get", key);
  if (rc) return rc;
  rpi_lock(&m->lock);
  void* value = rpi_map_get(&m->map, key);
  if (value) k->keep(value);
  rpi_unlock(&m->lock);
  *out = value;
  return 0;
}

/* ---- places in a map ------------------------------------------------------------------------- */

struct place {
  int64_t next;
};

static struct place* new_place(const struct kind* k, struct map_handle* m) {
  struct place* p = NULL;
  if (!m)
    fail_empty(k, "iterator_new");
  else if (!(p = rpi_calloc(1, sizeof *p)))
    rpi_fail_memory("a map iterator", sizeof *p);
  if (!p) rpi_report(rpi_error_code());
  return p;
}

/* The next entry; *value gets a reference, or NULL past the end. */
static int next_entry(const struct kind* k, const char** key, void** value, struct place* p,
                      struct map_handle* m) {
  *value = NULL;
  if (!p || !m)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s_iterator_next] The iterator is empty.", k->name);
  rpi_lock(&m->lock);
  if (p->next < m->map.n) {
    const struct rpi_map_entry* e = &m->map.at[p->next++];
    *key = e->key;
    k->keep(*value = e->value);
  }
  rpi_unlock(&m->lock);
  return 0;
}

/* ---- texts to arrays ------------------------------------------------------------------------- */

int rpi_array_map_put(struct map_handle* m, const char* key, struct array* a) {
  return put(&arrays, m, key, a);
}
void rpi_array_map_move(mlx_map_string_to_array* res, struct map_handle* m) {
  move_map(&arrays, &res->ctx, m);
}
struct map_handle* rpi_array_map_copy(mlx_map_string_to_array m) {
  return copy_map(&arrays, m.ctx);
}
void rpi_array_map_free(struct map_handle* m) { free_map(&arrays, m); }

mlx_map_string_to_array mlx_map_string_to_array_new(void) {
  struct map_handle* m = rpi_map_handle_new();
  if (!m) rpi_report(rpi_error_code());
  return (mlx_map_string_to_array){m};
}

int mlx_map_string_to_array_set(mlx_map_string_to_array* map, const mlx_map_string_to_array src) {
  return set_map(&arrays, &map->ctx, src.ctx);
}

int mlx_map_string_to_array_free(mlx_map_string_to_array map) {
  free_map(&arrays, map.ctx);
  return 0;
}

int mlx_map_string_to_array_insert(mlx_map_string_to_array map, const char* key,
                                   const mlx_array value) {
  if (!map.ctx) return rpi_report(fail_empty(&arrays, "insert"));
  int rc = check_key(&arrays, "insert", key);
  if (!rc) rc = put(&arrays, map.ctx, key, rpi_handle_get(value, "map_string_to_array_insert"));
  return rpi_report(rc);
}

int mlx_map_string_to_array_get(mlx_array* value, const mlx_map_string_to_array map,
                                const char* key) {
  void* a = NULL;
  int rc = look_up(&arrays, &a, map.ctx, key);
  if (rc) return rpi_report(rc);
  return a ? rpi_report(rpi_handle_set(value, a)) : MISSING;
}

mlx_map_string_to_array_iterator mlx_map_string_to_array_iterator_new(mlx_map_string_to_array map) {
  struct place* p = new_place(&arrays, map.ctx);
  return (mlx_map_string_to_array_iterator){p, p ? map.ctx : NULL};
}

int mlx_map_string_to_array_iterator_free(mlx_map_string_to_array_iterator it) {
  rpi_free(it.ctx);
  return 0;
}

int mlx_map_string_to_array_iterator_next(const char** key, mlx_array* value,
                                          mlx_map_string_to_array_iterator it) {
  void* a = NULL;
  int rc = next_entry(&arrays, key, &a, it.ctx, it.map_ctx);
  if (rc) return rpi_report(rc);
  return a ? rpi_report(rpi_handle_set(value, a)) : MISSING;
}

/* ---- texts to texts -------------------------------------------------------------------------- */

int rpi_text_map_put(struct map_handle* m, const char* key, struct text* t) {
  return put(&texts, m, key, t);
}
void rpi_text_map_move(mlx_map_string_to_string* res, struct map_handle* m) {
  move_map(&texts, &res->ctx, m);
}
struct map_handle* rpi_text_map_copy(mlx_map_string_to_string m) { return copy_map(&texts, m.ctx); }
void rpi_text_map_free(struct map_handle* m) { free_map(&texts, m); }

mlx_map_string_to_string mlx_map_string_to_string_new(void) {
  struct map_handle* m = rpi_map_handle_new();
  if (!m) rpi_report(rpi_error_code());
  return (mlx_map_string_to_string){m};
}

int mlx_map_string_to_string_set(mlx_map_string_to_string* map,
                                 const mlx_map_string_to_string src) {
  return set_map(&texts, &map->ctx, src.ctx);
}

int mlx_map_string_to_string_free(mlx_map_string_to_string map) {
  free_map(&texts, map.ctx);
  return 0;
}

int mlx_map_string_to_string_insert(mlx_map_string_to_string map, const char* key,
                                    const char* value) {
  if (!map.ctx) return rpi_report(fail_empty(&texts, "insert"));
  int rc = check_key(&texts, "insert", key);
  if (!rc && !value)
    rc = rpi_fail(RP_ERR_ARGUMENT, "[map_string_to_string_insert] The value is NULL.");
  if (!rc) rc = put(&texts, map.ctx, key, rpi_text_new(value, strlen(value)));
  return rpi_report(rc);
}

/* The map's own reference keeps a text that is borrowed from it. */
static int lend(const char** value, struct text* t) {
  if (!t) return MISSING;
  *value = t->at;
  rpi_text_release(t);
  return 0;
}

int mlx_map_string_to_string_get(const char** value, const mlx_map_string_to_string map,
                                 const char* key) {
  void* t = NULL;
  int rc = look_up(&texts, &t, map.ctx, key);
  return rc ? rpi_report(rc) : lend(value, t);
}

mlx_map_string_to_string_iterator mlx_map_string_to_string_iterator_new(
    mlx_map_string_to_string map) {
  struct place* p = new_place(&texts, map.ctx);
  return (mlx_map_string_to_string_iterator){p, p ? map.ctx : NULL};
}

int mlx_map_string_to_string_iterator_free(mlx_map_string_to_string_iterator it) {
  rpi_free(it.ctx);
  return 0;
}

int mlx_map_string_to_string_iterator_next(const char** key, const char** value,
                                           mlx_map_string_to_string_iterator it) {
  void* t = NULL;
  int rc = next_entry(&texts, key, &t, it.ctx, it.map_ctx);
  return rc ? rpi_report(rc) : lend(value, t);
}
