/*
 * report/report_validate.h: predictions beside measurements, for people, machines and the accuracy
 * page.
 *
 * Text: coverage, the predicate of scope with what each reason leaves out, scores, scores by
 * source, GPU and regime, and the worst rows. `limit`: rows shown, 0: all. JSON: the same in SI
 * units, every row included.
 */
#ifndef FSDPSIM_REPORT_REPORT_VALIDATE_H
#define FSDPSIM_REPORT_REPORT_VALIDATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "study/validate.h"

/* The rule that decides which rows count, in words. */
extern const char *const validate_predicate[]; /* NULL-ended lines */

void report_validation(const struct validation *validation, int64_t limit, bool has_settings,
                       FILE *file);
void report_validation_json(const struct validation *validation, FILE *file);
/* `picture`: the file name of a scatter beside the page, or NULL. */
void report_validation_markdown(const struct validation *validation, int64_t limit,
                                const char *picture, FILE *file);

#endif
