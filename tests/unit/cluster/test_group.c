/*
 * tests/unit/cluster/test_group.c: groups of ranks, their classes, and what they share, by hand.
 */
#include "check.h"
#include "cluster/group_layout.h"
#include "cluster_fixture.h"
#include "cluster_tests.h"

static void test_along(void)
{
    static const struct {
        int64_t hosts, gpus, ranks, stride;
        int64_t in_hosts, per_host; /* 0: do not tile */
    } rows[] = {
        {4, 8, 32, 1, 4, 8}, {4, 8, 16, 1, 2, 8}, {4, 8, 4, 1, 1, 4}, {4, 8, 2, 16, 2, 1},
        {4, 8, 4, 8, 4, 1},  {4, 8, 8, 4, 4, 2},  {4, 8, 2, 4, 1, 2}, {4, 8, 1, 32, 1, 1},
        {4, 8, 12, 1, 0, 0}, {3, 8, 12, 1, 0, 0}, {4, 8, 2, 3, 0, 0}, {6, 4, 2, 6, 0, 0},
        {2, 6, 4, 1, 0, 0},  {4, 8, 64, 1, 0, 0}, {4, 8, 0, 1, 0, 0}, {5, 4, 5, 4, 5, 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct layout size = {.gpus_per_host = rows[i].gpus,
                                    .ranks = rows[i].hosts * rows[i].gpus};
        struct group group = {0};
        check_context("%d ranks %d apart", (int)rows[i].ranks, (int)rows[i].stride);
        CHECK_INT(group_along(&size, rows[i].ranks, rows[i].stride, &group), rows[i].in_hosts > 0);
        if (rows[i].in_hosts == 0)
            continue;
        CHECK_INT(group.hosts, rows[i].in_hosts);
        CHECK_INT(group.ranks_per_host, rows[i].per_host);
    }
    check_context(NULL);
}

/* Rank 26 of 32 in groups of 2, 16 apart: group 10, place 1, its neighbour is rank 10. */
static void test_places(void)
{
    const struct group replicas = {.ranks = 2, .hosts = 2, .ranks_per_host = 1, .stride = 16};
    CHECK_INT(group_place(&replicas, 26), 1);
    CHECK_INT(group_of_rank(&replicas, 26), 10);
    CHECK_INT(group_first_rank(&replicas, 10), 10);
    CHECK_INT(group_neighbour(&replicas, 26, 1), 10);
    const struct group stages = {.ranks = 4, .hosts = 4, .ranks_per_host = 1, .stride = 8};
    CHECK_INT(group_neighbour(&stages, 3, -1), 27);
    CHECK_INT(group_neighbour(&stages, 11, 1), 19);
    const struct group shards = {.ranks = 4, .hosts = 1, .ranks_per_host = 4};
    CHECK_INT(group_of_rank(&shards, 14), 3);
    CHECK_INT(group_first_rank(&shards, 3), 12);
}

struct mesh_fixture {
    struct cluster_fixture cluster;
    struct group groups[2]; /* shard, replicas */
    struct layout layout;
    struct group_split splits[2];
};

static void mesh_init(struct mesh_fixture *mesh, const char *const *overrides, int64_t hosts,
                      int64_t gpus, int64_t shard)
{
    fixture_init(&mesh->cluster, "dgx-h100", overrides);
    const struct layout size = {.gpus_per_host = gpus, .ranks = hosts * gpus};
    CHECK_TRUE(group_along(&size, shard, 1, &mesh->groups[0]));
    CHECK_TRUE(group_along(&size, hosts * gpus / shard, shard, &mesh->groups[1]));
    CHECK_INT(layout_build_for_groups(&mesh->cluster.arena, &mesh->cluster.cluster, hosts, gpus,
                                      true, mesh->groups, 2, &mesh->layout, &mesh->cluster.diag),
              STATUS_OK);
    for (int32_t i = 0; i < 2; i++)
        group_split_build(&mesh->cluster.arena, &mesh->layout, &mesh->groups[i], &mesh->splits[i]);
}

static double share_of(const struct group_class *item, int32_t resource)
{
    for (int32_t i = 0; i < item->share_count; i++) {
        if (item->shares[i].resource == resource)
            return item->shares[i].groups;
    }
    return 1;
}

/* All alike: one class of ranks, one of shard groups and one of replica groups. */
static void test_all_alike(void)
{
    struct mesh_fixture mesh;
    mesh_init(&mesh, NULL, 4, 8, 16);
    CHECK_INT(mesh.layout.class_count, 1);
    CHECK_INT(mesh.layout.classes[0].count, 32);
    CHECK_INT(mesh.layout.classes[0].hosts, 4);
    CHECK_INT(mesh.layout.resources[mesh.layout.classes[0].nic_out].instances, 32);
    CHECK_INT(mesh.splits[0].count, 1);
    CHECK_INT(mesh.splits[0].items[0].instances, 2);
    CHECK_INT(mesh.splits[0].items[0].view->hosts, 2);
    CHECK_INT(mesh.splits[0].items[0].view->nics_per_host, 8);
    CHECK_INT(mesh.splits[1].items[0].instances, 16);
    CHECK_INT(mesh.splits[1].items[0].view->nics_per_host, 1);
    CHECK_INT(mesh.splits[1].items[0].share_count, 0); /* each has a NIC of its own */
    fixture_release(&mesh.cluster);
}

/* Eight replica groups send through the one NIC of a host, four of eight GPUs through each of two.
 */
static void test_shared_nics(void)
{
    static const char *const one[] = {"host.pcie=", "host.nics.count=1", NULL};
    static const char *const two[] = {"host.pcie=", "host.nics.count=2", NULL};
    struct mesh_fixture mesh;
    mesh_init(&mesh, one, 4, 8, 8);
    CHECK_NEAR(share_of(mesh.splits[1].items, mesh.layout.classes[0].nic_out), 8, 0);
    CHECK_NEAR(share_of(mesh.splits[1].items, mesh.layout.classes[0].hbm), 1, 0);
    fixture_release(&mesh.cluster);
    mesh_init(&mesh, two, 4, 8, 8);
    CHECK_NEAR(share_of(mesh.splits[1].items, mesh.layout.classes[0].nic_in), 4, 0);
    fixture_release(&mesh.cluster);
    /* Groups of 4 of 8 on two hosts: two of them over one NIC, each over its own of two. */
    mesh_init(&mesh, one, 4, 8, 16);
    CHECK_NEAR(share_of(mesh.splits[0].items, mesh.layout.classes[0].nic_out), 1, 0);
    CHECK_INT(mesh.splits[0].items[0].view->nics_per_host, 1);
    fixture_release(&mesh.cluster);
}

/* The example of group_layout.h: six classes, of which the counts say which they are. */
static void test_slow_gpu_splits(void)
{
    static const char *const slow[] = {"overrides=[{host: 3, gpu: 2, clock_frac: 0.8}]", NULL};
    static const int64_t first[] = {0, 8, 10, 16, 24, 26}, count[] = {8, 7, 1, 8, 7, 1};
    struct mesh_fixture mesh;
    mesh_init(&mesh, slow, 4, 8, 16);
    if (CHECK_INT(mesh.layout.class_count, 6)) {
        for (int32_t i = 0; i < 6; i++) {
            check_context("class %d", (int)i);
            CHECK_INT(mesh.layout.classes[i].first_rank, first[i]);
            CHECK_INT(mesh.layout.classes[i].count, count[i]);
        }
        check_context(NULL);
        /* Shard groups differ; so do the replicas of hosts 0 and 2, and of 1 and 3. */
        CHECK_INT(mesh.splits[0].count, 2);
        CHECK_INT(mesh.splits[0].items[1].instances, 1);
        CHECK_INT(mesh.splits[0].items[1].view->class_count, 3);
        CHECK_INT(mesh.splits[1].count, 3);
        CHECK_INT(mesh.splits[1].item_of[2], mesh.splits[1].item_of[5]);
        CHECK_INT(mesh.splits[1].items[mesh.splits[1].item_of[4]].instances, 7);
    }
    fixture_release(&mesh.cluster);
}

/* Stages differ by place, whatever they compute; a ring by where its neighbours are. */
static void test_orders(void)
{
    struct cluster_fixture cluster;
    fixture_init(&cluster, "dgx-h100", NULL);
    struct layout layout = {.gpus_per_host = 8, .ranks = 32};
    struct group stages = {0}, ring = {0};
    CHECK_TRUE(group_along(&layout, 4, 8, &stages));
    stages.order = GROUP_STAGES;
    CHECK_INT(layout_build_for_groups(&cluster.arena, &cluster.cluster, 4, 8, true, &stages, 1,
                                      &layout, &cluster.diag),
              STATUS_OK);
    CHECK_INT(layout.class_count, 4);
    CHECK_INT(layout.classes[2].first_rank, 16);
    CHECK_TRUE(group_along(&layout, 16, 1, &ring));
    ring.order = GROUP_RING;
    CHECK_INT(layout_build_for_groups(&cluster.arena, &cluster.cluster, 4, 8, true, &ring, 1,
                                      &layout, &cluster.diag),
              STATUS_OK);
    /* Local index 0 has its predecessor on another host, 7 its successor; distance tells the rest.
     */
    CHECK_INT(layout.class_count, 8);
    CHECK_INT(layout.classes[0].count, 4);
    fixture_release(&cluster);
}

const struct check_case group_cases[] = {
    {"along", test_along},
    {"places", test_places},
    {"all alike", test_all_alike},
    {"shared NICs", test_shared_nics},
    {"slow GPU splits", test_slow_gpu_splits},
    {"orders", test_orders},
    {0},
};
