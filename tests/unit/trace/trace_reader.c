/* tests/unit/trace/trace_reader.c: see trace_reader.h. */
#include "trace_reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

#include "base/arena.h"

enum { NAME_BYTES = 96, MAX_DEPTH = 16 };

/* The members of an event that are read. */
struct event {
    char ph[4], cat[32], name[NAME_BYTES];
    int64_t pid, tid, ts_ns, dur_ns, id, stream, correlation, total, reserved;
};

struct events {
    struct event *items;
    int32_t count, capacity;
};

struct reader {
    struct arena arena;
    const char *at;
    bool is_good;
    struct events events;
    struct event event; /* being read */
    int64_t rank;
    char path[MAX_DEPTH][NAME_BYTES]; /* keys down to the value; "": an item of a list */
    int32_t depth;
};

/* ---- JSON ---------------------------------------------------------------------------------- */

static void skip_blanks(struct reader *reader)
{
    reader->at += strspn(reader->at, " \t\r\n");
}

static bool take(struct reader *reader, char c)
{
    skip_blanks(reader);
    if (*reader->at != c)
        return false;
    reader->at++;
    return true;
}

static void expect(struct reader *reader, char c)
{
    reader->is_good &= take(reader, c);
}

static char unescape(struct reader *reader)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    const char c = *reader->at++;
    const char *found = c != '\0' ? strchr(letters, c) : NULL;
    if (found != NULL)
        return meanings[found - letters];
    reader->is_good &= c == 'u' && strspn(reader->at, "0123456789abcdefABCDEF") >= 4;
    if (reader->is_good)
        reader->at += 4;
    return '?';
}

/* A text between quotes: its first bytes. */
static void read_text(struct reader *reader, char *text, size_t size)
{
    size_t length = 0;
    expect(reader, '"');
    while (reader->is_good && *reader->at != '"') {
        char c = *reader->at++;
        reader->is_good &= (unsigned char)c >= ' ';
        if (c == '\\')
            c = unescape(reader);
        if (length + 1 < size)
            text[length++] = c;
    }
    text[length] = '\0';
    expect(reader, '"');
}

static bool is_path(const struct reader *reader, const char *a, const char *b)
{
    /* traceEvents, the item, a, b */
    const int32_t wanted = b != NULL ? 4 : 3;
    return reader->depth == wanted && strcmp(reader->path[0], "traceEvents") == 0 &&
           reader->path[1][0] == '\0' && strcmp(reader->path[2], a) == 0 &&
           (b == NULL || strcmp(reader->path[3], b) == 0);
}

static void keep_text(struct reader *reader, const char *text)
{
    struct event *event = &reader->event;
    if (is_path(reader, "ph", NULL))
        snprintf(event->ph, sizeof(event->ph), "%.3s", text);
    else if (is_path(reader, "cat", NULL))
        snprintf(event->cat, sizeof(event->cat), "%.31s", text);
    else if (is_path(reader, "name", NULL))
        snprintf(event->name, sizeof(event->name), "%s", text);
}

static void keep_number(struct reader *reader, double value)
{
    struct event *event = &reader->event;
    const struct {
        const char *a, *b;
        int64_t *slot;
        double scale;
    } rows[] = {{"pid", NULL, &event->pid, 1},
                {"tid", NULL, &event->tid, 1},
                {"id", NULL, &event->id, 1},
                {"ts", NULL, &event->ts_ns, 1e3},
                {"dur", NULL, &event->dur_ns, 1e3},
                {"args", "stream", &event->stream, 1},
                {"args", "correlation", &event->correlation, 1},
                {"args", "total", &event->total, 1},
                {"args", "Total Allocated", &event->total, 1},
                {"args", "Total Reserved", &event->reserved, 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (is_path(reader, rows[i].a, rows[i].b))
            *rows[i].slot = llround(value * rows[i].scale);
    }
}

static void read_value(struct reader *reader);

static void read_members(struct reader *reader)
{
    if (take(reader, '}'))
        return;
    do {
        char *key = reader->path[reader->depth];
        read_text(reader, key, NAME_BYTES);
        const bool has_blank = strncmp(reader->at, ": ", 2) == 0;
        expect(reader, ':');
        if (has_blank && strcmp(key, "rank") == 0)
            reader->rank = strtoll(reader->at, NULL, 10);
        reader->depth++;
        read_value(reader);
        reader->depth--;
    } while (reader->is_good && take(reader, ','));
    expect(reader, '}');
}

static void read_items(struct reader *reader)
{
    if (take(reader, ']'))
        return;
    const bool are_events = reader->depth == 1 && strcmp(reader->path[0], "traceEvents") == 0;
    do {
        reader->event = (struct event){.stream = -1, .correlation = -1, .dur_ns = -1};
        reader->path[reader->depth++][0] = '\0';
        read_value(reader);
        reader->depth--;
        if (are_events)
            *ARENA_PUSH(&reader->arena, &reader->events) = reader->event;
    } while (reader->is_good && take(reader, ','));
    expect(reader, ']');
}

static void read_word(struct reader *reader)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strncmp(reader->at, words[i], strlen(words[i])) == 0) {
            reader->at += strlen(words[i]);
            return;
        }
    }
    char *end = NULL;
    const double value = strtod(reader->at, &end);
    reader->is_good &= end != reader->at && isfinite(value);
    reader->at = end;
    keep_number(reader, value);
}

static void read_value(struct reader *reader)
{
    char text[NAME_BYTES];
    reader->is_good &= reader->depth < MAX_DEPTH - 1;
    if (!reader->is_good)
        return;
    skip_blanks(reader);
    if (take(reader, '{')) {
        read_members(reader);
    } else if (take(reader, '[')) {
        read_items(reader);
    } else if (*reader->at == '"') {
        read_text(reader, text, sizeof(text));
        keep_text(reader, text);
    } else {
        read_word(reader);
    }
}

/* ---- unions -------------------------------------------------------------------------------- */

struct interval {
    int64_t begin, end;
};

struct intervals {
    struct interval *items;
    int32_t count, capacity;
};

static int compare_intervals(const void *a, const void *b)
{
    const struct interval *one = a;
    const struct interval *other = b;
    if (one->begin != other->begin)
        return one->begin < other->begin ? -1 : 1;
    return (one->end > other->end) - (one->end < other->end);
}

/* Sorted, without overlaps; returns the length in all. */
static int64_t unite(struct intervals *list)
{
    int64_t length = 0;
    int32_t kept = 0;
    if (list->count == 0)
        return 0;
    qsort(list->items, (size_t)list->count, sizeof(*list->items), compare_intervals);
    for (int32_t i = 0; i < list->count; i++) {
        struct interval *last = kept > 0 ? &list->items[kept - 1] : NULL;
        if (last != NULL && list->items[i].begin <= last->end) {
            if (list->items[i].end > last->end)
                last->end = list->items[i].end;
            continue;
        }
        list->items[kept++] = list->items[i];
    }
    list->count = kept;
    for (int32_t i = 0; i < kept; i++)
        length += list->items[i].end - list->items[i].begin;
    return length;
}

static int64_t common(const struct intervals *a, const struct intervals *b)
{
    int64_t length = 0;
    for (int32_t i = 0, j = 0; i < a->count && j < b->count;) {
        const int64_t begin =
            a->items[i].begin > b->items[j].begin ? a->items[i].begin : b->items[j].begin;
        const int64_t end = a->items[i].end < b->items[j].end ? a->items[i].end : b->items[j].end;
        length += end > begin ? end - begin : 0;
        if (a->items[i].end < b->items[j].end)
            i++;
        else
            j++;
    }
    return length;
}

/* ---- facts --------------------------------------------------------------------------------- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static struct interval find_window(const struct events *events, int64_t *steps)
{
    struct interval step = {INT64_MAX, INT64_MIN};
    struct interval kernels = step;
    for (int32_t i = 0; i < events->count; i++) {
        const struct event *event = &events->items[i];
        const bool is_step =
            strcmp(event->cat, "gpu_user_annotation") == 0 && begins(event->name, "ProfilerStep#");
        struct interval *of = is_step ? &step : event->stream >= 0 ? &kernels : NULL;
        *steps += is_step;
        if (of == NULL || strcmp(event->ph, "X") != 0)
            continue;
        if (event->ts_ns < of->begin)
            of->begin = event->ts_ns;
        if (event->ts_ns + event->dur_ns > of->end)
            of->end = event->ts_ns + event->dur_ns;
    }
    return *steps > 0 ? step : kernels;
}

static void break_down(struct reader *reader, struct trace_facts *facts)
{
    struct intervals of[3] = {{0}};
    struct intervals all = {0};
    const struct interval window = find_window(&reader->events, &facts->annotated_steps);
    for (int32_t i = 0; i < reader->events.count; i++) {
        const struct event *event = &reader->events.items[i];
        if (strcmp(event->ph, "X") != 0 || event->stream < 0)
            continue;
        struct interval it = {event->ts_ns, event->ts_ns + event->dur_ns};
        it.begin = it.begin < window.begin ? window.begin : it.begin;
        it.end = it.end > window.end ? window.end : it.end;
        if (it.end <= it.begin)
            continue;
        const bool is_memory = begins(event->name, "Memcpy") || begins(event->name, "Memset");
        const int kind = begins(event->name, "nccl") ? 1 : is_memory ? 2 : 0;
        *ARENA_PUSH(&reader->arena, &of[kind]) = it;
        if (kind < 2)
            *ARENA_PUSH(&reader->arena, &all) = it;
        facts->kernels++;
    }
    facts->window_ns = window.end - window.begin;
    facts->compute_ns = unite(&of[0]);
    facts->comm_ns = unite(&of[1]);
    facts->memory_ns = unite(&of[2]);
    facts->overlap_ns = common(&of[0], &of[1]);
    facts->busy_ns = unite(&all);
}

/* By track, then begin, the longer first. */
static int compare_slices(const void *a, const void *b)
{
    const struct event *one = a;
    const struct event *other = b;
    if (one->pid != other->pid)
        return one->pid < other->pid ? -1 : 1;
    if (one->tid != other->tid)
        return one->tid < other->tid ? -1 : 1;
    if (one->ts_ns != other->ts_ns)
        return one->ts_ns < other->ts_ns ? -1 : 1;
    return (one->dur_ns < other->dur_ns) - (one->dur_ns > other->dur_ns);
}

static int64_t end_of(const struct event *event)
{
    return event->ts_ns + event->dur_ns;
}

static bool is_over(const struct event *open, const struct event *event)
{
    return open->pid != event->pid || open->tid != event->tid || end_of(open) <= event->ts_ns;
}

static void check_nesting(struct reader *reader, struct trace_facts *facts)
{
    struct events slices = {0};
    for (int32_t i = 0; i < reader->events.count; i++) {
        if (strcmp(reader->events.items[i].ph, "X") == 0)
            *ARENA_PUSH(&reader->arena, &slices) = reader->events.items[i];
    }
    if (slices.count == 0)
        return;
    qsort(slices.items, (size_t)slices.count, sizeof(*slices.items), compare_slices);
    const struct event *open[64];
    int32_t depth = 0;
    for (int32_t i = 0; i < slices.count; i++) {
        const struct event *event = &slices.items[i];
        while (depth > 0 && is_over(open[depth - 1], event))
            depth--;
        if (depth > 0 && end_of(event) > end_of(open[depth - 1]))
            facts->crossing++;
        if (depth < 64)
            open[depth++] = event;
    }
}

static int compare_ids(const void *a, const void *b)
{
    const struct event *one = a;
    const struct event *other = b;
    if (one->id != other->id)
        return one->id < other->id ? -1 : 1;
    return strcmp(other->ph, one->ph);
}

/* A launch or kernel of the arrow's number in whose time and on whose track the end lies. */
static bool is_bound(const struct event *end, const struct event *slice)
{
    return slice->correlation >= 0 && slice->pid == end->pid && slice->tid == end->tid &&
           end->ts_ns >= slice->ts_ns && end->ts_ns <= end_of(slice);
}

/* Launches and kernels by their correlation; -1 where there is none. */
struct correlated {
    struct event *launches, *kernels;
    int64_t most;
};

static void correlate(struct reader *reader, struct correlated *all, struct trace_facts *facts)
{
    for (int32_t i = 0; i < reader->events.count; i++) {
        if (reader->events.items[i].correlation > all->most)
            all->most = reader->events.items[i].correlation;
    }
    all->launches = ARENA_ARRAY(&reader->arena, struct event, all->most + 1);
    all->kernels = ARENA_ARRAY(&reader->arena, struct event, all->most + 1);
    for (int64_t i = 0; i <= all->most; i++)
        all->launches[i].correlation = all->kernels[i].correlation = -1;
    for (int32_t i = 0; i < reader->events.count; i++) {
        const struct event *event = &reader->events.items[i];
        if (event->correlation < 0)
            continue;
        struct event *slot =
            &(event->stream >= 0 ? all->kernels : all->launches)[event->correlation];
        facts->twofold_correlations += slot->correlation >= 0;
        facts->launches += event->stream < 0;
        *slot = *event;
    }
}

static void check_arrows(struct reader *reader, struct trace_facts *facts)
{
    struct correlated all = {.most = 0};
    struct events ends = {0};
    correlate(reader, &all, facts);
    for (int32_t i = 0; i < reader->events.count; i++) {
        if (strcmp(reader->events.items[i].cat, "ac2g") == 0)
            *ARENA_PUSH(&reader->arena, &ends) = reader->events.items[i];
    }
    if (ends.count == 0)
        return;
    qsort(ends.items, (size_t)ends.count, sizeof(*ends.items), compare_ids);
    for (int32_t i = 0; i < ends.count; i += 2) {
        const struct event *from = &ends.items[i];
        const struct event *to = i + 1 < ends.count ? &ends.items[i + 1] : from;
        const bool is_pair = from->id == to->id && strcmp(from->ph, "s") == 0 &&
                             strcmp(to->ph, "f") == 0 && from->id <= all.most;
        facts->arrows++;
        if (!is_pair || !is_bound(from, &all.launches[from->id]) ||
            !is_bound(to, &all.kernels[from->id]))
            facts->loose_arrows++;
    }
}

static char *unpack(struct arena *arena, const void *bytes, int64_t count)
{
    z_stream stream = {.next_in = (const unsigned char *)bytes, .avail_in = (uInt)count};
    size_t capacity = (size_t)count * 64 + 4096;
    char *text = arena_alloc(arena, capacity);
    if (inflateInit2(&stream, 15 + 32) != Z_OK)
        return text;
    stream.next_out = (unsigned char *)text;
    stream.avail_out = (uInt)(capacity - 1);
    const int result = inflate(&stream, Z_FINISH);
    text[result == Z_STREAM_END ? stream.total_out : 0] = '\0';
    (void)inflateEnd(&stream);
    return text;
}

struct trace_facts trace_read(const void *bytes, int64_t count)
{
    struct trace_facts facts = {.rank = -1};
    struct reader reader = {.is_good = true, .rank = -1};
    arena_init(&reader.arena);
    const bool is_packed = count > 2 && memcmp(bytes, "\x1f\x8b", 2) == 0;
    reader.at = is_packed ? unpack(&reader.arena, bytes, count)
                          : arena_strndup(&reader.arena, bytes, (size_t)count);
    read_value(&reader);
    skip_blanks(&reader);
    facts.is_json = reader.is_good && *reader.at == '\0';
    facts.rank = reader.rank;
    if (facts.is_json) {
        break_down(&reader, &facts);
        check_nesting(&reader, &facts);
        check_arrows(&reader, &facts);
    }
    for (int32_t i = 0; i < reader.events.count; i++) {
        const struct event *event = &reader.events.items[i];
        facts.instants += strcmp(event->name, "[memory]") == 0;
        if (event->reserved > facts.most_reserved_bytes)
            facts.most_reserved_bytes = event->reserved;
        if (event->total > facts.most_memory_bytes)
            facts.most_memory_bytes = event->total;
    }
    arena_release(&reader.arena);
    return facts;
}
