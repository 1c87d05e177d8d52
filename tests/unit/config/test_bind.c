/* tests/unit/config/test_bind.c: values of every kind, and every mistake with its whole message. */
#include <string.h>

#include "fixture.h"

static void test_all_kinds(void)
{
    struct fixture fixture;
    fixture_bind(&fixture,
                 "compile: false\nnodes: 23\ngpus: 7\nshare: 0.625\npower: 10.2 kW\n"
                 "memory: 23 GB\nwrap: module\ntitle: 0x10 yes\n"
                 "tuning: {ratio: -2.385, latency: 3.5us}\n"
                 "nics: {count: 5, bandwidth: 400Gbps}\n"
                 "host: {gpus: 3, nics: {count: 2, bandwidth: \"25 GB/s\"}}\n"
                 "shape: {kind: polygon, sides: 5}\n"
                 "slow:\n  - {host: 3, gpu: 2, clock_frac: 0.75}\n  - {clock_frac: 1}\n"
                 "ideal: [host, 'copies']\nextra: {a: [1, \"2\"], b: ~}\n",
                 NULL);
    const struct bound *bound = &fixture.bound;
    CHECK_TEXT(fixture.messages, "");
    CHECK_INT(fixture.status, STATUS_OK);
    CHECK_TRUE(!bound->is_compiled);
    CHECK_INT(bound->nodes, 23);
    CHECK_INT(bound->gpus, 7);
    CHECK_NEAR(bound->share, 0.625, 0);
    CHECK_NEAR(bound->power_w, 10200, 1e-15);
    CHECK_NEAR(bound->memory_bytes, 23e9, 0);
    CHECK_INT(bound->wrap, 3);
    CHECK_TEXT(bound->title, "0x10 yes");
    CHECK_NEAR(bound->tuning.ratio, -2.385, 0);
    CHECK_NEAR(bound->tuning.latency_s, 3.5e-6, 1e-15);
    CHECK_INT(bound->nics.count, 5);
    CHECK_NEAR(bound->nics.bytes_per_s, 50e9, 0);
    CHECK_INT(bound->host.gpus, 3);
    CHECK_TRUE(bound->host.name == NULL);
    CHECK_NEAR(bound->host.nics.bytes_per_s, 25e9, 0);
    CHECK_INT(bound->shape.kind, 1);
    CHECK_INT(bound->shape.sides, 5);
    CHECK_INT(bound->slow.count, 2);
    const struct slow_gpu *slow = bound->slow.items;
    CHECK_INT(slow[0].host, 3);
    CHECK_INT(slow[0].gpu, 2);
    CHECK_NEAR(slow[0].clock_frac, 0.75, 0);
    CHECK_INT(slow[1].host, 0);
    CHECK_INT(slow[1].gpu, -1);
    CHECK_INT(bound->ideal.count, 2);
    const char *const *ideal = bound->ideal.items;
    CHECK_TEXT(ideal[0], "host");
    CHECK_TEXT(ideal[1], "copies");
    CHECK_INT(node_get(bound->extra, "a")->entries.count, 2);
    CHECK_INT(bound->checked, 1);
    fixture_release(&fixture);
}

/* `tuning: 0.625` is {ratio: 0.625}: in the file, by -s, and as what a longer -s edits. */
static void test_scalar_for_map(void)
{
    const struct {
        const char *yaml, *override;
        double ratio, latency_s;
    } rows[] = {{"nodes: 4\ntuning: 0.625\n", NULL, 0.625, 7e-7},
                {"nodes: 4\ntuning: {ratio: 3, latency: 2 us}\n", "tuning=0.875", 0.875, 7e-7},
                {"nodes: 4\ntuning: 0.625\n", "tuning.latency=2.5 us", 0.625, 2.5e-6}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        const char *const overrides[] = {rows[i].override, NULL};
        check_context("row %zu", i);
        fixture_bind(&fixture, rows[i].yaml, rows[i].override != NULL ? overrides : NULL);
        CHECK_TEXT(fixture.messages, "");
        CHECK_NEAR(fixture.bound.tuning.ratio, rows[i].ratio, 0);
        CHECK_NEAR(fixture.bound.tuning.latency_s, rows[i].latency_s, 1e-15);
        fixture_release(&fixture);
    }
    check_context(NULL);
}

static void test_defaults(void)
{
    struct fixture fixture;
    fixture_bind(&fixture, "nodes: 4\nwrap: ~\nmemory:\ntuning: null\nslow: []\n", NULL);
    const struct bound *bound = &fixture.bound;
    CHECK_CONTAINS(fixture.messages, "'memory' is null: its default, 80 GiB, stands");
    CHECK_TRUE(bound->is_compiled);
    CHECK_INT(bound->gpus, -1);
    CHECK_NEAR(bound->memory_bytes, 85899345920.0, 0);
    CHECK_INT(bound->wrap, 1);
    CHECK_NEAR(bound->tuning.ratio, 0.375, 0);
    CHECK_NEAR(bound->tuning.latency_s, 7e-7, 1e-15);
    /* Optional, with required keys: left alone. */
    CHECK_INT(bound->nics.count, 0);
    CHECK_INT(bound->host.gpus, 0);
    CHECK_INT(bound->slow.count, 0);
    CHECK_TRUE(bound->title == NULL);
    CHECK_TRUE(bound->extra == NULL);
    fixture_release(&fixture);
}

/* The messages about `yaml`, after a correct first line `nodes: 4`. */
static void check_row(const char *yaml, const char *messages)
{
    struct arena arena = {0};
    check_context("%s", yaml);
    check_messages(arena_printf(&arena, "nodes: 4\n%s\n", yaml), messages);
    check_context(NULL);
    arena_release(&arena);
}

static void test_numbers(void)
{
#define COUNT_HINT "      = digits only: no fraction, unit, exponent, '_' or leading zero\n"
    check_row("nics: {count: 1.5, bandwidth: 1 GB/s}",
              "t.yaml:2:15: error: 'count' must be an integer from 1 to 64, not '1.5'\n"
              "    2 | nics: {count: 1.5, bandwidth: 1 GB/s}\n"
              "      |               ^^^\n" COUNT_HINT);
    static const char *const wrong[] = {
        "8 GB", "010", "0x8", "1e3", "1_000", ".nan", "8-", "8 8", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct arena arena = {0};
        char carets[32] = {0};
        memset(carets, '^', strlen(wrong[i]));
        const char *yaml = arena_printf(&arena, "gpus: \"\"\nnodes: %s\n", wrong[i]);
        check_context("%s", wrong[i]);
        check_messages(strchr(yaml, '\n') + 1,
                       arena_printf(&arena,
                                    "t.yaml:1:8: error: 'nodes' must be an integer from 1 to 4096, "
                                    "not '%s'\n    1 | nodes: %s\n      |        %s\n" COUNT_HINT,
                                    wrong[i], wrong[i], carets));
        arena_release(&arena);
    }
    check_row("gpus: al", "t.yaml:2:7: error: 'gpus' must be an integer of at least 1 or 'all', "
                          "not 'al'\n"
                          "    2 | gpus: al\n"
                          "      |       ^^\n"
                          "      = did you mean 'all'?\n");
    check_row("gpus: 0", "t.yaml:2:7: error: 'gpus' must be an integer of at least 1 or 'all', "
                         "not '0'\n"
                         "    2 | gpus: 0\n"
                         "      |       ^\n");
    check_row("gpus: \"8\"", "t.yaml:2:7: error: 'gpus' must be an integer of at least 1 or 'all', "
                             "but '8' in quotes is a text\n"
                             "    2 | gpus: \"8\"\n"
                             "      |       ^^^\n"
                             "      = remove the quotes\n");
    check_row("share: 1.25", "t.yaml:2:8: error: 'share' must be a number from 0 to 1, not '1.25'\n"
                             "    2 | share: 1.25\n"
                             "      |        ^^^^\n");
    check_row("share: .inf", "t.yaml:2:8: error: 'share' must be a number from 0 to 1, not '.inf'\n"
                             "    2 | share: .inf\n"
                             "      |        ^^^^\n"
                             "      = a plain number: no unit, nan or inf\n");
    check_row("share: {a: 1}", "t.yaml:2:9: error: 'share' must be a number from 0 to 1, not a "
                               "map\n"
                               "    2 | share: {a: 1}\n"
                               "      |         ^\n");
}

static void test_quantities(void)
{
#define BANDWIDTH_HINT                                                                             \
    "      = accepted units: Gbps (Gb/s, Gbit/s) for bits; GB/s, GiB/s for bytes\n"
    check_row("nics:\n  count: 1\n  bandwidth: 400 Gb",
              "t.yaml:4:14: error: unit 'Gb' does not fit 'bandwidth'\n"
              "    4 |   bandwidth: 400 Gb\n"
              "      |              ^^^^^^\n" BANDWIDTH_HINT);
    check_row("nics:\n  count: 1\n  bandwidth: 400",
              "t.yaml:4:14: error: 'bandwidth' needs a unit\n"
              "    4 |   bandwidth: 400\n"
              "      |              ^^^\n" BANDWIDTH_HINT);
    check_row("nics:\n  count: 1\n  bandwidth: 400 Gbp",
              "t.yaml:4:14: error: unknown unit 'Gbp' for 'bandwidth'\n"
              "    4 |   bandwidth: 400 Gbp\n"
              "      |              ^^^^^^^\n" BANDWIDTH_HINT);
    check_row(
        "nics:\n  count: 1\n  bandwidth: fast",
        "t.yaml:4:14: error: 'bandwidth' must be a bandwidth from 0 B/s to 1 TB/s, not 'fast'\n"
        "    4 |   bandwidth: fast\n"
        "      |              ^^^^\n" BANDWIDTH_HINT);
    check_row("nics:\n  count: 1\n  bandwidth: nan GB/s",
              "t.yaml:4:14: error: 'bandwidth' must be a bandwidth from 0 B/s to 1 TB/s, not 'nan "
              "GB/s'\n"
              "    4 |   bandwidth: nan GB/s\n"
              "      |              ^^^^^^^^\n" BANDWIDTH_HINT);
    check_row("nics:\n  count: 1\n  bandwidth: 9 TB/s",
              "t.yaml:4:14: error: 'bandwidth' must be a bandwidth from 0 B/s to 1 TB/s, not '9 "
              "TB/s'\n"
              "    4 |   bandwidth: 9 TB/s\n"
              "      |              ^^^^^^\n");
    check_row("memory: 1e308 TB", "t.yaml:2:9: error: 'memory' is too large: '1e308 TB'\n"
                                  "    2 | memory: 1e308 TB\n"
                                  "      |         ^^^^^^^^\n");
}

static void test_words(void)
{
    static const char *const others[] = {"yes", "NO", "on", "off", "True", "FALSE"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct arena arena = {0};
        char carets[8] = {0};
        memset(carets, '^', strlen(others[i]));
        check_row(arena_printf(&arena, "compile: %s", others[i]),
                  arena_printf(&arena,
                               "t.yaml:2:10: error: 'compile' must be true or false, not '%s'\n"
                               "    2 | compile: %s\n"
                               "      |          %s\n"
                               "      = yes, no, on, off and capitals are texts here: write true "
                               "or false\n",
                               others[i], others[i], carets));
        arena_release(&arena);
    }
    check_row("compile: 1", "t.yaml:2:10: error: 'compile' must be true or false, not '1'\n"
                            "    2 | compile: 1\n"
                            "      |          ^\n");
    check_row("compile: 'true'", "t.yaml:2:10: error: 'compile' must be true or false, but 'true' "
                                 "in quotes is a text\n"
                                 "    2 | compile: 'true'\n"
                                 "      |          ^^^^^^\n"
                                 "      = remove the quotes\n");
    check_row("wrap: blok", "t.yaml:2:7: error: unknown value 'blok' for 'wrap'\n"
                            "    2 | wrap: blok\n"
                            "      |       ^^^^\n"
                            "      = did you mean 'block'? accepted: block, none, module\n");
    check_row("wrap: layers", "t.yaml:2:7: error: unknown value 'layers' for 'wrap'\n"
                              "    2 | wrap: layers\n"
                              "      |       ^^^^^^\n"
                              "      = accepted: block, none, module\n");
    check_row("title: [a]", "t.yaml:2:8: error: 'title' must be a text, not a list\n"
                            "    2 | title: [a]\n"
                            "      |        ^\n");
}

static void test_keys(void)
{
    check_row("tuning: {ration: 1}",
              "t.yaml:2:10: error: unknown key 'ration' in 'tuning'\n"
              "    2 | tuning: {ration: 1}\n"
              "      |          ^^^^^^\n"
              "      = did you mean 'ratio'? accepted keys: ratio, latency\n");
    check_row("tuning: {x: 1, y: 2}", "t.yaml:2:10: error: unknown key 'x' in 'tuning'\n"
                                      "    2 | tuning: {x: 1, y: 2}\n"
                                      "      |          ^\n"
                                      "      = accepted keys: ratio, latency\n"
                                      "t.yaml:2:16: error: unknown key 'y' in 'tuning'\n"
                                      "    2 | tuning: {x: 1, y: 2}\n"
                                      "      |                ^\n"
                                      "      = accepted keys: ratio, latency\n");
    check_row("nics:\n  count: 3", "t.yaml:3:3: error: 'bandwidth' is missing in 'nics'\n"
                                   "    3 |   count: 3\n"
                                   "      |   ^^^^^\n"
                                   "      = bandwidth: a bandwidth from 0 B/s to 1 TB/s (per "
                                   "direction)\n");
    /* One mistake, one message: the unknown key is the missing one. */
    check_row("nics: {count: 3, bandwith: 1 GB/s}",
              "t.yaml:2:18: error: unknown key 'bandwith' in 'nics'\n"
              "    2 | nics: {count: 3, bandwith: 1 GB/s}\n"
              "      |                  ^^^^^^^^\n"
              "      = did you mean 'bandwidth'? accepted keys: count, bandwidth\n");
    check_messages("wrap: none\n", "t.yaml:1:1: error: 'nodes' is missing\n"
                                   "    1 | wrap: none\n"
                                   "      | ^^^^\n"
                                   "      = nodes: an integer from 1 to 4096 (hosts)\n");
    check_messages("wrap: none\nnodes: ~\n", "t.yaml:2:8: error: 'nodes' is null\n"
                                             "    2 | nodes: ~\n"
                                             "      |        ^\n"
                                             "      = nodes: an integer from 1 to 4096 (hosts)\n");
    check_messages("[1]\n", "t.yaml:1:1: error: the file must be a map, not a list\n"
                            "    1 | [1]\n"
                            "      | ^\n");
}

static void test_structures(void)
{
    check_row("tuning: [5]", "t.yaml:2:9: error: 'tuning' must be a map, not a list\n"
                             "    2 | tuning: [5]\n"
                             "      |         ^\n");
    check_row("shape: 5", "t.yaml:2:8: error: 'shape' must be a map, not '5'\n"
                          "    2 | shape: 5\n"
                          "      |        ^\n");
    check_row("slow: {host: 1}", "t.yaml:2:8: error: 'slow' must be a list of maps (items: from 0 "
                                 "to 3), not a map\n"
                                 "    2 | slow: {host: 1}\n"
                                 "      |        ^^^^\n");
    check_row("slow: [{clock_frac: 2}, 7, ~]",
              "t.yaml:2:21: error: 'clock_frac' must be a number from 0.125 to 1, not '2'\n"
              "    2 | slow: [{clock_frac: 2}, 7, ~]\n"
              "      |                     ^\n"
              "t.yaml:2:25: error: 'slow[1]' must be a map, not '7'\n"
              "    2 | slow: [{clock_frac: 2}, 7, ~]\n"
              "      |                         ^\n"
              "t.yaml:2:28: error: 'slow[2]' must be a map, not nothing\n"
              "    2 | slow: [{clock_frac: 2}, 7, ~]\n"
              "      |                            ^\n");
    check_row("slow: [{}, {}, {}, {}]", "t.yaml:2:7: error: 'slow' must be a list of maps (items: "
                                        "from 0 to 3), not 4\n"
                                        "    2 | slow: [{}, {}, {}, {}]\n"
                                        "      |       ^\n");
    check_row("ideal: [{a: 1}]", "t.yaml:2:10: error: 'ideal[0]' must be a text, not a map\n"
                                 "    2 | ideal: [{a: 1}]\n"
                                 "      |          ^\n");
    check_row("shape: {kind: star}", "t.yaml:2:9: error: a shape has no kind 'star'\n"
                                     "    2 | shape: {kind: star}\n"
                                     "      |         ^^^^\n");
    check_row("shape: {kind: circle, sides: 4}",
              "t.yaml:2:23: error: unknown key 'sides' in 'shape'\n"
              "    2 | shape: {kind: circle, sides: 4}\n"
              "      |                       ^^^^^\n"
              "      = accepted keys: kind, radius\n"
              "t.yaml:2:9: error: 'radius' is missing in 'shape'\n"
              "    2 | shape: {kind: circle, sides: 4}\n"
              "      |         ^^^^\n"
              "      = radius: a number\n");
}

/* Cross-checks run only over a struct without mistakes, and point. */
static void test_checks(void)
{
    struct fixture fixture;
    fixture_bind(&fixture, "nodes: 4\ntuning: {ratio: x}\n", NULL);
    CHECK_INT(fixture.bound.checked, 0);
    fixture_release(&fixture);
    check_messages("wrap: none\nnodes: 13\n", "t.yaml:2:8: error: 13 nodes are unlucky\n"
                                              "    2 | nodes: 13\n"
                                              "      |        ^^\n"
                                              "      = take another\n");
    /* The value is a default: the message stands at the map that would hold it. */
    fixture_bind(&fixture, "nodes: 3\nshare: 0.75\ntuning:\n  latency: 2 us\n", NULL);
    CHECK_TEXT(fixture.messages, "t.yaml:4:3: warning: a share of 0.75 is unusual\n"
                                 "    4 |   latency: 2 us\n"
                                 "      |   ^^^^^^^\n");
    CHECK_INT(fixture.status, STATUS_OK);
    fixture_release(&fixture);
}

static void test_all_mistakes_in_one_run(void)
{
    struct fixture fixture;
    fixture_bind(&fixture,
                 "nodes: 0\ncompile: yes\nwrop: x\nshare: 7\npower: 3\nmemory: 3 GHz\nwrap: 1\n"
                 "tuning: [1]\nnics: {}\n",
                 NULL);
    CHECK_INT(fixture.diag.error_count, 10);
    fixture_release(&fixture);
}

static void test_foreign(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct config config;
    struct nics nics = {0};
    static const char text[] = "_comment: hello\nfoo: 1\ncount: 3\nbar: {a: [1]}\n"
                               "bandwidth: 3 GB/s\n";
    const struct source source = {"c.json", text, sizeof(text) - 1};
    diag_init(&diag, &arena);
    config_init(&config, &arena, &diag, NULL);
    CHECK_INT(node_parse(&arena, &source, &config.root, &diag), STATUS_OK);
    CHECK_INT(config_override(&config, "cout=3"), STATUS_OK);
    CHECK_INT(config_override(&config, "_comment=3"), STATUS_OK);
    CHECK_INT(config_bind(&config, &foreign_table, &nics), STATUS_INPUT);
    CHECK_INT(diag.count, 3);
    CHECK_INT(nics.count, 3);
    CHECK_INT(diag.items[0].level, DIAG_WARNING);
    CHECK_TEXT(diag.items[0].text, "'_comment' has no effect here");
    /* What the user types is judged strictly in foreign files, too. */
    CHECK_TEXT(diag.items[1].text, "unknown key 'cout'");
    CHECK_TEXT(diag.items[2].text, "unknown keys ignored: foo, bar");
    CHECK_INT(diag.items[2].place.line, 2);
    arena_release(&arena);
}

/* In a file null says what becomes of it; with -s it asks for the default and is quiet. */
static void test_null(void)
{
    static const char *const back[] = {"memory=null", NULL};
    static const struct {
        const char *yaml, *messages;
    } rows[] = {{"nodes: 4\nmemory: null\n",
                 "t.yaml:2:9: warning: 'memory' is null: its default, 80 GiB, stands\n"
                 "    2 | memory: null\n"
                 "      |         ^^^^\n"},
                {"nodes: 4\ntitle: ~\n",
                 "t.yaml:2:8: warning: 'title' is null, as if it were left out\n"
                 "    2 | title: ~\n"
                 "      |        ^\n"},
                {"nodes: 4\ntuning:\n", ""}}; /* a section with nothing in it */
    struct fixture fixture;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fixture_bind(&fixture, rows[i].yaml, NULL);
        CHECK_TEXT(fixture.messages, rows[i].messages);
        CHECK_INT(fixture.status, STATUS_OK);
        fixture_release(&fixture);
    }
    fixture_bind(&fixture, "nodes: null\n", NULL);
    CHECK_CONTAINS(fixture.messages, "t.yaml:1:8: error: 'nodes' is null\n");
    fixture_release(&fixture);
    fixture_bind(&fixture, "nodes: 4\nmemory: 3 GiB\n", back);
    CHECK_TEXT(fixture.messages, "");
    CHECK_NEAR(fixture.bound.memory_bytes, 80.0 * (1 << 30), 0);
    fixture_release(&fixture);
}

static void test_scalar_for_list(void)
{
    struct fixture fixture;
    fixture_bind(&fixture,
                 "nodes: 2\nhost: {gpus: 1}\nshape: {kind: circle, radius: 2.5}\n"
                 "ideal: latency\n",
                 NULL);
    CHECK_TEXT(fixture.messages, "");
    CHECK_INT(fixture.bound.ideal.count, 1);
    if (fixture.bound.ideal.count == 1)
        CHECK_TEXT(((const char *const *)fixture.bound.ideal.items)[0], "latency");
    CHECK_INT(config_place(&fixture.config, "ideal[0]").line, 4);
    CHECK_CONTAINS(fixture_resolved(&fixture), "latency                   (t.yaml:4:8)\n");
    fixture_release(&fixture);
    check_row("ideal: {a: 1}",
              "t.yaml:2:9: error: 'ideal' must be a text or a list of texts, not a map\n"
              "    2 | ideal: {a: 1}\n"
              "      |         ^\n");
    check_row("ideal: [[a]]", "t.yaml:2:9: error: 'ideal[0]' must be a text, not a list\n"
                              "    2 | ideal: [[a]]\n"
                              "      |         ^\n");
}

/* Names stand in tables: one that holds a line feed could add a row of its own. */
static void test_one_line(void)
{
    struct arena arena = {0};
    const char *bytes_200 = "0123456789012345678901234567890123456789012345678901234567890123456789"
                            "0123456789012345678901234567890123456789012345678901234567890123456789"
                            "012345678901234567890123456789012345678901234567890123456789";
    const struct {
        const char *name, *said;
    } rows[] = {
        {"\"lab\\nFAKE\"", "t.yaml:2:23: error: 'name' holds a line feed or a tab\n"},
        {"\"lab\\tFAKE\"", "'name' holds a line feed or a tab\n"},
        {"\"\"", "'name' is empty\n"},
        {"\"  \"", "'name' is empty\n"},
        {arena_printf(&arena, "%sa", bytes_200), "'name' has 201 bytes\n"},
        {bytes_200, ""},
        {"a b", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        check_context("%s", rows[i].name);
        fixture_bind(&fixture,
                     arena_printf(&arena, "nodes: 2\nhost: {gpus: 1, name: %s}\n", rows[i].name),
                     NULL);
        CHECK_CONTAINS(fixture.messages, rows[i].said);
        if (rows[i].said[0] != '\0')
            CHECK_CONTAINS(fixture.messages, "= one line of at most 200 bytes\n");
        else
            CHECK_TRUE(strstr(fixture.messages, "'name'") == NULL);
        fixture_release(&fixture);
    }
    arena_release(&arena);
    check_context(NULL);
}

/* Escapes are how these come in: as they are, the reader refuses most of them. */
static void test_hidden_characters(void)
{
    static const struct {
        const char *yaml, *said;
    } rows[] = {
        {"title: \"a\\e[2Jb\"", "t.yaml:2:8: error: 'title' holds U+001B, a control character\n"},
        {"title: \"a\\rb\"", "'title' holds U+000D, a control character\n"},
        {"title: \"a\\x7F\"", "'title' holds U+007F, a control character\n"},
        {"title: \"\\u009B\"", "'title' holds U+009B, a control character\n"},
        {"title: \"\\u202Ea\"", "'title' holds U+202E, which turns the direction of writing\n"},
        {"title: a\u2066b", "t.yaml:2:8: error: 'title' holds U+2066, which turns the direction"},
        {"title: \u202Ab", "'title' holds U+202A, which turns the direction of writing\n"},
        {"host: {gpus: 1, name: \"\\a\"}", "'name' holds U+0007, a control character\n"},
        {"ideal: [fine, \"a\\bc\"]", "'ideal[1]' holds U+0008, a control character\n"},
        {"ideal: \"a\\bc\"", "'ideal[0]' holds U+0008, a control character\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        struct arena arena = {0};
        check_context("%s", rows[i].yaml);
        fixture_bind(&fixture, arena_printf(&arena, "nodes: 2\n%s\n", rows[i].yaml), NULL);
        CHECK_CONTAINS(fixture.messages, rows[i].said);
        CHECK_TRUE(strchr(fixture.messages, '\033') == NULL);
        CHECK_TRUE(strstr(fixture.messages, "\u2066") == NULL);
        CHECK_INT(fixture.status, STATUS_INPUT);
        fixture_release(&fixture);
        arena_release(&arena);
    }
    check_context(NULL);
    struct fixture fixture;
    fixture_bind(&fixture,
                 "nodes: 2\nhost: {gpus: 1}\nshape: {kind: circle, radius: 2.5}\n"
                 "title: \"a\\tb\\nlämna 模型\"\n",
                 NULL);
    CHECK_TEXT(fixture.messages, "");
    CHECK_TEXT(fixture.bound.title, "a\tb\nlämna 模型");
    fixture_release(&fixture);
}

const struct check_case bind_cases[] = {{"all kinds", test_all_kinds},
                                        {"a scalar for a map", test_scalar_for_map},
                                        {"defaults", test_defaults},
                                        {"numbers", test_numbers},
                                        {"quantities", test_quantities},
                                        {"words", test_words},
                                        {"keys", test_keys},
                                        {"structures", test_structures},
                                        {"checks", test_checks},
                                        {"all mistakes in one run", test_all_mistakes_in_one_run},
                                        {"foreign files", test_foreign},
                                        {"null", test_null},
                                        {"a scalar for a list", test_scalar_for_list},
                                        {"hidden characters", test_hidden_characters},
                                        {"one line", test_one_line},
                                        {0}};
