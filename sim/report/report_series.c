/* report/report_series.c: see report_series.h. */
#include "report/report_series.h"

#include <inttypes.h>

#include "base/strbuf.h"
#include "report/report_page_private.h"

static void ratios_cell(struct page *page, const struct validate_series *series, bool is_measured)
{
    struct strbuf text = {0};
    for (int32_t k = 0; k < series->count; k++) {
        const struct series_point *point = &series->points[k];
        const double ratio = is_measured ? point->measured : point->predicted;
        strbuf_printf(&text, k == 0 ? "%.0f" : ratio < 10 ? ", %.2f" : ", %.1f", ratio);
    }
    table_cell(&page->table, "%s", text.text);
    strbuf_release(&text);
}

static void write_lines(struct page *page, const struct validate_series_list *list)
{
    static const char *const heads[] = {"series", "measured", "predicted", "signs"};
    page_begin(page, 4, 3);
    table_row(&page->table);
    for (size_t k = 0; k < sizeof(heads) / sizeof(heads[0]); k++)
        table_cell(&page->table, "%s", heads[k]);
    for (int32_t k = 0; k < list->count; k++) {
        const struct validate_series *series = &list->items[k];
        const struct validate_series_list one = {.items = list->items + k, .count = 1};
        int32_t right = 0, all = 0;
        validate_series_count(&one, &right, &all);
        table_row(&page->table);
        page_name(page, series->name);
        ratios_cell(page, series, true);
        ratios_cell(page, series, false);
        if (all > 0)
            table_cell(&page->table, "%" PRId32 " of %" PRId32, right, all);
        else
            table_cell(&page->table, "-");
    }
    page_end(page);
}

static void write_wrong(struct page *page, const struct validate_series_list *list)
{
    page_begin(page, 4, 2);
    table_row(&page->table);
    table_cell(&page->table, "wrong sign");
    table_cell(&page->table, "step");
    table_cell(&page->table, "measured");
    table_cell(&page->table, "predicted");
    for (int32_t k = 0; k < list->count; k++)
        for (int32_t p = 1; p < list->items[k].count; p++) {
            const struct series_point *to = &list->items[k].points[p], *from = to - 1;
            if (to->step != SERIES_WRONG)
                continue;
            table_row(&page->table);
            page_name(page, list->items[k].name);
            table_cell(&page->table, "%s to %s", from->row->label, to->row->label);
            page_percent(page, to->measured / from->measured - 1.0, true);
            page_percent(page, to->predicted / from->predicted - 1.0, true);
        }
    page_end(page);
}

void report_series(const struct validate_series_list *list, bool is_markdown, FILE *file)
{
    struct page page = {.file = file, .is_markdown = is_markdown};
    int32_t right = 0, all = 0;
    if (list->count == 0)
        return;
    validate_series_count(list, &right, &all);
    page_heading(&page, "Series: time of a token on a GPU (or memory) over the first run");
    fprintf(file,
            "%" PRId32 " of %" PRId32
            " measured steps of %.0f %% and more have the right sign.\n\n",
            right, all, 100.0 * series_noise);
    write_lines(&page, list);
    if (right < all)
        write_wrong(&page, list);
}
