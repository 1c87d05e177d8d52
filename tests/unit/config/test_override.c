/* tests/unit/config/test_override.c: `-s key=value`. */
#include "fixture.h"

static void test_values(void)
{
    struct fixture fixture;
    static const char *const overrides[] = {"nodes=16",
                                            "tuning.ratio=0.5",
                                            "nics.bandwidth=100 Gbps",
                                            "slow[1].clock_frac=0.25",
                                            "ideal=[host, latency]",
                                            "title=a=b",
                                            "wrap=none",
                                            "wrap=module",
                                            "gpus=",
                                            "extra={a: [1, 2]}",
                                            NULL};
    fixture_bind(&fixture,
                 "nodes: 4\ngpus: 3\nnics: {count: 2, bandwidth: 9 GB/s}\n"
                 "slow: [{clock_frac: 1}, {clock_frac: 1}]\n",
                 overrides);
    const struct bound *bound = &fixture.bound;
    CHECK_TEXT(fixture.messages, "");
    CHECK_INT(bound->nodes, 16);
    CHECK_NEAR(bound->tuning.ratio, 0.5, 0);
    CHECK_NEAR(bound->tuning.latency_s, 7e-7, 1e-15);
    CHECK_NEAR(bound->nics.bytes_per_s, 12.5e9, 0);
    CHECK_INT(bound->nics.count, 2);
    CHECK_NEAR(((const struct slow_gpu *)bound->slow.items)[0].clock_frac, 1, 0);
    CHECK_NEAR(((const struct slow_gpu *)bound->slow.items)[1].clock_frac, 0.25, 0);
    CHECK_INT(bound->ideal.count, 2);
    CHECK_TEXT(bound->title, "a=b");
    CHECK_INT(bound->wrap, 3);
    CHECK_INT(bound->gpus, -1);
    CHECK_INT(node_get(bound->extra, "a")->entries.count, 2);
    fixture_release(&fixture);
}

static void test_shorter_first(void)
{
    struct fixture fixture;
    static const char *const overrides[] = {"nics.count=7", "nics={count: 3, bandwidth: 1 GB/s}",
                                            "slow=[{host: 0, gpu: 3, clock_frac: 0.5}]",
                                            "slow[0].gpu=5", NULL};
    fixture_bind(&fixture, "nodes: 4\n", overrides);
    CHECK_TEXT(fixture.messages, "");
    CHECK_INT(fixture.bound.nics.count, 7);
    CHECK_INT(((const struct slow_gpu *)fixture.bound.slow.items)[0].gpu, 5);
    fixture_release(&fixture);
}

/* Binding again (a sweep's next point) starts from the same tree. */
static void test_twice(void)
{
    struct fixture fixture;
    static const char *const overrides[] = {"nics.count=7", NULL};
    fixture_bind(&fixture, "nodes: 4\nnics: {count: 2, bandwidth: 9 GB/s}\n", overrides);
    const struct hash128 before = config_hash(&fixture.config);
    CHECK_INT(config_bind(&fixture.config, &bound_table, &fixture.bound), STATUS_OK);
    CHECK_U64(config_hash(&fixture.config).low, before.low);
    CHECK_INT(config_override(&fixture.config, "nics.count=8"), STATUS_OK);
    CHECK_INT(config_bind(&fixture.config, &bound_table, &fixture.bound), STATUS_OK);
    CHECK_INT(fixture.bound.nics.count, 8);
    CHECK_TRUE(config_hash(&fixture.config).low != before.low);
    fixture_release(&fixture);
}

static const struct {
    const char *override, *messages;
} mistakes[] = {
#define FORM_HINT                                                                                  \
    "      = accepted: key=value, with a dotted key as in fsdp.wrap=block or a.list[0].b=1\n"
    {"nodes", "<command line>:1:1: error: no '=' in the override\n"
              "    1 | nodes\n"
              "      | ^^^^^\n" FORM_HINT},
    {"=3", "<command line>:1:1: error: the override names no key\n"
           "    1 | =3\n"
           "      | ^\n" FORM_HINT},
    {"a..b=3", "<command line>:1:3: error: a part of the key is empty\n"
               "    1 | a..b=3\n"
               "      |   ^\n" FORM_HINT},
    {"a.=3", "<command line>:1:2: error: a part of the key is empty\n"
             "    1 | a.=3\n"
             "      |  ^\n" FORM_HINT},
    {".a=3", "<command line>:1:1: error: a part of the key is empty\n"
             "    1 | .a=3\n"
             "      | ^\n" FORM_HINT},
    {"slow[x].gpu=3", "<command line>:1:5: error: an index must be [digits]\n"
                      "    1 | slow[x].gpu=3\n"
                      "      |     ^^\n" FORM_HINT},
    {"slow[1=3", "<command line>:1:5: error: an index must be [digits]\n"
                 "    1 | slow[1=3\n"
                 "      |     ^^\n" FORM_HINT},
    {"slow[1]gpu=3", "<command line>:1:8: error: after an index comes '.', '[' or '='\n"
                     "    1 | slow[1]gpu=3\n"
                     "      |        ^\n" FORM_HINT},
    {"slow.[1]=3", "<command line>:1:5: error: a part of the key is empty\n"
                   "    1 | slow.[1]=3\n"
                   "      |     ^\n" FORM_HINT},
    {"tuning={ratio: 1", "<command line>:1:17: error: did not find expected ',' or '}'\n"
                         "    1 | tuning={ratio: 1\n"
                         "      |                 ^\n"
                         "<command line>:1:8: note: while parsing a flow mapping\n"
                         "    1 | tuning={ratio: 1\n"
                         "      |        ^\n"},
    {"title=é\xff", "<command line>:1:8: error: bytes that are not UTF-8\n"
                    "    1 | title=é\xff\n"
                    "      |        ^\n"},
    {"nodse=3", "<command line>:1:1: error: unknown key 'nodse'\n"
                "    1 | nodse=3\n"
                "      | ^^^^^\n"
                "      = did you mean 'nodes'? accepted keys: compile, nodes, gpus, share, "
                "power, memory, wrap, title, tuning, nics, host, shape, slow, ideal, extra\n"},
    {"tuning.ration=", "<command line>:1:8: error: unknown key 'ration' in 'tuning'\n"
                       "    1 | tuning.ration=\n"
                       "      |        ^^^^^^\n"
                       "      = did you mean 'ratio'? accepted keys: ratio, latency\n"},
    {"nodes.x=3", "<command line>:1:7: error: 'nodes' is '4' and has no key 'x'\n"
                  "    1 | nodes.x=3\n"
                  "      |       ^\n"
                  "t.yaml:1:8: note: written here\n"
                  "    1 | nodes: 4\n"
                  "      |        ^\n"},
    {"slow.gpu=3", "<command line>:1:6: error: 'slow' is a list and has no key 'gpu'\n"
                   "    1 | slow.gpu=3\n"
                   "      |      ^^^\n"
                   "t.yaml:2:7: note: written here\n"
                   "    2 | slow: [{clock_frac: 1}]\n"
                   "      |       ^\n"},
    {"slow[1].gpu=3", "<command line>:1:6: error: 'slow' has no item 1: it has 1\n"
                      "    1 | slow[1].gpu=3\n"
                      "      |      ^\n"},
    {"wrap[0]=3", "<command line>:1:6: error: 'wrap' is 'block' and has no item 0\n"
                  "    1 | wrap[0]=3\n"
                  "      |      ^\n"},
    {"title[0]=3", "<command line>:1:7: error: 'title' is nothing and has no item 0\n"
                   "    1 | title[0]=3\n"
                   "      |       ^\n"},
    {"nodes=3 GB", "<command line>:1:7: error: 'nodes' must be an integer from 1 to 4096, not "
                   "'3 GB'\n"
                   "    1 | nodes=3 GB\n"
                   "      |       ^^^^\n"
                   "      = digits only: no fraction, unit, exponent, '_' or leading zero\n"},
    {"nodes=", "t.yaml:1:1: error: 'nodes' is missing\n"
               "    1 | nodes: 4\n"
               "      | ^^^^^\n"
               "      = nodes: an integer from 1 to 4096 (hosts)\n"},
};

static void test_mistakes(void)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct fixture fixture;
        const char *const overrides[] = {mistakes[i].override, NULL};
        check_context("%s", mistakes[i].override);
        fixture_bind(&fixture, "nodes: 4\nslow: [{clock_frac: 1}]\n", overrides);
        CHECK_TEXT(fixture.messages, mistakes[i].messages);
        CHECK_INT(fixture.status, STATUS_INPUT);
        fixture_release(&fixture);
    }
    check_context(NULL);
}

const struct check_case override_cases[] = {{"values", test_values},
                                            {"shorter paths first", test_shorter_first},
                                            {"binding twice", test_twice},
                                            {"mistakes", test_mistakes},
                                            {0}};
