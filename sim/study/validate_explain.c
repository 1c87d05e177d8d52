/*
 * study/validate_explain.c: which one override explains a degraded table.
 *
 * Each knob is an override of one host (one slow host bounds a ring), searched alone, all else as
 * the cluster file says: shares of a rate from 0.001 to 1, a latency added to each step that leaves
 * the host from 0.1 us to 10 ms, over their logarithm (numeric/minimum.h). What is made least is
 * the median of |log(predicted / measured)| over the sizes from 1 MiB; the knob with the least
 * median |error| is the explanation.
 */
#include <math.h>

#include "numeric/fit.h"
#include "numeric/minimum.h"
#include "study/validate_collectives_private.h"

static const double mib = 1024 * 1024;

struct knob {
    const char *name; /* "NIC rate" */
    const char *key;  /* of an override */
    bool is_latency;  /* else a share of a rate */
    bool is_across;   /* only where several nodes talk */
    double low, high;
};

static const struct knob knobs[] = {
    {"NIC rate", "nic_frac", false, true, 0.001, 1},
    {"latency of a step between hosts", "step_latency", true, true, 1e-7, 1e-2},
    {"rate between the GPUs of a host", "scale_up_frac", false, false, 0.001, 1},
};

enum { KNOB_COUNT = sizeof(knobs) / sizeof(knobs[0]) };

struct search {
    const struct collective_request *request;
    const struct collective_result *result;
    const struct knob *knob;
    double error; /* median |error| at the last value tried */
};

/* "overrides=[{host: 0, nic_frac: 0.238}]" */
static const char *setting_of(struct arena *arena, const struct knob *knob, double value)
{
    return knob->is_latency
               ? arena_printf(arena, "overrides=[{host: 0, %s: %.4g us}]", knob->key, value * 1e6)
               : arena_printf(arena, "overrides=[{host: 0, %s: %.4g}]", knob->key, value);
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
    search->error = (double)NAN;
    if (collective_machine_load(&arena, result, search->request,
                                setting_of(&arena, search->knob, exp2(log2_value)), &machine,
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

void collective_explain(struct arena *arena, const struct collective_request *request,
                        struct collective_result *result)
{
    enum { GRID = 24 };
    const double tolerance = 0.002; /* of log2: a seventh of a percent */
    const double clear = 0.9;       /* a knob must lower the error by a tenth at least */
    struct search search = {.request = request, .result = result};
    const double before = collective_score_of(arena, result->points, result->point_count, ON_SPEC,
                                              mib, (double)INFINITY)
                              .median_abs_err;
    result->explanations = ARENA_ARRAY(arena, struct collective_explanation, KNOB_COUNT);
    for (int i = 0; i < KNOB_COUNT; i++) {
        const struct knob *knob = &knobs[i];
        if (knob->is_across && result->nodes == 1)
            continue;
        search.knob = knob;
        const double found = minimum_on(distance_at, &search, log2(knob->low), log2(knob->high),
                                        GRID, tolerance, NULL);
        (void)distance_at(found, &search);
        if (!(search.error < clear * before))
            continue;
        /* The best first; of nearly equal ones the earlier knob. */
        int32_t at = result->explanation_count++;
        for (; at > 0 && search.error < clear * result->explanations[at - 1].error_after; at--)
            result->explanations[at] = result->explanations[at - 1];
        result->explanations[at] =
            (struct collective_explanation){.name = knob->name,
                                            .setting = setting_of(arena, knob, exp2(found)),
                                            .error_after = search.error};
    }
}
