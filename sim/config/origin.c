/*
 * config/origin.c: what is in force and from where: the list that binding fills, its output and
 * hash, and the places of dotted paths.
 */
#include <stdarg.h>
#include <string.h>

#include "base/shown_text.h"
#include "config/config_private.h"

void origin_add_label(struct config *config, const char *path, const char *value,
                      const char *origin, struct place place)
{
    *ARENA_PUSH(config->arena, &config->origins) = (struct config_origin){
        .path = path, .value = value, .origin = origin, .place = place, .is_label = true};
}

static const char *origin_text(struct arena *arena, struct place place)
{
    if (place.source == NULL || place.line == 0)
        return "default";
    if (strcmp(place.source->name, COMMAND_LINE_NAME) == 0)
        return COMMAND_LINE_NAME;
    return arena_printf(arena, "%s:%d:%d", place.source->name, place.line, place.column);
}

void origins_append(struct config *config, const struct config_origin *items, int32_t count)
{
    const int32_t needed = config->origins.count + count;
    int32_t capacity = config->origins.capacity > 0 ? config->origins.capacity : 256;
    while (capacity < needed)
        capacity *= 2;
    if (capacity > config->origins.capacity) {
        struct config_origin *grown = ARENA_ARRAY(config->arena, struct config_origin, capacity);
        if (config->origins.count > 0)
            memcpy(grown, config->origins.items, sizeof(*grown) * (size_t)config->origins.count);
        config->origins.items = grown;
        config->origins.capacity = capacity;
    }
    if (count > 0)
        memcpy(config->origins.items + config->origins.count, items,
               sizeof(*items) * (size_t)count);
    config->origins.count = needed;
}

void origin_add(struct config *config, const char *path, const char *value, const struct node *node)
{
    const struct place place = node->is_default ? NO_PLACE : node->place;
    origin_add_label(config, path, value, origin_text(config->arena, place), place);
    config->origins.items[config->origins.count - 1].is_label = false;
}

/* ---- output ------------------------------------------------------------------------------- */

static int32_t width(const char *text)
{
    return utf8_length(text, strlen(text));
}

/* Names of files may hold anything; here they go to a terminal. */
void config_write_resolved(const struct config *config, FILE *file)
{
    /* Fixed: a long text neither pushes every origin off the screen nor moves the other lines. */
    enum { VALUE_WIDTH = 24 };
    int32_t path_width = 0;
    for (int32_t i = 0; i < config->origins.count; i++) {
        const int32_t path = width(config->origins.items[i].path);
        path_width = path > path_width ? path : path_width;
    }
    for (int32_t i = 0; i < config->origins.count; i++) {
        const struct config_origin *one = &config->origins.items[i];
        const char *value = text_shown(config->arena, one->value);
        const int32_t pad = VALUE_WIDTH - width(value);
        fprintf(file, "%s%*s = %s%*s  (%s)\n", one->path, path_width - width(one->path), "", value,
                pad > 0 ? pad : 0, "", text_shown(config->arena, one->origin));
    }
}

struct hash128 origin_hash(const struct config_origin *origin)
{
    struct hash128 hash;
    hash128_init(&hash);
    hash128_text(&hash, origin->path);
    hash128_text(&hash, origin->value);
    return hash128_done(hash);
}

struct hash128 config_hash(const struct config *config)
{
    struct hash128 hash;
    hash128_init(&hash);
    for (int32_t i = 0; i < config->origins.count; i++) {
        const struct config_origin *one = &config->origins.items[i];
        if (one->is_label)
            continue;
        const struct hash128 of_one = one->is_hashed ? one->hash : origin_hash(one);
        hash.high = hash64_mix(hash.high, of_one.high);
        hash.low = hash64_mix(hash.low, of_one.low);
    }
    return hash128_done(hash);
}

static bool is_in_section(const char *path, const char *const *sections)
{
    for (; *sections != NULL; sections++) {
        const size_t length = strlen(*sections);
        if (strncmp(path, *sections, length) == 0 &&
            (path[length] == '\0' || path[length] == '.' || path[length] == '['))
            return true;
    }
    return false;
}

struct hash128 config_hash_without(const struct config *config, const char *const *sections)
{
    struct hash128 hash;
    hash128_init(&hash);
    for (int32_t i = 0; i < config->origins.count; i++) {
        const struct config_origin *one = &config->origins.items[i];
        if (is_in_section(one->path, sections))
            continue;
        const struct hash128 of_one = one->is_hashed ? one->hash : origin_hash(one);
        hash.high = hash64_mix(hash.high, of_one.high);
        hash.low = hash64_mix(hash.low, of_one.low);
    }
    return hash128_done(hash);
}

/* ---- places ------------------------------------------------------------------------------- */

/* The next step of "a.b[2]": its start and length without brackets; *path moves past it. */
static bool next_step(const char **path, const char **step, size_t *length, bool *is_index)
{
    const char *at = *path;
    if (*at == '.')
        at++;
    if (*at == '\0')
        return false;
    *is_index = *at == '[';
    *step = at + *is_index;
    *length = strcspn(*step, *is_index ? "]" : ".[");
    *path = *step + *length;
    if (*is_index && **path == ']')
        (*path)++;
    return true;
}

static struct node *child(const struct node *node, const char *step, size_t length, bool is_index)
{
    if (node->kind != (is_index ? NODE_LIST : NODE_MAP))
        return NULL;
    int64_t index = 0;
    for (size_t i = 0; is_index && i < length && index < INT32_MAX; i++)
        index = 10 * index + (step[i] - '0');
    if (is_index)
        return index >= 0 && index < node->entries.count ? node->entries.items[index].value : NULL;
    for (int32_t i = 0; i < node->entries.count; i++) {
        const struct node_entry *entry = &node->entries.items[i];
        if (strlen(entry->key) == length && strncmp(entry->key, step, length) == 0)
            return entry->value;
    }
    return NULL;
}

/* The node at `path`; otherwise NULL, and *last is the deepest that is there. */
static const struct node *node_at(const struct config *config, const char *path,
                                  const struct node **last)
{
    const struct node *node = config->root;
    const char *step = NULL;
    size_t length = 0;
    bool is_index = false;
    *last = node;
    while (node != NULL && next_step(&path, &step, &length, &is_index)) {
        node = child(node, step, length, is_index);
        if (node != NULL && !node->is_default)
            *last = node;
    }
    return node;
}

static struct place node_place(const struct node *node)
{
    if (node == NULL || node->is_default)
        return NO_PLACE;
    return node->ref != NULL ? node->ref_place : node->place;
}

void config_add_derived(struct config *config, const char *path, const char *value,
                        const char *origin)
{
    /* From the end: what is derived stands in sections behind the large ones. */
    for (int32_t i = config->origins.count - 1; i >= 0; i--) {
        struct config_origin *one = &config->origins.items[i];
        if (strcmp(one->path, path) != 0)
            continue;
        one->value = value;
        one->is_hashed = false;
        one->origin = arena_printf(config->arena, "%s: %s", one->origin, origin);
        return;
    }
    origin_add_label(config, path, value, origin, NO_PLACE);
}

struct place config_place(const struct config *config, const char *path)
{
    const struct node *last = NULL;
    const struct node *node = node_at(config, path, &last);
    return node != NULL && node->kind != NODE_NULL ? node_place(node) : NO_PLACE;
}

const char *config_value(const struct config *config, const char *path)
{
    const struct node *last = NULL;
    const struct node *node = node_at(config, path, &last);
    return node != NULL && node->kind == NODE_SCALAR ? node->text : "";
}

bool config_is_set(const struct config *config, const char *path)
{
    const struct node *last = NULL;
    const struct node *node = node_at(config, path, &last);
    return node != NULL && node->kind != NODE_NULL && !node->is_default;
}

enum { MESSAGE_BYTES = 1024 };

static void add_at(struct config *config, enum diag_level level, const char *path, const char *hint,
                   const char *text)
{
    const struct node *last = NULL;
    const struct node *node = node_at(config, path, &last);
    struct place place = node_place(node);
    if (place.line == 0)
        place = node_place(last);
    diag_add(config->diag, level, place, hint, "%s", text);
}

void config_error(struct config *config, const char *path, const char *hint, const char *format,
                  ...)
{
    char text[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    add_at(config, DIAG_ERROR, path, hint, text);
}

void config_warn(struct config *config, const char *path, const char *hint, const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    add_at(config, DIAG_WARNING, path, hint, text);
}
