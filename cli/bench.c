/* `reprise bench`: how fast a model reads and writes, and what it takes.
 *
 * The first token is timed from before the load; after that each figure is the median of the
 * repetitions, in a fresh cache each time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "lm/err.h"
#include "lm/model.h"
#include "reprise/runtime.h"

enum { SHORT_PROMPT = 8, CHUNK = 256, MAX_REPEAT = 100 };

struct bench {
  const char* model;
  int threads, prompt_tokens, tokens, repeat;
  bool json;
  struct lm_model* m;
  struct lm_ids first; /* a short prompt */
  double load_s, ttft_s, prefill_rate, decode_rate;
};

static int32_t pick_largest(const float* logits, int n) {
  int best = 0;
  for (int i = 1; i < n; i++)
    if (logits[i] > logits[best]) best = i;
  return best;
}

static int compare_doubles(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* at, int n) {
  qsort(at, (size_t)n, sizeof *at, compare_doubles);
  return n % 2 ? at[n / 2] : (at[n / 2 - 1] + at[n / 2]) / 2;
}

/* ---- measures -------------------------------------------------------------------------------- */

static int load(struct bench* b) {
  static const char text[] = "The quick brown fox jumps over the lazy dog and runs away.";
  double start = cli_now();
  int rc = cli_load_model(&b->m, b->model, b->threads, true);
  b->load_s = cli_now() - start;
  if (rc) return rc;
  if (lm_tokenizer_encode(b->m->tokenizer, text, sizeof text - 1, 0, &b->first)) return cli_fail_lm();
  if (b->first.len > SHORT_PROMPT) b->first.len = SHORT_PROMPT;
  return CLI_OK;
}

/* Tokens spread over the vocabulary: the cost does not depend on which they are. */
static int32_t* make_prompt(const struct bench* b) {
  int32_t* at = malloc(sizeof *at * (size_t)b->prompt_tokens);
  for (int i = 0; at && i < b->prompt_tokens; i++)
    at[i] = (int32_t)((1000 + (int64_t)i * 7919) % b->m->llama.config.vocab);
  return at;
}

/* Its memory goes back, so that the peak is that of one sequence and not of several kept for reuse. */
static void end_sequence(struct lm_cache* c) {
  lm_cache_free(c);
  mlx_clear_cache();
}

static int time_prefill(struct bench* b, const int32_t* prompt, double* seconds) {
  struct lm_cache c = {0};
  const float* logits;
  int rc = lm_cache_new(&c, b->m, b->prompt_tokens);
  double start = cli_now();
  if (!rc) rc = lm_model_run(b->m, &c, prompt, b->prompt_tokens, CHUNK, &logits);
  *seconds = cli_now() - start;
  end_sequence(&c);
  return rc ? cli_fail_lm() : CLI_OK;
}

/* Greedy, whatever the tokens mean: an end token is followed like any other. */
static int time_decode(struct bench* b, int tokens, double* seconds) {
  struct lm_cache c = {0};
  const float* logits;
  int vocab = b->m->llama.config.vocab, n = (int)b->first.len;
  int rc = lm_cache_new(&c, b->m, n + tokens);
  if (!rc) rc = lm_model_run(b->m, &c, b->first.data, n, CHUNK, &logits);
  double start = cli_now();
  for (int i = 0; i < tokens && !rc; i++) {
    int32_t token = pick_largest(logits, vocab);
    rc = lm_model_run(b->m, &c, &token, 1, 1, &logits);
  }
  *seconds = cli_now() - start;
  end_sequence(&c);
  return rc ? cli_fail_lm() : CLI_OK;
}

/* ---- the report ------------------------------------------------------------------------------ */

static void print_table(const struct bench* b) {
  char rss[16];
  cli_file_size(rss, (double)cli_peak_rss());
  cli_print("prefill              %10.1f tokens/s (%d tokens)\n", b->prefill_rate, b->prompt_tokens);
  cli_print("decode               %10.1f tokens/s (%d tokens)\n", b->decode_rate, b->tokens);
  cli_print("time to first token  %10.3f s (load %.3f s)\n", b->ttft_s, b->load_s);
  cli_print("peak memory          %10s\n", rss);
  cli_print("threads              %10d\n", rp_get_num_threads());
  cli_print("traces               %10llu\n", (unsigned long long)lm_model_traces(b->m));
}

static void print_json(const struct bench* b) {
  cli_print("{\"prefill_tokens_per_s\":%.3f,\"decode_tokens_per_s\":%.3f", b->prefill_rate,
            b->decode_rate);
  cli_print(",\"ttft_s\":%.6f,\"load_s\":%.6f,\"peak_rss_bytes\":%zu", b->ttft_s, b->load_s,
            cli_peak_rss());
  cli_print(",\"prefill_tokens\":%d,\"decode_tokens\":%d,\"threads\":%d,\"traces\":%llu}\n",
            b->prompt_tokens, b->tokens, rp_get_num_threads(),
            (unsigned long long)lm_model_traces(b->m));
}

/* ---- running --------------------------------------------------------------------------------- */

static int measure(struct bench* b, const int32_t* prompt) {
  double prefill[MAX_REPEAT], decode[MAX_REPEAT];
  int rc = CLI_OK;
  for (int i = 0; i < b->repeat && !rc; i++) rc = time_prefill(b, prompt, &prefill[i]);
  for (int i = 0; i < b->repeat && !rc; i++) rc = time_decode(b, b->tokens, &decode[i]);
  if (rc) return rc;
  b->prefill_rate = b->prompt_tokens / median(prefill, b->repeat);
  b->decode_rate = b->tokens / median(decode, b->repeat);
  return CLI_OK;
}

static int check_lengths(const struct bench* b) {
  int context = b->m->llama.config.context;
  if (b->prompt_tokens > context)
    return cli_fail("--prompt-tokens %d is more than the model's context of %d", b->prompt_tokens,
                    context);
  if (b->tokens > context - SHORT_PROMPT)
    return cli_fail("--tokens %d and a prompt of %d are more than the model's context of %d",
                    b->tokens, SHORT_PROMPT, context);
  return CLI_OK;
}

static int bench(struct bench* b) {
  double start = cli_now(), unused;
  int rc = load(b);
  if (!rc) rc = check_lengths(b);
  if (!rc) rc = time_decode(b, 0, &unused);
  b->ttft_s = cli_now() - start;
  int32_t* prompt = rc ? NULL : make_prompt(b);
  if (!rc && !prompt) rc = cli_fail("out of memory");
  if (!rc) rc = measure(b, prompt);
  free(prompt);
  if (!rc) (b->json ? print_json : print_table)(b);
  return rc ? rc : cli_flush();
}

static int run(int argc, char** argv) {
  struct bench b = {.prompt_tokens = 512, .tokens = 128, .repeat = 3};
  int first = 0;
  bool done = false;
  const struct cli_option options[] = {
      {"model", 'm', CLI_TEXT, &b.model, 0, 0, "NAME|PATH",
       "a fetched model, a .gguf file or a model folder (smollm2-135m-instruct)"},
      {"threads", 0, CLI_INT, &b.threads, 0, 256, "N", "0: all CPUs, or REPRISE_THREADS (0)"},
      {"prompt-tokens", 0, CLI_INT, &b.prompt_tokens, 1, 1 << 24, "N", "tokens to read (512)"},
      {"tokens", 'n', CLI_INT, &b.tokens, 1, 1 << 24, "N", "tokens to write (128)"},
      {"repeat", 0, CLI_INT, &b.repeat, 1, MAX_REPEAT, "N", "repetitions; medians are shown (3)"},
      {"json", 0, CLI_FLAG, &b.json, 0, 0, NULL, "print one JSON object"},
      {0}};
  int rc = cli_parse(&cli_bench, options, argc, argv, &first, &done);
  if (!rc && !done) rc = cli_check_operands(&cli_bench, argc, argv, first, 0);
  if (!rc && !done) rc = bench(&b);
  lm_ids_free(&b.first);
  lm_model_free(b.m);
  return rc;
}

const struct cli_command cli_bench = {
    "bench", "[OPTION...]", "Measure a model: tokens per second, time to first token, memory.",
    "  reprise bench\n"
    "  reprise bench --threads 1 --prompt-tokens 128 --json\n",
    run};
