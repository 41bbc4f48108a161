/* version.h: of the interface, and of this library. */
#include "mlx/c/version.h"

#include "api/call.h"
#include "api/text.h"
#include "reprise/version.h"

int mlx_version(mlx_string* str_) { return rpi_report(rpi_string_set(str_, "0.31.2")); }

const char* rp_version(void) { return "0.1.0"; }
