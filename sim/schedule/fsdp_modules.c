/* schedule/fsdp_modules.c: modules: what they hold, how they run. */
#include "schedule/fsdp_private.h"

const struct module_kind *fsdp_kind(const struct fsdp_builder *builder, int32_t module)
{
    return &builder->model->kinds[builder->model->modules[module].kind_idx];
}

void fsdp_add_shard(struct fsdp_builder *builder, int32_t index, int32_t pieces)
{
    const struct fsdp_unit *unit = &builder->units[index];
    if (policy_offloads_params(builder->settings)) {
        builder->program->host.parameters += unit->sizes.stored_bytes;
        return;
    }
    const int32_t shard = fsdp_add_unit_tensor(builder, index, "shard", unit->sizes.stored_bytes,
                                               MEMORY_PARAMETERS, FSDP_COMPUTE);
    if (pieces > 1)
        fsdp_split_by_param(builder, shard, index, false, 1);
    fsdp_hold(builder, shard);
}

int32_t fsdp_add_module_issue(struct fsdp_builder *builder, const char *name, bool is_backward,
                              const struct kernel *kernels, int32_t count, int32_t forward_kernels)
{
    const bool is_compiled = builder->settings->is_compiled;
    return fsdp_add_issue(
        builder, (struct segment){.name = name,
                                  .kernels = kernels,
                                  .kernel_count = count,
                                  .host_cost = (uint8_t)(is_compiled   ? HOST_KERNEL_COMPILED
                                                         : is_backward ? HOST_KERNEL_BACKWARD
                                                                       : HOST_KERNEL),
                                  .is_compiled = is_compiled,
                                  .forward_kernels = forward_kernels,
                                  .is_model = true});
}

int32_t fsdp_add_module_grads(struct fsdp_builder *builder, const char *name, int32_t unit,
                              int64_t numel, int32_t count)
{
    return fsdp_add_tensor(
        builder,
        (struct tensor){.name = ARENA_JOIN(builder->arena, "grads(", name, ")"),
                        .bytes = numel *
                                 dtype_bytes((enum dtype)builder->settings->precision.param_dtype),
                        .category = MEMORY_UNSHARDED_GRADIENTS,
                        .unit = unit,
                        .pieces = count});
}

/* Forward, and backward with the recompute in front, of each kind of module: shared by its modules.
 */
static void setup_kind_issues(struct fsdp_builder *builder, int32_t kind_idx, const char *name,
                              int32_t *forward, int32_t *backward)
{
    const struct module_kind *kind = &builder->model->kinds[kind_idx];
    const bool is_block = kind->role == MODULE_BLOCK;
    const int32_t recompute_count = kind->is_recomputed ? kind->recompute.count : 0;
    const int32_t count = recompute_count + kind->backward.count;
    struct kernel *kernels = ARENA_ARRAY(builder->arena, struct kernel, count > 0 ? count : 1);
    for (int32_t i = 0; i < count; i++)
        kernels[i] = i < recompute_count ? kind->recompute.items[i]
                                         : kind->backward.items[i - recompute_count];
    *forward = fsdp_add_module_issue(builder, ARENA_JOIN(builder->arena, name, ".forward"), false,
                                     kind->forward.items, kind->forward.count,
                                     is_block ? kind->forward.count : 0);
    *backward = fsdp_add_module_issue(builder, ARENA_JOIN(builder->arena, name, ".backward"), true,
                                      kernels, count, is_block ? recompute_count : 0);
}

static void setup_module_tensors(struct fsdp_builder *builder, int32_t index)
{
    struct fsdp_module *module = &builder->modules[index];
    const struct module_kind *kind = fsdp_kind(builder, index);
    const char *name = builder->model->modules[index].name;
    struct arena *arena = builder->arena;
    const bool is_loss = kind->role == MODULE_LOSS;
    const uint8_t category = is_loss ? MEMORY_LOGITS : MEMORY_ACTIVATIONS;
    const uint8_t temp_category = is_loss ? MEMORY_LOGITS : MEMORY_TEMPORARIES;
    const int32_t unit = module->unit;
    module->saved = fsdp_add_tensor(
        builder, (struct tensor){.name = ARENA_JOIN(arena, "saved(", name, ")"),
                                 .bytes = kind->saved_bytes,
                                 .pieces = fsdp_piece_count(kind, kind->saved_bytes),
                                 .category = category,
                                 .unit = unit});
    /* The block's input is kept already. */
    const int64_t recomputed =
        kind->is_recomputed ? kind->recompute_saved_bytes - kind->saved_bytes : 0;
    module->recomputed = fsdp_add_tensor(
        builder, (struct tensor){.name = ARENA_JOIN(arena, "recomputed(", name, ")"),
                                 .bytes = recomputed,
                                 .pieces = fsdp_piece_count(kind, recomputed),
                                 .category = category,
                                 .unit = unit});
    module->forward_temp = fsdp_add_tensor(
        builder, (struct tensor){.name = ARENA_JOIN(arena, "forward_temp(", name, ")"),
                                 .bytes = kind->forward_temp_bytes,
                                 .pieces = fsdp_piece_count(kind, kind->forward_temp_bytes),
                                 .category = temp_category,
                                 .unit = unit});
    module->backward_temp = fsdp_add_tensor(
        builder, (struct tensor){.name = ARENA_JOIN(arena, "backward_temp(", name, ")"),
                                 .bytes = kind->backward_temp_bytes,
                                 .pieces = fsdp_piece_count(kind, kind->backward_temp_bytes),
                                 .category = temp_category,
                                 .unit = unit});
    module->grads = -1;
    if (module->path_units == NULL)
        module->grads = fsdp_add_module_grads(builder, name, unit, kind->numel - kind->frozen_numel,
                                              kind->param_count - kind->frozen_count);
    fsdp_split_module_grads(builder, module->grads, index);
    /* The head's output is the logits; its gradient is as large. Hidden states are counted by the
       blocks that save them. */
    const int64_t logits_bytes = kind->role == MODULE_HEAD ? kind->output_bytes : 0;
    module->output =
        fsdp_add_tensor(builder, (struct tensor){.name = ARENA_JOIN(arena, "logits(", name, ")"),
                                                 .bytes = logits_bytes,
                                                 .category = MEMORY_LOGITS,
                                                 .unit = unit});
    fsdp_add_output(builder, index);
    module->output_grad = fsdp_add_tensor(
        builder, (struct tensor){.name = ARENA_JOIN(arena, "grad_logits(", name, ")"),
                                 .bytes = logits_bytes,
                                 .category = MEMORY_LOGITS,
                                 .unit = unit});
}

void fsdp_add_modules(struct fsdp_builder *builder)
{
    const struct model *model = builder->model;
    int32_t *forward = ARENA_ARRAY(builder->arena, int32_t, model->kind_count);
    int32_t *backward = ARENA_ARRAY(builder->arena, int32_t, model->kind_count);
    bool *is_made = ARENA_ARRAY(builder->arena, bool, model->kind_count);
    for (int32_t i = 0; i < model->module_count; i++) {
        const int32_t kind_idx = model->modules[i].kind_idx;
        if (!is_made[kind_idx] && builder->modules[i].path_units == NULL) {
            setup_kind_issues(builder, kind_idx, model->modules[i].name, &forward[kind_idx],
                              &backward[kind_idx]);
            is_made[kind_idx] = true;
        }
        builder->modules[i].forward = forward[kind_idx];
        builder->modules[i].backward = backward[kind_idx];
        setup_module_tensors(builder, i);
    }
}

void fsdp_add_workspace(struct fsdp_builder *builder)
{
    fsdp_hold(builder,
              fsdp_add_tensor(builder, (struct tensor){.name = "cublas_workspace",
                                                       .bytes = builder->settings->workspace_bytes,
                                                       .category = MEMORY_WORKSPACE,
                                                       .unit = -1}));
}

static bool is_loss(const struct fsdp_builder *builder, int32_t module)
{
    return fsdp_kind(builder, module)->role == MODULE_LOSS;
}

/* Regions that the host enters for a module: four with per-child checkpointing (attention, MLP, two
   norms); inside a compiled block checkpointing is traced and costs nothing. */
static void enter_checkpoint(struct fsdp_builder *builder, int32_t index)
{
    const bool is_entered =
        fsdp_kind(builder, index)->is_recomputed && !builder->settings->is_compiled;
    if (is_entered)
        fsdp_host(builder, HOST_CHECKPOINT, builder->modules[index].unit,
                  builder->settings->is_checkpoint_per_child ? 4 : 1);
}

void fsdp_begin_forward(struct fsdp_builder *builder, int32_t index)
{
    const struct fsdp_module *module = &builder->modules[index];
    enter_checkpoint(builder, index);
    fsdp_alloc(builder, module->unit, module->saved);
    fsdp_alloc(builder, module->unit, module->output);
    fsdp_alloc(builder, module->unit, module->forward_temp);
}

void fsdp_end_forward(struct fsdp_builder *builder, int32_t index)
{
    const struct fsdp_module *module = &builder->modules[index];
    const int32_t unit = module->unit;
    fsdp_free(builder, unit, module->forward_temp);
    /* The loss was the last reader of the logits. */
    if (is_loss(builder, index))
        for (int32_t i = 0; i < index; i++)
            fsdp_free(builder, builder->modules[i].unit, builder->modules[i].output);
    fsdp_keep_output(builder, index);
}

void fsdp_run_forward(struct fsdp_builder *builder, int32_t index)
{
    const struct fsdp_module *module = &builder->modules[index];
    fsdp_begin_forward(builder, index);
    fsdp_issue(builder, module->unit, module->forward);
    fsdp_end_forward(builder, index);
}

void fsdp_begin_backward(struct fsdp_builder *builder, int32_t index)
{
    const struct fsdp_module *module = &builder->modules[index];
    enter_checkpoint(builder, index);
    fsdp_alloc(builder, module->unit, module->recomputed);
    fsdp_alloc(builder, module->unit, module->backward_temp);
}

void fsdp_run_backward(struct fsdp_builder *builder, int32_t index)
{
    const struct fsdp_module *module = &builder->modules[index];
    fsdp_begin_backward(builder, index);
    fsdp_alloc(builder, module->unit, module->grads);
    fsdp_issue(builder, module->unit, module->backward);
    fsdp_end_backward(builder, index);
}

void fsdp_end_backward(struct fsdp_builder *builder, int32_t index)
{
    const struct fsdp_module *module = &builder->modules[index];
    const int32_t unit = module->unit;
    fsdp_free(builder, unit, module->backward_temp);
    fsdp_free(builder, unit, module->recomputed);
    fsdp_free(builder, unit, module->saved);
    fsdp_free(builder, unit, module->output_grad);
    /* The gradient of the logits is cast from the loss's fp32 one as its last act, when the rest of
       the loss is gone already, and dies in the head. */
    if (is_loss(builder, index))
        for (int32_t i = 0; i < index; i++)
            fsdp_alloc(builder, builder->modules[i].unit, builder->modules[i].output_grad);
    fsdp_drop_output(builder, index);
}
