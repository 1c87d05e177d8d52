/* schedule/fsdp_modules.c: units, and the modules in them: what they hold, how they run. */
#include "schedule/fsdp_private.h"

const struct module_kind *fsdp_kind(const struct fsdp_builder *builder, int32_t module)
{
    return &builder->model->kinds[builder->model->modules[module].kind_idx];
}

static bool is_head_role(enum module_role role)
{
    return role == MODULE_NORM || role == MODULE_HEAD;
}

/* torchtitan, outside the blocks: the embedding is a unit, norm and head are one; with tied weights
   all three are one, since these must be together: the embedding's, first to be reached. */
static int32_t place_outside_blocks(struct fsdp_builder *builder, int32_t module,
                                    int32_t *embedding_unit, int32_t *head_unit)
{
    const bool is_head = is_head_role(fsdp_kind(builder, module)->role);
    int32_t *unit = is_head && !builder->model->is_tied ? head_unit : embedding_unit;
    if (*unit == 0) {
        *unit = builder->unit_count++;
        builder->units[*unit].first_module = module;
    }
    return *unit;
}

/* Root is unit 0 and owns what no other unit takes. */
static void place_modules(struct fsdp_builder *builder)
{
    const bool is_torchtitan = builder->settings->fsdp.wrap == WRAP_TORCHTITAN;
    int32_t embedding_unit = 0, head_unit = 0;
    for (int32_t i = 0; i < builder->model->module_count; i++) {
        const enum module_role role = fsdp_kind(builder, i)->role;
        struct fsdp_module *module = &builder->modules[i];
        if (role == MODULE_BLOCK) {
            builder->units[builder->unit_count].first_module = i;
            module->unit = builder->unit_count++;
        } else if (is_torchtitan && (role == MODULE_EMBEDDING || is_head_role(role))) {
            module->unit = place_outside_blocks(builder, i, &embedding_unit, &head_unit);
        } else {
            module->unit = role == MODULE_LOSS ? -1 : 0;
        }
    }
}

static const char *unit_name(struct fsdp_builder *builder, int32_t unit)
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

void fsdp_assign_units(struct fsdp_builder *builder)
{
    const int32_t module_count = builder->model->module_count;
    builder->units = ARENA_ARRAY(builder->arena, struct fsdp_unit, module_count + 1);
    builder->modules = ARENA_ARRAY(builder->arena, struct fsdp_module, module_count);
    builder->unit_count = 1;
    place_modules(builder);
    for (int32_t i = 0; i < module_count; i++) {
        if (builder->modules[i].unit < 0)
            continue;
        struct fsdp_unit *unit = &builder->units[builder->modules[i].unit];
        unit->param_count += fsdp_kind(builder, i)->param_count;
        unit->parameters += fsdp_kind(builder, i)->numel;
    }
    for (int32_t i = 0; i < builder->unit_count; i++)
        builder->units[i].name = unit_name(builder, i);
}

void fsdp_add_shard(struct fsdp_builder *builder, int32_t index, int32_t pieces)
{
    const struct fsdp_unit *unit = &builder->units[index];
    if (fsdp_offloads(builder)) {
        builder->program->host.parameters += unit->sizes.stored_bytes;
        return;
    }
    fsdp_hold(builder,
              fsdp_add_tensor(builder, (struct tensor){.name = arena_printf(
                                                           builder->arena, "shard(%s)", unit->name),
                                                       .bytes = unit->sizes.stored_bytes,
                                                       .category = MEMORY_PARAMETERS,
                                                       .unit = index,
                                                       .pieces = pieces}));
}

/* Forward, and backward with the recompute in front, of each kind of module: shared by its modules.
 */
static void setup_kind_segments(struct fsdp_builder *builder, int32_t kind_idx, const char *name,
                                int32_t *forward, int32_t *backward)
{
    const struct module_kind *kind = &builder->model->kinds[kind_idx];
    const bool is_compiled = builder->settings->is_compiled;
    const bool is_block = kind->role == MODULE_BLOCK;
    const int32_t recompute_count = kind->is_recomputed ? kind->recompute.count : 0;
    const int32_t count = recompute_count + kind->backward.count;
    struct kernel *kernels = ARENA_ARRAY(builder->arena, struct kernel, count > 0 ? count : 1);
    for (int32_t i = 0; i < count; i++)
        kernels[i] = i < recompute_count ? kind->recompute.items[i]
                                         : kind->backward.items[i - recompute_count];
    *forward = fsdp_add_segment(
        builder,
        (struct segment){.name = arena_printf(builder->arena, "%s.forward", name),
                         .kernels = kind->forward.items,
                         .kernel_count = kind->forward.count,
                         .host_cost = (uint8_t)(is_compiled ? HOST_KERNEL_COMPILED : HOST_KERNEL),
                         .is_compiled = is_compiled,
                         .forward_kernels = is_block ? kind->forward.count : 0});
    *backward = fsdp_add_segment(
        builder, (struct segment){.name = arena_printf(builder->arena, "%s.backward", name),
                                  .kernels = kernels,
                                  .kernel_count = count,
                                  .host_cost = (uint8_t)(is_compiled ? HOST_KERNEL_COMPILED
                                                                     : HOST_KERNEL_BACKWARD),
                                  .is_compiled = is_compiled,
                                  .forward_kernels = is_block ? recompute_count : 0});
}

static void setup_module_tensors(struct fsdp_builder *builder, int32_t index)
{
    struct fsdp_module *module = &builder->modules[index];
    const struct module_kind *kind = fsdp_kind(builder, index);
    const char *name = builder->model->modules[index].name;
    module->done_event = kind->waits_for_gpu ? fsdp_add_event(builder, "forward_done", name) : -1;
    struct arena *arena = builder->arena;
    const bool is_loss = kind->role == MODULE_LOSS;
    const uint8_t category = is_loss ? MEMORY_LOGITS : MEMORY_ACTIVATIONS;
    const uint8_t temp_category = is_loss ? MEMORY_LOGITS : MEMORY_TEMPORARIES;
    const int32_t unit = module->unit;
    module->saved =
        fsdp_add_tensor(builder, (struct tensor){.name = arena_printf(arena, "saved(%s)", name),
                                                 .bytes = kind->saved_bytes,
                                                 .category = category,
                                                 .unit = unit});
    module->recomputed = fsdp_add_tensor(
        builder, (struct tensor){.name = arena_printf(arena, "recomputed(%s)", name),
                                 /* The block's input is kept already. */
                                 .bytes = kind->is_recomputed
                                              ? kind->recompute_saved_bytes - kind->saved_bytes
                                              : 0,
                                 .category = category,
                                 .unit = unit});
    module->forward_temp = fsdp_add_tensor(
        builder, (struct tensor){.name = arena_printf(arena, "forward_temp(%s)", name),
                                 .bytes = kind->forward_temp_bytes,
                                 .category = temp_category,
                                 .unit = unit});
    module->backward_temp = fsdp_add_tensor(
        builder, (struct tensor){.name = arena_printf(arena, "backward_temp(%s)", name),
                                 .bytes = kind->backward_temp_bytes,
                                 .category = temp_category,
                                 .unit = unit});
    module->grads = fsdp_add_tensor(
        builder,
        (struct tensor){.name = arena_printf(arena, "grads(%s)", name),
                        .bytes = (kind->numel - kind->frozen_numel) *
                                 dtype_bytes((enum dtype)builder->settings->precision.param_dtype),
                        .category = MEMORY_UNSHARDED_GRADIENTS,
                        .unit = unit,
                        .pieces = kind->param_count - kind->frozen_count});
    /* The head's output is the logits; its gradient is as large. Hidden states are counted by the
       blocks that save them. */
    const int64_t logits_bytes = kind->role == MODULE_HEAD ? kind->output_bytes : 0;
    module->output =
        fsdp_add_tensor(builder, (struct tensor){.name = arena_printf(arena, "logits(%s)", name),
                                                 .bytes = logits_bytes,
                                                 .category = MEMORY_LOGITS,
                                                 .unit = unit});
    module->output_grad = fsdp_add_tensor(
        builder, (struct tensor){.name = arena_printf(arena, "grad_logits(%s)", name),
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

void fsdp_add_workspace(struct fsdp_builder *builder)
{
    fsdp_hold(builder,
              fsdp_add_tensor(builder, (struct tensor){.name = "cublas_workspace",
                                                       .bytes = builder->settings->workspace_bytes,
                                                       .category = MEMORY_WORKSPACE,
                                                       .unit = -1}));
}

bool fsdp_is_first_of_unit(const struct fsdp_builder *builder, int32_t module)
{
    const int32_t unit = builder->modules[module].unit;
    for (int32_t i = 0; i < module; i++)
        if (builder->modules[i].unit == unit)
            return false;
    return true;
}

bool fsdp_is_last_of_unit(const struct fsdp_builder *builder, int32_t module)
{
    const int32_t unit = builder->modules[module].unit;
    for (int32_t i = module + 1; i < builder->model->module_count; i++)
        if (builder->modules[i].unit == unit)
            return false;
    return true;
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

void fsdp_run_forward(struct fsdp_builder *builder, int32_t index)
{
    const struct fsdp_module *module = &builder->modules[index];
    const int32_t unit = module->unit;
    enter_checkpoint(builder, index);
    fsdp_alloc(builder, unit, module->saved);
    fsdp_alloc(builder, unit, module->output);
    fsdp_alloc(builder, unit, module->forward_temp);
    fsdp_op(builder, OP_SEGMENT, FSDP_COMPUTE, unit, module->forward);
    fsdp_free(builder, unit, module->forward_temp);
    if (module->done_event >= 0) {
        fsdp_op(builder, OP_RECORD, FSDP_COMPUTE, unit, module->done_event);
        fsdp_op(builder, OP_HOST_WAIT, FSDP_COMPUTE, unit, module->done_event);
    }
    /* The loss was the last reader of the logits. */
    if (is_loss(builder, index))
        for (int32_t i = 0; i < index; i++)
            fsdp_free(builder, builder->modules[i].unit, builder->modules[i].output);
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
    fsdp_op(builder, OP_SEGMENT, FSDP_COMPUTE, module->unit, module->backward);
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
}

void fsdp_free_module_grads(struct fsdp_builder *builder, int32_t unit)
{
    for (int32_t i = 0; i < builder->model->module_count; i++)
        if (builder->modules[i].unit == unit)
            fsdp_free(builder, unit, builder->modules[i].grads);
}
