/*
 * report/report_comm_tables.h: errors of collective times by table and size; for people, the
 * accuracy page and machines.
 */
#ifndef FSDPSIM_REPORT_REPORT_COMM_TABLES_H
#define FSDPSIM_REPORT_REPORT_COMM_TABLES_H

#include <stdio.h>

#include "study/validate_collectives.h"

void report_comm_tables(const struct collective_validation *validation, FILE *file);
void report_comm_tables_markdown(const struct collective_validation *validation, FILE *file);
void report_comm_tables_json(const struct collective_validation *validation, FILE *file);

#endif
