/*
 * config/node.c: see node.h. libyaml's events become nodes; what YAML offers and we refuse is
 * refused here. libyaml marks count characters, not bytes, as struct place does.
 */
#include "config/node.h"

#include <string.h>
#include <yaml.h>

#include "base/hash.h"
#include "config/config_private.h"

static const char byte_order_mark[] = "\xEF\xBB\xBF";

struct reader {
    struct arena *arena;
    const struct source *source;
    struct diag *diag;
    yaml_parser_t parser;
    int32_t shift; /* characters before the text on its first line */
    int32_t depth;
    int32_t mistakes;
};

static struct place place_at(const struct reader *reader, const yaml_mark_t *mark, int32_t length)
{
    return (struct place){.source = reader->source,
                          .line = (int32_t)mark->line + 1,
                          .column =
                              (int32_t)mark->column + 1 + (mark->line == 0 ? reader->shift : 0),
                          .length = length > 0 ? length : 1};
}

/* A value over several lines is marked by its first character. */
static struct place place_between(const struct reader *reader, const yaml_mark_t *start,
                                  const yaml_mark_t *end)
{
    const bool is_one_line = start->line == end->line && end->column > start->column;
    return place_at(reader, start, is_one_line ? (int32_t)(end->column - start->column) : 1);
}

static char char_at(const struct source *source, struct place place)
{
    const char *at = source->text;
    const char *const end = at + source->length;
    for (int32_t line = 1; line < place.line && at < end; at++)
        line += *at == '\n';
    for (int32_t column = 1; column < place.column && at < end && *at != '\n'; column++) {
        at++;
        while (at < end && ((unsigned char)*at & 0xC0) == 0x80)
            at++;
    }
    if (at == end)
        return '\0';
    return *at;
}

static const char *syntax_hint(const struct reader *reader, const char *problem, struct place place)
{
    const char at = char_at(reader->source, place);
    if (strstr(problem, "cannot start any token") != NULL)
        return at == '\t' ? "a tab cannot indent: use spaces"
                          : "put a text that starts with this character in quotes";
    if (strstr(problem, "mapping values are not allowed") != NULL)
        return "put a text that holds ': ' in quotes, or check the indentation";
    return NULL;
}

/* Where the text ends; libyaml puts that on a line of its own, which nobody wrote. */
static struct place end_place(const struct source *source)
{
    struct place place = {source, 1, 1, 1};
    size_t line_start = 0;
    for (size_t i = 0; i < source->length; i++) {
        if (source->text[i] != '\n')
            continue;
        place.line++;
        line_start = i + 1;
    }
    place.column = utf8_length(source->text + line_start, source->length - line_start) + 1;
    return place;
}

static void report_syntax(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        out_of_memory(0);
    const char *problem = parser->problem != NULL ? parser->problem : "not YAML";
    struct place place = place_at(reader, &parser->problem_mark, 1);
    const struct place end = end_place(reader->source);
    if (place.line > end.line)
        place = end;
    diag_add(reader->diag, DIAG_ERROR, place, syntax_hint(reader, problem, place), "%s", problem);
    if (parser->context != NULL && parser->context_mark.line != parser->problem_mark.line)
        diag_add(reader->diag, DIAG_NOTE, place_at(reader, &parser->context_mark, 1), NULL, "%s",
                 parser->context);
}

static bool next_event(struct reader *reader, yaml_event_t *event)
{
    if (reader->mistakes >= CONFIG_MAX_MISTAKES)
        return false;
    if (yaml_parser_parse(&reader->parser, event))
        return true;
    report_syntax(reader);
    return false;
}

static void refuse(struct reader *reader, struct place place, const char *hint, const char *what)
{
    reader->mistakes++;
    diag_add(reader->diag, DIAG_ERROR, place, hint, "%s", what);
}

/* Anchors and tags may stand before any value. */
static void refuse_properties(struct reader *reader, const yaml_event_t *event)
{
    static const char standard[] = "tag:yaml.org,2002:";
    const char *anchor = NULL;
    const char *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = (const char *)event->data.scalar.anchor;
        tag = (const char *)event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = (const char *)event->data.sequence_start.anchor;
        tag = (const char *)event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = (const char *)event->data.mapping_start.anchor;
        tag = (const char *)event->data.mapping_start.tag;
    }
    if (anchor != NULL)
        refuse(reader, place_at(reader, &event->start_mark, (int32_t)strlen(anchor) + 1),
               "write the value out where it is needed", "anchors are not accepted");
    if (tag != NULL) {
        const bool is_standard = strncmp(tag, standard, sizeof(standard) - 1) == 0;
        const size_t length = is_standard ? strlen(tag) - (sizeof(standard) - 1) + 2 : strlen(tag);
        refuse(reader, place_at(reader, &event->start_mark, (int32_t)length),
               "the field says what a value is", "tags are not accepted");
    }
}

static bool is_null_text(const char *text)
{
    return text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0 ||
           strcmp(text, "Null") == 0 || strcmp(text, "NULL") == 0;
}

static void read_scalar(struct reader *reader, const yaml_event_t *event, struct node *node)
{
    const char *value = (const char *)event->data.scalar.value;
    const size_t length = event->data.scalar.length;
    if (memchr(value, '\0', length) != NULL)
        refuse(reader, node->place, NULL, "a text holds a NUL character");
    node->text = arena_strndup(reader->arena, value, length);
    node->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    node->kind = !node->is_quoted && is_null_text(node->text) ? NODE_NULL : NODE_SCALAR;
}

static bool read_node(struct reader *reader, const yaml_event_t *event, struct node **out);

static bool read_list(struct reader *reader, struct node *list)
{
    bool is_done = false;
    while (!is_done) {
        yaml_event_t event;
        if (!next_event(reader, &event))
            return false;
        struct node *item = NULL;
        is_done = event.type == YAML_SEQUENCE_END_EVENT;
        const bool is_read = is_done || read_node(reader, &event, &item);
        yaml_event_delete(&event);
        if (!is_done)
            ARENA_PUSH(reader->arena, &list->entries)->value = item;
        if (!is_read)
            return false;
    }
    return true;
}

/* The keys of one map that is being read: open addressing, slots hold index + 1. */
struct key_index {
    int32_t *slots;
    uint64_t capacity; /* a power of two */
};

static uint64_t key_hash(const char *key)
{
    uint64_t hash = 0;
    for (; *key != '\0'; key++)
        hash = hash64_mix(hash, (unsigned char)*key);
    return hash;
}

static int32_t *key_slot(const struct key_index *index, const struct node *map, const char *key)
{
    uint64_t at = key_hash(key) & (index->capacity - 1);
    while (index->slots[at] != 0 && strcmp(map->entries.items[index->slots[at] - 1].key, key) != 0)
        at = (at + 1) & (index->capacity - 1);
    return &index->slots[at];
}

static void key_index_grow(struct reader *reader, struct key_index *index, const struct node *map)
{
    index->capacity = index->capacity == 0 ? 16 : 2 * index->capacity;
    index->slots = ARENA_ARRAY(reader->arena, int32_t, index->capacity);
    for (int32_t i = 0; i < map->entries.count; i++)
        *key_slot(index, map, map->entries.items[i].key) = i + 1;
}

/* The entry of a key that was just read, or NULL (with a message when it is a mistake). */
static struct node_entry *add_key(struct reader *reader, const yaml_event_t *event,
                                  struct node *map, struct key_index *index)
{
    const struct place place = place_between(reader, &event->start_mark, &event->end_mark);
    if (event->type != YAML_SCALAR_EVENT) {
        refuse(reader, place, NULL, "a key must be a word, not a map, a list or an alias");
        return NULL;
    }
    struct node key = {.place = place};
    refuse_properties(reader, event);
    read_scalar(reader, event, &key);
    if (!key.is_quoted && strcmp(key.text, "<<") == 0) {
        refuse(reader, place, "write the keys out where they are needed",
               "merge keys ('<<') are not accepted");
        return NULL;
    }
    if (key.text[0] == '\0') {
        refuse(reader, place, NULL, "a key is empty");
        return NULL;
    }
    if (index->slots == NULL || 2 * (uint64_t)(map->entries.count + 1) > index->capacity)
        key_index_grow(reader, index, map);
    int32_t *slot = key_slot(index, map, key.text);
    if (*slot != 0) {
        reader->mistakes++;
        diag_add(reader->diag, DIAG_ERROR, place, NULL, "duplicate key '%s'", key.text);
        diag_add(reader->diag, DIAG_NOTE, map->entries.items[*slot - 1].key_place, NULL,
                 "first written here");
        return NULL;
    }
    struct node_entry *entry = ARENA_PUSH(reader->arena, &map->entries);
    *slot = map->entries.count;
    *entry = (struct node_entry){.key = key.text, .key_place = place};
    if (map->entries.count == 1)
        map->place = place;
    return entry;
}

/* Reads a key's event that was fetched, its value, and nothing more. */
static bool read_pair(struct reader *reader, const yaml_event_t *key_event, struct node *map,
                      struct key_index *index)
{
    struct node_entry *entry = add_key(reader, key_event, map, index);
    /* A map or a list as a key brings many events that nobody wants to hear about. */
    if (key_event->type != YAML_SCALAR_EVENT && key_event->type != YAML_ALIAS_EVENT)
        return false;
    /* What was read before a mistake stays in the tree. */
    struct node *value = ARENA_NEW(reader->arena, struct node);
    value->text = "";
    yaml_event_t event;
    bool is_read = next_event(reader, &event);
    if (is_read) {
        is_read = read_node(reader, &event, &value);
        yaml_event_delete(&event);
    }
    if (entry != NULL) {
        if (value->kind == NODE_NULL)
            value->place = value->text[0] == '\0' ? entry->key_place : value->place;
        entry->value = value;
    }
    return is_read;
}

static bool read_map(struct reader *reader, struct node *map)
{
    struct key_index index = {0};
    bool is_done = false;
    while (!is_done) {
        yaml_event_t event;
        if (!next_event(reader, &event))
            return false;
        is_done = event.type == YAML_MAPPING_END_EVENT;
        const bool is_read = is_done || read_pair(reader, &event, map, &index);
        yaml_event_delete(&event);
        if (!is_read)
            return false;
    }
    return true;
}

static bool read_node(struct reader *reader, const yaml_event_t *event, struct node **out)
{
    struct node *node = ARENA_NEW(reader->arena, struct node);
    *out = node;
    node->text = "";
    node->place = place_between(reader, &event->start_mark, &event->end_mark);
    refuse_properties(reader, event);
    if (event->type == YAML_ALIAS_EVENT) {
        refuse(reader, node->place, "write the value out where it is needed",
               "aliases are not accepted");
        return true;
    }
    if (event->type == YAML_SCALAR_EVENT) {
        read_scalar(reader, event, node);
        return true;
    }
    if (reader->depth >= NODE_MAX_DEPTH) {
        node->place.length = 1;
        diag_add(reader->diag, DIAG_ERROR, node->place, NULL,
                 "nesting is deeper than %d: reading stops here", NODE_MAX_DEPTH);
        return false;
    }
    reader->depth++;
    const bool is_list = event->type == YAML_SEQUENCE_START_EVENT;
    node->kind = is_list ? NODE_LIST : NODE_MAP;
    const bool is_read = is_list ? read_list(reader, node) : read_map(reader, node);
    reader->depth--;
    return is_read;
}

/* Stream and document frames around the one value. */
static bool read_document(struct reader *reader, struct node **root)
{
    bool is_read = true;
    bool is_done = false;
    while (is_read && !is_done) {
        yaml_event_t event;
        if (!next_event(reader, &event))
            return false;
        is_done = event.type == YAML_STREAM_END_EVENT;
        if (event.type == YAML_DOCUMENT_START_EVENT && *root != NULL) {
            refuse(reader, place_between(reader, &event.start_mark, &event.end_mark),
                   "one file holds one document", "a second document starts here");
            is_read = false;
        } else if (event.type == YAML_SCALAR_EVENT || event.type == YAML_ALIAS_EVENT ||
                   event.type == YAML_SEQUENCE_START_EVENT ||
                   event.type == YAML_MAPPING_START_EVENT) {
            is_read = read_node(reader, &event, root);
        }
        yaml_event_delete(&event);
    }
    return is_read && reader->mistakes == 0;
}

static enum status parse(struct arena *arena, const struct source *source, size_t offset,
                         size_t max_bytes, struct node **root, struct diag *diag)
{
    struct reader reader = {.arena = arena, .source = source, .diag = diag};
    enum status status = STATUS_INPUT;
    *root = NULL;
    if (!text_check(source, max_bytes, diag))
        return STATUS_INPUT;
    reader.shift = utf8_length(source->text, offset);
    if (source->length >= 3 && memcmp(source->text, byte_order_mark, 3) == 0 && offset == 0)
        offset = 3;
    if (!yaml_parser_initialize(&reader.parser))
        out_of_memory(0);
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)source->text + offset,
                                 source->length - offset);
    if (!read_document(&reader, root))
        goto out;
    if (*root == NULL) {
        *root = ARENA_NEW(arena, struct node);
        (*root)->text = "";
        (*root)->place = (struct place){source, 1, reader.shift + 1, 1};
    }
    status = STATUS_OK;
out:
    yaml_parser_delete(&reader.parser);
    return status;
}

enum status node_parse_part(struct arena *arena, const struct source *source, size_t offset,
                            struct node **root, struct diag *diag)
{
    return parse(arena, source, offset, NODE_MAX_BYTES, root, diag);
}

enum status node_parse_foreign(struct arena *arena, const struct source *source, struct node **root,
                               struct diag *diag)
{
    return parse(arena, source, 0, NODE_FOREIGN_MAX_BYTES, root, diag);
}

enum status node_parse(struct arena *arena, const struct source *source, struct node **root,
                       struct diag *diag)
{
    const enum status status = node_parse_part(arena, source, 0, root, diag);
    if (status == STATUS_OK && (*root)->kind == NODE_NULL) {
        diag_add(diag, DIAG_ERROR, (struct place){source, 1, 1, 1}, NULL, "the document is empty");
        return STATUS_INPUT;
    }
    return status;
}

enum status node_load(struct arena *arena, const char *path, struct node **root, struct diag *diag)
{
    struct source *source;
    *root = NULL;
    const enum status status = source_load(arena, path, NODE_MAX_BYTES, &source, diag);
    if (status != STATUS_OK)
        return status;
    /* Without the byte order mark, which would move the columns of the first line. */
    if (source->length >= 3 && memcmp(source->text, byte_order_mark, 3) == 0) {
        source->text += 3;
        source->length -= 3;
    }
    return node_parse(arena, source, root, diag);
}

struct node *node_copy(struct arena *arena, const struct node *node)
{
    struct node *copy = ARENA_NEW(arena, struct node);
    *copy = *node;
    copy->entries.items = NULL;
    copy->entries.capacity = node->entries.count;
    if (node->entries.count > 0)
        copy->entries.items = ARENA_ARRAY(arena, struct node_entry, node->entries.count);
    for (int32_t i = 0; i < node->entries.count; i++) {
        copy->entries.items[i] = node->entries.items[i];
        copy->entries.items[i].value = node_copy(arena, node->entries.items[i].value);
    }
    return copy;
}
