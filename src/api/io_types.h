/* Streams of the host and contents of GGUF files, for the functions that load and save. */
#ifndef RPI_API_IO_TYPES_H
#define RPI_API_IO_TYPES_H

#include "api/handle.h"
#include "api/text.h"
#include "io/sink.h"
#include "io/source.h"

/* Borrow a stream for one load or save: its functions are called by one thread at a time, so a
 * second use meanwhile is an error. Every successful begin needs its end. */
int rpi_reader_begin(struct rpi_source_reader* out, mlx_io_reader io, const char* name);
void rpi_reader_end(mlx_io_reader io);
int rpi_writer_begin(struct rpi_sink_writer* out, mlx_io_writer io, const char* name);
void rpi_writer_end(mlx_io_writer io);

/* What an mlx_io_gguf points to. */
struct contents;

struct contents* rpi_contents_new(void); /* NULL after raising */
void rpi_contents_free(struct contents* c);
/* Make *res hold `c`, which is taken. */
void rpi_contents_move(mlx_io_gguf* res, struct contents* c);
bool rpi_contents_has_array(struct contents* c, const char* key);

/* Set a key; what is given is taken, also on failure; NULL passes a failure on. */
int rpi_contents_put_array(struct contents* c, const char* key, struct array* a);
int rpi_contents_put_meta_array(struct contents* c, const char* key, struct array* a);
int rpi_contents_put_meta_text(struct contents* c, const char* key, struct text* t);
int rpi_contents_put_meta_texts(struct contents* c, const char* key, struct text** at, int64_t n);

#endif
