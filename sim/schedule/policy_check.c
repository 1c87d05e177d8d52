/* schedule/policy_check.c: what of a policy's settings has a meaning, and what can be played. */
#include <inttypes.h>
#include <string.h>

#include "schedule/policy.h"

static void complain(struct config *config, bool is_note, const char *path, const char *hint,
                     const char *text)
{
    if (is_note)
        diag_add(config->diag, DIAG_NOTE, config_place(config, path), hint, "%s", text);
    else
        config_error(config, path, hint, "%s", text);
}

static bool is_zero(int api)
{
    return api == API_ZERO1 || api == API_ZERO2 || api == API_ZERO3;
}

/* ---- dtypes --------------------------------------------------------------------------------- */

static void derive(struct config *config, const char *path, int *member, int value,
                   const char *text, const char *origin)
{
    if (config_is_set(config, path) || *member == value)
        return;
    *member = value;
    config_add_derived(config, path, text, origin);
}

void precision_resolve(struct config *config, int api, struct precision_config *precision)
{
    const char *name = policy_api_name(api);
    if (is_zero(api)) {
        derive(config, "train.precision.storage_dtype", &precision->storage_dtype,
               precision->param_dtype, dtype_name((enum dtype)precision->param_dtype),
               arena_printf(config->arena, "%s keeps param_dtype", name));
        if (precision->storage_dtype != DTYPE_FP32)
            derive(config, "train.precision.master_dtype", &precision->master_dtype, DTYPE_FP32 + 1,
                   "fp32", arena_printf(config->arena, "%s keeps a master copy", name));
    }
    if (is_zero(api) || api == API_DDP)
        derive(config, "train.precision.reduce_dtype", &precision->reduce_dtype,
               precision->storage_dtype, dtype_name((enum dtype)precision->storage_dtype),
               arena_printf(config->arena, "%s reduces gradients as they are", name));
}

static void check_ddp_precision(struct config *config, const struct precision_config *precision)
{
    const bool is_autocast = precision->storage_dtype == DTYPE_FP32;
    if (precision->param_dtype != precision->storage_dtype && !is_autocast)
        config_error(config, "train.precision.storage_dtype",
                     "fp32 (autocast to param_dtype), or the same as param_dtype",
                     "'api: ddp' cannot compute in %s with parameters of %s",
                     dtype_name((enum dtype)precision->param_dtype),
                     dtype_name((enum dtype)precision->storage_dtype));
    if (precision->reduce_dtype != precision->storage_dtype && !is_autocast)
        config_error(
            config, "train.precision.reduce_dtype",
            "leave it out; with fp32 parameters bf16 and fp16 stand for the compress hooks",
            "'api: ddp' reduces gradients as they are stored, in %s",
            dtype_name((enum dtype)precision->storage_dtype));
}

static void check_precision(struct config *config, int api,
                            const struct precision_config *precision)
{
    const bool has_master = precision->master_dtype != MASTER_NONE;
    if (has_master && (api == API_FSDP2 || api == API_FSDP1))
        config_error(config, "train.precision.master_dtype",
                     "'storage_dtype' is what the optimizer sees",
                     "'api: %s' keeps no separate master copy", policy_api_name(api));
    if (has_master && precision->storage_dtype == DTYPE_FP32 && (is_zero(api) || api == API_DDP))
        config_error(config, "train.precision.master_dtype", "none",
                     "parameters of fp32 need no master copy");
    if (is_zero(api) && precision->storage_dtype != precision->param_dtype)
        config_error(config, "train.precision.storage_dtype",
                     "leave it out; 'master_dtype: fp32' is what the optimizer sees",
                     "'api: %s' keeps parameters in param_dtype, not in %s", policy_api_name(api),
                     dtype_name((enum dtype)precision->storage_dtype));
    if (api == API_DDP)
        check_ddp_precision(config, precision);
}

/* ---- keys ----------------------------------------------------------------------------------- */

enum { FOR_FSDP2 = 1, FOR_FSDP1 = 2, FOR_DDP = 4, FOR_ZERO12 = 8, FOR_ZERO3 = 16 };

static int bit_of(int api)
{
    switch ((enum policy_api)api) {
    case API_FSDP2:
        return FOR_FSDP2;
    case API_FSDP1:
        return FOR_FSDP1;
    case API_DDP:
        return FOR_DDP;
    case API_ZERO1:
    case API_ZERO2:
        return FOR_ZERO12;
    case API_ZERO3:
        return FOR_ZERO3;
    }
    BUG("no such api %d", api);
}

/* Keys that belong to some policies alone. The first match of a section that was written wins. */
static const struct {
    const char *path;
    int apis;
    const char *hint;
} owned_keys[] = {
    {"fsdp.backward_prefetch", FOR_FSDP2 | FOR_FSDP1,
     "it belongs to fsdp2 and fsdp1; zero3 has 'zero.prefetch_bucket_size'"},
    {"fsdp.unshard_in_backward", FOR_FSDP2, "it belongs to 'api: fsdp2'"},
    {"fsdp.float8_all_gather", FOR_FSDP2,
     "it belongs to 'api: fsdp2'; torchao casts weights one by one"},
    {"fsdp.sharding_strategy", FOR_FSDP1,
     "it belongs to 'api: fsdp1'; with fsdp2 say 'reshard_after_forward'"},
    {"fsdp.limit_all_gathers", FOR_FSDP1,
     "it belongs to 'api: fsdp1'; fsdp2 never blocks the host"},
    {"fsdp.use_orig_params", FOR_FSDP1, "it belongs to 'api: fsdp1'; fsdp2 has no flat parameters"},
    {"fsdp.reshard_after_forward", FOR_FSDP2,
     "it belongs to 'api: fsdp2'; with fsdp1 say 'sharding_strategy'"},
    {"fsdp.reduce_scatter_buffers", FOR_FSDP2,
     "it belongs to 'api: fsdp2'; fsdp1 waits for no reduce-scatter before the end"},
    {"fsdp.separate_reduce_scatter_communicator", FOR_FSDP2,
     "it belongs to 'api: fsdp2'; fsdp1 has one communicator"},
    {"fsdp.requires_gradient_sync", FOR_FSDP2 | FOR_FSDP1,
     "it belongs to fsdp2 and fsdp1; ddp has 'ddp.no_sync'"},
    {"fsdp.reshard_after_backward", FOR_FSDP2,
     "it belongs to 'api: fsdp2'; fsdp1 keeps parameters under no_sync with shard_grad_op"},
    {"fsdp.is_last_backward", FOR_FSDP2, "it belongs to 'api: fsdp2'"},
    {"fsdp.defer_all_reduce", FOR_FSDP2,
     "it belongs to 'api: fsdp2'; fsdp1 all-reduces behind each reduce-scatter"},
    {"fsdp.all_reduce_buffers", FOR_FSDP2, "it belongs to 'api: fsdp2'"},
    {"fsdp.wrap", FOR_FSDP2 | FOR_FSDP1,
     "it belongs to fsdp2 and fsdp1; the others work on single parameters"},
    {"fsdp.forward_prefetch", FOR_FSDP2 | FOR_FSDP1,
     "it belongs to fsdp2 and fsdp1; zero3 has 'zero.prefetch_bucket_size'"},
    {"fsdp.cpu_offload", FOR_FSDP2 | FOR_FSDP1,
     "it belongs to fsdp2 and fsdp1; zero1 to zero3 have 'zero.offload_optimizer'"},
    {"fsdp.cpu_offload.pin_memory", FOR_FSDP2, "it belongs to 'api: fsdp2'; fsdp1 always pins"},
    {"ddp", FOR_DDP, "the section 'ddp' belongs to 'api: ddp'"},
    {"zero", FOR_ZERO12 | FOR_ZERO3, "the section 'zero' belongs to zero1, zero2 and zero3"},
    {"zero.use_multi_rank_bucket_allreduce", FOR_ZERO12, "it belongs to zero1 and zero2"},
    {"zero.allgather_partitions", FOR_ZERO12, "it belongs to zero1 and zero2"},
    {"zero.allgather_bucket_size", FOR_ZERO12,
     "it belongs to zero1 and zero2; zero3 has 'prefetch_bucket_size'"},
    {"zero.sub_group_size", FOR_ZERO3, "it belongs to zero3"},
    {"zero.prefetch_bucket_size", FOR_ZERO3, "it belongs to zero3"},
    {"zero.param_persistence_threshold", FOR_ZERO3, "it belongs to zero3"},
    {"zero.max_live_parameters", FOR_ZERO3, "it belongs to zero3"},
    {"zero.max_reuse_distance", FOR_ZERO3, "it belongs to zero3"},
    {"zero.zero_hpz_partition_size", FOR_ZERO3, "it belongs to zero3"},
    {"zero.zero_quantized_weights", FOR_ZERO3, "it belongs to zero3"},
    {"zero.zero_quantized_gradients", FOR_ZERO3, "it belongs to zero3"},
    {"zero.offload_param", FOR_ZERO3, "it belongs to zero3"},
    {"zero.coordinator", FOR_ZERO3, "it belongs to zero3"},
};

static const char *last_word(const char *path)
{
    const char *word = path;
    for (const char *at = path; *at != '\0'; at++)
        word = *at == '.' ? at + 1 : word;
    return word;
}

/* What the mesh of a strategy of fsdp1 may be. */
static void check_strategy(struct config *config, const struct fsdp_config *fsdp,
                           const struct mesh_config *mesh)
{
    const int strategy = fsdp->sharding_strategy;
    if (strategy == SHARDING_NONE && mesh->dp_shard > 1)
        config_error(config, "fsdp.sharding_strategy",
                     "leave the mesh out, or say 'dp_shard: 1, dp_replicate: ' all GPUs",
                     "'no_shard' cannot share states among %" PRId64 " GPUs", mesh->dp_shard);
    if ((strategy == SHARDING_FULL || strategy == SHARDING_GRAD_OP) && mesh->dp_replicate > 1)
        config_error(config, "mesh.dp_replicate",
                     "'fsdp.sharding_strategy: hybrid_shard', hybrid_shard_zero2, or no_shard",
                     "this sharding strategy of fsdp1 has no replicas");
}

/* Words are fsdp1's, numbers fsdp2's. */
static void check_prefetch(struct config *config, const struct fsdp_config *fsdp)
{
    if (fsdp->api == API_FSDP2 && fsdp->backward_prefetch < 0 &&
        config_is_set(config, "fsdp.backward_prefetch"))
        config_error(config, "fsdp.backward_prefetch",
                     "a number of units, or leave it out: the unit before is prefetched",
                     "'backward_prefetch: %s' means nothing for 'api: fsdp2'",
                     config_value(config, "fsdp.backward_prefetch"));
    if (fsdp->api == API_FSDP1 && fsdp->backward_prefetch > 0)
        config_error(config, "fsdp.backward_prefetch", "pre, post or none",
                     "fsdp1 has no list of units to prefetch");
    if (fsdp->api == API_FSDP1 && fsdp->forward_prefetch > 1)
        config_error(config, "fsdp.forward_prefetch", "true or false",
                     "fsdp1 gathers one unit ahead at most, not %" PRId64, fsdp->forward_prefetch);
    if (fsdp->api == API_FSDP2 && !fsdp->unshard_in_backward &&
        (fsdp->wrap.policy == WRAP_BLOCK || fsdp->wrap.policy == WRAP_CHILD))
        config_error(config, "fsdp.unshard_in_backward", "'wrap: torchtitan'",
                     "with this 'wrap' the embedding is in the root, which stays gathered");
}

/* 22: smaller groups tile the shard group. */
static void check_reshard(struct config *config, const struct fsdp_config *fsdp,
                          const struct mesh_config *mesh)
{
    const int64_t ranks = fsdp->reshard_after_forward;
    if (ranks > 1 && mesh->dp_shard % ranks != 0)
        config_error(config, "fsdp.reshard_after_forward",
                     arena_printf(config->arena,
                                  "true, false, or a divisor of the %" PRId64
                                  " GPUs that a unit is sharded over",
                                  mesh->dp_shard),
                     "parameters cannot be resharded to %" PRId64 " of %" PRId64 " GPUs", ranks,
                     mesh->dp_shard);
}

/* 39, 40: what fsdp2 does with all-reduces, where there are some. */
static void check_replicas(struct config *config, const struct fsdp_config *fsdp,
                           const struct mesh_config *mesh)
{
    static const char hint[] = "leave it out, or 'mesh.dp_replicate: 2' or more";
    if (fsdp->api != API_FSDP2 || mesh->dp_replicate > 1)
        return;
    if (fsdp->defer_all_reduce)
        config_error(config, "fsdp.defer_all_reduce", hint,
                     "'defer_all_reduce' means nothing without replicas");
    if (fsdp->all_reduce_buffers > 0)
        config_error(config, "fsdp.all_reduce_buffers", hint,
                     "'all_reduce_buffers' means nothing without replicas");
}

/* What is offloaded must be a shard that one optimizer pass can take. */
static void check_offload(struct config *config, const struct policy_config *policy)
{
    const struct fsdp_config *fsdp = policy->fsdp;
    const bool is_offloaded =
        (fsdp->api == API_FSDP2 || fsdp->api == API_FSDP1) && fsdp->cpu_offload.params;
    if (is_offloaded && fsdp->api == API_FSDP1 && fsdp->sharding_strategy == SHARDING_NONE)
        config_error(config, "fsdp.cpu_offload", "another 'fsdp.sharding_strategy'",
                     "fsdp1 cannot offload parameters that it does not shard");
    if (is_offloaded && fsdp->api == API_FSDP1 && policy->grad_accum > 1 &&
        fsdp->requires_gradient_sync == MICROBATCH_EVERY)
        config_error(config, "fsdp.cpu_offload", "'fsdp.requires_gradient_sync: last' (no_sync)",
                     "fsdp1 cannot add up reduced gradients that are on the host");
    const bool is_zero_offloaded =
        is_zero(fsdp->api) && policy->zero->offload_optimizer != OFFLOAD_NONE;
    if (!is_offloaded && !is_zero_offloaded) {
        if (config_is_set(config, "train.optimizer.omp_num_threads"))
            config_error(config, "train.optimizer.omp_num_threads",
                         "it goes with 'fsdp.cpu_offload' or 'zero.offload_optimizer: cpu'",
                         "'omp_num_threads' means nothing for an optimizer on the GPU");
        return;
    }
    if (policy->optimizer->name == OPTIMIZER_ADAMW_8BIT)
        config_error(config, "train.optimizer.name", "adamw, sgd",
                     "'adamw_8bit' does not run on the host");
}

static bool joins_modules(const struct wrap_config *wrap)
{
    const char *const *entries = wrap->modules.items;
    for (int64_t i = 0; i < wrap->modules.count; i++)
        if (strchr(entries[i], '+') != NULL)
            return true;
    return false;
}

/* Keys of a wrap that go with one policy, and what fsdp1 cannot wrap. */
static void check_wrap(struct config *config, const struct fsdp_config *fsdp)
{
    const struct wrap_config *wrap = &fsdp->wrap;
    const bool is_fsdp1 = fsdp->api == API_FSDP1;
    const struct {
        bool is_wrong;
        const char *path, *hint, *text;
    } rows[] = {
        {wrap->policy != WRAP_BLOCK && config_is_set(config, "fsdp.wrap.every"), "fsdp.wrap.every",
         "it goes with 'policy: block'", "'every' means nothing for this policy of 'wrap'"},
        {wrap->policy != WRAP_SIZE && config_is_set(config, "fsdp.wrap.min_num_params"),
         "fsdp.wrap.min_num_params", "it goes with 'policy: size'",
         "'min_num_params' means nothing for this policy of 'wrap'"},
        {wrap->policy != WRAP_MODULES && wrap->modules.count > 0, "fsdp.wrap.modules",
         "it goes with 'policy: modules'", "'modules' means nothing for this policy of 'wrap'"},
        {wrap->policy == WRAP_MODULES && wrap->modules.count == 0, "fsdp.wrap",
         "for example {policy: modules, modules: [layers.*, norm+lm_head]}",
         "'policy: modules' needs a list 'modules'"},
        {is_fsdp1 && wrap->policy == WRAP_TORCHTITAN, "fsdp.wrap",
         "'block': what is no block belongs to the root",
         "'wrap: torchtitan' is a recipe of 'api: fsdp2'"},
        {is_fsdp1 && wrap->every > 1, "fsdp.wrap.every", "1, or 'api: fsdp2'",
         "fsdp1 wraps single modules, not several blocks"},
        {is_fsdp1 && joins_modules(wrap), "fsdp.wrap.modules", "names without +, or 'api: fsdp2'",
         "fsdp1 wraps single modules, not lists of them"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].is_wrong)
            config_error(config, rows[i].path, rows[i].hint, "%s", rows[i].text);
}

static void check_keys(struct config *config, const struct fsdp_config *fsdp,
                       const struct mesh_config *mesh)
{
    const bool uses_zero = is_zero(fsdp->api);
    for (size_t i = 0; i < sizeof(owned_keys) / sizeof(owned_keys[0]); i++) {
        const char *path = owned_keys[i].path;
        const bool is_inside = path[0] == 'z' && last_word(path) != path;
        if ((owned_keys[i].apis & bit_of(fsdp->api)) != 0 || !config_is_set(config, path) ||
            (is_inside && !uses_zero))
            continue;
        config_error(config, path, owned_keys[i].hint, "'%s' means nothing for 'api: %s'",
                     last_word(path), policy_api_name(fsdp->api));
    }
    check_wrap(config, fsdp);
    if (fsdp->api == API_FSDP1)
        check_strategy(config, fsdp, mesh);
    check_prefetch(config, fsdp);
    check_reshard(config, fsdp, mesh);
    check_replicas(config, fsdp, mesh);
}

/* ---- what can be played --------------------------------------------------------------------- */

/* Replicas: HSDP, hybrid strategies, and zero1 in groups (InternEvo's `zero1=8`). */
static void check_mesh_built(struct config *config, int api, const struct mesh_config *mesh,
                             bool is_note)
{
    const struct {
        const char *path;
        int64_t size;
    } rows[] = {{"mesh.pp", mesh->pp},
                {"mesh.dp_replicate", mesh->dp_replicate},
                {"mesh.cp", mesh->cp},
                {"mesh.ep", mesh->ep}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const bool is_replicate = rows[i].path[sizeof("mesh.") - 1] == 'd';
        const bool has_replicas = api == API_FSDP2 || api == API_FSDP1 || api == API_ZERO1;
        if (rows[i].size == 1 || (is_replicate && has_replicas))
            continue;
        complain(config, is_note, rows[i].path,
                 is_replicate ? "replicas are for fsdp2, fsdp1 and zero1 so far"
                              : "only 'dp_replicate', 'dp_shard' and 'tp' may differ from 1 so far",
                 arena_printf(config->arena, "'%s: %" PRId64 "' cannot be simulated yet",
                              last_word(rows[i].path), rows[i].size));
    }
}

/* hpZ: the secondary partition tiles the ranks, and is of parameters on the GPU. */
static void check_secondary(struct config *config, const struct zero_config *zero,
                            const struct mesh_config *mesh)
{
    const int64_t ranks = zero->hpz_partition_size;
    if (ranks > 1 && mesh->dp_shard % ranks != 0)
        config_error(config, "zero.zero_hpz_partition_size",
                     arena_printf(config->arena,
                                  "1, or a divisor of the %" PRId64
                                  " GPUs that parameters are shared by",
                                  mesh->dp_shard),
                     "a secondary partition of %" PRId64 " does not tile %" PRId64 " GPUs", ranks,
                     mesh->dp_shard);
    if (ranks > 1 && zero->offload_param != OFFLOAD_NONE)
        config_error(config, "zero.zero_hpz_partition_size", "1, or 'offload_param: none'",
                     "a secondary partition of parameters on the host cannot be simulated yet");
    if (ranks > 1 && zero->coordinator == COORDINATOR_BLOCKING)
        config_error(config, "zero.zero_hpz_partition_size", "1, or 'coordinator: traced'",
                     "DeepSpeed before 0.6 has no secondary partition");
}

/* What the trace's coordinator goes by; the one before it looks neither ahead nor back. */
static void check_blocking(struct config *config, const struct zero_config *zero)
{
    static const char *const paths[] = {"zero.prefetch_bucket_size", "zero.max_live_parameters",
                                        "zero.max_reuse_distance"};
    if (zero->coordinator != COORDINATOR_BLOCKING)
        return;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (config_is_set(config, paths[i]))
            config_error(config, paths[i], "it goes with 'coordinator: traced'",
                         "'%s' means nothing for 'coordinator: blocking'", last_word(paths[i]));
}

static void check_zero_built(struct config *config, const struct zero_config *zero, bool is_note)
{
    const struct {
        const char *path;
        bool is_asked;
        const char *hint;
    } rows[] = {
        {"zero.zero_quantized_weights", zero->quantized_weights, "false so far"},
        {"zero.zero_quantized_gradients", zero->quantized_gradients, "false so far"},
        {"zero.offload_optimizer", zero->offload_optimizer == OFFLOAD_NVME, "none or cpu so far"},
        {"zero.offload_param", zero->offload_param == OFFLOAD_NVME, "none or cpu so far"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].is_asked)
            complain(config, is_note, rows[i].path, rows[i].hint,
                     arena_printf(config->arena, "'%s' cannot be simulated yet",
                                  last_word(rows[i].path)));
}

void policy_check_built(struct config *config, const struct policy_config *policy, bool is_note)
{
    check_keys(config, policy->fsdp, policy->mesh);
    if (is_zero(policy->fsdp->api))
        check_zero_built(config, policy->zero, is_note);
    if (policy->fsdp->api == API_ZERO3) {
        check_secondary(config, policy->zero, policy->mesh);
        check_blocking(config, policy->zero);
    }
    check_precision(config, policy->fsdp->api, policy->precision);
    check_offload(config, policy);
    check_mesh_built(config, policy->fsdp->api, policy->mesh, is_note);
}

static struct program *build(struct arena *arena, const struct model *model,
                             const struct policy_settings *settings)
{
    switch ((enum policy_api)settings->fsdp.api) {
    case API_FSDP2:
        return fsdp2_build(arena, model, settings);
    case API_FSDP1:
        return fsdp1_build(arena, model, settings);
    case API_DDP:
        return ddp_build(arena, model, settings);
    case API_ZERO1:
    case API_ZERO2:
    case API_ZERO3:
        return zero_build(arena, model, settings);
    }
    BUG("no program of api %d", settings->fsdp.api);
}

struct program *policy_build(struct arena *arena, const struct model *model,
                             const struct policy_settings *settings)
{
    struct program *program = build(arena, model, settings);
    program_number_microbatches(program);
    program_add_host_syncs(arena, program, settings->host_syncs);
    if (settings->hardware_queues > 0)
        program_limit_queues(arena, program, settings->hardware_queues);
    return program;
}
