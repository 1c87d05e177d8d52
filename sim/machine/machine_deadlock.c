/*
 * machine/machine_deadlock.c: why a program did not come to its end, in words.
 *
 * Nothing is left to happen, and some stream or host thread still waits: the program has a wait
 * whose record comes later, or ranks issue collectives in different orders. The first classes are
 * named.
 */
#include "machine/machine_private.h"

enum { CLASSES_NAMED = 3 };

static const char *site_event(const struct score *score, int32_t site)
{
    const struct program *program = score->program;
    for (int32_t tape = 0; tape < TAPE_COUNT; tape++) {
        for (int32_t i = 0; score->tapes[tape].streams != NULL && i < program->streams.count; i++) {
            const struct tape_ops *ops = &score->tapes[tape].streams[i];
            for (int32_t j = 0; j < ops->count; j++) {
                if (ops->items[j].kind == TAPE_RECORD && ops->items[j].site == site)
                    return program->events.items[ops->items[j].op->index];
            }
        }
    }
    return "?";
}

static void describe_meeting(const struct lane *lane, char *text, size_t size)
{
    const struct program *program = lane->class->score->program;
    const struct op *op = lane->at->op;
    const struct comm_state *comm = lane->comm;
    const bool is_collective = op->kind == OP_COLLECTIVE;
    const int32_t communicator = is_collective ? program->collectives.items[op->index].communicator
                                               : program->transfers.items[op->index].communicator;
    const char *on = program->communicators.items[communicator].name;
    const char *what = is_collective ? collective_op_name(program->collectives.items[op->index].op)
                       : op->kind == OP_SEND ? "send"
                                             : "recv";
    if (lane->state == LANE_AWAITS_TURN && comm != NULL)
        (void)snprintf(text, size, "%s awaits its turn on communicator '%s'", what, on);
    else if (!is_collective)
        (void)snprintf(text, size, "%s on communicator '%s' awaits its %s", what, on,
                       op->kind == OP_SEND ? "receiver" : "sender");
    else if (comm != NULL)
        (void)snprintf(text, size, "%s on communicator '%s' awaits %d of %d rank classes", what, on,
                       comm->seat_count - comm->arrived, comm->seat_count);
    else
        BUG("a collective awaits others without a group");
}

static void describe_lane(const struct lane *lane, char *text, size_t size)
{
    switch (lane->state) {
    case LANE_AWAITS_TURN:
    case LANE_IN_COLLECTIVE:
        describe_meeting(lane, text, size);
        return;
    case LANE_AWAITS_EVENT:
        (void)snprintf(text, size, "waits for event '%s'",
                       site_event(lane->class->score, lane->at->site));
        return;
    case LANE_AWAITS_SMS:
        (void)snprintf(text, size, "waits for SMs that a collective holds");
        return;
    case LANE_AWAITS_HOST:
        (void)snprintf(text, size, "waits for the host thread");
        return;
    case LANE_READY:
    case LANE_BUSY:
    case LANE_SLEEPS:
    case LANE_DONE:
        BUG("stream '%s' stopped in state %d",
            lane->class->score->program->streams.items[lane->idx].name, (int)lane->state);
    }
}

static bool class_is_finished(const struct class_state *class)
{
    for (int32_t i = 0; i < class->lane_count; i++) {
        if (class->lanes[i].state != LANE_DONE)
            return false;
    }
    return class->is_host_done;
}

static void describe_class(const struct machine *machine, const struct class_state *class)
{
    char text[256];
    const struct program *program = class->score->program;
    const long long rank = (long long)class->rank_class->first_rank;
    if (class->is_host_blocked) {
        const struct tape *tape = &class->score->tapes[tape_of_step(class->host_step)];
        const struct binding until = tape->epochs.items[class->host_epoch].until;
        diag_add(machine->diag, DIAG_NOTE, NO_PLACE, NULL,
                 "rank %lld, step %d: the host thread waits for event '%s'", rank, class->host_step,
                 site_event(class->score, until.site));
    }
    for (int32_t i = 0; i < class->lane_count; i++) {
        const struct lane *lane = &class->lanes[i];
        if (lane->state == LANE_DONE)
            continue;
        describe_lane(lane, text, sizeof(text));
        diag_add(machine->diag, DIAG_NOTE, NO_PLACE, NULL, "rank %lld, step %d, stream '%s': %s",
                 rank, lane->step, program->streams.items[i].name, text);
    }
}

enum status machine_check_finished(struct machine *machine)
{
    if (machine->has_failed)
        return STATUS_INPUT;
    int32_t stuck_count = 0;
    for (int32_t i = 0; i < machine->class_count; i++) {
        if (class_is_finished(&machine->classes[i]))
            continue;
        if (stuck_count++ == 0)
            diag_add(machine->diag, DIAG_ERROR, NO_PLACE, NULL,
                     "deadlock: the program cannot be played to its end");
        if (stuck_count <= CLASSES_NAMED)
            describe_class(machine, &machine->classes[i]);
    }
    return stuck_count > 0 ? STATUS_INPUT : STATUS_OK;
}
