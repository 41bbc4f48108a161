/* metal.h and cuda.h: GPUs that this build does not compute on. */
#include "api/call.h"
#include "base/err.h"

int mlx_metal_is_available(bool* res) {
  *res = false;
  return 0;
}

static int refuse_capture(const char* name) {
  return rpi_report(
      rpi_fail(RP_ERR_UNSUPPORTED, "[%s] Metal exists on Apple's systems only.", name));
}

int mlx_metal_start_capture(const char* path) { return refuse_capture("metal_start_capture"); }

int mlx_metal_stop_capture(void) { return refuse_capture("metal_stop_capture"); }

int mlx_cuda_is_available(bool* res) {
  *res = false;
  return 0;
}
