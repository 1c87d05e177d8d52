/* observe/facts.c: see observe.h: the observers together, and what they found. */
#include "observe/facts_private.h"

/* Shares of instances that several activities used are added as they are told. */
static void resource_used(void *context, int64_t now_ps, int32_t resource, double amount,
                          int64_t busy_ps)
{
    struct facts *facts = context;
    const struct window *window = &facts->times[0].window;
    struct resource_facts *used = &facts->resources[resource];
    /* What ends in the instant in which the window opens ran before it. */
    if (window->state == WINDOW_BEFORE || now_ps == window->opened_ps)
        return;
    const bool is_over = window->state == WINDOW_CLOSED && window->closed_ps < now_ps;
    if (!is_over)
        used->amount += amount;
    const int64_t end_ps = is_over ? window->closed_ps : now_ps;
    const int64_t begin_ps =
        now_ps - busy_ps > window->opened_ps ? now_ps - busy_ps : window->opened_ps;
    if (end_ps > begin_ps && busy_ps > 0)
        used->busy_ps += end_ps - begin_ps;
}

struct facts *facts_new(struct arena *arena, const struct layout *layout,
                        const struct program *const *programs, int32_t program_count,
                        int32_t warmup, int32_t steps)
{
    struct facts *facts = ARENA_NEW(arena, struct facts);
    *facts = (struct facts){.layout = layout,
                            .programs = programs,
                            .program_count = program_count,
                            .class_count = layout->class_count,
                            .warmup = warmup,
                            .steps = steps};
    facts->times = ARENA_ARRAY(arena, struct time_watch, facts->class_count);
    facts->memories = ARENA_ARRAY(arena, struct memory_watch, facts->class_count);
    facts->resources = ARENA_ARRAY(arena, struct resource_facts, layout->resource_count);
    for (int32_t i = 0; i < facts->class_count; i++) {
        const struct program *program = facts_program(facts, i);
        struct time_watch *times = &facts->times[i];
        times->stream_count = program->streams.count;
        times->running = ARENA_ARRAY(arena, struct running, program->streams.count);
        times->units = ARENA_ARRAY(arena, struct unit_facts, program->units.count);
        struct memory_watch *memory = &facts->memories[i];
        memory->unit_count = program->units.count;
        memory->now.by_unit = ARENA_ARRAY(arena, int64_t, program->units.count + 1);
        memory->facts.peak.by_unit = ARENA_ARRAY(arena, int64_t, program->units.count + 1);
        memory->facts.first_peak.by_unit = ARENA_ARRAY(arena, int64_t, program->units.count + 1);
    }
    return facts;
}

static bool has_data_loader(const struct facts *facts)
{
    for (int32_t i = 0; i < facts->program_count; i++) {
        const struct program *program = facts->programs[i];
        for (int32_t k = 0; k < program->streams.count; k++)
            if (program->streams.items[k].role == STREAM_DATA_LOADER)
                return true;
    }
    return false;
}

struct observer facts_observer(struct facts *facts)
{
    return (struct observer){.host_enters = has_data_loader(facts) ? times_host_enters : NULL,
                             .context = facts,
                             .activity_begin = times_activity_begin,
                             .activity_end = times_activity_end,
                             .transfer_begin = times_transfer_begin,
                             .resource_used = resource_used,
                             .memory_changed = ledger_changed,
                             .memory_retried = ledger_retried,
                             .mark_reached = times_mark_reached};
}

void facts_know_memory(struct facts *facts, int32_t class_idx, const struct memory_facts *memory)
{
    facts->memories[class_idx].facts = *memory;
    facts->memories[class_idx].is_known = true;
}

void facts_close(struct facts *facts)
{
    for (int32_t i = 0; i < facts->class_count; i++) {
        times_close(&facts->times[i]);
        if (!facts->memories[i].is_known)
            ledger_close(&facts->memories[i], facts->warmup + facts->steps);
    }
}

const struct breakdown *facts_breakdown(const struct facts *facts, int32_t class_idx)
{
    return &facts->times[class_idx].sums;
}

const struct unit_facts *facts_unit(const struct facts *facts, int32_t class_idx, int32_t unit)
{
    return &facts->times[class_idx].units[unit];
}

const struct memory_facts *facts_memory(const struct facts *facts, int32_t class_idx)
{
    return &facts->memories[class_idx].facts;
}

const struct resource_facts *facts_resource(const struct facts *facts, int32_t resource)
{
    return &facts->resources[resource];
}
