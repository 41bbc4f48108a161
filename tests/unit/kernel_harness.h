/* Kernels without the rest of the library: operands in every layout, results with guarded edges.
 *
 * Elements are raw integers of their dtype's size. A tensor's values are given and read in row-major
 * order, whatever its layout in memory. */
#ifndef TESTS_KERNEL_HARNESS_H
#define TESTS_KERNEL_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/backend.h"
#include "base/err.h"
#include "core/shape.h"

enum layout { DENSE, TRANSPOSED, REVERSED, STEPPED, LAYOUTS };

struct tensor {
  struct view view;
  int shape[RPI_MAX_NDIM];
  int64_t stride[RPI_MAX_NDIM];
  char* memory; /* freed by tensor_free */
  char* first;  /* element 0 */
};

static inline void put_raw(void* at, size_t item, uint64_t x) { memcpy(at, &x, item); }
static inline uint64_t get_raw(const void* at, size_t item) {
  uint64_t x = 0;
  memcpy(&x, at, item);
  return x;
}

/* The address of the k-th element in row-major order. */
static inline char* tensor_at(const struct tensor* t, int64_t k) {
  int64_t at = 0;
  for (int i = t->view.ndim - 1; i >= 0; i--) {
    at += k % t->shape[i] * t->stride[i];
    k /= t->shape[i];
  }
  return t->first + at * (int64_t)rpi_dtype_size(t->view.dtype);
}

static inline uint64_t tensor_get(const struct tensor* t, int64_t k) {
  return get_raw(tensor_at(t, k), rpi_dtype_size(t->view.dtype));
}
static inline void tensor_put(struct tensor* t, int64_t k, uint64_t x) {
  put_raw(tensor_at(t, k), rpi_dtype_size(t->view.dtype), x);
}

static inline struct tensor* tensor_new(int dtype, const int* shape, int ndim, enum layout layout) {
  struct tensor* t = calloc(1, sizeof *t);
  int64_t step = layout == STEPPED ? 2 : 1, at = 0;
  for (int i = 0; i < ndim; i++) {
    int axis = layout == TRANSPOSED ? i : ndim - 1 - i;
    t->shape[axis] = shape[axis];
    t->stride[axis] = layout == REVERSED ? -step : step;
    if (layout == REVERSED && shape[axis]) at += step * (shape[axis] - 1);
    step *= layout == STEPPED ? shape[axis] + 1 : shape[axis];
  }
  t->memory = calloc((size_t)(step + 8), rpi_dtype_size(dtype));
  t->first = t->memory + at * (int64_t)rpi_dtype_size(dtype);
  t->view = (struct view){.shape = t->shape, .stride = t->stride, .dtype = (uint8_t)dtype,
                          .ndim = (uint8_t)ndim, .size = rpi_shape_size(shape, ndim)};
  t->view.is_row_major = rpi_is_row_major(t->stride, t->shape, ndim);
  return t;
}

static inline void tensor_free(struct tensor* t) {
  if (t) free(t->memory);
  free(t);
}

/* Values 0, 1, 2, ... */
static inline struct tensor* tensor_count(int dtype, const int* shape, int ndim, enum layout layout) {
  struct tensor* t = tensor_new(dtype, shape, ndim, layout);
  for (int64_t k = 0; k < t->view.size; k++) tensor_put(t, k, (uint64_t)k);
  return t;
}

static inline struct tensor* tensor_of(int dtype, const int* shape, int ndim, enum layout layout,
                                       const int64_t* values) {
  struct tensor* t = tensor_new(dtype, shape, ndim, layout);
  for (int64_t k = 0; k < t->view.size; k++) tensor_put(t, k, (uint64_t)values[k]);
  return t;
}

struct launch {
  int (*rule)(struct rule*);
  int (*kernel)(const struct call*);
  int nin, nattr;
  struct tensor* in[8];
  const int64_t* attr;
  bool in_place; /* output 0 is the memory of input 0, which is dense */
};

static inline int launch_rule(struct rule* r, const struct launch* l, struct operand* operand) {
  for (int i = 0; i < l->nin; i++)
    operand[i] = (struct operand){l->in[i]->shape, l->in[i]->view.ndim, l->in[i]->view.dtype};
  *r = (struct rule){.name = "test", .nin = l->nin, .in = operand, .attr = l->attr,
                     .nattr = l->nattr};
  return l->rule(r);
}

/* The rule's code, without running the kernel. */
static inline int launch_check(const struct launch* l) {
  struct rule r;
  struct operand operand[8];
  return launch_rule(&r, l, operand);
}

/* Run rule and kernel; the result is the caller's. Fails the test on an error or a write outside. */
static inline struct tensor* launch(const struct launch* l) {
  enum { GUARD = 64 };
  struct rule r;
  struct operand operand[8];
  struct view in[8];
  const void* src[8];
  int rc = launch_rule(&r, l, operand);
  if (rc) fail_msg("%s", rpi_error_text());
  struct tensor* out = tensor_new(r.out[0].dtype, r.out[0].shape.dim, r.out[0].shape.ndim, DENSE);
  size_t bytes = (size_t)out->view.size * rpi_dtype_size(r.out[0].dtype);
  free(out->memory);
  out->memory = malloc(bytes + 2 * GUARD);
  memset(out->memory, 0xA5, bytes + 2 * GUARD);
  out->first = out->memory + GUARD;
  for (int i = 0; i < l->nin; i++) {
    in[i] = l->in[i]->view;
    src[i] = l->in[i]->first;
  }
  if (l->in_place) {
    memcpy(out->first, src[0], bytes);
    src[0] = out->first;
  }
  struct call c = {.name = "test", .nin = l->nin, .nout = 1, .nattr = l->nattr, .in = in,
                   .out = &out->view, .src = src, .dst = (void*[]){out->first}, .attr = l->attr};
  rc = l->kernel(&c);
  if (rc) fail_msg("%s", rpi_error_text());
  for (int i = 0; i < GUARD; i++) {
    assert_int_equal((unsigned char)out->memory[i], 0xA5);
    assert_int_equal((unsigned char)out->first[bytes + (size_t)i], 0xA5);
  }
  return out;
}

#define DIMS(...) (int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define WORDS(...) (int64_t[]){__VA_ARGS__}
#define COUNT(...) (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static inline void expect_shape(const struct tensor* t, const int* dim, int ndim) {
  assert_int_equal(t->view.ndim, ndim);
  for (int i = 0; i < ndim; i++) assert_int_equal(t->shape[i], dim[i]);
}

/* The result's values, as signed integers of the dtype's size. */
static inline void expect_values(const struct tensor* t, const int64_t* want, int64_t n) {
  int shift = 64 - 8 * (int)rpi_dtype_size(t->view.dtype);
  assert_int_equal(t->view.size, n);
  for (int64_t k = 0; k < n; k++)
    assert_int_equal((int64_t)(tensor_get(t, k) << shift) >> shift, want[k]);
}

#endif
