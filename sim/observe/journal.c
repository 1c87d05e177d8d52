/* observe/journal.c: see journal.h. */
#include "observe/journal.h"

static struct journal_stream *stream_of(struct journal *journal, int32_t class_idx, int32_t stream)
{
    return &journal->classes[class_idx].streams[stream];
}

/* Past all that the stream has done by now; stream -1: the host ended it. */
static struct journal_place place_now(struct journal *journal, int32_t class_idx, int32_t stream)
{
    const int32_t entry = stream < 0 ? 0 : stream_of(journal, class_idx, stream)->count;
    return (struct journal_place){class_idx, stream, entry};
}

static void performance_begin(void *context, int64_t now_ps, int32_t class_idx,
                              const struct performance *performance)
{
    struct journal *journal = context;
    const int32_t stream = performance->op->stream;
    struct journal_entry *entry = ARENA_PUSH(journal->arena, stream_of(journal, class_idx, stream));
    *entry = (struct journal_entry){
        .begin_ps = now_ps, .end_ps = now_ps, .transfer_ps = now_ps, .performance = *performance};
    if (performance->kind != ACTIVITY_COMMUNICATION)
        return;
    journal->last_arrival = place_now(journal, class_idx, stream);
    journal->last_arrival.entry--;
}

static void activity_end(void *context, int64_t now_ps, int32_t class_idx, enum activity_kind kind,
                         const struct op *op, double copy_frac)
{
    (void)kind;
    (void)copy_frac;
    struct journal_stream *stream = stream_of(context, class_idx, op->stream);
    stream->items[stream->count - 1].end_ps = now_ps;
}

static void transfer_begin(void *context, int64_t now_ps, int32_t class_idx, const struct op *op)
{
    struct journal *journal = context;
    struct journal_stream *stream = stream_of(journal, class_idx, op->stream);
    struct journal_entry *entry = &stream->items[stream->count - 1];
    entry->transfer_ps = now_ps;
    entry->by = journal->last_arrival;
}

static void stream_held(void *context, int64_t since_ps, int64_t now_ps, int32_t class_idx,
                        int32_t stream, const struct op *op, enum hold hold, int32_t by)
{
    struct journal *journal = context;
    struct journal_entry *entry = ARENA_PUSH(journal->arena, stream_of(journal, class_idx, stream));
    *entry = (struct journal_entry){.begin_ps = since_ps,
                                    .end_ps = now_ps,
                                    .is_held = true,
                                    .op = op,
                                    .hold = hold,
                                    .by = place_now(journal, class_idx, by)};
}

static void host_enters(void *context, int64_t since_ps, int64_t now_ps, int32_t class_idx,
                        int32_t by)
{
    struct journal *journal = context;
    struct journal_class *class = &journal->classes[class_idx];
    *ARENA_PUSH(journal->arena, &class->host) =
        (struct journal_host_entry){.since_ps = since_ps,
                                    .now_ps = now_ps,
                                    .is_held = by >= 0,
                                    .by = place_now(journal, class_idx, by),
                                    .first_issue = class->issues.count};
}

static void host_issues(void *context, int32_t class_idx, const struct issue *issue)
{
    struct journal *journal = context;
    *ARENA_PUSH(journal->arena, &journal->classes[class_idx].issues) = *issue;
}

/* The first stream when the mark is in the prologue. */
static int32_t mark_stream(const struct program *program, enum mark mark)
{
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        if (op->kind == OP_MARK && op->index == (int32_t)mark)
            return op->stream;
    }
    return 0;
}

static void mark_reached(void *context, int64_t now_ps, int32_t class_idx, int32_t step,
                         enum mark mark)
{
    struct journal *journal = context;
    struct journal_class *class = &journal->classes[class_idx];
    const int32_t stream = mark_stream(class->program, mark);
    *ARENA_PUSH(journal->arena, &class->marks) =
        (struct journal_mark){.now_ps = now_ps,
                              .step = step,
                              .mark = mark,
                              .stream = stream,
                              .entry = class->streams[stream].count};
}

static void memory_changed(void *context, const struct memory_change *change)
{
    struct journal *journal = context;
    *ARENA_PUSH(journal->arena, &journal->classes[change->class_idx].memory) =
        (struct journal_memory){change->time_ps, change->tensor, change->delta_bytes,
                                change->reserved_bytes};
}

static void memory_retried(void *context, const struct memory_retry *retry)
{
    struct journal *journal = context;
    *ARENA_PUSH(journal->arena, &journal->classes[retry->class_idx].retries) =
        (struct journal_retry){retry->begin_ps, retry->end_ps};
}

struct journal *journal_new(struct arena *arena, const struct layout *layout,
                            const struct program *const *programs, int32_t program_count,
                            int32_t warmup, int32_t steps)
{
    struct journal *journal = ARENA_NEW(arena, struct journal);
    *journal = (struct journal){.arena = arena,
                                .layout = layout,
                                .warmup = warmup,
                                .steps = steps,
                                .class_count = layout->class_count};
    journal->classes = ARENA_ARRAY(arena, struct journal_class, journal->class_count);
    for (int32_t i = 0; i < journal->class_count; i++) {
        struct journal_class *class = &journal->classes[i];
        class->program = programs[program_count == 1 ? 0 : i];
        class->streams = ARENA_ARRAY(arena, struct journal_stream, class->program->streams.count);
    }
    return journal;
}

struct observer journal_observer(struct journal *journal)
{
    return (struct observer){.context = journal,
                             .performance_begin = performance_begin,
                             .activity_end = activity_end,
                             .transfer_begin = transfer_begin,
                             .stream_held = stream_held,
                             .host_enters = host_enters,
                             .host_issues = host_issues,
                             .memory_changed = memory_changed,
                             .memory_retried = memory_retried,
                             .mark_reached = mark_reached};
}

const struct journal_mark *journal_find_mark(const struct journal_class *class, int32_t step,
                                             enum mark mark)
{
    for (int32_t i = class->marks.count; i-- > 0;) {
        const struct journal_mark *item = &class->marks.items[i];
        if (item->step == step && item->mark == mark)
            return item;
    }
    return NULL;
}

void journal_close(struct journal *journal)
{
    for (int32_t i = 0; i < journal->class_count; i++) {
        struct journal_class *class = &journal->classes[i];
        const struct journal_mark *opened =
            journal->warmup == 0 ? journal_find_mark(class, 0, MARK_STEP_BEGIN)
                                 : journal_find_mark(class, journal->warmup - 1, MARK_STEP_END);
        const struct journal_mark *closed =
            journal_find_mark(class, journal->warmup + journal->steps - 1, MARK_STEP_END);
        if (opened == NULL || closed == NULL)
            continue; /* a toy without marks */
        class->opened_ps = opened->now_ps;
        class->closed_ps = closed->now_ps;
    }
}
