/* The forward step: embedding, layers, head. */
#include "lm/llama.h"

#include <math.h>
#include <stdlib.h>

#include "lm/err.h"

/* What every layer of one step shares. */
struct step {
  struct lm_scope* g;
  const struct lm_llama* m;
  mlx_array offset; /* position of the first token, 0-d */
  mlx_array start;  /* the same with shape (1) */
  mlx_array mask;   /* bool (T, capacity): key j is seen by token i */
};

static mlx_array rms_norm(struct step* s, mlx_array x, mlx_array weight) {
  mlx_array out = {0};
  if (s->g->failed || lm_scope_check(s->g, mlx_fast_rms_norm(&out, x, weight, s->m->config.rms_eps,
                                                             s->g->stream)))
    return (mlx_array){0};
  return lm_own(s->g, out);
}

static mlx_array rope(struct step* s, mlx_array x) {
  const struct lm_config* c = &s->m->config;
  mlx_array out = {0};
  mlx_optional_float base = {c->rope_theta, s->m->freqs.ctx == NULL};
  float scale = c->rope_scaling == LM_ROPE_LINEAR ? 1.0f / c->rope_factor : 1.0f;
  if (s->g->failed ||
      lm_scope_check(s->g, mlx_fast_rope_dynamic(&out, x, c->head_dim, false, base, scale,
                                                 s->offset, s->m->freqs, s->g->stream)))
    return (mlx_array){0};
  return lm_own(s->g, out);
}

/* (1, T, heads * dim) columns [from, from + heads * dim) to (1, heads, T, dim). */
static mlx_array heads_of(struct step* s, mlx_array qkv, int from, int heads) {
  int dim = s->m->config.head_dim;
  mlx_array x = lm_slice_axis(s->g, qkv, 2, from, from + heads * dim);
  x = lm_unflatten(s->g, x, 2, (int[]){heads, dim}, 2);
  return lm_transpose(s->g, x, (int[]){0, 2, 1, 3}, 4);
}

static mlx_array write_cache(struct step* s, mlx_array cache, mlx_array rows) {
  mlx_array out = {0};
  int axis = 2;
  if (s->g->failed || lm_scope_check(s->g, mlx_slice_update_dynamic(&out, cache, rows, s->start,
                                                                    &axis, 1, s->g->stream)))
    return (mlx_array){0};
  return lm_own(s->g, out);
}

static mlx_array attend(struct step* s, mlx_array q, mlx_array k, mlx_array v) {
  mlx_array out = {0};
  float scale = 1.0f / sqrtf((float)s->m->config.head_dim);
  if (s->g->failed ||
      lm_scope_check(s->g, mlx_fast_scaled_dot_product_attention(
                               &out, q, k, v, scale, "array", s->mask, (mlx_array){0},
                               s->g->stream)))
    return (mlx_array){0};
  return lm_own(s->g, out);
}

static mlx_array attention(struct step* s, const struct lm_layer* y, mlx_array x, mlx_array* keys,
                           mlx_array* values) {
  const struct lm_config* c = &s->m->config;
  mlx_array qkv = lm_linear_apply(s->g, &y->qkv, x);
  mlx_array q = rope(s, heads_of(s, qkv, 0, c->heads));
  mlx_array k = rope(s, heads_of(s, qkv, c->heads * c->head_dim, c->kv_heads));
  mlx_array v = heads_of(s, qkv, (c->heads + c->kv_heads) * c->head_dim, c->kv_heads);
  *keys = write_cache(s, *keys, k);
  *values = write_cache(s, *values, v);
  mlx_array y4 = attend(s, q, *keys, *values);
  mlx_array joined = lm_flatten(s->g, lm_transpose(s->g, y4, (int[]){0, 2, 1, 3}, 4), 2, 3);
  return lm_linear_apply(s->g, &y->out, joined);
}

static mlx_array mlp(struct step* s, const struct lm_layer* y, mlx_array x) {
  int ffn = s->m->config.ffn;
  mlx_array both = lm_linear_apply(s->g, &y->gate_up, x);
  mlx_array gate = lm_slice_axis(s->g, both, 2, 0, ffn);
  mlx_array up = lm_slice_axis(s->g, both, 2, ffn, 2 * ffn);
  return lm_linear_apply(s->g, &y->down, lm_mul(s->g, lm_silu(s->g, gate), up));
}

static mlx_array less_equal(struct lm_scope* g, mlx_array a, mlx_array b) {
  mlx_array out = {0};
  if (g->failed || lm_scope_check(g, mlx_less_equal(&out, a, b, g->stream))) return (mlx_array){0};
  return lm_own(g, out);
}

static mlx_array input(struct lm_scope* g, const mlx_vector_array in, size_t i) {
  mlx_array out = {0};
  if (g->failed || lm_scope_check(g, mlx_vector_array_get(&out, in, i))) return (mlx_array){0};
  return lm_own(g, out);
}

static void forward(struct step* s, const mlx_vector_array in, mlx_array* out) {
  struct lm_scope* g = s->g;
  const struct lm_weights* w = &s->m->weights;
  mlx_array tokens = input(g, in, LM_STEP_TOKENS), positions = input(g, in, LM_STEP_POSITIONS);
  mlx_array* cache = out + 1;
  for (int i = 0; i < 2 * w->layers; i++) cache[i] = input(g, in, (size_t)LM_STEP_CACHES + i);
  s->start = lm_slice_axis(g, positions, 0, 0, 1);
  s->offset = lm_reshape(g, s->start, NULL, 0);
  s->mask = less_equal(g, input(g, in, LM_STEP_SLOTS), lm_expand(g, positions, 1));
  mlx_array x = lm_expand(g, lm_linear_rows(g, &w->embed, tokens), 0);
  for (int i = 0; i < w->layers; i++) {
    const struct lm_layer* y = &w->layer[i];
    x = lm_add(g, x, attention(s, y, rms_norm(s, x, y->attn_norm), &cache[2 * i], &cache[2 * i + 1]));
    x = lm_add(g, x, mlp(s, y, rms_norm(s, x, y->ffn_norm)));
  }
  mlx_array last = lm_take(g, x, input(g, in, LM_STEP_LAST), 1);
  mlx_array logits = lm_linear_apply(g, &w->head, rms_norm(s, last, w->norm));
  out[0] = lm_flatten(g, logits, 0, 1);
}

static int run_step(mlx_vector_array* res, const mlx_vector_array in, void* payload) {
  struct lm_scope g;
  struct step s = {.g = &g, .m = payload};
  size_t n = 1 + 2 * (size_t)s.m->weights.layers;
  mlx_array* out = calloc(n, sizeof *out);
  if (!out) return lm_fail_memory("a step", n * sizeof *out);
  lm_scope_begin(&g);
  forward(&s, in, out);
  if (!g.failed) lm_scope_check(&g, mlx_vector_array_set_data(res, out, n));
  free(out);
  return lm_scope_end(&g);
}

mlx_closure lm_llama_step(struct lm_llama* m) {
  return mlx_closure_new_func_payload(run_step, m, NULL);
}

/* Llama 3's stretching of low frequencies (Llama 3.1 model card): long wavelengths are divided by the
 * factor, short ones kept, those between interpolated. mlx takes the inverse, base^(2i/dim). */
static float llama3_freq(const struct lm_config* c, int i) {
  double f = pow(c->rope_theta, 2.0 * i / c->head_dim);
  double turns = c->rope_original / (2 * 3.14159265358979323846 * f);
  if (turns > c->rope_high) return (float)f;
  if (turns < c->rope_low) return (float)(f * c->rope_factor);
  double smooth = (turns - c->rope_low) / (c->rope_high - c->rope_low);
  return (float)(1.0 / ((1 - smooth) / (f * c->rope_factor) + smooth / f));
}

int lm_llama_init_rope(struct lm_llama* m) {
  const struct lm_config* c = &m->config;
  mlx_array factors = m->weights.rope_factors; /* GGUF has the same stretching as numbers */
  const float* at = factors.ctx ? mlx_array_data_float32(factors) : NULL;
  if (c->rope_scaling != LM_ROPE_LLAMA3 && !at) return 0;
  int n = c->head_dim / 2;
  float* f = malloc(sizeof *f * (size_t)n);
  if (!f) return lm_fail_memory("rope frequencies", sizeof *f * (size_t)n);
  for (int i = 0; i < n; i++)
    f[i] = at ? (float)(pow(c->rope_theta, 2.0 * i / c->head_dim) * at[i]) : llama3_freq(c, i);
  m->freqs = mlx_array_new_data(f, &n, 1, MLX_FLOAT32);
  free(f);
  return m->freqs.ctx ? 0 : lm_fail(RP_ERR_MEMORY, "[model] The rope frequencies cannot be stored.");
}
