/*
 * report/report_causes.h: what stands behind the rows whose step time is far off.
 *
 *   the network is not stated: YA-007, YA-001 (-27.3 to -23.1 %)
 *   not known; tried: jitter between ranks: IE-031 (+16.0 %)
 */
#ifndef FSDPSIM_REPORT_REPORT_CAUSES_H
#define FSDPSIM_REPORT_REPORT_CAUSES_H

#include <stdbool.h>
#include <stdio.h>

#include "study/validate_causes.h"

void report_causes(const struct validate_causes *causes, bool is_markdown, FILE *file);

#endif
