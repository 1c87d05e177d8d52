/*
 * schedule/optimizer.c: the optimizer's step: state, clipping, update, zero_grad.
 *
 * Gradient norm (reads the sharded gradients), its scalar all-reduce, the scaling pass; then the
 * update, whose state appears at the first step() and stays. Every implementation is a list of
 * passes over the shard, from torch.optim (2.x):
 *
 *   fused     one pass: AdamW reads p, g, m, v and writes p, m, v: 28 B per fp32 parameter
 *   foreach   multi-tensor passes, a list each: AdamW 80 B, and a temporary as large as the shard
 *             (the square root of v)
 *   forloop   the same passes tensor by tensor; the temporary is one tensor's
 *
 * adamw_8bit keeps both moments in a byte each (bitsandbytes, with a 4-byte scale per 256
 * elements).
 *
 * With a master copy (`master_dtype`: DDP under Apex or Megatron, DeepSpeed) the shard's gradients
 * are first cast to fp32 (a temporary), clipping scales that, the update runs on the master copy,
 * and a last pass writes the parameters: 6 + 28 + 6 B a bf16 parameter.
 *
 * fp16 has a loss scale: a pass unscales the gradients and looks for infinities, and the host waits
 * for what it found (torch.amp.GradScaler; DeepSpeed only looks, and unscales while it clips).
 */
#include "schedule/fsdp_private.h"

/* A pass: how many operands of parameter dtype (parameter, gradient) and of the state it moves. */
struct update_pass {
    const char *name;
    double params, states;
};

struct update {
    const char *name, *state_name;
    double states;                            /* state elements a parameter */
    const struct update_pass *fused, *passes; /* end with {0} */
    bool has_temporary;                       /* foreach and forloop: one list of state dtype */
};

static const struct update_pass adamw_fused[] = {{"adamw", 3, 4}, {0}};
static const struct update_pass
    adamw_passes[] = {{"adamw.weight_decay", 2, 0}, /* p *= 1 - lr * wd */
                      {"adamw.lerp_m", 1, 2},       /* m = lerp(m, g) */
                      {"adamw.mul_v", 0, 2},        {"adamw.addcmul_v", 1, 2},
                      {"adamw.sqrt_v", 0, 2}, /* into the temporary */
                      {"adamw.div", 0, 2},          {"adamw.add_eps", 0, 2},
                      {"adamw.addcdiv_p", 2, 2},    {0}};
static const struct update_pass sgd_fused[] = {{"sgd", 3, 2}, {0}};
static const struct update_pass sgd_passes[] = {{"sgd.weight_decay", 3, 0}, /* g += wd * p */
                                                {"sgd.mul_buffer", 0, 2},
                                                {"sgd.add_buffer", 1, 2},
                                                {"sgd.add_p", 2, 1},
                                                {0}};

static const struct update updates[] = {
    [OPTIMIZER_ADAMW] = {"adamw", "adam_moments", 2, adamw_fused, adamw_passes, true},
    [OPTIMIZER_SGD] = {"sgd", "momentum", 1, sgd_fused, sgd_passes, false},
    [OPTIMIZER_ADAMW_8BIT] = {"adamw_8bit", "adam_moments", 2, adamw_fused, adamw_passes, false},
};

/* Bytes of one element of the state. */
static double element_bytes(const struct optimizer_config *optimizer)
{
    if (optimizer->name == OPTIMIZER_ADAMW_8BIT)
        return 1 + 4.0 / 256;
    return (double)dtype_bytes((enum dtype)optimizer->state_dtype);
}

double optimizer_state_bytes(const struct optimizer_config *optimizer)
{
    return updates[optimizer->name].states * element_bytes(optimizer);
}

enum dtype optimizer_update_dtype(const struct fsdp_builder *builder)
{
    const struct precision_config *precision = &builder->settings->precision;
    return precision->master_dtype != MASTER_NONE ? (enum dtype)(precision->master_dtype - 1)
                                                  : (enum dtype)precision->storage_dtype;
}

static bool has_master(const struct fsdp_builder *builder)
{
    return builder->settings->precision.master_dtype != MASTER_NONE;
}

/* The master copy of a unit's shard, which stays. */
static void add_master(struct fsdp_builder *builder, int32_t index)
{
    const struct fsdp_unit *unit = &builder->units[index];
    const int64_t each = has_master(builder) ? dtype_bytes(optimizer_update_dtype(builder)) : 0;
    const int64_t bytes = unit->sizes.optimized_shard * each;
    if (policy_offloads_optimizer(builder->settings))
        builder->program->host.optimizer += bytes;
    else
        fsdp_hold(builder, fsdp_add_unit_tensor(builder, index, "master", bytes, MEMORY_OPTIMIZER,
                                                FSDP_COMPUTE));
}

void optimizer_add_state(struct fsdp_builder *builder, int32_t index)
{
    add_master(builder, index);
    struct fsdp_unit *unit = &builder->units[index];
    const struct update *update = &updates[builder->settings->optimizer.name];
    const double bytes =
        (double)unit->sizes.optimized_shard * optimizer_state_bytes(&builder->settings->optimizer);
    unit->optimizer_state = -1;
    if (policy_offloads_optimizer(builder->settings)) {
        builder->program->host.optimizer += (int64_t)bytes;
        return;
    }
    unit->optimizer_state = fsdp_add_tensor(
        builder, (struct tensor){
                     .name = ARENA_JOIN(builder->arena, update->state_name, "(", unit->name, ")"),
                     .bytes = (int64_t)bytes,
                     .category = MEMORY_OPTIMIZER,
                     .unit = index,
                     .pieces = (int32_t)update->states * unit->optimizer_tensors});
    /* A state of each parameter, where the optimizer sees them one by one. */
    if (unit->optimizer_tensors == unit->sizes.trained_count)
        fsdp_split_by_param(builder, unit->optimizer_state, index, true, (int32_t)update->states);
}

/* Of all units: elements of the shard, tensors, and the largest mean tensor of a unit. */
struct shard_sizes {
    int64_t elements, largest;
    int32_t tensors;
};

static struct shard_sizes measure_shard(const struct fsdp_builder *builder)
{
    struct shard_sizes sizes = {0};
    for (int32_t i = 0; i < builder->unit_count; i++) {
        const struct fsdp_unit *unit = &builder->units[i];
        sizes.elements += unit->sizes.optimized_shard;
        sizes.tensors += unit->optimizer_tensors;
        const int64_t mean =
            unit->optimizer_tensors > 0 ? unit->sizes.optimized_shard / unit->optimizer_tensors : 0;
        sizes.largest = mean > sizes.largest ? mean : sizes.largest;
    }
    return sizes;
}

int64_t optimizer_elements(const struct fsdp_builder *builder)
{
    return measure_shard(builder).elements;
}

/* The passes of the update as it is written. */
static const struct update_pass *update_passes(const struct optimizer_config *optimizer)
{
    const struct update *update = &updates[optimizer->name];
    const bool is_fused =
        optimizer->impl == OPTIMIZER_FUSED || optimizer->name == OPTIMIZER_ADAMW_8BIT;
    return is_fused ? update->fused : update->passes;
}

static double pass_bytes(const struct fsdp_builder *builder, const struct update_pass *pass)
{
    return pass->params * (double)dtype_bytes(optimizer_update_dtype(builder)) +
           pass->states * element_bytes(&builder->settings->optimizer);
}

double optimizer_update_bytes(const struct fsdp_builder *builder)
{
    double bytes = 0;
    for (const struct update_pass *pass = update_passes(&builder->settings->optimizer);
         pass->name != NULL; pass++)
        bytes += pass_bytes(builder, pass);
    return bytes;
}

/* forloop repeats every pass for each tensor, in equal parts. */
static int32_t add_update_segment(struct fsdp_builder *builder, const struct shard_sizes *sizes)
{
    const struct optimizer_config *optimizer = &builder->settings->optimizer;
    const struct update *update = &updates[optimizer->name];
    const struct update_pass *passes = update_passes(optimizer);
    const bool is_fused = passes == update->fused;
    const int32_t repeats = optimizer->impl == OPTIMIZER_FORLOOP ? sizes->tensors : 1;
    int32_t count = 0;
    while (passes[count].name != NULL)
        count++;
    if (sizes->elements == 0)
        return -1;
    struct kernel *kernels = ARENA_ARRAY(builder->arena, struct kernel, count * repeats);
    for (int32_t i = 0; i < count * repeats; i++) {
        const struct update_pass *pass = &passes[i % count];
        kernels[i] =
            (struct kernel){.name = pass->name,
                            .kind = is_fused ? KERNEL_OPTIMIZER : KERNEL_ELEMENTWISE,
                            .impl = is_fused ? IMPL_HAND : IMPL_EAGER,
                            .dtype = optimizer_update_dtype(builder),
                            .bytes = (double)sizes->elements / repeats * pass_bytes(builder, pass)};
    }
    return fsdp_add_segment(builder, (struct segment){.name = update->name,
                                                      .kernels = kernels,
                                                      .kernel_count = count * repeats,
                                                      .host_cost = HOST_KERNEL,
                                                      .is_optimizer = true});
}

/* Clipping, and with fp16 the check for infinities, read the gradients as they are stored; with a
   master copy what is scaled is their cast. */
static void setup_norm(struct fsdp_builder *builder, double elements)
{
    const struct policy_settings *settings = builder->settings;
    const enum dtype storage = (enum dtype)settings->precision.storage_dtype;
    const enum dtype updated = optimizer_update_dtype(builder);
    const double grad_bytes = elements * (double)dtype_bytes(storage);
    builder->norm_segment = builder->scale_segment = builder->norm_all_reduce = -1;
    builder->norm_tensor_reduce = -1;
    builder->unscale_segment = builder->norm_event = -1;
    if (settings->precision.param_dtype == DTYPE_FP16)
        builder->unscale_segment =
            fsdp_add_pass(builder, "unscale_gradients", KERNEL_ELEMENTWISE, storage,
                          (settings->checks_gradients ? 1 : 2) * grad_bytes, true);
    if (settings->is_clipping || settings->checks_gradients) {
        builder->norm_segment =
            fsdp_add_pass(builder, "gradient_norm", KERNEL_REDUCE, storage, grad_bytes, true);
        builder->scale_segment =
            fsdp_add_pass(builder, "clip_gradients", KERNEL_ELEMENTWISE, updated,
                          2 * elements * (double)dtype_bytes(updated), true);
        builder->norm_all_reduce = fsdp_add_collective(builder, COLLECTIVE_ALL_REDUCE, 0, 4);
        if (builder->tensor_communicator > 0)
            builder->norm_tensor_reduce = fsdp_add_collective(builder, COLLECTIVE_ALL_REDUCE,
                                                              builder->tensor_communicator, 4);
    }
    /* Every rank looks at its shard. */
    const int api = settings->fsdp.api;
    builder->inf_all_reduce =
        builder->unscale_segment >= 0 && (api == API_FSDP2 || api == API_FSDP1)
            ? fsdp_add_collective(builder, COLLECTIVE_ALL_REDUCE, 0, 4)
            : -1;
    if (builder->unscale_segment >= 0 || settings->checks_gradients)
        builder->norm_event = fsdp_add_event(builder, "gradients_checked", "optimizer");
}

static void setup_master(struct fsdp_builder *builder, const struct shard_sizes *sizes)
{
    const enum dtype storage = (enum dtype)builder->settings->precision.storage_dtype;
    const enum dtype updated = optimizer_update_dtype(builder);
    const bool casts = has_master(builder) && storage != updated;
    const double moved =
        casts ? (double)sizes->elements * (double)(dtype_bytes(storage) + dtype_bytes(updated)) : 0;
    builder->to_master_segment =
        fsdp_add_pass(builder, "gradients_to_master", KERNEL_CAST, storage, moved, true);
    builder->from_master_segment =
        fsdp_add_pass(builder, "parameters_from_master", KERNEL_CAST, storage, moved, true);
    const bool is_grouped =
        builder->update_elements > 0 && builder->update_elements < sizes->elements;
    const int64_t at_once = is_grouped ? builder->update_elements : sizes->elements;
    builder->master_grads = fsdp_add_tensor(
        builder, (struct tensor){.name = "master_gradients",
                                 .bytes = casts ? at_once * dtype_bytes(updated) : 0,
                                 .category = MEMORY_TEMPORARIES,
                                 .unit = -1});
}

void optimizer_setup(struct fsdp_builder *builder)
{
    const struct optimizer_config *optimizer = &builder->settings->optimizer;
    const struct shard_sizes sizes = measure_shard(builder);
    if (policy_offloads_optimizer(builder->settings)) {
        optimizer_host_setup(builder);
        return;
    }
    setup_norm(builder, (double)sizes.elements);
    setup_master(builder, &sizes);
    builder->optimizer_segment = add_update_segment(builder, &sizes);
    const int64_t temporary = optimizer->impl == OPTIMIZER_FOREACH   ? sizes.elements
                              : optimizer->impl == OPTIMIZER_FORLOOP ? sizes.largest
                                                                     : 0;
    builder->optimizer_temporary = fsdp_add_tensor(
        builder,
        (struct tensor){.name = "optimizer_temporary",
                        .bytes = updates[optimizer->name].has_temporary
                                     ? (int64_t)((double)temporary * element_bytes(optimizer))
                                     : 0,
                        .category = MEMORY_TEMPORARIES,
                        .unit = -1,
                        .pieces = optimizer->impl == OPTIMIZER_FOREACH ? sizes.tensors : 1});
}

void optimizer_free_gradients(struct fsdp_builder *builder)
{
    for (int32_t i = 0; i < builder->unit_count; i++) {
        if (!fsdp_offloads(builder))
            fsdp_flagged_op(builder, OP_FREE, OP_LATER_STEPS, i, builder->units[i].sharded_grads);
        builder->units[i].has_gradient = false;
    }
}

/* The norm of the whole gradient; where the host looks at it, it waits. */
static void take_norm(struct fsdp_builder *builder, int32_t tensors)
{
    if (builder->unscale_segment >= 0 || builder->norm_segment >= 0) {
        fsdp_host(builder, HOST_OPTIMIZER, -1, 1);
        fsdp_host(builder, HOST_OPTIMIZER_PARAM, -1, tensors);
    }
    /* Over the shards alone: replicas find the same. */
    const bool is_shared = builder->program->communicators.items[0].group.ranks > 1;
    fsdp_op(builder, OP_SEGMENT, FSDP_COMPUTE, -1, builder->unscale_segment);
    if (is_shared)
        fsdp_op(builder, OP_COLLECTIVE, FSDP_COMPUTE, -1, builder->inf_all_reduce);
    fsdp_op(builder, OP_SEGMENT, FSDP_COMPUTE, -1, builder->norm_segment);
    if (is_shared)
        fsdp_op(builder, OP_COLLECTIVE, FSDP_COMPUTE, -1, builder->norm_all_reduce);
    fsdp_op(builder, OP_COLLECTIVE, FSDP_COMPUTE, -1, builder->norm_tensor_reduce);
    fsdp_op(builder, OP_RECORD, FSDP_COMPUTE, -1, builder->norm_event);
    fsdp_op(builder, OP_HOST_WAIT, FSDP_COMPUTE, -1, builder->norm_event);
}

void optimizer_step(struct fsdp_builder *builder)
{
    int32_t tensors = 0;
    for (int32_t i = 0; i < builder->unit_count; i++)
        tensors += builder->units[i].optimizer_tensors;
    if (tensors == 0)
        return;
    if (policy_offloads_optimizer(builder->settings)) {
        optimizer_host_step(builder, tensors);
        return;
    }
    take_norm(builder, tensors);
    fsdp_alloc(builder, -1, builder->master_grads);
    fsdp_op(builder, OP_SEGMENT, FSDP_COMPUTE, -1, builder->to_master_segment);
    fsdp_op(builder, OP_SEGMENT, FSDP_COMPUTE, -1, builder->scale_segment);
    fsdp_host(builder, HOST_OPTIMIZER, -1, 1);
    fsdp_host(builder, HOST_OPTIMIZER_PARAM, -1, tensors);
    for (int32_t i = 0; i < builder->unit_count; i++)
        fsdp_flagged_op(builder, OP_ALLOC, OP_FIRST_STEP, i, builder->units[i].optimizer_state);
    fsdp_alloc(builder, -1, builder->optimizer_temporary);
    fsdp_op(builder, OP_SEGMENT, FSDP_COMPUTE, -1, builder->optimizer_segment);
    fsdp_free(builder, -1, builder->optimizer_temporary);
    fsdp_free(builder, -1, builder->master_grads);
    fsdp_op(builder, OP_SEGMENT, FSDP_COMPUTE, -1, builder->from_master_segment);
}
