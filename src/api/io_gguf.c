/* io.h: loading GGUF files.
 *
 * Invariants:
 * 1. Plain tensors of some size point into the mapped file; small ones are copied, so that they do
 *    not keep all of it mapped.
 * 2. Blocks that are affine groups (Q4_0, Q4_1, Q8_0) become three arrays: X.weight packed in
 *    uint32, X.scales and X.biases in float16, groups of 32, where the tensor is X.weight. Other
 *    blocks, and affine ones whose bias does not fit float16, are expanded to float16, or to
 *    float32 where a value does not fit that.
 * 3. Blocks are converted in the order of the file, piece by piece, and the pages of a finished
 *    piece are given back: the peak is the result and one piece, not the result and the file. */
#include <string.h>

#include "api/call.h"
#include "api/io.h"
#include "api/io_types.h"
#include "api/vector_string.h"
#include "base/err.h"
#include "base/thread.h"
#include "io/gguf.h"

static const char op[] = "load_gguf";

enum { SMALL = 64 << 10, PIECE = 4 << 20, CHUNK = 64 << 10, NAME_ROOM = 512, GROUP = 32 };

/* ---- blocks ---------------------------------------------------------------------------------- */

enum target { AFFINE, HALF, FLOAT };

/* One conversion, split in chunks of blocks. The bounds depend on the tensor only. */
struct conversion {
  const struct rpi_block_info* info;
  const unsigned char* src;
  int64_t chunk_blocks, begin, end; /* blocks of the piece at hand */
  enum target target;
  uint32_t* packed; /* of the whole tensor, as are the next */
  uint16_t *scales, *biases;
  void* values;
  _Atomic(int) is_inexact;
};

static bool has_infinity(const uint16_t* v, int64_t n) {
  uint16_t most = 0;
  for (int64_t i = 0; i < n; i++) most = (v[i] & 0x7fff) > most ? v[i] & 0x7fff : most;
  return most >= 0x7c00;
}

static void convert_chunk(void* ctx, int64_t i) {
  struct conversion* c = ctx;
  const struct rpi_block_info* b = c->info;
  int64_t first = c->begin + i * c->chunk_blocks, n = c->end - first;
  if (n > c->chunk_blocks) n = c->chunk_blocks;
  const unsigned char* src = c->src + first * b->bytes;
  int64_t at = first * b->elements;
  bool is_exact = true;
  if (c->target == AFFINE) {
    is_exact = rpi_block_to_affine(b->type, src, n, c->packed + at * b->affine_bits / 32,
                                   c->scales + first, c->biases + first);
  } else if (c->target == HALF) {
    uint16_t* out = (uint16_t*)c->values + at;
    rpi_block_dequantize_f16(b->type, src, n, out);
    is_exact = !has_infinity(out, n * b->elements);
  } else {
    rpi_block_dequantize(b->type, src, n, (float*)c->values + at);
  }
  if (!is_exact) atomic_store_explicit(&c->is_inexact, 1, memory_order_relaxed);
}

/* Convert all blocks of a tensor; false when a value did not fit the target. */
static bool convert(struct conversion* c, const struct rpi_source* s,
                    const struct rpi_gguf_tensor* t) {
  int64_t blocks = t->elements / t->info->elements;
  int64_t step = PIECE / t->info->bytes;
  c->chunk_blocks = CHUNK / t->info->bytes;
  for (c->begin = 0; c->begin < blocks; c->begin = c->end) {
    size_t offset = t->offset + (size_t)(c->begin * t->info->bytes);
    c->end = c->begin + step < blocks ? c->begin + step : blocks;
    size_t bytes = (size_t)((c->end - c->begin) * t->info->bytes);
    rpi_source_expect(s, offset, bytes);
    rpi_parallel((c->end - c->begin + c->chunk_blocks - 1) / c->chunk_blocks, convert_chunk, c);
    rpi_source_forget(s, offset, bytes);
  }
  return !atomic_load_explicit(&c->is_inexact, memory_order_relaxed);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Add an array under a name that must be new; the array is taken, NULL passes a failure on. */
static int add_array(struct contents* c, const struct rpi_source* s, const char* name,
                     struct array* a) {
  if (!a) return rpi_error_code();
  if (!rpi_contents_has_array(c, name)) return rpi_contents_put_array(c, name, a);
  rpi_array_release(a);
  return rpi_fail(RP_ERR_FORMAT, "[%s] %s: tensor '%.120s' is there twice, blocks being split.", op,
                  s->name, name);
}

/* "X.scales" for "X.weight"; other names get the suffix at their end. */
static int add_named(struct contents* c, const struct rpi_source* s, const char* name,
                     const char* suffix, struct array* a) {
  char stack[NAME_ROOM], *text = stack;
  size_t n = strlen(name), room = n + strlen(suffix) + 1;
  if (n >= 7 && strcmp(name + n - 7, ".weight") == 0) n -= 7;
  if (room > sizeof stack && !(text = rpi_alloc(room))) {
    rpi_array_release(a);
    return rpi_fail_memory("a name", room);
  }
  memcpy(text, name, n);
  strcpy(text + n, suffix);
  int rc = add_array(c, s, text, a);
  if (text != stack) rpi_free(text);
  return rc;
}

static struct array* new_array(int dtype, const struct shape* shape) {
  struct buffer* b = rpi_buffer_new((size_t)rpi_size(shape) * rpi_dtype_size(dtype));
  return b ? rpi_array_ready(dtype, shape->dim, shape->ndim, b) : NULL;
}

/* The three arrays of affine groups; *fits is false, and nothing added, when a bias did not fit. */
static int add_affine(struct contents* c, const struct rpi_source* s,
                      const struct rpi_gguf_tensor* t, const struct shape* shape, bool* fits) {
  struct shape words = *shape, groups = *shape;
  int last = shape->ndim - 1;
  words.dim[last] = (int)((int64_t)shape->dim[last] * t->info->affine_bits / 32);
  groups.dim[last] /= GROUP;
  struct array* w = new_array(RPI_UINT32, &words);
  struct array* scales = w ? new_array(RPI_FLOAT16, &groups) : NULL;
  struct array* biases = scales ? new_array(RPI_FLOAT16, &groups) : NULL;
  int rc = biases ? 0 : rpi_error_code();
  if (!rc) {
    struct conversion x = {.info = t->info, .src = s->data + t->offset, .target = AFFINE,
                           .packed = rpi_array_ptr(w), .scales = rpi_array_ptr(scales),
                           .biases = rpi_array_ptr(biases)};
    *fits = convert(&x, s, t);
  }
  if (!rc && *fits) {
    rc = add_array(c, s, t->name, rpi_array_retain(w));
    if (!rc) rc = add_named(c, s, t->name, ".scales", rpi_array_retain(scales));
    if (!rc) rc = add_named(c, s, t->name, ".biases", rpi_array_retain(biases));
  }
  rpi_array_release(w);
  rpi_array_release(scales);
  rpi_array_release(biases);
  return rc;
}

static int add_expanded(struct contents* c, const struct rpi_source* s,
                        const struct rpi_gguf_tensor* t, const struct shape* shape) {
  for (enum target target = HALF;; target = FLOAT) {
    struct array* a = new_array(target == HALF ? RPI_FLOAT16 : RPI_FLOAT32, shape);
    if (!a) return rpi_error_code();
    struct conversion x = {.info = t->info, .src = s->data + t->offset, .target = target,
                           .values = rpi_array_ptr(a)};
    if (convert(&x, s, t) || target == FLOAT) return add_array(c, s, t->name, a);
    rpi_array_release(a);
  }
}

static int add_plain(struct contents* c, struct rpi_source* s, const struct rpi_gguf_tensor* t,
                     const struct shape* shape) {
  int dtype = t->info->dtype;
  struct array* a = t->bytes < SMALL
                        ? rpi_array_data(dtype, shape->dim, shape->ndim, s->data + t->offset)
                        : rpi_source_array(s, t->offset, t->bytes, dtype, shape->dim, shape->ndim);
  return add_array(c, s, t->name, a);
}

static int add_tensor(struct contents* c, struct rpi_source* s, const struct rpi_gguf_tensor* t) {
  struct shape shape;
  int64_t dims[4];
  bool fits = false;
  for (int i = 0; i < t->ndim; i++) dims[i] = t->ne[t->ndim - 1 - i];
  int rc = rpi_file_shape(&shape, op, s->name, t->name, dims, t->ndim);
  if (rc) return rc;
  if (t->info->dtype >= 0) return add_plain(c, s, t, &shape);
  if (t->info->affine_bits) rc = add_affine(c, s, t, &shape, &fits);
  return rc || fits ? rc : add_expanded(c, s, t, &shape);
}

/* ---- metadata -------------------------------------------------------------------------------- */

static const int8_t dtype_of[RPI_GGUF_VALUE_TYPES] = {
    [RPI_GGUF_UINT8] = RPI_UINT8,     [RPI_GGUF_INT8] = RPI_INT8,
    [RPI_GGUF_UINT16] = RPI_UINT16,   [RPI_GGUF_INT16] = RPI_INT16,
    [RPI_GGUF_UINT32] = RPI_UINT32,   [RPI_GGUF_INT32] = RPI_INT32,
    [RPI_GGUF_FLOAT32] = RPI_FLOAT32, [RPI_GGUF_BOOL] = RPI_BOOL,
    [RPI_GGUF_STRING] = -1,           [RPI_GGUF_ARRAY] = -1,
    [RPI_GGUF_UINT64] = RPI_UINT64,   [RPI_GGUF_INT64] = RPI_INT64,
    [RPI_GGUF_FLOAT64] = RPI_FLOAT64,
};

/* An array of packed values of a fixed size; `ndim` is 0 or 1. */
static struct array* number_array(uint32_t type, const void* at, int64_t count, int ndim) {
  int n = (int)count;
  struct array* a = rpi_array_data(dtype_of[type], &n, ndim, at);
  uint8_t* values = a && type == RPI_GGUF_BOOL ? rpi_array_ptr(a) : NULL;
  if (values)
    for (int64_t i = 0; i < count; i++) values[i] = values[i] != 0;
  return a;
}

static int add_texts(struct contents* c, const struct rpi_gguf* g, const struct rpi_gguf_pair* p,
                     int64_t count) {
  struct text** at = rpi_texts_new(count);
  for (int64_t i = 0; at && i < count; i++) {
    struct rpi_gguf_text t = rpi_gguf_array_text(g, p, i);
    at[i] = rpi_text_new(t.at, t.n);
    if (!at[i]) {
      rpi_texts_drop(at, i);
      return rpi_error_code();
    }
  }
  return rpi_contents_put_meta_texts(c, p->key, at, count);
}

static int add_list(struct contents* c, const struct rpi_gguf* g, const struct rpi_source* s,
                    const struct rpi_gguf_pair* p) {
  struct rpi_gguf_array a = {0};
  rpi_gguf_get_array(p, &a);
  if (a.type == RPI_GGUF_ARRAY)
    return rpi_fail(RP_ERR_UNSUPPORTED, "[%s] %s: key '%.120s' holds arrays inside an array.", op,
                    s->name, p->key);
  if (a.count > INT32_MAX)
    return rpi_fail(RP_ERR_SHAPE, "[%s] %s: key '%.120s' holds %lld values.", op, s->name, p->key,
                    (long long)a.count);
  if (a.type == RPI_GGUF_STRING) return add_texts(c, g, p, a.count);
  return rpi_contents_put_meta_array(c, p->key, number_array(a.type, a.at, a.count, 1));
}

static int add_pair(struct contents* c, const struct rpi_gguf* g, const struct rpi_source* s,
                    const struct rpi_gguf_pair* p) {
  struct rpi_gguf_text t;
  if (p->type == RPI_GGUF_ARRAY) return add_list(c, g, s, p);
  if (p->type == RPI_GGUF_STRING && rpi_gguf_get_text(p, &t))
    return rpi_contents_put_meta_text(c, p->key, rpi_text_new(t.at, t.n));
  return rpi_contents_put_meta_array(c, p->key, number_array(p->type, p->at, 1, 0));
}

/* ---- files ----------------------------------------------------------------------------------- */

static int load(struct contents* c, struct rpi_source* s) {
  struct rpi_gguf g;
  int rc = rpi_gguf_parse(&g, op, s->name, s->data, s->size);
  if (rc) return rc;
  for (int64_t i = 0; i < g.npairs && !rc; i++) rc = add_pair(c, &g, s, &g.pairs[i]);
  for (int64_t i = 0; i < g.ntensors && !rc; i++) rc = add_tensor(c, s, &g.tensors[i]);
  rpi_gguf_release(&g);
  return rc;
}

int mlx_load_gguf(mlx_io_gguf* gguf, const char* file, const mlx_stream stream) {
  struct rpi_source* s = NULL;
  struct contents* c = rpi_contents_new();
  int rc = c ? rpi_source_open(&s, op, file) : rpi_error_code();
  if (!rc) rc = load(c, s);
  rpi_source_release(s);
  if (rc)
    rpi_contents_free(c);
  else
    rpi_contents_move(gguf, c);
  return rpi_report(rc);
}
