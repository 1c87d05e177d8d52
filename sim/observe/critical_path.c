/* observe/critical_path.c: see critical_path.h: the way back. The waits: critical_waits.c. */
#include "observe/critical_path.h"

#include <math.h>
#include <stdlib.h>

#include "observe/critical_private.h"

const char *path_cause_name(enum path_cause cause)
{
    static const char *const names[PATH_CAUSE_COUNT] = {
        [PATH_COMPUTE] = "compute",
        [PATH_FSDP_COPY] = "fsdp_copies",
        [PATH_CONTENTION] = "contention",
        [PATH_ALL_GATHER] = "all_gather",
        [PATH_REDUCE_SCATTER] = "reduce_scatter",
        [PATH_ALL_REDUCE] = "all_reduce",
        [PATH_OTHER_COLLECTIVE] = "other_collective",
        [PATH_SHARING] = "sharing",
        [PATH_MEMCPY] = "memcpy",
        [PATH_HOST] = "host",
        [PATH_HOST_COMPUTE] = "host_compute",
        [PATH_RETRY] = "allocator_retry",
    };
    return names[cause];
}

const char *path_phase_name(enum path_phase phase)
{
    static const char *const names[PHASE_COUNT] = {[PHASE_FORWARD] = "forward",
                                                   [PHASE_BACKWARD] = "backward",
                                                   [PHASE_OPTIMIZER] = "optimizer"};
    return names[phase];
}

const char *path_late_name(enum path_late late)
{
    static const char *const names[LATE_COUNT] = {
        [LATE_LONG] = "none",           [LATE_HOST] = "host",
        [LATE_EVENT] = "event",         [LATE_TURN] = "communicator order",
        [LATE_STREAM] = "stream order", [LATE_RENDEZVOUS] = "rendezvous"};
    return names[late];
}

enum path_cause performance_cause(const struct program *program,
                                  const struct performance *performance)
{
    const struct op *op = performance->op;
    if (performance->kind == ACTIVITY_MEMCPY)
        return PATH_MEMCPY;
    if (performance->kind == ACTIVITY_COMPUTE)
        return performance->copy_frac > 0.5 ? PATH_FSDP_COPY : PATH_COMPUTE;
    if (op->kind != OP_COLLECTIVE)
        return PATH_OTHER_COLLECTIVE;
    switch (program->collectives.items[op->index].op) {
    case COLLECTIVE_ALL_GATHER:
        return PATH_ALL_GATHER;
    case COLLECTIVE_REDUCE_SCATTER:
        return PATH_REDUCE_SCATTER;
    case COLLECTIVE_ALL_REDUCE:
        return PATH_ALL_REDUCE;
    case COLLECTIVE_BROADCAST:
    case COLLECTIVE_ALL_TO_ALL:
    case COLLECTIVE_SEND_RECV:
    case COLLECTIVE_OP_COUNT:
        break;
    }
    return PATH_OTHER_COLLECTIVE;
}

const struct journal_entry *journal_before(const struct journal *journal,
                                           struct journal_place place)
{
    const struct journal_stream *stream = &journal->classes[place.class_idx].streams[place.stream];
    return place.entry > 0 ? &stream->items[place.entry - 1] : NULL;
}

struct walk {
    const struct journal *journal;
    struct critical_path *path;
    int64_t opened_ps;
    int64_t now_ps;             /* the path is known from here on */
    struct journal_place place; /* … and is now before this entry */
    bool is_on_host;
    int32_t unit_count;
    int64_t *sums_ps; /* by cause, then unit + 1 */
};

static void walk_add(struct walk *walk, enum path_cause cause, int32_t unit, int64_t ps)
{
    walk->sums_ps[(int64_t)cause * (walk->unit_count + 1) + unit + 1] += ps;
    if (walk->place.class_idx != walk->path->class_idx)
        walk->path->elsewhere_ps += ps;
}

/* From begin_ps, or the window's begin, up to now; returns how long that is. */
static int64_t walk_to(struct walk *walk, int64_t begin_ps)
{
    const int64_t begin = begin_ps > walk->opened_ps ? begin_ps : walk->opened_ps;
    const int64_t length_ps = walk->now_ps - begin;
    walk->now_ps = begin;
    return length_ps;
}

/* Of what took whole_ps, of which alone_ps alone: the part of `ps` that is that. */
static int64_t alone_part(int64_t ps, int64_t whole_ps, int64_t alone_ps)
{
    if (alone_ps >= whole_ps)
        return ps;
    return (int64_t)llround((double)ps * ((double)alone_ps / (double)whole_ps));
}

static void walk_kernels(struct walk *walk, const struct journal_entry *entry)
{
    const struct performance *performance = &entry->performance;
    const int32_t unit = performance->op->unit;
    const int64_t ps = walk_to(walk, entry->begin_ps);
    const int64_t alone_ps = alone_part(ps, entry->end_ps - entry->begin_ps, performance->alone_ps);
    const int64_t copy_ps = (int64_t)llround((double)alone_ps * performance->copy_frac);
    walk_add(walk, PATH_COMPUTE, unit, alone_ps - copy_ps);
    walk_add(walk, PATH_FSDP_COPY, unit, copy_ps);
    walk_add(walk, PATH_CONTENTION, unit, ps - alone_ps);
    walk->place.entry--;
}

static void walk_transfer(struct walk *walk, const struct journal_entry *entry)
{
    const struct performance *performance = &entry->performance;
    const struct program *program = walk->journal->classes[walk->place.class_idx].program;
    const bool is_meeting = performance->kind == ACTIVITY_COMMUNICATION;
    const int64_t begin_ps = is_meeting ? entry->transfer_ps : entry->begin_ps;
    const int64_t ps = walk_to(walk, begin_ps);
    const int64_t alone_ps = alone_part(ps, entry->end_ps - begin_ps, performance->alone_ps);
    walk_add(walk, performance_cause(program, performance), performance->op->unit, alone_ps);
    walk_add(walk, PATH_SHARING, performance->op->unit, ps - alone_ps);
    if (is_meeting)
        walk->place = entry->by;
    else
        walk->place.entry--;
}

enum path_cause issue_cause(const struct issue *issue)
{
    return issue->op->kind == OP_HOST_COMPUTE ? PATH_HOST_COMPUTE : PATH_HOST;
}

/* The epoch in which the host is just before now. */
static int32_t find_epoch(const struct journal_class *class, int64_t now_ps)
{
    int32_t low = 0;
    int32_t high = class->host.count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (class->host.items[middle].now_ps < now_ps)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

/* The part of a stretch in which the allocator retried. */
static int64_t retried_ps(const struct journal_class *class, int64_t begin_ps, int64_t end_ps)
{
    int64_t sum_ps = 0;
    for (int32_t i = 0; i < class->retries.count; i++) {
        const struct journal_retry *retry = &class->retries.items[i];
        const int64_t from_ps = retry->begin_ps > begin_ps ? retry->begin_ps : begin_ps;
        const int64_t to_ps = retry->end_ps < end_ps ? retry->end_ps : end_ps;
        sum_ps += to_ps > from_ps ? to_ps - from_ps : 0;
    }
    return sum_ps;
}

/* The host since begin_ps, each issue for its unit. */
static void walk_issues(struct walk *walk, const struct journal_class *class, int32_t first,
                        int64_t begin_ps)
{
    const int64_t end_ps = walk->now_ps;
    int64_t left_ps = walk_to(walk, begin_ps);
    begin_ps = walk->now_ps;
    for (int32_t i = first; i < class->issues.count; i++) {
        const struct issue *issue = &class->issues.items[i];
        if (issue->begin_ps >= end_ps)
            break;
        const int64_t from_ps = issue->begin_ps > begin_ps ? issue->begin_ps : begin_ps;
        const int64_t to_ps = issue->end_ps < end_ps ? issue->end_ps : end_ps;
        if (to_ps <= from_ps)
            continue;
        walk_add(walk, issue_cause(issue), issue->op->unit, to_ps - from_ps);
        left_ps -= to_ps - from_ps;
    }
    int64_t retry_ps = retried_ps(class, begin_ps, end_ps);
    retry_ps = retry_ps < left_ps ? retry_ps : left_ps;
    walk_add(walk, PATH_RETRY, -1, retry_ps);
    walk_add(walk, PATH_HOST, -1, left_ps - retry_ps);
}

static bool walk_host(struct walk *walk)
{
    const struct journal_class *class = &walk->journal->classes[walk->place.class_idx];
    const int32_t idx = find_epoch(class, walk->now_ps);
    if (idx < 0)
        return false;
    const struct journal_host_entry *epoch = &class->host.items[idx];
    walk_issues(walk, class, epoch->first_issue, epoch->now_ps);
    if (epoch->is_held) {
        walk->place = epoch->by;
        walk->is_on_host = false;
    }
    return true;
}

/* False: at the begin of all. */
static bool walk_stream(struct walk *walk)
{
    const struct journal_entry *entry = journal_before(walk->journal, walk->place);
    if (entry == NULL)
        return false;
    if (entry->is_held && entry->hold == HOLD_HOST)
        walk->is_on_host = true;
    else if (entry->is_held)
        walk->place = entry->by;
    else if (entry->performance.kind == ACTIVITY_COMPUTE)
        walk_kernels(walk, entry);
    else
        walk_transfer(walk, entry);
    return true;
}

static int compare_shares(const void *a, const void *b)
{
    const struct path_share *one = a;
    const struct path_share *other = b;
    if (one->ps != other->ps)
        return one->ps < other->ps ? 1 : -1;
    if (one->cause != other->cause)
        return one->cause < other->cause ? -1 : 1;
    return (one->unit > other->unit) - (one->unit < other->unit);
}

static void list_shares(const struct walk *walk, struct arena *arena)
{
    struct critical_path *path = walk->path;
    for (int32_t cause = 0; cause < PATH_CAUSE_COUNT; cause++) {
        for (int32_t unit = -1; unit < walk->unit_count; unit++) {
            const int64_t ps = walk->sums_ps[(int64_t)cause * (walk->unit_count + 1) + unit + 1];
            if (ps == 0)
                continue;
            path->by_cause_ps[cause] += ps;
            *ARENA_PUSH(arena, &path->shares) =
                (struct path_share){(enum path_cause)cause, unit, ps};
        }
    }
    if (path->shares.count > 0)
        qsort(path->shares.items, (size_t)path->shares.count, sizeof(*path->shares.items),
              compare_shares);
}

struct critical_path *critical_path_find(struct arena *arena, const struct journal *journal,
                                         int32_t class_idx)
{
    const struct journal_class *class = &journal->classes[class_idx];
    const struct journal_mark *end =
        journal_find_mark(class, journal->warmup + journal->steps - 1, MARK_STEP_END);
    struct critical_path *path = ARENA_NEW(arena, struct critical_path);
    path->class_idx = class_idx;
    path->program = class->program;
    if (end == NULL)
        return path;
    path->length_ps = class->closed_ps - class->opened_ps;
    struct walk walk = {.journal = journal,
                        .path = path,
                        .opened_ps = class->opened_ps,
                        .now_ps = class->closed_ps,
                        .place = {class_idx, end->stream, end->entry},
                        .unit_count = class->program->units.count};
    walk.sums_ps = ARENA_ARRAY(arena, int64_t, (int64_t)PATH_CAUSE_COUNT * (walk.unit_count + 1));
    while (walk.now_ps > walk.opened_ps) {
        const bool goes_on = walk.is_on_host ? walk_host(&walk) : walk_stream(&walk);
        BUG_IF(!goes_on);
    }
    list_shares(&walk, arena);
    critical_waits_find(arena, journal, path, end->stream);
    return path;
}
