/*
 * report/report_table_private.h: a plain text table: cells are collected, then columns are aligned.
 *
 *   Time
 *     step time        1.234 s      2.385 s
 *     compute          1.100 s      1.100 s
 *
 * The first `left_count` columns are aligned left, the others right; two spaces between columns. A
 * cell is measured in characters (UTF-8), not bytes.
 */
#ifndef FSDPSIM_REPORT_REPORT_TABLE_PRIVATE_H
#define FSDPSIM_REPORT_REPORT_TABLE_PRIVATE_H

#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/status.h"

struct table_line {
    const char **cells; /* NULL: `text` stands alone, over all columns */
    const char *text;
    int32_t cell_count;
};

struct table {
    struct arena arena;
    int32_t column_count, left_count;
    struct table_line *items;
    int32_t count, capacity;
};

void table_init(struct table *table, int32_t column_count, int32_t left_count);
void table_release(struct table *table);
/* A line over all columns that does not widen them; "" is an empty line. */
void table_text(struct table *table, const char *text);
void table_row(struct table *table);
/* The next cell of the last row. */
void table_cell(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);
void table_write(const struct table *table, FILE *file);
/* The same, of rows alone (the first one names the columns), as Markdown. */
void table_write_markdown(const struct table *table, FILE *file);

int32_t text_width(const char *text); /* in characters */

#endif
