/* The mlx-c 0.6.0 interface: lazy arrays, operations on them, transforms of functions, files.
 *
 * What holds for every function, unless its own comment says otherwise:
 * - A handle is one pointer in a struct passed by value. An empty handle has ctx == NULL; freeing
 *   it is fine, using it is an error. The owner of a handle frees it, once.
 * - 0 is success. Otherwise the error handler of the process (error.h) was called on this thread,
 *   and reprise/error.h has the error as data. Functions that return a handle return an empty one
 *   on failure; those that return a pointer, NULL.
 * - Results come first. `*res` must be initialised, is empty or holds a value which is replaced and
 *   released, and may be the same handle as an input. On failure it is left as it was.
 * - Inputs are borrowed: an operation keeps its own references, and the caller may free its handles
 *   as soon as the call returns.
 * - "may be empty" marks inputs that may be an empty handle, meaning that they are not given. A
 *   list is a pointer and a count; with a count of 0 the pointer may be anything.
 * - Operations only build a graph; mlx_eval (transforms.h), or reading a value, computes it. Shapes
 *   and dtypes are known and checked when the graph is built. Errors in the values are met by
 *   whoever evaluates.
 * - The stream `s` comes last and says where the operation runs; an empty one means the default
 *   stream of the default device. Streams mix freely.
 * - Axes count from the end when negative. Inputs of different shape broadcast and those of
 *   different dtype are promoted where the comment says "broadcast" and "promoted", by NumPy's
 *   rules; float16 with bfloat16 gives float32.
 * - Any function may be called from any thread. One handle variable must not be written by one
 *   thread while another uses that same variable. */
#ifndef MLX_C_MLX_H
#define MLX_C_MLX_H

#include "mlx/c/array.h"
#include "mlx/c/closure.h"
#include "mlx/c/compile.h"
#include "mlx/c/cuda.h"
#include "mlx/c/device.h"
#include "mlx/c/distributed.h"
#include "mlx/c/distributed_group.h"
#include "mlx/c/error.h"
#include "mlx/c/export.h"
#include "mlx/c/fast.h"
#include "mlx/c/fft.h"
#include "mlx/c/graph_utils.h"
#include "mlx/c/half.h"
#include "mlx/c/io.h"
#include "mlx/c/io_types.h"
#include "mlx/c/linalg.h"
#include "mlx/c/map.h"
#include "mlx/c/memory.h"
#include "mlx/c/metal.h"
#include "mlx/c/ops.h"
#include "mlx/c/optional.h"
#include "mlx/c/random.h"
#include "mlx/c/stream.h"
#include "mlx/c/string.h"
#include "mlx/c/transforms.h"
#include "mlx/c/transforms_impl.h"
#include "mlx/c/vector.h"
#include "mlx/c/version.h"

#endif
