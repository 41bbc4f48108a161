/* Sorted names and ranges: see index.h. */
#include "io/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int rpi_index_new(struct rpi_name_index* x, int64_t n) {
  x->at = rpi_alloc((size_t)n * sizeof *x->at);
  x->n = x->at ? n : 0;
  return x->at ? 0 : 1;
}

void rpi_index_free(struct rpi_name_index* x) {
  rpi_free(x->at);
  x->at = NULL;
  x->n = 0;
}

/* By name, then by place in the file, so that a repeat is told by its later occurrence. */
static int compare_names(const void* a, const void* b) {
  const struct rpi_name_entry *x = a, *y = b;
  int order = strcmp(x->name, y->name);

  return order ? order : (x->item > y->item) - (x->item < y->item);
}

int64_t rpi_index_sort(struct rpi_name_index* x) {
  if (x->n > 1) qsort(x->at, (size_t)x->n, sizeof *x->at, compare_names);
  for (int64_t i = 1; i < x->n; i++)
    if (strcmp(x->at[i - 1].name, x->at[i].name) == 0) return x->at[i].item;
  return -1;
}

int64_t rpi_index_find(const struct rpi_name_index* x, const char* name) {
  int64_t lo = 0, hi = x->n;

  while (lo < hi) {
    int64_t mid = lo + (hi - lo) / 2;
    int order = strcmp(name, x->at[mid].name);

    if (order == 0) return x->at[mid].item;
    if (order < 0)
      hi = mid;
    else
      lo = mid + 1;
  }
  return -1;
}

static int compare_ranges(const void* a, const void* b) {
  const struct rpi_byte_range *x = a, *y = b;

  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return (x->item > y->item) - (x->item < y->item);
}

int rpi_ranges_overlap(struct rpi_byte_range* r, int64_t n, int64_t* a, int64_t* b) {
  if (n > 1) qsort(r, (size_t)n, sizeof *r, compare_ranges);
  const struct rpi_byte_range* last = NULL; /* the non-empty one before */

  for (int64_t i = 0; i < n; i++) {
    if (r[i].begin == r[i].end) continue;
    if (last && last->end > r[i].begin) {
      *a = last->item;
      *b = r[i].item;
      return 1;
    }
    last = &r[i];
  }
  return 0;
}
