/*
 * observe/critical_waits.c: for what the compute stream stood still, and why that was late.
 *
 * A wait's end leads to the activity that ended it (through holds on the way); what that activity
 * itself began behind says why it was late.
 */
#include <stdlib.h>

#include "observe/critical_private.h"

/* What an instant leads to: an activity, or the host. */
struct origin {
    const struct journal_entry *entry; /* NULL: the host */
    struct journal_place place;        /* before it */
};

static struct origin origin_of(const struct journal *journal, struct journal_place place)
{
    for (;;) {
        const struct journal_entry *entry = journal_before(journal, place);
        if (entry == NULL || (entry->is_held && entry->hold == HOLD_HOST))
            return (struct origin){.entry = NULL};
        if (!entry->is_held) {
            place.entry--;
            return (struct origin){entry, place};
        }
        place = entry->by;
    }
}

static void name_origin(const struct journal *journal, const struct origin *origin,
                        enum path_cause *cause, int32_t *unit)
{
    *cause = PATH_HOST;
    *unit = -1;
    if (origin->entry == NULL)
        return;
    const struct program *program = journal->classes[origin->place.class_idx].program;
    *cause = performance_cause(program, &origin->entry->performance);
    *unit = origin->entry->performance.op->unit;
}

/* What held the activity back until it began; false: nothing that is known. */
static bool find_behind(const struct journal *journal, const struct origin *origin,
                        struct path_wait *wait, struct origin *behind)
{
    const struct journal_entry *entry = origin->entry;
    const bool has_other = entry->performance.kind == ACTIVITY_COMMUNICATION &&
                           entry->by.class_idx != origin->place.class_idx &&
                           entry->transfer_ps > entry->begin_ps;
    if (has_other) {
        wait->late = LATE_RENDEZVOUS;
        wait->late_rank = journal->layout->classes[entry->by.class_idx].first_rank;
        return false;
    }
    const struct journal_entry *before = journal_before(journal, origin->place);
    if (before == NULL)
        return false;
    struct journal_place place = origin->place;
    wait->late = LATE_STREAM;
    if (before->is_held) {
        wait->late = before->hold == HOLD_HOST   ? LATE_HOST
                     : before->hold == HOLD_TURN ? LATE_TURN
                                                 : LATE_EVENT;
        place = before->by;
    }
    if (wait->late == LATE_HOST)
        return false;
    *behind = origin_of(journal, place);
    name_origin(journal, behind, &wait->late_cause, &wait->late_unit);
    if (behind->entry == NULL)
        wait->late = LATE_HOST;
    return behind->entry != NULL;
}

/*
 * Why the activity did not begin earlier: what held it back, and what that back, until something is
 * found that ran when the wait began and is not one of FSDP's own copies: a gather behind its
 * copy-in behind a host that was late was late for the host.
 */
static void find_late(const struct journal *journal, struct origin origin, int64_t wait_begin_ps,
                      struct path_wait *wait)
{
    wait->late_rank = -1;
    wait->late_unit = -1;
    bool is_direct = true;
    for (; origin.entry != NULL; is_direct = false) {
        struct origin behind;
        if (!find_behind(journal, &origin, wait, &behind) ||
            (behind.entry->begin_ps <= wait_begin_ps && wait->late_cause != PATH_FSDP_COPY))
            break;
        origin = behind;
    }
    const bool is_behind =
        wait->late == LATE_EVENT || wait->late == LATE_TURN || wait->late == LATE_STREAM;
    /* Order holds what stands next to it. */
    if (is_behind && !is_direct)
        wait->late = LATE_EVENT;
    if (is_behind)
        return;
    wait->late_cause = PATH_COMPUTE;
    wait->late_unit = -1;
}

/* What the host did for most of the hold: issue, or compute. */
static enum path_cause host_cause(const struct journal_class *class,
                                  const struct journal_entry *entry)
{
    int64_t compute_ps = 0;
    for (int32_t i = 0; i < class->issues.count; i++) {
        const struct issue *issue = &class->issues.items[i];
        if (issue_cause(issue) != PATH_HOST_COMPUTE)
            continue;
        const int64_t begin = issue->begin_ps > entry->begin_ps ? issue->begin_ps : entry->begin_ps;
        const int64_t end = issue->end_ps < entry->end_ps ? issue->end_ps : entry->end_ps;
        compute_ps += end > begin ? end - begin : 0;
    }
    return 2 * compute_ps > entry->end_ps - entry->begin_ps ? PATH_HOST_COMPUTE : PATH_HOST;
}

static enum path_phase phase_at(const struct journal_class *class, const struct journal_mark **mark,
                                int64_t now_ps, int32_t entry)
{
    /* Marks of other streams are placed by time alone. */
    const struct journal_mark *end = class->marks.items + class->marks.count;
    while (*mark + 1 < end && ((*mark)[1].now_ps < now_ps ||
                               ((*mark)[1].now_ps == now_ps && (*mark)[1].entry < entry)))
        (*mark)++;
    switch ((*mark)->mark) {
    case MARK_FORWARD_END:
        return PHASE_BACKWARD;
    case MARK_BACKWARD_END:
        return PHASE_OPTIMIZER;
    case MARK_STEP_BEGIN:
    case MARK_FORWARD_BEGIN:
    case MARK_STEP_END:
    case MARK_COUNT:
        break;
    }
    return PHASE_FORWARD;
}

static bool is_same_wait(const struct path_wait *a, const struct path_wait *b)
{
    return a->unit == b->unit && a->phase == b->phase && a->for_cause == b->for_cause &&
           a->for_unit == b->for_unit && a->late == b->late && a->late_cause == b->late_cause &&
           a->late_unit == b->late_unit && a->late_rank == b->late_rank;
}

static void add_wait(struct arena *arena, struct critical_path *path, const struct path_wait *wait)
{
    path->held_ps += wait->ps;
    for (int32_t i = 0; i < path->waits.count; i++) {
        struct path_wait *item = &path->waits.items[i];
        if (!is_same_wait(item, wait))
            continue;
        item->ps += wait->ps;
        item->count++;
        return;
    }
    *ARENA_PUSH(arena, &path->waits) = *wait;
}

static int compare_waits(const void *a, const void *b)
{
    const struct path_wait *one = a;
    const struct path_wait *other = b;
    if (one->ps != other->ps)
        return one->ps < other->ps ? 1 : -1;
    if (one->phase != other->phase)
        return one->phase < other->phase ? -1 : 1;
    if (one->unit != other->unit)
        return one->unit < other->unit ? -1 : 1;
    return (one->for_cause > other->for_cause) - (one->for_cause < other->for_cause);
}

/* The part of the hold that is reported; 0: none. */
static int64_t reported_ps(const struct journal_class *class, const struct journal_entry *entry)
{
    const int64_t begin = entry->begin_ps > class->opened_ps ? entry->begin_ps : class->opened_ps;
    const int64_t end = entry->end_ps < class->closed_ps ? entry->end_ps : class->closed_ps;
    return entry->is_held && end > begin ? end - begin : 0;
}

void critical_waits_find(struct arena *arena, const struct journal *journal,
                         struct critical_path *path, int32_t stream)
{
    const struct journal_class *class = &journal->classes[path->class_idx];
    const struct journal_stream *entries = &class->streams[stream];
    const struct journal_mark *mark = class->marks.items;
    for (int32_t i = 0; i < entries->count; i++) {
        const struct journal_entry *entry = &entries->items[i];
        const int64_t ps = reported_ps(class, entry);
        if (ps == 0)
            continue;
        struct path_wait wait = {.unit = entry->op->unit, .count = 1, .ps = ps};
        wait.phase = phase_at(class, &mark, entry->end_ps, i + 1);
        const struct origin origin =
            origin_of(journal, (struct journal_place){path->class_idx, stream, i + 1});
        name_origin(journal, &origin, &wait.for_cause, &wait.for_unit);
        if (origin.entry == NULL)
            wait.for_cause = host_cause(class, entry);
        find_late(journal, origin, entry->begin_ps, &wait);
        add_wait(arena, path, &wait);
    }
    if (path->waits.count > 0)
        qsort(path->waits.items, (size_t)path->waits.count, sizeof(*path->waits.items),
              compare_waits);
}
