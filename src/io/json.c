/* JSON tokens: see json.h. */
#include "io/json.h"

#include <string.h>

#include "base/err.h"

enum { MAX_DEPTH = 64 };

static int refuse(const struct rpi_json* j, size_t at, const char* what) {
  return rpi_fail(RP_ERR_FORMAT, "[%s] %s: %s (at byte %zu).", j->op, j->file, what, j->base + at);
}

/* Length of the UTF-8 sequence at s, or 0 when it is not valid. */
static size_t sequence_length(const unsigned char* s, size_t n) {
  static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t len = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;

  if (len <= 1) return len;
  if (len > n) return 0;
  uint32_t c = s[0] & (0x7f >> len);
  for (size_t i = 1; i < len; i++) {
    if (s[i] >> 6 != 2) return 0;
    c = c << 6 | (s[i] & 63);
  }
  return c < smallest[len] || c > 0x10ffff || c >> 11 == 0x1b ? 0 : len;
}

bool rpi_utf8_is_valid(const char* s, size_t n) {
  for (size_t i = 0, len; i < n; i += len) {
    len = sequence_length((const unsigned char*)s + i, n - i);
    if (len == 0) return false;
  }
  return true;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 32;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hex digits at text[at], or -1. */
static int hex4(const struct rpi_json* j, size_t at) {
  int v = 0;

  if (j->n - at < 4) return -1;
  for (size_t i = 0; i < 4; i++) {
    int d = hex_digit(j->text[at + i]);
    if (d < 0) return -1;
    v = v * 16 + d;
  }
  return v;
}

/* Bytes of the escape at text[at] (its backslash), or 0 when it is not valid. */
static size_t escape_length(const struct rpi_json* j, size_t at) {
  if (j->n - at < 2) return 0;
  if (j->text[at + 1] != 'u')
    return j->text[at + 1] && strchr("\"\\/bfnrt", j->text[at + 1]) ? 2 : 0;

  int v = hex4(j, at + 2);
  if (v < 0 || v >> 10 == 0x37) return 0; /* a low surrogate first */
  if (v >> 10 != 0x36) return 6;
  if (j->n - at < 12 || j->text[at + 6] != '\\' || j->text[at + 7] != 'u') return 0;
  v = hex4(j, at + 8);
  return v >= 0 && v >> 10 == 0x37 ? 12 : 0;
}

/* From just after the opening quote. */
static int scan_string(struct rpi_json* j, struct rpi_json_token* t) {
  *t = (struct rpi_json_token){RPI_JSON_STRING, j->at, 0};
  while (j->at < j->n && j->text[j->at] != '"') {
    const unsigned char* s = (const unsigned char*)j->text + j->at;
    size_t len = *s == '\\' ? escape_length(j, j->at) : sequence_length(s, j->n - j->at);

    if (*s < 32) return refuse(j, j->at, "a control character in a JSON string");
    if (len == 0)
      return refuse(j, j->at,
                    *s == '\\' ? "a bad escape in a JSON string" : "a JSON string is not UTF-8");
    j->at += len;
  }
  if (j->at == j->n) return refuse(j, t->at - 1, "a JSON string has no end");
  t->n = j->at++ - t->at;
  return 0;
}

static size_t scan_digits(struct rpi_json* j) {
  size_t start = j->at;

  while (j->at < j->n && j->text[j->at] >= '0' && j->text[j->at] <= '9') j->at++;
  return j->at - start;
}

static bool eat(struct rpi_json* j, const char* any) {
  if (j->at == j->n || !j->text[j->at] || !strchr(any, j->text[j->at])) return false;
  j->at++;
  return true;
}

static int scan_number(struct rpi_json* j, struct rpi_json_token* t) {
  size_t start = j->at;

  eat(j, "-");
  bool is_zero = j->at < j->n && j->text[j->at] == '0';
  size_t digits = scan_digits(j);
  bool is_good = digits > 0 && !(is_zero && digits > 1);
  if (is_good && eat(j, ".")) is_good = scan_digits(j) > 0;
  if (is_good && eat(j, "eE")) {
    eat(j, "+-");
    is_good = scan_digits(j) > 0;
  }
  if (!is_good) return refuse(j, start, "a malformed JSON number");
  *t = (struct rpi_json_token){RPI_JSON_NUMBER, start, j->at - start};
  return 0;
}

static int scan_word(struct rpi_json* j, struct rpi_json_token* t) {
  static const char* const words[] = {"true", "false", "null"};

  for (int i = 0; i < 3; i++) {
    size_t n = strlen(words[i]);
    if (j->n - j->at >= n && memcmp(j->text + j->at, words[i], n) == 0) {
      *t = (struct rpi_json_token){RPI_JSON_WORD, j->at, n};
      j->at += n;
      return 0;
    }
  }
  return refuse(j, j->at, "not JSON");
}

int rpi_json_next(struct rpi_json* j, struct rpi_json_token* t) {
  while (eat(j, " \t\r\n")) continue;
  if (j->at == j->n) {
    *t = (struct rpi_json_token){RPI_JSON_END, j->at, 0};
    return 0;
  }
  char c = j->text[j->at];
  if (c == '"') {
    j->at++;
    return scan_string(j, t);
  }
  if (c == '-' || (c >= '0' && c <= '9')) return scan_number(j, t);
  if (c && strchr("{}[]:,", c)) {
    *t = (struct rpi_json_token){c, j->at++, 1};
    return 0;
  }
  return scan_word(j, t);
}

int rpi_json_expect(struct rpi_json* j, struct rpi_json_token* t, int kind, const char* what) {
  int code = rpi_json_next(j, t);

  if (code || t->kind == kind) return code;
  return rpi_fail(RP_ERR_FORMAT, "[%s] %s: expected %s (at byte %zu).", j->op, j->file, what,
                  j->base + t->at);
}

/* A key and its colon. */
static int skip_key(struct rpi_json* j, struct rpi_json_token* t) {
  if (t->kind != RPI_JSON_STRING) return refuse(j, t->at, "expected a JSON key");
  return rpi_json_expect(j, t, ':', "':'");
}

/* Read up to the first token of the next value, closing what ends before it; *depth is 0 when the
 * outermost value is complete. `closers` holds the closing bracket of each open level. */
static int skip_to_value(struct rpi_json* j, struct rpi_json_token* t, const char* closers,
                         int* depth) {
  int code;

  while (*depth > 0) {
    if ((code = rpi_json_next(j, t))) return code;
    if (t->kind == closers[*depth - 1]) {
      --*depth;
      continue;
    }
    if (t->kind != ',') return refuse(j, t->at, "expected ',' or a closing bracket");
    if ((code = rpi_json_next(j, t))) return code;
    if (closers[*depth - 1] == '}' && ((code = skip_key(j, t)) || (code = rpi_json_next(j, t))))
      return code;
    return 0;
  }
  return 0;
}

int rpi_json_skip(struct rpi_json* j, const struct rpi_json_token* first) {
  char closers[MAX_DEPTH];
  struct rpi_json_token t = *first;
  int depth = 0, code;

  do {
    if (t.kind == '{' || t.kind == '[') {
      if (depth == MAX_DEPTH) return refuse(j, t.at, "JSON nested more than 64 deep");
      closers[depth++] = t.kind == '{' ? '}' : ']';
      if ((code = rpi_json_next(j, &t))) return code;
      if (t.kind == closers[depth - 1]) {
        depth--; /* empty */
      } else {
        if (closers[depth - 1] == '}' &&
            ((code = skip_key(j, &t)) || (code = rpi_json_next(j, &t))))
          return code;
        continue; /* t begins the first item */
      }
    } else if (t.kind != RPI_JSON_STRING && t.kind != RPI_JSON_NUMBER && t.kind != RPI_JSON_WORD) {
      return refuse(j, t.at, "expected a JSON value");
    }
    if ((code = skip_to_value(j, &t, closers, &depth))) return code;
  } while (depth > 0);
  return 0;
}

static size_t put_utf8(char* out, uint32_t c) {
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = n; i-- > 1; c >>= 6) out[i] = (char)(0x80 | (c & 63));
  out[0] = (char)((0xf00u >> n & 0xff) | c);
  return n;
}

/* The escape at text[at], already checked; returns its bytes in the text. */
static size_t put_escape(const struct rpi_json* j, size_t at, char* out, size_t* written) {
  static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
  char c = j->text[at + 1];

  if (c != 'u') {
    const char* p = strchr(from, c);
    out[0] = p ? to[p - from] : c;
    *written = 1;
    return 2;
  }
  uint32_t v = (uint32_t)hex4(j, at + 2);
  if (v >> 10 != 0x36) {
    *written = put_utf8(out, v);
    return 6;
  }
  *written = put_utf8(out, 0x10000 + ((v & 1023) << 10) + ((uint32_t)hex4(j, at + 8) & 1023));
  return 12;
}

size_t rpi_json_unescape(const struct rpi_json* j, const struct rpi_json_token* t, char* out) {
  size_t n = 0;

  for (size_t i = t->at; i < t->at + t->n;) {
    if (j->text[i] == '\\') {
      size_t written;
      i += put_escape(j, i, out + n, &written);
      n += written;
    } else {
      out[n++] = j->text[i++];
    }
  }
  return n;
}

bool rpi_json_count(const struct rpi_json* j, const struct rpi_json_token* t, int64_t* out) {
  int64_t v = 0;

  if (t->kind != RPI_JSON_NUMBER) return false;
  for (size_t i = t->at; i < t->at + t->n; i++) {
    char c = j->text[i];
    if (c < '0' || c > '9' || rpi_mul_overflows(v, 10, &v) || rpi_add_overflows(v, c - '0', &v))
      return false;
  }
  *out = v;
  return true;
}
