/*
 * report/report_causes.h: what stands behind the rows whose step time is far off.
 *
 *   a power cap whose value is not stated: AO-011, AO-009 (-45.3 to -32.5 %)
 *   not known; tried: jitter between ranks: IE-031 (+16.0 %)
 */
#ifndef FSDPSIM_REPORT_REPORT_CAUSES_H
#define FSDPSIM_REPORT_REPORT_CAUSES_H

#include <stdbool.h>
#include <stdio.h>

#include "study/validate_causes.h"

void report_causes(const struct validate_causes *causes, bool is_markdown, FILE *file);

#endif
