/* A walk over a GGUF header: pairs, then tensors, as the file orders them.
 *
 * Every read is bounded by the file, so that a file which changes meanwhile is refused, not
 * trusted. Long texts are read only as far as they are shown. */
#include "cli/gguf_head.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

enum { NAME_BYTES = 1 << 16, TEXT_BYTES = 4096, ITEMS_SHOWN = 4, ITEM_BYTES = 24, MAX_DIMS = 4 };
enum { GGUF_STRING = 8, GGUF_ARRAY = 9 };

struct reader {
  FILE* f;
  uint64_t left;
  bool failed;
};

static void take(struct reader* r, void* out, uint64_t n) {
  memset(out, 0, (size_t)n);
  r->failed = r->failed || n > r->left || fread(out, 1, (size_t)n, r->f) != n;
  r->left -= r->failed ? 0 : n;
}

static void skip(struct reader* r, uint64_t n) {
  r->failed = r->failed || n > r->left || fseeko(r->f, (off_t)n, SEEK_CUR);
  r->left -= r->failed ? 0 : n;
}

/* The file is little-endian, like every machine that this runs on. */
static uint32_t take_u32(struct reader* r) {
  uint32_t v;
  take(r, &v, sizeof v);
  return v;
}

static uint64_t take_u64(struct reader* r) {
  uint64_t v;
  take(r, &v, sizeof v);
  return v;
}

/* A string's first room - 1 bytes, terminated; the rest is passed over. Returns how many. */
static size_t take_text(struct reader* r, char* out, size_t room) {
  uint64_t n = take_u64(r), part = n < room - 1 ? n : room - 1;
  if (r->failed || n > r->left) r->failed = true, part = 0;
  take(r, out, part);
  out[part] = '\0';
  if (n > part) skip(r, n - part);
  return (size_t)part;
}

static uint64_t scalar_bytes(uint32_t type) {
  static const unsigned char bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < sizeof bytes ? bytes[type] : 0;
}

/* The values of GGUF's scalar types, in their order. */
static int print_scalar(struct reader* r, uint32_t type, char* out, size_t room) {
  union {
    uint8_t u8; int8_t i8; uint16_t u16; int16_t i16; uint32_t u32; int32_t i32; float f32;
    uint64_t u64; int64_t i64; double f64;
  } v = {.u64 = 0};
  take(r, &v, scalar_bytes(type));
  switch (type) {
    case 0: return snprintf(out, room, "%u", v.u8);
    case 1: return snprintf(out, room, "%d", v.i8);
    case 2: return snprintf(out, room, "%u", v.u16);
    case 3: return snprintf(out, room, "%d", v.i16);
    case 4: return snprintf(out, room, "%u", v.u32);
    case 5: return snprintf(out, room, "%d", v.i32);
    case 6: return snprintf(out, room, "%.9g", (double)v.f32);
    case 7: return snprintf(out, room, "%s", v.u8 ? "true" : "false");
    case 10: return snprintf(out, room, "%llu", (unsigned long long)v.u64);
    case 11: return snprintf(out, room, "%lld", (long long)v.i64);
    case 12: return snprintf(out, room, "%.17g", v.f64);
    default: r->failed = true; return 0;
  }
}

static size_t print_item(struct reader* r, uint32_t type, char* out, size_t room) {
  if (type != GGUF_STRING) return (size_t)print_scalar(r, type, out, room);
  return take_text(r, out, room < ITEM_BYTES ? room : ITEM_BYTES);
}

/* "49152 x [first, second, ...]" */
static size_t print_array(struct reader* r, char* out, size_t room) {
  uint32_t type = take_u32(r);
  uint64_t count = take_u64(r), shown = count < ITEMS_SHOWN ? count : ITEMS_SHOWN;
  size_t n = (size_t)snprintf(out, room, "%llu x [", (unsigned long long)count);
  for (uint64_t i = 0; i < shown && !r->failed; i++) {
    if (i) n += (size_t)snprintf(out + n, room - n, ", ");
    n += print_item(r, type, out + n, room - n);
  }
  if (type == GGUF_STRING)
    for (uint64_t i = shown; i < count && !r->failed; i++) skip(r, take_u64(r));
  else if (count > shown)
    skip(r, (count - shown) * scalar_bytes(type));
  n += (size_t)snprintf(out + n, room - n, count > shown ? ", ...]" : "]");
  return n;
}

static void list_pair(struct listing* l, struct reader* r, char* name, char* text) {
  take_text(r, name, NAME_BYTES);
  uint32_t type = take_u32(r);
  size_t n = type == GGUF_STRING  ? take_text(r, text, TEXT_BYTES)
             : type == GGUF_ARRAY ? print_array(r, text, TEXT_BYTES)
                                  : (size_t)print_scalar(r, type, text, TEXT_BYTES);
  if (!r->failed) l->pair(l, name, text, n, type == GGUF_STRING);
}

/* Name, elements and bytes of a block, by the number that the file uses. */
static const struct block_type {
  const char* name;
  int elements, bytes;
} types[] = {[0] = {"F32", 1, 4},       [1] = {"F16", 1, 2},       [2] = {"Q4_0", 32, 18},
             [3] = {"Q4_1", 32, 20},    [6] = {"Q5_0", 32, 22},    [7] = {"Q5_1", 32, 24},
             [8] = {"Q8_0", 32, 34},    [12] = {"Q4_K", 256, 144}, [13] = {"Q5_K", 256, 176},
             [14] = {"Q6_K", 256, 210}, [24] = {"I8", 1, 1},       [25] = {"I16", 1, 2},
             [26] = {"I32", 1, 4},      [27] = {"I64", 1, 8},      [28] = {"F64", 1, 8},
             [30] = {"BF16", 1, 2}};

static void list_tensor(struct listing* l, struct reader* r, char* name) {
  static const struct block_type unknown = {"unknown", 1, 0};
  int64_t shape[MAX_DIMS];
  uint64_t elements = 1;
  take_text(r, name, NAME_BYTES);
  uint32_t ndim = take_u32(r);
  if (ndim > MAX_DIMS) r->failed = true;
  for (uint32_t i = 0; i < ndim && !r->failed; i++) {
    uint64_t n = take_u64(r); /* the file has the fastest axis first */
    shape[ndim - 1 - i] = (int64_t)n;
    elements *= n;
  }
  uint32_t number = take_u32(r);
  take_u64(r); /* offset */
  const struct block_type* t = number < sizeof types / sizeof *types && types[number].name
                                   ? &types[number] : &unknown;
  if (r->failed) return;
  l->tensor(l, name, t->name, shape, (int)ndim,
            elements / (uint64_t)t->elements * (uint64_t)t->bytes);
}

static void list_all(struct listing* l, struct reader* r, char* name, char* text) {
  skip(r, 8); /* magic, version */
  uint64_t tensors = take_u64(r), pairs = take_u64(r);
  for (uint64_t i = 0; i < pairs && !r->failed; i++) list_pair(l, r, name, text);
  l->between(l);
  for (uint64_t i = 0; i < tensors && !r->failed; i++) list_tensor(l, r, name);
}

int gguf_head_list(struct listing* l, const char* path) {
  struct reader r = {.f = fopen(path, "re")};
  char *name = malloc(NAME_BYTES), *text = malloc(TEXT_BYTES);
  int rc = CLI_OK;
  if (!name || !text) {
    rc = cli_fail("out of memory");
  } else if (!r.f || fseeko(r.f, 0, SEEK_END)) {
    rc = cli_fail("cannot read '%s': %s", path, strerror(errno));
  } else {
    r.left = (uint64_t)ftello(r.f);
    rewind(r.f);
    list_all(l, &r, name, text);
    if (r.failed) rc = cli_fail("'%s' changed while it was read", path);
  }
  free(name);
  free(text);
  if (r.f) fclose(r.f);
  return rc;
}
