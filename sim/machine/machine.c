/* machine/machine.c: see machine.h; how it works: machine_private.h. */
#include "machine/machine_private.h"

static void machine_start(struct machine *machine)
{
    for (int32_t i = 0; i < machine->class_count; i++) {
        struct class_state *class = &machine->classes[i];
        for (int32_t j = 0; j < class->lane_count; j++)
            lane_enter_tape(machine, &class->lanes[j], STEP_PROLOGUE);
    }
    for (int32_t i = 0; i < machine->class_count; i++) {
        struct class_state *class = &machine->classes[i];
        host_start(machine, class);
        for (int32_t j = 0; j < class->lane_count; j++)
            lane_push(machine, &class->lanes[j]);
    }
}

static void dispatch(void *context, struct event *event)
{
    struct machine *machine = context;
    switch ((enum machine_event)event->kind) {
    case EVENT_START:
        machine_start(machine);
        break;
    case EVENT_HOST:
        host_epoch_ended(machine, event->owner);
        break;
    case EVENT_WAKE:
        lane_release(machine, event->owner, HOLD_HOST, -1);
        break;
    case EVENT_STREAM_ACTIVITY:
        lane_activity_ended(machine, event->owner);
        break;
    case EVENT_COMM_DELAY:
        comm_continue(machine, event->owner);
        break;
    case EVENT_COMM_ACTIVITY:
        comm_flow_ended(machine, event->owner);
        break;
    case EVENT_MEMORY:
        memory_list_due(machine, event->owner);
        break;
    }
    lanes_drain(machine);
    if (machine->synchronising_count > 0)
        memory_retry_idle(machine);
}

static void instant_end(void *context, int64_t now_ps)
{
    (void)now_ps;
    struct machine *machine = context;
    machine_solve(machine);
    memory_play_due(machine);
}

enum status machine_play(struct arena *arena, const struct machine_setup *setup,
                         struct machine_result *result, struct diag *diag)
{
    struct machine *machine = ARENA_NEW(arena, struct machine);
    machine->arena = arena;
    machine->setup = setup;
    machine->diag = diag;
    engine_init(&machine->engine, arena,
                (struct engine_handlers){
                    .dispatch = dispatch, .instant_end = instant_end, .context = machine});
    machine->engine.tie_seed = setup->tie_seed;
    enum status status = machine_set_up(machine);
    if (status != STATUS_OK)
        return status;

    event_init(&machine->start, EVENT_START, machine);
    engine_schedule(&machine->engine, &machine->start, 0);
    engine_run(&machine->engine);
    if (!machine->is_out_of_memory)
        status = machine_check_finished(machine);
    if (status == STATUS_OK)
        change_times_fill(machine);
    *result = (struct machine_result){.end_ps = machine->engine.now_ps,
                                      .fingerprint = machine->engine.fingerprint,
                                      .events = machine->engine.dispatched_count,
                                      .is_out_of_memory = machine->is_out_of_memory};
    return status;
}
