/* string.h: texts owned by the library. */
#include <string.h>

#include "api/call.h"
#include "api/text.h"
#include "base/err.h"
#include "base/mem.h"

struct string_handle {
  struct lock lock;
  struct text* text;
};

struct text* rpi_text_new(const char* bytes, size_t n) {
  struct text* t = rpi_alloc(sizeof *t + n + 1);
  if (!t) {
    rpi_fail_memory("a text", sizeof *t + n + 1);
    return NULL;
  }
  atomic_init(&t->refs, 1);
  if (n) memcpy(t->at, bytes, n);
  t->at[n] = '\0';
  return t;
}

void rpi_text_release(struct text* t) {
  if (t && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1) rpi_free(t);
}

int rpi_string_set_text(mlx_string* res, struct text* t) {
  struct string_handle* s = res->ctx;
  if (!t) return rpi_error_code();
  if (!s) {
    s = rpi_calloc(1, sizeof *s);
    if (!s) {
      rpi_text_release(t);
      return rpi_fail_memory("a string handle", sizeof *s);
    }
    s->text = t;
    res->ctx = s;
    return 0;
  }
  rpi_lock(&s->lock);
  struct text* old = s->text;
  s->text = t;
  rpi_unlock(&s->lock);
  rpi_text_release(old);
  return 0;
}

int rpi_string_set(mlx_string* res, const char* text) {
  return rpi_string_set_text(res, rpi_text_new(text, strlen(text)));
}

/* The text with a reference of the caller's, or NULL after raising. */
static struct text* get_text(mlx_string str, const char* name) {
  struct string_handle* s = str.ctx;
  if (!s) {
    rpi_fail(RP_ERR_ARGUMENT, "[%s] The string handle is empty.", name);
    return NULL;
  }
  rpi_lock(&s->lock);
  struct text* t = rpi_text_retain(s->text);
  rpi_unlock(&s->lock);
  return t;
}

mlx_string mlx_string_new(void) { return (mlx_string){0}; }

mlx_string mlx_string_new_data(const char* str) {
  mlx_string s = {0};
  if (str) rpi_report(rpi_string_set(&s, str));
  return s;
}

int mlx_string_set(mlx_string* str, const mlx_string src) {
  return rpi_report(rpi_string_set_text(str, get_text(src, "string_set")));
}

const char* mlx_string_data(mlx_string str) {
  const struct string_handle* s = str.ctx;
  return s ? s->text->at : NULL;
}

int mlx_string_free(mlx_string str) {
  struct string_handle* s = str.ctx;
  if (!s) return 0;
  rpi_text_release(s->text);
  rpi_free(s);
  return 0;
}
