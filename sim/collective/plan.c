/* collective/plan.c: ring collectives as phases. */
#include "collective/plan.h"

#include <float.h>
#include <math.h>

#include "collective/plan_calibrate.h"

enum { MAX_PHASES = 4, LOADS_PER_CLASS = 5 };

struct plan_builder {
    struct arena *arena;
    const struct layout *layout;
    struct group group;
    struct plan_options options;
    struct plan *plan;
};

/* Work of a phase on the resources of a rank and of a NIC, for each byte a rank sends. */
struct phase_shape {
    int64_t steps_in_host, steps_across;
    double bytes;
    double scale_up; /* through one GPU's port */
    double nic;      /* through one NIC */
};

/* A ring's share of the raw link, at this capacity. */
static double ring_rate(const struct cluster *cluster, const struct resource *resource)
{
    switch (resource->kind) {
    case RESOURCE_SCALE_UP_OUT:
    case RESOURCE_SCALE_UP_IN:
        return resource->capacity * cluster->scale_up_link.ring_efficiency;
    case RESOURCE_NIC_OUT:
    case RESOURCE_NIC_IN:
        return resource->capacity * cluster->nic_link.ring_efficiency;
    case RESOURCE_SM:
    case RESOURCE_HBM:
    case RESOURCE_COPY_ENGINE:
    case RESOURCE_SCALE_UP_LINK:
    case RESOURCE_PCIE_UP:
    case RESOURCE_PCIE_DOWN:
    case RESOURCE_SOCKET:
    case RESOURCE_HOST_MEMORY:
    case RESOURCE_FABRIC_UP:
    case RESOURCE_FABRIC_DOWN:
    case RESOURCE_KIND_COUNT:
        break;
    }
    return resource->capacity;
}

/* Classes may share a NIC: its load stands once, since all of a host's ranks make it together. */
static void add_load(const struct plan_builder *builder, struct phase *phase, bool *is_loaded,
                     int32_t resource, double per_byte)
{
    if (resource < 0 || per_byte <= 0 || is_loaded[resource])
        return;
    is_loaded[resource] = true;
    phase->loads[phase->load_count++] = (struct load){resource, per_byte};
    const struct resource *of = &builder->layout->resources[resource];
    double rate = ring_rate(builder->layout->cluster, of) / per_byte;
    phase->cap_bytes_per_s = fmin(phase->cap_bytes_per_s, rate);
    bool is_slowed = !builder->options.is_contention_free &&
                     (of->kind == RESOURCE_SCALE_UP_OUT || of->kind == RESOURCE_SCALE_UP_IN);
    double beside = is_slowed ? rate / builder->layout->cluster->comm_slowdown : rate;
    phase->cap_beside_bytes_per_s = fmin(phase->cap_beside_bytes_per_s, beside);
}

static void add_phase(struct plan_builder *builder, const struct phase_shape *shape)
{
    const struct layout *layout = builder->layout;
    const struct cluster *cluster = layout->cluster;
    struct phase *phase = &builder->plan->phases[builder->plan->phase_count++];
    *phase = (struct phase){
        .rounds = shape->steps_in_host + shape->steps_across,
        .bytes = shape->bytes,
        .cap_bytes_per_s = DBL_MAX,
        .cap_beside_bytes_per_s = DBL_MAX,
        .loads = ARENA_ARRAY(builder->arena, struct load, LOADS_PER_CLASS * layout->class_count)};
    if (!builder->options.is_latency_free)
        phase->latency_s = (double)shape->steps_in_host * cluster->scale_up_link.step_latency_s +
                           (double)shape->steps_across * cluster->nic_link.step_latency_s;
    bool *is_loaded = ARENA_ARRAY(builder->arena, bool, layout->resource_count);
    double hbm = builder->options.is_contention_free ? 0 : cluster->hbm_bytes_per_bus_byte;
    for (int32_t i = 0; i < layout->class_count; i++) {
        const struct rank_class *class = &layout->classes[i];
        add_load(builder, phase, is_loaded, class->scale_up_out, shape->scale_up);
        add_load(builder, phase, is_loaded, class->scale_up_in, shape->scale_up);
        add_load(builder, phase, is_loaded, class->nic_out, shape->nic);
        add_load(builder, phase, is_loaded, class->nic_in, shape->nic);
        add_load(builder, phase, is_loaded, class->hbm, hbm);
    }
    builder->plan->bytes_per_rank += shape->bytes;
}

/* One ring over all ranks, `passes` times round: 1 for a gather or a scatter, 2 for an all-reduce.
 */
static void add_ring(struct plan_builder *builder, double bytes, int64_t passes)
{
    const struct group *group = &builder->group;
    double n = (double)group->ranks;
    double g = (double)group->ranks_per_host;
    bool is_one_host = group->hosts == 1;
    struct phase_shape shape = {.bytes = (double)passes * bytes * (n - 1) / n,
                                .scale_up = is_one_host ? 1 : (g - 1) / g};
    int64_t steps_across = is_one_host ? 0 : group->hosts - 1;
    shape.steps_across = passes * steps_across;
    shape.steps_in_host = passes * (group->ranks - 1 - steps_across);
    if (!is_one_host) { /* a ring leaves a host once; so do the rings of all its groups */
        int64_t groups = builder->layout->gpus_per_host / group->ranks_per_host;
        shape.nic = (double)groups / (double)builder->layout->nics_per_host;
    }
    add_phase(builder, &shape);
}

static void add_across(struct plan_builder *builder, double bytes)
{
    const struct group *group = &builder->group;
    double k = (double)group->hosts;
    struct phase_shape shape = {.bytes = bytes / (double)group->ranks_per_host * (k - 1) / k,
                                .steps_across = group->hosts - 1,
                                .nic = (double)builder->layout->gpus_per_host /
                                       (double)builder->layout->nics_per_host};
    add_phase(builder, &shape);
}

static void add_in_host(struct plan_builder *builder, double bytes)
{
    double g = (double)builder->group.ranks_per_host;
    struct phase_shape shape = {.bytes = bytes * (g - 1) / g,
                                .steps_in_host = builder->group.ranks_per_host - 1,
                                .scale_up = 1};
    add_phase(builder, &shape);
}

static void add_two_level(struct plan_builder *builder, enum collective_op op, double bytes)
{
    if (op != COLLECTIVE_ALL_GATHER) {
        add_in_host(builder, bytes);
        add_across(builder, bytes);
    }
    if (op != COLLECTIVE_REDUCE_SCATTER) {
        add_across(builder, bytes);
        add_in_host(builder, bytes);
    }
}

static void check_group(const struct layout *layout, const struct group *group)
{
    if (group->ranks != group->hosts * group->ranks_per_host || group->ranks < 1)
        BUG("group of %lld ranks on %lld hosts with %lld each", (long long)group->ranks,
            (long long)group->hosts, (long long)group->ranks_per_host);
    if (group->hosts > layout->hosts || group->ranks_per_host > layout->gpus_per_host)
        BUG("group larger than the layout");
    if (group->ranks == layout->ranks)
        return;
    if (layout->class_count > 1)
        BUG("groups of a part of the ranks, but the ranks are not alike");
    if (layout->hosts % group->hosts != 0 || layout->gpus_per_host % group->ranks_per_host != 0)
        BUG("groups do not tile the layout");
}

enum status plan_spec_build(struct arena *arena, const struct layout *layout,
                            const struct group *group, enum collective_op op, double bytes,
                            const struct plan_options *options, struct plan *plan,
                            struct diag *diag)
{
    *plan = (struct plan){0};
    check_group(layout, group);
    if (group->ranks == 1 || bytes <= 0)
        return STATUS_OK;
    if (group->hosts > 1 && layout->nics_per_host == 0) {
        diag_add(diag, DIAG_ERROR, layout->cluster->place, NULL, "cluster '%s' has no NICs",
                 layout->cluster->name);
        return STATUS_INPUT;
    }
    const struct cluster *cluster = layout->cluster;
    plan->phases = ARENA_ARRAY(arena, struct phase, MAX_PHASES);
    if (!options->is_latency_free)
        plan->base_s = cluster->collective_base_s;
    if (!options->is_contention_free)
        plan->channels = group->hosts == 1 ? cluster->channels_one_host : cluster->channels;
    struct plan_builder builder = {
        .arena = arena, .layout = layout, .group = *group, .options = *options, .plan = plan};
    bool is_two_level = cluster->algorithm == ALGORITHM_TWO_LEVEL_RING && group->hosts > 1 &&
                        group->ranks_per_host > 1;
    if (is_two_level)
        add_two_level(&builder, op, bytes);
    else
        add_ring(&builder, bytes, op == COLLECTIVE_ALL_REDUCE ? 2 : 1);
    return STATUS_OK;
}

enum status plan_build(struct arena *arena, const struct layout *layout, const struct group *group,
                       enum collective_op op, double bytes, const struct plan_options *options,
                       struct plan *plan, struct diag *diag)
{
    enum status status = plan_spec_build(arena, layout, group, op, bytes, options, plan, diag);
    if (status == STATUS_OK)
        status = plan_calibrate(arena, layout, group, op, bytes, options, plan, diag);
    return status;
}

/* The rate of a phase alone, and the resource that comes closest to bounding it. */
static double phase_rate(const struct layout *layout, const struct phase *phase,
                         int32_t *bottleneck)
{
    double rate = phase->cap_bytes_per_s;
    double slowest = DBL_MAX;
    *bottleneck = -1;
    for (int32_t i = 0; i < phase->load_count; i++) {
        const struct load *load = &phase->loads[i];
        const struct resource *resource = &layout->resources[load->resource];
        rate = fmin(rate, resource->capacity / load->per_byte);
        double alone = ring_rate(layout->cluster, resource) / load->per_byte;
        if (alone < slowest) {
            slowest = alone;
            *bottleneck = load->resource;
        }
    }
    return rate;
}

double plan_alone_s(const struct layout *layout, const struct plan *plan)
{
    double time_s = plan->base_s;
    for (int32_t i = 0; i < plan->phase_count; i++) {
        int32_t bottleneck;
        double rate = phase_rate(layout, &plan->phases[i], &bottleneck);
        time_s += plan->phases[i].latency_s + plan->phases[i].bytes / rate;
    }
    return time_s;
}

int32_t plan_bottleneck(const struct layout *layout, const struct plan *plan)
{
    int32_t slowest = -1;
    double longest_s = 0;
    for (int32_t i = 0; i < plan->phase_count; i++) {
        int32_t bottleneck;
        double rate = phase_rate(layout, &plan->phases[i], &bottleneck);
        double time_s = plan->phases[i].bytes / rate;
        if (time_s > longest_s) {
            longest_s = time_s;
            slowest = bottleneck;
        }
    }
    return slowest;
}
