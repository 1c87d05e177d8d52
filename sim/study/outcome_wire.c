/* study/outcome_wire.c: see outcome_wire.h. */
#include "study/outcome_wire.h"

#include <string.h>

/* No text and the empty text differ. */
static const uint32_t no_text = UINT32_MAX;

/* ---- packing ------------------------------------------------------------------------------ */

static void put(struct strbuf *bytes, const void *value, size_t size)
{
    strbuf_add_bytes(bytes, value, size);
}

static void put_text(struct strbuf *bytes, const char *text)
{
    const uint32_t length = text != NULL ? (uint32_t)strlen(text) : no_text;
    put(bytes, &length, sizeof(length));
    if (text != NULL)
        put(bytes, text, length);
}

static void put_fields(struct strbuf *bytes, const void *item, const struct metric *fields)
{
    for (const struct metric *field = fields; field->name != NULL; field++) {
        if (field->kind == METRIC_TEXT)
            put_text(bytes, metric_text(item, field));
        else if (field->kind == METRIC_BOOL)
            put(bytes, metric_field(item, field), sizeof(bool));
        else /* a double or an int64_t */
            put(bytes, metric_field(item, field), sizeof(int64_t));
    }
}

static const struct metric origin_fields[] = {
    {.name = "path", .kind = METRIC_TEXT, .offset = offsetof(struct outcome_origin, path)},
    {.name = "value", .kind = METRIC_TEXT, .offset = offsetof(struct outcome_origin, value)},
    {.name = "origin", .kind = METRIC_TEXT, .offset = offsetof(struct outcome_origin, origin)},
    {.name = NULL},
};

static const struct metric warning_fields[] = {
    {.name = "message", .kind = METRIC_TEXT, .offset = 0},
    {.name = NULL},
};

/* The lists of an outcome: what both directions go by. */
static const struct wire_list {
    size_t items_offset, count_offset, item_bytes;
    const struct metric *fields;
} lists[] = {
#define LIST(items, count, type, fields)                                                           \
    {                                                                                              \
        offsetof(struct outcome, items), offsetof(struct outcome, count), sizeof(struct type),     \
            fields                                                                                 \
    }
    LIST(units, unit_count, outcome_unit, outcome_unit_fields),
    LIST(collectives, collective_count, outcome_collective, outcome_collective_fields),
    LIST(links, link_count, outcome_link, outcome_link_fields),
    LIST(memory_units, memory_unit_count, outcome_memory_unit, outcome_memory_unit_fields),
    LIST(origins, origin_count, outcome_origin, origin_fields),
#undef LIST
    {offsetof(struct outcome, warnings), offsetof(struct outcome, warning_count),
     sizeof(const char *), warning_fields},
};
static const struct wire_list intervals = {
    offsetof(struct outcome, intervals), offsetof(struct outcome, interval_count),
    sizeof(struct outcome_interval), outcome_interval_fields};
enum { LIST_COUNT = sizeof(lists) / sizeof(lists[0]) };

static void put_list(struct strbuf *bytes, const struct outcome *outcome,
                     const struct wire_list *list)
{
    int32_t count = 0;
    const char *items = NULL;
    memcpy(&count, (const char *)outcome + list->count_offset, sizeof(count));
    memcpy(&items, (const char *)outcome + list->items_offset, sizeof(items));
    put(bytes, &count, sizeof(count));
    for (int32_t i = 0; i < count; i++)
        put_fields(bytes, items + (size_t)i * list->item_bytes, list->fields);
}

void outcome_pack(const struct outcome *outcome, bool has_detail, struct strbuf *bytes)
{
    put_fields(bytes, outcome, outcome_metrics);
    put(bytes, &outcome->config_hash, sizeof(outcome->config_hash));
    put(bytes, &outcome->fingerprint, sizeof(outcome->fingerprint));
    put(bytes, outcome->peak_composition, sizeof(outcome->peak_composition));
    put_list(bytes, outcome, &intervals);
    put(bytes, &has_detail, sizeof(has_detail));
    for (int i = 0; i < LIST_COUNT && has_detail; i++)
        put_list(bytes, outcome, &lists[i]);
}

/* ---- unpacking ---------------------------------------------------------------------------- */

struct reader {
    const char *at, *end;
    struct arena *arena;
};

static void take(struct reader *reader, void *value, size_t size)
{
    BUG_IF((size_t)(reader->end - reader->at) < size);
    memcpy(value, reader->at, size);
    reader->at += size;
}

static const char *take_text(struct reader *reader)
{
    uint32_t length = 0;
    take(reader, &length, sizeof(length));
    if (length == no_text)
        return NULL;
    BUG_IF((size_t)(reader->end - reader->at) < length);
    const char *text = arena_strndup(reader->arena, reader->at, length);
    reader->at += length;
    return text;
}

static void take_fields(struct reader *reader, void *item, const struct metric *fields)
{
    for (const struct metric *field = fields; field->name != NULL; field++) {
        char *slot = (char *)item + field->offset;
        if (field->kind == METRIC_TEXT) {
            const char *text = take_text(reader);
            memcpy(slot, &text, sizeof(text));
        } else {
            take(reader, slot, field->kind == METRIC_BOOL ? sizeof(bool) : sizeof(int64_t));
        }
    }
}

static void take_list(struct reader *reader, struct outcome *outcome, const struct wire_list *list)
{
    int32_t count = 0;
    take(reader, &count, sizeof(count));
    BUG_IF(count < 0);
    char *items = arena_alloc(reader->arena, list->item_bytes * (size_t)count + 1);
    for (int32_t i = 0; i < count; i++)
        take_fields(reader, items + (size_t)i * list->item_bytes, list->fields);
    memcpy((char *)outcome + list->count_offset, &count, sizeof(count));
    memcpy((char *)outcome + list->items_offset, &items, sizeof(items));
}

void outcome_unpack(const char *bytes, size_t count, struct arena *arena, struct outcome *outcome)
{
    struct reader reader = {bytes, bytes + count, arena};
    bool has_detail = false;
    *outcome = (struct outcome){0};
    take_fields(&reader, outcome, outcome_metrics);
    take(&reader, &outcome->config_hash, sizeof(outcome->config_hash));
    take(&reader, &outcome->fingerprint, sizeof(outcome->fingerprint));
    take(&reader, outcome->peak_composition, sizeof(outcome->peak_composition));
    take_list(&reader, outcome, &intervals);
    take(&reader, &has_detail, sizeof(has_detail));
    for (int i = 0; i < LIST_COUNT && has_detail; i++)
        take_list(&reader, outcome, &lists[i]);
    BUG_IF(reader.at != reader.end);
}
