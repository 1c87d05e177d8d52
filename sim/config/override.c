/*
 * config/override.c: `-s a.b[2].c=value`: parsed when given, applied to the tree before binding.
 *
 * Applying walks the tree along the field tables, because a step may go through a map that stands
 * in another file (FIELD_REF) or that only a default would bring: those are loaded first. What the
 * walk inserts is judged by binding like anything in a file, so a wrong key gets the usual message,
 * placed at the command line.
 */
#include <string.h>

#include "config/config_private.h"

/* ---- parsing ------------------------------------------------------------------------------ */

static struct place place_of(const struct source *source, size_t start, size_t length)
{
    const int32_t characters = utf8_length(source->text + start, length);
    return (struct place){source, 1, utf8_length(source->text, start) + 1,
                          characters > 0 ? characters : 1};
}

static enum status malformed(struct config *config, const struct source *source, size_t start,
                             size_t length, const char *what)
{
    diag_add(config->diag, DIAG_ERROR, place_of(source, start, length),
             "accepted: key=value, with a dotted key as in fsdp.wrap=block or a.list[0].b=1", "%s",
             what);
    return STATUS_INPUT;
}

static bool index_from(const char *digits, size_t length, int64_t *index)
{
    *index = 0;
    for (size_t i = 0; i < length; i++) {
        if (digits[i] < '0' || digits[i] > '9' || *index > INT32_MAX)
            return false;
        *index = 10 * *index + (digits[i] - '0');
    }
    return length > 0;
}

/* The part that starts at byte `*at` (before `end`); moves `*at` to the next part. */
static enum status parse_part(struct config *config, const struct source *source, size_t end,
                              size_t *at, struct config_edit *edit)
{
    const char *text = source->text;
    const bool is_index = text[*at] == '[';
    const size_t start = *at + is_index;
    size_t length = 0;
    while (start + length < end && strchr(is_index ? "]" : ".[", text[start + length]) == NULL)
        length++;
    struct path_part part = {.place = place_of(source, start, length)};
    if (is_index && (start + length == end || !index_from(text + start, length, &part.index)))
        return malformed(config, source, start - 1, length + 1, "an index must be [digits]");
    if (!is_index && length == 0)
        return malformed(config, source, start, 1, "a part of the key is empty");
    if (!is_index)
        part.key = arena_strndup(config->arena, text + start, length);
    *ARENA_PUSH(config->arena, &edit->parts) = part;
    *at = start + length + is_index;
    if (*at == end || text[*at] == '[')
        return STATUS_OK;
    if (text[*at] != '.')
        return malformed(config, source, *at, 1, "after an index comes '.', '[' or '='");
    (*at)++;
    if (*at == end || text[*at] == '[')
        return malformed(config, source, *at - 1, 1, "a part of the key is empty");
    return STATUS_OK;
}

/* A value of letters, digits and . - _ / alone needs no YAML parser, which costs more than all the
   rest of an override; NULL: it is of another kind. */
static struct node *plain_value(struct config *config, const struct source *source, size_t start)
{
    const char *text = source->text + start;
    const size_t length =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-");
    const bool is_null =
        strcmp(text, "null") == 0 || strcmp(text, "Null") == 0 || strcmp(text, "NULL") == 0;
    if (length == 0 || text[length] != '\0' || strchr("._/-", text[0]) != NULL || is_null)
        return NULL;
    struct node *node = ARENA_NEW(config->arena, struct node);
    node->kind = NODE_SCALAR;
    node->text = text;
    node->place = place_of(source, start, length);
    return node;
}

enum status config_override(struct config *config, const char *text)
{
    struct source *source = ARENA_NEW(config->arena, struct source);
    struct config_edit *edit = ARENA_NEW(config->arena, struct config_edit);
    *source = (struct source){COMMAND_LINE_NAME, arena_strdup(config->arena, text), strlen(text)};
    if (!text_check(source, NODE_MAX_BYTES, config->diag))
        return STATUS_INPUT;
    const char *equals = strchr(source->text, '=');
    if (equals == NULL)
        return malformed(config, source, 0, source->length, "no '=' in the override");
    const size_t end = (size_t)(equals - source->text);
    if (end == 0 || source->text[0] == '[')
        return malformed(config, source, 0, 1, "the override names no key");
    for (size_t at = 0; at < end;) {
        if (edit->parts.count >= NODE_MAX_DEPTH)
            return malformed(config, source, 0, end, "the key has too many parts");
        const enum status status = parse_part(config, source, end, &at, edit);
        if (status != STATUS_OK)
            return status;
    }
    edit->value = plain_value(config, source, end + 1);
    enum status status = STATUS_OK;
    if (edit->value == NULL)
        status = node_parse_part(config->arena, source, end + 1, &edit->value, config->diag);
    if (status != STATUS_OK)
        return status;
    edit->path = "";
    for (int32_t i = 0; i < edit->parts.count; i++) {
        const struct path_part *part = &edit->parts.items[i];
        edit->path = part->key != NULL ? path_join(config->arena, edit->path, part->key)
                                       : arena_printf(config->arena, "%s[%lld]", edit->path,
                                                      (long long)part->index);
    }
    *ARENA_PUSH(config->arena, &config->override_texts) = source->text;
    if (config->last_edit != NULL)
        config->last_edit->next = edit;
    else
        config->edits = edit;
    config->last_edit = edit;
    return STATUS_OK;
}

/* ---- applying ----------------------------------------------------------------------------- */

/* Where the walk stands: a value, its field when a table knows it, its path. */
struct walk {
    struct config *config;
    struct node_entry *entry; /* holds *slot, NULL at the root and in a list */
    struct node **slot;
    const struct field *field;       /* of *slot, NULL for a list item or an unknown key */
    const struct field_table *table; /* of the keys of *slot when it is a map, may be NULL */
    const char *path;
};

static struct node *new_map(struct arena *arena, struct place place)
{
    struct node *map = ARENA_NEW(arena, struct node);
    map->kind = NODE_MAP;
    map->text = "";
    map->place = place;
    return map;
}

static enum status blocked(const struct walk *walk, const struct path_part *part)
{
    struct arena *arena = walk->config->arena;
    const struct node *node = *walk->slot;
    const char *step = part->key != NULL ? arena_printf(arena, "key '%s'", part->key)
                                         : arena_printf(arena, "item %lld", (long long)part->index);
    diag_add(walk->config->diag, DIAG_ERROR, part->place, NULL, "'%s' is %s and has no %s",
             walk->path, node_describe(arena, node), step);
    if (node->kind != NODE_NULL && !node->is_default)
        diag_add(walk->config->diag, DIAG_NOTE, node->place, NULL, "written here");
    return STATUS_INPUT;
}

/* Makes *walk->slot the map or list that `part` steps into, and finds its table. */
static enum status open_value(struct walk *walk, const struct path_part *part)
{
    struct config *config = walk->config;
    const struct field *field = walk->field;
    if ((*walk->slot)->kind == NODE_NULL && field != NULL && field->default_text != NULL)
        *walk->slot = default_node(config, field, walk->path);
    if ((*walk->slot)->kind == NODE_NULL && part->key != NULL)
        *walk->slot = new_map(config->arena, part->place);
    if ((*walk->slot)->kind == NODE_SCALAR && field != NULL && field->kind == FIELD_REF) {
        const enum status status = ref_load(config, field, walk->slot);
        if (status != STATUS_OK)
            return status;
    }
    if (field != NULL)
        expand_scalar(walk->config, field, walk->slot);
    struct node *node = *walk->slot;
    if (node->kind != (part->key != NULL ? NODE_MAP : NODE_LIST))
        return blocked(walk, part);
    node->is_default = false;
    if (field != NULL && field->choose != NULL) {
        /* Binding asks again, and then says what is wrong. */
        struct diag unheard;
        diag_init(&unheard, config->arena);
        walk->table = field->choose(node, &unheard);
    } else if (field != NULL) {
        walk->table = field->table;
    }
    return STATUS_OK;
}

static enum status step_into(struct walk *walk, const struct path_part *part)
{
    struct arena *arena = walk->config->arena;
    const enum status status = open_value(walk, part);
    if (status != STATUS_OK)
        return status;
    struct node *node = *walk->slot;
    if (part->key == NULL) {
        if (part->index >= node->entries.count) {
            diag_add(walk->config->diag, DIAG_ERROR, part->place, NULL,
                     "'%s' has no item %lld: it has %d", walk->path, (long long)part->index,
                     node->entries.count);
            return STATUS_INPUT;
        }
        walk->entry = NULL;
        walk->slot = &node->entries.items[part->index].value;
        walk->field = NULL;
        walk->path = arena_printf(arena, "%s[%lld]", walk->path, (long long)part->index);
        return STATUS_OK;
    }
    struct node_entry *entry = node_entry_find(node, part->key);
    if (entry == NULL) {
        entry = ARENA_PUSH(arena, &node->entries);
        entry->key = part->key;
        entry->key_place = part->place;
        entry->value = ARENA_NEW(arena, struct node);
        entry->value->text = "";
        entry->value->place = part->place;
    }
    walk->entry = entry;
    walk->slot = &entry->value;
    walk->field = walk->table != NULL ? field_find(walk->table, part->key) : NULL;
    walk->table = NULL;
    walk->path = path_join(arena, walk->path, part->key);
    return STATUS_OK;
}

static enum status edit_apply(struct config *config, const struct field_table *table,
                              const struct config_edit *edit)
{
    struct walk walk = {
        .config = config, .slot = &config->root, .field = NULL, .table = table, .path = ""};
    for (int32_t i = 0; i < edit->parts.count; i++) {
        const enum status status = step_into(&walk, &edit->parts.items[i]);
        if (status != STATUS_OK)
            return status;
    }
    /* A copy: binding may put a loaded file or a default in its place. */
    struct node *value = ARENA_NEW(config->arena, struct node);
    *value = *edit->value;
    if (value->kind == NODE_NULL)
        value->place = edit->parts.items[edit->parts.count - 1].place;
    *walk.slot = value;
    if (walk.entry != NULL)
        walk.entry->key_place = edit->parts.items[edit->parts.count - 1].place;
    return STATUS_OK;
}

enum status edits_apply(struct config *config, const struct field_table *table)
{
    enum status status = STATUS_OK;
    for (int32_t depth = 1; depth <= NODE_MAX_DEPTH; depth++) {
        for (const struct config_edit *edit = config->edits; edit != NULL; edit = edit->next) {
            if (edit->parts.count != depth)
                continue;
            const enum status one = edit_apply(config, table, edit);
            status = status == STATUS_OK ? one : status;
        }
    }
    return status;
}
