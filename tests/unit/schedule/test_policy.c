/* tests/unit/schedule/test_policy.c: what cannot be played yet says so, with its place. */
#include "schedule_tests.h"

static const struct {
    const char *overrides;
    const char *text;
} unbuilt[] = {
    {"fsdp={api: zero2}; zero.offload_optimizer=nvme",
     "'offload_optimizer' cannot be simulated yet"},
    {"fsdp={api: zero3}; zero.offload_param=nvme", "'offload_param' cannot be simulated yet"},
    {"fsdp={api: zero3}; zero.zero_quantized_weights=true",
     "'zero_quantized_weights' cannot be simulated yet"},
    {"fsdp={api: zero3}; zero.zero_quantized_gradients=true",
     "'zero_quantized_gradients' cannot be simulated yet"},
    {"mesh.pp=2", "'pp: 2' cannot be simulated yet"},
    {"mesh.ep=2", "'ep: 2' cannot be simulated yet"},
    {"mesh.cp=2", "'cp: 2' cannot be simulated yet"},
};

/* Wrong whatever is built. */
static const struct {
    const char *overrides;
    const char *text;
} meaningless[] = {
    {"fsdp.backward_prefetch=pre", "'backward_prefetch: pre' means nothing for 'api: fsdp2'"},
    {"train.norms.fused=true; train.fused_kernels=true",
     "'fused' means nothing for norms that are hand-fused already"},
    {"train.norms.fused=true; model=gpt2", "'fused' means nothing for a model without RMSNorm"},
    {"train.norms.fused=true; model={family: abstract, units: [{parameters: 5, forward: 1 s, "
     "backward: 1 s}]}",
     "'fused' means nothing for a model without RMSNorm"},
    {"train.norms.sm_margin=4", "'sm_margin' means nothing for norms that need not all SMs"},
    {"fsdp.reshard_after_forward=3", "parameters cannot be resharded to 3 of 2 GPUs"},
    {"cluster=ideal-400; gpus_per_node=6; nodes=2; fsdp.reshard_after_forward=4",
     "groups of 4 GPUs do not tile hosts of 6"},
    {"fsdp={api: fsdp1, backward_prefetch: 2}", "fsdp1 has no list of units to prefetch"},
    {"fsdp={api: ddp, backward_prefetch: 2}", "'backward_prefetch' means nothing for 'api: ddp'"},
    {"fsdp={api: fsdp1, unshard_in_backward: false}",
     "'unshard_in_backward' means nothing for 'api: fsdp1'"},
    {"fsdp={api: fsdp1, float8_all_gather: true}; train.float8=tensorwise; cluster=dgx-h100; "
     "gpus_per_node=2",
     "'float8_all_gather' means nothing for 'api: fsdp1'"},
    {"fsdp={api: ddp, requires_gradient_sync: last}",
     "'requires_gradient_sync' means nothing for 'api: ddp'"},
    {"fsdp={api: fsdp1, reshard_after_backward: last}",
     "'reshard_after_backward' means nothing for 'api: fsdp1'"},
    {"fsdp={api: fsdp1, is_last_backward: last}",
     "'is_last_backward' means nothing for 'api: fsdp1'"},
    {"fsdp={wrap: block, unshard_in_backward: false}",
     "with this 'wrap' the embedding is in the root"},
    {"train.precision.master_dtype=fp32", "'api: fsdp2' keeps no separate master copy"},
    {"ddp.bucket_cap_mb=25", "'ddp' means nothing for 'api: fsdp2'"},
    {"zero.overlap_comm=true", "'zero' means nothing for 'api: fsdp2'"},
    {"fsdp={api: ddp, wrap: block}", "'wrap' means nothing for 'api: ddp'"},
    {"fsdp={api: ddp, cpu_offload: true}", "'cpu_offload' means nothing for 'api: ddp'"},
    {"fsdp={api: fsdp1, cpu_offload: {pin_memory: false}}",
     "'pin_memory' means nothing for 'api: fsdp1'"},
    {"fsdp={api: fsdp1, cpu_offload: true, sharding_strategy: no_shard}",
     "fsdp1 cannot offload parameters that it does not shard"},
    {"fsdp={api: fsdp1, cpu_offload: true}; train.grad_accum=2",
     "fsdp1 cannot add up reduced gradients that are on the host"},
    {"fsdp={cpu_offload: true}; train.optimizer.name=adamw_8bit",
     "'adamw_8bit' does not run on the host"},
    {"train.optimizer.omp_num_threads=4",
     "'omp_num_threads' means nothing for an optimizer on the GPU"},
    {"fsdp={api: zero3}; zero.offload_param=cpu; train.optimizer.omp_num_threads=4",
     "'omp_num_threads' means nothing for an optimizer on the GPU"},
    {"fsdp={api: zero2}; zero.offload_param=cpu", "'offload_param' means nothing for 'api: zero2'"},
    {"fsdp={cpu_offload: true}; cluster=ideal-400",
     "states are on the host, and cluster 'ideal-400' lacks 'host.copy_link'"},
    {"fsdp={api: zero3}; zero.offload_param=cpu; cluster=ideal-400",
     "cluster 'ideal-400' lacks 'host.copy_link'"},
    {"fsdp={api: ddp, reshard_after_forward: true}",
     "'reshard_after_forward' means nothing for 'api: ddp'"},
    {"fsdp={api: ddp}; train.precision.storage_dtype=bf16; train.precision.reduce_dtype=fp32",
     "'api: ddp' reduces gradients as they are stored, in bf16"},
    {"fsdp={api: ddp}; train.precision.param_dtype=fp32; train.precision.storage_dtype=bf16",
     "'api: ddp' cannot compute in fp32 with parameters of bf16"},
    {"fsdp={api: zero1, forward_prefetch: 1}", "'forward_prefetch' means nothing for 'api: zero1'"},
    {"fsdp={api: zero3}; zero.allgather_bucket_size=5",
     "'allgather_bucket_size' means nothing for 'api: zero3'"},
    {"fsdp={api: zero2}; zero.prefetch_bucket_size=5",
     "'prefetch_bucket_size' means nothing for 'api: zero2'"},
    {"fsdp={api: zero2}; train.precision.storage_dtype=fp32",
     "'api: zero2' keeps parameters in param_dtype, not in fp32"},
    {"fsdp={api: zero2}; mesh.dp_replicate=2", "'dp_replicate: 2' cannot be simulated yet"},
    {"cluster=ideal-400; nodes=2; fsdp={api: fsdp1}; mesh.dp_replicate=2",
     "this sharding strategy of fsdp1 has no replicas"},
    {"cluster=ideal-400; fsdp={api: fsdp1, sharding_strategy: no_shard}; mesh.dp_shard=8",
     "'no_shard' cannot share states among 8 GPUs"},
    {"fsdp={api: fsdp1, defer_all_reduce: true}",
     "'defer_all_reduce' means nothing for 'api: fsdp1'"},
    {"fsdp={defer_all_reduce: true}", "'defer_all_reduce' means nothing without replicas"},
    {"fsdp={all_reduce_buffers: 2}", "'all_reduce_buffers' means nothing without replicas"},
    {"fsdp={api: ddp}; train.precision.master_dtype=fp32",
     "parameters of fp32 need no master copy"},
};

static void test_refused(void)
{
    for (size_t i = 0; i < sizeof(unbuilt) / sizeof(unbuilt[0]); i++)
        check_refused(unbuilt[i].overrides, unbuilt[i].text);
    for (size_t i = 0; i < sizeof(meaningless) / sizeof(meaningless[0]); i++)
        check_refused(meaningless[i].overrides, meaningless[i].text);
}

/* `check` accepts what is right and only not built yet: a note, no error. */
static void test_noted(void)
{
    for (size_t i = 0; i < sizeof(unbuilt) / sizeof(unbuilt[0]); i++) {
        struct played played;
        check_context("%s", unbuilt[i].overrides);
        if (CHECK_INT(played_load(&played, TWO_BLOCKS, unbuilt[i].overrides), STATUS_OK)) {
            experiment_note_unbuilt(&played.experiment);
            CHECK_INT(played.diag.error_count, 0);
            CHECK_CONTAINS(played_messages(&played), unbuilt[i].text);
            CHECK_CONTAINS(played_messages(&played), "note: ");
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* All at once, not the first alone. */
static void test_all_told(void)
{
    struct played played;
    CHECK_INT(
        played_try(
            &played, TWO_BLOCKS,
            "fsdp.reshard_after_forward=3; mesh.pp=2; fsdp.wrap.every=2; fsdp.wrap.policy=size"),
        STATUS_INPUT);
    CHECK_INT(played.diag.error_count, 3);
    played_release(&played);
}

static void test_names(void)
{
    CHECK_TEXT(policy_api_name(API_FSDP2), "fsdp2");
    CHECK_TEXT(policy_api_name(API_FSDP1), "fsdp1");
    CHECK_TEXT(policy_api_name(API_DDP), "ddp");
    CHECK_TEXT(policy_api_name(API_ZERO2), "zero2");
}

const struct check_case policy_cases[] = {{"an error with its place", test_refused},
                                          {"a note for check", test_noted},
                                          {"all mistakes at once", test_all_told},
                                          {"names", test_names},
                                          {0}};
