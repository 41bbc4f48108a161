/* `reprise generate`: a prompt in, text out as it arrives. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cli/cli.h"
#include "lm/err.h"
#include "lm/generate.h"
#include "reprise/runtime.h"

enum { MAX_PROMPT = 64 << 20, MAX_TOKENS = 256 };

struct request {
  const char *model, *prompt, *system;
  bool chat, raw, no_compile, stats, json;
  int max_tokens, threads, chunk, top_k;
  float temperature, top_p, min_p, penalty;
  struct cli_seed seed;
  struct cli_list stop;
};

/* ---- Ctrl-C ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t is_interrupted, has_output;

/* The first one ends the text where it is, or the program if there is none yet; a second one kills,
 * because the handler is gone by then. */
static void interrupt(int sig) {
  (void)sig;
  is_interrupted = 1;
  if (!has_output) _exit(CLI_INTERRUPTED);
}

static void catch_interrupts(void) {
  struct sigaction a = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
  struct sigaction was;
  sigemptyset(&a.sa_mask);
  /* Ignored by the parent (nohup, a background job): stays so. */
  if (!sigaction(SIGINT, NULL, &was) && was.sa_handler != SIG_IGN) sigaction(SIGINT, &a, NULL);
}

/* ---- the prompt ------------------------------------------------------------------------------ */

static int read_input(struct lm_text* out) {
  char buffer[4096];
  ssize_t n;
  while ((n = read(0, buffer, sizeof buffer)) > 0) {
    if (lm_text_append(out, buffer, (size_t)n)) return cli_fail_lm();
    if (out->len > MAX_PROMPT) return cli_fail("standard input has more than 64 MiB of prompt");
  }
  if (n < 0) return cli_fail("cannot read standard input: %s", strerror(errno));
  if (out->len && out->data[out->len - 1] == '\n') out->data[--out->len] = '\0';
  if (out->len && memchr(out->data, 0, out->len))
    return cli_fail("standard input is no text: it has a byte 0");
  return CLI_OK;
}

static int take_prompt(struct request* r, struct lm_text* input, int argc, char** argv, int first) {
  if (argc > first && r->prompt)
    return cli_misuse("generate", "two prompts: --prompt and '%s'", argv[first]);
  if (argc > first) r->prompt = argv[first];
  if (!r->prompt)
    return cli_misuse("generate", "no prompt: give a text, or - to read standard input");
  bool from_input = !strcmp(r->prompt, "-");
  int rc = from_input ? read_input(input) : CLI_OK;
  if (rc) return rc;
  if (from_input) r->prompt = input->data ? input->data : "";
  if (!r->prompt[0]) return cli_misuse("generate", "the prompt is empty");
  return CLI_OK;
}

static int encode_prompt(const struct request* r, const struct lm_model* m, struct lm_ids* ids) {
  if (!r->raw) return lm_chat_prompt(m, r->system, r->prompt, ids) ? cli_fail_lm() : CLI_OK;
  unsigned flags = LM_ENCODE_SPECIAL | LM_ENCODE_BOS | LM_ENCODE_LOSSY;
  int rc = lm_tokenizer_encode(m->tokenizer, r->prompt, strlen(r->prompt), flags, ids);
  return rc ? cli_fail_lm() : CLI_OK;
}

/* ---- the text -------------------------------------------------------------------------------- */

struct answer {
  bool is_json, ends_line;
  struct lm_text text; /* kept for JSON */
  int failed;
};

static int receive(void* user, const char* text, size_t n) {
  struct answer* a = user;
  has_output = 1;
  a->ends_line = n && text[n - 1] == '\n';
  if (a->is_json) {
    a->failed = lm_text_append(&a->text, text, n);
    return a->failed || is_interrupted;
  }
  cli_write(text, n);
  return !cli_push() || is_interrupted;
}

/* ---- reports --------------------------------------------------------------------------------- */

struct report {
  struct lm_generated g;
  double load_s, first_s;
  uint64_t traces;
};

static double rate(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

static double decode_rate(const struct lm_generated* g) {
  return rate(g->tokens - 1, g->decode_s);
}

static void print_stats(const struct request* r, const struct report* p) {
  char rss[16];
  cli_file_size(rss, (double)cli_peak_rss());
  fprintf(stderr, "\nprompt: %d tokens, prefill %.1f tokens/s\n", p->g.prompt_tokens,
          rate(p->g.prompt_tokens, p->g.prefill_s));
  fprintf(stderr, "generated: %d tokens, decode %.1f tokens/s, finish: %s\n", p->g.tokens,
          decode_rate(&p->g), lm_finish_name(p->g.finish));
  fprintf(stderr, "time to first token: %.3f s (load %.3f s, prompt %.3f s)\n", p->first_s, p->load_s,
          p->g.prefill_s);
  fprintf(stderr, "peak memory: %s\nthreads: %d\n", rss, rp_get_num_threads());
  if (r->temperature > 0) fprintf(stderr, "seed: %llu\n", (unsigned long long)r->seed.value);
  fprintf(stderr, "traces: %llu\n", (unsigned long long)p->traces);
}

static void print_json(const struct request* r, const struct report* p, const struct answer* a) {
  cli_print("{\"text\":");
  cli_print_json(a->text.data ? a->text.data : "", a->text.len);
  cli_print(",\"finish\":\"%s\",\"prompt_tokens\":%d,\"tokens\":%d", lm_finish_name(p->g.finish),
            p->g.prompt_tokens, p->g.tokens);
  cli_print(",\"load_s\":%.6f,\"prefill_s\":%.6f,\"decode_s\":%.6f,\"ttft_s\":%.6f", p->load_s,
            p->g.prefill_s, p->g.decode_s, p->first_s);
  cli_print(",\"prefill_tokens_per_s\":%.3f,\"decode_tokens_per_s\":%.3f",
            rate(p->g.prompt_tokens, p->g.prefill_s), decode_rate(&p->g));
  cli_print(",\"peak_rss_bytes\":%zu,\"threads\":%d,\"traces\":%llu,\"seed\":%llu}\n",
            cli_peak_rss(), rp_get_num_threads(), (unsigned long long)p->traces,
            (unsigned long long)r->seed.value);
}

static int finish(const struct request* r, const struct report* p, const struct answer* a) {
  if (r->json)
    print_json(r, p, a);
  else if (!a->ends_line)
    cli_print("\n");
  int rc = cli_flush();
  if (!rc && r->stats) print_stats(r, p);
  return rc ? rc : is_interrupted ? CLI_INTERRUPTED : CLI_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

static struct lm_generation make_options(const struct request* r, struct answer* a) {
  struct lm_generation g = lm_generation_default();
  g.sampling.temperature = r->temperature;
  g.sampling.top_k = r->top_k;
  g.sampling.top_p = r->top_p;
  g.sampling.min_p = r->min_p;
  g.sampling.repetition_penalty = r->penalty;
  g.sampling.seed = r->seed.value;
  g.max_tokens = r->max_tokens;
  g.chunk = r->chunk;
  g.stop = r->stop.at;
  g.nstop = r->stop.n;
  g.on_text = receive;
  g.user = a;
  return g;
}

static int generate(const struct request* r, struct lm_model* m, struct report* p) {
  struct answer a = {.is_json = r->json};
  struct lm_generation options = make_options(r, &a);
  struct lm_ids prompt = {0};
  int rc = encode_prompt(r, m, &prompt);
  if (!rc && lm_generate(m, prompt.data, (int)prompt.len, &options, NULL, &p->g))
    rc = cli_fail_lm();
  if (!rc && a.failed) rc = cli_fail_lm();
  p->first_s = p->load_s + p->g.prefill_s;
  p->traces = lm_model_traces(m);
  if (!rc) rc = finish(r, p, &a);
  lm_ids_free(&prompt);
  lm_text_free(&a.text);
  return rc;
}

static int load_and_generate(const struct request* r) {
  struct report p = {0};
  struct lm_model* m = NULL;
  double start = cli_now();
  int rc = cli_load_model(&m, r->model, r->threads, !r->no_compile);
  p.load_s = cli_now() - start;
  if (!rc) rc = generate(r, m, &p);
  lm_model_free(m);
  return rc;
}

static int check_request(struct request* r) {
  if (r->chat && r->raw) return cli_misuse("generate", "--chat and --raw exclude each other");
  if (r->raw && r->system)
    return cli_misuse("generate", "--system needs a chat; --raw takes the prompt as it is");
  for (size_t i = 0; i < r->stop.n; i++)
    if (!r->stop.at[i][0]) return cli_misuse("generate", "--stop needs a text that is not empty");
  uint32_t bits = 0;
  /* A new text each time, and a short number to have it again. */
  if (r->temperature > 0 && !r->seed.is_set &&
      getrandom(&bits, sizeof bits, GRND_NONBLOCK) == sizeof bits)
    r->seed.value = bits;
  return CLI_OK;
}

static int run(int argc, char** argv) {
  struct request r = {.max_tokens = MAX_TOKENS, .top_p = 1, .penalty = 1};
  struct lm_text input = {0};
  int first = 0;
  bool done = false;
  const struct cli_option options[] = {
      {"model", 'm', CLI_TEXT, &r.model, 0, 0, "NAME|PATH",
       "a fetched model, a .gguf file or a model folder (smollm2-135m-instruct)"},
      {"prompt", 'p', CLI_TEXT, &r.prompt, 0, 0, "TEXT", "the prompt; - reads standard input"},
      {"system", 's', CLI_TEXT, &r.system, 0, 0, "TEXT", "the system message (the model's own)"},
      {"chat", 0, CLI_FLAG, &r.chat, 0, 0, NULL, "answer the prompt as a chat (default)"},
      {"raw", 0, CLI_FLAG, &r.raw, 0, 0, NULL, "continue the prompt as it is"},
      {"max-tokens", 'n', CLI_INT, &r.max_tokens, 0, 1 << 30, "N",
       "stop after N tokens; 0: as many as fit (256)"},
      {"temperature", 't', CLI_REAL, &r.temperature, 0, 1e9, "X",
       "randomness; 0 takes the likeliest token (0)"},
      {"top-k", 0, CLI_INT, &r.top_k, 0, 1 << 30, "N", "choose among the N likeliest; 0: all (0)"},
      {"top-p", 0, CLI_REAL, &r.top_p, 0, 1, "X", "choose within this probability mass (1)"},
      {"min-p", 0, CLI_REAL, &r.min_p, 0, 1, "X", "drop below X times the likeliest (0)"},
      {"repetition-penalty", 0, CLI_REAL, &r.penalty, 0.01, 100, "X",
       "above 1 avoids tokens already seen (1)"},
      {"seed", 0, CLI_SEED, &r.seed, 0, 0, "N", "of the random choices (a new one each time)"},
      {"stop", 0, CLI_LIST, &r.stop, 0, 0, "TEXT", "end before this text; may be repeated"},
      {"threads", 0, CLI_INT, &r.threads, 0, 256, "N", "0: all CPUs, or REPRISE_THREADS (0)"},
      {"chunk", 0, CLI_INT, &r.chunk, 0, 1 << 20, "N", "prompt tokens in one step; 0: 256 (0)"},
      {"no-compile", 0, CLI_FLAG, &r.no_compile, 0, 0, NULL,
       "build every step anew; same text, slower"},
      {"stats", 0, CLI_FLAG, &r.stats, 0, 0, NULL, "print counts and times to standard error"},
      {"json", 0, CLI_FLAG, &r.json, 0, 0, NULL, "print one JSON object at the end instead of text"},
      {0}};
  catch_interrupts();
  int rc = cli_parse(&cli_generate, options, argc, argv, &first, &done);
  if (!rc && !done) rc = cli_check_operands(&cli_generate, argc, argv, first, 1);
  if (!rc && !done) rc = check_request(&r);
  if (!rc && !done) rc = take_prompt(&r, &input, argc, argv, first);
  if (!rc && !done) rc = load_and_generate(&r);
  free(r.stop.at);
  lm_text_free(&input);
  return rc;
}

const struct cli_command cli_generate = {
    "generate", "[OPTION...] [TEXT | -]", "Answer a prompt, printing the text as it arrives.",
    "  reprise generate \"Tell me a joke\"\n"
    "  reprise generate --temperature 0.8 --top-p 0.9 --seed 7 \"Write a haiku\"\n"
    "  git diff | reprise generate --system \"Summarize changes.\" --stats -\n"
    "  reprise generate --raw --stop \".\" --max-tokens 40 \"The capital of France is\"\n",
    run};
