/* tests/unit/study/test_validate_run.c: a typed table through reading, simulating, comparing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "study/validate.h"
#include "study_tests.h"

/*
 * Rows 2 to 4 are the same run: with its step time, with tokens per second only (16,384 tokens a
 * GPU and step at 5,000/s are 3.2768 s), and of trust C. Row 5 asks for a GPU that does not exist,
 * row 6 has no sequence length.
 */
static const char table_text[] =
    "source,framework,model_name,n_layers,d_model,n_heads,n_kv_heads,d_ff,ffn_type,vocab,seq_len,"
    "microbatch_per_gpu,grad_accum,gpu,n_gpus,gpus_per_node,dtype,tokens_per_s_per_gpu,step_time_s,"
    "trust,comment\n"
    "lab,fsdp2,m,4,1024,16,16,2816,gated,32000,2048,8,1,h100,8,8,bf16,,0.25,A,x\n"
    "lab,fsdp2,m,4,1024,16,16,2816,gated,32000,2048,8,1,h100,8,8,bf16,5000,,B,\n"
    "lab,fsdp2,m,4,1024,16,16,2816,gated,32000,2048,8,1,h100,8,8,bf16,,0.25,C,\n"
    "lab,fsdp2,m,4,1024,16,16,2816,gated,32000,2048,8,1,z9000,8,8,bf16,,0.25,A,\n"
    "lab,fsdp2,m,4,1024,16,16,2816,gated,32000,,8,1,h100,8,8,bf16,,0.25,A,\n";

static const char *const overrides[] = {"train.optimizer.impl=fused"};

static enum status play(struct arena *arena, const char *text, struct validation *validation,
                        struct diag *diag)
{
    char path[] = "/tmp/fsdpsim-validate-XXXXXX";
    const int file = mkstemp(path);
    CHECK_TRUE(file >= 0);
    FILE *stream = fdopen(file, "w");
    fputs(text, stream);
    fclose(stream);
    const struct validate_request request = {
        .csv_path = path, .overrides = overrides, .override_count = 1};
    diag_init(diag, arena);
    const enum status status = validate_run(arena, &request, validation, diag);
    unlink(path);
    return status;
}

static void test_table(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct validation validation;
    CHECK_INT(play(&arena, table_text, &validation, &diag), STATUS_OK);
    CHECK_CONTAINS(diag_text(&diag, &arena), "warning: columns that are not used: comment");
    CHECK_INT(validation.row_count, 5);
    CHECK_INT(validation.in_scope, 3);
    CHECK_INT(validation.headline.step_time.n, 2);
    CHECK_INT(validation.all_trust.step_time.n, 3);
    CHECK_INT(validation.exclusions.count, 2);
    double measured_s[2] = {0.0, 0.0};
    for (int32_t k = 0; k < validation.row_count; k++) {
        const struct validate_row *row = &validation.rows[k];
        if (row->line == 2 || row->line == 3)
            measured_s[row->line - 2] = row->step_s.measured;
        if (row->reason == NULL)
            CHECK_NEAR(row->step_s.error, row->step_s.predicted / row->step_s.measured - 1.0,
                       1e-12);
        if (row->line == 5)
            CHECK_CONTAINS(row->reason, "z9000");
        if (row->line == 6)
            CHECK_TEXT(row->reason, "no sequence length stated");
    }
    CHECK_NEAR(measured_s[0], 0.25, 1e-12);
    CHECK_NEAR(measured_s[1], 3.2768, 1e-12);
    arena_release(&arena);
}

/* Facts may say that what is called a step is none (source.step_time=tokens): it then follows from
   the tokens per second. A run of 16 sequences a GPU in steps of 12 and 4, named after the 12. */
static void test_step_of_tokens(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct validation validation;
    static const char rows[] =
        "source,framework,model_name,n_layers,d_model,n_heads,n_kv_heads,d_ff,ffn_type,vocab,"
        "seq_len,microbatch_per_gpu,grad_accum,gpu,n_gpus,gpus_per_node,dtype,"
        "tokens_per_s_per_gpu,step_time_s,trust,activation_checkpoint\n"
        "bigscience-workshop/x,deepspeed-z3,gpt-52B,,,,,,plain,,1024,12,1,V100-SXM-32GB,64,4,fp16,"
        "67.15,183,B,full\n"
        "bigscience-workshop/x,deepspeed-z3,gpt-52B,,,,,,plain,,1024,8,1,V100-SXM-32GB,64,4,fp16,"
        "70.02,117,B,full\n";
    CHECK_INT(play(&arena, rows, &validation, &diag), STATUS_OK);
    CHECK_INT(validation.row_count, 2);
    for (int32_t k = 0; k < validation.row_count; k++) {
        const struct validate_row *row = &validation.rows[k];
        /* Steps of 12 and 4: 8 · 1024 tokens at 67.15 a second; 8 and 8: as printed. */
        CHECK_NEAR(row->step_s.measured, row->line == 2 ? 8 * 1024 / 67.15 : 117, 1e-12);
        CHECK_TRUE(row->step_s.predicted > 0);
    }
    arena_release(&arena);
}

static void test_mistakes(void)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"gpu,n_gpus,step_time_s\nh100,8,1\n", "missing columns: seq_len, microbatch_per_gpu"},
        {"gpu,n_gpus,seq_len,microbatch_per_gpu\nh100,8,2,1\n", "no column with a measurement"},
        {"gpu,n_gpus,seq_len,microbatch_per_gpu,step_time_s\nh100,eight,2048,1,1\n",
         ":2:6: error: 'n_gpus' must be a whole number of at least 1, not 'eight'"},
        {"gpu,n_gpus,seq_len,microbatch_per_gpu,step_time_s\nh100,8,2048,1,-3\n",
         ":2:15: error: 'step_time_s' must be a number above 0, not '-3'"},
        {"gpu,n_gpus,seq_len,microbatch_per_gpu,step_time_s\nh100,8,2048,1.5,1\n",
         "'microbatch_per_gpu' must be a whole number"},
        {"gpu,n_gpus,seq_len,microbatch_per_gpu,step_time_s\nh100,8,2048,1,nan\n",
         "'step_time_s' must be a number above 0, not 'nan'"},
        {"gpu,n_gpus,seq_len,microbatch_per_gpu,step_time_s\nh100,8,2048,1,1e-308\n",
         ":2:15: error: 'step_time_s' must be from 1e-06 to 1000000, not '1e-308'"},
        {"gpu,n_gpus,seq_len,microbatch_per_gpu,tokens_per_s_per_gpu\nh100,8,2048,1,1e308\n",
         "'tokens_per_s_per_gpu' must be from 0.001 to 1000000000, not '1e308'"},
        {"gpu,n_gpus,seq_len,microbatch_per_gpu,peak_mem_gib\nh100,8,2048,1,1e-308\n",
         "'peak_mem_gib' must be from 0.001 to 100000, not '1e-308'"},
        {"gpu,n_gpus,seq_len,microbatch_per_gpu,step_time_s\nh100,9e15,2048,1,1\n",
         "'n_gpus' must be a whole number of at least 1, not '9e15'"},
        {"gpu,n_gpus,seq_len,microbatch_per_gpu,step_time_s\nh100,9000000000,2048,1,1\n",
         "'n_gpus' must be from 1 to 2147483648, not '9000000000'"},
    };
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        struct arena arena = {0};
        struct diag diag;
        struct validation validation;
        check_context("table %zu", k);
        CHECK_INT(play(&arena, rows[k].text, &validation, &diag), STATUS_INPUT);
        CHECK_CONTAINS(diag_text(&diag, &arena), rows[k].says);
        arena_release(&arena);
    }
    check_context(NULL);
}

const struct check_case validate_run_cases[] = {{"a table", test_table},
                                                {"a step of tokens", test_step_of_tokens},
                                                {"mistakes", test_mistakes},
                                                {0}};
