/* io.h: safetensors. GGUF is in io_gguf.c, .npy in io_npy.c.
 *
 * Loaded arrays point into the mapped file, and the last of them unmaps it. Saving evaluates first
 * and then writes a new file that replaces the old one, so that arrays may be saved onto the file
 * that they point into. */
#include "api/io.h"

#include <limits.h>
#include <string.h>

#include "api/call.h"
#include "api/io_types.h"
#include "api/map.h"
#include "base/err.h"
#include "exec/eval.h"
#include "io/safetensors.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are read as they are");

static void release_source(void* s) { rpi_source_release(s); }

struct array* rpi_source_array(struct rpi_source* s, size_t offset, size_t bytes, int dtype,
                               const int* shape, int ndim) {
  void* data = (char*)s->data + offset;
  if (!bytes || (uintptr_t)data % rpi_dtype_size(dtype))
    return rpi_array_data(dtype, shape, ndim, data);
  struct buffer* b = rpi_buffer_wrap(data, bytes, release_source, s);
  if (!b) return NULL;
  rpi_source_retain(s);
  return rpi_array_ready(dtype, shape, ndim, b);
}

int rpi_file_shape(struct shape* out, const char* op, const char* file, const char* what,
                   const int64_t* dims, int ndim) {
  if (ndim > RPI_MAX_NDIM)
    return rpi_fail(RP_ERR_SHAPE, "[%s] %s: tensor '%.120s' has %d dimensions, more than %d.", op,
                    file, what, ndim, RPI_MAX_NDIM);
  out->ndim = ndim;
  for (int i = 0; i < ndim; i++) {
    if (dims[i] < 0 || dims[i] > INT_MAX)
      return rpi_fail(RP_ERR_SHAPE, "[%s] %s: dimension %d of tensor '%.120s' is %lld, above %d.",
                      op, file, i, what, (long long)dims[i], INT_MAX);
    out->dim[i] = (int)dims[i];
  }
  return rpi_shape_check(out, op);
}

/* ---- loading --------------------------------------------------------------------------------- */

static int add_tensors(struct map_handle* arrays, struct rpi_source* s, const char* op,
                       const struct rpi_safetensors* st) {
  int rc = 0;
  for (int64_t i = 0; i < st->ntensors && !rc; i++) {
    const struct rpi_safetensors_tensor* t = &st->tensors[i];
    struct shape shape;
    rc = rpi_file_shape(&shape, op, s->name, t->name, t->shape, t->ndim);
    if (rc) return rc;
    rc = rpi_array_map_put(
        arrays, t->name,
        rpi_source_array(s, t->offset, t->bytes, t->dtype, shape.dim, shape.ndim));
  }
  return rc;
}

static int add_pairs(struct map_handle* texts, const struct rpi_safetensors* st) {
  int rc = 0;
  for (int64_t i = 0; i < st->npairs && !rc; i++)
    rc = rpi_text_map_put(texts, st->pairs[i].key,
                          rpi_text_new(st->pairs[i].value, strlen(st->pairs[i].value)));
  return rc;
}

/* The source stays the caller's. */
static int load_safetensors(mlx_map_string_to_array* res_0, mlx_map_string_to_string* res_1,
                            struct rpi_source* s, const char* op) {
  struct rpi_safetensors st;
  int rc = rpi_safetensors_parse(&st, op, s->name, s->data, s->size);
  if (rc) return rc;
  struct map_handle *arrays = rpi_map_handle_new(), *texts = arrays ? rpi_map_handle_new() : NULL;
  rc = texts ? add_tensors(arrays, s, op, &st) : rpi_error_code();
  if (!rc) rc = add_pairs(texts, &st);
  rpi_safetensors_release(&st);
  if (rc) {
    rpi_array_map_free(arrays);
    rpi_text_map_free(texts);
    return rc;
  }
  rpi_array_map_move(res_0, arrays);
  rpi_text_map_move(res_1, texts);
  return 0;
}

int mlx_load_safetensors_reader(mlx_map_string_to_array* res_0, mlx_map_string_to_string* res_1,
                                mlx_io_reader in_stream, const mlx_stream stream) {
  const char* op = "load_safetensors";
  struct rpi_source_reader reader = {0};
  struct rpi_source* s = NULL;
  int rc = rpi_reader_begin(&reader, in_stream, op);
  if (rc) return rpi_report(rc);
  rc = rpi_source_read(&s, op, &reader);
  rpi_reader_end(in_stream);
  if (!rc) rc = load_safetensors(res_0, res_1, s, op);
  rpi_source_release(s);
  return rpi_report(rc);
}

int mlx_load_safetensors(mlx_map_string_to_array* res_0, mlx_map_string_to_string* res_1,
                         const char* file, const mlx_stream stream) {
  const char* op = "load_safetensors";
  struct rpi_source* s = NULL;
  int rc = rpi_source_open(&s, op, file);
  if (!rc) rc = load_safetensors(res_0, res_1, s, op);
  rpi_source_release(s);
  return rpi_report(rc);
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* What is being saved: copies of the maps, so that nothing changes meanwhile. */
struct job {
  struct map_handle *arrays, *texts;
  struct rpi_safetensors_item* items;
  struct rpi_safetensors_pair* pairs;
  int64_t* dims;
  int64_t nitems, npairs;
};

static void free_job(struct job* j) {
  rpi_array_map_free(j->arrays);
  rpi_text_map_free(j->texts);
  rpi_free(j->items);
  rpi_free(j->pairs);
  rpi_free(j->dims);
}

static int eval_all(const struct job* j) {
  struct array** roots = rpi_alloc((size_t)j->nitems * sizeof *roots);
  if (!roots) return rpi_fail_memory("a list of arrays to save", 0);
  for (int64_t i = 0; i < j->nitems; i++) roots[i] = j->arrays->map.at[i].value;
  int rc = rpi_eval(roots, (int)j->nitems);
  rpi_free(roots);
  return rc;
}

static int fill_items(struct job* j) {
  int64_t* dims = j->dims;
  for (int64_t i = 0; i < j->nitems; i++) {
    const struct rpi_map_entry* e = &j->arrays->map.at[i];
    struct array* a = e->value;
    const void* data = rpi_array_dense(a, rpi_array_pack);
    if (!data) return rpi_error_code();
    j->items[i] = (struct rpi_safetensors_item){e->key, a->dtype, a->ndim, dims, data};
    for (int d = 0; d < a->ndim; d++) *dims++ = a->shape[d];
  }
  for (int64_t i = 0; i < j->npairs; i++) {
    const struct rpi_map_entry* e = &j->texts->map.at[i];
    j->pairs[i] = (struct rpi_safetensors_pair){e->key, ((struct text*)e->value)->at};
  }
  return 0;
}

static int prepare(struct job* j, mlx_map_string_to_array param, mlx_map_string_to_string metadata,
                   const char* op) {
  size_t ndims = 0;
  if (!param.ctx) return rpi_fail(RP_ERR_ARGUMENT, "[%s] The map of arrays is empty.", op);
  j->arrays = rpi_array_map_copy(param);
  j->texts = metadata.ctx ? rpi_text_map_copy(metadata) : rpi_map_handle_new();
  if (!j->arrays || !j->texts) return rpi_error_code();
  j->nitems = j->arrays->map.n;
  j->npairs = j->texts->map.n;
  for (int64_t i = 0; i < j->nitems; i++)
    ndims += ((const struct array*)j->arrays->map.at[i].value)->ndim;
  j->items = rpi_alloc((size_t)j->nitems * sizeof *j->items);
  j->pairs = rpi_alloc((size_t)j->npairs * sizeof *j->pairs);
  j->dims = rpi_alloc(ndims * sizeof *j->dims);
  if (!j->items || !j->pairs || !j->dims) return rpi_fail_memory("a list of arrays to save", 0);
  int rc = eval_all(j);
  return rc ? rc : fill_items(j);
}

int mlx_save_safetensors(const char* file, const mlx_map_string_to_array param,
                         const mlx_map_string_to_string metadata) {
  const char* op = "save_safetensors";
  struct job j = {0};
  int rc = prepare(&j, param, metadata, op);
  if (!rc) rc = rpi_safetensors_save(op, file, j.items, j.nitems, j.pairs, j.npairs);
  free_job(&j);
  return rpi_report(rc);
}

static int write_to(mlx_io_writer out, const struct job* j, const char* op) {
  struct rpi_sink_writer writer = {0};
  struct rpi_sink* sink = NULL;
  int rc = rpi_writer_begin(&writer, out, op);
  if (rc) return rc;
  rc = rpi_sink_from_writer(&sink, op, &writer);
  if (!rc) rc = rpi_safetensors_write(sink, j->items, j->nitems, j->pairs, j->npairs);
  if (rc)
    rpi_sink_abort(sink);
  else
    rc = rpi_sink_commit(sink);
  rpi_writer_end(out);
  return rc;
}

int mlx_save_safetensors_writer(mlx_io_writer in_stream, const mlx_map_string_to_array param,
                                const mlx_map_string_to_string metadata) {
  const char* op = "save_safetensors";
  struct job j = {0};
  int rc = prepare(&j, param, metadata, op);
  if (!rc) rc = write_to(in_stream, &j, op);
  free_job(&j);
  return rpi_report(rc);
}
