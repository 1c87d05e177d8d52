/*
 * report/report_torchtitan_log.h: a torchtitan log beside the run that was simulated for it.
 *
 *                            measured    predicted     error
 *   step time                 2.843 s      2.963 s    +4.2 %
 *   tokens/s/GPU                5,762        5,529    -4.0 %
 *   MFU (torchtitan)           33.7 %       32.3 %   -1.4 points
 *   memory, reserved        82.40 GiB    81.36 GiB    -1.3 %
 */
#ifndef FSDPSIM_REPORT_REPORT_TORCHTITAN_LOG_H
#define FSDPSIM_REPORT_REPORT_TORCHTITAN_LOG_H

#include <stdio.h>

#include "run/outcome.h"
#include "study/beside.h"
#include "study/torchtitan_log.h"

struct log_comparison {
    const char *log_name;
    const struct torchtitan_log *log;
    const struct outcome *outcome;
    const struct interval *interval;
};

void report_torchtitan_log(const struct log_comparison *comparison, FILE *file);
void report_torchtitan_log_json(const struct log_comparison *comparison, FILE *file);

#endif
