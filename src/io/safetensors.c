/* Reading safetensors headers: see safetensors.h for the layout and what is promised. */
#include "io/safetensors.h"

#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/vec.h"
#include "io/index.h"
#include "io/json.h"
#include "io/safetensors_dtype.h"

struct parser {
  struct rpi_json j;
  size_t file_size, data_start;
  struct rpi_safetensors* out;
  RPI_VEC(struct rpi_safetensors_tensor) tensors;
  RPI_VEC(struct rpi_safetensors_pair) pairs;
  RPI_VEC(struct rpi_byte_range) ranges;
  bool has_metadata;
};

/* A tensor's record while it is read. */
struct record {
  const char* name;
  size_t at; /* of the name, in the JSON */
  int dtype; /* -1: not met yet */
  size_t itemsize;
  int ndim; /* -1: not met yet */
  int64_t shape[RPI_SAFETENSORS_MAX_DIMS];
  int noffsets;
  int64_t offsets[2];
};

#define fail_at(p, where, fmt, ...)                                                               \
  rpi_fail(RP_ERR_FORMAT, "[%s] %s: " fmt " (at byte %zu).", (p)->j.op, (p)->j.file, __VA_ARGS__, \
           (p)->j.base + (where))

/* A string token as C text in the arena. */
static int take_text(struct parser* p, const struct rpi_json_token* t, const char** out) {
  char* s = rpi_arena_alloc(&p->out->arena, t->n + 1);

  if (!s) return rpi_fail_memory("text of a safetensors header", t->n + 1);
  size_t n = rpi_json_unescape(&p->j, t, s);
  s[n] = '\0';
  if (memchr(s, 0, n)) return fail_at(p, t->at, "%s", "text with a NUL character in it");
  *out = s;
  return 0;
}

/* After an item of an object or array: sets *is_last on the closing bracket, else eats the comma.
 */
static int take_separator(struct parser* p, int closer, bool* is_last) {
  struct rpi_json_token t;
  int code = rpi_json_next(&p->j, &t);

  if (code) return code;
  if (t.kind != ',' && t.kind != closer) return fail_at(p, t.at, "expected ',' or '%c'", closer);
  *is_last = t.kind == closer;
  return 0;
}

/* Before the first item: sets *is_empty and eats the closing bracket when there is none; else t is
 * the first token of the item. */
static int take_first(struct parser* p, int closer, struct rpi_json_token* t, bool* is_empty) {
  int code = rpi_json_next(&p->j, t);

  *is_empty = !code && t->kind == closer;
  return code;
}

/* t must be a key; eats its colon. */
static int take_colon(struct parser* p, const struct rpi_json_token* t) {
  struct rpi_json_token colon;

  if (t->kind != RPI_JSON_STRING) return fail_at(p, t->at, "%s", "expected a JSON key");
  return rpi_json_expect(&p->j, &colon, ':', "':'");
}

static bool token_is(const struct parser* p, const struct rpi_json_token* t, const char* s) {
  return t->n == strlen(s) && memcmp(p->j.text + t->at, s, t->n) == 0;
}

/* ---- the fields of a tensor ---- */

static int read_dtype(struct parser* p, struct record* r) {
  struct rpi_json_token t;
  int code = rpi_json_expect(&p->j, &t, RPI_JSON_STRING, "the name of a dtype");

  if (code) return code;
  if (r->dtype >= 0) return fail_at(p, t.at, "tensor '%.120s' has two dtypes", r->name);
  for (int i = 0; i < RPI_SAFETENSORS_DTYPES; i++)
    if (token_is(p, &t, rpi_safetensors_dtypes[i].name)) {
      r->dtype = rpi_safetensors_dtypes[i].dtype;
      r->itemsize = rpi_safetensors_dtypes[i].bytes;
      return 0;
    }
  return fail_at(p, t.at, "tensor '%.120s' has the unknown dtype '%.*s'", r->name,
                 t.n < 40 ? (int)t.n : 40, p->j.text + t.at);
}

/* An array of up to `room` counts. */
static int read_counts(struct parser* p, const struct record* r, const char* field, int64_t* v,
                       int room, int* n) {
  struct rpi_json_token t;
  bool is_last = false;
  int code = rpi_json_expect(&p->j, &t, '[', "'['");

  if (!code) code = take_first(p, ']', &t, &is_last);
  for (*n = 0; !code && !is_last;) {
    if (*n == room)
      return fail_at(p, t.at, "%s of tensor '%.120s' has more than %d items", field, r->name, room);
    if (!rpi_json_count(&p->j, &t, &v[*n]))
      return fail_at(p, t.at, "%s of tensor '%.120s' has an item that is no count", field, r->name);
    ++*n;
    code = take_separator(p, ']', &is_last);
    if (!code && !is_last) code = rpi_json_next(&p->j, &t);
  }
  return code;
}

static int read_shape(struct parser* p, struct record* r) {
  if (r->ndim >= 0) return fail_at(p, p->j.at, "tensor '%.120s' has two shapes", r->name);
  return read_counts(p, r, "the shape", r->shape, RPI_SAFETENSORS_MAX_DIMS, &r->ndim);
}

static int read_offsets(struct parser* p, struct record* r) {
  size_t at = p->j.at;

  if (r->noffsets) return fail_at(p, at, "tensor '%.120s' has two pairs of offsets", r->name);
  int code = read_counts(p, r, "data_offsets", r->offsets, 2, &r->noffsets);
  if (!code && r->noffsets != 2)
    return fail_at(p, at, "data_offsets of tensor '%.120s' are not two counts", r->name);
  return code;
}

static int read_field(struct parser* p, struct record* r, const struct rpi_json_token* key) {
  struct rpi_json_token t;

  if (token_is(p, key, "dtype")) return read_dtype(p, r);
  if (token_is(p, key, "shape")) return read_shape(p, r);
  if (token_is(p, key, "data_offsets")) return read_offsets(p, r);
  int code = rpi_json_next(&p->j, &t);
  return code ? code : rpi_json_skip(&p->j, &t);
}

static int read_fields(struct parser* p, struct record* r) {
  struct rpi_json_token t;
  bool is_last = false;
  int code = rpi_json_expect(&p->j, &t, '{', "'{'");

  if (!code) code = take_first(p, '}', &t, &is_last);
  while (!code && !is_last) {
    code = take_colon(p, &t);
    if (!code) code = read_field(p, r, &t);
    if (!code) code = take_separator(p, '}', &is_last);
    if (!code && !is_last) code = rpi_json_next(&p->j, &t);
  }
  if (code) return code;
  const char* missing = r->dtype < 0   ? "dtype"
                        : r->ndim < 0  ? "shape"
                        : !r->noffsets ? "data_offsets"
                                       : NULL;
  return missing ? fail_at(p, r->at, "tensor '%.120s' has no %s", r->name, missing) : 0;
}

/* ---- checks of a complete record ---- */

static int count_bytes(struct parser* p, const struct record* r, size_t* bytes) {
  *bytes = r->itemsize;
  for (int i = 0; i < r->ndim; i++)
    if (rpi_mul_overflows(*bytes, (size_t)r->shape[i], bytes) || *bytes > INT64_MAX)
      return fail_at(p, r->at, "the size of tensor '%.120s' overflows", r->name);
  return 0;
}

static int check_record(struct parser* p, const struct record* r) {
  size_t room = p->file_size - p->data_start, bytes;
  long long begin = r->offsets[0], end = r->offsets[1];
  int code = count_bytes(p, r, &bytes);

  if (code) return code;
  if (begin > end)
    return fail_at(p, r->at, "tensor '%.120s' begins at %lld and ends before, at %lld", r->name,
                   begin, end);
  if ((size_t)end > room)
    return fail_at(p, r->at, "tensor '%.120s' ends at %lld of %zu bytes of data", r->name, end,
                   room);
  if ((size_t)(end - begin) != bytes)
    return fail_at(p, r->at, "tensor '%.120s' has %lld bytes where its dtype and shape need %zu",
                   r->name, end - begin, bytes);
  return 0;
}

static int keep_record(struct parser* p, const struct record* r) {
  size_t room = (size_t)r->ndim * sizeof *r->shape;
  int64_t* shape = rpi_arena_alloc(&p->out->arena, room + 1);

  if (!shape) return rpi_fail_memory("a shape", room);
  memcpy(shape, r->shape, room);
  struct rpi_safetensors_tensor t = {
      .name = r->name, .dtype = r->dtype, .ndim = r->ndim, .shape = shape};
  t.offset = p->data_start + (size_t)r->offsets[0];
  t.bytes = (size_t)(r->offsets[1] - r->offsets[0]);
  struct rpi_byte_range range = {t.offset, t.offset + t.bytes, p->tensors.n};
  if (rpi_vec_push(&p->tensors, t) || rpi_vec_push(&p->ranges, range))
    return rpi_fail_memory("safetensors records", sizeof t);
  return 0;
}

static int parse_tensor(struct parser* p, const struct rpi_json_token* key) {
  struct record r = {.at = key->at, .dtype = -1, .ndim = -1};
  int code = take_text(p, key, &r.name);

  if (!code) code = read_fields(p, &r);
  if (!code) code = check_record(p, &r);
  return code ? code : keep_record(p, &r);
}

/* ---- metadata ---- */

static int parse_pair(struct parser* p, const struct rpi_json_token* key) {
  struct rpi_safetensors_pair pair = {0};
  struct rpi_json_token value;
  int code = take_colon(p, key);

  if (!code) code = take_text(p, key, &pair.key);
  if (!code) code = rpi_json_next(&p->j, &value);
  if (code) return code;
  if (value.kind != RPI_JSON_STRING)
    return fail_at(p, value.at, "metadata '%.120s' is not a string", pair.key);
  code = take_text(p, &value, &pair.value);
  if (code) return code;
  return rpi_vec_push(&p->pairs, pair) ? rpi_fail_memory("metadata", sizeof pair) : 0;
}

static int parse_metadata(struct parser* p, const struct rpi_json_token* key) {
  struct rpi_json_token t;
  bool is_last = false;
  int code = rpi_json_next(&p->j, &t);

  if (p->has_metadata) return fail_at(p, key->at, "%s", "'__metadata__' occurs twice");
  p->has_metadata = true;
  if (code || (t.kind == RPI_JSON_WORD && token_is(p, &t, "null"))) return code;
  if (t.kind != '{') return fail_at(p, t.at, "%s", "'__metadata__' is not an object");
  code = take_first(p, '}', &t, &is_last);
  while (!code && !is_last) {
    code = parse_pair(p, &t);
    if (!code) code = take_separator(p, '}', &is_last);
    if (!code && !is_last) code = rpi_json_next(&p->j, &t);
  }
  return code;
}

/* ---- the whole file ---- */

static int parse_entry(struct parser* p, const struct rpi_json_token* key) {
  int code = take_colon(p, key);

  if (code) return code;
  return token_is(p, key, "__metadata__") ? parse_metadata(p, key) : parse_tensor(p, key);
}

static int parse_header(struct parser* p) {
  struct rpi_json_token t;
  bool is_last = false;
  int code = rpi_json_expect(&p->j, &t, '{', "a header that begins with '{'");

  if (!code) code = take_first(p, '}', &t, &is_last);
  while (!code && !is_last) {
    code = parse_entry(p, &t);
    if (!code) code = take_separator(p, '}', &is_last);
    if (!code && !is_last) code = rpi_json_next(&p->j, &t);
  }
  if (!code) code = rpi_json_expect(&p->j, &t, RPI_JSON_END, "nothing after the header's '}'");
  return code;
}

static int check_names(struct parser* p) {
  struct rpi_name_index x;

  if (rpi_index_new(&x, p->tensors.n)) return rpi_fail_memory("names", 0);
  for (int64_t i = 0; i < x.n; i++) x.at[i] = (struct rpi_name_entry){p->tensors.at[i].name, i};
  int64_t twice = rpi_index_sort(&x);
  rpi_index_free(&x);
  if (twice >= 0)
    return fail_at(p, p->j.n, "tensor '%.120s' occurs twice in the header that ends",
                   p->tensors.at[twice].name);

  if (rpi_index_new(&x, p->pairs.n)) return rpi_fail_memory("keys", 0);
  for (int64_t i = 0; i < x.n; i++) x.at[i] = (struct rpi_name_entry){p->pairs.at[i].key, i};
  twice = rpi_index_sort(&x);
  rpi_index_free(&x);
  if (twice >= 0)
    return fail_at(p, p->j.n, "metadata '%.120s' occurs twice in the header that ends",
                   p->pairs.at[twice].key);
  return 0;
}

static int check_overlaps(struct parser* p) {
  int64_t a, b;

  if (!rpi_ranges_overlap(p->ranges.at, p->ranges.n, &a, &b)) return 0;
  return rpi_fail(RP_ERR_FORMAT, "[%s] %s: tensors '%.120s' and '%.120s' overlap (at byte %zu).",
                  p->j.op, p->j.file, p->tensors.at[a].name, p->tensors.at[b].name,
                  p->tensors.at[b].offset);
}

static int check_length(struct parser* p, const unsigned char* data) {
  uint64_t n = 0;

  if (p->file_size < 8)
    return fail_at(p, 0, "%zu bytes are too few for a safetensors file", p->file_size);
  for (int i = 0; i < 8; i++) n |= (uint64_t)data[i] << 8 * i;
  if (n > p->file_size - 8)
    return fail_at(p, 0, "the header claims %llu bytes where %zu are left", (unsigned long long)n,
                   p->file_size - 8);
  p->j.text = (const char*)data + 8;
  p->j.n = (size_t)n;
  p->j.base = 8;
  p->data_start = 8 + (size_t)n;
  return 0;
}

int rpi_safetensors_parse(struct rpi_safetensors* out, const char* op, const char* name,
                          const void* data, size_t size) {
  struct parser p = {.j = {.op = op, .file = name}, .file_size = size, .out = out};

  *out = (struct rpi_safetensors){0};
  int code = check_length(&p, data);
  if (!code) code = parse_header(&p);
  if (!code) code = check_names(&p);
  if (!code) code = check_overlaps(&p);
  out->tensors = p.tensors.at;
  out->ntensors = p.tensors.n;
  out->pairs = p.pairs.at;
  out->npairs = p.pairs.n;
  rpi_vec_free(&p.ranges);
  if (code) rpi_safetensors_release(out);
  return code;
}

void rpi_safetensors_release(struct rpi_safetensors* st) {
  rpi_free(st->tensors);
  rpi_free(st->pairs);
  rpi_arena_release(&st->arena);
  *st = (struct rpi_safetensors){0};
}
