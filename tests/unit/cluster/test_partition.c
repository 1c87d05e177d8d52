/* tests/unit/cluster/test_partition.c: colour refinement on graphs whose orbits are plain to see.
 */
#include "check.h"
#include "cluster/partition.h"
#include "cluster_tests.h"

static void check_colours(int32_t node_count, const struct partition_edge *edges,
                          int32_t edge_count, int32_t *colours, const int32_t *expected,
                          int32_t expected_count)
{
    struct arena scratch = {0};
    CHECK_INT(partition_refine(&scratch, node_count, edges, edge_count, colours), expected_count);
    for (int32_t i = 0; i < node_count; i++) {
        check_context("node %d", (int)i);
        CHECK_INT(colours[i], expected[i]);
    }
    check_context(NULL);
    arena_release(&scratch);
}

static void test_path(void)
{
    const struct partition_edge edges[] = {{0, 1, 0}, {1, 2, 0}, {2, 3, 0}, {3, 4, 0}};
    int32_t colours[5] = {0};
    const int32_t expected[5] = {0, 1, 2, 1, 0};
    check_colours(5, edges, 4, colours, expected, 3);
}

static void test_labels_tell_apart(void)
{
    const struct partition_edge edges[] = {{0, 1, 7}, {1, 2, 8}};
    int32_t colours[3] = {0};
    const int32_t expected[3] = {0, 1, 2};
    check_colours(3, edges, 2, colours, expected, 3);
}

static void test_ring_stays_whole(void)
{
    const struct partition_edge edges[] = {{0, 1, 0}, {1, 2, 0}, {2, 3, 0}, {3, 0, 0}};
    int32_t colours[4] = {5, 5, 5, 5};
    const int32_t expected[4] = {0, 0, 0, 0};
    check_colours(4, edges, 4, colours, expected, 1);
}

static void test_seed_spreads(void)
{
    const struct partition_edge edges[] = {{0, 1, 0}, {1, 2, 0}, {2, 3, 0}, {3, 0, 0}};
    int32_t colours[4] = {9, 3, 3, 3};
    const int32_t expected[4] = {0, 1, 2, 1};
    check_colours(4, edges, 4, colours, expected, 3);
}

static void test_no_edges(void)
{
    int32_t colours[3] = {4, 2, 4};
    const int32_t expected[3] = {0, 1, 0};
    check_colours(3, NULL, 0, colours, expected, 2);
}

const struct check_case partition_cases[] = {{"path", test_path},
                                             {"labels tell apart", test_labels_tell_apart},
                                             {"ring stays whole", test_ring_stays_whole},
                                             {"a seed spreads", test_seed_spreads},
                                             {"no edges", test_no_edges},
                                             {0}};
