/* schedule/fsdp1_setup.c: the tables of an FSDP1 program: units, tensors, segments, events. */
#include "schedule/fsdp1_private.h"

static void setup_streams(struct fsdp1_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    static const struct stream streams[] = {{"compute", STREAM_COMPUTE, false},
                                            {"pre-unshard", STREAM_ALL_GATHER_COPY_IN, false},
                                            {"unshard", STREAM_ALL_GATHER, false},
                                            {"post-backward", STREAM_REDUCE_SCATTER, false},
                                            {"all-reduce", STREAM_ALL_REDUCE, false}};
    const bool is_hybrid = fsdp_is_replicated(fsdp) && fsdp_is_sharded(fsdp);
    builder->all_reduce_stream = is_hybrid ? FSDP1_ALL_REDUCE : FSDP1_POST_BACKWARD;
    for (int i = 0; i <= builder->all_reduce_stream; i++)
        *ARENA_PUSH(fsdp->arena, &fsdp->program->streams) = streams[i];
    *ARENA_PUSH(fsdp->arena, &fsdp->program->communicators) = (struct communicator){
        .name = "dp_shard", .purpose = "fsdp", .group = fsdp->settings->shard_group};
    if (fsdp_is_replicated(fsdp))
        *ARENA_PUSH(fsdp->arena, &fsdp->program->communicators) =
            (struct communicator){.name = "dp_replicate",
                                  .purpose = "all-reduce of shards",
                                  .group = fsdp->settings->replicate_group};
}

/*
 * 70: one flat parameter, padded so that the group divides it. The optimizer sees its shard, or
 * with original parameters the pieces of them that lie in it: (parameters + cuts) / ranks on
 * average.
 */
static void setup_units(struct fsdp1_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const int64_t ranks = fsdp->settings->shard_group.ranks;
    const bool is_full = sharding_frees_after_forward(fsdp->settings->fsdp.sharding_strategy);
    builder->units = ARENA_ARRAY(fsdp->arena, struct fsdp1_unit, fsdp->unit_count);
    fsdp_size_flat(fsdp);
    for (int32_t i = 0; i < fsdp->unit_count; i++) {
        struct fsdp_unit *common = &fsdp->units[i];
        builder->units[i].common = common;
        builder->units[i].is_resharded = is_full && i > 0;
        const int32_t trained = common->sizes.trained_count;
        common->optimizer_tensors = trained > 0 ? 1 : 0;
        if (builder->uses_orig_params && trained > 0)
            common->optimizer_tensors = (int32_t)((trained + 2 * (ranks - 1)) / ranks);
    }
}

static void setup_unit_tensors(struct fsdp1_builder *builder, int32_t index)
{
    struct fsdp1_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct precision_config *precision = &fsdp->settings->precision;
    const int64_t param_bytes = dtype_bytes((enum dtype)precision->param_dtype);
    const int64_t reduce_bytes = dtype_bytes((enum dtype)precision->reduce_dtype);
    const struct fsdp_sizes *sizes = &unit->common->sizes;
    const int64_t padded = unit->common->padded;
    const bool casts = sizes->cast_shard > 0;
    const bool is_alone = !fsdp_is_sharded(fsdp);
    unit->cast =
        fsdp_add_unit_tensor(fsdp, index, "cast", is_alone ? 0 : sizes->cast_shard * param_bytes,
                             MEMORY_TEMPORARIES, FSDP1_PRE_UNSHARD);
    unit->flat_params = fsdp_add_unit_tensor(fsdp, index, "flat_params",
                                             casts || !is_alone ? padded * param_bytes : 0,
                                             MEMORY_UNSHARDED_PARAMETERS, FSDP1_UNSHARD);
    unit->flat_grads =
        fsdp_add_unit_tensor(fsdp, index, "flat_grads", sizes->reduced_padded * param_bytes,
                             MEMORY_UNSHARDED_GRADIENTS, FSDP1_COMPUTE);
    unit->kept_grads =
        fsdp_add_unit_tensor(fsdp, index, "accumulated_grads",
                             fsdp_keeps_unsharded(fsdp) ? sizes->reduced_padded * param_bytes : 0,
                             MEMORY_UNSHARDED_GRADIENTS, FSDP1_COMPUTE);
    unit->reduce_input = fsdp_add_unit_tensor(fsdp, index, "reduce_scatter_input",
                                              precision->reduce_dtype != precision->param_dtype
                                                  ? sizes->reduced_padded * reduce_bytes
                                                  : 0,
                                              MEMORY_REDUCE_BUFFERS, FSDP1_POST_BACKWARD);
    fsdp_add_gradient_tensors(fsdp, index, FSDP1_POST_BACKWARD, builder->all_reduce_stream);
}

/* Divisions are passes of one read and one write, timed as casts. */
static void setup_unit_segments(struct fsdp1_builder *builder, int32_t index)
{
    struct fsdp1_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    const enum dtype param = (enum dtype)fsdp->settings->precision.param_dtype;
    const enum dtype reduce = (enum dtype)fsdp->settings->precision.reduce_dtype;
    const double param_bytes = (double)dtype_bytes(param);
    const double reduce_bytes = (double)dtype_bytes(reduce);
    const struct fsdp_sizes *sizes = &unit->common->sizes;
    const double shard = (double)sizes->reduced_shard, padded = (double)sizes->reduced_padded;
    const int64_t ranks = fsdp->settings->shard_group.ranks * fsdp->settings->replicate_group.ranks;
    const int64_t factor = fsdp_pre_divide_factor(fsdp);
    unit->cast_shard = fsdp_add_unit_pass(fsdp, index, "cast_shard", KERNEL_CAST, param,
                                          (double)sizes->cast_stored_bytes +
                                              (double)sizes->cast_shard * param_bytes);
    unit->concat_grads = fsdp_add_unit_pass(fsdp, index, "concat_grads", KERNEL_CHUNK_CAT, param,
                                            ((double)sizes->trained + padded) * param_bytes);
    unit->add_grads = fsdp_add_unit_pass(fsdp, index, "add_grads", KERNEL_ELEMENTWISE, param,
                                         unit->kept_grads >= 0 ? padded * 3 * param_bytes : 0);
    unit->cast_unsharded_grads =
        fsdp_add_unit_pass(fsdp, index, "cast_unsharded_grads", KERNEL_CAST, reduce,
                           reduce != param ? padded * (param_bytes + reduce_bytes) : 0);
    unit->pre_divide = fsdp_add_unit_pass(fsdp, index, "pre_divide", KERNEL_CAST, reduce,
                                          factor > 1 ? padded * 2 * reduce_bytes : 0);
    unit->post_divide = fsdp_add_unit_pass(fsdp, index, "post_divide", KERNEL_CAST, reduce,
                                           ranks > factor ? shard * 2 * reduce_bytes : 0);
    fsdp_add_gradient_segments(fsdp, index);
}

static void setup_unit(struct fsdp1_builder *builder, int32_t index)
{
    struct fsdp1_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    const char *name = unit->common->name;
    const struct unit *listed = fsdp_list_unit(fsdp, index);
    setup_unit_tensors(builder, index);
    setup_unit_segments(builder, index);
    unit->all_gather =
        fsdp_add_collective(fsdp, COLLECTIVE_ALL_GATHER, 0, (double)listed->all_gather_bytes);
    unit->reduce_scatter = fsdp_add_collective(fsdp, COLLECTIVE_REDUCE_SCATTER, 0,
                                               (double)listed->reduce_scatter_bytes);
    const int64_t shard_bytes = listed->reduce_scatter_bytes / fsdp->settings->shard_group.ranks;
    if (fsdp_is_replicated(fsdp))
        unit->all_reduce = fsdp_add_collective(fsdp, COLLECTIVE_ALL_REDUCE, 1, (double)shard_bytes);
    unit->pre_unsharded = fsdp_add_event(fsdp, "pre_unsharded", name);
    unit->unsharded = fsdp_add_event(fsdp, "unsharded", name);
    unit->grads_ready = fsdp_add_event(fsdp, "grads_ready", name);
    unit->scattered = builder->all_reduce_stream == FSDP1_ALL_REDUCE
                          ? fsdp_add_event(fsdp, "scattered", name)
                          : -1;
    unit->forward_freed = fsdp_add_event(fsdp, "forward_freed", name);
    unit->backward_freed = fsdp_add_event(fsdp, "backward_freed", name);
    fsdp_add_shard(fsdp, index, 1);
    fsdp_add_offload(fsdp, index, FSDP1_PRE_UNSHARD);
    optimizer_add_state(fsdp, index);
}

/*
 * What a reentrant checkpoint around a frozen unit leaves behind. Its recompute begins with a
 * detached input, and the unit's pre-forward registers a multi-grad hook on that, since its flat
 * parameter gets no gradient to hang a hook on (_register_post_backward_reshard_only_hook of
 * _runtime_utils.py). The hook's closure holds the input's gradient accumulator, which holds the
 * input (register_multi_grad_hook of torch/autograd/graph.py), so neither the input nor its .grad
 * goes before the hook is taken off, at the end of backward (_finalize_params). The gradient is the
 * one that the unit before is given, and is counted with that one's backward first.
 */
static void setup_kept_inputs(struct fsdp1_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct model *model = fsdp->model;
    bool is_behind = false;
    builder->kept_inputs = ARENA_ARRAY(fsdp->arena, int32_t, model->module_count);
    for (int32_t i = model->module_count - 1; i >= 0; i--) {
        const struct module_kind *kind = fsdp_kind(fsdp, i);
        const bool is_kept = fsdp->settings->is_checkpoint_reentrant &&
                             !fsdp->settings->is_checkpoint_inside && kind->is_recomputed &&
                             kind->frozen_numel > 0 && !builder->uses_orig_params;
        builder->kept_inputs[i] = -1;
        if (!is_kept)
            continue;
        builder->kept_inputs[i] = fsdp_add_unit_tensor(fsdp, fsdp->modules[i].unit, "kept_input",
                                                       kind->output_bytes * (is_behind ? 2 : 1),
                                                       MEMORY_ACTIVATIONS, FSDP1_COMPUTE);
        is_behind = true;
    }
}

void fsdp1_setup(struct fsdp1_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    setup_streams(builder);
    fsdp_assign_units(fsdp, !builder->uses_orig_params);
    setup_units(builder);
    builder->post_forward_order = ARENA_ARRAY(fsdp->arena, int32_t, fsdp->unit_count);
    for (int32_t i = 0; i < fsdp->unit_count; i++)
        setup_unit(builder, i);
    fsdp_add_modules(fsdp);
    fsdp_add_runs(fsdp);
    setup_kept_inputs(builder);
    optimizer_setup(fsdp);
    builder->root_event = fsdp_add_event(fsdp, "root_pre_forward", "root");
    builder->done_event = fsdp_add_event(fsdp, "post_backward_done", "root");
    builder->offloaded_event =
        fsdp_offloads(fsdp) ? fsdp_add_event(fsdp, "gradients_offloaded", "root") : -1;
    builder->all_reduced_event = builder->all_reduce_stream == FSDP1_ALL_REDUCE
                                     ? fsdp_add_event(fsdp, "all_reduce_done", "root")
                                     : -1;
    fsdp_add_workspace(fsdp);
}
