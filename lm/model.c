/* Loading a model and stepping a sequence through it. */
#include "lm/model.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lm/err.h"
#include "reprise/stats.h"

enum { CACHE_STEP = 256 };

static int library_error(void) {
  const char* text;
  rp_error_code code = rp_last_error(&text);
  return lm_fail(code ? code : RP_ERR_INTERNAL, "%s", code ? text : "[model] A call failed.");
}

/* ---- tokenizer of a GGUF file ---------------------------------------------------------------- */

/* Borrowed pointers into a vector of strings. */
static const char** string_pointers(mlx_vector_string v, size_t* n) {
  *n = mlx_vector_string_size(v);
  const char** at = malloc(sizeof *at * (*n + 1));
  for (size_t i = 0; at && i < *n; i++) {
    char* s = NULL;
    mlx_vector_string_get(&s, v, i);
    at[i] = s;
  }
  return at;
}

static int32_t special_id(mlx_io_gguf file, const char* key) {
  int64_t id;
  return lm_gguf_int(file, key, &id) ? (int32_t)id : -1;
}

struct vocab_source {
  mlx_vector_string tokens, merges;
  mlx_string model, pre, chat;
  mlx_array types;
};

static void free_vocab_source(struct vocab_source* s) {
  mlx_vector_string_free(s->tokens);
  mlx_vector_string_free(s->merges);
  mlx_string_free(s->model);
  mlx_string_free(s->pre);
  mlx_string_free(s->chat);
  mlx_array_free(s->types);
}

static const char* gguf_text(mlx_string* out, mlx_io_gguf file, const char* key) {
  bool there = false;
  if (mlx_io_gguf_has_metadata_string(&there, file, key) || !there) return NULL;
  return mlx_io_gguf_get_metadata_string(out, file, key) ? NULL : mlx_string_data(*out);
}

static int read_vocab(struct vocab_source* s, mlx_io_gguf file) {
  bool there = false;
  if (mlx_io_gguf_has_metadata_vector_string(&there, file, "tokenizer.ggml.tokens") || !there)
    return lm_fail(RP_ERR_FORMAT, "[model] The file has no 'tokenizer.ggml.tokens'.");
  if (mlx_io_gguf_get_metadata_vector_string(&s->tokens, file, "tokenizer.ggml.tokens"))
    return library_error();
  there = false;
  mlx_io_gguf_has_metadata_vector_string(&there, file, "tokenizer.ggml.merges");
  if (there && mlx_io_gguf_get_metadata_vector_string(&s->merges, file, "tokenizer.ggml.merges"))
    return library_error();
  there = false;
  mlx_io_gguf_has_metadata_array(&there, file, "tokenizer.ggml.token_type");
  if (there && mlx_io_gguf_get_metadata_array(&s->types, file, "tokenizer.ggml.token_type"))
    return library_error();
  return 0;
}

static int gguf_tokenizer(struct lm_tokenizer** out, mlx_io_gguf file) {
  struct vocab_source s = {0};
  struct lm_vocab v = {0};
  int64_t flag = 0;
  int rc = read_vocab(&s, file);
  if (!rc) {
    v.model = gguf_text(&s.model, file, "tokenizer.ggml.model");
    v.pre = gguf_text(&s.pre, file, "tokenizer.ggml.pre");
    v.chat_template = gguf_text(&s.chat, file, "tokenizer.chat_template");
    v.tokens = string_pointers(s.tokens, &v.n_tokens);
    v.merges = string_pointers(s.merges, &v.n_merges);
    if (s.types.ctx && mlx_array_dtype(s.types) == MLX_INT32 &&
        mlx_array_size(s.types) == v.n_tokens)
      v.types = mlx_array_data_int32(s.types);
    v.bos_id = special_id(file, "tokenizer.ggml.bos_token_id");
    v.eos_id = special_id(file, "tokenizer.ggml.eos_token_id");
    v.pad_id = special_id(file, "tokenizer.ggml.padding_token_id");
    v.add_bos = lm_gguf_int(file, "tokenizer.ggml.add_bos_token", &flag) && flag;
    rc = v.tokens && v.merges ? lm_tokenizer_from_vocab(out, &v)
                              : lm_fail_memory("a vocabulary", v.n_tokens * sizeof(char*));
  }
  free((void*)v.tokens);
  free((void*)v.merges);
  free_vocab_source(&s);
  return rc;
}

/* ---- loading --------------------------------------------------------------------------------- */

static int open_gguf(struct lm_model* m, struct lm_tensors* t, const char* path) {
  mlx_stream s = mlx_default_cpu_stream_new();
  int rc = mlx_load_gguf(&t->gguf, path, s) ? library_error() : 0;
  mlx_stream_free(s);
  if (!rc) rc = lm_config_from_gguf(&m->llama.config, t->gguf);
  if (!rc) rc = gguf_tokenizer(&m->tokenizer, t->gguf);
  return rc;
}

static int open_folder(struct lm_model* m, struct lm_tensors* t, const char* path) {
  int rc = lm_config_from_folder(&m->llama.config, path);
  if (!rc) rc = lm_tokenizer_from_folder(&m->tokenizer, path);
  if (!rc) rc = lm_tensors_from_folder(t, path);
  return rc;
}

static int open_source(struct lm_model* m, struct lm_tensors* t, const char* path) {
  struct stat st;
  if (stat(path, &st)) return lm_fail(RP_ERR_IO, "[model] '%s' does not exist.", path);
  return S_ISDIR(st.st_mode) ? open_folder(m, t, path) : open_gguf(m, t, path);
}

/* The union of what tokenizer and configuration call an end. */
static int collect_ends(struct lm_model* m) {
  int rc = lm_tokenizer_end_ids(m->tokenizer, &m->ends);
  for (size_t i = 0; i < m->llama.config.ends.len && !rc; i++)
    if (!lm_model_is_end(m, m->llama.config.ends.data[i]))
      rc = lm_ids_push(&m->ends, m->llama.config.ends.data[i]);
  return rc;
}

static int compile_step(struct lm_model* m, bool compile) {
  mlx_closure step = lm_llama_step(&m->llama);
  if (!step.ctx) return library_error();
  m->step = step;
  m->is_compiled = compile;
  if (!compile) return 0;
  m->step = mlx_closure_new();
  int rc = mlx_compile(&m->step, step, true) ? library_error() : 0;
  mlx_closure_free(step);
  return rc;
}

/* The embedding may be longer (padding); a token without a row would be met too late. */
static int check_vocab(const struct lm_model* m) {
  size_t n = lm_tokenizer_size(m->tokenizer);
  if (n <= (size_t)m->llama.config.vocab) return 0;
  return lm_fail(RP_ERR_FORMAT, "[model] The tokenizer has %zu tokens; the embedding has %d rows.",
                 n, m->llama.config.vocab);
}

/* Joining layers frees their parts one by one: nothing of that is worth keeping for reuse. */
static int load_weights(struct lm_model* m, const char* path) {
  struct lm_tensors t = {0};
  size_t limit;
  mlx_set_cache_limit(&limit, 0);
  int rc = open_source(m, &t, path);
  if (!rc) rc = lm_weights_load(&m->llama.weights, &m->llama.config, &t);
  lm_tensors_free(&t);
  mlx_set_cache_limit(&limit, limit);
  return rc;
}

static int load(struct lm_model* m, const char* path, bool compile) {
  int rc = load_weights(m, path);
  if (!rc) rc = check_vocab(m);
  if (!rc) rc = lm_llama_init_rope(&m->llama);
  if (!rc) rc = collect_ends(m);
  if (!rc) rc = compile_step(m, compile);
  /* Without a template the model still completes raw text; chat says what is missing. */
  if (!rc && lm_chat_new(&m->chat, lm_tokenizer_chat_template(m->tokenizer))) m->chat = NULL;
  return rc;
}

int lm_model_load(struct lm_model** out, const char* path, bool compile) {
  struct lm_model* m = calloc(1, sizeof *m);
  if (!m) return lm_fail_memory("a model", sizeof *m);
  int rc = load(m, path, compile);
  if (rc)
    lm_model_free(m);
  else
    *out = m;
  return rc;
}

void lm_model_free(struct lm_model* m) {
  if (!m) return;
  mlx_closure_free(m->step);
  lm_weights_free(&m->llama.weights);
  lm_config_free(&m->llama.config);
  mlx_array_free(m->llama.freqs);
  lm_tokenizer_free(m->tokenizer);
  lm_chat_free(m->chat);
  lm_ids_free(&m->ends);
  free(m);
}

uint64_t lm_model_traces(const struct lm_model* m) {
  rp_closure_stats s = {0};
  if (m->is_compiled) rp_closure_get_stats(&s, m->step);
  return s.traces;
}

bool lm_model_is_end(const struct lm_model* m, int32_t token) {
  for (size_t i = 0; i < m->ends.len; i++)
    if (m->ends.data[i] == token) return true;
  return false;
}

/* ---- stepping -------------------------------------------------------------------------------- */

static int zero_cache(mlx_array* out, const struct lm_config* c, int capacity, mlx_stream s) {
  int shape[] = {1, c->kv_heads, capacity, c->head_dim};
  mlx_array zero = {0};
  int rc = mlx_zeros(&zero, shape, 4, MLX_FLOAT32, s);
  if (!rc) rc = mlx_copy(out, zero, s); /* memory of its own, to be written in place */
  if (!rc) rc = mlx_array_eval(*out);
  mlx_array_free(zero);
  return rc;
}

int lm_cache_new(struct lm_cache* c, const struct lm_model* m, int capacity) {
  memset(c, 0, sizeof *c);
  int n = 2 * m->llama.config.layers;
  c->at = calloc((size_t)n, sizeof *c->at);
  if (!c->at) return lm_fail_memory("a cache", sizeof *c->at * (size_t)n);
  c->narrays = n;
  c->capacity = capacity;
  mlx_stream s = mlx_default_cpu_stream_new();
  int rc = mlx_arange(&c->slots, 0, capacity, 1, MLX_INT32, s);
  if (!rc) rc = mlx_array_eval(c->slots);
  for (int i = 0; i < n && !rc; i++) rc = zero_cache(&c->at[i], &m->llama.config, capacity, s);
  mlx_stream_free(s);
  if (!rc) return 0;
  rc = library_error();
  lm_cache_free(c);
  return rc;
}

void lm_cache_free(struct lm_cache* c) {
  for (int i = 0; i < c->narrays; i++) mlx_array_free(c->at[i]);
  free(c->at);
  mlx_array_free(c->slots);
  mlx_array_free(c->logits);
  memset(c, 0, sizeof *c);
}

/* One cache array in a larger one. */
static int enlarge(mlx_array* at, const struct lm_config* c, int capacity, int length,
                   mlx_stream s) {
  int start[] = {0, 0, 0, 0}, stop[] = {1, c->kv_heads, length, c->head_dim}, step[] = {1, 1, 1, 1};
  mlx_array larger = {0}, used = {0};
  int rc = zero_cache(&larger, c, capacity, s);
  if (!rc) rc = mlx_slice(&used, *at, start, 4, stop, 4, step, 4, s);
  if (!rc) rc = mlx_slice_update(at, larger, used, start, 4, stop, 4, step, 4, s);
  mlx_array_free(larger); /* before it is evaluated: the update may then write it in place */
  mlx_array_free(used);
  return rc ? rc : mlx_array_eval(*at);
}

int lm_cache_reserve(struct lm_cache* c, const struct lm_model* m, int capacity) {
  if (capacity <= c->capacity) return 0;
  mlx_stream s = mlx_default_cpu_stream_new();
  int rc = mlx_arange(&c->slots, 0, capacity, 1, MLX_INT32, s);
  for (int i = 0; i < c->narrays && !rc; i++)
    rc = enlarge(&c->at[i], &m->llama.config, capacity, c->length, s);
  mlx_stream_free(s);
  if (rc) return library_error();
  c->capacity = capacity;
  mlx_clear_cache(); /* the smaller arrays fit nothing any more */
  return 0;
}

static int append_ints(mlx_vector_array v, const int32_t* at, int n) {
  mlx_array a = mlx_array_new_data(at, &n, 1, MLX_INT32);
  int rc = a.ctx ? mlx_vector_array_append_value(v, a) : 1;
  mlx_array_free(a);
  return rc;
}

static int append_positions(mlx_vector_array v, int first, int n) {
  int32_t* at = malloc(sizeof *at * (size_t)n);
  if (!at) return 1;
  for (int i = 0; i < n; i++) at[i] = first + i;
  int rc = append_ints(v, at, n);
  free(at);
  return rc;
}

/* The inputs of one step. The caches are moved out: the step may then write them in place. */
static int gather_inputs(mlx_vector_array v, struct lm_cache* c, const int32_t* tokens, int n) {
  int rc = append_ints(v, tokens, n);
  if (!rc) rc = append_positions(v, c->length, n);
  if (!rc) rc = append_ints(v, &(int32_t){n - 1}, 1);
  if (!rc) rc = mlx_vector_array_append_value(v, c->slots);
  if (!rc) rc = mlx_vector_array_append_data(v, c->at, (size_t)c->narrays);
  return rc;
}

static int take_outputs(mlx_vector_array v, struct lm_cache* c) {
  int rc = mlx_vector_array_get(&c->logits, v, 0);
  for (int i = 0; i < c->narrays && !rc; i++) rc = mlx_vector_array_get(&c->at[i], v, (size_t)i + 1);
  return rc;
}

static int step(struct lm_model* m, struct lm_cache* c, const int32_t* tokens, int n) {
  mlx_vector_array in = mlx_vector_array_new(), out = mlx_vector_array_new();
  int rc = gather_inputs(in, c, tokens, n);
  if (!rc) rc = mlx_closure_apply(&out, m->step, in);
  mlx_vector_array_free(in);
  if (!rc) rc = take_outputs(out, c);
  if (!rc) rc = mlx_eval(out);
  mlx_vector_array_free(out);
  if (rc) return library_error();
  c->length += n;
  return 0;
}

/* Capacities are multiples of CACHE_STEP, so that few layouts are ever planned. */
static int capacity_for(const struct lm_config* c, int tokens) {
  int room = (tokens + CACHE_STEP - 1) / CACHE_STEP * CACHE_STEP;
  return room < c->context ? room : c->context;
}

int lm_model_run(struct lm_model* m, struct lm_cache* c, const int32_t* tokens, int n, int chunk,
                 const float** logits) {
  if (n < 1) return lm_fail(RP_ERR_ARGUMENT, "[model] There are no tokens to run.");
  if (chunk < 1) return lm_fail(RP_ERR_ARGUMENT, "[model] A chunk of %d tokens.", chunk);
  if (n > m->llama.config.context - c->length)
    return lm_fail(RP_ERR_ARGUMENT, "[model] %d tokens at position %d pass the context of %d.", n,
                   c->length, m->llama.config.context);
  for (int i = 0; i < n; i++)
    if (tokens[i] < 0 || tokens[i] >= m->llama.config.vocab)
      return lm_fail(RP_ERR_INDEX, "[model] Token %d is outside the vocabulary of %d.", tokens[i],
                     m->llama.config.vocab);
  int rc = lm_cache_reserve(c, m, capacity_for(&m->llama.config, c->length + n));
  for (int i = 0; i < n && !rc; i += chunk) rc = step(m, c, tokens + i, n - i < chunk ? n - i : chunk);
  if (rc) return rc;
  *logits = mlx_array_data_float32(c->logits);
  return *logits ? 0 : library_error();
}
