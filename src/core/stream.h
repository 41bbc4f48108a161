/* Devices and streams as values. A stream is a label: the CPU executes every stream in the thread that
 * evaluates; a GPU stream without a GPU runs on the CPU. */
#ifndef RPI_CORE_STREAM_H
#define RPI_CORE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

enum rpi_device { RPI_CPU, RPI_GPU };

struct stream {
  int16_t device; /* enum rpi_device */
  int16_t device_index;
  int32_t index;
};

#endif
