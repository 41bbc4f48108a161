/* device.h: devices and what is known of them. A GPU is a name here: its work runs on the CPU. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "api/call.h"
#include "api/device.h"
#include "api/vector_string.h"
#include "base/err.h"
#include "core/buffer.h"

enum { MISSING = 2 };

const char* rpi_device_text(char* buf, int n, struct device d) {
  snprintf(buf, (size_t)n, "Device(%s, %d)", d.type == RPI_GPU ? "gpu" : "cpu", d.index);
  return buf;
}

int rpi_device_get(struct device* out, mlx_device dev, const char* name) {
  if (!dev.ctx) return rpi_fail(RP_ERR_ARGUMENT, "[%s] The device handle is empty.", name);
  *out = *(const struct device*)dev.ctx;
  return 0;
}

int rpi_device_set(mlx_device* res, struct device d) {
  struct device* p = res->ctx ? res->ctx : rpi_alloc(sizeof *p);
  if (!p) return rpi_fail_memory("a device handle", sizeof *p);
  *p = d;
  res->ctx = p;
  return 0;
}

static int check_type(mlx_device_type type, const char* name) {
  if (type == MLX_CPU || type == MLX_GPU) return 0;
  return rpi_fail(RP_ERR_ARGUMENT, "[%s] %d is not a type of device.", name, (int)type);
}

static int make_device(mlx_device* res, mlx_device_type type, int index) {
  int rc = check_type(type, "device");
  if (rc) return rc;
  if (index < 0 || index > INT16_MAX)
    return rpi_fail(RP_ERR_ARGUMENT, "[device] %d is not the index of a device.", index);
  return rpi_device_set(res, (struct device){type == MLX_GPU ? RPI_GPU : RPI_CPU, (int16_t)index});
}

mlx_device mlx_device_new(void) { return (mlx_device){0}; }

mlx_device mlx_device_new_type(mlx_device_type type, int index) {
  mlx_device d = {0};
  rpi_report(make_device(&d, type, index));
  return d;
}

int mlx_device_free(mlx_device dev) {
  rpi_free(dev.ctx);
  return 0;
}

int mlx_device_set(mlx_device* dev, const mlx_device src) {
  struct device d = {0};
  int rc = rpi_device_get(&d, src, "device_set");
  return rpi_report(rc ? rc : rpi_device_set(dev, d));
}

int mlx_device_tostring(mlx_string* str, mlx_device dev) {
  struct device d = {0};
  char text[64];
  int rc = rpi_device_get(&d, dev, "device_tostring");
  return rpi_report(rc ? rc : rpi_string_set(str, rpi_device_text(text, sizeof text, d)));
}

bool mlx_device_equal(mlx_device lhs, mlx_device rhs) {
  const struct device *a = lhs.ctx, *b = rhs.ctx;
  if (!a || !b) return a == b;
  return a->type == b->type && a->index == b->index;
}

int mlx_device_get_index(int* index, mlx_device dev) {
  struct device d = {0};
  int rc = rpi_device_get(&d, dev, "device_get_index");
  if (!rc) *index = d.index;
  return rpi_report(rc);
}

int mlx_device_get_type(mlx_device_type* type, mlx_device dev) {
  struct device d = {0};
  int rc = rpi_device_get(&d, dev, "device_get_type");
  if (!rc) *type = d.type == RPI_GPU ? MLX_GPU : MLX_CPU;
  return rpi_report(rc);
}

int mlx_get_default_device(mlx_device* dev) {
  return rpi_report(rpi_device_set(dev, rpi_default_device()));
}

int mlx_set_default_device(mlx_device dev) {
  struct device d = {0};
  int rc = rpi_device_get(&d, dev, "set_default_device");
  if (!rc) rpi_set_default_device(d);
  return rpi_report(rc);
}

int mlx_device_is_available(bool* avail, mlx_device dev) {
  struct device d = {0};
  int rc = rpi_device_get(&d, dev, "device_is_available");
  if (!rc) *avail = d.type == RPI_CPU && d.index == 0;
  return rpi_report(rc);
}

int mlx_device_count(int* count, mlx_device_type type) {
  int rc = check_type(type, "device_count");
  if (!rc) *count = type == MLX_CPU;
  return rpi_report(rc);
}

/* ---- properties ------------------------------------------------------------------------------ */

/* A property is a text, or a size when `text` is NULL. */
struct property {
  const char* key;
  const char* text;
  size_t size;
};

enum { PROPERTIES = 6 };

struct info {
  char device_name[128];
  char architecture[sizeof((struct utsname*)0)->machine];
  struct property at[PROPERTIES];
};

/* The value of "model name" in /proc/cpuinfo, if there is one. */
static void read_cpu_name(char* out, size_t n) {
  char text[4096];
  int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  text[got > 0 ? got : 0] = '\0';
  const char* line = strstr(text, "model name");
  const char* colon = line ? strchr(line, ':') : NULL;
  if (!colon) return;
  colon += 1 + strspn(colon + 1, " \t");
  snprintf(out, n, "%.*s", (int)strcspn(colon, "\n"), colon);
}

static void fill_info(struct info* i) {
  struct utsname u;
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  size_t memory = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
  snprintf(i->architecture, sizeof i->architecture, "%s", uname(&u) == 0 ? u.machine : "unknown");
  snprintf(i->device_name, sizeof i->device_name, "%s", i->architecture);
  read_cpu_name(i->device_name, sizeof i->device_name);
  const struct property all[PROPERTIES] = {
      {"device_name", i->device_name, 0},
      {"architecture", i->architecture, 0},
      {"memory_size", NULL, memory},
      {"max_recommended_working_set_size", NULL, memory / 4 * 3},
      {"max_buffer_length", NULL, memory},
      {"resource_limit", NULL, INT32_MAX}, /* buffers at a time: as many as memory holds */
  };
  memcpy(i->at, all, sizeof all);
}

/* The property of a key; *out is NULL when there is none. */
static int find_property(const struct property** out, mlx_device_info info, const char* key,
                         const char* name) {
  const struct info* i = info.ctx;
  if (!i) return rpi_fail(RP_ERR_ARGUMENT, "[%s] The handle is empty.", name);
  if (!key) return rpi_fail(RP_ERR_ARGUMENT, "[%s] The key is NULL.", name);
  *out = NULL;
  for (int k = 0; k < PROPERTIES; k++)
    if (strcmp(i->at[k].key, key) == 0) *out = &i->at[k];
  return 0;
}

mlx_device_info mlx_device_info_new(void) { return (mlx_device_info){0}; }

int mlx_device_info_get(mlx_device_info* info, mlx_device dev) {
  struct device d = {0};
  int rc = rpi_device_get(&d, dev, "device_info_get");
  if (rc) return rpi_report(rc);
  struct info* i = info->ctx ? info->ctx : rpi_calloc(1, sizeof *i);
  if (!i) return rpi_report(rpi_fail_memory("the properties of a device", sizeof *i));
  fill_info(i);
  info->ctx = i;
  return 0;
}

int mlx_device_info_free(mlx_device_info info) {
  rpi_free(info.ctx);
  return 0;
}

int mlx_device_info_has_key(bool* exists, mlx_device_info info, const char* key) {
  const struct property* p = NULL;
  int rc = find_property(&p, info, key, "device_info_has_key");
  if (!rc) *exists = p != NULL;
  return rpi_report(rc);
}

int mlx_device_info_is_string(bool* is_string, mlx_device_info info, const char* key) {
  const struct property* p = NULL;
  int rc = find_property(&p, info, key, "device_info_is_string");
  if (rc) return rpi_report(rc);
  if (!p) return MISSING;
  *is_string = p->text != NULL;
  return 0;
}

int mlx_device_info_get_string(const char** value, mlx_device_info info, const char* key) {
  const struct property* p = NULL;
  int rc = find_property(&p, info, key, "device_info_get_string");
  if (rc) return rpi_report(rc);
  if (!p || !p->text) return MISSING;
  *value = p->text;
  return 0;
}

int mlx_device_info_get_size(size_t* value, mlx_device_info info, const char* key) {
  const struct property* p = NULL;
  int rc = find_property(&p, info, key, "device_info_get_size");
  if (rc) return rpi_report(rc);
  if (!p || p->text) return MISSING;
  *value = p->size;
  return 0;
}

int mlx_device_info_get_keys(mlx_vector_string* keys, mlx_device_info info) {
  const struct info* i = info.ctx;
  const char* names[PROPERTIES];
  if (!i)
    return rpi_report(rpi_fail(RP_ERR_ARGUMENT, "[device_info_get_keys] The handle is empty."));
  for (int k = 0; k < PROPERTIES; k++) names[k] = i->at[k].key;
  return mlx_vector_string_set_data(keys, names, PROPERTIES);
}
