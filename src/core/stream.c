/* The process's default device and streams: small values behind atomics. */
#include "core/stream.h"

#include <stdatomic.h>

static _Atomic(struct device) default_device;
/* Per device type; the index of a device beyond the first shares its type's default. */
static _Atomic(int32_t) default_stream[2];
static _Atomic(int32_t) last_stream = 1; /* 0 and 1 are the defaults of CPU and GPU */
static _Atomic(int32_t) has_default[2];

struct device rpi_default_device(void) { return atomic_load(&default_device); }
void rpi_set_default_device(struct device d) { atomic_store(&default_device, d); }

struct stream rpi_default_stream(struct device d) {
  int t = d.type == RPI_GPU;
  int32_t index = atomic_load(&has_default[t]) ? atomic_load(&default_stream[t]) : t;
  return (struct stream){d, index};
}

void rpi_set_default_stream(struct stream s) {
  int t = s.device.type == RPI_GPU;
  atomic_store(&default_stream[t], s.index);
  atomic_store(&has_default[t], 1);
}

struct stream rpi_stream_new(struct device d) {
  return (struct stream){d, atomic_fetch_add(&last_stream, 1) + 1};
}
