#!/usr/bin/env python3
"""Reference logits and greedy tokens of SmolLM2-135M-Instruct, written without the library.

  reference.py MODEL.gguf            make goldens.json, logits-*.npy (numpy, tokenizers, jinja2)
  reference.py MODEL.gguf --verify   compute again from the token ids stored there (numpy alone)
  reference.py MODEL.gguf --blocks   compare the dequantizers here with PyPI's gguf, bit for bit

What is computed: the weights are dequantized to float32 (as the format defines them), widened, and
everything after that is float64: RMSNorm, rotary embedding, grouped attention, SwiGLU, tied head.
The same pass in float32 gives the noise floor that goldens.json states per prompt. Nothing is
quantized on the way: no 8-bit activations, no 16-bit cache.

Invariants
1. Rows of q and k lie in a GGUF file so that rotation pairs are neighbours (2i, 2i + 1). The
   goldens come from rotating neighbours. A second pass un-permutes the rows and rotates halves
   (i, i + 32), as Hugging Face's layout has it: both must agree within 1e-9.
2. Greedy takes the lowest id of equal logits, and goes on through end tokens: always 64 ids.
3. No golden rests on a near-tie: a greedy step whose best two logits lie within MARGIN is refused.

One thread (OPENBLAS_NUM_THREADS=1) is enough: a few minutes with OpenBLAS, 3 GB of memory.
"""
import argparse
import hashlib
import json
import mmap
import os
import struct
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDENS = os.path.join(HERE, "goldens.json")
STEPS, TOP, SAMPLES = 64, 32, 64
MARGIN = 4e-3  # twice what a logit may be off by
FULL = ("chat-joke", "long-600")  # prompts whose every logit is kept
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
           12: "d"}
STRING, ARRAY = 8, 9
F32, F16, Q4_1, Q8_0 = 0, 1, 3, 8


class Gguf:
    """Metadata and tensors of a trusted GGUF file (version 3, little endian)."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        magic, version, tensors, pairs = struct.unpack_from("<4sIQQ", self.data, 0)
        if magic != b"GGUF" or version != 3:
            raise SystemExit(f"{path}: not a GGUF file of version 3")
        self.at, self.meta, self.infos = 24, {}, {}
        for _ in range(pairs):
            key = self.string()
            self.meta[key] = self.value(self.scalar("I"))
        for _ in range(tensors):
            name = self.string()
            dims = [self.scalar("Q") for _ in range(self.scalar("I"))]
            self.infos[name] = (dims[::-1], self.scalar("I"), self.scalar("Q"))
        align = self.meta.get("general.alignment", 32)
        self.base = -(-self.at // align) * align

    def scalar(self, code):
        value, = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def string(self):
        size = self.scalar("Q")
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind = self.scalar("I")
            return [self.value(kind) for _ in range(self.scalar("Q"))]
        return self.scalar(SCALARS[kind])

    def raw(self, name, dtype, count):
        return np.frombuffer(self.data, dtype, count, self.base + self.infos[name][2])

    def tensor(self, name):
        """Tensor as float32, outermost axis first."""
        shape, kind, _ = self.infos[name]
        count = int(np.prod(shape))
        if kind == F32:
            flat = self.raw(name, "<f4", count)
        elif kind == F16:
            flat = self.raw(name, "<f2", count).astype(np.float32)
        elif kind == Q4_1:  # f16 step, f16 least value, 16 bytes: low halves are 0..15, high 16..31
            block = self.raw(name, [("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)], count // 32)
            q = np.concatenate([block["q"] & 15, block["q"] >> 4], axis=1).astype(np.float32)
            d, m = (block[n].astype(np.float32)[:, None] for n in "dm")
            flat = q * d + m
        elif kind == Q8_0:  # f16 step, 32 signed bytes
            block = self.raw(name, [("d", "<f2"), ("q", "i1", 32)], count // 32)
            flat = block["q"].astype(np.float32) * block["d"].astype(np.float32)[:, None]
        else:
            raise SystemExit(f"{name}: block type {kind} is not read here")
        return flat.reshape(shape)


def halves_first(rows, heads):
    """Rows of q or k from neighbour order (2i, 2i + 1) to half-split order (i, i + half)."""
    out, size = rows.shape
    return rows.reshape(heads, out // heads // 2, 2, size).swapaxes(1, 2).reshape(out, size)


class Model:
    def __init__(self, gguf, dtype, rope="pairs"):
        def number(key):
            return gguf.meta["llama." + key]
        self.dtype, self.rope = dtype, rope
        self.layers = number("block_count")
        self.heads, self.kv = number("attention.head_count"), number("attention.head_count_kv")
        self.head = number("embedding_length") // self.heads
        self.eps = dtype(number("attention.layer_norm_rms_epsilon"))
        assert number("rope.dimension_count") == self.head and "output.weight" not in gguf.infos
        self.freq = number("rope.freq_base") ** (-np.arange(0, self.head, 2) / self.head)
        self.w = {name: gguf.tensor(name).astype(dtype) for name in gguf.infos}
        if rope == "half":
            for name in self.w:
                if name.endswith(("attn_q.weight", "attn_k.weight")):
                    heads = self.heads if "attn_q" in name else self.kv
                    self.w[name] = halves_first(self.w[name], heads)

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * self.w[name + ".weight"]

    def rotate(self, x, start):
        """x: (positions, heads, head size), the first of them at `start`."""
        angle = (start + np.arange(len(x)))[:, None, None] * self.freq
        cos, sin = np.cos(angle).astype(self.dtype), np.sin(angle).astype(self.dtype)
        out = np.empty_like(x)
        half = self.head // 2
        a, b = ((slice(0, None, 2), slice(1, None, 2)) if self.rope == "pairs"
                else (slice(0, half), slice(half, None)))
        out[..., a] = x[..., a] * cos - x[..., b] * sin
        out[..., b] = x[..., b] * cos + x[..., a] * sin
        return out

    def attend(self, q, k, v, cache, layer):
        """One sequence's new rows against its cache, which they join."""
        start = cache["length"]
        q, k = self.rotate(q, start), self.rotate(k, start)
        if layer in cache:
            k = np.concatenate([cache[layer][0], k])
            v = np.concatenate([cache[layer][1], v])
        cache[layer] = k, v
        hidden = np.arange(len(k)) > start + np.arange(len(q))[:, None]
        out = np.empty_like(q)
        for h in range(self.heads):
            g = h // (self.heads // self.kv)
            score = q[:, h] @ k[:, g].T / self.dtype(np.sqrt(self.head))
            score[hidden] = -np.inf
            score = np.exp(score - score.max(-1, keepdims=True))
            out[:, h] = score / score.sum(-1, keepdims=True) @ v[:, g]
        return out.reshape(len(q), -1)

    def forward(self, batch):
        """batch: (token ids, cache) per sequence. Returns the last position's logits of each."""
        ends = np.cumsum([len(ids) for ids, _ in batch])
        x = self.w["token_embd.weight"][np.concatenate([ids for ids, _ in batch])]
        for layer in range(self.layers):
            def linear(rows, name):
                return rows @ self.w[f"blk.{layer}.{name}.weight"].T
            h = self.norm(x, f"blk.{layer}.attn_norm")
            q, k, v = (linear(h, n).reshape(len(h), -1, self.head)
                       for n in ("attn_q", "attn_k", "attn_v"))
            rows = [slice(e - len(ids), e) for e, (ids, _) in zip(ends, batch)]
            parts = [self.attend(q[r], k[r], v[r], cache, layer)
                     for r, (_, cache) in zip(rows, batch)]
            x = x + linear(np.concatenate(parts), "attn_output")
            h = self.norm(x, f"blk.{layer}.ffn_norm")
            gate = linear(h, "ffn_gate")
            x = x + linear(gate / (1 + np.exp(-gate)) * linear(h, "ffn_up"), "ffn_down")
        for ids, cache in batch:
            cache["length"] += len(ids)
        return self.norm(x[ends - 1], "output_norm") @ self.w["token_embd.weight"].T


def greedy(model, prompts):
    """Per prompt: logits after it, then STEPS ids and the margin of each over the runner-up."""
    caches = [{"length": 0} for _ in prompts]
    logits = np.stack([model.forward([(ids, c)])[0] for ids, c in zip(prompts, caches)])
    first, ids, margins = logits, [], []
    for step in range(STEPS):
        best = logits.argmax(-1)
        two = np.partition(logits, -2, axis=-1)[:, -2:]
        ids.append(best)
        margins.append(two[:, 1] - two[:, 0])
        if step + 1 < STEPS:
            logits = model.forward([([i], c) for i, c in zip(best, caches)])
    return first, np.array(ids).T, np.array(margins).T


def after_prompt(model, prompts):
    return np.stack([model.forward([(ids, {"length": 0})])[0] for ids in prompts])


JOKE = [{"role": "user", "content": "Tell me a joke"}]
FRANCE = [{"role": "system", "content": ""},
          {"role": "user", "content": "What is the capital of France?"}]
TURNS = [{"role": "system", "content": "You answer in one short sentence."},
         {"role": "user", "content": "What do bees make?"},
         {"role": "assistant", "content": "Bees make honey and wax."},
         {"role": "user", "content": "And what do spiders make?"}]
EMOJI = [{"role": "user", "content": "Explain these emoji: \U0001f389 \U0001f469\u200d\U0001f469"
          "\u200d\U0001f467 \U0001f1eb\U0001f1f7 \u2764\ufe0f \U0001f44d\U0001f3fd"}]
CODE = ('def fibonacci(n):\n    """Return the n-th Fibonacci number."""\n'
        '    if n < 2:\n        return n\n')
NUMBERS = ("1, 2, 3, 5, 8, 13, 21, 34, 55, 89; 1024 + 4096 = 5120; "
           "pi is 3.14159 and 2/3 is 0.6667; 7 * 6 =")
LANGUAGES = ("Gr\u00fc\u00dfe aus M\u00fcnchen. L'\u00e9t\u00e9 est d\u00e9j\u00e0 l\u00e0. "
             "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! "
             "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3002 "
             "\uc548\ub155\ud558\uc138\uc694. \u0645\u0631\u062d\u0628\u0627. Hello in French is")
SPACES = "Item\tPrice\n\n  apple \t 3\n  pear  \t 4\n\n\n    total:"
MILL = ("The mill by the river had {n} rooms, and on day {n} the miller counted {m} sacks of "
        "flour. He wrote the number in a book, closed the door and walked home along the water. ")


def prompts():
    """(name, messages or None, text or None); the long one is cut to 600 tokens."""
    return [("chat-joke", JOKE, None), ("empty-system", FRANCE, None), ("chat-turns", TURNS, None),
            ("emoji", EMOJI, None), ("code", None, CODE), ("numbers", None, NUMBERS),
            ("multilingual", None, LANGUAGES), ("spaces", None, SPACES), ("one-token", None, "Hello"),
            ("long-600", None, "".join(MILL.format(n=i, m=i * 7 + 3) for i in range(1, 40)))]


def encoder(gguf):
    """Hugging Face's BPE over the file's vocabulary, with SmolLM's cut of digits."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    get = {k.rsplit(".", 1)[1]: v for k, v in gguf.meta.items() if k.startswith("tokenizer.ggml.")}
    tok = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(get["tokens"])},
                               merges=[tuple(m.split(" ")) for m in get["merges"]]))
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False)
                            for t, k in zip(get["tokens"], get["token_type"]) if k == 3])
    return tok


def tokenized(gguf):
    """goldens.json's entries so far: name, messages, text, ids."""
    from jinja2 import Environment
    tok = encoder(gguf)
    template = Environment(trim_blocks=True, lstrip_blocks=True).from_string(
        gguf.meta["tokenizer.chat_template"])
    entries = []
    for name, messages, text in prompts():
        if messages:
            text = template.render(messages=messages, add_generation_prompt=True)
        ids = tok.encode(text, add_special_tokens=False).ids
        if name == "long-600":
            ids = ids[:600]
            text = tok.decode(ids, skip_special_tokens=False)
        again = tok.encode(text, add_special_tokens=False).ids
        assert again == ids and tok.decode(ids, skip_special_tokens=False) == text, name
        assert len(ids) == {"long-600": 600, "one-token": 1}.get(name, len(ids)), name
        entries.append({"name": name, "messages": messages, "text": text, "ids": ids})
    return entries, tok


def sample_ids(vocabulary):
    """Fixed ids spread over the vocabulary, both ends included."""
    return [i * (vocabulary - 1) // (SAMPLES - 1) for i in range(SAMPLES)]


def digits(values):
    return [float(f"{v:.9g}") for v in values]


def describe(logits):
    """What is kept of one position's logits."""
    order = np.argsort(-logits, kind="stable")[:TOP]
    top = logits.max()
    return {"top_ids": order.tolist(), "top_logits": digits(logits[order]),
            "sample_logits": digits(logits[sample_ids(len(logits))]),
            "logsumexp": float(f"{top + np.log(np.exp(logits - top).sum()):.9g}")}


def make(path, gguf):
    entries, tok = tokenized(gguf)
    ids = [e["ids"] for e in entries]
    print("prompts:", ", ".join(f"{e['name']} {len(e['ids'])}" for e in entries), flush=True)
    model = Model(gguf, np.float64)
    logits, tokens, margins = greedy(model, ids)
    del model
    rope = np.abs(after_prompt(Model(gguf, np.float64, "half"), ids) - logits).max(-1)
    noise = np.abs(after_prompt(Model(gguf, np.float32), ids) - logits).max(-1)
    for i, entry in enumerate(entries):
        if margins[i].min() < MARGIN:
            raise SystemExit(f"{entry['name']}: step {margins[i].argmin()} is a near-tie")
        if rope[i] > 1e-9:
            raise SystemExit(f"{entry['name']}: the two rope forms differ by {rope[i]:.1e}")
        entry.update(describe(logits[i]))
        entry.update(greedy=tokens[i].tolist(), margins=[float(f"{m:.4g}") for m in margins[i]],
                     greedy_text=tok.decode(tokens[i].tolist(), skip_special_tokens=False),
                     rope_forms_differ_by=float(f"{rope[i]:.2g}"),
                     float32_differs_by=float(f"{noise[i]:.2g}"))
        if entry["name"] in FULL:
            np.save(os.path.join(HERE, f"logits-{entry['name']}.npy"), logits[i].astype("<f4"))
    with open(path, "rb") as f:
        sha256 = hashlib.sha256(f.read()).hexdigest()
    whole = {"model": {"file": os.path.basename(path), "sha256": sha256,
                       "bytes": os.path.getsize(path)},
             "arithmetic": "float64 over weights dequantized to float32",
             "tolerance": MARGIN / 2, "sample_ids": sample_ids(logits.shape[1]), "prompts": entries}
    with open(GOLDENS, "w") as f:
        f.write(pack(whole) + "\n")
    report(entries)


def pack(whole):
    """JSON with one prompt field a line, so that a change reads as one."""
    rows = []
    for entry in whole["prompts"]:
        fields = ",\n    ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in entry.items())
        rows.append("  {" + fields + "}")
    head = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in whole.items()
                      if k != "prompts")
    return "{\n" + head + ',\n "prompts": [\n' + ",\n".join(rows) + "\n ]\n}"


def report(entries):
    for e in entries:
        print(f"{e['name']:13} {len(e['ids']):4} tokens  least margin {min(e['margins']):.4f}  "
              f"rope forms {e['rope_forms_differ_by']:.1e}  float32 {e['float32_differs_by']:.1e}  "
              f"{e['greedy_text'][:40]!r}")


def verify(gguf):
    """Exit status 1 when a stored golden does not follow from its token ids."""
    with open(GOLDENS) as f:
        entries = json.load(f)["prompts"]
    logits, tokens, _ = greedy(Model(gguf, np.float64), [e["ids"] for e in entries])
    wrong = 0
    for entry, row, out in zip(entries, logits, tokens):
        want = np.array(entry["top_logits"] + entry["sample_logits"])
        off = np.abs(want - row[entry["top_ids"] + sample_ids(len(row))]).max()
        good = off < 1e-6 and entry["greedy"] == out.tolist()
        wrong += not good
        print(f"{entry['name']:13} {'same' if good else 'DIFFERS'}  {off:.1e}")
    return wrong > 0


def blocks(path, gguf):
    from gguf import GGUFReader, quants
    for tensor in GGUFReader(path).tensors:
        want = quants.dequantize(tensor.data, tensor.tensor_type)
        got = gguf.tensor(tensor.name)
        if want.shape != got.shape or want.tobytes() != got.tobytes():
            raise SystemExit(f"{tensor.name}: differs from gguf's dequantize")
    print(f"{len(gguf.infos)} tensors equal gguf's dequantize, bit for bit")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--verify", action="store_true", help="compute the stored goldens again")
    parser.add_argument("--blocks", action="store_true",
                        help="compare the dequantizers with PyPI's gguf")
    args = parser.parse_args()
    gguf = Gguf(args.model)
    start = time.time()
    if args.blocks:
        blocks(args.model, gguf)
    elif args.verify:
        return verify(gguf)
    else:
        make(args.model, gguf)
    print(f"{time.time() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
