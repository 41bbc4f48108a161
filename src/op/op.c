/* The definitions, pasted from the table. */
#include "op/op.h"

#include "base/err.h"

enum { INPLACE = RPI_INPLACE, ALIAS = RPI_ALIAS };

const struct op_def rpi_ops[RPI_OP_COUNT] = {
#define ELEM(name, inputs, take, give, expr, ...) \
  {#name, RPI_ELEM, 0, RPI_TAKE_##take, RPI_GIVE_##give, inputs, inputs, 1, rpi_rule_elem, NULL},
#define ELEMX(name, inputs, ...) \
  {#name, RPI_ELEM, 0, 0, 0, inputs, inputs, 1, rpi_rule_##name, NULL},
#define VIEW(name, inputs, shape_rule, view_fn, ...)       \
  {#name, RPI_VIEW, 0, 0, 0, inputs, inputs, 1, rpi_rule_##shape_rule, rpi_view_##view_fn},
#define PRIM(name, min, max, outputs, flags, shape_rule, ...) \
  {#name, RPI_PRIM, flags, 0, 0, min, max, outputs, rpi_rule_##shape_rule, NULL},
#include "op/ops.def"
};

int rpi_rule_run(struct rule* r) {
  const struct op_def* def = &rpi_ops[r->op];
  if (!r->name) r->name = def->name;
  if (r->nin < def->min_in || r->nin > def->max_in)
    return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d inputs; expected %d to %d.", r->name, r->nin,
                    def->min_in, def->max_in);
  return def->rule(r);
}

int rpi_rule_call(struct rule* r) {
  return rpi_fail(RP_ERR_INTERNAL, "[%s] The results of a call come with its program.", r->name);
}
