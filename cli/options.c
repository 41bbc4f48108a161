/* Option tables: parsing with getopt_long, checking, and the help text, all from the same rows. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

enum { MAX_OPTIONS = 32, FIRST_VALUE = 256, HELP_VALUE = 1000, MAX_WORD = 64 };

/* ---- help ------------------------------------------------------------------------------------ */

static void print_option(char letter, const char* name, const char* arg, const char* help) {
  char left[64];
  if (letter)
    snprintf(left, sizeof left, "-%c, --%s%s%s", letter, name, arg ? " " : "", arg ? arg : "");
  else
    snprintf(left, sizeof left, "    --%s%s%s", name, arg ? " " : "", arg ? arg : "");
  cli_print("  %-29s %s\n", left, help);
}

static int print_command_help(const struct cli_command* c, const struct cli_option* options) {
  cli_print("%s\n\nusage: reprise %s %s\n\noptions:\n", c->summary, c->name, c->usage);
  for (const struct cli_option* o = options; o->name; o++)
    print_option(o->letter, o->name, o->arg, o->help);
  print_option('h', "help", NULL, "print this text");
  cli_print("\nexamples:\n%s", c->examples);
  return cli_flush();
}

/* ---- values ---------------------------------------------------------------------------------- */

static int refuse_value(const struct cli_command* c, const struct cli_option* o, const char* text) {
  if (o->kind == CLI_SEED)
    return cli_misuse(c->name, "--%s needs a whole number from 0 to 18446744073709551615, not '%s'",
                      o->name, text);
  const char* what = o->kind == CLI_INT ? "whole number" : "number";
  if (o->max >= 1e9)
    return cli_misuse(c->name, "--%s needs a %s of at least %g, not '%s'", o->name, what, o->min,
                      text);
  return cli_misuse(c->name, "--%s needs a %s from %g to %g, not '%s'", o->name, what, o->min,
                    o->max, text);
}

static bool read_int(int* out, const struct cli_option* o, const char* text) {
  char* end;
  errno = 0;
  long v = strtol(text, &end, 10);
  if (end == text || *end || errno || (double)v < o->min || (double)v > o->max) return false;
  *out = (int)v;
  return true;
}

static bool read_real(float* out, const struct cli_option* o, const char* text) {
  char* end;
  errno = 0;
  double v = strtod(text, &end);
  if (end == text || *end || !isfinite(v) || v < o->min || v > o->max) return false;
  *out = (float)v;
  return true;
}

static bool read_seed(struct cli_seed* out, const char* text) {
  char* end;
  errno = 0;
  if (text[0] < '0' || text[0] > '9') return false; /* strtoull would take -1 */
  unsigned long long v = strtoull(text, &end, 10);
  if (*end || errno) return false;
  *out = (struct cli_seed){true, v};
  return true;
}

static int append(struct cli_list* list, const char* text) {
  const char** at = realloc(list->at, sizeof *at * (list->n + 1));
  if (!at) return cli_fail("out of memory");
  list->at = at;
  at[list->n++] = text;
  return CLI_OK;
}

static int store(const struct cli_command* c, const struct cli_option* o, const char* text) {
  bool good = true;
  switch (o->kind) {
    case CLI_FLAG: *(bool*)o->target = true; break;
    case CLI_TEXT: *(const char**)o->target = text; break;
    case CLI_LIST: return append(o->target, text);
    case CLI_INT: good = read_int(o->target, o, text); break;
    case CLI_REAL: good = read_real(o->target, o, text); break;
    case CLI_SEED: good = read_seed(o->target, text); break;
  }
  return good ? CLI_OK : refuse_value(c, o, text);
}

/* ---- misspellings ---------------------------------------------------------------------------- */

/* Edits (insert, delete, replace, swap neighbours) from a to b; both shorter than MAX_WORD. */
static int count_edits(const char* a, const char* b) {
  int n = (int)strlen(b), row[3][MAX_WORD + 1];
  for (int j = 0; j <= n; j++) row[0][j] = j;
  for (int i = 1; a[i - 1]; i++) {
    int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
    now[0] = i;
    for (int j = 1; j <= n; j++) {
      int best = last[j - 1] + (a[i - 1] != b[j - 1]);
      if (last[j] + 1 < best) best = last[j] + 1;
      if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
        best = before[j - 2] + 1;
      now[j] = best;
    }
  }
  return row[(int)strlen(a) % 3][n];
}

const char* cli_nearest(const char* word, const char* const* candidates, size_t n) {
  const char* best = NULL;
  int least = 3; /* more edits than two are another word */
  if (strlen(word) < 3 || strlen(word) >= MAX_WORD) return NULL;
  for (size_t i = 0; i < n; i++) {
    if (strlen(candidates[i]) >= MAX_WORD) continue;
    int edits = count_edits(word, candidates[i]);
    if (edits < least) least = edits, best = candidates[i];
  }
  return best;
}

/* ---- parsing --------------------------------------------------------------------------------- */

/* What getopt_long and the messages need, made from a table. */
struct parser {
  struct option longs[MAX_OPTIONS + 2];
  char shorts[2 * MAX_OPTIONS + 4];
  const char* names[MAX_OPTIONS + 1];
  int n;
};

static void build_parser(struct parser* p, const struct cli_option* options) {
  char* s = p->shorts;
  *s++ = ':'; /* tell a missing value from an unknown option */
  for (p->n = 0; options[p->n].name && p->n < MAX_OPTIONS; p->n++) {
    const struct cli_option* o = &options[p->n];
    int takes = o->kind == CLI_FLAG ? no_argument : required_argument;
    p->longs[p->n] = (struct option){o->name, takes, NULL, FIRST_VALUE + p->n};
    p->names[p->n] = o->name;
    if (!o->letter) continue;
    *s++ = o->letter;
    if (takes) *s++ = ':';
  }
  p->longs[p->n] = (struct option){"help", no_argument, NULL, HELP_VALUE};
  p->longs[p->n + 1] = (struct option){0};
  p->names[p->n] = "help";
  *s++ = 'h';
  *s = '\0';
}

static const struct cli_option* find_row(const struct parser* p, const struct cli_option* options,
                                         int value) {
  if (value >= FIRST_VALUE && value < FIRST_VALUE + p->n) return &options[value - FIRST_VALUE];
  for (int i = 0; i < p->n; i++)
    if (options[i].letter && options[i].letter == value) return &options[i];
  return NULL;
}

static int refuse_option(const struct cli_command* c, const struct parser* p,
                         const struct cli_option* options, const char* word) {
  const struct cli_option* o = find_row(p, options, optopt);
  char name[MAX_WORD];
  if (o || optopt == HELP_VALUE)
    return cli_misuse(c->name, "--%s takes no value", o ? o->name : "help");
  if (optopt) return cli_misuse(c->name, "unknown option '-%c'", optopt);
  snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
  int matches = 0;
  for (int i = 0; i <= p->n; i++) matches += !strncmp(p->names[i], name, strlen(name));
  if (matches > 1) return cli_misuse(c->name, "option '--%s' is ambiguous", name);
  const char* near = cli_nearest(name, p->names, (size_t)p->n + 1);
  if (near) return cli_misuse(c->name, "unknown option '--%s'; did you mean '--%s'?", name, near);
  return cli_misuse(c->name, "unknown option '--%s'", name);
}

int cli_parse(const struct cli_command* c, const struct cli_option* options, int argc, char** argv,
              int* first, bool* done) {
  struct parser p;
  int value, rc;
  build_parser(&p, options);
  opterr = 0;
  while ((value = getopt_long(argc, argv, p.shorts, p.longs, NULL)) != -1) {
    const struct cli_option* o = find_row(&p, options, value == ':' ? optopt : value);
    if (value == 'h' || value == HELP_VALUE) {
      *done = true;
      return print_command_help(c, options);
    }
    if (value == '?') return refuse_option(c, &p, options, argv[optind - 1]);
    if (value == ':') return cli_misuse(c->name, "--%s needs a value", o->name);
    if ((rc = store(c, o, optarg))) return rc;
  }
  *first = optind;
  return CLI_OK;
}

int cli_check_operands(const struct cli_command* c, int argc, char** argv, int first, int most) {
  if (argc - first <= most) return CLI_OK;
  return cli_misuse(c->name, "unexpected argument '%s'; a text with spaces needs quotes",
                    argv[first + most]);
}
