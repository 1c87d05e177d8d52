/* unit/store/test_store_validation.c: validations, and what a run does not have. */
#include <math.h>

#include "store/store_validation.h"
#include "store_fixture.h"

#define NOTHING (double)NAN

static const struct store_validation head = {
    .csv = "mine.csv", .overrides = "train.compile=true", .rows = 2, .in_scope = 1};

/* A run with a step time alone, and one that is out of scope. */
static const struct store_validation_row rows[] = {{.line = 2,
                                                    .n_gpus = 8,
                                                    .label = "TT-001",
                                                    .source = "lab's",
                                                    .in_scope = true,
                                                    .is_scored = true,
                                                    .measured_step_time_s = 2.843,
                                                    .predicted_step_time_s = 2.963,
                                                    .step_time_error = 0.0422,
                                                    .step_time_p5_s = 2.7,
                                                    .step_time_p95_s = 3.2,
                                                    .measured_memory_bytes = NOTHING,
                                                    .predicted_memory_bytes = NOTHING,
                                                    .memory_error = NOTHING,
                                                    .measured_mfu = NOTHING,
                                                    .predicted_mfu = NOTHING,
                                                    .mfu_error = NOTHING},
                                                   {.line = 3,
                                                    .n_gpus = 64,
                                                    .label = "b",
                                                    .reason = "no GPU stated",
                                                    .measured_step_time_s = NOTHING,
                                                    .predicted_step_time_s = NOTHING,
                                                    .step_time_error = NOTHING,
                                                    .step_time_p5_s = NOTHING,
                                                    .step_time_p95_s = NOTHING,
                                                    .measured_memory_bytes = NOTHING,
                                                    .predicted_memory_bytes = NOTHING,
                                                    .memory_error = NOTHING,
                                                    .measured_mfu = NOTHING,
                                                    .predicted_mfu = NOTHING,
                                                    .mfu_error = NOTHING}};

static void test_rows(void)
{
    struct fixture fixture;
    fixture_init(&fixture);
    struct store *store = fixture_open(&fixture, STORE_WRITE);
    int64_t id = 0;
    CHECK_INT(store_add_validation(store, &head, rows, 2, &id, &fixture.diag), STATUS_OK);
    CHECK_INT(id, 1);
    CHECK_INT(store_add_validation(store, &head, rows, 1, &id, &fixture.diag), STATUS_OK);
    CHECK_INT(id, 2);
    store_close(store);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM validation_row"), 3);
    CHECK_INT(sql_int(fixture.path,
                      "SELECT count(*) FROM validation_row WHERE validation_id = 1 AND"
                      " position = 0 AND id = 'TT-001' AND step_time_error = 0.0422"
                      " AND measured_mfu IS NULL AND source = 'lab''s'"),
              1);
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM validation_row WHERE in_scope = 0 AND"
                                    " reason = 'no GPU stated' AND predicted_step_time_s IS NULL"),
              1);
    CHECK_INT(sql_int(fixture.path, "SELECT in_scope FROM validation WHERE id = 1"), 1);
    /* Every column has its unit. */
    CHECK_INT(sql_int(fixture.path, "SELECT count(*) FROM pragma_table_info('validation_row') WHERE"
                                    " name NOT IN (SELECT column_name FROM meta WHERE table_name ="
                                    " 'validation_row')"),
              0);
    fixture_release(&fixture);
}

const struct check_case store_validation_cases[] = {{"rows", test_rows}, {NULL, NULL}};
