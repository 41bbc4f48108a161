/* The language model against a float64 reference (tests/golden/lm/reference.py), and against itself:
 * compiled or not, one thread or two, prompt in chunks or whole, the bits are the same.
 *
 * Needs the model: REPRISE_TEST_MODEL names the GGUF file; without it the tests are skipped. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "lm/err.h"
#include "lm/generate.h"
#include "reprise/runtime.h"

static const char* const GOLDENS = "tests/golden/lm/goldens.json";
enum { NEW_TOKENS = 64 };

static cJSON* goldens;
static struct lm_model *compiled, *plain;

static int load_all(void** state) {
  (void)state;
  const char* path = getenv("REPRISE_TEST_MODEL");
  struct lm_text text = {0};
  if (!path || !*path) return 0;
  if (lm_text_read_file(&text, GOLDENS, 16 << 20)) return -1;
  goldens = cJSON_ParseWithLength(text.data, text.len);
  lm_text_free(&text);
  if (!goldens || lm_model_load(&compiled, path, true) || lm_model_load(&plain, path, false)) {
    print_error("%s\n", lm_error_text());
    return -1;
  }
  return 0;
}

static int free_all(void** state) {
  (void)state;
  cJSON_Delete(goldens);
  lm_model_free(compiled);
  lm_model_free(plain);
  return 0;
}

#define NEED_MODEL() \
  if (!compiled) skip()

static int32_t* ints(const cJSON* list, int* n) {
  *n = cJSON_GetArraySize(list);
  int32_t* at = malloc(sizeof *at * (size_t)(*n + 1));
  int i = 0;
  const cJSON* item;
  cJSON_ArrayForEach(item, list) at[i++] = item->valueint;
  return at;
}

static void assert_logits(const cJSON* ids, const cJSON* want, const float* logits, double limit) {
  const cJSON *id = ids->child, *value = want->child;
  for (; id && value; id = id->next, value = value->next) {
    double off = fabs(logits[id->valueint] - value->valuedouble);
    if (!(off < limit)) {
      print_error("token %d: %.6f against %.6f\n", id->valueint, (double)logits[id->valueint],
                  value->valuedouble);
      fail();
    }
  }
  assert_true(!id && !value);
}

static void logits_and_greedy_tokens_match_the_reference(void** state) {
  (void)state;
  NEED_MODEL();
  double limit = cJSON_GetObjectItem(goldens, "tolerance")->valuedouble;
  const cJSON *p, *sample = cJSON_GetObjectItem(goldens, "sample_ids");
  cJSON_ArrayForEach(p, cJSON_GetObjectItem(goldens, "prompts")) {
    int n, m;
    int32_t* prompt = ints(cJSON_GetObjectItem(p, "ids"), &n);
    int32_t* greedy = ints(cJSON_GetObjectItem(p, "greedy"), &m);
    const float* logits;
    struct lm_cache c;
    struct lm_sampler* s;
    struct lm_sampling settings = lm_sampling_default();
    assert_int_equal(m, NEW_TOKENS);
    assert_int_equal(lm_cache_new(&c, compiled, 0), 0);
    assert_int_equal(lm_sampler_new(&s, &settings, (size_t)compiled->llama.config.vocab), 0);
    assert_int_equal(lm_model_run(compiled, &c, prompt, n, 512, &logits), 0);
    assert_logits(cJSON_GetObjectItem(p, "top_ids"), cJSON_GetObjectItem(p, "top_logits"), logits, limit);
    assert_logits(sample, cJSON_GetObjectItem(p, "sample_logits"), logits, limit);
    for (int i = 0; i < m; i++) {
      int32_t token;
      assert_int_equal(lm_sampler_next(s, logits, &token), 0);
      if (token != greedy[i])
        print_error("%s: token %d\n", cJSON_GetObjectItem(p, "name")->valuestring, i);
      assert_int_equal(token, greedy[i]);
      assert_int_equal(lm_model_run(compiled, &c, &token, 1, 1, &logits), 0);
    }
    lm_sampler_free(s);
    lm_cache_free(&c);
    free(prompt), free(greedy);
  }
  assert_int_equal(lm_model_traces(compiled), 1);
}

/* The logits of a golden file in NumPy's format: the whole vocabulary. */
static void all_logits_of_two_prompts_are_within_the_tolerance(void** state) {
  (void)state;
  NEED_MODEL();
  const char* const names[] = {"chat-joke", "long-600"};
  for (int k = 0; k < 2; k++) {
    const cJSON *p, *found = NULL;
    cJSON_ArrayForEach(p, cJSON_GetObjectItem(goldens, "prompts")) {
      if (!strcmp(cJSON_GetObjectItem(p, "name")->valuestring, names[k])) found = p;
    }
    char path[128];
    snprintf(path, sizeof path, "tests/golden/lm/logits-%s.npy", names[k]);
    mlx_array want = mlx_array_new();
    mlx_stream stream = mlx_default_cpu_stream_new();
    assert_int_equal(mlx_load(&want, path, stream), 0);
    const float *w = mlx_array_data_float32(want), *logits;
    int n;
    int32_t* prompt = ints(cJSON_GetObjectItem(found, "ids"), &n);
    struct lm_cache c;
    assert_int_equal(lm_cache_new(&c, compiled, 0), 0);
    assert_int_equal(lm_model_run(compiled, &c, prompt, n, 512, &logits), 0);
    double worst = 0;
    for (size_t i = 0; i < mlx_array_size(want); i++)
      if (!(fabs(logits[i] - w[i]) <= worst)) worst = fabs(logits[i] - w[i]);
    print_message("%s: largest difference %.2e\n", names[k], worst);
    assert_true(worst < 2e-3);
    lm_cache_free(&c);
    free(prompt);
    mlx_array_free(want);
    mlx_stream_free(stream);
  }
}

/* The logits after each of: the prompt in chunks, then eight steps. */
static float* trajectory(struct lm_model* m, const int32_t* prompt, int n, int chunk) {
  size_t vocab = (size_t)m->llama.config.vocab;
  float* all = malloc(sizeof *all * vocab * 9);
  const float* logits;
  struct lm_cache c;
  assert_int_equal(lm_cache_new(&c, m, 0), 0);
  assert_int_equal(lm_model_run(m, &c, prompt, n, chunk, &logits), 0);
  memcpy(all, logits, sizeof *all * vocab);
  for (size_t i = 1; i <= 8; i++) {
    int32_t token = (int32_t)(1000 * i);
    assert_int_equal(lm_model_run(m, &c, &token, 1, 1, &logits), 0);
    memcpy(all + i * vocab, logits, sizeof *all * vocab);
  }
  lm_cache_free(&c);
  return all;
}

static void compile_threads_and_chunks_do_not_change_the_bits(void** state) {
  (void)state;
  NEED_MODEL();
  enum { N = 70 };
  int32_t prompt[N];
  size_t bytes = sizeof(float) * 9 * (size_t)compiled->llama.config.vocab;
  for (int i = 0; i < N; i++) prompt[i] = 37 * i + 5;
  float* first = trajectory(compiled, prompt, N, 512);
  struct {
    const char* what;
    struct lm_model* m;
    int chunk, threads;
  } others[] = {{"not compiled", plain, 512, 0}, {"one thread", compiled, 512, 1},
                {"three threads", compiled, 512, 3}, {"chunks of 16", compiled, 16, 0},
                {"token by token", compiled, 1, 2}, {"not compiled, chunks of 23", plain, 23, 1}};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    assert_int_equal(rp_set_num_threads(others[i].threads), 0);
    float* other = trajectory(others[i].m, prompt, N, others[i].chunk);
    if (memcmp(first, other, bytes)) print_error("%s differs\n", others[i].what);
    assert_memory_equal(first, other, bytes);
    free(other);
  }
  rp_set_num_threads(0);
  free(first);
}

static int keep_text(void* user, const char* text, size_t n) {
  return lm_text_append(user, text, n) != 0;
}

static void a_seed_decides_the_text_and_streaming_loses_nothing(void** state) {
  (void)state;
  NEED_MODEL();
  struct lm_text text[3] = {{0}};
  struct lm_ids prompt = {0};
  assert_int_equal(lm_chat_prompt(compiled, NULL, "Name three colours.", &prompt), 0);
  for (int i = 0; i < 3; i++) {
    struct lm_generation o = lm_generation_default();
    struct lm_generated g;
    struct lm_ids ids = {0};
    struct lm_text whole = {0};
    o.max_tokens = 24;
    o.sampling.temperature = 1;
    o.sampling.seed = i < 2 ? 7 : 8;
    o.on_text = keep_text;
    o.user = &text[i];
    assert_int_equal(lm_generate(compiled, prompt.data, (int)prompt.len, &o, &ids, &g), 0);
    size_t n = ids.len - (g.finish == LM_FINISH_END);
    assert_int_equal(lm_tokenizer_decode(compiled->tokenizer, ids.data, n, 0, &whole), 0);
    assert_int_equal(whole.len, text[i].len); /* all of it is valid UTF-8 here */
    assert_memory_equal(whole.data, text[i].data, whole.len);
    lm_text_free(&whole);
    lm_ids_free(&ids);
  }
  assert_string_equal(text[0].data, text[1].data);
  assert_string_not_equal(text[0].data, text[2].data);
  for (int i = 0; i < 3; i++) lm_text_free(&text[i]);
  lm_ids_free(&prompt);
}

static void a_prompt_that_does_not_fit_the_context_is_an_error(void** state) {
  (void)state;
  NEED_MODEL();
  int n = compiled->llama.config.context + 808;
  int32_t* prompt = calloc((size_t)n, sizeof *prompt);
  struct lm_generation o = lm_generation_default();
  struct lm_generated g;
  assert_int_equal(lm_generate(compiled, prompt, n, &o, NULL, &g), RP_ERR_ARGUMENT);
  assert_non_null(strstr(lm_error_text(), "9000"));
  assert_non_null(strstr(lm_error_text(), "8192"));
  assert_int_equal(lm_generate(compiled, prompt, 0, &o, NULL, &g), RP_ERR_ARGUMENT);
  free(prompt);
}

static void every_end_token_of_the_files_ends_a_text(void** state) {
  (void)state;
  NEED_MODEL();
  assert_true(lm_model_is_end(compiled, 2)); /* <|im_end|> */
  assert_true(lm_model_is_end(compiled, 0)); /* <|endoftext|> */
  assert_false(lm_model_is_end(compiled, 1));
}

static void a_stop_string_ends_the_text_before_it(void** state) {
  (void)state;
  NEED_MODEL();
  struct lm_text text = {0};
  struct lm_ids prompt = {0};
  const char* stop[] = {" is Par"};
  struct lm_generation o = lm_generation_default();
  struct lm_generated g;
  assert_int_equal(lm_chat_prompt(compiled, "", "What is the capital of France?", &prompt), 0);
  o.stop = stop, o.nstop = 1, o.on_text = keep_text, o.user = &text;
  assert_int_equal(lm_generate(compiled, prompt.data, (int)prompt.len, &o, NULL, &g), 0);
  assert_int_equal(g.finish, LM_FINISH_STOP);
  assert_string_equal(text.data, "The capital of France");
  lm_text_free(&text);
  lm_ids_free(&prompt);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(logits_and_greedy_tokens_match_the_reference),
      cmocka_unit_test(all_logits_of_two_prompts_are_within_the_tolerance),
      cmocka_unit_test(compile_threads_and_chunks_do_not_change_the_bits),
      cmocka_unit_test(a_seed_decides_the_text_and_streaming_loses_nothing),
      cmocka_unit_test(a_prompt_that_does_not_fit_the_context_is_an_error),
      cmocka_unit_test(every_end_token_of_the_files_ends_a_text),
      cmocka_unit_test(a_stop_string_ends_the_text_before_it),
  };
  return cmocka_run_group_tests(tests, load_all, free_all);
}
