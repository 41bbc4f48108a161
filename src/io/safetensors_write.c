/* Writing safetensors files: see safetensors.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/vec.h"
#include "io/index.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/safetensors_dtype.h"

struct text {
  RPI_VEC(char) v;
  bool is_short; /* an append found no memory; said once, at the end */
};

static void append(struct text* t, const char* s, size_t n) {
  if (t->is_short || rpi_vec_reserve(&t->v, t->v.n + (int64_t)n)) {
    t->is_short = true;
    return;
  }
  memcpy(t->v.at + t->v.n, s, n);
  t->v.n += (int64_t)n;
}

static void append_text(struct text* t, const char* s) { append(t, s, strlen(s)); }

static void append_number(struct text* t, uint64_t n) {
  char digits[24];
  append(t, digits, (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n));
}

static void append_quoted(struct text* t, const char* s) {
  append(t, "\"", 1);
  for (; *s; s++) {
    char escaped[8];
    if (*s == '"' || *s == '\\')
      append(t, (char[]){'\\', *s}, 2);
    else if ((unsigned char)*s < 32)
      append(t, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", *s));
    else
      append(t, s, 1);
  }
  append(t, "\"", 1);
}

static size_t item_size(const struct rpi_safetensors_item* i) {
  return (size_t)rpi_safetensors_dtypes[i->dtype].bytes; /* the first rows are in order of dtype */
}

static int check_text(const struct rpi_sink* s, const char* what, const char* text) {
  if (text && rpi_utf8_is_valid(text, strlen(text))) return 0;
  return rpi_fail(RP_ERR_ARGUMENT, "[%s] %s '%.120s' is not UTF-8.", rpi_sink_op(s), what,
                  text ? text : "(null)");
}

static int check_item(const struct rpi_sink* s, const struct rpi_safetensors_item* i,
                      size_t* bytes) {
  int code = check_text(s, "The name", i->name);

  if (code) return code;
  if (strcmp(i->name, "__metadata__") == 0)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] '__metadata__' cannot be the name of an array.",
                    rpi_sink_op(s));
  if (i->dtype < 0 || i->dtype > 13)
    return rpi_fail(RP_ERR_DTYPE, "[%s] Array '%.120s' has the unknown dtype %d.", rpi_sink_op(s),
                    i->name, i->dtype);
  *bytes = item_size(i);
  for (int d = 0; d < i->ndim; d++)
    if (i->shape[d] < 0 || rpi_mul_overflows(*bytes, (size_t)i->shape[d], bytes))
      return rpi_fail(RP_ERR_SHAPE, "[%s] Array '%.120s' has no valid shape.", rpi_sink_op(s),
                      i->name);
  return 0;
}

/* Names must differ; so must the keys of the metadata. */
static int check_names(const struct rpi_sink* s, struct rpi_name_index* x, const char* what) {
  int64_t twice = rpi_index_sort(x);

  if (twice < 0) return 0;
  int64_t k = 0;
  while (x->at[k].item != twice) k++;
  return rpi_fail(RP_ERR_ARGUMENT, "[%s] %s '%.120s' is given twice.", rpi_sink_op(s), what,
                  x->at[k].name);
}

/* The order of tensors in the file: wide elements first, then by name. x is sorted by name. */
static void order_by_width(const struct rpi_safetensors_item* items, const struct rpi_name_index* x,
                           int64_t* order) {
  int64_t n = 0;

  for (size_t width = 8; width > 0; width /= 2)
    for (int64_t i = 0; i < x->n; i++)
      if (item_size(&items[x->at[i].item]) == width) order[n++] = x->at[i].item;
}

static void append_metadata(struct text* t, const struct rpi_safetensors_pair* pairs,
                            const struct rpi_name_index* keys) {
  append_text(t, "\"__metadata__\":{");
  for (int64_t i = 0; i < keys->n; i++) {
    if (i) append(t, ",", 1);
    append_quoted(t, keys->at[i].name);
    append(t, ":", 1);
    append_quoted(t, pairs[keys->at[i].item].value);
  }
  append(t, "}", 1);
}

static void append_item(struct text* t, const struct rpi_safetensors_item* i, uint64_t begin,
                        uint64_t end) {
  append_quoted(t, i->name);
  append_text(t, ":{\"dtype\":\"");
  append_text(t, rpi_safetensors_dtypes[i->dtype].name);
  append_text(t, "\",\"shape\":[");
  for (int d = 0; d < i->ndim; d++) {
    if (d) append(t, ",", 1);
    append_number(t, (uint64_t)i->shape[d]);
  }
  append_text(t, "],\"data_offsets\":[");
  append_number(t, begin);
  append(t, ",", 1);
  append_number(t, end);
  append_text(t, "]}");
}

struct plan {
  struct rpi_name_index names, keys;
  size_t* bytes;  /* of item i */
  int64_t* order; /* of items in the file */
  struct text header;
};

static void free_plan(struct plan* p) {
  rpi_index_free(&p->names);
  rpi_index_free(&p->keys);
  rpi_free(p->bytes);
  rpi_free(p->order);
  rpi_vec_free(&p->header.v);
}

static int prepare(struct plan* p, const struct rpi_sink* s,
                   const struct rpi_safetensors_item* items, int64_t nitems,
                   const struct rpi_safetensors_pair* pairs, int64_t npairs) {
  p->bytes = rpi_alloc((size_t)nitems * sizeof *p->bytes);
  p->order = rpi_alloc((size_t)nitems * sizeof *p->order);
  if (!p->bytes || !p->order || rpi_index_new(&p->names, nitems) || rpi_index_new(&p->keys, npairs))
    return rpi_fail_memory("a list of arrays to save", 0);
  for (int64_t i = 0; i < nitems; i++) {
    int code = check_item(s, &items[i], &p->bytes[i]);
    if (code) return code;
    p->names.at[i] = (struct rpi_name_entry){items[i].name, i};
  }
  for (int64_t i = 0; i < npairs; i++) {
    int code = check_text(s, "The metadata key", pairs[i].key);
    if (!code) code = check_text(s, "The metadata value", pairs[i].value);
    if (code) return code;
    p->keys.at[i] = (struct rpi_name_entry){pairs[i].key, i};
  }
  int code = check_names(s, &p->names, "Array");
  if (!code) code = check_names(s, &p->keys, "Metadata");
  if (!code) order_by_width(items, &p->names, p->order);
  return code;
}

static int build_header(struct plan* p, const struct rpi_safetensors_item* items,
                        const struct rpi_safetensors_pair* pairs) {
  struct text* t = &p->header;
  uint64_t begin = 0;

  append(t, "{", 1);
  if (p->keys.n) append_metadata(t, pairs, &p->keys);
  for (int64_t k = 0; k < p->names.n; k++) {
    int64_t i = p->order[k];
    if (k || p->keys.n) append(t, ",", 1);
    append_item(t, &items[i], begin, begin + p->bytes[i]);
    begin += p->bytes[i];
  }
  append(t, "}", 1);
  while (!t->is_short && t->v.n % 8) append(t, " ", 1);
  return t->is_short ? rpi_fail_memory("a safetensors header", (unsigned long long)t->v.n) : 0;
}

int rpi_safetensors_write(struct rpi_sink* s, const struct rpi_safetensors_item* items,
                          int64_t nitems, const struct rpi_safetensors_pair* pairs,
                          int64_t npairs) {
  struct plan p = {0};
  unsigned char length[8];
  int code = prepare(&p, s, items, nitems, pairs, npairs);

  if (!code) code = build_header(&p, items, pairs);
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)p.header.v.n >> 8 * i);
  if (!code) code = rpi_sink_write(s, length, sizeof length);
  if (!code) code = rpi_sink_write(s, p.header.v.at, (size_t)p.header.v.n);
  for (int64_t k = 0; !code && k < nitems; k++)
    code = rpi_sink_write(s, items[p.order[k]].data, p.bytes[p.order[k]]);
  free_plan(&p);
  return code;
}

int rpi_safetensors_save(const char* op, const char* path, const struct rpi_safetensors_item* items,
                         int64_t nitems, const struct rpi_safetensors_pair* pairs, int64_t npairs) {
  struct rpi_sink* s;
  int code = rpi_sink_create(&s, op, path);

  if (code) return code;
  code = rpi_safetensors_write(s, items, nitems, pairs, npairs);
  if (!code) return rpi_sink_commit(s);
  rpi_sink_abort(s);
  return code;
}
