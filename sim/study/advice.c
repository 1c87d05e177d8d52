/* study/advice.c: see advice.h. */
#include "study/advice.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "study/advice_private.h"

const double advice_least_gain = 0.002;

struct adviser {
    struct arena *arena;
    const struct outcome *outcome;
    const char *path;
    const char **overrides; /* the run's, then the trial's */
    int32_t own_count;
    struct advice *advice;
};

static double token_s(const struct outcome *outcome)
{
    return outcome->step_time_s / (double)outcome->tokens_per_step;
}

static void take(struct adviser *adviser, const struct trial *trial, const struct outcome *outcome)
{
    struct advice *advice = adviser->advice;
    advice->tried++;
    const double gain = 1 - token_s(outcome) / token_s(adviser->outcome);
    if (!outcome->fits && !trial->is_hardware) {
        advice->unfit++;
        return;
    }
    if (gain < advice_least_gain && (advice->did_fit || trial->is_hardware))
        return;
    struct advice_list *list = trial->is_hardware ? &advice->hardware : &advice->settings;
    struct advice_item *item = ARENA_PUSH(adviser->arena, list);
    *item = (struct advice_item){.words = trial->words,
                                 .step_time_s = outcome->step_time_s,
                                 .tokens_per_s = outcome->tokens_per_s,
                                 .gain = gain,
                                 .peak_device_bytes = outcome->peak_device_bytes};
    for (int i = 0; i < 3; i++)
        item->texts[i] = trial->texts[i];
}

/* Loads the run with the trial's overrides last, and plays it; false: refused. */
static bool play(struct adviser *adviser, const struct trial *trial, struct experiment *experiment,
                 struct outcome *outcome, struct diag *diag)
{
    int32_t count = adviser->own_count;
    for (int i = 0; i < 3 && trial->texts[i] != NULL; i++)
        adviser->overrides[count++] = trial->texts[i];
    enum status status =
        experiment_load(experiment, adviser->path, adviser->overrides, count, diag);
    if (status == STATUS_OK)
        status = experiment_build(experiment);
    if (status == STATUS_OK)
        status = experiment_play(experiment, outcome);
    return status == STATUS_OK;
}

static bool is_same(const struct outcome *a, const struct outcome *b)
{
    return hash128_equal(a->config_hash, b->config_hash);
}

static void try_one(struct adviser *adviser, const struct trial *trial)
{
    struct arena messages = {0};
    struct diag diag;
    struct experiment experiment;
    struct outcome outcome;
    arena_init(&messages);
    diag_init(&diag, &messages);
    const bool is_played = play(adviser, trial, &experiment, &outcome, &diag);
    if (!is_played)
        adviser->advice->refused++;
    else if (!is_same(&outcome, adviser->outcome))
        take(adviser, trial, &outcome);
    experiment_release(&experiment);
    arena_release(&messages);
}

static int compare_items(const void *a, const void *b)
{
    const struct advice_item *one = a;
    const struct advice_item *other = b;
    if (one->gain < other->gain)
        return 1;
    if (one->gain > other->gain)
        return -1;
    /* As fast: the one that needs less memory; then as the table has them. */
    if (one->peak_device_bytes != other->peak_device_bytes)
        return one->peak_device_bytes < other->peak_device_bytes ? -1 : 1;
    return (one > other) - (one < other);
}

/* Both set the same key: "train.micro_batch=2" and "train.micro_batch=4". */
static bool is_same_key(const char *a, const char *b)
{
    const size_t length = strcspn(a, "=");
    return strncmp(a, b, length) == 0 && b[length] == '=';
}

/* The best first, and of several values of a key the best only. */
static void sort(struct advice_list *list)
{
    if (list->count > 1)
        qsort(list->items, (size_t)list->count, sizeof(*list->items), compare_items);
    int32_t kept = 0;
    for (int32_t i = 0; i < list->count; i++) {
        bool is_first = true;
        for (int32_t k = 0; k < kept; k++)
            is_first &= !is_same_key(list->items[k].texts[0], list->items[i].texts[0]);
        if (is_first)
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

struct advice *advice_find(struct arena *arena, const struct experiment *experiment,
                           const struct outcome *outcome, const char *path,
                           const char *const *overrides, int32_t override_count)
{
    struct adviser adviser = {.arena = arena,
                              .outcome = outcome,
                              .path = path,
                              .overrides = ARENA_ARRAY(arena, const char *, override_count + 4),
                              .advice = ARENA_NEW(arena, struct advice)};
    adviser.advice->did_fit = outcome->fits;
    for (int32_t i = 0; i < override_count; i++)
        adviser.overrides[i] = overrides[i];
    adviser.own_count = override_count;
    /* The answer is the same. */
    if (experiment->simulate.fold == 0)
        adviser.overrides[adviser.own_count++] = "simulate.fold=auto";
    const struct trial_list trials = trials_of(arena, experiment);
    for (int32_t i = 0; i < trials.count; i++)
        try_one(&adviser, &trials.items[i]);
    sort(&adviser.advice->settings);
    sort(&adviser.advice->hardware);
    return adviser.advice;
}
