/* Devices, streams, memory counts, versions. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

#include "mlx/c/mlx.h"
#include "reprise/error.h"
#include "reprise/version.h"

static void ignore(const char* msg, void* data) {
  (void)msg;
  (void)data;
}

static int silence(void** state) {
  (void)state;
  mlx_set_error_handler(ignore, NULL, NULL);
  return 0;
}

#define fails_with(code, call)                   \
  do {                                           \
    assert_int_equal(call, 1);                   \
    assert_int_equal(rp_last_error(NULL), code); \
  } while (0)

static void the_default_device_is_the_cpu(void** state) {
  mlx_device d = mlx_device_new();
  mlx_string s = mlx_string_new();
  assert_int_equal(mlx_get_default_device(&d), 0);
  assert_int_equal(mlx_device_tostring(&s, d), 0);
  assert_string_equal(mlx_string_data(s), "Device(cpu, 0)");
  mlx_device_free(d);
  mlx_string_free(s);
}

static void a_gpu_can_be_named_but_is_not_available(void** state) {
  mlx_device gpu = mlx_device_new_type(MLX_GPU, 2), cpu = mlx_device_new_type(MLX_CPU, 0);
  mlx_string s = mlx_string_new();
  mlx_device_type type = MLX_CPU;
  bool is_there = true;
  int n = -1;
  assert_int_equal(mlx_device_tostring(&s, gpu), 0);
  assert_string_equal(mlx_string_data(s), "Device(gpu, 2)");
  assert_int_equal(mlx_device_is_available(&is_there, gpu), 0);
  assert_false(is_there);
  assert_int_equal(mlx_device_is_available(&is_there, cpu), 0);
  assert_true(is_there);
  assert_int_equal(mlx_device_count(&n, MLX_GPU), 0);
  assert_int_equal(n, 0);
  assert_int_equal(mlx_device_count(&n, MLX_CPU), 0);
  assert_int_equal(n, 1);
  assert_int_equal(mlx_device_get_type(&type, gpu), 0);
  assert_int_equal(type, MLX_GPU);
  assert_int_equal(mlx_device_get_index(&n, gpu), 0);
  assert_int_equal(n, 2);
  assert_false(mlx_device_equal(gpu, cpu));
  assert_false(mlx_device_equal(gpu, mlx_device_new()));
  assert_true(mlx_device_equal(mlx_device_new(), mlx_device_new()));
  mlx_device_free(gpu);
  mlx_device_free(cpu);
  mlx_string_free(s);
}

static void a_gpu_may_be_the_default_device(void** state) {
  mlx_device gpu = mlx_device_new_type(MLX_GPU, 0), cpu = mlx_device_new_type(MLX_CPU, 0);
  mlx_device d = mlx_device_new();
  assert_int_equal(mlx_set_default_device(gpu), 0);
  assert_int_equal(mlx_get_default_device(&d), 0);
  assert_true(mlx_device_equal(d, gpu));
  assert_int_equal(mlx_set_default_device(cpu), 0);
  mlx_device_free(gpu);
  mlx_device_free(cpu);
  mlx_device_free(d);
}

static void bad_devices_are_refused(void** state) {
  mlx_string s = mlx_string_new();
  assert_null(mlx_device_new_type(MLX_CPU, -1).ctx);
  assert_int_equal(rp_last_error(NULL), RP_ERR_ARGUMENT);
  assert_null(mlx_device_new_type((mlx_device_type)9, 0).ctx);
  fails_with(RP_ERR_ARGUMENT, mlx_device_tostring(&s, mlx_device_new()));
  fails_with(RP_ERR_ARGUMENT, mlx_set_default_device(mlx_device_new()));
  assert_null(mlx_stream_new_device(mlx_device_new()).ctx);
  assert_int_equal(mlx_device_free(mlx_device_new()), 0);
}

static void properties_are_the_same_for_both_types(void** state) {
  mlx_device_info info = mlx_device_info_new();
  mlx_vector_string keys = mlx_vector_string_new();
  const char* text = NULL;
  size_t size = 0;
  bool flag = false;
  for (int type = MLX_CPU; type <= MLX_GPU; type++) {
    mlx_device d = mlx_device_new_type((mlx_device_type)type, 0);
    assert_int_equal(mlx_device_info_get(&info, d), 0);
    assert_int_equal(mlx_device_info_get_string(&text, info, "device_name"), 0);
    assert_true(strlen(text) > 0);
    assert_null(strchr(text, '\n'));
    assert_int_equal(mlx_device_info_get_size(&size, info, "memory_size"), 0);
    assert_true(size > (size_t)1 << 20);
    mlx_device_free(d);
  }
  assert_int_equal(mlx_device_info_is_string(&flag, info, "architecture"), 0);
  assert_true(flag);
  assert_int_equal(mlx_device_info_has_key(&flag, info, "nothing"), 0);
  assert_false(flag);
  rp_clear_error();
  assert_int_equal(mlx_device_info_get_size(&size, info, "nothing"), 2);
  assert_int_equal(mlx_device_info_get_size(&size, info, "device_name"), 2);
  assert_int_equal(mlx_device_info_get_string(&text, info, "memory_size"), 2);
  assert_int_equal(rp_last_error(NULL), RP_OK);
  assert_int_equal(mlx_device_info_get_keys(&keys, info), 0);
  assert_int_equal(mlx_vector_string_size(keys), 6);
  mlx_device_info_free(info);
  mlx_vector_string_free(keys);
  fails_with(RP_ERR_ARGUMENT, mlx_device_info_get_keys(&keys, mlx_device_info_new()));
}

static void streams_are_named_after_their_device(void** state) {
  mlx_stream cpu = mlx_default_cpu_stream_new(), gpu = mlx_default_gpu_stream_new();
  mlx_device d = mlx_device_new();
  mlx_string s = mlx_string_new();
  assert_int_equal(mlx_stream_tostring(&s, cpu), 0);
  assert_string_equal(mlx_string_data(s), "Stream(Device(cpu, 0), 0)");
  assert_int_equal(mlx_stream_tostring(&s, gpu), 0);
  assert_string_equal(mlx_string_data(s), "Stream(Device(gpu, 0), 1)");
  assert_false(mlx_stream_equal(cpu, gpu));
  assert_int_equal(mlx_stream_get_device(&d, gpu), 0);
  assert_int_equal(mlx_synchronize(gpu), 0);
  assert_int_equal(mlx_synchronize(mlx_stream_new()), 0);
  assert_int_equal(mlx_stream_set(&cpu, gpu), 0);
  assert_true(mlx_stream_equal(cpu, gpu));
  mlx_stream_free(cpu);
  mlx_stream_free(gpu);
  mlx_device_free(d);
  mlx_string_free(s);
}

static void a_new_stream_can_become_the_default_of_its_device(void** state) {
  mlx_device cpu = mlx_device_new_type(MLX_CPU, 0);
  mlx_stream a = mlx_stream_new_device(cpu), b = mlx_stream_new_device(cpu);
  mlx_stream first = mlx_stream_new(), now = mlx_stream_new();
  assert_false(mlx_stream_equal(a, b));
  assert_int_equal(mlx_get_default_stream(&first, cpu), 0);
  assert_int_equal(mlx_set_default_stream(a), 0);
  assert_int_equal(mlx_get_default_stream(&now, cpu), 0);
  assert_true(mlx_stream_equal(now, a));
  assert_int_equal(mlx_set_default_stream(first), 0);
  mlx_stream_free(a);
  mlx_stream_free(b);
  mlx_stream_free(first);
  mlx_stream_free(now);
  mlx_device_free(cpu);
}

static void setting_a_limit_tells_the_one_before(void** state) {
  size_t first = 0, got = 0;
  assert_int_equal(mlx_get_memory_limit(&first), 0);
  assert_int_equal(mlx_set_memory_limit(&got, 12345678), 0);
  assert_int_equal(got, first);
  assert_int_equal(mlx_get_memory_limit(&got), 0);
  assert_int_equal(got, 12345678);
  assert_int_equal(mlx_set_memory_limit(&got, first), 0);
  assert_int_equal(got, 12345678);
  assert_int_equal(mlx_set_wired_limit(&got, 7), 0);
  assert_int_equal(got, 0);
  assert_int_equal(mlx_set_wired_limit(&got, 0), 0);
  assert_int_equal(got, 7);
}

static void memory_of_arrays_is_counted(void** state) {
  static const float zeros[1024];
  size_t before = 0, during = 0, after = 0;
  int n = 1024;
  mlx_get_active_memory(&before);
  mlx_array a = mlx_array_new_data(zeros, &n, 1, MLX_FLOAT32);
  mlx_get_active_memory(&during);
  assert_true(during >= before + 4096);
  mlx_array_free(a);
  mlx_get_active_memory(&after);
  assert_int_equal(after, before);
  assert_int_equal(mlx_clear_cache(), 0);
  mlx_get_cache_memory(&after);
  assert_int_equal(after, 0);
}

static void versions_and_gpus_are_told(void** state) {
  mlx_string s = mlx_string_new();
  bool is_there = true;
  assert_int_equal(mlx_version(&s), 0);
  assert_string_equal(mlx_string_data(s), "0.31.2");
  assert_string_equal(rp_version(), "0.1.0");
  assert_int_equal(mlx_metal_is_available(&is_there), 0);
  assert_false(is_there);
  is_there = true;
  assert_int_equal(mlx_cuda_is_available(&is_there), 0);
  assert_false(is_there);
  fails_with(RP_ERR_UNSUPPORTED, mlx_metal_start_capture("x"));
  mlx_string_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_default_device_is_the_cpu),
      cmocka_unit_test(a_gpu_can_be_named_but_is_not_available),
      cmocka_unit_test(a_gpu_may_be_the_default_device),
      cmocka_unit_test(bad_devices_are_refused),
      cmocka_unit_test(properties_are_the_same_for_both_types),
      cmocka_unit_test(streams_are_named_after_their_device),
      cmocka_unit_test(a_new_stream_can_become_the_default_of_its_device),
      cmocka_unit_test(setting_a_limit_tells_the_one_before),
      cmocka_unit_test(memory_of_arrays_is_counted),
      cmocka_unit_test(versions_and_gpus_are_told),
  };
  return cmocka_run_group_tests(tests, silence, NULL);
}
