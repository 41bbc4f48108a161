/* What an operation is: its number, its definition and the rules all rows share.
 *
 * A rule sees only shapes, dtypes and attributes, never arrays or data, so that the same rule serves
 * building, replay at a new size, and imported programs. Attributes are int64 words (doubles by their
 * bits): they hash, compare, print and serialize the same way for every operation. */
#ifndef RPI_OP_OP_H
#define RPI_OP_OP_H

#include <stdint.h>
#include <string.h>

#include "core/dtype.h"
#include "core/shape.h"

enum rpi_op {
#define ELEM(name, inputs, take, give, expr, ...) RPI_OP_##name,
#define ELEMX(name, inputs, ...) RPI_OP_##name,
#define VIEW(name, inputs, rule, view, ...) RPI_OP_##name,
#define PRIM(name, min, max, outputs, flags, rule, ...) RPI_OP_##name,
#include "op/ops.def"
  RPI_OP_COUNT
};

enum rpi_op_kind { RPI_ELEM, RPI_VIEW, RPI_PRIM };
enum rpi_op_flag { RPI_INPLACE = 1, RPI_ALIAS = 2 };
enum rpi_take { RPI_TAKE_FLOAT, RPI_TAKE_FLOATC, RPI_TAKE_REAL, RPI_TAKE_ANY, RPI_TAKE_NUM,
                RPI_TAKE_INT, RPI_TAKE_LOGIC };
enum rpi_give { RPI_GIVE_SAME, RPI_GIVE_BOOL, RPI_GIVE_PART };

/* An operand as rules see it. */
struct operand {
  const int* shape;
  int ndim;
  int dtype;
};

enum { RPI_RULE_OUTPUTS = 3 };

/* One use of a shape rule: `in` and `attr` are given, `out` is to be filled. */
struct rule {
  const char* name; /* for messages: the public function's name */
  int op, nin, nattr, nout;
  const struct operand* in;
  const int64_t* attr;
  struct {
    struct shape shape;
    int dtype;
  } out[RPI_RULE_OUTPUTS];
};

/* One use of a view rule: where the result lies in the first input's memory. */
struct view_rule {
  const char* name;
  struct operand in;
  const int64_t* in_stride;
  const int64_t* attr;
  int nattr;
  const struct shape* shape; /* of the result, from the shape rule */
  int dtype;                 /* of the result */
  int64_t stride[RPI_MAX_NDIM];
  int64_t offset; /* elements of the input's dtype, from its first element */
  bool needs_copy; /* set: call again on a row-contiguous copy of the input */
};

struct op_def {
  const char* name;
  uint8_t kind, flags, take, give;
  int min_in, max_in, nout;
  int (*rule)(struct rule* r);
  int (*view)(struct view_rule* v);
};

extern const struct op_def rpi_ops[RPI_OP_COUNT];

#define VIEW(name, inputs, shape_rule, view_fn, ...)  \
  int rpi_rule_##shape_rule(struct rule* r); \
  int rpi_view_##view_fn(struct view_rule* v);
#define PRIM(name, min, max, outputs, flags, shape_rule, ...) int rpi_rule_##shape_rule(struct rule* r);
#define ELEMX(name, inputs, ...) int rpi_rule_##name(struct rule* r);
#include "op/ops.def"
int rpi_rule_elem(struct rule* r); /* every ELEM row */

/* Run a row's rule after checking the number of inputs. */
int rpi_rule_run(struct rule* r);

/* Doubles among attributes. */
static inline int64_t rpi_attr_from_double(double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline double rpi_attr_to_double(int64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* Helpers for rules: set output 0 from an input's shape or from parts. */
static inline void rpi_rule_set_like(struct rule* r, int input, int dtype) {
  r->out[0].shape.ndim = r->in[input].ndim;
  memcpy(r->out[0].shape.dim, r->in[input].shape, (size_t)r->in[input].ndim * sizeof(int));
  r->out[0].dtype = dtype;
  r->nout = 1;
}

#endif
