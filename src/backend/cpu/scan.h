/* Steps of running reductions for one instruction set. */
#ifndef RPI_BACKEND_CPU_SCAN_H
#define RPI_BACKEND_CPU_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/dtype.h"

enum rpi_scan { RPI_SCAN_SUM, RPI_SCAN_PROD, RPI_SCAN_MIN, RPI_SCAN_MAX, RPI_SCAN_LOGSUMEXP,
                RPI_SCANS };

/* `out` may be `x`; what comes out is the running value after (inclusive) or before each element.
 */
struct rpi_scanner {
  /* n elements of one row, `step` (1 or -1) apart, and its running value. */
  void (*row)(void* out, const void* x, int64_t n, int64_t step, void* carry, bool inclusive);
  /* One element of each of n columns, and their running values. */
  void (*columns)(void* out, const void* x, int64_t n, void* carry, bool inclusive);
  uint64_t identity; /* its bits */
};

typedef struct rpi_scanner rpi_scanner_table[RPI_SCANS][RPI_DTYPE_COUNT];
extern const rpi_scanner_table rpi_scanners_scalar, rpi_scanners_avx2, rpi_scanners_avx512;

#endif
