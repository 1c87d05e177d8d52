/*
 * machine/machine_comms.c: the classes of groups of every communicator, and what collectives cost
 * each.
 *
 * A communicator's groups fold into classes (cluster/group.h), each with its own rendezvous, turns
 * and activity. A plan is made for one group on what it sees of the machine. As an activity it
 * stands for all groups of the class: on a resource that several of them use, its demand is that of
 * all, while its cap and its weight (its rate alone) are those of one. So a class of I groups
 * shares as I activities of one group each would.
 *
 * `network: messages` moves the bytes of a ring step as one flow for each rate: links that are
 * equally fast move in step, a faster one is done sooner and free until the next step. The slowest
 * flow carries what is no link (memory). The cap of a faster one is larger in proportion.
 */
#include <math.h>

#include "machine/machine_private.h"

/* Links whose rates differ by less than rounding are equally fast. */
#define SAME_RATE 1e-9

struct planner {
    struct machine *machine;
    const struct group_class *group;
    double *shares; /* by resource: groups of the class on one instance, 0: one */
    struct plan_options options;
};

static bool is_link(const struct layout *layout, const struct load *load)
{
    const enum resource_kind kind = layout->resources[load->resource].kind;
    return kind != RESOURCE_SM && kind != RESOURCE_HBM && kind != RESOURCE_COPY_ENGINE;
}

static double load_rate(const struct layout *layout, const struct load *load)
{
    return layout->resources[load->resource].capacity / load->per_byte;
}

static void flow_add(const struct planner *planner, struct flow *flow, const struct load *load)
{
    const double groups = planner->shares[load->resource];
    flow->weight = fmin(flow->weight, load_rate(planner->machine->setup->layout, load));
    flow->demands[flow->demand_count++] =
        (struct demand){load->resource, groups > 0 ? groups * load->per_byte : load->per_byte};
}

static struct flow flow_new(const struct planner *planner, const struct phase *phase)
{
    return (struct flow){
        .weight = phase->cap_bytes_per_s,
        .cap = phase->cap_bytes_per_s,
        .cap_beside = phase->cap_beside_bytes_per_s,
        .demands = ARENA_ARRAY(planner->machine->arena, struct demand, phase->load_count)};
}

/* The slowest rate of a link above `above`; HUGE_VAL: none. Loads of nothing do not count. */
static double slowest_link(const struct layout *layout, const struct phase *phase, double above)
{
    double slowest = HUGE_VAL;
    for (int32_t i = 0; i < phase->load_count; i++) {
        const struct load *load = &phase->loads[i];
        if (!(load->per_byte > 0) || !is_link(layout, load))
            continue;
        const double rate = load_rate(layout, load);
        if (rate > above * (1 + SAME_RATE))
            slowest = fmin(slowest, rate);
    }
    return slowest;
}

/* One flow over all that the phase loads. */
static void one_flow(const struct planner *planner, const struct phase *phase,
                     struct flow_phase *to)
{
    to->flows = ARENA_NEW(planner->machine->arena, struct flow);
    *to->flows = flow_new(planner, phase);
    to->flow_count = 1;
    for (int32_t i = 0; i < phase->load_count; i++) {
        if (phase->loads[i].per_byte > 0)
            flow_add(planner, to->flows, &phase->loads[i]);
    }
}

/* One flow for each rate at which links are done; the first is the slowest. */
static void flow_each_rate(const struct planner *planner, const struct phase *phase,
                           struct flow_phase *to)
{
    const struct layout *layout = planner->machine->setup->layout;
    const double slowest = slowest_link(layout, phase, 0);
    struct {
        struct flow *items;
        int32_t count, capacity;
    } flows = {0};
    double rate = slowest;
    while (rate < HUGE_VAL) {
        struct flow *flow = ARENA_PUSH(planner->machine->arena, &flows);
        *flow = flow_new(planner, phase);
        flow->cap *= rate / slowest;
        flow->cap_beside *= rate / slowest;
        flow->weight = flow->cap;
        for (int32_t i = 0; i < phase->load_count; i++) {
            const struct load *load = &phase->loads[i];
            if (!(load->per_byte > 0))
                continue;
            const double own = is_link(layout, load) ? load_rate(layout, load) : slowest;
            if (own >= rate && own <= rate * (1 + SAME_RATE))
                flow_add(planner, flow, load);
        }
        rate = slowest_link(layout, phase, rate);
    }
    to->flows = flows.items;
    to->flow_count = flows.count;
}

static void phase_set_up(const struct planner *planner, const struct phase *from,
                         struct flow_phase *to)
{
    const struct machine_setup *setup = planner->machine->setup;
    to->rounds = from->rounds > 1 ? from->rounds : 1;
    to->latency_s = setup->ideal.latency ? 0 : from->latency_s;
    to->bytes = from->bytes;
    if (setup->network == NETWORK_MESSAGES && slowest_link(setup->layout, from, 0) < HUGE_VAL)
        flow_each_rate(planner, from, to);
    else
        one_flow(planner, from, to);
    for (int32_t i = 0; i < to->flow_count && to->bytes > 0; i++) {
        if (!(to->flows[i].weight > 0 && isfinite(to->flows[i].weight)))
            BUG("a collective's phase has no finite rate");
    }
}

/* Whole percents: few levels of contention (machine_contention.c). */
static int64_t hbm_percent(const struct layout *view, const struct plan *plan)
{
    const struct cluster *cluster = view->cluster;
    if (!(plan->bytes_per_rank > 0))
        return 0;
    const double bytes = plan->bytes_per_rank * cluster->hbm_bytes_per_bus_byte;
    return llround(100 * bytes / (plan_alone_s(view, plan) * cluster->gpu.hbm_bytes_per_s));
}

static enum status plan_set_up(const struct planner *planner, const struct collective *collective,
                               struct flow_plan *flow)
{
    const struct layout *view = planner->group->view;
    struct machine *machine = planner->machine;
    const struct group all = group_whole(view);
    struct plan_options options = planner->options;
    struct plan plan = {0};
    options.is_average = collective->is_average;
    const enum status status = plan_build(machine->arena, view, &all, collective->op,
                                          collective->bytes, &options, &plan, machine->diag);
    if (status != STATUS_OK)
        return status;
    flow->alone_s = plan_alone_s(view, &plan);
    flow->base_s = machine->setup->ideal.latency ? 0 : plan.base_s;
    flow->channels = plan.channels;
    flow->table = plan.table;
    flow->error_sigma = plan.error_sigma;
    if (!machine->setup->ideal.contention)
        flow->hbm_percent = hbm_percent(view, &plan);
    flow->phase_count = plan.phase_count;
    flow->phases = ARENA_ARRAY(machine->arena, struct flow_phase, plan.phase_count);
    for (int32_t i = 0; i < plan.phase_count; i++)
        phase_set_up(planner, &plan.phases[i], &flow->phases[i]);
    return STATUS_OK;
}

static bool is_same_kind(const struct collective *a, const struct collective *b)
{
    return a->op == b->op && a->is_average == b->is_average && a->bytes >= b->bytes &&
           a->bytes <= b->bytes;
}

/* A step has many collectives of few kinds: one plan each. */
static enum status score_plan(const struct planner *planner, const struct score *score,
                              struct comm_state *comm)
{
    const struct program *program = score->program;
    const int32_t count = program->collectives.count;
    struct flow_plan *plans = ARENA_ARRAY(planner->machine->arena, struct flow_plan, count);
    int32_t *kinds = ARENA_ARRAY(planner->machine->arena, int32_t, count), kind_count = 0;
    comm->plans[score->idx] = plans;
    for (int32_t i = 0; i < count; i++) {
        const struct collective *collective = &program->collectives.items[i];
        if (collective->communicator != comm->communicator)
            continue;
        int32_t kind = 0;
        while (kind < kind_count &&
               !is_same_kind(&program->collectives.items[kinds[kind]], collective))
            kind++;
        if (kind < kind_count) {
            plans[i] = plans[kinds[kind]];
            continue;
        }
        kinds[kind_count++] = i;
        const enum status status = plan_set_up(planner, collective, &plans[i]);
        if (status != STATUS_OK)
            return status;
        for (int32_t j = 0; j < plans[i].phase_count; j++) {
            if (plans[i].phases[j].flow_count > comm->flow_max)
                comm->flow_max = plans[i].phases[j].flow_count;
        }
    }
    return STATUS_OK;
}

struct score *class_score(const struct machine *machine, int32_t class)
{
    const struct machine_setup *setup = machine->setup;
    return score_find(machine, setup->programs[setup->program_count == 1 ? 0 : class]);
}

/* Plans of the group for every program that a member plays. */
static enum status comm_plan(struct machine *machine, struct comm_state *comm, double *shares)
{
    const struct group_class *group = comm->group;
    const struct planner planner = {
        .machine = machine,
        .group = group,
        .shares = shares,
        .options = {.is_latency_free = machine->setup->ideal.latency,
                    .is_contention_free = machine->setup->ideal.contention}};
    enum status status = STATUS_OK;
    comm->plans = ARENA_ARRAY(machine->arena, struct flow_plan *, machine->score_count);
    for (int32_t i = 0; i < group->share_count; i++)
        shares[group->shares[i].resource] = group->shares[i].groups;
    for (int32_t i = 0; i < group->view->class_count && status == STATUS_OK; i++) {
        const struct score *score = class_score(machine, group->classes[i]);
        if (comm->plans[score->idx] == NULL)
            status = score_plan(&planner, score, comm);
    }
    for (int32_t i = 0; i < group->share_count; i++)
        shares[group->shares[i].resource] = 0;
    return status;
}

static struct group_split *split_all(struct machine *machine)
{
    const struct program *program = machine->setup->programs[0];
    struct group_split *splits =
        ARENA_ARRAY(machine->arena, struct group_split, machine->communicator_count);
    for (int32_t i = 0; i < machine->communicator_count; i++) {
        group_split_build(machine->arena, machine->setup->layout,
                          &program->communicators.items[i].group, &splits[i]);
        machine->comm_count += splits[i].count;
    }
    return splits;
}

static void seat_classes(struct machine *machine, const struct group_split *splits)
{
    machine->seats = ARENA_ARRAY(machine->arena, struct comm_seat,
                                 machine->class_count * machine->communicator_count);
    int32_t first = 0;
    for (int32_t i = 0; i < machine->communicator_count; i++) {
        for (int32_t c = 0; c < machine->class_count; c++)
            machine->seats[c * machine->communicator_count + i] = (struct comm_seat){
                &machine->comms[first + splits[i].item_of[c]], splits[i].seat_of[c]};
        first += splits[i].count;
    }
}

enum status comms_set_up(struct machine *machine)
{
    struct arena *arena = machine->arena;
    const struct group_split *splits = split_all(machine);
    double *shares = ARENA_ARRAY(arena, double, machine->setup->layout->resource_count);
    const int32_t pairs = pairs_count(machine);
    machine->comm_count += pairs;
    machine->has_pairs = pairs > 0;
    machine->comms = ARENA_ARRAY(arena, struct comm_state, machine->comm_count);
    struct comm_state *comm = machine->comms;
    for (int32_t i = 0; i < machine->communicator_count; i++) {
        for (int32_t j = 0; j < splits[i].count; j++, comm++) {
            comm->communicator = i;
            comm->group = &splits[i].items[j];
            comm->seat_count = comm->group->view->class_count;
            comm->members = ARENA_ARRAY(arena, struct lane *, comm->seat_count);
            const enum status status = comm_plan(machine, comm, shares);
            if (status != STATUS_OK)
                return status;
        }
    }
    seat_classes(machine, splits);
    pairs_set_up(machine, comm);
    return STATUS_OK;
}

int32_t comms_order(struct machine *machine, int32_t order)
{
    for (int32_t i = 0; i < machine->comm_count; i++) {
        struct comm_state *comm = &machine->comms[i];
        comm->flows = ARENA_ARRAY(machine->arena, struct comm_flow, comm->flow_max);
        event_init(&comm->delay, EVENT_COMM_DELAY, comm);
        comm->delay.resource = (uint16_t)i;
        for (int32_t j = 0; j < comm->flow_max; j++) {
            comm->flows[j].comm = comm;
            activity_init(&comm->flows[j].activity, EVENT_COMM_ACTIVITY, &comm->flows[j], order++);
            comm->flows[j].activity.event.resource = (uint16_t)i;
        }
    }
    return order;
}
