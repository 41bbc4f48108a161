/* Arrays and nodes: making, counting, releasing without recursion. */
#include "core/array.h"

#include <pthread.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

static pthread_mutex_t graph_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t graph_changed = PTHREAD_COND_INITIALIZER;
static int graph_waiters;
static int running;      /* evaluations that have claimed nodes */
static int forks_wanted; /* threads that wait for `running` to end */
static _Thread_local int running_here;
static uint64_t last_mark;
static _Atomic(uint64_t) last_seq;

void rpi_graph_lock(void) { pthread_mutex_lock(&graph_mutex); }
void rpi_graph_unlock(void) { pthread_mutex_unlock(&graph_mutex); }
uint64_t rpi_graph_mark(void) { return ++last_mark; }

void rpi_graph_wait(void) {
  graph_waiters++;
  pthread_cond_wait(&graph_changed, &graph_mutex);
  graph_waiters--;
}

void rpi_graph_wake(void) {
  if (graph_waiters) pthread_cond_broadcast(&graph_changed);
}

/* An evaluation started by a destructor of the host inside another one does not wait: the outer one
 * could not end. */
void rpi_graph_enter(void) {
  while (forks_wanted && !running_here) rpi_graph_wait();
  running++;
  running_here++;
}

void rpi_graph_leave(void) {
  running--;
  running_here--;
  rpi_graph_wake();
}

/* A child must not find nodes claimed by threads it does not have, or memory half overwritten. */
static void before_fork(void) {
  rpi_graph_lock();
  forks_wanted++;
  while (running > running_here) rpi_graph_wait();
  forks_wanted--;
}

static void after_fork_in_parent(void) {
  rpi_graph_wake();
  rpi_graph_unlock();
}

static void after_fork_in_child(void) {
  graph_changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER; /* waiters stayed behind */
  graph_waiters = forks_wanted = 0;
  rpi_graph_unlock();
}

/* Handlers before a fork run in reverse order: evaluations end while buffers can still be had. */
RPI_CONSTRUCTOR static void guard_fork(void) {
  rpi_buffer_guard_fork();
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static struct array* new_array(int dtype, const int* shape, int ndim) {
  size_t tail = (size_t)ndim * (sizeof(int64_t) + sizeof(int));
  struct array* a = rpi_alloc(sizeof *a + tail);
  if (!a) {
    rpi_fail_memory("an array", sizeof *a + tail);
    return NULL;
  }
  memset(a, 0, sizeof *a);
  atomic_store_explicit(&a->refs, 1, memory_order_relaxed);
  a->dtype = (uint8_t)dtype;
  a->ndim = (uint8_t)ndim;
  a->stride = (int64_t*)(a + 1);
  a->shape = (int*)(a->stride + ndim);
  for (int i = 0; i < ndim; i++) a->shape[i] = shape[i];
  rpi_row_major(a->stride, shape, ndim);
  a->size = rpi_shape_size(shape, ndim);
  return a;
}

struct array* rpi_array_ready(int dtype, const int* shape, int ndim, struct buffer* buf) {
  struct array* a = new_array(dtype, shape, ndim);
  if (!a) {
    rpi_buffer_release(buf);
    return NULL;
  }
  a->buf = buf;
  atomic_store_explicit(&a->state, RPI_READY, memory_order_release);
  return a;
}

struct array* rpi_array_data(int dtype, const int* shape, int ndim, const void* data) {
  size_t bytes = (size_t)rpi_shape_size(shape, ndim) * rpi_dtype_size(dtype);
  struct buffer* buf = rpi_buffer_new(bytes);
  if (!buf) return NULL;
  if (bytes) memcpy(buf->data, data, bytes);
  return rpi_array_ready(dtype, shape, ndim, buf);
}

struct array* rpi_array_scalar(int dtype, const void* value) {
  return rpi_array_data(dtype, NULL, 0, value);
}

struct array* rpi_array_placeholder(int dtype, const int* shape, int ndim) {
  struct array* a = new_array(dtype, shape, ndim);
  if (a) a->is_tracer = 1;
  return a;
}

bool rpi_array_retain_alive(struct array* a) {
  int refs = atomic_load_explicit(&a->refs, memory_order_relaxed);
  while (refs > 0)
    if (atomic_compare_exchange_weak_explicit(&a->refs, &refs, refs + 1, memory_order_acquire,
                                              memory_order_relaxed))
      return true;
  return false;
}

bool rpi_array_is_row_major(const struct array* a) {
  return rpi_is_row_major(a->stride, a->shape, a->ndim);
}

void rpi_payload_release(struct payload* p) {
  if (p && atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1) p->destroy(p);
}

struct node* rpi_node_new(int op, struct array* const* in, int nin, int nout, const int64_t* attr,
                          int nattr, struct payload* payload, struct stream stream) {
  size_t pointers = (size_t)(nin + nout) * sizeof(void*);
  size_t bytes = sizeof(struct node) + pointers + (size_t)nattr * sizeof *attr;
  struct node* n = rpi_alloc(bytes);
  if (!n) {
    rpi_payload_release(payload);
    rpi_fail_memory("a graph node", bytes);
    return NULL;
  }
  *n = (struct node){.op = (uint16_t)op, .nin = nin, .nout = nout, .nattr = nattr,
                     .stream = stream, .payload = payload};
  atomic_store_explicit(&n->refs, 1, memory_order_relaxed);
  n->attr = (int64_t*)(n + 1);
  n->in = (struct array**)(n->attr + nattr);
  n->out = n->in + nin;
  if (nattr) memcpy(n->attr, attr, (size_t)nattr * sizeof *attr);
  for (int i = 0; i < nin; i++) {
    n->in[i] = rpi_array_retain(in[i]);
    n->is_tracer |= in[i]->is_tracer;
  }
  for (int i = 0; i < nout; i++) n->out[i] = NULL;
  n->seq = atomic_fetch_add_explicit(&last_seq, 1, memory_order_relaxed) + 1;
  return n;
}

struct array* rpi_node_output(struct node* n, int index, int dtype, const int* shape, int ndim) {
  struct array* a = new_array(dtype, shape, ndim);
  if (!a) return NULL;
  a->index = index;
  a->is_tracer = n->is_tracer;
  a->node = n;
  atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
  n->out[index] = a;
  return a;
}

/* Drop one reference; a dead array joins the work list. */
static void drop_array(struct array* a, struct array** dead) {
  if (atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) != 1) return;
  a->next = *dead;
  *dead = a;
}

static void drop_node(struct node* n, struct array** dead) {
  if (atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1) return;
  for (int i = 0; i < n->nin; i++) drop_array(n->in[i], dead);
  rpi_payload_release(n->payload);
  rpi_free(n);
}

/* A node with one output dies with it, so only siblings can see a stale weak pointer. */
static void leave_node(struct array* a, struct array** dead) {
  struct node* n = a->node;
  if (!n) return;
  if (n->nout > 1) {
    rpi_graph_lock();
    n->out[a->index] = NULL;
    rpi_graph_unlock();
  }
  drop_node(n, dead);
}

static void free_array(struct array* a) {
  struct dense* dense = atomic_load_explicit(&a->dense, memory_order_relaxed);
  if (dense) {
    rpi_buffer_release(dense->buf);
    rpi_free(dense);
  }
  rpi_buffer_release(a->buf);
  rpi_free(a);
}

static void drain(struct array* dead) {
  while (dead) {
    struct array* a = dead;
    dead = a->next;
    leave_node(a, &dead);
    free_array(a);
  }
}

void rpi_array_release(struct array* a) {
  struct array* dead = NULL;
  if (!a) return;
  drop_array(a, &dead);
  drain(dead);
}

void rpi_node_release(struct node* n) {
  struct array* dead = NULL;
  if (!n) return;
  drop_node(n, &dead);
  drain(dead);
}

struct node* rpi_array_settle(struct array* a, struct buffer* buf, size_t offset,
                              const int64_t* stride) {
  struct node* n = a->node;
  a->buf = buf;
  a->offset = offset;
  for (int i = 0; i < a->ndim; i++) a->stride[i] = stride[i];
  a->node = NULL;
  n->out[a->index] = NULL;
  atomic_store_explicit(&a->state, RPI_READY, memory_order_release);
  return n;
}

static struct dense* make_dense(struct array* a, int (*pack)(void*, const struct array*)) {
  struct dense* d = rpi_alloc(sizeof *d + (size_t)a->ndim * sizeof *d->stride);
  if (!d) {
    rpi_fail_memory("a packed copy", sizeof *d);
    return NULL;
  }
  rpi_row_major(d->stride, a->shape, a->ndim);
  d->buf = rpi_buffer_new(rpi_array_bytes(a));
  if (d->buf && pack(d->buf->data, a) == 0) return d;
  rpi_buffer_release(d->buf);
  rpi_free(d);
  return NULL;
}

const void* rpi_array_dense(struct array* a, int (*pack)(void*, const struct array*)) {
  if (rpi_array_is_row_major(a)) return rpi_array_ptr(a);
  struct dense* d = atomic_load_explicit(&a->dense, memory_order_acquire);
  if (!d) {
    struct dense* fresh = make_dense(a, pack);
    if (!fresh) return NULL;
    if (atomic_compare_exchange_strong(&a->dense, &d, fresh)) {
      d = fresh;
    } else { /* another thread was first */
      rpi_buffer_release(fresh->buf);
      rpi_free(fresh);
    }
  }
  return d->buf->data;
}
