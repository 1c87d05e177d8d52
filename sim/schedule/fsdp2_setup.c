/* schedule/fsdp2_setup.c: the tables of an FSDP2 program: units, tensors, segments, events. */
#include "schedule/fsdp2_private.h"

int64_t param_shard_numel(const struct param *param, int64_t ranks)
{
    return (param->dim0 + ranks - 1) / ranks * param->rest;
}

/* 22: between forward and backward units are sharded over a smaller group. */
static bool slices_parameters(const struct fsdp2_builder *builder)
{
    return builder->fsdp.settings->fsdp.reshard_after_forward > 1;
}

static void setup_streams(struct fsdp2_builder *builder)
{
    static const struct stream streams[] = {{"compute", STREAM_COMPUTE, false},
                                            {"all-gather copy-in", STREAM_ALL_GATHER_COPY_IN, true},
                                            {"all-gather", STREAM_ALL_GATHER, true},
                                            {"reduce-scatter", STREAM_REDUCE_SCATTER, true},
                                            {"all-reduce", STREAM_ALL_REDUCE, false}};
    struct program *program = builder->fsdp.program;
    const int count = fsdp_is_replicated(&builder->fsdp) ? FSDP2_ALL_REDUCE + 1 : FSDP2_ALL_REDUCE;
    for (int i = 0; i < count; i++)
        *ARENA_PUSH(builder->fsdp.arena, &program->streams) = streams[i];
    const struct group group = builder->fsdp.settings->shard_group;
    *ARENA_PUSH(builder->fsdp.arena, &program->communicators) =
        (struct communicator){.name = "dp_shard", .purpose = "fsdp", .group = group};
    if (builder->fsdp.settings->fsdp.separate_reduce_scatter_communicator)
        *ARENA_PUSH(builder->fsdp.arena, &program->communicators) = (struct communicator){
            .name = "dp_shard.reduce", .purpose = "reduce-scatter only", .group = group};
    builder->reduce_communicator = program->communicators.count - 1;
    builder->slice_communicator = -1;
    if (slices_parameters(builder)) {
        *ARENA_PUSH(builder->fsdp.arena, &program->communicators) =
            (struct communicator){.name = "dp_shard.post_forward",
                                  .purpose = "all-gather of resharded parameters",
                                  .group = builder->fsdp.settings->post_forward_group};
        builder->slice_communicator = program->communicators.count - 1;
    }
    if (fsdp_is_replicated(&builder->fsdp))
        *ARENA_PUSH(builder->fsdp.arena, &program->communicators) =
            (struct communicator){.name = "dp_replicate",
                                  .purpose = "all-reduce of shards",
                                  .group = builder->fsdp.settings->replicate_group};
}

/* 33: the first module that backward comes to, behind some that it does not: its inputs carry no
   gradient. */
static bool begins_graph(const struct fsdp_builder *builder, int32_t module)
{
    return module > 0 && fsdp_kind(builder, module - 1)->is_unreached &&
           !fsdp_kind(builder, module)->is_unreached;
}

/* The state of each unit; what it holds gathered: every parameter padded by itself. */
static void setup_units(struct fsdp2_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const bool reshards = fsdp->settings->fsdp.reshard_after_forward != 0;
    builder->units = ARENA_ARRAY(fsdp->arena, struct fsdp2_unit, fsdp->unit_count);
    fsdp_size_by_param(fsdp, fsdp->settings->shard_group.ranks);
    for (int32_t i = 0; i < fsdp->unit_count; i++) {
        struct fsdp2_unit *unit = &builder->units[i];
        unit->common = &fsdp->units[i];
        const enum module_role role = fsdp_kind(fsdp, unit->common->first_module)->role;
        const bool is_kept = fsdp->settings->fsdp.wrap.policy == WRAP_TORCHTITAN &&
                             (role == MODULE_NORM || role == MODULE_HEAD ||
                              (role == MODULE_EMBEDDING && fsdp->model->is_tied));
        unit->is_resharded = i > 0 && reshards && !is_kept;
        unit->reduces_at_end =
            i == 0 || role == MODULE_EMBEDDING || begins_graph(fsdp, unit->common->first_module);
        unit->is_needed_in_backward =
            fsdp->settings->fsdp.unshard_in_backward || fsdp->model->is_tied ||
            unit->common->parameters != fsdp_kind(fsdp, unit->common->first_module)->numel ||
            role != MODULE_EMBEDDING;
        unit->common->optimizer_tensors = unit->common->sizes.trained_count;
    }
}

static void setup_unit_tensors(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct precision_config *precision = &fsdp->settings->precision;
    const int64_t param_bytes = dtype_bytes((enum dtype)precision->param_dtype);
    const int64_t reduce_bytes = dtype_bytes((enum dtype)precision->reduce_dtype);
    const struct fsdp_sizes *sizes = &unit->common->sizes;
    const int64_t padded = unit->common->padded;
    unit->cast = fsdp_add_unit_tensor(fsdp, index, "cast", sizes->cast_shard * param_bytes,
                                      MEMORY_TEMPORARIES, FSDP2_COPY_IN);
    unit->gather_buffer =
        fsdp_add_unit_tensor(fsdp, index, "all_gather_buffer", padded * param_bytes,
                             MEMORY_UNSHARDED_PARAMETERS, FSDP2_COPY_IN);
    unit->params = fsdp_add_unit_tensor(fsdp, index, "params", padded * param_bytes,
                                        MEMORY_UNSHARDED_PARAMETERS, FSDP2_COMPUTE);
    fsdp_split_by_param(fsdp, unit->params, index, false, 1);
    unit->kept_grads =
        fsdp_add_unit_tensor(fsdp, index, "accumulated_grads",
                             fsdp_keeps_unsharded(fsdp) ? sizes->trained * reduce_bytes : 0,
                             MEMORY_UNSHARDED_GRADIENTS, FSDP2_COMPUTE);
    fsdp_split_by_param(fsdp, unit->kept_grads, index, true, 1);
    unit->reduce_input = fsdp_add_unit_tensor(fsdp, index, "reduce_scatter_input",
                                              sizes->reduced_padded * reduce_bytes,
                                              MEMORY_REDUCE_BUFFERS, FSDP2_COMPUTE);
    const bool is_replicated = fsdp_is_replicated(fsdp);
    const bool defers =
        is_replicated && fsdp->settings->fsdp.defer_all_reduce && fsdp_reduces_again(fsdp);
    unit->partial = fsdp_add_unit_tensor(fsdp, index, "partial_reduce_output",
                                         defers ? sizes->reduced_shard * reduce_bytes : 0,
                                         MEMORY_REDUCE_BUFFERS, FSDP2_REDUCE_SCATTER);
    fsdp_add_gradient_tensors(fsdp, index, FSDP2_REDUCE_SCATTER,
                              is_replicated ? FSDP2_ALL_REDUCE : FSDP2_REDUCE_SCATTER);
}

/* 53: gradients of earlier microbatches in reduce_dtype: cast or as they are, added to parameter by
   parameter, copied into the reduce-scatter input. */
static void setup_kept_gradients(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct precision_config *precision = &fsdp->settings->precision;
    const enum dtype reduce = (enum dtype)precision->reduce_dtype;
    const double param_bytes = (double)dtype_bytes((enum dtype)precision->param_dtype);
    const double reduce_bytes = (double)dtype_bytes(reduce);
    const struct fsdp_sizes *sizes = &unit->common->sizes;
    const double trained = unit->kept_grads >= 0 ? (double)sizes->trained : 0;
    const bool casts = precision->reduce_dtype != precision->param_dtype;
    unit->keep_grads = fsdp_add_param_passes(fsdp, index, "keep_grads", KERNEL_CAST, reduce,
                                             casts ? trained * (param_bytes + reduce_bytes) : 0,
                                             sizes->trained_count);
    unit->add_grads =
        fsdp_add_param_passes(fsdp, index, "add_grads", KERNEL_ELEMENTWISE, reduce,
                              trained * (2 * reduce_bytes + param_bytes), sizes->trained_count);
    unit->chunk_cat_kept = fsdp_add_unit_pass(
        fsdp, index, "chunk_cat_kept", KERNEL_CHUNK_CAT, reduce,
        trained > 0 ? (trained + (double)sizes->reduced_padded) * reduce_bytes : 0);
}

/* 32: fp16 is divided before and after a sum; other dtypes are averaged by NCCL. */
static void setup_divisions(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct policy_settings *settings = fsdp->settings;
    const enum dtype reduce = (enum dtype)settings->precision.reduce_dtype;
    const int64_t ranks = settings->shard_group.ranks * settings->replicate_group.ranks;
    const int64_t factor = reduce == DTYPE_FP16 ? fsdp_pre_divide_factor(fsdp) : ranks;
    const double moved = 2 * (double)dtype_bytes(reduce);
    const struct fsdp_sizes *sizes = &unit->common->sizes;
    unit->pre_divide = fsdp_add_unit_pass(
        fsdp, index, "pre_divide", KERNEL_CAST, reduce,
        reduce == DTYPE_FP16 && factor > 1 ? (double)sizes->reduced_padded * moved : 0);
    unit->post_divide =
        fsdp_add_unit_pass(fsdp, index, "post_divide", KERNEL_CAST, reduce,
                           factor < ranks ? (double)sizes->reduced_shard * moved : 0);
}

static void setup_unit_segments(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct precision_config *precision = &fsdp->settings->precision;
    const enum dtype param = (enum dtype)precision->param_dtype;
    const enum dtype reduce = (enum dtype)precision->reduce_dtype;
    const double param_bytes = (double)dtype_bytes(param);
    const double reduce_bytes = (double)dtype_bytes(reduce);
    const struct fsdp_sizes *sizes = &unit->common->sizes;
    const double shard = (double)unit->common->shard, padded = (double)unit->common->padded;
    const double cast = (double)sizes->cast_stored_bytes + (double)sizes->cast_shard * param_bytes;
    unit->copy_in = fsdp_add_unit_pass(fsdp, index, "copy_in", KERNEL_COPY_IN, param,
                                       shard * 2 * param_bytes + cast);
    unit->copy_out = fsdp_add_unit_pass(fsdp, index, "copy_out", KERNEL_COPY_OUT, param,
                                        padded * 2 * param_bytes);
    unit->chunk_cat = fsdp_add_unit_pass(fsdp, index, "chunk_cat", KERNEL_CHUNK_CAT, reduce,
                                         (double)sizes->trained * param_bytes +
                                             (double)sizes->reduced_padded * reduce_bytes);
    setup_kept_gradients(builder, index);
    unit->sum_partial = fsdp_add_unit_pass(
        fsdp, index, "sum_partial", KERNEL_ELEMENTWISE, reduce,
        unit->partial >= 0 ? (double)sizes->reduced_shard * 3 * reduce_bytes : 0);
    setup_divisions(builder, index);
    fsdp_add_gradient_segments(fsdp, index);
}

/* 22: this rank's slice, parameter by parameter; the padded whole is a multiple of the group. */
static void setup_slice(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    const enum dtype param = (enum dtype)fsdp->settings->precision.param_dtype;
    const bool is_sliced = slices_parameters(builder) && unit->is_resharded;
    const int64_t whole = unit->common->padded * dtype_bytes(param);
    const int64_t bytes = is_sliced ? whole / fsdp->settings->post_forward_group.ranks : 0;
    const int32_t count = unit->common->param_count;
    unit->post_forward_shard = fsdp_add_unit_tensor(fsdp, index, "post_forward_shard", bytes,
                                                    MEMORY_UNSHARDED_PARAMETERS, FSDP2_COMPUTE);
    fsdp_split_by_param(fsdp, unit->post_forward_shard, index, false, 1);
    unit->keep_slice = fsdp_add_param_passes(fsdp, index, "keep_slice", KERNEL_COPY_OUT, param,
                                             2 * (double)bytes, count);
    unit->copy_in_slice =
        fsdp_add_unit_pass(fsdp, index, "copy_in_slice", KERNEL_COPY_IN, param, 2 * (double)bytes);
    unit->all_gather_slices = -1;
    unit->resharded = -1;
    if (bytes == 0)
        return;
    unit->all_gather_slices = fsdp_add_collective(fsdp, COLLECTIVE_ALL_GATHER,
                                                  builder->slice_communicator, (double)whole);
    unit->resharded = fsdp_add_event(fsdp, "resharded", unit->common->name);
}

static void setup_unit(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp2_unit *unit = &builder->units[index];
    struct fsdp_builder *fsdp = &builder->fsdp;
    const char *name = unit->common->name;
    const struct unit *listed = fsdp_list_unit(fsdp, index);
    setup_unit_tensors(builder, index);
    setup_unit_segments(builder, index);
    setup_slice(builder, index);
    unit->all_gather =
        fsdp_add_collective(fsdp, COLLECTIVE_ALL_GATHER, 0, (double)listed->all_gather_bytes);
    unit->reduce_scatter =
        fsdp_add_collective(fsdp, COLLECTIVE_REDUCE_SCATTER, builder->reduce_communicator,
                            (double)listed->reduce_scatter_bytes);
    const int64_t shard_bytes = listed->reduce_scatter_bytes / fsdp->settings->shard_group.ranks;
    if (fsdp_is_replicated(fsdp))
        unit->all_reduce =
            fsdp_add_collective(fsdp, COLLECTIVE_ALL_REDUCE, fsdp->program->communicators.count - 1,
                                (double)shard_bytes);
    if (fsdp->settings->precision.reduce_dtype == DTYPE_FP16) { /* 32: a sum */
        fsdp->program->collectives.items[unit->reduce_scatter].is_average = false;
        if (fsdp_is_replicated(fsdp))
            fsdp->program->collectives.items[unit->all_reduce].is_average = false;
    }
    unit->copied_in = fsdp_add_event(fsdp, "copied_in", name);
    unit->gathered = fsdp_add_event(fsdp, "gathered", name);
    unit->copied_out = fsdp_add_event(fsdp, "copied_out", name);
    unit->reduce_ready = fsdp_add_event(fsdp, "reduce_ready", name);
    unit->reduced = fsdp_add_event(fsdp, "reduced", name);
    unit->post_reduced = fsdp_add_event(fsdp, "post_reduced", name);
    unit->summed = fsdp_is_replicated(fsdp) ? fsdp_add_event(fsdp, "summed", name) : -1;
    fsdp_add_shard(fsdp, index, unit->common->param_count);
    fsdp_add_offload(fsdp, index, FSDP2_COPY_IN);
    optimizer_add_state(fsdp, index);
}

void fsdp2_setup(struct fsdp2_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    setup_streams(builder);
    fsdp_assign_units(fsdp, false);
    setup_units(builder);
    const bool is_kept = fsdp->settings->fsdp.is_last_backward == MICROBATCH_LAST;
    builder->post_forward_order =
        ARENA_ARRAY(fsdp->arena, int32_t,
                    fsdp->unit_count * (is_kept ? (int32_t)fsdp->settings->grad_accum : 1));
    builder->pending_reduce = ARENA_ARRAY(fsdp->arena, int32_t, fsdp->unit_count + 1);
    builder->held_reduced = ARENA_ARRAY(fsdp->arena, int32_t, fsdp->unit_count);
    for (int32_t i = 0; i < fsdp->unit_count; i++)
        setup_unit(builder, i);
    fsdp_add_modules(fsdp);
    fsdp_add_runs(fsdp);
    optimizer_setup(fsdp);
    builder->root_event = fsdp_add_event(fsdp, "root_pre_forward", "root");
    fsdp_add_workspace(fsdp);
}
