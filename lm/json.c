/* JSON files. cJSON parses by recursion, up to 1000 levels; a look ahead refuses deep nesting
 * before it starts, so that a host may call on a 128 KB stack. */
#include "lm/json.h"

#include <math.h>
#include <string.h>

#include "lm/err.h"
#include "lm/text.h"

enum { NESTING_MAX = 64 };
static const size_t FILE_MAX = (size_t)512 << 20;

/* Offset of the bracket that nests too deep, or n. */
static size_t find_deep(const char* s, size_t n) {
  int depth = 0;
  bool in_string = false;

  for (size_t i = 0; i < n; i++) {
    char c = s[i];
    if (in_string) {
      if (c == '\\')
        i++;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > NESTING_MAX) return i;
    } else if (c == '}' || c == ']') {
      depth--;
    }
  }
  return n;
}

int lm_json_parse(cJSON** out, const char* text, size_t n, const char* name) {
  size_t deep = find_deep(text, n);
  if (deep < n)
    return lm_fail(RP_ERR_FORMAT, "[json] %s nests deeper than %d at byte %zu.", name, NESTING_MAX,
                   deep);

  const char* end = NULL;
  cJSON* root = cJSON_ParseWithLengthOpts(text, n, &end, 0);
  if (!root)
    return lm_fail(RP_ERR_FORMAT, "[json] %s is not JSON (byte %zu), or memory ran out.", name,
                   end ? (size_t)(end - text) : n);
  *out = root;
  return 0;
}

int lm_json_read(cJSON** out, const char* path) {
  struct lm_text file = {0};
  int err = lm_text_read_file(&file, path, FILE_MAX);

  if (!err) err = lm_json_parse(out, file.data, file.len, path);
  lm_text_free(&file);
  return err;
}

const cJSON* lm_json_get(const cJSON* object, const char* key) {
  const cJSON* item = cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
  return cJSON_IsNull(item) ? NULL : item;
}

const char* lm_json_string(const cJSON* object, const char* key) {
  const cJSON* item = lm_json_get(object, key);
  return cJSON_IsString(item) ? item->valuestring : NULL;
}

bool lm_json_bool(const cJSON* object, const char* key, bool otherwise) {
  const cJSON* item = lm_json_get(object, key);
  return cJSON_IsBool(item) ? cJSON_IsTrue(item) : otherwise;
}

bool lm_json_int(const cJSON* item, int64_t min, int64_t max, int64_t* out) {
  if (!cJSON_IsNumber(item)) return false;
  double v = item->valuedouble;
  if (!(v >= (double)min && v <= (double)max) || v != floor(v)) return false;
  *out = (int64_t)v;
  return true;
}
