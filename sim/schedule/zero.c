/* schedule/zero.c: DeepSpeed ZeRO, stages 1, 2 and 3: streams, sizes, the step. See zero_private.h.
 */
#include <inttypes.h>

#include "schedule/zero_private.h"

int64_t zero_param_bytes(const struct zero_builder *builder)
{
    return dtype_bytes((enum dtype)builder->fsdp.settings->precision.param_dtype);
}

int64_t zero_reduce_bytes(const struct zero_builder *builder)
{
    return dtype_bytes((enum dtype)builder->fsdp.settings->precision.reduce_dtype);
}

int64_t zero_ranks(const struct zero_builder *builder)
{
    return builder->fsdp.settings->shard_group.ranks;
}

int64_t zero_secondary_ranks(const struct zero_builder *builder)
{
    const int64_t ranks = builder->fsdp.settings->secondary_group.ranks;
    return builder->stage == 3 && ranks > 1 ? ranks : 1;
}

bool zero_has_replicas(const struct zero_builder *builder)
{
    return builder->fsdp.settings->dp_group.ranks > zero_ranks(builder);
}

static void setup_streams(struct zero_builder *builder)
{
    static const struct stream streams[] = {{"compute", STREAM_COMPUTE, false},
                                            {"reduction", STREAM_REDUCE_SCATTER, false},
                                            {"fetch", STREAM_ALL_GATHER_COPY_IN, false},
                                            {"all-gather", STREAM_ALL_GATHER, false}};
    struct fsdp_builder *fsdp = &builder->fsdp;
    const int count = builder->stage == 3 ? 4 : 2;
    for (int i = 0; i < count; i++)
        *ARENA_PUSH(fsdp->arena, &fsdp->program->streams) = streams[i];
    *ARENA_PUSH(fsdp->arena, &fsdp->program->communicators) =
        (struct communicator){.name = "dp", .purpose = "zero", .group = fsdp->settings->dp_group};
    if (zero_has_replicas(builder))
        *ARENA_PUSH(fsdp->arena, &fsdp->program->communicators) = (struct communicator){
            .name = "dp_shard", .purpose = "updates", .group = fsdp->settings->shard_group};
    builder->secondary_communicator = -1;
    if (zero_secondary_ranks(builder) > 1) {
        *ARENA_PUSH(fsdp->arena, &fsdp->program->communicators) =
            (struct communicator){.name = "hpz",
                                  .purpose = "gathers in backward",
                                  .group = fsdp->settings->secondary_group};
        builder->secondary_communicator = fsdp->program->communicators.count - 1;
    }
    builder->reduce_stream = builder->overlaps ? ZERO_REDUCE : ZERO_COMPUTE;
    builder->fetch_stream = builder->overlaps ? ZERO_FETCH : ZERO_COMPUTE;
}

/* 95: each GPU updates its part of the parameters, laid out as one flat tensor. */
static void setup_units(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const int64_t ranks = zero_ranks(builder);
    for (int32_t i = 0; i < fsdp->unit_count; i++) {
        struct fsdp_unit *unit = &fsdp->units[i];
        unit->shard = (unit->parameters + ranks - 1) / ranks;
        fsdp_size_whole(fsdp, unit);
        unit->sharded_grads = -1;
        unit->optimizer_tensors = i == 0 ? 1 : 0;
        fsdp_list_unit(fsdp, i);
        if (builder->stage == 3)
            fsdp_add_shard(fsdp, i, 1);
        else
            fsdp_hold(fsdp, fsdp_add_unit_tensor(fsdp, i, "params",
                                                 unit->parameters * zero_param_bytes(builder),
                                                 MEMORY_PARAMETERS, ZERO_COMPUTE));
        optimizer_add_state(fsdp, i);
    }
}

/* What gradients are copied into as they are made: one buffer, two where the reduction of one runs
   beside the filling of the other. */
static void add_buffers(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    const struct zero_config *zero = &fsdp->settings->zero;
    const int count = builder->overlaps && (builder->stage < 3 || builder->is_blocking) ? 2 : 1;
    for (int i = 0; i < 2; i++)
        builder->buffers[i] = fsdp_add_tensor(
            fsdp,
            (struct tensor){.name = arena_printf(fsdp->arena, "gradient_buffer.%d", i),
                            .bytes = zero->contiguous_gradients && i < count
                                         ? zero->reduce_bucket_size * zero_param_bytes(builder)
                                         : 0,
                            .category = MEMORY_REDUCE_BUFFERS,
                            .unit = -1});
    int64_t shard = 0;
    for (int32_t i = 0; i < fsdp->unit_count; i++)
        shard += fsdp->units[i].shard;
    builder->partition =
        fsdp_add_tensor(fsdp, (struct tensor){.name = "gradient_partition",
                                              .bytes = policy_offloads_optimizer(fsdp->settings)
                                                           ? 0
                                                           : shard * zero_param_bytes(builder),
                                              .category = MEMORY_GRADIENTS,
                                              .unit = -1});
}

static void setup(struct zero_builder *builder)
{
    struct fsdp_builder *fsdp = &builder->fsdp;
    setup_streams(builder);
    fsdp_assign_units(fsdp, false);
    setup_units(builder);
    add_buffers(builder);
    fsdp_add_modules(fsdp);
    fsdp_order_gradients(fsdp);
    zero_add_buckets(builder);
    zero_add_slices(builder);
    if (builder->stage == 3)
        zero3_setup(builder);
    else
        zero12_setup(builder);
    optimizer_setup(fsdp);
    fsdp_add_workspace(fsdp);
}

/* A step of more pieces than this one is a slip of units: sizes are elements, not megabytes. */
enum { PIECES_MAX = 100000 };

enum status zero_check_pieces(struct config *config, const struct model *model,
                              const struct zero_config *zero, int api, int64_t ranks)
{
    const int64_t trained = model->rank_trained_parameters;
    const struct {
        const char *path, *pieces;
        bool is_used;
        int64_t elements, size;
    } rows[] = {{"zero.allgather_bucket_size", "gathers",
                 api != API_ZERO3 && zero->allgather_partitions && ranks > 1, trained,
                 zero->allgather_bucket_size},
                {"zero.sub_group_size", "updates",
                 api == API_ZERO3 && zero->offload_optimizer != OFFLOAD_NONE, trained / ranks,
                 zero->sub_group_size}};
    const int32_t errors_before = config->diag->error_count;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const int64_t count = rows[i].elements / rows[i].size;
        if (!rows[i].is_used || count <= PIECES_MAX)
            continue;
        config_error(
            config, rows[i].path,
            arena_printf(config->arena, "%" PRId64 " elements or more: at most %d %s a step",
                         rows[i].elements / (PIECES_MAX + 1) + 1, PIECES_MAX, rows[i].pieces),
            "%" PRId64 " parameters in pieces of %" PRId64 " would be %" PRId64
            " %s a step: too many to simulate",
            rows[i].elements, rows[i].size, count, rows[i].pieces);
    }
    return config->diag->error_count == errors_before ? STATUS_OK : STATUS_INPUT;
}

struct program *zero_build(struct arena *arena, const struct model *model,
                           const struct policy_settings *settings)
{
    const int overlap = settings->zero.overlap_comm;
    const int stage = 1 + settings->fsdp.api - API_ZERO1;
    struct zero_builder builder = {
        .fsdp = {.arena = arena,
                 .model = model,
                 .settings = settings,
                 .program = ARENA_NEW(arena, struct program),
                 .update_elements = stage == 3 ? settings->zero.sub_group_size : 0},
        .stage = stage,
        .overlaps = overlap == OVERLAP_ON || (overlap == OVERLAP_AUTO && stage == 3),
        .is_blocking = stage == 3 && settings->zero.coordinator == COORDINATOR_BLOCKING};
    struct fsdp_builder *fsdp = &builder.fsdp;
    fsdp->program->policy = policy_api_name(settings->fsdp.api);
    setup(&builder);
    fsdp_op(fsdp, OP_MARK, ZERO_COMPUTE, -1, MARK_STEP_BEGIN);
    fsdp_host(fsdp, HOST_STEP, -1, 1);
    for (int64_t i = 0; i < settings->grad_accum; i++) {
        builder.is_last_microbatch = i + 1 == settings->grad_accum;
        if (stage == 3)
            zero3_microbatch(&builder);
        else
            zero12_microbatch(&builder, i == 0, i + 1 == settings->grad_accum);
    }
    optimizer_step(fsdp);
    if (stage == 3)
        zero3_gather_updates(&builder);
    else
        zero12_gather_updates(&builder);
    fsdp_op(fsdp, OP_MARK, ZERO_COMPUTE, -1, MARK_STEP_END);
    return fsdp->program;
}
