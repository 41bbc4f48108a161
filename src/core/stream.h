/* Devices and streams as values. A stream is a label: the CPU executes every stream in the thread that
 * evaluates; a GPU stream without a GPU runs on the CPU. Defaults belong to the process, so that a
 * stream made on one thread serves every other. All functions may be called from any thread. */
#ifndef RPI_CORE_STREAM_H
#define RPI_CORE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

enum rpi_device { RPI_CPU, RPI_GPU };

struct device {
  int16_t type; /* enum rpi_device */
  int16_t index;
};

struct stream {
  struct device device;
  int32_t index;
};

struct device rpi_default_device(void);
void rpi_set_default_device(struct device d);
struct stream rpi_default_stream(struct device d);
void rpi_set_default_stream(struct stream s); /* for its device */
struct stream rpi_stream_new(struct device d); /* an index not given out before */

#endif
