/* report/report_explain.c: `fsdpsim explain`: textbook arithmetic beside the simulation. */
#include <inttypes.h>

#include "base/strbuf.h"
#include "base/units.h"
#include "report/report_estimate.h"

/* The unit the arithmetic is about: the largest one that is a block, or the largest of all. */
struct explained {
    const char *name;
    double parameters;
    double gather_bytes, reduce_bytes; /* whole unit, padded */
    double forward_s, backward_s;      /* kernels alone, one after the other */
    double gather_s, reduce_s;         /* collectives alone */
    int64_t gathers;                   /* a microbatch */
    double slowest_bytes_per_s;        /* of the links a gather uses, raw */
    double slowest_bytes;              /* that a gather puts on one such link */
    const char *slowest;
};

static double segment_alone_s(const struct experiment *experiment, const struct segment *segment)
{
    double seconds = 0;
    for (int32_t i = 0; i < segment->kernel_count; i++)
        seconds += gpu_kernel_s(&experiment->cluster.gpu, &segment->kernels[i], 1, NULL);
    return seconds;
}

static int32_t choose_unit(const struct program *program)
{
    int32_t best = 0;
    for (int32_t i = 1; i < program->units.count; i++)
        if (program->units.items[i].parameters > program->units.items[best].parameters)
            best = i;
    /* Blocks are what repeats: an embedding may be larger, but it is not what a step is made of. */
    for (int32_t i = 0; i + 1 < program->units.count; i++)
        if (program->units.items[i].parameters > 0 &&
            program->units.items[i].parameters == program->units.items[i + 1].parameters)
            return i;
    return best;
}

/* Bytes that a plan puts through one instance of a resource. */
static double plan_load_bytes(const struct plan *plan, int32_t resource)
{
    double bytes = 0;
    for (int32_t i = 0; i < plan->phase_count; i++)
        for (int32_t k = 0; k < plan->phases[i].load_count; k++)
            if (plan->phases[i].loads[k].resource == resource)
                bytes += plan->phases[i].bytes * plan->phases[i].loads[k].per_byte;
    return bytes;
}

static double collective_alone(struct experiment *experiment, const struct collective *collective,
                               struct explained *unit)
{
    const struct plan_options options = {.is_latency_free = experiment->ideal.latency,
                                         .is_contention_free = experiment->ideal.contention,
                                         .is_average = collective->is_average};
    struct plan plan = {0};
    const struct group *group =
        &experiment->program->communicators.items[collective->communicator].group;
    if (plan_build(&experiment->arena, &experiment->layout, group, collective->op,
                   collective->bytes, &options, &plan, experiment->diag) != STATUS_OK)
        BUG("a plan that was played cannot be built");
    const int32_t link = plan_bottleneck(&experiment->layout, &plan);
    if (link >= 0 && collective->op == COLLECTIVE_ALL_GATHER) {
        unit->slowest_bytes = plan_load_bytes(&plan, link);
        unit->slowest = experiment->layout.resources[link].name;
        unit->slowest_bytes_per_s = experiment->layout.resources[link].capacity;
    }
    return plan_alone_s(&experiment->layout, &plan);
}

static void measure_collective(struct experiment *experiment, const struct collective *collective,
                               struct explained *unit)
{
    if (collective->op == COLLECTIVE_ALL_GATHER) {
        unit->gathers++;
        unit->gather_s = collective_alone(experiment, collective, unit);
    } else if (collective->op == COLLECTIVE_REDUCE_SCATTER) {
        unit->reduce_s = collective_alone(experiment, collective, unit);
    }
}

static void measure_op(struct experiment *experiment, const struct op *op, bool is_backward,
                       struct explained *unit)
{
    const struct program *program = experiment->program;
    if (op->kind == OP_COLLECTIVE)
        measure_collective(experiment, &program->collectives.items[op->index], unit);
    if (op->kind != OP_SEGMENT)
        return;
    const struct segment *segment = &program->segments.items[op->index];
    if (segment->kernel_count > 0 && kernel_is_copy(segment->kernels[0].kind))
        return;
    *(is_backward ? &unit->backward_s : &unit->forward_s) += segment_alone_s(experiment, segment);
}

/* Reads the unit out of the program: its compute and collectives of the first microbatch. */
static void measure(struct experiment *experiment, int32_t index, struct explained *unit)
{
    const struct program *program = experiment->program;
    unit->name = program->units.items[index].name;
    unit->parameters = (double)program->units.items[index].parameters;
    unit->gather_bytes = (double)program->units.items[index].all_gather_bytes;
    unit->reduce_bytes = (double)program->units.items[index].reduce_scatter_bytes;
    bool is_backward = false;
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        if (op->kind == OP_MARK && op->index == MARK_BACKWARD_END)
            return;
        is_backward = is_backward || (op->kind == OP_MARK && op->index == MARK_FORWARD_END);
        if (op->unit == index)
            measure_op(experiment, op, is_backward, unit);
    }
}

static void write_volumes(const struct explained *unit, int64_t ranks, FILE *file)
{
    const double n = (double)ranks;
    const double share = (n - 1) / n;
    const double gather = share * unit->gather_bytes, reduce = share * unit->reduce_bytes;
    fprintf(file,
            "volume of one unit ('%s', S = %.9g MB gathered, %.9g MB reduced), N = %" PRId64 "\n",
            unit->name, unit->gather_bytes / 1e6, unit->reduce_bytes / 1e6, ranks);
    fprintf(file,
            "  all-gather receives (N-1)/N S               %.9g MB  (N -> infinity: %.9g MB)\n",
            gather / 1e6, unit->gather_bytes / 1e6);
    fprintf(file, "  reduce-scatter sends (N-1)/N S              %.9g MB\n", reduce / 1e6);
    fprintf(file, "  kept after forward: 1 gather + 1 scatter    %.9g MB\n",
            (gather + reduce) / 1e6);
    fprintf(file, "  resharded: 2 gathers + 1 scatter            %.9g MB\n",
            (2 * gather + reduce) / 1e6);
    fprintf(file, "  this configuration: %" PRId64 " gather%s a microbatch\n\n", unit->gathers,
            unit->gathers == 1 ? "" : "s");
}

static void write_times(const struct explained *unit, double hidden_frac, FILE *file)
{
    const double compute = unit->forward_s + unit->backward_s;
    const double comm = (double)unit->gathers * unit->gather_s + unit->reduce_s;
    fprintf(file, "time of one unit, everything alone\n");
    if (unit->slowest != NULL)
        fprintf(file,
                "  slowest link: %s, %.9g GB/s; a gather puts %.9g MB on each: %.9g ms at least\n",
                unit->slowest, unit->slowest_bytes_per_s / 1e9, unit->slowest_bytes / 1e6,
                unit->slowest_bytes / unit->slowest_bytes_per_s * 1e3);
    fprintf(
        file, "  all-gather %.9g ms, reduce-scatter %.9g ms; forward %.9g ms, backward %.9g ms\n",
        unit->gather_s * 1e3, unit->reduce_s * 1e3, unit->forward_s * 1e3, unit->backward_s * 1e3);
    if (!(compute > 0)) {
        fputc('\n', file);
        return;
    }
    fprintf(file, "  communication / compute = %.9g / %.9g ms = %.6g%s\n", comm * 1e3,
            compute * 1e3, comm / compute,
            comm / compute > 0.3 ? " (over 0.3: sharding costs, says the rule of thumb)" : "");
    fprintf(file, "  no overlap: %.9g ms, %.6g %% slower than compute alone\n",
            (compute + comm) * 1e3, comm / compute * 100);
    if (hidden_frac >= 0)
        fprintf(file, "  with %.6g of it hidden: exposed %.4g ms, %.4g %% slower\n", hidden_frac,
                comm * (1 - hidden_frac) * 1e3, comm * (1 - hidden_frac) / compute * 100);
    fputc('\n', file);
}

static void write_overlap(const struct experiment *experiment, const struct explained *unit,
                          FILE *file)
{
    const double backward_gather = unit->gathers > 1 ? unit->gather_s : 0;
    const bool is_separate = experiment->program->communicators.count > 1;
    const double comm = is_separate && unit->reduce_s > backward_gather ? unit->reduce_s
                        : is_separate                                   ? backward_gather
                                      : backward_gather + unit->reduce_s;
    const double forward = unit->forward_s > unit->gather_s ? unit->forward_s : unit->gather_s;
    const double backward = unit->backward_s > comm ? unit->backward_s : comm;
    fprintf(file, "overlap of equal units in steady state\n");
    fprintf(file, "  forward  max(compute, gather)            = %.9g ms a unit\n", forward * 1e3);
    fprintf(file, "  backward max(compute, %s) = %.9g ms a unit\n",
            is_separate ? "gather, scatter" : "gather + scatter", backward * 1e3);
    fprintf(file, "  always exposed: the first gather and the last scatter = %.9g ms\n\n",
            (unit->gather_s + unit->reduce_s) * 1e3);
}

/* ---- policies whose collectives belong to no unit: DDP, ZeRO -----------------------------------
 */

struct step_sums {
    double comm_s, compute_s; /* alone, of a step */
};

static double all_compute_s(const struct experiment *experiment)
{
    const struct program *program = experiment->program;
    double seconds = 0;
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        if (op->kind == OP_SEGMENT && !program->segments.items[op->index].is_optimizer)
            seconds += segment_alone_s(experiment, &program->segments.items[op->index]);
    }
    return seconds;
}

/* Collectives of one kind: how many, of how much, what each GPU sends of it. */
static void write_step_volume(const struct outcome *outcome, const char *op, FILE *file)
{
    double count = 0, bytes = 0, alone_s = 0;
    for (int32_t i = 0; i < outcome->collective_count; i++) {
        const struct outcome_collective *row = &outcome->collectives[i];
        const bool is_one = text_equal(row->op, op);
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
    for (int32_t i = 0; i < outcome->collective_count; i++)
        sums.comm_s += (double)outcome->collectives[i].count * outcome->collectives[i].alone_s;
    return sums;
}

static void write_step(const struct experiment *experiment, const struct outcome *outcome,
                       double hidden_frac, FILE *file)
{
    static const char *const ops[] = {"all_reduce", "reduce_scatter", "all_gather"};
    const struct step_sums sums = sum_step(experiment, outcome);
    const double ratio = sums.compute_s > 0 ? sums.comm_s / sums.compute_s : 0;
    fprintf(file, "volume of a step, N = %" PRId64 "\n", outcome->n_gpus);
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        write_step_volume(outcome, ops[i], file);
    fprintf(file, "\ntime of a step, everything alone, without the optimizer\n");
    fprintf(file, "  communication / compute = %.9g / %.9g ms = %.6g\n", sums.comm_s * 1e3,
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
    struct explained unit = {0};
    struct estimate estimate = {0};
    const enum status status = estimate_memory(experiment, 0, false, &estimate);
    if (status != STATUS_OK)
        return status;
    measure(experiment, choose_unit(experiment->program), &unit);
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
    if (unit.gather_bytes > 0 || unit.reduce_bytes > 0) {
        write_volumes(&unit, experiment->mesh.dp_shard, file);
        write_times(&unit, hidden_frac, file);
        write_overlap(experiment, &unit, file);
    } else {
        write_step(experiment, outcome, hidden_frac, file);
    }
    write_root(experiment, file);
    write_utilisation(experiment, outcome, file);
    write_simulated(outcome, file);
    return STATUS_OK;
}
