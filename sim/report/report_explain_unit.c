/* report/report_explain_unit.c: what FSDP moves and computes for one unit. */
#include <inttypes.h>

#include "base/units.h"
#include "report/report_explain_private.h"

enum direction { FORWARD, BACKWARD, DIRECTION_COUNT };

/* Collectives of one kind: how many, their time alone, the communicator of the last. */
struct collectives {
    int64_t count;
    double alone_s;
    int32_t communicator;
};

/* The unit the arithmetic is about.
   Sharding (gathers, scatter, sum over replicas) and tensor parallelism (exchanges) are kept apart.
 */
struct explained {
    const char *name;
    double gather_bytes, reduce_bytes; /* whole unit, padded */
    double compute_s[DIRECTION_COUNT]; /* kernels alone, one after the other */
    struct collectives gathers[DIRECTION_COUNT], reduce, replicas, exchanges[DIRECTION_COUNT];
    bool has_exchanges_beside;  /* some run beside kernels, not between them */
    double slowest_bytes_per_s; /* of the links the first gather uses, raw */
    double slowest_bytes;       /* that it puts on one such link */
    const char *slowest;
};

double explain_segment_alone_s(const struct experiment *experiment, const struct segment *segment)
{
    double seconds = 0;
    for (int32_t i = 0; i < segment->kernel_count; i++)
        seconds += gpu_kernel_s(&experiment->cluster.gpu, &segment->kernels[i], 1, NULL);
    return seconds;
}

static bool is_repeated(const struct program *program, int32_t index)
{
    const struct unit *unit = &program->units.items[index];
    for (int32_t i = 0; i < program->units.count; i++)
        if (i != index && program->units.items[i].parameters == unit->parameters &&
            outcome_names_are_alike(program->units.items[i].name, unit->name))
            return true;
    return false;
}

/* Blocks are what repeats: an embedding may be larger, but it is not what a step is made of.
   Adapters repeat too, between the blocks, but are smaller. */
int32_t explain_choose_unit(const struct program *program)
{
    int32_t best = 0, block = -1;
    for (int32_t i = 0; i < program->units.count; i++) {
        const int64_t parameters = program->units.items[i].parameters;
        if (parameters > program->units.items[best].parameters)
            best = i;
        if (parameters > (block < 0 ? 0 : program->units.items[block].parameters) &&
            is_repeated(program, i))
            block = i;
    }
    return block >= 0 ? block : best;
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

static void build_plan(struct experiment *experiment, const struct collective *collective,
                       struct plan *plan)
{
    const struct plan_options options = {.is_latency_free = experiment->ideal.latency,
                                         .is_contention_free = experiment->ideal.contention,
                                         .is_average = collective->is_average};
    const struct group *group =
        &experiment->program->communicators.items[collective->communicator].group;
    if (plan_build(&experiment->arena, &experiment->layout, group, collective->op,
                   collective->bytes, &options, plan, experiment->diag) != STATUS_OK)
        BUG("a plan that was played cannot be built");
}

static void note_slowest(const struct experiment *experiment, const struct plan *plan,
                         struct explained *unit)
{
    const int32_t link = plan_bottleneck(&experiment->layout, plan);
    if (link < 0)
        return;
    unit->slowest_bytes = plan_load_bytes(plan, link);
    unit->slowest = experiment->layout.resources[link].name;
    unit->slowest_bytes_per_s = experiment->layout.resources[link].capacity;
}

static void measure_collective(struct experiment *experiment, const struct op *op,
                               enum direction direction, struct explained *unit)
{
    const struct program *program = experiment->program;
    const struct collective *collective = &program->collectives.items[op->index];
    const bool is_exchange =
        program->communicators.items[collective->communicator].is_tensor_parallel;
    struct collectives *sum = is_exchange ? unit->exchanges + direction
                              : collective->op == COLLECTIVE_ALL_GATHER ? unit->gathers + direction
                              : collective->op == COLLECTIVE_REDUCE_SCATTER ? &unit->reduce
                                                                            : &unit->replicas;
    struct plan plan = {0};
    build_plan(experiment, collective, &plan);
    if (sum == unit->gathers && sum->count == 0)
        note_slowest(experiment, &plan, unit);
    sum->count++;
    sum->alone_s += plan_alone_s(&experiment->layout, &plan);
    sum->communicator = collective->communicator;
    if (is_exchange && program->streams.items[op->stream].role != STREAM_COMPUTE)
        unit->has_exchanges_beside = true;
}

static void measure_op(struct experiment *experiment, const struct op *op, enum direction direction,
                       struct explained *unit)
{
    if (op->kind == OP_COLLECTIVE)
        measure_collective(experiment, op, direction, unit);
    if (op->kind != OP_SEGMENT)
        return;
    const struct segment *segment = &experiment->program->segments.items[op->index];
    if (segment->kernel_count > 0 && kernel_is_copy(segment->kernels[0].kind))
        return;
    unit->compute_s[direction] += explain_segment_alone_s(experiment, segment);
}

/* Reads the unit out of the program: its compute and collectives of the first microbatch. */
static void measure(struct experiment *experiment, int32_t index, struct explained *unit)
{
    const struct program *program = experiment->program;
    unit->name = program->units.items[index].name;
    unit->gather_bytes = (double)program->units.items[index].all_gather_bytes;
    unit->reduce_bytes = (double)program->units.items[index].reduce_scatter_bytes;
    enum direction direction = FORWARD;
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        if (op->kind == OP_MARK && op->index == MARK_BACKWARD_END)
            return;
        if (op->kind == OP_MARK && op->index == MARK_FORWARD_END)
            direction = BACKWARD;
        if (op->unit == index)
            measure_op(experiment, op, direction, unit);
    }
}

static void write_volumes(const struct explained *unit, int64_t ranks, FILE *file)
{
    const double n = (double)ranks;
    const double share = (n - 1) / n;
    const double gather = share * unit->gather_bytes, reduce = share * unit->reduce_bytes;
    const int64_t gathers = unit->gathers[FORWARD].count + unit->gathers[BACKWARD].count;
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
    fprintf(file, "  this configuration: %" PRId64 " gather%s a microbatch\n\n", gathers,
            gathers == 1 ? "" : "s");
}

/* A gather of forward, or, of a unit that has none there, of backward. */
static double one_gather_s(const struct explained *unit)
{
    const struct collectives *gathers =
        &unit->gathers[unit->gathers[FORWARD].count > 0 ? FORWARD : BACKWARD];
    return gathers->count > 0 ? gathers->alone_s / (double)gathers->count : 0;
}

static double exchange_s(const struct explained *unit)
{
    return unit->exchanges[FORWARD].alone_s + unit->exchanges[BACKWARD].alone_s;
}

static void write_collectives(const struct program *program, const struct explained *unit,
                              FILE *file)
{
    const struct collectives *again = &unit->gathers[BACKWARD];
    const int64_t exchanges = unit->exchanges[FORWARD].count + unit->exchanges[BACKWARD].count;
    if (unit->slowest != NULL)
        fprintf(file,
                "  slowest link: %s, %.9g GB/s; a gather puts %.9g MB on each: %.9g ms at least\n",
                unit->slowest, unit->slowest_bytes_per_s / 1e9, unit->slowest_bytes / 1e6,
                unit->slowest_bytes / unit->slowest_bytes_per_s * 1e3);
    fprintf(file,
            "  all-gather %.9g ms, reduce-scatter %.9g ms; forward %.9g ms, backward %.9g ms\n",
            one_gather_s(unit) * 1e3, unit->reduce.alone_s * 1e3, unit->compute_s[FORWARD] * 1e3,
            unit->compute_s[BACKWARD] * 1e3);
    if (unit->gathers[FORWARD].count > 0 && again->count > 0 &&
        again->communicator != unit->gathers[FORWARD].communicator)
        fprintf(file, "  all-gather of backward, among %d GPUs: %.9g ms\n",
                (int)program->communicators.items[again->communicator].group.ranks,
                again->alone_s / (double)again->count * 1e3);
    if (unit->replicas.count > 0)
        fprintf(file, "  all-reduce of shards over %d replicas: %.9g ms\n",
                (int)program->communicators.items[unit->replicas.communicator].group.ranks,
                unit->replicas.alone_s * 1e3);
    if (exchanges > 0)
        fprintf(file,
                "  tensor parallelism: %" PRId64 " exchanges %s kernels, forward %.9g ms, backward "
                "%.9g ms\n",
                exchanges, unit->has_exchanges_beside ? "beside" : "between",
                unit->exchanges[FORWARD].alone_s * 1e3, unit->exchanges[BACKWARD].alone_s * 1e3);
}

static void write_times(const struct program *program, const struct explained *unit,
                        double hidden_frac, FILE *file)
{
    const double compute = unit->compute_s[FORWARD] + unit->compute_s[BACKWARD];
    const double comm = unit->gathers[FORWARD].alone_s + unit->gathers[BACKWARD].alone_s +
                        unit->reduce.alone_s + unit->replicas.alone_s;
    fprintf(file, "time of one unit, everything alone\n");
    write_collectives(program, unit, file);
    if (!(compute > 0)) {
        fputc('\n', file);
        return;
    }
    fprintf(file, "  communication%s / compute = %.9g / %.9g ms = %.6g%s\n",
            exchange_s(unit) > 0 ? " of sharding" : "", comm * 1e3, compute * 1e3, comm / compute,
            comm / compute > 0.3 ? " (over 0.3: sharding costs, says the rule of thumb)" : "");
    fprintf(file, "  no overlap: %.9g ms, %.6g %% slower than compute alone\n",
            (compute + comm) * 1e3, comm / compute * 100);
    if (hidden_frac >= 0)
        fprintf(file, "  with %.6g of it hidden: exposed %.4g ms, %.4g %% slower\n", hidden_frac,
                comm * (1 - hidden_frac) * 1e3, comm * (1 - hidden_frac) / compute * 100);
    fputc('\n', file);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* What backward must hide: collectives of one communicator follow each other, others run beside. */
static double backward_comm_s(const struct explained *unit, bool is_separate)
{
    const double gathers_s = unit->gathers[BACKWARD].alone_s, reduce_s = unit->reduce.alone_s;
    const double shards_s = is_separate ? larger(gathers_s, reduce_s) : gathers_s + reduce_s;
    return larger(shards_s, unit->replicas.alone_s);
}

/* Exchanges between kernels lengthen what collectives of sharding can hide behind. */
static void write_overlap(const struct explained *unit, FILE *file)
{
    const enum direction last = unit->gathers[BACKWARD].count > 0 ? BACKWARD : FORWARD;
    const bool is_separate =
        unit->reduce.count > 0 && unit->reduce.communicator != unit->gathers[last].communicator;
    const bool is_replicated = unit->replicas.count > 0;
    const bool is_between = exchange_s(unit) > 0 && !unit->has_exchanges_beside;
    const char *busy = is_between ? "compute + exchanges" : "compute";
    double busy_s[DIRECTION_COUNT];
    for (int i = 0; i < DIRECTION_COUNT; i++)
        busy_s[i] = unit->compute_s[i] + (is_between ? unit->exchanges[i].alone_s : 0);
    fprintf(file, "overlap of equal units in steady state\n");
    fprintf(file, "  forward  max(%s, gather)            = %.9g ms a unit\n", busy,
            larger(busy_s[FORWARD], one_gather_s(unit)) * 1e3);
    fprintf(file, "  backward max(%s, %s%s) = %.9g ms a unit\n", busy,
            is_separate ? "gather, scatter" : "gather + scatter",
            is_replicated ? ", all-reduce" : "",
            larger(busy_s[BACKWARD], backward_comm_s(unit, is_separate)) * 1e3);
    fprintf(file, "  always exposed: the first gather and the last scatter%s = %.9g ms\n\n",
            is_replicated ? " and all-reduce" : "",
            (one_gather_s(unit) + unit->reduce.alone_s + unit->replicas.alone_s) * 1e3);
}

bool report_explain_unit(struct experiment *experiment, double hidden_frac, FILE *file)
{
    struct explained unit = {0};
    measure(experiment, explain_choose_unit(experiment->program), &unit);
    if (!(unit.gather_bytes > 0) && !(unit.reduce_bytes > 0))
        return false;
    write_volumes(&unit, experiment->mesh.dp_shard, file);
    write_times(experiment->program, &unit, hidden_frac, file);
    write_overlap(&unit, file);
    return true;
}
