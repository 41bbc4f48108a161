/* Settings of the process: how many threads compute. */
#ifndef REPRISE_RUNTIME_H
#define REPRISE_RUNTIME_H

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Use `threads` threads for the work inside an operation, the caller included (1 to 256); 0 asks for
 * the default: the CPUs this process may run on, or REPRISE_THREADS. Results never depend on it.
 * Takes effect at the next operation. Any thread. Returns 0, or non-zero for a bad count. */
int rp_set_num_threads(int threads);

/* The number of threads in use. */
int rp_get_num_threads(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
