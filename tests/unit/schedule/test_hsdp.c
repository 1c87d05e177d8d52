/*
 * tests/unit/schedule/test_hsdp.c: replicas of a sharded model: fully_shard on a mesh of two
 * dimensions, and FSDP1's hybrid strategies and NO_SHARD. Numbers in comments: statements of
 * docs/fsdp2.md and docs/fsdp1.md.
 *
 * Volumes and memory: four units of U parameters on two hosts of 8 GPUs, P = 4 U.
 */
#include <string.h>

#include "schedule_tests.h"

enum { U = 1000000, P = 4 * U };
#define UNITS_32 "worked-examples/units-32"
#define TWO_HOSTS                                                                                  \
    "model={family: abstract, units: [{repeat: 4, parameters: 1000000, forward: 10 ms, "           \
    "backward: 20 ms}]}; cluster=ideal-400; nodes=2; "
#define BF16 "train.precision={param_dtype: bf16, reduce_dtype: bf16, storage_dtype: bf16}; "
#define MIXED "train.precision={param_dtype: bf16, reduce_dtype: fp32, storage_dtype: bf16}; "

/*
 * Over 8 of 16: gathers and scatter 3 passes of 2 P · 7/8, all-reduce of P/8 over two: 2 · 1/2 of
 * it: bf16 6 P · 7/8 + 2 P/8 = 5.5 P; reduced in fp32 8 P · 7/8 + 4 P/8 = 7.5 P. Kept after
 * forward, one gather less: 7.5 - 1.75 P. One GPU a shard: an all-reduce over 16: 2 · 15/16 of 4 P.
 */
static void test_volume(void)
{
    static const struct {
        const char *overrides;
        double passes; /* bytes / P */
    } rows[] = {
        {BF16 "mesh.dp_replicate=2", 5.5},
        {MIXED "mesh.dp_replicate=2", 7.5},
        {MIXED "mesh.dp_replicate=2; fsdp.reshard_after_forward=false", 5.75},
        {MIXED "mesh.dp_replicate=2; train.grad_accum=3", 22.5},
        /* 40: three scatters, one all-reduce. */
        {MIXED "mesh.dp_replicate=2; train.grad_accum=3; fsdp.defer_all_reduce=true", 21.5},
        {MIXED "mesh.dp_replicate=16", 7.5},
        {MIXED "mesh.dp_replicate=2; fsdp.separate_reduce_scatter_communicator=true", 7.5},
        /* Groups of four: 8 P · 3/4 + 2 · 4 P/4 · 3/4. */
        {MIXED "mesh.dp_replicate=4", 7.5},
        /* Two groups of two hosts on four: 8 P · 15/16 + 4 P/16. */
        {MIXED "nodes=4; mesh.dp_replicate=2", 7.75},
        {BF16 "fsdp={api: fsdp1, sharding_strategy: hybrid_shard}", 5.5},
        {MIXED "fsdp={api: fsdp1, sharding_strategy: hybrid_shard}", 7.5},
        {MIXED "fsdp={api: fsdp1, sharding_strategy: hybrid_shard_zero2}", 5.75},
        {MIXED "fsdp={api: fsdp1, sharding_strategy: no_shard}", 7.5},
        /* Inside one host nothing is left to all-reduce: 8 P · 7/8. */
        {MIXED "nodes=1; fsdp={api: fsdp1, sharding_strategy: hybrid_shard}", 7},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[512];
        snprintf(overrides, sizeof(overrides), TWO_HOSTS "%s", rows[i].overrides);
        check_context("%s", overrides);
        if (played_play(&played, UNITS_32, overrides)) {
            CHECK_NEAR(played.outcome.comm_bytes_per_gpu, rows[i].passes * P, 1e-12);
            program_check_balance(played.experiment.program);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* The most bytes of a tensor named so alive at once in the step. */
static double most_alive(const struct program *program, const char *name)
{
    double now = 0, most = 0;
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        if (op->kind != OP_ALLOC && op->kind != OP_FREE)
            continue;
        const struct tensor *tensor = &program->tensors.items[op->index];
        if (strncmp(tensor->name, name, strlen(name)) != 0)
            continue;
        now += (op->kind == OP_ALLOC ? 1 : -1) * (double)tensor->bytes;
        most = now > most ? now : most;
    }
    return most;
}

/*
 * 39: the reduced shard, fp32 of bf16 gradients: one at a time without replicas; with them those of
 * all four units until the end of backward, or as many as there are buffers. In the dtype of the
 * gradient it is the gradient. 40: partial sums of all units.
 */
static void test_reduced_shards(void)
{
    static const struct {
        const char *overrides;
        double reduced, partial; /* bytes / (U/8) */
    } rows[] = {
        {MIXED "nodes=1", 4, 0},
        {MIXED "mesh.dp_replicate=2", 16, 0},
        {MIXED "mesh.dp_replicate=2; fsdp.all_reduce_buffers=1", 4, 0},
        {MIXED "mesh.dp_replicate=2; fsdp.all_reduce_buffers=2", 8, 0},
        {BF16 "mesh.dp_replicate=2", 0, 0},
        {MIXED "mesh.dp_replicate=2; train.grad_accum=2; fsdp.defer_all_reduce=true", 16, 16},
        {BF16 "mesh.dp_replicate=2; train.grad_accum=3; fsdp.defer_all_reduce=true", 2, 8},
        /* A second microbatch adds to the gradient: its shards are apart. */
        {BF16 "mesh.dp_replicate=2; train.grad_accum=2", 8, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[512];
        snprintf(overrides, sizeof(overrides), TWO_HOSTS "%s", rows[i].overrides);
        check_context("%s", overrides);
        if (played_build(&played, UNITS_32, overrides)) {
            const struct program *program = played.experiment.program;
            const double eighth = (double)U / 8;
            CHECK_NEAR(1 + most_alive(program, "reduce_scatter_output") / eighth,
                       1 + rows[i].reduced, 1e-12);
            CHECK_NEAR(1 + most_alive(program, "partial_reduce_output") / eighth,
                       1 + rows[i].partial, 1e-12);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* States are divided by the shard group alone: bf16 parameters 2 P, two fp32 moments 8 P. */
static void test_states(void)
{
    static const struct {
        const char *overrides;
        int64_t ranks;
    } rows[] = {
        {MIXED "mesh.dp_replicate=1", 16},
        {MIXED "mesh.dp_replicate=2", 8},
        {MIXED "mesh.dp_replicate=8", 2},
        {MIXED "mesh.dp_replicate=16", 1},
        {MIXED "fsdp={api: fsdp1, sharding_strategy: full_shard}", 16},
        {MIXED "fsdp={api: fsdp1, sharding_strategy: hybrid_shard}", 8},
        {MIXED "fsdp={api: fsdp1, sharding_strategy: hybrid_shard_zero2}; mesh.dp_replicate=4", 4},
        {MIXED "fsdp={api: fsdp1, sharding_strategy: no_shard}", 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[512];
        snprintf(overrides, sizeof(overrides), TWO_HOSTS "%s", rows[i].overrides);
        check_context("%s", overrides);
        if (played_play(&played, UNITS_32, overrides)) {
            const int64_t *parts = played.outcome.peak_composition;
            CHECK_INT(parts[MEMORY_PARAMETERS], 4 * rounded_up(2 * U / rows[i].ranks));
            CHECK_INT(parts[MEMORY_OPTIMIZER], 8 * rounded_up(4 * U / rows[i].ranks));
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* 38, 30h: behind the reduce-scatter, on its own stream and communicator; compute waits for it in
   the callback only, where the reduced shard goes. */
static void test_order(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, UNITS_32, TWO_HOSTS MIXED "mesh.dp_replicate=2")) {
        static const char *const wanted[] = {
            "host: alloc reduce_scatter_output(units.3)",
            "reduce-scatter: reduce_scatter bytes=4000000 on dp_shard",
            "reduce-scatter: record reduced(units.3)",
            "reduce-scatter: record summed(units.3)",
            "all-reduce: wait summed(units.3)",
            "all-reduce: all_reduce bytes=500000 on dp_replicate",
            "host: alloc sharded_grads(units.3)",
            "all-reduce: segment cast_grads(units.3)",
            "all-reduce: record post_reduced(units.3)",
            NULL};
        const int32_t at = program_text_check_block(
            &text, program_text_find(&text, 0, "compute: mark forward_end"), wanted);
        static const char *const callback[] = {"compute: wait post_reduced(units.0)",
                                               "host: free reduce_scatter_output(units.0)",
                                               "compute: wait post_reduced(units.1)",
                                               "host: free reduce_scatter_output(units.1)", NULL};
        program_text_check_block(&text, at, callback);
        CHECK_INT(program_text_count(&text, "all-reduce: all_reduce"), 4);
    }
    played_release(&played);
}

/* 82: FSDP1: the shard is cast behind the all-reduce, on its stream; no_shard has no such stream.
 */
static void test_order_fsdp1(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, UNITS_32,
                          TWO_HOSTS MIXED "fsdp={api: fsdp1, sharding_strategy: hybrid_shard}")) {
        static const char *const wanted[] = {
            "post-backward: segment pre_divide(units.3)",
            "post-backward: reduce_scatter bytes=4000000 on dp_shard",
            "post-backward: record scattered(units.3)",
            "all-reduce: wait scattered(units.3)",
            "all-reduce: record_stream reduce_scatter_output(units.3)",
            "all-reduce: all_reduce bytes=500000 on dp_replicate",
            "all-reduce: segment post_divide(units.3)",
            "host: alloc sharded_grads(units.3)",
            "all-reduce: segment cast_grads(units.3)",
            NULL};
        program_text_check_block(&text, 0, wanted);
        static const char *const end[] = {
            "compute: wait post_backward_done(root)", "all-reduce: record all_reduce_done(root)",
            "compute: wait all_reduce_done(root)", "compute: mark backward_end", NULL};
        program_text_check_block(&text, 0, end);
    }
    played_release(&played);
    if (program_text_read(&text, &played, UNITS_32,
                          TWO_HOSTS MIXED "fsdp={api: fsdp1, sharding_strategy: no_shard}")) {
        CHECK_INT(
            program_text_count(&text, "post-backward: all_reduce bytes=4000000 on dp_replicate"),
            4);
        CHECK_INT(program_text_count(&text, "all-reduce: wait"), 0);
        CHECK_INT(program_text_count(&text, "unshard: all_gather"), 0);
    }
    played_release(&played);
}

/*
 * Two hosts of 8, 400 GB/s inside, 4 GB/s a NIC; U = 640e6 in bf16, F = 10, B = 20 ms: gather and
 * scatter take 1.28 GB · 7/8 / 400 GB/s = 2.8 ms, an all-reduce 1.28 GB / 8 / 4 GB/s = 40 ms.
 * Forward: the first gather is exposed: 2.8 + 4 · 10; the first of backward runs beside the last F.
 * Backward: B of the last unit, its scatter, then all-reduces one behind the other: 20 + 2.8 + 4 ·
 * 40 = 182.8. Deferred, the first of two microbatches ends with a scatter: 4 · 20 + 2.8 = 82.8.
 * Sums of microbatches take a microsecond on this GPU.
 */
static void test_slow_all_reduce(void)
{
    static const char setup[] =
        "model={family: abstract, units: [{repeat: 4, parameters: 640000000, forward: 10 ms, "
        "backward: 20 ms}]}; cluster=ideal-400; cluster.host.nics.link.bandwidth=4GB/s; nodes=2; "
        "simulate.ideal=[host, copies, contention, optimizer, latency]; train.max_grad_norm=0; ";
    static const struct {
        const char *overrides;
        double step_ms;
    } rows[] = {
        {BF16 "mesh.dp_replicate=2", 42.8 + 182.8},
        {BF16 "mesh.dp_replicate=2; train.grad_accum=2", 2 * (42.8 + 182.8)},
        {BF16 "mesh.dp_replicate=2; train.grad_accum=2; fsdp.defer_all_reduce=true",
         2 * 42.8 + 82.8 + 182.8},
        {BF16 "fsdp={api: fsdp1, sharding_strategy: hybrid_shard}", 42.8 + 182.8},
        {BF16 "fsdp={api: fsdp1, sharding_strategy: hybrid_shard_zero2}", 42.8 + 182.8},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[768];
        snprintf(overrides, sizeof(overrides), "%s%s", setup, rows[i].overrides);
        check_context("%s", rows[i].overrides);
        if (played_play(&played, UNITS_32, overrides)) {
            CHECK_NEAR(1e3 * played.outcome.step_time_s, rows[i].step_ms, 1e-5);
            CHECK_NEAR(played.outcome.step_time_s,
                       played.outcome.compute_s + played.outcome.exposed_comm_s +
                           played.outcome.idle_s,
                       1e-12);
        }
        played_release(&played);
    }
    check_context(NULL);
}

const struct check_case hsdp_cases[] = {{"38, 40, 51: bytes on the wire", test_volume},
                                        {"39, 40: reduced shards alive", test_reduced_shards},
                                        {"states over the shard group", test_states},
                                        {"38: order", test_order},
                                        {"82: order, fsdp1", test_order_fsdp1},
                                        {"a slow all-reduce", test_slow_all_reduce},
                                        {0}};
