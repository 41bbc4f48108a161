/* vector.h: lists of texts. */
#include "api/vector_string.h"

#include <string.h>

#include "api/call.h"
#include "base/err.h"

struct vector_string {
  struct lock lock;
  RPI_VEC(struct text*) v;
};

#define LIST vector_string
#define ITEM struct text*
#define VALUE const char*
#define DATA const char**

static int take_item(struct text** out, const char* v, const char* name) {
  if (!v) return rpi_fail(RP_ERR_ARGUMENT, "[%s] A text is NULL.", name);
  *out = rpi_text_new(v, strlen(v));
  return *out ? 0 : rpi_error_code();
}
static void keep_item(struct text* t) { rpi_text_retain(t); }
static void drop_item(struct text* t) { rpi_text_release(t); }

#include "api/list.inc.h"

/* The list's own reference keeps the text: it is borrowed from there. */
int mlx_vector_string_get(char** res, const mlx_vector_string vec, size_t idx) {
  struct text* t = NULL;
  int rc = find_item(&t, vec.ctx, idx, "vector_string_get");
  if (rc) return rpi_report(rc);
  *res = t->at;
  rpi_text_release(t);
  return 0;
}

/* ---- for the rest of the interface ----------------------------------------------------------- */

struct text** rpi_texts_new(int64_t n) { return new_items((size_t)n, "a list of texts"); }

int rpi_texts_set(mlx_vector_string* res, struct text** at, int64_t n) {
  return set_items(res, at, n);
}

int rpi_texts_get(struct text*** at, int64_t* n, mlx_vector_string v, const char* name) {
  return read_items(at, n, v.ctx, name);
}

void rpi_texts_drop(struct text** at, int64_t n) { drop_items(at, n); }
