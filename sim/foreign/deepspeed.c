/*
 * foreign/deepspeed.c: ds_config.json.
 *
 * `zero_optimization` has counterparts in `zero:` under the same names (those of stage 3 without
 * the prefix). "auto" is what Hugging Face's Trainer fills in: the batch from its arguments, bucket
 * sizes from the hidden size; here DeepSpeed's defaults stand in. A batch is train_batch_size =
 * train_micro_batch_size_per_gpu · gradient_accumulation_steps · GPUs: with two of the three the
 * last follows from the number of GPUs (`global_batch`).
 */
#include <inttypes.h>
#include <string.h>

#include "foreign/foreign_private.h"

const struct foreign_key deepspeed_keys[] = {
    {"train_batch_size", FOREIGN_USED, NULL},
    {"train_micro_batch_size_per_gpu", FOREIGN_USED, NULL},
    {"gradient_accumulation_steps", FOREIGN_USED, NULL},
    {"zero_optimization", FOREIGN_USED, NULL},
    {"optimizer", FOREIGN_USED, NULL},
    {"fp16", FOREIGN_USED, NULL},
    {"bf16", FOREIGN_USED, NULL},
    {"bfloat16", FOREIGN_USED, NULL},
    {"gradient_clipping", FOREIGN_USED, NULL},
    {"communication_data_type", FOREIGN_USED, NULL},
    {"activation_checkpointing", FOREIGN_USED, NULL},
    {"scheduler", FOREIGN_SILENT, NULL},
    {"steps_per_print", FOREIGN_SILENT, NULL},
    {"wall_clock_breakdown", FOREIGN_DROPPED, "the host's waits for its timers are not played"},
    {"memory_breakdown", FOREIGN_SILENT, NULL},
    {"dump_state", FOREIGN_SILENT, NULL},
    {"flops_profiler", FOREIGN_SILENT, NULL},
    {"comms_logger", FOREIGN_SILENT, NULL},
    {"tensorboard", FOREIGN_SILENT, NULL},
    {"wandb", FOREIGN_SILENT, NULL},
    {"csv_monitor", FOREIGN_SILENT, NULL},
    {"monitor_config", FOREIGN_SILENT, NULL},
    {"checkpoint", FOREIGN_SILENT, NULL},
    {"zero_allow_untested_optimizer", FOREIGN_SILENT, NULL},
    {"zero_force_ds_cpu_optimizer", FOREIGN_USED, NULL},
    {"prescale_gradients", FOREIGN_DROPPED, "gradients are divided before their reduction"},
    {"gradient_predivide_factor", FOREIGN_SILENT, NULL},
    {"sparse_gradients", FOREIGN_DROPPED, "embedding gradients are dense"},
    {"data_types", FOREIGN_DROPPED, "gradients are summed in param_dtype"},
    {"amp", FOREIGN_DROPPED, "Apex is not played"},
    {"sparse_attention", FOREIGN_DROPPED, "attention is dense"},
    {"pipeline", FOREIGN_USED, NULL},
    {"tensor_parallel", FOREIGN_USED, NULL},
    {"aio", FOREIGN_DROPPED, "NVMe cannot be simulated yet"},
    {"compile", FOREIGN_DROPPED, "DeepCompile is not played"},
    {"compression_training", FOREIGN_DROPPED, "it is not played"},
    {"curriculum_learning", FOREIGN_DROPPED, "sequences are as long as 'seq_len'"},
    {"data_efficiency", FOREIGN_DROPPED, "sequences are as long as 'seq_len'"},
    {"autotuning", FOREIGN_SILENT, NULL},
    {"elasticity", FOREIGN_SILENT, NULL},
    {"seed", FOREIGN_SILENT, NULL},
    {0}};

/* Counts and flags that `zero:` has, and from which stage to which they mean something. */
static const struct {
    const char *key, *path;
    int first_stage, last_stage;
    bool is_flag;
} zero_rows[] = {
    {"contiguous_gradients", "zero.contiguous_gradients", 1, 3, true},
    {"reduce_scatter", "zero.reduce_scatter", 1, 3, true},
    {"use_multi_rank_bucket_allreduce", "zero.use_multi_rank_bucket_allreduce", 1, 2, true},
    {"allgather_partitions", "zero.allgather_partitions", 1, 2, true},
    {"reduce_bucket_size", "zero.reduce_bucket_size", 1, 3, false},
    {"allgather_bucket_size", "zero.allgather_bucket_size", 1, 2, false},
    {"sub_group_size", "zero.sub_group_size", 3, 3, false},
    {"stage3_prefetch_bucket_size", "zero.prefetch_bucket_size", 3, 3, false},
    {"stage3_param_persistence_threshold", "zero.param_persistence_threshold", 3, 3, false},
    {"stage3_max_live_parameters", "zero.max_live_parameters", 3, 3, false},
    {"stage3_max_reuse_distance", "zero.max_reuse_distance", 3, 3, false},
    {"zero_hpz_partition_size", "zero.zero_hpz_partition_size", 3, 3, false},
    {"zero_quantized_weights", "zero.zero_quantized_weights", 3, 3, true},
    {"zero_quantized_gradients", "zero.zero_quantized_gradients", 3, 3, true},
};

static const struct foreign_key zero_keys[] = {
    {"stage", FOREIGN_USED, NULL},
    {"overlap_comm", FOREIGN_USED, NULL},
    {"contiguous_gradients", FOREIGN_USED, NULL},
    {"reduce_scatter", FOREIGN_USED, NULL},
    {"use_multi_rank_bucket_allreduce", FOREIGN_USED, NULL},
    {"allgather_partitions", FOREIGN_USED, NULL},
    {"reduce_bucket_size", FOREIGN_USED, NULL},
    {"allgather_bucket_size", FOREIGN_USED, NULL},
    {"sub_group_size", FOREIGN_USED, NULL},
    {"stage3_prefetch_bucket_size", FOREIGN_USED, NULL},
    {"stage3_param_persistence_threshold", FOREIGN_USED, NULL},
    {"stage3_max_live_parameters", FOREIGN_USED, NULL},
    {"stage3_max_reuse_distance", FOREIGN_USED, NULL},
    {"zero_hpz_partition_size", FOREIGN_USED, NULL},
    {"zero_quantized_weights", FOREIGN_USED, NULL},
    {"zero_quantized_gradients", FOREIGN_USED, NULL},
    {"offload_optimizer", FOREIGN_USED, NULL},
    {"offload_param", FOREIGN_USED, NULL},
    {"cpu_offload", FOREIGN_USED, NULL},
    {"cpu_offload_params", FOREIGN_USED, NULL},
    {"cpu_offload_use_pin_memory", FOREIGN_SILENT, NULL},
    {"stage3_gather_16bit_weights_on_model_save", FOREIGN_SILENT, NULL},
    {"stage3_gather_fp16_weights_on_model_save", FOREIGN_SILENT, NULL},
    {"load_from_fp32_weights", FOREIGN_SILENT, NULL},
    {"elastic_checkpoint", FOREIGN_SILENT, NULL},
    {"ignore_unused_parameters", FOREIGN_SILENT, NULL},
    {"legacy_stage1", FOREIGN_SILENT, NULL},
    {"log_trace_cache_warnings", FOREIGN_SILENT, NULL},
    {"round_robin_gradients", FOREIGN_DROPPED, "copies to the host are not spread over the ranks"},
    {"param_persistence_threshold", FOREIGN_SILENT, NULL},
    {"stage3_model_persistence_threshold", FOREIGN_DROPPED, "no sum bounds what persists"},
    {"stage3_module_granularity_threshold", FOREIGN_DROPPED, "leaf modules are not played"},
    {"stage3_use_all_reduce_for_fetch_params", FOREIGN_DROPPED, "parameters are gathered"},
    {"leaf_module", FOREIGN_DROPPED, "leaf modules are not played"},
    {"zero_quantized_nontrainable_weights", FOREIGN_DROPPED, "they are gathered as they are"},
    {"zeropp_loco_param", FOREIGN_DROPPED, "gradients are reduced as they are"},
    {"mics_shard_size", FOREIGN_DROPPED, "MiCS is not played"},
    {"mics_hierarchical_params_gather", FOREIGN_DROPPED, "MiCS is not played"},
    {"memory_efficient_linear", FOREIGN_DROPPED, "linear layers are PyTorch's"},
    {"pipeline_loading_checkpoint", FOREIGN_SILENT, NULL},
    {"override_module_apply", FOREIGN_SILENT, NULL},
    {0}};

static const char *note(struct foreign *foreign, const struct node *map, const char *key)
{
    return foreign_read_note(foreign, foreign_entry(map, key));
}

static const char *number(struct foreign *foreign, int64_t value)
{
    return arena_printf(foreign->arena, "%" PRId64, value);
}

int64_t deepspeed_set_stage(struct foreign *foreign, const struct node *map, const char *key,
                            int64_t fallback)
{
    static const struct choice words[] = {
        {"0", 0, NULL}, {"1", 1, NULL}, {"2", 2, NULL}, {"3", 3, NULL}, {0}};
    static const char *const apis[] = {"ddp", "zero1", "zero2", "zero3"};
    int stage = (int)fallback;
    const int32_t before = foreign->diag->error_count;
    const bool is_read = foreign_word(foreign, map, key, words, &stage);
    foreign_set(foreign, "fsdp.api", apis[stage],
                is_read ? note(foreign, map, key) : "assumed: the default");
    if (stage == 0 && foreign->diag->error_count == before)
        diag_add(foreign->diag, DIAG_WARNING, NO_PLACE, NULL,
                 "ZeRO stage 0 is played as DistributedDataParallel, whose buckets are others");
    return stage;
}

void deepspeed_set_checkpointing(struct foreign *foreign)
{
    foreign_default(foreign, "train.activation_checkpointing", "none",
                    "whether the model checkpoints is in the training script");
}

void deepspeed_set_offload(struct foreign *foreign, const struct node *map, const char *key,
                           const char *path, int64_t least_stage, int64_t stage)
{
    static const struct choice words[] = {
        {"none", 0, NULL}, {"cpu", 1, NULL}, {"nvme", 2, NULL}, {0}};
    static const char *const ours[] = {"none", "cpu", "nvme"};
    int device = 0;
    if (!foreign_word(foreign, map, key, words, &device) || device == 0)
        return;
    if (stage < least_stage)
        foreign_drop(foreign, foreign_entry(map, key), "this stage does not offload it");
    else
        foreign_set(foreign, path, ours[device], note(foreign, map, key));
}

/* ---- zero_optimization ---------------------------------------------------------------------- */

/* A map with a device, or, before 2021, a flag. */
static void set_offload(struct foreign *foreign, const struct node *zero, const char *key,
                        const char *old_key, const char *path, int64_t least_stage, int64_t stage)
{
    static const struct foreign_key keys[] = {
        {"device", FOREIGN_USED, NULL},
        {"pin_memory", FOREIGN_USED, NULL},
        {"nvme_path", FOREIGN_SILENT, NULL},
        {"buffer_count", FOREIGN_DROPPED, "NVMe cannot be simulated yet"},
        {"buffer_size", FOREIGN_DROPPED, "NVMe cannot be simulated yet"},
        {"max_in_cpu", FOREIGN_DROPPED, "NVMe cannot be simulated yet"},
        {"pipeline_read", FOREIGN_DROPPED, "NVMe cannot be simulated yet"},
        {"pipeline_write", FOREIGN_DROPPED, "NVMe cannot be simulated yet"},
        {"fast_init", FOREIGN_SILENT, NULL},
        {"ratio", FOREIGN_USED, NULL},
        {0}};
    bool is_old = false, is_pinned = true;
    double ratio = 1;
    const struct node *map = foreign_map(foreign, zero, key);
    foreign_classify(foreign, map, keys, key);
    deepspeed_set_offload(foreign, map, "device", path, least_stage, stage);
    if (foreign_bool(foreign, zero, old_key, &is_old) && is_old && map == NULL)
        foreign_set(foreign, path, "cpu", note(foreign, zero, old_key));
    if (foreign_bool(foreign, map, "pin_memory", &is_pinned) && !is_pinned)
        foreign_drop(foreign, foreign_entry(map, "pin_memory"), "host memory is pinned here");
    if (foreign_real(foreign, map, "ratio", &ratio) && ratio < 1)
        foreign_drop(foreign, foreign_entry(map, "ratio"), "all of the optimizer is on the host");
}

/* What Hugging Face's Trainer writes in place of "auto", of hidden size h; 0: it leaves the key. */
static int64_t auto_size(const char *key, int64_t hidden)
{
    if (strcmp(key, "reduce_bucket_size") == 0)
        return hidden * hidden;
    if (strcmp(key, "stage3_prefetch_bucket_size") == 0)
        return hidden * hidden * 9 / 10;
    return strcmp(key, "stage3_param_persistence_threshold") == 0 ? 10 * hidden : 0;
}

static void set_auto(struct foreign *foreign, const struct node_entry *entry, const char *path)
{
    const int64_t hidden = foreign->options->hidden_size;
    const int64_t size = auto_size(entry->key, hidden);
    if (size > 0)
        foreign_set(foreign, path, number(foreign, size),
                    arena_printf(foreign->arena,
                                 "auto: from the hidden size %" PRId64
                                 ", as Hugging Face's Trainer does",
                                 hidden));
    else
        foreign_drop(foreign, entry,
                     hidden > 0 ? "auto: DeepSpeed's default stands in"
                                : "auto: it depends on the hidden size (--model); "
                                  "DeepSpeed's default stands in");
}

/* The value of a row as we write it, NULL: none is there. */
static const char *zero_value(struct foreign *foreign, const struct node *zero, size_t row)
{
    const char *key = zero_rows[row].key;
    const int64_t least = strstr(key, "stage3") == NULL ? 1 : 0;
    int64_t count = 0;
    bool flag = false;
    if (zero_rows[row].is_flag)
        return foreign_bool(foreign, zero, key, &flag) ? (flag ? "true" : "false") : NULL;
    return foreign_count(foreign, zero, key, least, &count) ? number(foreign, count) : NULL;
}

static void set_zero_rows(struct foreign *foreign, const struct node *zero, int64_t stage)
{
    for (size_t i = 0; i < sizeof(zero_rows) / sizeof(zero_rows[0]); i++) {
        const struct node_entry *entry = foreign_entry(zero, zero_rows[i].key);
        const bool is_here = stage >= zero_rows[i].first_stage && stage <= zero_rows[i].last_stage;
        const char *value = zero_value(foreign, zero, i);
        if (value != NULL && is_here)
            foreign_set(foreign, zero_rows[i].path, value, foreign_read_note(foreign, entry));
        else if (value != NULL)
            foreign_drop(foreign, entry, "it means nothing for this stage");
        else if (is_here && foreign_is_auto(zero, zero_rows[i].key))
            set_auto(foreign, entry, zero_rows[i].path);
    }
}

static void set_zero(struct foreign *foreign, const struct node *root)
{
    const struct node *zero = foreign_map(foreign, root, "zero_optimization");
    bool overlaps = false;
    foreign_classify(foreign, zero, zero_keys, "zero_optimization");
    const int64_t stage = deepspeed_set_stage(foreign, zero, "stage", 0);
    set_zero_rows(foreign, zero, stage);
    if (foreign_bool(foreign, zero, "overlap_comm", &overlaps)) {
        if (stage > 0)
            foreign_set(foreign, "zero.overlap_comm", overlaps ? "true" : "false",
                        note(foreign, zero, "overlap_comm"));
        else
            foreign_drop(foreign, foreign_entry(zero, "overlap_comm"),
                         "it means nothing for this stage");
    }
    set_offload(foreign, zero, "offload_optimizer", "cpu_offload", "zero.offload_optimizer", 1,
                stage);
    set_offload(foreign, zero, "offload_param", "cpu_offload_params", "zero.offload_param", 3,
                stage);
}

/* ---- precision, batch, optimizer ------------------------------------------------------------ */

static bool is_enabled(struct foreign *foreign, const struct node *root, const char *key)
{
    const struct node *map = foreign_map(foreign, root, key);
    bool is_on = false;
    return foreign_is_auto(map, "enabled") ||
           (foreign_bool(foreign, map, "enabled", &is_on) && is_on);
}

static void set_reduce_dtype(struct foreign *foreign, const struct node *root)
{
    static const struct choice words[] = {
        {"fp32", 0, NULL}, {"fp16", 1, NULL}, {"bf16", 2, NULL}, {"bfp16", 2, NULL}, {0}};
    static const char *const ours[] = {"fp32", "fp16", "bf16"};
    int dtype = 0;
    if (foreign_word(foreign, root, "communication_data_type", words, &dtype))
        foreign_set(foreign, "train.precision.reduce_dtype", ours[dtype],
                    note(foreign, root, "communication_data_type"));
}

/* "auto" in both is an argument of the script: bf16 is taken. */
static void set_precision(struct foreign *foreign, const struct node *root)
{
    static const char path[] = "train.precision.param_dtype";
    const char *bf16 = foreign_entry(root, "bf16") != NULL ? "bf16" : "bfloat16";
    const bool is_bf16 = is_enabled(foreign, root, bf16);
    const bool is_fp16 =
        is_enabled(foreign, root, "fp16") &&
        !(is_bf16 && foreign_is_auto(foreign_map(foreign, root, "fp16"), "enabled"));
    const char *key = is_bf16 ? bf16 : "fp16";
    const char *dtype = is_bf16 ? "bf16" : "fp16";
    set_reduce_dtype(foreign, root);
    if (is_bf16 && is_fp16)
        diag_add(foreign->diag, DIAG_ERROR, foreign_entry(root, bf16)->key_place,
                 "enable one of the two", "'fp16' and '%s' are both enabled", bf16);
    else if (!is_bf16 && !is_fp16)
        foreign_set(foreign, path, "fp32", "assumed: neither fp16 nor bf16 is enabled");
    else if (foreign_is_auto(foreign_map(foreign, root, key), "enabled"))
        foreign_assume(foreign, path, dtype,
                       "auto: the dtype is an argument of the training script");
    else
        foreign_set(foreign, path, dtype, note(foreign, root, key));
}

static void set_batch(struct foreign *foreign, const struct node *root)
{
    int64_t batch = 0, micro = 0, steps = 0;
    const bool has_batch = foreign_count(foreign, root, "train_batch_size", 1, &batch);
    const bool has_micro =
        foreign_count(foreign, root, "train_micro_batch_size_per_gpu", 1, &micro);
    const bool has_steps = foreign_count(foreign, root, "gradient_accumulation_steps", 1, &steps);
    if (has_micro)
        foreign_set(foreign, "train.micro_batch", number(foreign, micro),
                    note(foreign, root, "train_micro_batch_size_per_gpu"));
    else
        foreign_assume(foreign, "train.micro_batch", "1", "the file does not say it");
    if (has_batch && !has_steps)
        foreign_set(foreign, "train.global_batch", number(foreign, batch),
                    note(foreign, root, "train_batch_size"));
    else if (has_steps)
        foreign_set(foreign, "train.grad_accum", number(foreign, steps),
                    note(foreign, root, "gradient_accumulation_steps"));
    if (!has_batch || !has_steps)
        return;
    const int64_t each = has_micro ? micro * steps : steps;
    foreign_drop(foreign, foreign_entry(root, "train_batch_size"),
                 batch % each == 0
                     ? arena_printf(foreign->arena,
                                    "it follows from the number of GPUs, here %" PRId64,
                                    batch / each)
                     : "it is no multiple of the other two");
}

static void set_optimizer(struct foreign *foreign, const struct node *root)
{
    static const struct choice words[] = {{"adam", 0, NULL},       {"adamw", 0, NULL},
                                          {"sgd", 1, NULL},        {"lamb", 2, NULL},
                                          {"lion", 2, NULL},       {"adagrad", 2, NULL},
                                          {"onebitadam", 2, NULL}, {"zerooneadam", 2, NULL},
                                          {"onebitlamb", 2, NULL}, {"muon", 2, NULL},
                                          {"muadam", 0, NULL},     {"muadamw", 0, NULL},
                                          {"musgd", 1, NULL},      {0}};
    static const struct foreign_key keys[] = {{"type", FOREIGN_USED, NULL},
                                              {"params", FOREIGN_USED, NULL},
                                              {"legacy_fusion", FOREIGN_SILENT, NULL},
                                              {0}};
    const struct node *map = foreign_map(foreign, root, "optimizer");
    const struct node *params = foreign_map(foreign, map, "params");
    int kind = 0;
    bool is_torch = false;
    foreign_classify(foreign, map, keys, "optimizer");
    const bool is_read = foreign_word(foreign, map, "type", words, &kind);
    foreign_set(foreign, "train.optimizer.name", kind == 1 ? "sgd" : "adamw",
                is_read ? note(foreign, map, "type") : "assumed: the file names no optimizer");
    if (kind == 2)
        foreign_drop(foreign, foreign_entry(map, "type"), "AdamW stands in for it");
    if (foreign_bool(foreign, params, "torch_adam", &is_torch) && is_torch)
        foreign_set(foreign, "train.optimizer.impl", "foreach",
                    note(foreign, params, "torch_adam"));
}

static void set_checkpointing(struct foreign *foreign, const struct node *root)
{
    static const struct foreign_key keys[] = {
        {"partition_activations", FOREIGN_DROPPED, "activations stay on their GPU"},
        {"cpu_checkpointing", FOREIGN_DROPPED, "activations stay on their GPU"},
        {"contiguous_memory_optimization", FOREIGN_DROPPED, "activations are allocated one by one"},
        {"number_checkpoints", FOREIGN_SILENT, NULL},
        {"synchronize_checkpoint_boundary", FOREIGN_DROPPED, "the host does not wait there"},
        {"profile", FOREIGN_SILENT, NULL},
        {0}};
    const struct node *map = foreign_map(foreign, root, "activation_checkpointing");
    foreign_classify(foreign, map, keys, "activation_checkpointing");
    deepspeed_set_checkpointing(foreign);
}

/* ---- other dimensions ----------------------------------------------------------------------- */

/* A map with a size: what is more than 1 becomes a dimension of the mesh, which `check` refuses. */
static void set_dimension(struct foreign *foreign, const struct node *root, const char *key,
                          const char *size_key, const char *path, bool is_built)
{
    const struct node_entry *entry = foreign_entry(root, key);
    int64_t size = 1;
    if (entry == NULL)
        return;
    const bool asks = !foreign_is_off(entry->value) && !foreign_is_auto(root, key);
    const struct node *map = asks ? foreign_map(foreign, root, key) : NULL;
    (void)foreign_count(foreign, map, size_key, 0, &size);
    if (size <= 1) {
        foreign_ignore(foreign, entry);
        return;
    }
    foreign_set(foreign, path, number(foreign, size), note(foreign, map, size_key));
    if (is_built) { /* AutoTP: the linear layers, one by one */
        static const char origin[] = "DeepSpeed's AutoTP";
        foreign_default(foreign, "train.tensor_parallel.style", "megatron", origin);
        foreign_default(foreign, "train.tensor_parallel.sequence_parallel", "false", origin);
        foreign_default(foreign, "train.tensor_parallel.loss_parallel", "false", origin);
        return;
    }
    diag_add(foreign->diag, DIAG_WARNING, entry->key_place, NULL,
             "'%s' becomes '%s: %" PRId64 "', which cannot be simulated yet: 'run' refuses it", key,
             path, size);
}

void deepspeed_read(struct foreign *foreign, const struct node *root)
{
    double norm = 0;
    foreign_classify(foreign, root, deepspeed_keys, NULL);
    set_batch(foreign, root);
    set_precision(foreign, root);
    set_optimizer(foreign, root);
    if (foreign_real(foreign, root, "gradient_clipping", &norm))
        foreign_set(foreign, "train.max_grad_norm", arena_printf(foreign->arena, "%.17g", norm),
                    note(foreign, root, "gradient_clipping"));
    else if (foreign_is_auto(root, "gradient_clipping"))
        foreign_default(foreign, "train.max_grad_norm", "1",
                        "auto: the default of Hugging Face's Trainer");
    else if (!foreign_is_written(root, "gradient_clipping"))
        foreign_default(foreign, "train.max_grad_norm", "0", "DeepSpeed's default");
    set_checkpointing(foreign, root);
    set_dimension(foreign, root, "tensor_parallel", "autotp_size", "mesh.tp", true);
    set_dimension(foreign, root, "pipeline", "stages", "mesh.pp", false);
    set_zero(foreign, root);
}
