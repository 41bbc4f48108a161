/* Names sorted for lookup, and byte ranges sorted to find overlaps: what both file formats check.
 */
#ifndef RPI_IO_INDEX_H
#define RPI_IO_INDEX_H

#include <stddef.h>
#include <stdint.h>

/* `at[i]` is the i-th entry in ascending order of name; names are borrowed. */
struct rpi_name_index {
  struct rpi_name_entry {
    const char* name;
    int64_t item;
  }* at;
  int64_t n;
};

/* Room for n names; non-zero when memory is short. Fill at[], then sort. */
int rpi_index_new(struct rpi_name_index* x, int64_t n);
void rpi_index_free(struct rpi_name_index* x);

/* Sort by name. Returns -1, or the item that repeats an earlier item's name. */
int64_t rpi_index_sort(struct rpi_name_index* x);

/* The item of that name, or -1. */
int64_t rpi_index_find(const struct rpi_name_index* x, const char* name);

struct rpi_byte_range {
  size_t begin, end; /* [begin, end) */
  int64_t item;
};

/* Sorts r[]. When two non-empty ranges share a byte, returns 1 with their items in `a` (the one
 * that begins first) and `b`; else 0. */
int rpi_ranges_overlap(struct rpi_byte_range* r, int64_t n, int64_t* a, int64_t* b);

#endif
