/* Reading JSON files with cJSON, made safe for small stacks. */
#ifndef LM_JSON_H
#define LM_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

/* Parse a file of at most 512 MB; *out is owned by the caller (cJSON_Delete). Errors: RP_ERR_IO,
 * RP_ERR_FORMAT naming the file and the byte offset; nesting deeper than 64 is refused, because
 * cJSON recurses. */
int lm_json_read(cJSON** out, const char* path);

/* The same from memory; `name` is for messages. */
int lm_json_parse(cJSON** out, const char* text, size_t n, const char* name);

/* A member of an object, or NULL if it is absent, null, or `object` is NULL or no object. */
const cJSON* lm_json_get(const cJSON* object, const char* key);
const char* lm_json_string(const cJSON* object, const char* key); /* NULL unless a string */
bool lm_json_bool(const cJSON* object, const char* key, bool otherwise);

/* A whole number that fits; false, *out unchanged, for anything else. */
bool lm_json_int(const cJSON* item, int64_t min, int64_t max, int64_t* out);

#endif
