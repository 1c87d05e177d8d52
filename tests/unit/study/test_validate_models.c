/*
 * tests/unit/study/test_validate_models.c: models of given kernels on a machine of round numbers
 * beside times by hand; what is out of scope; what is refused.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "study/validate_models.h"
#include "study_tests.h"

#define HEADER "gpu,model,mode,seq,batch,variant,bwall_latency,e2e_latency,fw_latency\n"

static void write_file(char *path, const char *text)
{
    const int file = mkstemp(path);
    CHECK_TRUE(file >= 0);
    FILE *stream = fdopen(file, "w");
    fputs(text, stream);
    fclose(stream);
}

/* `%s` in the table stands for the path of the model. */
static enum status play(struct arena *arena, const char *model_text, const char *rows,
                        struct model_validation *validation, struct diag *diag)
{
    char model[] = "/tmp/fsdpsim-model-XXXXXX";
    char table[] = "/tmp/fsdpsim-models-XXXXXX";
    write_file(model, model_text);
    char *text = arena_printf(arena, HEADER "ideal-gpu,%s,%s", model, rows);
    write_file(table, text);
    diag_init(diag, arena);
    const enum status status = model_validation_run(arena, table, validation, diag);
    unlink(model);
    unlink(table);
    return status;
}

/*
 * Two units of 10 ms forward and 20 ms backward: 20 and 40 ms, plus the issue of the first kernel
 * (some 20 us); ideal-gpu moves 1000 TB/s, so adding 250 M gradients (12 bytes each) takes 3 us a
 * unit. Measured 16, 50 and in all 66 ms: +25 %, -20 %, 60 / 66 - 1 = -9.09 %.
 */
static void test_gpu_bound(void)
{
    static const char model[] = "family: abstract\n"
                                "units:\n"
                                "  - {repeat: 2, parameters: 250000000, forward: 10 ms,"
                                " backward: 20 ms}\n";
    struct arena arena = {0};
    struct diag diag;
    struct model_validation validation;
    CHECK_INT(play(&arena, model,
                   "train,128,2,,50,66,16\n"
                   "z9000,gpt2,train,128,2,,50,66,16\n"
                   "ideal-gpu,no-such-model,train,128,2,,50,66,16\n"
                   "ideal-gpu,gpt2,inf,128,2,,0,16,16\n"
                   "ideal-gpu,gpt2,train,128,2,dp4,0,16,0\n",
                   &validation, &diag),
              STATUS_OK);
    CHECK_TEXT(diag_text(&diag, &arena), "");
    CHECK_INT(validation.in_scope, 1);
    if (CHECK_INT(validation.rows.count, 5)) {
        const struct validate_pair *pairs = validation.rows.items[0].pairs;
        CHECK_NEAR(pairs[MODEL_FORWARD].predicted, 0.020, 0.002);
        CHECK_NEAR(pairs[MODEL_BACKWARD].predicted, 0.040, 0.002);
        CHECK_TRUE(pairs[MODEL_BACKWARD].predicted > 0.040006);
        CHECK_NEAR(pairs[MODEL_FORWARD].error, 0.25, 0.02);
        CHECK_NEAR(pairs[MODEL_BACKWARD].error, -0.20, 0.02);
        CHECK_NEAR(pairs[MODEL_TOTAL].error, -0.0909, 0.02);
        CHECK_TRUE(validation.rows.items[0].starved_frac < 0.002);
    }
    CHECK_INT(validation.exclusions.count, 4);
    CHECK_INT(validation.by_gpu.count, 1);
    CHECK_INT(validation.by_model.count, 1);
    CHECK_NEAR(validation.all.scores[MODEL_FORWARD].bias, 0.25, 0.02);
    arena_release(&arena);
}

/* A thousand kernels of 1 us: issuing one costs an eager host some 20 us (7 to 60), so it decides.
   The parts are not stated: only the total is scored. */
static void test_host_bound(void)
{
    static const char model[] = "family: abstract\n"
                                "units:\n"
                                "  - {repeat: 1000, parameters: 1, forward: 1 us,"
                                " backward: 1 us}\n";
    struct arena arena = {0};
    struct diag diag;
    struct model_validation validation;
    CHECK_INT(play(&arena, model, "train,128,2,,0,60,\n", &validation, &diag), STATUS_OK);
    if (CHECK_INT(validation.in_scope, 1)) {
        const struct model_row *row = &validation.rows.items[0];
        CHECK_TRUE(row->pairs[MODEL_FORWARD].predicted > 0.007);
        CHECK_TRUE(row->pairs[MODEL_FORWARD].predicted < 0.060);
        CHECK_TRUE(row->starved_frac > 0.8);
        CHECK_TRUE(isnan(row->pairs[MODEL_FORWARD].error));
        CHECK_INT(validation.all.scores[MODEL_FORWARD].n, 0);
        CHECK_INT(validation.all.scores[MODEL_TOTAL].n, 1);
    }
    arena_release(&arena);
}

static void test_refused(void)
{
    static const struct {
        const char *row, *message;
    } rows[] = {{"train,0,2,,50,66,16\n", "'seq' is not a count of at least 1"},
                {"train,128,x,,50,66,16\n", "'batch' is not a count of at least 1"},
                {"train,128,2,,50,0,16\n", "'e2e_latency' must be more than 0"},
                {"train,128,2,,-1,66,16\n", "'bwall_latency' is not a number of at least 0"},
                {"train,128,2,,1,66,inf\n", "'fw_latency' is not a number of at least 0"},
                {"train,128,2,,50,1e308,16\n", "'e2e_latency' must be from 1e-06 to 1e+09"},
                {"train,9000000000000000,2,,50,66,16\n", "'seq' is more than 2147483648"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct arena arena = {0};
        struct diag diag;
        struct model_validation validation;
        check_context("%s", rows[i].message);
        CHECK_INT(play(&arena, "", rows[i].row, &validation, &diag), STATUS_INPUT);
        CHECK_CONTAINS(diag_text(&diag, &arena), rows[i].message);
        arena_release(&arena);
    }
    check_context(NULL);
}

/* The table that ships: coverage only; what it shows stands in results/accuracy.md. */
static void test_shipped(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct model_validation validation;
    diag_init(&diag, &arena);
    CHECK_INT(model_validation_run(&arena, NULL, &validation, &diag), STATUS_OK);
    CHECK_INT(validation.rows.count, 149);
    CHECK_TRUE(validation.in_scope >= 34);
    CHECK_INT(validation.all.scores[MODEL_TOTAL].n, validation.in_scope);
    arena_release(&arena);
}

const struct check_case validate_models_cases[] = {
    {"bound by the GPU", test_gpu_bound},
    {"bound by the host", test_host_bound},
    {"tables that are refused", test_refused},
    {"the table that ships", test_shipped},
    {0},
};
