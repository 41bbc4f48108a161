/* A strict JSON tokenizer (RFC 8259) for file headers. It allocates nothing and never recurses.
 *
 * Strings are checked as they are met: valid UTF-8, valid escapes, paired surrogates. Numbers
 * follow the grammar. Errors are RP_ERR_FORMAT with the file's name and the byte offset. */
#ifndef RPI_IO_JSON_H
#define RPI_IO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rpi_json_kind {
  RPI_JSON_END = 0,
  RPI_JSON_STRING = 's',
  RPI_JSON_NUMBER = 'n',
  RPI_JSON_WORD = 'w', /* true, false, null */
  /* { } [ ] : , stand for themselves */
};

struct rpi_json {
  const char* op;
  const char* file;
  const char* text;
  size_t n, at;
  size_t base; /* offset of text in the file, for messages */
};

struct rpi_json_token {
  int kind;
  size_t at, n; /* in text; of strings, without the quotes and still escaped */
};

int rpi_json_next(struct rpi_json* j, struct rpi_json_token* t);

/* The next token, which must be of that kind; `what` names what was expected, for the message. */
int rpi_json_expect(struct rpi_json* j, struct rpi_json_token* t, int kind, const char* what);

/* Step over the rest of the value that begins with `t`; at most 64 levels deep. */
int rpi_json_skip(struct rpi_json* j, const struct rpi_json_token* t);

/* Unescape a string token into out (room for t->n bytes); returns the bytes written. Not
 * terminated. */
size_t rpi_json_unescape(const struct rpi_json* j, const struct rpi_json_token* t, char* out);

/* A number token as a count: digits only, at most INT64_MAX. False otherwise. */
bool rpi_json_count(const struct rpi_json* j, const struct rpi_json_token* t, int64_t* out);

/* No overlong forms, surrogates, or code points above U+10FFFF. */
bool rpi_utf8_is_valid(const char* s, size_t n);

#endif
