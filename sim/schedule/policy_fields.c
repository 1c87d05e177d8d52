/* schedule/policy_fields.c: the YAML tables `fsdp:`, `train.precision:`, `train.optimizer:`. */
#include "schedule/policy.h"

const struct choice api_choices[] = {
    {"fsdp2", API_FSDP2, "fully_shard: per-parameter sharding"},
    {"fsdp1", API_FSDP1, "FullyShardedDataParallel: flat parameters"},
    {"ddp", API_DDP, "replicated, all-reduce in buckets"},
    {"zero1", API_ZERO1, "DeepSpeed: optimizer states sharded"},
    {"zero2", API_ZERO2, "DeepSpeed: and gradients"},
    {"zero3", API_ZERO3, "DeepSpeed: and parameters"},
    {0}};

static const struct choice wrap_choices[] = {
    {"block", WRAP_BLOCK, "every block a unit; embedding, final norm and head stay in the root"},
    {"torchtitan", WRAP_TORCHTITAN,
     "tok_embeddings; every block; [norm, output] kept after forward; empty root"},
    {"child", WRAP_CHILD, "attention and MLP of every block apart, the block's norms the block's"},
    {"size", WRAP_SIZE,
     "bottom-up, whatever has min_num_params outside other units (size_based_auto_wrap_policy)"},
    {"modules", WRAP_MODULES, "the modules of the list 'modules'"},
    {0}};

static const struct field wrap_fields[] = {
    {.key = "policy",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct wrap_config, policy),
     .default_text = "block",
     .choices = wrap_choices,
     .help = "which modules form a unit"},
    {.key = "every",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct wrap_config, every),
     .default_text = "1",
     .min = 1,
     .max = 1 << 14,
     .help = "block: so many blocks in a row form one unit (fsdp2: a list of modules)"},
    {.key = "min_num_params",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct wrap_config, min_num_params),
     .default_text = "100000000",
     .min = 1,
     .max = 1e15,
     .help = "size: parameters from which on a module is a unit"},
    {.key = "modules",
     .kind = FIELD_TEXT_LIST,
     .offset = offsetof(struct wrap_config, modules),
     .is_line = true,
     .help =
         "modules: names as in layers.0.mlp, * for any word between dots; names joined by + are "
         "one unit (fsdp2): [layers.*.self_attn, layers.*, norm+lm_head]"},
    {0}};

static const struct field_table wrap_table = {.name = "wrap",
                                              .help = "a policy's word, or a map",
                                              .fields = wrap_fields,
                                              .struct_bytes = sizeof(struct wrap_config)};

static const struct choice reshard_choices[] = {
    {"true", 1, "free a unit after its forward, gather it again for backward"},
    {"false", 0, "keep units gathered from forward to backward"},
    {0}};

static const struct choice forward_prefetch_choices[] = {
    {"true", 1, "the next unit is gathered before this one computes"}, {"false", 0, NULL}, {0}};

static const struct choice all_reduce_buffer_choices[] = {
    {"all", 0, "until the end of backward (PyTorch before mid-2026)"}, {0}};

static const struct choice microbatch_choices[] = {
    {"every", MICROBATCH_EVERY, "every microbatch"},
    {"last", MICROBATCH_LAST, "the last microbatch of a step"},
    {0}};

static const struct choice sharding_choices[] = {
    {"full_shard", SHARDING_FULL, "free a unit after its forward, gather it again for backward"},
    {"shard_grad_op", SHARDING_GRAD_OP, "keep units gathered from forward to backward"},
    {"hybrid_shard", SHARDING_HYBRID, "full_shard in a host, all-reduce between hosts"},
    {"hybrid_shard_zero2", SHARDING_HYBRID_GRAD_OP, "shard_grad_op in a host, the same"},
    {"no_shard", SHARDING_NONE, "every GPU holds all; all-reduce of flat gradients"},
    {0}};

static const struct choice backward_prefetch_choices[] = {
    {"pre", PREFETCH_PRE, "gather the next unit before the gradients of this one"},
    {"post", PREFETCH_POST, "behind them, before their reduce-scatter"},
    {"none", PREFETCH_NONE, "when its turn has come"},
    {0}};

static const struct choice dtype_choices[] = {
    {"fp32", DTYPE_FP32, NULL}, {"bf16", DTYPE_BF16, NULL}, {"fp16", DTYPE_FP16, NULL}, {0}};

static const struct choice state_dtype_choices[] = {{"fp32", DTYPE_FP32, NULL},
                                                    {"bf16", DTYPE_BF16, NULL},
                                                    {"fp64", DTYPE_FP64, "8-byte moments"},
                                                    {0}};

static const struct choice master_choices[] = {
    {"none", MASTER_NONE, NULL}, {"fp32", DTYPE_FP32 + 1, NULL}, {0}};

static const struct choice optimizer_choices[] = {
    {"adamw", OPTIMIZER_ADAMW, NULL},
    {"adam", OPTIMIZER_ADAMW, "the same work"},
    {"sgd", OPTIMIZER_SGD, "with momentum"},
    {"adamw_8bit", OPTIMIZER_ADAMW_8BIT, "moments in a byte each (bitsandbytes)"},
    {0}};
static const struct choice optimizer_impl_choices[] = {
    {"fused", OPTIMIZER_FUSED, "one kernel"},
    {"foreach", OPTIMIZER_FOREACH, "multi-tensor passes; PyTorch's default on GPUs"},
    {"forloop", OPTIMIZER_FORLOOP, "tensor by tensor"},
    {0}};

static const struct field cpu_offload_fields[] = {
    {.key = "params",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct cpu_offload_config, params),
     .default_text = "true",
     .help = "shards, gradients and the optimizer are on the host (FSDP1: offload_params)"},
    {.key = "pin_memory",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct cpu_offload_config, pin_memory),
     .default_text = "true",
     .help = "fsdp2: shards in pinned memory, so that copies do not block the host"},
    {0}};

static const struct field_table cpu_offload_table = {
    .name = "cpu_offload",
    .help = "true, or a map: CPUOffloadPolicy (fsdp2), CPUOffload (fsdp1)",
    .fields = cpu_offload_fields,
    .struct_bytes = sizeof(struct cpu_offload_config)};

static const struct field fsdp_fields[] = {
    {.key = "api",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct fsdp_config, api),
     .default_text = "fsdp2",
     .choices = api_choices,
     .help = "sharding policy"},
    {.key = "wrap",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct fsdp_config, wrap),
     .default_text = "block",
     .table = &wrap_table,
     .scalar_key = "policy",
     .help = "which modules form a unit: block, torchtitan, child, size, or a map"},
    {.key = "reshard_after_forward",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct fsdp_config, reshard_after_forward),
     .default_text = "true",
     .min = 2,
     .max = 1 << 20,
     .choices = reshard_choices,
     .help = "free parameters after forward; n: keep 1/n of them, gathered again for backward from "
             "n neighbours alone (a divisor of dp_shard)"},
    {.key = "forward_prefetch",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct fsdp_config, forward_prefetch),
     .default_text = "0",
     .min = 0,
     .max = 1024,
     .choices = forward_prefetch_choices,
     .help = "units gathered ahead explicitly (0: as the host runs ahead); fsdp1: true or false"},
    {.key = "sharding_strategy",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct fsdp_config, sharding_strategy),
     .default_text = "full_shard",
     .choices = sharding_choices,
     .help = "fsdp1: what reshard_after_forward is to fsdp2"},
    {.key = "backward_prefetch",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct fsdp_config, backward_prefetch),
     .default_text = "pre",
     .min = 1,
     .max = 1024,
     .choices = backward_prefetch_choices,
     .help = "fsdp1: when the next unit of backward is gathered; fsdp2: so many units before this "
             "one, explicitly (left out: the one before it in post-forward order)"},
    {.key = "unshard_in_backward",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct fsdp_config, unshard_in_backward),
     .default_text = "true",
     .help = "fsdp2: false: the embedding, whose backward needs no weights, is not gathered for it "
             "(set_unshard_in_backward)"},
    {.key = "float8_all_gather",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct fsdp_config, float8_all_gather),
     .default_text = "false",
     .help = "fsdp2: weights of 'float8: tensorwise' layers are cast before they are gathered "
             "(torchao's enable_fsdp_float8_all_gather)"},
    {.key = "limit_all_gathers",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct fsdp_config, limit_all_gathers),
     .default_text = "true",
     .help = "fsdp1: the host waits for the unit two before to be freed"},
    {.key = "use_orig_params",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct fsdp_config, use_orig_params),
     .default_text = "false",
     .help = "fsdp1: the model shows its original parameters, which costs the host time (always so "
             "with compile)"},
    {.key = "reduce_scatter_buffers",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct fsdp_config, reduce_scatter_buffers),
     .default_text = "1",
     .min = 1,
     .max = 1024,
     .help = "reduce-scatter input buffers alive at once (PyTorch's default: 1)"},
    {.key = "separate_reduce_scatter_communicator",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct fsdp_config, separate_reduce_scatter_communicator),
     .default_text = "false",
     .help = "reduce-scatter on a communicator of its own, so that it may overlap all-gathers"},
    {.key = "requires_gradient_sync",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct fsdp_config, requires_gradient_sync),
     .default_text = "every",
     .choices = microbatch_choices,
     .help = "microbatches that reduce their gradients; before, they are summed unsharded (fsdp2: "
             "set_requires_gradient_sync; fsdp1: no_sync)"},
    {.key = "reshard_after_backward",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct fsdp_config, reshard_after_backward),
     .default_text = "every",
     .choices = microbatch_choices,
     .help = "fsdp2: microbatches that free the parameters behind backward; the others leave them "
             "for the next forward (set_reshard_after_backward)"},
    {.key = "is_last_backward",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct fsdp_config, is_last_backward),
     .default_text = "every",
     .choices = microbatch_choices,
     .help = "fsdp2: microbatches whose backward ends with waiting for all reductions "
             "(set_is_last_backward)"},
    {.key = "defer_all_reduce",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct fsdp_config, defer_all_reduce),
     .default_text = "false",
     .help = "fsdp2 with replicas: all-reduce in the last microbatch only "
             "(set_requires_all_reduce)"},
    {.key = "all_reduce_buffers",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct fsdp_config, all_reduce_buffers),
     .default_text = "all",
     .min = 1,
     .max = 1024,
     .choices = all_reduce_buffer_choices,
     .help = "fsdp2 with replicas: all-reduced shards of reduce_dtype alive at once"},
    {.key = "cpu_offload",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct fsdp_config, cpu_offload),
     .default_text = "false",
     .table = &cpu_offload_table,
     .scalar_key = "params",
     .help = "fsdp2, fsdp1: states in the memory of the host, the optimizer on its cores"},
    {0}};

const struct field_table fsdp_table = {.name = "fsdp",
                                       .help = "sharding policy",
                                       .fields = fsdp_fields,
                                       .struct_bytes = sizeof(struct fsdp_config)};

static const struct field precision_fields[] = {
    {.key = "param_dtype",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct precision_config, param_dtype),
     .default_text = "bf16",
     .choices = dtype_choices,
     .help = "gathered parameters and compute"},
    {.key = "reduce_dtype",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct precision_config, reduce_dtype),
     .default_text = "fp32",
     .choices = dtype_choices,
     .help = "gradient reduction"},
    {.key = "storage_dtype",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct precision_config, storage_dtype),
     .default_text = "fp32",
     .choices = dtype_choices,
     .help = "sharded parameters and gradients, as the optimizer sees them"},
    {.key = "master_dtype",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct precision_config, master_dtype),
     .default_text = "none",
     .choices = master_choices,
     .help = "a separate master copy, where the framework keeps one (ddp, zero1 to zero3)"},
    {0}};

const struct field_table precision_table = {.name = "precision",
                                            .help = "dtypes of parameters, reduction and storage",
                                            .fields = precision_fields,
                                            .struct_bytes = sizeof(struct precision_config)};

static const struct field optimizer_fields[] = {
    {.key = "name",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct optimizer_config, name),
     .default_text = "adamw",
     .choices = optimizer_choices,
     .help = "optimizer"},
    {.key = "impl",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct optimizer_config, impl),
     .default_text = "fused",
     .choices = optimizer_impl_choices,
     .help = "implementation"},
    {.key = "state_dtype",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct optimizer_config, state_dtype),
     .default_text = "fp32",
     .choices = state_dtype_choices,
     .help = "the two Adam moments"},
    {.key = "omp_num_threads",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct optimizer_config, omp_num_threads),
     .min = 1,
     .max = 4096,
     .help = "with offload: threads of a rank (OMP_NUM_THREADS; torchrun sets 1 where nothing "
             "does); absent: the host's cores in equal parts"},
    {0}};

const struct field_table optimizer_table = {.name = "optimizer",
                                            .help = "the optimizer",
                                            .fields = optimizer_fields,
                                            .struct_bytes = sizeof(struct optimizer_config)};

bool sharding_frees_after_forward(int strategy)
{
    return strategy != SHARDING_GRAD_OP && strategy != SHARDING_HYBRID_GRAD_OP;
}

const char *policy_api_name(int api)
{
    for (const struct choice *choice = api_choices; choice->word != NULL; choice++)
        if (choice->value == api)
            return choice->word;
    BUG("no such api %d", api);
}
