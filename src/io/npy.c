/* Reading and writing the frame of .npy files: see npy.h. */
#include "io/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"

static const struct type {
  char kind;
  int bytes;
  int unit; /* that a byte order applies to */
} types[] = {
    /* in the order of mlx_dtype; bfloat16 has no name */
    {'b', 1, 1}, {'u', 1, 1}, {'u', 2, 2}, {'u', 4, 4}, {'u', 8, 8}, {'i', 1, 1}, {'i', 2, 2},
    {'i', 4, 4}, {'i', 8, 8}, {'f', 2, 2}, {'f', 4, 4}, {'f', 8, 8}, {0, 2, 2},   {'c', 8, 4},
};

/* ---- the header as a text -------------------------------------------------------------------- */

struct cursor {
  const char *start, *at, *end; /* at <= end; start is that of the file */
  const char *op, *name;
};

static int fail(const struct cursor* c, const char* what) {
  return rpi_fail(RP_ERR_FORMAT, "[%s] %s: %s (at byte %zu).", c->op, c->name, what,
                  (size_t)(c->at - c->start));
}

static void skip_space(struct cursor* c) {
  while (c->at < c->end && memchr(" \t\r\n", *c->at, 4)) c->at++;
}

static bool take(struct cursor* c, char want) {
  skip_space(c);
  if (c->at == c->end || *c->at != want) return false;
  c->at++;
  return true;
}

static bool take_word(struct cursor* c, const char* word) {
  size_t n = strlen(word);
  skip_space(c);
  if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) return false;
  c->at += n;
  return true;
}

/* A quoted text without escapes, shorter than `room`. */
static int read_text(struct cursor* c, char* out, size_t room) {
  char quote = take(c, '\'') ? '\'' : take(c, '"') ? '"' : 0;
  if (!quote) return fail(c, "a quoted text is expected");
  const char* end = memchr(c->at, quote, (size_t)(c->end - c->at));
  if (!end || (size_t)(end - c->at) >= room) return fail(c, "a text does not end or is too long");
  memcpy(out, c->at, (size_t)(end - c->at));
  out[end - c->at] = '\0';
  c->at = end + 1;
  return 0;
}

static int read_descr(struct cursor* c, struct rpi_npy* out) {
  char text[32], tail;
  int bytes, rc;
  skip_space(c);
  if (c->at < c->end && *c->at == '[') return fail(c, "arrays of records cannot be loaded");
  rc = read_text(c, text, sizeof text);
  if (rc) return rc;
  for (size_t d = 0; d < RPI_COUNT_OF(types); d++) {
    const struct type* t = &types[d];
    if (!t->kind || !strchr("<>|=", text[0]) || text[0] == '\0' || text[1] != t->kind ||
        sscanf(text + 2, "%3d%c", &bytes, &tail) != 1 || bytes != t->bytes)
      continue;
    out->dtype = (int)d;
    out->item = t->bytes;
    out->swap = text[0] == '>' && t->unit > 1 ? t->unit : 0;
    return 0;
  }
  return rpi_fail(RP_ERR_DTYPE, "[%s] %s: no dtype stands for the type '%s'.", c->op, c->name,
                  text);
}

static int read_order(struct cursor* c, struct rpi_npy* out) {
  out->is_column_major = take_word(c, "True");
  if (out->is_column_major || take_word(c, "False")) return 0;
  return fail(c, "fortran_order is neither True nor False");
}

static int read_extent(struct cursor* c, int64_t* out) {
  int64_t v = 0;
  skip_space(c);
  const char* first = c->at;
  for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
    if (rpi_mul_overflows(v, 10, &v) || rpi_add_overflows(v, *c->at - '0', &v))
      return fail(c, "an extent of the shape is too large");
  if (c->at == first) return fail(c, "an extent of the shape is expected");
  *out = v;
  return 0;
}

static int read_shape(struct cursor* c, struct rpi_npy* out) {
  if (!take(c, '(')) return fail(c, "the shape is not a tuple");
  out->ndim = 0;
  while (!take(c, ')')) {
    if (out->ndim == RPI_NPY_NDIM) return fail(c, "the shape has more than 32 dimensions");
    int rc = read_extent(c, &out->shape[out->ndim++]);
    if (rc) return rc;
    if (!take(c, ',')) {
      if (!take(c, ')')) return fail(c, "the shape does not end");
      break;
    }
  }
  return 0;
}

static int read_header(struct cursor* c, struct rpi_npy* out) {
  enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
  int seen = 0, rc = 0;
  if (!take(c, '{')) return fail(c, "the header is not a dict");
  while (!rc && !take(c, '}')) {
    char key[20];
    rc = read_text(c, key, sizeof key);
    if (rc) break;
    int bit = !strcmp(key, "descr")           ? DESCR
              : !strcmp(key, "fortran_order") ? ORDER
              : !strcmp(key, "shape")         ? SHAPE
                                              : 0;
    if (!bit || seen & bit) return fail(c, "a key of the header is unknown or given twice");
    seen |= bit;
    if (!take(c, ':')) return fail(c, "':' is expected");
    rc = bit == DESCR ? read_descr(c, out) : bit == ORDER ? read_order(c, out) : read_shape(c, out);
    if (rc || take(c, ',')) continue;
    if (!take(c, '}')) return fail(c, "',' or '}' is expected");
    break;
  }
  if (rc) return rc;
  if (seen != (DESCR | ORDER | SHAPE)) return fail(c, "the header lacks a key");
  skip_space(c);
  return c->at == c->end ? 0 : fail(c, "something follows the header's dict");
}

/* ---- the frame ------------------------------------------------------------------------------- */

/* Put the cursor around the header's text. */
static int find_header(struct cursor* c, const unsigned char* d, size_t size) {
  size_t head = 10, n;
  if (size < head || memcmp(d, "\x93NUMPY", 6) != 0) return fail(c, "this is not an .npy file");
  if (d[6] < 1 || d[6] > 3) return fail(c, "the version is not 1, 2 or 3");
  n = d[8] | (size_t)d[9] << 8;
  if (d[6] > 1) {
    head = 12;
    if (size < head) return fail(c, "the file ends inside the header");
    n |= (size_t)d[10] << 16 | (size_t)d[11] << 24;
  }
  if (n > size - head) return fail(c, "the file ends inside the header");
  c->at += head;
  c->end = c->at + n;
  return 0;
}

int rpi_npy_parse(struct rpi_npy* out, const char* op, const char* name, const void* data,
                  size_t size) {
  struct cursor c = {data, data, data, op, name};
  struct rpi_npy r = {0};
  int rc = find_header(&c, data, size);
  if (!rc) rc = read_header(&c, &r);
  if (rc) return rc;
  r.offset = (size_t)(c.end - c.start);
  r.bytes = (size_t)r.item;
  bool is_empty = false;
  for (int i = 0; i < r.ndim; i++) is_empty |= r.shape[i] == 0;
  for (int i = 0; i < r.ndim && !is_empty; i++)
    if (rpi_mul_overflows(r.bytes, (size_t)r.shape[i], &r.bytes))
      return fail(&c, "the shape has too many elements");
  if (is_empty) r.bytes = 0;
  if (r.bytes > size - r.offset)
    return rpi_fail(RP_ERR_FORMAT, "[%s] %s: the shape needs %zu bytes of data; %zu are there.", op,
                    name, r.bytes, size - r.offset);
  *out = r;
  return 0;
}

int rpi_npy_header(char* out, size_t* n, const char* op, int dtype, const int* shape, int ndim) {
  const struct type* t = &types[dtype];
  char* at = out + 10;
  char* end = out + RPI_NPY_HEADER;
  if (!t->kind)
    return rpi_fail(RP_ERR_DTYPE, "[%s] The .npy format has no name for bfloat16.", op);
  at += snprintf(at, (size_t)(end - at), "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (",
                 t->unit > 1 ? '<' : '|', t->kind, t->bytes);
  for (int i = 0; i < ndim; i++)
    at += snprintf(at, (size_t)(end - at), "%s%d%s", i ? " " : "", shape[i],
                   i + 1 < ndim || ndim == 1 ? "," : "");
  at += snprintf(at, (size_t)(end - at), "), }");
  while ((at + 1 - out) % 64) *at++ = ' ';
  *at++ = '\n';
  size_t text = (size_t)(at - out) - 10;
  memcpy(out, "\x93NUMPY\1\0", 8);
  out[8] = (char)(text & 255);
  out[9] = (char)(text >> 8);
  *n = (size_t)(at - out);
  return 0;
}
