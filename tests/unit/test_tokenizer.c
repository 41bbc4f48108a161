/* Tokenizers against goldens that tests/golden/tokenizer/make_goldens.py made with Hugging Face's
 * tokenizers, and against the rules that hold for any text. Run from the root of the repository.
 * With REPRISE_TEST_MODEL=FILE.gguf (SmolLM2-135M-Instruct) the real vocabulary is tested too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "lm/err.h"
#include "lm/tokenizer.h"

#define GOLDEN "tests/golden/tokenizer/"

static void assert_ok(int err) {
  if (err) fail_msg("error %d: %s", err, lm_error_text());
}

static struct lm_tokenizer* open_mini(const char* name) {
  char path[128];
  struct lm_tokenizer* t = NULL;

  snprintf(path, sizeof path, GOLDEN "mini-%s.json", name);
  assert_ok(lm_tokenizer_from_json(&t, path, NULL));
  return t;
}

/* A vocabulary from a text of the test's own, written where mkstemp says. */
static int from_json_text(struct lm_tokenizer** t, const char* json) {
  char path[] = "/tmp/test_tokenizer_XXXXXX";
  int fd = mkstemp(path);
  FILE* f = fdopen(fd, "w");

  fputs(json, f);
  fclose(f);
  int err = lm_tokenizer_from_json(t, path, NULL);
  remove(path);
  return err;
}

static size_t parse_hex(const char* s, char* out) {
  size_t n = 0;
  unsigned byte;

  for (; sscanf(s, "%2x", &byte) == 1 && s[0] != '\t'; s += 2) out[n++] = (char)byte;
  return n;
}

static void parse_ids(const char* s, const char* end, struct lm_ids* ids) {
  ids->len = 0;
  while (s < end) {
    char* next;
    long id = strtol(s, &next, 10);
    if (next == s) break;
    lm_ids_push(ids, (int32_t)id);
    s = next;
  }
}

static void assert_ids(const struct lm_ids* got, const struct lm_ids* want, const char* where,
                       int line) {
  bool same = got->len == want->len &&
              (!got->len || memcmp(got->data, want->data, got->len * sizeof *got->data) == 0);
  if (same) return;
  print_error("%s:%d\n got", where, line);
  for (size_t i = 0; i < got->len; i++) print_error(" %d", (int)got->data[i]);
  print_error("\nwant");
  for (size_t i = 0; i < want->len; i++) print_error(" %d", (int)want->data[i]);
  fail_msg("\nids differ");
}

static void check_line(const struct lm_tokenizer* t, char* line, const char* where, int number,
                       bool round_trips) {
  static char text[1 << 16];
  struct lm_ids want = {0}, got = {0};
  struct lm_text back = {0};
  char *first = strchr(line, '\t'), *second = strchr(first + 1, '\t');
  size_t n = parse_hex(line, text);

  parse_ids(first + 1, second, &want);
  assert_ok(lm_tokenizer_encode(t, text, n, LM_ENCODE_SPECIAL, &got));
  assert_ids(&got, &want, where, number);
  assert_ok(lm_tokenizer_decode(t, got.data, got.len, 0, &back));
  if (round_trips && (back.len != n || memcmp(back.data, text, n) != 0))
    fail_msg("%s:%d does not come back", where, number);

  if (second[1] != '=') parse_ids(second + 1, second + strlen(second), &want);
  got.len = 0;
  assert_ok(lm_tokenizer_encode(t, text, n, 0, &got));
  assert_ids(&got, &want, where, number);
  lm_ids_free(&want);
  lm_ids_free(&got);
  lm_text_free(&back);
}

static void check_goldens(const struct lm_tokenizer* t, const char* path, bool round_trips) {
  static char line[1 << 17];
  FILE* f = fopen(path, "r");
  int n = 0;

  assert_non_null(f);
  while (fgets(line, sizeof line, f)) check_line(t, line, path, ++n, round_trips);
  fclose(f);
  assert_true(n > 200);
}

static void check_mini(const char* name, bool round_trips) {
  char path[128];
  struct lm_tokenizer* t = open_mini(name);

  snprintf(path, sizeof path, GOLDEN "mini-%s.tsv", name);
  check_goldens(t, path, round_trips);
  lm_tokenizer_free(t);
}

static void gpt2_words_encode_as_tokenizers_does(void** state) { check_mini("gpt2", true); }
static void smollm_words_encode_as_tokenizers_does(void** state) { check_mini("smollm", true); }
static void llama3_words_encode_as_tokenizers_does(void** state) { check_mini("llama3", true); }
static void qwen2_words_encode_as_tokenizers_does(void** state) { check_mini("qwen2", true); }

static void text_is_brought_to_form_c_where_the_tokenizer_asks_for_it(void** state) {
  check_mini("qwen2-nfc", false);
}

/* ---- any bytes come back ---- */

static void assert_round_trip(const struct lm_tokenizer* t, const char* s, size_t n) {
  struct lm_ids ids = {0};
  struct lm_text back = {0};

  assert_ok(lm_tokenizer_encode(t, s, n, LM_ENCODE_SPECIAL, &ids));
  assert_ok(lm_tokenizer_decode(t, ids.data, ids.len, 0, &back));
  assert_int_equal(back.len, n);
  if (n) assert_memory_equal(back.data, s, n);
  lm_ids_free(&ids);
  lm_text_free(&back);
}

static void random_bytes_come_back_exactly(void** state) {
  static const char* const parts[] = {
      "\xC3\xA9", "\xC3", "\xA9", "\xF0\x9F\x98\x80", "\xF0\x9F", "\xFF",    "\xED\xA0\x80", "a",
      " ",        "12",   "\n",   "<|im_end|>",       "\xC0\xAF", "\xE2\x80"};
  const char* names[] = {"gpt2", "smollm", "llama3", "qwen2"};
  uint32_t r = 1;

  for (int k = 0; k < 4; k++) {
    struct lm_tokenizer* t = open_mini(names[k]);
    for (int i = 0; i < 300; i++) {
      char text[256];
      size_t n = 0;
      for (int j = 0; j < 20; j++) {
        r = r * 1664525u + 1013904223u;
        if (r >> 31) {
          text[n++] = (char)(r >> 20);
        } else {
          const char* p = parts[(r >> 16) % (sizeof parts / sizeof *parts)];
          memcpy(text + n, p, strlen(p));
          n += strlen(p);
        }
      }
      assert_round_trip(t, text, n);
    }
    lm_tokenizer_free(t);
  }
}

static void bytes_that_are_not_utf8_do_not_change_the_words_around_them(void** state) {
  struct lm_tokenizer* t = open_mini("gpt2");
  struct lm_ids a = {0}, b = {0};

  assert_ok(lm_tokenizer_encode(t, "the there", 9, 0, &a));
  assert_ok(lm_tokenizer_encode(t, "the there\xFF\xFEthe there", 20, 0, &b));
  assert_int_equal(b.len, 2 * a.len + 2);
  assert_memory_equal(b.data, a.data, a.len * sizeof *a.data);
  assert_memory_equal(b.data + a.len + 2, a.data, a.len * sizeof *a.data);
  lm_ids_free(&a);
  lm_ids_free(&b);
  lm_tokenizer_free(t);
}

/* ---- vocabularies ---- */

static const char* const ab_tokens[] = {"a", "b", "ab", "\xC4\xA0", "<s>", "<u>"};
static const int32_t ab_types[] = {1, 1, 1, 1, 3, 4};
static const char* const ab_merges[] = {"a b"};

static struct lm_vocab ab_vocab(void) {
  return (struct lm_vocab){.model = "gpt2",
                           .pre = "gpt-2",
                           .tokens = ab_tokens,
                           .types = ab_types,
                           .n_tokens = 6,
                           .merges = ab_merges,
                           .n_merges = 1,
                           .bos_id = 4,
                           .eos_id = 4,
                           .pad_id = -1,
                           .add_bos = true};
}

static void assert_encodes(const struct lm_tokenizer* t, const char* text, unsigned flags, int n,
                           const int32_t* want) {
  struct lm_ids got = {0}, expected = {(int32_t*)want, (size_t)n, (size_t)n};

  assert_ok(lm_tokenizer_encode(t, text, strlen(text), flags, &got));
  assert_ids(&got, &expected, text, 0);
  lm_ids_free(&got);
}

static void gguf_arrays_make_a_tokenizer(void** state) {
  struct lm_vocab v = ab_vocab();
  struct lm_tokenizer* t;
  size_t len;

  assert_ok(lm_tokenizer_from_vocab(&t, &v));
  assert_encodes(t, "ab ba", 0, 4, (int32_t[]){2, 3, 1, 0});
  assert_encodes(t, "ab", LM_ENCODE_BOS, 2, (int32_t[]){4, 2});
  assert_encodes(t, "a<s>b", LM_ENCODE_SPECIAL, 3, (int32_t[]){0, 4, 1});
  assert_encodes(t, "a<u>b", 0, 3, (int32_t[]){0, 5, 1});
  assert_memory_equal(lm_tokenizer_token_bytes(t, 3, &len), " ", 1);
  assert_int_equal(len, 1);
  assert_null(lm_tokenizer_token_bytes(t, 6, &len));
  assert_int_equal(lm_tokenizer_find(t, "<s>"), 4);
  assert_int_equal(lm_tokenizer_find(t, "ab"), 2);
  assert_int_equal(lm_tokenizer_find(t, "abc"), -1);
  assert_true(lm_tokenizer_is_special(t, 4));
  assert_false(lm_tokenizer_is_special(t, 5));
  lm_tokenizer_free(t);
}

static void special_text_is_plain_text_without_the_flag(void** state) {
  struct lm_tokenizer* t = open_mini("smollm");
  struct lm_ids ids = {0};

  assert_ok(lm_tokenizer_encode(t, "<|im_end|>", 10, 0, &ids));
  assert_true(ids.len > 1);
  for (size_t i = 0; i < ids.len; i++) assert_false(lm_tokenizer_is_special(t, ids.data[i]));
  lm_ids_free(&ids);
  lm_tokenizer_free(t);
}

static void a_byte_without_a_token_is_an_error_or_left_out(void** state) {
  struct lm_vocab v = ab_vocab();
  struct lm_tokenizer* t;
  struct lm_ids ids = {0};

  assert_ok(lm_tokenizer_from_vocab(&t, &v));
  lm_ids_push(&ids, 7);
  assert_int_equal(lm_tokenizer_encode(t, "abxab", 5, 0, &ids), RP_ERR_UNSUPPORTED);
  assert_non_null(strstr(lm_error_text(), "0x78"));
  assert_int_equal(ids.len, 1);
  assert_encodes(t, "axb", LM_ENCODE_LOSSY, 1, (int32_t[]){2});
  lm_ids_free(&ids);
  lm_tokenizer_free(t);
}

static void decode_skips_special_tokens_on_request(void** state) {
  struct lm_vocab v = ab_vocab();
  struct lm_tokenizer* t;
  struct lm_text out = {0};
  const int32_t ids[] = {4, 2, 5, 4}, bad[] = {0, 6};

  assert_ok(lm_tokenizer_from_vocab(&t, &v));
  assert_ok(lm_tokenizer_decode(t, ids, 4, LM_DECODE_SKIP_SPECIAL, &out));
  assert_string_equal(out.data, "ab<u>");
  assert_int_equal(lm_tokenizer_decode(t, bad, 2, 0, &out), RP_ERR_INDEX);
  assert_string_equal(out.data, "ab<u>");
  lm_text_free(&out);
  lm_tokenizer_free(t);
}

static void broken_vocabularies_are_refused_with_the_fact(void** state) {
  struct lm_vocab v = ab_vocab();
  struct lm_tokenizer* t = NULL;
  const char* no_space[] = {"ab"};
  const char* no_token[] = {"b a"};

  v.merges = no_space;
  assert_int_equal(lm_tokenizer_from_vocab(&t, &v), RP_ERR_FORMAT);
  assert_non_null(strstr(lm_error_text(), "Merge 0, 'ab'"));
  v.merges = no_token;
  assert_int_equal(lm_tokenizer_from_vocab(&t, &v), RP_ERR_FORMAT);
  assert_non_null(strstr(lm_error_text(), "the result is not in the vocabulary"));
  v = ab_vocab();
  v.eos_id = 6;
  assert_int_equal(lm_tokenizer_from_vocab(&t, &v), RP_ERR_FORMAT);
  v = ab_vocab();
  v.pre = "tekken";
  assert_int_equal(lm_tokenizer_from_vocab(&t, &v), RP_ERR_UNSUPPORTED);
  assert_non_null(strstr(lm_error_text(), "'tekken'"));
  v = ab_vocab();
  v.model = "llama";
  assert_int_equal(lm_tokenizer_from_vocab(&t, &v), RP_ERR_UNSUPPORTED);
  assert_non_null(strstr(lm_error_text(), "'llama'"));
  assert_null(t);
}

/* ---- tokenizer.json ---- */

#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define JSON(normalizer, pre, merges)                     \
  "{\"normalizer\":" normalizer ",\"pre_tokenizer\":" pre \
  ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":" merges "}}"

static void merges_may_be_strings_or_pairs(void** state) {
  const char* forms[] = {JSON("null", BYTE_LEVEL, "[\"a b\"]"),
                         JSON("null", BYTE_LEVEL, "[[\"a\",\"b\"]]")};

  for (int i = 0; i < 2; i++) {
    struct lm_tokenizer* t;
    assert_ok(from_json_text(&t, forms[i]));
    assert_encodes(t, "ab", 0, 1, (int32_t[]){2});
    lm_tokenizer_free(t);
  }
}

static void unsupported_json_is_refused_by_name(void** state) {
  static const struct {
    const char* json;
    int code;
    const char* says;
  } rows[] = {
      {JSON("null", BYTE_LEVEL, "[[\"a\"]]"), RP_ERR_FORMAT, "merge 0"},
      {JSON("null", BYTE_LEVEL, "[17]"), RP_ERR_FORMAT, "merge 0"},
      {JSON("null", BYTE_LEVEL, "null"), RP_ERR_FORMAT, "no merges"},
      {JSON("{\"type\":\"Lowercase\"}", BYTE_LEVEL, "[]"), RP_ERR_UNSUPPORTED, "'Lowercase'"},
      {JSON("null", "{\"type\":\"Metaspace\"}", "[]"), RP_ERR_UNSUPPORTED, "'Metaspace'"},
      {JSON("null", "null", "[]"), RP_ERR_UNSUPPORTED, "pre-tokenizer"},
      {JSON("null", "{\"type\":\"ByteLevel\"}", "[]"), RP_ERR_UNSUPPORTED, "add_prefix_space"},
      {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", RP_ERR_UNSUPPORTED, "'Unigram'"},
      {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":4000000000},\"merges\":[]},\"pre_"
       "tokenizer\":" BYTE_LEVEL "}",
       RP_ERR_FORMAT, "'a' has no usable id"},
      {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]},\"pre_"
       "tokenizer\":" BYTE_LEVEL "}",
       RP_ERR_FORMAT, "'a' has no usable id"},
      {"{", RP_ERR_FORMAT, "is not JSON"},
      {"", RP_ERR_FORMAT, "is not JSON"},
      {"[]", RP_ERR_FORMAT, "no model"},
  };

  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct lm_tokenizer* t = NULL;
    assert_int_equal(from_json_text(&t, rows[i].json), rows[i].code);
    if (!strstr(lm_error_text(), rows[i].says)) fail_msg("%zu: %s", i, lm_error_text());
    assert_null(t);
  }
  struct lm_tokenizer* t = NULL;
  assert_int_equal(lm_tokenizer_from_json(&t, "/no/such/file.json", NULL), RP_ERR_IO);
  assert_non_null(strstr(lm_error_text(), "/no/such/file.json"));
}

static void deeply_nested_json_is_refused_before_it_is_parsed(void** state) {
  enum { N = 100000 };
  char* json = malloc(N + 1);
  struct lm_tokenizer* t = NULL;

  memset(json, '[', N);
  json[N] = '\0';
  assert_int_equal(from_json_text(&t, json), RP_ERR_FORMAT);
  assert_non_null(strstr(lm_error_text(), "nests deeper"));
  free(json);
}

static void strip_flags_take_white_space_with_the_token(void** state) {
  struct lm_tokenizer* t;
  assert_ok(from_json_text(
      &t,
      "{\"pre_tokenizer\":" BYTE_LEVEL
      ",\"added_tokens\":[{\"id\":3,\"content\":\"<l>\",\"lstrip\":true,"
      "\"special\":true},{\"id\":4,\"content\":\"<r>\",\"rstrip\":true,\"special\":true}],"
      "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"
      "\"<l>\"}},"
      "{\"Sequence\":{\"id\":\"A\"}}]},"
      "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"\xC4\xA0\":2},\"merges\":[]}}"));
  assert_encodes(t, "a \xE3\x80\x80<l> b", LM_ENCODE_SPECIAL, 4, (int32_t[]){0, 3, 2, 1});
  assert_encodes(t,
                 "a <r> \n\xC2\xA0"
                 "b",
                 LM_ENCODE_SPECIAL, 4, (int32_t[]){0, 2, 4, 1});
  assert_encodes(t, "a", LM_ENCODE_BOS, 2, (int32_t[]){3, 0});
  lm_tokenizer_free(t);
}

static void a_whole_word_wins_over_merges_where_the_file_says_so(void** state) {
  const char* forms[] = {"{\"pre_tokenizer\":" BYTE_LEVEL
                         ",\"model\":{\"type\":\"BPE\",\"ignore_merges\":true,"
                         "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"aba\":3},\"merges\":[\"a b\"]}}",
                         "{\"pre_tokenizer\":" BYTE_LEVEL
                         ",\"model\":{\"type\":\"BPE\",\"ignore_merges\":false,"
                         "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"aba\":3},\"merges\":[\"a b\"]}}"};
  struct lm_tokenizer* t;

  assert_ok(from_json_text(&t, forms[0]));
  assert_encodes(t, "aba", 0, 1, (int32_t[]){3});
  lm_tokenizer_free(t);
  assert_ok(from_json_text(&t, forms[1]));
  assert_encodes(t, "aba", 0, 2, (int32_t[]){2, 0});
  lm_tokenizer_free(t);
}

static void write_file(const char* folder, const char* name, const char* text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static void remove_file(const char* folder, const char* name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  remove(path);
}

static void a_folder_gives_special_tokens_and_the_chat_template(void** state) {
  char folder[] = "/tmp/test_tokenizer_XXXXXX";
  struct lm_tokenizer* t = NULL;

  assert_non_null(mkdtemp(folder));
  assert_int_equal(lm_tokenizer_from_folder(&t, folder), RP_ERR_IO);
  assert_non_null(strstr(lm_error_text(), "tokenizer.json"));
  write_file(folder, "tokenizer.json",
             "{\"pre_tokenizer\":" BYTE_LEVEL
             ",\"added_tokens\":[{\"id\":9,\"content\":\"<e>\","
             "\"special\":true},{\"id\":1,\"content\":\"<b>\",\"special\":true}],"
             "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"<b>\":1},\"merges\":[]}}");
  assert_ok(lm_tokenizer_from_folder(&t, folder));
  assert_int_equal(lm_tokenizer_size(t), 10); /* 2 to 8 are holes */
  assert_int_equal(lm_tokenizer_eos(t), -1);
  assert_null(lm_tokenizer_chat_template(t));
  lm_tokenizer_free(t);

  write_file(folder, "tokenizer_config.json",
             "{\"bos_token\":\"<b>\",\"eos_token\":{\"content\":\"<e>\"},\"pad_token\":null,"
             "\"add_bos_token\":true,\"chat_template\":[{\"name\":\"tools\",\"template\":\"T\"},"
             "{\"name\":\"default\",\"template\":\"D\"}]}");
  assert_ok(lm_tokenizer_from_folder(&t, folder));
  assert_int_equal(lm_tokenizer_bos(t), 1);
  assert_int_equal(lm_tokenizer_eos(t), 9);
  assert_int_equal(lm_tokenizer_pad(t), -1);
  assert_string_equal(lm_tokenizer_chat_template(t), "D");
  assert_encodes(t, "a<e>", LM_ENCODE_BOS | LM_ENCODE_SPECIAL, 3, (int32_t[]){1, 0, 9});
  lm_tokenizer_free(t);

  write_file(folder, "chat_template.jinja", "J");
  assert_ok(lm_tokenizer_from_folder(&t, folder));
  assert_string_equal(lm_tokenizer_chat_template(t), "J");
  lm_tokenizer_free(t);
  remove_file(folder, "tokenizer.json");
  remove_file(folder, "tokenizer_config.json");
  remove_file(folder, "chat_template.jinja");
  remove(folder);
}

/* ---- size and speed ---- */

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A quadratic merge of a million bytes takes minutes; 5 s leave room for sanitizers. */
static void one_word_of_a_million_bytes_takes_no_quadratic_time(void** state) {
  enum { N = 1 << 20 };
  struct lm_tokenizer* t = open_mini("smollm");
  struct lm_ids ids = {0};
  char* text = malloc(N);
  static const char* const fill[] = {"the", "a", " ", "=", "\n", "<", "\xFF"};

  for (size_t k = 0; k < sizeof fill / sizeof *fill; k++) {
    for (size_t i = 0, n = strlen(fill[k]); i < N; i++) text[i] = fill[k][i % n];
    double start = seconds();
    ids.len = 0;
    assert_ok(lm_tokenizer_encode(t, text, N, LM_ENCODE_SPECIAL, &ids));
    double took = seconds() - start;
    if (took > 5) fail_msg("1 MiB of '%s' took %.1f s", fill[k], took);
  }
  free(text);
  lm_ids_free(&ids);
  lm_tokenizer_free(t);
}

/* ---- the real vocabulary ---- */

/* Just enough of GGUF v3 for the tokenizer's arrays of a file that is known to be good. */
struct gguf {
  FILE* f;
  char **tokens, **merges;
  int32_t* types;
  size_t n_tokens, n_merges;
  char *pre, *jinja;
};

static uint64_t read_word(FILE* f, size_t size) {
  uint64_t v = 0;
  assert_int_equal(fread(&v, 1, size, f), size);
  return v;
}

static char* read_string(FILE* f) {
  uint64_t n = read_word(f, 8);
  char* s = calloc(n + 1, 1);
  assert_int_equal(fread(s, 1, n, f), n);
  return s;
}

static void read_array(struct gguf* g, const char* key) {
  static const int size[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  uint64_t type = read_word(g->f, 4), n = read_word(g->f, 8);
  char** strings = type == 8 ? malloc(n * sizeof *strings) : NULL;

  if (strings)
    for (uint64_t i = 0; i < n; i++) strings[i] = read_string(g->f);
  if (strcmp(key, "tokenizer.ggml.tokens") == 0) {
    g->tokens = strings;
    g->n_tokens = n;
  } else if (strcmp(key, "tokenizer.ggml.merges") == 0) {
    g->merges = strings;
    g->n_merges = n;
  } else if (strcmp(key, "tokenizer.ggml.token_type") == 0) {
    g->types = malloc(n * 4);
    assert_int_equal(fread(g->types, 4, n, g->f), n);
  } else if (strings) {
    for (uint64_t i = 0; i < n; i++) free(strings[i]);
    free(strings);
  } else {
    fseek(g->f, (long)(n * (uint64_t)size[type]), SEEK_CUR);
  }
}

static void read_gguf(struct gguf* g, const char* path) {
  static const int size[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

  g->f = fopen(path, "rb");
  assert_non_null(g->f);
  assert_int_equal(read_word(g->f, 8), 0x0000000346554747); /* "GGUF", version 3 */
  read_word(g->f, 8);
  for (uint64_t n = read_word(g->f, 8); n--;) {
    char* key = read_string(g->f);
    uint64_t type = read_word(g->f, 4);
    if (type == 9) {
      read_array(g, key);
    } else if (type == 8) {
      char* s = read_string(g->f);
      char** keep = !strcmp(key, "tokenizer.ggml.pre")        ? &g->pre
                    : !strcmp(key, "tokenizer.chat_template") ? &g->jinja
                                                              : NULL;
      if (keep)
        *keep = s;
      else
        free(s);
    } else {
      fseek(g->f, size[type], SEEK_CUR);
    }
    free(key);
  }
  fclose(g->f);
}

static void free_strings(char** s, size_t n) {
  for (size_t i = 0; i < n; i++) free(s[i]);
  free(s);
}

static struct lm_tokenizer* open_real(void) {
  const char* path = getenv("REPRISE_TEST_MODEL");
  struct gguf g = {0};
  struct lm_tokenizer* t = NULL;

  if (!path) return NULL;
  read_gguf(&g, path);
  struct lm_vocab v = {.model = "gpt2",
                       .pre = g.pre,
                       .tokens = (const char* const*)g.tokens,
                       .types = g.types,
                       .n_tokens = g.n_tokens,
                       .merges = (const char* const*)g.merges,
                       .n_merges = g.n_merges,
                       .bos_id = 1,
                       .eos_id = 2,
                       .pad_id = 2,
                       .chat_template = g.jinja};
  double start = seconds();
  assert_ok(lm_tokenizer_from_vocab(&t, &v));
  print_message("vocabulary of %zu built in %.1f ms\n", g.n_tokens, 1e3 * (seconds() - start));
  free_strings(g.tokens, g.n_tokens);
  free_strings(g.merges, g.n_merges);
  free(g.types);
  free(g.pre);
  free(g.jinja);
  return t;
}

static void smollm2_encodes_as_tokenizers_does(void** state) {
  struct lm_tokenizer* t = open_real();
  if (!t) skip();
  struct lm_ids ends = {0};

  check_goldens(t, GOLDEN "smollm2.tsv", true);
  assert_ok(lm_tokenizer_end_ids(t, &ends)); /* both ends of a SmolLM2 text */
  assert_int_equal(ends.len, 2);
  assert_int_equal(ends.data[0], 2);
  assert_int_equal(ends.data[1], 0);
  lm_ids_free(&ends);
  lm_tokenizer_free(t);
}

static void smollm2_encodes_megabytes_per_second(void** state) {
  struct lm_tokenizer* t = open_real();
  if (!t) skip();
  struct lm_text text = {0};
  struct lm_ids ids = {0};

  assert_ok(lm_text_read_file(&text, "tests/unit/test_tokenizer.c", 1 << 20));
  while (text.len < 1 << 20) {
    struct lm_text copy = {0};
    assert_ok(lm_text_append(&copy, text.data, text.len));
    assert_ok(lm_text_append(&text, copy.data, copy.len));
    lm_text_free(&copy);
  }
  double start = seconds();
  assert_ok(lm_tokenizer_encode(t, text.data, text.len, 0, &ids));
  print_message("%.1f MB/s, %.2f bytes a token\n", 1e-6 * (double)text.len / (seconds() - start),
                (double)text.len / (double)ids.len);
  lm_text_free(&text);
  lm_ids_free(&ids);
  lm_tokenizer_free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gpt2_words_encode_as_tokenizers_does),
      cmocka_unit_test(smollm_words_encode_as_tokenizers_does),
      cmocka_unit_test(llama3_words_encode_as_tokenizers_does),
      cmocka_unit_test(qwen2_words_encode_as_tokenizers_does),
      cmocka_unit_test(text_is_brought_to_form_c_where_the_tokenizer_asks_for_it),
      cmocka_unit_test(random_bytes_come_back_exactly),
      cmocka_unit_test(bytes_that_are_not_utf8_do_not_change_the_words_around_them),
      cmocka_unit_test(gguf_arrays_make_a_tokenizer),
      cmocka_unit_test(special_text_is_plain_text_without_the_flag),
      cmocka_unit_test(a_byte_without_a_token_is_an_error_or_left_out),
      cmocka_unit_test(decode_skips_special_tokens_on_request),
      cmocka_unit_test(broken_vocabularies_are_refused_with_the_fact),
      cmocka_unit_test(merges_may_be_strings_or_pairs),
      cmocka_unit_test(unsupported_json_is_refused_by_name),
      cmocka_unit_test(deeply_nested_json_is_refused_before_it_is_parsed),
      cmocka_unit_test(strip_flags_take_white_space_with_the_token),
      cmocka_unit_test(a_whole_word_wins_over_merges_where_the_file_says_so),
      cmocka_unit_test(a_folder_gives_special_tokens_and_the_chat_template),
      cmocka_unit_test(one_word_of_a_million_bytes_takes_no_quadratic_time),
      cmocka_unit_test(smollm2_encodes_as_tokenizers_does),
      cmocka_unit_test(smollm2_encodes_megabytes_per_second),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
