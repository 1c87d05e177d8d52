/*
 * config/csv_table.h: CSV text → a table of cells that remember where they were written.
 *
 * RFC 4180 with a header row: cells split by commas; a cell in double quotes may hold commas, line
 * breaks and doubled quotes; LF or CRLF; empty lines are skipped. All rows have as many cells as
 * the header. Refused, each with its place: a quote inside a bare cell, text after a closing quote,
 * a quote that is never closed, a row too short or too long, a column without a name or named
 * twice, bytes that are not UTF-8, texts over 16 MiB. Cells are texts: what they mean is decided by
 * who reads them. Spaces around a bare cell are not part of it.
 *
 *   gpu,n_gpus,notes            row 0, column 2 = a "b", c at FILE:2:9
 *   H100,8,"a ""b"", c"
 */
#ifndef FSDPSIM_CONFIG_CSV_TABLE_H
#define FSDPSIM_CONFIG_CSV_TABLE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/status.h"

struct csv_cell {
    const char *text; /* "" when empty */
    struct place place;
};

struct csv_row {
    struct csv_cell *items;
    int32_t count, capacity;
};

struct csv_table {
    struct csv_row header;
    struct {
        struct csv_row *items;
        int32_t count, capacity;
    } rows;
};

/* Parses `source->text`; the source and its text must live as long as the table. */
MUST_CHECK enum status csv_parse(struct arena *arena, const struct source *source,
                                 struct csv_table *table, struct diag *diag);
/* Reads and parses a file; `-` is standard input, in messages "<stdin>". */
MUST_CHECK enum status csv_load(struct arena *arena, const char *path, struct csv_table *table,
                                struct diag *diag);

/* Which column has this name, -1: none. */
int32_t csv_column(const struct csv_table *table, const char *name);
/* Which columns have these `count` names, into `columns`; of the first `required` each that is
 * absent is an error. */
MUST_CHECK enum status csv_columns(const struct csv_table *table, const char *const *names,
                                   int32_t count, int32_t required, int32_t *columns,
                                   struct diag *diag);

#endif
