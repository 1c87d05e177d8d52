/*
 * tests/unit/schedule/test_zero_blocking.c: stage 3 as DeepSpeed had it before 0.6, and stage 3
 * with all-reduced gradients, by hand. Numbers in comments: statements of docs/zero.md.
 *
 * Volumes: worked example G, 3e9 parameters of 2 B in 30 units on 8 GPUs; a pass of all of them
 * over the wire is 3e9·2·7/8 = 5.25e9 B. Times: two GPUs at 1 GB/s a ring, four units of 30 MB: a
 * gather or a scatter takes 15 ms, an all-reduce 30 ms.
 */
#include "program_balance.h"
#include "schedule_tests.h"

#define EXAMPLE_G "worked-examples/g"
#define UNITS_32 "worked-examples/units-32"
#define BLOCKING "fsdp={api: zero3}; zero.coordinator=blocking; "
#define FOUR_UNITS                                                                                 \
    "model={family: abstract, units: [{repeat: 4, parameters: 15000000, forward: 10 ms, "          \
    "backward: 20 ms}]}; train.precision={param_dtype: bf16}; "                                    \
    "zero.reduce_bucket_size=15000000; " BLOCKING

/*
 * 99, 100: nothing is kept: a gather in forward, one in backward. All-reduced whole buffers: five
 * units of 1e8 elements fill 5e8, six buffers: 2 · 3e9; three fill 3.5e8, ten buffers of it
 * are 3.5e9; each is larger than 5e7: in front of each unit, and at the end, a buffer, 31 of them,
 * and the units: 4.55e9. The last two of today's rows: what is in a bucket, all-reduced.
 */
static void test_volume(void)
{
    static const struct volume rows[] = {
        {BLOCKING, 3 * 5.25e9},
        {BLOCKING "zero.reduce_bucket_size=50000000", 3 * 5.25e9},
        {BLOCKING "zero.reduce_scatter=false", 4 * 5.25e9},
        {BLOCKING "zero.reduce_scatter=false; zero.overlap_comm=false", 4 * 5.25e9},
        {BLOCKING "zero={reduce_scatter: false, reduce_bucket_size: 350000000}",
         2 * 5.25e9 + 2 * 3.5 / 3 * 5.25e9},
        {BLOCKING "zero={reduce_scatter: false, reduce_bucket_size: 50000000}",
         2 * 5.25e9 + 2 * 4.55 / 3 * 5.25e9},
        /* Without a buffer what is in it goes. */
        {BLOCKING "zero={contiguous_gradients: false, reduce_bucket_size: 350000000}", 4 * 5.25e9},
        {BLOCKING "zero.reduce_scatter=false; train.grad_accum=2", 8 * 5.25e9},
        {"fsdp.api=zero3; zero={max_reuse_distance: 0, prefetch_bucket_size: 0, "
         "reduce_scatter: false, reduce_bucket_size: 350000000}",
         4 * 5.25e9},
        {"fsdp.api=zero3; zero={max_reuse_distance: 0, prefetch_bucket_size: 0, "
         "reduce_scatter: false, contiguous_gradients: false}",
         3 * 5.25e9},
    };
    check_volumes(EXAMPLE_G, rows, sizeof(rows) / sizeof(rows[0]));
}

#define GPT2                                                                                       \
    "model={model_type: gpt2, n_embd: 64, n_layer: 1, n_head: 4, n_positions: 32, vocab_size: "    \
    "128}; train.seq_len=32; train.precision={param_dtype: bf16}; "

/* 99: a Llama block is seven linears, beside them the embedding and the head; norms of 16 elements
   persist. Two passes of each, three of a block that computes its forward again. A block of GPT-2
   has four linears and two norms of two parameters each, behind it the last norm; where none
   persists each is a gather, 14; beside them positions and table, and the head that is the table.
 */
static void test_gathers(void)
{
    static const struct {
        const char *overrides;
        int32_t count;
    } rows[] = {
        {BLOCKING "zero.param_persistence_threshold=16", 2 * (2 * 7 + 2)},
        {BLOCKING "zero.param_persistence_threshold=16; train.activation_checkpointing=full",
         3 * 2 * 7 + 2 * 2},
        {BLOCKING GPT2 "zero.param_persistence_threshold=0", 2 * (14 + 3)},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        struct program_text text;
        check_context("%s", rows[i].overrides);
        if (program_text_read(&text, &played, TWO_BLOCKS, rows[i].overrides)) {
            CHECK_INT(program_text_count(&text, "all-gather: all_gather"), rows[i].count);
            program_check_balance(played.experiment.program);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/*
 * 100: a block of GPT-2 with a bucket of h² elements: its four products are 4, 4, 1 and 3 h², and
 * the buffer goes eight times, 19 h² for 12. Here h = 64, h² = 4096, 2 B: 8192 B a buffer. Behind
 * the last norm: c_proj the buffer; c_fc's bias the buffer and 4 h²; c_fc the buffer; ln_2's bias
 * the buffer and 4 h²; the attention's c_proj the buffer; c_attn's bias the buffer; c_attn the
 * buffer; ln_1's bias the buffer and 3 h²; then the positions, 2048 elements, fit, and the table of
 * 128 rows has the buffer reduced, and at the end once more with its own 8192 elements.
 */
static void test_reductions(void)
{
    static const char gpt2[] =
        BLOCKING GPT2 "zero={reduce_scatter: false, reduce_bucket_size: 4096}";
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, gpt2)) {
        CHECK_INT(program_text_count(&text, "reduction: all_reduce"), 10);
        CHECK_INT(program_text_count(&text, "reduction: all_reduce bytes=8192 on dp"), 6);
        CHECK_INT(program_text_count(&text, "reduction: all_reduce bytes=40960 on dp"), 2);
        CHECK_INT(program_text_count(&text, "reduction: all_reduce bytes=32768 on dp"), 1);
        CHECK_INT(program_text_count(&text, "reduction: all_reduce bytes=24576 on dp"), 1);
        program_check_balance(played.experiment.program);
    }
    played_release(&played);
}

/*
 * Nothing runs beside a gather: forward 4 · (15 + 10).
 *
 * Backward, all-reduced: the last unit 15 + 20, its gradient fits the bucket; the next three 15,
 * then 20 of kernels beside the 30 of the bucket before; 30 at the end: 35 + 3 · 45 + 30 = 200.
 * Scattered: 35, then twice 15 + max(20, 15); the first unit 15, then two scatters beside its 20:
 * 35 + 70 + 45 = 150. Without overlap the sum: 4 · 35 + 4 · 30 = 260, or + 4 · 15 = 200.
 */
static void test_times(void)
{
    static const double tolerance = 2e-6; /* over parameters, at the ideal GPU's bandwidth */
    static const struct {
        const char *overrides;
        double backward_s;
    } rows[] = {
        {FOUR_UNITS "zero.reduce_scatter=false", 0.200},
        {FOUR_UNITS, 0.150},
        {FOUR_UNITS "zero={reduce_scatter: false, overlap_comm: false}", 0.260},
        {FOUR_UNITS "zero.overlap_comm=false", 0.200},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_play(&played, UNITS_32, rows[i].overrides)) {
            CHECK_NEAR(played.outcome.forward_s, 0.100, tolerance);
            CHECK_NEAR(played.outcome.backward_s, rows[i].backward_s, tolerance);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* The optimizer on the host gets each gradient once, 4 B a parameter of a GPU's 3.75e8, though the
   first of the reductions of oversized gradients has nothing in it. */
static void test_offload(void)
{
    struct played played;
    if (played_play(&played, EXAMPLE_G,
                    BLOCKING "cluster=dgx-a100; zero={offload_optimizer: cpu, reduce_scatter: "
                             "false, reduce_bucket_size: 50000000}")) {
        CHECK_NEAR((double)played.experiment.program->host.gradients, 3.75e8 * (4 + 2), 1e-6);
        program_check_balance(played.experiment.program);
    }
    played_release(&played);
}

static void test_refused(void)
{
    static const struct refusal rows[] = {
        {BLOCKING "zero.zero_hpz_partition_size=2",
         "DeepSpeed before 0.6 has no secondary partition"},
        {"fsdp={api: zero2}; zero={coordinator: blocking}",
         "'coordinator' means nothing for 'api: zero2'"},
        {BLOCKING "zero.prefetch_bucket_size=5",
         "'prefetch_bucket_size' means nothing for 'coordinator: blocking'"},
        {BLOCKING "zero.max_live_parameters=5",
         "'max_live_parameters' means nothing for 'coordinator: blocking'"},
        {BLOCKING "zero.max_reuse_distance=5",
         "'max_reuse_distance' means nothing for 'coordinator: blocking'"},
        {"fsdp={api: zero3}; zero={coordinator: eager}", "'eager'"},
    };
    check_refusals(rows, sizeof(rows) / sizeof(rows[0]));
}

const struct check_case zero_blocking_cases[] = {{"volume", test_volume},
                                                 {"gathers", test_gathers},
                                                 {"reductions", test_reductions},
                                                 {"times", test_times},
                                                 {"offload", test_offload},
                                                 {"refused", test_refused},
                                                 {0}};
