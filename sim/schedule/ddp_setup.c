/* schedule/ddp_setup.c: the tables of a DDP program: buckets, tensors, segments, events. */
#include "schedule/ddp_private.h"

enum { FIRST_BUCKET_BYTES = 1 << 20 }; /* _DEFAULT_FIRST_BUCKET_BYTES of torch.distributed */

static int64_t stored_bytes(const struct fsdp_builder *fsdp)
{
    return dtype_bytes((enum dtype)fsdp->settings->precision.storage_dtype);
}

static int64_t param_bytes(const struct fsdp_builder *fsdp)
{
    return dtype_bytes((enum dtype)fsdp->settings->precision.param_dtype);
}

static void setup_streams(struct fsdp_builder *fsdp)
{
    *ARENA_PUSH(fsdp->arena, &fsdp->program->streams) =
        (struct stream){"compute", STREAM_COMPUTE, false};
    *ARENA_PUSH(fsdp->arena, &fsdp->program->streams) =
        (struct stream){"all-reduce", STREAM_ALL_REDUCE, false};
    *ARENA_PUSH(fsdp->arena, &fsdp->program->communicators) =
        (struct communicator){.name = "dp", .purpose = "ddp", .group = fsdp->settings->dp_group};
}

/* 89: filled in the order in which gradients become ready; a bucket is full as soon as it holds its
   cap, which the parameter that fills it may exceed. One GPU trains the module as it is. */
static void fill_buckets(struct ddp_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const int64_t cap_bytes = fsdp->settings->ddp.bucket_cap_mb << 20;
    int32_t made = 0;
    struct ddp_bucket *open = NULL;
    if (fsdp->settings->dp_group.ranks == 1)
        return;
    for (int32_t i = fsdp->model->module_count - 1; i >= 0; i--) {
        const struct fsdp_gradients *gradients = &fsdp->gradients[fsdp->model->modules[i].kind_idx];
        for (int32_t g = 0; g < gradients->count; g++) {
            if (open == NULL)
                open = ARENA_PUSH(fsdp->arena, &builder->buckets);
            open->numel += gradients->items[g].numel;
            open->tensors += gradients->items[g].tensors;
            open->gradient_end = ++made;
            const int64_t limit = builder->buckets.count == 1 ? FIRST_BUCKET_BYTES : cap_bytes;
            if (open->numel * stored_bytes(fsdp) >= limit)
                open = NULL;
        }
    }
}

static int32_t add_bucket_pass(struct fsdp_builder *fsdp, const struct ddp_bucket *bucket,
                               const char *what, const char *name, double bytes_each)
{
    return fsdp_add_pass(fsdp, ARENA_JOIN(fsdp->arena, what, "(", name, ")"), KERNEL_CAST,
                         (enum dtype)fsdp->settings->precision.storage_dtype,
                         (double)bucket->numel * bytes_each, false);
}

/* 91: a bucket lives for the whole run. Without views its sum is copied back into the gradients,
   tensor by tensor; a compress hook reduces a copy in reduce_dtype. */
static void setup_bucket(struct ddp_builder *builder, int32_t index)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    struct ddp_bucket *bucket = &builder->buckets.items[index];
    const struct policy_settings *settings = fsdp->settings;
    const bool is_view = settings->ddp.gradient_as_bucket_view;
    const bool is_compressed =
        settings->precision.reduce_dtype != settings->precision.storage_dtype;
    const int64_t stored = stored_bytes(fsdp);
    const int64_t reduced = dtype_bytes((enum dtype)settings->precision.reduce_dtype);
    const char *name = arena_printf(fsdp->arena, "bucket.%d", (int)index);
    bucket->memory = fsdp_add_tensor(
        fsdp, (struct tensor){.name = name,
                              .bytes = bucket->numel * stored,
                              .category = is_view ? MEMORY_GRADIENTS : MEMORY_REDUCE_BUFFERS,
                              .unit = -1});
    fsdp_hold(fsdp, bucket->memory);
    bucket->compressed = fsdp_add_tensor(
        fsdp, (struct tensor){.name = ARENA_JOIN(fsdp->arena, "compressed(", name, ")"),
                              .bytes = is_compressed ? bucket->numel * reduced : 0,
                              .category = MEMORY_REDUCE_BUFFERS,
                              .unit = -1});
    const double moved = is_compressed ? (double)(stored + reduced) : 0;
    bucket->compress = add_bucket_pass(fsdp, bucket, "compress", name, moved);
    bucket->restore = add_bucket_pass(fsdp, bucket, "restore", name, moved);
    bucket->copy =
        add_bucket_pass(fsdp, bucket, "copy_out", name, is_view ? 0 : 2 * (double)stored);
    bucket->all_reduce = fsdp_add_collective(fsdp, COLLECTIVE_ALL_REDUCE, 0,
                                             (double)bucket->numel * (double)reduced);
    bucket->ready = fsdp_add_event(fsdp, "ready", name);
    bucket->reduced = fsdp_add_event(fsdp, "reduced", name);
}

/* Passes behind each gradient: autocast casts it to the dtype of its parameter. */
static void setup_slices(struct ddp_builder *builder, int32_t index)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    struct ddp_module *module = &builder->modules[index];
    const struct fsdp_gradients *gradients = &fsdp->gradients[fsdp->model->modules[index].kind_idx];
    const double stored = (double)stored_bytes(fsdp);
    for (int variant = 0; variant < DDP_VARIANTS; variant++) {
        double passes[3];
        int32_t count = 0;
        if (module->cast >= 0)
            passes[count++] = stored + (double)param_bytes(fsdp);
        if ((variant & DDP_ACCUMULATES) != 0)
            passes[count++] = 3 * stored;
        if ((variant & DDP_SYNCS) != 0)
            passes[count++] = 2 * stored;
        module->slices[variant] = ARENA_ARRAY(fsdp->arena, int32_t, gradients->count + 1);
        for (int32_t g = 0; g < gradients->count; g++)
            module->slices[variant][g] = fsdp_add_gradient_slice(fsdp, index, g, passes, count);
    }
}

/* 94: autocast casts the weights of products, not the embedding's table; what is packed is unpacked
   by the products. */
static bool is_cast(const struct fsdp_builder *fsdp, const struct module_kind *kind,
                    const struct param *param)
{
    const struct policy_settings *settings = fsdp->settings;
    const enum dtype stored =
        param->is_frozen ? settings->base_dtype : (enum dtype)settings->precision.storage_dtype;
    return stored != (enum dtype)settings->precision.param_dtype && !param->is_packed &&
           (kind->role == MODULE_BLOCK || kind->role == MODULE_HEAD);
}

/* The parameters of a module that are cast, and their elements. */
struct cast_size {
    int64_t numel;
    int32_t count;
};

static struct cast_size cast_size_of(const struct fsdp_builder *fsdp,
                                     const struct module_kind *kind)
{
    struct cast_size size = {0};
    for (int32_t p = 0; p < kind->param_count; p++) {
        if (!is_cast(fsdp, kind, &kind->params[p]))
            continue;
        size.numel += kind->params[p].dim0 * kind->params[p].rest;
        size.count++;
    }
    return size;
}

static int32_t add_cast_segment(struct fsdp_builder *fsdp, const struct module_kind *kind,
                                const char *name)
{
    struct kernel *kernels = ARENA_ARRAY(fsdp->arena, struct kernel, kind->param_count);
    const int64_t bytes = stored_bytes(fsdp) + param_bytes(fsdp);
    int32_t count = 0;
    for (int32_t p = 0; p < kind->param_count; p++) {
        const struct param *param = &kind->params[p];
        if (is_cast(fsdp, kind, param))
            kernels[count++] =
                (struct kernel){.name = "cast_weight",
                                .kind = KERNEL_CAST,
                                .dtype = (enum dtype)fsdp->settings->precision.param_dtype,
                                .bytes = (double)(param->dim0 * param->rest * bytes)};
    }
    return fsdp_add_segment(
        fsdp, (struct segment){.name = ARENA_JOIN(fsdp->arena, "cast_weights(", name, ")"),
                               .kernels = kernels,
                               .kernel_count = count,
                               .host_cost = fsdp->settings->is_compiled ? HOST_KERNEL_COMPILED
                                                                        : HOST_KERNEL});
}

static void setup_module(struct ddp_builder *builder, int32_t index, int32_t like)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    struct ddp_module *module = &builder->modules[index];
    const struct module_kind *kind = fsdp_kind(fsdp, index);
    const char *name = fsdp->model->modules[index].name;
    const struct cast_size cast = cast_size_of(fsdp, kind);
    if (like == index) {
        module->cast = cast.count > 0 ? add_cast_segment(fsdp, kind, name) : -1;
        setup_slices(builder, index);
    } else {
        *module = builder->modules[like];
    }
    module->weights = fsdp_add_tensor(
        fsdp, (struct tensor){.name = ARENA_JOIN(fsdp->arena, "cast_weights(", name, ")"),
                              .bytes = cast.numel * param_bytes(fsdp),
                              .category = MEMORY_UNSHARDED_PARAMETERS,
                              .unit = fsdp->modules[index].unit,
                              .pieces = cast.count});
    if (cast.count == kind->param_count - kind->frozen_count)
        fsdp_split_module_grads(fsdp, module->weights, index);
    module->grads = fsdp_add_tensor(
        fsdp,
        (struct tensor){.name = ARENA_JOIN(fsdp->arena, "gradients(", name, ")"),
                        .bytes = fsdp->settings->ddp.gradient_as_bucket_view
                                     ? 0
                                     : (kind->numel - kind->frozen_numel) * stored_bytes(fsdp),
                        .category = MEMORY_GRADIENTS,
                        .unit = fsdp->modules[index].unit});
    fsdp_split_module_grads(fsdp, module->grads, index);
}

static void setup_modules(struct ddp_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct model *model = fsdp->model;
    int32_t *first = ARENA_ARRAY(fsdp->arena, int32_t, model->kind_count);
    for (int32_t k = 0; k < model->kind_count; k++)
        first[k] = -1;
    builder->modules = ARENA_ARRAY(fsdp->arena, struct ddp_module, model->module_count);
    for (int32_t i = 0; i < model->module_count; i++) {
        const int32_t kind = model->modules[i].kind_idx;
        first[kind] = first[kind] < 0 ? i : first[kind];
        setup_module(builder, i, first[kind]);
        builder->graph_nodes += fsdp_kind(fsdp, i)->host_op_count;
    }
}

/* Nothing is sharded: every GPU keeps and updates all. */
static void setup_units(struct fsdp_builder *fsdp)
{
    fsdp_size_by_param(fsdp, 1);
    for (int32_t i = 0; i < fsdp->unit_count; i++) {
        struct fsdp_unit *unit = &fsdp->units[i];
        unit->optimizer_tensors = unit->sizes.trained_count;
        unit->padded = unit->sizes.reduced_padded = 0; /* neither gathered nor scattered */
        unit->sharded_grads = -1;
        fsdp_list_unit(fsdp, i);
        fsdp_add_shard(fsdp, i, unit->param_count);
        optimizer_add_state(fsdp, i);
    }
}

void ddp_setup(struct ddp_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    setup_streams(fsdp);
    fsdp_assign_units(fsdp, false);
    setup_units(fsdp);
    fsdp_add_modules(fsdp);
    fsdp_order_gradients(fsdp);
    setup_modules(builder);
    fill_buckets(builder);
    int32_t parameters = 0;
    for (int32_t i = 0; i < builder->buckets.count; i++) {
        setup_bucket(builder, i);
        parameters += builder->buckets.items[i].tensors;
    }
    builder->used_map = fsdp_add_collective(fsdp, COLLECTIVE_ALL_REDUCE, 0, 4 * (double)parameters);
    builder->used_done = fsdp_add_event(fsdp, "reduced", "used_parameters");
    optimizer_setup(fsdp);
    fsdp_add_workspace(fsdp);
}
