/* Weights: finding, checking, joining, and undoing GGUF's row order. */
#include "lm/weights.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lm/err.h"

/* ---- tensors by name ------------------------------------------------------------------------- */

static int by_name(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}

/* The *.safetensors of a folder in the order of their names. */
static int list_shards(char*** names, size_t* n, const char* folder) {
  DIR* d = opendir(folder);
  struct dirent* e;
  *names = NULL;
  *n = 0;
  if (!d) return lm_fail(RP_ERR_IO, "[model] The folder '%s' cannot be read.", folder);
  while ((e = readdir(d))) {
    size_t len = strlen(e->d_name);
    if (len < 12 || strcmp(e->d_name + len - 12, ".safetensors")) continue;
    char** more = realloc(*names, (*n + 1) * sizeof **names);
    char* name = malloc(strlen(folder) + len + 2);
    if (more) *names = more;
    if (!more || !name) {
      free(name);
      closedir(d);
      return lm_fail_memory("a list of files", len);
    }
    sprintf(name, "%s/%s", folder, e->d_name);
    (*names)[(*n)++] = name;
  }
  closedir(d);
  if (!*n) return lm_fail(RP_ERR_IO, "[model] '%s' has no *.safetensors file.", folder);
  qsort(*names, *n, sizeof **names, by_name);
  return 0;
}

static int load_shard(mlx_map_string_to_array* out, const char* path) {
  mlx_map_string_to_string metadata = {0};
  mlx_stream s = mlx_default_cpu_stream_new();
  const char* text;
  int rc = mlx_load_safetensors(out, &metadata, path, s);
  if (rc) {
    rp_error_code code = rp_last_error(&text);
    rc = lm_fail(code, "%s", text);
  }
  mlx_map_string_to_string_free(metadata);
  mlx_stream_free(s);
  return rc;
}

int lm_tensors_from_folder(struct lm_tensors* t, const char* folder) {
  char** names;
  size_t n;
  memset(t, 0, sizeof *t);
  int rc = list_shards(&names, &n, folder);
  if (!rc && !(t->shard = calloc(n, sizeof *t->shard))) rc = lm_fail_memory("a list of files", n);
  for (size_t i = 0; i < n && !rc; i++) {
    rc = load_shard(&t->shard[i], names[i]);
    t->nshards = i + 1;
  }
  for (size_t i = 0; i < n; i++) free(names[i]);
  free(names);
  return rc;
}

void lm_tensors_free(struct lm_tensors* t) {
  for (size_t i = 0; i < t->nshards; i++) mlx_map_string_to_array_free(t->shard[i]);
  free(t->shard);
  if (t->gguf.ctx) mlx_io_gguf_free(t->gguf);
  memset(t, 0, sizeof *t);
}

/* Absence is asked for before it is met, so that nothing is reported for optional tensors. */
static bool find_in_gguf(const struct lm_tensors* t, const char* name, mlx_array* out) {
  return mlx_io_gguf_get_array(out, t->gguf, name) == 0;
}

static bool find(const struct lm_tensors* t, const char* name, mlx_array* out) {
  if (t->gguf.ctx) return find_in_gguf(t, name, out);
  for (size_t i = 0; i < t->nshards; i++)
    if (mlx_map_string_to_array_get(out, t->shard[i], name) == 0) return true;
  return false;
}

/* ---- checked tensors ------------------------------------------------------------------------- */

struct loader {
  const struct lm_tensors* t;
  struct lm_config* c;
  struct lm_scope* g;
};

static bool is_gguf(const struct loader* l) { return l->t->gguf.ctx != NULL; }

static mlx_array tensor(struct loader* l, const char* name) {
  mlx_array a = {0};
  if (l->g->failed) return a;
  if (find(l->t, name, &a)) return lm_own(l->g, a);
  mlx_array_free(a);
  l->g->failed = lm_fail(RP_ERR_FORMAT, "[model] The file has no tensor '%s'.", name);
  return (mlx_array){0};
}

static bool has_shape(mlx_array a, int rows, int columns) {
  const int* s = mlx_array_shape(a);
  size_t n = mlx_array_ndim(a);
  return columns ? n == 2 && s[0] == rows && s[1] == columns : n == 1 && s[0] == rows;
}

static bool is_real(mlx_array a) {
  mlx_dtype d = mlx_array_dtype(a);
  return d == MLX_FLOAT32 || d == MLX_FLOAT16 || d == MLX_BFLOAT16 || d == MLX_FLOAT64;
}

static int check_real(struct loader* l, const char* name, mlx_array a) {
  if (!l->g->failed && !is_real(a))
    l->g->failed = lm_fail(RP_ERR_FORMAT, "[model] '%s' holds integers or complex numbers.", name);
  return l->g->failed;
}

/* `n` elements as float32. */
static mlx_array vector(struct loader* l, const char* name, int n) {
  mlx_array a = tensor(l, name);
  if (!l->g->failed && !has_shape(a, n, 0))
    l->g->failed = lm_fail(RP_ERR_FORMAT, "[model] '%s' should have %d elements.", name, n);
  if (check_real(l, name, a)) return (mlx_array){0};
  return lm_astype(l->g, a, MLX_FLOAT32);
}

static mlx_array norm_weight(struct loader* l, const char* name) {
  return vector(l, name, l->c->hidden);
}

/* "(2,3)"; long ones are cut. */
static const char* shape_text(char* text, size_t room, mlx_array a) {
  size_t at = 1;
  snprintf(text, room, "(");
  for (size_t i = 0; i < mlx_array_ndim(a) && at + 16 < room; i++)
    at += (size_t)snprintf(text + at, room - at, i ? ",%d" : "%d", mlx_array_shape(a)[i]);
  snprintf(text + at, room - at, ")");
  return text;
}

static int check_rows(struct loader* l, const char* name, mlx_array w, int rows, int columns) {
  char text[128];
  if (!l->g->failed && !has_shape(w, rows, columns))
    l->g->failed = lm_fail(RP_ERR_FORMAT, "[model] '%s' has shape %s; expected (%d,%d).", name,
                           shape_text(text, sizeof text, w), rows, columns);
  return l->g->failed;
}

/* The packed width of a row says the bits: 32 / 8 words for 8 bits, half for 4. */
static void load_quantized(struct loader* l, struct lm_linear* out, const char* name, int rows,
                           int columns) {
  char other[160];
  size_t base = strlen(name) - strlen("weight");
  out->group = 32;
  out->bits = mlx_array_ndim(out->w) == 2 && mlx_array_dim(out->w, 1) == columns / 4 ? 8 : 4;
  if (check_rows(l, name, out->w, rows, columns / (32 / out->bits))) return;
  snprintf(other, sizeof other, "%.*sscales", (int)base, name);
  out->scales = tensor(l, other);
  check_rows(l, other, out->scales, rows, columns / out->group);
  snprintf(other, sizeof other, "%.*sbiases", (int)base, name);
  out->biases = tensor(l, other);
  check_rows(l, other, out->biases, rows, columns / out->group);
}

static struct lm_linear linear(struct loader* l, const char* name, int rows, int columns) {
  struct lm_linear out = {.w = tensor(l, name)};
  if (l->g->failed) return out;
  if (mlx_array_dtype(out.w) == MLX_UINT32)
    load_quantized(l, &out, name, rows, columns);
  else if (!check_rows(l, name, out.w, rows, columns))
    check_real(l, name, out.w);
  if (mlx_array_dtype(out.w) == MLX_FLOAT64) out.w = lm_astype(l->g, out.w, MLX_FLOAT32);
  return out;
}

/* Rows of each head from pairs one after another (2i, 2i+1) to halves (i, i + dim/2). */
static mlx_array undo_permutation(struct loader* l, mlx_array w, int heads) {
  if (!w.ctx || l->g->failed) return w;
  int rows = mlx_array_dim(w, 0), columns = mlx_array_dim(w, 1);
  int pairs[] = {heads, rows / heads / 2, 2, columns}, back[] = {rows, columns};
  mlx_array split = lm_reshape(l->g, w, pairs, 4);
  return lm_reshape(l->g, lm_transpose(l->g, split, (int[]){0, 2, 1, 3}, 4), back, 2);
}

static struct lm_linear attention_rows(struct loader* l, const char* name, int heads) {
  struct lm_linear x = linear(l, name, heads * l->c->head_dim, l->c->hidden);
  if (!l->c->rows_permuted) return x;
  x.w = undo_permutation(l, x.w, heads);
  x.scales = undo_permutation(l, x.scales, heads);
  x.biases = undo_permutation(l, x.biases, heads);
  return x;
}

static mlx_array join_arrays(struct loader* l, const struct lm_linear* at, size_t n, size_t field) {
  mlx_array part[3];
  for (size_t i = 0; i < n; i++) part[i] = *(const mlx_array*)((const char*)&at[i] + field);
  return lm_concat(l->g, part, n, 0);
}

static bool is_one_format(const struct lm_linear* at, size_t n) {
  for (size_t i = 1; i < n; i++)
    if (at[i].bits != at[0].bits || mlx_array_dtype(at[i].w) != mlx_array_dtype(at[0].w))
      return false;
  return true;
}

static mlx_optional_int some(int v) { return (mlx_optional_int){v, true}; }

static mlx_array dequantize(struct lm_scope* g, const struct lm_linear* l, mlx_array w,
                            mlx_array scales, mlx_array biases) {
  mlx_optional_dtype f32 = {MLX_FLOAT32, true};
  mlx_array out = {0};
  if (g->failed ||
      lm_scope_check(g, mlx_dequantize(&out, w, scales, biases, some(l->group), some(l->bits),
                                       "affine", (mlx_array){0}, f32, g->stream)))
    return (mlx_array){0};
  return lm_own(g, out);
}

static struct lm_linear dense(struct loader* l, const struct lm_linear* x) {
  if (!x->bits) return (struct lm_linear){.w = lm_astype(l->g, x->w, MLX_FLOAT32)};
  return (struct lm_linear){.w = dequantize(l->g, x, x->w, x->scales, x->biases)};
}

/* One layer over the rows of several: fewer, larger products. Mixed formats become dense. */
static struct lm_linear join(struct loader* l, struct lm_linear* at, size_t n) {
  bool mixed = !l->g->failed && !is_one_format(at, n);
  for (size_t i = 0; mixed && i < n; i++) at[i] = dense(l, &at[i]);
  struct lm_linear out = at[0];
  if (l->g->failed) return out;
  out.w = join_arrays(l, at, n, offsetof(struct lm_linear, w));
  if (!out.bits) return out;
  out.scales = join_arrays(l, at, n, offsetof(struct lm_linear, scales));
  out.biases = join_arrays(l, at, n, offsetof(struct lm_linear, biases));
  return out;
}

/* ---- the model ------------------------------------------------------------------------------- */

/* The two naming schemes: GGUF's and Hugging Face's. */
static const char* const layer_names[2][9] = {
    {"model.layers.%d.input_layernorm.weight", "model.layers.%d.self_attn.q_proj.weight",
     "model.layers.%d.self_attn.k_proj.weight", "model.layers.%d.self_attn.v_proj.weight",
     "model.layers.%d.self_attn.o_proj.weight", "model.layers.%d.post_attention_layernorm.weight",
     "model.layers.%d.mlp.gate_proj.weight", "model.layers.%d.mlp.up_proj.weight",
     "model.layers.%d.mlp.down_proj.weight"},
    {"blk.%d.attn_norm.weight", "blk.%d.attn_q.weight", "blk.%d.attn_k.weight",
     "blk.%d.attn_v.weight", "blk.%d.attn_output.weight", "blk.%d.ffn_norm.weight",
     "blk.%d.ffn_gate.weight", "blk.%d.ffn_up.weight", "blk.%d.ffn_down.weight"}};

static void keep_array(struct lm_scope* g, mlx_array* a) {
  if (a->ctx) *a = lm_export(g, *a);
}

static void keep_linear(struct lm_scope* g, struct lm_linear* l) {
  keep_array(g, &l->w);
  keep_array(g, &l->scales);
  keep_array(g, &l->biases);
}

/* Evaluate what the layer needs now, so that its parts in the file can go before the next layer. */
static void settle_layer(struct lm_scope* g, struct lm_layer* y) {
  mlx_array all[] = {y->attn_norm, y->ffn_norm, y->qkv.w, y->qkv.scales, y->qkv.biases,
                     y->out.w, y->out.scales, y->out.biases, y->gate_up.w, y->gate_up.scales,
                     y->gate_up.biases, y->down.w, y->down.scales, y->down.biases};
  for (size_t i = 0; i < sizeof all / sizeof *all && !g->failed; i++)
    if (all[i].ctx) lm_scope_check(g, mlx_array_eval(all[i]));
}

/* A joined tensor's parts leave the file's map, so that weights are not held twice. */
static void forget(struct loader* l, const char* name) {
  static const char* const parts[] = {"weight", "scales", "biases"};
  if (!is_gguf(l) || l->g->failed) return;
  mlx_array nothing = lm_int(l->g, 0);
  for (int i = 0; i < 3; i++) {
    char full[160];
    snprintf(full, sizeof full, "%.*s%s", (int)(strlen(name) - strlen("weight")), name, parts[i]);
    mlx_array old = {0};
    bool there = find(l->t, full, &old);
    mlx_array_free(old);
    if (there) lm_scope_check(l->g, mlx_io_gguf_set_array(l->t->gguf, full, nothing));
  }
}

static bool exists(const struct lm_tensors* t, const char* name) {
  mlx_array a = {0};
  bool there = find(t, name, &a);
  mlx_array_free(a);
  return there;
}

/* The step adds no biases: a file that has them is another model. */
static void refuse_bias(struct loader* l, const char* name) {
  char bias[160];
  snprintf(bias, sizeof bias, "%.*sbias", (int)(strlen(name) - strlen("weight")), name);
  if (!l->g->failed && exists(l->t, bias))
    l->g->failed = lm_fail(RP_ERR_UNSUPPORTED, "[model] Biases are not supported: '%s'.", bias);
}

static int load_layer(struct lm_layer* y, struct lm_config* c, const struct lm_tensors* t, int i) {
  struct lm_scope g;
  lm_scope_begin(&g);
  struct loader l = {t, c, &g};
  char name[9][96];
  for (int k = 0; k < 9; k++)
    snprintf(name[k], sizeof name[k], layer_names[is_gguf(&l)][k], i);
  for (int k = 0; k < 9; k++) refuse_bias(&l, name[k]);
  struct lm_linear qkv[3] = {attention_rows(&l, name[1], c->heads),
                             attention_rows(&l, name[2], c->kv_heads),
                             linear(&l, name[3], c->kv_heads * c->head_dim, c->hidden)};
  struct lm_linear gate_up[2] = {linear(&l, name[6], c->ffn, c->hidden),
                                 linear(&l, name[7], c->ffn, c->hidden)};
  *y = (struct lm_layer){.attn_norm = norm_weight(&l, name[0]), .ffn_norm = norm_weight(&l, name[5]),
                         .qkv = join(&l, qkv, 3), .gate_up = join(&l, gate_up, 2)};
  y->out = linear(&l, name[4], c->hidden, c->heads * c->head_dim);
  y->down = linear(&l, name[8], c->hidden, c->ffn);
  settle_layer(&g, y);
  for (int k = 0; k < 9; k++) forget(&l, name[k]);
  keep_array(&g, &y->attn_norm);
  keep_array(&g, &y->ffn_norm);
  keep_linear(&g, &y->qkv);
  keep_linear(&g, &y->out);
  keep_linear(&g, &y->gate_up);
  keep_linear(&g, &y->down);
  return lm_scope_end(&g);
}

static int load_ends(struct lm_weights* w, struct lm_config* c, const struct lm_tensors* t) {
  struct lm_scope g;
  lm_scope_begin(&g);
  struct loader l = {t, c, &g};
  const char* embed = is_gguf(&l) ? "token_embd.weight" : "model.embed_tokens.weight";
  const char* head = is_gguf(&l) ? "output.weight" : "lm_head.weight";
  mlx_array table = tensor(&l, embed);
  c->vocab = g.failed ? 0 : mlx_array_dim(table, 0);
  w->embed = linear(&l, embed, c->vocab, c->hidden);
  c->tied = c->tied || !exists(t, head);
  w->head = c->tied ? w->embed : linear(&l, head, c->vocab, c->hidden);
  w->norm = norm_weight(&l, is_gguf(&l) ? "output_norm.weight" : "model.norm.weight");
  if (!g.failed) lm_scope_check(&g, mlx_array_eval(w->norm));
  if (is_gguf(&l) && exists(t, "rope_freqs.weight"))
    w->rope_factors = vector(&l, "rope_freqs.weight", c->head_dim / 2);
  if (w->rope_factors.ctx) lm_scope_check(&g, mlx_array_eval(w->rope_factors));
  keep_linear(&g, &w->embed);
  keep_linear(&g, &w->head);
  keep_array(&g, &w->norm);
  keep_array(&g, &w->rope_factors);
  return lm_scope_end(&g);
}

int lm_weights_load(struct lm_weights* w, struct lm_config* c, const struct lm_tensors* t) {
  memset(w, 0, sizeof *w);
  w->layer = calloc((size_t)c->layers, sizeof *w->layer);
  if (!w->layer) return lm_fail_memory("the layers", sizeof *w->layer * (size_t)c->layers);
  w->layers = c->layers;
  int rc = load_ends(w, c, t);
  for (int i = 0; i < c->layers && !rc; i++) rc = load_layer(&w->layer[i], c, t, i);
  return rc;
}

static void free_linear(struct lm_linear* l) {
  mlx_array_free(l->w);
  mlx_array_free(l->scales);
  mlx_array_free(l->biases);
}

void lm_weights_free(struct lm_weights* w) {
  for (int i = 0; i < w->layers; i++) {
    struct lm_layer* y = &w->layer[i];
    mlx_array_free(y->attn_norm);
    mlx_array_free(y->ffn_norm);
    free_linear(&y->qkv);
    free_linear(&y->out);
    free_linear(&y->gate_up);
    free_linear(&y->down);
  }
  free(w->layer);
  free_linear(&w->embed);
  free_linear(&w->head);
  mlx_array_free(w->norm);
  mlx_array_free(w->rope_factors);
  memset(w, 0, sizeof *w);
}

/* ---- use ------------------------------------------------------------------------------------- */

static int apply(mlx_array* out, struct lm_scope* g, const struct lm_linear* l, mlx_array x) {
  if (l->bits)
    return mlx_quantized_matmul(out, x, l->w, l->scales, l->biases, true, some(l->group),
                                some(l->bits), "affine", g->stream);
  mlx_array t = {0};
  int rc = mlx_transpose(&t, l->w, g->stream);
  if (!rc) rc = mlx_matmul(out, x, t, g->stream);
  mlx_array_free(t);
  return rc;
}

mlx_array lm_linear_apply(struct lm_scope* g, const struct lm_linear* l, mlx_array x) {
  mlx_array out = {0};
  if (g->failed || lm_scope_check(g, apply(&out, g, l, x))) return (mlx_array){0};
  return lm_own(g, out);
}

mlx_array lm_linear_rows(struct lm_scope* g, const struct lm_linear* l, mlx_array ids) {
  mlx_array rows = lm_take(g, l->w, ids, 0);
  if (!l->bits) return lm_astype(g, rows, MLX_FLOAT32);
  mlx_array scales = lm_take(g, l->scales, ids, 0);
  return dequantize(g, l, rows, scales, lm_take(g, l->biases, ids, 0));
}
