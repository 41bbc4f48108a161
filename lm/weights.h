/* Weights of a model as linear layers, whatever file and format they came from. */
#ifndef LM_WEIGHTS_H
#define LM_WEIGHTS_H

#include "lm/config.h"
#include "lm/ops.h"

/* y = x W^T. Quantized: w is packed uint32, with scales and biases by groups; else they are empty. */
struct lm_linear {
  mlx_array w, scales, biases;
  int bits, group;
};

struct lm_layer {
  mlx_array attn_norm, ffn_norm;
  struct lm_linear qkv, out, gate_up, down; /* rows of q, k, v (of gate, up) one after another */
};

struct lm_weights {
  struct lm_linear embed, head; /* tied: head is the same arrays */
  mlx_array norm;
  mlx_array rope_factors; /* float32 (head_dim / 2), what frequencies are divided by; or empty */
  struct lm_layer* layer;
  int layers;
};

/* Tensors by name: from a GGUF file or the safetensors of a folder. */
struct lm_tensors {
  mlx_io_gguf gguf;               /* or empty */
  mlx_map_string_to_array* shard; /* one for each file */
  size_t nshards;
};

int lm_tensors_from_folder(struct lm_tensors* t, const char* folder);
void lm_tensors_free(struct lm_tensors* t);

/* Collect and check every weight; sets c->vocab and c->tied. Errors name the tensor and the shapes. */
int lm_weights_load(struct lm_weights* w, struct lm_config* c, const struct lm_tensors* t);
void lm_weights_free(struct lm_weights* w);

/* x W^T, and the rows `ids` of W as float32. */
mlx_array lm_linear_apply(struct lm_scope* g, const struct lm_linear* l, mlx_array x);
mlx_array lm_linear_rows(struct lm_scope* g, const struct lm_linear* l, mlx_array ids);

#endif
