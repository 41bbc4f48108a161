/* Texts owned by the library. */
#ifndef MLX_C_STRING_H
#define MLX_C_STRING_H

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* A text: bytes that end with a NUL. Free with mlx_string_free. */
typedef struct mlx_string_ {
  void* ctx;
} mlx_string;

/* An empty handle. */
mlx_string mlx_string_new(void);

/* A copy of `str`; empty on failure or when `str` is NULL. */
mlx_string mlx_string_new_data(const char* str);

/* Make `*str` hold a copy of `src`, releasing what it held. */
int mlx_string_set(mlx_string* str, const mlx_string src);

/* The bytes, borrowed until the text is freed or set; NULL for an empty handle. */
const char* mlx_string_data(mlx_string str);

/* Release it. An empty handle is fine. */
int mlx_string_free(mlx_string str);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
