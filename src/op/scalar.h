/* The scalar functions that every element-wise kernel calls, written once so that all paths give
 * the same bits: rp_NAMEf(float), rp_NAME(double), rp_OP_TYPE for integers, rp_OP_c64 for
 * complex64. scalar_base.h states the invariants; each part states its accuracy and special cases.
 * */
#ifndef RPI_OP_SCALAR_H
#define RPI_OP_SCALAR_H

#include "op/scalar_base.h"
#include "op/scalar_complex.h"
#include "op/scalar_f32.h"
#include "op/scalar_f64.h"
#include "op/scalar_half.h"
#include "op/scalar_int.h"

#endif
