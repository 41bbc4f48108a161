/* Lists, maps and texts behind handles. */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "mlx/c/mlx.h"
#include "reprise/error.h"

static _Thread_local int first_code; /* of the first error since it was cleared */

static void ignore(const char* msg, void* data) {
  (void)msg;
  (void)data;
  if (!first_code) first_code = rp_last_error(NULL);
}

static int silence(void** state) {
  (void)state;
  mlx_set_error_handler(ignore, NULL, NULL);
  return 0;
}

static int shape_of(mlx_array a) { return mlx_array_ndim(a) ? mlx_array_shape(a)[0] : -1; }

/* An array of shape (n), so that arrays can be told apart without values. */
static mlx_array array_of(int n) {
  static const float zeros[64];
  return mlx_array_new_data(zeros, &n, 1, MLX_FLOAT32);
}

#define fails_with(code, call)                         \
  do {                                                 \
    assert_int_equal(call, 1);                         \
    assert_int_equal(rp_last_error(NULL), code);       \
  } while (0)

/* ---- texts ----------------------------------------------------------------------------------- */

static void a_string_holds_a_copy(void** state) {
  char text[] = "abc";
  mlx_string s = mlx_string_new_data(text);
  text[0] = 'x';
  assert_string_equal(mlx_string_data(s), "abc");
  assert_int_equal(mlx_string_free(s), 0);
}

static void an_empty_string_handle_has_no_data(void** state) {
  assert_null(mlx_string_new().ctx);
  assert_null(mlx_string_data(mlx_string_new()));
  assert_null(mlx_string_new_data(NULL).ctx);
  assert_int_equal(mlx_string_free(mlx_string_new()), 0);
}

static void setting_a_string_makes_or_replaces_it(void** state) {
  mlx_string a = mlx_string_new(), b = mlx_string_new_data("one");
  assert_int_equal(mlx_string_set(&a, b), 0);
  assert_string_equal(mlx_string_data(a), "one");
  mlx_string_free(b);
  assert_string_equal(mlx_string_data(a), "one");
  assert_int_equal(mlx_string_set(&a, a), 0);
  assert_string_equal(mlx_string_data(a), "one");
  fails_with(RP_ERR_ARGUMENT, mlx_string_set(&a, mlx_string_new()));
  assert_string_equal(mlx_string_data(a), "one");
  mlx_string_free(a);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void a_new_list_is_empty_and_can_be_appended_to(void** state) {
  mlx_vector_int v = mlx_vector_int_new();
  assert_non_null(v.ctx);
  assert_int_equal(mlx_vector_int_size(v), 0);
  int more[] = {8, 9};
  assert_int_equal(mlx_vector_int_append_value(v, 7), 0);
  assert_int_equal(mlx_vector_int_append_data(v, more, 2), 0);
  assert_int_equal(mlx_vector_int_append_data(v, NULL, 0), 0);
  assert_int_equal(mlx_vector_int_size(v), 3);
  for (int i = 0; i < 3; i++) {
    int got = 0;
    assert_int_equal(mlx_vector_int_get(&got, v, (size_t)i), 0);
    assert_int_equal(got, 7 + i);
  }
  mlx_vector_int_free(v);
}

static void an_index_past_the_end_is_an_index_error(void** state) {
  mlx_vector_int v = mlx_vector_int_new_value(1);
  int got = 42;
  fails_with(RP_ERR_INDEX, mlx_vector_int_get(&got, v, 1));
  fails_with(RP_ERR_INDEX, mlx_vector_int_get(&got, v, (size_t)-1));
  assert_int_equal(got, 42);
  mlx_vector_int_free(v);
}

static void empty_list_handles_are_errors_except_for_size_and_free(void** state) {
  mlx_vector_array v = {0}, w = {0};
  mlx_array a = array_of(3), got = mlx_array_new();
  assert_int_equal(mlx_vector_array_size(v), 0);
  assert_int_equal(mlx_vector_array_free(v), 0);
  fails_with(RP_ERR_ARGUMENT, mlx_vector_array_append_value(v, a));
  fails_with(RP_ERR_ARGUMENT, mlx_vector_array_append_data(v, &a, 1));
  fails_with(RP_ERR_ARGUMENT, mlx_vector_array_get(&got, v, 0));
  fails_with(RP_ERR_ARGUMENT, mlx_vector_array_set(&w, v));
  assert_null(w.ctx);
  mlx_array_free(a);
}

static void a_list_of_arrays_keeps_them_alive(void** state) {
  mlx_array in[2] = {array_of(3), array_of(4)}, got = mlx_array_new();
  mlx_vector_array v = mlx_vector_array_new_data(in, 2);
  mlx_array_free(in[0]);
  mlx_array_free(in[1]);
  assert_int_equal(mlx_vector_array_get(&got, v, 1), 0);
  assert_int_equal(shape_of(got), 4);
  assert_int_equal(mlx_vector_array_get(&got, v, 0), 0);
  assert_int_equal(shape_of(got), 3);
  mlx_vector_array_free(v);
  assert_int_equal(shape_of(got), 3);
  mlx_array_free(got);
}

static void a_list_with_an_empty_item_is_refused_as_a_whole(void** state) {
  mlx_array in[2] = {array_of(3), mlx_array_new()};
  mlx_vector_array v = mlx_vector_array_new_data(in, 2);
  assert_null(v.ctx);
  assert_int_equal(rp_last_error(NULL), RP_ERR_ARGUMENT);
  v = mlx_vector_array_new();
  fails_with(RP_ERR_ARGUMENT, mlx_vector_array_append_data(v, in, 2));
  assert_int_equal(mlx_vector_array_size(v), 0);
  fails_with(RP_ERR_ARGUMENT, mlx_vector_array_append_data(v, NULL, 2));
  mlx_vector_array_free(v);
  mlx_array_free(in[0]);
}

static void a_list_can_be_set_to_itself_and_copies_are_independent(void** state) {
  mlx_array a = array_of(3), b = array_of(4);
  mlx_vector_array v = mlx_vector_array_new_value(a), w = {0};
  assert_int_equal(mlx_vector_array_set(&v, v), 0);
  assert_int_equal(mlx_vector_array_size(v), 1);
  assert_int_equal(mlx_vector_array_set(&w, v), 0);
  assert_int_equal(mlx_vector_array_append_value(v, b), 0);
  assert_int_equal(mlx_vector_array_size(v), 2);
  assert_int_equal(mlx_vector_array_size(w), 1);
  void* before = w.ctx;
  assert_int_equal(mlx_vector_array_set_data(&w, (mlx_array[]){b, a, b}, 3), 0);
  assert_ptr_equal(w.ctx, before); /* the same list: copies of the handle see it */
  assert_int_equal(mlx_vector_array_size(w), 3);
  assert_int_equal(mlx_vector_array_set_value(&w, a), 0);
  assert_int_equal(mlx_vector_array_size(w), 1);
  mlx_vector_array_free(v);
  mlx_vector_array_free(w);
  mlx_array_free(a);
  mlx_array_free(b);
}

static void a_list_of_lists_holds_copies(void** state) {
  mlx_array a = array_of(3), b = array_of(4), got = mlx_array_new();
  mlx_vector_array row = mlx_vector_array_new_value(a), out = {0};
  mlx_vector_vector_array v = mlx_vector_vector_array_new_value(row), w = {0};
  assert_int_equal(mlx_vector_array_append_value(row, b), 0);
  assert_int_equal(mlx_vector_vector_array_append_value(v, row), 0);
  assert_int_equal(mlx_vector_vector_array_set(&w, v), 0);
  mlx_vector_vector_array_free(v);
  assert_int_equal(mlx_vector_vector_array_size(w), 2);
  assert_int_equal(mlx_vector_vector_array_get(&out, w, 0), 0);
  assert_int_equal(mlx_vector_array_size(out), 1);
  assert_int_equal(mlx_vector_vector_array_get(&out, w, 1), 0);
  assert_int_equal(mlx_vector_array_size(out), 2);
  assert_int_equal(mlx_vector_array_get(&got, out, 1), 0);
  assert_int_equal(shape_of(got), 4);
  fails_with(RP_ERR_INDEX, mlx_vector_vector_array_get(&out, w, 2));
  mlx_vector_vector_array_free(w);
  mlx_vector_array_free(row);
  mlx_vector_array_free(out);
  mlx_array_free(a);
  mlx_array_free(b);
  mlx_array_free(got);
}

static void a_text_read_from_a_list_is_borrowed(void** state) {
  const char* in[] = {"x", "", "yz"};
  mlx_vector_string v = mlx_vector_string_new_data(in, 3), w = {0};
  char* got = NULL;
  assert_int_equal(mlx_vector_string_set(&w, v), 0);
  mlx_vector_string_free(v);
  assert_int_equal(mlx_vector_string_append_value(w, "w"), 0);
  assert_int_equal(mlx_vector_string_get(&got, w, 2), 0);
  assert_string_equal(got, "yz");
  assert_int_equal(mlx_vector_string_get(&got, w, 3), 0);
  assert_string_equal(got, "w");
  fails_with(RP_ERR_ARGUMENT, mlx_vector_string_append_value(w, NULL));
  fails_with(RP_ERR_INDEX, mlx_vector_string_get(&got, w, 4));
  assert_int_equal(mlx_vector_string_size(w), 4);
  mlx_vector_string_free(w);
}

/* ---- maps ------------------------------------------------------------------------------------ */

static void a_map_keeps_the_order_of_insertion(void** state) {
  mlx_map_string_to_array m = mlx_map_string_to_array_new();
  mlx_array a = array_of(3), b = array_of(4), got = mlx_array_new();
  assert_int_equal(mlx_map_string_to_array_insert(m, "z", a), 0);
  assert_int_equal(mlx_map_string_to_array_insert(m, "a", b), 0);
  assert_int_equal(mlx_map_string_to_array_insert(m, "z", b), 0);
  mlx_map_string_to_array_iterator it = mlx_map_string_to_array_iterator_new(m);
  const char* key = NULL;
  assert_int_equal(mlx_map_string_to_array_iterator_next(&key, &got, it), 0);
  assert_string_equal(key, "z");
  assert_int_equal(shape_of(got), 4);
  assert_int_equal(mlx_map_string_to_array_iterator_next(&key, &got, it), 0);
  assert_string_equal(key, "a");
  assert_int_equal(mlx_map_string_to_array_iterator_next(&key, &got, it), 2);
  assert_int_equal(mlx_map_string_to_array_iterator_next(&key, &got, it), 2);
  mlx_map_string_to_array_iterator_free(it);
  mlx_map_string_to_array_free(m);
  mlx_array_free(a);
  mlx_array_free(b);
  mlx_array_free(got);
}

static void a_missing_key_is_told_by_2_and_raises_nothing(void** state) {
  mlx_map_string_to_array m = mlx_map_string_to_array_new();
  mlx_map_string_to_string t = mlx_map_string_to_string_new();
  mlx_array got = mlx_array_new();
  const char* text = "before";
  rp_clear_error();
  assert_int_equal(mlx_map_string_to_array_get(&got, m, "no"), 2);
  assert_int_equal(mlx_map_string_to_string_get(&text, t, "no"), 2);
  assert_null(got.ctx);
  assert_string_equal(text, "before");
  assert_int_equal(rp_last_error(NULL), RP_OK);
  fails_with(RP_ERR_ARGUMENT, mlx_map_string_to_array_get(&got, m, NULL));
  mlx_map_string_to_array_free(m);
  mlx_map_string_to_string_free(t);
}

static void empty_map_handles_are_errors_except_for_free(void** state) {
  mlx_map_string_to_string t = {0}, u = {0};
  const char *key = NULL, *text = NULL;
  assert_int_equal(mlx_map_string_to_string_free(t), 0);
  fails_with(RP_ERR_ARGUMENT, mlx_map_string_to_string_insert(t, "k", "v"));
  fails_with(RP_ERR_ARGUMENT, mlx_map_string_to_string_get(&text, t, "k"));
  fails_with(RP_ERR_ARGUMENT, mlx_map_string_to_string_set(&u, t));
  mlx_map_string_to_string_iterator it = mlx_map_string_to_string_iterator_new(t);
  assert_null(it.ctx);
  fails_with(RP_ERR_ARGUMENT, mlx_map_string_to_string_iterator_next(&key, &text, it));
  assert_int_equal(mlx_map_string_to_string_iterator_free(it), 0);
}

static void a_copied_map_is_independent(void** state) {
  mlx_map_string_to_string a = mlx_map_string_to_string_new(), b = {0};
  const char *key = NULL, *text = NULL;
  assert_int_equal(mlx_map_string_to_string_insert(a, "k", "1"), 0);
  assert_int_equal(mlx_map_string_to_string_set(&b, a), 0);
  assert_int_equal(mlx_map_string_to_string_insert(a, "k", "2"), 0);
  assert_int_equal(mlx_map_string_to_string_get(&text, b, "k"), 0);
  assert_string_equal(text, "1");
  assert_int_equal(mlx_map_string_to_string_set(&b, b), 0);
  assert_int_equal(mlx_map_string_to_string_set(&b, a), 0);
  mlx_map_string_to_string_iterator it = mlx_map_string_to_string_iterator_new(b);
  assert_int_equal(mlx_map_string_to_string_iterator_next(&key, &text, it), 0);
  assert_string_equal(text, "2");
  assert_int_equal(mlx_map_string_to_string_iterator_next(&key, &text, it), 2);
  mlx_map_string_to_string_iterator_free(it);
  mlx_map_string_to_string_free(a);
  mlx_map_string_to_string_free(b);
}

/* ---- faults and threads ---------------------------------------------------------------------- */

/* Everything that allocates, once; results are checked only for consistency. */
static int use_everything(void) {
  mlx_array a = array_of(2), got = mlx_array_new();
  mlx_vector_array v = mlx_vector_array_new_value(a), w = {0};
  mlx_vector_string s = mlx_vector_string_new_data((const char*[]){"a", "b"}, 2), t = {0};
  mlx_vector_vector_array r = mlx_vector_vector_array_new();
  mlx_map_string_to_array m = mlx_map_string_to_array_new(), m2 = {0};
  int bad = !a.ctx || !v.ctx || !s.ctx || !r.ctx || !m.ctx;
  if (!bad) {
    bad |= mlx_vector_array_append_data(v, (mlx_array[]){a, a, a, a, a, a, a, a, a}, 9);
    bad |= mlx_vector_array_set(&w, v);
    bad |= mlx_vector_array_get(&got, v, 0);
    bad |= mlx_vector_string_set(&t, s);
    bad |= mlx_vector_vector_array_append_value(r, v);
    bad |= mlx_map_string_to_array_insert(m, "key", a);
    bad |= mlx_map_string_to_array_set(&m2, m);
  }
  mlx_array_free(a);
  mlx_array_free(got);
  mlx_vector_array_free(v);
  mlx_vector_array_free(w);
  mlx_vector_string_free(s);
  mlx_vector_string_free(t);
  mlx_vector_vector_array_free(r);
  mlx_map_string_to_array_free(m);
  mlx_map_string_to_array_free(m2);
  return bad;
}

static void the_nth_allocation_may_fail(void** state) {
  mlx_array warm = array_of(2); /* the pool of buffers makes its own allocations once */
  int n = 1;
  for (;; n++) {
    rpi_mem_fail_at(n);
    first_code = RP_OK;
    int bad = use_everything();
    if (!rpi_mem_fail_at(0)) {
      assert_false(bad);
      break;
    }
    assert_true(bad);
    assert_int_equal(first_code, RP_ERR_MEMORY);
  }
  assert_true(n > 15);
  mlx_array_free(warm);
}

enum { THREADS = 4, ROUNDS = 300 };

static mlx_vector_array shared_list;
static mlx_map_string_to_string shared_map;

static void* append_and_read(void* unused) {
  mlx_array a = array_of(5), got = mlx_array_new();
  for (int i = 0; i < ROUNDS; i++) {
    mlx_vector_array copy = {0};
    char key[] = {(char)('a' + i % 26), 0};
    const char* text;
    mlx_vector_array_append_value(shared_list, a);
    mlx_vector_array_get(&got, shared_list, (size_t)i);
    if (i % 32 == 0) mlx_vector_array_set(&copy, shared_list);
    mlx_vector_array_free(copy);
    mlx_map_string_to_string_insert(shared_map, key, "same");
    mlx_map_string_to_string_get(&text, shared_map, key);
  }
  mlx_array_free(a);
  mlx_array_free(got);
  return unused;
}

static void threads_may_append_to_and_read_the_same_list(void** state) {
  pthread_t t[THREADS];
  shared_list = mlx_vector_array_new();
  shared_map = mlx_map_string_to_string_new();
  for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, append_and_read, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
  assert_int_equal(mlx_vector_array_size(shared_list), THREADS * ROUNDS);
  mlx_vector_array_free(shared_list);
  mlx_map_string_to_string_free(shared_map);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_string_holds_a_copy),
      cmocka_unit_test(an_empty_string_handle_has_no_data),
      cmocka_unit_test(setting_a_string_makes_or_replaces_it),
      cmocka_unit_test(a_new_list_is_empty_and_can_be_appended_to),
      cmocka_unit_test(an_index_past_the_end_is_an_index_error),
      cmocka_unit_test(empty_list_handles_are_errors_except_for_size_and_free),
      cmocka_unit_test(a_list_of_arrays_keeps_them_alive),
      cmocka_unit_test(a_list_with_an_empty_item_is_refused_as_a_whole),
      cmocka_unit_test(a_list_can_be_set_to_itself_and_copies_are_independent),
      cmocka_unit_test(a_list_of_lists_holds_copies),
      cmocka_unit_test(a_text_read_from_a_list_is_borrowed),
      cmocka_unit_test(a_map_keeps_the_order_of_insertion),
      cmocka_unit_test(a_missing_key_is_told_by_2_and_raises_nothing),
      cmocka_unit_test(empty_map_handles_are_errors_except_for_free),
      cmocka_unit_test(a_copied_map_is_independent),
      cmocka_unit_test(the_nth_allocation_may_fail),
      cmocka_unit_test(threads_may_append_to_and_read_the_same_list),
  };
  return cmocka_run_group_tests(tests, silence, NULL);
}
