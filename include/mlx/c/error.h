/* How failures are reported to the host. reprise/error.h has the last error as data. */
#ifndef MLX_C_ERROR_H
#define MLX_C_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Receives the message, which is only valid during the call, and the `data` of the
 * installation. */
typedef void (*mlx_error_handler_func)(const char* msg, void* data);

/* Install the handler of the process; NULL puts the default back, which prints to stderr and
 * returns. The handler runs on the thread whose call failed, before that call returns; it may call
 * any function here. `data` is kept in either case; `dtor` (may be NULL) receives it once, when the
 * handler is replaced. */
void mlx_set_error_handler(mlx_error_handler_func handler, void* data, void (*dtor)(void*));

/* Raise an error of the host's own, e.g. in a callback. Format as of printf; `file` and `line` say
 * where. */
void _mlx_error(const char* file, const int line, const char* fmt, ...);

#define mlx_error(...) _mlx_error(__FILE__, __LINE__, __VA_ARGS__)

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
