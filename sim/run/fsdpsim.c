/* run/fsdpsim.c: the public C interface over experiment and outcome. */
#include "run/fsdpsim.h"

#include "base/strbuf.h"
#include "numeric/curve.h"
#include "run/experiment.h"

struct fsdpsim {
    struct arena arena; /* the handle itself and its messages */
    struct diag diag;
    struct experiment experiment;
    struct outcome outcome;
    bool is_loaded, is_built, has_run;
};

static struct fsdpsim *new_in(struct arena arena)
{
    struct fsdpsim *sim = ARENA_NEW(&arena, struct fsdpsim);
    sim->arena = arena;
    diag_init(&sim->diag, &sim->arena);
    return sim;
}

struct fsdpsim *fsdpsim_new(void)
{
    numeric_init();
    struct arena arena = {0};
    arena_init(&arena);
    return new_in(arena);
}

static void drop(struct fsdpsim *sim)
{
    if (sim->is_loaded)
        experiment_release(&sim->experiment);
    sim->is_loaded = sim->is_built = sim->has_run = false;
    diag_init(&sim->diag, &sim->arena);
}

void fsdpsim_free(struct fsdpsim *sim)
{
    if (sim == NULL)
        return;
    drop(sim);
    struct arena arena = sim->arena;
    arena_release(&arena);
}

static int refuse(struct fsdpsim *sim, const char *what)
{
    diag_add(&sim->diag, DIAG_ERROR, NO_PLACE, NULL, "%s", what);
    return FSDPSIM_INPUT;
}

/* What is wrong with the arguments of a load, NULL: nothing. */
static const char *load_complaint(struct arena *arena, const char *path,
                                  const char *const *overrides, int override_count)
{
    if (path == NULL)
        return "fsdpsim_load: the path is NULL";
    if (override_count < 0)
        return arena_printf(arena, "fsdpsim_load: %d overrides", override_count);
    if (override_count > 0 && overrides == NULL)
        return "fsdpsim_load: the overrides are NULL";
    for (int i = 0; i < override_count; i++)
        if (overrides[i] == NULL)
            return arena_printf(arena, "fsdpsim_load: override %d is NULL", i);
    return NULL;
}

int fsdpsim_load(struct fsdpsim *sim, const char *path, const char *const *overrides,
                 int override_count)
{
    if (sim == NULL)
        return FSDPSIM_INPUT;
    drop(sim);
    const char *complaint = load_complaint(&sim->arena, path, overrides, override_count);
    if (complaint != NULL)
        return refuse(sim, complaint);
    sim->is_loaded = true;
    enum status status =
        experiment_load(&sim->experiment, path, overrides, override_count, &sim->diag);
    if (status == STATUS_OK)
        status = experiment_build(&sim->experiment);
    sim->is_built = status == STATUS_OK;
    return (int)status;
}

int fsdpsim_run(struct fsdpsim *sim)
{
    if (sim == NULL)
        return FSDPSIM_INPUT;
    if (!sim->is_built)
        return refuse(sim, "nothing to run: no configuration is loaded");
    const enum status status = experiment_play(&sim->experiment, &sim->outcome);
    sim->has_run = status == STATUS_OK;
    return (int)status;
}

int fsdpsim_metric(const struct fsdpsim *sim, const char *name, double *value)
{
    if (sim == NULL || name == NULL || value == NULL)
        return 0;
    const struct metric *metric = outcome_metric(name);
    return sim->has_run && metric != NULL && outcome_number(&sim->outcome, metric, value);
}

const char *fsdpsim_text(const struct fsdpsim *sim, const char *name)
{
    if (sim == NULL || name == NULL)
        return NULL;
    const struct metric *metric = outcome_metric(name);
    if (!sim->has_run || metric == NULL || metric->kind != METRIC_TEXT)
        return NULL;
    const char *const *text =
        (const char *const *)(const void *)((const char *)&sim->outcome + metric->offset);
    return *text;
}

const char *fsdpsim_metric_name(int index)
{
    for (int i = 0; outcome_metrics[i].name != NULL; i++)
        if (i == index)
            return outcome_metrics[i].name;
    return NULL;
}

const char *fsdpsim_messages(struct fsdpsim *sim)
{
    if (sim == NULL)
        return "error: no handle: it is NULL\n";
    return diag_text(&sim->diag, &sim->arena);
}

const char *fsdpsim_version(void)
{
    return FSDPSIM_VERSION;
}
