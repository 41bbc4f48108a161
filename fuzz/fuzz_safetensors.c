/* libFuzzer entry for safetensors headers: any bytes give an error or tensors inside the input. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "io/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  struct rpi_safetensors st;

  if (rpi_safetensors_parse(&st, "fuzz", "input", data, size)) return 0;
  for (int64_t i = 0; i < st.ntensors; i++)
    if (st.tensors[i].offset > size || st.tensors[i].bytes > size - st.tensors[i].offset) abort();
  rpi_safetensors_release(&st);
  return 0;
}
