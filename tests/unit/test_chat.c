/* Chat templates against what Jinja renders (tests/golden/chat/make_goldens.py). Run from the root
 * of the repository. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lm/chat.h"
#include "lm/err.h"
#include "lm/json.h"

static void assert_ok(int err) {
  if (err) fail_msg("error %d: %s", err, lm_error_text());
}

static void check_talk(const struct lm_chat* c, const cJSON* talk, const char* name) {
  struct lm_message messages[8];
  struct lm_text out = {0};
  const cJSON* item;
  size_t n = 0;

  cJSON_ArrayForEach(item, lm_json_get(talk, "messages")) messages[n++] =
      (struct lm_message){lm_json_string(item, "role"), lm_json_string(item, "content")};
  assert_ok(lm_chat_render(c, messages, n, lm_json_bool(talk, "prompt", false), &out));
  if (strcmp(out.data, lm_json_string(talk, "text")) != 0)
    fail_msg("%s:\n%s\nnot\n%s", name, out.data, lm_json_string(talk, "text"));
  lm_text_free(&out);
}

static void templates_render_as_jinja_does_or_are_refused(void** state) {
  cJSON* rows = NULL;
  const cJSON *row, *talk;
  int talks = 0, refused = 0;

  assert_ok(lm_json_read(&rows, "tests/golden/chat/chat.json"));
  cJSON_ArrayForEach(row, rows) {
    const char* name = lm_json_string(row, "name");
    struct lm_chat* c = NULL;
    int err = lm_chat_new(&c, lm_json_string(row, "template"));
    if (lm_json_bool(row, "refused", false)) {
      if (err != RP_ERR_UNSUPPORTED) fail_msg("%s was accepted", name);
      assert_non_null(strstr(lm_error_text(), "--raw"));
      refused++;
      continue;
    }
    if (err) fail_msg("%s: %s", name, lm_error_text());
    cJSON_ArrayForEach(talk, lm_json_get(row, "talks")) {
      check_talk(c, talk, name);
      talks++;
    }
    lm_chat_free(c);
  }
  cJSON_Delete(rows);
  assert_true(talks > 100 && refused >= 8);
}

static const char smollm2[] =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
    "'<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
    "Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% endif %}";

static void smollm2_gets_its_default_system_text_only_without_one(void** state) {
  struct lm_chat* c;
  struct lm_text out = {0};

  assert_ok(lm_chat_new(&c, smollm2));
  assert_ok(lm_chat_render(c, (struct lm_message[]){{"user", "Hi"}}, 1, true, &out));
  assert_string_equal(
      out.data,
      "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by "
      "Hugging Face<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  lm_text_free(&out);
  assert_ok(
      lm_chat_render(c, (struct lm_message[]){{"system", ""}, {"user", "Hi"}}, 2, true, &out));
  assert_string_equal(out.data,
                      "<|im_start|>system\n<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
                      "<|im_start|>assistant\n");
  lm_text_free(&out);
  lm_chat_free(c);
}

static void a_model_without_a_template_is_refused_with_the_remedy(void** state) {
  struct lm_chat* c = NULL;

  assert_int_equal(lm_chat_new(&c, NULL), RP_ERR_UNSUPPORTED);
  assert_non_null(strstr(lm_error_text(), "--raw"));
  assert_null(c);
}

static void a_message_without_role_or_content_leaves_the_output_as_it_was(void** state) {
  struct lm_chat* c;
  struct lm_text out = {0};

  assert_ok(lm_chat_new(&c, smollm2));
  assert_ok(lm_text_append_str(&out, "before"));
  assert_int_equal(
      lm_chat_render(c, (struct lm_message[]){{"user", "x"}, {"user", NULL}}, 2, true, &out),
      RP_ERR_ARGUMENT);
  assert_string_equal(out.data, "before");
  lm_text_free(&out);
  lm_chat_free(c);
}

static void any_beginning_of_a_template_is_refused_or_read_without_harm(void** state) {
  char text[sizeof smollm2];

  for (size_t n = 0; n + 1 < sizeof smollm2; n++) {
    struct lm_chat* c = NULL;
    memcpy(text, smollm2, n);
    text[n] = '\0';
    assert_int_equal(lm_chat_new(&c, text), RP_ERR_UNSUPPORTED);
  }
}

static void a_literal_that_ends_in_a_backslash_is_read_without_harm(void** state) {
  struct lm_chat* c = NULL;
  char text[600] = "{{'";

  /* Every length, so that one of them fills its buffer to the last byte. */
  for (size_t n = 3; n + 2 < sizeof text; n++) {
    memset(text + 3, 'x', n - 3);
    memcpy(text + n, "\\", 2);
    assert_int_equal(lm_chat_new(&c, text), RP_ERR_UNSUPPORTED);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(templates_render_as_jinja_does_or_are_refused),
      cmocka_unit_test(smollm2_gets_its_default_system_text_only_without_one),
      cmocka_unit_test(a_model_without_a_template_is_refused_with_the_remedy),
      cmocka_unit_test(a_message_without_role_or_content_leaves_the_output_as_it_was),
      cmocka_unit_test(a_literal_that_ends_in_a_backslash_is_read_without_harm),
      cmocka_unit_test(any_beginning_of_a_template_is_refused_or_read_without_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
