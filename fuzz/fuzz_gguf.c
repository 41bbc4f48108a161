/* libFuzzer entry for GGUF headers: any bytes give an error or a structure that can be walked. */
#include <stddef.h>
#include <stdint.h>

#include "io/gguf.h"

static volatile unsigned sink;

static void walk(const struct rpi_gguf* g) {
  struct rpi_gguf_array a;

  for (int64_t i = 0; i < g->npairs; i++) {
    if (!rpi_gguf_get_array(&g->pairs[i], &a) || a.count == 0) continue;
    if (a.type == RPI_GGUF_STRING) {
      struct rpi_gguf_text t = rpi_gguf_array_text(g, &g->pairs[i], a.count - 1);
      sink += t.n ? (unsigned char)t.at[t.n - 1] : 0;
    } else if (a.type == RPI_GGUF_ARRAY) {
      sink += (unsigned)rpi_gguf_array_nested(&a, a.count - 1).count;
    } else {
      sink += (unsigned)rpi_gguf_array_int(&a, a.count - 1);
    }
  }
  for (int64_t i = 0; i < g->ntensors; i++)
    sink += g->data[g->tensors[i].offset] + g->data[g->tensors[i].offset + g->tensors[i].bytes - 1];
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  struct rpi_gguf g;

  if (rpi_gguf_parse(&g, "fuzz", "input", data, size)) return 0;
  walk(&g);
  rpi_gguf_release(&g);
  return 0;
}
