/* Running an element-wise group: chunks over threads, blocks within a chunk. See elem_plan.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "backend/cpu/elem.h"
#include "backend/cpu/elem_plan.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/thread.h"
#include "core/buffer.h"

/* A thread's block buffers: kept for its next call, freed when it ends. -------------------- */

struct scratch {
  void* memory;
  char* at; /* 64-byte aligned */
  size_t bytes;
};

static _Thread_local struct scratch scratch;
static pthread_key_t at_exit;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void make_key(void) { has_key = pthread_key_create(&at_exit, rpi_free) == 0; }

RPI_NOINLINE static char* grow_scratch(size_t bytes) {
  pthread_once(&once, make_key);
  if (!has_key) return NULL;
  void* memory = rpi_alloc(bytes + 64);
  if (!memory || pthread_setspecific(at_exit, memory)) {
    rpi_free(memory);
    return NULL;
  }
  rpi_free(scratch.memory);
  scratch.memory = memory;
  scratch.at = (char*)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
  scratch.bytes = bytes;
  return scratch.at;
}

static inline char* get_scratch(size_t bytes) {
  return bytes <= scratch.bytes ? scratch.at : grow_scratch(bytes);
}

/* One chunk ------------------------------------------------------------------------------------ */

struct run {
  const struct elem_plan* p;
  const struct call* c;
  void** at; /* where each value's block is */
  struct rpi_cursor* cursor;
  char* buffer;
};

static bool is_written(const struct call* c, const void* memory) {
  for (int i = 0; i < c->nout; i++)
    if (c->dst[i] == memory) return true;
  return false;
}

static void* place_of(const struct run* r, const struct elem_value* v, int64_t lo) {
  const void* first = v->is_output ? r->c->dst[v->operand] : r->c->src[v->operand];
  return (char*)first + lo * v->item;
}

/* Set up for the blocks from element `lo` on, of at most `n` elements each. */
static void begin(struct run* r, int64_t lo, int64_t n) {
  const struct elem_plan* p = r->p;
  for (int v = 0; v < p->nvalues; v++) r->at[v] = r->buffer + p->value[v].buffer;
  for (int i = 0; i < p->nmoving; i++)
    r->at[p->moving[i]] = place_of(r, &p->value[p->moving[i]], lo);
  for (int i = 0; i < p->nloads; i++)
    rpi_cursor_seek(&r->cursor[i], p->load[i].nest, r->c->src[p->load[i].input], lo);
  for (int i = 0; i < p->nscalars; i++) {
    const struct elem_value* v = &p->value[p->scalar[i]];
    rpi_fill(r->at[p->scalar[i]], r->c->src[v->operand], v->item, n);
  }
}

static void run_lines(const struct run* r, const struct elem_line* line, int nlines, int64_t n) {
  for (int i = 0; i < nlines; i++) {
    const struct elem_line* l = &line[i];
    const void* in[3] = {r->at[l->in[0]], r->at[l->in[1]], r->at[l->in[2]]};
    l->fn(n, r->at[l->out], in);
  }
}

static void load_block(struct run* r, int i, int64_t n) {
  const struct elem_load* load = &r->p->load[i];
  const struct rpi_nest* nest = load->nest;
  struct rpi_cursor* c = &r->cursor[i];
  bool is_run = nest->stride[0] == nest->item && rpi_cursor_run(c, nest) >= n;
  if (is_run && !(load->is_hazard && is_written(r->c, r->c->src[load->input]))) {
    r->at[load->value] = (void*)c->at;
    rpi_cursor_skip(c, nest, n);
  } else {
    r->at[load->value] = r->buffer + r->p->value[load->value].buffer;
    rpi_cursor_gather(c, nest, r->at[load->value], n);
  }
}

static void advance(struct run* r, int64_t n) {
  for (int i = 0; i < r->p->nmoving; i++) {
    int v = r->p->moving[i];
    r->at[v] = (char*)r->at[v] + n * r->p->value[v].item;
  }
}

static size_t round_up(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static int run_chunk(const struct elem_plan* p, const struct call* c, int64_t lo, int64_t hi) {
  size_t pointers = round_up(sizeof(void*) * (size_t)p->nvalues);
  size_t cursors = round_up(sizeof(struct rpi_cursor) * (size_t)p->nloads);
  char* memory = get_scratch(pointers + cursors + p->buffers);
  if (!memory) return 1;
  struct run r = {.p = p, .c = c, .at = (void**)memory,
                  .cursor = (struct rpi_cursor*)(memory + pointers),
                  .buffer = memory + pointers + cursors};
  int64_t n = hi - lo < RPI_ELEM_BLOCK ? hi - lo : RPI_ELEM_BLOCK;
  begin(&r, lo, n);
  run_lines(&r, p->fixed, p->nfixed, n);
  for (; lo < hi; lo += n) {
    if (hi - lo < n) n = hi - lo;
    for (int i = 0; i < p->nloads; i++) load_block(&r, i, n);
    run_lines(&r, p->line, p->nlines, n);
    advance(&r, n);
  }
  return 0;
}

/* Chunks --------------------------------------------------------------------------------------- */

struct job {
  const struct elem_plan* p;
  const struct call* c;
  _Atomic(int) failed;
};

static void run_direct(const struct elem_plan* p, const struct call* c, int64_t lo, int64_t hi) {
  const void* in[3] = {NULL};
  for (int i = 0; i < p->nin; i++) in[i] = (const char*)c->src[p->map[i]] + lo * p->item[i];
  p->fn(hi - lo, (char*)c->dst[0] + lo * p->out_item, in);
}

static void run_job(void* ctx, int64_t i) {
  struct job* j = ctx;
  int64_t lo = i * j->p->chunk, hi = lo + j->p->chunk;
  if (hi > j->p->size) hi = j->p->size;
  if (j->p->fn)
    run_direct(j->p, j->c, lo, hi);
  else if (run_chunk(j->p, j->c, lo, hi))
    atomic_store(&j->failed, 1);
}

static int run_all(const struct elem_plan* p, const struct call* c) {
  int failed = 0;
  if (p->chunk < p->size) {
    struct job j = {.p = p, .c = c};
    rpi_parallel((p->size + p->chunk - 1) / p->chunk, run_job, &j);
    failed = atomic_load(&j.failed);
  } else if (p->fn) {
    run_direct(p, c, 0, p->size);
  } else {
    failed = run_chunk(p, c, 0, p->size);
  }
  return failed ? rpi_fail_memory("block buffers", p->buffers) : 0;
}

/* Large transposed inputs: packed into memory of their own first. --------------------------- */

static int pack_far(struct buffer** packed, const void** src, const struct elem_plan* p,
                    const struct call* c) {
  for (int i = 0; i < p->nfar; i++) {
    const struct view* v = &c->in[p->far[i]];
    packed[i] = rpi_buffer_new((size_t)v->size * rpi_dtype_size(v->dtype));
    int rc = packed[i] ? rpi_cpu_pack(packed[i]->data, src[p->far[i]], v) : rpi_error_code();
    if (rc) return rc;
    src[p->far[i]] = packed[i]->data;
  }
  return 0;
}

RPI_NOINLINE static int run_packed(const struct elem_plan* p, const struct call* c) {
  size_t nfar = (size_t)p->nfar, nin = (size_t)c->nin;
  struct buffer** packed = rpi_calloc(nfar + nin, sizeof *packed);
  if (!packed) return rpi_fail_memory("packed inputs", (nfar + nin) * sizeof *packed);
  const void** src = (const void**)(packed + nfar);
  memcpy(src, c->src, nin * sizeof *src);
  struct call local = *c;
  local.src = src;
  int rc = pack_far(packed, src, p, c);
  if (!rc) rc = run_all(p, &local);
  for (size_t i = 0; i < nfar; i++) rpi_buffer_release(packed[i]);
  rpi_free(packed);
  return rc;
}

int rpi_cpu_elem_run(const struct call* c) {
  const struct elem_plan* p = c->state;
  if (p->size == 0) return 0;
  return p->nfar ? run_packed(p, c) : run_all(p, c);
}
