/* A double as an element of any dtype. */
#ifndef RPI_OP_NUMBER_H
#define RPI_OP_NUMBER_H

/* Rounded once. Integers: cut towards zero; NaN gives 0, what is out of range the nearest end. */
void rpi_store_double(void* out, int dtype, double x);

#endif
