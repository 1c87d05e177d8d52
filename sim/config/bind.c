/* config/bind.c: a tree and a field table → a struct: all mistakes in one go, see field.h. */
#include <string.h>

#include "base/shown_text.h"
#include "config/config_private.h"

const char *path_join(struct arena *arena, const char *parent, const char *key)
{
    return parent[0] == '\0' ? key : ARENA_JOIN(arena, parent, ".", key);
}

static void mark_default(struct node *node)
{
    node->is_default = true;
    for (int32_t i = 0; i < node->entries.count; i++)
        mark_default(node->entries.items[i].value);
}

struct node *default_node(struct config *config, const struct field *field, const char *path)
{
    const struct node *kept = cached_default(config, field->default_text);
    if (kept != NULL)
        return node_copy(config->arena, kept);
    struct arena *arena = config->cache != NULL ? &config->cache->arena : config->arena;
    struct source *source = ARENA_NEW(arena, struct source);
    struct node *node = NULL;
    source->name = ARENA_JOIN(arena, "default of ", path);
    source->text = field->default_text;
    source->length = strlen(field->default_text);
    if (node_parse_part(arena, source, 0, &node, config->diag) != STATUS_OK)
        BUG("the default of '%s' is not YAML: %s", path, field->default_text);
    mark_default(node);
    if (config->cache == NULL)
        return node;
    cache_default(config, field->default_text, node);
    return node_copy(config->arena, node);
}

/* ---- keys --------------------------------------------------------------------------------- */

static bool is_ignored(const struct field_table *table, const char *key)
{
    for (const char *const *one = table->ignored_keys; one != NULL && *one != NULL; one++)
        if (strcmp(*one, key) == 0)
            return true;
    return false;
}

static bool is_from_command_line(const struct node_entry *entry)
{
    return entry->key_place.source != NULL &&
           strcmp(entry->key_place.source->name, COMMAND_LINE_NAME) == 0;
}

static const char *in_path(struct arena *arena, const char *path)
{
    return path[0] == '\0' ? "" : ARENA_JOIN(arena, " in '", path, "'");
}

static void add_unknown_name(struct strbuf *names, int32_t count, const char *key)
{
    enum { SHOWN = 30 };
    if (count < SHOWN)
        strbuf_printf(names, "%s%.60s", count > 0 ? ", " : "", key);
    else if (count == SHOWN)
        strbuf_add(names, ", …");
}

static void report_unknown_keys(struct config *config, const struct field_table *table,
                                const struct node *map, const char *path)
{
    struct strbuf names = {0};
    struct place first = NO_PLACE;
    int32_t warned = 0;
    int32_t errors = 0;
    for (int32_t i = 0; i < map->entries.count && errors < CONFIG_MAX_MISTAKES; i++) {
        const struct node_entry *entry = &map->entries.items[i];
        if (field_find(table, entry->key) != NULL)
            continue;
        if (is_ignored(table, entry->key)) {
            if (is_from_command_line(entry))
                diag_add(config->diag, DIAG_WARNING, entry->key_place, NULL,
                         "'%s' has no effect here", entry->key);
            continue;
        }
        if (table->warns_unknown && !is_from_command_line(entry)) {
            first = warned == 0 ? entry->key_place : first;
            add_unknown_name(&names, warned++, entry->key);
            continue;
        }
        errors++;
        diag_add(config->diag, DIAG_ERROR, entry->key_place,
                 suggestion(config->arena, entry->key, table_keys(config->arena, table),
                            "accepted keys"),
                 "unknown key '%s'%s", entry->key, in_path(config->arena, path));
    }
    if (warned > 0)
        diag_add(config->diag, DIAG_WARNING, first, NULL, "unknown key%s ignored%s: %s",
                 warned > 1 ? "s" : "", in_path(config->arena, path), names.text);
    strbuf_release(&names);
}

/* Whether an unknown key of the map is this field with a typing mistake: one mistake, one message.
 */
static bool is_misspelt(struct config *config, const struct field_table *table,
                        const struct node *map, const struct field *field)
{
    const char *const *keys = table_keys(config->arena, table);
    for (int32_t i = 0; i < map->entries.count && i < CONFIG_MAX_MISTAKES; i++) {
        const char *key = map->entries.items[i].key;
        if (field_find(table, key) != NULL)
            continue;
        const char *near = nearest_name(key, keys);
        if (near != NULL && strcmp(near, field->key) == 0)
            return true;
    }
    return false;
}

/* `null`: what is written in its place, or NULL. */
static void report_missing(struct config *config, const struct field_table *table,
                           const struct node *map, const struct field *field,
                           const struct node *null, const char *path)
{
    if (null == NULL && is_misspelt(config, table, map, field))
        return;
    const char *help = field->help != NULL ? ARENA_JOIN(config->arena, " (", field->help, ")") : "";
    diag_add(
        config->diag, DIAG_ERROR, null != NULL ? null->place : map->place,
        ARENA_JOIN(config->arena, field->key, ": ", field_accepted(config->arena, field), help),
        null != NULL ? "'%s' is null%s" : "'%s' is missing%s", field->key,
        in_path(config->arena, path));
}

/* Whether the map has this key or, for the same slot, one under another name. */
static bool is_said(const struct field_table *table, const struct node *map,
                    const struct field *field)
{
    for (const struct field *one = table->fields; one->kind != FIELD_END; one++)
        if (one->offset == field->offset && node_entry_find(map, one->key) != NULL)
            return true;
    return false;
}

/* One warning for all that a foreign file should say and leaves to the defaults of its software. */
static void warn_left_out(struct config *config, const struct field_table *table,
                          const struct node *map, const char *path)
{
    struct strbuf names = {0};
    for (const struct field *field = table->fields; field->kind != FIELD_END; field++)
        if (field->is_expected && !is_said(table, map, field))
            strbuf_printf(&names, "%s%s %s", names.length > 0 ? ", " : "", field->key,
                          field->default_text);
    if (names.length > 0)
        diag_add(config->diag, DIAG_WARNING, map->place, NULL,
                 "not said%s, so that defaults stand: %s", in_path(config->arena, path),
                 names.text);
    strbuf_release(&names);
}

/* ---- values ------------------------------------------------------------------------------- */

static void bind_map(struct config *config, const struct field_table *table, struct node *map,
                     const char *path, void *out);

void expand_scalar(struct config *config, const struct field *field, struct node **value)
{
    struct node *scalar = *value;
    if (field->kind != FIELD_STRUCT || field->scalar_key == NULL || scalar->kind != NODE_SCALAR)
        return;
    struct node *map = ARENA_NEW(config->arena, struct node);
    map->kind = NODE_MAP;
    map->text = "";
    map->place = scalar->place;
    map->is_default = scalar->is_default;
    struct node_entry *entry = ARENA_PUSH(config->arena, &map->entries);
    *entry =
        (struct node_entry){.key = field->scalar_key, .key_place = scalar->place, .value = scalar};
    *value = map;
}

/* A scalar where a list of them may stand is a list of one. */
static void expand_item(struct config *config, struct node **value)
{
    struct node *scalar = *value;
    if (scalar->kind != NODE_SCALAR)
        return;
    struct node *list = ARENA_NEW(config->arena, struct node);
    list->kind = NODE_LIST;
    list->text = "";
    list->place = scalar->place;
    list->is_default = scalar->is_default;
    ARENA_PUSH(config->arena, &list->entries)->value = scalar;
    *value = list;
}

static void bind_struct(struct config *config, const struct field *field, struct node *node,
                        const char *path, void *slot)
{
    if (node->kind != NODE_MAP) {
        bind_wrong_kind(config, field, path, node, NULL);
        return;
    }
    const struct field_table *table = field->table;
    const int32_t errors_before = config->diag->error_count;
    if (field->choose != NULL)
        table = field->choose(node, config->diag);
    if (table != NULL)
        bind_map(config, table, node, path, slot);
    else if (config->diag->error_count == errors_before)
        diag_add(config->diag, DIAG_ERROR, node->place, NULL, "'%s' is of no known kind", path);
}

static void bind_file(struct config *config, const struct field *field, struct node **value,
                      const char *path, void *slot)
{
    struct node *written = *value;
    if (written->kind == NODE_SCALAR && ref_load(config, field, value) != STATUS_OK)
        return;
    struct node *node = *value;
    if (node->ref != NULL) {
        origin_add(
            config, path, node->ref,
            &(struct node){.place = node->ref_place, .is_default = node->ref_place.line == 0});
        config->origins.items[config->origins.count - 1].is_label = true;
    }
    config->ref_depth++;
    bind_struct(config, field, node, path, slot);
    config->ref_depth--;
}

static void bind_ref(struct config *config, const struct field *field, struct node **value,
                     const char *path, void *slot)
{
    struct memo_scope scope;
    if (memo_find(config, field, value, path, slot))
        return;
    memo_begin(config, field, value, path, &scope);
    bind_file(config, field, value, path, slot);
    memo_end(config, &scope, field, *value, slot);
}

static void bind_section(struct config *config, const struct field *field, struct node **value,
                         const char *path, void *slot)
{
    struct memo_scope scope;
    if (memo_find(config, field, value, path, slot))
        return;
    memo_begin(config, field, value, path, &scope);
    expand_scalar(config, field, value);
    bind_struct(config, field, *value, path, slot);
    memo_end(config, &scope, field, *value, slot);
}

static bool is_count_in_range(struct config *config, const struct field *field,
                              const struct node *list, const char *path)
{
    if (field_is_in_range(field, (double)list->entries.count))
        return true;
    diag_add(config->diag, DIAG_ERROR, list->place, NULL, "'%s' must be %s, not %d", path,
             field_accepted(config->arena, field), list->entries.count);
    return false;
}

/* Both kinds of list: items are structs by `table`, or texts when it is NULL. */
static void bind_list(struct config *config, const struct field *field, const struct node *list,
                      const char *path, struct config_list *out)
{
    const struct field_table *table = field->table;
    const size_t item_bytes = table != NULL ? table->struct_bytes : sizeof(const char *);
    const struct field item_field = {.key = field->key,
                                     .kind = table != NULL ? FIELD_STRUCT : FIELD_TEXT,
                                     .table = table,
                                     .is_line = field->is_line};
    if (list->kind != NODE_LIST) {
        bind_wrong_kind(config, field, path, list, NULL);
        return;
    }
    if (!is_count_in_range(config, field, list, path))
        return;
    const int32_t count = list->entries.count;
    char *items = arena_alloc(config->arena, item_bytes * (size_t)count + 1);
    const int32_t errors_before = config->diag->error_count;
    for (int32_t i = 0; i < count; i++) {
        if (config->diag->error_count - errors_before > CONFIG_MAX_MISTAKES)
            return;
        const char *item_path = arena_printf(config->arena, "%s[%d]", path, i);
        struct node *item = list->entries.items[i].value;
        void *slot = items + item_bytes * (size_t)i;
        item->is_used = true;
        if (table != NULL)
            bind_struct(config, &item_field, item, item_path, slot);
        else
            bind_value(config, &item_field, item_path, item, slot);
    }
    if (count == 0)
        origin_add(config, path, "[]", list);
    *out = (struct config_list){.items = items, .count = count};
}

static void bind_any(struct config *config, const struct node *node, const char *path,
                     const struct node **out)
{
    *out = node;
    origin_add(config, path, node_flow_text(config->arena, node), node);
}

static void bind_node(struct config *config, const struct field *field, struct node **value,
                      const char *path, void *slot)
{
    struct node *node = *value;
    node->is_used = true;
    switch (field->kind) {
    case FIELD_END:
        BUG("field '%s' has no kind", path);
    case FIELD_BOOL:
    case FIELD_COUNT:
    case FIELD_REAL:
    case FIELD_QUANTITY:
    case FIELD_ENUM:
    case FIELD_TEXT:
        bind_value(config, field, path, node, slot);
        break;
    case FIELD_STRUCT:
        bind_section(config, field, value, path, slot);
        break;
    case FIELD_REF:
        bind_ref(config, field, value, path, slot);
        break;
    case FIELD_LIST:
        BUG_IF(field->table == NULL);
        bind_list(config, field, node, path, slot);
        break;
    case FIELD_TEXT_LIST:
        BUG_IF(field->table != NULL);
        expand_item(config, value);
        bind_list(config, field, *value, path, slot);
        break;
    case FIELD_ANY:
        bind_any(config, node, path, slot);
        break;
    }
}

/* The stem of the file that this map is, or NULL. */
static const char *map_file_stem(const struct config *config, const struct node *map)
{
    if (map->ref != NULL)
        return text_shown(config->arena, file_stem(config->arena, map->ref));
    return map == config->root ? config->root_name : NULL;
}

/* What an absent or null key stands for; NULL when it stays unset. */
static struct node *absent_value(struct config *config, const struct field *field, const char *path)
{
    if (field->default_text != NULL)
        return default_node(config, field, path);
    const bool is_struct = field->kind == FIELD_STRUCT && field->choose == NULL;
    if (!is_struct || table_has_required(field->table))
        return NULL;
    struct node *map = ARENA_NEW(config->arena, struct node);
    map->kind = NODE_MAP;
    map->text = "";
    map->is_default = true;
    return map;
}

/* null that a file says, not -s: there it asks for the default. */
static const struct node *null_in_file(const struct node_entry *entry)
{
    return entry != NULL && entry->value->kind == NODE_NULL && !is_from_command_line(entry)
               ? entry->value
               : NULL;
}

/* Whether null leaves the field without a value; says what becomes of it. */
static bool null_unsets(struct config *config, const struct field_table *table,
                        const struct node *map, const struct field *field, const struct node *null,
                        const char *path)
{
    if (field->null_means == NULL_IS_WRONG) {
        report_missing(config, table, map, field, null, path);
        return true;
    }
    if (field->null_means == NULL_IS_UNSET || field->kind == FIELD_STRUCT)
        return field->null_means == NULL_IS_UNSET;
    if (field->default_text != NULL)
        diag_add(config->diag, DIAG_WARNING, null->place, NULL,
                 "'%s' is null: its default, %s, stands", field->key, field->default_text);
    else if (!table->warns_unknown)
        diag_add(config->diag, DIAG_WARNING, null->place, NULL,
                 "'%s' is null, as if it were left out", field->key);
    return false;
}

static void bind_field(struct config *config, const struct field_table *table,
                       const struct field *field, struct node *map, const char *path, void *out)
{
    struct arena *arena = config->arena;
    const char *field_path = path_join(arena, path, field->key);
    void *slot = (char *)out + field->offset;
    struct node_entry *entry = node_entry_find(map, field->key);
    if (entry == NULL || entry->value->kind == NODE_NULL) {
        const struct node *null = null_in_file(entry);
        const bool is_name = field->kind == FIELD_TEXT && strcmp(field->key, "name") == 0;
        const char *stem = is_name ? map_file_stem(config, map) : NULL;
        if (stem != NULL) {
            memcpy(slot, &stem, sizeof(stem));
            origin_add_label(config, field_path, stem, "file name", NO_PLACE);
            return;
        }
        if (field->is_required) {
            report_missing(config, table, map, field, null, path);
            return;
        }
        if (null != NULL && null_unsets(config, table, map, field, null, path))
            return;
        struct node *value = absent_value(config, field, field_path);
        if (value == NULL)
            return;
        if (entry == NULL) {
            entry = ARENA_PUSH(arena, &map->entries);
            entry->key = field->key;
        }
        entry->value = value;
    }
    bind_node(config, field, &entry->value, field_path, slot);
}

static void bind_map(struct config *config, const struct field_table *table, struct node *map,
                     const char *path, void *out)
{
    const int32_t errors_before = config->diag->error_count;
    report_unknown_keys(config, table, map, path);
    if (table->warns_unknown)
        warn_left_out(config, table, map, path);
    for (const struct field *field = table->fields; field->kind != FIELD_END; field++)
        bind_field(config, table, field, map, path, out);
    if (config->diag->error_count == errors_before && table->check != NULL)
        table->check(config, path, out);
}

enum status config_bind(struct config *config, const struct field_table *table, void *out)
{
    const int32_t errors_before = config->diag->error_count;
    if (config->root == NULL) {
        config->root = ARENA_NEW(config->arena, struct node);
        config->root->kind = NODE_MAP;
        config->root->text = "";
    }
    config->origins.count = 0;
    const enum status edited = edits_apply(config, table);
    if (config->root->kind == NODE_MAP)
        bind_map(config, table, config->root, "", out);
    else
        diag_add(config->diag, DIAG_ERROR, config->root->place, NULL,
                 "the file must be a map, not %s", node_describe(config->arena, config->root));
    if (config->has_world_failure)
        return STATUS_WORLD;
    return edited != STATUS_OK || config->diag->error_count > errors_before ? STATUS_INPUT
                                                                            : STATUS_OK;
}
