/* The `reprise` command: picks a subcommand; each has a file of its own. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "mlx/c/error.h"
#include "mlx/c/version.h"

static const struct cli_command* const commands[] = {&cli_generate, &cli_fetch, &cli_models,
                                                     &cli_inspect, &cli_bench};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int print_help(void) {
  cli_print("Run language models natively on the CPU.\n\nusage: reprise COMMAND [OPTION...]\n\n");
  for (int i = 0; i < COMMANDS; i++)
    cli_print("  %-10s%s\n", commands[i]->name, commands[i]->summary);
  cli_print(
      "\n  --help     this text; `reprise COMMAND --help` explains a command\n"
      "  --version  the version of the command and of the interface it is built on\n\n"
      "A first try:\n  reprise fetch smollm2-135m-instruct\n"
      "  reprise generate \"Tell me a joke\"\n");
  return cli_flush();
}

static int print_version(void) {
  mlx_string v = mlx_string_new();
  int rc = mlx_version(&v);
  cli_print("reprise %s (mlx-c interface %s)\n", CLI_VERSION, rc ? "unknown" : mlx_string_data(v));
  mlx_string_free(v);
  return cli_flush();
}

static int refuse_command(const char* word) {
  const char* names[COMMANDS];
  for (int i = 0; i < COMMANDS; i++) names[i] = commands[i]->name;
  const char* near = cli_nearest(word, names, COMMANDS);
  const char* what = word[0] == '-' ? "option" : "command";
  if (near) return cli_misuse(NULL, "unknown %s '%s'; did you mean '%s'?", what, word, near);
  return cli_misuse(NULL, "unknown %s '%s'", what, word);
}

/* The library's own reports: the command tells an error itself, once. */
static void stay_silent(const char* message, void* data) {
  (void)message;
  (void)data;
}

/* A descriptor that the caller closed would be given to the first file opened, a model say, and then
 * be written to. /dev/null for reading makes writes fail instead. */
static void occupy_standard_descriptors(void) {
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY) < 0) return;
}

int main(int argc, char** argv) {
  occupy_standard_descriptors();
  signal(SIGPIPE, SIG_IGN); /* a reader that went away is a failed write, told like others */
  mlx_set_error_handler(stay_silent, NULL, NULL);
  if (argc < 2) return cli_misuse(NULL, "no command given");
  const char* word = argv[1];
  if (!strcmp(word, "--help") || !strcmp(word, "-h")) return print_help();
  if (!strcmp(word, "--version")) return print_version();
  for (int i = 0; i < COMMANDS; i++)
    if (!strcmp(word, commands[i]->name)) return commands[i]->run(argc - 1, argv + 1);
  if (strcmp(word, "help")) return refuse_command(word);
  for (int i = 0; i < COMMANDS && argc > 2; i++)
    if (!strcmp(argv[2], commands[i]->name))
      return commands[i]->run(2, (char*[]){argv[2], (char*)"--help", NULL});
  return argc > 2 ? refuse_command(argv[2]) : print_help();
}
