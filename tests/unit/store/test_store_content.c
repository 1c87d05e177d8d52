/* unit/store/test_store_content.c: round trip, schema, units, values that are refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"
#include "store_fixture.h"

/* As JSON (which has every number), for comparing whole outcomes; the caller frees. */
static char *json_of(const struct outcome *outcome)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    report_json(outcome, file);
    fclose(file);
    return text;
}

static void check_equal(const struct outcome *obtained, const struct outcome *expected)
{
    char *obtained_text = json_of(obtained), *expected_text = json_of(expected);
    CHECK_TEXT(obtained_text, expected_text);
    free(obtained_text);
    free(expected_text);
    CHECK_U64(obtained->config_hash.high, expected->config_hash.high);
    CHECK_U64(obtained->config_hash.low, expected->config_hash.low);
    /* In the order of the configuration, not of the keys. */
    if (!CHECK_INT(obtained->origin_count, expected->origin_count))
        return;
    for (int32_t i = 0; i < expected->origin_count; i++) {
        CHECK_TEXT(obtained->origins[i].path, expected->origins[i].path);
        CHECK_TEXT(obtained->origins[i].value, expected->origins[i].value);
        CHECK_TEXT(obtained->origins[i].origin, expected->origins[i].origin);
    }
}

static void test_round_trip(void)
{
    struct fixture fixture;
    struct outcome bare, obtained;
    int64_t ids[2] = {0};
    const char *created = NULL;
    fixture_init(&fixture);
    /* Nothing in its lists, no texts, an odd double, the largest integer. */
    bare = fixture.outcome;
    bare.unit_count = bare.collective_count = bare.link_count = 0;
    bare.origin_count = bare.warning_count = 0;
    bare.peak_at = NULL;
    bare.mfu = (double)NAN;
    bare.fits = false;
    bare.idle_s = 0.1 + 0.2;
    bare.events = INT64_MAX;
    bare.fingerprint = UINT64_MAX;
    const struct outcome *const list[] = {&fixture.outcome, &bare};

    struct store *store = fixture_open(&fixture, STORE_WRITE);
    CHECK_INT(store_add_runs(store, list, 2, ids, &fixture.diag), STATUS_OK);
    CHECK_INT(ids[0], 1);
    CHECK_INT(ids[1], 2);
    store_close(store);

    store = fixture_open(&fixture, STORE_READ);
    CHECK_INT(store_load(store, &fixture.arena, 1, &obtained, &created, &fixture.diag), STATUS_OK);
    check_equal(&obtained, &fixture.outcome);
    CHECK_TRUE(created != NULL && strlen(created) == 20 && created[10] == 'T' &&
               created[19] == 'Z');
    CHECK_INT(store_load(store, &fixture.arena, 2, &obtained, NULL, &fixture.diag), STATUS_OK);
    check_equal(&obtained, &bare);
    CHECK_TRUE(isnan(obtained.mfu));
    CHECK_TRUE(obtained.peak_at == NULL);
    store_close(store);
    fixture_release(&fixture);
}

static void test_list(void)
{
    struct fixture fixture;
    struct store_run_list list;
    fixture_init(&fixture);
    fixture_fill(&fixture, 2);
    struct store *store = fixture_open(&fixture, STORE_WRITE);
    fixture.outcome.mfu = (double)NAN;
    fixture.outcome.fits = false;
    CHECK_INT(fixture_add(&fixture, store, 1), STATUS_OK);
    CHECK_INT(store_list(store, &fixture.arena, &list, &fixture.diag), STATUS_OK);
    if (CHECK_INT(list.count, 3)) {
        CHECK_INT(list.items[0].id, 1);
        CHECK_TEXT(list.items[0].config_name, "made-up");
        CHECK_TEXT(list.items[0].cluster, "dgx-h100");
        CHECK_NEAR(list.items[0].step_time_s, 2.385, 0);
        CHECK_NEAR(list.items[0].mfu, 0.4375, 0);
        CHECK_TRUE(list.items[0].fits);
        CHECK_INT(list.items[2].id, 3);
        CHECK_TRUE(isnan(list.items[2].mfu));
        CHECK_TRUE(!list.items[2].fits);
        CHECK_INT(list.items[2].peak_device_bytes, INT64_C(76504104960));
    }
    store_close(store);
    fixture_release(&fixture);
}

static void test_missing_run(void)
{
    struct fixture fixture;
    struct outcome obtained;
    fixture_init(&fixture);
    struct store *store = fixture_open(&fixture, STORE_WRITE);
    CHECK_INT(store_load(store, &fixture.arena, 7, &obtained, NULL, &fixture.diag), STATUS_INPUT);
    CHECK_CONTAINS(fixture_message(&fixture), "no run 7 in '");
    CHECK_TEXT(fixture.diag.items[0].hint, "it holds no runs yet");
    CHECK_INT(fixture_add(&fixture, store, 23), STATUS_OK);
    CHECK_INT(store_load(store, &fixture.arena, 24, &obtained, NULL, &fixture.diag), STATUS_INPUT);
    CHECK_TEXT(fixture.diag.items[1].hint, "runs are numbered 1 to 23");
    store_close(store);

    /* Removing a run takes its rows along where foreign keys are on. */
    CHECK_INT(sql_run(fixture.path, "PRAGMA foreign_keys = ON; DELETE FROM run WHERE id = 3"), 0);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM unit_time"), 22 * 3);
    store = fixture_open(&fixture, STORE_READ);
    CHECK_INT(store_load(store, &fixture.arena, 3, &obtained, NULL, &fixture.diag), STATUS_INPUT);
    CHECK_TEXT(fixture.diag.items[2].hint,
               "runs: 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21 and"
               " 2 more, up to 23");
    store_close(store);
    fixture_release(&fixture);
}

static void test_schema(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_fill(&fixture, 1);
    const char *path = fixture.path;
    CHECK_INT(sql_int(path, "PRAGMA application_id"), 0x66736470);
    CHECK_INT(sql_int(path, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
    CHECK_INT(sql_int(path, "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND"
                            " type = 'table' AND name NOT LIKE 'sqlite%' AND NOT strict"),
              0);
    CHECK_INT(sql_int(path, "SELECT count(*) FROM sqlite_schema WHERE type = 'table'"), 15);
    /* Only what may be undefined may be NULL. */
    CHECK_INT(sql_int(path,
                      "SELECT count(*) FROM sqlite_schema AS t, pragma_table_info(t.name) AS"
                      " c WHERE t.type = 'table' AND NOT c.\"notnull\" AND c.name <> 'run_id'"),
              11 + 11); /* of run; of validation_row */
    CHECK_INT(sql_int(path, "SELECT count(*) FROM pragma_table_info('run') WHERE NOT \"notnull\""
                            " AND (name IN ('mfu', 'hfu', 'tflops_per_gpu', 'goodput', "
                            "'tokens_per_day') OR name LIKE"
                            " 'budget_%' OR name LIKE 'cost_%')"),
              11);
    /* Every column of every table and view has a unit and a meaning, and no other is described. */
    CHECK_INT(sql_int(path, "SELECT count(*) FROM sqlite_schema AS t, pragma_table_info(t.name) AS"
                            " c LEFT JOIN meta ON table_name = t.name AND column_name = c.name"
                            " WHERE t.type IN ('table', 'view') AND (meta.unit IS NULL OR"
                            " meta.unit = '' OR meta.help = '')"),
              0);
    CHECK_INT(sql_int(path, "SELECT (SELECT count(*) FROM sqlite_schema AS t,"
                            " pragma_table_info(t.name) WHERE t.type IN ('table', 'view')) -"
                            " (SELECT count(*) FROM meta)"),
              0);
    fixture_release(&fixture);
}

static void test_values(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_fill(&fixture, 1);
    const char *path = fixture.path;
    /* 68 scalars, 12 of them texts; HFU and goodput are undefined and have no row; the interval
       has three. */
    CHECK_INT(sql_int(path, "SELECT count(*) FROM metric"), 68 - 12 - 2 + 3);
    CHECK_INT(sql_int(path, "SELECT count(*) FROM metric WHERE name = 'step_time_s.p95' AND"
                            " value = 2.515 AND unit = 's'"),
              1);
    CHECK_INT(sql_int(path, "SELECT count(*) FROM sample_interval WHERE metric = 'step_time_s' AND"
                            " p05 = 2.3 AND p50 = 2.385"),
              1);
    CHECK_INT(sql_int(path, "SELECT count(*) FROM metric WHERE name = 'step_time_s' AND"
                            " value = 2.385 AND unit = 's'"),
              1);
    CHECK_INT(sql_int(path, "SELECT count(*) FROM run WHERE hfu IS NULL AND mfu = 0.4375 AND"
                            " fits = 1 AND fingerprint = '0123456789abcdef' AND"
                            " config_hash = '00000000deadbeeffedcba9876543210'"),
              1);
    CHECK_INT(sql_int(path, "SELECT count(*) FROM v_runs WHERE seq_len = 8192 AND"
                            " reshard_after_forward = 'true' AND typeof(dp_shard) = 'integer' AND"
                            " dp_shard = -1 AND tp IS NULL"),
              1);
    /* The link's own bandwidth, unless the host's cards were given another. */
    CHECK_INT(sql_run(path, "INSERT INTO run_config VALUES"
                            " (1, 3, 'cluster.host.nics.link.bandwidth', '50 GB/s', 'x')"),
              0);
    CHECK_INT(sql_int(path, "SELECT nic_bandwidth = '50 GB/s' FROM v_runs"), 1);
    CHECK_INT(sql_run(path, "INSERT INTO run_config VALUES"
                            " (1, 4, 'cluster.host.nics.bandwidth', '12.5 GB/s', 'x')"),
              0);
    CHECK_INT(sql_int(path, "SELECT nic_bandwidth = '12.5 GB/s' FROM v_runs"), 1);
    CHECK_INT(sql_int(path, "SELECT sum(bytes) = (SELECT peak_device_bytes FROM run) FROM"
                            " memory_peak"),
              1);
    CHECK_INT(sql_int(path, "SELECT origin = '<command line>' FROM run_config WHERE"
                            " key = 'mesh.dp_shard'"),
              1);
    CHECK_TRUE(sql_run(path, "UPDATE run SET step_time_s = 9e999") != 0);
    CHECK_TRUE(sql_run(path, "UPDATE run SET step_time_s = -9e999") != 0);
    CHECK_TRUE(sql_run(path, "UPDATE run SET step_time_s = NULL") != 0);
    CHECK_TRUE(sql_run(path, "UPDATE run SET step_time_s = 'fast'") != 0);
    CHECK_TRUE(sql_run(path, "UPDATE run SET fits = 2") != 0);
    CHECK_TRUE(sql_run(path, "UPDATE metric SET value = 9e999") != 0);
    CHECK_TRUE(sql_run(path, "PRAGMA foreign_keys = ON;"
                             "INSERT INTO warning VALUES (17, 0, 'no such run')") != 0);
    CHECK_INT(sql_run(path, "UPDATE run SET step_time_s = 2.385e300"), 0);
    fixture_release(&fixture);
}

/* One bad outcome: the whole batch is not stored, and the message names the value. */
static void test_refused_values(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_fill(&fixture, 1);
    struct store *store = fixture_open(&fixture, STORE_WRITE);
    struct outcome bad = fixture.outcome;
    const struct outcome *const list[] = {&fixture.outcome, &bad};
    bad.exposed_comm_s = (double)INFINITY;
    CHECK_INT(store_add_runs(store, list, 2, NULL, &fixture.diag), STATUS_WORLD);
    CHECK_CONTAINS(fixture_message(&fixture), "exposed_comm_s is finite");
    bad = fixture.outcome;
    bad.step_time_s = (double)NAN;
    CHECK_INT(store_add_runs(store, list, 2, NULL, &fixture.diag), STATUS_WORLD);
    CHECK_CONTAINS(fixture_message(&fixture), "run.step_time_s");
    bad = fixture.outcome;
    bad.links[0].busy_frac = (double)NAN;
    CHECK_INT(store_add_runs(store, list, 2, NULL, &fixture.diag), STATUS_WORLD);
    CHECK_CONTAINS(fixture_message(&fixture), "link_use.busy_frac");
    bad.links[0].busy_frac = 0.3125;
    /* The store still works. */
    CHECK_INT(store_add_runs(store, list, 2, NULL, &fixture.diag), STATUS_OK);
    store_close(store);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM run"), 3);
    fixture_release(&fixture);
}

static bool exists(struct fixture *fixture, const char *suffix)
{
    return access(arena_printf(&fixture->arena, "%s%s", fixture->path, suffix), F_OK) == 0;
}

static void test_stands_alone(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    struct store *store = fixture_open(&fixture, STORE_WRITE);
    CHECK_INT(fixture_add(&fixture, store, 3), STATUS_OK);
    CHECK_TRUE(!store_is_local(fixture.path) || exists(&fixture, "-wal"));
    store_close(store);
    CHECK_TRUE(!exists(&fixture, "-wal") && !exists(&fixture, "-shm") &&
               !exists(&fixture, "-journal"));
    store = fixture_open(&fixture, STORE_READ);
    struct store_run_list list;
    CHECK_INT(store_list(store, &fixture.arena, &list, &fixture.diag), STATUS_OK);
    CHECK_INT(list.count, 3);
    store_close(store);
    CHECK_TRUE(!exists(&fixture, "-wal") && !exists(&fixture, "-shm"));
    store_close(NULL);
    fixture_release(&fixture);
}

const struct check_case store_content_cases[] = {
    {"round trip", test_round_trip},
    {"list", test_list},
    {"missing run", test_missing_run},
    {"schema and meta", test_schema},
    {"values", test_values},
    {"NaN and infinity are refused", test_refused_values},
    {"file stands alone after closing", test_stands_alone},
    {0}};
