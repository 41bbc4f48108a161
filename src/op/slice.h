/* Slices: how a start, a stop and a step meet an extent.
 *
 * The three words of an axis are kept as the caller wrote them, so that a slice can be replayed at
 * any size:
 *   start, stop   >= 0: from the beginning; < 0: from the end
 *   INT_MAX       as a stop: to the end; as a start of a negative step: from the last element
 *   INT_MIN       as a stop of a negative step: down to and including the first element
 *   step          not 0
 * They are resolved and clamped against the actual extent each time, as Python does. */
#ifndef RPI_OP_SLICE_H
#define RPI_OP_SLICE_H

#include <stdint.h>

enum { RPI_SLICE_WORDS = 3 };

/* The first index and the number of indices that `word` (start, stop, step) selects of `extent`.
 * The first is 0 if there are none. */
static inline void rpi_slice_resolve(int64_t* first, int64_t* count, const int64_t* word,
                                     int64_t extent) {
  int64_t start = word[0] < 0 ? word[0] + extent : word[0];
  int64_t stop = word[1] < 0 ? word[1] + extent : word[1];
  int64_t step = word[2], low = step < 0 ? -1 : 0, high = step < 0 ? extent - 1 : extent;
  start = start < low ? low : start > high ? high : start;
  stop = stop < low ? low : stop > high ? high : stop;
  int64_t distance = step < 0 ? start - stop : stop - start, stride = step < 0 ? -step : step;
  *count = distance > 0 ? (distance - 1) / stride + 1 : 0;
  *first = *count ? start : 0;
}

/* The words that select the same of `extent` and, where the caller named an end of the axis by its
 * size, keep meaning that end at other sizes. */
static inline void rpi_slice_words(int64_t* word, int start, int stop, int step, int extent) {
  word[0] = step < 0 && start >= extent - 1 ? INT32_MAX : start;
  word[1] = step > 0 && stop >= extent               ? INT32_MAX
            : step < 0 && (int64_t)stop + extent < 0 ? INT32_MIN
                                                     : stop;
  word[2] = step;
}

#endif
