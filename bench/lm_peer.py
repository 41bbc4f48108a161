"""One measurement of llama.cpp through the PyPI package llama-cpp-python: prints one JSON object
with the keys of `reprise bench --json`, and load_s.  lm_peer.py MODEL.gguf THREADS
"""
import itertools
import json
import re
import sys
import time

from llama_cpp import Llama

PREFILL, DECODE = 512, 128


def peak_bytes():
    with open("/proc/self/status") as f:
        return 1024 * int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1))


def decode(llm, prompt, count):
    """Seconds to the first greedy token after `prompt`, and for the `count` that follow it."""
    llm.reset()
    start = time.perf_counter()
    tokens = llm.generate(prompt, temp=0.0, repeat_penalty=1.0)
    next(tokens)
    first = time.perf_counter()
    for _ in itertools.islice(tokens, count):
        pass
    return first - start, time.perf_counter() - first


def main():
    path, threads = sys.argv[1], int(sys.argv[2])
    bare, start = peak_bytes(), time.perf_counter()
    llm = Llama(path, n_ctx=1024, n_batch=PREFILL, n_threads=threads, n_threads_batch=threads,
                n_gpu_layers=0, verbose=False)
    load = time.perf_counter() - start
    prompt = llm.tokenize(b"Tell me a short story about a river and a mill.", add_bos=False)
    long = llm.tokenize(b"The mill by the river had seven rooms. " * 80, add_bos=False)[:PREFILL]
    decode(llm, prompt, 8)  # warm: pages of the file, threads, code
    ttft, seconds = decode(llm, prompt, DECODE)
    llm.reset()
    before = time.perf_counter()
    llm.eval(long)
    prefill = time.perf_counter() - before
    print(json.dumps({
        "prefill_tokens_per_s": len(long) / prefill, "decode_tokens_per_s": DECODE / seconds,
        "ttft_s": ttft, "load_s": load, "peak_rss_bytes": peak_bytes(), "runtime_rss_bytes": bare,
        "prefill_tokens": len(long), "decode_tokens": DECODE}))


if __name__ == "__main__":
    main()
