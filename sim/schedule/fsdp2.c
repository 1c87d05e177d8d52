/* schedule/fsdp2.c: FSDP2 (`fully_shard`): the step and its forward. See fsdp2_private.h. */
#include "schedule/fsdp2_private.h"

static struct op *append(struct fsdp2_builder *builder, struct op op)
{
    struct op *added = ARENA_PUSH(builder->arena, &builder->program->step);
    *added = op;
    return added;
}

void fsdp2_op(struct fsdp2_builder *builder, enum op_kind kind, int stream, int32_t unit,
              int32_t index)
{
    if (index >= 0)
        append(builder,
               (struct op){
                   .kind = (uint8_t)kind, .stream = (uint8_t)stream, .unit = unit, .index = index});
}

void fsdp2_host(struct fsdp2_builder *builder, enum host_cost cost, int32_t unit, int32_t count)
{
    append(builder,
           (struct op){.kind = OP_HOST_WORK, .unit = unit, .index = (int32_t)cost, .count = count});
}

void fsdp2_alloc(struct fsdp2_builder *builder, int32_t unit, int32_t tensor)
{
    fsdp2_op(builder, OP_ALLOC, FSDP2_COMPUTE, unit, tensor);
}

void fsdp2_free(struct fsdp2_builder *builder, int32_t unit, int32_t tensor)
{
    fsdp2_op(builder, OP_FREE, FSDP2_COMPUTE, unit, tensor);
}

static void wait_on_gather_streams(struct fsdp2_builder *builder, int32_t unit, int32_t event)
{
    fsdp2_op(builder, OP_WAIT, FSDP2_COPY_IN, unit, event);
    fsdp2_op(builder, OP_WAIT, FSDP2_ALL_GATHER, unit, event);
}

/* 9, 11-13: issue the all-gather, unless it is under way or the unit is gathered already. */
void fsdp2_unshard(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp_unit *unit = &builder->units[index];
    if (unit->param_count == 0 || unit->is_pending || unit->is_unsharded)
        return;
    unit->is_pending = true;
    fsdp2_alloc(builder, index, unit->cast);
    fsdp2_alloc(builder, index, unit->gather_buffer);
    fsdp2_op(builder, OP_SEGMENT, FSDP2_COPY_IN, index, unit->copy_in);
    fsdp2_free(builder, index, unit->cast);
    fsdp2_op(builder, OP_RECORD, FSDP2_COPY_IN, index, unit->copied_in);
    fsdp2_op(builder, OP_WAIT, FSDP2_ALL_GATHER, index, unit->copied_in);
    if (builder->settings->shard_group.ranks > 1)
        fsdp2_op(builder, OP_COLLECTIVE, FSDP2_ALL_GATHER, index, unit->all_gather);
    fsdp2_op(builder, OP_RECORD, FSDP2_ALL_GATHER, index, unit->gathered);
}

/* 15: the buffer of the unit before is released when this one is about to be copied out. */
static void release_parked(struct fsdp2_builder *builder)
{
    if (builder->parked_unit < 0)
        return;
    const struct fsdp_unit *parked = &builder->units[builder->parked_unit];
    wait_on_gather_streams(builder, builder->parked_unit, parked->copied_out);
    fsdp2_free(builder, builder->parked_unit, parked->gather_buffer);
    builder->parked_unit = -1;
}

/* 15-18: compute waits for the all-gather and copies it out into the parameters. */
void fsdp2_wait_for_unshard(struct fsdp2_builder *builder, int32_t index, bool is_backward)
{
    struct fsdp_unit *unit = &builder->units[index];
    if (!unit->is_pending)
        return;
    if (!is_backward)
        release_parked(builder);
    fsdp2_op(builder, OP_WAIT, FSDP2_COMPUTE, index, unit->gathered);
    fsdp2_alloc(builder, index, unit->params);
    fsdp2_op(builder, OP_SEGMENT, FSDP2_COMPUTE, index, unit->copy_out);
    fsdp2_op(builder, OP_RECORD, FSDP2_COMPUTE, index, unit->copied_out);
    if (is_backward) {
        wait_on_gather_streams(builder, index, unit->copied_out);
        fsdp2_free(builder, index, unit->gather_buffer);
    } else {
        builder->parked_unit = index;
    }
    unit->is_pending = false;
    unit->is_unsharded = true;
}

/* 19: hooks, all-gather, wait. */
static void pre_forward(struct fsdp2_builder *builder, int32_t index)
{
    fsdp2_host(builder, HOST_HOOK, index, 1);
    if (builder->units[index].param_count > 0)
        fsdp2_host(builder, HOST_HOOK_PARAM, index, builder->units[index].param_count);
    fsdp2_unshard(builder, index);
    fsdp2_wait_for_unshard(builder, index, false);
}

/* 21: reshard, remember the order. */
static void post_forward(struct fsdp2_builder *builder, int32_t index)
{
    struct fsdp_unit *unit = &builder->units[index];
    if (unit->param_count == 0)
        return;
    if (unit->is_resharded) {
        fsdp2_free(builder, index, unit->params);
        unit->is_unsharded = false;
    }
    builder->post_forward_order[builder->post_forward_count++] = index;
}

static void run_module_forward(struct fsdp2_builder *builder, int32_t index)
{
    const struct fsdp_module *module = &builder->modules[index];
    const int32_t unit = module->unit;
    const struct module_kind *kind =
        &builder->model->kinds[builder->model->modules[index].kind_idx];
    fsdp2_alloc(builder, unit, module->saved);
    fsdp2_alloc(builder, unit, module->output);
    fsdp2_alloc(builder, unit, module->forward_temp);
    fsdp2_op(builder, OP_SEGMENT, FSDP2_COMPUTE, unit, module->forward);
    fsdp2_free(builder, unit, module->forward_temp);
    /* The loss was the last reader of the logits. */
    if (kind->role == MODULE_LOSS)
        for (int32_t i = 0; i < index; i++)
            fsdp2_free(builder, builder->modules[i].unit, builder->modules[i].output);
}

static bool is_last_of_unit(const struct fsdp2_builder *builder, int32_t module)
{
    const int32_t unit = builder->modules[module].unit;
    for (int32_t i = module + 1; i < builder->model->module_count; i++)
        if (builder->modules[i].unit == unit)
            return false;
    return true;
}

static void forward(struct fsdp2_builder *builder)
{
    builder->post_forward_count = 0;
    builder->parked_unit = -1;
    fsdp2_op(builder, OP_MARK, FSDP2_COMPUTE, -1, MARK_FORWARD_BEGIN);
    /* 7: the gather streams wait for everything queued on compute, the optimizer included. */
    fsdp2_op(builder, OP_RECORD, FSDP2_COMPUTE, 0, builder->root_event);
    wait_on_gather_streams(builder, 0, builder->root_event);
    pre_forward(builder, 0);
    const int32_t module_count = builder->model->module_count;
    for (int32_t i = 0; i < module_count; i++) {
        const int32_t unit = builder->modules[i].unit;
        if (unit > 0 && builder->units[unit].first_module == i)
            pre_forward(builder, unit);
        run_module_forward(builder, i);
        if (unit > 0 && is_last_of_unit(builder, i))
            post_forward(builder, unit);
        /* The root's forward ends before the loss. */
        if (unit >= 0 && (i + 1 == module_count || builder->modules[i + 1].unit < 0)) {
            post_forward(builder, 0);
            release_parked(builder);
        }
    }
    fsdp2_op(builder, OP_MARK, FSDP2_COMPUTE, -1, MARK_FORWARD_END);
}

static void free_gradients(struct fsdp2_builder *builder)
{
    for (int32_t i = 0; i < builder->unit_count; i++) {
        if (builder->units[i].sharded_grads < 0)
            continue;
        append(builder, (struct op){.kind = OP_FREE,
                                    .flags = OP_LATER_STEPS,
                                    .unit = i,
                                    .index = builder->units[i].sharded_grads});
        builder->units[i].has_gradient = false;
    }
}

static void optimizer_step(struct fsdp2_builder *builder)
{
    int32_t tensors = 0;
    for (int32_t i = 0; i < builder->unit_count; i++)
        tensors += builder->units[i].param_count;
    if (tensors == 0)
        return;
    if (builder->settings->is_clipping) {
        fsdp2_host(builder, HOST_OPTIMIZER, -1, 1);
        fsdp2_host(builder, HOST_OPTIMIZER_PARAM, -1, tensors);
        fsdp2_op(builder, OP_SEGMENT, FSDP2_COMPUTE, -1, builder->norm_segment);
        if (builder->settings->shard_group.ranks > 1)
            fsdp2_op(builder, OP_COLLECTIVE, FSDP2_COMPUTE, -1, builder->norm_all_reduce);
        fsdp2_op(builder, OP_SEGMENT, FSDP2_COMPUTE, -1, builder->scale_segment);
    }
    fsdp2_host(builder, HOST_OPTIMIZER, -1, 1);
    fsdp2_host(builder, HOST_OPTIMIZER_PARAM, -1, tensors);
    /* The moments appear at the first step(), and stay. */
    for (int32_t i = 0; i < builder->unit_count; i++)
        if (builder->optimizer_state[i] >= 0)
            append(builder, (struct op){.kind = OP_ALLOC,
                                        .flags = OP_FIRST_STEP,
                                        .unit = i,
                                        .index = builder->optimizer_state[i]});
    fsdp2_op(builder, OP_SEGMENT, FSDP2_COMPUTE, -1, builder->optimizer_segment);
}

struct program *fsdp2_build(struct arena *arena, const struct model *model,
                            const struct policy_settings *settings)
{
    struct fsdp2_builder builder = {.arena = arena,
                                    .model = model,
                                    .settings = settings,
                                    .program = ARENA_NEW(arena, struct program),
                                    .norm_all_reduce = -1,
                                    .norm_segment = -1,
                                    .scale_segment = -1,
                                    .optimizer_segment = -1};
    builder.program->policy = "fsdp2";
    fsdp2_setup(&builder);
    fsdp2_op(&builder, OP_MARK, FSDP2_COMPUTE, -1, MARK_STEP_BEGIN);
    fsdp2_host(&builder, HOST_STEP, -1, 1);
    free_gradients(&builder);
    for (int64_t i = 0; i < settings->grad_accum; i++) {
        forward(&builder);
        fsdp2_backward(&builder);
    }
    optimizer_step(&builder);
    fsdp2_op(&builder, OP_MARK, FSDP2_COMPUTE, -1, MARK_STEP_END);
    return builder.program;
}
