/* `reprise inspect`: what a GGUF or safetensors file holds.
 *
 * The library validates the file first, so that a broken one gets its message with the byte offset;
 * only then is it listed. GGUF is listed from its header (gguf_head.c): loading repacks quantized
 * tensors, and the interface does not enumerate metadata. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/gguf_head.h"
#include "mlx/c/io.h"
#include "mlx/c/map.h"
#include "mlx/c/stream.h"

enum { SHOWN = 100 }; /* bytes of a value */

static const char* dtype_name(mlx_dtype d) {
  static const char* const names[] = {"bool",  "uint8", "uint16",  "uint32",  "uint64",
                                      "int8",  "int16", "int32",   "int64",   "float16",
                                      "float32", "float64", "bfloat16", "complex64"};
  return (unsigned)d < sizeof names / sizeof *names ? names[d] : "unknown";
}

/* ---- the listing, as text or JSON ------------------------------------------------------------ */

static const char* comma(size_t count) { return count ? "," : ""; }

static void list_metadata(struct listing* l, const char* key, const char* value, size_t n,
                          bool is_text) {
  if (l->json) {
    cli_print("%s", comma(l->pairs));
    cli_print_json(key, strlen(key));
    cli_write(":", 1);
    cli_print_json(value, n);
  } else {
    cli_print_safe(key, strlen(key), 0);
    cli_print(is_text ? " = \"" : " = ");
    cli_print_safe(value, n, SHOWN);
    cli_print(is_text ? "\"\n" : "\n");
  }
  l->pairs++;
}

static void list_tensor(struct listing* l, const char* name, const char* type, const int64_t* shape,
                        int ndim, uint64_t bytes) {
  char size[16];
  if (l->json) {
    cli_print("%s{\"name\":", comma(l->tensors));
    cli_print_json(name, strlen(name));
    cli_print(",\"type\":\"%s\",\"shape\":[", type);
  } else {
    cli_print_safe(name, strlen(name), 0);
    cli_print("  %s  [", type);
  }
  for (int i = 0; i < ndim; i++)
    cli_print("%s%lld", i ? l->json ? "," : ", " : "", (long long)shape[i]);
  cli_file_size(size, (double)bytes);
  if (l->json)
    cli_print("],\"bytes\":%llu}", (unsigned long long)bytes);
  else
    cli_print("]  %s\n", size);
  l->tensors++;
  l->bytes += bytes;
}

static void begin_metadata(const struct listing* l, const char* format) {
  if (l->json) cli_print("{\"format\":\"%s\",\"metadata\":{", format);
  else cli_print("format: %s\n\n", format);
}

static void begin_tensors(const struct listing* l) {
  cli_print(l->json ? "},\"tensors\":[" : l->pairs ? "\n" : "");
}

static int end_listing(const struct listing* l) {
  char size[16];
  cli_file_size(size, (double)l->bytes);
  if (l->json)
    cli_print("],\"tensor_bytes\":%llu}\n", (unsigned long long)l->bytes);
  else
    cli_print("\n%zu tensors, %s\n", l->tensors, size);
  return cli_flush();
}

/* ---- GGUF ------------------------------------------------------------------------------------ */

static int inspect_gguf(struct listing* l, const char* path) {
  mlx_stream s = mlx_default_cpu_stream_new();
  mlx_io_gguf file = mlx_io_gguf_new();
  int rc = mlx_load_gguf(&file, path, s) ? cli_fail_library() : CLI_OK;
  mlx_io_gguf_free(file);
  mlx_stream_free(s);
  if (rc) return rc;
  l->pair = list_metadata;
  l->tensor = list_tensor;
  l->between = begin_tensors;
  begin_metadata(l, "gguf");
  rc = gguf_head_list(l, path);
  return rc ? rc : end_listing(l);
}

/* ---- safetensors ----------------------------------------------------------------------------- */

static void list_texts(struct listing* l, mlx_map_string_to_string map) {
  mlx_map_string_to_string_iterator it = mlx_map_string_to_string_iterator_new(map);
  const char *key, *value;
  while (!mlx_map_string_to_string_iterator_next(&key, &value, it))
    list_metadata(l, key, value, strlen(value), true);
  mlx_map_string_to_string_iterator_free(it);
}

static void list_array(struct listing* l, const char* key, mlx_array a) {
  int64_t shape[64];
  int ndim = (int)mlx_array_ndim(a);
  for (int i = 0; i < ndim && i < 64; i++) shape[i] = mlx_array_shape(a)[i];
  list_tensor(l, key, dtype_name(mlx_array_dtype(a)), shape, ndim < 64 ? ndim : 64,
              mlx_array_nbytes(a));
}

static void list_arrays(struct listing* l, mlx_map_string_to_array map) {
  mlx_map_string_to_array_iterator it = mlx_map_string_to_array_iterator_new(map);
  mlx_array a = mlx_array_new();
  const char* key;
  while (!mlx_map_string_to_array_iterator_next(&key, &a, it)) list_array(l, key, a);
  mlx_array_free(a);
  mlx_map_string_to_array_iterator_free(it);
}

static int inspect_safetensors(struct listing* l, const char* path) {
  mlx_stream s = mlx_default_cpu_stream_new();
  mlx_map_string_to_array arrays = mlx_map_string_to_array_new();
  mlx_map_string_to_string texts = mlx_map_string_to_string_new();
  int rc = mlx_load_safetensors(&arrays, &texts, path, s) ? cli_fail_library() : CLI_OK;
  if (!rc) {
    begin_metadata(l, "safetensors");
    list_texts(l, texts);
    begin_tensors(l);
    list_arrays(l, arrays);
    rc = end_listing(l);
  }
  mlx_map_string_to_array_free(arrays);
  mlx_map_string_to_string_free(texts);
  mlx_stream_free(s);
  return rc;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int inspect(const char* name, bool json) {
  struct listing l = {.json = json};
  struct stat st;
  char magic[4] = {0};
  const struct cli_model* known = cli_find_model(name);
  char* path = NULL;
  if (known && cli_resolve_model(&path, name)) return CLI_FAILED;
  if (!path) path = strdup(name);
  if (!path) return cli_fail("out of memory");
  FILE* f = fopen(path, "re");
  int rc = f ? CLI_OK : cli_fail("cannot open '%s': %s", path, strerror(errno));
  if (f && (fstat(fileno(f), &st) || !S_ISREG(st.st_mode)))
    rc = cli_fail("'%s' is no file; give a .gguf or .safetensors file", path);
  if (f && !rc && fread(magic, 1, 4, f) < 4)
    rc = cli_fail("'%s' is neither GGUF nor safetensors: it has fewer than 4 bytes", path);
  if (f) fclose(f);
  if (!rc) rc = memcmp(magic, "GGUF", 4) ? inspect_safetensors(&l, path) : inspect_gguf(&l, path);
  free(path);
  return rc;
}

static int run(int argc, char** argv) {
  int first = 0;
  bool done = false, json = false;
  const struct cli_option options[] = {
      {"json", 0, CLI_FLAG, &json, 0, 0, NULL, "print one JSON object"}, {0}};
  int rc = cli_parse(&cli_inspect, options, argc, argv, &first, &done);
  if (rc || done) return rc;
  if (first >= argc) return cli_misuse("inspect", "no file named");
  rc = cli_check_operands(&cli_inspect, argc, argv, first, 1);
  return rc ? rc : inspect(argv[first], json);
}

const struct cli_command cli_inspect = {
    "inspect", "[--json] FILE", "Print the tensors and metadata of a GGUF or safetensors file.",
    "  reprise inspect smollm2-135m-instruct\n"
    "  reprise inspect --json model.safetensors\n",
    run};
