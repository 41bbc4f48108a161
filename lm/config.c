/* Model configurations. */
#include "lm/config.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lm/err.h"

void lm_config_free(struct lm_config* c) { lm_ids_free(&c->ends); }

/* ---- GGUF ------------------------------------------------------------------------------------ */

static bool read_scalar(mlx_io_gguf file, const char* key, mlx_array* out) {
  bool there = false;
  return mlx_io_gguf_has_metadata_array(&there, file, key) == 0 && there &&
         mlx_io_gguf_get_metadata_array(out, file, key) == 0 && mlx_array_size(*out) == 1;
}

bool lm_gguf_int(mlx_io_gguf file, const char* key, int64_t* out) {
  mlx_array a = {0};
  bool ok = read_scalar(file, key, &a) && mlx_array_item_int64(out, a) == 0;
  mlx_array_free(a);
  return ok;
}

bool lm_gguf_float(mlx_io_gguf file, const char* key, float* out) {
  mlx_array a = {0};
  bool ok = read_scalar(file, key, &a) && mlx_array_item_float32(out, a) == 0;
  mlx_array_free(a);
  return ok;
}

/* An integer of the architecture in [low, high]; `fallback` < 0 makes it required. */
static int gguf_size(mlx_io_gguf file, const char* name, int64_t low, int64_t high, int fallback,
                     int* out) {
  char key[96];
  int64_t v;
  snprintf(key, sizeof key, "llama.%s", name);
  if (!lm_gguf_int(file, key, &v)) {
    if (fallback < 0) return lm_fail(RP_ERR_FORMAT, "[config] The file has no '%s'.", key);
    v = fallback;
  }
  if (v < low || v > high)
    return lm_fail(RP_ERR_FORMAT, "[config] '%s' is %lld; expected %lld to %lld.", key,
                   (long long)v, (long long)low, (long long)high);
  *out = (int)v;
  return 0;
}

static int check_architecture(mlx_io_gguf file) {
  mlx_string s = {0};
  bool there = false;
  int rc = 0;
  if (mlx_io_gguf_has_metadata_string(&there, file, "general.architecture") || !there ||
      mlx_io_gguf_get_metadata_string(&s, file, "general.architecture"))
    return lm_fail(RP_ERR_FORMAT, "[config] The file has no 'general.architecture'.");
  if (strcmp(mlx_string_data(s), "llama"))
    rc = lm_fail(RP_ERR_UNSUPPORTED, "[config] Architecture '%s' is not supported; 'llama' is.",
                 mlx_string_data(s));
  mlx_string_free(s);
  return rc;
}

static int gguf_rope(struct lm_config* c, mlx_io_gguf file) {
  mlx_string type = {0};
  bool there = false;
  int rc = 0;
  if (!lm_gguf_float(file, "llama.rope.freq_base", &c->rope_theta)) c->rope_theta = 10000;
  if (mlx_io_gguf_has_metadata_string(&there, file, "llama.rope.scaling.type") || !there) return 0;
  if (mlx_io_gguf_get_metadata_string(&type, file, "llama.rope.scaling.type"))
    return lm_fail(RP_ERR_FORMAT, "[config] 'llama.rope.scaling.type' cannot be read.");
  if (!strcmp(mlx_string_data(type), "linear")) {
    c->rope_scaling = LM_ROPE_LINEAR;
    if (!lm_gguf_float(file, "llama.rope.scaling.factor", &c->rope_factor) || !(c->rope_factor > 0))
      rc = lm_fail(RP_ERR_FORMAT, "[config] 'llama.rope.scaling.factor' is missing or not positive.");
  } else if (strcmp(mlx_string_data(type), "none")) {
    rc = lm_fail(RP_ERR_UNSUPPORTED, "[config] Rope scaling '%s' is not supported.",
                 mlx_string_data(type));
  }
  mlx_string_free(type);
  return rc;
}

/* What both sources must satisfy. */
static int check_config(const struct lm_config* c) {
  if (c->heads % c->kv_heads)
    return lm_fail(RP_ERR_FORMAT, "[config] %d heads are not a multiple of %d key-value heads.",
                   c->heads, c->kv_heads);
  if (c->head_dim % 2)
    return lm_fail(RP_ERR_FORMAT, "[config] The head dimension %d is odd.", c->head_dim);
  if (!(c->rope_theta > 0) || !isfinite(c->rope_theta))
    return lm_fail(RP_ERR_FORMAT, "[config] The rope base %g is not positive.",
                   (double)c->rope_theta);
  if (!(c->rms_eps >= 0))
    return lm_fail(RP_ERR_FORMAT, "[config] The epsilon of the norms is %g.", (double)c->rms_eps);
  return 0;
}

/* Keys, values and rope share one head dimension. */
static int gguf_head_dim(struct lm_config* c, mlx_io_gguf file) {
  int values = 0, rotated = 0;
  int rc = gguf_size(file, "attention.key_length", 1, 4096, c->hidden / c->heads, &c->head_dim);
  if (!rc) rc = gguf_size(file, "attention.value_length", 1, 4096, c->head_dim, &values);
  if (!rc) rc = gguf_size(file, "rope.dimension_count", 1, 4096, c->head_dim, &rotated);
  if (!rc && (values != c->head_dim || rotated != c->head_dim))
    rc = lm_fail(RP_ERR_UNSUPPORTED,
                 "[config] Keys of %d, values of %d and rope over %d differ; only one head "
                 "dimension is supported.",
                 c->head_dim, values, rotated);
  return rc;
}

int lm_config_from_gguf(struct lm_config* c, mlx_io_gguf file) {
  memset(c, 0, sizeof *c);
  c->rows_permuted = true;
  int rc = check_architecture(file);
  if (!rc) rc = gguf_size(file, "block_count", 1, 1024, -1, &c->layers);
  if (!rc) rc = gguf_size(file, "embedding_length", 1, 1 << 20, -1, &c->hidden);
  if (!rc) rc = gguf_size(file, "attention.head_count", 1, 4096, -1, &c->heads);
  if (!rc) rc = gguf_size(file, "attention.head_count_kv", 1, 4096, c->heads, &c->kv_heads);
  if (!rc) rc = gguf_head_dim(c, file);
  if (!rc) rc = gguf_size(file, "feed_forward_length", 1, 1 << 22, -1, &c->ffn);
  if (!rc) rc = gguf_size(file, "context_length", 1, 1 << 24, 2048, &c->context);
  if (!rc && !lm_gguf_float(file, "llama.attention.layer_norm_rms_epsilon", &c->rms_eps))
    rc = lm_fail(RP_ERR_FORMAT,
                 "[config] The file has no 'llama.attention.layer_norm_rms_epsilon'.");
  if (!rc) rc = gguf_rope(c, file);
  if (!rc) rc = check_config(c);
  int64_t id;
  if (!rc && lm_gguf_int(file, "tokenizer.ggml.eos_token_id", &id)) rc = lm_ids_push(&c->ends, (int32_t)id);
  if (!rc && lm_gguf_int(file, "tokenizer.ggml.eot_token_id", &id)) rc = lm_ids_push(&c->ends, (int32_t)id);
  return rc;
}

/* ---- Hugging Face folder --------------------------------------------------------------------- */

static int read_json(cJSON** out, const char* folder, const char* name, bool required) {
  char path[4096];
  struct lm_text text = {0};
  *out = NULL;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* there = fopen(path, "rb");
  if (!there && !required) return 0;
  if (there) fclose(there);
  int rc = lm_text_read_file(&text, path, 64 << 20);
  if (!rc && !(*out = cJSON_ParseWithLength(text.data, text.len)))
    rc = lm_fail(RP_ERR_FORMAT, "[config] %s is not JSON.", path);
  lm_text_free(&text);
  return rc;
}

static int json_size(const cJSON* j, const char* key, int64_t low, int64_t high, int fallback,
                     int* out) {
  const cJSON* v = cJSON_GetObjectItemCaseSensitive(j, key);
  double x = cJSON_IsNumber(v) ? v->valuedouble : fallback;
  if (!cJSON_IsNumber(v) && fallback < 0)
    return lm_fail(RP_ERR_FORMAT, "[config] config.json has no number '%s'.", key);
  if (!(x >= (double)low && x <= (double)high) || x != floor(x))
    return lm_fail(RP_ERR_FORMAT, "[config] '%s' is %g; expected an integer from %lld to %lld.",
                   key, x, (long long)low, (long long)high);
  *out = (int)x;
  return 0;
}

static float json_float(const cJSON* j, const char* key, float fallback) {
  const cJSON* v = cJSON_GetObjectItemCaseSensitive(j, key);
  return cJSON_IsNumber(v) ? (float)v->valuedouble : fallback;
}

/* A number or a list of numbers. */
static int json_ends(struct lm_config* c, const cJSON* j) {
  const cJSON* v = cJSON_GetObjectItemCaseSensitive(j, "eos_token_id");
  const cJSON* item;
  int rc = 0;
  if (cJSON_IsNumber(v)) return lm_ids_push(&c->ends, v->valueint);
  cJSON_ArrayForEach(item, v) {
    if (!rc && cJSON_IsNumber(item)) rc = lm_ids_push(&c->ends, item->valueint);
  }
  return rc;
}

/* Older files have rope_theta beside rope_scaling, newer ones have both in rope_parameters. */
static int json_rope(struct lm_config* c, const cJSON* j) {
  c->rope_theta = json_float(j, "rope_theta", 10000);
  const cJSON* s = cJSON_GetObjectItemCaseSensitive(j, "rope_parameters");
  if (!cJSON_IsObject(s)) s = cJSON_GetObjectItemCaseSensitive(j, "rope_scaling");
  if (!cJSON_IsObject(s)) return 0;
  c->rope_theta = json_float(s, "rope_theta", c->rope_theta);
  const cJSON* type = cJSON_GetObjectItemCaseSensitive(s, "rope_type");
  if (!type) type = cJSON_GetObjectItemCaseSensitive(s, "type");
  const char* name = cJSON_IsString(type) ? type->valuestring : "";
  c->rope_factor = json_float(s, "factor", 1);
  c->rope_low = json_float(s, "low_freq_factor", 1);
  c->rope_high = json_float(s, "high_freq_factor", 4);
  c->rope_original = json_float(s, "original_max_position_embeddings", 8192);
  if (!strcmp(name, "default")) return 0;
  if (!strcmp(name, "linear"))
    c->rope_scaling = LM_ROPE_LINEAR;
  else if (!strcmp(name, "llama3"))
    c->rope_scaling = LM_ROPE_LLAMA3;
  else
    return lm_fail(RP_ERR_UNSUPPORTED, "[config] Rope scaling '%s' is not supported.", name);
  if (!(c->rope_factor > 0) || !(c->rope_high > c->rope_low) || !(c->rope_original > 0))
    return lm_fail(RP_ERR_FORMAT, "[config] '%s' has values out of range.", s->string);
  return 0;
}

/* What the step computes is fixed: the file must ask for it. */
static int check_kind(const cJSON* j) {
  const cJSON* type = cJSON_GetObjectItemCaseSensitive(j, "model_type");
  const cJSON* act = cJSON_GetObjectItemCaseSensitive(j, "hidden_act");
  if (!cJSON_IsString(type) || strcmp(type->valuestring, "llama"))
    return lm_fail(RP_ERR_UNSUPPORTED, "[config] model_type '%s' is not supported; 'llama' is.",
                   cJSON_IsString(type) ? type->valuestring : "(none)");
  if (cJSON_IsString(act) && strcmp(act->valuestring, "silu"))
    return lm_fail(RP_ERR_UNSUPPORTED, "[config] hidden_act '%s' is not supported; 'silu' is.",
                   act->valuestring);
  return 0;
}

static int from_json(struct lm_config* c, const cJSON* j) {
  int rc = check_kind(j);
  if (!rc) rc = json_size(j, "num_hidden_layers", 1, 1024, -1, &c->layers);
  if (!rc) rc = json_size(j, "hidden_size", 1, 1 << 20, -1, &c->hidden);
  if (!rc) rc = json_size(j, "num_attention_heads", 1, 4096, -1, &c->heads);
  if (!rc) rc = json_size(j, "num_key_value_heads", 1, 4096, c->heads, &c->kv_heads);
  if (!rc) rc = json_size(j, "head_dim", 1, 4096, c->hidden / c->heads, &c->head_dim);
  if (!rc) rc = json_size(j, "intermediate_size", 1, 1 << 22, -1, &c->ffn);
  if (!rc) rc = json_size(j, "max_position_embeddings", 1, 1 << 24, 2048, &c->context);
  c->rms_eps = json_float(j, "rms_norm_eps", 1e-6f);
  c->tied = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(j, "tie_word_embeddings"));
  if (!rc) rc = json_rope(c, j);
  if (!rc) rc = json_ends(c, j);
  return rc ? rc : check_config(c);
}

int lm_config_from_folder(struct lm_config* c, const char* folder) {
  cJSON *config, *generation;
  memset(c, 0, sizeof *c);
  int rc = read_json(&config, folder, "config.json", true);
  if (!rc) rc = from_json(c, config);
  cJSON_Delete(config);
  if (rc) return rc;
  rc = read_json(&generation, folder, "generation_config.json", false);
  if (!rc && generation) rc = json_ends(c, generation);
  cJSON_Delete(generation);
  return rc;
}
