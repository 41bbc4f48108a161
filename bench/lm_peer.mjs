// One measurement of llama.cpp through the npm package node-llama-cpp: prints one JSON object with
// the keys of `reprise bench --json`, and load_s. lm_vs_llamacpp runs it in the folder that holds
// node_modules:  node lm_peer.mjs MODEL.gguf THREADS
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const PREFILL = 512, DECODE = 128;
const [, , path, threads] = process.argv;
const entry = join(process.cwd(), "node_modules", "node-llama-cpp", "dist", "index.js");
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(entry).href);

const now = () => Number(process.hrtime.bigint()) / 1e9;
const peakBytes = () =>
  1024 * Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]);

/** Seconds to the first greedy token after `prompt`, and for the `count` that follow it. */
async function decode(sequence, prompt, count) {
  await sequence.clearHistory();
  const start = now();
  let first = 0, seen = 0;
  for await (const _ of sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
    if (seen === 0) first = now();
    if (seen++ === count) break;
  }
  return { ttft: first - start, seconds: now() - first };
}

const bare = peakBytes();
const start = now();
const llama = await getLlama({
  gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: Number(threads),
});
const model = await llama.loadModel({ modelPath: path, useMmap: true });
const context = await model.createContext({
  contextSize: 1024, batchSize: PREFILL, threads: Number(threads), flashAttention: false,
});
const sequence = context.getSequence();
const load = now() - start;

const prompt = model.tokenize("Tell me a short story about a river and a mill.");
const long = model.tokenize("The mill by the river had seven rooms. ".repeat(80)).slice(0, PREFILL);
await decode(sequence, prompt, 8); // warm: pages of the file, threads, code

const { ttft, seconds } = await decode(sequence, prompt, DECODE);
await sequence.clearHistory();
const before = now();
await sequence.evaluateWithoutGeneratingNewTokens(long);
const prefill = now() - before;

console.log(JSON.stringify({
  prefill_tokens_per_s: long.length / prefill, decode_tokens_per_s: DECODE / seconds, ttft_s: ttft,
  load_s: load, peak_rss_bytes: peakBytes(), runtime_rss_bytes: bare,
  prefill_tokens: long.length, decode_tokens: DECODE,
}));
process.exit(0);
