/* study/sweep_team.c: who plays a sweep: processes of this one, or a team that is there already. */
#include "study/sweep_private.h"

/* What all must have in common: what is swept, and what an outcome's bytes mean. */
static struct hash128 identity(const struct sweep_plan *plan, const struct sweep_options *options)
{
    struct hash128 hash;
    hash128_init(&hash);
    hash128_u64(&hash, plan->definition.low);
    hash128_u64(&hash, plan->definition.high);
    hash128_u64(&hash, (uint64_t)plan->point_count);
    hash128_u64(&hash, options->has_detail);
    hash128_u64(&hash, OUTCOME_MODEL_VERSION);
    hash128_u64(&hash, sizeof(struct outcome));
    for (const struct metric *metric = outcome_metrics; metric->name != NULL; metric++)
        hash128_text(&hash, metric->name);
    return hash128_done(hash);
}

enum status sweep_pool_new(struct sweep *sweep, struct pool **pool, struct diag *diag)
{
    const struct pool_team *team = sweep->options.team;
    if (team == NULL)
        return pool_new(&sweep->arena, sweep->options.workers, sweep_work, sweep, pool, diag);
    return team->lead(team->context, &sweep->arena, identity(sweep->plan, &sweep->options), pool,
                      diag);
}

void sweep_serve(const struct sweep_plan *plan, const struct sweep_options *options,
                 const char *trouble)
{
    struct sweep sweep = {.plan = plan, .options = *options};
    const struct pool_team *team = options->team;
    const struct hash128 none = {0};
    team->serve(team->context, trouble == NULL ? identity(plan, options) : none, trouble,
                sweep_work, &sweep);
}
