/*
 * machine/machine_transfer.c: point to point between neighbours of a group.
 *
 * All members of a rank class have their neighbour at a hop in one class (cluster/group_layout.h),
 * so a (communicator, hop, sender's class) is one pair of classes: a meeting with two seats, of the
 * sender and of the receiver, with turns of its own. When both have arrived the bytes go as one
 * activity, with the latency, protocol and SMs of a send-receive of the two
 * (collective/exchange.h), at no more than the slowest wire of the way reaches. It loads each wire
 * of the way in its own direction, for all pairs that use it: with P pairs that put a bytes each on
 * resources of which there are N, P · a / N.
 *
 * Example: 8 GPUs a host send to the next host over a NIC of 1 GB/s that they share: 1/8 GB/s each,
 * while the other direction of the NIC is free.
 *
 * Left out: eager sends of some kilobytes that do not wait for the receiver. Two GPUs of unequal
 * local index on two hosts count as two of the sender's, but for the wires.
 */
#include <math.h>

#include "cluster/traffic.h"
#include "machine/machine_private.h"

struct pair {
    struct machine *machine;
    int32_t channel, sender, receiver; /* classes */
    const struct layout *view;         /* what the two see */
    struct traffic way;
    double rate; /* that its slowest wire reaches */
};

/* Bytes over one instance of each resource for a byte of every pair, HBM at both ends included. */
static struct flow pair_flow(const struct pair *pair, double *sums)
{
    struct machine *machine = pair->machine;
    const struct layout *layout = machine->setup->layout;
    const struct rank_class *ends[2] = {&layout->classes[pair->sender],
                                        &layout->classes[pair->receiver]};
    const double pairs = (double)ends[0]->count;
    const bool is_free = machine->setup->ideal.contention;
    struct flow flow = {.demands =
                            ARENA_ARRAY(machine->arena, struct demand, pair->way.load_count + 2)};
    for (int32_t i = 0; i < pair->way.load_count; i++)
        sums[layout->each->resource_of[pair->way.loads[i].resource]] += pair->way.loads[i].per_byte;
    for (int32_t i = 0; i < 2 && !is_free; i++)
        sums[ends[i]->hbm] += layout->cluster->hbm_bytes_per_bus_byte / 2;
    for (int32_t i = 0; i < layout->resource_count; i++) {
        if (!(sums[i] > 0))
            continue;
        flow.demands[flow.demand_count++] =
            (struct demand){i, sums[i] * pairs / (double)layout->resources[i].instances};
        sums[i] = 0;
    }
    return flow;
}

static void plan_transfer(const struct pair *pair, const struct transfer *transfer,
                          const struct flow *flow, struct flow_plan *to)
{
    struct machine *machine = pair->machine;
    const struct ideal *ideal = &machine->setup->ideal;
    const struct plan_options options = {.is_latency_free = ideal->latency,
                                         .is_contention_free = ideal->contention};
    const struct group both = group_whole(pair->view);
    struct plan plan = {0};
    if (plan_build(machine->arena, pair->view, &both, COLLECTIVE_SEND_RECV, transfer->bytes,
                   &options, &plan, machine->diag) != STATUS_OK)
        BUG("two ranks of a layout cannot reach each other");
    *to = (struct flow_plan){.base_s = plan.base_s,
                             .channels = plan.channels,
                             .table = plan.table,
                             .error_sigma = plan.error_sigma};
    to->alone_s = plan.base_s;
    if (plan.phase_count == 0)
        return;
    const struct phase *from = &plan.phases[0];
    struct flow_phase *phase = ARENA_NEW(machine->arena, struct flow_phase);
    phase->rounds = phase->flow_count = 1;
    phase->latency_s = from->latency_s;
    phase->bytes = from->bytes;
    phase->flows = ARENA_NEW(machine->arena, struct flow);
    *phase->flows = *flow;
    phase->flows->cap = phase->flows->weight = fmin(pair->rate, from->cap_bytes_per_s);
    phase->flows->cap_beside = fmin(pair->rate, from->cap_beside_bytes_per_s);
    to->phases = phase;
    to->phase_count = 1;
    to->alone_s += phase->latency_s + phase->bytes / phase->flows->cap;
}

/* Two ranks as a group. */
static const struct layout *pair_view(const struct machine *machine, int64_t from, int64_t to)
{
    const struct layout *layout = machine->setup->layout;
    const int64_t gpus = layout->gpus_per_host;
    const int64_t a = from / gpus, b = to / gpus;
    struct group group = {.ranks = 2, .hosts = 1, .ranks_per_host = 2};
    int64_t first = from < to ? from : to;
    group.stride = from < to ? to - from : from - to;
    if (a != b) {
        group.hosts = 2;
        group.ranks_per_host = 1;
        group.stride = (a < b ? b - a : a - b) * gpus;
        first = (a < b ? a : b) * gpus + from % gpus;
    }
    return group_view(machine->arena, layout, &group, first);
}

/* The same transfers as sender and receiver list them. */
static void plan_all(const struct pair *pair, const struct flow *flow, struct comm_state *comm)
{
    const struct machine *machine = pair->machine;
    comm->plans = ARENA_ARRAY(machine->arena, struct flow_plan *, machine->score_count);
    const int32_t classes[2] = {pair->sender, pair->receiver};
    for (int32_t i = 0; i < 2; i++) {
        const struct score *score = class_score(machine, classes[i]);
        const struct program *program = score->program;
        if (comm->plans[score->idx] != NULL)
            continue;
        comm->plans[score->idx] =
            ARENA_ARRAY(machine->arena, struct flow_plan, program->transfers.count);
        for (int32_t j = 0; j < program->transfers.count; j++) {
            const struct transfer *transfer = &program->transfers.items[j];
            if (transfer_channel(transfer) == pair->channel)
                plan_transfer(pair, transfer, flow, &comm->plans[score->idx][j]);
        }
    }
}

static void pair_set_up(struct pair *pair, double *sums, struct comm_state *comm)
{
    struct machine *machine = pair->machine;
    const struct layout *layout = machine->setup->layout;
    const struct group *group =
        &machine->setup->programs[0]->communicators.items[pair->channel / 2].group;
    BUG_IF(group->order == GROUP_UNORDERED || layout->each == NULL);
    const int64_t from = layout->classes[pair->sender].first_rank;
    const int64_t to = group_neighbour(group, from, pair->channel % 2 == 0 ? 1 : -1);
    pair->receiver = layout->each->class_of[to];
    pair->view = pair_view(machine, from, to);
    layout_transfer(machine->arena, layout->each->unfolded, from, to, &pair->way);
    pair->rate = HUGE_VAL;
    for (int32_t i = 0; i < pair->way.load_count; i++) {
        const struct traffic_load *load = &pair->way.loads[i];
        const double capacity = layout->each->unfolded->resources[load->resource].capacity;
        pair->rate = fmin(pair->rate, capacity / load->effort);
    }
    BUG_IF(!isfinite(pair->rate));
    *comm = (struct comm_state){.communicator = pair->channel / 2,
                                .is_pair = true,
                                .seat_count = 2,
                                .flow_max = 1,
                                .members = ARENA_ARRAY(machine->arena, struct lane *, 2)};
    const struct flow flow = pair_flow(pair, sums);
    plan_all(pair, &flow, comm);
    *pair_seat(machine, pair->sender, pair->channel, false) = (struct comm_seat){comm, 0};
    *pair_seat(machine, pair->receiver, pair->channel, true) = (struct comm_seat){comm, 1};
}

int32_t pairs_count(const struct machine *machine)
{
    int32_t count = 0;
    for (int32_t channel = 0; channel < 2 * machine->communicator_count; channel++) {
        for (int32_t i = 0; i < machine->class_count; i++)
            count += class_score(machine, i)->has_sends[channel] ? 1 : 0;
    }
    return count;
}

void pairs_set_up(struct machine *machine, struct comm_state *comms)
{
    machine->pair_seats =
        ARENA_ARRAY(machine->arena, struct comm_seat,
                    (ptrdiff_t)4 * machine->class_count * machine->communicator_count);
    double *sums = ARENA_ARRAY(machine->arena, double, machine->setup->layout->resource_count);
    for (int32_t channel = 0; channel < 2 * machine->communicator_count; channel++) {
        for (int32_t i = 0; i < machine->class_count; i++) {
            if (!class_score(machine, i)->has_sends[channel])
                continue;
            struct pair pair = {.machine = machine, .channel = channel, .sender = i};
            pair_set_up(&pair, sums, comms++);
        }
    }
}
