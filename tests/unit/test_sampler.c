/* The sampler: expected sets and draws are worked out by hand from the rules in docs/sampling.md or
 * measured on Nx and Bumblebee; the fast paths are compared with a plain sort. */
#include <math.h>
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
#include "lm/sampler.h"

static struct lm_sampler* open_sampler(struct lm_sampling set, size_t n) {
  struct lm_sampler* s = NULL;
  if (lm_sampler_new(&s, &set, n)) fail_msg("%s", lm_error_text());
  return s;
}

static struct lm_sampling warm(void) {
  struct lm_sampling set = lm_sampling_default();
  set.temperature = 1;
  return set;
}

/* The ids kept of n <= 8 logits as a bit set. */
static unsigned kept(struct lm_sampling set, const float* logits, size_t n) {
  struct lm_sampler* s = open_sampler(set, n);
  const int32_t* ids;
  const float* weights;
  size_t m;
  unsigned bits = 0;

  if (lm_sampler_candidates(s, logits, &ids, &weights, &m)) fail_msg("%s", lm_error_text());
  for (size_t i = 0; i < m; i++) bits |= 1u << ids[i];
  lm_sampler_free(s);
  return bits;
}

static void to_logits(const float* p, size_t n, float* logits) {
  for (size_t i = 0; i < n; i++) logits[i] = logf(p[i]);
}

static int32_t next(struct lm_sampler* s, const float* logits) {
  int32_t token = -1;
  if (lm_sampler_next(s, logits, &token)) fail_msg("%s", lm_error_text());
  return token;
}

/* ---- filters ---- */

static void top_p_keeps_the_known_sets(void** state) {
  static const struct {
    float p[4], top_p;
    unsigned want;
  } rows[] = {
      {{.5f, .3f, .15f, .05f}, .75f, 1 | 2},
      {{.5f, .3f, .15f, .05f}, .4f, 1},
      {{.5f, .3f, .15f, .05f}, 0, 1},
      {{.5f, .3f, .15f, .05f}, 1, 15},
      {{.1f, .4f, .2f, .3f}, .3f, 2},
      {{.1f, .4f, .2f, .3f}, .4f, 2},
      {{.1f, .4f, .2f, .3f}, .41f, 2 | 8},
      {{.1f, .4f, .2f, .3f}, .6f, 2 | 8},
      {{.1f, .4f, .2f, .3f}, .7f, 2 | 8},
      {{.1f, .4f, .2f, .3f}, .71f, 2 | 4 | 8},
      {{.1f, .4f, .2f, .3f}, .9f, 2 | 4 | 8},
      {{.1f, .4f, .2f, .3f}, .95f, 15},
      {{.1f, .4f, .2f, .3f}, 0, 2},
      {{.25f, .25f, .25f, .25f}, .25f, 8},
      {{.25f, .25f, .25f, .25f}, .3f, 4 | 8},
      {{.25f, .25f, .25f, .25f}, .5f, 4 | 8},
      {{.25f, .25f, .25f, .25f}, .6f, 2 | 4 | 8},
  };

  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct lm_sampling set = warm();
    float logits[4];
    set.top_p = rows[i].top_p;
    to_logits(rows[i].p, 4, logits);
    unsigned got = kept(set, logits, 4);
    if (got != rows[i].want) fail_msg("row %zu: %u, not %u", i, got, rows[i].want);
  }
}

static void top_k_keeps_the_largest_and_ties_with_the_kth(void** state) {
  struct lm_sampling set = warm();

  set.top_k = 2;
  assert_int_equal(kept(set, (float[]){1, 4, 2, 3}, 4), 2 | 8);
  set.top_k = 1;
  assert_int_equal(kept(set, (float[]){1, 3, 3, 2}, 4), 2 | 4);
  set.top_k = 3;
  assert_int_equal(kept(set, (float[]){1, 3, 3, 2}, 4), 2 | 4 | 8);
  set.top_k = 100;
  assert_int_equal(kept(set, (float[]){1, 3, 3, 2}, 4), 15);
}

static void top_p_acts_on_what_top_k_left(void** state) {
  struct lm_sampling set = warm();
  float logits[4];

  to_logits((float[]){.5f, .3f, .15f, .05f}, 4, logits);
  set.top_k = 1;
  set.top_p = .4f;
  assert_int_equal(kept(set, logits, 4), 1);
  set.top_k = 2; /* .5 and .3 become .625 and .375 */
  set.top_p = .6f;
  assert_int_equal(kept(set, logits, 4), 1);
  set.top_p = .65f;
  assert_int_equal(kept(set, logits, 4), 3);
}

static void min_p_is_relative_to_the_most_probable(void** state) {
  struct lm_sampling set = warm();
  float logits[4];

  to_logits((float[]){.5f, .3f, .15f, .05f}, 4, logits);
  set.min_p = .5f;
  assert_int_equal(kept(set, logits, 4), 1 | 2);
  set.min_p = 1;
  assert_int_equal(kept(set, logits, 4), 1);
}

static void temperature_acts_before_the_filters(void** state) {
  struct lm_sampling set = warm();
  float logits[4];

  to_logits((float[]){.5f, .3f, .15f, .05f}, 4, logits);
  set.min_p = .5f;
  set.temperature = 2; /* ratios become square roots: .77, .55, .32 */
  assert_int_equal(kept(set, logits, 4), 1 | 2 | 4);
}

static void repetition_penalty_lowers_seen_logits_of_either_sign(void** state) {
  struct lm_sampling set = warm();
  const int32_t seen[] = {0, 1, 0, -5, 99};
  const int32_t* ids;
  const float* w;
  size_t n;

  set.repetition_penalty = 2;
  struct lm_sampler* s = open_sampler(set, 3);
  lm_sampler_see(s, seen, 5);
  assert_int_equal(lm_sampler_candidates(s, (float[]){2, -2, 1}, &ids, &w, &n), 0);
  assert_int_equal(n, 3); /* logits 1, -4, 1 */
  assert_true(w[0] == 1 && w[2] == 1);
  assert_true(fabsf(w[1] - expf(-5)) < 1e-8f);
  lm_sampler_free(s);
}

/* ---- greedy ---- */

static void temperature_zero_takes_the_lowest_index_of_the_largest(void** state) {
  float logits[100];
  struct lm_sampler* s = open_sampler(lm_sampling_default(), 100);

  for (int i = 0; i < 100; i++) logits[i] = -1;
  logits[37] = logits[80] = 5;
  logits[3] = NAN;
  assert_int_equal(next(s, logits), 37);
  logits[99] = INFINITY;
  assert_int_equal(next(s, logits), 99);
  for (int i = 0; i < 100; i++) logits[i] = -7;
  assert_int_equal(next(s, logits), 0);
  lm_sampler_free(s);
}

static void greedy_honours_the_repetition_penalty(void** state) {
  struct lm_sampling set = lm_sampling_default();

  set.repetition_penalty = 2;
  struct lm_sampler* s = open_sampler(set, 3);
  assert_int_equal(next(s, (float[]){1, 3, 2}), 1);
  assert_int_equal(next(s, (float[]){1, 3, 2}), 2); /* 1 was chosen, so it is 1.5 now */
  lm_sampler_free(s);
}

/* ---- draws ---- */

static void keys_are_those_of_jax_and_nx(void** state) {
  struct lm_key k = lm_key_from_seed(42), s[2];

  assert_true(k.word[0] == 0 && k.word[1] == 42);
  lm_key_split(k, s);
  assert_true(s[0].word[0] == 2465931498u && s[0].word[1] == 3679230171u);
  assert_true(s[1].word[0] == 255383827u && s[1].word[1] == 267815257u);
  assert_true((double)lm_key_uniform(s[1]) == 0.9325345754623413);
  lm_key_split(lm_key_from_seed(0), s);
  assert_true(s[0].word[0] == 4146024105u && s[0].word[1] == 967050713u);
  assert_true(s[1].word[0] == 2718843009u && s[1].word[1] == 1272950319u);
  assert_true(lm_key_from_seed(UINT64_MAX).word[0] == UINT32_MAX);
}

static void draws_are_those_of_bumblebee(void** state) {
  static const int32_t want42[] = {0, 1, 0, 3, 1, 3, 0, 3, 1, 3, 1, 3};
  static const int32_t want0[] = {1, 2, 0, 2, 1, 2, 1, 1, 1, 1, 1, 2};
  struct lm_sampling set = warm();
  float logits[4];

  set.seed = 42;
  struct lm_sampler* s = open_sampler(set, 4);
  to_logits((float[]){.1f, .4f, .2f, .3f}, 4, logits);
  for (int i = 0; i < 12; i++) assert_int_equal(next(s, logits), want42[i]);
  lm_sampler_reset(s, 0);
  for (int i = 0; i < 12; i++) assert_int_equal(next(s, logits), want0[i]);
  lm_sampler_free(s);
}

/* 40,000 draws of 4: a fair count strays by less than 5 standard deviations (at most 490). */
static void draws_follow_the_probabilities(void** state) {
  const float p[4] = {.1f, .4f, .2f, .3f};
  struct lm_sampler* s = open_sampler(warm(), 4);
  int count[4] = {0};
  float logits[4];

  to_logits(p, 4, logits);
  for (int i = 0; i < 40000; i++) count[next(s, logits)]++;
  for (int i = 0; i < 4; i++) assert_true(fabs(count[i] - 40000.0 * (double)p[i]) < 490);
  lm_sampler_free(s);
}

static void what_has_no_probability_is_never_drawn(void** state) {
  struct lm_sampler* s = open_sampler(warm(), 5);
  const float logits[5] = {-INFINITY, 0, NAN, 0, -INFINITY};

  for (int i = 0; i < 2000; i++) {
    int32_t t = next(s, logits);
    assert_true(t == 1 || t == 3);
  }
  for (int i = 0; i < 100; i++) assert_int_equal(next(s, (float[]){0, INFINITY, 1, NAN, 2}), 1);
  lm_sampler_free(s);
}

static void a_tiny_temperature_is_as_good_as_greedy(void** state) {
  struct lm_sampling set = warm();

  set.temperature = 1e-40f;
  struct lm_sampler* s = open_sampler(set, 3);
  for (int i = 0; i < 50; i++) assert_int_equal(next(s, (float[]){1, 3, 2}), 1);
  lm_sampler_free(s);
}

/* ---- refusals ---- */

static void a_row_without_any_choice_is_an_error(void** state) {
  struct lm_sampling set = lm_sampling_default();
  int32_t token = 17;

  for (int warm_too = 0; warm_too < 2; warm_too++) {
    set.temperature = (float)warm_too;
    struct lm_sampler* s = open_sampler(set, 2);
    assert_int_equal(lm_sampler_next(s, (float[]){NAN, -INFINITY}, &token), RP_ERR_NUMERIC);
    assert_int_equal(token, 17);
    lm_sampler_free(s);
  }
}

static void settings_out_of_range_are_refused_by_name(void** state) {
  static const struct {
    struct lm_sampling set;
    const char* name;
  } rows[] = {
      {{-1, 0, 1, 0, 1, 0}, "temperature"},
      {{NAN, 0, 1, 0, 1, 0}, "temperature"},
      {{INFINITY, 0, 1, 0, 1, 0}, "temperature"},
      {{1, -1, 1, 0, 1, 0}, "top_k"},
      {{1, 0, 1.5f, 0, 1, 0}, "top_p"},
      {{1, 0, -.1f, 0, 1, 0}, "top_p"},
      {{1, 0, NAN, 0, 1, 0}, "top_p"},
      {{1, 0, 1, 2, 1, 0}, "min_p"},
      {{1, 0, 1, 0, 0, 0}, "repetition_penalty"},
      {{1, 0, 1, 0, -2, 0}, "repetition_penalty"},
  };

  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct lm_sampler* s = NULL;
    assert_int_equal(lm_sampler_new(&s, &rows[i].set, 4), RP_ERR_ARGUMENT);
    assert_non_null(strstr(lm_error_text(), rows[i].name));
    assert_null(s);
  }
}

/* ---- large rows, against a plain sort ---- */

enum { N = 49152 };

static uint32_t rng = 5;
static float noise(void) { /* about normal */
  float x = 0;
  for (int i = 0; i < 4; i++) {
    rng = rng * 1664525u + 1013904223u;
    x += (float)(rng >> 8) / 16777216.0f;
  }
  return (x - 2) * 3;
}

static const float* sort_row;
static int by_rank(const void* a, const void* b) {
  int32_t i = *(const int32_t*)a, j = *(const int32_t*)b;
  if (sort_row[i] != sort_row[j]) return sort_row[i] > sort_row[j] ? -1 : 1;
  return i > j ? -1 : 1;
}

/* The number of candidates the rules keep, by a full sort and sums in double. */
static size_t count_kept(const float* row, const struct lm_sampling* set, int32_t* order) {
  double total = 0, below = 0;
  size_t m = N;

  for (int i = 0; i < N; i++) order[i] = i;
  sort_row = row;
  qsort(order, N, sizeof *order, by_rank);
  if (set->top_k)
    for (m = (size_t)set->top_k; m < N && row[order[m]] == row[order[m - 1]]; m++) continue;
  for (size_t i = 0; i < m; i++)
    total += exp((double)((row[order[i]] - row[order[0]]) / set->temperature));
  for (size_t i = m; i-- > 1;) {
    below += exp((double)((row[order[i]] - row[order[0]]) / set->temperature)) / total;
    if (set->top_p == 1 || below > 1 - (double)set->top_p) break;
    m = i;
  }
  return m;
}

static void large_rows_keep_what_a_full_sort_keeps(void** state) {
  static float row[N];
  static int32_t order[N];
  const struct lm_sampling sets[] = {
      {1, 40, 1, 0, 1, 0},   {.7f, 0, .9f, 0, 1, 0}, {1, 50, .8f, 0, 1, 0},  {5, 0, .5f, 0, 1, 0},
      {1, 5000, 1, 0, 1, 0}, {1, 0, .999f, 0, 1, 0}, {.1f, 0, .95f, 0, 1, 0}};

  for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
    struct lm_sampler* s = open_sampler(sets[k], N);
    const int32_t* ids;
    const float* w;
    size_t m;
    for (int i = 0; i < N; i++) row[i] = roundf(noise() * 64) / 64; /* with many ties */
    size_t want = count_kept(row, &sets[k], order);
    assert_int_equal(lm_sampler_candidates(s, row, &ids, &w, &m), 0);
    /* Sums of float weights round otherwise than the double ones: one in 5000 may differ. */
    if (m > want + want / 5000 || m + m / 5000 < want)
      fail_msg("set %zu: %zu, not %zu", k, m, want);
    for (size_t i = 1; i < m; i++) assert_true(ids[i - 1] < ids[i]);
    char* is_kept = calloc(N, 1);
    for (size_t i = 0; i < m; i++) is_kept[ids[i]] = 1;
    for (size_t i = 0; i < m; i++) assert_true(is_kept[order[i]]);
    free(is_kept);
    for (size_t i = 0; i < m; i++) {
      double e = exp((double)(row[ids[i]] - row[order[0]]) / (double)sets[k].temperature);
      assert_true(fabs((double)w[i] - e) < 4e-6 * e); /* the exponent's rounding, times up to 40 */
    }
    lm_sampler_free(s);
  }
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

/* Prints medians; the bound is loose enough for sanitizers on a busy machine. */
static void a_step_takes_microseconds(void** state) {
  static float row[N];
  const struct lm_sampling sets[] = {{0, 0, 1, 0, 1, 0},           {1, 0, 1, 0, 1, 0},
                                     {1, 40, 1, 0, 1, 0},          {1, 0, .95f, 0, 1, 0},
                                     {1, 40, .95f, 0, 1, 0},       {1, 0, 1, .05f, 1, 0},
                                     {.8f, 40, .9f, .05f, 1.1f, 0}};

  for (int i = 0; i < N; i++) row[i] = noise() * 1.5f; /* a language model's: few stand out */
  for (int i = 0; i < 60; i++) row[i * 800] = 20 - (float)i * 0.15f;
  for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
    double took[21];
    struct lm_sampler* s = open_sampler(sets[k], N);
    for (int i = 0; i < 21; i++) {
      double start = seconds();
      next(s, row);
      took[i] = seconds() - start;
    }
    qsort(took, 21, sizeof *took, by_value);
    print_message("temperature %g top_k %d top_p %g min_p %g: %.0f us\n",
                  (double)sets[k].temperature, (int)sets[k].top_k, (double)sets[k].top_p,
                  (double)sets[k].min_p, 1e6 * took[10]);
    assert_true(took[10] < 0.05);
    lm_sampler_free(s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(top_p_keeps_the_known_sets),
      cmocka_unit_test(top_k_keeps_the_largest_and_ties_with_the_kth),
      cmocka_unit_test(top_p_acts_on_what_top_k_left),
      cmocka_unit_test(min_p_is_relative_to_the_most_probable),
      cmocka_unit_test(temperature_acts_before_the_filters),
      cmocka_unit_test(repetition_penalty_lowers_seen_logits_of_either_sign),
      cmocka_unit_test(temperature_zero_takes_the_lowest_index_of_the_largest),
      cmocka_unit_test(greedy_honours_the_repetition_penalty),
      cmocka_unit_test(keys_are_those_of_jax_and_nx),
      cmocka_unit_test(draws_are_those_of_bumblebee),
      cmocka_unit_test(draws_follow_the_probabilities),
      cmocka_unit_test(what_has_no_probability_is_never_drawn),
      cmocka_unit_test(a_tiny_temperature_is_as_good_as_greedy),
      cmocka_unit_test(a_row_without_any_choice_is_an_error),
      cmocka_unit_test(settings_out_of_range_are_refused_by_name),
      cmocka_unit_test(large_rows_keep_what_a_full_sort_keeps),
      cmocka_unit_test(a_step_takes_microseconds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
