/* Typed errors of a thread. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "base/err.h"

static void a_failure_is_readable_until_cleared(void** state) {
  const char* text = NULL;

  assert_int_equal(rpi_fail(RP_ERR_SHAPE, "[op] Sizes %d and %d.", 3, 4), RP_ERR_SHAPE);
  assert_int_equal(rp_last_error(&text), RP_ERR_SHAPE);
  assert_string_equal(text, "[op] Sizes 3 and 4.");
  rp_clear_error();
  assert_int_equal(rp_last_error(&text), RP_OK);
  assert_string_equal(text, "");
  assert_int_equal(rp_last_error(NULL), RP_OK);
}

static void a_message_may_quote_the_message_before_it(void** state) {
  rpi_fail(RP_ERR_IO, "inner");
  rpi_fail(RP_ERR_FORMAT, "outer: %s", rpi_error_text());
  assert_string_equal(rpi_error_text(), "outer: inner");
  assert_int_equal(rpi_fail_prefix("more: "), RP_ERR_FORMAT);
  assert_string_equal(rpi_error_text(), "more: outer: inner");
}

static void a_code_that_means_success_becomes_an_internal_error(void** state) {
  assert_int_equal(rpi_fail(RP_OK, "x"), RP_ERR_INTERNAL);
  assert_int_equal(rpi_fail((rp_error_code)999, "x"), RP_ERR_INTERNAL);
  rpi_error_clear();
  assert_int_equal(rpi_fail_prefix("x"), RP_ERR_INTERNAL);
}

static void out_of_memory_names_the_bytes(void** state) {
  assert_int_equal(rpi_fail_memory("take", 12), RP_ERR_MEMORY);
  assert_string_equal(rpi_error_text(), "[take] Out of memory (12 bytes).");
}

static void a_long_message_is_cut_between_characters(void** state) {
  char long_text[3 * RPI_ERROR_TEXT];

  for (size_t shift = 0; shift < 4; shift++) { /* every position of a 4-byte character */
    memset(long_text, 'a', shift);
    for (size_t i = shift; i + 4 < sizeof long_text; i += 4)
      memcpy(long_text + i, "\xF0\x9F\x98\x80", 5);
    rpi_fail(RP_ERR_IO, "%s", long_text);
    size_t n = strlen(rpi_error_text());
    assert_int_equal((n - shift) % 4, 0);
    assert_true(n >= RPI_ERROR_TEXT - 5);
  }
  memset(long_text, 'b', sizeof long_text - 1);
  long_text[sizeof long_text - 1] = 0;
  rpi_fail(RP_ERR_IO, "%s", long_text);
  assert_int_equal(strlen(rpi_error_text()), RPI_ERROR_TEXT - 1);
  rpi_fail_prefix("[op] ");
  assert_int_equal(strlen(rpi_error_text()), RPI_ERROR_TEXT - 1);
  assert_memory_equal(rpi_error_text(), "[op] bbb", 8);
}

static void* look_from_another_thread(void* out) {
  *(int*)out = rpi_error_code();
  rpi_fail(RP_ERR_INDEX, "theirs");
  return NULL;
}

static void every_thread_has_its_own_error(void** state) {
  pthread_t thread;
  int theirs = -1;

  rpi_fail(RP_ERR_DTYPE, "mine");
  assert_int_equal(pthread_create(&thread, NULL, look_from_another_thread, &theirs), 0);
  pthread_join(thread, NULL);
  assert_int_equal(theirs, RP_OK);
  assert_string_equal(rpi_error_text(), "mine");
}

static void a_saved_error_can_be_restored(void** state) {
  struct rpi_error saved;

  rpi_fail(RP_ERR_NUMERIC, "singular");
  rpi_error_save(&saved);
  rpi_fail(RP_ERR_IO, "other");
  assert_int_equal(rpi_error_restore(&saved), RP_ERR_NUMERIC);
  assert_string_equal(rpi_error_text(), "singular");
}

static void every_code_has_a_name_of_its_own(void** state) {
  for (int i = 0; i < RP_ERR_COUNT; i++) {
    assert_non_null(rp_error_name((rp_error_code)i));
    for (int j = 0; j < i; j++)
      assert_string_not_equal(rp_error_name((rp_error_code)i), rp_error_name((rp_error_code)j));
  }
  assert_string_equal(rp_error_name(RP_ERR_MEMORY), "memory");
  assert_string_equal(rp_error_name(RP_ERR_COUNT), "unknown");
  assert_string_equal(rp_error_name((rp_error_code)-1), "unknown");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_failure_is_readable_until_cleared),
      cmocka_unit_test(a_message_may_quote_the_message_before_it),
      cmocka_unit_test(a_code_that_means_success_becomes_an_internal_error),
      cmocka_unit_test(out_of_memory_names_the_bytes),
      cmocka_unit_test(a_long_message_is_cut_between_characters),
      cmocka_unit_test(every_thread_has_its_own_error),
      cmocka_unit_test(a_saved_error_can_be_restored),
      cmocka_unit_test(every_code_has_a_name_of_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
