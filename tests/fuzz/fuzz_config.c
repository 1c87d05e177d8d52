/*
 * tests/fuzz/fuzz_config.c: any bytes as a configuration. They are parsed, bound by a table with
 * every kind of field, written and hashed; comment lines `#-s key=value` are overrides. Nothing may
 * crash, and what was accepted must survive being written: its canonical values, given as overrides
 * of an empty configuration, have the same hash. The same bytes are read as a quantity of every
 * dimension, with the same demand.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/units.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct part {
    const char *name;
    int64_t count;
    double bytes_per_s;
    int kind;
};

struct whole {
    bool is_on;
    int64_t count;
    double real, time_s, bytes;
    int word;
    const char *text;
    struct part part, chosen, file;
    struct config_list parts, texts;
    const struct node *any;
};

static const struct choice words[] = {{"block", 1, "help"}, {"none", 0, NULL}, {0}};

static const struct field part_fields[] = {
    {.key = "name", .kind = FIELD_TEXT, .offset = offsetof(struct part, name)},
    {.key = "count",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct part, count),
     .default_text = "1",
     .min = -3,
     .max = 64},
    {.key = "bandwidth",
     .kind = FIELD_QUANTITY,
     .offset = offsetof(struct part, bytes_per_s),
     .dimension = DIM_BANDWIDTH},
    {.key = "kind", .kind = FIELD_ENUM, .offset = offsetof(struct part, kind), .choices = words},
    {0}};
static const struct field_table part_table = {
    .name = "part", .fields = part_fields, .struct_bytes = sizeof(struct part)};
static const struct field_table foreign_table = {.name = "foreign",
                                                 .fields = part_fields,
                                                 .struct_bytes = sizeof(struct part),
                                                 .warns_unknown = true};

static const struct field_table *choose(const struct node *map, struct diag *diag)
{
    const struct node *kind = node_get(map, "kind");
    if (kind != NULL && kind->kind == NODE_SCALAR && strcmp(kind->text, "block") == 0)
        return &part_table;
    if (kind != NULL && kind->kind == NODE_SCALAR && strcmp(kind->text, "none") == 0)
        return &foreign_table;
    diag_add(diag, DIAG_ERROR, map->place, NULL, "no kind");
    return NULL;
}

static void check_whole(struct config *config, const char *path, void *bound)
{
    const struct whole *whole = bound;
    (void)path;
    if (whole->count == 13)
        config_error(config, "part.count", "hint", "%d is no count", 13);
    if (whole->parts.count > 1)
        config_warn(config, "parts[1].count", NULL, "more than one part");
}

static const struct field whole_fields[] = {
    {.key = "on",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct whole, is_on),
     .default_text = "true"},
    {.key = "count",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct whole, count),
     .choices = words,
     .min = 1},
    {.key = "real", .kind = FIELD_REAL, .offset = offsetof(struct whole, real), .choices = words},
    {.key = "time",
     .kind = FIELD_QUANTITY,
     .offset = offsetof(struct whole, time_s),
     .dimension = DIM_TIME,
     .default_text = "700 ns"},
    {.key = "memory",
     .kind = FIELD_QUANTITY,
     .offset = offsetof(struct whole, bytes),
     .dimension = DIM_BYTES},
    {.key = "word", .kind = FIELD_ENUM, .offset = offsetof(struct whole, word), .choices = words},
    {.key = "text", .kind = FIELD_TEXT, .offset = offsetof(struct whole, text)},
    {.key = "part",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct whole, part),
     .table = &part_table},
    {.key = "chosen",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct whole, chosen),
     .choose = choose},
    {.key = "file",
     .kind = FIELD_REF,
     .offset = offsetof(struct whole, file),
     .table = &part_table,
     .folder = "models",
     .also_json = "json"},
    {.key = "parts",
     .kind = FIELD_LIST,
     .offset = offsetof(struct whole, parts),
     .table = &part_table,
     .max = 5000},
    {.key = "texts", .kind = FIELD_TEXT_LIST, .offset = offsetof(struct whole, texts)},
    {.key = "any", .kind = FIELD_ANY, .offset = offsetof(struct whole, any)},
    {0}};
static const struct field_table whole_table = {.name = "whole",
                                               .help = "every kind of field",
                                               .fields = whole_fields,
                                               .struct_bytes = sizeof(struct whole),
                                               .check = check_whole};

struct session {
    struct arena arena;
    struct diag diag;
    struct config config;
    struct whole whole;
};

static void session_init(struct session *session)
{
    static const char *const no_folders[] = {NULL};
    *session = (struct session){0};
    diag_init(&session->diag, &session->arena);
    config_init(&session->config, &session->arena, &session->diag, no_folders);
}

static enum status worse(enum status a, enum status b)
{
    return a != STATUS_OK ? a : b;
}

/* `#-s key=value` lines. */
static enum status add_overrides(struct session *session, const char *text)
{
    enum status status = STATUS_OK;
    for (const char *at = strstr(text, "#-s "); at != NULL; at = strstr(at, "#-s ")) {
        at += 4;
        const char *one = arena_strndup(&session->arena, at, strcspn(at, "\n"));
        status = worse(status, config_override(&session->config, one));
    }
    return status;
}

/* Whether values can be given one by one: overrides cannot add to a list. */
static bool has_no_list_items(const struct config *config)
{
    for (int32_t i = 0; i < config->origins.count; i++)
        if (strchr(config->origins.items[i].path, '[') != NULL)
            return false;
    return true;
}

static void check_rewritten(const struct config *config)
{
    struct session again;
    enum status status = STATUS_OK;
    session_init(&again);
    for (int32_t i = 0; i < config->origins.count; i++) {
        const struct config_origin *one = &config->origins.items[i];
        const char *text = arena_printf(&again.arena, "%s=%s", one->path, one->value);
        if (!one->is_label)
            status = worse(status, config_override(&again.config, text));
    }
    status = worse(status, config_bind(&again.config, &whole_table, &again.whole));
    const struct hash128 before = config_hash(config);
    const struct hash128 after = config_hash(&again.config);
    if (status != STATUS_OK || before.low != after.low || before.high != after.high) {
        diag_write(&again.diag, stderr, false);
        config_write_resolved(config, stderr);
        config_write_resolved(&again.config, stderr);
        BUG("the canonical values read back as something else");
    }
    arena_release(&again.arena);
}

static void try_config(const char *text, size_t size, FILE *nowhere)
{
    struct session session;
    session_init(&session);
    const struct source source = {"fuzz.yaml", text, size};
    enum status status = node_parse(&session.arena, &source, &session.config.root, &session.diag);
    if (status == STATUS_OK)
        status = add_overrides(&session, text);
    if (status == STATUS_OK)
        status = config_bind(&session.config, &whole_table, &session.whole);
    const bool has_errors = session.diag.error_count > 0;
    if (has_errors != (status != STATUS_OK))
        BUG("status %d with %d errors", (int)status, session.diag.error_count);
    config_write_resolved(&session.config, nowhere);
    if (status == STATUS_OK && has_no_list_items(&session.config))
        check_rewritten(&session.config);
    diag_write(&session.diag, nowhere, false);
    arena_release(&session.arena);
}

static void try_units(const char *text)
{
    for (enum dimension dimension = DIM_NONE; dimension <= DIM_POWER; dimension++) {
        double value = 0.0;
        double back = 0.0;
        size_t unit_start = 0;
        char written[128];
        if (units_parse(text, dimension, &value, &unit_start) != UNIT_OK)
            continue;
        format_quantity(written, sizeof(written), value, dimension);
        if (units_parse(written, dimension, &back, NULL) != UNIT_OK || back != value)
            BUG("'%s' is %.17g, written '%s' it is %.17g", text, value, written, back);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FILE *nowhere = fopen("/dev/null", "w");
    char *text = malloc(size + 1);
    if (nowhere == NULL || text == NULL)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    try_config(text, size, nowhere);
    try_units(text);
    free(text);
    fclose(nowhere);
    return 0;
}
