/* report/report_explain.c: `fsdpsim explain`: textbook arithmetic beside the simulation. */
#include <inttypes.h>

#include "base/strbuf.h"
#include "base/units.h"
#include "report/report_estimate.h"
#include "report/report_explain_private.h"

/* ---- policies whose collectives belong to no unit: DDP, ZeRO ------------------------------------
 */

struct step_sums {
    double comm_s, compute_s; /* alone, of a step */
    double exchange_s;        /* of tensor parallelism */
    int64_t exchanges;
};

static double all_compute_s(const struct experiment *experiment)
{
    const struct program *program = experiment->program;
    double seconds = 0;
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        if (op->kind == OP_SEGMENT && !program->segments.items[op->index].is_optimizer)
            seconds += explain_segment_alone_s(experiment, &program->segments.items[op->index]);
    }
    return seconds;
}

static bool is_tensor_parallel(const struct program *program, const char *communicator)
{
    for (int32_t i = 0; i < program->communicators.count; i++)
        if (text_equal(program->communicators.items[i].name, communicator))
            return program->communicators.items[i].is_tensor_parallel;
    return false;
}

/* Collectives of one kind: how many, of how much, what each GPU sends of it. */
static void write_step_volume(const struct experiment *experiment, const struct outcome *outcome,
                              const char *op, FILE *file)
{
    double count = 0, bytes = 0, alone_s = 0;
    for (int32_t i = 0; i < outcome->collective_count; i++) {
        const struct outcome_collective *row = &outcome->collectives[i];
        const bool is_one =
            text_equal(row->op, op) && !is_tensor_parallel(experiment->program, row->communicator);
        count += is_one ? (double)row->count : 0;
        bytes += is_one ? (double)row->count * row->bytes : 0;
        alone_s += is_one ? (double)row->count * row->alone_s : 0;
    }
    if (count > 0)
        fprintf(file, "  %-14s %5.0f, S = %.9g GB in all: %s(N-1)/N S sent; %.9g ms alone\n", op,
                count, bytes / 1e9, text_equal(op, "all_reduce") ? "2 " : "", alone_s * 1e3);
}

static struct step_sums sum_step(const struct experiment *experiment, const struct outcome *outcome)
{
    struct step_sums sums = {.compute_s = all_compute_s(experiment)};
    for (int32_t i = 0; i < outcome->collective_count; i++) {
        const struct outcome_collective *row = &outcome->collectives[i];
        const bool is_exchange = is_tensor_parallel(experiment->program, row->communicator);
        *(is_exchange ? &sums.exchange_s : &sums.comm_s) += (double)row->count * row->alone_s;
        sums.exchanges += is_exchange ? row->count : 0;
    }
    return sums;
}

static void write_step(const struct experiment *experiment, const struct outcome *outcome,
                       double hidden_frac, FILE *file)
{
    static const char *const ops[] = {"all_reduce", "reduce_scatter", "all_gather"};
    const struct step_sums sums = sum_step(experiment, outcome);
    const double ratio = sums.compute_s > 0 ? sums.comm_s / sums.compute_s : 0;
    fprintf(file, "volume of a step, N = %" PRId64 "\n",
            experiment->mesh.dp_replicate * experiment->mesh.dp_shard);
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        write_step_volume(experiment, outcome, ops[i], file);
    fprintf(file, "\ntime of a step, everything alone, without the optimizer\n");
    if (sums.exchanges > 0)
        fprintf(file,
                "  tensor parallelism: %" PRId64 " exchanges among %" PRId64 " GPUs, %.9g ms\n",
                sums.exchanges, experiment->mesh.tp, sums.exchange_s * 1e3);
    fprintf(file, "  communication%s / compute = %.9g / %.9g ms = %.6g\n",
            sums.exchanges > 0 ? " of data parallelism" : "", sums.comm_s * 1e3,
            sums.compute_s * 1e3, ratio);
    fprintf(file, "  no overlap: %.9g ms, %.6g %% slower than compute alone\n",
            (sums.compute_s + sums.comm_s) * 1e3, ratio * 100);
    if (hidden_frac >= 0)
        fprintf(file, "  with %.6g of it hidden: exposed %.4g ms, %.4g %% slower\n", hidden_frac,
                sums.comm_s * (1 - hidden_frac) * 1e3, ratio * (1 - hidden_frac) * 100);
    fputc('\n', file);
}

/* What the root keeps is gathered from its forward to the end of backward. */
static void write_root(const struct experiment *experiment, FILE *file)
{
    const struct program *program = experiment->program;
    const int api = experiment->fsdp.api;
    if ((api != API_FSDP2 && api != API_FSDP1) || program->units.items[0].parameters == 0)
        return;
    const struct unit *root = &program->units.items[0];
    char count[32];
    fprintf(file,
            "root unit: %s parameters (%.3g %%), never resharded after forward: %.9g MB gathered\n"
            "  on each GPU until backward has ended, reduced behind everything else\n\n",
            format_count(count, sizeof(count), root->parameters),
            (double)root->parameters / (double)experiment->model->parameters * 100,
            (double)root->all_gather_bytes / 1e6);
}

/* What MFU counts, and over what. */
static void write_utilisation(const struct experiment *experiment, const struct outcome *outcome,
                              FILE *file)
{
    static const char *const formulas[] = {
        "6 (N - untied input embedding) + 6 L heads (d_qk + d_v) s", "6 N + 12 L h s",
        "3 (2 N s + 4 L h s^2) / s", "72 L h^2 (1 + s / (6 h) + V / (12 h L))"};
    const int convention = experiment->mfu_convention;
    const double flop = experiment_flop_per_token(experiment, convention);
    char all[32], local[32];
    fprintf(file, "N = %s parameters of the whole model",
            format_count(all, sizeof(all), outcome->parameters));
    if (experiment->fsdp.api == API_FSDP2 || experiment->fsdp.api == API_FSDP1 ||
        experiment->fsdp.api == API_ZERO3)
        fprintf(file, " (one GPU of %" PRId64 " keeps %s)", experiment->mesh.dp_shard,
                format_count(local, sizeof(local),
                             experiment->model->rank_parameters / experiment->mesh.dp_shard));
    fputc('\n', file);
    if (flop > 0)
        fprintf(
            file,
            "  model FLOP a token (%s): %s = %.6g GFLOP\n"
            "  MFU = that x %.6g tokens/s/GPU / peak = %.4g %%, over the whole optimizer step;\n"
            "  evaluation, saving and data loading are not in it\n\n",
            outcome->mfu_convention, formulas[convention], flop / 1e9,
            outcome->tokens_per_s_per_gpu, outcome->mfu * 100);
    else
        fputc('\n', file);
}

static void write_simulated(const struct outcome *outcome, FILE *file)
{
    fprintf(file, "simulated\n");
    fprintf(file, "  step %.9g ms = compute %.9g + exposed communication %.9g + idle %.9g\n",
            outcome->step_time_s * 1e3, outcome->compute_s * 1e3, outcome->exposed_comm_s * 1e3,
            outcome->idle_s * 1e3);
    fprintf(file, "  forward %.9g ms, backward %.9g ms, optimizer %.9g ms\n",
            outcome->forward_s * 1e3, outcome->backward_s * 1e3, outcome->optimizer_s * 1e3);
    fprintf(file, "  each GPU sends %.9g MB a step; %.4g %% of the communication is hidden\n",
            outcome->comm_bytes_per_gpu / 1e6, outcome->overlap_fraction * 100);
    fprintf(file, "  bound by: %s\n", outcome->bottleneck);
}

/* The optimizer's pass on the host: the textbook's bytes over what a rank gets. */
static void write_host_update(const struct experiment *experiment, FILE *file)
{
    const struct host_compute *host = &experiment->cluster.compute;
    const struct program *program = experiment->program;
    const char *how = "";
    double seconds = 0, bytes = 0;
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        if (op->kind != OP_HOST_COMPUTE)
            continue;
        const double rate = host_compute_bytes_per_s(host, (enum host_pass)op->index,
                                                     experiment->gpus_per_node, op->count);
        bytes += (double)op->bytes;
        seconds += (double)op->bytes / rate;
        how = rate < host->share[op->index] * host->memory_bytes_per_s /
                          (double)experiment->gpus_per_node
                  ? "its cores"
                  : "its memory";
    }
    if (bytes > 0)
        fprintf(file, "on the host: %.7g GB of operands a rank, bound by %s: %.6g ms a step\n",
                bytes / 1e9, how, seconds * 1e3);
}

enum status report_explain(struct experiment *experiment, const struct outcome *outcome,
                           double hidden_frac, FILE *file)
{
    struct estimate estimate = {0};
    const enum status status = estimate_memory(experiment, 0, false, &estimate);
    if (status != STATUS_OK)
        return status;
    const struct estimate_row *ddp = &estimate.rows[STAGE_DDP];
    const struct estimate_row *sharded = &estimate.rows[STAGE_ZERO3];
    fprintf(file,
            "states: %.9g B a parameter x %.9g x 10^9 parameters = %.7g GB replicated, / N = "
            "%.7g GB sharded\n",
            ddp->bytes_per_parameter, (double)estimate.parameters / 1e9, ddp->states_bytes / 1e9,
            sharded->states_bytes / 1e9);
    if (sharded->host_bytes > 0)
        fprintf(file, "  states on the host: %.7g GB of each GPU, %.7g GB a host of %d\n",
                sharded->host_bytes / 1e9,
                sharded->host_bytes * (double)experiment->gpus_per_node / 1e9,
                (int)experiment->gpus_per_node);
    if (ddp->fits)
        fprintf(file, "  replicated it fits in %.7g GB: sharding is not needed for memory\n",
                estimate.budget_bytes / 1e9);
    write_host_update(experiment, file);
    fputc('\n', file);
    if (!report_explain_unit(experiment, hidden_frac, file))
        write_step(experiment, outcome, hidden_frac, file);
    write_root(experiment, file);
    write_utilisation(experiment, outcome, file);
    write_simulated(outcome, file);
    return STATUS_OK;
}
