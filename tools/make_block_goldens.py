#!/usr/bin/env python3
"""Write tests/unit/blocks_golden.h: random blocks of each GGUF format and the floats they stand for.

The oracle is the PyPI package `gguf` (quants.dequantize), which shares no code with src/io/blocks.c.
Needs: pip install gguf numpy. Run from the repository's root; the output is deterministic."""
import numpy as np
from gguf import GGMLQuantizationType as T, GGML_QUANT_SIZES
from gguf.quants import dequantize

HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}  # where a block keeps its f16 scales
rng = np.random.default_rng(20)


def rows(values, form, per_line):
    text = [form % v for v in values]
    return ",\n    ".join(", ".join(text[i:i + per_line]) for i in range(0, len(text), per_line))


out = ["/* Made by tools/make_block_goldens.py with the PyPI package gguf as the oracle. */",
       "#include <stdint.h>", ""]
for name, places in HALVES.items():
    elements, size = GGML_QUANT_SIZES[T[name]]
    n = 3 if elements == 32 else 1
    raw = rng.integers(0, 256, (n, size), dtype=np.uint8)
    for block in raw:
        for p in places:
            d = np.float16(rng.normal() * 0.1)
            block[p:p + 2] = np.frombuffer(d.tobytes(), np.uint8)
    if n == 3:  # a subnormal scale in the last block
        raw[2, :2] = np.frombuffer(np.float16(-37 * 2.0**-24).tobytes(), np.uint8)
    bits = dequantize(raw.reshape(-1), T[name]).astype(np.float32).view(np.uint32).reshape(-1)
    assert bits.size == n * elements
    low = name.lower()
    out += [f"static const uint8_t golden_{low}[] = {{\n    {rows(raw.reshape(-1), '0x%02x', 16)}}};",
            f"static const uint32_t golden_{low}_f32[] = {{\n    {rows(bits, '0x%08x', 8)}}};", ""]
with open("tests/unit/blocks_golden.h", "w") as f:
    f.write("\n".join(out).rstrip() + "\n")
