/*
 * foreign/accelerate.c: what 'accelerate config' writes.
 *
 * `distributed_type` chooses the policy: FSDP (`fsdp_config`, version 1 where it says nothing),
 * DEEPSPEED (`deepspeed_config`), MULTI_GPU (DDP). Mixed precision keeps parameters in fp32 and
 * computes and reduces in the other dtype; DeepSpeed keeps them in it. Keys of all versions: the
 * strategy as a word or as a number from 1, prefixes `fsdp_` and `parallelism_config_` or none,
 * booleans as texts.
 */
#include <inttypes.h>
#include <string.h>

#include "base/shown_text.h"
#include "foreign/foreign_private.h"

enum distribution { DISTRIBUTED_FSDP, DISTRIBUTED_DEEPSPEED, DISTRIBUTED_DDP, DISTRIBUTED_OTHER };
enum mixed { MIXED_NO, MIXED_BF16, MIXED_FP16, MIXED_FP8 };

const struct foreign_key accelerate_keys[] = {
    {"compute_environment", FOREIGN_SILENT, NULL},
    {"debug", FOREIGN_SILENT, NULL},
    {"distributed_type", FOREIGN_USED, NULL},
    {"mixed_precision", FOREIGN_USED, NULL},
    {"fsdp_config", FOREIGN_USED, NULL},
    {"deepspeed_config", FOREIGN_USED, NULL},
    {"parallelism_config", FOREIGN_USED, NULL},
    {"dynamo_config", FOREIGN_USED, NULL},
    {"dynamo_backend", FOREIGN_USED, NULL},
    {"num_machines", FOREIGN_USED, NULL},
    {"num_processes", FOREIGN_USED, NULL},
    {"use_cpu", FOREIGN_USED, NULL},
    {"downcast_bf16", FOREIGN_SILENT, NULL},
    {"enable_cpu_affinity", FOREIGN_DROPPED, "host threads are not bound to cores"},
    {"gpu_ids", FOREIGN_DROPPED, "the first GPUs of a host are used"},
    {"fp8_config", FOREIGN_DROPPED, "float8 is dynamic, by tensor"},
    {"megatron_lm_config", FOREIGN_DROPPED, "Megatron is no policy here"},
    {"machine_rank", FOREIGN_SILENT, NULL},
    {"main_process_ip", FOREIGN_SILENT, NULL},
    {"main_process_port", FOREIGN_SILENT, NULL},
    {"main_training_function", FOREIGN_SILENT, NULL},
    {"rdzv_backend", FOREIGN_SILENT, NULL},
    {"same_network", FOREIGN_SILENT, NULL},
    {"tpu_env", FOREIGN_SILENT, NULL},
    {"tpu_use_cluster", FOREIGN_SILENT, NULL},
    {"tpu_use_sudo", FOREIGN_SILENT, NULL},
    {"tpu_name", FOREIGN_SILENT, NULL},
    {"tpu_zone", FOREIGN_SILENT, NULL},
    {"command_file", FOREIGN_SILENT, NULL},
    {"commands", FOREIGN_SILENT, NULL},
    {"mpirun_config", FOREIGN_SILENT, NULL},
    {"ipex_config", FOREIGN_SILENT, NULL},
    {"deepspeed_hostfile", FOREIGN_SILENT, NULL},
    {"fsdp_version", FOREIGN_SILENT, NULL},
    {0}};

/* Without the prefix `fsdp_`, which old files lack. */
static const struct foreign_key fsdp_keys[] = {
    {"fsdp_version", FOREIGN_USED, NULL},
    {"fsdp_sharding_strategy", FOREIGN_USED, NULL},
    {"fsdp_reshard_after_forward", FOREIGN_USED, NULL},
    {"fsdp_backward_prefetch", FOREIGN_USED, NULL},
    {"fsdp_backward_prefetch_policy", FOREIGN_USED, NULL},
    {"fsdp_forward_prefetch", FOREIGN_USED, NULL},
    {"fsdp_auto_wrap_policy", FOREIGN_USED, NULL},
    {"fsdp_offload_params", FOREIGN_USED, NULL},
    {"fsdp_cpu_offload", FOREIGN_USED, NULL},
    {"fsdp_activation_checkpointing", FOREIGN_USED, NULL},
    {"fsdp_use_orig_params", FOREIGN_USED, NULL},
    {"sharding_strategy", FOREIGN_USED, NULL},
    {"offload_params", FOREIGN_USED, NULL},
    {"fsdp_transformer_layer_cls_to_wrap", FOREIGN_SILENT, NULL},
    {"fsdp_min_num_params", FOREIGN_USED, NULL},
    {"min_num_params", FOREIGN_USED, NULL},
    {"fsdp_state_dict_type", FOREIGN_SILENT, NULL},
    {"fsdp_sync_module_states", FOREIGN_SILENT, NULL},
    {"fsdp_cpu_ram_efficient_loading", FOREIGN_SILENT, NULL},
    {"fsdp_limit_all_gathers", FOREIGN_USED, NULL},
    {0}};

static const struct foreign_key plugin_keys[] = {
    {"zero_stage", FOREIGN_USED, NULL},
    {"gradient_accumulation_steps", FOREIGN_USED, NULL},
    {"gradient_clipping", FOREIGN_USED, NULL},
    {"offload_optimizer_device", FOREIGN_USED, NULL},
    {"offload_param_device", FOREIGN_USED, NULL},
    {"deepspeed_config_file", FOREIGN_USED, NULL},
    {"offload_optimizer_nvme_path", FOREIGN_SILENT, NULL},
    {"offload_param_nvme_path", FOREIGN_SILENT, NULL},
    {"zero3_init_flag", FOREIGN_SILENT, NULL},
    {"zero3_save_16bit_model", FOREIGN_SILENT, NULL},
    {"deepspeed_multinode_launcher", FOREIGN_SILENT, NULL},
    {"deepspeed_hostfile", FOREIGN_SILENT, NULL},
    {"deepspeed_exclusion_filter", FOREIGN_SILENT, NULL},
    {"deepspeed_inclusion_filter", FOREIGN_SILENT, NULL},
    {"deepspeed_moe_layer_cls_names", FOREIGN_DROPPED, "leaf modules are not played"},
    {0}};

static const struct foreign_key parallelism_keys[] = {
    {"parallelism_config_dp_replicate_size", FOREIGN_USED, NULL},
    {"parallelism_config_dp_shard_size", FOREIGN_USED, NULL},
    {"parallelism_config_tp_size", FOREIGN_USED, NULL},
    {"parallelism_config_cp_size", FOREIGN_USED, NULL},
    {"parallelism_config_cp_comm_strategy", FOREIGN_DROPPED, "context parallelism is not played"},
    {"dp_replicate_size", FOREIGN_USED, NULL},
    {"dp_shard_size", FOREIGN_USED, NULL},
    {"tp_size", FOREIGN_USED, NULL},
    {"cp_size", FOREIGN_USED, NULL},
    {0}};

/* The first of two names that is there. */
static const char *either(const struct node *map, const char *name, const char *old_name)
{
    return foreign_entry(map, name) != NULL ? name : old_name;
}

static const char *note(struct foreign *foreign, const struct node *map, const char *key)
{
    return foreign_read_note(foreign, foreign_entry(map, key));
}

/* ---- machines ------------------------------------------------------------------------------- */

static void set_size(struct foreign *foreign, const struct node *root)
{
    int64_t machines = 1, processes = 0;
    if (foreign_count(foreign, root, "num_machines", 1, &machines))
        foreign_set(foreign, "nodes", arena_printf(foreign->arena, "%" PRId64, machines),
                    note(foreign, root, "num_machines"));
    if (!foreign_count(foreign, root, "num_processes", 1, &processes))
        return;
    if (processes % machines != 0) {
        diag_add(foreign->diag, DIAG_ERROR, foreign_entry(root, "num_processes")->value->place,
                 "a multiple of 'num_machines'",
                 "%" PRId64 " processes on %" PRId64 " machines: not as many on each", processes,
                 machines);
        return;
    }
    foreign_set(foreign, "gpus_per_node",
                arena_printf(foreign->arena, "%" PRId64, processes / machines),
                note(foreign, root, "num_processes"));
}

static void set_mesh(struct foreign *foreign, const struct node *root)
{
    static const struct {
        const char *name, *old_name, *path;
    } rows[] = {{"parallelism_config_dp_replicate_size", "dp_replicate_size", "mesh.dp_replicate"},
                {"parallelism_config_dp_shard_size", "dp_shard_size", "mesh.dp_shard"},
                {"parallelism_config_tp_size", "tp_size", "mesh.tp"},
                {"parallelism_config_cp_size", "cp_size", "mesh.cp"}};
    const struct node *map = foreign_map(foreign, root, "parallelism_config");
    foreign_classify(foreign, map, parallelism_keys, "parallelism_config");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *key = either(map, rows[i].name, rows[i].old_name);
        int64_t size = 0;
        if (foreign_count(foreign, map, key, 1, &size))
            foreign_set(foreign, rows[i].path, arena_printf(foreign->arena, "%" PRId64, size),
                        note(foreign, map, key));
    }
}

/* ---- precision ------------------------------------------------------------------------------ */

static void set_precision(struct foreign *foreign, const struct node *root,
                          enum distribution distribution)
{
    static const struct choice words[] = {{"no", MIXED_NO, NULL},
                                          {"bf16", MIXED_BF16, NULL},
                                          {"fp16", MIXED_FP16, NULL},
                                          {"fp8", MIXED_FP8, NULL},
                                          {0}};
    static const char *const dtypes[] = {"fp32", "bf16", "fp16", "bf16"};
    int mixed = MIXED_NO;
    const bool is_read = foreign_word(foreign, root, "mixed_precision", words, &mixed);
    const char *from = is_read ? note(foreign, root, "mixed_precision")
                               : "assumed: no mixed precision where nothing is written";
    const bool is_deepspeed = distribution == DISTRIBUTED_DEEPSPEED;
    foreign_set(foreign, "train.precision.param_dtype", dtypes[mixed], from);
    if (!is_deepspeed) {
        foreign_set(foreign, "train.precision.reduce_dtype",
                    distribution == DISTRIBUTED_DDP ? "fp32" : dtypes[mixed],
                    distribution == DISTRIBUTED_DDP ? "DDP reduces gradients as they are stored"
                                                    : "accelerate's policy reduces in it too");
        foreign_set(foreign, "train.precision.storage_dtype", "fp32",
                    "accelerate keeps trained parameters in fp32");
    }
    if (mixed == MIXED_FP8)
        foreign_assume(foreign, "train.float8", "tensorwise", "fp8 recipes are not in the file");
}

static void set_compile(struct foreign *foreign, const struct node *root)
{
    static const struct foreign_key keys[] = {
        {"dynamo_backend", FOREIGN_USED, NULL},
        {"dynamo_mode", FOREIGN_SILENT, NULL},
        {"dynamo_use_dynamic", FOREIGN_SILENT, NULL},
        {"dynamo_use_fullgraph", FOREIGN_SILENT, NULL},
        {"dynamo_use_regional_compilation", FOREIGN_SILENT, NULL},
        {0}};
    const struct node *map = foreign_map(foreign, root, "dynamo_config");
    const struct node *holder = map != NULL ? map : root;
    foreign_classify(foreign, map, keys, "dynamo_config");
    const char *backend = foreign_text(foreign, holder, "dynamo_backend");
    if (backend == NULL)
        return;
    const bool is_off = strcmp(backend, "NO") == 0 || strcmp(backend, "no") == 0;
    foreign_set(foreign, "train.compile", is_off ? "false" : "true",
                note(foreign, holder, "dynamo_backend"));
}

/* ---- FSDP ----------------------------------------------------------------------------------- */

static void set_strategy(struct foreign *foreign, const struct node *map)
{
    static const struct choice words[] = {{"FULL_SHARD", 1, NULL},
                                          {"SHARD_GRAD_OP", 2, NULL},
                                          {"NO_SHARD", 3, NULL},
                                          {"HYBRID_SHARD", 4, NULL},
                                          {"HYBRID_SHARD_ZERO2", 5, NULL},
                                          {"_HYBRID_SHARD_ZERO2", 5, NULL},
                                          {"1", 1, NULL},
                                          {"2", 2, NULL},
                                          {"3", 3, NULL},
                                          {"4", 4, NULL},
                                          {"5", 5, NULL},
                                          {0}};
    static const char *const ours[] = {"",         "full_shard",   "shard_grad_op",
                                       "no_shard", "hybrid_shard", "hybrid_shard_zero2"};
    const char *key = either(map, "fsdp_sharding_strategy", "sharding_strategy");
    int strategy = 1;
    const bool is_read = foreign_word(foreign, map, key, words, &strategy);
    foreign_set(foreign, "fsdp.sharding_strategy", ours[strategy],
                is_read ? note(foreign, map, key) : "assumed: accelerate's default");
}

static void set_prefetch(struct foreign *foreign, const struct node *map)
{
    static const struct choice words[] = {{"BACKWARD_PRE", 0, NULL},
                                          {"BACKWARD_POST", 1, NULL},
                                          {"NO_PREFETCH", 2, NULL},
                                          {"1", 0, NULL},
                                          {"2", 1, NULL},
                                          {"None", 2, NULL},
                                          {0}};
    static const char *const ours[] = {"pre", "post", "none"};
    const char *key = either(map, "fsdp_backward_prefetch", "fsdp_backward_prefetch_policy");
    int prefetch = 2;
    const bool is_read = foreign_word(foreign, map, key, words, &prefetch);
    foreign_set(foreign, "fsdp.backward_prefetch", ours[prefetch],
                is_read ? note(foreign, map, key) : "assumed: accelerate's default");
}

static void set_flag(struct foreign *foreign, const struct node *map, const char *key,
                     const char *path, bool is_default, const char *yes, const char *no)
{
    bool value = is_default;
    const bool is_read = foreign_bool(foreign, map, key, &value);
    foreign_set(foreign, path, value ? yes : no,
                is_read ? note(foreign, map, key) : "assumed: accelerate's default");
}

static void set_fsdp1(struct foreign *foreign, const struct node *map)
{
    foreign_set(foreign, "fsdp.api", "fsdp1",
                foreign_entry(map, "fsdp_version") != NULL ? note(foreign, map, "fsdp_version")
                                                           : "assumed: version 1");
    set_strategy(foreign, map);
    set_prefetch(foreign, map);
    set_flag(foreign, map, "fsdp_forward_prefetch", "fsdp.forward_prefetch", false, "true",
             "false");
    set_flag(foreign, map, "fsdp_use_orig_params", "fsdp.use_orig_params", true, "true", "false");
    set_flag(foreign, map, "fsdp_limit_all_gathers", "fsdp.limit_all_gathers", true, "true",
             "false");
    foreign_drop(foreign, foreign_entry(map, "fsdp_reshard_after_forward"),
                 "it belongs to version 2; version 1 has 'fsdp_sharding_strategy'");
}

static void set_fsdp2(struct foreign *foreign, const struct node *map)
{
    static const char *const gone[] = {"fsdp_backward_prefetch", "fsdp_backward_prefetch_policy",
                                       "fsdp_forward_prefetch", "fsdp_use_orig_params",
                                       "fsdp_limit_all_gathers"};
    static const struct choice words[] = {{"true", 1, NULL},
                                          {"false", 0, NULL},
                                          {"FULL_SHARD", 1, NULL},
                                          {"SHARD_GRAD_OP", 0, NULL},
                                          {"1", 1, NULL},
                                          {"2", 0, NULL},
                                          {0}};
    const char *key = foreign_entry(map, "fsdp_reshard_after_forward") != NULL
                          ? "fsdp_reshard_after_forward"
                          : "fsdp_sharding_strategy";
    int reshards = 1;
    foreign_set(foreign, "fsdp.api", "fsdp2", note(foreign, map, "fsdp_version"));
    const bool is_read = foreign_word(foreign, map, key, words, &reshards);
    foreign_set(foreign, "fsdp.reshard_after_forward", reshards != 0 ? "true" : "false",
                is_read ? note(foreign, map, key) : "assumed: accelerate's default");
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
        foreign_drop(foreign, foreign_entry(map, gone[i]), "version 2 has no such option");
}

static void set_wrap(struct foreign *foreign, const struct node *map)
{
    static const struct choice words[] = {{"TRANSFORMER_BASED_WRAP", 0, NULL},
                                          {"SIZE_BASED_WRAP", 1, NULL},
                                          {"NO_WRAP", 2, NULL},
                                          {"1", 0, NULL},
                                          {"2", 1, NULL},
                                          {"3", 2, NULL},
                                          {0}};
    int64_t least = 0;
    int wrap = 0;
    const bool is_read = foreign_word(foreign, map, "fsdp_auto_wrap_policy", words, &wrap);
    const char *from = is_read ? note(foreign, map, "fsdp_auto_wrap_policy")
                               : "assumed: the classes to wrap are the blocks";
    const char *size = either(map, "fsdp_min_num_params", "min_num_params");
    foreign_set(foreign, "fsdp.wrap.policy", wrap == 1 ? "size" : "block", from);
    if (wrap == 2)
        foreign_drop(foreign, foreign_entry(map, "fsdp_auto_wrap_policy"),
                     "every block is a unit instead of the whole model");
    if (wrap == 1 && foreign_count(foreign, map, size, 1, &least))
        foreign_set(foreign, "fsdp.wrap.min_num_params",
                    arena_printf(foreign->arena, "%" PRId64, least), note(foreign, map, size));
}

static void set_fsdp(struct foreign *foreign, const struct node *root)
{
    static const struct choice versions[] = {{"1", 1, NULL}, {"2", 2, NULL}, {0}};
    const struct node *map = foreign_map(foreign, root, "fsdp_config");
    int version = 1;
    foreign_classify(foreign, map, fsdp_keys, "fsdp_config");
    (void)foreign_word(foreign, map, "fsdp_version", versions, &version);
    if (version == 2)
        set_fsdp2(foreign, map);
    else
        set_fsdp1(foreign, map);
    set_wrap(foreign, map);
    const char *offload = either(map, "fsdp_offload_params", "offload_params");
    set_flag(foreign, map, either(map, "fsdp_cpu_offload", offload), "fsdp.cpu_offload", false,
             "true", "false");
    set_flag(foreign, map, "fsdp_activation_checkpointing", "train.activation_checkpointing", false,
             "full", "none");
}

/* ---- DeepSpeed ------------------------------------------------------------------------------ */

/* Stage and all else stand in a ds_config.json. */
static bool is_elsewhere(struct foreign *foreign, const struct node *map)
{
    const struct node_entry *entry = foreign_entry(map, "deepspeed_config_file");
    const char *path = foreign_text(foreign, map, "deepspeed_config_file");
    if (path == NULL || foreign_is_off(entry->value))
        return false;
    diag_add(foreign->diag, DIAG_ERROR, entry->value->place,
             arena_printf(foreign->arena,
                          "fsdpsim import deepspeed %s, and 'nodes', 'gpus_per_node' in the result",
                          text_shown(foreign->arena, path)),
             "the stage and its options stand in another file: import that one");
    return true;
}

static void set_deepspeed(struct foreign *foreign, const struct node *root)
{
    const struct node *map = foreign_map(foreign, root, "deepspeed_config");
    int64_t steps = 1;
    double norm = 0;
    foreign_classify(foreign, map, plugin_keys, "deepspeed_config");
    if (is_elsewhere(foreign, map))
        return;
    const int64_t stage = deepspeed_set_stage(foreign, map, "zero_stage", 2);
    deepspeed_set_offload(foreign, map, "offload_optimizer_device", "zero.offload_optimizer", 1,
                          stage);
    deepspeed_set_offload(foreign, map, "offload_param_device", "zero.offload_param", 3, stage);
    if (foreign_count(foreign, map, "gradient_accumulation_steps", 1, &steps))
        foreign_set(foreign, "train.grad_accum", arena_printf(foreign->arena, "%" PRId64, steps),
                    note(foreign, map, "gradient_accumulation_steps"));
    if (foreign_real(foreign, map, "gradient_clipping", &norm))
        foreign_set(foreign, "train.max_grad_norm", arena_printf(foreign->arena, "%.17g", norm),
                    note(foreign, map, "gradient_clipping"));
    else if (!foreign_is_written(map, "gradient_clipping"))
        foreign_default(foreign, "train.max_grad_norm", "1", "accelerate fills it in");
    deepspeed_set_checkpointing(foreign);
}

/* ---- the file ------------------------------------------------------------------------------- */

static enum distribution read_distribution(struct foreign *foreign, const struct node *root)
{
    static const struct choice words[] = {{"FSDP", DISTRIBUTED_FSDP, NULL},
                                          {"DEEPSPEED", DISTRIBUTED_DEEPSPEED, NULL},
                                          {"MULTI_GPU", DISTRIBUTED_DDP, NULL},
                                          {"NO", DISTRIBUTED_DDP, NULL},
                                          {0}};
    int distribution = DISTRIBUTED_DDP;
    bool is_cpu = false;
    (void)foreign_word(foreign, root, "distributed_type", words, &distribution);
    if (foreign_bool(foreign, root, "use_cpu", &is_cpu) && is_cpu)
        diag_add(foreign->diag, DIAG_ERROR, foreign_entry(root, "use_cpu")->value->place,
                 "use_cpu: false", "training on CPUs alone cannot be simulated");
    return (enum distribution)distribution;
}

void accelerate_read(struct foreign *foreign, const struct node *root)
{
    foreign_classify(foreign, root, accelerate_keys, NULL);
    const enum distribution distribution = read_distribution(foreign, root);
    set_size(foreign, root);
    foreign_assume(foreign, "train.micro_batch", "1", "the batch is in the training script");
    set_precision(foreign, root, distribution);
    set_compile(foreign, root);
    set_mesh(foreign, root);
    if (distribution == DISTRIBUTED_FSDP) {
        set_fsdp(foreign, root);
        return;
    }
    foreign_drop(foreign, foreign_entry(root, "fsdp_config"), "the file chooses another policy");
    if (distribution == DISTRIBUTED_DEEPSPEED) {
        set_deepspeed(foreign, root);
        return;
    }
    foreign_drop(foreign, foreign_entry(root, "deepspeed_config"),
                 "the file chooses another policy");
    foreign_set(foreign, "fsdp.api", "ddp",
                foreign_entry(root, "distributed_type") != NULL
                    ? note(foreign, root, "distributed_type")
                    : "assumed: without a 'distributed_type'");
}
