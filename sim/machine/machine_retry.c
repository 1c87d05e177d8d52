/*
 * machine/machine_retry.c: the host where memory is limited.
 *
 * Every allocation begins an epoch, and the changes of an epoch are made before the host enters it.
 * A request that the driver cannot serve makes the host wait until the GPU has done all that it was
 * given (cudaFree waits for the device); then cached segments go back and the request is repeated:
 *
 *   retry = wait for the GPU + frees (device_free + pages · device_free_page)
 *                            + mallocs (device_malloc + pages · device_malloc_page)
 *
 * Segments asked for later, in the place of those given back, cost the host their mallocs too. When
 * the repeated request fails the play ends: out of memory.
 */
#include "base/units.h"
#include "machine/machine_private.h"

static const double page_bytes = 2 << 20; /* the driver maps 2 MiB at a time */

static int64_t driver_ps(const struct machine *machine, const struct driver_calls *before,
                         const struct driver_calls *after)
{
    if (machine->setup->ideal.host)
        return 0;
    const double *cost_s = machine->setup->layout->cluster->host_cost_s;
    const double mallocs = (double)(after->malloc_count - before->malloc_count);
    const double malloced = (double)(after->malloc_bytes - before->malloc_bytes);
    const double frees = (double)(after->free_count - before->free_count);
    const double freed = (double)(after->free_bytes - before->free_bytes);
    return ps_from_s(mallocs * cost_s[HOST_DEVICE_MALLOC] +
                     malloced / page_bytes * cost_s[HOST_DEVICE_MALLOC_PAGE] +
                     frees * cost_s[HOST_DEVICE_FREE] +
                     freed / page_bytes * cost_s[HOST_DEVICE_FREE_PAGE]);
}

/* The host goes on when the driver is done. */
static void settle_later(struct machine *machine, struct class_state *class, int64_t driver)
{
    class->is_settling = true;
    class->host.op = class->host_epoch;
    engine_schedule(&machine->engine, &class->host, machine->engine.now_ps + driver);
}

static const struct tape_memory *settle_item(const struct class_state *class)
{
    return &host_tape(class)->memory.items[class->settled_count];
}

bool memory_settle(struct machine *machine, struct class_state *class)
{
    const int32_t end = host_tape(class)->epochs.items[class->host_epoch].memory_end;
    const struct driver_calls before = class->held->allocator.calls;
    for (; class->settled_count < end; class->settled_count++) {
        const struct tape_memory *item = settle_item(class);
        const int64_t time_ps = machine->engine.now_ps + item->issue_ps;
        if (item->is_free) {
            memory_free_after(machine, class, time_ps, class->host_step, item);
        } else if (!memory_allocate(machine, class, time_ps, class->host_step, item->op)) {
            class->is_synchronising = true;
            class->synchronising_ps = machine->engine.now_ps;
            machine->synchronising_count++;
            return false;
        }
    }
    const int64_t driver = driver_ps(machine, &before, &class->held->allocator.calls);
    if (driver == 0 || !class->held->has_retried)
        return true;
    settle_later(machine, class, driver);
    return false;
}

static void retry_tell(struct machine *machine, const struct memory_retry *retry)
{
    for (int32_t i = 0; i < machine->setup->observer_count; i++) {
        const struct observer *observer = &machine->setup->observers[i];
        if (observer->memory_retried != NULL)
            observer->memory_retried(observer->context, retry);
    }
}

static void class_retry(struct machine *machine, struct class_state *class)
{
    struct allocator *allocator = &class->held->allocator;
    const struct driver_calls before = allocator->calls;
    const int64_t reserved = allocator->reserved_bytes, now_ps = machine->engine.now_ps;
    const struct op *op = settle_item(class)->op;
    allocator_release_cached(allocator);
    const int64_t freed = reserved - allocator->reserved_bytes;
    if (!memory_allocate(machine, class, now_ps, class->host_step, op)) {
        machine->is_out_of_memory = true;
        engine_stop(&machine->engine);
        return;
    }
    const int64_t driver = driver_ps(machine, &before, &allocator->calls);
    retry_tell(machine, &(struct memory_retry){.begin_ps = class->synchronising_ps,
                                               .end_ps = now_ps + driver,
                                               .class_idx = class->idx,
                                               .step = class->host_step,
                                               .op = op,
                                               .freed_bytes = freed});
    class->held->has_retried = true;
    class->settled_count++;
    settle_later(machine, class, driver);
}

static bool is_idle(const struct class_state *class)
{
    for (int32_t i = 0; i < class->lane_count; i++)
        if (class->lanes[i].state != LANE_AWAITS_HOST && class->lanes[i].state != LANE_DONE)
            return false;
    return true;
}

void memory_retry_idle(struct machine *machine)
{
    for (int32_t i = 0; i < machine->class_count && !machine->is_out_of_memory; i++) {
        struct class_state *class = &machine->classes[i];
        if (!class->is_synchronising || !is_idle(class))
            continue;
        class->is_synchronising = false;
        machine->synchronising_count--;
        class_retry(machine, class);
    }
}
