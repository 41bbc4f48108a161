/* GGUF files built by hand: what is read, what is refused, and that refusing costs nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "bytes.h"
#include "io/gguf.h"

static void put_head(struct bytes* b, uint32_t version, uint64_t tensors, uint64_t pairs) {
  put(b, "GGUF", 4);
  put32(b, version);
  put64(b, tensors);
  put64(b, pairs);
}

static void put_key(struct bytes* b, const char* key, uint32_t type) {
  put_text(b, key);
  put32(b, type);
}

static void put_tensor(struct bytes* b, const char* name, uint32_t ndim, const uint64_t* ne,
                       uint32_t type, uint64_t offset) {
  put_text(b, name);
  put32(b, ndim);
  for (uint32_t i = 0; i < ndim; i++) put64(b, ne[i]);
  put32(b, type);
  put64(b, offset);
}

/* All 13 types of value, arrays of numbers, of strings and of arrays, and two tensors. */
static void build_sample(struct bytes* b, uint32_t version) {
  b->n = 0;
  put_head(b, version, 2, 17);
  put_key(b, "u8", 0), put8(b, 200);
  put_key(b, "i8", 1), put8(b, (uint8_t)-5);
  put_key(b, "u16", 2), put16(b, 60000);
  put_key(b, "i16", 3), put16(b, (uint16_t)-300);
  put_key(b, "u32", 4), put32(b, 4000000000u);
  put_key(b, "i32", 5), put32(b, (uint32_t)-70000);
  put_key(b, "f32", 6), put_f32(b, 1.5f);
  put_key(b, "bool", 7), put8(b, 1);
  put_key(b, "text", 8), put_text(b, "hello");
  put_key(b, "ints", 9), put32(b, 5), put64(b, 3), put32(b, 1), put32(b, (uint32_t)-2), put32(b, 3);
  put_key(b, "u64", 10), put64(b, UINT64_MAX);
  put_key(b, "i64", 11), put64(b, (uint64_t)-9000000000);
  put_key(b, "f64", 12), put_f64(b, 0.1);
  put_key(b, "words", 9), put32(b, 8), put64(b, 3), put_text(b, "a"), put_text(b, ""),
      put_text(b, "ccc");
  put_key(b, "empty", 9), put32(b, 8), put64(b, 0);
  put_key(b, "nested", 9), put32(b, 9), put64(b, 2);
  put32(b, 2), put64(b, 1), put16(b, 7);
  put32(b, 8), put64(b, 1), put_text(b, "in");
  put_key(b, "general.alignment", 4), put32(b, 64);
  put_tensor(b, "w", 2, (uint64_t[]){32, 3}, RPI_BLOCK_Q4_0, 0);
  put_tensor(b, "norm", 1, (uint64_t[]){5}, RPI_BLOCK_F32, 64);
  pad(b, 64);
  for (int i = 0; i < 64 + 20; i++) put8(b, (uint8_t)i);
}

static int parse(struct rpi_gguf* g, const struct bytes* b) {
  rpi_error_clear();
  return rpi_gguf_parse(g, "load_gguf", "m.gguf", b->at, b->n);
}

static void integers_of_every_width_are_read(void** state) {
  static const struct {
    const char* key;
    int64_t want;
  } rows[] = {{"u8", 200},           {"i8", -5},      {"u16", 60000},         {"i16", -300},
              {"u32", 4000000000ll}, {"i32", -70000}, {"i64", -9000000000ll}, {"bool", 1}};
  struct bytes b;
  struct rpi_gguf g;

  build_sample(&b, 3);
  assert_int_equal(parse(&g, &b), 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t v = 0;
    assert_true(rpi_gguf_get_int(rpi_gguf_find(&g, rows[i].key), &v));
    assert_int_equal(v, rows[i].want);
  }
  rpi_gguf_release(&g);
}

static void values_of_another_kind_are_not_converted(void** state) {
  struct bytes b;
  struct rpi_gguf g;
  struct rpi_gguf_text t;
  struct rpi_gguf_array a;
  int64_t v;
  double d;

  build_sample(&b, 3);
  assert_int_equal(parse(&g, &b), 0);
  assert_false(rpi_gguf_get_int(rpi_gguf_find(&g, "f32"), &v));
  assert_false(rpi_gguf_get_int(rpi_gguf_find(&g, "text"), &v));
  assert_false(rpi_gguf_get_int(rpi_gguf_find(&g, "u64"), &v)); /* above INT64_MAX */
  assert_false(rpi_gguf_get_float(rpi_gguf_find(&g, "ints"), &d));
  assert_false(rpi_gguf_get_text(rpi_gguf_find(&g, "u8"), &t));
  assert_false(rpi_gguf_get_array(rpi_gguf_find(&g, "text"), &a));
  assert_null(rpi_gguf_find(&g, "absent"));
  rpi_gguf_release(&g);
}

static void floats_text_and_arrays_are_read_in_place(void** state) {
  struct bytes b;
  struct rpi_gguf g;
  struct rpi_gguf_text t;
  struct rpi_gguf_array a;
  double d;

  build_sample(&b, 2);
  assert_int_equal(parse(&g, &b), 0);
  assert_int_equal(g.version, 2);
  assert_true(rpi_gguf_get_float(rpi_gguf_find(&g, "f32"), &d) && d == 1.5);
  assert_true(rpi_gguf_get_float(rpi_gguf_find(&g, "f64"), &d) && d == 0.1);
  assert_true(rpi_gguf_get_float(rpi_gguf_find(&g, "u64"), &d) && d == 18446744073709551616.0);
  assert_true(rpi_gguf_get_text(rpi_gguf_find(&g, "text"), &t));
  assert_int_equal(t.n, 5);
  assert_memory_equal(t.at, "hello", 5);
  assert_true(rpi_gguf_get_array(rpi_gguf_find(&g, "ints"), &a));
  assert_int_equal(a.count, 3);
  assert_int_equal(rpi_gguf_array_int(&a, 1), -2);
  assert_true(rpi_gguf_array_float(&a, 2) == 3.0);
  rpi_gguf_release(&g);
}

static void strings_of_an_array_are_reached_by_index(void** state) {
  struct bytes b;
  struct rpi_gguf g;
  struct rpi_gguf_array a;

  build_sample(&b, 3);
  assert_int_equal(parse(&g, &b), 0);
  const struct rpi_gguf_pair* p = rpi_gguf_find(&g, "words");
  struct rpi_gguf_text t = rpi_gguf_array_text(&g, p, 2);
  assert_int_equal(t.n, 3);
  assert_memory_equal(t.at, "ccc", 3);
  assert_int_equal(rpi_gguf_array_text(&g, p, 1).n, 0);
  assert_true(rpi_gguf_get_array(rpi_gguf_find(&g, "empty"), &a));
  assert_int_equal(a.count, 0);
  rpi_gguf_release(&g);
}

static void nested_arrays_are_reached_by_index(void** state) {
  struct bytes b;
  struct rpi_gguf g;
  struct rpi_gguf_array outer, inner;

  build_sample(&b, 3);
  assert_int_equal(parse(&g, &b), 0);
  assert_true(rpi_gguf_get_array(rpi_gguf_find(&g, "nested"), &outer));
  inner = rpi_gguf_array_nested(&outer, 0);
  assert_int_equal(inner.type, RPI_GGUF_UINT16);
  assert_int_equal(rpi_gguf_array_int(&inner, 0), 7);
  inner = rpi_gguf_array_nested(&outer, 1);
  assert_int_equal(inner.type, RPI_GGUF_STRING);
  assert_memory_equal(inner.at + 8, "in", 2);
  rpi_gguf_release(&g);
}

static void tensors_are_placed_by_the_alignment_of_the_file(void** state) {
  struct bytes b;
  struct rpi_gguf g;

  build_sample(&b, 3);
  assert_int_equal(parse(&g, &b), 0);
  assert_int_equal(g.alignment, 64);
  const struct rpi_gguf_tensor* w = rpi_gguf_find_tensor(&g, "w");
  const struct rpi_gguf_tensor* norm = rpi_gguf_find_tensor(&g, "norm");
  assert_int_equal(w->ndim, 2);
  assert_int_equal(w->ne[0], 32);
  assert_int_equal(w->ne[1], 3);
  assert_int_equal(w->bytes, 54);
  assert_int_equal(w->elements, 96);
  assert_int_equal(b.at[w->offset], 0);
  assert_int_equal(norm->offset, w->offset + 64);
  assert_int_equal(norm->offset + norm->bytes, b.n);
  assert_null(rpi_gguf_find_tensor(&g, "absent"));
  rpi_gguf_release(&g);
}

static void a_file_without_tensors_may_end_at_its_header(void** state) {
  struct bytes b = {.n = 0};
  struct rpi_gguf g;

  put_head(&b, 3, 0, 1);
  put_key(&b, "k", 0), put8(&b, 9);
  assert_int_equal(parse(&g, &b), 0);
  assert_int_equal(g.ntensors, 0);
  rpi_gguf_release(&g);
}

/* ---- one file per fault ---- */

#define ONE_TENSOR(b, ...) \
  (put_head(b, 3, 1, 0), put_tensor(b, "x", __VA_ARGS__), pad(b, 32), put_zeros(b))

static void put_zeros(struct bytes* b) {
  for (int i = 0; i < 256; i++) put8(b, 0);
}

static void bad_magic(struct bytes* b) { put_head(b, 3, 0, 0), b->at[3] = 'X'; }
static void version_1(struct bytes* b) { put_head(b, 1, 0, 0); }
static void big_endian(struct bytes* b) { put_head(b, 0x03000000, 0, 0); }
static void huge_tensor_count(struct bytes* b) { put_head(b, 3, 1ull << 60, 0), put_zeros(b); }
static void huge_pair_count(struct bytes* b) { put_head(b, 3, 0, 1ull << 60), put_zeros(b); }
static void key_past_end(struct bytes* b) {
  put_head(b, 3, 0, 1), put64(b, 1ull << 60), put_zeros(b);
}
static void key_of_all_ones(struct bytes* b) {
  put_head(b, 3, 0, 1), put64(b, UINT64_MAX), put_zeros(b);
}
static void empty_key(struct bytes* b) {
  put_head(b, 3, 0, 1), put_key(b, "", 0), put8(b, 0), put_zeros(b);
}
static void nul_in_key(struct bytes* b) {
  put_head(b, 3, 0, 1), put64(b, 2), put(b, "a", 2), put32(b, 0), put8(b, 0);
}
static void unknown_value_type(struct bytes* b) {
  put_head(b, 3, 0, 1), put_key(b, "k", 13), put_zeros(b);
}
static void string_past_end(struct bytes* b) {
  put_head(b, 3, 0, 1), put_key(b, "k", 8), put64(b, 1000), put_zeros(b);
}
static void huge_array(struct bytes* b) {
  put_head(b, 3, 0, 1), put_key(b, "k", 9), put32(b, 4), put64(b, 1ull << 62), put_zeros(b);
}
static void huge_string_array(struct bytes* b) {
  put_head(b, 3, 0, 1), put_key(b, "k", 9), put32(b, 8), put64(b, 1ull << 61), put_zeros(b);
}
static void unknown_item_type(struct bytes* b) {
  put_head(b, 3, 0, 1), put_key(b, "k", 9), put32(b, 99), put64(b, 1), put_zeros(b);
}
static void deep_array(struct bytes* b) {
  put_head(b, 3, 0, 1), put_key(b, "k", 9);
  for (int i = 0; i < 100; i++) put32(b, 9), put64(b, 1);
  put_zeros(b);
}
static void key_twice(struct bytes* b) {
  put_head(b, 3, 0, 2);
  put_key(b, "k", 0), put8(b, 1);
  put_key(b, "k", 0), put8(b, 2);
}
static void alignment_of(struct bytes* b, uint32_t a) {
  put_head(b, 3, 0, 1), put_key(b, "general.alignment", 4), put32(b, a);
}
static void alignment_0(struct bytes* b) { alignment_of(b, 0); }
static void alignment_24(struct bytes* b) { alignment_of(b, 24); }
static void alignment_is_text(struct bytes* b) {
  put_head(b, 3, 0, 1), put_key(b, "general.alignment", 8), put_text(b, "32");
}
static void no_dims(struct bytes* b) { ONE_TENSOR(b, 0, NULL, RPI_BLOCK_F32, 0); }
static void five_dims(struct bytes* b) {
  ONE_TENSOR(b, 5, ((uint64_t[]){1, 1, 1, 1, 1}), RPI_BLOCK_F32, 0);
}
static void zero_dim(struct bytes* b) {
  ONE_TENSOR(b, 2, ((uint64_t[]){32, 0}), RPI_BLOCK_Q4_0, 0);
}
static void negative_dim(struct bytes* b) {
  ONE_TENSOR(b, 1, ((uint64_t[]){1ull << 63}), RPI_BLOCK_F32, 0);
}
static void product_overflow(struct bytes* b) {
  ONE_TENSOR(b, 3, ((uint64_t[]){1ull << 32, 1ull << 31, 2}), RPI_BLOCK_F32, 0);
}
static void bytes_overflow(struct bytes* b) {
  ONE_TENSOR(b, 2, ((uint64_t[]){1ull << 31, 1ull << 31}), RPI_BLOCK_F64, 0);
}
static void row_of_half_a_block(struct bytes* b) {
  ONE_TENSOR(b, 2, ((uint64_t[]){16, 2}), RPI_BLOCK_Q4_0, 0);
}
static void unknown_type(struct bytes* b) { ONE_TENSOR(b, 1, ((uint64_t[]){32}), 1234, 0); }
static void unsupported_type(struct bytes* b) { ONE_TENSOR(b, 1, ((uint64_t[]){256}), 17, 0); }
static void offset_not_aligned(struct bytes* b) {
  ONE_TENSOR(b, 1, ((uint64_t[]){4}), RPI_BLOCK_F32, 8);
}
static void offset_past_end(struct bytes* b) {
  ONE_TENSOR(b, 1, ((uint64_t[]){4}), RPI_BLOCK_F32, 1ull << 60);
}
static void offset_wraps(struct bytes* b) {
  ONE_TENSOR(b, 1, ((uint64_t[]){64}), RPI_BLOCK_F32, UINT64_MAX - 31);
}
static void data_past_end(struct bytes* b) {
  ONE_TENSOR(b, 1, ((uint64_t[]){65}), RPI_BLOCK_F32, 0);
}
static void name_twice(struct bytes* b) {
  put_head(b, 3, 2, 0);
  put_tensor(b, "x", 1, (uint64_t[]){4}, RPI_BLOCK_F32, 0);
  put_tensor(b, "x", 1, (uint64_t[]){4}, RPI_BLOCK_F32, 32);
  pad(b, 32), put_zeros(b);
}
static void overlap(struct bytes* b) {
  put_head(b, 3, 2, 0);
  put_tensor(b, "x", 1, (uint64_t[]){32}, RPI_BLOCK_F32, 0);
  put_tensor(b, "y", 1, (uint64_t[]){4}, RPI_BLOCK_F32, 32);
  pad(b, 32), put_zeros(b);
}

static const struct {
  void (*build)(struct bytes*);
  const char* says; /* part of the message */
} faults[] = {
    {bad_magic, "not a GGUF file"},
    {version_1, "version 1 is not supported"},
    {big_endian, "big-endian GGUF files are not supported"},
    {huge_tensor_count, "claims 1152921504606846976 tensors"},
    {huge_pair_count, "claims 1152921504606846976 metadata pairs"},
    {key_past_end,
     "a metadata key needs 1152921504606846976 bytes where 256 are left (at byte 32)"},
    {key_of_all_ones, "a metadata key needs"},
    {empty_key, "a metadata key is empty"},
    {nul_in_key, "has a NUL byte"},
    {unknown_value_type, "metadata 'k' has the unknown type 13 (at byte 33)"},
    {string_past_end, "k needs 1000 bytes where 256 are left"},
    {huge_array, "array 'k' claims 4611686018427387904 items of type uint32"},
    {huge_string_array, "array 'k' claims 2305843009213693952 items of type string"},
    {unknown_item_type, "array 'k' has the unknown item type 99"},
    {deep_array, "array 'k' is nested more than 8 deep"},
    {key_twice, "metadata 'k' occurs twice"},
    {alignment_0, "'general.alignment' is 0, which is not a power of two"},
    {alignment_24, "'general.alignment' is 24, which is not a power of two"},
    {alignment_is_text, "'general.alignment' has type string instead of uint32"},
    {no_dims, "tensor 'x' has 0 dimensions instead of 1 to 4"},
    {five_dims, "tensor 'x' has 5 dimensions instead of 1 to 4 (at byte 33)"},
    {zero_dim, "tensor 'x' has dimension 1 of size 0 (at byte 45)"},
    {negative_dim, "elements of tensor 'x' overflows"},
    {product_overflow, "elements of tensor 'x' overflows"},
    {bytes_overflow, "size of tensor 'x' overflows"},
    {row_of_half_a_block, "tensor 'x' has rows of 16 elements"},
    {unknown_type, "tensor 'x' has the unknown type 1234"},
    {unsupported_type, "tensor 'x' has type IQ2_XS, which is not supported; supported: F32, F16"},
    {offset_not_aligned, "offset 8 of tensor 'x' is no multiple of the alignment 32"},
    {offset_past_end, "ends past the end of the file"},
    {offset_wraps, "ends past the end of the file"},
    {data_past_end, "ends past the end of the file"},
    {name_twice, "tensor 'x' occurs twice"},
    {overlap, "tensors 'x' and 'y' overlap"},
};

static void every_fault_is_an_error_that_names_file_field_and_byte(void** state) {
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    struct bytes b = {.n = 0};
    struct rpi_gguf g;

    faults[i].build(&b);
    int code = parse(&g, &b);
    const char* text = rpi_error_text();
    if (code != RP_ERR_FORMAT && code != RP_ERR_UNSUPPORTED)
      fail_msg("'%s': code %d, '%s'", faults[i].says, code, text);
    if (!strstr(text, faults[i].says) || !strstr(text, "[load_gguf] m.gguf: ") ||
        !strstr(text, "at byte "))
      fail_msg("'%s' not said by '%s'", faults[i].says, text);
    assert_null(g.tensors);
  }
}

/* A copy of exactly n bytes, so that the address sanitizer sees a read past the end. */
static int parse_prefix(const struct bytes* b, size_t n) {
  struct rpi_gguf g;
  unsigned char* copy = malloc(n ? n : 1);

  memcpy(copy, b->at, n);
  int code = rpi_gguf_parse(&g, "load_gguf", "m.gguf", copy, n);
  if (!code) rpi_gguf_release(&g);
  free(copy);
  return code;
}

static void a_file_cut_off_anywhere_is_an_error(void** state) {
  struct bytes b;

  build_sample(&b, 3);
  for (size_t n = 0; n < b.n; n++)
    if (parse_prefix(&b, n) != RP_ERR_FORMAT) fail_msg("cut at %zu", n);
  assert_int_equal(parse_prefix(&b, b.n), 0);
}

static void any_single_byte_may_be_replaced_without_harm(void** state) {
  static const unsigned char with[] = {0, 1, 9, 0x7f, 0x80, 0xff};
  struct bytes b;

  build_sample(&b, 3);
  for (size_t i = 0; i < b.n; i++)
    for (size_t k = 0; k < sizeof with; k++) {
      unsigned char was = b.at[i];
      b.at[i] = with[k];
      parse_prefix(&b, b.n); /* an error or not: the sanitizers judge */
      b.at[i] = was;
    }
}

static void running_out_of_memory_anywhere_is_an_error(void** state) {
  struct bytes b;
  struct rpi_gguf g;
  int n = 0, code;

  build_sample(&b, 3);
  do {
    rpi_mem_fail_at(++n);
    code = parse(&g, &b);
    if (code) assert_int_equal(code, RP_ERR_MEMORY);
  } while (code);
  rpi_mem_fail_at(0);
  assert_true(n > 5); /* three lists, two indexes, names */
  rpi_gguf_release(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers_of_every_width_are_read),
      cmocka_unit_test(values_of_another_kind_are_not_converted),
      cmocka_unit_test(floats_text_and_arrays_are_read_in_place),
      cmocka_unit_test(strings_of_an_array_are_reached_by_index),
      cmocka_unit_test(nested_arrays_are_reached_by_index),
      cmocka_unit_test(tensors_are_placed_by_the_alignment_of_the_file),
      cmocka_unit_test(a_file_without_tensors_may_end_at_its_header),
      cmocka_unit_test(every_fault_is_an_error_that_names_file_field_and_byte),
      cmocka_unit_test(a_file_cut_off_anywhere_is_an_error),
      cmocka_unit_test(any_single_byte_may_be_replaced_without_harm),
      cmocka_unit_test(running_out_of_memory_anywhere_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
