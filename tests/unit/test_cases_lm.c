/* Language models: the numbers of cases that other runtimes got wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine_help.h"
#include "lm/err.h"
#include "lm/tokenizer.h"

static void ignore(const char* text, void* data) {}

static int set_up(void** state) { return mlx_set_error_handler(ignore, NULL, NULL), 0; }

/* Head dimension 64, theta 100000: pair 1 (elements 1 and 33) at position 1. T16 */
static void rope_turns_by_the_base_it_is_given(void** state) {
  const double bases[] = {100000, 10000}, angles[] = {0.6978306, 0.7498942};
  for (int i = 0; i < 2; i++)
    for (int way = 0; way < 3; way++) { /* offset, second row, offset as an array */
      float at[128] = {0}, freqs[32];
      int rows = way == 1 ? 2 : 1, n = 32;
      at[(rows - 1) * 64 + 1] = 1;
      for (int k = 0; k < 32; k++) freqs[k] = (float)pow(bases[i], k / 32.0);
      mlx_array x = mlx_array_new_data(at, (int[]){1, 1, rows, 64}, 4, MLX_FLOAT32);
      mlx_array y = mlx_array_new(), one = mlx_array_new_int(1);
      mlx_array f = mlx_array_new_data(freqs, &n, 1, MLX_FLOAT32);
      mlx_optional_float base = {(float)bases[i], way < 2};
      int rc = way < 2 ? mlx_fast_rope(&y, x, 64, false, base, 1, 1 - way, (mlx_array){0}, cpu())
                       : mlx_fast_rope_dynamic(&y, x, 64, false, base, 1, one, f, cpu());
      assert_int_equal(rc, 0);
      const float* v = mlx_array_data_float32(y) + (rows - 1) * 64;
      assert_float_equal(atan2((double)v[33], (double)v[1]), angles[i], 1e-6);
      mlx_array_free(x), mlx_array_free(y), mlx_array_free(one), mlx_array_free(f);
    }
}

/* A run of spaces leaves one for the next word. T12 */
static void a_run_of_spaces_is_cut_before_the_last_one(void** state) {
  static const char* const tokens[] = {"a", "b", "\xC4\xA0", "\xC4\xA0" "b", "<x>"};
  static const char* const merges[] = {"\xC4\xA0 b"};
  static const int32_t types[] = {1, 1, 1, 1, 4};
  const struct lm_vocab v = {.model = "gpt2", .pre = "gpt-2", .tokens = tokens, .types = types,
                             .n_tokens = 5, .merges = merges, .n_merges = 1, .bos_id = -1,
                             .eos_id = -1, .pad_id = -1};
  static const struct {
    const char* text;
    int32_t want[5];
    size_t n;
  } rows[] = {{"a  b", {0, 2, 3}, 3},
              {"a b", {0, 3}, 2},
              {"a   b", {0, 2, 2, 3}, 4},
              {"a  ", {0, 2, 2}, 3},
              {"a  <x> b", {0, 2, 2, 4, 3}, 5}}; /* an added token ends the run before it */
  struct lm_tokenizer* t = NULL;
  assert_int_equal(lm_tokenizer_from_vocab(&t, &v), 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct lm_ids ids = {0};
    assert_int_equal(lm_tokenizer_encode(t, rows[i].text, strlen(rows[i].text), 0, &ids), 0);
    assert_int_equal(ids.len, rows[i].n);
    assert_memory_equal(ids.data, rows[i].want, sizeof(int32_t) * ids.len);
    lm_ids_free(&ids);
  }
  lm_tokenizer_free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(rope_turns_by_the_base_it_is_given, set_up),
      cmocka_unit_test_setup(a_run_of_spaces_is_cut_before_the_last_one, set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
