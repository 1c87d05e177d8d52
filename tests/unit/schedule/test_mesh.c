/* tests/unit/schedule/test_mesh.c: mesh_resolve. */
#include "schedule_tests.h"

static void test_resolved(void)
{
    static const struct {
        struct mesh_config mesh;
        int64_t gpus, dp_shard;
    } rows[] = {
        {{.dp_replicate = 1, .dp_shard = -1, .tp = 1, .pp = 1, .cp = 1, .ep = 1}, 1, 1},
        {{.dp_replicate = 1, .dp_shard = -1, .tp = 8, .pp = 4, .cp = 1, .ep = 1}, 1024, 32},
        {{.dp_replicate = 1, .dp_shard = 32, .tp = 8, .pp = 4, .cp = 1, .ep = 1}, 1024, 32},
        {{.dp_replicate = 3, .dp_shard = -1, .tp = 1, .pp = 1, .cp = 1, .ep = 1}, 24, 8},
        {{.dp_replicate = 2, .dp_shard = -1, .tp = 2, .pp = 3, .cp = 5, .ep = 7}, 420, 1},
    };
    struct played played;
    if (CHECK_INT(played_load(&played, TWO_BLOCKS, NULL), STATUS_OK)) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            struct mesh_config mesh = rows[i].mesh;
            check_context("row %d", (int)i);
            CHECK_INT(mesh_resolve(&played.experiment.config, "mesh", &mesh, rows[i].gpus),
                      STATUS_OK);
            CHECK_INT(mesh.dp_shard, rows[i].dp_shard);
        }
        check_context(NULL);
        CHECK_INT(played.diag.count, 0);
    }
    played_release(&played);
}

/* On the two GPUs of the configuration, and on others. */
static void test_mismatch(void)
{
    static const struct {
        const char *overrides;
        const char *parts[4];
    } rows[] = {
        {"mesh.dp_shard=0", {"'dp_shard' cannot be 0", "<command line>"}},
        {"mesh.dp_shard=1", {"2 GPUs", "a factor of 2 is missing", "dp_shard: 2"}},
        {"mesh.dp_shard=3", {"2 GPUs", "dp_shard 3"}},
        {"mesh.tp=3", {"2 GPUs", "tp 3", "does not divide them"}},
        {"mesh.tp=4; mesh.dp_shard=5", {"2 GPUs", "dp_shard: -1"}},
        {"mesh.pp=1048576; mesh.tp=1048576; mesh.cp=1048576; mesh.ep=1048576", {"2 GPUs"}},
        {"cluster=ideal-400; nodes=3; mesh.dp_replicate=5", {"24 GPUs", "dp_replicate 5"}},
        {"cluster=ideal-400; nodes=3; mesh.pp=2; mesh.tp=2; mesh.dp_shard=2",
         {"24 GPUs", "pp 2 x dp_shard 2 x tp 2 = 8", "a factor of 3 is missing", "dp_shard: 6"}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        CHECK_INT(played_load(&played, TWO_BLOCKS, rows[i].overrides), STATUS_INPUT);
        CHECK_INT(played.diag.error_count, 1);
        for (int part = 0; part < 4 && rows[i].parts[part] != NULL; part++)
            CHECK_CONTAINS(played_messages(&played), rows[i].parts[part]);
        played_release(&played);
    }
    check_context(NULL);
}

const struct check_case mesh_cases[] = {{"dp_shard is what is left", test_resolved},
                                        {"a product that does not match", test_mismatch},
                                        {0}};
