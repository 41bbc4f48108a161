/* Planning an element-wise group: see elem_plan.h. */
#include "backend/cpu/elem_plan.h"

#include <string.h>

#include "backend/cpu/elem.h"
#include "base/err.h"

/* Split over threads from about 20 us of work; the unit is a float32 addition per element, 0.1
 * ns. */
enum { PARALLEL_WORK = 200000, MIN_CHUNK_BLOCKS = 16, MAX_CHUNK_BLOCKS = 64 };

/* Inputs from this size on whose neighbours lie this far apart are packed first. */
enum { FAR_BYTES = 1 << 20, FAR_STRIDE = 256 };

struct making {
  const struct elem_group* g;
  struct elem_plan* p;
  struct rpi_arena* mem;
  int* value_of; /* the group's value number to the plan's */
  int* output_of; /* the group's value number to output number, or -1 */
  int first_output; /* the first step that writes an output */
};

static int out_of_memory(void) { return rpi_fail_memory("an element-wise plan", 0); }

static bool is_half(int dtype) { return dtype == RPI_FLOAT16 || dtype == RPI_BFLOAT16; }

static const uint8_t row_work[RPI_ELEM_ROWS] = {
#define WORK_FLOAT 5
#define WORK_FLOATC 5
#define WORK_REAL 1
#define WORK_ANY 1
#define WORK_NUM 1
#define WORK_INT 1
#define WORK_LOGIC 1
#define ELEMX(name, inputs, ...) [RPI_OP_##name] = 1,
#define ELEM(name, inputs, take, give, expr, ...) [RPI_OP_##name] = WORK_##take,
#include "op/ops.def"
};

static int64_t step_work(const struct elem_step* s) {
  int64_t work = row_work[s->op];
  if (s->op == RPI_OP_remainder || s->op == RPI_OP_floor_divide || s->op == RPI_OP_power) work = 20;
  if (is_half(s->in_dtype) || is_half(s->out_dtype)) work += 2;
  return rpi_dtype_bytes[s->in_dtype] == 8 ? work * 4 : work;
}

static void set_chunk(struct elem_plan* p, const struct elem_group* g) {
  int64_t work = 0;
  for (int i = 0; i < g->nsteps; i++) work += step_work(&g->step[i]);
  p->chunk = p->size;
  if (p->size < PARALLEL_WORK / work) return;
  int64_t blocks = MAX_CHUNK_BLOCKS / work;
  if (blocks < MIN_CHUNK_BLOCKS) blocks = MIN_CHUNK_BLOCKS;
  p->chunk = blocks * RPI_ELEM_BLOCK;
}

/* One step ------------------------------------------------------------------------------------- */

static rpi_elem_fn kernel_of(const struct elem_step* s) {
  if (s->op == RPI_OP_astype) return rpi_elem_cast(s->in_dtype, s->out_dtype);
  return rpi_elem_kernel(s->op, s->in_dtype);
}

static bool make_direct(struct elem_plan* p, const struct elem_group* g) {
  const struct elem_step* s = &g->step[0];
  for (int i = 0; i < g->nin; i++)
    if (!g->in[i].is_row_major) return false;
  if (!(p->fn = kernel_of(s))) return false;
  p->nin = (uint8_t)s->nin;
  for (int i = 0; i < s->nin; i++) {
    p->map[i] = (uint8_t)s->in[i];
    p->item[i] = rpi_dtype_bytes[g->in[s->in[i]].dtype];
  }
  p->out_item = rpi_dtype_bytes[s->out_dtype];
  return true;
}

/* Lowering to lines ---------------------------------------------------------------------------- */

static int new_value(struct making* m, int dtype) {
  int v = m->p->nvalues++;
  m->p->value[v] = (struct elem_value){.place = RPI_ELEM_BUFFER, .item = rpi_dtype_bytes[dtype],
                                       .last = -1, .as_float = -1, .buffer = -1};
  return v;
}

static int emit(struct making* m, rpi_elem_fn fn, const int* in, int nin, int dtype, int output) {
  struct elem_plan* p = m->p;
  bool is_fixed = output < 0;
  int out = new_value(m, dtype);
  for (int i = 0; i < nin; i++) is_fixed = is_fixed && p->value[in[i]].place == RPI_ELEM_FIXED;
  struct elem_line* line = is_fixed ? &p->fixed[p->nfixed++] : &p->line[p->nlines];
  *line = (struct elem_line){.fn = fn, .nin = nin, .out = out};
  for (int i = 0; i < nin; i++) line->in[i] = in[i];
  for (int i = nin; i < 3; i++) line->in[i] = in[0];
  if (is_fixed) {
    p->value[out].place = RPI_ELEM_FIXED;
    return out;
  }
  for (int i = 0; i < nin; i++) p->value[in[i]].last = p->nlines;
  if (output >= 0) {
    p->value[out].place = RPI_ELEM_MOVING;
    p->value[out].is_output = true;
    p->value[out].operand = output;
    if (m->first_output < 0) m->first_output = p->nlines;
  }
  p->nlines++;
  return out;
}

static int as_float(struct making* m, int v, int dtype) {
  if (m->p->value[v].as_float < 0) {
    int f = emit(m, rpi_elem_cast(dtype, RPI_FLOAT32), &v, 1, RPI_FLOAT32, -1);
    m->p->value[v].as_float = f;
  }
  return m->p->value[v].as_float;
}

/* No kernel goes there directly: through float32. */
static int lower_cast(struct making* m, const struct elem_step* s, int v, int output) {
  int f = v;
  if (is_half(s->in_dtype))
    f = as_float(m, v, s->in_dtype);
  else if (s->in_dtype != RPI_FLOAT32)
    f = emit(m, rpi_elem_cast(s->in_dtype, RPI_FLOAT32), &v, 1, RPI_FLOAT32, -1);
  return emit(m, rpi_elem_cast(RPI_FLOAT32, s->out_dtype), &f, 1, s->out_dtype, output);
}

static int lower_half(struct making* m, const struct elem_step* s, int* in, int output) {
  rpi_elem_fn fn = rpi_elem_kernel(s->op, RPI_FLOAT32);
  if (!fn) return -1;
  for (int i = 0; i < s->nin; i++) in[i] = as_float(m, in[i], s->in_dtype);
  if (!is_half(s->out_dtype)) return emit(m, fn, in, s->nin, s->out_dtype, output);
  int f = emit(m, fn, in, s->nin, RPI_FLOAT32, -1);
  return emit(m, rpi_elem_cast(RPI_FLOAT32, s->out_dtype), &f, 1, s->out_dtype, output);
}

static int lower_step(struct making* m, int i) {
  const struct elem_step* s = &m->g->step[i];
  int in[3] = {0}, number = m->g->nin + i, output = m->output_of[number], v;
  for (int k = 0; k < s->nin; k++) in[k] = m->value_of[s->in[k]];
  rpi_elem_fn fn = kernel_of(s);
  if (fn)
    v = emit(m, fn, in, s->nin, s->out_dtype, output);
  else if (s->op == RPI_OP_astype)
    v = lower_cast(m, s, in[0], output);
  else
    v = is_half(s->in_dtype) ? lower_half(m, s, in, output) : -1;
  if (v < 0)
    return rpi_fail(RP_ERR_INTERNAL, "[elementwise] Operation %d has no kernel for %s.", s->op,
                    rpi_dtype_names[s->in_dtype]);
  m->value_of[number] = v;
  return 0;
}

/* Inputs --------------------------------------------------------------------------------------- */

static bool is_one_element(const struct view* v) {
  for (int d = 0; d < v->ndim; d++)
    if (v->stride[d] != 0 && v->shape[d] != 1) return false;
  return true;
}

static void place_inputs(struct making* m) {
  for (int i = 0; i < m->g->nin; i++) {
    const struct view* v = &m->g->in[i];
    struct elem_value* value = &m->p->value[new_value(m, v->dtype)];
    value->operand = i;
    value->place = v->is_row_major      ? RPI_ELEM_MOVING
                   : is_one_element(v) ? RPI_ELEM_FIXED
                                       : RPI_ELEM_LOADED;
    m->value_of[i] = i;
  }
}

/* Inputs that are read after an output was written: their memory might be that output's. */
static void mark_hazards(struct making* m) {
  for (int i = 0; i < m->g->nin; i++) {
    struct elem_value* v = &m->p->value[i];
    if (v->place == RPI_ELEM_MOVING && v->last > m->first_output) v->place = RPI_ELEM_LOADED;
  }
}

/* Gathering would touch a cache line per element, and lose it before its next element's turn. */
static bool is_far(const struct rpi_nest* n, int64_t size) {
  if (size * n->item < FAR_BYTES || n->extent[0] < 32) return false;
  if (n->stride[0] > -FAR_STRIDE && n->stride[0] < FAR_STRIDE) return false;
  for (int d = 1; d < n->ndim; d++)
    if (n->stride[d] == n->item && n->extent[d] >= 8) return true;
  return false;
}

static int make_load(struct making* m, int v) {
  const struct view* view = &m->g->in[v];
  struct elem_load* load = &m->p->load[m->p->nloads++];
  *load = (struct elem_load){.value = v, .input = v, .is_hazard = view->is_row_major};
  load->nest = rpi_arena_alloc(m->mem, sizeof *load->nest);
  if (!load->nest) return out_of_memory();
  rpi_nest_make(load->nest, view);
  if (is_far(load->nest, view->size)) {
    m->p->nloads--;
    m->p->far[m->p->nfar++] = v;
    m->p->value[v].place = RPI_ELEM_MOVING;
  }
  return 0;
}

/* Sort the values by what a run does with them. */
static int list_values(struct making* m) {
  struct elem_plan* p = m->p;
  for (int v = 0; v < p->nvalues; v++) {
    bool is_input = v < m->g->nin;
    if (is_input && p->value[v].place == RPI_ELEM_FIXED) p->scalar[p->nscalars++] = v;
    if (is_input && p->value[v].place == RPI_ELEM_LOADED && make_load(m, v))
      return rpi_error_code();
    if (p->value[v].place == RPI_ELEM_MOVING) p->moving[p->nmoving++] = v;
  }
  return 0;
}

/* Buffers -------------------------------------------------------------------------------------- */

struct pool {
  int64_t* free[2]; /* narrow, wide */
  int nfree[2];
  int64_t end;
};

static void take_buffer(struct pool* pool, struct elem_value* v) {
  int wide = v->item == 8;
  if (pool->nfree[wide]) {
    v->buffer = pool->free[wide][--pool->nfree[wide]];
  } else {
    v->buffer = pool->end;
    pool->end += wide ? RPI_ELEM_WIDE_SLOT : RPI_ELEM_SLOT;
  }
}

static void give_buffer(struct pool* pool, const struct elem_value* v) {
  int wide = v->item == 8;
  pool->free[wide][pool->nfree[wide]++] = v->buffer;
}

/* Give back the buffers that line `i` reads last, of operands whose item size is `item` or is
 * not. */
static void give_dying(struct making* m, struct pool* pool, int i, bool same, int item) {
  const struct elem_line* line = &m->p->line[i];
  for (int k = 0; k < line->nin; k++) {
    struct elem_value* v = &m->p->value[line->in[k]];
    bool has_buffer = v->place == RPI_ELEM_BUFFER || v->place == RPI_ELEM_LOADED;
    if (!has_buffer || v->last != i || (v->item == item) != same) continue;
    give_buffer(pool, v);
    v->last = -1; /* once, also for x * x */
  }
}

static int assign_buffers(struct making* m) {
  struct elem_plan* p = m->p;
  struct pool pool = {.end = 0};
  int64_t* room = rpi_arena_alloc(m->mem, sizeof *room * 2 * (size_t)p->nvalues);
  if (!room) return out_of_memory();
  pool.free[0] = room;
  pool.free[1] = room + p->nvalues;
  for (int v = 0; v < p->nvalues; v++)
    if (p->value[v].place == RPI_ELEM_FIXED || p->value[v].place == RPI_ELEM_LOADED)
      take_buffer(&pool, &p->value[v]);
  for (int i = 0; i < p->nlines; i++) {
    struct elem_value* out = &p->value[p->line[i].out];
    give_dying(m, &pool, i, true, out->item);
    if (out->place == RPI_ELEM_BUFFER) take_buffer(&pool, out);
    give_dying(m, &pool, i, false, out->item);
    if (out->place == RPI_ELEM_BUFFER && out->last < 0) give_buffer(&pool, out);
  }
  p->buffers = (size_t)pool.end;
  return 0;
}

/* The whole ------------------------------------------------------------------------------------ */

static void* take(char** at, size_t bytes) {
  void* p = *at;
  *at += (bytes + 7) & ~(size_t)7;
  return p;
}

/* Lines that the steps may become: with half formats, operands are widened and the result
 * narrowed. */
static size_t count_lines(const struct elem_group* g) {
  size_t n = 0;
  for (int i = 0; i < g->nsteps; i++) {
    const struct elem_step* s = &g->step[i];
    n += is_half(s->in_dtype) || is_half(s->out_dtype) ? (size_t)s->nin + 2 : 1;
  }
  return n;
}

static int reserve(struct making* m) {
  size_t nin = (size_t)m->g->nin, nlines = count_lines(m->g), nvalues = nin + nlines, nfixed = 0;
  size_t nnumbers = (size_t)m->g->nsteps + nin;
  struct elem_plan* p = m->p;
  for (size_t i = 0; i < nin; i++)
    if (is_one_element(&m->g->in[i])) nfixed = nlines;
  size_t bytes = nvalues * (sizeof *p->value + sizeof(int)) + (nlines + nfixed) * sizeof *p->line +
                 nin * (sizeof *p->load + 2 * sizeof(int)) + nnumbers * 2 * sizeof(int) + 64;
  char* at = rpi_arena_alloc(m->mem, bytes);
  if (!at) return out_of_memory();
  p->value = take(&at, nvalues * sizeof *p->value);
  p->line = take(&at, nlines * sizeof *p->line);
  p->fixed = take(&at, nfixed * sizeof *p->fixed);
  p->load = take(&at, nin * sizeof *p->load);
  p->scalar = take(&at, nin * sizeof(int));
  p->far = take(&at, nin * sizeof(int));
  p->moving = take(&at, nvalues * sizeof(int));
  m->value_of = take(&at, nnumbers * sizeof(int));
  m->output_of = take(&at, nnumbers * sizeof(int));
  return 0;
}

static int make_program(struct making* m) {
  const struct elem_group* g = m->g;
  int rc = reserve(m);
  if (rc) return rc;
  for (int v = 0; v < g->nin + g->nsteps; v++) m->output_of[v] = -1;
  for (int i = 0; i < g->nout; i++) m->output_of[g->out[i]] = i;
  place_inputs(m);
  for (int i = 0; i < g->nsteps && !rc; i++) rc = lower_step(m, i);
  if (rc) return rc;
  mark_hazards(m);
  if ((rc = list_values(m))) return rc;
  return assign_buffers(m);
}

int rpi_cpu_elem_prepare(void** state, const struct elem_group* g, struct rpi_arena* mem) {
  struct elem_plan* p = rpi_arena_alloc(mem, sizeof *p);
  if (!p) return out_of_memory();
  *state = p;
  p->size = rpi_shape_size(g->shape, g->ndim);
  if (p->size == 0) return 0;
  set_chunk(p, g);
  if (g->nsteps == 1 && make_direct(p, g)) return 0;
  struct making m = {.g = g, .p = p, .mem = mem, .first_output = -1};
  return make_program(&m);
}
