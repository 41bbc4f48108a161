/* Memory of a plan: how long each storage lives, which steps run in place, where the arena's ranges are.
 *
 * In-place steps merge the output's storage into the dying operand's. An output that outlives the run
 * may instead name an input as its donor; whether the input is really free is known only at run time. */
#include <limits.h>
#include <string.h>

#include "base/err.h"
#include "compile/planner.h"

enum { ARENA_ALIGN = 64 };

static int root_of(const struct planner* pl, int s) {
  while (pl->storage.at[s].same_as != s) s = pl->storage.at[s].same_as;
  return s;
}

static void find_lifetimes(struct planner* pl) {
  for (int64_t i = 0; i < pl->storage.n; i++) pl->storage.at[i].first = -1;
  for (int i = 0; i < (int)pl->instr.n; i++) {
    const struct instr* in = &pl->instr.at[i];
    for (int j = 0; j < in->call.nin; j++) pl->storage.at[in->storage[j]].last = i;
    for (int j = 0; j < in->call.nout; j++) {
      struct storage* s = &pl->storage.at[in->storage[in->call.nin + j]];
      s->first = i;
      if (s->last < i) s->last = i;
    }
  }
  for (int i = 0; i < pl->p->noutputs; i++) {
    struct storage* s = &pl->storage.at[pl->p->output[i].storage];
    s->is_kept = true;
    s->last = INT_MAX;
    if (s->kind == RPI_STORE_ARENA) s->kind = RPI_STORE_OWN;
  }
}

/* Whether another operand of the instruction lies in the same storage; the same view twice is fine for
 * element-wise work, which reads a block before it writes it. */
static bool is_shared(const struct planner* pl, const struct instr* in, int operand, int root) {
  const struct view* v = &in->call.in[operand];
  bool elementwise = in->run == pl->options->backend->elem_run;
  for (int j = 0; j < in->call.nin; j++) {
    if (j == operand || root_of(pl, in->storage[j]) != root) continue;
    const struct view* w = &in->call.in[j];
    if (!elementwise || in->offset[j] != in->offset[operand] || !w->is_row_major ||
        w->size != v->size || w->dtype != v->dtype)
      return true;
  }
  return false;
}

/* The last output of a group comes from its last step, when nothing of the block is read any more. */
static bool allows_inplace(const struct planner* pl, const struct instr* in, int operand, int out) {
  if (in->run == pl->options->backend->elem_run) return out == in->call.nout - 1;
  return operand == 0 && out == 0 && (rpi_ops[in->call.op].flags & RPI_INPLACE) &&
         in->run == pl->options->backend->kernel[in->call.op];
}

/* Whether output `out` of instruction i may be written over operand `j`. */
static bool may_overwrite(const struct planner* pl, int i, int j, int out) {
  const struct instr* in = &pl->instr.at[i];
  const struct view *v = &in->call.in[j], *o = &in->call.out[out];
  int root = root_of(pl, in->storage[j]);
  const struct storage* s = &pl->storage.at[root];
  return allows_inplace(pl, in, j, out) && s->last == i && !s->by_call && v->is_row_major &&
         v->size == o->size && rpi_dtype_size(v->dtype) == rpi_dtype_size(o->dtype) &&
         (s->kind == RPI_STORE_INPUT || in->offset[j] == 0) && !is_shared(pl, in, j, root);
}

/* Merge storage `o` into `root`, which becomes alive for as long as o was. */
static void merge(struct planner* pl, int root, int o) {
  struct storage *s = &pl->storage.at[root], *t = &pl->storage.at[o];
  t->same_as = root;
  s->last = t->last;
  s->is_kept |= t->is_kept;
  if (t->kind == RPI_STORE_OWN) s->kind = RPI_STORE_OWN;
  if (t->bytes > s->bytes) s->bytes = t->bytes;
}

static void run_in_place(struct planner* pl, int i, int out) {
  const struct instr* in = &pl->instr.at[i];
  int o = in->storage[in->call.nin + out];
  if (pl->storage.at[o].by_call) return;
  for (int j = 0; j < in->call.nin; j++) {
    int root = root_of(pl, in->storage[j]);
    if (!may_overwrite(pl, i, j, out)) continue;
    if (pl->storage.at[root].kind == RPI_STORE_INPUT) {
      /* Only what leaves the run is worth a foreign buffer, and it must be all of it. */
      if (pl->storage.at[o].kind != RPI_STORE_OWN || in->offset[j] != 0) continue;
      pl->storage.at[o].donor = root;
      pl->storage.at[root].last = INT_MAX; /* one taker */
    } else {
      merge(pl, root, o);
    }
    return;
  }
}

/* Ranges of the arena: free blocks in a list sorted by offset, first fit. */
struct gap {
  size_t offset, bytes;
};

struct ranges {
  RPI_VEC(struct gap) gap;
  size_t top;
};

static size_t take_range(struct ranges* r, size_t bytes) {
  for (int64_t i = 0; i < r->gap.n; i++) {
    struct gap* g = &r->gap.at[i];
    if (g->bytes < bytes) continue;
    size_t at = g->offset;
    g->offset += bytes;
    g->bytes -= bytes;
    if (!g->bytes) memmove(g, g + 1, sizeof *g * (size_t)(--r->gap.n - i));
    return at;
  }
  struct gap* last = r->gap.n ? &r->gap.at[r->gap.n - 1] : NULL;
  size_t at = r->top;
  if (last && last->offset + last->bytes == r->top) { /* grow the gap at the end */
    at = last->offset;
    r->gap.n--;
  }
  r->top = at + bytes;
  return at;
}

static int give_range(struct ranges* r, size_t offset, size_t bytes) {
  int64_t i = 0;
  if (!bytes) return 0;
  while (i < r->gap.n && r->gap.at[i].offset < offset) i++;
  if (rpi_vec_push(&r->gap, (struct gap){0})) return rpi_plan_out_of_memory();
  struct gap* g = r->gap.at;
  memmove(&g[i + 1], &g[i], sizeof *g * (size_t)(r->gap.n - 1 - i));
  g[i] = (struct gap){offset, bytes};
  if (i + 1 < r->gap.n && offset + bytes == g[i + 1].offset) {
    g[i].bytes += g[i + 1].bytes;
    memmove(&g[i + 1], &g[i + 2], sizeof *g * (size_t)(--r->gap.n - i - 1));
  }
  if (i > 0 && g[i - 1].offset + g[i - 1].bytes == offset) {
    g[i - 1].bytes += g[i].bytes;
    memmove(&g[i], &g[i + 1], sizeof *g * (size_t)(--r->gap.n - i));
  }
  return 0;
}

static size_t aligned(size_t bytes) {
  return (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
}

/* What begins at an instruction takes its range before what ends there gives its range back. */
static int lay_out_arena(struct planner* pl, const int* begin, const int* next_begin,
                         const int* end, const int* next_end) {
  struct ranges r = {0};
  int rc = 0;
  for (int i = 0; i < (int)pl->instr.n && !rc; i++) {
    for (int s = begin[i]; s >= 0; s = next_begin[s])
      if (pl->storage.at[s].kind == RPI_STORE_ARENA)
        pl->storage.at[s].offset = take_range(&r, aligned(pl->storage.at[s].bytes));
    for (int s = end[i]; s >= 0 && !rc; s = next_end[s])
      if (pl->storage.at[s].kind == RPI_STORE_ARENA)
        rc = give_range(&r, pl->storage.at[s].offset, aligned(pl->storage.at[s].bytes));
  }
  pl->p->arena_bytes = r.top;
  rpi_vec_free(&r.gap);
  return rc;
}

/* The buffers that an instruction must make and may release. */
static int list_events(struct planner* pl, int i, const int* begin, const int* next_begin,
                       const int* end, const int* next_end) {
  struct instr* in = &pl->instr.at[i];
  int n = 0;
  for (int s = begin[i]; s >= 0; s = next_begin[s]) n += pl->storage.at[s].kind == RPI_STORE_OWN;
  for (int s = end[i]; s >= 0; s = next_end[s]) n += pl->storage.at[s].kind == RPI_STORE_OWN;
  if (!n) return 0;
  int* event = rpi_arena_alloc(&pl->p->mem, sizeof *event * (size_t)n);
  if (!event) return rpi_plan_out_of_memory();
  in->event = event;
  for (int s = begin[i]; s >= 0; s = next_begin[s])
    if (pl->storage.at[s].kind == RPI_STORE_OWN && !pl->storage.at[s].by_call)
      event[in->nbegin++] = s;
  for (int s = end[i]; s >= 0; s = next_end[s])
    if (pl->storage.at[s].kind == RPI_STORE_OWN) event[in->nbegin + in->nend++] = s;
  return 0;
}

/* Lists of the root storages that begin and end at each instruction. */
static int link_events(struct planner* pl) {
  size_t ni = (size_t)pl->instr.n, ns = (size_t)pl->storage.n;
  int* begin = rpi_arena_alloc(&pl->scratch, sizeof(int) * 2 * (ni + ns) + 1);
  if (!begin) return rpi_plan_out_of_memory();
  int *end = begin + ni, *next_begin = end + ni, *next_end = next_begin + ns;
  for (size_t i = 0; i < 2 * ni; i++) begin[i] = -1;
  for (int s = (int)ns - 1; s >= 0; s--) {
    const struct storage* st = &pl->storage.at[s];
    if (st->same_as != s || st->kind == RPI_STORE_INPUT || st->first < 0) continue;
    next_begin[s] = begin[st->first];
    begin[st->first] = s;
    if (st->last == INT_MAX) continue;
    next_end[s] = end[st->last];
    end[st->last] = s;
  }
  int rc = lay_out_arena(pl, begin, next_begin, end, next_end);
  for (int i = 0; i < (int)ni && !rc; i++)
    rc = list_events(pl, i, begin, next_begin, end, next_end);
  return rc;
}

int rpi_plan_memory(struct planner* pl) {
  find_lifetimes(pl);
  for (int i = 0; i < (int)pl->instr.n; i++)
    for (int out = 0; out < pl->instr.at[i].call.nout; out++) run_in_place(pl, i, out);
  int rc = link_events(pl);
  for (int i = 0; i < (int)pl->instr.n && !rc; i++) {
    struct instr* in = &pl->instr.at[i];
    for (int j = 0; j < in->call.nin + in->call.nout; j++)
      ((int*)in->storage)[j] = root_of(pl, in->storage[j]);
  }
  for (int i = 0; i < pl->p->noutputs && !rc; i++)
    pl->p->output[i].storage = root_of(pl, pl->p->output[i].storage);
  return rc;
}
