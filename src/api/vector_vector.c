/* vector.h: lists of lists of arrays. An item is a counted snapshot of the list it was made of. */
#include <stdatomic.h>

#include "api/call.h"
#include "base/err.h"

struct row {
  _Atomic(int) refs;
  struct array** at;
  int64_t n;
};

struct vector_vector_array {
  struct lock lock;
  RPI_VEC(struct row*) v;
};

#define LIST vector_vector_array
#define ITEM struct row*
#define VALUE const mlx_vector_array
#define DATA const mlx_vector_array*

static int take_item(struct row** out, mlx_vector_array v, const char* name) {
  struct row* r = rpi_calloc(1, sizeof *r);
  if (!r) return rpi_fail_memory("a list of arrays", sizeof *r);
  int rc = rpi_vector_get(&r->at, &r->n, v, name);
  if (rc) {
    rpi_free(r);
    return rc;
  }
  atomic_init(&r->refs, 1);
  *out = r;
  return 0;
}

static void keep_item(struct row* r) {
  atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
}

static void drop_item(struct row* r) {
  if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1) return;
  rpi_vector_drop(r->at, r->n);
  rpi_free(r);
}

#include "api/list.inc.h"

int mlx_vector_vector_array_get(mlx_vector_array* res, const mlx_vector_vector_array vec,
                                size_t idx) {
  struct row* r = NULL;
  int rc = find_item(&r, vec.ctx, idx, "vector_vector_array_get");
  if (rc) return rpi_report(rc);
  rc = rpi_vector_set(res, r->at, r->n);
  drop_item(r);
  return rpi_report(rc);
}
