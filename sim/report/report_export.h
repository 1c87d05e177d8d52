/*
 * report/report_export.h: a table of the database as CSV or JSON, row by row.
 *
 * CSV is RFC 4180: a line of names, lines end in CR LF, NULL is empty and the empty text "". What
 * it has no place for, units and meanings, is a second file as "CSV on the Web" defines it (W3C,
 * "Metadata Vocabulary for Tabular Data", 2015), beside the first as NAME-metadata.json.
 *
 * JSON: {schema_version, table, columns: [{name, unit, help}], rows: [{name: value}]}.
 */
#ifndef FSDPSIM_REPORT_REPORT_EXPORT_H
#define FSDPSIM_REPORT_REPORT_EXPORT_H

#include <stdio.h>

#include "store/store_export.h"

MUST_CHECK enum status report_export_csv(struct store_rows *rows, FILE *file, struct diag *diag);
MUST_CHECK enum status report_export_json(struct store_rows *rows, const char *table, FILE *file,
                                          struct diag *diag);
/* `url`: the CSV's name as seen from where this file stands. */
void report_export_metadata(const struct store_rows *rows, const char *url, FILE *file);

#endif
