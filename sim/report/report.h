/*
 * report/report.h: tables and JSON for people and machines, from an outcome.
 */
#ifndef FSDPSIM_REPORT_REPORT_H
#define FSDPSIM_REPORT_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "run/outcome.h"

/*
 * The human summary of one or several runs side by side (one column each): step time, tokens/s/GPU,
 * MFU, compute / exposed / idle, exposed fraction, memory peaks with their composition, whether it
 * fits, what bounds it; warnings below.
 */
void report_summary(const struct outcome *const *outcomes, int32_t count, FILE *file);

/* Units, collectives and links of one run, as tables (`run --units`, `db show`). */
void report_units(const struct outcome *outcome, int32_t top, FILE *file);
void report_collectives(const struct outcome *outcome, FILE *file);
void report_links(const struct outcome *outcome, FILE *file);

/* One JSON object with schema_version; keys in the order of outcome_metrics; no clock, path or id.
 */
void report_json(const struct outcome *outcome, FILE *file);
struct why;    /* report_why.h */
struct beside; /* study/beside.h */
/* The same, with the N slowest units only, slowest first (0: all, as the program has them), and
   with `beside` and `why` where they are not NULL. */
void report_json_of(const struct outcome *outcome, int32_t top, const struct beside *beside,
                    const struct why *why, FILE *file);
struct json_writer;
/* The key "samples" with the intervals; nothing where there are none. */
void report_json_samples(struct json_writer *json, const struct outcome *outcome);
/* The units by what they add to the step, the largest first: forward, backward, exposed. */
void report_sort_units(struct outcome_unit *units, int32_t count);

#endif
