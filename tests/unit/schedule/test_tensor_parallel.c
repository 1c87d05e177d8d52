/*
 * tests/unit/schedule/test_tensor_parallel.c: bytes and time of tensor parallelism's exchanges.
 *
 * Two blocks, h = 16, V = 96, T = 32 tokens in bf16 on two GPUs at 1 GB/s: a tensor of all tokens
 * is S = 1,024 B, on the wire S/2 for a gather or scatter, S for an all-reduce.
 */
#include <string.h>

#include "schedule_tests.h"

#define IDEAL                                                                                      \
    "simulate.ideal=[host, copies, contention, optimizer, latency]; train.max_grad_norm=0; "       \
    "train.precision={param_dtype: bf16, reduce_dtype: bf16, storage_dtype: bf16}; mesh.tp=2; "
#define MEGATRON "train.tensor_parallel={style: megatron, sequence_parallel: "

enum { WHOLE = 1024, HALF = 512 };

/*
 * dtensor: a block gathers and scatters twice each way, 8 S/2; embedding and head 2 S/2 each; five
 * norms sum 32 B; the loss sums 4 B a token three times: 20 · 512 + 5 · 32 + 3 · 128 = 10,784.
 * Full logits: 32 · 96 · 2 / 2 = 3,072 instead of the three sums. Recomputed up to the last
 * product: 3 S/2 more a block. megatron: forward 2 S a block, backward S for each of q, k, v, gate,
 * up; embedding and head S each: 16 · 1,024 + 384; with sequence parallelism 6 S/2 a block as
 * before, and two S/2 for each of the five; embedding 2, head 3: 37 · 512 + 384.
 */
static void test_volume(void)
{
    static const struct {
        const char *overrides;
        double bytes;
        bool is_blocking;
    } rows[] = {
        {IDEAL, 10784, true},
        {IDEAL "train.tensor_parallel.loss_parallel=false", 10784 - 384 + 3072, true},
        {IDEAL "train.activation_checkpointing=full", 10784 + 2 * 3 * HALF, true},
        {IDEAL MEGATRON "false}", 16 * WHOLE + 384, false},
        {IDEAL MEGATRON "true}", 37 * HALF + 384, false},
        {IDEAL "train.tensor_parallel.async=true", 10784, false},
        {IDEAL "train.grad_accum=3", 3 * 10784, true},
        {IDEAL "fsdp={api: ddp}", 10784, true},
        {IDEAL "fsdp={api: fsdp1, wrap: block}", 10784, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_play(&played, TWO_BLOCKS, rows[i].overrides)) {
            const struct outcome *outcome = &played.outcome;
            CHECK_NEAR(outcome->comm_bytes_per_gpu, rows[i].bytes, 1e-12);
            /* 1 GB/s, to whole picoseconds; those beside a product hide some of it. */
            if (rows[i].is_blocking)
                CHECK_NEAR(outcome->exposed_comm_s, rows[i].bytes * 1e-9, 1e-5);
            else
                CHECK_NEAR(outcome->comm_s, rows[i].bytes * 1e-9, 1e-5);
            CHECK_TRUE(outcome->exposed_comm_s <= outcome->comm_s);
            program_check_balance(played.experiment.program);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* What FSDP moves is the rank's part of the network, over the ranks with the same part: on 2 x 2
   GPUs a quarter of the two-way volume. */
static void test_with_shards(void)
{
    struct played played;
    if (played_play(&played, TWO_BLOCKS,
                    IDEAL "cluster=ideal-8x400; gpus_per_node=4; mesh.dp_shard=2")) {
        const struct program *program = played.experiment.program;
        const struct model *model = played.experiment.model;
        int64_t gathered = 0;
        for (int32_t i = 0; i < program->units.count; i++)
            gathered += program->units.items[i].all_gather_bytes;
        CHECK_INT(gathered, 2 * model->rank_parameters);
        /* A block: q and o 16 x 16, k and v 16 x 8, three 16 x 40, halved; two norms of 16: 1,376.
           Two of them, half of two 96 x 16, a norm. */
        CHECK_INT(model->rank_parameters, 2 * 1376 + 2 * 768 + 16);
        CHECK_INT(program->communicators.items[0].group.ranks, 2);
        CHECK_INT(program->communicators.items[0].group.stride, 2);
        CHECK_TEXT(program->communicators.items[1].name, "tp");
        CHECK_INT(program->communicators.items[1].group.ranks, 2);
        CHECK_INT(program->communicators.items[1].group.stride, 1);
        CHECK_INT(played.outcome.tokens_per_step, 2 * 32);
    }
    played_release(&played);
}

/* An exchange beside a product is on a stream of its own, and is waited for behind it. */
static void test_order(void)
{
    struct played played;
    if (played_build(&played, TWO_BLOCKS, IDEAL MEGATRON "false}; fsdp={api: ddp}")) {
        const struct program *program = played.experiment.program;
        int32_t beside = 0, waited = 0;
        for (int32_t i = 0; i + 5 < program->step.count; i++) {
            const struct op *op = &program->step.items[i];
            if (op->kind != OP_COLLECTIVE)
                continue;
            if (op->stream == 0) {
                waited++;
                continue;
            }
            CHECK_INT(op[-2].kind, OP_RECORD);
            CHECK_INT(op[-1].kind, OP_WAIT);
            CHECK_INT(op[1].kind, OP_RECORD);
            CHECK_INT(op[2].kind, OP_SEGMENT);
            CHECK_INT(op[3].kind, OP_WAIT);
            CHECK_INT(op[3].index, op[1].index);
            const struct segment *segment = &program->segments.items[op[2].index];
            CHECK_INT(segment->kernel_count, 1);
            CHECK_CONTAINS(segment->kernels[0].name, ".weight_grad");
            beside++;
        }
        /* Five layers a block and the head; two sums a block, the embedding's, three of the loss.
         */
        CHECK_INT(beside, 2 * 5 + 1);
        CHECK_INT(waited, 2 * 2 + 1 + 3);
    }
    played_release(&played);
}

static void test_refused(void)
{
    static const struct refusal rows[] = {
        {"train.tensor_parallel.async=true", "'async' means nothing without tensor parallelism"},
        {"train.tensor_parallel.style=megatron",
         "'style' means nothing without tensor parallelism"},
        {"mesh.tp=2; train.tensor_parallel={async: true, style: megatron}", "'async' cuts"},
        {"mesh.tp=2; train.tensor_parallel={async: true, sequence_parallel: false}",
         "'async' cuts"},
        {"mesh.tp=2; train.activation_checkpointing=per_child",
         "'per_child' cannot be simulated yet with tensor parallelism"},
        {"mesh.tp=2; model.num_key_value_heads=1", "2 ranks cannot share 1 key and value heads"},
        {"mesh.tp=2; model.intermediate_size=41", "2 ranks cannot share 41 columns of the MLP"},
        {"mesh.tp=2; train.seq_len=31", "2 ranks cannot share 31 tokens of a sequence"},
        {"mesh.tp=2; train.loss=linear", "the linear loss"},
        {"mesh.tp=2; train.lora={rank: 4, target_modules: [q_proj], quantization: nf4}",
         "weights in 4 bits cannot be cut"},
    };
    check_refusals(rows, sizeof(rows) / sizeof(rows[0]));
}

const struct check_case schedule_tensor_parallel_cases[] = {{"bytes and time", test_volume},
                                                            {"beside shards", test_with_shards},
                                                            {"order", test_order},
                                                            {"refused", test_refused},
                                                            {0}};
