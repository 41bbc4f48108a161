/* A small random model from both file formats against a float64 forward pass, generation with it,
 * and model files that lie: each is one clear error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine_help.h"
#include "lm/err.h"
#include "lm/generate.h"
#include "tiny_model.h"

enum { PROMPT = 12, STEPS = 3, VOCAB = 24 };

static char gguf[80], folder[64];

static void ignore(const char* text, void* data) {}

static int set_up(void** state) {
  mlx_set_error_handler(ignore, NULL, NULL);
  snprintf(folder, sizeof folder, "/tmp/test_lm_tiny_XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(gguf, sizeof gguf, "%s.gguf", folder);
  lm_error_clear();
  return 0;
}

static int tear_down(void** state) {
  remove(gguf);
  tiny_remove_folder(folder);
  return 0;
}

static struct lm_model* load(const char* path, bool compile) {
  struct lm_model* m = NULL;
  if (lm_model_load(&m, path, compile)) fail_msg("%s", lm_error_text());
  return m;
}

/* The logits after a prompt in chunks of 5, and after each of three tokens more. */
static void run_steps(struct lm_model* m, const int32_t* tokens, float out[][VOCAB]) {
  struct lm_cache c;
  const float* logits;
  assert_int_equal(lm_cache_new(&c, m, 0), 0);
  for (int i = 0; i <= STEPS; i++) {
    int rc = i ? lm_model_run(m, &c, &tokens[PROMPT + i - 1], 1, 1, &logits)
               : lm_model_run(m, &c, tokens, PROMPT, 5, &logits);
    if (rc) fail_msg("%s", lm_error_text());
    memcpy(out[i], logits, sizeof out[i]);
  }
  lm_cache_free(&c);
}

/* The file's logits against the definition; `out` receives them. */
static void check_file(struct tiny* t, const char* path, float out[][VOCAB]) {
  int32_t tokens[PROMPT + STEPS];
  for (int i = 0; i < PROMPT + STEPS; i++) tokens[i] = (7 * i + i * i) % VOCAB;
  struct lm_model* m = load(path, true);
  run_steps(m, tokens, out);
  assert_int_equal(lm_model_traces(m), 1);
  lm_model_free(m);
  for (int i = 0; i <= STEPS; i++) {
    double want[TINY_MAX_WIDTH];
    tiny_forward(t, tokens, PROMPT + i, want);
    /* about 100 roundings to 24 bits of sums of at most 64 terms near 1 */
    for (int k = 0; k < VOCAB; k++)
      if (!(fabs((double)out[i][k] - want[k]) < 2e-5))
        fail_msg("%s, step %d, token %d: %.9g, not %.9g", path, i, k, (double)out[i][k], want[k]);
  }
}

/* ---- values ---------------------------------------------------------------------------------- */

static void both_formats_give_the_same_bits_and_equal_the_definition(void** state) {
  for (int tied = 0; tied < 2; tied++)
    for (int scaling = TINY_PLAIN; scaling <= TINY_LLAMA3; scaling++) {
      struct tiny t = tiny_new(TINY_F32, tied);
      float a[STEPS + 1][VOCAB], b[STEPS + 1][VOCAB];
      t.scaling = scaling;
      t.low = 0.5, t.original = 48; /* of the four pairs one is kept, one blended, two stretched */
      tiny_write_gguf(&t, gguf);
      tiny_write_folder(&t, folder);
      check_file(&t, gguf, a);
      check_file(&t, folder, b);
      /* The GGUF file holds factors rounded to float32, the folder the formula's numbers. */
      if (scaling != TINY_LLAMA3) assert_memory_equal(a, b, sizeof a);
      tiny_free(&t);
    }
}

static void quantized_files_give_what_their_values_say(void** state) {
  const int types[] = {TINY_Q4_0, TINY_Q8_0};
  for (int i = 0; i < 2; i++) {
    struct tiny t = tiny_new(types[i], i);
    float out[STEPS + 1][VOCAB];
    tiny_write_gguf(&t, gguf);
    check_file(&t, gguf, out);
    tiny_free(&t);
  }
}

static void projections_of_different_formats_join(void** state) {
  struct tiny t = tiny_new(TINY_Q4_0, false), other = tiny_new(TINY_Q8_0, false);
  struct tiny dense = tiny_new(TINY_F32, false);
  const char* const eight[] = {"blk.0.attn_v.weight", "blk.1.ffn_gate.weight"};
  const char* const full[] = {"blk.1.attn_q.weight", "output.weight"};
  float out[STEPS + 1][VOCAB];
  struct tiny shown = t;
  for (int i = 0; i < 2; i++) *tiny_find(&shown, eight[i]) = *tiny_find(&other, eight[i]);
  for (int i = 0; i < 2; i++) *tiny_find(&shown, full[i]) = *tiny_find(&dense, full[i]);
  tiny_write_gguf(&shown, gguf);
  check_file(&shown, gguf, out);
  tiny_free(&t), tiny_free(&other), tiny_free(&dense);
}

static void a_newer_configuration_keeps_its_rope_in_rope_parameters(void** state) {
  struct tiny t = tiny_new(TINY_F32, true);
  float out[STEPS + 1][VOCAB];
  tiny_write_folder(&t, folder);
  FILE* f = tiny_open(folder, "config.json");
  fprintf(f, "{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":32,"
             "\"head_dim\":null,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":64,"
             "\"rms_norm_eps\":1e-5,\"tie_word_embeddings\":true,\"hidden_act\":\"silu\","
             "\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":4,\"rope_theta\":100000}}");
  fclose(f);
  t.scaling = TINY_LINEAR;
  check_file(&t, folder, out);
  tiny_free(&t);
}

/* h = [1,2], E = [[1,0],[0,1],[1,1]]: logits [1,2,3]. */
static void a_tied_head_multiplies_by_the_embedding(void** state) {
  struct lm_scope g;
  struct lm_linear e = {.w = mlx_array_new_data((float[]){1, 0, 0, 1, 1, 1}, (int[]){3, 2}, 2,
                                                MLX_FLOAT32)};
  mlx_array h = mlx_array_new_data((float[]){1, 2}, (int[]){1, 2}, 2, MLX_FLOAT32);
  lm_scope_begin(&g);
  assert_true(has_values(lm_linear_apply(&g, &e, h), (float[]){1, 2, 3}, 3));
  assert_true(has_values(lm_linear_rows(&g, &e, lm_ints(&g, (int32_t[]){2, 0}, 2)),
                         (float[]){1, 1, 1, 0}, 4));
  assert_int_equal(lm_scope_end(&g), 0);
  mlx_array_free(h), mlx_array_free(e.w);
}

static void neither_compiling_nor_chunks_change_the_bits(void** state) {
  struct tiny t = tiny_new(TINY_Q4_0, false);
  int32_t tokens[40];
  float first[VOCAB];
  tiny_write_gguf(&t, gguf);
  for (int i = 0; i < 40; i++) tokens[i] = i * 5 % VOCAB;
  for (int k = 0; k < 6; k++) {
    struct lm_model* m = load(gguf, k % 2);
    struct lm_cache c;
    const float* logits;
    assert_int_equal(lm_cache_new(&c, m, 0), 0);
    assert_int_equal(lm_model_run(m, &c, tokens, 40, (int[]){512, 13, 1}[k / 2], &logits), 0);
    if (!k) memcpy(first, logits, sizeof first);
    assert_memory_equal(first, logits, sizeof first);
    lm_cache_free(&c);
    lm_model_free(m);
  }
  tiny_free(&t);
}

static size_t peak_of(struct lm_model* m, const int32_t* tokens, int n, int chunk, float* out) {
  struct lm_cache c;
  const float* logits;
  size_t peak = 0, before = active_memory();
  mlx_clear_cache();
  mlx_reset_peak_memory();
  assert_int_equal(lm_cache_new(&c, m, 0), 0);
  assert_int_equal(lm_model_run(m, &c, tokens, n, chunk, &logits), 0);
  memcpy(out, logits, sizeof(float) * VOCAB);
  mlx_get_peak_memory(&peak);
  lm_cache_free(&c);
  return peak - before;
}

static void a_long_prompt_in_chunks_gives_the_same_in_less_memory(void** state) {
  enum { LONG = UNDER_SANITIZER ? 1500 : 8000 };
  struct tiny t = tiny_new(TINY_F32, false);
  int32_t* tokens = malloc(sizeof *tokens * LONG);
  float whole[VOCAB], chunks[VOCAB];
  t.context = 8192;
  tiny_write_gguf(&t, gguf);
  for (int i = 0; i < LONG; i++) tokens[i] = i * i % 23;
  struct lm_model* m = load(gguf, true);
  size_t small = peak_of(m, tokens, LONG, 512, chunks);
  size_t large = peak_of(m, tokens, LONG, LONG, whole);
  assert_memory_equal(whole, chunks, sizeof whole);
  assert_true(small < large);
  assert_true(small < ((size_t)24 << 20)); /* cache 2 MB, its growth as much, a step's rows */
  lm_model_free(m);
  tiny_free(&t);
  free(tokens);
}

/* ---- generation ------------------------------------------------------------------------------ */

static int keep_text(void* user, const char* text, size_t n) {
  return lm_text_append(user, text, n) != 0;
}

static void generate(struct lm_model* m, uint64_t seed, struct lm_text* streamed,
                     struct lm_ids* ids) {
  struct lm_generation o = lm_generation_default();
  struct lm_generated g;
  o.max_tokens = 40;
  o.sampling.temperature = 1.5f;
  o.sampling.seed = seed;
  o.on_text = streamed ? keep_text : NULL;
  o.user = streamed;
  if (lm_generate(m, (int32_t[]){1, 2, 3}, 3, &o, ids, &g)) fail_msg("%s", lm_error_text());
}

static void a_seed_decides_the_text_and_streaming_changes_nothing(void** state) {
  struct tiny t = tiny_new(TINY_F32, false);
  struct lm_ids ids[4] = {{0}};
  struct lm_text streamed = {0}, whole = {0};
  tiny_write_gguf(&t, gguf);
  struct lm_model* m = load(gguf, true);
  generate(m, 7, NULL, &ids[0]);
  generate(m, 8, NULL, &ids[1]);
  generate(m, 7, &streamed, &ids[2]); /* after another request has drawn */
  assert_int_equal(ids[0].len, ids[2].len);
  assert_memory_equal(ids[0].data, ids[2].data, sizeof(int32_t) * ids[0].len);
  assert_true(ids[0].len != ids[1].len ||
              memcmp(ids[0].data, ids[1].data, sizeof(int32_t) * ids[0].len));
  size_t n = ids[0].len - lm_model_is_end(m, ids[0].data[ids[0].len - 1]);
  assert_int_equal(lm_tokenizer_decode(m->tokenizer, ids[0].data, n, 0, &whole), 0);
  assert_int_equal(streamed.len, whole.len);
  assert_memory_equal(streamed.data, whole.data, whole.len);
  for (int i = 0; i < 3; i++) lm_ids_free(&ids[i]);
  lm_text_free(&streamed), lm_text_free(&whole);
  lm_model_free(m);
  tiny_free(&t);
}

static void every_file_of_a_folder_may_name_ends(void** state) {
  struct tiny t = tiny_new(TINY_F32, true);
  t.extra = ",\"tie_word_embeddings\":true";
  tiny_write_folder(&t, folder);
  FILE* f = tiny_open(folder, "generation_config.json");
  fputs("{\"eos_token_id\":[4,9]}", f);
  fclose(f);
  f = tiny_open(folder, "tokenizer_config.json");
  fputs("{\"eos_token\":\"b\"}", f);
  fclose(f);
  struct lm_model* m = load(folder, false);
  const int ends[] = {1, 4, 9, 23};
  assert_int_equal(m->ends.len, 4);
  for (int i = 0; i < 4; i++) assert_true(lm_model_is_end(m, ends[i]));
  lm_model_free(m);
  tiny_free(&t);
}

static void tokens_that_do_not_fit_are_an_error_and_the_model_goes_on(void** state) {
  struct tiny t = tiny_new(TINY_F32, false);
  struct lm_cache c;
  const float* logits = NULL;
  int32_t many[600] = {0};
  tiny_write_gguf(&t, gguf);
  struct lm_model* m = load(gguf, true);
  struct lm_generation o = lm_generation_default();
  struct lm_generated g;
  assert_int_equal(lm_cache_new(&c, m, 0), 0);
  assert_int_equal(lm_model_run(m, &c, (int32_t[]){1, 24}, 2, 512, &logits), RP_ERR_INDEX);
  assert_non_null(strstr(lm_error_text(), "Token 24 is outside the vocabulary of 24"));
  assert_int_equal(lm_model_run(m, &c, (int32_t[]){-1}, 1, 512, &logits), RP_ERR_INDEX);
  assert_int_equal(lm_model_run(m, &c, many, 0, 512, &logits), RP_ERR_ARGUMENT);
  assert_int_equal(lm_model_run(m, &c, many, 1, 0, &logits), RP_ERR_ARGUMENT);
  assert_int_equal(lm_model_run(m, &c, many, 513, 512, &logits), RP_ERR_ARGUMENT);
  assert_int_equal(lm_generate(m, many, 600, &o, NULL, &g), RP_ERR_ARGUMENT);
  assert_non_null(strstr(lm_error_text(), "600 tokens; the model's context is 512"));
  assert_int_equal(lm_generate(m, (int32_t[]){99}, 1, &o, NULL, &g), RP_ERR_INDEX);
  assert_null(logits);
  assert_int_equal(lm_model_run(m, &c, many, 512, 512, &logits), 0);
  assert_int_equal(lm_model_run(m, &c, many, 1, 1, &logits), RP_ERR_ARGUMENT);
  lm_cache_free(&c);
  lm_model_free(m);
  tiny_free(&t);
}

/* ---- files that lie -------------------------------------------------------------------------- */

static void drop(struct tiny* t, const char* name) {
  struct tiny_tensor* x = tiny_find(t, name);
  free(x->at), free(x->scale);
  *x = t->t[--t->n];
}
static void lose_a_projection(struct tiny* t) { drop(t, "blk.1.attn_k.weight"); }
static void lose_the_embedding(struct tiny* t) { drop(t, "token_embd.weight"); }
static void lose_a_norm(struct tiny* t) { drop(t, "blk.0.ffn_norm.weight"); }
static void turn_a_projection(struct tiny* t) {
  struct tiny_tensor* x = tiny_find(t, "blk.1.ffn_down.weight");
  x->rows = 64, x->columns = 32;
}
static void flatten_a_projection(struct tiny* t) {
  struct tiny_tensor* x = tiny_find(t, "blk.0.attn_q.weight");
  x->rows *= x->columns, x->columns = 0, x->heads = 0;
}
static void flatten_the_embedding(struct tiny* t) {
  struct tiny_tensor* x = &t->t[0];
  x->rows *= x->columns, x->columns = 0;
}
static void shorten_a_norm(struct tiny* t) { tiny_find(t, "blk.1.attn_norm.weight")->rows = 31; }
static void shorten_the_head(struct tiny* t) { tiny_find(t, "output.weight")->rows = 23; }
static void store_integers(struct tiny* t) { tiny_find(t, "blk.0.attn_v.weight")->type = TINY_I32; }
static void store_integer_norms(struct tiny* t) { t->t[1].type = TINY_I32; }
static void be_another(struct tiny* t) { t->architecture = "gpt%s%n"; }
static void have_odd_groups(struct tiny* t) { t->kv_heads = 3; }
static void have_no_layers(struct tiny* t) { t->layers = 0; }
static void have_more_layers(struct tiny* t) { t->layers = 3; }
static void have_a_million_layers(struct tiny* t) { t->layers = 1000000; }
static void have_no_heads(struct tiny* t) { t->heads = 0; }
static void have_negative_heads(struct tiny* t) { t->kv_heads = -2; }
static void have_odd_heads(struct tiny* t) { t->dim = 7; }
static void be_wider(struct tiny* t) { t->hidden = 64; }
static void be_very_wide(struct tiny* t) { t->hidden = t->ffn = 1 << 20, t->dim = t->heads = 4096; }
static void know_more_tokens(struct tiny* t) { t->tokens = 30; }
static void turn_backwards(struct tiny* t) { t->theta = -1; }
static void turn_by_nan(struct tiny* t) { t->theta = NAN; }
static void subtract_eps(struct tiny* t) { t->eps = -1; }
static void see_nothing(struct tiny* t) { t->context = 0; }
static void stretch_by_nothing(struct tiny* t) { t->scaling = TINY_LINEAR, t->factor = 0; }
static void turn_a_half(struct tiny* t) { t->rotated = 4; }
static void stretch_the_wrong_pairs(struct tiny* t) {
  tiny_add(t, "unused", "rope_freqs.weight", 8, 0, 0, TINY_F32);
}
static void have_a_bias(struct tiny* t) {
  tiny_add(t, "model.layers.0.self_attn.q_proj.bias", "blk.0.attn_q.bias", 32, 0, 0, TINY_F32);
}

struct lie {
  void (*tell)(struct tiny*);
  rp_error_code code;
  const char* in_folder; /* part of the message, NULL: not told there */
  const char* in_gguf;
};

static const struct lie lies[] = {
    {lose_a_projection, RP_ERR_FORMAT, "no tensor 'model.layers.1.self_attn.k_proj.weight'",
     "no tensor 'blk.1.attn_k.weight'"},
    {lose_the_embedding, RP_ERR_FORMAT, "no tensor 'model.embed_tokens.weight'",
     "no tensor 'token_embd.weight'"},
    {lose_a_norm, RP_ERR_FORMAT, "layers.0.post_attention_layernorm", "blk.0.ffn_norm"},
    {turn_a_projection, RP_ERR_FORMAT, "has shape (64,32); expected (32,64)",
     "has shape (64,32); expected (32,64)"},
    {flatten_a_projection, RP_ERR_FORMAT, "q_proj.weight' has shape (1024); expected (32,32)",
     "attn_q.weight' has shape (1024); expected (32,32)"},
    {flatten_the_embedding, RP_ERR_FORMAT, "shape (768); expected", "shape (768); expected"},
    {shorten_a_norm, RP_ERR_FORMAT, "should have 32 elements", "should have 32 elements"},
    {shorten_the_head, RP_ERR_FORMAT, "(23,32); expected (24,32)", "(23,32); expected (24,32)"},
    {store_integers, RP_ERR_FORMAT, "v_proj.weight' holds integers",
     "blk.0.attn_v.weight' holds integers"},
    {store_integer_norms, RP_ERR_FORMAT, "norm.weight' holds integers",
     "output_norm.weight' holds integers"},
    {be_another, RP_ERR_UNSUPPORTED, "'gpt%s%n' is not supported", "'gpt%s%n' is not supported"},
    {have_odd_groups, RP_ERR_FORMAT, "4 heads are not a multiple of 3",
     "4 heads are not a multiple of 3"},
    {have_no_layers, RP_ERR_FORMAT, "'num_hidden_layers' is 0", "'llama.block_count' is 0"},
    {have_more_layers, RP_ERR_FORMAT, "no tensor 'model.layers.2.", "no tensor 'blk.2."},
    {have_a_million_layers, RP_ERR_FORMAT, "hidden_layers' is 1e+06", "block_count' is 1000000"},
    {have_no_heads, RP_ERR_FORMAT, "'num_attention_heads' is 0", "head_count' is 0"},
    {have_negative_heads, RP_ERR_FORMAT, "'num_key_value_heads' is -2",
     "head_count_kv' is 4294967294"},
    {have_odd_heads, RP_ERR_FORMAT, "7 is odd", "7 is odd"},
    {be_wider, RP_ERR_FORMAT, "has shape (24,32); expected (24,64)", "(24,32); expected (24,64)"},
    {be_very_wide, RP_ERR_FORMAT, "has shape (24,32)", "has shape (24,32)"},
    {know_more_tokens, RP_ERR_FORMAT, "The tokenizer has 30 tokens; the embedding has 24 rows",
     "The tokenizer has 30 tokens; the embedding has 24 rows"},
    {turn_backwards, RP_ERR_FORMAT, "base -1 is not positive", "base -1 is not positive"},
    {turn_by_nan, RP_ERR_FORMAT, NULL, "is not positive"},
    {subtract_eps, RP_ERR_FORMAT, "epsilon of the norms is -1", "epsilon of the norms is -1"},
    {turn_a_half, RP_ERR_UNSUPPORTED, NULL, "rope over 4"},
    {stretch_the_wrong_pairs, RP_ERR_FORMAT, NULL, "'rope_freqs.weight' should have 4 elements"},
    {see_nothing, RP_ERR_FORMAT, "'max_position_embeddings' is 0", "context_length' is 0"},
    {stretch_by_nothing, RP_ERR_FORMAT, "'rope_scaling'", "'llama.rope.scaling.factor'"},
    {have_a_bias, RP_ERR_UNSUPPORTED, "'model.layers.0.self_attn.q_proj.bias'",
     "'blk.0.attn_q.bias'"},
};

static void expect_refusal(const char* path, rp_error_code code, const char* part, int row) {
  struct lm_model* m = NULL;
  int rc = lm_model_load(&m, path, true);
  if (rc != (int)code || !strstr(lm_error_text(), part))
    fail_msg("lie %d of %s: %d \"%s\", expected \"%s\"", row, path, rc, lm_error_text(), part);
  assert_null(m);
}

static void a_model_file_that_lies_is_one_clear_error(void** state) {
  for (int i = 0; i < (int)(sizeof lies / sizeof *lies); i++) {
    struct tiny t = tiny_new(TINY_F32, false);
    lies[i].tell(&t);
    tiny_write_gguf(&t, gguf);
    tiny_write_folder(&t, folder);
    expect_refusal(gguf, lies[i].code, lies[i].in_gguf, i);
    if (lies[i].in_folder) expect_refusal(folder, lies[i].code, lies[i].in_folder, i);
    tiny_free(&t);
  }
  assert_true(is_usable());
}

static void what_a_configuration_asks_for_in_vain_is_named(void** state) {
  static const struct {
    const char *extra, *part;
    rp_error_code code;
  } rows[] = {
      {",\"hidden_act\":\"gelu\"", "hidden_act 'gelu'", RP_ERR_UNSUPPORTED},
      {",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}", "'yarn'", RP_ERR_UNSUPPORTED},
      {",\"rope_scaling\":{\"factor\":4}", "Rope scaling ''", RP_ERR_UNSUPPORTED},
      {",\"rope_scaling\":{\"type\":\"llama3\",\"factor\":4,\"low_freq_factor\":4}",
       "'rope_scaling'", RP_ERR_FORMAT},
      {",\"rope_parameters\":{\"rope_type\":\"dynamic\"}", "'dynamic'", RP_ERR_UNSUPPORTED},
      {"", "", RP_OK},
  };
  struct tiny t = tiny_new(TINY_F32, false);
  tiny_write_folder(&t, folder);
  for (int i = 0; rows[i].code; i++) {
    t.extra = rows[i].extra;
    tiny_write_config(&t, folder);
    expect_refusal(folder, rows[i].code, rows[i].part, i);
  }
  FILE* f = tiny_open(folder, "config.json");
  fputs("{\"model_type\":\"llama\",\"num_hidden_layers\":2.5}", f);
  fclose(f);
  expect_refusal(folder, RP_ERR_FORMAT, "'num_hidden_layers' is 2.5", 0);
  f = tiny_open(folder, "config.json");
  fputs("{\"model_type\":", f);
  fclose(f);
  expect_refusal(folder, RP_ERR_FORMAT, "config.json is not JSON", 0);
  tiny_free(&t);
}

static void a_missing_or_broken_file_is_named(void** state) {
  struct tiny t = tiny_new(TINY_F32, false);
  t.extra = ",\"tie_word_embeddings\":false";
  expect_refusal(gguf, RP_ERR_IO, "does not exist", 0);
  expect_refusal(folder, RP_ERR_IO, "config.json", 1);
  tiny_write_folder(&t, folder);
  tiny_remove(folder, "model-00002-of-00002.safetensors");
  expect_refusal(folder, RP_ERR_FORMAT, "no tensor", 2);
  tiny_remove(folder, "model-00001-of-00002.safetensors");
  expect_refusal(folder, RP_ERR_IO, "no *.safetensors", 3);
  tiny_write_folder(&t, folder);
  FILE* f = tiny_open(folder, "model-00002-of-00002.safetensors");
  fputs("not tensors", f);
  fclose(f);
  expect_refusal(folder, RP_ERR_FORMAT, "model-00002-of-00002.safetensors", 4);
  tiny_remove(folder, "tokenizer.json");
  expect_refusal(folder, RP_ERR_IO, "tokenizer.json", 5);
  tiny_free(&t);
}

static void a_model_cut_off_anywhere_is_an_error(void** state) {
  struct tiny t = tiny_new(TINY_Q4_0, false);
  struct lm_text all = {0};
  tiny_write_gguf(&t, gguf);
  assert_int_equal(lm_text_read_file(&all, gguf, 1 << 24), 0);
  for (size_t n = 0; n + 32 < all.len; n += n < 4096 ? 61 : 997) {
    FILE* f = fopen(gguf, "wb");
    assert_int_equal(fwrite(all.data, 1, n, f), n);
    fclose(f);
    struct lm_model* m = NULL;
    assert_int_not_equal(lm_model_load(&m, gguf, true), 0);
    assert_null(m);
  }
  lm_text_free(&all);
  tiny_free(&t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(both_formats_give_the_same_bits_and_equal_the_definition),
      TEST(quantized_files_give_what_their_values_say),
      TEST(projections_of_different_formats_join),
      TEST(a_newer_configuration_keeps_its_rope_in_rope_parameters),
      TEST(a_tied_head_multiplies_by_the_embedding),
      TEST(neither_compiling_nor_chunks_change_the_bits),
      TEST(a_long_prompt_in_chunks_gives_the_same_in_less_memory),
      TEST(a_seed_decides_the_text_and_streaming_changes_nothing),
      TEST(every_file_of_a_folder_may_name_ends),
      TEST(tokens_that_do_not_fit_are_an_error_and_the_model_goes_on),
      TEST(a_model_file_that_lies_is_one_clear_error),
      TEST(what_a_configuration_asks_for_in_vain_is_named),
      TEST(a_missing_or_broken_file_is_named),
      TEST(a_model_cut_off_anywhere_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
