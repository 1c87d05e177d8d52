/* tests/unit/machine/units.c: see units.h. */
#include "units.h"

struct writer {
    struct toy *toy;
    const struct units *units;
    int32_t forward, gather;
    int32_t gathered[UNITS_MAX], copied[UNITS_MAX], reduced[UNITS_MAX], computed[UNITS_MAX];
    int32_t parked;
    bool is_gathered[UNITS_MAX];
};

struct units units_equal(int32_t count, double forward_ms, double backward_ms, double gather_ms,
                         double scatter_ms)
{
    struct units units = {.count = count,
                          .forward_ms = forward_ms,
                          .gather_ms = gather_ms,
                          .is_resharded = true,
                          .scatter_buffers = 1};
    for (int32_t i = 0; i < count; i++) {
        units.backward_ms[i] = backward_ms;
        units.scatter_ms[i] = scatter_ms;
    }
    return units;
}

static void unshard(struct writer *w, int32_t i)
{
    if (w->is_gathered[i])
        return;
    w->is_gathered[i] = true;
    toy_op(w->toy, OP_COLLECTIVE, TOY_GATHER, w->gather)->unit = i;
    toy_op(w->toy, OP_RECORD, TOY_GATHER, w->gathered[i]);
}

static void wait_for_unshard(struct writer *w, int32_t i)
{
    toy_op(w->toy, OP_WAIT, TOY_COMPUTE, w->gathered[i]);
    toy_op(w->toy, OP_RECORD, TOY_COMPUTE, w->copied[i]);
}

static void release_parked(struct writer *w)
{
    if (w->parked >= 0)
        toy_op(w->toy, OP_WAIT, TOY_GATHER, w->copied[w->parked]);
    w->parked = -1;
}

static void write_forward(struct writer *w)
{
    for (int32_t i = 0; i < w->units->count; i++) {
        w->toy->unit = i;
        unshard(w, i);
        release_parked(w);
        wait_for_unshard(w, i);
        w->parked = i;
        toy_op(w->toy, OP_SEGMENT, TOY_COMPUTE, w->forward);
        w->is_gathered[i] = !w->units->is_resharded;
    }
    release_parked(w);
    w->toy->unit = -1;
    toy_op(w->toy, OP_MARK, TOY_COMPUTE, MARK_FORWARD_END);
    if (w->units->is_host_late) {
        const int32_t event = toy_event(w->toy, "forward");
        toy_op(w->toy, OP_RECORD, TOY_COMPUTE, event);
        toy_op(w->toy, OP_HOST_WAIT, 0, event);
    }
}

static void pre_backward(struct writer *w, int32_t i)
{
    if (!w->units->is_resharded)
        return;
    unshard(w, i);
    wait_for_unshard(w, i);
    toy_op(w->toy, OP_WAIT, TOY_GATHER, w->copied[i]);
    if (i > 0)
        unshard(w, i - 1);
}

static void post_backward(struct writer *w, int32_t i)
{
    struct toy *toy = w->toy;
    const struct units *units = w->units;
    const int32_t oldest = i + units->scatter_buffers;
    if (oldest < units->count)
        toy_op(toy, OP_WAIT, TOY_COMPUTE, w->reduced[oldest]);
    toy_op(toy, OP_RECORD, TOY_COMPUTE, w->computed[i]);
    toy_op(toy, OP_WAIT, TOY_SCATTER, w->computed[i]);
    const int32_t communicator = units->has_own_communicator ? 1 : 0;
    toy_op(toy, OP_COLLECTIVE, TOY_SCATTER,
           toy_collective(toy, COLLECTIVE_REDUCE_SCATTER, communicator, units->scatter_ms[i]));
    toy_op(toy, OP_RECORD, TOY_SCATTER, w->reduced[i]);
}

static void write_backward(struct writer *w)
{
    for (int32_t i = w->units->count - 1; i >= 0; i--) {
        w->toy->unit = i;
        pre_backward(w, i);
        toy_op(w->toy, OP_SEGMENT, TOY_COMPUTE,
               toy_segment(w->toy, "backward", PASS_BACKWARD, w->units->backward_ms[i]));
        post_backward(w, i);
    }
    w->toy->unit = -1;
    for (int32_t i = 0; i < w->units->count; i++)
        toy_op(w->toy, OP_WAIT, TOY_COMPUTE, w->reduced[i]);
    toy_op(w->toy, OP_MARK, TOY_COMPUTE, MARK_BACKWARD_END);
    toy_op(w->toy, OP_MARK, TOY_COMPUTE, MARK_STEP_END);
}

void units_write(struct units *units, struct toy *toy)
{
    struct writer w = {.toy = toy, .units = units, .parked = -1};
    w.forward = toy_segment(toy, "forward", PASS_FORWARD, units->forward_ms);
    w.gather = toy_collective(toy, COLLECTIVE_ALL_GATHER, 0, units->gather_ms);
    if (units->has_own_communicator)
        (void)toy_communicator(toy, "dp_shard");
    for (int32_t i = 0; i < units->count; i++) {
        (void)toy_unit(toy, "unit");
        w.gathered[i] = toy_event(toy, "gathered");
        w.copied[i] = toy_event(toy, "copied");
        w.reduced[i] = toy_event(toy, "reduced");
        w.computed[i] = toy_event(toy, "computed");
    }
    toy_marks_begin(toy);
    write_forward(&w);
    write_backward(&w);
}

struct mark_times {
    int64_t at_ps[MARK_COUNT];
};

static void keep_mark(void *context, int64_t now_ps, int32_t class_idx, int32_t step,
                      enum mark mark)
{
    (void)class_idx;
    (void)step;
    struct mark_times *times = context;
    times->at_ps[mark] = now_ps;
}

void units_play(struct units *units)
{
    struct toy toy;
    struct mark_times times = {{0}};
    toy_init(&toy, 2, true);
    /* A ring fills half of the link, so that two collectives do not slow each other. */
    toy_set_capacity(&toy, RESOURCE_SCALE_UP_OUT, 2e9);
    toy_set_capacity(&toy, RESOURCE_SCALE_UP_IN, 2e9);
    toy.cluster.scale_up_link.ring_efficiency = 0.5;
    toy.observers[0] = (struct observer){.context = &times, .mark_reached = keep_mark};
    toy.observer_count = 1;
    units_write(units, &toy);
    (void)toy_play(&toy);
    units->forward_ps = times.at_ps[MARK_FORWARD_END] - times.at_ps[MARK_FORWARD_BEGIN];
    units->backward_ps = times.at_ps[MARK_BACKWARD_END] - times.at_ps[MARK_FORWARD_END];
    toy_release(&toy);
}
