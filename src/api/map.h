/* What the interface's map handles point to: a map from text to counted pointers. */
#ifndef RPI_API_MAP_H
#define RPI_API_MAP_H

#include "api/handle.h"
#include "api/text.h"
#include "base/map.h"

struct map_handle {
  struct lock lock;
  struct rpi_map map; /* values: struct array* or struct text*, one reference each */
};

/* Empty maps; NULL after raising. */
struct map_handle* rpi_map_handle_new(void);

/* Set a key to a value, whose reference is taken, also on failure; NULL passes a failure on. */
int rpi_array_map_put(struct map_handle* m, const char* key, struct array* a);
int rpi_text_map_put(struct map_handle* m, const char* key, struct text* t);

/* A private copy of the entries of a map; NULL after raising. */
struct map_handle* rpi_array_map_copy(mlx_map_string_to_array m);
struct map_handle* rpi_text_map_copy(mlx_map_string_to_string m);

/* Make *res hold the contents of `m`, which is used up; NULL contents are allowed for free. */
void rpi_array_map_move(mlx_map_string_to_array* res, struct map_handle* m);
void rpi_text_map_move(mlx_map_string_to_string* res, struct map_handle* m);
void rpi_array_map_free(struct map_handle* m);
void rpi_text_map_free(struct map_handle* m);

#endif
