/* Devices: the CPU, and GPUs by index.
 *
 * A GPU device can be named and used on a machine without one; its work then runs on the CPU. */
#ifndef MLX_C_DEVICE_H
#define MLX_C_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "mlx/c/string.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef enum mlx_device_type_ {
  MLX_CPU,
  MLX_GPU
} mlx_device_type;

/* A kind of device and an index. */
typedef struct mlx_device_ {
  void* ctx;
} mlx_device;

/* An empty handle. */
mlx_device mlx_device_new(void);

/* Device `index` (0 or more) of a type. Empty on failure. */
mlx_device mlx_device_new_type(mlx_device_type type, int index);

int mlx_device_free(mlx_device dev);

/* Make `*dev` the device `src`. */
int mlx_device_set(mlx_device* dev, const mlx_device src);

/* A text such as "Device(cpu, 0)". */
int mlx_device_tostring(mlx_string* str, mlx_device dev);

/* Whether type and index are equal; two empty handles are. */
bool mlx_device_equal(mlx_device lhs, mlx_device rhs);

int mlx_device_get_index(int* index, mlx_device dev);
int mlx_device_get_type(mlx_device_type* type, mlx_device dev);

/* The device whose default stream is used by operations that name none. Process-wide. */
int mlx_get_default_device(mlx_device* dev);
int mlx_set_default_device(mlx_device dev);

/* Whether the hardware is there; the number of devices of a type. */
int mlx_device_is_available(bool* avail, mlx_device dev);
int mlx_device_count(int* count, mlx_device_type type);

/* Properties -------------------------------------------------------------------------------- */

/* Named properties of a device, each a text or a size. */
typedef struct mlx_device_info_ {
  void* ctx;
} mlx_device_info;

/* An empty handle. */
mlx_device_info mlx_device_info_new(void);

/* Make `*info` the properties of `dev`. */
int mlx_device_info_get(mlx_device_info* info, mlx_device dev);

int mlx_device_info_free(mlx_device_info info);
int mlx_device_info_has_key(bool* exists, mlx_device_info info, const char* key);

/* Each returns 2, raising nothing, when there is no such key or it has the other type. A text is
 * borrowed until `info` is freed. Sizes are in the unit that the key names, bytes for memory. */
int mlx_device_info_is_string(bool* is_string, mlx_device_info info, const char* key);
int mlx_device_info_get_string(const char** value, mlx_device_info info, const char* key);
int mlx_device_info_get_size(size_t* value, mlx_device_info info, const char* key);

/* Make `*keys` the list of names. */
int mlx_device_info_get_keys(mlx_vector_string* keys, mlx_device_info info);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
