/* Element-wise kernels: every row x dtype x layout against single elements, groups against their
 * steps, instruction sets and threads against each other. Bits are compared; any NaN equals any
 * NaN. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/cpu/elem.h"
#include "backend/cpu/elem_kernel.h"
#include "backend/cpu/strided.h"
#include "base/thread.h"
#include "elem_reference.h"

/* Rows
 * ------------------------------------------------------------------------------------------ */

static const struct row {
  const char* name;
  int inputs, take, give;
} rows[RPI_ELEM_ROWS] = {
#define ELEM(name, inputs, take, give, expr, ...) \
  [RPI_OP_##name] = {#name, inputs, RPI_TAKE_##take, RPI_GIVE_##give},
#include "op/ops.def"
};

static bool row_takes(int op, int dtype) {
  static const char takes[][6] = {/* B U I F C */
                                  [RPI_TAKE_FLOAT] = "00010",  [RPI_TAKE_FLOATC] = "00011",
                                  [RPI_TAKE_REAL] = "11110",   [RPI_TAKE_ANY] = "11111",
                                  [RPI_TAKE_NUM] = "01111",    [RPI_TAKE_INT] = "11100",
                                  [RPI_TAKE_LOGIC] = "10000"};
  return rows[op].name && takes[rows[op].take][rpi_dtype_kind(dtype)] == '1';
}

static int row_gives(int op, int dtype) {
  if (rows[op].give == RPI_GIVE_BOOL) return RPI_BOOL;
  if (rows[op].give == RPI_GIVE_PART && dtype == RPI_COMPLEX64) return RPI_FLOAT32;
  return dtype;
}

/* Values
 * ---------------------------------------------------------------------------------------- */

static uint64_t state = 88172645463325252ull;
static uint64_t draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static double draw_float(void) {
  static const double special[] = {0, -0.0, 1, -1, 0.5, 2.5, INFINITY, -INFINITY, NAN,
                                   1e-40, 3e9, -3e9, 1e20};
  uint64_t r = draw();
  if (r % 4 == 0) return special[(r >> 8) % 13];
  return ((double)(r >> 12) / 4503599627370496.0 - 0.5) * (r % 4 == 1 ? 2.2 : 40);
}

static void draw_element(void* p, int dtype) {
  float f = (float)draw_float();
  double d = draw_float();
  struct rp_c64 c = {f, (float)d};
  uint64_t u = draw() % 3 ? draw() : draw() % 5;
  switch (dtype) {
    case RPI_BOOL: u &= 1; memcpy(p, &u, 1); break;
    case RPI_FLOAT16:
    case RPI_BFLOAT16: ref_narrow(dtype, p, f); break;
    case RPI_FLOAT32: memcpy(p, &f, 4); break;
    case RPI_FLOAT64: memcpy(p, &d, 8); break;
    case RPI_COMPLEX64: memcpy(p, &c, 8); break;
    default: memcpy(p, &u, rpi_dtype_size(dtype));
  }
}

static bool same_element(const void* a, const void* b, int dtype) {
  size_t n = rpi_dtype_size(dtype);
  if (!memcmp(a, b, n)) return true;
  const struct rp_c64 *ca = a, *cb = b;
  switch (dtype) {
    case RPI_FLOAT16:
    case RPI_BFLOAT16: return isnan(ref_widen(dtype, a)) && isnan(ref_widen(dtype, b));
    case RPI_FLOAT32: return isnan(*(const float*)a) && isnan(*(const float*)b);
    case RPI_FLOAT64: return isnan(*(const double*)a) && isnan(*(const double*)b);
    case RPI_COMPLEX64:
      return same_element(&ca->re, &cb->re, RPI_FLOAT32) &&
             same_element(&ca->im, &cb->im, RPI_FLOAT32);
    default: return false;
  }
}

/* Layouts
 * --------------------------------------------------------------------------------------- */

enum layout { CONTIGUOUS, TRANSPOSED, REVERSED, STEP2, ROW, COLUMN, ONE, SLICED, LAYOUTS };

struct sample {
  struct view view;
  int64_t stride[RPI_MAX_NDIM];
  char* memory;
  const char* first;
};

static void strides_of(struct sample* s, const int* shape, int ndim, enum layout layout,
                       int64_t* offset) {
  int64_t row[RPI_MAX_NDIM], step = 1;
  rpi_row_major(row, shape, ndim);
  *offset = 0;
  for (int d = 0; d < ndim; d++) {
    int64_t k = row[d];
    if (layout == TRANSPOSED) {
      k = step;
      step *= shape[d];
    }
    if (layout == STEP2) k *= 2;
    if (layout == SLICED && d + 1 < ndim) k += 3 * row[d];
    if (layout == REVERSED) {
      if (shape[d]) *offset += (shape[d] - 1) * k;
      k = -k;
    }
    if ((layout == ROW && d + 1 < ndim) || (layout == COLUMN && d + 1 == ndim) || layout == ONE)
      k = 0;
    s->stride[d] = k;
  }
}

static void make_sample(struct sample* s, const int* shape, int ndim, int dtype,
                        enum layout layout) {
  int64_t offset, size = rpi_shape_size(shape, ndim), room = size * 8 + 8;
  size_t item = rpi_dtype_size(dtype);
  strides_of(s, shape, ndim, layout, &offset);
  s->memory = malloc((size_t)room * item);
  for (int64_t i = 0; i < room; i++) draw_element(s->memory + (size_t)i * item, dtype);
  s->first = s->memory + (size_t)offset * item;
  s->view = (struct view){.shape = shape, .stride = s->stride, .size = size,
                          .dtype = (uint8_t)dtype, .ndim = (uint8_t)ndim,
                          .is_row_major = rpi_is_row_major(s->stride, shape, ndim)};
}

static const void* element(const struct sample* s, int64_t i) {
  int64_t at = 0;
  for (int d = s->view.ndim - 1; d >= 0; d--) {
    at += i % s->view.shape[d] * s->stride[d];
    i /= s->view.shape[d];
  }
  return s->first + at * (int64_t)rpi_dtype_size(s->view.dtype);
}

/* Running
 * --------------------------------------------------------------------------------------- */

static void run_group(const struct elem_group* g, const struct sample* in, void* const* dst,
                      const int* out_dtype) {
  struct rpi_arena mem = {0};
  struct view views[8], outs[8];
  const void* src[8];
  for (int i = 0; i < g->nin; i++) {
    views[i] = in[i].view;
    src[i] = in[i].first;
  }
  for (int i = 0; i < g->nout; i++)
    outs[i] = (struct view){.shape = g->shape, .size = rpi_shape_size(g->shape, g->ndim),
                            .ndim = (uint8_t)g->ndim, .dtype = (uint8_t)out_dtype[i]};
  struct elem_group group = *g;
  group.in = views;
  struct call c = {.name = "test", .nin = g->nin, .nout = g->nout, .in = views, .out = outs,
                   .src = src, .dst = dst};
  assert_int_equal(rpi_cpu_elem_prepare(&c.state, &group, &mem), 0);
  assert_int_equal(rpi_cpu_elem_run(&c), 0);
  rpi_arena_release(&mem);
}

static void run_step(const struct elem_step* s, const struct sample* in, void* dst) {
  struct elem_step step = *s;
  for (int i = 0; i < s->nin; i++) step.in[i] = i;
  struct elem_group g = {.ndim = in[0].view.ndim, .shape = in[0].view.shape, .nin = s->nin,
                         .nsteps = 1, .nout = 1, .step = &step, .out = &(int){s->nin}};
  run_group(&g, in, &dst, &(int){s->out_dtype});
}

static void check_row(int op, int dtype, const int* shape, int ndim, enum layout a, enum layout b) {
  struct sample in[2];
  int out = row_gives(op, dtype);
  make_sample(&in[0], shape, ndim, dtype, a);
  make_sample(&in[1], shape, ndim, dtype, b);
  int64_t size = in[0].view.size;
  size_t item = rpi_dtype_size(out);
  char* got = malloc((size_t)size * item + 16);
  memset(got + (size_t)size * item, 77, 16);
  struct elem_step s = {.op = op, .nin = rows[op].inputs, .in_dtype = (uint8_t)dtype,
                        .out_dtype = (uint8_t)out};
  run_step(&s, in, got);
  for (int64_t i = 0; i < size; i++) {
    uint64_t want[2] = {0};
    assert_int_equal(ref_row(op, dtype, out, want, element(&in[0], i), element(&in[1], i)), 0);
    if (!same_element(got + (size_t)i * item, want, out))
      fail_msg("%s of %s, layouts %d and %d, element %lld: got %llx, want %llx", rows[op].name,
               rpi_dtype_names[dtype], a, b, (long long)i,
               (unsigned long long)(*(uint64_t*)(got + (size_t)i * item)),
               (unsigned long long)want[0]);
  }
  for (int i = 0; i < 16; i++) assert_int_equal(got[(size_t)size * item + (size_t)i], 77);
  free(got);
  free(in[0].memory);
  free(in[1].memory);
}

static const int small[] = {3, 4, 5}, wide[] = {3, 2, 601}, empty[] = {3, 0, 2};

static void every_row_agrees_with_single_elements_in_every_layout(void** unused) {
  for (int op = 0; op < RPI_ELEM_ROWS; op++)
    for (int dtype = 0; dtype < RPI_DTYPE_COUNT; dtype++) {
      if (!row_takes(op, dtype)) continue;
      for (int a = 0; a < LAYOUTS; a++) {
        check_row(op, dtype, small, 3, a, (a + op) % LAYOUTS);
        if (a == CONTIGUOUS || a == (op + dtype) % LAYOUTS)
          check_row(op, dtype, wide, 3, a, (a + dtype) % LAYOUTS);
      }
      check_row(op, dtype, empty, 3, CONTIGUOUS, TRANSPOSED);
      check_row(op, dtype, NULL, 0, CONTIGUOUS, CONTIGUOUS);
    }
}

static void every_instruction_set_gives_the_same_bits(void** unused) {
  enum rpi_isa best = rpi_isa();
  for (int isa = 0; isa < (int)best; isa++) {
    rpi_isa_limit((enum rpi_isa)isa);
    for (int op = 0; op < RPI_ELEM_ROWS; op++)
      for (int dtype = 0; dtype < RPI_DTYPE_COUNT; dtype++)
        if (row_takes(op, dtype)) check_row(op, dtype, wide, 3, CONTIGUOUS, ROW);
  }
  rpi_isa_limit(best);
}

/* Conversions
 * ------------------------------------------------------------------------------------ */

/* Written out anew: by the documented rules, over long double, which holds every source exactly. */
static void ref_cast(int from, int to, void* out, const void* p) {
  long double v = 0;
  float im = 0;
  switch (from) {
    case RPI_BOOL:
    case RPI_UINT8: v = *(const uint8_t*)p; break;
    case RPI_UINT16: v = *(const uint16_t*)p; break;
    case RPI_UINT32: v = *(const uint32_t*)p; break;
    case RPI_UINT64: v = *(const uint64_t*)p; break;
    case RPI_INT8: v = *(const int8_t*)p; break;
    case RPI_INT16: v = *(const int16_t*)p; break;
    case RPI_INT32: v = *(const int32_t*)p; break;
    case RPI_INT64: v = *(const int64_t*)p; break;
    case RPI_FLOAT32: v = *(const float*)p; break;
    case RPI_FLOAT64: v = *(const double*)p; break;
    case RPI_COMPLEX64: v = ((const float*)p)[0]; im = ((const float*)p)[1]; break;
    default: v = ref_widen(from, p);
  }
  int kind = rpi_dtype_kind(to), bits = rpi_dtype_bytes[to] * 8;
  uint64_t word = 0;
  float f = (float)v;
  double d = (double)v;
  if (to == RPI_BOOL) {
    word = v != 0 || im != 0;
  } else if (kind == RPI_KIND_U || kind == RPI_KIND_I) {
    long double lo = kind == RPI_KIND_I ? -ldexpl(1, bits - 1) : 0;
    long double hi = ldexpl(1, kind == RPI_KIND_I ? bits - 1 : bits) - 1;
    if (rpi_dtype_is_inexact(from)) v = isnan(v) ? 0 : v < lo ? lo : v > hi ? hi : truncl(v);
    word = v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
  } else if (to == RPI_FLOAT16 || to == RPI_BFLOAT16) {
    uint16_t h = to == RPI_FLOAT16 ? rp_f32_to_f16(f) : rp_f32_to_bf16(f);
    if (from == RPI_FLOAT64) h = to == RPI_FLOAT16 ? rp_f64_to_f16(d) : rp_f64_to_bf16(d);
    if (from == to) memcpy(&h, p, 2);
    word = h;
  } else if (to == RPI_FLOAT64) {
    memcpy(&word, &d, 8);
  } else {
    memcpy(&word, &f, 4);
    if (to == RPI_COMPLEX64 && from == RPI_COMPLEX64) memcpy((char*)&word + 4, &im, 4);
  }
  memcpy(out, &word, rpi_dtype_size(to));
}

static void check_cast(int from, int to, enum layout layout) {
  struct sample in;
  make_sample(&in, wide, 3, from, layout);
  size_t item = rpi_dtype_size(to);
  char* got = malloc((size_t)in.view.size * item);
  struct elem_step s = {.op = RPI_OP_astype, .nin = 1, .in_dtype = (uint8_t)from,
                        .out_dtype = (uint8_t)to};
  run_step(&s, &in, got);
  for (int64_t i = 0; i < in.view.size; i++) {
    uint64_t want;
    ref_cast(from, to, &want, element(&in, i));
    if (!same_element(got + (size_t)i * item, &want, to))
      fail_msg("%s to %s, layout %d, element %lld", rpi_dtype_names[from], rpi_dtype_names[to],
               layout, (long long)i);
  }
  free(got);
  free(in.memory);
}

static void every_pair_of_dtypes_converts_by_the_rules(void** unused) {
  enum rpi_isa best = rpi_isa();
  for (int isa = 0; isa <= (int)best; isa++) {
    rpi_isa_limit((enum rpi_isa)isa);
    for (int from = 0; from < RPI_DTYPE_COUNT; from++)
      for (int to = 0; to < RPI_DTYPE_COUNT; to++) {
        check_cast(from, to, CONTIGUOUS);
        check_cast(from, to, (enum layout)((from + to) % LAYOUTS));
      }
  }
  rpi_isa_limit(best);
}

static void a_cast_to_int32_saturates_and_takes_nan_to_zero(void** unused) { /* N36 */
  const float x[4] = {NAN, INFINITY, -INFINITY, 3e9f};
  int32_t got[4];
  struct sample in = {.first = (const char*)x, .stride = {1}};
  in.view = (struct view){.shape = (int[]){4}, .stride = in.stride, .size = 4, .dtype = RPI_FLOAT32,
                          .ndim = 1, .is_row_major = true};
  struct elem_step s = {.op = RPI_OP_astype, .nin = 1, .in_dtype = RPI_FLOAT32,
                        .out_dtype = RPI_INT32};
  run_step(&s, &in, got);
  assert_int_equal(got[0], 0);
  assert_int_equal(got[1], INT32_MAX);
  assert_int_equal(got[2], INT32_MIN);
  assert_int_equal(got[3], INT32_MAX);
}

static void runs_convert_to_float_and_back(void** unused) {
  enum { N = 700 };
  for (int dtype = 0; dtype < RPI_DTYPE_COUNT; dtype++) {
    char x[N * 8], back[N * 8];
    double d[N];
    float f[N];
    for (int i = 0; i < N; i++) {
      draw_element(x + i * rpi_dtype_bytes[dtype], dtype);
    }
    rpi_cpu_to_f32(f, x, dtype, N);
    rpi_cpu_to_f64(d, x, dtype, N);
    for (int i = 0; i < N; i++) {
      float wf;
      double wd;
      ref_cast(dtype, RPI_FLOAT32, &wf, x + i * rpi_dtype_bytes[dtype]);
      ref_cast(dtype, RPI_FLOAT64, &wd, x + i * rpi_dtype_bytes[dtype]);
      assert_true(same_element(&wf, &f[i], RPI_FLOAT32));
      assert_true(same_element(&wd, &d[i], RPI_FLOAT64));
    }
    rpi_cpu_from_f64(back, dtype, d, N);
    for (int i = 0; i < N; i++) {
      uint64_t want;
      ref_cast(RPI_FLOAT64, dtype, &want, &d[i]);
      assert_true(same_element(&want, back + i * rpi_dtype_bytes[dtype], dtype));
    }
    rpi_cpu_from_f32(back, dtype, f, N);
    for (int i = 0; i < N; i++) {
      uint64_t want;
      ref_cast(RPI_FLOAT32, dtype, &want, &f[i]);
      assert_true(same_element(&want, back + i * rpi_dtype_bytes[dtype], dtype));
    }
  }
}

/* select, round
 * ---------------------------------------------------------------------------------- */

static void select_takes_the_chosen_bits_in_every_layout(void** unused) {
  for (int dtype = 0; dtype < RPI_DTYPE_COUNT; dtype++)
    for (int a = 0; a < LAYOUTS; a++) {
      struct sample in[3];
      size_t item = rpi_dtype_size(dtype);
      make_sample(&in[0], wide, 3, RPI_BOOL, a);
      make_sample(&in[1], wide, 3, dtype, (enum layout)((a + 1) % LAYOUTS));
      make_sample(&in[2], wide, 3, dtype, (enum layout)((a + dtype) % LAYOUTS));
      char* got = malloc((size_t)in[0].view.size * item);
      struct elem_step s = {.op = RPI_OP_select, .nin = 3, .in_dtype = (uint8_t)dtype,
                            .out_dtype = (uint8_t)dtype};
      run_step(&s, in, got);
      for (int64_t i = 0; i < in[0].view.size; i++) {
        const struct sample* chosen = *(const uint8_t*)element(&in[0], i) ? &in[1] : &in[2];
        assert_memory_equal(got + (size_t)i * item, element(chosen, i), item);
      }
      free(got);
      for (int i = 0; i < 3; i++) free(in[i].memory);
    }
}

static void round_goes_to_even_at_halves(void** unused) {
  const float x[6] = {0.5f, 1.5f, -2.5f, 2.4f, INFINITY, -0.2f};
  const float want[6] = {0, 2, -2, 2, INFINITY, -0.0f};
  float got[6];
  struct sample in = {.first = (const char*)x, .stride = {1}};
  in.view = (struct view){.shape = (int[]){6}, .stride = in.stride, .size = 6, .dtype = RPI_FLOAT32,
                          .ndim = 1, .is_row_major = true};
  struct elem_step s = {.op = RPI_OP_round, .nin = 1, .in_dtype = RPI_FLOAT32,
                        .out_dtype = RPI_FLOAT32};
  run_step(&s, &in, got);
  assert_memory_equal(got, want, sizeof want);
}

/* Groups
 * ----------------------------------------------------------------------------------------- */

enum { GROUP_INPUTS = 4, GROUP_STEPS = 14, GROUP_VALUES = GROUP_INPUTS + GROUP_STEPS };

struct program {
  struct elem_group g;
  struct elem_step step[GROUP_STEPS];
  int out[4], out_dtype[4], dtype[GROUP_VALUES];
  struct sample value[GROUP_VALUES];
};

/* Any row that takes the dtype of a random value and, with two inputs, a second value of it. */
static void draw_step(struct program* p, int i) {
  struct elem_step* s = &p->step[i];
  int nvalues = GROUP_INPUTS + i;
  for (;;) {
    int x = (int)(draw() % (uint64_t)nvalues), y = (int)(draw() % (uint64_t)nvalues);
    int op = (int)(draw() % RPI_ELEM_ROWS), d = p->dtype[x];
    if (op == RPI_OP_astype || draw() % 6 == 0) {
      *s = (struct elem_step){.op = RPI_OP_astype, .nin = 1, .in = {x}, .in_dtype = (uint8_t)d,
                              .out_dtype = (uint8_t)(draw() % RPI_DTYPE_COUNT)};
      return;
    }
    if (!row_takes(op, d) || (rows[op].inputs == 2 && p->dtype[y] != d)) continue;
    *s = (struct elem_step){.op = op, .nin = rows[op].inputs, .in = {x, y}, .in_dtype = (uint8_t)d,
                            .out_dtype = (uint8_t)row_gives(op, d)};
    return;
  }
}

static void draw_program(struct program* p, const int* shape, int ndim) {
  static const int common[] = {RPI_FLOAT32, RPI_FLOAT16, RPI_BFLOAT16, RPI_INT32, RPI_BOOL,
                               RPI_FLOAT32, RPI_FLOAT64, RPI_INT8};
  memset(p, 0, sizeof *p);
  for (int i = 0; i < GROUP_INPUTS; i++) {
    p->dtype[i] = common[draw() % 8];
    make_sample(&p->value[i], shape, ndim, p->dtype[i], (enum layout)(draw() % LAYOUTS));
  }
  for (int i = 0; i < GROUP_STEPS; i++) {
    draw_step(p, i);
    p->dtype[GROUP_INPUTS + i] = p->step[i].out_dtype;
  }
  int last = GROUP_VALUES - 1;
  p->g = (struct elem_group){.ndim = ndim, .shape = shape, .nin = GROUP_INPUTS,
                             .nsteps = GROUP_STEPS, .step = p->step, .out = p->out};
  for (int v = GROUP_INPUTS; v <= last && p->g.nout < 4; v++)
    if (v == last || draw() % 5 == 0) p->out[p->g.nout++] = v;
  if (p->out[p->g.nout - 1] != last) p->out[p->g.nout - 1] = last;
  for (int i = 0; i < p->g.nout; i++) p->out_dtype[i] = p->dtype[p->out[i]];
}

static void run_step_by_step(struct program* p) {
  for (int i = 0; i < GROUP_STEPS; i++) {
    struct sample in[3], *out = &p->value[GROUP_INPUTS + i];
    for (int k = 0; k < p->step[i].nin; k++) in[k] = p->value[p->step[i].in[k]];
    make_sample(out, p->g.shape, p->g.ndim, p->step[i].out_dtype, CONTIGUOUS);
    run_step(&p->step[i], in, out->memory);
  }
}

static void check_outputs(const struct program* p, void* const* got) {
  for (int k = 0; k < p->g.nout; k++) {
    const struct sample* want = &p->value[p->out[k]];
    size_t item = rpi_dtype_size(p->out_dtype[k]);
    for (int64_t i = 0; i < want->view.size; i++)
      if (!same_element((char*)got[k] + (size_t)i * item, want->first + (size_t)i * item,
                        p->out_dtype[k]))
        fail_msg("output %d, element %lld of %lld, %s", k, (long long)i, (long long)want->view.size,
                 rpi_dtype_names[p->out_dtype[k]]);
  }
}

static void check_program(const int* shape, int ndim) {
  struct program p;
  void* got[4];
  draw_program(&p, shape, ndim);
  for (int k = 0; k < p.g.nout; k++)
    got[k] = malloc((size_t)rpi_shape_size(shape, ndim) * rpi_dtype_size(p.out_dtype[k]) + 1);
  run_step_by_step(&p);
  run_group(&p.g, p.value, got, p.out_dtype);
  check_outputs(&p, got);
  for (int i = 0; i < GROUP_VALUES; i++) free(p.value[i].memory);
  for (int k = 0; k < p.g.nout; k++) free(got[k]);
}

static void a_group_gives_the_bits_of_its_steps(void** unused) {
  static const int flat[] = {1700};
  for (int i = 0; i < 400; i++) {
    check_program(small, 3);
    check_program(wide, 3);
    check_program(flat, 1);
    check_program(NULL, 0);
  }
}

static void threads_do_not_change_a_group(void** unused) {
  static const int large[] = {30, 3000};
  for (int i = 0; i < 6; i++) {
    uint64_t start = state;
    rpi_set_threads(1);
    check_program(large, 2);
    state = start;
    rpi_set_threads(2);
    check_program(large, 2);
    rpi_set_threads(0);
  }
}

static void large_transposed_inputs_are_packed_and_give_the_same(void** unused) {
  static const int far[] = {700, 401};
  check_row(RPI_OP_add, RPI_FLOAT32, far, 2, TRANSPOSED, CONTIGUOUS);
  check_row(RPI_OP_multiply, RPI_FLOAT32, far, 2, TRANSPOSED, TRANSPOSED);
  check_row(RPI_OP_less, RPI_COMPLEX64, far, 2, COLUMN, TRANSPOSED);
  for (int i = 0; i < 3; i++) check_program(far, 2);
}

/* Every output that may lie in an input's memory does, and the input is read again by later
 * steps. */
static void outputs_may_be_the_memory_of_inputs(void** unused) {
  enum { N = 1400 };
  float a[N], b[N], sum[N], product[N];
  for (int i = 0; i < N; i++) {
    a[i] = (float)i;
    b[i] = 0.5f;
    sum[i] = a[i] + b[i];
    product[i] = sum[i] * a[i];
  }
  enum { F = RPI_FLOAT32 };
  struct elem_step step[2] = {
      {.op = RPI_OP_add, .nin = 2, .in = {0, 1}, .in_dtype = F, .out_dtype = F},
      {.op = RPI_OP_multiply, .nin = 2, .in = {2, 0}, .in_dtype = F, .out_dtype = F}};
  int shape[1] = {N};
  struct sample in[2] = {{.first = (char*)a, .stride = {1}}, {.first = (char*)b, .stride = {1}}};
  for (int i = 0; i < 2; i++)
    in[i].view = (struct view){.shape = shape, .stride = in[i].stride, .size = N,
                               .dtype = F, .ndim = 1, .is_row_major = true};
  struct elem_group g = {.ndim = 1, .shape = shape, .nin = 2, .nsteps = 2, .nout = 2, .step = step,
                         .out = (int[]){2, 3}};
  run_group(&g, in, (void*[]){a, b}, (int[]){RPI_FLOAT32, RPI_FLOAT32});
  assert_memory_equal(a, sum, sizeof a);
  assert_memory_equal(b, product, sizeof b);
  run_step(&step[0], in, a);
  for (int i = 0; i < N; i++) assert_true(a[i] == sum[i] + product[i]);
}

/* A cast chain inside a group converts; it never reinterprets. C03 */
static void a_fused_chain_of_casts_converts_every_time(void** unused) {
  const uint16_t x[2] = {10, 20};
  float got[2];
  enum { U = RPI_UINT16, I = RPI_INT32, F = RPI_FLOAT32 };
  struct elem_step step[2] = {
      {.op = RPI_OP_astype, .nin = 1, .in = {0}, .in_dtype = U, .out_dtype = I},
      {.op = RPI_OP_astype, .nin = 1, .in = {1}, .in_dtype = I, .out_dtype = F}};
  int shape[2] = {2, 1};
  struct sample in = {.first = (const char*)x, .stride = {1, 1}};
  in.view = (struct view){.shape = shape, .stride = in.stride, .size = 2, .dtype = U,
                          .ndim = 2, .is_row_major = true};
  struct elem_group g = {.ndim = 2, .shape = shape, .nin = 1, .nsteps = 2, .nout = 1, .step = step,
                         .out = (int[]){2}};
  run_group(&g, &in, (void*[]){got}, (int[]){RPI_FLOAT32});
  assert_true(got[0] == 10 && got[1] == 20);
}

/* Strided copies
 * ----------------------------------------------------------------------------------- */

static void check_pack(const int* shape, int ndim, int dtype, enum layout layout) {
  struct sample in;
  size_t item = rpi_dtype_size(dtype);
  make_sample(&in, shape, ndim, dtype, layout);
  char* got = malloc((size_t)in.view.size * item + 8);
  assert_int_equal(rpi_cpu_pack(got, in.first, &in.view), 0);
  for (int64_t i = 0; i < in.view.size; i++)
    if (memcmp(got + (size_t)i * item, element(&in, i), item))
      fail_msg("%s, layout %d, element %lld", rpi_dtype_names[dtype], layout, (long long)i);
  free(got);
  free(in.memory);
}

static void pack_copies_every_layout(void** unused) {
  static const int dtypes[] = {RPI_BOOL, RPI_FLOAT16, RPI_FLOAT32, RPI_COMPLEX64};
  static const int square[] = {70, 45}, deep[] = {2, 1, 37, 3, 1, 5}, large[] = {300, 7, 41},
                   thin[] = {1, 9, 1};
  for (int i = 0; i < 4; i++)
    for (int layout = 0; layout < LAYOUTS; layout++) {
      check_pack(square, 2, dtypes[i], layout);
      check_pack(deep, 6, dtypes[i], layout);
      check_pack(large, 3, dtypes[i], layout);
      check_pack(thin, 3, dtypes[i], layout);
      check_pack(empty, 3, dtypes[i], layout);
      check_pack(NULL, 0, dtypes[i], layout);
    }
}

static void neighbouring_axes_merge_when_one_stride_serves_both(void** unused) {
  const int64_t a[4] = {60, 20, 5, 1}, b[4] = {0, 0, 1, 0};
  int64_t extent[4], sa[4], sb[4];
  const int shape[4] = {2, 3, 4, 5};
  struct view v[2] = {{.shape = shape, .stride = a, .ndim = 4},
                      {.shape = shape, .stride = b, .ndim = 4}};
  assert_int_equal(rpi_nest_joint(extent, (int64_t*[]){sa, sb}, v, 2), 3);
  assert_int_equal(extent[0], 5);
  assert_int_equal(extent[1], 4);
  assert_int_equal(extent[2], 6);
  assert_int_equal(sa[2], 20);
  assert_int_equal(sb[2], 0);
  assert_int_equal(rpi_nest_joint(extent, (int64_t*[]){sa}, v, 1), 1);
  assert_int_equal(extent[0], 120);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_row_agrees_with_single_elements_in_every_layout),
      cmocka_unit_test(every_instruction_set_gives_the_same_bits),
      cmocka_unit_test(every_pair_of_dtypes_converts_by_the_rules),
      cmocka_unit_test(a_cast_to_int32_saturates_and_takes_nan_to_zero),
      cmocka_unit_test(runs_convert_to_float_and_back),
      cmocka_unit_test(select_takes_the_chosen_bits_in_every_layout),
      cmocka_unit_test(round_goes_to_even_at_halves),
      cmocka_unit_test(a_group_gives_the_bits_of_its_steps),
      cmocka_unit_test(threads_do_not_change_a_group),
      cmocka_unit_test(large_transposed_inputs_are_packed_and_give_the_same),
      cmocka_unit_test(outputs_may_be_the_memory_of_inputs),
      cmocka_unit_test(a_fused_chain_of_casts_converts_every_time),
      cmocka_unit_test(pack_copies_every_layout),
      cmocka_unit_test(neighbouring_axes_merge_when_one_stride_serves_both),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
