/* Lists of texts, for the functions that return them. */
#ifndef RPI_API_VECTOR_STRING_H
#define RPI_API_VECTOR_STRING_H

#include "api/handle.h"
#include "api/text.h"

/* Memory for `n` texts that rpi_texts_set or rpi_texts_drop take; NULL after raising. */
struct text** rpi_texts_new(int64_t n);
/* Make *res the list of the texts; `at` and the references are taken, also on failure. */
int rpi_texts_set(mlx_vector_string* res, struct text** at, int64_t n);
/* A snapshot of a list, with references. */
int rpi_texts_get(struct text*** at, int64_t* n, mlx_vector_string v, const char* name);
void rpi_texts_drop(struct text** at, int64_t n);

#endif
