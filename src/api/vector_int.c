/* vector.h: lists of ints. */
#include "api/call.h"
#include "base/err.h"

struct vector_int {
  struct lock lock;
  RPI_VEC(int) v;
};

#define LIST vector_int
#define ITEM int
#define VALUE int
#define DATA int*

static int take_item(int* out, int v, const char* name) {
  *out = v;
  return 0;
}
static void keep_item(int v) { (void)v; }
static void drop_item(int v) { (void)v; }

#include "api/list.inc.h"

int mlx_vector_int_get(int* res, const mlx_vector_int vec, size_t idx) {
  return rpi_report(find_item(res, vec.ctx, idx, "vector_int_get"));
}
