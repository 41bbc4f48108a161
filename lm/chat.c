/* Recognising chat templates and rendering them.
 *
 * A template is brought to a canonical text: blocks with their white-space control applied, no
 * white space inside of a block outside of strings, single quotes, x.y as x['y'], and 'a' + 'b' of
 * literals joined. That text is then compared with the forms below, in which @ stands for the one
 * string literal that is the default system block. Recognised:
 *   1. ChatML: every message as <|im_start|>role\ncontent<|im_end|>\n.
 *   2. The same after a default system block, if the first message is not the system's (SmolLM2,
 *      Qwen 1.5 and 2).
 *   3. Qwen 2.5, of which the branches without tools are the same as 2.
 * All three may begin with "if not add_generation_prompt is defined". */
#include "lm/chat.h"

#include <stdlib.h>
#include <string.h>

#include "lm/err.h"

static const char START[] = "<|im_start|>", END[] = "<|im_end|>\n";

struct lm_chat {
  char* system; /* the default system block, or NULL */
  bool is_qwen; /* only the three roles without tools */
};

/* ---- canonical text ---- */

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* One character of a literal. A line feed and a bare quote get the escape that means the same. */
static int copy_char(struct lm_text* out, const char* s, size_t n) {
  if (n == 1 && *s == '\n') return lm_text_append_str(out, "\\n");
  if (n == 1 && *s == '\'') return lm_text_append_str(out, "\\'");
  return lm_text_append(out, s, n);
}

/* Copy a string literal that begins at s, in single quotes, its escapes as they are. */
static const char* copy_literal(struct lm_text* out, const char* s, int* err) {
  char quote = *s++;

  *err = lm_text_append(out, "'", 1);
  while (*s && *s != quote && !*err) {
    size_t n = *s == '\\' && s[1] ? 2 : 1;
    *err = copy_char(out, s, n);
    s += n;
  }
  if (!*err) *err = lm_text_append(out, "'", 1);
  return *s ? s + 1 : s;
}

/* Copy ".name" as "['name']". */
static const char* copy_member(struct lm_text* out, const char* s, int* err) {
  size_t n = 1;

  while (is_name(s[n])) n++;
  *err = lm_text_append_str(out, "['");
  if (!*err) *err = lm_text_append(out, s + 1, n - 1);
  if (!*err) *err = lm_text_append_str(out, "']");
  return s + n;
}

/* Copy the inside of a block, up to its closing mark, which `s` is left at. Words keep one space
 * between them, nothing else does. */
static const char* copy_code(struct lm_text* out, const char* s, int* err) {
  bool spaced = false;

  while (*s && !*err) {
    const char* mark = *s == '-' || *s == '+' ? s + 1 : s;
    if ((mark[0] == '%' || mark[0] == '}') && mark[1] == '}') break;
    if (is_space(*s)) {
      spaced = true;
      s++;
      continue;
    }
    if (spaced && is_name(*s) && out->len && is_name(out->data[out->len - 1]))
      *err = lm_text_append(out, " ", 1);
    spaced = false;
    if (*err) break;
    if (*s == '\'' || *s == '"')
      s = copy_literal(out, s, err);
    else if (*s == '.' && is_name(s[1]))
      s = copy_member(out, s, err);
    else
      *err = lm_text_append(out, s++, 1);
  }
  return s;
}

/* Remove white space from the end of the plain text that begins at `from`. */
static void trim_right(struct lm_text* t, size_t from) {
  size_t n = t->len;

  while (n > from && is_space(t->data[n - 1])) n--;
  t->len = n;
  if (t->data) t->data[n] = '\0';
}

/* The same for indentation only: it goes if it reaches back to the beginning of a line. */
static void trim_indent(struct lm_text* t, size_t from, bool from_is_line_start) {
  size_t n = t->len;

  while (n > from && is_space(t->data[n - 1]) && t->data[n - 1] != '\n') n--;
  if (n > from ? t->data[n - 1] != '\n' : !from_is_line_start) return;
  t->len = n;
  if (t->data) t->data[n] = '\0';
}

/* Skip what a block's end takes with it: all white space after '-', else one newline after a
 * statement or comment. */
static const char* skip_after(const char* s, bool is_dashed, char kind) {
  if (!is_dashed) return s + (kind != '{' && *s == '\n');
  while (is_space(*s)) s++;
  return s;
}

/* Copy the block at s in canonical form, a comment as nothing, and return what follows. */
static const char* copy_block(struct lm_text* out, const char* s, int* err) {
  char kind = s[1];
  bool is_dashed;

  s += 2 + (s[2] == '-' || s[2] == '+');
  if (kind == '#') {
    const char* end = strstr(s, "#}");
    s = end ? end : s + strlen(s);
    is_dashed = s[-1] == '-';
  } else {
    *err = lm_text_append_str(out, kind == '%' ? "{%" : "{{");
    if (!*err) s = copy_code(out, s, err);
    if (!*err && *s) *err = lm_text_append_str(out, kind == '%' ? "%}" : "}}");
    is_dashed = *s == '-';
    s += *s == '-' || *s == '+';
  }
  return *s ? skip_after(s + 2, is_dashed, kind) : s;
}

/* The canonical text of a template. Hugging Face renders with trim_blocks and lstrip_blocks. */
static int canonical(struct lm_text* out, const char* s) {
  const char* start = s;
  size_t text_from = 0; /* where the plain text since the last block begins */
  bool is_line_start = true;
  int err = lm_text_reserve(out, 0);

  while (*s && !err) {
    if (s[0] != '{' || (s[1] != '%' && s[1] != '{' && s[1] != '#')) {
      err = lm_text_append(out, s++, 1);
      continue;
    }
    if (s[2] == '-')
      trim_right(out, text_from);
    else if (s[1] != '{' && s[2] != '+')
      trim_indent(out, text_from, is_line_start);
    s = copy_block(out, s, &err);
    text_from = out->len;
    is_line_start = s > start && s[-1] == '\n';
  }
  return err;
}

/* Remove every "'+'" that joins two literals. Quotes inside of literals are escaped, so that a bare
 * one always begins or ends a literal. */
static void join_literals(struct lm_text* t) {
  size_t n = 0;
  bool in_string = false;

  for (size_t i = 0; i < t->len; i++) {
    if (in_string && t->data[i] == '\\' && i + 1 < t->len) {
      t->data[n++] = t->data[i++];
    } else if (t->data[i] == '\'') {
      if (in_string && strncmp(t->data + i, "'+'", 3) == 0) {
        i += 2;
        continue;
      }
      in_string = !in_string;
    }
    t->data[n++] = t->data[i];
  }
  t->len = n;
  if (t->data) t->data[n] = '\0';
}

/* ---- the forms ---- */

#define UNDEFINED \
  "{%if not add_generation_prompt is defined%}{%set add_generation_prompt=false%}{%endif%}"
#define LOOP "{%for message in messages%}"
#define DEFAULT "{%if loop['first']and messages[0]['role']!='system'%}{{'@'}}{%endif%}"
#define MESSAGE "{{'<|im_start|>'+message['role']+'\\n'+message['content']+'<|im_end|>\\n'}}"
#define PROMPT "{%if add_generation_prompt%}{{'<|im_start|>assistant\\n'}}{%endif%}"
#define PLAIN LOOP MESSAGE "{%endfor%}" PROMPT
#define WITH_DEFAULT LOOP DEFAULT MESSAGE "{%endfor%}" PROMPT

static const char* const forms[] = {PLAIN, WITH_DEFAULT};

/* Qwen 2.5 begins with the tools' branch; the parts that speak without tools are looked for. */
#define QWEN_SYSTEM                                                                              \
  "{%else%}{%if messages[0]['role']=='system'%}{{'<|im_start|>system\\n'+messages[0]['content']" \
  "+'<|im_end|>\\n'}}{%else%}{{'@'}}{%endif%}{%endif%}" LOOP
#define QWEN_MESSAGE                                                                   \
  "{%if(message['role']=='user')or(message['role']=='system'and not loop['first'])or(" \
  "message['role']=='assistant'and not message['tool_calls'])%}" MESSAGE "{%elif"

/* Does `text` begin with `form`? The literal that stands at @ goes to *literal. Returns what
 * follows, or NULL. */
static const char* match_form(const char* text, const char* form, const char** literal, size_t* n) {
  for (; *form; form++) {
    if (*form != '@') {
      if (*text++ != *form) return NULL;
      continue;
    }
    *literal = text;
    while (*text && *text != '\'') text += text[0] == '\\' && text[1] ? 2 : 1;
    *n = (size_t)(text - *literal);
  }
  return text;
}

/* What backslash and c mean: a character, -1 if that is for the reader to refuse, or 0 if the
 * backslash stays (as in Python, whose escapes are Jinja's). */
static int escape_value(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case '\\':
    case '\'':
    case '"':
      return c;
    default:
      return strchr("xuUN01234567abfv\n", c) ? -1 : 0;
  }
}

/* The text of a literal. */
static int unescape(struct lm_text* out, const char* s, size_t n) {
  int err = lm_text_reserve(out, n);

  for (size_t i = 0; i < n && !err; i++) {
    char c = s[i];
    int value = c == '\\' && i + 1 < n ? escape_value(s[i + 1]) : 0;
    if (value < 0)
      return lm_fail(RP_ERR_UNSUPPORTED,
                     "[chat] The escape '\\%c' in the chat template is not supported; use --raw.",
                     s[i + 1]);
    if (value) {
      c = (char)value;
      i++;
    }
    err = lm_text_append(out, &c, 1);
  }
  return err;
}

static bool is_qwen25(const char* text, const char** literal, size_t* n) {
  const char* head = strstr(text, "{%else%}{%if messages[0]['role']=='system'%}");
  size_t len = strlen(text), tail = strlen("{%endfor%}" PROMPT);

  if (strncmp(text, "{%if tools%}", 12) != 0 || !head || len < tail) return false;
  const char* loop = match_form(head, QWEN_SYSTEM, literal, n);
  return loop && strncmp(loop, QWEN_MESSAGE, strlen(QWEN_MESSAGE)) == 0 &&
         strcmp(text + len - tail, "{%endfor%}" PROMPT) == 0;
}

static bool recognise(const char* text, bool* is_qwen, const char** literal, size_t* n) {
  const char* rest = match_form(text, UNDEFINED, literal, n);

  if (rest) text = rest;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    *literal = NULL;
    rest = match_form(text, forms[i], literal, n);
    while (rest && is_space(*rest)) rest++; /* a newline at the end of the file is not rendered */
    if (rest && !*rest) return true;
  }
  *literal = NULL;
  *is_qwen = is_qwen25(text, literal, n);
  return *is_qwen;
}

int lm_chat_new(struct lm_chat** out, const char* jinja) {
  struct lm_text text = {0}, system = {0};
  struct lm_chat* c = NULL;
  const char* literal = NULL;
  size_t n = 0;
  bool is_qwen = false;

  if (!jinja)
    return lm_fail(RP_ERR_UNSUPPORTED, "[chat] The model has no chat template; use --raw.");
  int err = canonical(&text, jinja);
  if (err) goto done;
  join_literals(&text);
  if (!recognise(text.data, &is_qwen, &literal, &n)) {
    err = lm_fail(RP_ERR_UNSUPPORTED,
                  "[chat] The model's chat template is not of the ChatML family, which is all that "
                  "is supported; use --raw and write the turns yourself.");
    goto done;
  }
  if (literal) err = unescape(&system, literal, n);
  c = err ? NULL : calloc(1, sizeof *c);
  if (!err && !c) err = lm_fail_memory("a chat template", sizeof *c);
  if (!err) {
    *c = (struct lm_chat){literal ? system.data : NULL, is_qwen};
    if (literal) system = (struct lm_text){0};
    *out = c;
  }
done:
  lm_text_free(&text);
  lm_text_free(&system);
  return err;
}

void lm_chat_free(struct lm_chat* c) {
  if (!c) return;
  free(c->system);
  free(c);
}

const char* lm_chat_default_system(const struct lm_chat* c) { return c->system; }

/* ---- rendering ---- */

static int append_message(const struct lm_message* m, struct lm_text* out) {
  int err = lm_text_append_str(out, START);

  if (!err) err = lm_text_append_str(out, m->role);
  if (!err) err = lm_text_append(out, "\n", 1);
  if (!err) err = lm_text_append_str(out, m->content);
  return err ? err : lm_text_append_str(out, END);
}

static int check_message(const struct lm_chat* c, const struct lm_message* m, size_t i) {
  if (!m->role || !m->content)
    return lm_fail(RP_ERR_ARGUMENT, "[chat] Message %zu has no %s.", i,
                   m->role ? "content" : "role");
  if (c->is_qwen && strcmp(m->role, "system") != 0 && strcmp(m->role, "user") != 0 &&
      strcmp(m->role, "assistant") != 0)
    return lm_fail(
        RP_ERR_UNSUPPORTED,
        "[chat] Message %zu: the role '%.32s' is not supported for this template (system, "
        "user and assistant are).",
        i, m->role);
  return 0;
}

int lm_chat_render(const struct lm_chat* c, const struct lm_message* messages, size_t n,
                   bool add_generation_prompt, struct lm_text* out) {
  size_t start = out->len;
  int err = lm_text_reserve(out, 0);

  if (!err && c->is_qwen && !n)
    err = lm_fail(RP_ERR_ARGUMENT, "[chat] This template needs at least one message.");
  for (size_t i = 0; i < n && !err; i++) {
    err = check_message(c, &messages[i], i);
    if (!err && i == 0 && c->system && strcmp(messages[0].role, "system") != 0)
      err = lm_text_append_str(out, c->system);
    if (!err) err = append_message(&messages[i], out);
  }
  if (!err && add_generation_prompt) err = lm_text_append_str(out, "<|im_start|>assistant\n");
  if (err && out->data) {
    out->len = start;
    out->data[start] = '\0';
  }
  return err;
}
