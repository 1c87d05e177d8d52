/* study/beside.c: see beside.h. */
#include "study/beside.h"

bool beside_applies(const struct experiment *experiment)
{
    return experiment->model_config.family != FAMILY_ABSTRACT;
}

enum status besides_load(struct arena *arena, struct besides *besides, struct diag *diag)
{
    const char *const *folders = data_folders_find(arena);
    *besides = (struct besides){.arena = arena};
    const enum status status = spreads_load(arena, folders, &besides->spreads, diag);
    return status == STATUS_OK ? run_index_load(arena, folders, &besides->index, diag) : status;
}

struct beside beside_of(const struct besides *besides, const struct experiment *experiment,
                        const struct outcome *outcome)
{
    const struct run_traits run = run_traits_of(experiment, outcome);
    struct beside beside = {.interval = interval_of(&besides->spreads, experiment, outcome, false),
                            .closest = run_closest(&besides->index, &run)};
    if (beside.closest == NULL)
        return beside;
    beside.distance = run_distance(&run, beside.closest);
    beside.error = beside.closest->predicted_s / beside.closest->measured_s - 1;
    beside.difference = run_difference(besides->arena, &run, beside.closest);
    return beside;
}
