/* The tokenizer of a model folder as Hugging Face lays it out. */
#include <string.h>
#include <unistd.h>

#include "lm/err.h"
#include "lm/tokenizer_impl.h"

enum { TEMPLATE_MAX = 16 << 20 };

static int join_path(struct lm_text* out, const char* folder, const char* name) {
  int err = lm_text_append_str(out, folder);

  if (!err) err = lm_text_append(out, "/", 1);
  return err ? err : lm_text_append_str(out, name);
}

/* Newer exports keep the template in a file of its own, which then wins. */
static int read_template(struct lm_tokenizer* t, const char* path) {
  struct lm_text jinja = {0};
  int err = lm_text_read_file(&jinja, path, TEMPLATE_MAX);

  if (!err) err = lm_tokenizer_set_template(t, jinja.data);
  lm_text_free(&jinja);
  return err;
}

int lm_tokenizer_from_folder(struct lm_tokenizer** out, const char* folder) {
  struct lm_text json = {0}, config = {0}, jinja = {0};
  struct lm_tokenizer* t = NULL;

  int err = join_path(&json, folder, "tokenizer.json");
  if (!err) err = join_path(&config, folder, "tokenizer_config.json");
  if (!err) err = join_path(&jinja, folder, "chat_template.jinja");
  if (!err)
    err =
        lm_tokenizer_from_json(&t, json.data, access(config.data, F_OK) == 0 ? config.data : NULL);
  if (!err && access(jinja.data, F_OK) == 0) err = read_template(t, jinja.data);
  lm_text_free(&json);
  lm_text_free(&config);
  lm_text_free(&jinja);
  if (err)
    lm_tokenizer_free(t);
  else
    *out = t;
  return err;
}
