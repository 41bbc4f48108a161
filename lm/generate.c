/* The generation loop. */
#include "lm/generate.h"

#include <string.h>
#include <time.h>

#include "lm/err.h"
#include "lm/stop.h"
#include "lm/utf8.h"

enum { DEFAULT_CHUNK = 256, FIRST_ROOM = 256 };

struct lm_generation lm_generation_default(void) {
  return (struct lm_generation){.sampling = lm_sampling_default(), .chunk = DEFAULT_CHUNK};
}

const char* lm_finish_name(enum lm_finish f) {
  static const char* const names[] = {"end", "stop", "length", "cancelled"};
  return names[f];
}

int lm_chat_prompt(const struct lm_model* m, const char* system, const char* user,
                   struct lm_ids* out) {
  struct lm_message messages[2];
  struct lm_text text = {0};
  size_t n = 0;
  if (!m->chat) {
    struct lm_chat* none = NULL; /* for its message */
    return lm_chat_new(&none, lm_tokenizer_chat_template(m->tokenizer));
  }
  if (system) messages[n++] = (struct lm_message){"system", system};
  messages[n++] = (struct lm_message){"user", user};
  int rc = lm_chat_render(m->chat, messages, n, true, &text);
  if (!rc)
    rc = lm_tokenizer_encode(m->tokenizer, text.data ? text.data : "", text.len,
                             LM_ENCODE_SPECIAL | LM_ENCODE_LOSSY, out);
  lm_text_free(&text);
  return rc;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* From tokens to pieces of text: complete characters that cannot become a stop string any more. */
struct output {
  const struct lm_model* m;
  const struct lm_generation* options;
  struct lm_utf8_stream utf8;
  struct lm_stop* stop;
  struct lm_text chars, piece;
  bool is_cancelled;
};

static int emit(struct output* o) {
  if (o->piece.len && o->options->on_text)
    o->is_cancelled = o->options->on_text(o->options->user, o->piece.data, o->piece.len) != 0;
  o->piece.len = 0;
  return 0;
}

static int put_token(struct output* o, int32_t token) {
  size_t n;
  const char* bytes = lm_tokenizer_token_bytes(o->m->tokenizer, token, &n);
  o->chars.len = 0;
  int rc = bytes ? lm_utf8_feed(&o->utf8, bytes, n, &o->chars) : 0;
  if (!rc) rc = lm_stop_feed(o->stop, o->chars.data ? o->chars.data : "", o->chars.len, &o->piece);
  return rc ? rc : emit(o);
}

static int finish_output(struct output* o) {
  o->chars.len = 0;
  int rc = lm_utf8_finish(&o->utf8, &o->chars);
  if (!rc) rc = lm_stop_feed(o->stop, o->chars.data ? o->chars.data : "", o->chars.len, &o->piece);
  if (!rc) rc = lm_stop_finish(o->stop, &o->piece);
  return rc ? rc : emit(o);
}

struct loop {
  struct lm_model* m;
  const struct lm_generation* options;
  struct lm_cache cache;
  struct lm_sampler* sampler;
  struct output output;
  struct lm_generated* result;
  int limit; /* new tokens */
};

static int plan_length(struct loop* l, int n) {
  int context = l->m->llama.config.context, want = l->options->max_tokens;
  if (n < 1) return lm_fail(RP_ERR_ARGUMENT, "[generate] The prompt is empty.");
  if (n >= context)
    return lm_fail(RP_ERR_ARGUMENT,
                   "[generate] The prompt has %d tokens; the model's context is %d, and one new "
                   "token needs room. Shorten the prompt.",
                   n, context);
  l->limit = want > 0 && want < context - n ? want : context - n;
  return 0;
}

static int choose(struct loop* l, const float* logits, struct lm_ids* ids, bool* done) {
  int32_t token;
  int rc = lm_sampler_next(l->sampler, logits, &token);
  if (!rc) rc = lm_ids_push(ids, token);
  if (rc) return rc;
  l->result->tokens++;
  *done = true;
  l->result->finish = LM_FINISH_END;
  if (lm_model_is_end(l->m, token)) return 0;
  rc = put_token(&l->output, token);
  if (l->output.is_cancelled)
    l->result->finish = LM_FINISH_CANCELLED;
  else if (lm_stop_matched(l->output.stop) >= 0)
    l->result->finish = LM_FINISH_STOP;
  else if (l->result->tokens >= l->limit)
    l->result->finish = LM_FINISH_LENGTH;
  else
    *done = false;
  return rc;
}

static int run_loop(struct loop* l, const int32_t* prompt, int n, struct lm_ids* ids) {
  const float* logits;
  bool done = false;
  double start = now();
  int chunk = l->options->chunk > 0 ? l->options->chunk : DEFAULT_CHUNK;
  int rc = lm_model_run(l->m, &l->cache, prompt, n, chunk, &logits);
  if (!rc) rc = choose(l, logits, ids, &done);
  double first = now();
  l->result->prefill_s = first - start;
  while (!rc && !done) {
    rc = lm_model_run(l->m, &l->cache, &ids->data[ids->len - 1], 1, 1, &logits);
    if (!rc) rc = choose(l, logits, ids, &done);
  }
  l->result->decode_s = now() - first;
  return rc ? rc : finish_output(&l->output);
}

static int open_loop(struct loop* l, const int32_t* prompt, int n) {
  int rc = plan_length(l, n);
  if (!rc) rc = lm_stop_new(&l->output.stop, l->options->stop, l->options->nstop);
  if (!rc)
    rc = lm_sampler_new(&l->sampler, &l->options->sampling, (size_t)l->m->llama.config.vocab);
  /* Room for the prompt and a first stretch of text; the cache grows with what follows. */
  if (!rc) rc = lm_cache_new(&l->cache, l->m, 0);
  if (!rc)
    rc = lm_cache_reserve(&l->cache, l->m, n + (l->limit < FIRST_ROOM ? l->limit : FIRST_ROOM));
  if (!rc) lm_sampler_see(l->sampler, prompt, (size_t)n);
  return rc;
}

int lm_generate(struct lm_model* m, const int32_t* prompt, int n, const struct lm_generation* options,
                struct lm_ids* ids, struct lm_generated* out) {
  struct lm_ids own = {0};
  struct loop l = {.m = m, .options = options, .result = out};
  memset(out, 0, sizeof *out);
  out->prompt_tokens = n;
  l.output = (struct output){.m = m, .options = options};
  int rc = open_loop(&l, prompt, n);
  if (!rc) rc = run_loop(&l, prompt, n, ids ? ids : &own);
  lm_ids_free(&own);
  lm_cache_free(&l.cache);
  lm_sampler_free(l.sampler);
  lm_stop_free(l.output.stop);
  lm_text_free(&l.output.chars);
  lm_text_free(&l.output.piece);
  return rc;
}
