/*
 * tests/property/run/test_policies_fsdp.c: fully_shard and FullyShardedDataParallel with their
 * options, on every kind of model and number of GPUs.
 *
 * Closed forms, from the definitions of the policies: P_b parameters in blocks and P_r in the root,
 * of which T_b and T_r are trained, s GPUs a shard group, r replicas, B_p and B_r bytes of an
 * element gathered and reduced, m microbatches:
 *
 *     (g_b P_b + g_r P_r) B_p (s - 1)/s             gathers of blocks and root, times a step
 *     + k (T_b + T_r) B_r (s - 1)/s                 reduce-scatters, k times a step
 *     + a 2 (T_b + T_r)/s B_r (r - 1)/r             all-reduces over replicas, a times
 *     + 2 · 4 (s - 1)/s                             the norm of the gradient
 *
 * and parameters, gradients and moments of a GPU are their bytes divided by s. All sizes of the
 * models are multiples of 48, so that 1, 2, 8, 16 and 24 GPUs divide them without padding.
 */
#include <stdlib.h>
#include <string.h>

#include "program_balance.h"
#include "property_tests.h"

/* How often a step does it: `once`, and `each` for every microbatch. */
struct times {
    int once, each;
};

static const struct policy {
    const char *overrides;
    struct times block, root, reduce, all_reduce;
    bool is_fsdp1, splits_root, needs_replicas, is_whole; /* whole: nothing is sharded */
} policies[] = {
    {"fsdp={wrap: block}", {0, 2}, {0, 1}, {0, 1}, {0, 0}, false, false, false, false},
    {"fsdp={wrap: torchtitan, reduce_scatter_buffers: 2}",
     {0, 2},
     {0, 1},
     {0, 1},
     {0, 0},
     false,
     true,
     false,
     false},
    {"fsdp={wrap: block, reshard_after_forward: false, separate_reduce_scatter_communicator: true}",
     {0, 1},
     {0, 1},
     {0, 1},
     {0, 0},
     false,
     false,
     false,
     false},
    {"fsdp={wrap: block, forward_prefetch: 2, reduce_scatter_buffers: 3}",
     {0, 2},
     {0, 1},
     {0, 1},
     {0, 0},
     false,
     false,
     false,
     false},
    {"fsdp={wrap: block, requires_gradient_sync: last}",
     {0, 2},
     {0, 1},
     {1, 0},
     {0, 0},
     false,
     false,
     false,
     false},
    {"fsdp={wrap: block, requires_gradient_sync: last, reshard_after_backward: last, "
     "reshard_after_forward: false}",
     {1, 0},
     {1, 0},
     {1, 0},
     {0, 0},
     false,
     false,
     false,
     false},
    {"fsdp={wrap: block}; train.cuda_device_max_connections=1; train.host_syncs=1",
     {0, 2},
     {0, 1},
     {0, 1},
     {0, 0},
     false,
     false,
     false,
     false},
    {"fsdp={api: fsdp1}", {0, 2}, {0, 1}, {0, 1}, {0, 0}, true, false, false, false},
    {"fsdp={api: fsdp1, backward_prefetch: post, limit_all_gathers: false}",
     {0, 2},
     {0, 1},
     {0, 1},
     {0, 0},
     true,
     false,
     false,
     false},
    {"fsdp={api: fsdp1, backward_prefetch: none, forward_prefetch: true}",
     {0, 2},
     {0, 1},
     {0, 1},
     {0, 0},
     true,
     false,
     false,
     false},
    {"fsdp={api: fsdp1, sharding_strategy: shard_grad_op}",
     {0, 1},
     {0, 1},
     {0, 1},
     {0, 0},
     true,
     false,
     false,
     false},
    {"fsdp={api: fsdp1, requires_gradient_sync: last}",
     {0, 2},
     {0, 1},
     {1, 0},
     {0, 0},
     true,
     false,
     false,
     false},
    {"fsdp={api: fsdp1, sharding_strategy: no_shard}",
     {0, 0},
     {0, 0},
     {0, 0},
     {0, 1},
     true,
     false,
     false,
     true},
    {"fsdp={wrap: block}", {0, 2}, {0, 1}, {0, 1}, {0, 1}, false, false, true, false},
    {"fsdp={wrap: block, defer_all_reduce: true, all_reduce_buffers: 1}",
     {0, 2},
     {0, 1},
     {0, 1},
     {1, 0},
     false,
     false,
     true,
     false},
    {"fsdp={api: fsdp1, sharding_strategy: hybrid_shard}",
     {0, 2},
     {0, 1},
     {0, 1},
     {0, 1},
     true,
     false,
     true,
     false},
    {"fsdp={api: fsdp1, sharding_strategy: hybrid_shard_zero2}",
     {0, 1},
     {0, 1},
     {0, 1},
     {0, 1},
     true,
     false,
     true,
     false},
};

/* A dense block: q and o 96 · 96, k and v 48 · 96, three of 96 · 144, two norms. */
enum {
    ATTENTION = 2 * 96 * 96 + 2 * 48 * 96,
    DENSE = ATTENTION + 3 * 96 * 144 + 2 * 96,
    EXPERTS = ATTENTION + 48 * 96 + 48 * 3 * 96 * 144 + 2 * 96,
    ADAPTERS = 48 * 96 + 96 * 48 + 48 * 96 + 48 * 48,
    OUTSIDE = 2 * 96 * 96 + 96,
};

#define LLAMA "model.hidden_size=96; model.intermediate_size=144; model.vocab_size=96; "

static const struct set {
    const char *overrides;
    double block, root, trained_block, trained_root; /* parameters, all blocks */
    bool is_tied;
} models[] = {
    {LLAMA, 2.0 * DENSE, OUTSIDE, 2.0 * DENSE, OUTSIDE, false},
    {LLAMA "model.tie_word_embeddings=true; train.activation_checkpointing=full", 2.0 * DENSE,
     OUTSIDE - 96 * 96, 2.0 * DENSE, OUTSIDE - 96 * 96, true},
    {LLAMA "model.num_hidden_layers=5; train.compile=true", 5.0 * DENSE, OUTSIDE, 5.0 * DENSE,
     OUTSIDE, false},
    {"model={model_type: mixtral, hidden_size: 96, intermediate_size: 144, num_hidden_layers: 2, "
     "num_attention_heads: 4, num_key_value_heads: 2, vocab_size: 96, num_local_experts: 48}",
     2.0 * EXPERTS, OUTSIDE, 2.0 * EXPERTS, OUTSIDE, false},
    {"model={family: abstract, units: [{repeat: 3, parameters: 4800, forward: 1 ms, backward: 2 "
     "ms}, {parameters: 9600, forward: 1 ms, backward: 3 ms}]}",
     24000, 0, 24000, 0, false},
    {LLAMA "train.lora={rank: 48, target_modules: [q_proj, v_proj]}", 2.0 * (DENSE + ADAPTERS),
     OUTSIDE, 2.0 * ADAPTERS, 0, false},
};

static const struct size {
    const char *overrides, *replicas;
    int gpus, hosts, shards; /* with replicas */
} sizes[] = {
    {"cluster=ideal-64-400; nodes=1; gpus_per_node=1", NULL, 1, 1, 1},
    {"cluster=ideal-64-400; nodes=1; gpus_per_node=2", NULL, 2, 1, 2},
    {"cluster=ideal-64-400; nodes=1", "mesh={dp_replicate: 4, dp_shard: 2}", 8, 1, 2},
    {"cluster=dgx-h100; nodes=2", "mesh={dp_replicate: 2, dp_shard: 8}", 16, 2, 8},
    {"cluster=ideal-64-400; nodes=3", "mesh={dp_replicate: 3, dp_shard: 8}", 24, 3, 8},
};

static const struct precision {
    const char *overrides;
    double param, reduce, storage;
    int microbatches;
} precisions[] = {
    {"train.precision={param_dtype: bf16, reduce_dtype: fp32, storage_dtype: fp32}", 2, 4, 4, 2},
    {"train.precision={param_dtype: bf16, reduce_dtype: bf16, storage_dtype: bf16}", 2, 2, 2, 3},
    {"train.precision={param_dtype: fp32, reduce_dtype: fp32, storage_dtype: fp32}", 4, 4, 4, 1},
};

struct combination {
    const struct policy *policy;
    const struct set *model;
    const struct size *size;
    const struct precision *precision;
};

static double times_a_step(const struct combination *c, struct times times)
{
    return times.once + times.each * (double)c->precision->microbatches;
}

/* Flat parameters and DDP-like groups of one GPU have no shards. */
static double shards(const struct combination *c)
{
    if (c->policy->is_whole)
        return 1;
    return c->policy->needs_replicas ? c->size->shards : c->size->gpus;
}

static void check_wire(const struct combination *c, const struct played *played)
{
    const double s = shards(c), r = c->size->gpus / s;
    const double param = c->precision->param, reduce = c->precision->reduce;
    /* torchtitan: the embedding is a unit like a block. */
    const double as_block = c->policy->splits_root ? 96.0 * 96 : 0;
    const double trained = c->model->trained_block + c->model->trained_root;
    double bytes = (times_a_step(c, c->policy->block) * (c->model->block + as_block) +
                    times_a_step(c, c->policy->root) * (c->model->root - as_block)) *
                   param * (s - 1) / s;
    bytes += times_a_step(c, c->policy->reduce) * trained * reduce * (s - 1) / s;
    bytes += times_a_step(c, c->policy->all_reduce) * 2 * trained / s * reduce * (r - 1) / r;
    bytes += 2 * 4 * (s - 1) / s;
    CHECK_NEAR(played->outcome.comm_bytes_per_gpu + 1, bytes + 1, 1e-12);
}

/* Frozen parameters are kept in param_dtype. */
static void check_states(const struct combination *c, const struct played *played)
{
    const struct program *program = played->experiment.program;
    const double s = shards(c), trained = c->model->trained_block + c->model->trained_root;
    const double frozen = c->model->block + c->model->root - trained;
    const double state[] = {
        (trained * c->precision->storage + frozen * c->precision->param) / s,
        trained * c->precision->storage / s,
        8 * trained / s,
    };
    CHECK_NEAR((double)program_kept_bytes(program, MEMORY_PARAMETERS), state[0], 1e-12);
    CHECK_NEAR((double)program_kept_bytes(program, MEMORY_GRADIENTS), state[1], 1e-12);
    CHECK_NEAR((double)program_kept_bytes(program, MEMORY_OPTIMIZER), state[2], 1e-12);
}

/* What has no closed form of its own here, and what is refused. */
static bool is_in(const struct combination *c)
{
    if (c->policy->needs_replicas && c->size->replicas == NULL)
        return false;
    /* One unit of embedding, norm and head: neither root nor block. */
    if (c->policy->splits_root && (c->model->is_tied || c->model->root <= 0))
        return false;
    return true;
}

static void write_overrides(const struct combination *c, char *text, size_t size)
{
    snprintf(text, size, "train.seq_len=16; train.grad_accum=%d; %s; %s; %s; %s; %s",
             c->precision->microbatches, c->size->overrides,
             c->policy->needs_replicas ? c->size->replicas : "mesh={}", c->policy->overrides,
             c->precision->overrides, c->model->overrides);
}

static void check_combination(const struct combination *c, bool is_repeated)
{
    char overrides[1024];
    struct played played, again;
    write_overrides(c, overrides, sizeof(overrides));
    if (played_play(&played, TWO_BLOCKS, overrides)) {
        check_context("%s", overrides);
        check_identities(&played);
        check_wire(c, &played);
        check_states(c, &played);
        program_check_balance(played.experiment.program);
        if (is_repeated && played_play(&again, TWO_BLOCKS, overrides)) {
            CHECK_U64(again.outcome.fingerprint, played.outcome.fingerprint);
            CHECK_INT(again.outcome.peak_reserved_bytes, played.outcome.peak_reserved_bytes);
            played_release(&again);
        }
        check_context(NULL);
    }
    played_release(&played);
}

/* Every second combination, of which every third is played twice; with FSDPSIM_SLOW (label slow)
   all of them, each twice. */
static void test_matrix(void)
{
    const bool is_slow = getenv("FSDPSIM_SLOW") != NULL;
    int64_t count = 0, turn = 0;
    for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++)
        for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++)
            for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
                for (size_t d = 0; d < sizeof(precisions) / sizeof(precisions[0]); d++) {
                    const struct combination c = {&policies[p], &models[m], &sizes[s],
                                                  &precisions[d]};
                    if (!is_in(&c) || (!is_slow && turn++ % 2 == 1))
                        continue;
                    check_combination(&c, is_slow || count % 3 == 0);
                    count++;
                }
    /* Thirteen policies on six models, five sizes, three precisions, four on three sizes;
       torchtitan on four models. */
    const int64_t all = 12 * 6 * 5 * 3 + 4 * 5 * 3 + 4 * 6 * 3 * 3;
    CHECK_INT(count, is_slow ? all : (all + 1) / 2);
}

const struct check_case policies_fsdp_cases[] = {{"policy x model x size x precision", test_matrix},
                                                 {0}};
