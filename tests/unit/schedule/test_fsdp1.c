/*
 * tests/unit/schedule/test_fsdp1.c: FSDP1: order of issue, sizes, keys. Numbers in comments:
 * statements of docs/fsdp1.md.
 *
 * Four equal units without a root of their own; the steady state of the limiter's queue follows
 * from pushes (a unit freed) and pops (a unit unsharded with two or more queued).
 */
#include <string.h>

#include "machine/machine.h"
#include "schedule_tests.h"

#define UNITS_32 "worked-examples/units-32"
#define FOUR_UNITS                                                                                 \
    "model={family: abstract, units: [{repeat: 4, parameters: 15000000, forward: 10 ms, "          \
    "backward: 20 ms}]}; fsdp.api=fsdp1"
#define ODD_UNITS                                                                                  \
    "model={family: abstract, units: [{repeat: 2, parameters: 2385, forward: 10 ms, "              \
    "backward: 20 ms}]}; fsdp.api=fsdp1"

static void check_orders(const char *overrides, const char *const *wanted)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, UNITS_32, overrides))
        program_text_check_order(&text, 0, wanted);
    played_release(&played);
}

/* 77, 80: BACKWARD_POST. The gather of unit i is issued when unit i - 2 is done with, in forward
   and in backward, and before the reduce-scatter of unit i + 1. */
static void test_post(void)
{
    static const char *const wanted[] = {"host: host_wait backward_freed(units.1)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "host: host_wait backward_freed(units.0)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "host: host_wait forward_freed(units.0)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "compute: record forward_freed(units.2)",
                                         "host: host_wait forward_freed(units.1)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "compute: mark forward_end",
                                         "host: host_wait forward_freed(units.2)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "compute: segment units.0.backward",
                                         "compute: record backward_freed(units.3)",
                                         "host: host_wait forward_freed(units.3)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "post-backward: reduce_scatter bytes=30000000 on dp_shard",
                                         "compute: segment units.0.backward",
                                         "host: host_wait backward_freed(units.3)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "post-backward: reduce_scatter bytes=30000000 on dp_shard",
                                         "compute: segment units.0.backward",
                                         "host: host_wait backward_freed(units.2)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "post-backward: reduce_scatter bytes=30000000 on dp_shard",
                                         "compute: segment units.0.backward",
                                         "post-backward: reduce_scatter bytes=30000000 on dp_shard",
                                         "compute: wait post_backward_done(root)",
                                         NULL};
    check_orders(FOUR_UNITS "; fsdp.backward_prefetch=post", wanted);
}

/* BACKWARD_PRE: before the backward of the unit; the queue is one longer from step to step, so that
   forward waits for unit i - 3. */
static void test_pre(void)
{
    static const char *const wanted[] = {"host: host_wait backward_freed(units.0)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "compute: wait unsharded(units.2)",
                                         "host: host_wait forward_freed(units.0)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "compute: wait unsharded(units.3)",
                                         "compute: mark forward_end",
                                         "host: host_wait forward_freed(units.1)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "compute: wait unsharded(units.3)",
                                         "host: host_wait forward_freed(units.2)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "compute: segment units.0.backward",
                                         "post-backward: reduce_scatter bytes=30000000 on dp_shard",
                                         "compute: wait unsharded(units.2)",
                                         "host: host_wait forward_freed(units.3)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "compute: segment units.0.backward",
                                         NULL};
    check_orders(FOUR_UNITS, wanted);
}

/* No prefetch: the next gather is issued behind the reduce-scatter. */
static void test_none(void)
{
    static const char *const wanted[] = {"compute: mark forward_end",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "compute: segment units.0.backward",
                                         "post-backward: reduce_scatter bytes=30000000 on dp_shard",
                                         "host: host_wait forward_freed(units.3)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "compute: segment units.0.backward",
                                         NULL};
    check_orders(FOUR_UNITS "; fsdp.backward_prefetch=none", wanted);
}

/* 81: unit i + 1 is gathered between the wait for unit i and its compute. */
static void test_forward_prefetch(void)
{
    static const char *const wanted[] = {"compute: mark forward_begin",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "compute: wait unsharded(units.0)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "compute: segment units.0.forward",
                                         "compute: wait unsharded(units.1)",
                                         "unshard: all_gather bytes=30000000 on dp_shard",
                                         "compute: segment units.0.forward",
                                         NULL};
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, UNITS_32, FOUR_UNITS "; fsdp.forward_prefetch=true")) {
        program_text_check_order(&text, 0, wanted);
        CHECK_INT(program_text_count(&text, "unshard: all_gather"), 8);
    }
    played_release(&played);
}

static int32_t count_host_waits(const struct program_text *text)
{
    int32_t count = 0;
    for (int32_t i = 0; i < text->count; i++)
        count += strstr(text->lines[i], " host_wait ") != NULL;
    return count;
}

/* 71: SHARD_GRAD_OP gathers once a step, and frees in backward only: four frees, four waits. */
static void test_grad_op(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, UNITS_32,
                          FOUR_UNITS "; fsdp.sharding_strategy=shard_grad_op")) {
        CHECK_INT(program_text_count(&text, "unshard: all_gather"), 4);
        CHECK_INT(program_text_count(&text, "post-backward: reduce_scatter"), 4);
        CHECK_INT(program_text_count(&text, "compute: record forward_freed(units.2)"), 0);
        CHECK_INT(program_text_count(&text, "compute: record backward_freed(units.2)"), 1);
        CHECK_INT(count_host_waits(&text), 4);
    }
    played_release(&played);
    if (program_text_read(&text, &played, UNITS_32, FOUR_UNITS "; fsdp.limit_all_gathers=false"))
        CHECK_INT(count_host_waits(&text), 0);
    played_release(&played);
}

/* 70, 82, 83: 2,385 parameters over 8 GPUs: shards of 299, 2,392 gathered; 8 = 4 before and 2
   behind the reduction. bf16 parameters, fp32 reduction. */
static void test_sizes(void)
{
    static const char *const kernels[] = {
        "kernel cast_shard(units.0) cast bf16 flop=0 bytes=1794\n",            /* (4 + 2) 299 */
        "kernel concat_grads(units.0) chunk_cat bf16 flop=0 bytes=9554\n",     /* 2 (2385 + 2392) */
        "kernel cast_unsharded_grads(units.0) cast fp32 flop=0 bytes=14352\n", /* (2 + 4) 2392 */
        "kernel pre_divide(units.0) cast fp32 flop=0 bytes=19136\n",           /* 8 x 2392 */
        "kernel post_divide(units.0) cast fp32 flop=0 bytes=2392\n",           /* 8 x 299 */
    };
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, UNITS_32,
                          ODD_UNITS "; cluster=ideal-8x450; train.precision.reduce_dtype=fp32")) {
        for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
            CHECK_CONTAINS(text.whole, kernels[i]);
        CHECK_INT(program_text_count(&text, "unshard: all_gather bytes=4784 on dp_shard"), 4);
        CHECK_INT(program_text_count(&text, "post-backward: reduce_scatter bytes=9568 on dp_shard"),
                  2);
        CHECK_INT(program_text_count(&text, "host: alloc flat_params(units.0) bytes=4784"), 2);
        CHECK_CONTAINS(text.whole, "alloc shard(units.0) bytes=1196 ");
    }
    played_release(&played);
}

/* Without casts: the shard itself is gathered, the gradient itself reduced; two GPUs divide once.
 */
static void test_without_casts(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, UNITS_32,
                          ODD_UNITS "; train.precision={param_dtype: fp32, reduce_dtype: fp32}")) {
        CHECK_INT(program_text_count(&text, "pre-unshard: segment cast_shard(units.0)"), 0);
        CHECK_INT(program_text_count(&text, "post-backward: segment pre_divide(units.0)"), 1);
        CHECK_INT(program_text_count(&text, "post-backward: segment post_divide(units.0)"), 0);
        CHECK_INT(program_text_count(&text, "host: alloc reduce_scatter_input(units.0)"), 0);
        CHECK_INT(program_text_count(&text, "host: alloc flat_grads(units.0) bytes=9544"), 1);
        CHECK_INT(program_text_count(&text, "post-backward: segment cast_unsharded_grads(units.0)"),
                  0);
    }
    played_release(&played);
    if (program_text_read(&text, &played, UNITS_32, ODD_UNITS "; gpus_per_node=1")) {
        CHECK_INT(program_text_count(&text, "unshard: all_gather"), 0);
        CHECK_INT(program_text_count(&text, "post-backward: reduce_scatter"), 0);
        CHECK_INT(program_text_count(&text, "post-backward: segment pre_divide(units.0)"), 0);
        CHECK_INT(count_host_waits(&text), 0);
    }
    played_release(&played);
}

/* A Llama: the root is gathered first, kept, gathered no more, reduced last; each microbatch
   reduces. */
static void test_root(void)
{
    static const char *const wanted[] = {"unshard: all_gather bytes=6176 on dp_shard",
                                         "compute: segment embed_tokens.forward",
                                         "compute: segment lm_head.forward",
                                         "compute: segment lm_head.backward",
                                         "compute: segment embed_tokens.backward",
                                         "compute: segment concat_grads(root)",
                                         "host: free flat_params(root)",
                                         "post-backward: reduce_scatter bytes=12352 on dp_shard",
                                         "compute: wait post_backward_done(root)",
                                         NULL};
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS,
                          "fsdp.api=fsdp1; fsdp.wrap=block; train.grad_accum=2")) {
        const int32_t end = program_text_check_order(&text, 0, wanted);
        program_text_check_order(&text, end, wanted);
        CHECK_INT(program_text_count(&text, "unshard: all_gather bytes=6176 on dp_shard"), 2);
        CHECK_INT(program_text_count(&text, "post-backward: segment accumulate_grads(root)"), 1);
    }
    played_release(&played);
}

/* The optimizer sees flat shards, or with original parameters the pieces in them: a block has 9
   over 2 GPUs, cut once: 5 on average; the root 3: 2. */
static void test_orig_params(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, "fsdp.api=fsdp1; fsdp.wrap=block")) {
        CHECK_CONTAINS(text.whole, "host_work optimizer_param count=3\n");
        CHECK_TRUE(strstr(text.whole, "host_work orig_param") == NULL);
        CHECK_CONTAINS(text.whole, "host_work flat_view count=9 unit=layers.1\n");
    }
    played_release(&played);
    if (program_text_read(&text, &played, TWO_BLOCKS,
                          "fsdp.api=fsdp1; fsdp.wrap=block; fsdp.use_orig_params=true")) {
        CHECK_CONTAINS(text.whole, "host_work optimizer_param count=12\n");
        CHECK_CONTAINS(text.whole, "host_work orig_param count=9 unit=layers.1\n");
    }
    played_release(&played);
}

/* Under a reentrant checkpoint forward makes no graph and so no hooks on outputs: each recompute
   and each backward gathers for itself when its turn has come, and nothing is prefetched. */
static void test_reentrant(void)
{
    static const char *const wanted[] = {"compute: segment layers.1.recompute.0",
                                         "unshard: all_gather bytes=5440 on dp_shard",
                                         "compute: wait unsharded(layers.1)",
                                         "compute: segment layers.1.backward.0",
                                         "unshard: all_gather bytes=5440 on dp_shard",
                                         "compute: wait unsharded(layers.0)",
                                         "compute: segment layers.1.recompute.0",
                                         "unshard: all_gather bytes=5440 on dp_shard",
                                         "compute: wait unsharded(layers.0)",
                                         "compute: segment layers.1.backward.0",
                                         NULL};
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS,
                          "fsdp.api=fsdp1; fsdp.wrap=block; "
                          "train.activation_checkpointing={policy: full, reentrant: true}")) {
        program_text_check_order(&text, 0, wanted);
        CHECK_INT(program_text_count(&text, wanted[1]), 2 * 3);
    }
    played_release(&played);
}

static void test_keys(void)
{
    static const struct refusal rows[] = {
        {"fsdp.api=fsdp1; fsdp.wrap=block; fsdp.reshard_after_forward=false",
         "'reshard_after_forward' means nothing for 'api: fsdp1'"},
        {"fsdp.api=fsdp1; fsdp.wrap=block; fsdp.reduce_scatter_buffers=2",
         "'reduce_scatter_buffers' means nothing for 'api: fsdp1'"},
        {"fsdp.api=fsdp1; fsdp.wrap=torchtitan", "'wrap: torchtitan' is a recipe of 'api: fsdp2'"},
        {"fsdp.api=fsdp1; fsdp.wrap=block; fsdp.forward_prefetch=2",
         "fsdp1 gathers one unit ahead at most, not 2"},
        {"fsdp.sharding_strategy=shard_grad_op",
         "'sharding_strategy' means nothing for 'api: fsdp2'"},
        {"fsdp.limit_all_gathers=true", "'limit_all_gathers' means nothing for 'api: fsdp2'"},
        {"fsdp.use_orig_params=true", "'use_orig_params' means nothing for 'api: fsdp2'"},
    };
    check_refusals(rows, sizeof(rows) / sizeof(rows[0]));
}

const struct check_case fsdp1_cases[] = {{"80: BACKWARD_POST", test_post},
                                         {"80: BACKWARD_PRE", test_pre},
                                         {"80: no prefetch", test_none},
                                         {"81: forward prefetch", test_forward_prefetch},
                                         {"71: SHARD_GRAD_OP", test_grad_op},
                                         {"70, 83: padding and passes", test_sizes},
                                         {"without casts, alone", test_without_casts},
                                         {"71: the root", test_root},
                                         {"original parameters", test_orig_params},
                                         {"reentrant checkpoints", test_reentrant},
                                         {"keys of the other policy", test_keys},
                                         {0}};
