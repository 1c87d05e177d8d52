/*
 * report/report_series.h: the shape of series of measured runs, a line each.
 *
 *   series                               measured       predicted      signs
 *   eager, compiled, float8, ...         1 0.86 0.68    1 0.81 0.65    2 of 2
 *
 * Below: every step whose sign is wrong, with both changes.
 */
#ifndef FSDPSIM_REPORT_REPORT_SERIES_H
#define FSDPSIM_REPORT_REPORT_SERIES_H

#include <stdbool.h>
#include <stdio.h>

#include "study/validate_series.h"

void report_series(const struct validate_series_list *list, bool is_markdown, FILE *file);

#endif
