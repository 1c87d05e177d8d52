/*
 * tests/property/run/test_cache.c: an experiment that is loaded with what others had in common is
 * the one that is loaded alone: values, origins, places, messages, hash and outcome.
 */
#include <string.h>

#include "base/strbuf.h"
#include "property_tests.h"
#include "run/experiment.h"

enum { OVERRIDES_MAX = 4 };

static const char *const settings[][OVERRIDES_MAX] = {
    {"nodes=1"},
    {"nodes=2", "cluster.host.nics.bandwidth=100Gbps"},
    {"cluster.host.nics.bandwidth=100Gbps", "nodes=3"},
    {"nodes=2", "cluster.host.nics.bandwidth=25Gbps"},
    {"nodes=2", "cluster.host.nics.bandwidth=25GB/s"},
    {"cluster=dgx-a100", "nodes=2"},
    {"cluster=dgx-a100", "nodes=2", "cluster.host.gpu.memory=40 GiB"},
    {"cluster.host.gpu=a100-sxm4-80gb", "nodes=2"},
    {"model=llama-3.2-1b", "nodes=1"},
    {"model=llama-3.2-1b", "model.num_hidden_layers=4"},
    {"model=llama-3.2-1b", "model.num_hidden_layers=3"},
    {"nodes=2", "cluster.overrides=[{host: 1, gpu: 2, clock_frac: 0.8}]"},
    {"nodes=2", "cluster.overrides=[{host: 0, gpu: 2, clock_frac: 0.8}]"},
    /* With something to say. */
    {"cluster.overrides=[{host: 9, gpu: 2, clock_frac: 0.8}]"},
    {"cluster.host.nics.bandwidth=100Gb"},
    {"cluster.host.nisc.count=1"},
    {"cluster=no-such-cluster"},
    {"model.hidden_size=7"},
};
enum { SETTING_COUNT = sizeof(settings) / sizeof(settings[0]) };

struct view { /* all that a user can see of an experiment, in one text */
    struct arena arena;
    const char *text;
};

static void add_origins(struct strbuf *text, const struct experiment *experiment)
{
    for (int32_t i = 0; i < experiment->config.origins.count; i++) {
        const struct config_origin *one = &experiment->config.origins.items[i];
        strbuf_printf(text, "%s = %s (%s) %d:%d\n", one->path, one->value, one->origin,
                      (int)one->place.line, (int)one->place.column);
    }
}

static void look(struct view *view, const char *const *overrides, struct config_cache *cache)
{
    struct diag diag;
    struct experiment experiment = {0};
    struct outcome outcome = {0};
    struct strbuf text = {0};
    char hash[33];
    int32_t count = 0;
    diag_init(&diag, &view->arena);
    while (count < OVERRIDES_MAX && overrides[count] != NULL)
        count++;
    enum status status =
        experiment_load_cached(&experiment, "llama3-8b_dgx-h100", overrides, count, cache, &diag);
    add_origins(&text, &experiment);
    if (status == STATUS_OK) {
        const struct place place = config_place(&experiment.config, "cluster.host.nics.bandwidth");
        hash128_format(experiment_key(&experiment), hash);
        strbuf_printf(&text, "%s %s:%d\n", hash, place.source != NULL ? place.source->name : "",
                      (int)place.column);
        status = experiment_build(&experiment);
    }
    if (status == STATUS_OK)
        status = experiment_play(&experiment, &outcome);
    strbuf_printf(&text, "%d %.17g %.17g %llu\n%s", (int)status, outcome.step_time_s,
                  (double)outcome.peak_device_bytes, (unsigned long long)outcome.fingerprint,
                  diag_text(&diag, &view->arena));
    view->text = arena_strdup(&view->arena, text.text);
    strbuf_release(&text);
    experiment_release(&experiment);
}

/* Twice, forwards and backwards, so that each meets what the others left. */
static void test_shared(void)
{
    struct config_cache cache = {0};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SETTING_COUNT; i++) {
            const int at = round % 2 == 0 ? i : SETTING_COUNT - 1 - i;
            struct view alone = {0};
            struct view shared = {0};
            check_context("%s %s", settings[at][0], settings[at][1] != NULL ? settings[at][1] : "");
            look(&alone, settings[at], NULL);
            look(&shared, settings[at], &cache);
            CHECK_TEXT(shared.text, alone.text);
            arena_release(&alone.arena);
            arena_release(&shared.arena);
        }
    }
    check_context(NULL);
    config_cache_release(&cache);
}

const struct check_case cache_cases[] = {
    {"with a cache as without", test_shared},
    {0},
};
