/* Listing the header of a GGUF file that the library has found valid. */
#ifndef CLI_GGUF_HEAD_H
#define CLI_GGUF_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where entries go, and what was listed so far. */
struct listing {
  bool json;
  size_t pairs, tensors;
  uint64_t bytes;
  void (*pair)(struct listing* l, const char* key, const char* value, size_t n, bool is_text);
  void (*between)(const struct listing* l); /* after the last pair */
  void (*tensor)(struct listing* l, const char* name, const char* type, const int64_t* shape,
                 int ndim, uint64_t bytes);
};

/* Walk the header in file order. Shapes are row-major. Returns an exit status; a file that changed
 * since it was validated is refused. */
int gguf_head_list(struct listing* l, const char* path);

#endif
