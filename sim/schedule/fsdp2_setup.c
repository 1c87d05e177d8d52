/* schedule/fsdp2_setup.c: the tables of an FSDP2 program: units, tensors, segments, events. */
#include "schedule/fsdp2_private.h"

int64_t param_shard_numel(const struct param *param, int64_t ranks)
{
    return (param->dim0 + ranks - 1) / ranks * param->rest;
}

static const struct module_kind *kind_of(const struct fsdp2_builder *builder, int32_t module)
{
    return &builder->model->kinds[builder->model->modules[module].kind_idx];
}

static int32_t add_event(struct fsdp2_builder *builder, const char *what, const char *unit)
{
    *ARENA_PUSH(builder->arena, &builder->program->events) =
        arena_printf(builder->arena, "%s(%s)", what, unit);
    return builder->program->events.count - 1;
}

/* -1 when there is nothing to hold. */
static int32_t add_tensor(struct fsdp2_builder *builder, struct tensor tensor)
{
    if (tensor.bytes <= 0)
        return -1;
    if (tensor.pieces < 1)
        tensor.pieces = 1;
    *ARENA_PUSH(builder->arena, &builder->program->tensors) = tensor;
    return builder->program->tensors.count - 1;
}

static int32_t add_segment(struct fsdp2_builder *builder, struct segment segment)
{
    *ARENA_PUSH(builder->arena, &builder->program->segments) = segment;
    return builder->program->segments.count - 1;
}

/* One memory-bound kernel that FSDP or the optimizer issues; no bytes: no segment. */
static int32_t add_pass(struct fsdp2_builder *builder, const char *name, enum kernel_kind kind,
                        enum dtype dtype, double bytes, bool is_optimizer)
{
    if (bytes <= 0)
        return -1;
    struct kernel *kernel = ARENA_NEW(builder->arena, struct kernel);
    *kernel = (struct kernel){.name = name, .kind = kind, .dtype = dtype, .bytes = bytes};
    return add_segment(builder, (struct segment){.name = name,
                                                 .kernels = kernel,
                                                 .kernel_count = 1,
                                                 .host_cost = HOST_KERNEL,
                                                 .is_optimizer = is_optimizer});
}

static int32_t add_collective(struct fsdp2_builder *builder, enum collective_op op,
                              int32_t communicator, double bytes)
{
    *ARENA_PUSH(builder->arena, &builder->program->collectives) =
        (struct collective){.op = op, .communicator = communicator, .bytes = bytes};
    return builder->program->collectives.count - 1;
}

static void setup_streams(struct fsdp2_builder *builder)
{
    static const struct stream streams[] = {{"compute", STREAM_COMPUTE, false},
                                            {"all-gather copy-in", STREAM_ALL_GATHER_COPY_IN, true},
                                            {"all-gather", STREAM_ALL_GATHER, true},
                                            {"reduce-scatter", STREAM_REDUCE_SCATTER, true}};
    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
        *ARENA_PUSH(builder->arena, &builder->program->streams) = streams[i];
    const struct group group = builder->settings->shard_group;
    *ARENA_PUSH(builder->arena, &builder->program->communicators) =
        (struct communicator){.name = "dp_shard", .purpose = "fsdp", .group = group};
    if (builder->settings->fsdp.separate_reduce_scatter_communicator)
        *ARENA_PUSH(builder->arena, &builder->program->communicators) = (struct communicator){
            .name = "dp_shard.reduce", .purpose = "reduce-scatter only", .group = group};
}

/* Modules → units. Root is unit 0 and owns what no other unit takes. */
static void assign_units(struct fsdp2_builder *builder)
{
    const struct model *model = builder->model;
    const bool is_torchtitan = builder->settings->fsdp.wrap == WRAP_TORCHTITAN;
    const bool reshards = builder->settings->fsdp.reshard_after_forward != 0;
    builder->units = ARENA_ARRAY(builder->arena, struct fsdp_unit, model->module_count + 1);
    builder->modules = ARENA_ARRAY(builder->arena, struct fsdp_module, model->module_count);
    builder->units[0] = (struct fsdp_unit){.is_root = true, .reduces_at_end = true};
    builder->unit_count = 1;
    /* Tied weights must be in one unit: embedding, norm and head together, first to be reached. */
    int32_t embedding_unit = 0, head_unit = 0;
    for (int32_t i = 0; i < model->module_count; i++) {
        const enum module_role role = kind_of(builder, i)->role;
        struct fsdp_module *module = &builder->modules[i];
        const bool is_embedding = role == MODULE_EMBEDDING;
        const bool is_head = role == MODULE_NORM || role == MODULE_HEAD;
        if (role == MODULE_BLOCK || (is_torchtitan && is_embedding) ||
            (is_torchtitan && is_head && !model->is_tied && head_unit == 0)) {
            builder->units[builder->unit_count] =
                (struct fsdp_unit){.first_module = i,
                                   .is_resharded = reshards && !is_head,
                                   .reduces_at_end = is_embedding};
            module->unit = builder->unit_count++;
            if (is_embedding)
                embedding_unit = module->unit;
            if (is_head)
                head_unit = module->unit;
        } else if (is_torchtitan && is_head) {
            module->unit = model->is_tied ? embedding_unit : head_unit;
        } else {
            module->unit = role == MODULE_LOSS ? -1 : 0;
        }
    }
    if (is_torchtitan && model->is_tied && embedding_unit != 0)
        builder->units[embedding_unit].is_resharded = false;
}

struct unit_sizes {
    int64_t parameters, padded, shard; /* elements */
    int32_t param_count;
};

static struct unit_sizes measure_unit(const struct fsdp2_builder *builder, int32_t unit)
{
    const int64_t ranks = builder->settings->shard_group.ranks;
    struct unit_sizes sizes = {0};
    for (int32_t i = 0; i < builder->model->module_count; i++) {
        if (builder->modules[i].unit != unit)
            continue;
        const struct module_kind *kind = kind_of(builder, i);
        for (int32_t p = 0; p < kind->param_count; p++) {
            const int64_t shard = param_shard_numel(&kind->params[p], ranks);
            sizes.parameters += kind->params[p].dim0 * kind->params[p].rest;
            sizes.shard += shard;
            sizes.padded += shard * ranks;
            sizes.param_count++;
        }
    }
    return sizes;
}

static const char *unit_name(struct fsdp2_builder *builder, int32_t unit)
{
    if (unit == 0)
        return "root";
    const char *name = NULL;
    for (int32_t i = 0; i < builder->model->module_count; i++) {
        if (builder->modules[i].unit != unit)
            continue;
        name = name == NULL
                   ? builder->model->modules[i].name
                   : arena_printf(builder->arena, "%s+%s", name, builder->model->modules[i].name);
    }
    return name;
}

static void setup_unit_tensors(struct fsdp2_builder *builder, int32_t index,
                               const struct unit_sizes *sizes, const char *name)
{
    struct fsdp_unit *unit = &builder->units[index];
    const struct precision_config *precision = &builder->settings->precision;
    const int64_t param_bytes = dtype_bytes((enum dtype)precision->param_dtype);
    const int64_t reduce_bytes = dtype_bytes((enum dtype)precision->reduce_dtype);
    const int64_t storage_bytes = dtype_bytes((enum dtype)precision->storage_dtype);
    const bool casts = precision->param_dtype != precision->storage_dtype;
    const bool casts_grads = precision->reduce_dtype != precision->storage_dtype;
    struct arena *arena = builder->arena;
    unit->cast =
        add_tensor(builder, (struct tensor){.name = arena_printf(arena, "cast(%s)", name),
                                            .bytes = casts ? sizes->shard * param_bytes : 0,
                                            .category = MEMORY_TEMPORARIES,
                                            .stream = FSDP2_COPY_IN,
                                            .unit = index});
    unit->gather_buffer = add_tensor(
        builder, (struct tensor){.name = arena_printf(arena, "all_gather_buffer(%s)", name),
                                 .bytes = sizes->padded * param_bytes,
                                 .category = MEMORY_UNSHARDED_PARAMETERS,
                                 .stream = FSDP2_COPY_IN,
                                 .unit = index});
    unit->params =
        add_tensor(builder, (struct tensor){.name = arena_printf(arena, "params(%s)", name),
                                            .bytes = sizes->padded * param_bytes,
                                            .category = MEMORY_UNSHARDED_PARAMETERS,
                                            .stream = FSDP2_COMPUTE,
                                            .unit = index,
                                            .pieces = sizes->param_count});
    unit->reduce_input = add_tensor(
        builder, (struct tensor){.name = arena_printf(arena, "reduce_scatter_input(%s)", name),
                                 .bytes = sizes->padded * reduce_bytes,
                                 .category = MEMORY_REDUCE_BUFFERS,
                                 .stream = FSDP2_COMPUTE,
                                 .unit = index});
    unit->reduce_output = add_tensor(
        builder, (struct tensor){.name = arena_printf(arena, "reduce_scatter_output(%s)", name),
                                 .bytes = sizes->shard * reduce_bytes,
                                 .category = MEMORY_REDUCE_BUFFERS,
                                 .stream = FSDP2_REDUCE_SCATTER,
                                 .unit = index});
    unit->sharded_grads =
        add_tensor(builder, (struct tensor){.name = arena_printf(arena, "sharded_grads(%s)", name),
                                            .bytes = sizes->shard * storage_bytes,
                                            .category = MEMORY_GRADIENTS,
                                            .stream = FSDP2_REDUCE_SCATTER,
                                            .unit = index});
    unit->cast_grads_output = add_tensor(
        builder, (struct tensor){.name = arena_printf(arena, "cast_grads(%s)", name),
                                 .bytes = casts_grads && builder->settings->grad_accum > 1
                                              ? sizes->shard * storage_bytes
                                              : 0,
                                 .category = MEMORY_TEMPORARIES,
                                 .stream = FSDP2_REDUCE_SCATTER,
                                 .unit = index});
    unit->copy_in =
        add_pass(builder, arena_printf(arena, "copy_in(%s)", name), KERNEL_COPY_IN,
                 (enum dtype)precision->param_dtype,
                 (double)sizes->shard *
                     (double)(2 * param_bytes + (casts ? storage_bytes + param_bytes : 0)),
                 false);
    unit->copy_out = add_pass(builder, arena_printf(arena, "copy_out(%s)", name), KERNEL_COPY_OUT,
                              (enum dtype)precision->param_dtype,
                              (double)sizes->padded * (double)(2 * param_bytes), false);
    unit->chunk_cat = add_pass(builder, arena_printf(arena, "chunk_cat(%s)", name),
                               KERNEL_CHUNK_CAT, (enum dtype)precision->reduce_dtype,
                               (double)sizes->parameters * (double)param_bytes +
                                   (double)sizes->padded * (double)reduce_bytes,
                               false);
    unit->cast_grads =
        !casts_grads
            ? -1
            : add_pass(builder, arena_printf(arena, "cast_grads(%s)", name), KERNEL_CAST,
                       (enum dtype)precision->storage_dtype,
                       (double)sizes->shard * (double)(reduce_bytes + storage_bytes), false);
    unit->accumulate = builder->settings->grad_accum == 1
                           ? -1
                           : add_pass(builder, arena_printf(arena, "accumulate_grads(%s)", name),
                                      KERNEL_ELEMENTWISE, (enum dtype)precision->storage_dtype,
                                      (double)sizes->shard * (double)(3 * storage_bytes), false);
}

static void setup_unit(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp_unit *unit = &builder->units[index];
    const struct precision_config *precision = &builder->settings->precision;
    const struct unit_sizes sizes = measure_unit(builder, index);
    const char *name = unit_name(builder, index);
    unit->param_count = sizes.param_count;
    const int64_t gather_bytes = sizes.padded * dtype_bytes((enum dtype)precision->param_dtype);
    const int64_t reduce_bytes = sizes.padded * dtype_bytes((enum dtype)precision->reduce_dtype);
    *ARENA_PUSH(builder->arena, &builder->program->units) =
        (struct unit){.name = name,
                      .parameters = sizes.parameters,
                      .param_count = sizes.param_count,
                      .all_gather_bytes = gather_bytes,
                      .reduce_scatter_bytes = reduce_bytes};
    setup_unit_tensors(builder, index, &sizes, name);
    const int32_t reduce_communicator = builder->program->communicators.count - 1;
    unit->all_gather = add_collective(builder, COLLECTIVE_ALL_GATHER, 0, (double)gather_bytes);
    unit->reduce_scatter = add_collective(builder, COLLECTIVE_REDUCE_SCATTER, reduce_communicator,
                                          (double)reduce_bytes);
    unit->copied_in = add_event(builder, "copied_in", name);
    unit->gathered = add_event(builder, "gathered", name);
    unit->copied_out = add_event(builder, "copied_out", name);
    unit->reduce_ready = add_event(builder, "reduce_ready", name);
    unit->reduced = add_event(builder, "reduced", name);
    unit->post_reduced = add_event(builder, "post_reduced", name);
    builder->shard_parameters += sizes.shard;
    /* Persistent: the shard as the optimizer sees it. */
    const int32_t shard = add_tensor(
        builder,
        (struct tensor){.name = arena_printf(builder->arena, "shard(%s)", name),
                        .bytes = sizes.shard * dtype_bytes((enum dtype)precision->storage_dtype),
                        .category = MEMORY_PARAMETERS,
                        .stream = FSDP2_COMPUTE,
                        .unit = index,
                        .pieces = sizes.param_count});
    builder->optimizer_state[index] = add_tensor(
        builder,
        (struct tensor){.name = arena_printf(builder->arena, "adam_moments(%s)", name),
                        .bytes = 2 * sizes.shard *
                                 dtype_bytes((enum dtype)builder->settings->optimizer.state_dtype),
                        .category = MEMORY_OPTIMIZER,
                        .stream = FSDP2_COMPUTE,
                        .unit = index,
                        .pieces = 2 * sizes.param_count});
    if (shard >= 0)
        *ARENA_PUSH(builder->arena, &builder->program->prologue) =
            (struct op){.kind = OP_ALLOC, .unit = index, .index = shard};
}

/* Forward, and backward with the recompute in front, of each kind of module: shared by its modules.
 */
static void setup_kind_segments(struct fsdp2_builder *builder, int32_t kind_idx, const char *name,
                                int32_t *forward, int32_t *backward)
{
    const struct module_kind *kind = &builder->model->kinds[kind_idx];
    const bool is_compiled = builder->settings->is_compiled;
    const int32_t recompute_count = kind->is_recomputed ? kind->forward.count : 0;
    const int32_t count = recompute_count + kind->backward.count;
    struct kernel *kernels = ARENA_ARRAY(builder->arena, struct kernel, count > 0 ? count : 1);
    for (int32_t i = 0; i < count; i++)
        kernels[i] = i < recompute_count ? kind->forward.items[i]
                                         : kind->backward.items[i - recompute_count];
    *forward = add_segment(
        builder,
        (struct segment){.name = arena_printf(builder->arena, "%s.forward", name),
                         .kernels = kind->forward.items,
                         .kernel_count = kind->forward.count,
                         .host_cost = (uint8_t)(is_compiled ? HOST_KERNEL_COMPILED : HOST_KERNEL),
                         .is_compiled = is_compiled});
    *backward = add_segment(
        builder, (struct segment){.name = arena_printf(builder->arena, "%s.backward", name),
                                  .kernels = kernels,
                                  .kernel_count = count,
                                  .host_cost = (uint8_t)(is_compiled ? HOST_KERNEL_COMPILED
                                                                     : HOST_KERNEL_BACKWARD),
                                  .is_compiled = is_compiled});
}

static void setup_module_tensors(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp_module *module = &builder->modules[index];
    const struct module_kind *kind = kind_of(builder, index);
    const char *name = builder->model->modules[index].name;
    struct arena *arena = builder->arena;
    const bool is_loss = kind->role == MODULE_LOSS;
    const uint8_t category = is_loss ? MEMORY_LOGITS : MEMORY_ACTIVATIONS;
    const uint8_t temp_category = is_loss ? MEMORY_LOGITS : MEMORY_TEMPORARIES;
    const int32_t unit = module->unit;
    module->saved =
        add_tensor(builder, (struct tensor){.name = arena_printf(arena, "saved(%s)", name),
                                            .bytes = kind->saved_bytes,
                                            .category = category,
                                            .unit = unit});
    module->recomputed = add_tensor(
        builder, (struct tensor){.name = arena_printf(arena, "recomputed(%s)", name),
                                 /* The block's input is kept already. */
                                 .bytes = kind->is_recomputed
                                              ? kind->recompute_saved_bytes - kind->saved_bytes
                                              : 0,
                                 .category = category,
                                 .unit = unit});
    module->forward_temp =
        add_tensor(builder, (struct tensor){.name = arena_printf(arena, "forward_temp(%s)", name),
                                            .bytes = kind->forward_temp_bytes,
                                            .category = temp_category,
                                            .unit = unit});
    module->backward_temp =
        add_tensor(builder, (struct tensor){.name = arena_printf(arena, "backward_temp(%s)", name),
                                            .bytes = kind->backward_temp_bytes,
                                            .category = temp_category,
                                            .unit = unit});
    module->grads = add_tensor(
        builder,
        (struct tensor){.name = arena_printf(arena, "grads(%s)", name),
                        .bytes = kind->numel *
                                 dtype_bytes((enum dtype)builder->settings->precision.param_dtype),
                        .category = MEMORY_UNSHARDED_GRADIENTS,
                        .unit = unit,
                        .pieces = kind->param_count});
    /* The head's output is the logits; its gradient is as large. Hidden states are counted by the
       blocks that save them. */
    const int64_t logits_bytes = kind->role == MODULE_HEAD ? kind->output_bytes : 0;
    module->output =
        add_tensor(builder, (struct tensor){.name = arena_printf(arena, "logits(%s)", name),
                                            .bytes = logits_bytes,
                                            .category = MEMORY_LOGITS,
                                            .unit = unit});
    module->output_grad =
        add_tensor(builder, (struct tensor){.name = arena_printf(arena, "grad_logits(%s)", name),
                                            .bytes = logits_bytes,
                                            .category = MEMORY_LOGITS,
                                            .unit = unit});
}

static void setup_modules(struct fsdp2_builder *builder)
{
    const struct model *model = builder->model;
    int32_t *forward = ARENA_ARRAY(builder->arena, int32_t, model->kind_count);
    int32_t *backward = ARENA_ARRAY(builder->arena, int32_t, model->kind_count);
    bool *is_made = ARENA_ARRAY(builder->arena, bool, model->kind_count);
    for (int32_t i = 0; i < model->module_count; i++) {
        const int32_t kind_idx = model->modules[i].kind_idx;
        if (!is_made[kind_idx]) {
            setup_kind_segments(builder, kind_idx, model->modules[i].name, &forward[kind_idx],
                                &backward[kind_idx]);
            is_made[kind_idx] = true;
        }
        builder->modules[i].forward = forward[kind_idx];
        builder->modules[i].backward = backward[kind_idx];
        setup_module_tensors(builder, i);
    }
}

/*
 * Gradient norm (reads the sharded gradients), its scalar all-reduce, the scaling pass; fused AdamW
 * in one pass: reads parameter, gradient and two moments, writes parameter and moments (28 B per
 * fp32 parameter).
 */
static void setup_optimizer(struct fsdp2_builder *builder)
{
    const enum dtype storage = (enum dtype)builder->settings->precision.storage_dtype;
    const double elements = (double)builder->shard_parameters;
    const double grad_bytes = elements * (double)dtype_bytes(storage);
    const double state_bytes =
        2 * elements * (double)dtype_bytes((enum dtype)builder->settings->optimizer.state_dtype);
    if (builder->settings->is_clipping) {
        builder->norm_segment =
            add_pass(builder, "gradient_norm", KERNEL_REDUCE, storage, grad_bytes, true);
        builder->scale_segment =
            add_pass(builder, "clip_gradients", KERNEL_ELEMENTWISE, storage, 2 * grad_bytes, true);
        builder->norm_all_reduce = add_collective(builder, COLLECTIVE_ALL_REDUCE, 0, 4);
    }
    builder->optimizer_segment = add_pass(builder, "adamw", KERNEL_OPTIMIZER, storage,
                                          3 * grad_bytes + 2 * state_bytes, true);
}

void fsdp2_setup(struct fsdp2_builder *builder)
{
    setup_streams(builder);
    assign_units(builder);
    builder->optimizer_state = ARENA_ARRAY(builder->arena, int32_t, builder->unit_count);
    builder->post_forward_order = ARENA_ARRAY(builder->arena, int32_t, builder->unit_count);
    builder->pending_reduce = ARENA_ARRAY(builder->arena, int32_t, builder->unit_count + 1);
    for (int32_t i = 0; i < builder->unit_count; i++)
        setup_unit(builder, i);
    setup_modules(builder);
    setup_optimizer(builder);
    builder->root_event = add_event(builder, "root_pre_forward", "root");
    const int32_t workspace =
        add_tensor(builder, (struct tensor){.name = "cublas_workspace",
                                            .bytes = builder->settings->workspace_bytes,
                                            .category = MEMORY_WORKSPACE,
                                            .unit = -1});
    if (workspace >= 0)
        *ARENA_PUSH(builder->arena, &builder->program->prologue) =
            (struct op){.kind = OP_ALLOC, .unit = -1, .index = workspace};
}
