/* The version of Reprise. mlx_version() tells that of MLX whose interface and behaviour it has. */
#ifndef REPRISE_VERSION_H
#define REPRISE_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* "major.minor.patch", a constant. Any thread. */
const char* rp_version(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
