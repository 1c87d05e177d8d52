/* run/experiment_build.c: a checked configuration → model, program, layout. */
#include <inttypes.h>

#include "cluster/group_layout.h"
#include "run/experiment_private.h"
#include "run/shelf.h"

/* Sections that a program knows nothing of (but for what program_key adds). */
static const char *const program_blind[] = {"cluster", "simulate", "mfu_convention", "cost", NULL};

static enum status build_model(struct experiment *experiment, struct arena *arena)
{
    const struct train_config *train = &experiment->train;
    const bool is_every =
        train->checkpointing.policy == CHECKPOINT_FULL && train->checkpointing.every > 1;
    const struct train_shape shape = {
        .seq_len = train->seq_len,
        .decoder_seq_len = train->decoder_seq_len,
        .micro_batch = train->micro_batch,
        .compute_dtype = (enum dtype)train->precision.param_dtype,
        .checkpointing = is_every ? CHECKPOINT_EVERY
                                  : (enum activation_checkpointing)train->checkpointing.policy,
        .checkpoint_every = train->checkpointing.every,
        .stops_early = train->checkpointing.early_stop && !train->checkpointing.reentrant,
        .is_reentrant = train->checkpointing.reentrant,
        .reruns_attention = !train->checkpointing.save_attention,
        .attention = (enum attention_impl)train->attention,
        .loss = (enum loss_impl)train->loss.impl,
        .loss_chunks = train->loss.chunks,
        .loss_upcast = train->loss.upcast != UPCAST_NONE,
        .model_upcasts = train->loss.upcast == UPCAST_MODEL,
        .kept_output = (enum kept_output)train->loss.keeps_logits,
        .caches_keys = train->key_value_cache,
        .loss_shifted = train->loss.shifted,
        .loss_metrics = train->loss.metrics,
        .experts = (enum expert_impl)train->experts,
        .rotary = (enum rotary_form)train->rotary,
        .checks_packing = train->checks_packing,
        .is_compiled = train->compile,
        .has_fused_kernels = train->fused_kernels != FUSED_NONE,
        .has_eager_activation = train->fused_kernels == FUSED_NORM_ROTARY,
        .float8 = (enum float8_recipe)train->float8,
        .gathers_float8 = experiment->fsdp.float8_all_gather,
        .has_fused_norms = train->norms.fused,
        .has_cooperative_norms = train->norms.cooperative,
        .norm_sm_margin = train->norms.sm_margin,
        .lora = {.rank = train->lora.rank,
                 .targets = train->lora.targets,
                 .dropout = train->lora.dropout,
                 .has_wide_input = train->lora.adapter_dtype != 0,
                 .has_fused_scale = train->lora.fused_scale,
                 .copies_output = train->lora.output_copy,
                 .quantization = (enum quantization)train->lora.quantization,
                 .has_double_quant = train->lora.double_quant,
                 .holds_inputs = train->lora.holds_inputs},
        .tensor_parallel = tensor_parallel_shape_of(experiment),
        .frozen = train->frozen};
    enum status status = tensor_parallel_check_cut(experiment, &shape);
    if (status != STATUS_OK)
        return status;
    status =
        model_build(arena, &experiment->model_config, &shape, &experiment->model, experiment->diag);
    if (status == STATUS_OK)
        status = frozen_check_modules(experiment);
    return status == STATUS_OK ? lora_check_targets(experiment) : status;
}

enum status experiment_build_model(struct experiment *experiment)
{
    return build_model(experiment, &experiment->arena);
}

/* Ranks fold as far as the program's communicators let them. */
static enum status build_layout(struct experiment *experiment)
{
    const struct program *program = experiment->program;
    const int32_t count = program->communicators.count;
    struct group *groups = ARENA_ARRAY(&experiment->arena, struct group, count);
    for (int32_t i = 0; i < count; i++)
        groups[i] = program->communicators.items[i].group;
    struct cluster *cluster = ARENA_NEW(&experiment->arena, struct cluster);
    *cluster = microbatch_costs_cluster(experiment);
    return layout_build_for_groups(&experiment->arena, cluster, experiment->nodes,
                                   experiment->gpus_per_node, experiment->simulate.fold != 0,
                                   groups, count, &experiment->layout, experiment->diag);
}

/* Whatever the program follows from: all that is said outside the cluster and how it is simulated,
   the mesh's size, and what build_program reads of the GPU. */
static struct hash128 program_key(const struct experiment *experiment)
{
    struct hash128 key = config_hash_without(&experiment->config, program_blind);
    hash128_u64(&key, (uint64_t)experiment->nodes);
    hash128_u64(&key, (uint64_t)experiment->gpus_per_node);
    hash128_u64(&key, (uint64_t)experiment->cluster.gpu.workspace_bytes);
    return hash128_done(key);
}

/* Of the cluster it may read what is in program_key, and nothing else. */
static enum status build_program(struct experiment *experiment, struct arena *arena)
{
    const struct train_config *train = &experiment->train;
    enum status status = build_model(experiment, arena);
    if (status != STATUS_OK)
        return status;
    const bool needs_uniform = train->frozen.count > 0 && experiment->fsdp.api == API_FSDP1 &&
                               !experiment->fsdp.use_orig_params && !train->compile;
    status =
        wrap_check(&experiment->config, experiment->model, &experiment->fsdp.wrap, needs_uniform);
    const int api = experiment->fsdp.api;
    const bool is_zero = api == API_ZERO1 || api == API_ZERO2 || api == API_ZERO3;
    if (status == STATUS_OK && is_zero)
        status = zero_check_pieces(&experiment->config, experiment->model, &experiment->zero, api,
                                   experiment->mesh.dp_shard);
    if (status != STATUS_OK)
        return status;
    struct mesh_groups groups;
    status = mesh_groups_find(experiment, &groups);
    if (status != STATUS_OK)
        return status;
    const struct policy_settings settings = {
        .fsdp = experiment->fsdp,
        .ddp = experiment->ddp,
        .zero = experiment->zero,
        .precision = train->precision,
        .optimizer = train->optimizer,
        .shard_group = groups.shard,
        .replicate_group = groups.replicate,
        .post_forward_group = groups.post_forward,
        .secondary_group = groups.secondary,
        .tensor_group = groups.tensor,
        .dp_group = groups.data,
        .base_dtype = lora_base_dtype(train),
        .kept_output = (enum kept_output)train->loss.keeps_logits,
        .grad_accum = train->grad_accum,
        .host_syncs = train->host_syncs,
        .hardware_queues = train->hardware_queues,
        .is_compiled = train->compile,
        .is_checkpoint_per_child = train->checkpointing.policy == CHECKPOINT_PER_CHILD,
        .is_checkpoint_reentrant = train->checkpointing.reentrant,
        .is_checkpoint_inside = train->checkpointing.inside_unit,
        .is_clipping = train->max_grad_norm > 0,
        .checks_gradients = is_zero,
        .workspace_bytes = experiment->cluster.gpu.workspace_bytes};
    experiment->program = policy_build(arena, experiment->model, &settings);
    if (train->loading.sample_time_s > 0 || train->loading.sample_bytes > 0)
        program_add_data_loader(arena, experiment->program, loading_ahead(experiment));
    return STATUS_OK;
}

/* A program that many configurations have in common is built once. One of which there is something
   to say is for this configuration alone. */
static enum status find_program(struct experiment *experiment)
{
    struct config_cache *cache = experiment->config.cache;
    if (cache == NULL)
        return build_program(experiment, &experiment->arena);
    const struct hash128 key = program_key(experiment);
    struct shelved *shelved = shelf_find(cache, key);
    if (shelved != NULL) {
        experiment->shelved = shelved;
        experiment->model = shelved->model;
        experiment->program = shelved->program;
        return STATUS_OK;
    }
    const int32_t messages = experiment->diag->count;
    shelved = shelf_add(cache, key);
    enum status status = build_program(experiment, &shelved->arena);
    shelved->model = experiment->model;
    shelved->program = experiment->program;
    shelved->is_for_one = status != STATUS_OK || experiment->diag->count != messages;
    experiment->shelved = shelved;
    return status;
}

enum status experiment_build(struct experiment *experiment)
{
    experiment_check_built(experiment, false);
    if (experiment->diag->error_count > 0)
        return STATUS_INPUT;
    enum status status = find_program(experiment);
    if (status == STATUS_OK)
        status = build_layout(experiment);
    if (status == STATUS_OK)
        microbatch_costs_build(experiment);
    return status;
}
