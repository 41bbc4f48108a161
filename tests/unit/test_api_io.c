/* Safetensors, GGUF and .npy files through the interface. */
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "mlx/c/mlx.h"
#include "reprise/error.h"
#include "tests/unit/bytes.h"

static char folder[] = "/tmp/reprise_io_XXXXXX";
static const mlx_stream none = {0};
static _Thread_local int first_code; /* of the first error since it was cleared */

static void ignore(const char* msg, void* data) {
  (void)msg;
  (void)data;
  if (!first_code) first_code = rp_last_error(NULL);
}

static int set_up(void** state) {
  (void)state;
  mlx_set_error_handler(ignore, NULL, NULL);
  return mkdtemp(folder) ? 0 : 1;
}

static int tear_down(void** state) {
  (void)state;
  return rmdir(folder); /* fails when a test left a file, a temporary one of a save included */
}

/* The path of a file in the folder; two results are valid at a time. */
static const char* path_of(const char* name) {
  static char text[2][128];
  static int turn;
  turn ^= 1;
  snprintf(text[turn], sizeof text[turn], "%s/%s", folder, name);
  return text[turn];
}

static void write_file(const char* path, const void* data, size_t n) {
  FILE* f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, n, f), n);
  fclose(f);
}

#define fails_with(code, call)                   \
  do {                                           \
    assert_int_equal(call, 1);                   \
    assert_int_equal(rp_last_error(NULL), code); \
  } while (0)

static mlx_array ramp(int rows, int cols) {
  float v[64];
  for (int i = 0; i < rows * cols; i++) v[i] = (float)i;
  return mlx_array_new_data(v, (int[]){rows, cols}, 2, MLX_FLOAT32);
}

static void expect_floats(mlx_array a, const float* want, int n) {
  assert_int_equal(mlx_array_size(a), n);
  const float* got = mlx_array_data_float32(a);
  assert_non_null(got);
  for (int i = 0; i < n; i++) assert_true(got[i] == want[i]);
}

struct loaded {
  mlx_map_string_to_array arrays;
  mlx_map_string_to_string texts;
};

static struct loaded load(const char* path) {
  struct loaded l = {{0}, {0}};
  assert_int_equal(mlx_load_safetensors(&l.arrays, &l.texts, path, none), 0);
  return l;
}

static void unload(struct loaded l) {
  mlx_map_string_to_array_free(l.arrays);
  mlx_map_string_to_string_free(l.texts);
}

static mlx_array array_at(struct loaded l, const char* key) {
  mlx_array a = mlx_array_new();
  assert_int_equal(mlx_map_string_to_array_get(&a, l.arrays, key), 0);
  return a;
}

static void save_one(const char* path, const char* key, mlx_array a) {
  mlx_map_string_to_array m = mlx_map_string_to_array_new();
  assert_int_equal(mlx_map_string_to_array_insert(m, key, a), 0);
  assert_int_equal(mlx_save_safetensors(path, m, (mlx_map_string_to_string){0}), 0);
  mlx_map_string_to_array_free(m);
}

/* ---- safetensors ----------------------------------------------------------------------------- */

static void every_dtype_survives_a_round_trip(void** state) {
  const char* path = path_of("dtypes");
  mlx_map_string_to_array m = mlx_map_string_to_array_new();
  unsigned char bytes[3 * 8];
  for (int i = 0; i < 24; i++) bytes[i] = (unsigned char)(i * 37 + 1);
  for (int d = MLX_BOOL; d <= MLX_COMPLEX64; d++) {
    char key[] = {(char)('a' + d), 0};
    if (d == MLX_BOOL) memcpy(bytes, "\1\0\1", 3);
    mlx_array a = mlx_array_new_data(bytes, (int[]){3}, 1, (mlx_dtype)d);
    mlx_map_string_to_array_insert(m, key, a);
    mlx_array_free(a);
  }
  assert_int_equal(mlx_save_safetensors(path, m, (mlx_map_string_to_string){0}), 0);
  struct loaded l = load(path);
  for (int d = MLX_BOOL; d <= MLX_COMPLEX64; d++) {
    char key[] = {(char)('a' + d), 0};
    mlx_array a = array_at(l, key);
    assert_int_equal(mlx_array_dtype(a), d);
    assert_int_equal(mlx_array_ndim(a), 1);
    assert_memory_equal(mlx_array_data_uint8(a), bytes, 3 * mlx_dtype_size((mlx_dtype)d));
    mlx_array_free(a);
  }
  unload(l);
  mlx_map_string_to_array_free(m);
  unlink(path);
}

static void scalars_empty_arrays_and_views_are_saved_as_they_read(void** state) {
  const char* path = path_of("views");
  mlx_map_string_to_array m = mlx_map_string_to_array_new();
  mlx_array x = ramp(2, 3), t = mlx_array_new(), scalar = mlx_array_new_float32(2.5f);
  mlx_array empty = mlx_array_new_data(NULL, (int[]){4, 0}, 2, MLX_INT32);
  assert_int_equal(mlx_transpose(&t, x, none), 0);
  mlx_map_string_to_array_insert(m, "t", t);
  mlx_map_string_to_array_insert(m, "scalar", scalar);
  mlx_map_string_to_array_insert(m, "empty", empty);
  assert_int_equal(mlx_save_safetensors(path, m, (mlx_map_string_to_string){0}), 0);
  mlx_array_free(x), mlx_array_free(t), mlx_array_free(scalar), mlx_array_free(empty);
  mlx_map_string_to_array_free(m);

  struct loaded l = load(path);
  unlink(path);
  t = array_at(l, "t"), scalar = array_at(l, "scalar"), empty = array_at(l, "empty");
  unload(l);
  assert_int_equal(mlx_array_shape(t)[0], 3);
  assert_int_equal(mlx_array_shape(t)[1], 2);
  expect_floats(t, (float[]){0, 3, 1, 4, 2, 5}, 6);
  assert_int_equal(mlx_array_ndim(scalar), 0);
  expect_floats(scalar, (float[]){2.5f}, 1);
  assert_int_equal(mlx_array_shape(empty)[0], 4);
  assert_int_equal(mlx_array_size(empty), 0);
  mlx_array_free(t), mlx_array_free(scalar), mlx_array_free(empty);
}

static void strided_and_broadcast_views_are_saved_as_they_read(void** state) {
  const char* path = path_of("strided");
  mlx_map_string_to_array m = mlx_map_string_to_array_new();
  mlx_array x = ramp(2, 5), row = ramp(1, 2), back = mlx_array_new(), wide = mlx_array_new();
  int start[] = {0, 4}, stop[] = {2, -6}, step[] = {1, -2};
  assert_int_equal(mlx_slice(&back, x, start, 2, stop, 2, step, 2, none), 0);
  assert_int_equal(mlx_broadcast_to(&wide, row, (int[]){3, 2}, 2, none), 0);
  mlx_map_string_to_array_insert(m, "back", back);
  mlx_map_string_to_array_insert(m, "wide", wide);
  mlx_array_free(x), mlx_array_free(row);
  for (int i = 0; i < 2; i++) { /* the second time from the file, onto itself */
    struct loaded l = {m, {0}};
    assert_int_equal(mlx_save_safetensors(path, l.arrays, l.texts), 0);
    unload(l);
    l = load(path);
    m = l.arrays;
    mlx_map_string_to_string_free(l.texts);
    mlx_map_string_to_array_get(&back, m, "back");
    mlx_map_string_to_array_get(&wide, m, "wide");
    expect_floats(back, (float[]){4, 2, 0, 9, 7, 5}, 6);
    expect_floats(wide, (float[]){0, 1, 0, 1, 0, 1}, 6);
  }
  mlx_array_free(back), mlx_array_free(wide);
  mlx_map_string_to_array_free(m);
  unlink(path);
}

static void arrays_can_be_saved_onto_the_file_they_come_from(void** state) {
  const char* path = path_of("own");
  mlx_array x = ramp(2, 3);
  save_one(path, "x", x);
  mlx_array_free(x);
  for (int i = 0; i < 3; i++) {
    struct loaded l = load(path);
    x = array_at(l, "x");
    assert_int_equal(mlx_save_safetensors(path, l.arrays, l.texts), 0);
    unload(l);
    expect_floats(x, (float[]){0, 1, 2, 3, 4, 5}, 6); /* of the file that was replaced */
    mlx_array_free(x);
  }
  unlink(path);
}

static void metadata_survives_a_round_trip(void** state) {
  const char *path = path_of("meta"), *text = NULL;
  mlx_map_string_to_array m = mlx_map_string_to_array_new();
  mlx_map_string_to_string t = mlx_map_string_to_string_new();
  mlx_map_string_to_string_insert(t, "format", "mlx");
  mlx_map_string_to_string_insert(t, "quote \"", "line\nend \xc3\xa9");
  assert_int_equal(mlx_save_safetensors(path, m, t), 0);
  struct loaded l = load(path);
  assert_int_equal(mlx_map_string_to_string_get(&text, l.texts, "format"), 0);
  assert_string_equal(text, "mlx");
  assert_int_equal(mlx_map_string_to_string_get(&text, l.texts, "quote \""), 0);
  assert_string_equal(text, "line\nend \xc3\xa9");
  unload(l);
  mlx_map_string_to_array_free(m);
  mlx_map_string_to_string_free(t);
  unlink(path);
}

/* Shards of a large model, all in use at once. */
static void hundreds_of_files_need_no_descriptors(void** state) {
  enum { FILES = 414 };
  struct rlimit old, few = {256, 256};
  static mlx_array kept[FILES];
  char name[32];
  getrlimit(RLIMIT_NOFILE, &old);
  few.rlim_max = old.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
  for (int i = 0; i < FILES; i++) {
    snprintf(name, sizeof name, "shard%d", i);
    mlx_array x = mlx_array_new_float32((float)i);
    save_one(path_of(name), "x", x);
    mlx_array_free(x);
  }
  for (int i = 0; i < FILES; i++) {
    snprintf(name, sizeof name, "shard%d", i);
    struct loaded l = load(path_of(name));
    kept[i] = array_at(l, "x");
    unload(l);
    unlink(path_of(name));
  }
  setrlimit(RLIMIT_NOFILE, &old);
  for (int i = 0; i < FILES; i++) {
    expect_floats(kept[i], (float[]){(float)i}, 1);
    mlx_array_free(kept[i]);
  }
}

static void a_broken_file_changes_no_result(void** state) {
  const char *path = path_of("broken"), *text = NULL;
  struct loaded l = {{0}, {0}};
  write_file(path, "\x10\0\0\0\0\0\0\0{\"x\":1}", 15);
  fails_with(RP_ERR_FORMAT, mlx_load_safetensors(&l.arrays, &l.texts, path, none));
  rp_last_error(&text);
  assert_non_null(strstr(text, path));
  assert_null(l.arrays.ctx);
  assert_null(l.texts.ctx);
  unlink(path);
  fails_with(RP_ERR_IO, mlx_load_safetensors(&l.arrays, &l.texts, path, none));
  fails_with(RP_ERR_ARGUMENT, mlx_load_safetensors(&l.arrays, &l.texts, NULL, none));
  fails_with(RP_ERR_ARGUMENT, mlx_save_safetensors(path, l.arrays, l.texts));
  mlx_map_string_to_array m = mlx_map_string_to_array_new();
  fails_with(RP_ERR_IO, mlx_save_safetensors("/nowhere/at/all", m, l.texts));
  mlx_map_string_to_array_free(m);
}

static void loading_replaces_what_the_results_held(void** state) {
  const char* path = path_of("replace");
  mlx_array x = ramp(1, 2), got = mlx_array_new();
  save_one(path, "x", x);
  mlx_map_string_to_array m = mlx_map_string_to_array_new();
  mlx_map_string_to_string t = {0};
  mlx_map_string_to_array_insert(m, "old", x);
  assert_int_equal(mlx_load_safetensors(&m, &t, path, none), 0);
  assert_int_equal(mlx_map_string_to_array_get(&got, m, "old"), 2);
  assert_int_equal(mlx_map_string_to_array_get(&got, m, "x"), 0);
  mlx_array_free(x), mlx_array_free(got);
  mlx_map_string_to_array_free(m);
  mlx_map_string_to_string_free(t);
  unlink(path);
}

/* ---- streams of the host --------------------------------------------------------------------- */

struct memory {
  unsigned char at[4096];
  size_t n, pos;
  bool is_closed, is_bad;
  int freed;
};

static bool is_open(void* d) { return !((struct memory*)d)->is_closed; }
static bool is_good(void* d) { return !((struct memory*)d)->is_bad; }
static size_t tell(void* d) { return ((struct memory*)d)->pos; }
static void seek(void* d, int64_t off, int whence) {
  struct memory* m = d;
  m->pos = (size_t)off + (whence == SEEK_END ? m->n : whence == SEEK_CUR ? m->pos : 0);
}
static void read_bytes(void* d, char* data, size_t n) {
  struct memory* m = d;
  m->is_bad = m->is_bad || n > m->n - m->pos;
  if (m->is_bad) return;
  memcpy(data, m->at + m->pos, n);
  m->pos += n;
}
static void write_bytes(void* d, const char* data, size_t n) {
  struct memory* m = d;
  m->is_bad = m->is_bad || n > sizeof m->at - m->n;
  if (m->is_bad) return;
  memcpy(m->at + m->n, data, n);
  m->n += n;
}
static const char* label(void* d) {
  (void)d;
  return "in memory";
}
static void note_free(void* d) { ((struct memory*)d)->freed++; }

static const mlx_io_vtable memory_stream = {.is_open = is_open,
                                            .good = is_good,
                                            .tell = tell,
                                            .seek = seek,
                                            .read = read_bytes,
                                            .write = write_bytes,
                                            .label = label,
                                            .free = note_free};

static void streams_of_the_host_are_written_and_read(void** state) {
  static struct memory mem;
  mlx_io_writer w = mlx_io_writer_new(&mem, memory_stream);
  mlx_map_string_to_array m = mlx_map_string_to_array_new();
  mlx_array x = ramp(2, 2);
  mlx_string s = mlx_string_new();
  void* desc = NULL;
  mlx_map_string_to_array_insert(m, "x", x);
  assert_int_equal(mlx_save_safetensors_writer(w, m, (mlx_map_string_to_string){0}), 0);
  assert_int_equal(mlx_io_writer_tostring(&s, w), 0);
  assert_string_equal(mlx_string_data(s), "in memory");
  assert_int_equal(mlx_io_writer_free(w), 0);
  assert_int_equal(mem.freed, 1);

  struct loaded l = {{0}, {0}};
  mlx_io_reader r = mlx_io_reader_new(&mem, memory_stream);
  assert_int_equal(mlx_io_reader_descriptor(&desc, r), 0);
  assert_ptr_equal(desc, &mem);
  assert_int_equal(mlx_load_safetensors_reader(&l.arrays, &l.texts, r, none), 0);
  mlx_io_reader_free(r);
  memset(mem.at, 0, sizeof mem.at); /* what was loaded does not need it any more */
  mlx_array_free(x);
  x = array_at(l, "x");
  expect_floats(x, (float[]){0, 1, 2, 3}, 4);
  mlx_array_free(x);
  unload(l);
  mlx_map_string_to_array_free(m);
  mlx_string_free(s);
}

static void a_closed_or_failing_stream_is_an_io_error(void** state) {
  static struct memory closed = {.is_closed = true}, bad = {.is_bad = true, .n = 8};
  struct loaded l = {{0}, {0}};
  mlx_map_string_to_array m = mlx_map_string_to_array_new();
  mlx_io_reader a = mlx_io_reader_new(&closed, memory_stream);
  mlx_io_reader b = mlx_io_reader_new(&bad, memory_stream);
  mlx_io_writer c = mlx_io_writer_new(&closed, memory_stream);
  mlx_io_writer d = mlx_io_writer_new(&bad, memory_stream);
  fails_with(RP_ERR_IO, mlx_load_safetensors_reader(&l.arrays, &l.texts, a, none));
  fails_with(RP_ERR_IO, mlx_load_safetensors_reader(&l.arrays, &l.texts, b, none));
  fails_with(RP_ERR_IO, mlx_save_safetensors_writer(c, m, l.texts));
  fails_with(RP_ERR_IO, mlx_save_safetensors_writer(d, m, l.texts));
  fails_with(RP_ERR_IO, mlx_load_safetensors_reader(&l.arrays, &l.texts, a, none));
  mlx_io_reader_free(a), mlx_io_reader_free(b);
  mlx_io_writer_free(c), mlx_io_writer_free(d);
  mlx_map_string_to_array_free(m);
  assert_int_equal(closed.freed, 2);
  fails_with(RP_ERR_ARGUMENT,
             mlx_load_safetensors_reader(&l.arrays, &l.texts, (mlx_io_reader){0}, none));
}

static void a_stream_without_its_functions_is_refused_and_freed(void** state) {
  static struct memory mem;
  mlx_io_vtable v = memory_stream;
  v.read = NULL;
  assert_null(mlx_io_reader_new(&mem, v).ctx);
  assert_int_equal(rp_last_error(NULL), RP_ERR_ARGUMENT);
  assert_int_equal(mem.freed, 1);
}

/* ---- GGUF ------------------------------------------------------------------------------------ */

enum { F32 = 0, Q4_0 = 2, Q5_0 = 6, Q8_0 = 8 };

static void put_key(struct bytes* b, const char* key, uint32_t type) {
  put_text(b, key);
  put32(b, type);
}

static void put_tensor(struct bytes* b, const char* name, uint64_t ne0, uint64_t ne1, uint32_t type,
                       uint64_t offset) {
  put_text(b, name);
  put32(b, 2);
  put64(b, ne0);
  put64(b, ne1);
  put32(b, type);
  put64(b, offset);
}

static void put_q8(struct bytes* b, uint16_t d, int8_t q) {
  put16(b, d);
  for (int i = 0; i < 32; i++) put8(b, (uint8_t)q);
}

/* Four tensors of one block each, and one of six floats. */
static void build_gguf(struct bytes* b) {
  b->n = 0;
  put(b, "GGUF", 4);
  put32(b, 3);
  put64(b, 5);
  put64(b, 6);
  put_key(b, "count", 4), put32(b, 7);
  put_key(b, "yes", 7), put8(b, 1);
  put_key(b, "name", 8), put_text(b, "model");
  put_key(b, "words", 9), put32(b, 8), put64(b, 2), put_text(b, "a"), put_text(b, "bc");
  put_key(b, "ints", 9), put32(b, 5), put64(b, 3), put32(b, 1), put32(b, (uint32_t)-2), put32(b, 3);
  put_key(b, "none", 9), put32(b, 8), put64(b, 0);
  put_tensor(b, "plain", 3, 2, F32, 0);
  put_tensor(b, "a.weight", 32, 1, Q4_0, 32);
  put_tensor(b, "half.weight", 32, 1, Q8_0, 64);
  put_tensor(b, "float.weight", 32, 1, Q8_0, 128);
  put_tensor(b, "odd", 32, 1, Q8_0, 192);
  pad(b, 32);
  for (int i = 0; i < 6; i++) put_f32(b, (float)i);
  pad(b, 32);
  put16(b, 0x3800); /* d = 0.5; element k < 16 is k, element 16 + k is 15 - k */
  for (int k = 0; k < 16; k++) put8(b, (uint8_t)(k | (15 - k) << 4));
  pad(b, 32);
  put_q8(b, 0x63d0, 10); /* d = 1000: -128 d does not fit float16, 10 d does */
  pad(b, 32);
  put_q8(b, 0x63d0, 127); /* 127 d does not either */
  pad(b, 32);
  put_q8(b, 0x4000, -3); /* d = 2 */
}

static mlx_io_gguf load_built(void) {
  struct bytes b;
  const char* path = path_of("built");
  mlx_io_gguf g = {0};
  build_gguf(&b);
  write_file(path, b.at, b.n);
  assert_int_equal(mlx_load_gguf(&g, path, none), 0);
  unlink(path);
  return g;
}

static mlx_array tensor(mlx_io_gguf g, const char* key) {
  mlx_array a = mlx_array_new();
  assert_int_equal(mlx_io_gguf_get_array(&a, g, key), 0);
  return a;
}

static void plain_tensors_of_gguf_have_row_major_shapes(void** state) {
  mlx_io_gguf g = load_built();
  mlx_array a = tensor(g, "plain");
  mlx_io_gguf_free(g);
  assert_int_equal(mlx_array_shape(a)[0], 2);
  assert_int_equal(mlx_array_shape(a)[1], 3);
  expect_floats(a, (float[]){0, 1, 2, 3, 4, 5}, 6);
  mlx_array_free(a);
}

static void affine_blocks_become_weights_scales_and_biases(void** state) {
  mlx_io_gguf g = load_built();
  mlx_array w = tensor(g, "a.weight"), s = tensor(g, "a.scales"), b = tensor(g, "a.biases");
  assert_int_equal(mlx_array_dtype(w), MLX_UINT32);
  assert_int_equal(mlx_array_ndim(w), 2);
  assert_int_equal(mlx_array_shape(w)[1], 4);
  const uint32_t want[] = {0x76543210, 0xfedcba98, 0x89abcdef, 0x01234567};
  assert_memory_equal(mlx_array_data_uint32(w), want, sizeof want);
  assert_int_equal(mlx_array_dtype(s), MLX_FLOAT16);
  assert_int_equal(mlx_array_shape(s)[1], 1);
  assert_int_equal(mlx_array_data_uint16(s)[0], 0x3800);
  assert_int_equal(mlx_array_data_uint16(b)[0], 0xc400); /* -4 */
  mlx_array_free(w), mlx_array_free(s), mlx_array_free(b);

  w = tensor(g, "odd"), s = tensor(g, "odd.scales"), b = tensor(g, "odd.biases");
  assert_int_equal(mlx_array_shape(w)[1], 8);
  assert_int_equal(mlx_array_data_uint32(w)[7], 0x7d7d7d7d); /* -3 + 128 */
  assert_int_equal(mlx_array_data_uint16(b)[0], 0xdc00);     /* -256 */
  mlx_array_free(w), mlx_array_free(s), mlx_array_free(b);
  mlx_io_gguf_free(g);
}

static void blocks_whose_bias_does_not_fit_are_expanded(void** state) {
  mlx_io_gguf g = load_built();
  mlx_array h = tensor(g, "half.weight"), f = tensor(g, "float.weight"), no = mlx_array_new();
  assert_int_equal(mlx_array_dtype(h), MLX_FLOAT16);
  assert_int_equal(mlx_array_shape(h)[1], 32);
  assert_int_equal(mlx_array_data_uint16(h)[31], 0x70e2); /* 10000 */
  assert_int_equal(mlx_array_dtype(f), MLX_FLOAT32);
  assert_true(mlx_array_data_float32(f)[31] == 127000.0f);
  assert_int_equal(mlx_io_gguf_get_array(&no, g, "half.scales"), 2);
  mlx_array_free(h), mlx_array_free(f);
  mlx_io_gguf_free(g);
}

static void metadata_of_gguf_is_arrays_texts_and_lists(void** state) {
  mlx_io_gguf g = load_built();
  mlx_array a = mlx_array_new();
  mlx_string s = mlx_string_new();
  mlx_vector_string v = mlx_vector_string_new();
  char* word = NULL;
  bool flag = false;
  assert_int_equal(mlx_io_gguf_get_metadata_array(&a, g, "count"), 0);
  assert_int_equal(mlx_array_dtype(a), MLX_UINT32);
  assert_int_equal(mlx_array_ndim(a), 0);
  assert_int_equal(mlx_array_data_uint32(a)[0], 7);
  assert_int_equal(mlx_io_gguf_get_metadata_array(&a, g, "yes"), 0);
  assert_int_equal(mlx_array_dtype(a), MLX_BOOL);
  assert_int_equal(mlx_io_gguf_get_metadata_array(&a, g, "ints"), 0);
  assert_int_equal(mlx_array_size(a), 3);
  assert_int_equal(mlx_array_data_int32(a)[1], -2);
  assert_int_equal(mlx_io_gguf_get_metadata_string(&s, g, "name"), 0);
  assert_string_equal(mlx_string_data(s), "model");
  assert_int_equal(mlx_io_gguf_get_metadata_vector_string(&v, g, "words"), 0);
  assert_int_equal(mlx_vector_string_size(v), 2);
  mlx_vector_string_get(&word, v, 1);
  assert_string_equal(word, "bc");
  assert_int_equal(mlx_io_gguf_get_metadata_vector_string(&v, g, "none"), 0);
  assert_int_equal(mlx_vector_string_size(v), 0);

  rp_clear_error();
  assert_int_equal(mlx_io_gguf_get_metadata_string(&s, g, "count"), 3);
  assert_int_equal(mlx_io_gguf_get_metadata_string(&s, g, "missing"), 2);
  assert_int_equal(mlx_io_gguf_has_metadata_string(&flag, g, "name"), 0);
  assert_true(flag);
  assert_int_equal(mlx_io_gguf_has_metadata_array(&flag, g, "name"), 0);
  assert_false(flag);
  flag = true;
  assert_int_equal(mlx_io_gguf_has_metadata_vector_string(&flag, g, "missing"), 2);
  assert_false(flag);
  assert_int_equal(rp_last_error(NULL), RP_OK);
  mlx_array_free(a);
  mlx_string_free(s);
  mlx_vector_string_free(v);
  mlx_io_gguf_free(g);
}

static void contents_of_gguf_can_be_set(void** state) {
  mlx_io_gguf g = mlx_io_gguf_new();
  mlx_array a = ramp(1, 2), got = mlx_array_new();
  mlx_vector_string keys = {0}, words = mlx_vector_string_new_value("w");
  mlx_string s = mlx_string_new();
  char* key = NULL;
  assert_int_equal(mlx_io_gguf_set_array(g, "x", a), 0);
  assert_int_equal(mlx_io_gguf_set_metadata_array(g, "k", a), 0);
  assert_int_equal(mlx_io_gguf_set_metadata_string(g, "k", "text"), 0);
  assert_int_equal(mlx_io_gguf_get_metadata_array(&got, g, "k"), 3);
  assert_int_equal(mlx_io_gguf_get_metadata_string(&s, g, "k"), 0);
  assert_string_equal(mlx_string_data(s), "text");
  assert_int_equal(mlx_io_gguf_set_metadata_vector_string(g, "w", words), 0);
  assert_int_equal(mlx_io_gguf_get_metadata_vector_string(&words, g, "w"), 0);
  assert_int_equal(mlx_io_gguf_get_keys(&keys, g), 0);
  assert_int_equal(mlx_vector_string_size(keys), 1);
  mlx_vector_string_get(&key, keys, 0);
  assert_string_equal(key, "x");
  fails_with(RP_ERR_ARGUMENT, mlx_io_gguf_set_metadata_string(g, "k", NULL));
  fails_with(RP_ERR_ARGUMENT, mlx_io_gguf_set_metadata_string(g, NULL, "v"));
  fails_with(RP_ERR_ARGUMENT, mlx_io_gguf_get_keys(&keys, (mlx_io_gguf){0}));
  mlx_array_free(a);
  mlx_string_free(s);
  mlx_vector_string_free(keys);
  mlx_vector_string_free(words);
  mlx_io_gguf_free(g);
}

static void a_broken_gguf_changes_no_result(void** state) {
  const char *path = path_of("cut"), *text = NULL;
  struct bytes b;
  mlx_io_gguf g = {0};
  build_gguf(&b);
  write_file(path, b.at, b.n - 1);
  fails_with(RP_ERR_FORMAT, mlx_load_gguf(&g, path, none));
  rp_last_error(&text);
  assert_non_null(strstr(text, "odd"));
  assert_null(g.ctx);
  unlink(path);
}

/* ---- .npy ------------------------------------------------------------------------------------ */

/* A version 1 file with this header text and these data bytes. */
static const char* write_npy(const char* header, const void* data, size_t bytes) {
  struct bytes b = {.n = 0};
  const char* path = path_of("x.npy");
  put(&b, "\x93NUMPY\1\0", 8);
  put16(&b, (uint16_t)strlen(header));
  put(&b, header, strlen(header));
  put(&b, data, bytes);
  write_file(path, b.at, b.n);
  return path;
}

static void an_npy_file_is_as_numpy_writes_it(void** state) {
  const char* path = path_of("saved.npy");
  static const char want[] =
      "\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      ";
  char got[256];
  mlx_array x = ramp(2, 3), y = mlx_array_new();
  assert_int_equal(mlx_save(path, x), 0);
  FILE* f = fopen(path, "rb");
  assert_int_equal(fread(got, 1, sizeof got, f), 128 + 24);
  fclose(f);
  assert_memory_equal(got, want, sizeof want - 1);
  assert_int_equal(got[126], ' ');
  assert_int_equal(got[127], '\n');
  assert_int_equal(mlx_load(&y, path, none), 0);
  unlink(path);
  assert_int_equal(mlx_array_shape(y)[0], 2);
  expect_floats(y, (float[]){0, 1, 2, 3, 4, 5}, 6);
  mlx_array_free(x), mlx_array_free(y);
}

static void scalars_and_lists_survive_npy_streams(void** state) {
  for (int ndim = 0; ndim < 2; ndim++) {
    static struct memory mem;
    mem = (struct memory){.n = 0};
    mlx_array x = mlx_array_new_data((int64_t[]){-5}, (int[]){1}, ndim, MLX_INT64);
    mlx_array y = mlx_array_new();
    mlx_io_writer w = mlx_io_writer_new(&mem, memory_stream);
    mlx_io_reader r = mlx_io_reader_new(&mem, memory_stream);
    assert_int_equal(mlx_save_writer(w, x), 0);
    assert_int_equal(mlx_load_reader(&y, r, none), 0);
    assert_int_equal(mlx_array_ndim(y), ndim);
    assert_int_equal(mlx_array_dtype(y), MLX_INT64);
    assert_int_equal(mlx_array_data_int64(y)[0], -5);
    mlx_io_writer_free(w), mlx_io_reader_free(r);
    mlx_array_free(x), mlx_array_free(y);
  }
}

static void column_major_and_big_endian_npy_files_are_read(void** state) {
  mlx_array x = mlx_array_new();
  float columns[] = {0, 3, 1, 4, 2, 5};
  const char* path = write_npy("{'shape': (2, 3), 'fortran_order': True, \"descr\": '<f4'}\n",
                               columns, sizeof columns);
  assert_int_equal(mlx_load(&x, path, none), 0);
  expect_floats(x, (float[]){0, 1, 2, 3, 4, 5}, 6);
  path = write_npy("{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }\n",
                   "\0\0\1\2\xff\xff\xff\xff", 8);
  assert_int_equal(mlx_load(&x, path, none), 0);
  assert_int_equal(mlx_array_data_int32(x)[0], 258);
  assert_int_equal(mlx_array_data_int32(x)[1], -1);
  unlink(path);
  mlx_array_free(x);
}

static void broken_npy_files_are_refused(void** state) {
  static const struct {
    const char* header;
    int code;
  } bad[] = {
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", RP_ERR_FORMAT}, /* too short */
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", RP_ERR_FORMAT},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 2), }", RP_ERR_FORMAT},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999), }", RP_ERR_FORMAT},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
       RP_ERR_FORMAT},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296), }", RP_ERR_SHAPE},
      {"{'descr': '<f4', 'fortran_order': False}", RP_ERR_FORMAT},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", RP_ERR_FORMAT},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", RP_ERR_FORMAT},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", RP_ERR_FORMAT},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (", RP_ERR_FORMAT},
      {"{'descr': '<f4", RP_ERR_FORMAT},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", RP_ERR_FORMAT},
      {"{'descr': '|O', 'fortran_order': False, 'shape': ()}", RP_ERR_DTYPE},
      {"{'descr': '', 'fortran_order': False, 'shape': ()}", RP_ERR_DTYPE},
      {"{'descr': '<f16', 'fortran_order': False, 'shape': ()}", RP_ERR_DTYPE},
      {"", RP_ERR_FORMAT},
  };
  mlx_array x = mlx_array_new();
  const char* path = NULL;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    path = write_npy(bad[i].header, "\0\0\0\0\0\0\0\0", 8);
    fails_with(bad[i].code, mlx_load(&x, path, none));
    assert_null(x.ctx);
  }
  write_file(path, "\x93NUMPY\1\0\xff\xff{", 11);
  fails_with(RP_ERR_FORMAT, mlx_load(&x, path, none));
  write_file(path, "\x93NUMPY\2\0\xff\xff", 10);
  fails_with(RP_ERR_FORMAT, mlx_load(&x, path, none));
  unlink(path);
}

static void an_array_that_npy_has_no_name_for_leaves_the_old_file(void** state) {
  const char* path = path_of("kept.npy");
  mlx_array x = mlx_array_new_data((uint16_t[]){1}, (int[]){1}, 1, MLX_BFLOAT16);
  mlx_array y = mlx_array_new_float32(3.0f);
  assert_int_equal(mlx_save(path, y), 0);
  fails_with(RP_ERR_DTYPE, mlx_save(path, x));
  assert_int_equal(mlx_load(&x, path, none), 0);
  expect_floats(x, (float[]){3.0f}, 1);
  unlink(path);
  fails_with(RP_ERR_ARGUMENT, mlx_save(path, mlx_array_new()));
  mlx_array_free(x), mlx_array_free(y);
}

/* ---- faults and the real thing --------------------------------------------------------------- */

/* Load both kinds of file and save one, whatever fails. */
static int load_and_save(const char* st, const char* gguf) {
  struct loaded l = {{0}, {0}};
  mlx_io_gguf g = {0};
  int rc = mlx_load_safetensors(&l.arrays, &l.texts, st, none);
  if (!rc) rc = mlx_save_safetensors(st, l.arrays, l.texts);
  if (!rc) rc = mlx_load_gguf(&g, gguf, none);
  unload(l);
  mlx_io_gguf_free(g);
  return rc;
}

static void the_nth_allocation_may_fail(void** state) {
  const char *st = path_of("fault.safetensors"), *gguf = path_of("fault.gguf");
  struct bytes b;
  mlx_array x = ramp(2, 3);
  int n = 1;
  save_one(st, "x", x);
  mlx_array_free(x);
  build_gguf(&b);
  write_file(gguf, b.at, b.n);
  assert_int_equal(load_and_save(st, gguf), 0);
  for (;; n++) {
    mlx_clear_cache(); /* cached blocks would hide allocations of the next round */
    rpi_mem_fail_at(n);
    first_code = RP_OK;
    int rc = load_and_save(st, gguf);
    if (!rpi_mem_fail_at(0)) break;
    /* What can do without memory, such as a thread of the pool, does. */
    assert_int_equal(first_code, rc ? RP_ERR_MEMORY : RP_OK);
  }
  assert_true(n > 40);
  assert_int_equal(load_and_save(st, gguf), 0);
  unlink(st);
  unlink(gguf);
}

/* Figures of the file that is used elsewhere as well: SmolLM2-135M-Instruct.Q4_1.gguf. */
static void a_real_model_loads(void** state) {
  const char* path = getenv("REPRISE_TEST_MODEL");
  if (!path || !strstr(path, "SmolLM2-135M-Instruct.Q4_1.gguf")) skip();
  mlx_io_gguf g = {0};
  mlx_vector_string v = {0};
  mlx_string s = mlx_string_new();
  char* text = NULL;
  size_t active = 0;
  assert_int_equal(mlx_load_gguf(&g, path, none), 0);
  mlx_get_active_memory(&active);
  assert_true(active < (size_t)110 << 20);
  assert_int_equal(mlx_io_gguf_get_keys(&v, g), 0);
  assert_int_equal(mlx_vector_string_size(v), 61 + 3 * 211);
  mlx_array w = tensor(g, "token_embd.weight"), norm = tensor(g, "blk.0.attn_norm.weight");
  assert_int_equal(mlx_array_shape(w)[0], 49152);
  assert_int_equal(mlx_array_shape(w)[1], 576 / 4);
  assert_int_equal(mlx_array_shape(norm)[0], 576);
  assert_int_equal(mlx_io_gguf_get_metadata_string(&s, g, "general.architecture"), 0);
  assert_string_equal(mlx_string_data(s), "llama");
  assert_int_equal(mlx_io_gguf_get_metadata_vector_string(&v, g, "tokenizer.ggml.tokens"), 0);
  assert_int_equal(mlx_vector_string_size(v), 49152);
  mlx_vector_string_get(&text, v, 49151);
  assert_string_equal(text, "ectable");
  mlx_array_free(w), mlx_array_free(norm);
  mlx_vector_string_free(v);
  mlx_string_free(s);
  mlx_io_gguf_free(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_dtype_survives_a_round_trip),
      cmocka_unit_test(scalars_empty_arrays_and_views_are_saved_as_they_read),
      cmocka_unit_test(strided_and_broadcast_views_are_saved_as_they_read),
      cmocka_unit_test(arrays_can_be_saved_onto_the_file_they_come_from),
      cmocka_unit_test(metadata_survives_a_round_trip),
      cmocka_unit_test(hundreds_of_files_need_no_descriptors),
      cmocka_unit_test(a_broken_file_changes_no_result),
      cmocka_unit_test(loading_replaces_what_the_results_held),
      cmocka_unit_test(streams_of_the_host_are_written_and_read),
      cmocka_unit_test(a_closed_or_failing_stream_is_an_io_error),
      cmocka_unit_test(a_stream_without_its_functions_is_refused_and_freed),
      cmocka_unit_test(plain_tensors_of_gguf_have_row_major_shapes),
      cmocka_unit_test(affine_blocks_become_weights_scales_and_biases),
      cmocka_unit_test(blocks_whose_bias_does_not_fit_are_expanded),
      cmocka_unit_test(metadata_of_gguf_is_arrays_texts_and_lists),
      cmocka_unit_test(contents_of_gguf_can_be_set),
      cmocka_unit_test(a_broken_gguf_changes_no_result),
      cmocka_unit_test(an_npy_file_is_as_numpy_writes_it),
      cmocka_unit_test(scalars_and_lists_survive_npy_streams),
      cmocka_unit_test(column_major_and_big_endian_npy_files_are_read),
      cmocka_unit_test(broken_npy_files_are_refused),
      cmocka_unit_test(an_array_that_npy_has_no_name_for_leaves_the_old_file),
      cmocka_unit_test(the_nth_allocation_may_fail),
      cmocka_unit_test(a_real_model_loads),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
