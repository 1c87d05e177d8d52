/* tests/unit/schedule/test_fsdp2_options.c: FSDP2: what users may set beside the defaults. Numbers
   in comments: statements of docs/fsdp2.md. */
#include <string.h>

#include "schedule_tests.h"

#define FOUR_LAYERS "model.num_hidden_layers=4; "

static int32_t forward_end(const struct program_text *text)
{
    return program_text_find(text, 0, "compute: mark forward_end");
}

/* 27: the list replaces the default: two units before, the embedding too; what is under way is not
   gathered again. Forward 6 gathers, backward 4 blocks and the embedding. */
static void test_backward_list(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, FOUR_LAYERS "fsdp.backward_prefetch=2")) {
        static const char *const wanted[] = {
            "compute: segment loss.backward",      "host: alloc cast(layers.3)",
            "host: alloc cast(layers.2)",          "compute: segment lm_head.backward",
            "compute: wait gathered(layers.3)",    "host: alloc cast(layers.1)",
            "host: alloc backward_temp(layers.3)", "compute: wait gathered(layers.2)",
            "host: alloc cast(layers.0)",          "host: alloc backward_temp(layers.2)",
            "compute: wait gathered(layers.1)",    "host: alloc cast(embed_tokens)",
            "host: alloc backward_temp(layers.1)", NULL};
        program_text_check_order(&text, forward_end(&text), wanted);
        CHECK_INT(program_text_count(&text, "all-gather: all_gather"), 6 + 5);
        program_check_balance(played.experiment.program);
    }
    played_release(&played);
}

/* 9, 28: the embedding's second gather is left out. */
static void test_embedding_not_gathered(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS,
                          FOUR_LAYERS "fsdp.unshard_in_backward=false")) {
        CHECK_INT(program_text_count(&text, "all-gather: all_gather"), 6 + 4);
        CHECK_INT(program_text_count(&text, "compute: wait gathered(embed_tokens)"), 1);
        CHECK_INT(program_text_count(&text, "compute: segment chunk_cat(embed_tokens)"), 1);
        program_check_balance(played.experiment.program);
    }
    played_release(&played);
    /* Tied weights are those of the head, which backward reads. */
    if (program_text_read(&text, &played, TWO_BLOCKS,
                          FOUR_LAYERS "model.tie_word_embeddings=true; "
                                      "fsdp.unshard_in_backward=false; "
                                      "fsdp.reshard_after_forward=true"))
        CHECK_INT(program_text_count(&text, "all-gather: all_gather"), 5 + 4);
    played_release(&played);
}

/* 10, 22: a slice stays behind forward; backward gathers from the small group, without cast, and
   frees it. The head stays gathered. */
static void test_slices(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS,
                          "cluster=ideal-400; fsdp.reshard_after_forward=4")) {
        static const char *const forward[] = {"compute: segment layers.0.forward",
                                              "host: free forward_temp(layers.0)",
                                              "host: alloc post_forward_shard(layers.0)",
                                              "compute: segment keep_slice(layers.0)",
                                              "compute: record resharded(layers.0)",
                                              "host: free params(layers.0)",
                                              NULL};
        program_text_check_block(&text, 0, forward);
        static const char *const backward[] = {
            "all-gather copy-in: wait resharded(layers.0)",
            "all-gather: wait resharded(layers.0)",
            "host: alloc all_gather_buffer(layers.0)",
            "all-gather copy-in: segment copy_in_slice(layers.0)",
            "all-gather copy-in: record copied_in(layers.0)",
            "all-gather: wait copied_in(layers.0)",
            "all-gather: all_gather bytes=5440 on dp_shard.post_forward",
            NULL};
        const int32_t at = program_text_check_block(&text, forward_end(&text), backward);
        static const char *const end[] = {"compute: segment copy_out(layers.0)",
                                          "compute: record copied_out(layers.0)",
                                          "host: free post_forward_shard(layers.0)", NULL};
        program_text_check_block(&text, at, end);
        CHECK_INT(program_text_count(&text, "host: alloc post_forward_shard(norm+lm_head)"), 0);
        /* 2,720 elements of bf16 over 4, read and written. */
        CHECK_CONTAINS(text.whole, "kernel copy_in_slice(layers.0) copy_in bf16 flop=0 bytes=2720");
        program_check_balance(played.experiment.program);
    }
    played_release(&played);
}

/*
 * Two hosts of 8, 400 GB/s inside, 4 GB/s a NIC, four units of 640e6 in bf16, F = 10, B = 20 ms:
 * over 16 GPUs 1.28 GB · 15/16 / (8 · 4 GB/s) = 37.5 ms, over the 8 of a host 1.28 GB · 7/8 / 400
 * GB/s = 2.8 ms. Forward 4 · 37.5 + 10 = 160. Backward over 16: gathers and scatters in a row, the
 * first gather beside F: 8 · 37.5 - 10 = 290. Inside the host: the first gather waits for the
 * slice: G3 162.8, B3 182.8, S3 220.3, which B1 waits for, S2 257.8, which B0 waits for, S1 295.3,
 * S0 332.8; S3 and S2 share links inside the host with a gather of 2.8 ms: within 2 in 1,000.
 */
static void test_slices_played(void)
{
    static const char setup[] =
        "model={family: abstract, units: [{repeat: 4, parameters: 640000000, forward: 10 ms, "
        "backward: 20 ms}]}; cluster=ideal-400; cluster.host.nics.link.bandwidth=4GB/s; nodes=2; "
        "train.precision={param_dtype: bf16, reduce_dtype: bf16, storage_dtype: bf16}; "
        "train.max_grad_norm=0; simulate.ideal=[host, copies, contention, optimizer, latency]; ";
    static const struct {
        const char *reshard;
        double step_ms, passes, slices; /* bytes on the wire / P; slices alive / P */
    } rows[] = {{"true", 450, 3 * 2 * 15 / 16.0, 0},
                {"8", 332.8, 2 * 2 * 15 / 16.0 + 2 * 7 / 8.0, 2 / 8.0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[768];
        snprintf(overrides, sizeof(overrides), "%sfsdp.reshard_after_forward=%s", setup,
                 rows[i].reshard);
        check_context("%s", rows[i].reshard);
        if (played_play(&played, "worked-examples/units-32", overrides)) {
            const struct program *program = played.experiment.program;
            double slices = 0;
            for (int32_t k = 0; k < program->step.count; k++) {
                const struct op *op = &program->step.items[k];
                if (op->kind == OP_ALLOC &&
                    strstr(program->tensors.items[op->index].name, "post_forward") != NULL)
                    slices += (double)program->tensors.items[op->index].bytes;
            }
            CHECK_NEAR(1e3 * played.outcome.step_time_s, rows[i].step_ms, i == 0 ? 1e-6 : 2e-3);
            CHECK_NEAR(played.outcome.comm_bytes_per_gpu, rows[i].passes * 4 * 640e6, 1e-12);
            CHECK_NEAR(1 + slices / (4 * 640e6), 1 + rows[i].slices, 1e-12);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* 32: eight GPUs: by 4 before the sum, all 2,720 elements, by 2 after it, 340 of them. The loss's
   scale goes at the end, and all learn of an infinity of one. */
static void test_fp16(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS,
                          "cluster=ideal-400; "
                          "train.precision={param_dtype: fp16, reduce_dtype: fp16}")) {
        static const char *const wanted[] = {
            "reduce-scatter: segment pre_divide(layers.1)",
            "reduce-scatter: reduce_scatter bytes=5440 on dp_shard",
            "reduce-scatter: record reduced(layers.1)",
            "reduce-scatter: segment post_divide(layers.1)",
            "host: alloc sharded_grads(layers.1)",
            "reduce-scatter: segment cast_grads(layers.1)",
            NULL};
        program_text_check_block(&text, 0, wanted);
        static const char *const end[] = {
            "compute: segment unscale_gradients", "compute: all_reduce bytes=4 on dp_shard",
            "compute: segment gradient_norm", "compute: all_reduce bytes=4 on dp_shard", NULL};
        program_text_check_block(&text, 0, end);
        CHECK_CONTAINS(text.whole, "kernel pre_divide(layers.0) cast fp16 flop=0 bytes=10880\n");
        CHECK_CONTAINS(text.whole, "kernel post_divide(layers.0) cast fp16 flop=0 bytes=1360\n");
        const struct program *program = played.experiment.program;
        for (int32_t i = 0; i < program->collectives.count; i++)
            if (program->collectives.items[i].op == COLLECTIVE_REDUCE_SCATTER)
                CHECK_INT(program->collectives.items[i].is_average, false);
        program_check_balance(program);
    }
    played_release(&played);
    /* Reduced in fp32 it is an average; two GPUs divide by 2 before and by nothing after. */
    if (program_text_read(&text, &played, TWO_BLOCKS,
                          "train.precision={param_dtype: fp16, reduce_dtype: fp32}"))
        CHECK_INT(program_text_count(&text, "reduce-scatter: segment pre_divide(layers.1)"), 0);
    played_release(&played);
    if (program_text_read(&text, &played, TWO_BLOCKS,
                          "train.precision={param_dtype: fp16, reduce_dtype: fp16}")) {
        CHECK_INT(program_text_count(&text, "reduce-scatter: segment pre_divide(layers.1)"), 1);
        CHECK_INT(program_text_count(&text, "reduce-scatter: segment post_divide(layers.1)"), 0);
    }
    played_release(&played);
}

const struct check_case fsdp2_options_cases[] = {
    {"27: a list in backward", test_backward_list},
    {"28: the embedding stays sharded in backward", test_embedding_not_gathered},
    {"10, 22: slices in a small group", test_slices},
    {"22: slices inside hosts: time, wire, memory", test_slices_played},
    {"32: fp16", test_fp16},
    {0}};
