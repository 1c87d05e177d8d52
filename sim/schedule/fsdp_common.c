/* schedule/fsdp_common.c: appending to a program. See fsdp_private.h. */
#include "schedule/fsdp_private.h"

int32_t fsdp_add_event(struct fsdp_builder *builder, const char *what, const char *unit)
{
    *ARENA_PUSH(builder->arena, &builder->program->events) =
        ARENA_JOIN(builder->arena, what, "(", unit, ")");
    return builder->program->events.count - 1;
}

int32_t fsdp_add_tensor(struct fsdp_builder *builder, struct tensor tensor)
{
    if (tensor.bytes <= 0)
        return -1;
    if (tensor.pieces < 1)
        tensor.pieces = 1;
    *ARENA_PUSH(builder->arena, &builder->program->tensors) = tensor;
    return builder->program->tensors.count - 1;
}

int32_t fsdp_add_segment(struct fsdp_builder *builder, struct segment segment)
{
    *ARENA_PUSH(builder->arena, &builder->program->segments) = segment;
    return builder->program->segments.count - 1;
}

int32_t fsdp_add_pass(struct fsdp_builder *builder, const char *name, enum kernel_kind kind,
                      enum dtype dtype, double bytes, bool is_optimizer)
{
    if (bytes <= 0)
        return -1;
    struct kernel *kernel = ARENA_NEW(builder->arena, struct kernel);
    *kernel = (struct kernel){.name = name, .kind = kind, .dtype = dtype, .bytes = bytes};
    return fsdp_add_segment(builder, (struct segment){.name = name,
                                                      .kernels = kernel,
                                                      .kernel_count = 1,
                                                      .host_cost = HOST_KERNEL,
                                                      .is_optimizer = is_optimizer});
}

int32_t fsdp_add_collective(struct fsdp_builder *builder, enum collective_op op,
                            int32_t communicator, double bytes)
{
    *ARENA_PUSH(builder->arena, &builder->program->collectives) =
        (struct collective){.op = op,
                            .communicator = communicator,
                            .bytes = bytes,
                            .is_average = op != COLLECTIVE_ALL_GATHER};
    return builder->program->collectives.count - 1;
}

int32_t fsdp_add_unit_tensor(struct fsdp_builder *builder, int32_t unit, const char *what,
                             int64_t bytes, enum memory_category category, int stream)
{
    return fsdp_add_tensor(builder,
                           (struct tensor){.name = ARENA_JOIN(builder->arena, what, "(",
                                                              builder->units[unit].name, ")"),
                                           .bytes = bytes,
                                           .category = (uint8_t)category,
                                           .stream = (uint8_t)stream,
                                           .unit = unit});
}

int32_t fsdp_add_unit_pass(struct fsdp_builder *builder, int32_t unit, const char *what,
                           enum kernel_kind kind, enum dtype dtype, double bytes)
{
    const char *name = ARENA_JOIN(builder->arena, what, "(", builder->units[unit].name, ")");
    return fsdp_add_pass(builder, name, kind, dtype, bytes, false);
}

int32_t fsdp_add_param_passes(struct fsdp_builder *builder, int32_t unit, const char *what,
                              enum kernel_kind kind, enum dtype dtype, double bytes, int32_t count)
{
    if (bytes <= 0 || count == 0)
        return -1;
    const char *name = ARENA_JOIN(builder->arena, what, "(", builder->units[unit].name, ")");
    struct kernel *kernels = ARENA_ARRAY(builder->arena, struct kernel, count);
    for (int32_t i = 0; i < count; i++)
        kernels[i] = (struct kernel){
            .name = name, .kind = kind, .dtype = dtype, .bytes = bytes / (double)count};
    return fsdp_add_segment(builder, (struct segment){.name = name,
                                                      .kernels = kernels,
                                                      .kernel_count = count,
                                                      .host_cost = HOST_KERNEL});
}

const struct unit *fsdp_list_unit(struct fsdp_builder *builder, int32_t index)
{
    const struct fsdp_unit *unit = &builder->units[index];
    const struct precision_config *precision = &builder->settings->precision;
    struct unit *listed = ARENA_PUSH(builder->arena, &builder->program->units);
    *listed = (struct unit){
        .name = unit->name,
        .parameters = unit->parameters,
        .param_count = unit->param_count,
        .all_gather_bytes = unit->padded * dtype_bytes((enum dtype)precision->param_dtype),
        .reduce_scatter_bytes =
            unit->sizes.reduced_padded * dtype_bytes((enum dtype)precision->reduce_dtype)};
    return listed;
}

void fsdp_hold(struct fsdp_builder *builder, int32_t tensor)
{
    if (tensor >= 0)
        *ARENA_PUSH(builder->arena, &builder->program->prologue) =
            (struct op){.kind = OP_ALLOC,
                        .unit = builder->program->tensors.items[tensor].unit,
                        .index = tensor};
}

void fsdp_add_op(struct fsdp_builder *builder, struct op op)
{
    if (op.index >= 0)
        *ARENA_PUSH(builder->arena, &builder->program->step) = op;
}

void fsdp_op(struct fsdp_builder *builder, enum op_kind kind, int stream, int32_t unit,
             int32_t index)
{
    fsdp_add_op(builder, (struct op){.kind = (uint8_t)kind,
                                     .stream = (uint8_t)stream,
                                     .unit = unit,
                                     .index = index});
}

void fsdp_flagged_op(struct fsdp_builder *builder, enum op_kind kind, enum op_flag flag,
                     int32_t unit, int32_t index)
{
    fsdp_add_op(builder, (struct op){.kind = (uint8_t)kind,
                                     .flags = (uint16_t)flag,
                                     .unit = unit,
                                     .index = index,
                                     .count = 1});
}

void fsdp_host(struct fsdp_builder *builder, enum host_cost cost, int32_t unit, int32_t count)
{
    fsdp_add_op(
        builder,
        (struct op){.kind = OP_HOST_WORK, .unit = unit, .index = (int32_t)cost, .count = count});
}

void fsdp_alloc(struct fsdp_builder *builder, int32_t unit, int32_t tensor)
{
    fsdp_op(builder, OP_ALLOC, FSDP_COMPUTE, unit, tensor);
}

void fsdp_free(struct fsdp_builder *builder, int32_t unit, int32_t tensor)
{
    fsdp_op(builder, OP_FREE, FSDP_COMPUTE, unit, tensor);
}
