/* The kernels of the CPU: one function per PRIM row of ops.def, in the files of its family. */
#ifndef RPI_BACKEND_CPU_CPU_H
#define RPI_BACKEND_CPU_CPU_H

#include "backend/backend.h"

#define PRIM(name, min, max, outputs, flags, rule, ...) int rpi_cpu_##name(const struct call* c);
#include "op/ops.def"

#endif
