/* report/report_estimate.c: `fsdpsim memory`: bytes by state and stage, what fits. */
#include "report/report_estimate.h"

#include <inttypes.h>

#include "base/units.h"
#include "report/report_table_private.h"

/* 14875000000 → "14.875 GB": decimal, all digits that matter, none that do not. */
static const char *gigabytes(struct table *table, double bytes)
{
    return arena_printf(&table->arena, "%.7g GB", bytes / 1e9);
}

static void write_states(struct table *table, const struct estimate *estimate)
{
    table_row(table);
    static const char *const heads[] = {
        "",        "parameters", "gradients", "optimizer", "states", "B/parameter",
        "working", "outside",    "total",     ""};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
        table_cell(table, "%s", heads[i]);
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        const struct estimate_row *row = &estimate->rows[stage];
        table_row(table);
        table_cell(table, "%s", estimate_stage_name((enum estimate_stage)stage));
        table_cell(table, "%s", gigabytes(table, row->parameter_bytes));
        table_cell(table, "%s", gigabytes(table, row->gradient_bytes + row->bucket_bytes));
        table_cell(table, "%s", gigabytes(table, row->optimizer_bytes));
        table_cell(table, "%s", gigabytes(table, row->states_bytes));
        table_cell(table, "%.6g", row->bytes_per_parameter);
        table_cell(table, "%s", gigabytes(table, row->working_bytes));
        table_cell(table, "%s", gigabytes(table, estimate->outside_bytes));
        table_cell(table, "%s", gigabytes(table, row->total_bytes));
        if (row->fits)
            table_cell(table, "fits");
        else
            table_cell(table, "%s too much", gigabytes(table, row->over_bytes));
    }
}

/* Where offload keeps something there. */
static void write_host(const struct experiment *experiment, const struct estimate *estimate,
                       struct table *table, FILE *file)
{
    const double there = experiment->cluster.compute.memory_bytes;
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        const double bytes = estimate->rows[stage].host_bytes;
        if (!(bytes > 0))
            continue;
        fprintf(file, "%s on the host: %s a GPU, %s a host of %" PRId64,
                estimate_stage_name((enum estimate_stage)stage), gigabytes(table, bytes),
                gigabytes(table, bytes * (double)experiment->gpus_per_node),
                experiment->gpus_per_node);
        if (there > 0)
            fprintf(file, " (of %s)", gigabytes(table, there));
        fputc('\n', file);
    }
}

static void write_activations(const struct experiment *experiment, const struct estimate *estimate,
                              struct table *table, FILE *file)
{
    char elements[32], bytes[32];
    if (estimate->hidden_elements > 0) {
        fprintf(file,
                "one activation tensor (micro_batch %" PRId64 " x seq_len %" PRId64
                " x hidden %" PRId64 "): %s elements, %s B\n",
                experiment->train.micro_batch, experiment->train.seq_len,
                experiment->model_config.decoder.hidden_size,
                format_count(elements, sizeof(elements), estimate->hidden_elements),
                format_count(bytes, sizeof(bytes), (int64_t)estimate->hidden_bytes));
        fprintf(file, "one such tensor a layer, %" PRId64 " layers: %s (not divided by GPUs)\n",
                estimate->layers,
                gigabytes(table, estimate->hidden_bytes * (double)estimate->layers));
    }
    fprintf(file,
            "working = activations kept %s + the larger of logits and loss %s\n"
            "          and a block's backward: recomputed %s (+ gathered %s with zero3)\n"
            "outside = context, communicators, library workspace\n",
            gigabytes(table, estimate->activation_bytes), gigabytes(table, estimate->logits_bytes),
            gigabytes(table, estimate->recomputed_bytes),
            gigabytes(table, estimate->rows[STAGE_ZERO3].gathered_bytes));
}

/* Weights alone, before there are gradients. */
static void write_initialisation(const struct estimate *estimate, struct table *table, FILE *file)
{
    const double whole = estimate->rows[STAGE_DDP].parameter_bytes;
    const double shard = estimate->rows[STAGE_ZERO3].parameter_bytes;
    fprintf(file,
            "at initialisation: %s with fully_shard from the meta device, which shards first;\n"
            "  %s where the model is whole before it is sharded: FullyShardedDataParallel, also\n"
            "  from the meta device when the root is given memory with all that is in it%s;\n"
            "  rank 0's host holds %s when it broadcasts a full state dict\n\n",
            gigabytes(table, shard), gigabytes(table, whole),
            whole > estimate->budget_bytes ? " (does not fit)" : "", gigabytes(table, whole));
}

void report_memory(const struct experiment *experiment, const struct estimate *estimate, FILE *file)
{
    char parameters[32];
    struct table table = {0};
    table_init(&table, 10, 1);
    fprintf(file,
            "%s: %s parameters on %" PRId64 " GPUs (%s, %s each), data-parallel over %" PRId64,
            experiment->model_config.name,
            format_count(parameters, sizeof(parameters), experiment->model->parameters),
            experiment->n_gpus, experiment->cluster.gpu.name,
            gigabytes(&table, (double)experiment->cluster.gpu.memory_bytes), estimate->ranks);
    if (experiment->mesh.tp > 1)
        fprintf(file, ", tensor-parallel over %" PRId64 ": %s parameters on a rank",
                experiment->mesh.tp,
                format_count(parameters, sizeof(parameters), estimate->parameters));
    fputs("\n\n", file);
    fprintf(file, "bytes a parameter: %g parameter + %g gradient + %g optimizer = %g\n\n",
            estimate->bytes_per_parameter[0], estimate->bytes_per_parameter[1],
            estimate->bytes_per_parameter[2],
            estimate->bytes_per_parameter[0] + estimate->bytes_per_parameter[1] +
                estimate->bytes_per_parameter[2]);
    write_states(&table, estimate);
    table_write(&table, file);
    write_host(experiment, estimate, &table, file);
    fputc('\n', file);
    write_activations(experiment, estimate, &table, file);
    write_initialisation(estimate, &table, file);
    fprintf(
        file,
        "one block gathered: %s; textbook peak of zero3 with exactly one block gathered: %s\n"
        "  (fully_shard's backward holds two gathered copies of a unit, its gradient and a\n"
        "   reduce-scatter input: docs/fsdp2.md. The caching allocator reserves some more than\n"
        "   is active; 'fsdpsim run' plays it)\n\n",
        gigabytes(&table, estimate->one_unit_gathered_bytes),
        gigabytes(&table, estimate->textbook_peak_bytes));
    if (estimate->smallest_fitting < 0) {
        fprintf(file, "nothing fits in %s per GPU: even zero3 needs %s\n",
                gigabytes(&table, estimate->budget_bytes),
                gigabytes(&table, estimate->rows[STAGE_ZERO3].total_bytes));
    } else {
        fprintf(file, "smallest stage that fits in %s per GPU: %s (%s)\n",
                gigabytes(&table, estimate->budget_bytes),
                estimate_stage_name((enum estimate_stage)estimate->smallest_fitting),
                gigabytes(&table, estimate->rows[estimate->smallest_fitting].total_bytes));
    }
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        const struct estimate_row *row = &estimate->rows[stage];
        if (!row->fits)
            fprintf(file, "  %s fails: %s states + %s the rest = %s\n",
                    estimate_stage_name((enum estimate_stage)stage),
                    gigabytes(&table, row->states_bytes),
                    gigabytes(&table, row->total_bytes - row->states_bytes),
                    gigabytes(&table, row->total_bytes));
    }
    table_release(&table);
}
