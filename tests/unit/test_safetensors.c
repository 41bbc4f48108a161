/* safetensors headers: what is read, what is refused; and what is written, read back. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "bytes.h"
#include "io/safetensors.h"
#include "io/source.h"

/* A header and `data` bytes of zeros. */
static void build(struct bytes* b, const char* json, size_t data) {
  b->n = 0;
  put_text(b, json);
  for (size_t i = 0; i < data; i++) put8(b, 0);
}

static int parse(struct rpi_safetensors* st, const struct bytes* b) {
  rpi_error_clear();
  return rpi_safetensors_parse(st, "load_safetensors", "m.safetensors", b->at, b->n);
}

static const char sample[] =
    "{\"__metadata__\":{\"format\":\"pt\",\"note\":\"\\u00e9\\ud83d\\ude00 \\\"x\\\"\\n\"},"
    "\"a.b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
    "\"scalar\":{\"shape\":[],\"dtype\":\"I64\",\"extra\":[{\"k\":[1,{}]},null,-1.5e3,true],"
    "\"data_offsets\":[24,32]},"
    "\"none\":{\"dtype\":\"BF16\",\"shape\":[0,7],\"data_offsets\":[32,32]}}   ";

static void tensors_and_metadata_are_read(void** state) {
  struct bytes b;
  struct rpi_safetensors st;

  build(&b, sample, 32);
  assert_int_equal(parse(&st, &b), 0);
  assert_int_equal(st.ntensors, 3);
  assert_string_equal(st.tensors[0].name, "a.b");
  assert_int_equal(st.tensors[0].dtype, 10);
  assert_int_equal(st.tensors[0].ndim, 2);
  assert_int_equal(st.tensors[0].shape[0], 2);
  assert_int_equal(st.tensors[0].shape[1], 3);
  assert_int_equal(st.tensors[0].offset, 8 + strlen(sample));
  assert_int_equal(st.tensors[0].bytes, 24);
  assert_int_equal(st.tensors[1].ndim, 0);
  assert_int_equal(st.tensors[1].dtype, 8);
  assert_int_equal(st.tensors[2].bytes, 0);
  assert_int_equal(st.npairs, 2);
  assert_string_equal(st.pairs[0].key, "format");
  assert_string_equal(st.pairs[0].value, "pt");
  assert_string_equal(st.pairs[1].value, "\xc3\xa9\xf0\x9f\x98\x80 \"x\"\n");
  rpi_safetensors_release(&st);
}

static void every_dtype_has_its_number_and_size(void** state) {
  static const char* const names[] = {"BOOL", "U8",  "U16", "U32", "U64", "I8",   "I16",
                                      "I32",  "I64", "F16", "F32", "F64", "BF16", "C64"};
  static const int sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 2, 8};

  for (int i = 0; i < 14; i++) {
    char json[200];
    struct bytes b;
    struct rpi_safetensors st;

    snprintf(json, sizeof json, "{\"x\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%d]}}",
             names[i], 3 * sizes[i]);
    build(&b, json, 24);
    if (parse(&st, &b)) fail_msg("%s: %s", names[i], rpi_error_text());
    assert_int_equal(st.tensors[0].dtype, i);
    rpi_safetensors_release(&st);
  }
}

static void eight_bit_floats_load_as_bytes(void** state) {
  struct bytes b;
  struct rpi_safetensors st;

  build(&b, "{\"x\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3);
  assert_int_equal(parse(&st, &b), 0);
  assert_int_equal(st.tensors[0].dtype, 1);
  rpi_safetensors_release(&st);
}

/* ---- one header per fault ---- */

#define X(dtype, shape, offsets) \
  "{\"x\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}}"

static const struct {
  const char* json;
  const char* says;
} faults[] = {
    {"", "expected a header that begins with '{'"},
    {"hello", "not JSON (at byte 8)"},
    {"[]", "expected a header that begins with '{'"},
    {"{", "expected a JSON key"},
    {"{}x", "not JSON"},
    {"{}{}", "expected nothing after the header's '}'"},
    {"{\"x\"}", "expected ':'"},
    {"{\"x\":1}", "expected '{'"},
    {"{\"x\":{},}", "tensor 'x' has no dtype"},
    {X("F32", "1", "0,4") ",", "expected nothing after"},
    {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1]}}", "tensor 'x' has no data_offsets"},
    {"{\"x\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", "tensor 'x' has no shape"},
    {"{\"x\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
     "two dtypes"},
    {X("F31", "1", "0,4"), "tensor 'x' has the unknown dtype 'F31' (at byte 23)"},
    {X("", "1", "0,4"), "unknown dtype ''"},
    {X("F32", "1000,1000", "0,4"),
     "tensor 'x' has 4 bytes where its dtype and shape need 4000000 (at byte 10)"},
    {X("F32", "1", "16,0"), "tensor 'x' begins at 16 and ends before, at 0"},
    {X("F32", "16", "0,64"), "tensor 'x' ends at 64 of 32 bytes of data"},
    {X("F32", "1", "0,9223372036854775807"), "ends at 9223372036854775807 of 32"},
    {X("F32", "1", "0,18446744073709551616"),
     "data_offsets of tensor 'x' has an item that is no count"},
    {X("F32", "1", "-4,0"), "no count"},
    {X("F32", "1", "0,4.0"), "no count"},
    {X("F32", "1", "0,4e0"), "no count"},
    {X("F32", "1", "00,4"), "malformed JSON number"},
    {X("F32", "1", "0,4,8"), "data_offsets of tensor 'x' has more than 2 items"},
    {X("F32", "1", "0"), "are not two counts"},
    {X("F32", "1", ""), "are not two counts"},
    {X("F32", "-1", "0,4"), "the shape of tensor 'x' has an item that is no count"},
    {X("F32", "\"1\"", "0,4"), "no count"},
    {X("F32", "1,", "0,4"), "no count"},
    {X("F32", "4294967296,4294967296,1", "0,4"), "size of tensor 'x' overflows"},
    {X("U8", "4611686018427387904,4", "0,0"), "size of tensor 'x' overflows"},
    {"{\"x\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
     "\"y\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[7,15]}}",
     "tensors 'x' and 'y' overlap"},
    {"{\"x\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
     "\"x\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[8,16]}}",
     "tensor 'x' occurs twice"},
    {"{\"__metadata__\":{\"k\":\"a\",\"k\":\"b\"}}", "metadata 'k' occurs twice"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", "'__metadata__' occurs twice"},
    {"{\"__metadata__\":{\"k\":1}}", "metadata 'k' is not a string"},
    {"{\"__metadata__\":7}", "'__metadata__' is not an object"},
    {"{\"\\ud800\":{}}", "a bad escape in a JSON string (at byte 10)"},
    {"{\"\\x41\":{}}", "a bad escape in a JSON string"},
    {"{\"\\u00\":{}}", "a bad escape in a JSON string"},
    {"{\"\x01\":{}}", "a control character in a JSON string"},
    {"{\"\xff\":{}}", "a JSON string is not UTF-8"},
    {"{\"\xc0\x80\":{}}", "a JSON string is not UTF-8"},
    {"{\"\xed\xa0\x80\":{}}", "a JSON string is not UTF-8"},
    {"{\"a\\u0000b\":{}}", "NUL character"},
    {"{\"x", "a JSON string has no end"},
};

static void every_fault_is_an_error_that_names_file_field_and_byte(void** state) {
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    struct bytes b;
    struct rpi_safetensors st;

    build(&b, faults[i].json, 32);
    int code = parse(&st, &b);
    const char* text = rpi_error_text();
    if (code != RP_ERR_FORMAT || !strstr(text, faults[i].says) || !strstr(text, "at byte ") ||
        !strstr(text, "[load_safetensors] m.safetensors: "))
      fail_msg("%s\n'%s' not said by %d '%s'", faults[i].json, faults[i].says, code, text);
    assert_null(st.tensors);
  }
}

static void a_header_longer_than_the_file_is_an_error(void** state) {
  static const uint64_t lengths[] = {1ull << 60, UINT64_MAX, 1ull << 63, 3};

  for (int i = 0; i < 4; i++) {
    struct bytes b = {.n = 0};
    struct rpi_safetensors st;

    put64(&b, lengths[i]), put(&b, "{}", 2);
    assert_int_equal(parse(&st, &b), RP_ERR_FORMAT);
    assert_non_null(strstr(rpi_error_text(), "the header claims"));
  }
}

static void deep_nesting_is_an_error_and_uses_no_stack(void** state) {
  size_t deep = 1000000, head = 12, n = 8 + head + deep;
  unsigned char* file = calloc(1, n);
  struct rpi_safetensors st;
  uint64_t length = n - 8;

  memcpy(file, &length, 8);
  memcpy(file + 8, "{\"x\":{\"y\":  ", head);
  memset(file + 8 + head, '[', deep);
  assert_int_equal(rpi_safetensors_parse(&st, "load_safetensors", "m", file, n), RP_ERR_FORMAT);
  assert_non_null(strstr(rpi_error_text(), "nested more than 64 deep"));
  free(file);
}

static void more_than_64_dimensions_are_an_error(void** state) {
  char json[400] = "{\"x\":{\"dtype\":\"U8\",\"shape\":[1";
  struct bytes b;
  struct rpi_safetensors st;

  for (int i = 0; i < 64; i++) strcat(json, ",1");
  strcat(json, "],\"data_offsets\":[0,1]}}");
  build(&b, json, 1);
  assert_int_equal(parse(&st, &b), RP_ERR_FORMAT);
  assert_non_null(strstr(rpi_error_text(), "has more than 64 items"));
}

/* A copy of exactly n bytes, so that the address sanitizer sees a read past the end. */
static int parse_prefix(const struct bytes* b, size_t n) {
  struct rpi_safetensors st;
  unsigned char* copy = malloc(n ? n : 1);

  memcpy(copy, b->at, n);
  int code = rpi_safetensors_parse(&st, "load_safetensors", "m", copy, n);
  if (!code) rpi_safetensors_release(&st);
  free(copy);
  return code;
}

static void a_file_cut_off_anywhere_is_an_error(void** state) {
  struct bytes b;

  build(&b, sample, 32);
  for (size_t n = 0; n < b.n; n++)
    if (parse_prefix(&b, n) != RP_ERR_FORMAT) fail_msg("cut at %zu", n);
  assert_int_equal(parse_prefix(&b, b.n), 0);
}

static void a_header_cut_off_anywhere_is_an_error(void** state) {
  struct bytes b;

  for (size_t n = 0; n + 4 < sizeof sample; n++) { /* three spaces and the NUL end it */
    char json[sizeof sample];
    memcpy(json, sample, n);
    json[n] = '\0';
    build(&b, json, 32);
    if (parse_prefix(&b, b.n) != RP_ERR_FORMAT) fail_msg("cut at %zu", n);
  }
}

static void any_single_byte_may_be_replaced_without_harm(void** state) {
  static const unsigned char with[] = {0, '"', '\\', '{', '}', '[', ']', '9', '-', 0x80, 0xff};
  struct bytes b;

  build(&b, sample, 32);
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
  struct rpi_safetensors st;
  int n = 0, code;

  build(&b, sample, 32);
  do {
    rpi_mem_fail_at(++n);
    code = parse(&st, &b);
    if (code) assert_int_equal(code, RP_ERR_MEMORY);
  } while (code);
  rpi_mem_fail_at(0);
  assert_true(n > 5);
  rpi_safetensors_release(&st);
}

/* ---- writing ---- */

static char path[] = "/tmp/test_safetensors.XXXXXX";

static int make_path(void** state) {
  int fd = mkstemp(path);
  return fd < 0 ? 1 : close(fd);
}

static int remove_path(void** state) { return unlink(path); }

static const float six[] = {1, 2, 3, 4, 5, 6};
static const int8_t three[] = {-1, 0, 1};
static const struct rpi_safetensors_item items[] = {
    {"b\"quoted\\", 5, 1, (const int64_t[]){3}, three},
    {"m", 10, 2, (const int64_t[]){2, 3}, six},
    {"empty", 9, 2, (const int64_t[]){0, 4}, NULL},
    {"s", 10, 0, NULL, six + 5},
};
static const struct rpi_safetensors_pair pairs[] = {{"format", "pt"}, {"a", "tab\t\xc3\xa9"}};

static void what_was_saved_is_read_back(void** state) {
  struct rpi_source* src;
  struct rpi_safetensors st;

  assert_int_equal(rpi_safetensors_save("save_safetensors", path, items, 4, pairs, 2), 0);
  assert_int_equal(rpi_source_open(&src, "load_safetensors", path), 0);
  assert_int_equal(rpi_safetensors_parse(&st, "load_safetensors", path, src->data, src->size), 0);
  static const char* const order[] = {"m", "s", "empty", "b\"quoted\\"}; /* by width, then name */
  assert_int_equal(st.ntensors, 4);
  for (int i = 0; i < 4; i++) assert_string_equal(st.tensors[i].name, order[i]);
  assert_int_equal(st.tensors[0].offset % 8, 0);
  assert_memory_equal(src->data + st.tensors[0].offset, six, sizeof six);
  assert_memory_equal(src->data + st.tensors[1].offset, six + 5, 4);
  assert_memory_equal(src->data + st.tensors[3].offset, three, 3);
  assert_int_equal(st.tensors[1].ndim, 0);
  assert_int_equal(st.tensors[2].shape[1], 4);
  assert_int_equal(st.npairs, 2);
  assert_string_equal(st.pairs[1].key, "format");
  assert_string_equal(st.pairs[1].value, "pt");
  assert_string_equal(st.pairs[0].value, "tab\t\xc3\xa9");
  rpi_safetensors_release(&st);
  rpi_source_release(src);
}

static void the_header_is_padded_to_8_bytes_with_spaces(void** state) {
  struct rpi_source* src;
  uint64_t n;

  assert_int_equal(rpi_safetensors_save("save_safetensors", path, items + 1, 1, NULL, 0), 0);
  assert_int_equal(rpi_source_open(&src, "load", path), 0);
  memcpy(&n, src->data, 8);
  static const char want[] = "{\"m\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}";
  assert_int_equal(n, (sizeof want - 1 + 7) / 8 * 8);
  assert_memory_equal(src->data + 8, want, sizeof want - 1);
  for (size_t i = 8 + sizeof want - 1; i < 8 + n; i++) assert_int_equal(src->data[i], ' ');
  assert_int_equal(src->size, 8 + n + 24);
  rpi_source_release(src);
}

static void an_array_is_saved_onto_the_file_that_it_is_mapped_from(void** state) {
  float ones[1024];
  struct rpi_source* src;
  struct rpi_safetensors st;
  struct rpi_safetensors_item it = {"x", 10, 1, (const int64_t[]){1024}, ones};

  for (int i = 0; i < 1024; i++) ones[i] = 1;
  assert_int_equal(rpi_safetensors_save("save", path, &it, 1, NULL, 0), 0);
  for (int round = 0; round < 2; round++) {
    assert_int_equal(rpi_source_open(&src, "load", path), 0);
    assert_int_equal(rpi_safetensors_parse(&st, "load", path, src->data, src->size), 0);
    assert_memory_equal(src->data + st.tensors[0].offset, ones, sizeof ones);
    it.data = src->data + st.tensors[0].offset;
    assert_int_equal(rpi_safetensors_save("save", path, &it, 1, NULL, 0), 0);
    rpi_safetensors_release(&st);
    rpi_source_release(src);
  }
}

static void an_array_without_a_proper_name_or_dtype_is_refused_before_writing(void** state) {
  const struct {
    struct rpi_safetensors_item it[2];
    int n;
    const char* says;
  } rows[] = {
      {{{"\xff", 10, 0, NULL, six}}, 1, "is not UTF-8"},
      {{{NULL, 10, 0, NULL, six}}, 1, "is not UTF-8"},
      {{{"__metadata__", 10, 0, NULL, six}}, 1, "cannot be the name"},
      {{{"x", 14, 0, NULL, six}}, 1, "unknown dtype 14"},
      {{{"x", 10, 1, (const int64_t[]){-1}, six}}, 1, "no valid shape"},
      {{{"x", 10, 0, NULL, six}, {"x", 10, 0, NULL, six}}, 2, "Array 'x' is given twice"},
  };

  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal(rpi_safetensors_save("save", path, items, 4, NULL, 0), 0);
    assert_int_not_equal(rpi_safetensors_save("save", path, rows[i].it, rows[i].n, NULL, 0), 0);
    if (!strstr(rpi_error_text(), rows[i].says)) fail_msg("%s", rpi_error_text());
  }
}

static void running_out_of_memory_while_saving_is_an_error(void** state) {
  int n = 0, code;

  do {
    rpi_mem_fail_at(++n);
    code = rpi_safetensors_save("save", path, items, 4, pairs, 2);
    if (code) assert_int_equal(code, RP_ERR_MEMORY);
  } while (code);
  rpi_mem_fail_at(0);
  assert_true(n > 6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensors_and_metadata_are_read),
      cmocka_unit_test(every_dtype_has_its_number_and_size),
      cmocka_unit_test(eight_bit_floats_load_as_bytes),
      cmocka_unit_test(every_fault_is_an_error_that_names_file_field_and_byte),
      cmocka_unit_test(a_header_longer_than_the_file_is_an_error),
      cmocka_unit_test(deep_nesting_is_an_error_and_uses_no_stack),
      cmocka_unit_test(more_than_64_dimensions_are_an_error),
      cmocka_unit_test(a_file_cut_off_anywhere_is_an_error),
      cmocka_unit_test(a_header_cut_off_anywhere_is_an_error),
      cmocka_unit_test(any_single_byte_may_be_replaced_without_harm),
      cmocka_unit_test(running_out_of_memory_anywhere_is_an_error),
      cmocka_unit_test(what_was_saved_is_read_back),
      cmocka_unit_test(the_header_is_padded_to_8_bytes_with_spaces),
      cmocka_unit_test(an_array_is_saved_onto_the_file_that_it_is_mapped_from),
      cmocka_unit_test(an_array_without_a_proper_name_or_dtype_is_refused_before_writing),
      cmocka_unit_test(running_out_of_memory_while_saving_is_an_error),
  };
  return cmocka_run_group_tests(tests, make_path, remove_path);
}
