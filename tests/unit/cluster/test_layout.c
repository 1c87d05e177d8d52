/* tests/unit/cluster/test_layout.c: classes and resources of small clusters, counted by hand. */
#include "check.h"
#include "cluster_fixture.h"
#include "cluster_tests.h"

static void check_counts(const char *name, const char *override, int64_t hosts,
                         const int64_t *expected)
{
    const char *const overrides[] = {override, NULL};
    struct cluster_fixture fixture;
    fixture_init(&fixture, name, overrides);
    struct layout layout = fixture_layout(&fixture, hosts, true);
    int32_t count = 0;
    while (expected[count] > 0)
        count++;
    CHECK_INT(layout.class_count, count);
    int64_t ranks = 0;
    for (int32_t i = 0; i < layout.class_count && i < count; i++) {
        const struct rank_class *class = &layout.classes[i];
        CHECK_INT(class->count, expected[i]);
        CHECK_INT(class->hosts * class->per_host, class->count);
        CHECK_INT(layout.resources[class->sm].instances, class->count);
        ranks += class->count;
    }
    CHECK_INT(ranks, layout.ranks);
    fixture_release(&fixture);
}

static void test_counts(void)
{
    static const struct {
        const char *what, *cluster, *override;
        int64_t hosts;
        int64_t counts[8];
    } rows[] = {
        {"homogeneous", "grand-teton-h100-96gb", NULL, 4, {32}},
        {"homogeneous, many", "grand-teton-h100-96gb", NULL, 1024, {8192}},
        {"one slow GPU in the middle",
         "grand-teton-h100-96gb",
         "overrides=[{host: 2, gpu: 5, clock_frac: 0.8}]",
         4,
         {24, 7, 1}},
        {"one slow GPU, the first",
         "grand-teton-h100-96gb",
         "overrides=[{host: 0, gpu: 0, clock_frac: 0.8}]",
         4,
         {1, 7, 24}},
        {"two hosts slow alike",
         "grand-teton-h100-96gb",
         "overrides=[{host: 1, gpu: 3, clock_frac: 0.9}, {host: 3, gpu: 0, clock_frac: 0.9}]",
         4,
         {16, 14, 2}},
        {"an override that changes nothing",
         "grand-teton-h100-96gb",
         "overrides=[{host: 1}]",
         4,
         {32}},
        {"a slow NIC splits its host",
         "grand-teton-h100-96gb",
         "overrides=[{host: 1, nic_frac: 0.5}]",
         4,
         {24, 8}},
        {"every host overridden alike",
         "grand-teton-h100-96gb",
         "overrides=[{host: 0, clock_frac: 0.7}, {host: 1, clock_frac: 0.7}]",
         2,
         {16}},
        {"eight GPUs on three NICs: 3, 3, 2",
         "grand-teton-h100-96gb",
         "host.nics.count=3",
         5,
         {30, 10}},
        {"the same on one host", "grand-teton-h100-96gb", "host.nics.count=3", 1, {8}},
        {"twelve NICs on eight GPUs: 2, 1, 2, 1, …",
         "grand-teton-h100-96gb",
         "host.nics.count=12",
         2,
         {8, 8}},
        {"a slow NIC on one host is not used",
         "grand-teton-h100-96gb",
         "overrides=[{host: 0, nic_frac: 0.5}]",
         1,
         {8}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].what);
        check_counts(rows[i].cluster, rows[i].override, rows[i].hosts, rows[i].counts);
    }
    check_context(NULL);
}

static void test_resources(void)
{
    static const char *const overrides[] = {"overrides=[{host: 2, nic_frac: 0.25}]",
                                            "host.nics.count=16", NULL};
    struct cluster_fixture fixture;
    fixture_init(&fixture, "grand-teton-h100-96gb", overrides);
    struct layout layout = fixture_layout(&fixture, 3, true);
    CHECK_INT(layout.class_count, 2);
    CHECK_INT(layout.nics_per_host, 16);
    CHECK_INT(layout.resource_count, 16);
    const struct rank_class *slow = &layout.classes[1];
    CHECK_INT(slow->first_rank, 16);
    CHECK_NEAR(slow->nics_per_host, 16, 0);
    CHECK_NEAR(slow->ranks_per_nic, 0.5, 0);
    const struct resource *nic = &layout.resources[slow->nic_out];
    CHECK_INT(nic->kind, RESOURCE_NIC_OUT);
    CHECK_TEXT(nic->name, "NIC out (ndr400)");
    CHECK_NEAR(nic->capacity, 12.5e9, 1e-12);
    CHECK_INT(nic->instances, 16);
    CHECK_INT(layout.resources[layout.classes[0].nic_in].instances, 32);
    CHECK_NEAR(layout.resources[slow->scale_up_out].capacity, 450e9, 1e-12);
    CHECK_NEAR(layout.resources[slow->hbm].capacity, 2400e9, 1e-12);
    CHECK_TRUE(slow->host_class != layout.classes[0].host_class);
    fixture_release(&fixture);
}

static void test_shared_nic(void)
{
    struct cluster_fixture fixture;
    fixture_init(&fixture, "dgx-h100-25gbe", NULL);
    struct layout layout = fixture_layout(&fixture, 4, true);
    CHECK_INT(layout.class_count, 1);
    CHECK_NEAR(layout.classes[0].ranks_per_nic, 8, 0);
    CHECK_INT(layout.resources[layout.classes[0].nic_out].instances, 4);
    layout = fixture_layout(&fixture, 4, false);
    CHECK_INT(layout.class_count, 32);
    CHECK_INT(layout.classes[9].nic_out, layout.classes[15].nic_out);
    CHECK_TRUE(layout.classes[9].nic_out != layout.classes[16].nic_out);
    layout = fixture_layout(&fixture, 1, true);
    CHECK_INT(layout.classes[0].nic_out, -1);
    fixture_release(&fixture);
}

static void test_part_of_a_host(void)
{
    struct cluster_fixture fixture;
    fixture_init(&fixture, "grand-teton-h100-96gb", NULL);
    struct layout layout;
    CHECK_INT(layout_build(&fixture.arena, &fixture.cluster, 10, 2, true, &layout, &fixture.diag),
              STATUS_OK);
    CHECK_INT(layout.ranks, 20);
    CHECK_INT(layout.nics_per_host, 2);
    CHECK_INT(layout.resources[layout.classes[0].nic_out].instances, 20);
    CHECK_INT(layout_build(&fixture.arena, &fixture.cluster, 10, 1, true, &layout, &fixture.diag),
              STATUS_OK);
    CHECK_INT(layout.classes[0].scale_up_out, -1);
    fixture_release(&fixture);
}

static void test_refused(void)
{
    static const struct {
        const char *cluster;
        int64_t hosts, gpus;
        bool is_folded;
        const char *message;
    } rows[] = {
        {"ideal-8x400", 2, 8, true, "2 hosts of 'ideal-8x400', which has 1 to 1"},
        {"grand-teton-h100-96gb", 0, 8, true,
         "0 hosts of 'grand-teton-h100-96gb', which has 1 to 4096"},
        {"grand-teton-h100-96gb", 1, 9, true,
         "9 GPUs a host of 'grand-teton-h100-96gb', which has 1 to 8"},
        {"grand-teton-h100-96gb", 200000, 8, false, "200000 x 8 ranks unfolded need"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].message);
        struct cluster_fixture fixture;
        fixture_init(&fixture, rows[i].cluster, NULL);
        if (rows[i].hosts > 4096)
            fixture.cluster.max_hosts = rows[i].hosts;
        struct layout layout;
        CHECK_INT(layout_build(&fixture.arena, &fixture.cluster, rows[i].hosts, rows[i].gpus,
                               rows[i].is_folded, &layout, &fixture.diag),
                  STATUS_INPUT);
        CHECK_CONTAINS(fixture_messages(&fixture), rows[i].message);
        fixture_release(&fixture);
    }
    struct cluster_fixture fixture;
    fixture_init(&fixture, "grand-teton-h100-96gb", NULL);
    fixture.cluster.nic_count = 0;
    struct layout layout;
    CHECK_INT(layout_build(&fixture.arena, &fixture.cluster, 2, 8, true, &layout, &fixture.diag),
              STATUS_INPUT);
    CHECK_CONTAINS(fixture_messages(&fixture),
                   "cluster 'grand-teton-h100-96gb' has no NICs: at most 1 host");
    fixture_release(&fixture);
    check_context(NULL);
}

static void test_override_without_effect(void)
{
    static const char *const overrides[] = {"overrides=[{host: 7, clock_frac: 0.8}]", NULL};
    struct cluster_fixture fixture;
    fixture_init(&fixture, "grand-teton-h100-96gb", overrides);
    struct layout layout = fixture_layout(&fixture, 4, true);
    CHECK_INT(layout.class_count, 1);
    CHECK_INT(fixture.diag.error_count, 0);
    CHECK_CONTAINS(fixture_messages(&fixture), "override without effect: 4 hosts with 8 GPUs each");
    fixture_release(&fixture);
}

const struct check_case layout_cases[] = {{"counts of classes", test_counts},
                                          {"resources", test_resources},
                                          {"a shared NIC", test_shared_nic},
                                          {"part of a host", test_part_of_a_host},
                                          {"refused", test_refused},
                                          {"override without effect", test_override_without_effect},
                                          {0}};
