/* tests/unit/machine/test_machine.c: contention, rendezvous, host, memory, marks, deadlock. */
#include <string.h>

#include "check.h"
#include "suites.h"
#include "toy.h"

#define MS INT64_C(1000000000)

/* What a class was told, by kind of activity. */
struct told {
    int64_t end_ps[TOY_MAX_CLASSES][ACTIVITY_KIND_COUNT]; /* of the last one */
    int64_t begin_ps[TOY_MAX_CLASSES][ACTIVITY_KIND_COUNT];
    int32_t begin_count[ACTIVITY_KIND_COUNT];
    int64_t transfer_ps;
    double amount[64];
    int64_t busy_ps[64];
    int64_t memory_at_ps[32], memory_bytes[32];
    int32_t memory_step[32];
    int32_t memory_count;
    int64_t mark_ps[8];
    int32_t mark_count;
};

static void told_begin(void *context, int64_t now_ps, int32_t class_idx, enum activity_kind kind,
                       const struct op *op, double copy_frac)
{
    (void)op;
    (void)copy_frac;
    struct told *told = context;
    told->begin_ps[class_idx][kind] = now_ps;
    told->begin_count[kind]++;
}

static void told_end(void *context, int64_t now_ps, int32_t class_idx, enum activity_kind kind,
                     const struct op *op, double copy_frac)
{
    (void)op;
    (void)copy_frac;
    struct told *told = context;
    told->end_ps[class_idx][kind] = now_ps;
}

static void told_transfer(void *context, int64_t now_ps, int32_t class_idx, const struct op *op)
{
    (void)class_idx;
    (void)op;
    struct told *told = context;
    told->transfer_ps = now_ps;
}

static void told_used(void *context, int64_t now_ps, int32_t resource, double amount,
                      int64_t busy_ps)
{
    (void)now_ps;
    struct told *told = context;
    told->amount[resource] += amount;
    told->busy_ps[resource] += busy_ps;
}

static void told_memory(void *context, const struct memory_change *change)
{
    struct told *told = context;
    if (told->memory_count == 32)
        return;
    told->memory_at_ps[told->memory_count] = change->time_ps;
    told->memory_step[told->memory_count] = change->step;
    told->memory_bytes[told->memory_count++] = change->delta_bytes;
}

static void told_mark(void *context, int64_t now_ps, int32_t class_idx, int32_t step,
                      enum mark mark)
{
    (void)class_idx;
    (void)step;
    (void)mark;
    struct told *told = context;
    if (told->mark_count < 8)
        told->mark_ps[told->mark_count++] = now_ps;
}

static void watch(struct toy *toy, struct told *told)
{
    *told = (struct told){0};
    toy->observers[0] = (struct observer){.context = told,
                                          .activity_begin = told_begin,
                                          .activity_end = told_end,
                                          .transfer_begin = told_transfer,
                                          .resource_used = told_used,
                                          .memory_changed = told_memory,
                                          .mark_reached = told_mark};
    toy->observer_count = 1;
}

static void write_kernel_beside_gather(struct toy *toy, double kernel_ms, double kernel_bytes,
                                       double gather_ms)
{
    static struct kernel kernel;
    kernel = toy_kernel(kernel_ms, kernel_bytes);
    toy_op(toy, OP_SEGMENT, TOY_COMPUTE, toy_kernels(toy, &kernel, 1));
    toy_op(toy, OP_COLLECTIVE, TOY_GATHER,
           toy_collective(toy, COLLECTIVE_ALL_GATHER, 0, gather_ms));
}

/* 4 GB/s of HBM; kernel 100 ms alone at 3 GB/s, gather 50 ms at 2 GB/s: both at 4/5 until the
   gather has ended at 62.5 ms, when the kernel has done 50 ms of its work. */
static void test_hbm_is_shared(void)
{
    struct toy toy;
    struct told told;
    toy_init(&toy, 2, true);
    toy.cluster.hbm_bytes_per_bus_byte = 2;
    toy_set_capacity(&toy, RESOURCE_HBM, 4e9);
    watch(&toy, &told);
    write_kernel_beside_gather(&toy, 100, 0.3e9, 50);
    const struct machine_result result = toy_play(&toy);
    CHECK_INT(told.end_ps[0][ACTIVITY_COMMUNICATION], 62500 * MS / 1000);
    CHECK_INT(told.end_ps[0][ACTIVITY_COMPUTE], 112500 * MS / 1000);
    CHECK_INT(result.end_ps, 112500 * MS / 1000);
    const struct rank_class *class = &toy.layout.classes[0];
    CHECK_NEAR(told.amount[class->hbm], 0.3e9 + 2 * 50e6, 1e-12);
    CHECK_NEAR(told.amount[class->scale_up_out], 50e6, 1e-12);
    CHECK_INT(told.busy_ps[class->scale_up_out], 62500 * MS / 1000);
    CHECK_INT(told.busy_ps[class->hbm], 112500 * MS / 1000);

    toy.ideal.contention = true;
    CHECK_INT(toy_play(&toy).end_ps, 100 * MS);
    toy_release(&toy);
}

/* A gather that holds 20 of 80 SMs: the kernel runs at 3/4 beside it. */
static void test_sms_are_held(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    toy.cluster.channels_one_host = 20;
    write_kernel_beside_gather(&toy, 30, 0, 30);
    CHECK_INT(toy_play(&toy).end_ps, 37500 * MS / 1000);
    toy.ideal.contention = true;
    CHECK_INT(toy_play(&toy).end_ps, 30 * MS);
    toy_release(&toy);

    toy_init(&toy, 2, true);
    toy.cluster.channels_one_host = 20;
    struct told told;
    watch(&toy, &told);
    write_kernel_beside_gather(&toy, 30, 0, 72.5);
    CHECK_INT(toy_play(&toy).end_ps, 72500 * MS / 1000);
    CHECK_INT(told.end_ps[0][ACTIVITY_COMPUTE], 40 * MS);
    toy_release(&toy);
}

/* Two streams of kernels share the SMs: 10 ms and 30 ms take 20 and 40. */
static void test_kernels_share_sms(void)
{
    struct toy toy;
    struct told told;
    toy_init(&toy, 2, true);
    watch(&toy, &told);
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "a", PASS_FORWARD, 30));
    toy_op(&toy, OP_SEGMENT, TOY_SCATTER, toy_segment(&toy, "b", PASS_FORWARD, 10));
    CHECK_INT(toy_play(&toy).end_ps, 40 * MS);
    CHECK_INT(told.begin_count[ACTIVITY_COMPUTE], 2);
    toy_release(&toy);
}

/* Class 0 computes 10 ms, class 1 (at 5/8 of the clock) 16 ms; then both gather for 10 ms. */
static void test_rendezvous(void)
{
    struct toy toy;
    struct told told;
    toy_init(&toy, 2, false);
    toy.layout.classes[1].clock_frac = 0.625;
    watch(&toy, &told);
    const int32_t done = toy_event(&toy, "done");
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "a", PASS_FORWARD, 10));
    toy_op(&toy, OP_RECORD, TOY_COMPUTE, done);
    toy_op(&toy, OP_WAIT, TOY_GATHER, done);
    toy_op(&toy, OP_COLLECTIVE, TOY_GATHER, toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 10));
    CHECK_INT(toy_play(&toy).end_ps, 26 * MS);
    CHECK_INT(told.begin_ps[0][ACTIVITY_COMMUNICATION], 10 * MS);
    CHECK_INT(told.begin_ps[1][ACTIVITY_COMMUNICATION], 16 * MS);
    CHECK_INT(told.transfer_ps, 16 * MS);
    CHECK_INT(told.end_ps[0][ACTIVITY_COMMUNICATION], 26 * MS);
    CHECK_INT(told.end_ps[1][ACTIVITY_COMMUNICATION], 26 * MS);
    toy_release(&toy);
}

/* Two programs: class 1 has more to compute. */
static void test_two_programs(void)
{
    struct toy toy;
    toy_init(&toy, 2, false);
    for (int32_t i = 0; i < 2; i++) {
        if (i == 1)
            toy_next_program(&toy);
        const int32_t segment = toy_segment(&toy, "a", PASS_FORWARD, i == 0 ? 2.5 : 7.25);
        toy_op(&toy, OP_SEGMENT, TOY_GATHER, segment);
        const int32_t gather = toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 3);
        toy_op(&toy, OP_COLLECTIVE, TOY_GATHER, gather);
        toy_op(&toy, OP_SEGMENT, TOY_GATHER, segment);
    }
    CHECK_INT(toy_play(&toy).end_ps, 17500 * MS / 1000);
    toy_release(&toy);
}

/* Collectives of one communicator take turns in issue order, though the first is ready later. */
static void test_communicator_is_fifo(void)
{
    struct toy toy;
    struct told told;
    toy_init(&toy, 2, true);
    watch(&toy, &told);
    const int32_t gather = toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 4);
    toy_op(&toy, OP_SEGMENT, TOY_GATHER, toy_segment(&toy, "a", PASS_FORWARD, 5));
    toy_op(&toy, OP_COLLECTIVE, TOY_GATHER, gather);
    toy_op(&toy, OP_COLLECTIVE, TOY_SCATTER, gather);
    CHECK_INT(toy_play(&toy).end_ps, 13 * MS);
    CHECK_INT(told.begin_ps[0][ACTIVITY_COMMUNICATION], 9 * MS);
    toy_release(&toy);
}

/* Latency: base 0.5 ms, 7 ring steps of 0.25 ms, 14 ms of bytes; ideal: 14. */
static void test_latency_and_messages(void)
{
    struct toy toy;
    toy_init(&toy, 8, true);
    toy.cluster.collective_base_s = 0.5e-3;
    toy.cluster.scale_up_link.step_latency_s = 0.25e-3;
    toy_op(&toy, OP_COLLECTIVE, TOY_GATHER, toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 14));
    CHECK_INT(toy_play(&toy).end_ps, 16250 * MS / 1000);
    toy.network = NETWORK_MESSAGES;
    const struct machine_result messages = toy_play(&toy);
    CHECK_NEAR(ms_from_ps(messages.end_ps), 16.25, 1e-9);
    CHECK_TRUE(messages.events > 10);
    toy.ideal.latency = true;
    toy.network = NETWORK_FLOWS;
    CHECK_INT(toy_play(&toy).end_ps, 14 * MS);
    toy_release(&toy);
}

/* Three kernels of 1, 5, 1 ms, 3 ms of host time each: issued at 3, 6, 9 ms; run 3-4, 6-11, 11-12.
 */
static void test_host_starves_the_gpu(void)
{
    static struct kernel kernels[3];
    struct toy toy;
    struct told told;
    toy_init(&toy, 2, true);
    watch(&toy, &told);
    toy.cluster.host_cost_s[HOST_KERNEL] = 3e-3;
    kernels[0] = kernels[2] = toy_kernel(1, 0);
    kernels[1] = toy_kernel(5, 0);
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_kernels(&toy, kernels, 3));
    CHECK_INT(toy_play(&toy).end_ps, 12 * MS);
    CHECK_INT(told.begin_count[ACTIVITY_COMPUTE], 2); /* the last two in one part */
    toy.ideal.host = true;
    CHECK_INT(toy_play(&toy).end_ps, 7 * MS);
    toy_release(&toy);
}

/* The host blocks until the first segment is done, then needs 2 ms for a hook and 1 for a kernel.
 */
static void test_host_wait(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    toy.cluster.host_cost_s[HOST_KERNEL] = 1e-3;
    toy.cluster.host_cost_s[HOST_HOOK] = 2e-3;
    toy.steps = 3;
    const int32_t segment = toy_segment(&toy, "a", PASS_FORWARD, 10);
    const int32_t event = toy_event(&toy, "a");
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, segment);
    toy_op(&toy, OP_RECORD, TOY_COMPUTE, event);
    toy_op(&toy, OP_HOST_WAIT, 0, event);
    toy_op(&toy, OP_HOST_WORK, 0, HOST_HOOK)->count = 1;
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, segment);
    /* a step: 1 + 10 + 3 + 10; the next one's first kernel is issued 1 ms later, behind the last */
    CHECK_INT(toy_play(&toy).end_ps, (24 + 23 + 23) * MS);
    toy_release(&toy);
}

/* A wait refers to the latest record issued before it: in the step before, in the first step, none.
 */
static void test_waits_bind_across_steps(void)
{
    struct toy toy;
    toy_init(&toy, 2, true);
    toy.steps = 4;
    const int32_t event = toy_event(&toy, "late");
    /* compute of step s waits for the record at the end of step s − 1 on the other stream */
    toy_op(&toy, OP_WAIT, TOY_COMPUTE, event);
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "a", PASS_FORWARD, 1));
    toy_op(&toy, OP_COLLECTIVE, TOY_GATHER, toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 7));
    toy_op(&toy, OP_RECORD, TOY_GATHER, event);
    CHECK_INT(toy_play(&toy).end_ps, 28 * MS);
    toy_op(&toy, OP_WAIT, TOY_GATHER, event); /* its own: no change */
    CHECK_INT(toy_play(&toy).end_ps, 28 * MS);
    toy_release(&toy);

    toy_init(&toy, 2, true);
    struct told told;
    watch(&toy, &told);
    toy.steps = 4;
    const int32_t once = toy_event(&toy, "once");
    toy_op(&toy, OP_SEGMENT, TOY_SCATTER, toy_segment(&toy, "a", PASS_FORWARD, 9))->flags =
        OP_FIRST_STEP;
    toy_op(&toy, OP_RECORD, TOY_SCATTER, once)->flags = OP_FIRST_STEP;
    toy_op(&toy, OP_WAIT, TOY_COMPUTE, once);
    toy_op(&toy, OP_COLLECTIVE, TOY_COMPUTE, toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 2));
    toy_op(&toy, OP_MARK, TOY_COMPUTE, MARK_STEP_END);
    CHECK_INT(toy_play(&toy).end_ps, 17 * MS);
    CHECK_INT(told.mark_count, 4);
    CHECK_INT(told.mark_ps[0], 11 * MS);
    CHECK_INT(told.mark_ps[3], 17 * MS);
    toy_release(&toy);
}

/* Frees in host order at host time; rounded to 512 a piece. */
static void test_memory_in_host_order(void)
{
    struct toy toy;
    struct told told;
    toy_init(&toy, 2, true);
    watch(&toy, &told);
    toy.cluster.host_cost_s[HOST_HOOK] = 2e-3;
    const int32_t tensor = toy_tensor(&toy, "t", 2000, MEMORY_ACTIVATIONS, TOY_COMPUTE);
    toy.program->tensors.items[tensor].pieces = 3; /* 667 B each */
    toy.list = &toy.program->prologue;
    toy_op(&toy, OP_ALLOC, 0, toy_tensor(&toy, "p", 512, MEMORY_PARAMETERS, TOY_COMPUTE));
    toy.list = &toy.program->step;
    toy_op(&toy, OP_HOST_WORK, 0, HOST_HOOK)->count = 3;
    toy_op(&toy, OP_ALLOC, 0, tensor);
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "a", PASS_FORWARD, 100));
    toy_op(&toy, OP_FREE, 0, tensor);
    toy.steps = 2;
    (void)toy_play(&toy);
    CHECK_INT(told.memory_count, 5);
    CHECK_INT(told.memory_bytes[0], 512);
    CHECK_INT(told.memory_step[0], -1);
    CHECK_INT(told.memory_bytes[1], 3072);
    CHECK_INT(told.memory_at_ps[1], 6 * MS);
    CHECK_INT(told.memory_bytes[2], -3072);
    CHECK_INT(told.memory_at_ps[2], 6 * MS);
    CHECK_INT(told.memory_at_ps[4], 12 * MS);
    CHECK_INT(told.memory_step[4], 1);
    toy_release(&toy);
}

/* record_stream: returned when the other stream has passed; OP_FREE_AFTER: when the event happened.
 */
static void test_memory_in_gpu_order(void)
{
    struct toy toy;
    struct told told;
    toy_init(&toy, 2, true);
    watch(&toy, &told);
    const int32_t shared = toy_tensor(&toy, "shared", 1024, MEMORY_ACTIVATIONS, TOY_COMPUTE);
    const int32_t timed = toy_tensor(&toy, "timed", 2048, MEMORY_ACTIVATIONS, TOY_COMPUTE);
    const int32_t event = toy_event(&toy, "a");
    toy_op(&toy, OP_ALLOC, 0, shared);
    toy_op(&toy, OP_ALLOC, 0, timed);
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_segment(&toy, "a", PASS_FORWARD, 10));
    toy_op(&toy, OP_RECORD, TOY_COMPUTE, event);
    toy_op(&toy, OP_COLLECTIVE, TOY_GATHER, toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 30));
    toy_op(&toy, OP_RECORD_STREAM, TOY_GATHER, shared);
    toy_op(&toy, OP_RECORD_STREAM, TOY_SCATTER, shared);
    toy_op(&toy, OP_FREE, 0, shared);
    toy_op(&toy, OP_FREE_AFTER, 0, timed)->count = event;
    (void)toy_play(&toy);
    CHECK_INT(told.memory_count, 4);
    CHECK_INT(told.memory_bytes[2], -2048);
    CHECK_INT(told.memory_at_ps[2], 10 * MS);
    CHECK_INT(told.memory_bytes[3], -1024);
    CHECK_INT(told.memory_at_ps[3], 30 * MS);
    toy_release(&toy);
}

static void test_copy_on_the_device(void)
{
    struct toy toy;
    struct told told;
    toy_init(&toy, 2, true);
    watch(&toy, &told);
    toy_op(&toy, OP_COPY, TOY_GATHER, COPY_D2D)->bytes = 6000000000; /* 2 × 6 GB at 4 TB/s */
    CHECK_INT(toy_play(&toy).end_ps, 3 * MS);
    CHECK_INT(told.begin_count[ACTIVITY_MEMCPY], 1);
    toy_release(&toy);
}

/* Over a link of 10 GB/s of its own of which 0.8 is payload: 8 MB take 1 ms. Not pinned, a core of
   4 GB/s reads and writes every byte: 2 GB/s, 4 ms. */
static void test_copy_without_a_tree(void)
{
    static const int64_t expected_ms[COPY_KIND_COUNT] = {
        [COPY_H2D] = 1, [COPY_D2H] = 1, [COPY_H2D_PAGEABLE] = 4, [COPY_D2H_PAGEABLE] = 4};
    for (int kind = 0; kind < COPY_KIND_COUNT; kind++) {
        struct toy toy;
        if (expected_ms[kind] == 0)
            continue;
        toy_init(&toy, 2, true);
        toy.cluster.copy_link = (struct link){.bytes_per_s = 10e9, .copy_efficiency = 0.8};
        toy.cluster.compute.core_bytes_per_s = 4e9;
        check_context("copy %d", kind);
        toy_op(&toy, OP_COPY, TOY_GATHER, kind)->bytes = 8000000;
        CHECK_INT(toy_play(&toy).end_ps, expected_ms[kind] * MS);
        toy_release(&toy);
    }
    check_context(NULL);
}

/* Two ranks a host, 8 GB/s of memory and 4 cores of 3 GB/s: one pass at 0.9 of the memory 3.6 GB/s
   a rank, so 36 MB take 10 ms; several at 0.5: 18 ms. One thread: 12 ms. A kernel behind it comes
   when the host has done. */
static void test_host_computes(void)
{
    static const struct {
        enum host_pass pass;
        int32_t threads;
        int64_t expected_ms;
    } rows[] = {
        {HOST_PASS_FUSED, 0, 10}, {HOST_PASS_SEPARATE, 0, 18}, {HOST_PASS_FUSED, 1, 12},
        {HOST_PASS_FUSED, 9, 10}, {HOST_PASS_SEPARATE, 1, 18},
    };
    const struct kernel kernel = toy_kernel(5, 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct toy toy;
        toy_init(&toy, 2, true);
        toy.cluster.compute = (struct host_compute){
            .cores = 4, .memory_bytes_per_s = 8e9, .share = {0.9, 0.5}, .core_bytes_per_s = 3e9};
        check_context("row %zu", i);
        struct op *op = toy_op(&toy, OP_HOST_COMPUTE, TOY_COMPUTE, (int32_t)rows[i].pass);
        op->bytes = 36000000;
        op->count = rows[i].threads;
        toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, toy_kernels(&toy, &kernel, 1));
        CHECK_INT(toy_play(&toy).end_ps, (rows[i].expected_ms + 5) * MS);
        toy_release(&toy);
    }
    check_context(NULL);
}

static bool has_message(const struct toy *toy, const char *part)
{
    for (int32_t i = 0; i < toy->diag.count; i++) {
        if (strstr(toy->diag.items[i].text, part) != NULL)
            return true;
    }
    return false;
}

static void test_what_is_not_built_is_said(void)
{
    static const struct {
        enum op_kind kind;
        int32_t index;
        const char *part;
    } rows[] = {
        {OP_COPY, COPY_H2D, "copies between host and device: cluster 'toy' says nothing of PCIe"},
        {OP_COPY, COPY_H2D_PAGEABLE, "copies between host and device"},
        {OP_HOST_COMPUTE, 0, "computing on the host: cluster 'toy' lacks 'host.cpu.processor'"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct toy toy;
        struct machine_result result;
        toy_init(&toy, 2, true);
        check_context("%s", rows[i].part);
        toy_op(&toy, rows[i].kind, TOY_COMPUTE, rows[i].index);
        CHECK_INT(toy_try_play(&toy, &result), STATUS_INPUT);
        CHECK_TRUE(has_message(&toy, rows[i].part));
        toy_release(&toy);
    }
    check_context(NULL);
}

/* Class 1 never joins: class 0 stands in the collective, its compute behind it, and its host. */
static void test_deadlock_is_explained(void)
{
    struct toy toy;
    struct machine_result result;
    toy_init(&toy, 2, false);
    const int32_t event = toy_event(&toy, "gathered");
    toy_op(&toy, OP_COLLECTIVE, TOY_GATHER, toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 1));
    toy_op(&toy, OP_RECORD, TOY_GATHER, event);
    toy_op(&toy, OP_WAIT, TOY_COMPUTE, event);
    toy_op(&toy, OP_COLLECTIVE, TOY_SCATTER, 0);
    toy_op(&toy, OP_HOST_WAIT, 0, event);
    toy_next_program(&toy);
    CHECK_INT(toy_try_play(&toy, &result), STATUS_INPUT);
    CHECK_TRUE(has_message(&toy, "deadlock"));
    CHECK_TRUE(has_message(&toy, "all_gather on communicator 'dp_shard' awaits 1 of 2"));
    CHECK_TRUE(has_message(&toy, "stream 'compute': waits for event 'gathered'"));
    CHECK_TRUE(has_message(&toy, "awaits its turn on communicator 'dp_shard'"));
    CHECK_TRUE(has_message(&toy, "the host thread waits for event 'gathered'"));
    toy_release(&toy);
}

static void test_mismatch_is_explained(void)
{
    struct toy toy;
    struct machine_result result;
    toy_init(&toy, 2, false);
    toy_op(&toy, OP_COLLECTIVE, TOY_GATHER, toy_collective(&toy, COLLECTIVE_ALL_GATHER, 0, 1));
    toy_next_program(&toy);
    toy_op(&toy, OP_COLLECTIVE, TOY_GATHER, toy_collective(&toy, COLLECTIVE_ALL_REDUCE, 0, 1));
    CHECK_INT(toy_try_play(&toy, &result), STATUS_INPUT);
    CHECK_TRUE(has_message(&toy, "ranks meet in different collectives"));
    toy_release(&toy);
}

static void test_ideal_switches(void)
{
    static struct kernel kernels[2];
    struct toy toy;
    toy_init(&toy, 2, true);
    toy.cluster.gpu.launch_gap_s = 1e-6;
    toy.cluster.gpu.hbm_share[KERNEL_CAST][IMPL_EAGER][PASS_FORWARD] = 0.5;
    kernels[0] = toy_kernel(5, 0);
    kernels[1] = (struct kernel){.name = "cast", .kind = KERNEL_CAST, .bytes = 4e9}; /* 2 ms */
    const int32_t segment = toy_kernels(&toy, kernels, 2);
    toy_op(&toy, OP_SEGMENT, TOY_COMPUTE, segment);
    CHECK_INT(toy_play(&toy).end_ps, 7 * MS + MS / 1000); /* one gap: a given time has none */
    toy.ideal.latency = true;
    CHECK_INT(toy_play(&toy).end_ps, 7 * MS);
    toy.ideal.copies = true;
    CHECK_INT(toy_play(&toy).end_ps, 5 * MS);
    toy.ideal.optimizer = true;
    CHECK_INT(toy_play(&toy).end_ps, 5 * MS);
    toy.program->segments.items[segment].is_optimizer = true;
    CHECK_INT(toy_play(&toy).end_ps, 0);
    toy_release(&toy);
}

const struct check_case machine_cases[] = {
    {"HBM is shared", test_hbm_is_shared},
    {"SMs are held", test_sms_are_held},
    {"kernels share SMs", test_kernels_share_sms},
    {"rendezvous", test_rendezvous},
    {"two programs", test_two_programs},
    {"communicator is FIFO", test_communicator_is_fifo},
    {"latency and messages", test_latency_and_messages},
    {"host starves the GPU", test_host_starves_the_gpu},
    {"host wait", test_host_wait},
    {"waits bind across steps", test_waits_bind_across_steps},
    {"memory in host order", test_memory_in_host_order},
    {"memory in GPU order", test_memory_in_gpu_order},
    {"copy on the device", test_copy_on_the_device},
    {"copy without a tree", test_copy_without_a_tree},
    {"host computes", test_host_computes},
    {"what is not built is said", test_what_is_not_built_is_said},
    {"deadlock is explained", test_deadlock_is_explained},
    {"mismatch is explained", test_mismatch_is_explained},
    {"ideal switches", test_ideal_switches},
    {0},
};
