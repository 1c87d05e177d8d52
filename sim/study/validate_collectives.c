/* study/validate_collectives.c: see validate_collectives.h. */
#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "collective/calibrate.h"
#include "collective/plan_calibrate.h"
#include "config/config.h"
#include "study/validate_collectives_private.h"

static const char data_folder[] = "results/collectives";
static const char rules_name[] = "machines.yaml";

struct running {
    struct arena *arena;
    struct diag *diag;
    const struct collective_request *request;
    struct collective_validation *validation;
    struct machine_rules rules;
    struct calibrate_fit *fits; /* by result; no points: none */
};

/* ---- files -------------------------------------------------------------------------------- */

static enum status read_file(struct running *running, const char *path)
{
    return nccl_log_load(running->arena, path, &running->request->said, &running->validation->log,
                         running->diag);
}

static enum status read_path(struct running *running, const char *path)
{
    static const char *const endings[] = {".txt", ".log", ".out", ".json"};
    enum status status = STATUS_OK;
    bool is_folder = false;
    for (size_t k = 0; k < sizeof(endings) / sizeof(endings[0]) && strcmp(path, "-") != 0; k++) {
        const char *const *files = folder_files(running->arena, path, endings[k]);
        is_folder = is_folder || files != NULL;
        for (; files != NULL && *files != NULL; files++) {
            const enum status one = read_file(running, *files);
            status = one != STATUS_OK ? one : status;
        }
    }
    return is_folder ? status : read_file(running, path);
}

static enum status read_all(struct running *running)
{
    const struct collective_request *request = running->request;
    const char *const *folders = data_folders_find(running->arena);
    const char *shipped = data_folder_path(running->arena, folders, data_folder);
    const char *rules = data_path(running->arena, folders, data_folder, rules_name);
    enum status status = STATUS_OK;
    if (shipped == NULL || rules == NULL) {
        diag_world(running->diag, "no folder '%s' with a '%s' among the data", data_folder,
                   rules_name);
        return STATUS_WORLD;
    }
    status = machine_rules_load(running->arena, rules, &running->rules, running->diag);
    for (int32_t i = 0; i < request->rules_count && status == STATUS_OK; i++)
        status = machine_rules_load(running->arena, request->rules_paths[i], &running->rules,
                                    running->diag);
    if (status != STATUS_OK)
        return status;
    if (request->path_count == 0)
        return read_path(running, shipped);
    for (int32_t i = 0; i < request->path_count; i++) {
        const enum status one = read_path(running, request->paths[i]);
        status = one != STATUS_OK ? one : status;
    }
    return status;
}

/* ---- machines ----------------------------------------------------------------------------- */

enum status collective_machine_load(struct arena *arena, const struct collective_result *result,
                                    const struct collective_request *request, const char *extra,
                                    struct comm_machine *machine, struct diag *diag)
{
    const char **overrides =
        ARENA_ARRAY(arena, const char *, result->setting_count + request->override_count + 1);
    int32_t count = 0;
    for (int32_t i = 0; i < result->setting_count; i++)
        overrides[count++] = result->settings[i];
    for (int32_t i = 0; i < request->override_count; i++)
        overrides[count++] = request->overrides[i];
    if (extra != NULL)
        overrides[count++] = extra;
    enum status status = comm_machine_load(machine, result->cluster, overrides, count, diag);
    if (status == STATUS_OK)
        status = comm_machine_shape(machine, result->nodes, result->gpus_per_node);
    return status;
}

double collective_played_s(struct comm_machine *machine, const struct collective_result *result,
                           double bytes)
{
    double time_s;
    if (comm_play(machine, result->log->op, bytes, NETWORK_FLOWS, &time_s) != STATUS_OK)
        return (double)NAN;
    return time_s;
}

/* The first error, as the reason why a table is out of scope. */
static const char *first_error(struct arena *arena, const struct diag *diag)
{
    const struct diag_message *error = diag_first_error(diag);
    return error != NULL ? arena_strdup(arena, error->text) : "it cannot be played";
}

static void play_basis(struct comm_machine *machine, struct collective_result *result,
                       enum collective_basis basis)
{
    for (int32_t i = 0; i < result->point_count; i++)
        result->points[i].predicted_s[basis] =
            collective_played_s(machine, result, result->points[i].bytes);
}

/* With a fit in place of the cluster's own calibration. */
static void play_calibrated(struct comm_machine *machine, struct collective_result *result,
                            struct calibrate_fit *fit, enum collective_basis basis)
{
    const struct calibration own = machine->cluster.calibration;
    machine->cluster.calibration =
        (struct calibration){.name = "fit", .tables = &fit->table, .table_count = 1};
    play_basis(machine, result, basis);
    machine->cluster.calibration = own;
}

static bool is_same_machine(const struct collective_result *a, const struct collective_result *b)
{
    bool is_same = text_equal(a->cluster, b->cluster) && a->setting_count == b->setting_count;
    for (int32_t i = 0; i < a->setting_count && is_same; i++)
        is_same = text_equal(a->settings[i], b->settings[i]);
    return is_same;
}

/* The nearest other table of the machine, by the rule of plan_calibrate.h; -1: none. */
static int32_t sibling_of(const struct running *running, int32_t of)
{
    const struct collective_validation *validation = running->validation;
    const struct collective_result *result = &validation->results[of];
    struct calibration all = {
        .tables = ARENA_ARRAY(running->arena, struct calibration_table, validation->result_count)};
    int32_t *origin = ARENA_ARRAY(running->arena, int32_t, validation->result_count);
    for (int32_t i = 0; i < validation->result_count; i++) {
        const struct collective_result *other = &validation->results[i];
        if (i == of || running->fits[i].point_count == 0 || other->is_degraded ||
            other->reason != NULL || !is_same_machine(result, other))
            continue;
        struct calibration_table *table = &all.tables[all.table_count];
        *table = running->fits[i].table;
        table->nodes = other->nodes;
        table->gpus_per_node = other->gpus_per_node;
        origin[all.table_count++] = i;
    }
    double weight;
    const struct calibration_table *found =
        calibration_find(&all, result->log->op, result->nodes, result->gpus_per_node, &weight);
    return found != NULL ? origin[found - all.tables] : -1;
}

/* ---- one table ---------------------------------------------------------------------------- */

static const char *stem_of(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return dot != NULL && dot != name ? arena_strndup(arena, name, (size_t)(dot - name)) : name;
}

/* The rows as points; the time that the rules choose stands in both groups. */
static void take_rows(struct arena *arena, struct nccl_table *table,
                      struct collective_result *result)
{
    result->points = ARENA_ARRAY(arena, struct collective_point, table->rows.count + 1);
    for (int32_t i = 0; i < table->rows.count; i++) {
        struct nccl_row *row = &table->rows.items[i];
        if (result->is_in_place && row->in_place.time_s > 0)
            row->out_of_place = row->in_place;
        const double time_s = nccl_row_s(row);
        if (time_s > 0 && row->bytes > 0)
            result->points[result->point_count++] =
                (struct collective_point){.bytes = (double)row->bytes,
                                          .measured_s = time_s,
                                          .predicted_s = {(double)NAN, (double)NAN, (double)NAN}};
    }
}

static void result_init(struct running *running, struct nccl_table *table,
                        struct collective_result *result, struct calibrate_fit *fit)
{
    struct arena *arena = running->arena;
    const struct nccl_table **alone = ARENA_ARRAY(arena, const struct nccl_table *, 1);
    alone[0] = table;
    *result = (struct collective_result){.log = table, .name = stem_of(arena, table->name)};
    machine_rules_apply(arena, &running->rules, result);
    take_rows(arena, table, result);
    if (!calibrate_fit_tables(arena, alone, 1, fit) && result->reason == NULL)
        result->reason = "no row has a time";
    fit->table.nodes = result->nodes;
    fit->table.gpus_per_node = result->gpus_per_node;
}

static void result_play(struct running *running, struct collective_result *result)
{
    const int32_t index = (int32_t)(result - running->validation->results);
    struct diag quiet;
    struct comm_machine machine = {0};
    diag_init(&quiet, running->arena);
    if (result->reason != NULL)
        return;
    const enum status status =
        collective_machine_load(running->arena, result, running->request, NULL, &machine, &quiet);
    if (status == STATUS_OK) {
        const struct calibration own = machine.cluster.calibration;
        machine.cluster.calibration = (struct calibration){0};
        play_basis(&machine, result, ON_SPEC);
        machine.cluster.calibration = own;
    }
    if (status != STATUS_OK || quiet.error_count > 0)
        result->reason = first_error(running->arena, &quiet);
    const int32_t sibling = result->reason == NULL ? sibling_of(running, index) : -1;
    if (result->reason == NULL)
        play_calibrated(&machine, result, &running->fits[index], ON_ITSELF);
    if (sibling >= 0) {
        result->sibling = running->validation->results[sibling].name;
        play_calibrated(&machine, result, &running->fits[sibling], ON_SIBLING);
    }
    comm_machine_release(&machine);
}

enum status collective_validation_run(struct arena *arena, const struct collective_request *request,
                                      struct collective_validation *validation, struct diag *diag)
{
    struct running running = {
        .arena = arena, .diag = diag, .request = request, .validation = validation};
    *validation = (struct collective_validation){0};
    enum status status = read_all(&running);
    if (status != STATUS_OK)
        return status;
    const int32_t count = validation->log.tables.count;
    validation->result_count = count;
    validation->results = ARENA_ARRAY(arena, struct collective_result, count);
    running.fits = ARENA_ARRAY(arena, struct calibrate_fit, count);
    for (int32_t i = 0; i < count; i++)
        result_init(&running, &validation->log.tables.items[i], &validation->results[i],
                    &running.fits[i]);
    for (int32_t i = 0; i < count; i++)
        result_play(&running, &validation->results[i]);
    for (int32_t i = 0; i < count; i++)
        if (validation->results[i].is_degraded && validation->results[i].reason == NULL)
            collective_explain(arena, request, &validation->results[i]);
    for (int32_t i = 0; i < count; i++)
        calibrate_release(&running.fits[i]);
    collective_validation_score(arena, validation);
    return status;
}
