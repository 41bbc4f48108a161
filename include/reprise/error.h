/* Errors of Reprise as data.
 *
 * Every function of the interface that fails returns a non-zero code (or an empty handle, or NULL)
 * and leaves a typed error for the calling thread, which rp_last_error() reads. The handler that
 * mlx_set_error_handler() installs sees the same message before the failing call returns. */
#ifndef REPRISE_ERROR_H
#define REPRISE_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* What kind of failure it was. Values are stable; new kinds are appended. */
typedef enum rp_error_code_ {
  RP_OK,
  RP_ERR_ARGUMENT,    /* an argument is outside what the function accepts, or a handle is empty */
  RP_ERR_SHAPE,       /* shapes do not fit each other or the operation */
  RP_ERR_DTYPE,       /* the operation does not accept this dtype */
  RP_ERR_INDEX,       /* an index or axis is out of range */
  RP_ERR_MEMORY,      /* an allocation failed or the memory limit was reached */
  RP_ERR_CALLBACK,    /* a function of the host returned an error */
  RP_ERR_TRACE,       /* a tracer was used where a value is needed, or outside its trace */
  RP_ERR_IO,          /* the system refused a file operation */
  RP_ERR_FORMAT,      /* a file or text does not follow its format */
  RP_ERR_NUMERIC,     /* the input has no answer, e.g. the inverse of a singular matrix */
  RP_ERR_UNSUPPORTED, /* valid, but not available in this build or on this machine */
  RP_ERR_INTERNAL,    /* a broken invariant of the library: please report it */
  RP_ERR_COUNT
} rp_error_code;

/* The last error of the calling thread, or RP_OK if none was raised yet. `*message` (may be NULL)
 * receives a text that stays valid until this thread's next failing call. Never fails. */
rp_error_code rp_last_error(const char** message);

/* A short lower-case name such as "shape" or "memory"; "unknown" for any other value. */
const char* rp_error_name(rp_error_code code);

/* Forget the calling thread's last error. */
void rp_clear_error(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
