/* report/report_comm_tables.c: see report_comm_tables.h. */
#include "report/report_comm_tables.h"

#include <inttypes.h>
#include <math.h>

#include "report/report_table_private.h"

static void error_cell(struct table *table, double error, bool is_signed)
{
    if (isnan(error))
        table_cell(table, "-");
    else
        table_cell(table, is_signed ? "%+.1f %%" : "%.1f %%", error * 100);
}

static void write_rule(FILE *file)
{
    fputs(
        "error = predicted / measured - 1 of the out-of-place time. spec: the cluster files as "
        "they "
        "are;\nitself: calibrated on the table; sibling: calibrated on the nearest other healthy "
        "table of the same\nmachine. Nearest: of |log2 nodes ratio| + 2 |log2 GPUs a node ratio| + "
        "0.5 (all-gather for\nreduce-scatter) or 1.5 (all-reduce for one of them, or the reverse) "
        "the least; never one host for\nseveral, nor an all-reduce of 2 hosts for the others.\n",
        file);
}

/* ---- text --------------------------------------------------------------------------------- */

static void result_row(struct table *table, const struct collective_result *result)
{
    table_row(table);
    table_cell(table, "%s", result->name);
    table_cell(table, "%s", result->cluster);
    table_cell(table, "%" PRId64 "x%" PRId64, result->nodes, result->gpus_per_node);
    for (int band = 0; band < SIZE_BAND_COUNT; band++)
        error_cell(table, result->bands[ON_SPEC][band].median_abs_err, false);
    const struct collective_score *spec = &result->from_1m[ON_SPEC];
    table_cell(table, "%" PRId64, spec->n);
    error_cell(table, spec->median_abs_err, false);
    error_cell(table, spec->max_abs_err, false);
    error_cell(table, spec->bias, true);
    error_cell(table, result->from_1m[ON_ITSELF].median_abs_err, false);
    error_cell(table, result->from_1m[ON_SIBLING].median_abs_err, false);
}

static void write_tables(const struct collective_validation *validation, FILE *file)
{
    static const char *const heads[] = {"table",  "cluster", "shape",  "64K-1M", "1M-32M",
                                        "32M-1G", ">=1G",    "n>=1M",  "median", "max",
                                        "bias",   "itself",  "sibling"};
    struct table table;
    table_init(&table, sizeof(heads) / sizeof(heads[0]), 3);
    table_row(&table);
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        table_cell(&table, "%s", heads[i]);
    for (int32_t i = 0; i < validation->in_scope; i++)
        result_row(&table, &validation->results[i]);
    table_write(&table, file);
    table_release(&table);
}

static void group_row(struct table *table, const char *name, int32_t tables,
                      const struct collective_score scores[COLLECTIVE_BASIS_COUNT])
{
    table_row(table);
    table_cell(table, "%s", name);
    table_cell(table, "%d", (int)tables);
    table_cell(table, "%" PRId64, scores[ON_SPEC].n);
    error_cell(table, scores[ON_SPEC].median_abs_err, false);
    error_cell(table, scores[ON_SPEC].max_abs_err, false);
    error_cell(table, scores[ON_SPEC].bias, true);
    error_cell(table, scores[ON_ITSELF].median_abs_err, false);
    error_cell(table, scores[ON_SIBLING].median_abs_err, false);
    table_cell(table, "%" PRId64, scores[ON_SIBLING].n);
}

static void write_totals(const struct collective_validation *validation, FILE *file)
{
    static const char *const heads[] = {"from 1 MiB", "tables", "n",       "spec", "max",
                                        "bias",       "itself", "sibling", "n"};
    struct table table;
    table_init(&table, sizeof(heads) / sizeof(heads[0]), 1);
    table_row(&table);
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        table_cell(&table, "%s", heads[i]);
    group_row(&table, "all", validation->in_scope, validation->from_1m);
    for (int32_t i = 0; i < validation->by_op.count; i++)
        group_row(&table, validation->by_op.items[i].name, validation->by_op.items[i].tables,
                  validation->by_op.items[i].from_1m);
    for (int32_t i = 0; i < validation->by_fabric.count; i++)
        group_row(&table, validation->by_fabric.items[i].name,
                  validation->by_fabric.items[i].tables, validation->by_fabric.items[i].from_1m);
    for (int band = 0; band < SIZE_BAND_COUNT; band++) {
        const struct collective_score scores[] = {validation->bands[ON_SPEC][band],
                                                  validation->bands[ON_ITSELF][band],
                                                  validation->bands[ON_SIBLING][band]};
        group_row(&table, size_band_name((enum size_band)band), validation->in_scope, scores);
    }
    table_write(&table, file);
    table_release(&table);
}

static void write_explanations(const struct collective_result *result, FILE *file)
{
    fprintf(file, "Degraded: %s (%s): median error from 1 MiB %.1f %%", result->name,
            result->because, result->from_1m[ON_SPEC].median_abs_err * 100);
    for (int32_t i = 0; i < result->explanation_count; i++) {
        const struct collective_explanation *found = &result->explanations[i];
        if (i == 0)
            fputs("; with one override, the best first:\n", file);
        fprintf(file, "    %.1f %% with %s: %s\n", found->error_after * 100, found->setting,
                found->name);
    }
    if (result->explanation_count == 0)
        fputs("; no override explains it\n", file);
}

static void write_others(const struct collective_validation *validation, FILE *file)
{
    for (int32_t i = validation->in_scope; i < validation->result_count; i++) {
        const struct collective_result *result = &validation->results[i];
        if (i == validation->in_scope)
            fputc('\n', file);
        if (result->reason != NULL)
            fprintf(file, "Out of scope: %s: %s\n", result->name, result->reason);
        else
            write_explanations(result, file);
    }
}

void report_comm_tables(const struct collective_validation *validation, FILE *file)
{
    if (validation->in_scope > 0) {
        write_tables(validation, file);
        fputc('\n', file);
        write_totals(validation, file);
    }
    write_others(validation, file);
    fputc('\n', file);
    write_rule(file);
}

/* ---- Markdown ----------------------------------------------------------------------------- */

static void markdown_error(FILE *file, double error, bool is_signed)
{
    if (isnan(error))
        fputs(" - |", file);
    else
        fprintf(file, is_signed ? " %+.1f %% |" : " %.1f %% |", error * 100);
}

static void markdown_scores(FILE *file, const struct collective_score scores[])
{
    fprintf(file, " %" PRId64 " |", scores[ON_SPEC].n);
    markdown_error(file, scores[ON_SPEC].median_abs_err, false);
    markdown_error(file, scores[ON_SPEC].max_abs_err, false);
    markdown_error(file, scores[ON_SPEC].bias, true);
    markdown_error(file, scores[ON_ITSELF].median_abs_err, false);
    markdown_error(file, scores[ON_SIBLING].median_abs_err, false);
    fputc('\n', file);
}

static void markdown_totals(const struct collective_validation *validation, FILE *file)
{
    fputs("| from 1 MiB | tables | n | spec | max | bias | itself | sibling |\n"
          "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
          file);
    fprintf(file, "| all | %d |", (int)validation->in_scope);
    markdown_scores(file, validation->from_1m);
    const struct collective_groups *const lists[] = {&validation->by_op, &validation->by_fabric};
    for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
        for (int32_t i = 0; i < lists[k]->count; i++) {
            fprintf(file, "| %s | %d |", lists[k]->items[i].name, (int)lists[k]->items[i].tables);
            markdown_scores(file, lists[k]->items[i].from_1m);
        }
    }
}

static void markdown_tables(const struct collective_validation *validation, FILE *file)
{
    fputs("\n| table | cluster | shape |", file);
    for (int band = 0; band < SIZE_BAND_COUNT; band++)
        fprintf(file, " %s |", size_band_name((enum size_band)band));
    fputs(" n from 1M | median | max | bias | itself | sibling |\n| --- | --- | --- |", file);
    for (int i = 0; i < SIZE_BAND_COUNT + 6; i++)
        fputs(" ---: |", file);
    fputc('\n', file);
    for (int32_t i = 0; i < validation->in_scope; i++) {
        const struct collective_result *result = &validation->results[i];
        fprintf(file, "| %s | %s | %" PRId64 "x%" PRId64 " |", result->name, result->cluster,
                result->nodes, result->gpus_per_node);
        for (int band = 0; band < SIZE_BAND_COUNT; band++)
            markdown_error(file, result->bands[ON_SPEC][band].median_abs_err, false);
        markdown_scores(file, result->from_1m);
    }
}

void report_comm_tables_markdown(const struct collective_validation *validation, FILE *file)
{
    fprintf(file,
            "## Collectives\n\n%d measured tables of nccl-tests (`fsdpsim validate "
            "collectives`), %d in scope and healthy, %d\ndegraded, %d out of scope.\n\n",
            (int)validation->result_count, (int)validation->in_scope, (int)validation->degraded,
            (int)validation->out_of_scope);
    write_rule(file);
    fputc('\n', file);
    markdown_totals(validation, file);
    markdown_tables(validation, file);
    fputs("\n```", file);
    write_others(validation, file);
    fputs("```\n", file);
}
