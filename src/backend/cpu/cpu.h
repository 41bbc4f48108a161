/* The kernels of the CPU: one function per PRIM row of ops.def, in the files of its family. */
#ifndef RPI_BACKEND_CPU_CPU_H
#define RPI_BACKEND_CPU_CPU_H

#include "backend/backend.h"

#define ELEM(name, inputs, take, give, expr)
#define ELEMX(name, inputs)
#define VIEW(name, inputs, rule, view)
#define PRIM(name, min, max, outputs, flags, rule) int rpi_cpu_##name(const struct call* c);
#include "op/ops.def"
#undef ELEM
#undef ELEMX
#undef VIEW
#undef PRIM

#endif
