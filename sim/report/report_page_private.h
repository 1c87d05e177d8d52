/*
 * report/report_page_private.h: tables of one content, as aligned text or as Markdown.
 *
 *   page_begin(&page, 2, 1);            | reason | rows |
 *   table_row, table_cell ...           | --- | ---: |
 *   page_end(&page);                    | no GPU stated | 3 |
 *
 * Markdown: the first row is the header; '|' in a cell is escaped.
 */
#ifndef FSDPSIM_REPORT_REPORT_PAGE_PRIVATE_H
#define FSDPSIM_REPORT_REPORT_PAGE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "report/report_table_private.h"

struct page {
    struct table table;
    FILE *file;
    bool is_markdown, has_header;
    int32_t columns, left_columns;
};

/* The first `left_columns` are aligned left. */
void page_begin(struct page *page, int32_t columns, int32_t left_columns);
void page_end(struct page *page);
void page_heading(const struct page *page, const char *text);
/* 0.123 → "12.3 %"; with a sign "+12.3 %"; NaN "-". */
void page_percent(struct page *page, double value, bool has_sign);
/* The same without the unit. */
void page_points(struct page *page, double value, bool has_sign);
/* A name cut to what a terminal has room for; whole in Markdown. */
void page_name(struct page *page, const char *name);

#endif
