/* Host memory, the arena, maps and texts, also when every allocation in turn fails. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

static void the_nth_allocation_fails_once(void** state) {
  rpi_mem_fail_at(2);
  void* first = rpi_alloc(8);
  assert_non_null(first);
  assert_null(rpi_calloc(1, 8));
  void* third = rpi_realloc(first, 16);
  assert_non_null(third);
  assert_true(rpi_mem_fail_at(5));
  assert_false(rpi_mem_fail_at(0));
  rpi_free(third);
}

static void a_size_of_zero_gives_a_pointer(void** state) {
  void *a = rpi_alloc(0), *b = rpi_calloc(0, 8), *c = rpi_realloc(NULL, 0);
  assert_non_null(a);
  assert_non_null(b);
  assert_non_null(c);
  assert_null(rpi_calloc(SIZE_MAX / 2, 4));
  rpi_free(a);
  rpi_free(b);
  rpi_free(c);
}

static void arena_memory_is_zeroed_aligned_and_separate(void** state) {
  struct rpi_arena a = {0};
  RPI_VEC(unsigned char*) got = {0};
  size_t sizes[] = {1, 16, 17, 3000, 0, 100000, 5, 4000, 700000, 9};

  for (int round = 0; round < 50; round++)
    for (size_t i = 0; i < RPI_COUNT_OF(sizes); i++) {
      unsigned char* p = rpi_arena_alloc(&a, sizes[i]);
      assert_non_null(p);
      assert_int_equal((uintptr_t)p % 16, 0);
      for (size_t k = 0; k < sizes[i]; k++)
        if (p[k]) fail_msg("byte %zu is not zero", k);
      memset(p, round + 1, sizes[i]);
      assert_int_equal(rpi_vec_push(&got, p), 0);
    }
  for (int64_t i = 0; i < got.n; i++) {
    size_t bytes = sizes[(size_t)i % RPI_COUNT_OF(sizes)];
    int round = (int)((size_t)i / RPI_COUNT_OF(sizes));
    if (bytes) assert_int_equal(got.at[i][0], round + 1);
    if (bytes) assert_int_equal(got.at[i][bytes - 1], round + 1);
  }
  assert_null(rpi_arena_alloc(&a, SIZE_MAX - 8));
  rpi_vec_free(&got);
  rpi_arena_release(&a);
  assert_null(a.top);
}

static void a_failed_block_leaves_the_arena_usable(void** state) {
  struct rpi_arena a = {0};
  rpi_mem_fail_at(1);
  assert_null(rpi_arena_alloc(&a, 10));
  assert_non_null(rpi_arena_alloc(&a, 10));
  rpi_mem_fail_at(1);
  assert_null(rpi_arena_alloc(&a, 1 << 20));
  assert_non_null(rpi_arena_alloc(&a, 10));
  rpi_mem_fail_at(0);
  rpi_arena_release(&a);
}

static void a_map_keeps_order_and_finds_every_key(void** state) {
  enum { N = 100000 };
  struct rpi_map m = {0};
  char key[32];

  assert_null(rpi_map_find(&m, "k0"));
  for (intptr_t i = 0; i < N; i++) {
    snprintf(key, sizeof key, "model.layers.%ld", (long)i);
    assert_int_equal(rpi_map_put(&m, key, (void*)(i + 1), NULL), 0);
  }
  assert_int_equal(m.n, N);
  for (intptr_t i = 0; i < N; i++) {
    snprintf(key, sizeof key, "model.layers.%ld", (long)i);
    assert_string_equal(m.at[i].key, key);
    assert_ptr_equal(rpi_map_get(&m, key), (void*)(i + 1));
  }
  assert_null(rpi_map_get(&m, "model.layers."));
  rpi_map_release(&m);
  assert_int_equal(m.n, 0);
}

static void putting_a_key_again_replaces_its_value_in_place(void** state) {
  struct rpi_map m = {0};
  int a, b, c;
  void* old = &c;

  rpi_map_put(&m, "x", &a, &old);
  assert_null(old);
  rpi_map_put(&m, "y", &b, NULL);
  rpi_map_put(&m, "x", &c, &old);
  assert_ptr_equal(old, &a);
  assert_int_equal(m.n, 2);
  assert_ptr_equal(m.at[0].value, &c);
  rpi_map_release(&m);
}

static void keys_are_bytes_with_a_length(void** state) {
  struct rpi_map m = {0};
  int v[4];

  rpi_map_put_n(&m, "a\0b", 3, &v[0], NULL);
  rpi_map_put_n(&m, "a\0c", 3, &v[1], NULL);
  rpi_map_put_n(&m, "a", 1, &v[2], NULL);
  rpi_map_put_n(&m, "", 0, &v[3], NULL);
  assert_int_equal(m.n, 4);
  assert_ptr_equal(rpi_map_find_n(&m, "a\0c", 3)->value, &v[1]);
  assert_ptr_equal(rpi_map_get(&m, "a"), &v[2]);
  assert_ptr_equal(rpi_map_get(&m, ""), &v[3]);
  rpi_map_release(&m);
}

static void a_map_survives_the_failure_of_each_allocation(void** state) {
  for (int64_t n = 1;; n++) {
    struct rpi_map m = {0};
    char key[16];
    int failures = 0;
    rpi_mem_fail_at(n);
    for (intptr_t i = 0; i < 40; i++) {
      snprintf(key, sizeof key, "%ld", (long)i);
      int64_t before = m.n;
      if (!rpi_map_put(&m, key, (void*)(i + 1), NULL)) continue;
      failures++;
      assert_int_equal(m.n, before);
      assert_null(rpi_map_find(&m, key));
      assert_int_equal(rpi_map_put(&m, key, (void*)(i + 1), NULL), 0);
    }
    int fired = rpi_mem_fail_at(0);
    assert_int_equal(failures, fired);
    for (intptr_t i = 0; i < 40; i++) assert_ptr_equal(m.at[i].value, (void*)(i + 1));
    rpi_map_release(&m);
    if (!fired) break;
  }
}

static void a_text_grows_and_is_handed_over(void** state) {
  struct rpi_str s = {0};
  char expected[4096] = "";

  assert_string_equal(rpi_str_text(&s), "");
  for (int i = 0; i < 300; i++) {
    assert_int_equal(rpi_str_addf(&s, "%d,", i), 0);
    sprintf(expected + strlen(expected), "%d,", i);
  }
  rpi_str_add(&s, "end");
  rpi_str_add_char(&s, '.');
  strcat(expected, "end.");
  assert_int_equal(s.n, strlen(expected));
  char* text = rpi_str_take(&s);
  assert_string_equal(text, expected);
  rpi_free(text);
  text = rpi_str_take(&s);
  assert_string_equal(text, "");
  rpi_free(text);
}

static void one_long_piece_fits(void** state) {
  struct rpi_str s = {0};
  char piece[1000];
  for (int n = 60; n < 70; n++) { /* around the first size */
    memset(piece, 'x', sizeof piece);
    piece[n] = 0;
    rpi_str_addf(&s, "%s", piece);
    assert_string_equal(rpi_str_text(&s), piece);
    rpi_str_free(&s);
  }
}

static void a_failed_addition_is_remembered_until_reset(void** state) {
  struct rpi_str s = {0};
  rpi_str_add(&s, "kept");
  rpi_mem_fail_at(1);
  assert_int_not_equal(rpi_str_addf(&s, "%100d", 1), 0);
  assert_int_not_equal(rpi_str_add(&s, "y"), 0);
  assert_string_equal(rpi_str_text(&s), "kept");
  rpi_mem_fail_at(0);
  rpi_str_reset(&s);
  assert_int_equal(rpi_str_add(&s, "again"), 0);
  assert_string_equal(rpi_str_text(&s), "again");
  s.failed = true;
  assert_null(rpi_str_take(&s));
  assert_null(s.at);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_nth_allocation_fails_once),
      cmocka_unit_test(a_size_of_zero_gives_a_pointer),
      cmocka_unit_test(arena_memory_is_zeroed_aligned_and_separate),
      cmocka_unit_test(a_failed_block_leaves_the_arena_usable),
      cmocka_unit_test(a_map_keeps_order_and_finds_every_key),
      cmocka_unit_test(putting_a_key_again_replaces_its_value_in_place),
      cmocka_unit_test(keys_are_bytes_with_a_length),
      cmocka_unit_test(a_map_survives_the_failure_of_each_allocation),
      cmocka_unit_test(a_text_grows_and_is_handed_over),
      cmocka_unit_test(one_long_piece_fits),
      cmocka_unit_test(a_failed_addition_is_remembered_until_reset),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
