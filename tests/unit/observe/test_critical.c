/*
 * tests/unit/observe/test_critical.c: the critical path of steps that are played by hand.
 *
 * units-32: forward 10 ms, gather 15, backward 20, scatter 15, one communicator. Forward: gathers
 * one behind the other, 32 · 15, then 10 of the last unit = 490; its second gather 480 … 495, its
 * backward until 515, its scatter until 530, the gather of unit 29 until 545, and from there
 * scatter(k + 2), gather(k) in turn, 30 ms a unit, until gather(0) ends at 1415; backward(0) 20,
 * scatter(0) 15: 1450. On the path: gathers 32 + 1 + 30, scatters 30 + 1, backward(31), (0).
 */
#include "observe/critical_path.h"
#include "observe_tests.h"
#include "toy.h"
#include "units.h"

#define MS INT64_C(1000000000)

static const struct critical_path *find(struct toy *toy, int32_t warmup, int32_t class_idx)
{
    struct journal *journal =
        journal_new(&toy->arena, &toy->layout, (const struct program *const *)toy->programs,
                    toy->program_count, warmup, toy->steps - warmup);
    toy->observers[0] = journal_observer(journal);
    toy->observer_count = 1;
    (void)toy_play(toy);
    journal_close(journal);
    return critical_path_find(&toy->arena, journal, class_idx);
}

static int64_t share(const struct critical_path *path, enum path_cause cause, int32_t unit)
{
    for (int32_t i = 0; i < path->shares.count; i++) {
        const struct path_share *item = &path->shares.items[i];
        if (item->cause == cause && item->unit == unit)
            return item->ps;
    }
    return 0;
}

static void check_sum(const struct critical_path *path, int64_t length_ps)
{
    int64_t sum_ps = 0;
    for (int32_t i = 0; i < PATH_CAUSE_COUNT; i++)
        sum_ps += path->by_cause_ps[i];
    CHECK_INT(sum_ps, length_ps);
    CHECK_INT(path->length_ps, length_ps);
}

/* The waits of a phase for a cause: how many, how long in all. */
static void check_waits(const struct critical_path *path, enum path_phase phase,
                        enum path_cause cause, int64_t count, int64_t ps)
{
    int64_t found = 0;
    int64_t sum_ps = 0;
    for (int32_t i = 0; i < path->waits.count; i++) {
        const struct path_wait *item = &path->waits.items[i];
        if (item->phase != phase || item->for_cause != cause)
            continue;
        found += item->count;
        sum_ps += item->ps;
    }
    check_context("%s waits for %s", path_phase_name(phase), path_cause_name(cause));
    CHECK_INT(found, count);
    CHECK_INT(sum_ps, ps);
    check_context(NULL);
}

static const struct path_wait *wait_of(const struct critical_path *path, enum path_phase phase,
                                       int32_t unit)
{
    static const struct path_wait none = {.unit = -9};
    for (int32_t i = 0; i < path->waits.count; i++) {
        const struct path_wait *item = &path->waits.items[i];
        if (item->phase == phase && item->unit == unit)
            return item;
    }
    return &none;
}

static void test_units_3(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    toy.steps = 3;
    struct units units = units_equal(3, 25, 50, 10, 10);
    units_write(&units, &toy);
    const struct critical_path *path = find(&toy, 1, 0);
    check_sum(path, 2 * 245 * MS);
    CHECK_INT(path->by_cause_ps[PATH_COMPUTE], 2 * 225 * MS);
    for (int32_t unit = 0; unit < 3; unit++)
        CHECK_INT(share(path, PATH_COMPUTE, unit), 2 * 75 * MS);
    CHECK_INT(share(path, PATH_ALL_GATHER, 0), 2 * 10 * MS);
    CHECK_INT(share(path, PATH_REDUCE_SCATTER, 0), 2 * 10 * MS);
    CHECK_INT(path->waits.count, 2);
    CHECK_INT(path->held_ps, 2 * 20 * MS);
    /* The first gather stands behind the last scatter of the step before. */
    const struct path_wait *first = wait_of(path, PHASE_FORWARD, 0);
    CHECK_INT(first->ps, 2 * 10 * MS);
    CHECK_INT(first->count, 2);
    CHECK_INT(first->for_cause, PATH_ALL_GATHER);
    CHECK_INT(first->for_unit, 0);
    CHECK_INT(first->late, LATE_TURN);
    CHECK_INT(first->late_cause, PATH_REDUCE_SCATTER);
    CHECK_INT(first->late_unit, 0);
    const struct path_wait *last = wait_of(path, PHASE_BACKWARD, -1);
    CHECK_INT(last->ps, 2 * 10 * MS);
    CHECK_INT(last->for_cause, PATH_REDUCE_SCATTER);
    CHECK_INT(last->late, LATE_EVENT);
    CHECK_INT(last->late_cause, PATH_COMPUTE);
    toy_release(&toy);
}

static void test_units_32(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    struct units units = units_equal(32, 10, 20, 15, 15);
    units_write(&units, &toy);
    const struct critical_path *path = find(&toy, 0, 0);
    check_sum(path, 1450 * MS);
    CHECK_INT(path->by_cause_ps[PATH_ALL_GATHER], (32 + 1 + 30) * 15 * MS);
    CHECK_INT(path->by_cause_ps[PATH_REDUCE_SCATTER], 31 * 15 * MS);
    CHECK_INT(path->by_cause_ps[PATH_COMPUTE], 40 * MS);
    CHECK_INT(share(path, PATH_COMPUTE, 31), 20 * MS);
    CHECK_INT(share(path, PATH_COMPUTE, 0), 20 * MS);
    CHECK_INT(share(path, PATH_ALL_GATHER, 30), 15 * MS); /* forward's only */
    CHECK_INT(share(path, PATH_ALL_GATHER, 29), 30 * MS);
    CHECK_INT(share(path, PATH_REDUCE_SCATTER, 1), 0);
    check_waits(path, PHASE_FORWARD, PATH_ALL_GATHER, 32, (15 + 31 * 5) * MS);
    check_waits(path, PHASE_BACKWARD, PATH_ALL_GATHER, 31, (5 + 30 * 10) * MS);
    check_waits(path, PHASE_BACKWARD, PATH_REDUCE_SCATTER, 1, 15 * MS);
    CHECK_INT(path->held_ps, 490 * MS);
    const struct path_wait *forward = wait_of(path, PHASE_FORWARD, 7);
    CHECK_INT(forward->ps, 5 * MS);
    CHECK_INT(forward->late, LATE_STREAM);
    CHECK_INT(forward->late_cause, PATH_ALL_GATHER);
    CHECK_INT(forward->late_unit, 6);
    const struct path_wait *backward = wait_of(path, PHASE_BACKWARD, 7);
    CHECK_INT(backward->ps, 10 * MS);
    CHECK_INT(backward->for_unit, 7);
    CHECK_INT(backward->late, LATE_TURN);
    CHECK_INT(backward->late_cause, PATH_REDUCE_SCATTER);
    CHECK_INT(backward->late_unit, 9);
    toy_release(&toy);
}

/* Parameters kept; (backward, scatter) = (2, 18), (2, 18), (20, 2), (20, 2) in backward order: the
   second unit of each four waits 18 − 2 for the buffer of the first; 2 for the last scatter. The
   first unit's scatter begins when its backward ends and, in all fours but the first, when the
   scatter before does: that one, on the same stream, is on the path, 2 for 2. */
static void test_reduce_buffers(void)
{
    static const double backward_ms[4] = {20, 20, 2, 2};
    static const double scatter_ms[4] = {2, 2, 18, 18};
    struct toy toy;
    toy_init(&toy, 2, true);
    struct units units = units_equal(32, 2, 0, 1, 0);
    units.is_resharded = false;
    for (int32_t i = 0; i < 32; i++) {
        units.backward_ms[i] = backward_ms[i % 4];
        units.scatter_ms[i] = scatter_ms[i % 4];
    }
    units_write(&units, &toy);
    const struct critical_path *path = find(&toy, 0, 0);
    check_sum(path, (65 + 482) * MS);
    CHECK_INT(path->by_cause_ps[PATH_ALL_GATHER], MS);
    CHECK_INT(path->by_cause_ps[PATH_REDUCE_SCATTER], (8 * 18 + 2 + 7 * 2) * MS);
    CHECK_INT(path->by_cause_ps[PATH_COMPUTE], (64 + 336 - 7 * 2) * MS);
    check_waits(path, PHASE_BACKWARD, PATH_REDUCE_SCATTER, 9, (8 * 16 + 2) * MS);
    check_waits(path, PHASE_FORWARD, PATH_ALL_GATHER, 1, MS);
    const struct path_wait *wait = wait_of(path, PHASE_BACKWARD, 2);
    CHECK_INT(wait->ps, 16 * MS);
    CHECK_INT(wait->for_unit, 3);
    CHECK_INT(wait->late, LATE_STREAM);
    CHECK_INT(wait->late_cause, PATH_REDUCE_SCATTER);
    CHECK_INT(wait->late_unit, 4);
    const struct path_wait *first = wait_of(path, PHASE_BACKWARD, 30);
    CHECK_INT(first->ps, 16 * MS);
    CHECK_INT(first->late, LATE_EVENT);
    CHECK_INT(first->late_cause, PATH_COMPUTE);
    CHECK_INT(first->late_unit, 31);
    toy_release(&toy);
}

/* Five kernels of 10 us, each 30 us of the host: the last one and the host. */
static void test_host(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    struct kernel kernels[5];
    for (int32_t i = 0; i < 5; i++)
        kernels[i] = toy_kernel(0.01, 0);
    toy.cluster.host_cost_s[HOST_KERNEL] = 30e-6;
    toy.cluster.host_cost_s[HOST_STEP] = 70e-6;
    toy_op(&toy, OP_MARK, TOY_COMPUTE, MARK_STEP_BEGIN);
    toy.unit = toy_unit(&toy, "a");
    const int32_t event = toy_event(&toy, "done");
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_kernels(&toy, kernels, 5));
    toy_op(&toy, OP_RECORD, TOY_COMPUTE, event);
    /* The host waits for them, works for 70 us, issues one more. */
    toy_op(&toy, OP_HOST_WAIT, 0, event);
    toy.unit = toy_unit(&toy, "b");
    toy_op(&toy, OP_HOST_WORK, 0, HOST_STEP)->count = 1;
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_kernels(&toy, kernels, 1));
    toy_op(&toy, OP_MARK, TOY_COMPUTE, MARK_STEP_END);
    const struct critical_path *path = find(&toy, 0, 0);
    check_sum(path, (150 + 10 + 100 + 10) * MS / 1000);
    CHECK_INT(share(path, PATH_HOST, 0), 150 * MS / 1000);
    CHECK_INT(share(path, PATH_HOST, 1), 100 * MS / 1000);
    CHECK_INT(path->by_cause_ps[PATH_COMPUTE], 20 * MS / 1000);
    check_waits(path, PHASE_FORWARD, PATH_HOST, 6, (30 + 4 * 20 + 100) * MS / 1000);
    toy_release(&toy);
}

/* 5 ms of kernels, then the host computes for 70 ms before it issues 2 ms more. */
static void test_host_compute(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    /* Two ranks share 2 GB/s of memory. */
    toy.cluster.compute = (struct host_compute){
        .cores = 4, .memory_bytes_per_s = 2e9, .share = {1, 1}, .core_bytes_per_s = 1e9};
    const int32_t event = toy_event(&toy, "done");
    toy_op(&toy, OP_MARK, TOY_COMPUTE, MARK_STEP_BEGIN);
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "before", PASS_FORWARD, 5));
    toy_op(&toy, OP_RECORD, TOY_COMPUTE, event);
    toy_op(&toy, OP_HOST_WAIT, 0, event);
    toy_op(&toy, OP_HOST_COMPUTE, 0, HOST_PASS_FUSED)->bytes = 70000000;
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "behind", PASS_FORWARD, 2));
    toy_op(&toy, OP_MARK, TOY_COMPUTE, MARK_STEP_END);
    const struct critical_path *path = find(&toy, 0, 0);
    check_sum(path, 77 * MS);
    CHECK_INT(path->by_cause_ps[PATH_HOST_COMPUTE], 70 * MS);
    CHECK_INT(path->by_cause_ps[PATH_COMPUTE], 7 * MS);
    check_waits(path, PHASE_FORWARD, PATH_HOST_COMPUTE, 1, 70 * MS);
    toy_release(&toy);
}

/* Kernels of 10 ms, for which the host waits and then works for 3, as for the routing of experts;
   then a copy of 1 and the gather of 5 behind it: the gather was late for the host. */
static void test_late_host(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    toy.cluster.host_cost_s[HOST_STEP] = 3e-3;
    const int32_t routed = toy_event(&toy, "routed");
    const int32_t copied = toy_event(&toy, "copied");
    const int32_t gathered = toy_event(&toy, "gathered");
    toy_op(&toy, OP_MARK, TOY_COMPUTE, MARK_STEP_BEGIN);
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "router", PASS_FORWARD, 10));
    toy_op(&toy, OP_RECORD, TOY_COMPUTE, routed);
    toy_op(&toy, OP_HOST_WAIT, 0, routed);
    toy_op(&toy, OP_HOST_WORK, 0, HOST_STEP)->count = 1;
    toy_op(&toy, OP_SEGMENT, TOY_SCATTER, toy_segment(&toy, "copy", PASS_FORWARD, 1));
    toy_op(&toy, OP_RECORD, TOY_SCATTER, copied);
    toy_op(&toy, OP_WAIT, TOY_GATHER, copied);
    toy_op(&toy, OP_COLLECTIVE, TOY_GATHER, toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 5));
    toy_op(&toy, OP_RECORD, TOY_GATHER, gathered);
    toy_op(&toy, OP_WAIT, TOY_COMPUTE, gathered);
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "experts", PASS_FORWARD, 2));
    toy_op(&toy, OP_MARK, TOY_COMPUTE, MARK_STEP_END);
    const struct critical_path *path = find(&toy, 0, 0);
    check_sum(path, 21 * MS);
    CHECK_INT(path->by_cause_ps[PATH_HOST], 3 * MS);
    CHECK_INT(path->by_cause_ps[PATH_COMPUTE], 13 * MS);
    CHECK_INT(path->waits.count, 1);
    CHECK_INT(path->waits.items[0].ps, 9 * MS);
    CHECK_INT(path->waits.items[0].for_cause, PATH_ALL_GATHER);
    CHECK_INT(path->waits.items[0].late, LATE_HOST);
    toy_release(&toy);
}

static void write_gather_behind(struct toy *toy, double ms)
{
    const int32_t ready = toy_event(toy, "ready");
    const int32_t gathered = toy_event(toy, "gathered");
    toy_op(toy, OP_MARK, TOY_COMPUTE, MARK_STEP_BEGIN);
    toy_op(toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(toy, "work", PASS_FORWARD, ms));
    toy_op(toy, OP_RECORD, TOY_COMPUTE, ready);
    toy_op(toy, OP_WAIT, TOY_GATHER, ready);
    toy_op(toy, OP_COLLECTIVE, TOY_GATHER, toy_collective(toy, COLLECTIVE_ALL_GATHER, 0, 5));
    toy_op(toy, OP_RECORD, TOY_GATHER, gathered);
    toy_op(toy, OP_WAIT, TOY_COMPUTE, gathered);
    toy_op(toy, OP_MARK, TOY_COMPUTE, MARK_STEP_END);
}

/* Rank 0 computes for 10 ms, rank 1 for 30; then they gather for 5. */
static void test_rendezvous(void)
{
    for (int32_t rank = 0; rank < 2; rank++) {
        struct toy toy;
        toy_init(&toy, 2, false);
        write_gather_behind(&toy, 10);
        toy_next_program(&toy);
        write_gather_behind(&toy, 30);
        const struct critical_path *path = find(&toy, 0, rank);
        check_sum(path, 35 * MS);
        CHECK_INT(path->by_cause_ps[PATH_COMPUTE], 30 * MS);
        CHECK_INT(path->by_cause_ps[PATH_ALL_GATHER], 5 * MS);
        CHECK_INT(path->elsewhere_ps, (rank == 0 ? 30 : 0) * MS);
        CHECK_INT(path->waits.count, 1);
        CHECK_INT(path->waits.items[0].ps, (rank == 0 ? 25 : 5) * MS);
        CHECK_INT(path->waits.items[0].late, rank == 0 ? LATE_RENDEZVOUS : LATE_EVENT);
        CHECK_INT(path->waits.items[0].late_rank, rank == 0 ? 1 : -1);
        toy_release(&toy);
    }
}

/* A gather of 10 ms beside 5 ms of kernels that slow it by a quarter: 4 of 10 done after 5 ms, 11
   in all; then a kernel of 2. */
static void test_sharing(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    toy.cluster.comm_slowdown = 1.25;
    const int32_t gathered = toy_event(&toy, "gathered");
    toy_op(&toy, OP_MARK, TOY_COMPUTE, MARK_STEP_BEGIN);
    toy_op(&toy, OP_COLLECTIVE, TOY_GATHER, toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 10));
    toy_op(&toy, OP_RECORD, TOY_GATHER, gathered);
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "beside", PASS_FORWARD, 5));
    toy_op(&toy, OP_WAIT, TOY_COMPUTE, gathered);
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "behind", PASS_FORWARD, 2));
    toy_op(&toy, OP_MARK, TOY_COMPUTE, MARK_STEP_END);
    const struct critical_path *path = find(&toy, 0, 0);
    check_sum(path, 13 * MS);
    CHECK_INT(path->by_cause_ps[PATH_ALL_GATHER], 10 * MS);
    CHECK_INT(path->by_cause_ps[PATH_SHARING], MS);
    CHECK_INT(path->by_cause_ps[PATH_COMPUTE], 2 * MS);
    check_waits(path, PHASE_FORWARD, PATH_ALL_GATHER, 1, 6 * MS);
    toy_release(&toy);
}

const struct check_case critical_cases[] = {
    {"units-3", test_units_3},
    {"units-32", test_units_32},
    {"reduce buffers", test_reduce_buffers},
    {"host", test_host},
    {"host computes", test_host_compute},
    {"late host", test_late_host},
    {"rendezvous", test_rendezvous},
    {"sharing", test_sharing},
    {0},
};
