/* Evaluation: from lazy arrays to values. */
#ifndef RPI_EXEC_EVAL_H
#define RPI_EXEC_EVAL_H

#include "core/array.h"

/* Give every root a value. An evaluation claims all nodes it needs before it runs any; where another
 * thread has claimed one of them it waits, holding nothing. On failure the graph stays as it was and the
 * error is raised; an array whose memory had already been taken over is lost, and says so later. */
int rpi_eval(struct array* const* roots, int n);

/* Start the same in a library thread and return; a later rpi_eval of the arrays waits for it and reports
 * its errors. Falls back to evaluating here where no thread can be had. */
int rpi_eval_async(struct array* const* roots, int n);
/* Wait until everything handed to rpi_eval_async so far is done. */
void rpi_eval_wait(void);

#endif
