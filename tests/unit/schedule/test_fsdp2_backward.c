/* tests/unit/schedule/test_fsdp2_backward.c: FSDP2: backward, accumulation, optimizer. */
#include <string.h>

#include "schedule_tests.h"

static int32_t forward_end(const struct program_text *text)
{
    return program_text_find(text, 0, "compute: mark forward_end");
}

/* 27: the head is gathered still, so only the unit before it is prefetched. */
static void test_first_pre_backward(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, NULL)) {
        const int32_t from = forward_end(&text);
        static const char *const wanted[] = {"compute: segment loss.backward",
                                             "host: alloc cast(layers.1)",
                                             "all-gather: all_gather bytes=5440 on dp_shard",
                                             "compute: segment lm_head.backward", NULL};
        program_text_check_order(&text, from, wanted);
        CHECK_TRUE(program_text_find(&text, from, "compute: wait gathered(norm+lm_head)") < 0);
    }
    played_release(&played);
}

/* 27, 18: wait, copy out, let both gather streams wait, free, then prefetch the unit before. */
static void test_pre_backward(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, NULL)) {
        static const char *const wanted[] = {"compute: wait gathered(layers.1)",
                                             "host: alloc params(layers.1)",
                                             "compute: segment copy_out(layers.1)",
                                             "compute: record copied_out(layers.1)",
                                             "all-gather copy-in: wait copied_out(layers.1)",
                                             "all-gather: wait copied_out(layers.1)",
                                             "host: free all_gather_buffer(layers.1)",
                                             "host: alloc cast(layers.0)",
                                             "host: alloc all_gather_buffer(layers.0)",
                                             "all-gather copy-in: segment copy_in(layers.0)",
                                             "host: free cast(layers.0)",
                                             "all-gather copy-in: record copied_in(layers.0)",
                                             "all-gather: wait copied_in(layers.0)",
                                             "all-gather: all_gather bytes=5440 on dp_shard",
                                             "all-gather: record gathered(layers.0)",
                                             "host: alloc backward_temp(layers.1)",
                                             "host: alloc grads(layers.1)",
                                             "compute: segment layers.0.backward",
                                             NULL};
        program_text_check_block(&text, forward_end(&text), wanted);
    }
    played_release(&played);
}

/* 30: reshard, wait for the reduction before, copy in, reduce. */
static void test_post_backward(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, NULL)) {
        static const char *const wanted[] = {
            "host: free params(layers.1)",
            /* 30d */
            "compute: wait reduced(norm+lm_head)", "host: free reduce_scatter_input(norm+lm_head)",
            "host: alloc reduce_scatter_input(layers.1)", "compute: segment chunk_cat(layers.1)",
            "host: free grads(layers.1)", "compute: record reduce_ready(layers.1)",
            "reduce-scatter: wait reduce_ready(layers.1)",
            /* reduce_dtype = storage_dtype: the reduced shard is the gradient */
            "host: alloc sharded_grads(layers.1)",
            "reduce-scatter: reduce_scatter bytes=10880 on dp_shard",
            "reduce-scatter: record reduced(layers.1)",
            "reduce-scatter: record post_reduced(layers.1)",
            /* 0.6: only now the unit before. */
            "compute: wait gathered(layers.0)", NULL};
        program_text_check_block(&text, forward_end(&text), wanted);
    }
    played_release(&played);
}

/* reduce_dtype ≠ storage_dtype: a cast on the reduce-scatter stream. */
static void test_cast_gradients(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, "train.precision.reduce_dtype=bf16")) {
        static const char *const wanted[] = {
            "host: alloc reduce_scatter_output(layers.1)",
            "reduce-scatter: reduce_scatter bytes=5440 on dp_shard",
            "reduce-scatter: record reduced(layers.1)",
            "host: alloc sharded_grads(layers.1)",
            "reduce-scatter: segment cast_grads(layers.1)",
            "host: free reduce_scatter_output(layers.1)",
            "reduce-scatter: record post_reduced(layers.1)",
            NULL};
        program_text_check_block(&text, forward_end(&text), wanted);
    }
    played_release(&played);
}

/* 33: the embedding's input carries no gradient: reduced in the callback, behind all others; then
   compute waits in traversal order. */
static void test_end_of_backward(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, NULL)) {
        static const char *const wanted[] = {"compute: segment embed_tokens.backward",
                                             "compute: wait reduced(layers.0)",
                                             "compute: segment chunk_cat(embed_tokens)",
                                             "reduce-scatter: record post_reduced(embed_tokens)",
                                             "compute: wait post_reduced(embed_tokens)",
                                             "compute: wait post_reduced(layers.0)",
                                             "compute: wait post_reduced(layers.1)",
                                             "compute: wait post_reduced(norm+lm_head)",
                                             "compute: mark backward_end",
                                             NULL};
        program_text_check_order(&text, forward_end(&text), wanted);
        CHECK_INT(program_text_count(&text, "reduce-scatter: reduce_scatter"), 4);
    }
    played_release(&played);
}

/* 33 with a root that holds something: it comes behind every block. */
static void test_root_reduces_last(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, "fsdp.wrap=block")) {
        static const char *const wanted[] = {
            "reduce-scatter: record reduced(layers.1)", "reduce-scatter: record reduced(layers.0)",
            "compute: segment embed_tokens.backward",   "compute: wait reduced(layers.0)",
            "compute: segment chunk_cat(root)",         "reduce-scatter: record reduced(root)",
            "compute: wait post_reduced(root)",         "compute: wait post_reduced(layers.0)",
            "compute: wait post_reduced(layers.1)",     NULL};
        program_text_check_order(&text, forward_end(&text), wanted);
        /* Not resharded after forward (4), so not gathered again. */
        CHECK_INT(program_text_count(&text, "compute: wait gathered(root)"), 1);
        const int32_t from = forward_end(&text);
        CHECK_TRUE(program_text_find(&text, from, "compute: wait gathered(root)") < 0);
    }
    played_release(&played);
}

static void test_reduce_buffers(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, "fsdp.reduce_scatter_buffers=2")) {
        /* The second reduction waits for nothing, the third for the first. */
        static const char *const wanted[] = {"host: free params(layers.1)",
                                             "host: alloc reduce_scatter_input(layers.1)", NULL};
        const int32_t at = program_text_check_block(&text, forward_end(&text), wanted);
        static const char *const third[] = {"host: free params(layers.0)",
                                            "compute: wait reduced(norm+lm_head)",
                                            "host: free reduce_scatter_input(norm+lm_head)",
                                            "host: alloc reduce_scatter_input(layers.0)", NULL};
        program_text_check_block(&text, at, third);
    }
    played_release(&played);
}

/* 100: the moments appear at the first step; gradients are freed at the start of later ones. */
static void test_first_step(void)
{
    struct played played;
    if (played_build(&played, TWO_BLOCKS, NULL)) {
        const struct program *program = played.experiment.program;
        int32_t moments = 0, frees = 0;
        for (int32_t i = 0; i < program->step.count; i++) {
            const struct op *op = &program->step.items[i];
            if (op->kind != OP_ALLOC && op->kind != OP_FREE)
                continue;
            const struct tensor *tensor = &program->tensors.items[op->index];
            if (tensor->category == MEMORY_OPTIMIZER) {
                CHECK_INT(op->kind, OP_ALLOC);
                CHECK_INT(op->flags, OP_FIRST_STEP);
                moments++;
            } else if (tensor->category == MEMORY_GRADIENTS && op->kind == OP_FREE) {
                CHECK_INT(op->flags, OP_LATER_STEPS);
                frees++;
            } else {
                CHECK_INT(op->flags, 0);
            }
        }
        CHECK_INT(moments, 4);
        CHECK_INT(frees, 4);
    }
    played_release(&played);
}

/* Every microbatch gathers and reduces; a later one adds to the sharded gradient. */
static void test_accumulation(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, "train.grad_accum=2")) {
        CHECK_INT(program_text_count(&text, "compute: mark forward_end"), 2);
        CHECK_INT(program_text_count(&text, "reduce-scatter: reduce_scatter"), 2 * 4);
        CHECK_INT(program_text_count(&text, "all-gather: all_gather"), 2 * (1 + 3 * 2));
        CHECK_INT(program_text_count(&text, "host: alloc sharded_grads(layers.1)"), 1);
        CHECK_INT(program_text_count(&text, "compute: segment adamw"), 1);
        const int32_t second = forward_end(&text) + 1;
        static const char *const wanted[] = {
            "compute: wait reduced(norm+lm_head)", "host: free reduce_scatter_input(norm+lm_head)",
            /* 30e */
            "compute: wait post_reduced(layers.1)", "host: alloc reduce_scatter_input(layers.1)",
            "compute: segment chunk_cat(layers.1)", "host: free grads(layers.1)",
            "compute: record reduce_ready(layers.1)", "reduce-scatter: wait reduce_ready(layers.1)",
            "host: alloc reduce_scatter_output(layers.1)",
            "reduce-scatter: reduce_scatter bytes=10880 on dp_shard",
            "reduce-scatter: record reduced(layers.1)",
            "reduce-scatter: segment accumulate_grads(layers.1)",
            "host: free reduce_scatter_output(layers.1)",
            "reduce-scatter: record post_reduced(layers.1)", NULL};
        program_text_check_block(
            &text, program_text_find(&text, second, "compute: mark forward_end"), wanted);
    }
    played_release(&played);
}

/* Norm, its four bytes, scaling, AdamW; without clipping AdamW alone. */
static void test_optimizer(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, NULL)) {
        static const char *const wanted[] = {"compute: mark backward_end",
                                             "compute: segment gradient_norm",
                                             "compute: all_reduce bytes=4 on dp_shard",
                                             "compute: segment clip_gradients",
                                             "compute: segment adamw",
                                             "compute: mark step_end",
                                             NULL};
        program_text_check_order(&text, 0, wanted);
        CHECK_CONTAINS(text.lines[text.count - 1], "mark step_end");
        /* 28 B for each fp32 parameter of the shard: (1536 + 2 x 2720 + 1552) / 2 of them. */
        CHECK_CONTAINS(text.whole, "kernel adamw optimizer fp32 flop=0 bytes=119392\n");
        CHECK_CONTAINS(text.whole, "kernel gradient_norm reduce fp32 flop=0 bytes=17056\n");
        CHECK_CONTAINS(text.whole, "kernel clip_gradients elementwise fp32 flop=0 bytes=34112\n");
    }
    played_release(&played);
    if (program_text_read(&text, &played, TWO_BLOCKS, "train.max_grad_norm=0")) {
        CHECK_INT(program_text_count(&text, "compute: all_reduce"), 0);
        CHECK_INT(program_text_count(&text, "compute: segment gradient_norm"), 0);
        CHECK_INT(program_text_count(&text, "compute: segment clip_gradients"), 0);
        CHECK_INT(program_text_count(&text, "compute: segment adamw"), 1);
    }
    played_release(&played);
}

const struct check_case backward_cases[] = {
    {"27: what is gathered is not gathered again", test_first_pre_backward},
    {"27: a unit is gathered, the one before prefetched", test_pre_backward},
    {"30: a unit is reduced", test_post_backward},
    {"30h: a cast", test_cast_gradients},
    {"33: end of backward", test_end_of_backward},
    {"33: the root is reduced last", test_root_reduces_last},
    {"30d: two buffers", test_reduce_buffers},
    {"operations of the first step", test_first_step},
    {"accumulation", test_accumulation},
    {"clipping and AdamW", test_optimizer},
    {0}};
