/*
 * cli/run_trace.h: `run --trace FILE`: one file a rank class. With one class it is FILE; with
 * several the class's lowest rank stands before the ending: trace.json.gz → trace.rank3.json.gz. A
 * name that ends in .gz is compressed.
 */
#ifndef FSDPSIM_CLI_RUN_TRACE_H
#define FSDPSIM_CLI_RUN_TRACE_H

#include "cli/command.h"

/* After building: what cannot be written. */
MUST_CHECK enum status run_trace_check(struct command *command,
                                       const struct experiment *experiment);
/* After playing. */
MUST_CHECK enum status run_trace_write(struct command *command, struct experiment *experiment);

#endif
