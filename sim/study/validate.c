/* study/validate.c: see validate.h: the loop over the rows. */
#include "study/validate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "run/experiment.h"
#include "study/validate_private.h"

/* Shares of a step that is exposed communication: below the first it is compute that decides. */
#define PARTLY_EXPOSED 0.05
#define BANDWIDTH_BOUND 0.30
/* Columns that describe another network than n_params says are no basis for a prediction. */
#define PARAMETERS_TOLERANCE 0.05

static int64_t peak_of(const struct outcome *outcome, enum memory_kind kind)
{
    switch (kind) {
    case MEMORY_KIND_NONE:
        break;
    case MEMORY_KIND_ALLOCATED:
        return outcome->peak_allocated_bytes;
    case MEMORY_KIND_ACTIVE:
        return outcome->peak_active_bytes;
    case MEMORY_KIND_RESERVED:
        return outcome->peak_reserved_bytes;
    case MEMORY_KIND_DEVICE:
        return outcome->peak_device_bytes;
    }
    BUG("no peak of kind %d", (int)kind);
}

/* ---- one row ------------------------------------------------------------------------------ */

struct player {
    struct arena *arena;
    const struct validate_request *request;
    const struct fact_rules *rules;
    const char *base; /* the configuration that rows are overrides of */
    const struct spreads *spreads;
    struct validate_exclusions *warned; /* each reason once */
    struct diag *diag;
};

static void warn_once(const struct player *player, const struct measured_row *from,
                      const struct row_settings *settings)
{
    for (int32_t k = 0; k < player->warned->count; k++)
        if (text_equal(player->warned->items[k].reason, settings->exclude))
            return;
    exclusion_count(player->arena, player->warned, settings->exclude);
    words_warn(player->arena, settings->excluded_by, from, settings->exclude, player->diag);
}

static const char *first_error(struct arena *arena, const struct diag *diag)
{
    const struct diag_message *error = diag_first_error(diag);
    return error != NULL ? arena_strdup(arena, error->text) : "it could not be simulated";
}

static const char *hosts_of(const struct row_settings *settings, const struct outcome *outcome)
{
    const bool is_guess = setting_value(settings, "source.network") != NULL;
    return outcome->n_nodes == 1 ? "single node"
           : is_guess            ? "multi node, network assumed"
                                 : "multi node";
}

static const char *regime_of(struct arena *arena, const char *hosts, const struct outcome *outcome)
{
    const double exposed = outcome->exposed_comm_fraction;
    return arena_printf(arena, "%s, %s", hosts,
                        exposed < PARTLY_EXPOSED    ? "compute-bound"
                        : exposed < BANDWIDTH_BOUND ? "partly exposed"
                                                    : "bandwidth-bound");
}

static void pair_error(struct validate_pair *pair)
{
    pair->error = pair->measured > 0.0 && pair->predicted > 0.0
                      ? pair->predicted / pair->measured - 1.0
                      : (double)NAN;
}

/* The step as published: its time, or what the tokens per second of a GPU make of it. A source may
   call a time of so many tokens a step that has fewer. */
static double measured_step_s(const struct measured_row *row, const struct row_settings *settings,
                              const struct outcome *outcome)
{
    const bool is_rate = text_equal(setting_value(settings, "source.step_time"), "tokens");
    const double given = is_rate ? (double)NAN : measured_real(row, "step_time_s");
    const double rate = measured_real(row, "tokens_per_s_per_gpu");
    if (!isnan(given))
        return given;
    return isnan(rate) ? (double)NAN
                       : (double)outcome->tokens_per_step / ((double)outcome->n_gpus * rate);
}

/* Errors of fractions are differences: 0.40 against 0.42 is -2 points. */
static void take_mfu(const struct measured_row *from, const struct row_settings *settings,
                     const struct outcome *outcome, struct validate_row *row)
{
    const double percent = measured_real(from, "mfu_pct");
    if (isnan(percent) || !text_equal(setting_value(settings, "source.mfu"), "stated"))
        return;
    row->mfu.measured = percent / 100.0;
    row->mfu.predicted = outcome->mfu;
    row->mfu.error = row->mfu.predicted - row->mfu.measured;
    row->mfu_convention = outcome->mfu_convention;
}

/* Its texts outlive the experiment. */
static void take_traits(struct arena *arena, const struct experiment *experiment,
                        const struct outcome *outcome, struct validate_row *row)
{
    row->traits = run_traits_of(experiment, outcome);
    row->traits.label = row->label;
    row->traits.model = row->model;
    row->traits.gpu = arena_strdup(arena, row->traits.gpu);
    row->traits.policy = arena_strdup(arena, row->traits.policy);
    row->traits.measured_s = row->step_s.measured;
}

static void take_outcome(const struct player *player, const struct measured_row *from,
                         const struct row_settings *settings, const struct experiment *experiment,
                         const struct outcome *outcome, struct validate_row *row)
{
    static const double bytes_per_gib = 1024.0 * 1024.0 * 1024.0;
    const double stated = (double)measured_count(from, "n_params");
    const double built = (double)outcome->parameters;
    if (stated > 0.0 && fabs(built / stated - 1.0) > PARAMETERS_TOLERANCE) {
        row->reason = arena_printf(player->arena,
                                   "the architecture columns do not give the stated parameters "
                                   "(%.3g against %.3g)",
                                   built, stated);
        return;
    }
    if (!text_equal(setting_value(settings, "source.step_time"), "none")) {
        row->step_s.measured = measured_step_s(from, settings, outcome);
        row->step_s.predicted = outcome->step_time_s;
        pair_error(&row->step_s);
        take_mfu(from, settings, outcome, row);
    }
    row->tokens_per_gpu = outcome->tokens_per_step / outcome->n_gpus;
    row->memory_kind = memory_kind_of(setting_value(settings, "source.memory_kind"));
    const double gib = measured_real(from, "peak_mem_gib");
    if (row->memory_kind != MEMORY_KIND_NONE && !isnan(gib)) {
        row->memory_bytes.measured = gib * bytes_per_gib;
        row->memory_bytes.predicted = (double)peak_of(outcome, row->memory_kind);
        pair_error(&row->memory_bytes);
    }
    row->interval = interval_of(player->spreads, experiment, outcome,
                                setting_value(settings, "source.network") != NULL);
    take_traits(player->arena, experiment, outcome, row);
    row->exposed_comm_fraction = outcome->exposed_comm_fraction;
    row->fits = outcome->fits;
    row->hosts = hosts_of(settings, outcome);
    row->regime = regime_of(player->arena, row->hosts, outcome);
    if (isnan(row->step_s.error) && isnan(row->memory_bytes.error))
        row->reason = "no step time, and no memory of a stated kind";
}

static void play_row(const struct player *player, const struct measured_row *from,
                     const struct row_settings *settings, struct validate_row *row)
{
    struct arena arena = {0};
    struct diag diag;
    struct experiment experiment = {0};
    struct outcome outcome = {0};
    const struct override_list overrides = overrides_of_row(&arena, settings, player->request);
    diag_init(&diag, &arena);
    enum status status =
        experiment_load(&experiment, player->base, overrides.items, overrides.count, &diag);
    if (status == STATUS_OK)
        status = experiment_build(&experiment);
    if (status == STATUS_OK)
        status = experiment_play(&experiment, &outcome);
    if (status == STATUS_OK)
        take_outcome(player, from, settings, &experiment, &outcome, row);
    else
        row->reason = first_error(player->arena, &diag);
    experiment_release(&experiment);
    arena_release(&arena);
}

/* Without it the row would be played with the model of the base configuration. */
static bool has_model(const struct validate_request *request, const struct row_settings *settings)
{
    bool is_given = setting_value(settings, "model") != NULL;
    for (int32_t k = 0; k < request->override_count; k++)
        is_given = is_given || strncmp(request->overrides[k], "model=", strlen("model=")) == 0;
    return is_given;
}

static void validate_one(const struct player *player, const struct measured_row *from,
                         struct validate_row *row)
{
    struct row_settings settings = {0};
    const char *trust = measured_text(from, "trust"), *use = measured_text(from, "use");
    const double none = (double)NAN;
    settings_of_row(player->arena, player->rules, from, &settings);
    *row = (struct validate_row){.line = from->place.line,
                                 .label = measured_text(from, "id"),
                                 .source = measured_text(from, "source"),
                                 .licence = settings.licence,
                                 .gpu = measured_text(from, "gpu"),
                                 .model = measured_text(from, "model_name"),
                                 .trust = trust,
                                 .n_gpus = measured_count(from, "n_gpus"),
                                 .reason = settings.exclude,
                                 .is_assumed = settings.is_assumed,
                                 .is_scored = strcmp(trust, "C") != 0 && strcmp(use, "repeat") != 0,
                                 .step_s = {none, none, none},
                                 .memory_bytes = {none, none, none},
                                 .mfu = {none, none, none},
                                 .settings = settings.list.items,
                                 .setting_count = settings.list.count};
    if (settings.excluded_by != NULL)
        warn_once(player, from, &settings);
    if (row->reason == NULL && !has_model(player->request, &settings))
        row->reason = "no model stated";
    if (row->reason == NULL)
        play_row(player, from, &settings, row);
}

/* ---- all rows ----------------------------------------------------------------------------- */

/* A file of results/measured/ in the first data folder that has it. */
static const char *find_measured(struct arena *arena, const char *const *data_folders,
                                 const char *name, struct diag *diag)
{
    const char *path = data_path(arena, data_folders, "results/measured", name);
    if (path != NULL)
        return path;
    diag_world(diag, "cannot find 'results/measured/%s' in the data folders", name);
    return NULL;
}

bool row_is_wanted(const struct validate_request *request, const struct measured_row *row)
{
    return request->source == NULL || strstr(measured_text(row, "source"), request->source) != NULL;
}

enum status validate_run(struct arena *arena, const struct validate_request *request,
                         struct validation *validation, struct diag *diag)
{
    const char *const *folders = data_folders_find(arena);
    struct measured_table table = {0};
    struct fact_rules rules = {0};
    *validation = (struct validation){0};
    const char *base = find_measured(arena, folders, "base.yaml", diag);
    const char *csv = request->csv_path != NULL
                          ? request->csv_path
                          : find_measured(arena, folders, "measured_runs.csv", diag);
    if (base == NULL || csv == NULL)
        return STATUS_WORLD;
    const enum status facts_status =
        facts_load(arena, folders, request->facts_paths, request->facts_count, &rules, diag);
    const enum status table_status = measured_load(arena, csv, &table, diag);
    if (facts_status != STATUS_OK || table_status != STATUS_OK)
        return facts_status != STATUS_OK ? facts_status : table_status;
    const enum status override_status = overrides_check(arena, base, request, &rules, &table, diag);
    if (override_status != STATUS_OK)
        return override_status;
    struct spreads spreads;
    const enum status spread_status = spreads_load(arena, folders, &spreads, diag);
    if (spread_status != STATUS_OK)
        return spread_status;
    struct validate_exclusions warned = {0};
    const struct player player = {.arena = arena,
                                  .request = request,
                                  .rules = &rules,
                                  .base = base,
                                  .spreads = &spreads,
                                  .warned = &warned,
                                  .diag = diag};
    validation->csv_name = csv;
    validation->rows = ARENA_ARRAY(arena, struct validate_row, table.rows.count + 1);
    for (int32_t k = 0; k < table.rows.count; k++)
        if (row_is_wanted(request, &table.rows.items[k]))
            validate_one(&player, &table.rows.items[k], &validation->rows[validation->row_count++]);
    validation_score(arena, validation);
    return STATUS_OK;
}
