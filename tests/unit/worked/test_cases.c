/* tests/unit/worked/test_cases.c: what users met (configs/cases), with counts by hand. */
#include "program_balance.h"
#include "worked_tests.h"

static int64_t count_host(const struct program *program, enum host_cost cost)
{
    int64_t count = 0;
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        if (op->kind == OP_HOST_WORK && op->index == (int32_t)cost)
            count += op->count;
    }
    return count;
}

int64_t count_gathers(const struct program *program)
{
    int64_t count = 0;
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        count += op->kind == OP_COLLECTIVE &&
                 program->collectives.items[op->index].op == COLLECTIVE_ALL_GATHER;
    }
    return count;
}

/*
 * Gemma-2B: 18 blocks of seven weights and two norms, the final norm, the tied embedding: 164
 * tensors, a hook each in stages 1 and 2. Stage 3 in each direction: 18 blocks of nine submodules
 * with parameters and three without, the embedding, the norm, the head: 219 hooks.
 */
static void test_hooks(void)
{
    static const struct {
        const char *overrides;
        int64_t grad_hooks, module_hooks;
    } rows[] = {{"fsdp.api=ddp", 0, 0},
                {"fsdp.api=zero1", 164, 0},
                {"fsdp.api=zero2", 164, 0},
                {"fsdp.api=zero2; train.grad_accum=2", 328, 0},
                {"fsdp.api=zero3", 164, 438}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_build(&played, "cases/deepspeed-hooks", rows[i].overrides)) {
            const struct program *program = played.experiment.program;
            CHECK_INT(count_host(program, HOST_ZERO_GRAD), rows[i].grad_hooks);
            CHECK_INT(count_host(program, HOST_ZERO_MODULE), rows[i].module_hooks);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/*
 * GPT-2 medium: 24 blocks of eight weights and biases and four of norms, the final norm's two, two
 * tables: 292 tensors. At 128 tokens a GPU the host bounds all: stage 2's hooks cost 292 · 70 us =
 * 20.4 ms more than DDP's, which are C++; DDP issues some thirty buckets of 25 MiB in their place,
 * at about 0.1 ms each: 17.4 ms at least, and stage 2 reduces all of it in one bucket at the end.
 */
static void test_host_bound(void)
{
    static const char model[] = "model=gpt2-medium; ";
    char ddp_overrides[64], zero_overrides[64];
    struct played ddp, zero;
    snprintf(ddp_overrides, sizeof(ddp_overrides), "%sfsdp.api=ddp", model);
    snprintf(zero_overrides, sizeof(zero_overrides), "%szero.overlap_comm=true", model);
    if (played_play(&ddp, "cases/deepspeed-hooks", ddp_overrides) &&
        played_play(&zero, "cases/deepspeed-hooks", zero_overrides)) {
        CHECK_INT(count_host(zero.experiment.program, HOST_ZERO_GRAD), 292);
        CHECK_TEXT(zero.outcome.bottleneck, "host");
        CHECK_TRUE(zero.outcome.backward_s - ddp.outcome.backward_s > 0.0174);
    }
    played_release(&ddp);
    played_release(&zero);
}

/* Nothing ahead, nothing kept: 18·9 submodules, embedding, norm and the head (the embedding's table
   again), forward and backward. The 37 norms stay whole above a threshold of 2,048 elements, and
   are renewed once a step. */
static void test_gathers(void)
{
    static const struct {
        const char *overrides;
        int64_t gathers;
    } rows[] = {{"zero.param_persistence_threshold=0", 2 * 165},
                {"zero.param_persistence_threshold=2048", 2 * (165 - 37) + 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[256];
        snprintf(overrides, sizeof(overrides),
                 "fsdp.api=zero3; zero.prefetch_bucket_size=0; zero.max_reuse_distance=0; %s",
                 rows[i].overrides);
        check_context("%s", overrides);
        if (played_build(&played, "cases/deepspeed-hooks", overrides))
            CHECK_INT(count_gathers(played.experiment.program), rows[i].gathers);
        played_release(&played);
    }
    check_context(NULL);
}

/* 4 B of each of 1,557,611,200 parameters, once or twice. */
static void test_bucket_copies(void)
{
    struct played played;
    if (played_build(&played, "cases/ddp-bucket-copies", NULL)) {
        const struct program *program = played.experiment.program;
        CHECK_INT(program_kept_bytes(program, MEMORY_GRADIENTS), 6230444800);
        CHECK_INT(program_kept_bytes(program, MEMORY_REDUCE_BUFFERS), 6230444800);
    }
    played_release(&played);
    if (played_build(&played, "cases/ddp-bucket-copies", "ddp.gradient_as_bucket_view=true")) {
        const struct program *program = played.experiment.program;
        CHECK_INT(program_kept_bytes(program, MEMORY_GRADIENTS), 6230444800);
        CHECK_INT(program_kept_bytes(program, MEMORY_REDUCE_BUFFERS), 0);
    }
    played_release(&played);
}

/*
 * Llama-2-7B over 8 GPUs, rank 8 on q and v. A block: 202,383,360 frozen elements and 131,072 of
 * adapters; all of it 6,738,415,616 and 4,194,304. Gradients of one GPU in bf16: one flat gradient
 * a block, 32·202,514,432·2/8 B; adapters alone, 4,194,304·2/8 B. Frozen parameters at 2 or 4 B.
 */
static void test_mixed_units(void)
{
    static const struct {
        const char *overrides;
        int64_t parameters, gradients;
    } rows[] = {
        {"", 1685652480, 1620115456},
        {"fsdp.use_orig_params=false", 1685652480, 1048576},
        {"fsdp={api: fsdp2, wrap: block}", 1685652480, 1048576},
        {"fsdp={api: fsdp2, wrap: block}; train.lora.base_dtype=fp32", 3370256384, 1048576}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_build(&played, "cases/lora-mixed-units", rows[i].overrides)) {
            const struct program *program = played.experiment.program;
            CHECK_INT(program_kept_bytes(program, MEMORY_PARAMETERS), rows[i].parameters);
            CHECK_INT(program_kept_bytes(program, MEMORY_GRADIENTS), rows[i].gradients);
            CHECK_INT(program_kept_bytes(program, MEMORY_OPTIMIZER), 2097152);
            program_check_balance(program);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* Without events: (6,738,415,616·2 + 4,194,304·(2 + 2 + 4)) / 8 B; the linear layers of the blocks,
   32·202,375,168, at 4.5 bits instead: scales count as sharded. */
static void test_adapters_estimate(void)
{
    static const struct {
        const char *overrides;
        double states;
    } rows[] = {{"", (6738415616.0 * 2 + 4194304.0 * 8) / 8},
                {"train.lora.quantization=nf4",
                 (262410240.0 * 2 + 6476005376.0 * 0.5625 + 4194304.0 * 8) / 8}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        struct estimate estimate;
        check_context("%s", rows[i].overrides);
        CHECK_INT(played_load(&played, "cases/lora-mixed-units", rows[i].overrides), STATUS_OK);
        CHECK_INT(estimate_memory(&played.experiment, 0, false, &estimate), STATUS_OK);
        CHECK_NEAR(estimate.rows[STAGE_ZERO3].states_bytes, rows[i].states, 1e-12);
        played_release(&played);
    }
    check_context(NULL);
}

const struct check_case cases_cases[] = {{"DeepSpeed: hooks", test_hooks},
                                         {"DeepSpeed: host-bound", test_host_bound},
                                         {"DeepSpeed: gathers", test_gathers},
                                         {"DDP: bucket copies", test_bucket_copies},
                                         {"LoRA: mixed units", test_mixed_units},
                                         {"LoRA: memory", test_adapters_estimate},
                                         {0}};
