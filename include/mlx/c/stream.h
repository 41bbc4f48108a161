/* Streams: where operations run and in what order they are issued. */
#ifndef MLX_C_STREAM_H
#define MLX_C_STREAM_H

#include <stdbool.h>

#include "mlx/c/device.h"
#include "mlx/c/string.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* A stream of a device. */
typedef struct mlx_stream_ {
  void* ctx;
} mlx_stream;

/* An empty handle, which operations take for the default stream of the default device. */
mlx_stream mlx_stream_new(void);

/* A new stream on `dev`. Empty on failure. */
mlx_stream mlx_stream_new_device(mlx_device dev);

/* Make `*stream` the stream `src`. */
int mlx_stream_set(mlx_stream* stream, const mlx_stream src);

int mlx_stream_free(mlx_stream stream);

/* A text such as "Stream(Device(cpu, 0), 0)". */
int mlx_stream_tostring(mlx_string* str, mlx_stream stream);

/* Whether both name the same stream; two empty handles do. */
bool mlx_stream_equal(mlx_stream lhs, mlx_stream rhs);

int mlx_stream_get_device(mlx_device* dev, mlx_stream stream);
int mlx_stream_get_index(int* index, mlx_stream stream);

/* Wait until everything issued to the stream is computed. The first error met there is reported
 * here. */
int mlx_synchronize(mlx_stream stream);

/* The default stream of a device. Setting it changes that of the stream's own device, for this
 * process. */
int mlx_get_default_stream(mlx_stream* stream, mlx_device dev);
int mlx_set_default_stream(mlx_stream stream);

/* New handles to the default streams of the CPU and of the first GPU. */
mlx_stream mlx_default_cpu_stream_new(void);
mlx_stream mlx_default_gpu_stream_new(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
