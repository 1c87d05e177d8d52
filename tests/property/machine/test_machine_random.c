/*
 * tests/property/machine/test_machine_random.c: random programs and kernels.
 *
 * A random program is free of deadlock by itself: waits refer to records issued before them, and
 * all classes issue collectives in one order. Figures are odd on purpose, so that rounding shows.
 */
#include <string.h>

#include "base/philox.h"
#include "base/units.h"
#include "check.h"
#include "machine_property.h"
#include "observe/critical_path.h"

enum { SEED = 20251, PROGRAMS = 300, KERNEL_RUNS = 2000, MAX_KERNELS = 40, EVENTS = 6 };

struct seen {
    int64_t mark_ps[3][8][MARK_COUNT]; /* by class, step + 1 and mark: the last */
    int64_t freed_bytes, held_bytes;
};

static void see_mark(void *context, int64_t now_ps, int32_t class_idx, int32_t step, enum mark mark)
{
    struct seen *seen = context;
    seen->mark_ps[class_idx][step + 1][mark] = now_ps;
}

static void see_memory(void *context, const struct memory_change *change)
{
    struct seen *seen = context;
    seen->held_bytes += change->delta_bytes;
    if (change->delta_bytes < 0)
        seen->freed_bytes -= change->delta_bytes;
}

static void see_use(void *context, int64_t now_ps, int32_t resource, double amount, int64_t busy_ps)
{
    (void)context;
    (void)now_ps;
    (void)resource;
    (void)amount;
    (void)busy_ps;
}

static void watch(struct toy *toy, struct seen *seen)
{
    memset(seen, 0, sizeof(*seen));
    toy->observers[0] = (struct observer){.context = seen,
                                          .mark_reached = see_mark,
                                          .memory_changed = see_memory,
                                          .resource_used = see_use};
    toy->observer_count = 1;
}

static int32_t below(struct philox *random, uint32_t n)
{
    return (int32_t)philox_below(random, n);
}

static int32_t random_segment(struct philox *random, struct toy *toy)
{
    const int32_t count = 1 + below(random, 12);
    struct kernel *kernels = ARENA_ARRAY(&toy->arena, struct kernel, count);
    for (int32_t i = 0; i < count; i++) {
        /* Some kernels take no time; some would use all of the memory alone. */
        const double ms = below(random, 5) == 0 ? 0 : philox_unit(random);
        kernels[i] = toy_kernel(ms, ms * 1e-3 * 4e12 * philox_unit(random) * 1.2);
    }
    return toy_kernels(toy, kernels, count);
}

struct tables {
    int32_t segments[4], collectives[4], events[EVENTS], tensors[3];
};

static struct tables random_tables(struct philox *random, struct toy *toy)
{
    struct tables tables;
    const int32_t other = toy_communicator(toy, "other");
    for (int32_t i = 0; i < 4; i++) {
        tables.segments[i] = random_segment(random, toy);
        tables.collectives[i] =
            toy_collective(toy, i % 2 == 0 ? COLLECTIVE_ALL_GATHER : COLLECTIVE_REDUCE_SCATTER,
                           i < 2 ? 0 : other, 3 * philox_unit(random));
    }
    for (int32_t i = 0; i < EVENTS; i++)
        tables.events[i] = toy_event(toy, "event");
    for (int32_t i = 0; i < 3; i++)
        tables.tensors[i] = toy_tensor(toy, "tensor", 1 + below(random, 5000), MEMORY_TEMPORARIES,
                                       below(random, TOY_STREAM_COUNT));
    return tables;
}

static void random_memory(struct philox *random, struct toy *toy, const struct tables *tables)
{
    const int32_t tensor = tables->tensors[below(random, 3)];
    toy_op(toy, OP_ALLOC, 0, tensor);
    const int32_t how = below(random, 4);
    if (how == 0) {
        toy_op(toy, OP_FREE_AFTER, 0, tensor)->count = tables->events[below(random, EVENTS)];
        return;
    }
    if (how == 1)
        toy_op(toy, OP_RECORD_STREAM, below(random, TOY_STREAM_COUNT), tensor);
    toy_op(toy, OP_FREE, 0, tensor);
}

static void random_op(struct philox *random, struct toy *toy, const struct tables *tables)
{
    const int32_t stream = below(random, TOY_STREAM_COUNT);
    struct op *op = NULL;
    switch (below(random, 8)) {
    case 0:
    case 1:
        op = toy_op(toy, OP_SEGMENT, stream, tables->segments[below(random, 4)]);
        break;
    case 2:
        op = toy_op(toy, OP_COLLECTIVE, stream, tables->collectives[below(random, 4)]);
        break;
    case 3:
        op = toy_op(toy, OP_RECORD, stream, tables->events[below(random, EVENTS)]);
        break;
    case 4:
    case 5:
        op = toy_op(toy, OP_WAIT, stream, tables->events[below(random, EVENTS)]);
        break;
    case 6:
        op = below(random, 3) > 0
                 ? toy_op(toy, OP_MARK, stream, below(random, MARK_COUNT))
                 : toy_op(toy, OP_HOST_WAIT, 0, tables->events[below(random, EVENTS)]);
        break;
    default:
        random_memory(random, toy, tables);
        return;
    }
    const int32_t when = below(random, 8);
    op->flags = when == 0 ? OP_FIRST_STEP : when == 1 ? OP_LATER_STEPS : 0;
}

static void random_program(struct philox *random, struct toy *toy)
{
    toy_init(toy, 3, below(random, 3) == 0);
    for (int32_t i = 0; i < toy->layout.class_count; i++)
        toy->layout.classes[i].clock_frac = below(random, 2) == 0 ? 1 : 0.7 + 0.01 * i;
    toy->cluster.hbm_bytes_per_bus_byte = 500 * philox_unit(random);
    toy->cluster.channels_one_host = below(random, 30);
    toy->cluster.kernel_loss_per_hbm_share = philox_unit(random);
    toy->cluster.comm_slowdown = 1 + philox_unit(random);
    toy->cluster.scale_up_link.step_latency_s = 1e-4 * philox_unit(random);
    toy->cluster.scale_up_link.ring_efficiency = 0.4 + 0.6 * philox_unit(random);
    toy->cluster.host_cost_s[HOST_KERNEL] = 1e-4 * below(random, 7) * philox_unit(random);
    toy->cluster.host_cost_s[HOST_STREAM_OP] = 1e-5 * below(random, 3);
    toy->network = below(random, 2) == 0 ? NETWORK_FLOWS : NETWORK_MESSAGES;
    toy->steps = 1 + below(random, 6);
    const struct tables tables = random_tables(random, toy);
    for (int32_t i = 0; i < 5; i++)
        random_op(random, toy, &tables);
    toy->list = &toy->program->prologue;
    for (int32_t i = 0; i < 5; i++)
        random_op(random, toy, &tables);
    toy->list = &toy->program->step;
    const int32_t count = 10 + below(random, 60);
    for (int32_t i = 0; i < count; i++)
        random_op(random, toy, &tables);
}

/* Same end, same marks, whatever the order of ties; same trajectory with and without observers. */
static void test_random_programs(void)
{
    for (uint32_t i = 0; i < PROGRAMS; i++) {
        struct philox random;
        struct toy toy;
        struct seen first, other;
        philox_init(&random, SEED, i, 0, 1);
        random_program(&random, &toy);
        check_context("seed %d, program %u", SEED, i);
        const struct machine_result bare = toy_play(&toy);
        watch(&toy, &first);
        const struct machine_result watched = toy_play(&toy);
        bool is_good = CHECK_U64(watched.fingerprint, bare.fingerprint);
        is_good &= CHECK_INT(watched.end_ps, bare.end_ps);
        is_good &= CHECK_INT(first.held_bytes, 0);
        for (uint64_t tie = 1; tie <= 3; tie++) {
            toy.tie_seed = tie * 7919;
            watch(&toy, &other);
            is_good &= CHECK_INT(toy_play(&toy).end_ps, bare.end_ps);
            is_good &= CHECK_TRUE(memcmp(&first, &other, sizeof(first)) == 0);
        }
        toy_release(&toy);
        if (!is_good)
            break;
    }
    check_context(NULL);
}

/* A limit that is never reached: the same end, and it does not matter whether anyone looks. */
static void test_limit_out_of_reach(void)
{
    for (uint32_t i = 0; i < PROGRAMS; i++) {
        struct philox random;
        struct toy toy;
        struct seen seen;
        philox_init(&random, SEED, i, 0, 4);
        random_program(&random, &toy);
        toy.observer_count = 0;
        const struct machine_result free_of_limits = toy_play(&toy);
        toy.limits_memory = true;
        toy.cluster.gpu.memory_bytes = INT64_C(1) << 40;
        const struct machine_result bare = toy_play(&toy);
        watch(&toy, &seen);
        const struct machine_result watched = toy_play(&toy);
        check_context("seed %d, program %u", SEED, i);
        bool is_good = CHECK_INT(bare.end_ps, free_of_limits.end_ps);
        is_good &= CHECK_U64(watched.fingerprint, bare.fingerprint);
        toy_release(&toy);
        if (!is_good)
            break;
    }
    check_context(NULL);
}

/* Alone on its stream, a segment ends at max over i (issue_i + Σ_{j>=i} t_j). */
static void test_segment_closed_form(void)
{
    for (uint32_t run = 0; run < KERNEL_RUNS; run++) {
        struct philox random;
        struct toy toy;
        struct kernel kernels[MAX_KERNELS];
        philox_init(&random, SEED, run, 0, 2);
        toy_init(&toy, 2, true);
        const int32_t count = 1 + below(&random, MAX_KERNELS);
        const double cost_s = 1e-6 * below(&random, 20) * philox_unit(&random);
        toy.cluster.host_cost_s[HOST_KERNEL] = cost_s;
        const int64_t cost_ps = ps_from_s(cost_s);
        int64_t end_ps = 0;
        for (int32_t i = 0; i < count; i++) {
            const double ms = 1e-3 * below(&random, 30) * philox_unit(&random);
            kernels[i] = toy_kernel(ms, 0);
            const int64_t issue_ps = (i + 1) * cost_ps;
            end_ps = (end_ps > issue_ps ? end_ps : issue_ps) + ps_from_s(ms * 1e-3);
        }
        toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_kernels(&toy, kernels, count));
        toy_op(&toy, OP_MARK, TOY_COMPUTE, MARK_STEP_END);
        check_context("seed %d, kernels %u", SEED, run);
        const bool is_good = CHECK_INT(toy_play(&toy).end_ps, end_ps);
        toy_release(&toy);
        if (!is_good)
            break;
    }
    check_context(NULL);
}

/* One class of three ranks, or three classes of one: the same marks. */
static void test_folded_or_not(void)
{
    for (uint32_t i = 0; i < 60; i++) {
        struct philox random;
        struct toy toy;
        struct seen seen;
        int64_t end_ps[2];
        for (int32_t folded = 0; folded < 2; folded++) {
            philox_init(&random, SEED, i, 0, 3);
            random_program(&random, &toy);
            struct toy twin;
            toy_init(&twin, 3, folded != 0);
            twin.cluster = toy.cluster;
            twin.layout.cluster = &twin.cluster;
            twin.network = toy.network;
            twin.steps = toy.steps;
            twin.programs[0] = toy.program;
            watch(&twin, &seen);
            end_ps[folded] = toy_play(&twin).end_ps;
            toy_release(&twin);
            toy_release(&toy);
        }
        check_context("seed %d, program %u", SEED, i);
        CHECK_INT(end_ps[0], end_ps[1]);
    }
    check_context(NULL);
}

static bool check_entry(const struct journal *journal, const struct journal_entry *entry)
{
    const struct journal_stream *by =
        &journal->classes[entry->by.class_idx].streams[entry->by.stream];
    if (!entry->is_held && entry->performance.kind != ACTIVITY_COMMUNICATION)
        return CHECK_TRUE(entry->end_ps - entry->begin_ps >= entry->performance.alone_ps);
    if (!entry->is_held)
        return CHECK_INT(by->items[entry->by.entry].begin_ps, entry->transfer_ps);
    if (entry->hold == HOLD_HOST)
        return CHECK_INT(entry->by.stream, -1);
    return CHECK_INT(by->items[entry->by.entry - 1].end_ps, entry->end_ps);
}

/* From 0 on every stream's entries follow each other, and what ended a wait ended then. */
static bool check_journal(const struct journal *journal)
{
    bool is_good = true;
    for (int32_t c = 0; c < journal->class_count; c++) {
        for (int32_t s = 0; s < TOY_STREAM_COUNT; s++) {
            const struct journal_stream *stream = &journal->classes[c].streams[s];
            int64_t end_ps = 0;
            for (int32_t i = 0; i < stream->count && is_good; i++) {
                is_good &= CHECK_INT(stream->items[i].begin_ps, end_ps);
                is_good &= check_entry(journal, &stream->items[i]);
                end_ps = stream->items[i].end_ps;
            }
        }
    }
    return is_good;
}

/* The marks of a step on one stream, around it, instead of the random ones. */
static void mark_step(struct toy *toy, int32_t stream)
{
    struct op_list *ops = &toy->program->step;
    for (int32_t i = 0; i < ops->count; i++) {
        if (ops->items[i].kind == OP_MARK)
            ops->items[i].index = MARK_FORWARD_BEGIN;
    }
    toy_op(toy, OP_MARK, stream, MARK_STEP_BEGIN);
    const struct op begin = ops->items[ops->count - 1];
    memmove(&ops->items[1], ops->items, sizeof(begin) * (size_t)(ops->count - 1));
    ops->items[0] = begin;
    toy_op(toy, OP_MARK, stream, MARK_STEP_END);
}

/* The path is as long as what it explains, and so are what the stream did and waited for. */
static bool check_path(struct toy *toy, const struct journal *journal, int32_t class_idx,
                       int32_t stream)
{
    const struct critical_path *path = critical_path_find(&toy->arena, journal, class_idx);
    const struct journal_class *class = &journal->classes[class_idx];
    int64_t sum_ps = 0;
    for (int32_t i = 0; i < path->shares.count; i++)
        sum_ps += path->shares.items[i].ps;
    bool is_good = CHECK_INT(sum_ps, class->closed_ps - class->opened_ps);
    int64_t busy_ps = 0;
    for (int32_t i = 0; i < class->streams[stream].count; i++) {
        const struct journal_entry *entry = &class->streams[stream].items[i];
        const int64_t begin =
            entry->begin_ps > class->opened_ps ? entry->begin_ps : class->opened_ps;
        const int64_t end = entry->end_ps < class->closed_ps ? entry->end_ps : class->closed_ps;
        busy_ps += !entry->is_held && end > begin ? end - begin : 0;
    }
    is_good &= CHECK_INT(path->held_ps + busy_ps, sum_ps);
    return is_good;
}

static void test_journal(void)
{
    for (uint32_t i = 0; i < PROGRAMS; i++) {
        struct philox random;
        struct toy toy;
        philox_init(&random, SEED, i, 0, 4);
        random_program(&random, &toy);
        const int32_t stream = below(&random, TOY_STREAM_COUNT);
        mark_step(&toy, stream);
        const struct machine_result bare = toy_play(&toy);
        struct journal *journal =
            journal_new(&toy.arena, &toy.layout, (const struct program *const *)toy.programs,
                        toy.program_count, 0, toy.steps);
        toy.observers[0] = journal_observer(journal);
        toy.observer_count = 1;
        check_context("seed %d, program %u", SEED, i);
        bool is_good = CHECK_U64(toy_play(&toy).fingerprint, bare.fingerprint);
        is_good &= check_journal(journal);
        journal_close(journal);
        for (int32_t c = 0; c < journal->class_count; c++)
            is_good &= check_path(&toy, journal, c, stream);
        toy_release(&toy);
        if (!is_good)
            break;
    }
    check_context(NULL);
}

static const struct check_case cases[] = {
    {"random programs", test_random_programs},         {"journal", test_journal},
    {"segment closed form", test_segment_closed_form}, {"folded or not", test_folded_or_not},
    {"a limit out of reach", test_limit_out_of_reach}, {0},
};

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"machine", cases},
                                         {"groups", groups_cases},
                                         {"links", links_cases},
                                         {"pipelines", pipelines_cases},
                                         {0}};
    return check_main(argc, argv, suites);
}
