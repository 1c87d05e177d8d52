/*
 * tests/unit/study/test_validate_kernels.c: kernels of a machine of round numbers beside times by
 * hand, and what is refused.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "study/validate_kernels.h"
#include "study_tests.h"

static enum status play(struct arena *arena, const char *text, struct kernel_validation *validation,
                        struct diag *diag)
{
    char path[] = "/tmp/fsdpsim-kernels-XXXXXX";
    const int file = mkstemp(path);
    CHECK_TRUE(file >= 0);
    FILE *stream = fdopen(file, "w");
    fputs(text, stream);
    fclose(stream);
    diag_init(diag, arena);
    const enum status status = kernel_validation_run(arena, path, validation, diag);
    unlink(path);
    return status;
}

/*
 * ideal-gpu does 1000 TFLOP/s: 2·4096·8192·1024 FLOP in 68.719477 us, measured 62.472252 (+10 %)
 * and 85.899346 (-20 %); a causal attention of 32 heads, 4096 tokens, head dimension 128:
 * 4·32·4096²·128 / 2 = 137.438953 GFLOP, backward 2.5 times that: 343.597384 us, measured so.
 */
static void test_cells(void)
{
    static const char text[] =
        "us,kernel,gpu,dtype,impl,pass,causal,batch,m,n,k,licence\n"
        "62.472252,gemm,ideal-gpu,bf16,,,,,4096,8192,1024,MIT\n"
        "85.899346,gemm,ideal-gpu,bf16,,forward,0,1,4096,8192,1024,MIT\n"
        "1,gemm,ideal-gpu,bf16,,,,,64,64,64,MIT\n"
        "343.597384,attention,ideal-gpu,bf16,fa3,backward,1,32,4096,4096,128,MIT\n"
        "1,gemm,z9000,bf16,,,,,64,64,64,MIT\n"
        "1,gemm,ideal-gpu,fp64,,,,,64,64,64,MIT\n";
    struct arena arena = {0};
    struct diag diag;
    struct kernel_validation validation;
    CHECK_INT(play(&arena, text, &validation, &diag), STATUS_OK);
    CHECK_INT(validation.rows, 6);
    CHECK_INT(validation.rows_used, 4);
    CHECK_INT(validation.skipped_count, 2);
    if (CHECK_INT(validation.cells.count, 3)) {
        const struct kernel_cell *cells = validation.cells.items;
        CHECK_TEXT(cells[0].gpu, "ideal-gpu");
        CHECK_TEXT(cells[0].what, "gemm bf16, from 1 GFLOP");
        CHECK_INT(cells[0].score.n, 2);
        CHECK_NEAR(cells[0].score.median_abs_err, 0.15, 1e-6);
        CHECK_NEAR(cells[0].score.bias, -0.05, 1e-5);
        CHECK_INT(cells[0].verdict, KERNEL_ASSUMED); /* two rows tell nothing */
        CHECK_TEXT(cells[1].what, "gemm bf16, below 1 GFLOP");
        CHECK_INT(cells[1].verdict, KERNEL_NO_GOAL);
        CHECK_TEXT(cells[2].what, "attention fa3 backward");
        CHECK_TRUE(fabs(cells[2].score.bias) < 1e-6);
    }
    arena_release(&arena);
}

static void test_refused(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"gpu,kernel\nideal-gpu,gemm\n", "there is no column 'us'"},
        {"gpu,kernel,us\nideal-gpu,gem,1\n", "'kernel' is not a word known here"},
        {"gpu,kernel,us\nideal-gpu,gemm,1\n", "needs m, n and k"},
        {"gpu,kernel,us\nideal-gpu,norm,1\n", "needs 'bytes'"},
        {"gpu,kernel,us,bytes\nideal-gpu,norm,0,5\n", "must be more than 0"},
        {"gpu,kernel,us,bytes\nideal-gpu,norm,1,-5\n", "is not a number of at least 0"},
        {"gpu,kernel,us,bytes,impl\nideal-gpu,norm,1,5,fa2\n", "'impl' is not a word"},
        {"gpu,kernel,us\nideal-gpu,given,1\n", "has no prediction"},
        {"gpu,kernel,us,bytes\nideal-gpu,norm,1e-308,5\n", ":2:16: error: 'us' is less than 1e-06"},
        {"gpu,kernel,us,bytes\nideal-gpu,norm,1e308,5\n", "'us' is more than 1000000000"},
        {"gpu,kernel,us,bytes\nideal-gpu,norm,1,1e300\n", "'bytes' is more than 1e+15"},
        {"gpu,kernel,us,bytes,copy_bytes\nideal-gpu,norm,1,5,1e16\n", "'copy_bytes' is more than"},
        {"gpu,kernel,us,m,n,k\nideal-gpu,gemm,1,9e15,9e15,9e15\n", "'m' is more than 2147483648"},
        {"gpu,kernel,us,bytes\nideal-gpu,norm,nan,5\n", "is not a number of at least 0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct arena arena = {0};
        struct diag diag;
        struct kernel_validation validation;
        check_context("%s", rows[i].message);
        CHECK_INT(play(&arena, rows[i].text, &validation, &diag), STATUS_INPUT);
        CHECK_CONTAINS(diag_text(&diag, &arena), rows[i].message);
        arena_release(&arena);
    }
    check_context(NULL);
}

/* The goals of the shipped tables, on the GPUs that most runs use. */
static void test_hold_out(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct kernel_validation validation;
    diag_init(&diag, &arena);
    CHECK_INT(kernel_validation_run(&arena, NULL, &validation, &diag), STATUS_OK);
    CHECK_TRUE(validation.rows > 3500);
    CHECK_TRUE(validation.verdicts[KERNEL_REACHED] > validation.verdicts[KERNEL_MISSED]);
    arena_release(&arena);
}

const struct check_case validate_kernels_cases[] = {
    {"cells by hand", test_cells},
    {"tables that are refused", test_refused},
    {"the hold-out that ships", test_hold_out},
    {0},
};
