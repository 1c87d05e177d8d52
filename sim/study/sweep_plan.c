/* study/sweep_plan.c: see sweep_plan.h. */
#include "study/sweep_plan.h"

#include <inttypes.h>
#include <string.h>

#include "base/strbuf.h"
#include "study/sweep_knobs.h"

#define COMMAND_LINE "<command line>"

static const char *const scaling_words[] = {"none", "strong", "weak", NULL};

/* ---- what is asked ------------------------------------------------------------------------ */

/* The axis of a key, emptied when it is there: the last one counts. */
static struct sweep_axis *axis_for(struct sweep_plan *plan, const char *key, struct place place)
{
    for (int32_t i = 0; i < plan->axes.count; i++) {
        struct sweep_axis *axis = &plan->axes.items[i];
        if (!text_equal(axis->key, key))
            continue;
        axis->values.count = 0;
        axis->has_span = false;
        axis->place = place;
        return axis;
    }
    struct sweep_axis *axis = ARENA_PUSH(plan->arena, &plan->axes);
    axis->key = key;
    axis->place = place;
    ARENA_PUSH(plan->arena, &plan->settings)->axis = plan->axes.count - 1;
    return axis;
}

/* A key that is fixed from here on is no axis any more. */
static void drop_axis(struct sweep_plan *plan, const char *key)
{
    for (int32_t i = 0; i < plan->settings.count; i++) {
        struct sweep_setting *setting = &plan->settings.items[i];
        if (setting->fixed != NULL || !text_equal(plan->axes.items[setting->axis].key, key))
            continue;
        const int32_t axis = setting->axis;
        plan->axes.count--;
        memmove(&plan->axes.items[axis], &plan->axes.items[axis + 1],
                sizeof(plan->axes.items[0]) * (size_t)(plan->axes.count - axis));
        plan->settings.count--;
        memmove(setting, setting + 1, sizeof(*setting) * (size_t)(plan->settings.count - i));
        for (int32_t k = 0; k < plan->settings.count; k++)
            plan->settings.items[k].axis -= plan->settings.items[k].axis > axis;
        return;
    }
}

/* What -s said of a key before, when one of the two has many values: "key=1,2"; NULL: nothing. */
static const char *said_before(const struct sweep_plan *plan, const char *key, bool is_swept)
{
    const size_t length = strlen(key);
    for (int32_t i = 0; i < plan->settings.count; i++) {
        const struct sweep_setting *setting = &plan->settings.items[i];
        const char *fixed = setting->fixed;
        if (fixed != NULL) {
            if (is_swept && strncmp(fixed, key, length) == 0 && fixed[length] == '=')
                return fixed;
            continue;
        }
        const struct sweep_axis *axis = &plan->axes.items[setting->axis];
        if (text_equal(axis->key, key) && text_equal(axis->place.source->name, COMMAND_LINE))
            return axis->place.source->text;
    }
    return NULL;
}

static enum status refuse(struct sweep_plan *plan, struct place place, const char *hint,
                          const char *text)
{
    diag_add(plan->diag, DIAG_ERROR, place, hint, "%s", text);
    return STATUS_INPUT;
}

/* Keys take low:high beside lists. */
static bool has_knobs(const struct sweep_plan *plan)
{
    return plan->is_one_by_one || plan->sobol > 0;
}

static enum status add_override(struct sweep_plan *plan, const char *text)
{
    static const char accepted[] = "accepted: key=value, or key=v1,v2 and the like, with a dotted "
                                   "key as in train.micro_batch=1,2";
    const char *equals = strchr(text, '=');
    const size_t start = equals != NULL ? (size_t)(equals - text) : 0;
    struct source *source = ARENA_NEW(plan->arena, struct source);
    *source = (struct source){COMMAND_LINE, text, strlen(text)};
    if (start == 0)
        return refuse(
            plan, (struct place){source, 1, 1, equals != NULL ? 1 : (int32_t)source->length},
            accepted, equals != NULL ? "the override names no key" : "no '=' in the override");
    const char *key = arena_strndup(plan->arena, text, start);
    const bool is_span = has_knobs(plan) && knob_is_span(equals + 1);
    const bool is_swept = is_span || axis_is_swept(equals + 1);
    const char *before = said_before(plan, key, is_swept);
    if (before != NULL)
        return refuse(plan, (struct place){source, 1, 1, (int32_t)start},
                      "a swept key is given once: all its values in one -s",
                      arena_printf(plan->arena, "'-s %s' said something else", before));
    if (!is_swept) {
        drop_axis(plan, key);
        ARENA_PUSH(plan->arena, &plan->settings)->fixed = text;
        return STATUS_OK;
    }
    const struct place place = {source, 1, (int32_t)start + 2, 1};
    if (is_span)
        return knob_read(plan, axis_for(plan, key, place), equals + 1, place);
    return axis_add(plan->arena, axis_for(plan, key, place), equals + 1, place, plan->diag);
}

static enum status file_scaling(struct sweep_plan *plan, const struct node *node)
{
    for (int i = 0; node->kind == NODE_SCALAR && scaling_words[i] != NULL; i++) {
        if (!text_equal(node->text, scaling_words[i]))
            continue;
        plan->scaling = (enum scaling)i;
        return STATUS_OK;
    }
    diag_add(plan->diag, DIAG_ERROR, node->place, "accepted: none, strong, weak",
             "unknown 'scaling'");
    return STATUS_INPUT;
}

static enum status file_zip(struct sweep_plan *plan, const struct node *node)
{
    plan->is_zip = node->kind == NODE_SCALAR && text_equal(node->text, "true");
    if (plan->is_zip || (node->kind == NODE_SCALAR && text_equal(node->text, "false")))
        return STATUS_OK;
    diag_add(plan->diag, DIAG_ERROR, node->place, "accepted: true, false", "unknown 'zip'");
    return STATUS_INPUT;
}

static enum status file_axis(struct sweep_plan *plan, const char *key, const struct node *node)
{
    struct arena *arena = plan->arena;
    struct sweep_axis *axis = axis_for(plan, key, node->place);
    if (node->kind == NODE_SCALAR && has_knobs(plan) && knob_is_span(node->text))
        return knob_read(plan, axis, node->text, node->place);
    if (node->kind == NODE_SCALAR)
        return axis_add(arena, axis, node->text, node->place, plan->diag);
    enum status status = STATUS_OK;
    for (int32_t i = 0; i < node->entries.count; i++) {
        const struct node *item = node->entries.items[i].value;
        const bool is_plain =
            item->kind == NODE_SCALAR && (!item->is_quoted || axis_is_swept(item->text));
        const char *text = item->kind == NODE_NULL ? ""
                           : is_plain              ? item->text
                                                   : node_flow_text(arena, item);
        const enum status one = axis_add_item(arena, axis, text, item->place, plan->diag);
        status = one != STATUS_OK ? one : status;
    }
    if (axis->values.count == 0 && status == STATUS_OK) {
        diag_add(plan->diag, DIAG_ERROR, node->place, "a list, or log2(a, b)", "'%s' has no values",
                 key);
        status = STATUS_INPUT;
    }
    return status;
}

static enum status add_file_keys(struct sweep_plan *plan, const char *prefix,
                                 const struct node *map)
{
    enum status status = STATUS_OK;
    if (map->kind != NODE_MAP) {
        diag_add(plan->diag, DIAG_ERROR, map->place, "nodes: log2(1, 64)",
                 "'sweep' must be a map of keys and their values");
        return STATUS_INPUT;
    }
    for (int32_t i = 0; i < map->entries.count; i++) {
        const struct node_entry *entry = &map->entries.items[i];
        const char *key =
            prefix[0] == '\0' ? entry->key : arena_printf(plan->arena, "%s.%s", prefix, entry->key);
        enum status one = STATUS_OK;
        if (prefix[0] == '\0' && text_equal(key, "zip"))
            one = file_zip(plan, entry->value);
        else if (prefix[0] == '\0' && text_equal(key, "scaling"))
            one = file_scaling(plan, entry->value);
        else if (entry->value->kind == NODE_MAP)
            one = add_file_keys(plan, key, entry->value);
        else
            one = file_axis(plan, key, entry->value);
        status = one != STATUS_OK ? one : status;
    }
    return status;
}

static enum status read_scaling_option(struct sweep_plan *plan, const char *word)
{
    for (int i = 0; scaling_words[i] != NULL; i++) {
        if (!text_equal(word, scaling_words[i]))
            continue;
        plan->scaling = (enum scaling)i;
        return STATUS_OK;
    }
    diag_add(plan->diag, DIAG_ERROR, NO_PLACE, "accepted: none, strong, weak",
             "unknown '--scaling %s'", word);
    return STATUS_INPUT;
}

/* ---- points ------------------------------------------------------------------------------- */

static enum status count_zip(struct sweep_plan *plan)
{
    const struct sweep_axis *first = &plan->axes.items[0];
    for (int32_t i = 1; i < plan->axes.count; i++) {
        const struct sweep_axis *axis = &plan->axes.items[i];
        if (axis->values.count != first->values.count)
            return refuse(
                plan, axis->place,
                arena_printf(plan->arena, "'%s' has %d", first->key, (int)first->values.count),
                arena_printf(plan->arena, "zip wants as many values of every key: '%s' has %d",
                             axis->key, (int)axis->values.count));
    }
    plan->point_count = first->values.count;
    return STATUS_OK;
}

static enum status count_points(struct sweep_plan *plan)
{
    if (plan->axes.count == 0)
        return refuse(plan, NO_PLACE,
                      "-s nodes=1,2,4, or 'sweep: {nodes: [1, 2, 4]}' in the file; 'fsdpsim run' "
                      "plays a single configuration",
                      "nothing is swept");
    if (has_knobs(plan) && (plan->is_zip || plan->scaling != SCALING_NONE))
        return refuse(plan, NO_PLACE, "leave out --sobol and --tornado, or zip and scaling",
                      "many keys at once are neither zipped nor scaled");
    if (plan->sobol > 0)
        return knobs_sobol(plan, plan->sobol);
    if (plan->is_one_by_one)
        return knobs_one_by_one(plan);
    if (plan->is_zip)
        return count_zip(plan);
    plan->point_count = 1;
    for (int32_t i = 0; i < plan->axes.count; i++) {
        plan->point_count *= plan->axes.items[i].values.count;
        if (plan->point_count > SWEEP_MAX_POINTS)
            return refuse(plan, plan->axes.items[i].place,
                          arena_printf(plan->arena, "at most %d a sweep", (int)SWEEP_MAX_POINTS),
                          "too many points");
    }
    return STATUS_OK;
}

/* One by one: the place among the values of the axis; below 0 or past them: at the base. */
static int64_t value_place(const struct sweep_plan *plan, int64_t position, int32_t axis)
{
    int64_t place = position - 1;
    for (int32_t i = 0; i < axis; i++)
        place -= plan->axes.items[i].values.count;
    return place;
}

bool sweep_plan_is_base(const struct sweep_plan *plan, int64_t position, int32_t axis)
{
    if (!plan->is_one_by_one)
        return false;
    const int64_t place = value_place(plan, position, axis);
    return place < 0 || place >= plan->axes.items[axis].values.count;
}

const char *sweep_plan_value(const struct sweep_plan *plan, int64_t position, int32_t axis)
{
    if (sweep_plan_is_base(plan, position, axis))
        return "base";
    if (plan->is_one_by_one)
        return plan->axes.items[axis].values.items[value_place(plan, position, axis)];
    if (plan->is_zip)
        return plan->axes.items[axis].values.items[position];
    for (int32_t i = plan->axes.count - 1; i > axis; i--)
        position /= plan->axes.items[i].values.count;
    return plan->axes.items[axis].values.items[position % plan->axes.items[axis].values.count];
}

static void add_json_text(struct strbuf *json, const char *text)
{
    strbuf_add(json, "\"");
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            strbuf_printf(json, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            strbuf_printf(json, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            strbuf_add_bytes(json, text, 1);
    }
    strbuf_add(json, "\"");
}

static const char *finish(struct strbuf *json, struct arena *arena)
{
    const char *text = arena_strdup(arena, json->text);
    strbuf_release(json);
    return text;
}

const char *sweep_plan_settings(const struct sweep_plan *plan, int64_t position,
                                struct arena *arena)
{
    struct strbuf json = {0};
    strbuf_add(&json, "{");
    for (int32_t i = 0; i < plan->axes.count; i++) {
        if (sweep_plan_is_base(plan, position, i))
            continue;
        if (json.length > 1)
            strbuf_add(&json, ", ");
        add_json_text(&json, plan->axes.items[i].key);
        strbuf_add(&json, ": ");
        add_json_text(&json, sweep_plan_value(plan, position, i));
    }
    strbuf_add(&json, "}");
    return finish(&json, arena);
}

const char *sweep_plan_keys(const struct sweep_plan *plan, struct arena *arena)
{
    struct strbuf json = {0};
    for (int32_t i = 0; i < plan->axes.count; i++) {
        strbuf_add(&json, i == 0 ? "[" : ", ");
        add_json_text(&json, plan->axes.items[i].key);
    }
    strbuf_add(&json, "]");
    return finish(&json, arena);
}

enum status sweep_plan_load(const struct sweep_plan *plan, int64_t position, struct arena *scratch,
                            struct experiment *experiment, struct diag *diag)
{
    const int32_t count = plan->settings.count + plan->added.count;
    const char **overrides = ARENA_ARRAY(scratch, const char *, count + 1);
    int32_t used = 0;
    for (int32_t i = 0; i < plan->settings.count; i++) {
        const struct sweep_setting *setting = &plan->settings.items[i];
        if (setting->fixed == NULL && sweep_plan_is_base(plan, position, setting->axis))
            continue;
        overrides[used++] =
            setting->fixed != NULL
                ? setting->fixed
                : arena_printf(scratch, "%s=%s", plan->axes.items[setting->axis].key,
                               sweep_plan_value(plan, position, setting->axis));
    }
    for (int32_t i = 0; i < plan->added.count; i++)
        overrides[used++] = plan->added.items[i];
    return experiment_load_cached(experiment, plan->path, overrides, used, plan->cache, diag);
}

/* ---- scaling ------------------------------------------------------------------------------ */

static enum status check_scaled_keys(struct sweep_plan *plan)
{
    enum status status = STATUS_OK;
    for (int32_t i = 0; i < plan->axes.count; i++) {
        const char *key = plan->axes.items[i].key;
        if (text_equal(key, "train.global_batch") || text_equal(key, "train.grad_accum"))
            status = refuse(plan, plan->axes.items[i].place, "sweep it without scaling",
                            arena_printf(plan->arena, "'%s' is what '%s' scaling sets", key,
                                         scaling_words[plan->scaling]));
    }
    return status;
}

/* From the first point. */
static enum status add_scaling(struct sweep_plan *plan)
{
    if (plan->scaling == SCALING_NONE)
        return STATUS_OK;
    struct experiment first = {0};
    enum status status = check_scaled_keys(plan);
    if (status == STATUS_OK)
        status = sweep_plan_load(plan, 0, plan->arena, &first, plan->diag);
    if (status == STATUS_OK && plan->scaling == SCALING_STRONG) {
        *ARENA_PUSH(plan->arena, &plan->added) = "train.grad_accum=";
        *ARENA_PUSH(plan->arena, &plan->added) =
            arena_printf(plan->arena, "train.global_batch=%" PRId64, first.train.global_batch);
    } else if (status == STATUS_OK) {
        *ARENA_PUSH(plan->arena, &plan->added) = "train.global_batch=";
        *ARENA_PUSH(plan->arena, &plan->added) =
            arena_printf(plan->arena, "train.grad_accum=%" PRId64, first.train.grad_accum);
    }
    experiment_release(&first);
    return status;
}

/* ---- all together ------------------------------------------------------------------------- */

static void define(struct sweep_plan *plan, const struct source *file)
{
    hash128_init(&plan->definition);
    hash128_text(&plan->definition, plan->name);
    if (file != NULL)
        hash128_bytes(&plan->definition, file->text, file->length);
    hash128_u64(&plan->definition, (uint64_t)plan->is_one_by_one << 9 |
                                       (uint64_t)plan->is_zip << 8 | (uint64_t)plan->scaling);
    for (int32_t i = 0; i < plan->settings.count; i++) {
        const struct sweep_setting *setting = &plan->settings.items[i];
        if (setting->fixed != NULL) {
            hash128_text(&plan->definition, setting->fixed);
            continue;
        }
        const struct sweep_axis *axis = &plan->axes.items[setting->axis];
        hash128_text(&plan->definition, axis->key);
        hash128_u64(&plan->definition, (uint64_t)axis->values.count);
        for (int32_t k = 0; k < axis->values.count; k++)
            hash128_text(&plan->definition, axis->values.items[k]);
    }
    plan->definition = hash128_done(plan->definition);
}

/* What the file itself says; its places must outlive this. */
static enum status read_file(struct sweep_plan *plan, const struct source **file)
{
    struct config config;
    config_init(&config, plan->arena, plan->diag, config_cache_folders(plan->cache));
    config.cache = plan->cache;
    enum status status = config_load(&config, plan->path);
    if (status != STATUS_OK)
        return status;
    plan->name = config.root_name != NULL ? config.root_name : "stdin";
    *file = config.root->place.source;
    const struct node *sweep = config_take(&config, "sweep");
    return sweep != NULL ? add_file_keys(plan, "", sweep) : STATUS_OK;
}

enum status sweep_plan_make(struct sweep_plan *plan, struct arena *arena,
                            const struct sweep_request *request, struct config_cache *cache,
                            struct diag *diag)
{
    const struct source *file = NULL;
    *plan =
        (struct sweep_plan){.arena = arena, .diag = diag, .cache = cache, .path = request->path};
    plan->is_one_by_one = request->is_one_by_one;
    plan->sobol = request->sobol;
    enum status status = read_file(plan, &file);
    if (status == STATUS_WORLD)
        return status;
    for (int32_t i = 0; i < request->override_count; i++) {
        const enum status one = add_override(plan, request->overrides[i]);
        status = one != STATUS_OK ? one : status;
    }
    plan->is_zip |= request->is_zip;
    if (request->scaling != NULL) {
        const enum status one = read_scaling_option(plan, request->scaling);
        status = one != STATUS_OK ? one : status;
    }
    if (status == STATUS_OK)
        status = count_points(plan);
    if (status == STATUS_OK)
        status = add_scaling(plan);
    if (status == STATUS_OK)
        define(plan, file);
    return status;
}

enum status sweep_plan_check(const struct node *sweep, struct arena *arena, struct diag *diag)
{
    struct sweep_plan plan = {.arena = arena, .diag = diag};
    const enum status status = add_file_keys(&plan, "", sweep);
    return status == STATUS_OK ? count_points(&plan) : status;
}
