/* Element-wise groups on the CPU, and conversions of contiguous runs for other kernels. */
#ifndef RPI_BACKEND_CPU_ELEM_H
#define RPI_BACKEND_CPU_ELEM_H

#include "backend/backend.h"

/* The slots of the backend's table: see struct backend. An output may be the memory of an input of
 * the same size that is row-major. */
int rpi_cpu_elem_prepare(void** state, const struct elem_group* g, struct rpi_arena* mem);
int rpi_cpu_elem_run(const struct call* c);

/* Contiguous conversions, as astype does them, of any dtype and any alignment. They cannot fail. */
void rpi_cpu_to_f32(float* dst, const void* src, int dtype, int64_t n);
void rpi_cpu_from_f32(void* dst, int dtype, const float* src, int64_t n);
void rpi_cpu_to_f64(double* dst, const void* src, int dtype, int64_t n);
void rpi_cpu_from_f64(void* dst, int dtype, const double* src, int64_t n); /* rounds once */

#endif
