/* tests/unit/study/test_validate_columns.c: derived columns of a row. */
#include <math.h>

#include "study/validate_private.h"
#include "study_tests.h"

static void put(struct measured_row *row, const char *column, const char *value)
{
    row->values[measured_column_find(column)] = value;
}

static void clear(struct measured_row *row)
{
    for (int32_t k = 0; k < MEASURED_COLUMN_MAX; k++)
        row->values[k] = "";
}

static void test_network(void)
{
    static const struct {
        const char *link, *per_node, *count, *bandwidth;
    } rows[] = {
        {"RoCE 4x100 Gb/s per node", "8", "4", "100 Gb/s"},
        {"Slingshot-11, 8 x 200 Gb/s NICs per node (public)", "12", "8", "200 Gb/s"},
        {"RoCE 1600 Gb/s per node", "8", "8", "200 Gb/s"},
        {"400 Gb/s per node", "", "8", "50 Gb/s"},
        {"RDMA 400 Gb/s per GPU", "8", "8", "400 Gb/s"},
        {"Slingshot-11, 800 Gb/s aggregate per node", "8", "8", "100 Gb/s"},
        {"Ethernet 10 Gb/s NIC (default)", "8", "1", "10 Gb/s"},
        {"TCP sockets, measured ~3.19 GB/s per node aggregate", "8", "1", "3.19 GB/s"},
        {"unknown", "8", "", ""},
        {"n/a (1 node)", "8", "", ""},
        {"Gb/s", "8", "", ""},
        {"x Gb/s per node", "8", "", ""},
    };
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        struct arena arena = {0};
        struct measured_row row;
        check_context("%s", rows[k].link);
        clear(&row);
        put(&row, "inter_link", rows[k].link);
        put(&row, "gpus_per_node", rows[k].per_node);
        measured_derive(&arena, &row);
        CHECK_TEXT(measured_text(&row, "nic_count"), rows[k].count);
        CHECK_TEXT(measured_text(&row, "nic_bandwidth"), rows[k].bandwidth);
        arena_release(&arena);
    }
    check_context(NULL);
}

static void test_shapes(void)
{
    struct arena arena = {0};
    struct measured_row row;
    clear(&row);
    put(&row, "n_gpus", "24");
    put(&row, "gpus_per_node", "8");
    put(&row, "d_model", "5120");
    put(&row, "n_heads", "40");
    put(&row, "d_ff", "20480");
    put(&row, "ffn_type", "gated-moe-8e-top2");
    put(&row, "microbatch_per_gpu", "3");
    put(&row, "global_batch", "288");
    measured_derive(&arena, &row);
    CHECK_TEXT(measured_text(&row, "nodes"), "3");
    CHECK_TEXT(measured_text(&row, "node_gpus"), "8");
    CHECK_TEXT(measured_text(&row, "head_dim"), "128");
    CHECK_TEXT(measured_text(&row, "ffn_ratio"), "4");
    CHECK_TEXT(measured_text(&row, "experts"), "8");
    CHECK_TEXT(measured_text(&row, "top_k"), "2");
    CHECK_TEXT(measured_text(&row, "accum"), "4");
    CHECK_TRUE(isnan(measured_real(&row, "step_time_s")));
    arena_release(&arena);
}

/* Hosts that are not full are used in part; uneven ones are no layout; tensor parallelism divides
   the data-parallel ways. */
static void test_hosts(void)
{
    static const struct {
        const char *gpus, *per_node, *tp, *nodes, *node_gpus, *accum;
    } rows[] = {{"3", "8", "", "1", "3", "32"},
                {"12", "8", "", "", "", "8"},
                {"16", "", "2", "2", "8", "12"},
                {"7", "4", "", "", "", ""}};
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        struct arena arena = {0};
        struct measured_row row;
        check_context("%s by %s", rows[k].gpus, rows[k].per_node);
        clear(&row);
        put(&row, "n_gpus", rows[k].gpus);
        put(&row, "gpus_per_node", rows[k].per_node);
        put(&row, "tp", rows[k].tp);
        put(&row, "microbatch_per_gpu", "1");
        put(&row, "global_batch", "96");
        measured_derive(&arena, &row);
        CHECK_TEXT(measured_text(&row, "nodes"), rows[k].nodes);
        CHECK_TEXT(measured_text(&row, "node_gpus"), rows[k].node_gpus);
        CHECK_TEXT(measured_text(&row, "accum"), rows[k].accum);
        arena_release(&arena);
    }
    check_context(NULL);
}

/* Experts and how many a token takes: both, or the row says neither. */
static void test_experts(void)
{
    static const struct {
        const char *ffn, *experts, *top_k;
    } rows[] = {{"gated-moe-8e-top2", "8", "2"},
                {"gated-moe-128e-top8", "128", "8"},
                {"gated-moe-0e-top2", "", ""},
                {"gated-moe-8e-top0", "", ""},
                {"gated-moe-", "", ""},
                {"gated-moe--8e-top2", "", ""},
                {"gated-moe-8e-top-2", "", ""},
                {"gated-moe-8e-top2x", "", ""},
                {"gated-moe-8.5e-top2", "", ""},
                {"gated-moe-2e-top8", "", ""},
                {"gated-moe-99999999999999999999e-top2", "", ""},
                {"gated", "", ""}};
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        struct arena arena = {0};
        struct measured_row row;
        check_context("%s", rows[k].ffn);
        clear(&row);
        put(&row, "ffn_type", rows[k].ffn);
        measured_derive(&arena, &row);
        CHECK_TEXT(measured_text(&row, "experts"), rows[k].experts);
        CHECK_TEXT(measured_text(&row, "top_k"), rows[k].top_k);
        arena_release(&arena);
    }
    check_context(NULL);
}

/* 2 sequences on 8 GPUs, with tensor parallelism of 2 on 4 of them: 16 or 8 a microbatch. */
static void test_batch_conflict(void)
{
    static const struct {
        const char *batch, *accum, *tp, *conflict;
    } rows[] = {{"64", "4", "", ""},    {"32", "4", "2", ""}, {"64", "4", "2", "yes"},
                {"63", "4", "", "yes"}, {"", "4", "", ""},    {"40", "", "", "yes"},
                {"40", "", "2", ""}};
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        struct arena arena = {0};
        struct measured_row row;
        check_context("%s by %s", rows[k].batch, rows[k].accum);
        clear(&row);
        put(&row, "n_gpus", "8");
        put(&row, "microbatch_per_gpu", "2");
        put(&row, "global_batch", rows[k].batch);
        put(&row, "grad_accum", rows[k].accum);
        put(&row, "tp", rows[k].tp);
        measured_derive(&arena, &row);
        CHECK_TEXT(measured_text(&row, "batch_conflict"), rows[k].conflict);
        arena_release(&arena);
    }
    check_context(NULL);
}

const struct check_case validate_columns_cases[] = {{"network", test_network},
                                                    {"shapes", test_shapes},
                                                    {"hosts", test_hosts},
                                                    {"experts", test_experts},
                                                    {"batch conflict", test_batch_conflict},
                                                    {0}};
