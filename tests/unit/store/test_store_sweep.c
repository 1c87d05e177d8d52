/* unit/store/test_store_sweep.c: points of sweeps; files of the schema before there were any. */
#include <math.h>

#include "store/store_sweep.h"
#include "store_fixture.h"

static const struct store_sweep sweep_row = {
    .name = "mine", .definition = {7, 9}, .keys = "[\"nodes\"]", .point_count = 3};

static int64_t begin(struct fixture *fixture, struct store *store)
{
    int64_t id = 0;
    CHECK_INT(store_sweep_begin(store, &sweep_row, &id, &fixture->diag), STATUS_OK);
    return id;
}

static struct store_point point_of(const struct outcome *outcome, int64_t position)
{
    return (struct store_point){.position = position,
                                .settings = "{\"nodes\": \"4\"}",
                                .has_key = true,
                                .key = outcome->config_hash,
                                .state = POINT_DONE,
                                .outcome = outcome};
}

/* Two points with one key are one run; a rerun is another. */
static void test_one_run_a_key(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    struct store *store = fixture_open(&fixture, STORE_WRITE);
    const int64_t id = begin(&fixture, store);
    CHECK_INT(begin(&fixture, store), id);
    struct store_point points[] = {point_of(&fixture.outcome, 0), point_of(&fixture.outcome, 2)};
    CHECK_INT(store_sweep_write(store, id, points, 2, &fixture.diag), STATUS_OK);
    CHECK_INT(points[0].run_id, 1);
    CHECK_INT(points[1].run_id, 1);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM run"), 1);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM metric"), 0);
    points[1].is_new_run = points[1].has_detail = true;
    CHECK_INT(store_sweep_write(store, id, &points[1], 1, &fixture.diag), STATUS_OK);
    CHECK_INT(points[1].run_id, 2);
    CHECK_TRUE(sql_int(fixture.path, "SELECT count(*) FROM metric WHERE run_id = 2") > 0);
    int64_t found = 0;
    CHECK_INT(store_find_run(store, fixture.outcome.config_hash, &found, &fixture.diag), STATUS_OK);
    CHECK_INT(found, 2);
    CHECK_INT(store_find_run(store, (struct hash128){1, 2}, &found, &fixture.diag), STATUS_OK);
    CHECK_INT(found, 0);
    store_close(store);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM sweep_point"), 2);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM v_sweep WHERE position = 2 AND id = 2 AND"
                                    " step_time_s = 2.385 AND settings ->> 'nodes' = '4'"),
              1);
    fixture_release(&fixture);
}

static void test_failed_and_invalid(void)
{
    struct fixture fixture;
    const char *reason = NULL;
    fixture_init(&fixture);
    struct store *store = fixture_open(&fixture, STORE_WRITE);
    const int64_t id = begin(&fixture, store);
    struct store_point points[] = {
        {.position = 0, .settings = "{}", .state = POINT_INVALID, .reason = "no such key"},
        {.position = 1,
         .settings = "{}",
         .has_key = true,
         .key = {3, 4},
         .state = POINT_FAILED,
         .reason = "killed"}};
    CHECK_INT(store_sweep_write(store, id, points, 2, &fixture.diag), STATUS_OK);
    CHECK_INT(store_find_failure(store, &fixture.arena, points[1].key, &reason, &fixture.diag),
              STATUS_OK);
    CHECK_TEXT(reason, "killed");
    CHECK_INT(
        store_find_failure(store, &fixture.arena, (struct hash128){4, 3}, &reason, &fixture.diag),
        STATUS_OK);
    CHECK_TRUE(reason == NULL);
    store_close(store);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM sweep_point WHERE position = 0 AND"
                                    " state = 'invalid' AND reason = 'no such key' AND"
                                    " config_hash = '' AND run_id IS NULL"),
              1);
    CHECK_INT(sql_run(fixture.path, "UPDATE sweep_point SET state = 'lost'") != 0, 1);
    fixture_release(&fixture);
}

/* As version 1 left it: without sweeps, and without a metric that came later. */
static void make_old(struct fixture *fixture)
{
    fixture_fill(fixture, 2);
    CHECK_INT(
        sql_run(fixture->path,
                "DROP VIEW v_breakdown; DROP VIEW v_scaling; DROP VIEW v_sweep; DROP VIEW v_runs; "
                "DROP TABLE sweep_point;"
                "DROP TABLE sweep; DROP TABLE memory_unit; ALTER TABLE run DROP COLUMN peak_at;"
                "CREATE VIEW v_runs AS SELECT run.* FROM run;"
                "DELETE FROM meta WHERE table_name LIKE '%sweep%' OR table_name = 'memory_unit' OR "
                "column_name = 'peak_at';"
                "PRAGMA user_version = 1"),
        0);
}

/* As version 3 left it: no money, fewer views. */
static void test_previous_file(void)
{
    static const char *const later[] = {
        "tokens_per_day",   "cost_per_gpu_hour", "budget_tokens",           "budget_days",
        "budget_gpu_hours", "budget_cost",       "cost_per_billion_tokens", "goodput",
        "checkpoint_bytes"};
    struct fixture fixture;
    struct outcome outcome;
    const char *reason = NULL;
    fixture_init(&fixture);
    fixture_fill(&fixture, 1);
    CHECK_INT(
        sql_run(fixture.path,
                "DROP VIEW v_breakdown; DROP VIEW v_scaling; DROP VIEW v_sweep; DROP VIEW v_runs;"
                "PRAGMA user_version = 3;"),
        0);
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
        CHECK_INT(sql_run(fixture.path,
                          arena_printf(&fixture.arena, "ALTER TABLE run DROP COLUMN %s", later[i])),
                  0);
    struct store *store = fixture_open(&fixture, STORE_READ);
    CHECK_INT(store_load(store, &fixture.arena, 1, &outcome, NULL, &fixture.diag), STATUS_OK);
    CHECK_NEAR(outcome.step_time_s, 2.385, 0);
    CHECK_TRUE(isnan(outcome.budget_cost) && isnan(outcome.tokens_per_day));
    CHECK_INT(store_find_failure(store, &fixture.arena, point_of(&fixture.outcome, 0).key, &reason,
                                 &fixture.diag),
              STATUS_OK);
    CHECK_TRUE(reason == NULL);
    store_close(store);
    store = fixture_open(&fixture, STORE_WRITE);
    CHECK_INT(fixture_add(&fixture, store, 1), STATUS_OK);
    store_close(store);
    CHECK_INT(sql_int(fixture.path, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM v_runs WHERE budget_tokens IS NULL"), 1);
    CHECK_INT(sql_int(fixture.path, "SELECT id FROM v_runs WHERE budget_tokens = 15e12"), 2);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM v_sweep"), 0);
    fixture_release(&fixture);
}

static void test_old_file(void)
{
    struct fixture fixture;
    struct outcome outcome;
    int64_t id = 0;
    fixture_init(&fixture);
    make_old(&fixture);
    struct store *store = fixture_open(&fixture, STORE_READ);
    CHECK_INT(store_load(store, &fixture.arena, 2, &outcome, NULL, &fixture.diag), STATUS_OK);
    CHECK_NEAR(outcome.step_time_s, 2.385, 0);
    CHECK_TRUE(outcome.peak_at == NULL);
    CHECK_INT(outcome.unit_count, fixture.outcome.unit_count);
    store_close(store);
    CHECK_INT(sql_int(fixture.path, "PRAGMA user_version"), 1);

    store = fixture_open(&fixture, STORE_WRITE);
    struct store_point point = point_of(&fixture.outcome, 0);
    CHECK_INT(store_sweep_begin(store, &sweep_row, &id, &fixture.diag), STATUS_OK);
    CHECK_INT(store_sweep_write(store, id, &point, 1, &fixture.diag), STATUS_OK);
    CHECK_INT(point.run_id, 2);
    CHECK_INT(fixture_add(&fixture, store, 1), STATUS_OK);
    store_close(store);
    CHECK_INT(sql_int(fixture.path, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM v_runs WHERE peak_at IS NULL"), 2);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM v_runs"), 3);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM sqlite_schema AS t,"
                                    " pragma_table_info(t.name) AS c LEFT JOIN meta ON"
                                    " table_name = t.name AND column_name = c.name WHERE t.type IN"
                                    " ('table', 'view') AND meta.unit IS NULL"),
              0);
    CHECK_INT(sql_int(fixture.path, "SELECT quick_check = 'ok' FROM pragma_quick_check"), 1);
    fixture_release(&fixture);
}

const struct check_case store_sweep_cases[] = {
    {"a run for each key", test_one_run_a_key},
    {"points without a run", test_failed_and_invalid},
    {"a file of schema 1", test_old_file},
    {"a file of schema 3", test_previous_file},
    {0},
};
