/*
 * machine/machine_collective.c: rendezvous, and a collective's phases one after the other.
 *
 * All members of a group meet in each collective, in the order in which each issued them, so one
 * collective at a time is under way per group of a communicator and all its members end together;
 * groups of one class (machine_comms.c) do so at the same time and are played once. Each phase is
 * cut into `pieces` (flows: 1, messages: its rounds) of latency/pieces, then bytes/pieces over all
 * its flows at once.
 */
#include "base/units.h"
#include "machine/machine_private.h"

static void tell_transfer(struct machine *machine, const struct lane *lane)
{
    for (int32_t i = 0; i < machine->setup->observer_count; i++) {
        const struct observer *observer = &machine->setup->observers[i];
        if (observer->transfer_begin != NULL)
            observer->transfer_begin(observer->context, machine->engine.now_ps, lane->class->idx,
                                     lane->at->op);
    }
}

static void report_mismatch(struct machine *machine, const struct comm_state *comm,
                            const struct meeting_call *other)
{
    const struct program *program = machine->setup->programs[0];
    machine->has_failed = true;
    engine_stop(&machine->engine);
    diag_add(machine->diag, DIAG_ERROR, NO_PLACE, NULL,
             "ranks meet in different collectives on communicator '%s': %s of %.0f bytes and %s of "
             "%.0f bytes",
             program->communicators.items[comm->communicator].name, comm->call.name,
             comm->call.bytes, other->name, other->bytes);
}

static bool calls_match(const struct meeting_call *a, const struct meeting_call *b)
{
    return a->name == b->name && a->bytes >= b->bytes && a->bytes <= b->bytes;
}

static void transfer_start(struct machine *machine, struct comm_state *comm)
{
    for (int32_t i = 0; i < comm->seat_count; i++)
        tell_transfer(machine, comm->members[i]);
    jitter_start(machine, comm);
    contention_count_transfer(machine, comm, comm->plan->hbm_percent);
    comm->stage = COMM_DELAY;
    comm->phase = 0;
    comm->round = 0;
    comm_continue(machine, comm);
}

/* All classes have arrived; members of theirs may not. */
static void gather(struct machine *machine, struct comm_state *comm)
{
    const int64_t start_ps = jitter_gather(machine, comm);
    if (start_ps <= machine->engine.now_ps) {
        transfer_start(machine, comm);
        return;
    }
    comm->stage = COMM_GATHER;
    engine_schedule(&machine->engine, &comm->delay, start_ps);
}

static const struct comm_seat *find_seat(const struct machine *machine, const struct lane *lane,
                                         struct meeting_call *call)
{
    const struct class_state *class = lane->class;
    const struct program *program = class->score->program;
    const struct op *op = lane->at->op;
    if (op->kind == OP_COLLECTIVE) {
        const struct collective *collective = &program->collectives.items[op->index];
        *call = (struct meeting_call){collective_op_name(collective->op), collective->bytes};
        return &class->seats[collective->communicator];
    }
    const struct transfer *transfer = &program->transfers.items[op->index];
    *call = (struct meeting_call){"transfer", transfer->bytes};
    return pair_seat(machine, class->idx, transfer_channel(transfer), op->kind == OP_RECV);
}

/* The lane's collective or transfer is issued. Takes its turn, or waits for it. */
void lane_arrive(struct machine *machine, struct lane *lane)
{
    struct class_state *class = lane->class;
    const struct score *score = class->score;
    struct meeting_call call;
    const struct comm_seat *seat = find_seat(machine, lane, &call);
    struct comm_state *comm = seat->comm;
    const int32_t queue = op_queue(score->program, lane->at->op);
    const int64_t turn = score_turns_before(score, lane->step, queue) + lane->at->value;
    lane->comm = comm;
    if (comm == NULL || comm->done_count != turn) {
        lane->state = LANE_AWAITS_TURN; /* for ever, where nobody sends */
        return;
    }
    lane->state = LANE_IN_COLLECTIVE;
    lane->plan = &comm->plans[score->idx][lane->at->op->index];
    lane->copy_frac = 0;
    tell_begin(machine, lane, ACTIVITY_COMMUNICATION);
    class_hold_sms(machine, class, lane->plan->channels);
    if (comm->arrived == 0) {
        comm->call = call;
        comm->plan = lane->plan;
    } else if (!calls_match(&comm->call, &call)) {
        report_mismatch(machine, comm, &call);
        return;
    }
    comm->members[seat->seat] = lane;
    jitter_arrive(machine, lane, seat->seat);
    if (++comm->arrived == comm->seat_count)
        gather(machine, comm);
}

static void wake_turns(struct machine *machine, struct class_state *class,
                       const struct comm_state *comm, int32_t by)
{
    for (int32_t i = 0; i < class->lane_count; i++) {
        struct lane *lane = &class->lanes[i];
        if (lane->state == LANE_AWAITS_TURN && lane->comm == comm)
            lane_release(machine, lane, HOLD_TURN, by);
    }
}

static void comm_finish(struct machine *machine, struct comm_state *comm)
{
    contention_count_transfer(machine, comm, -comm->plan->hbm_percent);
    jitter_disperse(machine, comm);
    comm->stage = COMM_IDLE;
    comm->arrived = 0;
    comm->done_count++;
    for (int32_t i = 0; i < comm->seat_count; i++) {
        struct lane *lane = comm->members[i];
        comm->members[i] = NULL;
        tell_end(machine, lane, ACTIVITY_COMMUNICATION);
        class_hold_sms(machine, lane->class, -lane->plan->channels);
        lanes_give_sms(machine, lane->class, lane->idx);
        lane_advance(machine, lane);
        lane_push(machine, lane);
        wake_turns(machine, lane->class, comm, lane->idx);
    }
}

static const struct flow_phase *comm_phase(const struct comm_state *comm)
{
    return comm->phase < comm->plan->phase_count ? &comm->plan->phases[comm->phase] : NULL;
}

static int64_t phase_pieces(const struct machine *machine, const struct flow_phase *phase)
{
    return phase != NULL && machine->setup->network == NETWORK_MESSAGES ? phase->rounds : 1;
}

/* True when there is a delay to wait for. */
static bool piece_delay(struct machine *machine, struct comm_state *comm)
{
    const struct flow_phase *phase = comm_phase(comm);
    double delay_s = comm->phase == 0 && comm->round == 0 ? comm->plan->base_s : 0;
    if (phase != NULL)
        delay_s += phase->latency_s / (double)phase_pieces(machine, phase);
    const int64_t delay_ps = ps_from_s(delay_s * comm->stretch);
    if (delay_ps == 0)
        return false;
    engine_schedule(&machine->engine, &comm->delay, machine->engine.now_ps + delay_ps);
    return true;
}

static bool piece_bytes(struct machine *machine, struct comm_state *comm)
{
    const struct flow_phase *phase = comm_phase(comm);
    if (phase == NULL || !(phase->bytes > 0))
        return false;
    for (int32_t i = 0; i < phase->flow_count; i++) {
        struct comm_flow *flow = &comm->flows[i];
        struct activity *activity = &flow->activity;
        flow->flow = &phase->flows[i];
        activity->work = phase->bytes / (double)phase_pieces(machine, phase) * comm->stretch;
        activity->stretch = comm->stretch;
        activity->weight = flow->flow->weight;
        activity->cap = flow->flow->cap;
        activity->demands = flow->flow->demands;
        activity->demand_count = flow->flow->demand_count;
        activity_start(machine, activity);
    }
    comm->flows_left = phase->flow_count;
    return true;
}

/* False: that was the last piece. */
static bool piece_next(const struct machine *machine, struct comm_state *comm)
{
    if (++comm->round < phase_pieces(machine, comm_phase(comm)))
        return true;
    comm->round = 0;
    return ++comm->phase < comm->plan->phase_count;
}

/* Goes on with the stage that is due until there is something to wait for. */
void comm_continue(struct machine *machine, struct comm_state *comm)
{
    for (;;) {
        switch (comm->stage) {
        case COMM_GATHER:
            transfer_start(machine, comm);
            return;
        case COMM_DELAY:
            comm->stage = COMM_BYTES;
            if (piece_delay(machine, comm))
                return;
            break;
        case COMM_BYTES:
            comm->stage = COMM_PIECE_DONE;
            if (piece_bytes(machine, comm))
                return;
            break;
        case COMM_PIECE_DONE:
            comm->stage = COMM_DELAY;
            if (piece_next(machine, comm))
                break;
            comm_finish(machine, comm);
            return;
        case COMM_IDLE:
            BUG("a collective goes on that is not under way");
        }
    }
}

void comm_flow_ended(struct machine *machine, struct comm_flow *flow)
{
    activity_end(machine, &flow->activity);
    if (--flow->comm->flows_left == 0)
        comm_continue(machine, flow->comm);
}
