/*
 * tests/property/run/test_policies_offload.c: states on the host, on every kind of model and size,
 * beside the same run without offload.
 *
 * The wire carries the same, less FSDP's all-reduce of the norm, which is gloo's then; the GPU
 * keeps nothing of what is offloaded, and holds no more at its peak than before. With FSDP a host
 * keeps of each rank: trained parameters and gradients as stored, 8 B of moments for each, frozen
 * ones in param_dtype, over s GPUs.
 */
#include "program_balance.h"
#include "property_tests.h"

#define LLAMA "model.hidden_size=96; model.intermediate_size=144; model.vocab_size=96; "
#define SLOW_LINK "; cluster.host.copy_link=pcie4; cluster.host.copy_link.bandwidth=1 GB/s"

enum {
    DENSE = 2 * 96 * 96 + 2 * 48 * 96 + 3 * 96 * 144 + 2 * 96,
    OUTSIDE = 2 * 96 * 96 + 96,
    ADAPTERS = 48 * 96 + 96 * 48 + 48 * 96 + 48 * 48,
};

static const struct policy {
    const char *plain, *offload;
    bool is_fsdp, keeps_params;
} policies[] = {
    {"fsdp={api: fsdp2}", "fsdp={api: fsdp2, cpu_offload: true}", true, false},
    {"fsdp={api: fsdp2, forward_prefetch: 2, wrap: torchtitan}",
     "fsdp={api: fsdp2, forward_prefetch: 2, wrap: torchtitan, cpu_offload: {pin_memory: false}}",
     true, false},
    {"fsdp={api: fsdp2, requires_gradient_sync: last}",
     "fsdp={api: fsdp2, requires_gradient_sync: last, cpu_offload: true}", true, false},
    {"fsdp={api: fsdp1, requires_gradient_sync: last}",
     "fsdp={api: fsdp1, requires_gradient_sync: last, cpu_offload: true}", true, false},
    {"fsdp={api: fsdp1, sharding_strategy: shard_grad_op, requires_gradient_sync: last}",
     "fsdp={api: fsdp1, sharding_strategy: shard_grad_op, requires_gradient_sync: last, "
     "cpu_offload: true}",
     true, false},
    {"fsdp={api: zero1}", "fsdp={api: zero1}; zero={offload_optimizer: cpu}", false, true},
    {"fsdp={api: zero2}; zero={overlap_comm: true}",
     "fsdp={api: zero2}; zero={overlap_comm: true, offload_optimizer: cpu}", false, true},
    {"fsdp={api: zero3}", "fsdp={api: zero3}; zero={offload_optimizer: cpu}", false, true},
    {"fsdp={api: zero3}", "fsdp={api: zero3}; zero={offload_optimizer: cpu, offload_param: cpu}",
     false, false},
};

static const struct set {
    const char *overrides;
    double trained, frozen;
} models[] = {
    {LLAMA, 2.0 * DENSE + OUTSIDE, 0},
    {LLAMA "train.activation_checkpointing=full; train.compile=true", 2.0 * DENSE + OUTSIDE, 0},
    {"model={family: abstract, units: [{repeat: 3, parameters: 4800, forward: 1 ms, backward: 2 "
     "ms}]}",
     14400, 0},
    {LLAMA "train.lora={rank: 48, target_modules: [q_proj, v_proj]}", 2.0 * ADAPTERS,
     2.0 * DENSE + OUTSIDE},
};

static const struct size {
    const char *overrides;
    int gpus, per_host;
} sizes[] = {
    {"cluster=ideal-64-400; nodes=1; gpus_per_node=2" SLOW_LINK, 2, 2},
    {"cluster=dgx-h100; nodes=1", 8, 8},
    {"cluster=ideal-64-400; nodes=3" SLOW_LINK, 24, 8},
};

static const struct precision {
    const char *fsdp, *zero;
    double param, storage;
    int microbatches;
} precisions[] = {
    {"{param_dtype: bf16, reduce_dtype: fp32, storage_dtype: fp32}", "{param_dtype: bf16}", 2, 4,
     2},
    {"{param_dtype: bf16, reduce_dtype: bf16, storage_dtype: bf16}", "{param_dtype: bf16}", 2, 2,
     1},
    {"{param_dtype: fp32, reduce_dtype: fp32, storage_dtype: fp32}", "{param_dtype: fp32}", 4, 4,
     3},
};

struct combination {
    const struct policy *policy;
    const struct set *model;
    const struct size *size;
    const struct precision *precision;
};

static bool play(const struct combination *c, const char *policy, struct played *played)
{
    char overrides[1024];
    snprintf(overrides, sizeof(overrides),
             "train.seq_len=16; train.grad_accum=%d; %s; %s; %s; "
             "train.precision=%s",
             c->precision->microbatches, c->size->overrides, policy, c->model->overrides,
             c->policy->is_fsdp ? c->precision->fsdp : c->precision->zero);
    check_context("%s", overrides);
    return played_play(played, TWO_BLOCKS, overrides);
}

static void check_states(const struct combination *c, const struct played *played)
{
    const struct program *program = played->experiment.program;
    const double kept = c->model->trained * c->precision->storage;
    const double host = 2 * kept + 8 * c->model->trained + c->model->frozen * c->precision->param;
    CHECK_INT(program_kept_bytes(program, MEMORY_OPTIMIZER), 0);
    if (!c->policy->keeps_params)
        CHECK_INT(program_kept_bytes(program, MEMORY_PARAMETERS), 0);
    if (c->policy->is_fsdp)
        CHECK_NEAR((double)played->outcome.peak_host_bytes,
                   host / c->size->gpus * c->size->per_host, 1e-12);
    else
        CHECK_TRUE(played->outcome.peak_host_bytes > 0);
}

static void check_combination(const struct combination *c)
{
    struct played plain, offload;
    if (play(c, c->policy->plain, &plain) && play(c, c->policy->offload, &offload)) {
        const double norm = c->policy->is_fsdp ? 8.0 * (c->size->gpus - 1) / c->size->gpus : 0;
        check_identities(&offload);
        check_states(c, &offload);
        program_check_balance(offload.experiment.program);
        CHECK_NEAR(offload.outcome.comm_bytes_per_gpu + norm, plain.outcome.comm_bytes_per_gpu,
                   1e-12);
    }
    check_context(NULL);
    played_release(&plain);
    played_release(&offload);
}

static void test_matrix(void)
{
    int32_t count = 0;
    for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++)
        for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++)
            for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
                for (size_t d = 0; d < sizeof(precisions) / sizeof(precisions[0]); d++) {
                    const struct combination c = {&policies[p], &models[m], &sizes[s],
                                                  &precisions[d]};
                    if (!c.policy->is_fsdp && c.model->frozen > 0)
                        continue; /* adapters are for fsdp so far */
                    check_combination(&c);
                    count++;
                }
    CHECK_INT(count, 5 * 4 * 3 * 3 + 4 * 3 * 3 * 3);
}

const struct check_case policies_offload_cases[] = {
    {"policy x model x size x precision", test_matrix}, {0}};
