/* report/report_kernels.c: see report_kernels.h. */
#include "report/report_kernels.h"

#include <math.h>

#include "report/json_writer.h"

static void write_end(const struct kernel_validation *validation, FILE *file)
{
    fprintf(file,
            "\nGoals, for cells of at least 30 kernels: GEMMs from 1 GFLOP median 5 %%, 90th "
            "percentile 15 %%;\nattention and memory-bound kernels median 10 %%. %d cells reach "
            "theirs, %d miss it, %d have too few\nkernels to tell (assumed), %d have none.\n",
            (int)validation->verdicts[KERNEL_REACHED], (int)validation->verdicts[KERNEL_MISSED],
            (int)validation->verdicts[KERNEL_ASSUMED], (int)validation->verdicts[KERNEL_NO_GOAL]);
    fprintf(
        file,
        "Scatter: 90th percentile of how far a measurement is from the median of its four "
        "neighbours in m in\nthe same table (same n and k, waves taken out): what the table says "
        "of itself.\n");
    for (int32_t i = 0; i < validation->skipped_count; i++)
        fprintf(file, "Skipped %lld kernels: %s\n", (long long)validation->skipped[i].rows,
                validation->skipped[i].reason);
}

/* Of a cell, as text; empty where it is not known. */
static const char *scatter_text(const struct kernel_cell *cell, char *text, size_t size)
{
    text[0] = '\0';
    if (!isnan(cell->scatter))
        snprintf(text, size, "%.1f %%", cell->scatter * 100);
    return text;
}

void report_kernels(const struct kernel_validation *validation, FILE *file)
{
    char scatter[32];
    fprintf(file, "%-30s %-30s %5s %8s %8s %8s %8s  %s\n", "GPU", "kernel", "n", "median", "p90",
            "bias", "scatter", "goal");
    for (int32_t i = 0; i < validation->cells.count; i++) {
        const struct kernel_cell *cell = &validation->cells.items[i];
        const struct validate_score *score = &cell->score;
        fprintf(file, "%-30s %-30s %5lld %6.1f %% %6.1f %% %+6.1f %% %8s  %s\n", cell->gpu,
                cell->what, (long long)score->n, score->median_abs_err * 100,
                score->p90_abs_err * 100, score->bias * 100,
                scatter_text(cell, scatter, sizeof(scatter)), kernel_verdict_name(cell->verdict));
    }
    write_end(validation, file);
}

void report_kernels_markdown(const struct kernel_validation *validation, FILE *file)
{
    char scatter[32];
    fprintf(file,
            "## Kernels\n\n%lld kernels that took no part in making the tables, predicted as a "
            "benchmark measures them\n(`fsdpsim validate kernels`); error = predicted / measured - "
            "1.\n\n"
            "| GPU | kernel | n | median | p90 | bias | scatter | goal |\n"
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |\n",
            (long long)validation->rows_used);
    for (int32_t i = 0; i < validation->cells.count; i++) {
        const struct kernel_cell *cell = &validation->cells.items[i];
        const struct validate_score *score = &cell->score;
        fprintf(file, "| %s | %s | %lld | %.1f %% | %.1f %% | %+.1f %% | %s | %s |\n", cell->gpu,
                cell->what, (long long)score->n, score->median_abs_err * 100,
                score->p90_abs_err * 100, score->bias * 100,
                scatter_text(cell, scatter, sizeof(scatter)), kernel_verdict_name(cell->verdict));
    }
    write_end(validation, file);
}

static void json_cell(struct json_writer *json, const struct kernel_cell *cell)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"median_abs_err", cell->score.median_abs_err},
                   {"p90_abs_err", cell->score.p90_abs_err},
                   {"bias", cell->score.bias},
                   {"within_10pct", cell->score.within_10pct},
                   {"within_15pct", cell->score.within_15pct},
                   {"median_goal", cell->median_goal},
                   {"p90_goal", cell->p90_goal},
                   {"p90_scatter", cell->scatter}};
    json_begin_object(json);
    json_key(json, "gpu");
    json_text(json, cell->gpu);
    json_key(json, "kernel");
    json_text(json, cell->what);
    json_key(json, "n");
    json_int(json, cell->score.n);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        json_key(json, numbers[i].key);
        json_double(json, numbers[i].value);
    }
    json_key(json, "goal");
    json_text(json, cell->verdict == KERNEL_NO_GOAL ? NULL : kernel_verdict_name(cell->verdict));
    json_end_object(json);
}

void report_kernels_json(const struct kernel_validation *validation, FILE *file)
{
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    json_key(&json, "schema_version");
    json_int(&json, 1);
    json_key(&json, "rows");
    json_int(&json, validation->rows);
    json_key(&json, "rows_used");
    json_int(&json, validation->rows_used);
    json_key(&json, "cells");
    json_begin_array(&json);
    for (int32_t i = 0; i < validation->cells.count; i++)
        json_cell(&json, &validation->cells.items[i]);
    json_end_array(&json);
    json_key(&json, "skipped");
    json_begin_array(&json);
    for (int32_t i = 0; i < validation->skipped_count; i++) {
        json_begin_object(&json);
        json_key(&json, "reason");
        json_text(&json, validation->skipped[i].reason);
        json_key(&json, "rows");
        json_int(&json, validation->skipped[i].rows);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    json_finish(&json);
}
