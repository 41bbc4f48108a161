/* compile.h and the counters of include/reprise/stats.h. */
#include "api/closure.h"
#include "api/call.h"
#include "base/err.h"
#include "exec/replay.h"
#include "reprise/stats.h"

int mlx_compile(mlx_closure* res, const mlx_closure fun, bool shapeless) {
  struct closure* inner = rpi_closure_get(fun, "compile");
  if (!inner) return rpi_report(rpi_error_code());
  struct closure* c = rpi_compile(inner, shapeless);
  rpi_closure_release(inner);
  return rpi_closure_set(res, c);
}

int mlx_detail_compile(mlx_closure* res, const mlx_closure fun, uintptr_t fun_id, bool shapeless,
                       const uint64_t* constants, size_t constants_num) {
  struct closure* inner = rpi_closure_get(fun, "compile");
  if (!inner) return rpi_report(rpi_error_code());
  struct closure* c = rpi_compile_with_id(inner, fun_id, shapeless, constants, constants_num);
  rpi_closure_release(inner);
  return rpi_closure_set(res, c);
}

int mlx_detail_compile_clear_cache(void) {
  rpi_compile_clear();
  return 0;
}

int mlx_detail_compile_erase(uintptr_t fun_id) {
  rpi_compile_erase(fun_id);
  return 0;
}

int mlx_disable_compile(void) { return mlx_set_compile_mode(MLX_COMPILE_MODE_DISABLED); }
int mlx_enable_compile(void) { return mlx_set_compile_mode(MLX_COMPILE_MODE_ENABLED); }

int mlx_set_compile_mode(mlx_compile_mode mode) {
  if ((int)mode < RPI_COMPILE_DISABLED || (int)mode > RPI_COMPILE_ENABLED)
    return rpi_report(rpi_fail(RP_ERR_ARGUMENT, "[set_compile_mode] %d is not a mode.", (int)mode));
  rpi_compile_set_mode((int)mode);
  return 0;
}

int rp_closure_get_stats(rp_closure_stats* out, mlx_closure cls) {
  struct replay_stats s;
  struct closure* c = rpi_closure_get(cls, "closure_get_stats");
  if (!c) return rpi_report(rpi_error_code());
  bool known = rpi_compile_stats(c, &s);
  rpi_closure_release(c);
  if (!known)
    return rpi_report(rpi_fail(RP_ERR_ARGUMENT, "[closure_get_stats] The closure is not compiled."));
  *out = (rp_closure_stats){.traces = s.traces, .replays = s.replays, .plans = s.plans,
                            .instructions = s.instructions, .fused = s.fused,
                            .arena_bytes = s.arena_bytes};
  return 0;
}
