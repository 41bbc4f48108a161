/* The CPU's table of kernels. A PRIM row without a kernel is a link error, `call` excepted: a program
 * inside a program is the executor's. */
#include "backend/cpu/cpu.h"

#include "backend/cpu/elem.h"
#include "backend/cpu/strided.h"

#define rpi_cpu_call 0

const struct backend rpi_cpu = {
    .name = "cpu",
    .kernel =
        {
#define PRIM(name, min, max, outputs, flags, rule, ...) [RPI_OP_##name] = rpi_cpu_##name,
#include "op/ops.def"
        },
    .elem_prepare = rpi_cpu_elem_prepare,
    .elem_run = rpi_cpu_elem_run,
    .pack = rpi_cpu_pack,
};
