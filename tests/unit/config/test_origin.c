/* tests/unit/config/test_origin.c: what is in force, its hash, its place; the schema. */
#include <stdlib.h>

#include "fixture.h"

static void test_resolved(void)
{
    struct fixture fixture;
    static const char *const overrides[] = {"tuning.ratio=0.1", "title=a: b", NULL};
    fixture_bind(&fixture,
                 "nodes: 4\nmemory: 40960 MiB\nextra: {a: [1, '~', \"x, y\"], b: ~}\n"
                 "slow:\n- {clock_frac: 0.75}\nideal: [host]\n",
                 (const char *const[]){overrides[0], NULL});
    CHECK_TEXT(fixture_resolved(&fixture),
               "compile            = true                      (default)\n"
               "nodes              = 4                         (t.yaml:1:8)\n"
               "gpus               = all                       (default)\n"
               "memory             = 40 GiB                    (t.yaml:2:9)\n"
               "wrap               = block                     (default)\n"
               "tuning.ratio       = 0.1                       (<command line>)\n"
               "tuning.latency     = 700 ns                    (default)\n"
               "slow[0].gpu        = all                       (default)\n"
               "slow[0].clock_frac = 0.75                      (t.yaml:5:16)\n"
               "ideal[0]           = host                      (t.yaml:6:9)\n"
               "extra              = {a: [1, \"~\", \"x, y\"], b: null}  (t.yaml:3:9)\n");
    fixture_release(&fixture);
}

static struct hash128 hash_of(const char *yaml)
{
    struct fixture fixture;
    fixture_bind(&fixture, yaml, NULL);
    CHECK_TEXT(fixture.messages, "");
    const struct hash128 hash = config_hash(&fixture.config);
    fixture_release(&fixture);
    return hash;
}

/* The hash sees what is in force, however and in whatever order it was written. */
static void test_hash(void)
{
    const struct hash128 base = hash_of("nodes: 4\nmemory: 80 GiB\n");
    static const char *const same[] = {"nodes: 4\n", "memory: 81920 MiB\nnodes: 4\n",
                                       "{nodes: 4, wrap: block, tuning: {latency: 0.7 us}}\n"};
    static const char *const other[] = {"nodes: 5\n", "nodes: 4\nwrap: none\n",
                                        "nodes: 4\ntuning: {latency: 0.701 us}\n",
                                        "nodes: 4\ntitle: x\n", "nodes: 4\nslow: []\n"};
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        CHECK_U64(hash_of(same[i]).low, base.low);
        CHECK_U64(hash_of(same[i]).high, base.high);
    }
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
        CHECK_TRUE(hash_of(other[i]).low != base.low);
}

static void test_places(void)
{
    struct fixture fixture;
    fixture_bind(&fixture, "nodes: 4\nslow:\n- {clock_frac: 1}\n- {clock_frac: 0.5, gpu: 3}\n",
                 NULL);
    const struct config *config = &fixture.config;
    CHECK_INT(config_place(config, "nodes").column, 8);
    CHECK_INT(config_place(config, "slow[1].gpu").line, 4);
    CHECK_INT(config_place(config, "slow[1].gpu").column, 26);
    CHECK_INT(config_place(config, "slow[1]").column, 4);
    CHECK_INT(config_place(config, "slow").line, 3);
    static const char *const absent[] = {"slow[2].gpu", "slow[0].gpu", "wrap",      "tuning.ratio",
                                         "nodes.x",     "slow.x",      "tuning[0]", "nothing"};
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
        check_context("%s", absent[i]);
        CHECK_INT(config_place(config, absent[i]).line, 0);
        CHECK_TRUE(!config_is_set(config, absent[i]));
    }
    check_context(NULL);
    CHECK_TRUE(config_is_set(config, "slow[1].gpu"));
    CHECK_TRUE(config_is_set(config, "slow"));
    fixture_release(&fixture);
}

static void test_schema(void)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    schema_write(&bound_table, file);
    fclose(file);
    CHECK_CONTAINS(text, "thing: every kind of field\n"
                         "  compile  true or false                        default true\n"
                         "  nodes    an integer from 1 to 4096            required        hosts\n"
                         "  gpus     an integer of at least 1 or 'all'    default all\n");
    CHECK_CONTAINS(text, "             units: B, kB, MB, GB, TB");
    CHECK_CONTAINS(text, "             block: every transformer block\n");
    CHECK_CONTAINS(text, "  tuning   a map                                optional\n"
                         "    ratio    a number  default 0.375\n"
                         "    latency  a time    default 700 ns\n");
    CHECK_CONTAINS(text, "  host     a name from hosts/, a path or a map  optional\n"
                         "    name  one line                            optional\n");
    free(text);
}

const struct check_case origin_cases[] = {{"resolved", test_resolved},
                                          {"hash", test_hash},
                                          {"places", test_places},
                                          {"schema", test_schema},
                                          {0}};
