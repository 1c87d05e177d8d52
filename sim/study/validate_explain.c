/*
 * study/validate_explain.c: which one setting explains a degraded table.
 *
 * Each knob of the list is searched alone, all else as the cluster file says: rates from 1/1024 of
 * the file's up to it, latencies from the file's up to 10 ms, over their logarithm (numeric/
 * minimum.h). What is made least is the median of |log(predicted / measured)| over the sizes from 1
 * MiB; the knob with the least median |error| is the explanation.
 */
#include <math.h>

#include "base/units.h"
#include "numeric/fit.h"
#include "numeric/minimum.h"
#include "study/validate_collectives_private.h"

static const double mib = 1024 * 1024;

struct knob {
    const char *key;
    enum dimension dimension;
    double was; /* in force; 0: the machine has none */
};

enum { KNOB_COUNT = 5 };

static void knobs_of(const struct cluster *cluster, bool is_one_node, struct knob *knobs)
{
    const struct link *within = &cluster->scale_up_link;
    const struct link *across = &cluster->nic_link;
    const bool has_within = cluster->scale_up != SCALE_UP_NONE;
    const bool has_across = cluster->nic_count > 0 && !is_one_node;
    const struct knob all[KNOB_COUNT] = {
        {"host.nics.bandwidth", DIM_BANDWIDTH, has_across ? across->bytes_per_s : 0},
        {"host.nics.step_latency", DIM_TIME, has_across ? across->step_latency_s : 0},
        {"host.scale_up.bandwidth", DIM_BANDWIDTH, has_within ? within->bytes_per_s : 0},
        {"host.scale_up.step_latency", DIM_TIME, has_within ? within->step_latency_s : 0},
        {"collectives.base", DIM_TIME, cluster->collective_base_s}};
    for (int i = 0; i < KNOB_COUNT; i++)
        knobs[i] = all[i];
}

struct search {
    struct arena *arena; /* of messages that nobody reads, emptied each time */
    const struct collective_request *request;
    const struct collective_result *result;
    const struct knob *knob;
    double error; /* median |error| at the last value tried */
};

static const char *setting_of(struct arena *arena, const struct knob *knob, double log2_value)
{
    char value[64];
    return arena_printf(arena, "%s=%s", knob->key,
                        format_quantity(value, sizeof(value), exp2(log2_value), knob->dimension));
}

/* Median of |log ratio| over the sizes from 1 MiB at a value of the knob. */
static double distance_at(double log2_value, void *given)
{
    struct search *search = given;
    struct arena arena = {0};
    struct diag quiet;
    struct comm_machine machine = {0};
    diag_init(&quiet, &arena);
    const struct collective_result *result = search->result;
    double distance = (double)NAN;
    double *logs = ARENA_ARRAY(&arena, double, result->point_count);
    double *errors = ARENA_ARRAY(&arena, double, result->point_count);
    int32_t count = 0;
    if (collective_machine_load(&arena, result, search->request,
                                setting_of(&arena, search->knob, log2_value), &machine,
                                &quiet) != STATUS_OK)
        goto out;
    for (int32_t i = 0; i < result->point_count; i++) {
        const struct collective_point *point = &result->points[i];
        const double played_s =
            point->bytes >= mib ? collective_played_s(&machine, result, point->bytes) : (double)NAN;
        if (isnan(played_s))
            continue;
        errors[count] = fabs(played_s / point->measured_s - 1);
        logs[count++] = fabs(log(played_s / point->measured_s));
    }
    distance = quantile(logs, count, 0.5);
    search->error = quantile(errors, count, 0.5);
out:
    comm_machine_release(&machine);
    arena_release(&arena);
    return distance;
}

/* The best value of one knob. */
static void try_knob(struct arena *arena, struct search *search,
                     struct collective_explanation *best)
{
    enum { GRID = 20 };
    const double latency_max_s = 10e-3;
    const double tolerance = 0.002; /* of log2: a seventh of a percent */
    const struct knob *knob = search->knob;
    const bool is_rate = knob->dimension == DIM_BANDWIDTH;
    const double was = log2(knob->was);
    const double low = is_rate ? was - 10 : was;
    const double high = is_rate ? was : log2(latency_max_s);
    if (low >= high)
        return;
    const double found = minimum_on(distance_at, search, low, high, GRID, tolerance, NULL);
    (void)distance_at(found, search);
    if (best->key != NULL && !(search->error < best->error_after))
        return;
    char text[64];
    const double before = best->error_before;
    *best = (struct collective_explanation){.key = knob->key, .error_before = before};
    best->error_after = search->error;
    const bool is_time = knob->dimension == DIM_TIME;
    best->was = arena_strdup(arena, is_time ? format_seconds(text, sizeof(text), knob->was)
                                            : format_bandwidth(text, sizeof(text), knob->was));
    best->is = arena_strdup(arena, is_time ? format_seconds(text, sizeof(text), exp2(found))
                                           : format_bandwidth(text, sizeof(text), exp2(found)));
}

enum status collective_explain(struct arena *arena, const struct collective_request *request,
                               struct collective_result *result, struct diag *diag)
{
    struct comm_machine machine = {0};
    struct knob knobs[KNOB_COUNT];
    struct search search = {.arena = arena, .request = request, .result = result};
    struct collective_explanation *best = &result->explanation;
    enum status status = collective_machine_load(arena, result, request, NULL, &machine, diag);
    if (status == STATUS_OK) {
        knobs_of(&machine.cluster, result->nodes == 1, knobs);
        best->error_before = collective_score_of(arena, result->points, result->point_count,
                                                 ON_SPEC, mib, (double)INFINITY)
                                 .median_abs_err;
    }
    for (int i = 0; i < KNOB_COUNT && status == STATUS_OK; i++) {
        search.knob = &knobs[i];
        if (knobs[i].was > 0)
            try_knob(arena, &search, best);
    }
    comm_machine_release(&machine);
    return status;
}
