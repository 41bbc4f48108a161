/* Buffers, errors, the UTF-8 stream and stop strings of lm/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lm/err.h"
#include "lm/nfc.h"
#include "lm/stop.h"
#include "lm/text.h"
#include "lm/utf8.h"

static void assert_ok(int err) {
  if (err) fail_msg("error %d: %s", err, lm_error_text());
}

static void assert_text(const struct lm_text* t, const char* want) {
  assert_string_equal(t->data ? t->data : "", want);
  assert_int_equal(t->len, strlen(want));
}

/* ---- UTF-8 ---- */

/* Feed the pieces, then check what came out after each. */
static void check_stream(const char* const* pieces, const char* const* want, size_t n) {
  struct lm_utf8_stream s = {0};
  struct lm_text out = {0};

  for (size_t i = 0; i < n; i++) {
    assert_ok(lm_utf8_feed(&s, pieces[i], strlen(pieces[i]), &out));
    assert_text(&out, want[i]);
  }
  lm_text_free(&out);
}

static void characters_that_span_tokens_come_out_whole(void** state) {
  check_stream((const char*[]){"\xF0\x9F", "\x98\x80"}, (const char*[]){"", "\xF0\x9F\x98\x80"}, 2);
  check_stream((const char*[]){"\xC4", "\x8F"}, (const char*[]){"", "\xC4\x8F"}, 2);
  check_stream((const char*[]){"a\xE4", "\xBD",
                               "\xA0"
                               "b\xC3"},
               (const char*[]){"a", "a",
                               "a\xE4\xBD\xA0"
                               "b"},
               3);
}

static void combining_marks_come_out_once(void** state) {
  check_stream((const char*[]){"e", "\xCC\x81", "x"},
               (const char*[]){"e", "e\xCC\x81", "e\xCC\x81x"}, 3);
}

static void bytes_that_cannot_become_a_character_are_replaced(void** state) {
  static const struct {
    const char *in, *want; /* want: what Python's bytes.decode("utf-8", "replace") gives */
  } rows[] = {
      {"\xFF", "\xEF\xBF\xBD"},
      {"a\x80z", "a\xEF\xBF\xBDz"},
      {"\xC3z", "\xEF\xBF\xBDz"},
      {"\xF0\x9F\x98z", "\xEF\xBF\xBDz"},
      {"\xF0\x9F\xC3\xA9", "\xEF\xBF\xBD\xC3\xA9"},
      {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"\xE2\x82", "\xEF\xBF\xBD"},
  };

  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
      struct lm_utf8_stream s = {0};
      struct lm_text out = {0};
      size_t n = strlen(rows[i].in), step = one_by_one ? 1 : n;
      for (size_t at = 0; at < n; at += step)
        assert_ok(lm_utf8_feed(&s, rows[i].in + at, step, &out));
      assert_ok(lm_utf8_finish(&s, &out));
      assert_text(&out, rows[i].want);
      lm_text_free(&out);
    }
}

static void valid_prefixes_end_where_the_standard_says(void** state) {
  assert_int_equal(lm_utf8_valid_prefix("", 0), 0);
  assert_int_equal(lm_utf8_valid_prefix("a\0b", 3), 3);
  assert_int_equal(lm_utf8_valid_prefix("0123456789abcdef\xC3", 17), 16);
  assert_int_equal(lm_utf8_valid_prefix("\xF4\x8F\xBF\xBF", 4), 4);
  assert_int_equal(lm_utf8_valid_prefix("\xED\x9F\xBF\xED\xA0\x80", 6), 3);
  assert_int_equal(lm_utf8_valid_prefix("\xE0\x9F\xBF", 3), 0);
  assert_int_equal(lm_utf8_char((const unsigned char*)"\xF0\x9F", 2), -2);
}

/* ---- form C ---- */

/* Expected texts: Python's unicodedata.normalize("NFC", ...). */
static void form_c_composes_what_the_standard_says(void** state) {
  static const struct {
    const char *in, *want;
  } rows[] = {
      {"", ""},
      {"plain", "plain"},
      {"e\xCC\x81", "\xC3\xA9"},
      {"e\xCC\x81\xCC\xA3", "\xE1\xBA\xB9\xCC\x81"}, /* marks change places */
      {"q\xCC\x87\xCC\xA3", "q\xCC\xA3\xCC\x87"},
      {"\xE2\x84\xAB", "\xC3\x85"},                             /* the angstrom sign */
      {"\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", "\xED\x95\x9C"}, /* Hangul L V T */
      {"\xED\x95\x98\xE1\x86\xAB", "\xED\x95\x9C"},             /* Hangul LV T */
      {"\xE0\xA5\x98", "\xE0\xA4\x95\xE0\xA4\xBC"},             /* excluded from composition */
      {"\xE0\xA7\x87\xE0\xA6\xBE", "\xE0\xA7\x8B"},             /* a starter that composes */
      {"\xCC\x81"
       "e",
       "\xCC\x81"
       "e"},
      {"a\xCC\x81\xCC\x81", "\xC3\xA1\xCC\x81"},
      {"\xEF\xA4\x80", "\xE8\xB1\x88"},
  };

  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct lm_text out = {0};
    assert_ok(lm_nfc(rows[i].in, strlen(rows[i].in), &out));
    assert_text(&out, rows[i].want);
    lm_text_free(&out);
  }
}

/* ---- stop strings ---- */

static const char* const stops[] = {"STOP", "<|im_end|>", "\n\n", "TOPPING"};

static void check_stop(const char* text, const char* want, int matched) {
  for (size_t step = 1; step <= strlen(text); step++) { /* however the text is cut */
    struct lm_stop* s;
    struct lm_text out = {0};
    assert_ok(lm_stop_new(&s, stops, 4));
    for (size_t at = 0, n = strlen(text); at < n; at += step)
      assert_ok(lm_stop_feed(s, text + at, n - at < step ? n - at : step, &out));
    assert_int_equal(lm_stop_matched(s), matched);
    assert_ok(lm_stop_finish(s, &out));
    assert_text(&out, want);
    lm_text_free(&out);
    lm_stop_free(s);
  }
}

static void stop_strings_end_the_text_before_them(void** state) {
  check_stop("hello STOP more", "hello ", 0);
  check_stop("hello", "hello", -1);
  check_stop("STOP", "", 0);
  check_stop("SSTOP", "S", 0);
  check_stop("STSTOP", "ST", 0);
  check_stop("a<|im_<|im_end|>b", "a<|im_", 1);
  check_stop("a\nb\n\nc", "a\nb", 2);
  check_stop("ends with STO", "ends with STO", -1);
  check_stop("STOPPING", "", 0); /* STOP ends first, although TOPPING would match too */
}

static void text_is_held_back_only_while_it_could_stop(void** state) {
  struct lm_stop* s;
  struct lm_text out = {0};

  assert_ok(lm_stop_new(&s, stops, 4));
  assert_ok(lm_stop_feed(s, "a ST", 4, &out));
  assert_text(&out, "a ");
  assert_ok(lm_stop_feed(s, "A", 1, &out));
  assert_text(&out, "a STA");
  assert_ok(lm_stop_feed(s, "STO", 3, &out));
  assert_text(&out, "a STA");
  assert_ok(lm_stop_feed(s, "PX", 2, &out));
  assert_text(&out, "a STA");
  assert_ok(lm_stop_feed(s, "later", 5, &out));
  assert_ok(lm_stop_finish(s, &out));
  assert_text(&out, "a STA");
  lm_stop_reset(s);
  assert_int_equal(lm_stop_matched(s), -1);
  assert_ok(lm_stop_feed(s, "again", 5, &out));
  assert_text(&out, "a STAagain");
  lm_text_free(&out);
  lm_stop_free(s);
}

static void of_strings_that_end_together_the_longest_wins(void** state) {
  struct lm_stop* s;
  struct lm_text out = {0};

  assert_ok(lm_stop_new(&s, (const char*[]){"c", "abc", "bc"}, 3));
  assert_ok(lm_stop_feed(s, "xabc", 4, &out));
  assert_int_equal(lm_stop_matched(s), 1);
  assert_text(&out, "x");
  lm_text_free(&out);
  lm_stop_free(s);
}

static void an_empty_stop_string_is_refused(void** state) {
  struct lm_stop* s = NULL;

  assert_int_equal(lm_stop_new(&s, (const char*[]){"a", ""}, 2), RP_ERR_ARGUMENT);
  assert_non_null(strstr(lm_error_text(), "Stop string 1"));
  assert_null(s);
}

/* ---- buffers and errors ---- */

static void impossible_sizes_are_out_of_memory(void** state) {
  struct lm_text t = {0};
  struct lm_ids v = {0};

  assert_ok(lm_text_append_str(&t, "abc"));
  assert_int_equal(lm_text_reserve(&t, SIZE_MAX), RP_ERR_MEMORY);
  assert_int_equal(lm_text_reserve(&t, SIZE_MAX - 3), RP_ERR_MEMORY);
  assert_int_equal(lm_ids_reserve(&v, SIZE_MAX / 2), RP_ERR_MEMORY);
  assert_text(&t, "abc");
  lm_text_free(&t);
  lm_ids_free(&v);
}

static void reading_a_missing_or_large_file_names_it(void** state) {
  struct lm_text t = {0};

  assert_ok(lm_text_append_str(&t, "x"));
  assert_int_equal(lm_text_read_file(&t, "/no/such/file", 10), RP_ERR_IO);
  assert_non_null(strstr(lm_error_text(), "/no/such/file"));
  assert_int_equal(lm_text_read_file(&t, "/proc/self/status", 10), RP_ERR_FORMAT);
  assert_int_equal(lm_text_read_file(&t, "/", 10), RP_ERR_IO);
  assert_text(&t, "x");
  lm_text_free(&t);
}

static void an_error_may_quote_the_one_before_it(void** state) {
  lm_fail(RP_ERR_IO, "inner %s", "%s%n");
  assert_int_equal(lm_fail(RP_ERR_FORMAT, "outer: %s", lm_error_text()), RP_ERR_FORMAT);
  assert_string_equal(lm_error_text(), "outer: inner %s%n");
  assert_int_equal(lm_error_code(), RP_ERR_FORMAT);
  lm_error_clear();
  assert_int_equal(lm_error_code(), RP_OK);
  assert_string_equal(lm_error_text(), "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(characters_that_span_tokens_come_out_whole),
      cmocka_unit_test(combining_marks_come_out_once),
      cmocka_unit_test(bytes_that_cannot_become_a_character_are_replaced),
      cmocka_unit_test(valid_prefixes_end_where_the_standard_says),
      cmocka_unit_test(form_c_composes_what_the_standard_says),
      cmocka_unit_test(stop_strings_end_the_text_before_them),
      cmocka_unit_test(text_is_held_back_only_while_it_could_stop),
      cmocka_unit_test(of_strings_that_end_together_the_longest_wins),
      cmocka_unit_test(an_empty_stop_string_is_refused),
      cmocka_unit_test(impossible_sizes_are_out_of_memory),
      cmocka_unit_test(reading_a_missing_or_large_file_names_it),
      cmocka_unit_test(an_error_may_quote_the_one_before_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
