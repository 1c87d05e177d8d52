/*
 * tests/unit/schedule/test_frozen.c: modules that are not trained (`train.frozen`). Numbers in
 * comments: statements of docs/fsdp2.md and docs/fsdp1.md.
 *
 * Two blocks of 2,720 parameters, embedding and head of 1,536, a norm of 16, over two GPUs; bf16,
 * fp32 reduction. A trained block's gradients of weights are seven products.
 */
#include <string.h>

#include "schedule_tests.h"

struct counts {
    int32_t gathers, scatters, weight_grads;
    int64_t reduced_bytes; /* inputs of scatters */
    int64_t states_bytes;  /* of the optimizer, on one GPU */
};

static int32_t count_weight_grads(const struct program *program)
{
    int32_t count = 0;
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        if (op->kind != OP_SEGMENT)
            continue;
        const struct segment *segment = &program->segments.items[op->index];
        for (int32_t k = 0; k < segment->kernel_count; k++)
            count += segment->kernels[k].kind == KERNEL_GEMM &&
                     strstr(segment->kernels[k].name, ".weight_grad") != NULL;
    }
    return count;
}

static struct counts count_ops(const struct program *program)
{
    struct counts counts = {.weight_grads = count_weight_grads(program)};
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        if (op->kind != OP_COLLECTIVE)
            continue;
        const struct collective *collective = &program->collectives.items[op->index];
        counts.gathers += collective->op == COLLECTIVE_ALL_GATHER;
        counts.scatters += collective->op == COLLECTIVE_REDUCE_SCATTER;
        if (collective->op == COLLECTIVE_REDUCE_SCATTER)
            counts.reduced_bytes += (int64_t)collective->bytes;
    }
    for (int32_t i = 0; i < program->tensors.count; i++)
        if (program->tensors.items[i].category == MEMORY_OPTIMIZER)
            counts.states_bytes += program->tensors.items[i].bytes;
    return counts;
}

enum { BLOCK = 2720, TABLE = 1536, NORM = 16, ALL = 2 * BLOCK + 2 * TABLE + NORM };

/*
 * fully_shard reduces and keeps states of what is trained alone: 8 B of moments over two GPUs. A
 * unit behind which backward does not go is not gathered for it, but for the one that the default
 * prefetch names (28).
 * FSDP1: a mixed flat parameter, here the root's, has a gradient of all (88).
 */
static void test_counts(void)
{
    static const struct {
        const char *overrides;
        struct counts counts;
    } rows[] = {
        {"fsdp.wrap=block", {1 + 4, 3, 15, 4 * ALL, 4 * ALL}},
        {"train.frozen=layers.1", {1 + 4, 2, 8, 4 * (ALL - BLOCK), 4 * (ALL - BLOCK)}},
        {"train.frozen=embed_tokens", {1 + 4, 3, 15, 4 * (ALL - TABLE), 4 * (ALL - TABLE)}},
        {"train.frozen=[embed_tokens, layers.0]",
         {1 + 4, 2, 8, 4 * (ALL - TABLE - BLOCK), 4 * (ALL - TABLE - BLOCK)}},
        {"train.frozen=[embed_tokens, layers.0-1, norm]", {1 + 3, 1, 1, 4 * TABLE, 4 * TABLE}},
        {"train.frozen=lm_head", {1 + 4, 3, 14, 4 * (ALL - TABLE), 4 * (ALL - TABLE)}},
        {"fsdp.api=fsdp1; train.frozen=layers.1",
         {1 + 4, 2, 8, 4 * (ALL - BLOCK), 4 * (ALL - BLOCK)}},
        {"fsdp={api: fsdp1, use_orig_params: true}; train.frozen=embed_tokens",
         {1 + 4, 3, 15, 4 * ALL, 4 * (ALL - TABLE)}},
        {"fsdp={api: fsdp1, use_orig_params: true}; train.frozen=[embed_tokens, layers.0]",
         {1 + 3, 2, 8, 4 * (ALL - BLOCK), 4 * (ALL - TABLE - BLOCK)}},
        {"fsdp={api: fsdp1, use_orig_params: true, sharding_strategy: shard_grad_op}; "
         "train.frozen=[embed_tokens, layers.0]",
         {1 + 2, 2, 8, 4 * (ALL - BLOCK), 4 * (ALL - TABLE - BLOCK)}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[256];
        snprintf(overrides, sizeof(overrides), "fsdp.wrap=block; %s", rows[i].overrides);
        check_context("%s", rows[i].overrides);
        if (played_play(&played, TWO_BLOCKS, overrides)) {
            const struct counts *wanted = &rows[i].counts;
            const struct counts counts = count_ops(played.experiment.program);
            check_context("%s", rows[i].overrides);
            CHECK_INT(counts.gathers, wanted->gathers);
            CHECK_INT(counts.scatters, wanted->scatters);
            CHECK_INT(counts.weight_grads, wanted->weight_grads);
            CHECK_INT(counts.reduced_bytes, wanted->reduced_bytes);
            CHECK_INT(counts.states_bytes, wanted->states_bytes);
            program_check_balance(played.experiment.program);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* 33: the first block behind a frozen embedding has inputs without gradient: it is reduced in the
   callback, behind the root, where else it is before. */
static void test_begin_of_graph(void)
{
    static const char *const frozen[] = {"compute: segment layers.0.backward",
                                         "compute: segment chunk_cat(root)",
                                         "compute: segment chunk_cat(layers.0)", NULL};
    static const char *const trained[] = {"compute: segment layers.0.backward",
                                          "compute: segment chunk_cat(layers.0)",
                                          "compute: segment chunk_cat(root)", NULL};
    for (int i = 0; i < 2; i++) {
        struct played played;
        struct program_text text;
        if (program_text_read(&text, &played, TWO_BLOCKS,
                              i == 0 ? "fsdp.wrap=block; train.frozen=embed_tokens"
                                     : "fsdp.wrap=block"))
            program_text_check_order(&text, 0, i == 0 ? frozen : trained);
        played_release(&played);
    }
}

/* Nothing stays of a block that backward does not reach; a frozen one above it keeps less than a
   trained one, whose products need their inputs. Model FLOP a token: 6 a parameter of blocks, norm
   and head, and of the embedding nothing; 4 where frozen, 2 where not reached; attention, 12 · 16 ·
   32 of a block, a third where not reached. */
static void test_model(void)
{
    static const struct {
        const char *frozen;
        double flop_per_token;
    } rows[] = {
        {"[]", 6.0 * (2 * BLOCK + TABLE + NORM) + 2 * 12 * 16 * 32},
        {"[layers.1]", 6.0 * (BLOCK + TABLE + NORM) + 4 * BLOCK + 2 * 12 * 16 * 32},
        {"[embed_tokens, layers.0]",
         6.0 * (BLOCK + TABLE + NORM) + 2 * BLOCK + 12 * 16 * 32 + 4 * 16 * 32},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[128];
        snprintf(overrides, sizeof(overrides), "train.frozen=%s", rows[i].frozen);
        check_context("%s", overrides);
        if (played_build(&played, TWO_BLOCKS, overrides)) {
            const struct model *model = played.experiment.model;
            CHECK_NEAR(model->flop_per_token, rows[i].flop_per_token, 1e-12);
            const int64_t first = model->kinds[model->modules[1].kind_idx].saved_bytes;
            const int64_t second = model->kinds[model->modules[2].kind_idx].saved_bytes;
            CHECK_TRUE(i == 0 ? first == second : i == 1 ? second < first : first == 0);
        }
        played_release(&played);
    }
    check_context(NULL);
}

static void test_refused(void)
{
    static const struct refusal rows[] = {
        {"train.frozen=layers.7", "model 'two-blocks' has no module 'layers.7'"},
        {"train.frozen=[embed_tokens, layers.*, norm, lm_head]", "every parameter is frozen"},
        {"model.tie_word_embeddings=true; train.frozen=lm_head",
         "embedding and head share weights, so they are frozen together"},
        {"fsdp={api: fsdp1, wrap: block}; train.frozen=embed_tokens",
         "fsdp1 cannot flatten frozen and trained parameters together: 'norm'"},
        {"fsdp={api: ddp}; train.frozen=norm", "'frozen' cannot be simulated yet with this api"},
        {"train.lora={rank: 8, target_modules: all-linear}; train.frozen=norm",
         "'frozen' and 'lora' together mean nothing"},
        {"model={family: abstract, units: [{parameters: 5, forward: 1 s, backward: 1 s}]}; "
         "train.frozen=units.0",
         "of an abstract unit's backward it is not known"},
    };
    check_refusals(rows, sizeof(rows) / sizeof(rows[0]));
}

const struct check_case frozen_cases[] = {{"88: what is gathered, reduced, kept", test_counts},
                                          {"33: where the graph begins", test_begin_of_graph},
                                          {"activations and FLOP", test_model},
                                          {"refused", test_refused},
                                          {0}};
