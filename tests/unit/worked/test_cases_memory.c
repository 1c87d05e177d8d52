/* tests/unit/worked/test_cases_memory.c: what users met, in memory (configs/cases), by hand. */
#include <string.h>

#include "worked_tests.h"

static int64_t tensor_bytes(const struct program *program, const char *name)
{
    for (int32_t i = 0; i < program->tensors.count; i++)
        if (strcmp(program->tensors.items[i].name, name) == 0)
            return program->tensors.items[i].bytes;
    return 0;
}

/* Reserved memory of four hosts as a share of that of one: published 24 / 28 without the limiter;
   with it parameters, gradients and moments shrink to a quarter. */
static void test_gathers_run_ahead(void)
{
    static const struct {
        const char *limiter;
        double least, most;
    } rows[] = {{"false", 0.82, 0.95}, {"true", 0.3, 0.6}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played one, four;
        char overrides[2][64];
        for (int k = 0; k < 2; k++)
            snprintf(overrides[k], sizeof(overrides[k]), "fsdp.limit_all_gathers=%s; nodes=%d",
                     rows[i].limiter, k == 0 ? 1 : 4);
        if (played_play(&one, "cases/gathers-run-ahead", overrides[0]) &&
            played_play(&four, "cases/gathers-run-ahead", overrides[1])) {
            check_context("limiter %s", rows[i].limiter);
            const double ratio =
                (double)four.outcome.peak_reserved_bytes / (double)one.outcome.peak_reserved_bytes;
            CHECK_TRUE(ratio >= rows[i].least && ratio <= rows[i].most);
            check_context(NULL);
        }
        played_release(&one);
        played_release(&four);
    }
}

/* 5.9 GB of states and units in flight fit in 24 GB; gathers that run ahead do not, wait and ask
   again; the limiter brings retries to none and the step is shorter. */
static void test_retries(void)
{
    struct played ahead, limited;
    if (played_play(&ahead, "cases/retries-without-limiter", NULL) &&
        played_play(&limited, "cases/retries-without-limiter", "fsdp.limit_all_gathers=true")) {
        CHECK_TRUE(ahead.outcome.fits && limited.outcome.fits);
        CHECK_TRUE(ahead.outcome.alloc_retries >= 0.5);
        CHECK_NEAR(limited.outcome.alloc_retries + 1, 1, EXACT);
        CHECK_TRUE(ahead.outcome.step_time_s > limited.outcome.step_time_s);
        CHECK_TRUE(ahead.outcome.alloc_retry_s > 0);
    }
    played_release(&ahead);
    played_release(&limited);
}

/* A quarter of 6,738,415,616 fp32 second moments; tensor by tensor about a weight of a shard. */
static void test_foreach_temporary(void)
{
    static const struct {
        const char *overrides;
        int64_t temporary, states;
        bool is_peak;
    } rows[] = {{"", 6738415616, 13476831232, true},
                {"train.optimizer.impl=fused", 0, 13476831232, false},
                {"train.optimizer={name: sgd, impl: foreach}", 0, 6738415616, false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_play(&played, "cases/foreach-temporary", rows[i].overrides)) {
            const struct program *program = played.experiment.program;
            int64_t states = 0;
            for (int32_t k = 0; k < program->tensors.count; k++)
                if (program->tensors.items[k].category == MEMORY_OPTIMIZER)
                    states += program->tensors.items[k].bytes;
            CHECK_INT(tensor_bytes(program, "optimizer_temporary"), rows[i].temporary);
            CHECK_INT(states, rows[i].states);
            CHECK_INT(strcmp(played.outcome.peak_at, "optimizer_temporary") == 0, rows[i].is_peak);
        }
        played_release(&played);
    }
    struct played looped;
    if (played_build(&looped, "cases/foreach-temporary", "train.optimizer.impl=forloop")) {
        const int64_t bytes = tensor_bytes(looped.experiment.program, "optimizer_temporary");
        CHECK_TRUE(bytes > 0 && bytes < 6738415616 / 50);
    }
    played_release(&looped);
}

/*
 * T V = 8,192 · 128,256 logits: 12 T V B at the peak of the backward in one piece; in eight, bf16
 * logits 2, the saved log-softmax 4 and one piece's fp32 logits 4/8: 6.5 T V. The drop of 5.5 T V
 * is 5.38 GiB (published: 7.32, of another version's tensors). Same speed, and with no logits at
 * all the peak is elsewhere.
 */
static void test_logits(void)
{
    struct played whole, pieces, none;
    if (played_play(&whole, "cases/logits-spike", NULL) &&
        played_play(&pieces, "cases/logits-spike", "train.loss.chunks=8") &&
        played_play(&none, "cases/logits-spike", "train.loss.impl=linear")) {
        const double logits = 8192.0 * 128256;
        CHECK_TRUE(strstr(whole.outcome.peak_at, "(loss)") != NULL);
        CHECK_TRUE(strstr(none.outcome.peak_at, "(loss)") == NULL);
        CHECK_NEAR((double)whole.outcome.peak_composition[MEMORY_LOGITS], 12 * logits, 1e-3);
        CHECK_NEAR((double)(whole.outcome.peak_active_bytes - pieces.outcome.peak_active_bytes) /
                       logits,
                   5.5, 0.01);
        CHECK_NEAR(pieces.outcome.step_time_s, whole.outcome.step_time_s, 0.005);
        CHECK_TRUE(none.outcome.peak_active_bytes < pieces.outcome.peak_active_bytes);
    }
    played_release(&whole);
    played_release(&pieces);
    played_release(&none);
}

/*
 * Units of U = 15,000,000. One buffer: at the end of a backward parameters 2 U, gather buffer 2,
 * gradients 2, the input of the unit before 4: 10 U. One a unit: 24 of 4 U when the last one is
 * taken, beside its gradients: 98 U, or, as the last backward ends, 23 of 4, and 4 for parameters
 * and gradients: 96 U. Gradients of fp32 are 2 B a parameter on each of two GPUs; the last unit's
 * is not there yet in either.
 */
static void test_reduce_inputs(void)
{
    struct played one, all;
    if (played_play(&one, "cases/reduce-inputs-pile-up", "fsdp.reduce_scatter_buffers=1") &&
        played_play(&all, "cases/reduce-inputs-pile-up", NULL)) {
        CHECK_NEAR((double)all.outcome.peak_composition[MEMORY_REDUCE_BUFFERS], 24 * 4 * 15e6,
                   ROUNDED);
        CHECK_NEAR((double)one.outcome.peak_composition[MEMORY_REDUCE_BUFFERS], 4 * 15e6, ROUNDED);
        CHECK_TRUE((double)(all.outcome.peak_active_bytes - one.outcome.peak_active_bytes) >
                   22 * 4 * 15e6);
    }
    played_release(&one);
    played_release(&all);
}

/* 615 MB a communicator on A100 (NVIDIA/nccl issue 964: 544 to 688 MB): shards; replicas; scatters
   apart. */
static void test_communicators(void)
{
    static const struct {
        const char *overrides;
        int64_t communicators;
    } rows[] = {{"mesh.dp_replicate=1; mesh.dp_shard=16; "
                 "fsdp.separate_reduce_scatter_communicator=false",
                 1},
                {"fsdp.separate_reduce_scatter_communicator=false", 2},
                {"", 3},
                {"nodes=1; gpus_per_node=1; mesh={}; fsdp={}", 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_play(&played, "cases/beside-the-allocator", rows[i].overrides)) {
            const struct outcome *outcome = &played.outcome;
            CHECK_INT(outcome->peak_composition[MEMORY_COMMUNICATORS],
                      rows[i].communicators * 615000000);
            CHECK_INT(outcome->peak_device_bytes - outcome->peak_reserved_bytes,
                      outcome->peak_composition[MEMORY_CONTEXT] +
                          outcome->peak_composition[MEMORY_COMMUNICATORS]);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* The warning begins where less than 5 % of the memory is left; with half of what is reserved no
   retry helps. */
static void test_little_left(void)
{
    struct played played;
    int64_t device = 0;
    if (played_play(&played, "cases/little-left", NULL))
        device = played.outcome.peak_device_bytes;
    played_release(&played);
    static const struct {
        double left; /* share of the memory */
        bool warns;
    } rows[] = {{0.30, false}, {0.051, false}, {0.049, true}, {0.001, true}, {-1, false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char overrides[96];
        snprintf(overrides, sizeof(overrides), "cluster.host.gpu.memory.total=%.0fB",
                 (double)device / (1 - rows[i].left));
        check_context("%s", overrides);
        if (played_play(&played, "cases/little-left", overrides)) {
            bool warns = false;
            for (int32_t k = 0; k < played.outcome.warning_count; k++)
                warns |= strstr(played.outcome.warnings[k], "fragmentation") != NULL;
            CHECK_INT(warns, rows[i].warns);
            CHECK_INT(played.outcome.fits, rows[i].left > 0);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/*
 * Left to the root of Llama-3.1-8B: two tables of 128,256 · 4,096 and a norm of 4,096. Gathered in
 * bf16 from forward to the end of backward: as a unit's parameters, which no `free` between ends.
 */
static void test_root(void)
{
    static const struct {
        const char *overrides;
        int64_t parameters;
    } rows[] = {{"", 1050677248}, {"fsdp.wrap=torchtitan", 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        if (played_build(&played, "cases/kept-by-the-root", rows[i].overrides)) {
            const struct program *program = played.experiment.program;
            CHECK_TEXT(program->units.items[0].name, "root");
            CHECK_INT(program->units.items[0].parameters, rows[i].parameters);
            CHECK_INT(tensor_bytes(program, "params(root)"), 2 * rows[i].parameters);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/*
 * Llama-2-7B, 4,096 tokens: 6 (6,738,415,616 - 131,072,000) + 6 · 32 · 32 · 256 · 4,096
 * (torchtitan), 6 · 6,738,415,616 + 12 · 32 · 4,096 · 4,096 (PaLM). Local parameters, 1/128 of
 * them, are in neither.
 */
static void test_utilisation(void)
{
    static const struct {
        const char *convention;
        double flop; /* a token */
    } rows[] = {{"torchtitan", 6 * 6607343616.0 + 6442450944.0},
                {"palm", 6 * 6738415616.0 + 6442450944.0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        char overrides[64];
        snprintf(overrides, sizeof(overrides), "mfu_convention=%s", rows[i].convention);
        check_context("%s", overrides);
        if (played_play(&played, "cases/utilisation-counted", overrides)) {
            const struct outcome *outcome = &played.outcome;
            CHECK_TEXT(outcome->mfu_convention, rows[i].convention);
            CHECK_INT(outcome->parameters, 6738415616);
            CHECK_NEAR(outcome->mfu, rows[i].flop * 2 * 4096 / outcome->step_time_s / 312e12, 1e-9);
            /* What the time covers: the whole step, the optimizer with it. */
            CHECK_TRUE(outcome->step_time_s >=
                       outcome->forward_s + outcome->backward_s + outcome->optimizer_s - 1e-9);
        }
        played_release(&played);
    }
    check_context(NULL);
}

/* What `explain` says of both: 2 B of each of the root's parameters; 8,030,261,248 / 8 on a GPU. */
static void test_explained(void)
{
    struct played played;
    if (played_play(&played, "cases/kept-by-the-root", NULL)) {
        const char *text = played_explain(&played, -1);
        CHECK_TRUE(strstr(text, "root unit: 1,050,677,248 parameters (13.1 %)") != NULL);
        CHECK_TRUE(strstr(text, "2101.3545 MB gathered") != NULL);
        CHECK_TRUE(strstr(text, "N = 8,030,261,248 parameters of the whole model (one GPU of 8 "
                                "keeps 1,003,782,656)") != NULL);
        CHECK_TRUE(strstr(text, "6 (N - untied input embedding)") != NULL);
        CHECK_TRUE(strstr(text, "over the whole optimizer step") != NULL);
    }
    played_release(&played);
}

/* 6,738,415,616 fp32 parameters, whole and an eighth of them, on GPUs of 24 GB. */
static void test_initialisation(void)
{
    struct played played;
    struct estimate estimate;
    CHECK_INT(played_load(&played, "cases/initialisation", NULL), STATUS_OK);
    CHECK_INT(estimate_memory(&played.experiment, 0, false, &estimate), STATUS_OK);
    const char *text = played_memory(&played, &estimate);
    CHECK_TRUE(strstr(text, "at initialisation: 3.369208 GB with fully_shard") != NULL);
    CHECK_TRUE(strstr(text, "26.95366 GB where the model is whole") != NULL);
    CHECK_TRUE(strstr(text, "all that is in it (does not fit)") != NULL);
    CHECK_TRUE(strstr(text, "rank 0's host holds 26.95366 GB") != NULL);
    played_release(&played);
}

const struct check_case cases_memory_cases[] = {{"gathers run ahead", test_gathers_run_ahead},
                                                {"retries", test_retries},
                                                {"optimizer: foreach", test_foreach_temporary},
                                                {"loss: logits", test_logits},
                                                {"reduce inputs", test_reduce_inputs},
                                                {"communicators", test_communicators},
                                                {"little left", test_little_left},
                                                {"root", test_root},
                                                {"utilisation", test_utilisation},
                                                {"root and utilisation, explained", test_explained},
                                                {"initialisation", test_initialisation},
                                                {0}};
