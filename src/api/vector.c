/* vector.h: lists of arrays. Lists of lists, ints and texts are in files of their own. */
#include "api/call.h"
#include "base/err.h"

#define LIST vector_array
#define ITEM struct array*
#define VALUE const mlx_array
#define DATA const mlx_array*

static int take_item(struct array** out, mlx_array v, const char* name) {
  *out = rpi_handle_get(v, name);
  return *out ? 0 : rpi_error_code();
}
static void keep_item(struct array* a) { rpi_array_retain(a); }
static void drop_item(struct array* a) { rpi_array_release(a); }

#include "api/list.inc.h"

int mlx_vector_array_get(mlx_array* res, const mlx_vector_array vec, size_t idx) {
  struct array* a = NULL;
  int rc = find_item(&a, vec.ctx, idx, "vector_array_get");
  return rpi_report(rc ? rc : rpi_handle_set(res, a));
}

/* ---- for the rest of the interface ----------------------------------------------------------- */

static struct array** retain_items(struct array* const* at, int64_t n) {
  struct array** copy = new_items((size_t)n, "a list of arrays");
  for (int64_t i = 0; copy && i < n; i++) copy[i] = rpi_array_retain(at[i]);
  return copy;
}

struct vector_array* rpi_vector_new(struct array* const* at, int64_t n) {
  struct array** copy = retain_items(at, n);
  return copy ? new_list(copy, n) : NULL;
}

void rpi_vector_release(struct vector_array* v) { free_list(v); }

int rpi_vector_set(mlx_vector_array* res, struct array* const* at, int64_t n) {
  return set_items(res, retain_items(at, n), n);
}

int rpi_vector_get(struct array*** at, int64_t* n, mlx_vector_array v, const char* name) {
  return read_items(at, n, v.ctx, name);
}

void rpi_vector_drop(struct array** at, int64_t n) { drop_items(at, n); }
