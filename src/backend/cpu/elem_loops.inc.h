/* One loop per ELEM row for one dtype, pasted from ops.def, and their table.
 *
 * Before including, define
 *   ELEM_NAME(row)   name of a row's function         ELEM_TABLE  name of the table
 *   ELEM_T           type of x and y                  ELEM_MEM    type in memory
 *   ELEM_PART        type that PART rows store
 *   ELEM_HAS_FLOAT, _FLOATC, _REAL, _ANY, _NUM, _INT, _LOGIC   1 if rows that take this have
 *                    kernels here, else 0
 *   ELEM_IS_STRUCT   if ELEM_T is a structure
 * All of them are undefined at the end. */
#include "backend/cpu/elem_kernel.h"
#include "op/generic.h"

#ifndef ELEM_CAT
#define ELEM_CAT_(a, b) a##b
#define ELEM_CAT(a, b) ELEM_CAT_(a, b)
#define ELEM_IF_1(...) __VA_ARGS__
#define ELEM_IF_0(...)
#define ELEM_STORE_SAME ELEM_MEM
#define ELEM_STORE_BOOL uint8_t
#define ELEM_STORE_PART ELEM_PART
#endif

/* No element depends on another: an output that is an input's memory is read before it is
 * written. */
#define ELEM_LOOP _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)
#define ELEM_LOAD_1                    \
  const ELEM_MEM* a = in[0];           \
  ELEM_LOOP {                          \
    ELEM_T x = (ELEM_T)a[i];
#define ELEM_LOAD_2                    \
  const ELEM_MEM *a = in[0], *b = in[1]; \
  ELEM_LOOP {                          \
    ELEM_T x = (ELEM_T)a[i], y = (ELEM_T)b[i];
#ifdef ELEM_IS_STRUCT
#undef ELEM_LOAD_1
#undef ELEM_LOAD_2
#define ELEM_LOAD_1                    \
  const ELEM_MEM* a = in[0];           \
  ELEM_LOOP {                          \
    ELEM_T x = a[i];
#define ELEM_LOAD_2                    \
  const ELEM_MEM *a = in[0], *b = in[1]; \
  ELEM_LOOP {                          \
    ELEM_T x = a[i], y = b[i];
#endif

#define ELEM_DEFINE(name, inputs, give, expr)                                     \
  static void ELEM_NAME(name)(int64_t n, void* out, const void* const* in) {      \
    ELEM_STORE_##give* r = out;                                                   \
    ELEM_LOAD_##inputs r[i] = expr;                                               \
    }                                                                             \
  }

#define ELEMX(name, inputs, ...) ELEM_CAT(ELEM_ROW_, name)
#define ELEM_ROW_astype
#define ELEM_ROW_select

#define ELEM(name, inputs, take, give, expr, ...) \
  ELEM_CAT(ELEM_IF_, ELEM_HAS_##take)(ELEM_DEFINE(name, inputs, give, expr))
#define ELEM_ROW_round ELEM_DEFINE(round, 1, SAME, rp_round(x))
#include "op/ops.def"
#undef ELEM_ROW_round

#define ELEM(name, inputs, take, give, expr, ...) \
  ELEM_CAT(ELEM_IF_, ELEM_HAS_##take)([RPI_OP_##name] = ELEM_NAME(name), )
#define ELEMX(name, inputs, ...) ELEM_CAT(ELEM_ROW_, name)
#define ELEM_ROW_round [RPI_OP_round] = ELEM_NAME(round),
const rpi_elem_fn ELEM_TABLE[RPI_ELEM_ROWS] = {
#include "op/ops.def"
};
#undef ELEM_ROW_round
#undef ELEM_ROW_astype
#undef ELEM_ROW_select
#undef ELEM_DEFINE
#undef ELEM_LOAD_1
#undef ELEM_LOAD_2
#undef ELEM_LOOP
#undef ELEM_IS_STRUCT
#undef ELEM_NAME
#undef ELEM_TABLE
#undef ELEM_T
#undef ELEM_MEM
#undef ELEM_PART
#undef ELEM_HAS_FLOAT
#undef ELEM_HAS_FLOATC
#undef ELEM_HAS_REAL
#undef ELEM_HAS_ANY
#undef ELEM_HAS_NUM
#undef ELEM_HAS_INT
#undef ELEM_HAS_LOGIC
