/* tests/unit/machine/toy.c: see toy.h. */
#include "toy.h"

#include "base/units.h"
#include "check.h"

static void new_program(struct toy *toy)
{
    static const char *const names[TOY_STREAM_COUNT] = {"compute", "gather", "scatter"};
    static const enum stream_role roles[TOY_STREAM_COUNT] = {STREAM_COMPUTE, STREAM_ALL_GATHER,
                                                             STREAM_REDUCE_SCATTER};
    struct program *program = ARENA_NEW(&toy->arena, struct program);
    program->policy = "toy";
    for (int32_t i = 0; i < TOY_STREAM_COUNT; i++) {
        struct stream *stream = ARENA_PUSH(&toy->arena, &program->streams);
        *stream = (struct stream){names[i], roles[i], i != 0};
    }
    toy->program = program;
    toy->list = &program->step;
    toy->programs[toy->program_count++] = program;
    (void)toy_communicator(toy, "dp_shard");
}

void toy_init(struct toy *toy, int32_t ranks, bool is_folded)
{
    *toy = (struct toy){.steps = 1, .unit = -1};
    diag_init(&toy->diag, &toy->arena);
    struct cluster *cluster = &toy->cluster;
    cluster->name = "toy";
    cluster->gpu.name = "toy";
    cluster->gpu.sm_count = 80;
    cluster->gpu.hbm_bytes_per_s = 4e12;
    cluster->gpu.sustained_clock_frac = 1;
    cluster->gpus_per_host = ranks;
    cluster->scale_up = SCALE_UP_SWITCH;
    cluster->scale_up_link = (struct link){.name = "toy", .bytes_per_s = 1e9, .ring_efficiency = 1};
    cluster->algorithm = ALGORITHM_RING;
    cluster->comm_slowdown = 1;
    cluster->max_hosts = 1;
    CHECK_INT(layout_build(&toy->arena, cluster, 1, ranks, is_folded, &toy->layout, &toy->diag),
              STATUS_OK);
    new_program(toy);
}

void toy_release(struct toy *toy)
{
    arena_release(&toy->arena);
}

void toy_next_program(struct toy *toy)
{
    new_program(toy);
}

int32_t toy_communicator(struct toy *toy, const char *name)
{
    const int32_t ranks = (int32_t)toy->layout.ranks;
    struct communicator *comm = ARENA_PUSH(&toy->arena, &toy->program->communicators);
    *comm = (struct communicator){.name = name,
                                  .purpose = "test",
                                  .group = {.ranks = ranks, .hosts = 1, .ranks_per_host = ranks}};
    return toy->program->communicators.count - 1;
}

void toy_set_capacity(struct toy *toy, enum resource_kind kind, double capacity)
{
    for (int32_t i = 0; i < toy->layout.resource_count; i++) {
        if (toy->layout.resources[i].kind == kind)
            toy->layout.resources[i].capacity = capacity;
    }
}

int32_t toy_event(struct toy *toy, const char *name)
{
    *ARENA_PUSH(&toy->arena, &toy->program->events) = name;
    return toy->program->events.count - 1;
}

int32_t toy_kernels(struct toy *toy, const struct kernel *kernels, int32_t count)
{
    struct segment *segment = ARENA_PUSH(&toy->arena, &toy->program->segments);
    *segment = (struct segment){
        .name = "kernels", .kernels = kernels, .kernel_count = count, .host_cost = HOST_KERNEL};
    return toy->program->segments.count - 1;
}

struct kernel toy_kernel(double ms, double bytes)
{
    return (struct kernel){
        .name = "toy", .kind = KERNEL_GIVEN, .bytes = bytes, .given_s = ms * 1e-3};
}

int32_t toy_segment(struct toy *toy, const char *name, enum kernel_pass pass, double ms)
{
    struct kernel *kernel = ARENA_NEW(&toy->arena, struct kernel);
    *kernel = toy_kernel(ms, 0);
    kernel->pass = pass;
    const int32_t index = toy_kernels(toy, kernel, 1);
    toy->program->segments.items[index].name = name;
    return index;
}

/* Over n ranks S bytes take S·(n − 1)/n at 1 GB/s. */
int32_t toy_collective(struct toy *toy, enum collective_op op, int32_t communicator, double ms)
{
    const double n = (double)toy->layout.ranks;
    struct collective *collective = ARENA_PUSH(&toy->arena, &toy->program->collectives);
    *collective = (struct collective){
        .op = op, .communicator = communicator, .bytes = ms * 1e6 * n / (n - 1)};
    return toy->program->collectives.count - 1;
}

int32_t toy_tensor(struct toy *toy, const char *name, int64_t bytes, enum memory_category category,
                   int32_t stream)
{
    struct tensor *tensor = ARENA_PUSH(&toy->arena, &toy->program->tensors);
    *tensor = (struct tensor){.name = name,
                              .bytes = bytes,
                              .category = (uint8_t)category,
                              .stream = (uint8_t)stream,
                              .unit = toy->unit,
                              .pieces = 1};
    return toy->program->tensors.count - 1;
}

int32_t toy_unit(struct toy *toy, const char *name)
{
    ARENA_PUSH(&toy->arena, &toy->program->units)->name = name;
    return toy->program->units.count - 1;
}

struct op *toy_op(struct toy *toy, enum op_kind kind, int32_t stream, int32_t index)
{
    struct op *op = ARENA_PUSH(&toy->arena, toy->list);
    *op = (struct op){
        .kind = (uint8_t)kind, .stream = (uint8_t)stream, .unit = toy->unit, .index = index};
    return op;
}

void toy_marks_begin(struct toy *toy)
{
    toy_op(toy, OP_MARK, TOY_COMPUTE, MARK_STEP_BEGIN);
    toy_op(toy, OP_MARK, TOY_COMPUTE, MARK_FORWARD_BEGIN);
}

enum status toy_try_play(struct toy *toy, struct machine_result *result)
{
    const struct program *programs[TOY_MAX_CLASSES];
    for (int32_t i = 0; i < toy->program_count; i++)
        programs[i] = toy->programs[i];
    const struct machine_setup setup = {.layout = &toy->layout,
                                        .programs = programs,
                                        .program_count = toy->program_count,
                                        .network = toy->network,
                                        .ideal = toy->ideal,
                                        .allocator = toy->allocator,
                                        .limits_memory = toy->limits_memory,
                                        .steps = toy->steps,
                                        .tie_seed = toy->tie_seed,
                                        .jitter = toy->jitter,
                                        .observers = toy->observers,
                                        .observer_count = toy->observer_count};
    return machine_play(&toy->arena, &setup, result, &toy->diag);
}

struct machine_result toy_play(struct toy *toy)
{
    struct machine_result result = {0};
    CHECK_INT(toy_try_play(toy, &result), STATUS_OK);
    diag_write(&toy->diag, stderr, false);
    return result;
}

double ms_from_ps(int64_t ps)
{
    return (double)ps * 1e-9;
}
