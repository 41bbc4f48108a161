/* A small random Llama model for tests: written as a GGUF file and as a Hugging Face folder, and
 * run in float64 from the definition.
 *
 * Tensors hold (rows, columns) as Hugging Face stores them; the GGUF writer reorders q and k.
 * Fields may be changed between tiny_new and a writer, to make files that lie. */
#ifndef TESTS_TINY_MODEL_H
#define TESTS_TINY_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op/scalar_half.h"

enum { TINY_PLAIN, TINY_LINEAR, TINY_LLAMA3 };                  /* rope scaling */
enum { TINY_F32 = 0, TINY_Q4_0 = 2, TINY_Q8_0 = 8, TINY_I32 = 26 }; /* GGUF's numbers */
enum { TINY_BLOCK = 32, TINY_MAX_TENSORS = 32 };

struct tiny_tensor {
  char hf[64], gguf[64];
  int rows, columns; /* columns 0: a vector */
  int heads;         /* of q and k, else 0 */
  int type;
  float *at, *scale; /* one scale for each block of 32, where the type has blocks */
};

struct tiny {
  const char* architecture;
  int layers, hidden, heads, kv_heads, dim, rotated, ffn, vocab, context, tokens;
  float theta, eps;
  int scaling;
  double factor, low, high, original;
  const char* extra; /* more of config.json, beginning with a comma */
  struct tiny_tensor t[TINY_MAX_TENSORS];
  int n;
  uint64_t seed;
};

static inline double tiny_noise(struct tiny* m) { /* in [-1, 1) */
  m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(m->seed >> 11) * 0x1p-52 - 1;
}

static inline void tiny_fill(struct tiny* m, struct tiny_tensor* t, double scale) {
  int columns = t->columns ? t->columns : 1;
  t->at = calloc((size_t)(t->rows * columns), sizeof *t->at);
  t->scale = calloc((size_t)(t->rows * columns), sizeof *t->scale);
  for (int i = 0; i < t->rows * columns; i++) {
    float d = i % TINY_BLOCK ? t->scale[i / TINY_BLOCK]
                             : (float)(1 + floor(8 * (tiny_noise(m) + 1))) / 512;
    t->scale[i / TINY_BLOCK] = d;
    if (t->type == TINY_F32)
      t->at[i] = (float)(t->columns ? scale * tiny_noise(m) : 1 + 0.25 * tiny_noise(m));
    else if (t->type == TINY_Q4_0)
      t->at[i] = d * (float)floor(8 * tiny_noise(m));
    else
      t->at[i] = d / 16 * (float)floor(128 * tiny_noise(m));
  }
  if (t->type == TINY_Q8_0)
    for (int i = 0; i < t->rows * columns / TINY_BLOCK; i++) t->scale[i] /= 16;
}

static inline void tiny_add(struct tiny* m, const char* hf, const char* gguf, int rows, int columns,
                            int heads, int type) {
  struct tiny_tensor* t = &m->t[m->n++];
  *t = (struct tiny_tensor){.rows = rows, .columns = columns, .heads = heads};
  t->type = columns ? type : TINY_F32;
  snprintf(t->hf, sizeof t->hf, "%s", hf);
  snprintf(t->gguf, sizeof t->gguf, "%s", gguf);
  tiny_fill(m, t, rows == m->vocab ? 1 : 0.4);
}

static inline void tiny_add_layer(struct tiny* m, int layer, const char* hf, const char* gguf,
                                  int rows, int columns, int heads, int type) {
  char a[64], b[64];
  snprintf(a, sizeof a, "model.layers.%d.%s.weight", layer, hf);
  snprintf(b, sizeof b, "blk.%d.%s.weight", layer, gguf);
  tiny_add(m, a, b, rows, columns, heads, type);
}

/* 2 layers, 4 heads of 8 over 2 key-value heads, with a head of its own unless tied. */
static inline struct tiny tiny_new(int type, bool tied) {
  struct tiny m = {.architecture = "llama", .layers = 2, .hidden = 32, .heads = 4, .kv_heads = 2,
                   .dim = 8, .ffn = 64, .vocab = 24, .context = 512, .tokens = 24, .theta = 100000,
                   .eps = 1e-5f, .factor = 4, .low = 1, .high = 4, .original = 32, .extra = "",
                   .seed = 7};
  int h = m.hidden;
  tiny_add(&m, "model.embed_tokens.weight", "token_embd.weight", m.vocab, h, 0, type);
  tiny_add(&m, "model.norm.weight", "output_norm.weight", h, 0, 0, type);
  for (int i = 0; i < m.layers; i++) {
    int q = m.heads * m.dim, k = m.kv_heads * m.dim;
    tiny_add_layer(&m, i, "input_layernorm", "attn_norm", h, 0, 0, type);
    tiny_add_layer(&m, i, "self_attn.q_proj", "attn_q", q, h, m.heads, type);
    tiny_add_layer(&m, i, "self_attn.k_proj", "attn_k", k, h, m.kv_heads, type);
    tiny_add_layer(&m, i, "self_attn.v_proj", "attn_v", k, h, 0, type);
    tiny_add_layer(&m, i, "self_attn.o_proj", "attn_output", h, q, 0, type);
    tiny_add_layer(&m, i, "post_attention_layernorm", "ffn_norm", h, 0, 0, type);
    tiny_add_layer(&m, i, "mlp.gate_proj", "ffn_gate", m.ffn, h, 0, type);
    tiny_add_layer(&m, i, "mlp.up_proj", "ffn_up", m.ffn, h, 0, type);
    tiny_add_layer(&m, i, "mlp.down_proj", "ffn_down", h, m.ffn, 0, type);
  }
  if (!tied) tiny_add(&m, "lm_head.weight", "output.weight", m.vocab, h, 0, type);
  return m;
}

static inline void tiny_free(struct tiny* m) {
  for (int i = 0; i < m->n; i++) free(m->t[i].at), free(m->t[i].scale);
}

static inline struct tiny_tensor* tiny_find(struct tiny* m, const char* gguf) {
  for (int i = 0; i < m->n; i++)
    if (!strcmp(m->t[i].gguf, gguf)) return &m->t[i];
  return NULL;
}

static inline size_t tiny_count(const struct tiny_tensor* t) {
  return (size_t)t->rows * (size_t)(t->columns ? t->columns : 1);
}

/* ---- GGUF ------------------------------------------------------------------------------------ */

static inline void tiny_put(FILE* f, const void* p, size_t n) {
  if (fwrite(p, 1, n, f) != n) abort();
}
static inline void tiny_u32(FILE* f, uint32_t v) { tiny_put(f, &v, 4); }
static inline void tiny_u64(FILE* f, uint64_t v) { tiny_put(f, &v, 8); }
static inline void tiny_text(FILE* f, const char* s) {
  tiny_u64(f, strlen(s));
  tiny_put(f, s, strlen(s));
}
static inline void tiny_key(FILE* f, uint64_t* n, const char* key, uint32_t type) {
  ++*n;
  tiny_text(f, key);
  tiny_u32(f, type);
}
static inline void tiny_key_u32(FILE* f, uint64_t* n, const char* key, int v) {
  tiny_key(f, n, key, 4);
  tiny_u32(f, (uint32_t)v);
}
static inline void tiny_key_f32(FILE* f, uint64_t* n, const char* key, float v) {
  tiny_key(f, n, key, 6);
  tiny_put(f, &v, 4);
}
static inline void tiny_key_text(FILE* f, uint64_t* n, const char* key, const char* v) {
  tiny_key(f, n, key, 8);
  tiny_text(f, v);
}

/* Tokens are the letters from 'a', the 24th is the special "<e>", the rest have numbers. */
static inline const char* tiny_token(int i, char* room) {
  if (i == 23) return "<e>";
  snprintf(room, 16, i < 23 ? "%c" : "t%d", i < 23 ? 'a' + i : i);
  return room;
}

static inline void tiny_vocab(FILE* f, uint64_t* n, const struct tiny* m) {
  char room[16];
  tiny_key_text(f, n, "tokenizer.ggml.model", "gpt2");
  tiny_key_text(f, n, "tokenizer.ggml.pre", "gpt-2");
  tiny_key(f, n, "tokenizer.ggml.tokens", 9);
  tiny_u32(f, 8), tiny_u64(f, (uint64_t)m->tokens);
  for (int i = 0; i < m->tokens; i++) tiny_text(f, tiny_token(i, room));
  tiny_key(f, n, "tokenizer.ggml.token_type", 9);
  tiny_u32(f, 5), tiny_u64(f, (uint64_t)m->tokens);
  for (int i = 0; i < m->tokens; i++) tiny_u32(f, i == 23 ? 3 : 1);
  tiny_key_u32(f, n, "tokenizer.ggml.eos_token_id", 23);
}

static inline void tiny_metadata(FILE* f, uint64_t* n, const struct tiny* m) {
  tiny_key_text(f, n, "general.architecture", m->architecture);
  tiny_key_u32(f, n, "llama.block_count", m->layers);
  tiny_key_u32(f, n, "llama.embedding_length", m->hidden);
  tiny_key_u32(f, n, "llama.attention.head_count", m->heads);
  tiny_key_u32(f, n, "llama.attention.head_count_kv", m->kv_heads);
  tiny_key_u32(f, n, "llama.attention.key_length", m->dim);
  tiny_key_u32(f, n, "llama.rope.dimension_count", m->rotated ? m->rotated : m->dim);
  tiny_key_u32(f, n, "llama.feed_forward_length", m->ffn);
  tiny_key_u32(f, n, "llama.context_length", m->context);
  tiny_key_f32(f, n, "llama.attention.layer_norm_rms_epsilon", m->eps);
  tiny_key_f32(f, n, "llama.rope.freq_base", m->theta);
  if (m->scaling == TINY_LINEAR) {
    tiny_key_text(f, n, "llama.rope.scaling.type", "linear");
    tiny_key_f32(f, n, "llama.rope.scaling.factor", (float)m->factor);
  }
  tiny_vocab(f, n, m);
}

/* Angle of pair i at position 1, as Llama 3.1's reference does it: by wavelength. */
static inline double tiny_angle(const struct tiny* m, int i) {
  double w = pow((double)m->theta, -2.0 * i / m->dim), wave = 2 * 3.14159265358979323846 / w;
  if (m->scaling == TINY_LINEAR) return w / m->factor;
  if (m->scaling == TINY_PLAIN || wave < m->original / m->high) return w;
  if (wave > m->original / m->low) return w / m->factor;
  double smooth = (m->original / wave - m->low) / (m->high - m->low);
  return (1 - smooth) * w / m->factor + smooth * w;
}

static inline uint64_t tiny_bytes(const struct tiny_tensor* t) {
  uint64_t blocks = tiny_count(t) / TINY_BLOCK;
  if (t->type == TINY_Q4_0) return blocks * 18;
  return t->type == TINY_Q8_0 ? blocks * 34 : tiny_count(t) * 4;
}

static inline void tiny_block(FILE* f, const struct tiny_tensor* t, size_t first) {
  const float* x = t->at + first;
  float d = t->scale[first / TINY_BLOCK];
  uint16_t half = rp_f64_to_f16((double)d);
  tiny_put(f, &half, 2);
  for (int i = 0; i < (t->type == TINY_Q8_0 ? 32 : 16); i++) {
    int low = (int)lrintf(x[i] / d), high = (int)lrintf(x[i + (t->type == TINY_Q4_0 ? 16 : 0)] / d);
    uint8_t byte = (uint8_t)(t->type == TINY_Q8_0 ? low : (low + 8) | (high + 8) << 4);
    tiny_put(f, &byte, 1);
  }
}

/* One tensor's bytes; rows of q and k go from halves (i, i + dim/2) to pairs (2i, 2i + 1). */
static inline void tiny_data(FILE* f, const struct tiny_tensor* t) {
  int columns = t->columns ? t->columns : 1, dim = t->heads ? t->rows / t->heads : 1;
  for (int r = 0; r < t->rows; r++) {
    int k = r % dim, from = t->heads ? r - k + k / 2 + k % 2 * (dim / 2) : r;
    size_t first = (size_t)from * (size_t)columns;
    if (t->type == TINY_Q4_0 || t->type == TINY_Q8_0)
      for (int c = 0; c < columns; c += TINY_BLOCK) tiny_block(f, t, first + (size_t)c);
    else
      tiny_put(f, t->at + first, sizeof(float) * (size_t)columns);
  }
}

static inline void tiny_pad(FILE* f, long multiple) {
  while (ftell(f) % multiple) fputc(0, f);
}

static inline void tiny_write_gguf(const struct tiny* m, const char* path) {
  char* meta;
  size_t bytes;
  uint64_t keys = 0, offset = 0;
  struct tiny all = *m;
  if (m->scaling == TINY_LLAMA3) { /* what the frequencies are divided by */
    struct tiny_tensor* t = &all.t[all.n++];
    *t = (struct tiny_tensor){.gguf = "rope_freqs.weight", .rows = m->dim / 2};
    t->at = calloc((size_t)t->rows, sizeof(float));
    for (int i = 0; i < t->rows; i++)
      t->at[i] = (float)(pow((double)m->theta, -2.0 * i / m->dim) / tiny_angle(m, i));
  }
  FILE* f = open_memstream(&meta, &bytes);
  tiny_metadata(f, &keys, m);
  fclose(f);
  f = fopen(path, "wb");
  tiny_put(f, "GGUF", 4);
  tiny_u32(f, 3), tiny_u64(f, (uint64_t)all.n), tiny_u64(f, keys);
  tiny_put(f, meta, bytes);
  for (int i = 0; i < all.n; i++) {
    const struct tiny_tensor* t = &all.t[i];
    tiny_text(f, t->gguf);
    tiny_u32(f, t->columns ? 2 : 1);
    if (t->columns) tiny_u64(f, (uint64_t)t->columns);
    tiny_u64(f, (uint64_t)t->rows);
    tiny_u32(f, (uint32_t)t->type), tiny_u64(f, offset);
    offset = (offset + tiny_bytes(t) + 31) / 32 * 32;
  }
  for (int i = 0; i < all.n; i++) tiny_pad(f, 32), tiny_data(f, &all.t[i]);
  tiny_pad(f, 32);
  fclose(f);
  free(meta);
  if (all.n > m->n) free(all.t[m->n].at);
}

/* ---- Hugging Face ---------------------------------------------------------------------------- */

static inline FILE* tiny_open(const char* folder, const char* name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* f = fopen(path, "wb");
  if (!f) abort();
  return f;
}

static inline void tiny_remove(const char* folder, const char* name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  remove(path);
}

static inline void tiny_write_config(const struct tiny* m, const char* folder) {
  FILE* f = tiny_open(folder, "config.json");
  fprintf(f, "{\"model_type\":\"%s\",\"num_hidden_layers\":%d,\"hidden_size\":%d,", m->architecture,
          m->layers, m->hidden);
  fprintf(f, "\"num_attention_heads\":%d,\"num_key_value_heads\":%d,\"head_dim\":%d,", m->heads,
          m->kv_heads, m->dim);
  fprintf(f, "\"intermediate_size\":%d,\"max_position_embeddings\":%d,", m->ffn, m->context);
  fprintf(f, "\"rms_norm_eps\":%.9g,\"rope_theta\":%.9g,\"eos_token_id\":23", (double)m->eps,
          (double)m->theta);
  if (m->scaling == TINY_LINEAR)
    fprintf(f, ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":%g}", m->factor);
  if (m->scaling == TINY_LLAMA3)
    fprintf(f,
            ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":%g,\"low_freq_factor\":%g,"
            "\"high_freq_factor\":%g,\"original_max_position_embeddings\":%g}",
            m->factor, m->low, m->high, m->original);
  fprintf(f, "%s}", m->extra);
  fclose(f);
}

static inline void tiny_write_tokenizer(const struct tiny* m, const char* folder) {
  char room[16];
  FILE* f = tiny_open(folder, "tokenizer.json");
  fprintf(f, "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
             "\"use_regex\":true},\"added_tokens\":[{\"id\":23,\"content\":\"<e>\","
             "\"special\":true}],\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{");
  for (int i = 0; i < m->tokens; i++)
    fprintf(f, "%s\"%s\":%d", i ? "," : "", tiny_token(i, room), i);
  fprintf(f, "}}}");
  fclose(f);
}

/* Tensors first, first + 2, ... or all (step 1) of them, as float32. */
static inline void tiny_write_shard(const struct tiny* m, const char* folder, const char* name,
                                    int first, int step) {
  char* head;
  size_t bytes, at = 0;
  FILE* f = open_memstream(&head, &bytes);
  for (int i = first; i < m->n; i += step) {
    const struct tiny_tensor* t = &m->t[i];
    size_t end = at + tiny_count(t) * 4;
    fprintf(f, "%c\"%s\":{\"dtype\":\"%s\",\"shape\":[%d", at ? ',' : '{', t->hf,
            t->type == TINY_I32 ? "I32" : "F32", t->rows);
    if (t->columns) fprintf(f, ",%d", t->columns);
    fprintf(f, "],\"data_offsets\":[%zu,%zu]}", at, end);
    at = end;
  }
  fputc('}', f);
  while (ftell(f) % 8) fputc(' ', f);
  fclose(f);
  f = tiny_open(folder, name);
  tiny_u64(f, bytes);
  tiny_put(f, head, bytes);
  for (int i = first; i < m->n; i += step)
    tiny_put(f, m->t[i].at, sizeof(float) * tiny_count(&m->t[i]));
  fclose(f);
  free(head);
}

/* In two shards, each with every other tensor. */
static inline void tiny_write_folder(const struct tiny* m, const char* folder) {
  tiny_write_config(m, folder);
  tiny_write_tokenizer(m, folder);
  tiny_write_shard(m, folder, "model-00001-of-00002.safetensors", 0, 2);
  tiny_write_shard(m, folder, "model-00002-of-00002.safetensors", 1, 2);
}

static inline void tiny_remove_folder(const char* folder) {
  static const char* const names[] = {"config.json", "tokenizer.json", "generation_config.json",
                                      "tokenizer_config.json", "model-00001-of-00002.safetensors",
                                      "model-00002-of-00002.safetensors"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) tiny_remove(folder, names[i]);
  remove(folder);
}

/* ---- float64 reference ----------------------------------------------------------------------- */

enum { TINY_MAX_TOKENS = 64, TINY_MAX_WIDTH = 64 };

typedef double tiny_rows[TINY_MAX_TOKENS][TINY_MAX_WIDTH];

static inline void tiny_norm(double* y, const double* x, const struct tiny_tensor* w, double eps) {
  double sum = 0;
  for (int i = 0; i < w->rows; i++) sum += x[i] * x[i];
  double s = 1 / sqrt(sum / w->rows + eps);
  for (int i = 0; i < w->rows; i++) y[i] = x[i] * s * (double)w->at[i];
}

static inline void tiny_linear(double* y, const double* x, const struct tiny_tensor* w) {
  for (int r = 0; r < w->rows; r++) {
    y[r] = 0;
    for (int c = 0; c < w->columns; c++) y[r] += x[c] * (double)w->at[r * w->columns + c];
  }
}

/* Rotate the halves of each head of a row at `position`. */
static inline void tiny_rope(const struct tiny* m, double* x, int heads, int position) {
  int half = m->dim / 2;
  for (int h = 0; h < heads; h++)
    for (int i = 0; i < half; i++) {
      double a = position * tiny_angle(m, i);
      double *u = &x[h * m->dim + i], *v = u + half, u0 = *u, v0 = *v;
      *u = u0 * cos(a) - v0 * sin(a);
      *v = v0 * cos(a) + u0 * sin(a);
    }
}

static inline void tiny_attend(const struct tiny* m, double* y, const double* q, tiny_rows k,
                               tiny_rows v, int position) {
  for (int h = 0; h < m->heads; h++) {
    int own = h * m->dim, shared = h / (m->heads / m->kv_heads) * m->dim;
    double weight[TINY_MAX_TOKENS], sum = 0;
    for (int j = 0; j <= position; j++) {
      double dot = 0;
      for (int d = 0; d < m->dim; d++) dot += q[own + d] * k[j][shared + d];
      sum += weight[j] = exp(dot / sqrt(m->dim));
    }
    for (int d = 0; d < m->dim; d++) {
      y[own + d] = 0;
      for (int j = 0; j <= position; j++) y[own + d] += weight[j] / sum * v[j][shared + d];
    }
  }
}

static inline void tiny_layer(const struct tiny* m, const struct tiny_tensor* w, tiny_rows x,
                              int n) {
  static tiny_rows q, k, v;
  double a[TINY_MAX_WIDTH], b[TINY_MAX_WIDTH], c[TINY_MAX_WIDTH];
  for (int t = 0; t < n; t++) {
    tiny_norm(a, x[t], &w[0], (double)m->eps);
    tiny_linear(q[t], a, &w[1]), tiny_linear(k[t], a, &w[2]), tiny_linear(v[t], a, &w[3]);
    tiny_rope(m, q[t], m->heads, t), tiny_rope(m, k[t], m->kv_heads, t);
  }
  for (int t = 0; t < n; t++) {
    tiny_attend(m, a, q[t], k, v, t);
    tiny_linear(b, a, &w[4]);
    for (int i = 0; i < m->hidden; i++) x[t][i] += b[i];
    tiny_norm(a, x[t], &w[5], (double)m->eps);
    tiny_linear(b, a, &w[6]), tiny_linear(c, a, &w[7]);
    for (int i = 0; i < m->ffn; i++) b[i] = b[i] / (1 + exp(-b[i])) * c[i];
    tiny_linear(a, b, &w[8]);
    for (int i = 0; i < m->hidden; i++) x[t][i] += a[i];
  }
}

/* The logits after n tokens. */
static inline void tiny_forward(struct tiny* m, const int32_t* tokens, int n, double* logits) {
  static tiny_rows x;
  double last[TINY_MAX_WIDTH];
  const struct tiny_tensor *embed = &m->t[0], *head = tiny_find(m, "output.weight");
  for (int t = 0; t < n; t++)
    for (int i = 0; i < m->hidden; i++) x[t][i] = (double)embed->at[tokens[t] * m->hidden + i];
  for (int i = 0; i < m->layers; i++) tiny_layer(m, &m->t[2 + 9 * i], x, n);
  tiny_norm(last, x[n - 1], &m->t[1], (double)m->eps);
  tiny_linear(logits, last, head ? head : embed);
}

#endif
