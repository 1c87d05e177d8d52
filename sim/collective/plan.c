/* collective/plan.c: the chosen way of a collective as phases. */
#include "collective/plan.h"

#include <math.h>

#include "collective/choice.h"
#include "collective/plan_calibrate.h"

static const char *const algorithm_names[] = {[ALGORITHM_AUTO] = "auto",
                                              [ALGORITHM_RING] = "ring",
                                              [ALGORITHM_TREE] = "tree",
                                              [ALGORITHM_NVLS] = "nvls",
                                              [ALGORITHM_NVLS_TREE] = "nvlstree",
                                              [ALGORITHM_PAT] = "pat",
                                              [ALGORITHM_TWO_LEVEL_RING] = "two_level_ring"};

const char *algorithm_name(enum collective_algorithm algorithm)
{
    return algorithm_names[algorithm];
}

double collective_bus_bytes(enum collective_op op, int64_t ranks, double bytes)
{
    const double others = (double)(ranks - 1) / (double)ranks;
    switch (op) {
    case COLLECTIVE_ALL_GATHER:
    case COLLECTIVE_REDUCE_SCATTER:
    case COLLECTIVE_ALL_TO_ALL:
        return bytes * others;
    case COLLECTIVE_ALL_REDUCE:
        return 2 * bytes * others;
    case COLLECTIVE_BROADCAST:
    case COLLECTIVE_SEND_RECV:
    case COLLECTIVE_OP_COUNT:
        break;
    }
    return bytes;
}

/* While kernels run beside it, only what passes the wires of a host is slower. */
static double cap_beside(const struct cluster *cluster, const struct offer *offer,
                         const struct plan_options *options)
{
    const double slowdown = options->is_contention_free ? 1 : cluster->comm_slowdown;
    return fmin(offer->host_cap / slowdown, offer->network_cap);
}

/* Two hauls of one offer over the same wire: the one that carries more of it stands for both.
   `places`: by resource, one more than where it stands among the loads. */
static void add_load(struct phase *phase, const struct load *load, int32_t *places)
{
    if (!(load->per_byte > 0))
        return;
    int32_t *place = &places[load->resource];
    if (*place > 0) {
        struct load *known = &phase->loads[*place - 1];
        known->per_byte = fmax(known->per_byte, load->per_byte);
        return;
    }
    phase->loads[phase->load_count++] = *load;
    *place = phase->load_count;
}

static void add_loads(struct arena *arena, const struct layout *layout, const struct offer *offer,
                      double hbm, struct phase *phase)
{
    int32_t most = layout->class_count;
    for (int32_t i = 0; i < offer->haul_count; i++)
        most += offer->hauls[i].traffic->load_count;
    phase->loads = ARENA_ARRAY(arena, struct load, most);
    struct arena scratch = {0};
    int32_t *places = ARENA_ARRAY(&scratch, int32_t, layout->resource_count);
    double slowest =
        (double)INFINITY; /* of what a ring reaches over each: names what bounds the phase */
    phase->bottleneck = -1;
    for (int32_t i = 0; i < offer->haul_count; i++) {
        const struct haul *haul = &offer->hauls[i];
        for (int32_t j = 0; j < haul->traffic->load_count; j++) {
            const struct traffic_load *from = &haul->traffic->loads[j];
            const struct resource *resource = &layout->resources[from->resource];
            const double times =
                traffic_is_network(haul->traffic, resource->kind) ? haul->network : haul->in_host;
            const double alone = resource->capacity / (from->effort * times);
            if (alone < slowest) {
                slowest = alone;
                phase->bottleneck = from->resource;
            }
            add_load(phase, &(struct load){from->resource, from->per_byte * times}, places);
        }
    }
    for (int32_t i = 0; i < layout->class_count; i++)
        add_load(phase, &(struct load){layout->classes[i].hbm, hbm}, places);
    arena_release(&scratch);
}

static void add_phase(struct arena *arena, const struct layout *layout, const struct offer *offer,
                      const struct plan_options *options, struct plan *plan)
{
    struct phase *phase = &plan->phases[plan->phase_count++];
    *phase = (struct phase){.rounds = offer->rounds,
                            .latency_s = options->is_latency_free ? 0 : offer->latency_s,
                            .bytes = offer->bytes,
                            .cap_bytes_per_s = offer_rate(offer),
                            .cap_beside_bytes_per_s = cap_beside(layout->cluster, offer, options)};
    const double hbm = options->is_contention_free ? 0 : layout->cluster->hbm_bytes_per_bus_byte;
    add_loads(arena, layout, offer, hbm, phase);
    plan->bytes_per_rank += offer->bytes;
}

enum status plan_spec_build(struct arena *arena, const struct layout *layout,
                            const struct group *group, enum collective_op op, double bytes,
                            const struct plan_options *options, struct plan *plan,
                            struct diag *diag)
{
    *plan = (struct plan){0};
    if (group->ranks == 1 || bytes <= 0)
        return STATUS_OK;
    const struct scene scene = scene_of(layout, group, op, bytes, options);
    if (scene.hosts > 1 && layout->nics_per_host == 0) {
        diag_add(diag, DIAG_ERROR, layout->cluster->place, NULL, "cluster '%s' has no NICs",
                 layout->cluster->name);
        return STATUS_INPUT;
    }
    const struct way way = choose_way(&scene);
    plan->algorithm = way.offers[0].algorithm;
    plan->protocol = way.offers[0].protocol;
    plan->bus_bytes = collective_bus_bytes(op, group->ranks, bytes);
    plan->phases = ARENA_ARRAY(arena, struct phase, way.count);
    for (int32_t i = 0; i < way.count; i++) {
        add_phase(arena, layout, &way.offers[i], options, plan);
        if (!options->is_latency_free)
            plan->base_s += way.offers[i].base_s;
        if (!options->is_contention_free && way.offers[i].channels > plan->channels)
            plan->channels = way.offers[i].channels;
    }
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

static double phase_rate(const struct layout *layout, const struct phase *phase)
{
    double rate = phase->cap_bytes_per_s;
    for (int32_t i = 0; i < phase->load_count; i++) {
        const struct load *load = &phase->loads[i];
        rate = fmin(rate, layout->resources[load->resource].capacity / load->per_byte);
    }
    return rate;
}

double plan_alone_s(const struct layout *layout, const struct plan *plan)
{
    double time_s = plan->base_s;
    for (int32_t i = 0; i < plan->phase_count; i++) {
        const struct phase *phase = &plan->phases[i];
        time_s += phase->latency_s + phase->bytes / phase_rate(layout, phase);
    }
    return time_s;
}

int32_t plan_bottleneck(const struct layout *layout, const struct plan *plan)
{
    int32_t slowest = -1;
    double longest_s = 0;
    for (int32_t i = 0; i < plan->phase_count; i++) {
        const double time_s = plan->phases[i].bytes / phase_rate(layout, &plan->phases[i]);
        if (time_s > longest_s) {
            longest_s = time_s;
            slowest = plan->phases[i].bottleneck;
        }
    }
    return slowest;
}
