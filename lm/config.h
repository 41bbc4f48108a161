/* The numbers that describe a Llama-architecture model, from GGUF metadata or config.json. */
#ifndef LM_CONFIG_H
#define LM_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "lm/text.h"
#include "mlx/c/mlx.h"

/* How rope frequencies are stretched beyond the trained length. */
enum lm_rope_scaling { LM_ROPE_PLAIN, LM_ROPE_LINEAR, LM_ROPE_LLAMA3 };

struct lm_config {
  int layers, hidden, heads, kv_heads, head_dim, ffn, vocab, context;
  float rms_eps, rope_theta;
  enum lm_rope_scaling rope_scaling;
  float rope_factor, rope_low, rope_high, rope_original; /* LLAMA3 uses all, LINEAR the first */
  bool tied;          /* the head is the embedding */
  bool rows_permuted; /* q and k rows are in GGUF's order for interleaved rope */
  struct lm_ids ends; /* end tokens named by the configuration */
};

/* Errors name the key that is missing or out of range. RP_ERR_UNSUPPORTED for other architectures. */
int lm_config_from_gguf(struct lm_config* c, mlx_io_gguf file);
/* config.json and, where it is, generation_config.json of a Hugging Face folder. */
int lm_config_from_folder(struct lm_config* c, const char* folder);
void lm_config_free(struct lm_config* c);

/* Readers of GGUF metadata: false when the key is absent or of another type. */
bool lm_gguf_int(mlx_io_gguf file, const char* key, int64_t* out);
bool lm_gguf_float(mlx_io_gguf file, const char* key, float* out);

#endif
