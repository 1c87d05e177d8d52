/* report/report_fitting.c: see report_fitting.h. */
#include "report/report_fitting.h"

#include <inttypes.h>

#include "report/json_writer.h"
#include "report/report_table_private.h"

static void add_size(struct table *table, double bytes)
{
    table_cell(table, "%.5g GB", bytes / 1e9);
}

static void add_verdict(struct table *table, const struct fitting_try *one)
{
    if (one->fits)
        table_cell(table, "fits");
    else if (one->row.fits)
        table_cell(table, "%.5g GB too much for the host", one->host_over_bytes / 1e9);
    else
        table_cell(table, "%.5g GB too much", one->row.over_bytes / 1e9);
}

/* "-s a=b -s c=d" of "a=b c=d" */
static void write_settings(const char *settings, FILE *file)
{
    const char *separator = "-s ";
    for (; *settings != '\0'; settings++) {
        fputs(separator, file);
        separator = *settings == ' ' ? "-s " : "";
        fputc(*settings, file);
    }
}

static void write_found(const struct experiment *experiment, const struct fitting_try *found,
                        FILE *file)
{
    if (found->settings[0] == '\0') {
        fputs("it fits as it is configured\n", file);
        return;
    }
    fputs("it fits with: ", file);
    write_settings(found->settings, file);
    fputc('\n', file);
    if (found->row.host_bytes > 0)
        fprintf(file, "  (%.5g GB of states in the memory of each host)\n",
                found->row.host_bytes * (double)experiment->gpus_per_node / 1e9);
}

void report_fitting(const struct experiment *experiment, const struct fitting *fitting, FILE *file)
{
    static const char *const heads[] = {"", "states", "working", "outside", "total", ""};
    struct table table;
    table_init(&table, 6, 1);
    fprintf(file, "\nto fit into %.7g GB per GPU, from what costs no time to what costs most:\n\n",
            fitting->budget_bytes / 1e9);
    table_row(&table);
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        table_cell(&table, "%s", heads[i]);
    for (int32_t i = 0; i < fitting->count; i++) {
        const struct fitting_try *one = &fitting->tries[i];
        table_row(&table);
        table_cell(&table, "%s", one->what);
        add_size(&table, one->row.states_bytes);
        add_size(&table, one->row.working_bytes);
        add_size(&table, one->outside_bytes);
        add_size(&table, one->row.total_bytes);
        add_verdict(&table, one);
    }
    table_write(&table, file);
    fputc('\n', file);
    if (fitting->has_found)
        write_found(experiment, &fitting->tries[fitting->count - 1], file);
    else
        fputs("none of these fits: more GPUs to shard over, shorter sequences, or tensor "
              "parallel\n",
              file);
    table_release(&table);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void write_double(struct json_writer *json, const char *key, double value)
{
    json_key(json, key);
    json_double(json, value);
}

static void write_row(struct json_writer *json, const struct estimate_row *row,
                      double outside_bytes, bool fits)
{
    write_double(json, "parameter_bytes", row->parameter_bytes);
    write_double(json, "gradient_bytes", row->gradient_bytes + row->bucket_bytes);
    write_double(json, "optimizer_bytes", row->optimizer_bytes);
    write_double(json, "states_bytes", row->states_bytes);
    write_double(json, "gathered_bytes", row->gathered_bytes);
    write_double(json, "working_bytes", row->working_bytes);
    write_double(json, "outside_bytes", outside_bytes);
    write_double(json, "total_bytes", row->total_bytes);
    write_double(json, "over_bytes", row->over_bytes);
    write_double(json, "host_bytes", row->host_bytes);
    json_key(json, "fits");
    json_bool(json, fits);
}

static void write_stages(struct json_writer *json, const struct estimate *estimate)
{
    json_key(json, "stages");
    json_begin_array(json);
    for (int i = 0; i < STAGE_COUNT; i++) {
        json_begin_object(json);
        json_key(json, "stage");
        json_text(json, estimate_stage_name((enum estimate_stage)i));
        write_row(json, &estimate->rows[i], estimate->outside_bytes, estimate->rows[i].fits);
        json_end_object(json);
    }
    json_end_array(json);
}

static void write_tries(struct json_writer *json, const struct fitting *fitting)
{
    json_key(json, "tried");
    json_begin_array(json);
    for (int32_t i = 0; i < fitting->count; i++) {
        const struct fitting_try *one = &fitting->tries[i];
        json_begin_object(json);
        json_key(json, "what");
        json_text(json, one->what);
        json_key(json, "settings");
        json_text(json, one->settings);
        write_row(json, &one->row, one->outside_bytes, one->fits);
        write_double(json, "host_over_bytes", one->host_over_bytes);
        json_end_object(json);
    }
    json_end_array(json);
    json_key(json, "fits_with");
    json_text(json, fitting->has_found ? fitting->tries[fitting->count - 1].settings : NULL);
}

void report_memory_json(const struct experiment *experiment, const struct estimate *estimate,
                        const struct fitting *fitting, FILE *file)
{
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    json_key(&json, "schema_version");
    json_int(&json, OUTCOME_SCHEMA_VERSION);
    json_key(&json, "model");
    json_text(&json, experiment->model_config.name);
    json_key(&json, "n_gpus");
    json_int(&json, experiment->n_gpus);
    json_key(&json, "parameters");
    json_int(&json, estimate->parameters);
    write_double(&json, "budget_bytes", estimate->budget_bytes);
    write_double(&json, "activation_bytes", estimate->activation_bytes);
    write_double(&json, "recomputed_bytes", estimate->recomputed_bytes);
    write_double(&json, "logits_bytes", estimate->logits_bytes);
    write_stages(&json, estimate);
    if (fitting != NULL)
        write_tries(&json, fitting);
    json_end_object(&json);
    json_finish(&json);
}
