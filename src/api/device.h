/* Device handles, for device.c and stream.c. */
#ifndef RPI_API_DEVICE_H
#define RPI_API_DEVICE_H

#include "api/text.h"
#include "core/stream.h"
#include "mlx/c/device.h"

/* "Device(cpu, 0)" into buf of `n` bytes; returns buf. */
const char* rpi_device_text(char* buf, int n, struct device d);

/* The device of a handle; an empty one is an error. */
int rpi_device_get(struct device* out, mlx_device dev, const char* name);
/* Make *res name `d`. */
int rpi_device_set(mlx_device* res, struct device d);

#endif
