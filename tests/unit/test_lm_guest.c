/* What a host can do to the text side of lm/: small stacks, many threads, no memory.
 *
 * Allocation is replaced for the whole process, cJSON and PCRE2 included, where no sanitizer does
 * so itself: the n-th allocation fails, for every n until the work succeeds, and every block that
 * was allocated before the failure must be gone after it. Run from the root of the repository. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lm/chat.h"
#include "lm/err.h"
#include "lm/sampler.h"
#include "lm/stop.h"
#include "lm/tokenizer.h"
#include "lm/utf8.h"

#define MINI "tests/golden/tokenizer/mini-qwen2-nfc.json"

/* ---- allocation ---- */

static _Thread_local long fail_in = -1; /* allocations left until one fails; -1: never */
static _Thread_local long fail_in_use =
    -1; /* the same, counted from when the tokenizer is loaded */
static _Thread_local bool has_failed;
static _Thread_local long live;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { COUNTS = 0 };
#else
enum { COUNTS = 1 };

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void __libc_free(void*);

static bool is_refused(void) {
  if (fail_in < 0 || fail_in-- > 0) return false;
  has_failed = true;
  fail_in = 0; /* and every one after it */
  return true;
}

static void* counted(void* p) {
  live += p != NULL;
  return p;
}

#pragma GCC visibility push(default) /* for the libraries too */
void* malloc(size_t n) { return is_refused() ? NULL : counted(__libc_malloc(n)); }
void* calloc(size_t n, size_t size) {
  return is_refused() ? NULL : counted(__libc_calloc(n, size));
}
void* realloc(void* p, size_t n) {
  if (is_refused()) return NULL;
  return p ? __libc_realloc(p, n) : counted(__libc_malloc(n));
}
void free(void* p) {
  live -= p != NULL;
  __libc_free(p);
}
#pragma GCC visibility pop
#endif

/* ---- the work: load, render, encode, decode, stream, sample ---- */

static const char template[] =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% endif %}";

static int render(struct lm_text* out) {
  struct lm_chat* c = NULL;
  int err = lm_chat_new(&c, template);

  if (!err)
    err = lm_chat_render(c, (struct lm_message[]){{"user", "the the\xCC\x81re 12 <|im_end|> \xFF"}},
                         1, true, out);
  for (int i = 0; i < 20 && !err; i++)
    err = lm_text_append_str(out, "then with the hand \xE4\xBD\xA0, ");
  lm_chat_free(c);
  return err;
}

static int stream(const struct lm_text* text, struct lm_text* out) {
  const char* stops[] = {"hand!", "stop"};
  struct lm_utf8_stream s = {0};
  struct lm_text whole = {0};
  struct lm_stop* stop = NULL;
  int err = lm_stop_new(&stop, stops, 2);

  if (!err) err = lm_utf8_feed(&s, text->data, text->len, &whole);
  if (!err) err = lm_utf8_finish(&s, &whole);
  if (!err) err = lm_stop_feed(stop, whole.data, whole.len, out);
  if (!err) err = lm_stop_finish(stop, out);
  lm_stop_free(stop);
  lm_text_free(&whole);
  return err;
}

static int sample(int32_t* token) {
  struct lm_sampling set = {.8f, 40, .9f, .05f, 1.1f, 7};
  struct lm_sampler* s = NULL;
  float logits[200];
  int err = lm_sampler_new(&s, &set, 200);

  for (int i = 0; i < 200; i++) logits[i] = (float)(i * 37 % 101) / 10;
  if (!err) err = lm_sampler_next(s, logits, token);
  lm_sampler_free(s);
  return err;
}

static int work(size_t* n_tokens) {
  struct lm_tokenizer* t = NULL;
  struct lm_text prompt = {0}, back = {0}, out = {0};
  struct lm_ids ids = {0};
  int32_t token;

  int err = lm_tokenizer_from_json(&t, MINI, NULL);
  if (fail_in_use >= 0) fail_in = fail_in_use;
  if (!err) err = render(&prompt);
  if (!err) err = lm_tokenizer_encode(t, prompt.data, prompt.len, LM_ENCODE_SPECIAL, &ids);
  if (!err) err = lm_tokenizer_decode(t, ids.data, ids.len, 0, &back);
  if (!err) err = stream(&back, &out);
  if (!err) err = sample(&token);
  *n_tokens = ids.len;
  lm_tokenizer_free(t);
  lm_text_free(&prompt);
  lm_text_free(&back);
  lm_text_free(&out);
  lm_ids_free(&ids);
  return err;
}

/* Do the work with one failing allocation; returns false once there was none to fail. */
static bool check_failure(int n, size_t want, int* done_without) {
  size_t got = 0;
  long before = live;

  has_failed = false;
  int err = work(&got);
  fail_in = -1;
  if (live != before) fail_msg("allocation %d: %ld blocks leak", n, live - before);
  if (err == 0) assert_int_equal(got, want);
  *done_without += has_failed && err == 0; /* the word cache and PCRE2's JIT */
  /* cJSON says "not JSON" for no memory. */
  if (err && err != RP_ERR_MEMORY && err != RP_ERR_FORMAT && err != RP_ERR_IO)
    fail_msg("allocation %d: error %d: %s", n, err, lm_error_text());
  return has_failed;
}

static void each_failing_allocation_is_an_error_and_leaks_nothing(void** state) {
  if (!COUNTS) skip();
  size_t want;
  int done_without = 0, n = 0;

  assert_int_equal(work(&want), 0); /* first: libraries keep a few blocks of their own */
  do {
    fail_in = n;
    n += n < 300 ? 1 : 13; /* one by one at first: the file has hundreds alike */
  } while (check_failure(n, want, &done_without));
  assert_true(n > 1000);
  n = 0;
  do fail_in_use = n++;
  while (check_failure(n, want, &done_without));
  fail_in_use = -1;
  assert_true(n > 30);
  assert_true(done_without < 10);
}

/* ---- threads ---- */

static void* run_work(void* result) {
  size_t* n = result;
  if (work(n)) *n = 0;
  return NULL;
}

static void all_of_it_runs_on_a_128_kb_stack(void** state) {
  pthread_attr_t attr;
  pthread_t thread;
  size_t n = 0;

  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 128 << 10);
  assert_int_equal(pthread_create(&thread, &attr, run_work, &n), 0);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attr);
  assert_true(n > 0);
}

static struct lm_tokenizer* shared;
static atomic_int wrong;

static void* encode_many(void* expected) {
  const struct lm_ids* want = expected;
  struct lm_text text = {0};
  struct lm_ids ids = {0};

  if (render(&text)) wrong++;
  for (int i = 0; i < 200; i++) {
    ids.len = 0;
    if (lm_tokenizer_encode(shared, text.data, text.len, LM_ENCODE_SPECIAL, &ids)) wrong++;
    if (ids.len != want->len || memcmp(ids.data, want->data, ids.len * sizeof *ids.data)) wrong++;
  }
  lm_text_free(&text);
  lm_ids_free(&ids);
  return NULL;
}

static void threads_share_a_tokenizer(void** state) {
  pthread_t threads[4];
  struct lm_text text = {0};
  struct lm_ids want = {0};

  assert_int_equal(lm_tokenizer_from_json(&shared, MINI, NULL), 0);
  assert_int_equal(render(&text), 0);
  assert_int_equal(lm_tokenizer_encode(shared, text.data, text.len, LM_ENCODE_SPECIAL, &want), 0);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, encode_many, &want);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  assert_int_equal(wrong, 0);
  lm_tokenizer_free(shared);
  lm_text_free(&text);
  lm_ids_free(&want);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_failing_allocation_is_an_error_and_leaks_nothing),
      cmocka_unit_test(all_of_it_runs_on_a_128_kb_stack),
      cmocka_unit_test(threads_share_a_tokenizer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
