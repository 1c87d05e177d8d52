/* report/report_page.c: see report_page_private.h. */
#include "report/report_page_private.h"

#include <math.h>

void page_begin(struct page *page, int32_t columns, int32_t left_columns)
{
    page->columns = columns;
    page->left_columns = left_columns;
    table_init(&page->table, columns, left_columns);
}

static void write_markdown_line(const struct page *page, const char *const *cells)
{
    for (int32_t c = 0; c < page->columns; c++) {
        fputs(c == 0 ? "| " : " | ", page->file);
        for (const char *at = cells[c]; *at != '\0'; at++)
            fprintf(page->file, *at == '|' ? "\\%c" : "%c", *at);
    }
    fputs(" |\n", page->file);
}

/* Markdown: | a | b |, with the rule below the first line. */
static void write_markdown(const struct page *page)
{
    for (int32_t k = 0; k < page->table.count; k++) {
        write_markdown_line(page, page->table.items[k].cells);
        if (k > 0)
            continue;
        for (int32_t c = 0; c < page->columns; c++)
            fputs(c < page->left_columns ? "| --- " : "| ---: ", page->file);
        fputs("|\n", page->file);
    }
}

void page_end(struct page *page)
{
    if (page->is_markdown)
        write_markdown(page);
    else
        table_write(&page->table, page->file);
    table_release(&page->table);
    fputc('\n', page->file);
}

void page_heading(const struct page *page, const char *text)
{
    fprintf(page->file, page->is_markdown ? "## %s\n\n" : "%s\n", text);
}

void page_percent(struct page *page, double value, bool has_sign)
{
    if (isnan(value))
        table_cell(&page->table, "-");
    else if (has_sign)
        table_cell(&page->table, "%+.1f %%", 100.0 * value);
    else
        table_cell(&page->table, "%.1f %%", 100.0 * value);
}

/* A name cut to what a terminal has room for; whole in Markdown. */
void page_name(struct page *page, const char *name)
{
    enum { MAX_WIDTH = 56 };
    if (name[0] == '\0')
        table_cell(&page->table, "(not stated)");
    else if (page->is_markdown || text_width(name) <= MAX_WIDTH)
        table_cell(&page->table, "%s", name);
    else
        table_cell(&page->table, "%.*s...", MAX_WIDTH - 3, name);
}

void page_points(struct page *page, double value, bool has_sign)
{
    if (isnan(value))
        table_cell(&page->table, "-");
    else
        table_cell(&page->table, has_sign ? "%+.1f" : "%.1f", 100.0 * value);
}
