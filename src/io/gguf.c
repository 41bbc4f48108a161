/* Reading GGUF: see gguf.h for the layout and what is promised.
 *
 * A cursor walks the header once. Every read goes through need(), which compares with the bytes
 * that remain before anything is looked at or allocated. */
#include "io/gguf.h"

#include <limits.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/vec.h"

enum {
  MAX_NESTING = 8, /* arrays of arrays of ... */
  MIN_PAIR = 8 + 1 + 4 + 1,
  MIN_TENSOR = 8 + 1 + 4 + 8 + 4 + 8,
};

struct cursor {
  const char* op;
  const char* file;
  const unsigned char* data;
  size_t size, at;
};

struct parser {
  struct cursor c;
  struct rpi_gguf* g;
  RPI_VEC(struct rpi_gguf_pair) pairs;
  RPI_VEC(struct rpi_gguf_tensor) tensors;
  RPI_VEC(struct rpi_byte_range) ranges;
};

static const struct {
  const char* name;
  size_t bytes;
} value_types[RPI_GGUF_VALUE_TYPES] = {
    [RPI_GGUF_UINT8] = {"uint8", 1},     [RPI_GGUF_INT8] = {"int8", 1},
    [RPI_GGUF_UINT16] = {"uint16", 2},   [RPI_GGUF_INT16] = {"int16", 2},
    [RPI_GGUF_UINT32] = {"uint32", 4},   [RPI_GGUF_INT32] = {"int32", 4},
    [RPI_GGUF_FLOAT32] = {"float32", 4}, [RPI_GGUF_BOOL] = {"bool", 1},
    [RPI_GGUF_STRING] = {"string", 0},   [RPI_GGUF_ARRAY] = {"array", 0},
    [RPI_GGUF_UINT64] = {"uint64", 8},   [RPI_GGUF_INT64] = {"int64", 8},
    [RPI_GGUF_FLOAT64] = {"float64", 8},
};

const char* rpi_gguf_type_name(uint32_t type) {
  return type < RPI_GGUF_VALUE_TYPES ? value_types[type].name : "unknown";
}

size_t rpi_gguf_type_bytes(uint32_t type) {
  return type < RPI_GGUF_VALUE_TYPES ? value_types[type].bytes : 0;
}

/* ---- the cursor ---- */

/* "[op] file: <text> at byte N." */
#define fail_at(c, code, where, fmt, ...)                                            \
  rpi_fail(code, "[%s] %s: " fmt " (at byte %zu).", (c)->op, (c)->file, __VA_ARGS__, \
           (size_t)(where))

static int need(const struct cursor* c, uint64_t bytes, const char* what) {
  if (bytes <= c->size - c->at) return 0;
  return fail_at(c, RP_ERR_FORMAT, c->at, "%s needs %llu bytes where %zu are left", what,
                 (unsigned long long)bytes, c->size - c->at);
}

/* Files are little-endian; so is every machine this library runs on. */
static uint32_t load_u32(const unsigned char* p) {
  uint32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

static uint64_t load_u64(const unsigned char* p) {
  uint64_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

static int take_u32(struct cursor* c, uint32_t* out, const char* what) {
  int code = need(c, 4, what);
  if (code) return code;
  *out = load_u32(c->data + c->at);
  c->at += 4;
  return 0;
}

static int take_u64(struct cursor* c, uint64_t* out, const char* what) {
  int code = need(c, 8, what);
  if (code) return code;
  *out = load_u64(c->data + c->at);
  c->at += 8;
  return 0;
}

static int take_text(struct cursor* c, struct rpi_gguf_text* out, const char* what) {
  uint64_t n = 0;
  int code = take_u64(c, &n, what);

  if (!code) code = need(c, n, what);
  if (code) return code;
  *out = (struct rpi_gguf_text){(const char*)c->data + c->at, (size_t)n};
  c->at += (size_t)n;
  return 0;
}

/* A key or a tensor's name, copied and terminated: not empty, no NUL inside. */
static int take_name(struct parser* p, const char** out, const char* what) {
  size_t start = p->c.at;
  struct rpi_gguf_text t = {0};
  int code = take_text(&p->c, &t, what);

  if (code) return code;
  if (t.n == 0) return fail_at(&p->c, RP_ERR_FORMAT, start, "%s is empty", what);
  if (memchr(t.at, 0, t.n))
    return fail_at(&p->c, RP_ERR_FORMAT, start, "%s has a NUL byte in it", what);
  char* s = rpi_arena_alloc(&p->g->arena, t.n + 1);
  if (!s) return rpi_fail_memory(what, t.n + 1);
  memcpy(s, t.at, t.n);
  *out = s;
  return 0;
}

/* ---- metadata values ---- */

static int skip_value(struct cursor* c, uint32_t type, const char* key, int depth);

/* After an array's item type and count: step over the items. */
static int skip_items(struct cursor* c, uint32_t type, uint64_t count, const char* key, int depth) {
  size_t item = rpi_gguf_type_bytes(type);
  size_t smallest = item ? item : type == RPI_GGUF_STRING ? 8 : 12;

  if (count > (c->size - c->at) / smallest)
    return fail_at(c, RP_ERR_FORMAT, c->at,
                   "array '%.120s' claims %llu items of type %s where %zu bytes are left", key,
                   (unsigned long long)count, rpi_gguf_type_name(type), c->size - c->at);
  if (item) {
    c->at += (size_t)count * item;
    return 0;
  }
  for (uint64_t i = 0; i < count; i++) {
    int code = skip_value(c, type, key, depth);
    if (code) return code;
  }
  return 0;
}

static int take_array_head(struct cursor* c, uint32_t* type, uint64_t* count, const char* key) {
  size_t start = c->at;
  int code = take_u32(c, type, key);

  if (!code && *type >= RPI_GGUF_VALUE_TYPES)
    return fail_at(c, RP_ERR_FORMAT, start, "array '%.120s' has the unknown item type %u", key,
                   *type);
  return code ? code : take_u64(c, count, key);
}

static int skip_value(struct cursor* c, uint32_t type, const char* key, int depth) {
  uint32_t item = 0;
  uint64_t count = 0;
  struct rpi_gguf_text text;
  int code;

  if (type == RPI_GGUF_STRING) return take_text(c, &text, key);
  if (type == RPI_GGUF_ARRAY) {
    if (depth >= MAX_NESTING)
      return fail_at(c, RP_ERR_FORMAT, c->at, "array '%.120s' is nested more than %d deep", key,
                     MAX_NESTING);
    code = take_array_head(c, &item, &count, key);
    return code ? code : skip_items(c, item, count, key, depth + 1);
  }
  code = need(c, rpi_gguf_type_bytes(type), key);
  if (!code) c->at += rpi_gguf_type_bytes(type);
  return code;
}

/* The strings were walked and are sound: note where each one's text begins. */
static int index_strings(struct parser* p, struct rpi_gguf_pair* pair) {
  uint64_t count = load_u64(pair->at + 4);
  size_t at = (size_t)(pair->at - p->c.data) + 12;

  if (count == 0) return 0;
  pair->starts = rpi_arena_alloc(&p->g->arena, (size_t)count * sizeof *pair->starts);
  if (!pair->starts) return rpi_fail_memory(pair->key, count * sizeof *pair->starts);
  for (uint64_t i = 0; i < count; i++) {
    pair->starts[i] = at + 8;
    at += 8 + (size_t)load_u64(p->c.data + at);
  }
  return 0;
}

static int parse_pair(struct parser* p) {
  struct rpi_gguf_pair pair = {0};
  int code = take_name(p, &pair.key, "a metadata key");
  size_t start = p->c.at;

  if (!code) code = take_u32(&p->c, &pair.type, pair.key);
  if (code) return code;
  if (pair.type >= RPI_GGUF_VALUE_TYPES)
    return fail_at(&p->c, RP_ERR_FORMAT, start, "metadata '%.120s' has the unknown type %u",
                   pair.key, pair.type);
  pair.at = p->c.data + p->c.at;
  code = skip_value(&p->c, pair.type, pair.key, 0);
  if (!code && pair.type == RPI_GGUF_ARRAY && load_u32(pair.at) == RPI_GGUF_STRING)
    code = index_strings(p, &pair);
  if (code) return code;
  return rpi_vec_push(&p->pairs, pair) ? rpi_fail_memory("GGUF metadata", sizeof pair) : 0;
}

static int read_alignment(struct parser* p) {
  const struct rpi_gguf_pair* pair = rpi_gguf_find(p->g, "general.alignment");
  p->g->alignment = 32;
  if (!pair) return 0;

  size_t at = (size_t)(pair->at - p->c.data);
  if (pair->type != RPI_GGUF_UINT32)
    return fail_at(&p->c, RP_ERR_FORMAT, at, "'general.alignment' has type %s instead of uint32",
                   rpi_gguf_type_name(pair->type));
  uint32_t a = load_u32(pair->at);
  if (a == 0 || (a & (a - 1)))
    return fail_at(&p->c, RP_ERR_FORMAT, at,
                   "'general.alignment' is %u, which is not a power of two", a);
  p->g->alignment = a;
  return 0;
}

/* ---- tensors ---- */

static int parse_dims(struct parser* p, struct rpi_gguf_tensor* t) {
  size_t start = p->c.at;
  uint32_t ndim = 0;
  int code = take_u32(&p->c, &ndim, t->name);

  if (code) return code;
  if (ndim < 1 || ndim > 4)
    return fail_at(&p->c, RP_ERR_FORMAT, start,
                   "tensor '%.120s' has %u dimensions instead of 1 to 4", t->name, ndim);
  t->ndim = (int)ndim;
  t->elements = 1;
  for (int i = 0; i < t->ndim; i++) {
    size_t at = p->c.at;
    uint64_t n = 0;

    code = take_u64(&p->c, &n, t->name);
    if (code) return code;
    if (n == 0)
      return fail_at(&p->c, RP_ERR_FORMAT, at, "tensor '%.120s' has dimension %d of size 0",
                     t->name, i);
    if (n > INT64_MAX || rpi_mul_overflows(t->elements, (int64_t)n, &t->elements))
      return fail_at(&p->c, RP_ERR_FORMAT, at,
                     "the number of elements of tensor '%.120s' overflows", t->name);
    t->ne[i] = (int64_t)n;
  }
  return 0;
}

static int parse_type(struct parser* p, struct rpi_gguf_tensor* t) {
  size_t start = p->c.at, per_row, bytes;
  uint32_t type = 0;
  int code = take_u32(&p->c, &type, t->name);

  if (code) return code;
  t->info = rpi_block_info(type);
  if (!t->info)
    return fail_at(&p->c, RP_ERR_FORMAT, start, "tensor '%.120s' has the unknown type %u", t->name,
                   type);
  if (!t->info->is_readable)
    return fail_at(&p->c, RP_ERR_UNSUPPORTED, start,
                   "tensor '%.120s' has type %s, which is not supported; supported: %s", t->name,
                   t->info->name, rpi_block_readable_names());
  if (t->ne[0] % t->info->elements)
    return fail_at(&p->c, RP_ERR_FORMAT, start,
                   "tensor '%.120s' has rows of %lld elements, which are no whole %s blocks of %d",
                   t->name, (long long)t->ne[0], t->info->name, t->info->elements);
  per_row = (size_t)(t->elements / t->info->elements);
  if (rpi_mul_overflows(per_row, (size_t)t->info->bytes, &bytes))
    return fail_at(&p->c, RP_ERR_FORMAT, start, "the size of tensor '%.120s' overflows", t->name);
  t->bytes = bytes;
  return 0;
}

/* The offset is kept relative here: where data starts is known after the last record. */
static int parse_tensor(struct parser* p) {
  struct rpi_gguf_tensor t = {0};
  struct rpi_byte_range range = {.item = p->tensors.n};
  uint64_t offset = 0;
  int code = take_name(p, &t.name, "a tensor name");

  if (!code) code = parse_dims(p, &t);
  if (!code) code = parse_type(p, &t);
  size_t start = p->c.at;
  if (!code) code = take_u64(&p->c, &offset, t.name);
  if (code) return code;
  if (offset % p->g->alignment)
    return fail_at(&p->c, RP_ERR_FORMAT, start,
                   "the offset %llu of tensor '%.120s' is no multiple of the alignment %u",
                   (unsigned long long)offset, t.name, p->g->alignment);
  if (offset > p->c.size || t.bytes > p->c.size - offset)
    return fail_at(&p->c, RP_ERR_FORMAT, start,
                   "tensor '%.120s' (%zu bytes at offset %llu) ends past the end of the file",
                   t.name, t.bytes, (unsigned long long)offset);
  t.offset = (size_t)offset;
  range.begin = t.offset;
  range.end = t.offset + t.bytes;
  if (rpi_vec_push(&p->tensors, t) || rpi_vec_push(&p->ranges, range))
    return rpi_fail_memory("GGUF tensors", sizeof t);
  return 0;
}

/* Data begins at the next multiple of the alignment; all tensors must lie inside it, apart. */
static int place_tensors(struct parser* p) {
  size_t mask = p->g->alignment - 1, start = (p->c.at + mask) & ~mask;
  size_t room = start < p->c.size ? p->c.size - start : 0;
  int64_t a, b;

  for (int64_t i = 0; i < p->tensors.n; i++) {
    struct rpi_gguf_tensor* t = &p->tensors.at[i];
    if (t->offset > room || t->bytes > room - t->offset)
      return fail_at(
          &p->c, RP_ERR_FORMAT, start,
          "tensor '%.120s' (%zu bytes at offset %zu of the data) ends past the end of the "
          "file of %zu bytes; data starts",
          t->name, t->bytes, t->offset, p->c.size);
    t->offset += start;
  }
  if (rpi_ranges_overlap(p->ranges.at, p->ranges.n, &a, &b))
    return fail_at(&p->c, RP_ERR_FORMAT, p->tensors.at[b].offset,
                   "tensors '%.120s' and '%.120s' overlap", p->tensors.at[a].name,
                   p->tensors.at[b].name);
  return 0;
}

/* ---- the whole file ---- */

static int check_magic(struct parser* p) {
  struct cursor* c = &p->c;
  uint32_t version = 0;

  if (c->size < 4 || memcmp(c->data, "GGUF", 4))
    return fail_at(c, RP_ERR_FORMAT, 0, "not a GGUF file: the first bytes are not %s", "'GGUF'");
  c->at = 4;
  int code = take_u32(c, &version, "the version");
  if (code) return code;
  if (version > 0xffff)
    return fail_at(c, RP_ERR_UNSUPPORTED, 4, "%s files are not supported", "big-endian GGUF");
  if (version != 2 && version != 3)
    return fail_at(c, RP_ERR_UNSUPPORTED, 4, "GGUF version %u is not supported; 2 and 3 are",
                   version);
  p->g->version = version;
  return 0;
}

static int check_count(const struct cursor* c, uint64_t count, size_t smallest, const char* what,
                       size_t at) {
  if (count <= (c->size - c->at) / smallest) return 0;
  return fail_at(c, RP_ERR_FORMAT, at, "the file claims %llu %s where %zu bytes are left",
                 (unsigned long long)count, what, c->size - c->at);
}

static int index_pairs(struct parser* p) {
  struct rpi_gguf* g = p->g;

  if (rpi_index_new(&g->by_key, p->pairs.n)) return rpi_fail_memory("GGUF keys", 0);
  for (int64_t i = 0; i < p->pairs.n; i++)
    g->by_key.at[i] = (struct rpi_name_entry){p->pairs.at[i].key, i};
  int64_t twice = rpi_index_sort(&g->by_key);
  g->pairs = p->pairs.at;
  g->npairs = p->pairs.n;
  if (twice < 0) return 0;
  return fail_at(&p->c, RP_ERR_FORMAT, p->pairs.at[twice].at - p->c.data,
                 "metadata '%.120s' occurs twice", p->pairs.at[twice].key);
}

static int index_tensors(struct parser* p) {
  struct rpi_gguf* g = p->g;

  if (rpi_index_new(&g->by_name, p->tensors.n)) return rpi_fail_memory("GGUF names", 0);
  for (int64_t i = 0; i < p->tensors.n; i++)
    g->by_name.at[i] = (struct rpi_name_entry){p->tensors.at[i].name, i};
  int64_t twice = rpi_index_sort(&g->by_name);
  if (twice < 0) return 0;
  return fail_at(&p->c, RP_ERR_FORMAT, p->c.at, "tensor '%.120s' occurs twice; the records end",
                 p->tensors.at[twice].name);
}

static int parse_file(struct parser* p) {
  uint64_t tensors = 0, pairs = 0;
  int code = check_magic(p);

  if (!code) code = take_u64(&p->c, &tensors, "the number of tensors");
  if (!code) code = take_u64(&p->c, &pairs, "the number of metadata pairs");
  if (!code) code = check_count(&p->c, tensors, MIN_TENSOR, "tensors", 8);
  if (!code) code = check_count(&p->c, pairs, MIN_PAIR, "metadata pairs", 16);
  for (uint64_t i = 0; !code && i < pairs; i++) code = parse_pair(p);
  if (!code) code = index_pairs(p);
  if (!code) code = read_alignment(p);
  for (uint64_t i = 0; !code && i < tensors; i++) code = parse_tensor(p);
  if (!code) code = index_tensors(p);
  if (!code) code = place_tensors(p);
  return code;
}

int rpi_gguf_parse(struct rpi_gguf* out, const char* op, const char* name, const void* data,
                   size_t size) {
  struct parser p = {.c = {op, name, data, size, 0}, .g = out};

  *out = (struct rpi_gguf){.data = data, .size = size};
  int code = parse_file(&p);
  out->pairs = p.pairs.at;
  out->npairs = p.pairs.n;
  out->tensors = p.tensors.at;
  out->ntensors = p.tensors.n;
  rpi_vec_free(&p.ranges);
  if (code) rpi_gguf_release(out);
  return code;
}

void rpi_gguf_release(struct rpi_gguf* g) {
  rpi_free(g->pairs);
  rpi_free(g->tensors);
  rpi_index_free(&g->by_key);
  rpi_index_free(&g->by_name);
  rpi_arena_release(&g->arena);
  *g = (struct rpi_gguf){0};
}

/* ---- access ---- */

const struct rpi_gguf_pair* rpi_gguf_find(const struct rpi_gguf* g, const char* key) {
  int64_t i = rpi_index_find(&g->by_key, key);
  return i < 0 ? NULL : &g->pairs[i];
}

const struct rpi_gguf_tensor* rpi_gguf_find_tensor(const struct rpi_gguf* g, const char* name) {
  int64_t i = rpi_index_find(&g->by_name, name);
  return i < 0 ? NULL : &g->tensors[i];
}

static bool is_integer(uint32_t type) {
  return type != RPI_GGUF_FLOAT32 && type != RPI_GGUF_FLOAT64 && rpi_gguf_type_bytes(type) > 0;
}

/* Any integer type; a uint64 wraps. */
static int64_t load_int(uint32_t type, const unsigned char* p) {
  switch (type) {
    case RPI_GGUF_UINT8:
      return p[0];
    case RPI_GGUF_INT8:
      return (int8_t)p[0];
    case RPI_GGUF_BOOL:
      return p[0] != 0;
    case RPI_GGUF_UINT16:
      return (uint16_t)(p[0] | p[1] << 8);
    case RPI_GGUF_INT16:
      return (int16_t)(uint16_t)(p[0] | p[1] << 8);
    case RPI_GGUF_UINT32:
      return load_u32(p);
    case RPI_GGUF_INT32:
      return (int32_t)load_u32(p);
    default:
      return (int64_t)load_u64(p);
  }
}

static double load_float(uint32_t type, const unsigned char* p) {
  float f;
  double d;

  if (type == RPI_GGUF_FLOAT32) {
    memcpy(&f, p, sizeof f);
    return f;
  }
  if (type == RPI_GGUF_FLOAT64) {
    memcpy(&d, p, sizeof d);
    return d;
  }
  return type == RPI_GGUF_UINT64 ? (double)load_u64(p) : (double)load_int(type, p);
}

bool rpi_gguf_get_int(const struct rpi_gguf_pair* p, int64_t* out) {
  if (!is_integer(p->type)) return false;
  if (p->type == RPI_GGUF_UINT64 && load_u64(p->at) > INT64_MAX) return false;
  *out = load_int(p->type, p->at);
  return true;
}

bool rpi_gguf_get_float(const struct rpi_gguf_pair* p, double* out) {
  if (rpi_gguf_type_bytes(p->type) == 0 || p->type == RPI_GGUF_BOOL) return false;
  *out = load_float(p->type, p->at);
  return true;
}

bool rpi_gguf_get_text(const struct rpi_gguf_pair* p, struct rpi_gguf_text* out) {
  if (p->type != RPI_GGUF_STRING) return false;
  *out = (struct rpi_gguf_text){(const char*)p->at + 8, (size_t)load_u64(p->at)};
  return true;
}

static struct rpi_gguf_array array_at(const unsigned char* p) {
  return (struct rpi_gguf_array){load_u32(p), (int64_t)load_u64(p + 4), p + 12};
}

bool rpi_gguf_get_array(const struct rpi_gguf_pair* p, struct rpi_gguf_array* out) {
  if (p->type != RPI_GGUF_ARRAY) return false;
  *out = array_at(p->at);
  return true;
}

int64_t rpi_gguf_array_int(const struct rpi_gguf_array* a, int64_t i) {
  return load_int(a->type, a->at + (size_t)i * rpi_gguf_type_bytes(a->type));
}

double rpi_gguf_array_float(const struct rpi_gguf_array* a, int64_t i) {
  return load_float(a->type, a->at + (size_t)i * rpi_gguf_type_bytes(a->type));
}

struct rpi_gguf_text rpi_gguf_array_text(const struct rpi_gguf* g, const struct rpi_gguf_pair* p,
                                         int64_t i) {
  const unsigned char* at = g->data + p->starts[i];
  return (struct rpi_gguf_text){(const char*)at, (size_t)load_u64(at - 8)};
}

/* Past a value that parsing has found sound. */
static const unsigned char* past_value(uint32_t type, const unsigned char* p) {
  if (type == RPI_GGUF_STRING) return p + 8 + load_u64(p);
  if (type != RPI_GGUF_ARRAY) return p + rpi_gguf_type_bytes(type);

  struct rpi_gguf_array a = array_at(p);
  size_t item = rpi_gguf_type_bytes(a.type);
  if (item) return a.at + (size_t)a.count * item;
  for (int64_t i = 0; i < a.count; i++) a.at = past_value(a.type, a.at);
  return a.at;
}

struct rpi_gguf_array rpi_gguf_array_nested(const struct rpi_gguf_array* a, int64_t i) {
  const unsigned char* p = a->at;

  while (i-- > 0) p = past_value(RPI_GGUF_ARRAY, p);
  return array_at(p);
}
