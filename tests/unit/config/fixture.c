/* tests/unit/config/fixture.c: see fixture.h. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

static const struct choice wraps[] = {
    {"block", 1, "every transformer block"}, {"none", 2, NULL}, {"module", 3, NULL}, {0}};
static const struct choice all_gpus[] = {{"all", -1, NULL}, {0}};
static const struct choice shapes[] = {{"circle", 0, NULL}, {"polygon", 1, NULL}, {0}};

static const struct field nics_fields[] = {{.key = "count",
                                            .kind = FIELD_COUNT,
                                            .offset = offsetof(struct nics, count),
                                            .is_required = true,
                                            .min = 1,
                                            .max = 64,
                                            .help = "NICs a host"},
                                           {.key = "bandwidth",
                                            .kind = FIELD_QUANTITY,
                                            .offset = offsetof(struct nics, bytes_per_s),
                                            .is_required = true,
                                            .dimension = DIM_BANDWIDTH,
                                            .max = 1e12,
                                            .help = "per direction"},
                                           {0}};
static const char *const nics_ignored[] = {"aliases", NULL};
static const struct field_table nics_table = {.name = "nics",
                                              .help = "network",
                                              .fields = nics_fields,
                                              .struct_bytes = sizeof(struct nics),
                                              .ignored_keys = nics_ignored};

static const char *const cosmetic[] = {"_comment", NULL};
const struct field_table foreign_table = {.name = "foreign",
                                          .fields = nics_fields,
                                          .struct_bytes = sizeof(struct nics),
                                          .ignored_keys = cosmetic,
                                          .warns_unknown = true};

static const struct field host_fields[] = {
    {.key = "name", .kind = FIELD_TEXT, .is_line = true, .offset = offsetof(struct host, name)},
    {.key = "gpus",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct host, gpus),
     .is_required = true,
     .min = 1},
    {.key = "nics",
     .kind = FIELD_REF,
     .offset = offsetof(struct host, nics),
     .table = &nics_table,
     .folder = "nics"},
    {0}};
static const struct field_table host_table = {
    .name = "host", .fields = host_fields, .struct_bytes = sizeof(struct host)};

static const struct field tuning_fields[] = {{.key = "ratio",
                                              .kind = FIELD_REAL,
                                              .offset = offsetof(struct tuning, ratio),
                                              .default_text = "0.375"},
                                             {.key = "latency",
                                              .kind = FIELD_QUANTITY,
                                              .offset = offsetof(struct tuning, latency_s),
                                              .dimension = DIM_TIME,
                                              .default_text = "700 ns"},
                                             {0}};
static const struct field_table tuning_table = {
    .name = "tuning", .fields = tuning_fields, .struct_bytes = sizeof(struct tuning)};

static const struct field slow_fields[] = {
    {.key = "host", .kind = FIELD_COUNT, .offset = offsetof(struct slow_gpu, host)},
    {.key = "gpu",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct slow_gpu, gpu),
     .default_text = "all",
     .choices = all_gpus},
    {.key = "clock_frac",
     .kind = FIELD_REAL,
     .offset = offsetof(struct slow_gpu, clock_frac),
     .is_required = true,
     .min = 0.125,
     .max = 1.0},
    {0}};
static const struct field_table slow_table = {
    .name = "slow", .fields = slow_fields, .struct_bytes = sizeof(struct slow_gpu)};

static const struct field circle_fields[] = {
    {.key = "kind", .kind = FIELD_ENUM, .offset = offsetof(struct shape, kind), .choices = shapes},
    {.key = "radius",
     .kind = FIELD_REAL,
     .offset = offsetof(struct shape, radius),
     .is_required = true},
    {0}};
static const struct field polygon_fields[] = {
    {.key = "kind", .kind = FIELD_ENUM, .offset = offsetof(struct shape, kind), .choices = shapes},
    {.key = "sides",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct shape, sides),
     .is_required = true,
     .min = 3},
    {0}};
static const struct field_table circle_table = {
    .name = "circle", .fields = circle_fields, .struct_bytes = sizeof(struct shape)};
static const struct field_table polygon_table = {
    .name = "polygon", .fields = polygon_fields, .struct_bytes = sizeof(struct shape)};

static const struct field_table *choose_shape(const struct node *map, struct diag *diag)
{
    const struct node *kind = node_get(map, "kind");
    const char *word = kind != NULL && kind->kind == NODE_SCALAR ? kind->text : "";
    if (text_equal(word, "circle"))
        return &circle_table;
    if (text_equal(word, "polygon"))
        return &polygon_table;
    diag_add(diag, DIAG_ERROR, map->place, NULL, "a shape has no kind '%s'", word);
    return NULL;
}

static void check_bound(struct config *config, const char *path, void *bound)
{
    struct bound *out = bound;
    (void)path;
    out->checked++;
    if (out->nodes == 13)
        config_error(config, "nodes", "take another", "13 nodes are unlucky");
    if (out->share == 0.75)
        config_warn(config, "tuning.ratio", NULL, "a share of 0.75 is unusual");
}

static const struct field bound_fields[] = {
    {.key = "compile",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct bound, is_compiled),
     .default_text = "true"},
    {.key = "nodes",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct bound, nodes),
     .is_required = true,
     .min = 1,
     .max = 4096,
     .help = "hosts"},
    {.key = "gpus",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct bound, gpus),
     .default_text = "all",
     .choices = all_gpus,
     .min = 1},
    {.key = "share",
     .kind = FIELD_REAL,
     .offset = offsetof(struct bound, share),
     .min = 0,
     .max = 1},
    {.key = "power",
     .kind = FIELD_QUANTITY,
     .offset = offsetof(struct bound, power_w),
     .dimension = DIM_POWER},
    {.key = "memory",
     .kind = FIELD_QUANTITY,
     .offset = offsetof(struct bound, memory_bytes),
     .dimension = DIM_BYTES,
     .default_text = "80 GiB"},
    {.key = "wrap",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct bound, wrap),
     .default_text = "block",
     .choices = wraps},
    {.key = "title", .kind = FIELD_TEXT, .offset = offsetof(struct bound, title)},
    {.key = "tuning",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct bound, tuning),
     .table = &tuning_table,
     .scalar_key = "ratio"},
    {.key = "nics",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct bound, nics),
     .table = &nics_table},
    {.key = "host",
     .kind = FIELD_REF,
     .offset = offsetof(struct bound, host),
     .table = &host_table,
     .folder = "hosts",
     .also_json = "json"},
    {.key = "shape",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct bound, shape),
     .choose = choose_shape},
    {.key = "slow",
     .kind = FIELD_LIST,
     .offset = offsetof(struct bound, slow),
     .table = &slow_table,
     .min = 0,
     .max = 3},
    {.key = "ideal",
     .kind = FIELD_TEXT_LIST,
     .offset = offsetof(struct bound, ideal),
     .default_text = "[]"},
    {.key = "extra", .kind = FIELD_ANY, .offset = offsetof(struct bound, extra)},
    {0}};
const struct field_table bound_table = {.name = "thing",
                                        .help = "every kind of field",
                                        .fields = bound_fields,
                                        .struct_bytes = sizeof(struct bound),
                                        .check = check_bound};

static char *written_messages(const struct diag *diag)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    diag_write(diag, file, false);
    fclose(file);
    return text;
}

static void fixture_start(struct fixture *fixture)
{
    static const char *const no_folders[] = {NULL};
    *fixture = (struct fixture){0};
    diag_init(&fixture->diag, &fixture->arena);
    config_init(&fixture->config, &fixture->arena, &fixture->diag, no_folders);
}

void fixture_parse(struct fixture *fixture, const char *text, size_t length)
{
    fixture_start(fixture);
    fixture->source = (struct source){"t.yaml", text, length > 0 ? length : strlen(text)};
    fixture->status =
        node_parse(&fixture->arena, &fixture->source, &fixture->config.root, &fixture->diag);
    fixture->messages = written_messages(&fixture->diag);
}

void fixture_bind(struct fixture *fixture, const char *yaml, const char *const *overrides)
{
    fixture_start(fixture);
    fixture->source = (struct source){"t.yaml", yaml, strlen(yaml)};
    fixture->status =
        node_parse(&fixture->arena, &fixture->source, &fixture->config.root, &fixture->diag);
    for (; overrides != NULL && *overrides != NULL; overrides++) {
        const enum status status = config_override(&fixture->config, *overrides);
        fixture->status = fixture->status == STATUS_OK ? status : fixture->status;
    }
    if (fixture->status == STATUS_OK)
        fixture->status = config_bind(&fixture->config, &bound_table, &fixture->bound);
    fixture->messages = written_messages(&fixture->diag);
}

const char *fixture_resolved(struct fixture *fixture)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    config_write_resolved(&fixture->config, file);
    fclose(file);
    const char *copy = arena_strdup(&fixture->arena, text);
    free(text);
    return copy;
}

void fixture_release(struct fixture *fixture)
{
    free(fixture->messages);
    arena_release(&fixture->arena);
}

void check_messages(const char *yaml, const char *expected)
{
    struct fixture fixture;
    fixture_bind(&fixture, yaml, NULL);
    CHECK_TEXT(fixture.messages, expected);
    CHECK_INT(fixture.status, STATUS_INPUT);
    fixture_release(&fixture);
}
