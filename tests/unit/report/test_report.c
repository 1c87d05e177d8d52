/* unit/report/test_report.c: exact summary, tables and JSON of a made-up outcome. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outcome_fixture.h"
#include "report/report.h"
#include "report/report_explain_private.h"
#include "report_tests.h"

struct output {
    char *text;
    size_t size;
    FILE *file;
};

static void output_begin(struct output *output)
{
    *output = (struct output){0};
    output->file = open_memstream(&output->text, &output->size);
}

static const char *output_text(struct output *output)
{
    fflush(output->file);
    return output->text;
}

static void output_end(struct output *output)
{
    fclose(output->file);
    free(output->text);
}

/* Shares of 2.385 s: 1.7125 is 71.80 %, 0.4225 17.71 %, 0.25 10.48 %, 0.845 35.43 %, 0.0625 2.62 %,
   0.795 33.33 %, 1.5 62.89 %, 0.09 3.77 %. Bar: middles of twenty cells at 2.5, 7.5, … %. */
static const char summary_of_one[] = "                                        made-up\n"
                                     "model                              llama-3.1-8b\n"
                                     "cluster                                dgx-h100\n"
                                     "GPUs                                 16 (2 x 8)\n"
                                     "GPU                                    h100-sxm\n"
                                     "policy                                    fsdp2\n"
                                     "tokens per step                         393,216\n"
                                     "\n"
                                     "Time\n"
                                     "  step time                            2.3850 s\n"
                                     "    compute                    1.7125 s  71.8 %\n"
                                     "    exposed communication      0.4225 s  17.7 %\n"
                                     "    idle                       0.2500 s  10.5 %\n"
                                     "  =compute +exposed .idle  ==============++++..\n"
                                     "  communication                0.8450 s  35.4 %\n"
                                     "    waiting for others         0.0625 s   2.6 %\n"
                                     "  exposed fraction                       17.7 %\n"
                                     "  overlap fraction                       50.0 %\n"
                                     "  forward                      0.7950 s  33.3 %\n"
                                     "  backward                     1.5000 s  62.9 %\n"
                                     "  optimizer                    0.0900 s   3.8 %\n"
                                     "  bound by                              compute\n"
                                     "\n"
                                     "Throughput\n"
                                     "  tokens/s                              164,870\n"
                                     "  tokens/s/GPU                           10,304\n"
                                     "  TFLOP/s/GPU                             432.7\n"
                                     "  MFU (torchtitan)                       43.8 %\n"
                                     "  HFU                               not defined\n"
                                     "\n"
                                     "Samples (5 to 95 % of them; above, the one in the middle)\n"
                                     "  how many                                   20\n"
                                     "  step time                  2.3000 to 2.5150 s\n"
                                     "\n"
                                     "Training\n"
                                     "  tokens/day                     14,244,806,038\n"
                                     "  price of a GPU-hour                  2.50 EUR\n"
                                     "  cost of 1e9 tokens                  67.39 EUR\n"
                                     "  budget, tokens                           15 T\n"
                                     "    days                                  1,053\n"
                                     "    GPU-hours                           404,358\n"
                                     "    cost                          1,010,895 EUR\n"
                                     "\n"
                                     "Memory of one GPU\n"
                                     "  peak active                         63.50 GiB\n"
                                     "  peak reserved                       68.25 GiB\n"
                                     "  peak device                         71.25 GiB\n"
                                     "    parameters                         2.01 GiB\n"
                                     "    optimizer                          4.02 GiB\n"
                                     "    activations                       57.47 GiB\n"
                                     "    context                            7.75 GiB\n"
                                     "    peak reached at            saved(layers.31)\n"
                                     "      phase                            backward\n"
                                     "      allocated for           layers.*.backward\n"
                                     "  first step, active                  61.00 GiB\n"
                                     "  first step, reserved                66.50 GiB\n"
                                     "  retries a step                  1.5, 0.1875 s\n"
                                     "  capacity                            79.50 GiB\n"
                                     "  fits                       yes, 8.25 GiB free\n"
                                     "\n"
                                     "warning: attention 'flash' has no measured curve on 'h100'\n";

static void test_summary_of_one(void)
{
    struct arena arena = {0};
    struct outcome outcome;
    struct output output;
    outcome_fixture(&arena, &outcome);
    const struct outcome *const list[] = {&outcome};
    output_begin(&output);
    report_summary(list, 1, output.file);
    CHECK_TEXT(output_text(&output), summary_of_one);
    output_end(&output);
    arena_release(&arena);
}

static int32_t widest_line(const char *text)
{
    int32_t widest = 0, width = 0;
    for (; *text != '\0'; text++) {
        width = *text == '\n' ? 0 : width + 1;
        widest = width > widest ? width : widest;
    }
    return widest;
}

static void test_summary_of_three(void)
{
    static const char *const own_warnings[] = {"no measured curve for the all-gather"};
    struct arena arena = {0};
    struct outcome first, second, third;
    struct output output;
    outcome_fixture(&arena, &first);
    outcome_fixture(&arena, &second);
    outcome_fixture(&arena, &third);
    second.config_name = "llama3-8b_four-dgx-h100_ethernet-25gbe";
    second.fits = false;
    second.peak_device_bytes = 82 * (INT64_C(1) << 30);
    second.memory_over_bytes = 5 * (INT64_C(1) << 29);
    second.mfu_convention = "palm";
    second.bottleneck = "network card of dgx-h100, outgoing";
    third.mfu = (double)NAN;
    third.warnings = own_warnings;
    const struct outcome *const list[] = {&first, &second, &third};
    output_begin(&output);
    report_summary(list, 3, output.file);
    const char *text = output_text(&output);
    CHECK_TRUE(widest_line(text) <= 100);
    /* A long name goes on below; equal warnings are said once. */
    CHECK_CONTAINS(text, "llama3-8b_four-dgx-");
    CHECK_CONTAINS(text, "h100_ethernet-25gbe");
    CHECK_CONTAINS(text, "network card of");
    CHECK_CONTAINS(text, "NO, 2.50 GiB over");
    CHECK_CONTAINS(text, "  MFU ");
    CHECK_CONTAINS(text, "    counted as ");
    CHECK_CONTAINS(text, "not defined");
    CHECK_CONTAINS(text,
                   "warning (runs 1, 2): attention 'flash' has no measured curve on 'h100'\n");
    CHECK_CONTAINS(text, "warning (run 3): no measured curve for the all-gather\n");
    output_end(&output);
    arena_release(&arena);
}

/* Milliseconds and MiB where the numbers are small; a missing text is a dash. */
static void test_summary_of_small(void)
{
    struct arena arena = {0};
    struct outcome outcome;
    struct output output;
    outcome_fixture(&arena, &outcome);
    outcome.step_time_s = 0.02385;
    outcome.compute_s = 0.0171;
    outcome.peak_device_bytes = 436 * (INT64_C(1) << 20);
    outcome.peak_at = NULL;
    outcome.tokens_per_s = 123.45;
    outcome.warning_count = 0;
    const struct outcome *const list[] = {&outcome};
    output_begin(&output);
    report_summary(list, 1, output.file);
    const char *text = output_text(&output);
    CHECK_CONTAINS(text, " 23.850 ms\n");
    CHECK_CONTAINS(text, " 17.100 ms  71.7 %\n");
    CHECK_CONTAINS(text, " 436.00 MiB\n");
    CHECK_CONTAINS(text, "peak reached at");
    CHECK_CONTAINS(text, " 123.5\n"); /* 123.45 is 123.4500000000000028 */
    CHECK_TRUE(strstr(text, "(null)") == NULL && strstr(text, "warning") == NULL);
    output_end(&output);
    arena_release(&arena);
}

/* The two equal blocks share a row and come before the root: 1.0021 s against 0.112 s. */
static void test_units(void)
{
    struct arena arena = {0};
    struct outcome outcome;
    struct output output;
    outcome_fixture(&arena, &outcome);
    output_begin(&output);
    report_units(&outcome, 10, output.file);
    CHECK_TEXT(
        output_text(&output),
        "unit (times of one, per step)  count     parameters  forward  backward   gather  scatter"
        "  exposed\n"
        "layers.0 … layers.1                2    218,112,000   262 ms    538 ms   112 ms  87.5 ms"
        "   202 ms\n"
        "root                               1  1,050,677,248  31.2 ms   62.5 ms  21.5 ms  43.5 ms"
        "  18.2 ms\n");
    output_end(&output);
    output_begin(&output);
    report_units(&outcome, 1, output.file);
    CHECK_CONTAINS(output_text(&output), "(1 more)\n");
    output_end(&output);

    /* A block that differs by more than four digits show keeps a row of its own. */
    outcome.units[2].exposed_s *= 1.02;
    output_begin(&output);
    report_units(&outcome, 10, output.file);
    CHECK_CONTAINS(output_text(&output), "\nlayers.1 ");
    CHECK_TRUE(strstr(output.text, "…") == NULL);
    CHECK_TRUE(strstr(output.text, "layers.1 ") < strstr(output.text, "layers.0 "));
    output_end(&output);
    arena_release(&arena);
}

/* Four blocks, of which the second differs, and an adapter in front of each: three of one kind and
   one, of numbers 0 to 3; and names with two numbers, which never run together. */
static void test_units_apart(void)
{
    static const struct {
        const char *name;
        int64_t parameters;
        double forward_s;
    } rows[] = {{"layers.0.q_proj.lora_A", 32768, 0.001},
                {"layers.0", 202383360, 0.2},
                {"layers.1.q_proj.lora_A", 32768, 0.001},
                {"layers.1", 202383360, 0.3},
                {"layers.2.q_proj.lora_A", 32768, 0.001},
                {"layers.2", 202383360, 0.2},
                {"layers.3.q_proj.lora_A", 32768, 0.001},
                {"layers.3", 202383360, 0.2},
                {"experts.0.w.8", 4096, 0.01},
                {"experts.0.w.9", 4096, 0.01},
                {"experts.1.w.8", 4096, 0.01},
                {"experts.1.w.9", 4096, 0.01}};
    struct outcome_unit units[sizeof(rows) / sizeof(rows[0])];
    struct outcome outcome = {.units = units, .unit_count = sizeof(rows) / sizeof(rows[0])};
    struct output output;
    for (int32_t i = 0; i < outcome.unit_count; i++)
        units[i] = (struct outcome_unit){
            .name = rows[i].name, .parameters = rows[i].parameters, .forward_s = rows[i].forward_s};
    output_begin(&output);
    report_units(&outcome, 10, output.file);
    CHECK_TEXT(
        output_text(&output),
        "unit (times of one, per step)                    count   parameters  forward  backward"
        "  gather  scatter  exposed\n"
        "layers.1                                             1  202,383,360   300 ms       0 s"
        "     0 s      0 s      0 s\n"
        "some of layers.0 … layers.3                          3  202,383,360   200 ms       0 s"
        "     0 s      0 s      0 s\n"
        "experts.0.w.8 … experts.0.w.9                        2        4,096  10.0 ms       0 s"
        "     0 s      0 s      0 s\n"
        "experts.1.w.8 … experts.1.w.9                        2        4,096  10.0 ms       0 s"
        "     0 s      0 s      0 s\n"
        "layers.0.q_proj.lora_A … layers.3.q_proj.lora_A      4       32,768  1.00 ms       0 s"
        "     0 s      0 s      0 s\n");
    output_end(&output);
}

/* A block lies between adapters; embedding and head are of one size, but are no blocks. */
static void test_explained_unit(void)
{
    static const struct {
        const char *what;
        struct unit units[6];
        int32_t count, chosen;
    } rows[] = {
        {"adapters next to each other",
         {{.name = "layers.0.q_proj.lora_A", .parameters = 32768},
          {.name = "layers.0.q_proj.lora_B", .parameters = 32768},
          {.name = "layers.0", .parameters = 202383360},
          {.name = "layers.1.q_proj.lora_A", .parameters = 32768},
          {.name = "layers.1.q_proj.lora_B", .parameters = 32768},
          {.name = "layers.1", .parameters = 202383360}},
         6,
         2},
        {"embedding and head",
         {{.name = "embed", .parameters = 525336576},
          {.name = "layers.0", .parameters = 218112000},
          {.name = "layers.1", .parameters = 218112000},
          {.name = "head", .parameters = 525336576}},
         4,
         1},
        {"one block",
         {{.name = "layers.0", .parameters = 100}, {.name = "root", .parameters = 300}},
         2,
         1},
        {"blocks of nothing",
         {{.name = "layers.0", .parameters = 0},
          {.name = "layers.1", .parameters = 0},
          {.name = "root", .parameters = 3}},
         3,
         2},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct unit units[6];
        memcpy(units, rows[i].units, sizeof(units));
        struct program program = {.units = {.items = units, .count = rows[i].count}};
        check_context("%s", rows[i].what);
        CHECK_INT(explain_choose_unit(&program), rows[i].chosen);
        check_context(NULL);
    }
}

static void test_collectives_and_links(void)
{
    struct arena arena = {0};
    struct outcome outcome;
    struct output output;
    outcome_fixture(&arena, &outcome);
    output_begin(&output);
    report_collectives(&outcome, output.file);
    report_links(&outcome, output.file);
    CHECK_TEXT(output_text(&output),
               "collective      communicator  count      size    alone  bus bandwidth\n"
               "all_gather      dp_shard         64  436.2 MB  2.39 ms     171.2 GB/s\n"
               "reduce_scatter  dp_shard         33  872.4 MB  4.78 ms     171.2 GB/s\n"
               "link (one direction)  capacity  instances  bytes per step    busy  utilisation\n"
               "nvlink                450 GB/s         16         56.2 GB  31.2 %        5.2 %\n");
    output_end(&output);

    outcome.unit_count = outcome.collective_count = outcome.link_count = 0;
    output_begin(&output);
    report_units(&outcome, 10, output.file);
    report_collectives(&outcome, output.file);
    report_links(&outcome, output.file);
    CHECK_CONTAINS(output_text(&output), "exposed\ncollective");
    output_end(&output);
    arena_release(&arena);
}

static const char json_head[] = "{\n"
                                "  \"schema_version\": 1,\n"
                                "  \"model\": \"llama-3.1-8b\",\n"
                                "  \"cluster\": \"dgx-h100\",\n"
                                "  \"n_gpus\": 16,\n"
                                "  \"step_time_s\": 2.385,\n"
                                "  \"tokens_per_s\": 164870.44025157232,\n"
                                "  \"tokens_per_s_per_gpu\": 10304.40251572327,\n"
                                "  \"mfu\": 0.4375,\n"
                                "  \"hfu\": null,\n"
                                "  \"tflops_per_gpu\": 432.6875,\n"
                                "  \"compute_s\": 1.7125,\n"
                                "  \"comm_s\": 0.8450000000000001,\n"
                                "  \"comm_wait_s\": 0.0625,\n"
                                "  \"copy_s\": 0.1,\n"
                                "  \"exposed_comm_s\": 0.4225,\n"
                                "  \"idle_s\": 0.25,\n"
                                "  \"memcpy_s\": 0.001,\n"
                                "  \"exposed_comm_fraction\": 0.17714884696016772,\n"
                                "  \"overlap_fraction\": 0.5,\n"
                                "  \"peak_active_bytes\": 68182605824,\n"
                                "  \"peak_reserved_bytes\": 73282879488,\n"
                                "  \"peak_device_bytes\": 76504104960,\n"
                                "  \"memory_capacity_bytes\": 85362475008,\n"
                                "  \"fits\": true,\n"
                                "  \"comm_bytes_per_gpu\": 45176000000,\n"
                                "  \"bottleneck\": \"compute\",\n"
                                "  \"events\": 4321,\n";

static const char json_tail[] = "  \"links\": [\n"
                                "    {\n"
                                "      \"name\": \"nvlink\",\n"
                                "      \"capacity_bytes_per_s\": 450000000000,\n"
                                "      \"instances\": 16,\n"
                                "      \"bytes\": 56175000000,\n"
                                "      \"busy_frac\": 0.3125,\n"
                                "      \"utilisation\": 0.0523\n"
                                "    }\n"
                                "  ],\n"
                                "  \"memory_units\": [\n"
                                "    {\n"
                                "      \"name\": \"layers.31\",\n"
                                "      \"bytes\": 1610612736\n"
                                "    },\n"
                                "    {\n"
                                "      \"name\": \"outside units\",\n"
                                "      \"bytes\": 67108864\n"
                                "    }\n"
                                "  ]\n"
                                "}\n";

static void test_json(void)
{
    struct arena arena = {0};
    struct outcome outcome;
    struct output output, again;
    outcome_fixture(&arena, &outcome);
    output_begin(&output);
    report_json(&outcome, output.file);
    const char *text = output_text(&output);
    CHECK_TRUE(strncmp(text, json_head, strlen(json_head)) == 0);
    CHECK_TRUE(strlen(text) > strlen(json_tail) &&
               strcmp(text + strlen(text) - strlen(json_tail), json_tail) == 0);
    CHECK_CONTAINS(text, "  \"fingerprint\": \"0123456789abcdef\",\n"
                         "  \"peak_composition\": {\n"
                         "    \"parameters\": 2157969408,\n");
    CHECK_CONTAINS(text, "  \"warnings\": [\n"
                         "    \"attention 'flash' has no measured curve on 'h100'\"\n"
                         "  ],\n"
                         "  \"units\": [\n"
                         "    {\n"
                         "      \"name\": \"root\",\n"
                         "      \"parameters\": 1050677248,\n"
                         "      \"forward_s\": 0.03125,\n");
    /* No path and no clock: the origins are not printed. */
    CHECK_TRUE(strstr(text, "made-up.yaml") == NULL);
    output_begin(&again);
    report_json(&outcome, again.file);
    CHECK_TEXT(output_text(&again), text);
    output_end(&again);
    output_end(&output);
    arena_release(&arena);
}

const struct check_case report_cases[] = {{"summary of one run", test_summary_of_one},
                                          {"summary of three runs", test_summary_of_three},
                                          {"summary of small numbers", test_summary_of_small},
                                          {"units are folded and sorted", test_units},
                                          {"units alike lie apart", test_units_apart},
                                          {"unit explained", test_explained_unit},
                                          {"collectives and links", test_collectives_and_links},
                                          {"JSON", test_json},
                                          {0}};
