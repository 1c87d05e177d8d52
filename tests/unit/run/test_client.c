/* tests/unit/run/test_client.c: the C interface, used as a stranger would. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "run/fsdpsim.h"
#include "run_tests.h"

#define UNITS_3 FSDPSIM_SOURCE_DIR "/configs/worked-examples/units-3.yaml"
#define E_SIMULATED FSDPSIM_SOURCE_DIR "/configs/worked-examples/e-simulated.yaml"

static double metric(const struct fsdpsim *sim, const char *name)
{
    double value = -1;
    check_context("%s", name);
    CHECK_INT(fsdpsim_metric(sim, name, &value), 1);
    check_context(NULL);
    return value;
}

static struct fsdpsim *new_sim(void)
{
    setenv("FSDPSIM_DATA", FSDPSIM_SOURCE_DIR, 0);
    return fsdpsim_new();
}

static void test_by_name(void)
{
    struct fsdpsim *sim = new_sim();
    const char *overrides[] = {"nodes=4"};
    CHECK_INT(fsdpsim_load(sim, "llama3-8b_dgx-h100", overrides, 1), FSDPSIM_OK);
    CHECK_INT(fsdpsim_run(sim), FSDPSIM_OK);
    CHECK_NEAR(metric(sim, "n_gpus"), 32, 1e-15);
    CHECK_TRUE(metric(sim, "step_time_s") > 0);
    CHECK_NEAR(metric(sim, "fits"), 1, 1e-15);
    CHECK_TEXT(fsdpsim_text(sim, "cluster"), "dgx-h100");
    CHECK_TRUE(fsdpsim_text(sim, "bottleneck") != NULL);
    fsdpsim_free(sim);
}

static void test_no_such_metric(void)
{
    struct fsdpsim *sim = new_sim();
    double value = 2.385;
    CHECK_INT(fsdpsim_load(sim, UNITS_3, NULL, 0), FSDPSIM_OK);
    /* Nothing ran. */
    CHECK_INT(fsdpsim_metric(sim, "step_time_s", &value), 0);
    CHECK_TRUE(fsdpsim_text(sim, "cluster") == NULL);
    CHECK_INT(fsdpsim_run(sim), FSDPSIM_OK);
    CHECK_INT(fsdpsim_metric(sim, "step_time", &value), 0);
    CHECK_INT(fsdpsim_metric(sim, "bottleneck", &value), 0);
    CHECK_TRUE(fsdpsim_text(sim, "step_time_s") == NULL);
    CHECK_TRUE(fsdpsim_text(sim, "nonsense") == NULL);
    CHECK_NEAR(value, 2.385, 1e-15);
    fsdpsim_free(sim);
}

static void test_metric_names(void)
{
    int count = 0;
    while (fsdpsim_metric_name(count) != NULL) {
        CHECK_TRUE(outcome_metric(fsdpsim_metric_name(count)) != NULL);
        count++;
    }
    CHECK_TRUE(count > 30);
    CHECK_TRUE(fsdpsim_metric_name(-1) == NULL);
    CHECK_TRUE(fsdpsim_metric_name(count + 1000) == NULL);
}

static void test_errors(void)
{
    struct fsdpsim *sim = new_sim();
    CHECK_TEXT(fsdpsim_messages(sim), "");
    CHECK_INT(fsdpsim_run(sim), FSDPSIM_INPUT);
    CHECK_CONTAINS(fsdpsim_messages(sim), "nothing to run");
    CHECK_INT(fsdpsim_load(sim, "no-such-config", NULL, 0), FSDPSIM_WORLD);
    CHECK_CONTAINS(fsdpsim_messages(sim), "no-such-config");
    CHECK_INT(fsdpsim_run(sim), FSDPSIM_INPUT);
    CHECK_INT(fsdpsim_load(sim, "/nowhere/at/all.yaml", NULL, 0), FSDPSIM_WORLD);
    const char *wrong[] = {"nodes=two", "fsdp.wrapp=block"};
    CHECK_INT(fsdpsim_load(sim, "llama3-8b_dgx-h100", wrong, 2), FSDPSIM_INPUT);
    CHECK_CONTAINS(fsdpsim_messages(sim), "'wrapp'");
    CHECK_CONTAINS(fsdpsim_messages(sim), "nodes");
    CHECK_TRUE(strstr(fsdpsim_messages(sim), "nowhere") == NULL);
    double value = 0;
    CHECK_INT(fsdpsim_metric(sim, "step_time_s", &value), 0);
    fsdpsim_free(sim);
    fsdpsim_free(NULL);
}

/* A handle is used again; what failed before leaves nothing behind. */
static void test_again(void)
{
    struct fsdpsim *sim = new_sim();
    const char *wrong[] = {"nodes=7"};
    CHECK_INT(fsdpsim_load(sim, UNITS_3, wrong, 1), FSDPSIM_INPUT);
    CHECK_INT(fsdpsim_load(sim, UNITS_3, NULL, 0), FSDPSIM_OK);
    CHECK_INT(fsdpsim_run(sim), FSDPSIM_OK);
    CHECK_NEAR(metric(sim, "step_time_s"), 0.245, 1e-12);
    const double events = metric(sim, "events");
    CHECK_INT(fsdpsim_run(sim), FSDPSIM_OK);
    CHECK_NEAR(metric(sim, "step_time_s"), 0.245, 1e-12);
    CHECK_NEAR(metric(sim, "events"), events, 1e-15);
    CHECK_INT(fsdpsim_load(sim, E_SIMULATED, NULL, 0), FSDPSIM_OK);
    double value = 0;
    CHECK_INT(fsdpsim_metric(sim, "step_time_s", &value), 0);
    CHECK_INT(fsdpsim_run(sim), FSDPSIM_OK);
    CHECK_NEAR(metric(sim, "step_time_s"), 0.210, 1e-12);
    fsdpsim_free(sim);
}

static void test_two_handles(void)
{
    struct fsdpsim *a = new_sim(), *b = new_sim();
    CHECK_INT(fsdpsim_load(a, UNITS_3, NULL, 0), FSDPSIM_OK);
    CHECK_INT(fsdpsim_load(b, E_SIMULATED, NULL, 0), FSDPSIM_OK);
    CHECK_INT(fsdpsim_run(b), FSDPSIM_OK);
    CHECK_INT(fsdpsim_run(a), FSDPSIM_OK);
    CHECK_NEAR(metric(a, "step_time_s"), 0.245, 1e-12);
    CHECK_NEAR(metric(b, "step_time_s"), 0.210, 1e-12);
    fsdpsim_free(a);
    CHECK_NEAR(metric(b, "step_time_s"), 0.210, 1e-12);
    CHECK_TEXT(fsdpsim_text(b, "model"), "1.3b");
    fsdpsim_free(b);
}

/* A run that is refused only when played. */
static void test_run_refused(void)
{
    struct fsdpsim *sim = new_sim();
    const char *overrides[] = {"gpus_per_node=1",
                               "model.units=[{parameters: 1000, forward: 0 s, backward: 0 s}]"};
    CHECK_INT(fsdpsim_load(sim, UNITS_3, overrides, 2), FSDPSIM_OK);
    CHECK_INT(fsdpsim_run(sim), FSDPSIM_INPUT);
    CHECK_CONTAINS(fsdpsim_messages(sim), "the step does no work");
    fsdpsim_free(sim);
}

/* A NULL or negative argument is refused, and says so. */
static void test_null_arguments(void)
{
    struct fsdpsim *sim = new_sim();
    const char *fine[] = {"nodes=1"}, *holed[] = {"nodes=1", NULL};
    const struct {
        const char *path;
        const char *const *overrides;
        int count;
        const char *said;
    } rows[] = {
        {NULL, NULL, 0, "the path is NULL"},
        {NULL, fine, 1, "the path is NULL"},
        {UNITS_3, fine, -1, "-1 overrides"},
        {UNITS_3, NULL, -2147483647 - 1, "-2147483648 overrides"},
        {UNITS_3, NULL, 1, "the overrides are NULL"},
        {UNITS_3, holed, 2, "override 1 is NULL"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("row %d", (int)i);
        CHECK_INT(fsdpsim_load(sim, UNITS_3, NULL, 0), FSDPSIM_OK);
        CHECK_INT(fsdpsim_load(sim, rows[i].path, rows[i].overrides, rows[i].count), FSDPSIM_INPUT);
        CHECK_CONTAINS(fsdpsim_messages(sim), rows[i].said);
        /* The earlier configuration is dropped. */
        CHECK_INT(fsdpsim_run(sim), FSDPSIM_INPUT);
    }
    check_context(NULL);
    CHECK_INT(fsdpsim_load(sim, UNITS_3, fine, 0), FSDPSIM_OK);
    CHECK_INT(fsdpsim_run(sim), FSDPSIM_OK);
    double value = 2.385;
    CHECK_INT(fsdpsim_metric(sim, NULL, &value), 0);
    CHECK_INT(fsdpsim_metric(sim, "step_time_s", NULL), 0);
    CHECK_TRUE(fsdpsim_text(sim, NULL) == NULL);

    CHECK_INT(fsdpsim_load(NULL, UNITS_3, NULL, 0), FSDPSIM_INPUT);
    CHECK_INT(fsdpsim_run(NULL), FSDPSIM_INPUT);
    CHECK_INT(fsdpsim_metric(NULL, "step_time_s", &value), 0);
    CHECK_TRUE(fsdpsim_text(NULL, "cluster") == NULL);
    CHECK_CONTAINS(fsdpsim_messages(NULL), "NULL");
    CHECK_NEAR(value, 2.385, 1e-15);
    fsdpsim_free(sim);
}

static void test_version(void)
{
    const char *version = fsdpsim_version();
    CHECK_TRUE(version != NULL && version[0] >= '0' && version[0] <= '9');
    CHECK_CONTAINS(version, ".");
}

const struct check_case client_cases[] = {{"by name", test_by_name},
                                          {"no such metric", test_no_such_metric},
                                          {"names of metrics", test_metric_names},
                                          {"errors", test_errors},
                                          {"a handle used again", test_again},
                                          {"two handles at once", test_two_handles},
                                          {"refused when played", test_run_refused},
                                          {"NULL arguments", test_null_arguments},
                                          {"version", test_version},
                                          {0}};
