/*
 * tests/unit/schedule/test_zero.c: DeepSpeed ZeRO: buckets, order, volume, time, memory by hand.
 * Numbers in comments: statements of docs/zero.md.
 *
 * Volumes and bytes: worked example G, 3e9 parameters of 2 B in 30 units on 8 GPUs. Times: two GPUs
 * at 1 GB/s a ring: an all-reduce of S bytes takes S ns, a gather or a scatter half of that; four
 * units of 30 MB.
 */
#include <stdio.h>
#include <string.h>

#include "program_balance.h"
#include "schedule_tests.h"

#define EXAMPLE_G "worked-examples/g"
#define UNITS_32 "worked-examples/units-32"
#define FOUR_UNITS                                                                                 \
    "model={family: abstract, units: [{repeat: 4, parameters: 15000000, forward: 10 ms, "          \
    "backward: 20 ms}]}; train.precision={param_dtype: bf16}; zero.reduce_bucket_size=15000000; "

/*
 * 96, of 3e9·2 B·7/8 = 5.25e9 B for each pass of all parameters over the wire. Stages 1 and 2:
 * DeepSpeed all-reduces buckets by default: 2 + 1; a reduction to each owner: 1 + 1. Stage 3: 2 +
 * 1, less the five last units, which stay from forward to backward: unit j from the end is used
 * again after 2j·1e8 elements, which is below 1e9 for j = 0..4: 55 of 60 gathers. Never released
 * and all persistent: one renewal a step.
 */
static void test_volume(void)
{
    static const struct volume rows[] = {
        {"fsdp.api=zero1", 15.75e9},
        {"fsdp.api=zero1; zero.use_multi_rank_bucket_allreduce=false", 10.5e9},
        {"fsdp.api=zero2", 15.75e9},
        {"fsdp.api=zero2; zero.use_multi_rank_bucket_allreduce=false", 10.5e9},
        {"fsdp.api=zero2; zero.reduce_scatter=false", 15.75e9},
        {"fsdp.api=zero2; zero.overlap_comm=true", 15.75e9},
        /* Eight broadcasts of 0.75e9 B, each once past every GPU but the last. */
        {"fsdp.api=zero2; zero.allgather_partitions=false", 16.5e9},
        {"fsdp.api=zero3", 14.875e9},
        {"fsdp.api=zero3; zero.max_reuse_distance=0; zero.max_live_parameters=200000000", 15.75e9},
        {"fsdp.api=zero3; zero.param_persistence_threshold=100000000", 10.5e9},
        /* Four microbatches: stage 1 reduces once, stage 2 four times, stage 3 does all four times.
         */
        {"fsdp.api=zero1; train.grad_accum=4", 15.75e9},
        {"fsdp.api=zero2; train.grad_accum=4", 47.25e9},
        {"fsdp.api=zero3; train.grad_accum=4", 59.5e9},
        /* States in groups of 8 of 16: 2 · 6e9 · 15/16 reduced, 6e9 · 7/8 gathered. */
        {"fsdp.api=zero1; nodes=2; mesh.dp_replicate=2", 16.5e9},
        {"fsdp.api=zero1; gpus_per_node=1", 0},
        {"fsdp.api=zero3; gpus_per_node=1", 0},
    };
    check_volumes(EXAMPLE_G, rows, sizeof(rows) / sizeof(rows[0]));
}

/* Of all tensors of the program, whenever they live. */
static double listed_bytes(const struct program *program, enum memory_category category)
{
    double bytes = 0;
    for (int32_t i = 0; i < program->tensors.count; i++)
        if (program->tensors.items[i].category == category)
            bytes += (double)program->tensors.items[i].bytes;
    return bytes;
}

/* Example G: 2 + 2 + 12 B, of which 12, 14 and 16 are divided by 8. Stage 1 also holds its part of
   the reduced gradients, 0.25 B. */
static void test_states(void)
{
    static const struct {
        const char *overrides;
        double parameters, gradients, optimizer;
    } rows[] = {{"fsdp.api=ddp", 6e9, 6e9, 36e9},
                {"fsdp.api=zero1", 6e9, 6.75e9, 4.5e9},
                {"fsdp.api=zero1; nodes=2; mesh.dp_replicate=2", 6e9, 6.75e9, 4.5e9},
                {"fsdp.api=zero2", 6e9, 0.75e9, 4.5e9},
                {"fsdp.api=zero3", 0.75e9, 0.75e9, 4.5e9}};
    double before = 1e18;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_build(&played, EXAMPLE_G, rows[i].overrides)) {
            const struct program *program = played.experiment.program;
            CHECK_NEAR(listed_bytes(program, MEMORY_PARAMETERS), rows[i].parameters, 1e-12);
            CHECK_NEAR(listed_bytes(program, MEMORY_GRADIENTS), rows[i].gradients, 1e-12);
            CHECK_NEAR(listed_bytes(program, MEMORY_OPTIMIZER), rows[i].optimizer, 1e-12);
            const double states = rows[i].parameters + rows[i].gradients + rows[i].optimizer;
            CHECK_TRUE(states <= before);
            before = states;
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* Gradient buffers hold reduce_bucket_size elements of 2 B: one of 1 GB, two with overlap. */
static void test_buffers(void)
{
    static const struct {
        const char *overrides;
        double bytes;
    } rows[] = {{"fsdp.api=zero1", 1e9},
                {"fsdp.api=zero2", 1e9},
                {"fsdp.api=zero2; zero.overlap_comm=true", 2e9},
                {"fsdp.api=zero2; zero.contiguous_gradients=false", 0},
                {"fsdp.api=zero3", 1e9},
                {"fsdp.api=zero3; zero.reduce_bucket_size=200000000", 0.4e9}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_build(&played, EXAMPLE_G, rows[i].overrides))
            CHECK_NEAR((double)program_kept_bytes(played.experiment.program, MEMORY_REDUCE_BUFFERS),
                       rows[i].bytes, 1e-12);
        played_release(&played);
    }
    check_context(NULL);
}

/* 95: five units of 1e8 elements fill a bucket of 5e8: six buckets, 1e9 B each. Updates: 3e9
   elements in pieces of 5e8: six. */
static void test_buckets(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, EXAMPLE_G, "fsdp.api=zero2")) {
        CHECK_INT(program_text_count(&text, "compute: all_reduce bytes=1000000000 on dp"), 6);
        CHECK_INT(program_text_count(&text, "compute: all_gather bytes=1000000000 on dp"), 6);
    }
    played_release(&played);
    if (program_text_read(&text, &played, EXAMPLE_G,
                          "fsdp.api=zero2; zero.reduce_bucket_size=250000000; "
                          "zero.allgather_bucket_size=1000000000")) {
        CHECK_INT(program_text_count(&text, "compute: all_reduce bytes=400000000 on dp"), 15);
        CHECK_INT(program_text_count(&text, "compute: all_gather bytes=2000000000 on dp"), 3);
    }
    played_release(&played);
}

/* 3e9 elements are 100,000 gathers of 30,000, the most, and 3,000,000 of 1000; the optimizer of one
   GPU on the host would take them one by one. */
static void test_too_many_pieces(void)
{
    static const struct {
        const char *overrides, *text;
    } rows[] = {{"fsdp.api=zero1; zero={allgather_bucket_size: 1000}",
                 "3000000000 parameters in pieces of 1000 would be 3000000 gathers a step"},
                {"fsdp.api=zero3; zero={offload_optimizer: cpu, sub_group_size: 1}; nodes=1; "
                 "gpus_per_node=1; cluster=dgx-a100",
                 "3000000000 parameters in pieces of 1 would be 3000000000 updates a step"}};
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, EXAMPLE_G,
                          "fsdp.api=zero2; zero.allgather_bucket_size=30000"))
        CHECK_INT(program_text_count(&text, "compute: all_gather bytes=60000 on dp"), 100000);
    played_release(&played);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].overrides);
        CHECK_INT(played_try(&played, EXAMPLE_G, rows[i].overrides), STATUS_INPUT);
        CHECK_INT(played.diag.error_count, 1);
        CHECK_CONTAINS(played_messages(&played), rows[i].text);
        CHECK_CONTAINS(played_messages(&played), "= 30000 elements or more");
        CHECK_CONTAINS(played_messages(&played), "<command line>:1:");
        played_release(&played);
    }
    check_context(NULL);
}

/*
 * A bucket of 30 MB a unit, reduced when the gradient of the next unit is made.
 *
 * On compute (no overlap) backward is the sum, 4·20 + 4·30 = 200, or 4·20 + 4·15 with a reduction
 * to each owner; the 120 MB of updates take 60 ms behind the optimizer.
 *
 * zero2 with overlap: B 0-20-40; bucket 0 40-70, B 40-60; bucket 1 is launched at 60, compute waits
 * for bucket 0 until 70; bucket 1 70-100, B 70-90; bucket 2 launched at 90, compute waits until
 * 100; buckets 2 and 3 100-130-160.
 *
 * zero1 reduces behind backward: 80 + 120, and with overlap as zero2.
 *
 * zero3: gathers of 15 ms, 0-60, forward 15-25, 30-40, 45-55, 60-70; all stay (max_reuse_distance).
 * Backward B 20, 40, 60, 80; scatters 40-55, 60-75, 80-95, 95-110.
 */
static void test_times(void)
{
    static const struct {
        const char *overrides;
        double forward_s, backward_s, optimizer_s;
    } rows[] = {
        {FOUR_UNITS "fsdp.api=zero2", 0.040, 0.200, 0.060},
        {FOUR_UNITS "fsdp.api=zero2; zero.use_multi_rank_bucket_allreduce=false", 0.040, 0.140,
         0.060},
        {FOUR_UNITS "fsdp.api=zero2; zero.overlap_comm=true", 0.040, 0.160, 0.060},
        {FOUR_UNITS "fsdp.api=zero1", 0.040, 0.200, 0.060},
        {FOUR_UNITS "fsdp.api=zero1; zero.overlap_comm=true", 0.040, 0.160, 0.060},
        {FOUR_UNITS "fsdp.api=zero3; zero.prefetch_bucket_size=15000000", 0.070, 0.110, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_play(&played, UNITS_32, rows[i].overrides)) {
            const struct outcome *outcome = &played.outcome;
            CHECK_NEAR(outcome->forward_s, rows[i].forward_s, 1e-9);
            CHECK_NEAR(outcome->backward_s, rows[i].backward_s, 1e-9);
            CHECK_TRUE(outcome->optimizer_s - rows[i].optimizer_s < 1e-7 &&
                       outcome->optimizer_s >= rows[i].optimizer_s);
            CHECK_NEAR(outcome->compute_s + outcome->exposed_comm_s + outcome->idle_s,
                       outcome->step_time_s, 1e-12);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/*
 * 97: a Llama block fetches submodule by submodule. Without prefetch each weight is a gather of its
 * own: q, k, v, o, gate, up, down for each of two blocks, the embedding and the head; norms of 16
 * elements persist. Everything stays from forward to backward.
 */
static void test_fetch(void)
{
    static const char tiny[] = "fsdp={api: zero3}; zero.prefetch_bucket_size=0; "
                               "zero.param_persistence_threshold=16";
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, tiny)) {
        CHECK_INT(program_text_count(&text, "all-gather: all_gather"), 2 * 7 + 2);
        /* 16 x 16 in bf16; the norms' renewal after the update: 5 x 16 elements. */
        CHECK_INT(program_text_count(&text, "all-gather: all_gather bytes=512 on dp"), 4);
        CHECK_INT(program_text_count(&text, "compute: all_gather bytes=160 on dp"), 1);
        program_check_balance(played.experiment.program);
    }
    played_release(&played);
    /* Ahead without limit: the embedding's hook gathers itself, then all the rest at once. */
    if (program_text_read(&text, &played, TWO_BLOCKS,
                          "fsdp={api: zero3}; zero.param_persistence_threshold=16"))
        CHECK_INT(program_text_count(&text, "all-gather: all_gather"), 2);
    played_release(&played);
}

/* 95: max_live_parameters bounds what is gathered ahead, two units of 1e8; the one that is needed
   now is gathered whatever there is: three units, 600 MB. */
static void test_live(void)
{
    struct played played;
    if (played_play(
            &played, EXAMPLE_G,
            "fsdp.api=zero3; zero.max_live_parameters=200000000; zero.max_reuse_distance=0; "
            "zero.prefetch_bucket_size=100000000; zero.reduce_bucket_size=100000000")) {
        const struct program *program = played.experiment.program;
        int64_t live = 0, most = 0;
        for (int32_t i = 0; i < program->step.count; i++) {
            const struct op *op = &program->step.items[i];
            if (op->kind != OP_ALLOC && op->kind != OP_FREE)
                continue;
            const struct tensor *tensor = &program->tensors.items[op->index];
            if (tensor->category == MEMORY_UNSHARDED_PARAMETERS)
                live += op->kind == OP_ALLOC ? tensor->bytes : -tensor->bytes;
            most = live > most ? live : most;
        }
        CHECK_INT(live, 0);
        CHECK_INT(most, 600000000);
    }
    played_release(&played);
}

/*
 * hpZ over h of 8: forward gathers and scatters of 6e9 · 7/8, backward gathers of 6e9 · (h - 1)/h;
 * a GPU keeps 6e9 / h from the first release of a parameter to the update, once a step.
 */
static void test_secondary(void)
{
    static const struct {
        const char *overrides;
        double bytes, kept;
        int32_t copies;
    } rows[] = {
        {"zero.zero_hpz_partition_size=2", 5.25e9 + 3e9 + 5.25e9, 3e9, 30},
        {"zero.zero_hpz_partition_size=4", 5.25e9 + 4.5e9 + 5.25e9, 1.5e9, 30},
        {"zero.zero_hpz_partition_size=8", 15.75e9, 0.75e9, 30},
        {"zero.zero_hpz_partition_size=2; train.grad_accum=2", 27e9, 3e9, 30},
        {"zero.zero_hpz_partition_size=1", 15.75e9, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[256];
        snprintf(overrides, sizeof(overrides),
                 "fsdp.api=zero3; zero.max_reuse_distance=0; zero.prefetch_bucket_size=0; %s",
                 rows[i].overrides);
        check_context("%s", rows[i].overrides);
        if (played_play(&played, EXAMPLE_G, overrides)) {
            const struct program *program = played.experiment.program;
            double kept = 0;
            int32_t copies = 0;
            for (int32_t k = 0; k < program->step.count; k++) {
                const struct op *op = &program->step.items[k];
                if (op->kind != OP_ALLOC ||
                    strncmp(program->tensors.items[op->index].name, "secondary(", 10) != 0)
                    continue;
                kept += (double)program->tensors.items[op->index].bytes;
                copies++;
            }
            CHECK_NEAR(played.outcome.comm_bytes_per_gpu, rows[i].bytes, 1e-8);
            CHECK_NEAR(kept, rows[i].kept, 1e-8);
            CHECK_INT(copies, rows[i].copies);
            program_check_balance(program);
        }
        played_release(&played);
    }
    check_context(NULL);
}

static void test_secondary_refused(void)
{
    static const struct refusal rows[] = {
        {"fsdp={api: zero3}; zero.zero_hpz_partition_size=3",
         "a secondary partition of 3 does not tile 2 GPUs"},
        {"fsdp={api: zero3}; zero={zero_hpz_partition_size: 2, offload_param: cpu, "
         "offload_optimizer: cpu}",
         "a secondary partition of parameters on the host"},
    };
    check_refusals(rows, sizeof(rows) / sizeof(rows[0]));
}

/* Stage 3 takes sub_group_size elements of its part at a time: the fp32 gradients are a temporary
   of 4 B for so many of the 3.75e8. */
static void test_sub_groups(void)
{
    static const struct {
        const char *overrides;
        double bytes;
    } rows[] = {{"fsdp.api=zero2", 1.5e9},
                {"fsdp.api=zero3", 1.5e9},
                {"fsdp.api=zero3; zero.sub_group_size=100000000", 0.4e9}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_build(&played, EXAMPLE_G, rows[i].overrides))
            CHECK_NEAR(listed_bytes(played.experiment.program, MEMORY_TEMPORARIES), rows[i].bytes,
                       1e-12);
        played_release(&played);
    }
    check_context(NULL);
}

const struct check_case zero_cases[] = {{"volume", test_volume},
                                        {"states", test_states},
                                        {"gradient buffers", test_buffers},
                                        {"buckets", test_buckets},
                                        {"too many pieces", test_too_many_pieces},
                                        {"times", test_times},
                                        {"fetch", test_fetch},
                                        {"live parameters", test_live},
                                        {"hpZ", test_secondary},
                                        {"hpZ refused", test_secondary_refused},
                                        {"sub-groups", test_sub_groups},
                                        {0}};
