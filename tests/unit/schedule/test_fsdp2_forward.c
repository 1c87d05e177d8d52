/* tests/unit/schedule/test_fsdp2_forward.c: FSDP2, forward. */
#include <string.h>

#include "schedule_tests.h"

/* 7: the gather streams wait for all that compute was given before. */
static void test_root_pre_forward(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, NULL)) {
        static const char *const wanted[] = {"compute: mark forward_begin",
                                             "compute: record root_pre_forward(root)",
                                             "all-gather copy-in: wait root_pre_forward(root)",
                                             "all-gather: wait root_pre_forward(root)",
                                             "host: alloc cast(embed_tokens)",
                                             NULL};
        program_text_check_block(&text, 0, wanted);
    }
    played_release(&played);
}

/* 11 to 21: one unit behind another. */
static void test_unit(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, NULL)) {
        static const char *const wanted[] = {
            "host: alloc cast(layers.0)", "host: alloc all_gather_buffer(layers.0)",
            "all-gather copy-in: segment copy_in(layers.0)", "host: free cast(layers.0)",
            "all-gather copy-in: record copied_in(layers.0)",
            "all-gather: wait copied_in(layers.0)", "all-gather: all_gather bytes=5440 on dp_shard",
            "all-gather: record gathered(layers.0)",
            /* 15: the buffer parked by the unit before goes when this one is to be copied out. */
            "all-gather copy-in: wait copied_out(embed_tokens)",
            "all-gather: wait copied_out(embed_tokens)",
            "host: free all_gather_buffer(embed_tokens)",
            /* 16-18: the buffer of this one is parked: no free. */
            "compute: wait gathered(layers.0)", "host: alloc params(layers.0)",
            "compute: segment copy_out(layers.0)", "compute: record copied_out(layers.0)",
            "host: alloc saved(layers.0)", "host: alloc forward_temp(layers.0)",
            "compute: segment layers.0.forward", "host: free forward_temp(layers.0)",
            /* 21 */
            "host: free params(layers.0)", "host: alloc cast(layers.1)", NULL};
        program_text_check_block(&text, 0, wanted);
    }
    played_release(&played);
}

/* 21: the root's forward ends before the loss, and with it the last parked buffer. */
static void test_root_post_forward(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, NULL)) {
        static const char *const wanted[] = {"compute: segment lm_head.forward",
                                             "all-gather copy-in: wait copied_out(norm+lm_head)",
                                             "all-gather: wait copied_out(norm+lm_head)",
                                             "host: free all_gather_buffer(norm+lm_head)",
                                             "host: alloc saved(loss)",
                                             NULL};
        program_text_check_block(&text, 0, wanted);
        static const char *const loss[] = {"compute: segment loss.forward",
                                           "host: free logits(lm_head)",
                                           "compute: mark forward_end", NULL};
        program_text_check_order(&text, 0, loss);
    }
    played_release(&played);
}

/* 12 before 16: no unit is waited for before its gather was issued, in any microbatch. */
static void test_gather_before_wait(void)
{
    struct played played;
    if (played_build(&played, TWO_BLOCKS, "train.grad_accum=3")) {
        const struct program *program = played.experiment.program;
        const int32_t units = program->units.count;
        int32_t *ahead = ARENA_ARRAY(&played.arena, int32_t, units);
        int32_t waits = 0;
        for (int32_t i = 0; i < program->step.count; i++) {
            const struct op *op = &program->step.items[i];
            if (op->kind == OP_COLLECTIVE && op->unit >= 0 &&
                program->collectives.items[op->index].op == COLLECTIVE_ALL_GATHER)
                CHECK_INT(++ahead[op->unit], 1);
            if (op->kind == OP_WAIT && op->stream == 0 && op->unit >= 0 &&
                strncmp(program->events.items[op->index], "gathered(", 9) == 0) {
                CHECK_INT(ahead[op->unit]--, 1);
                waits++;
            }
        }
        /* Head: one gather a microbatch, blocks two, the embedding two: the second is in vain and
           nobody waits before its reduction. */
        CHECK_INT(waits, 3 * (1 + 2 + 2 + 2));
    }
    played_release(&played);
}

/* One GPU gathers nothing from others, but still copies its shard. */
static void test_one_gpu(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, "gpus_per_node=1")) {
        CHECK_INT(program_text_count(&text, "all-gather: all_gather"), 0);
        CHECK_INT(program_text_count(&text, "reduce-scatter: reduce_scatter"), 0);
        CHECK_INT(program_text_count(&text, "compute: all_reduce"), 0);
        CHECK_INT(program_text_count(&text, "all-gather copy-in: segment copy_in(layers.0)"), 2);
        CHECK_INT(program_text_count(&text, "compute: segment chunk_cat(layers.0)"), 1);
    }
    played_release(&played);
}

/* param_dtype = storage_dtype: nothing to cast; the shard is copied from where it lies. */
static void test_without_cast(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, "train.precision.param_dtype=fp32")) {
        CHECK_INT(program_text_count(&text, "host: alloc cast(layers.0)"), 0);
        CHECK_INT(program_text_count(&text, "all-gather: all_gather bytes=10880 on dp_shard"), 4);
    }
    played_release(&played);
}

/* Experts in a loop, four a block: the host waits for each one's tokens, and issues the gather of
   the next block behind the last. */
static void test_expert_loop(void)
{
    static const char *const experts =
        "model={model_type: mixtral, hidden_size: 16, intermediate_size: 40, num_hidden_layers: 2, "
        "num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 96, num_local_experts: 4, "
        "num_experts_per_tok: 2}; train.experts=loop";
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, experts)) {
        static const char *const wanted[] = {"compute: segment layers.0.forward.part3",
                                             "compute: record host_sync",
                                             "host: host_wait host_sync",
                                             "compute: segment layers.0.forward.part4",
                                             "all-gather: record gathered(layers.1)",
                                             "compute: segment layers.0.forward.part0",
                                             NULL};
        CHECK_INT(program_text_count(&text, "host: host_wait host_sync"), 2 * 4);
        CHECK_INT(program_text_count(&text, "compute: segment layers.0.forward.part4"), 2);
        program_text_check_order(&text, 0, wanted);
    }
    played_release(&played);
    if (program_text_read(&text, &played, TWO_BLOCKS, NULL))
        CHECK_INT(program_text_count(&text, "host: host_wait"), 0);
    played_release(&played);
}

/* 25: issued behind the wait of the unit before, so that a host that waits for the GPU still has
   the next gather under way. */
static void test_explicit_prefetch(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, "fsdp.forward_prefetch=1")) {
        static const char *const wanted[] = {"compute: record copied_out(layers.0)",
                                             "all-gather: record gathered(layers.1)",
                                             "compute: segment layers.0.forward",
                                             "compute: wait gathered(layers.1)",
                                             "all-gather: record gathered(norm+lm_head)",
                                             "compute: segment layers.0.forward",
                                             NULL};
        program_text_check_order(&text, 0, wanted);
        /* Four, and again all but the head, which is kept: as without a list. */
        CHECK_INT(program_text_count(&text, "all-gather: all_gather"), 7);
    }
    played_release(&played);
}

/*
 * F = 40, 5, 5, 5, gather 15 ms, a host that costs nothing. Unit 0 computes from 15 to 55, gathers
 * 1 and 2 end at 30 and 45. Gather 3 waits for the copy-out of unit 1, at 55: F of unit 3 70-75.
 * One ahead is the same order. Two ahead it is issued behind that of unit 0: 45-60, F one behind
 * the other: 15 + 40 + 15 = 70.
 */
static void test_prefetch_depth(void)
{
    static const double forward_s[] = {0.075, 0.075, 0.070, 0.070};
    for (int depth = 0; depth < 4; depth++) {
        struct played played;
        char overrides[512];
        snprintf(overrides, sizeof(overrides),
                 "model={family: abstract, units: [{parameters: 15000000, forward: 40 ms, "
                 "backward: 20 ms}, {repeat: 3, parameters: 15000000, forward: 5 ms, backward: 20 "
                 "ms}]}; fsdp.forward_prefetch=%d",
                 depth);
        if (played_play(&played, "worked-examples/units-32", overrides)) {
            check_context("%s", overrides);
            CHECK_NEAR(played.outcome.forward_s, forward_s[depth], 1e-12);
            check_context(NULL);
        }
        played_release(&played);
    }
}

const struct check_case forward_cases[] = {
    {"7: root pre-forward", test_root_pre_forward},
    {"11-21: a unit", test_unit},
    {"21: root post-forward", test_root_post_forward},
    {"gathers are issued before they are waited for", test_gather_before_wait},
    {"13: one GPU", test_one_gpu},
    {"11: without a cast", test_without_cast},
    {"experts in a loop", test_expert_loop},
    {"25: explicit prefetch", test_explicit_prefetch},
    {"25: its depth", test_prefetch_depth},
    {0}};
