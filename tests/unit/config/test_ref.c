/*
 * tests/unit/config/test_ref.c: files that name files. A small data folder is written below a
 * temporary folder, which is the working folder meanwhile, so that paths in messages are short.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "config/config_private.h"
#include "fixture.h"

static const struct {
    const char *path, *text;
} files[] = {
    {"data/configs/ship.yaml", "nodes: 2\nhost: small\n"},
    {"data/models/x.yaml", "a: 1\n"},
    {"data/topologies/x.yaml", "a: 1\n"},
    {"data/hosts/small.yaml", "gpus: 1\nnics: ndr\n"},
    {"data/hosts/large.yaml", "name: Large\ngpus: 8\nnics: {count: 8, bandwidth: 400 Gbps}\n"},
    {"data/hosts/foreign.json", "{\"gpus\": 5}\n"},
    {"data/hosts/broken.yaml", "gpus: 3\nnics: {count: 3, bandwidth: 7}\n"},
    {"data/hosts/lost.yaml", "gpus: 3\nnics: ./nowhere.yaml\n"},
    {"data/hosts/list.yaml", "- 1\n"},
    {"data/nics/ndr.yaml", "count: 1\nbandwidth: 400 Gbps\naliases: [CX7, both, 4x-100Gb/s]\n"},
    {"data/nics/hdr.yaml", "count: 2\nbandwidth: 200 Gbps\naliases: [cx 6, BOTH]\n"},
    {"mine/a.yaml", "nodes: 3\nhost: ./mine-host.yaml\n"},
    {"mine/mine-host.yaml", "gpus: 6\nnics: mine-nics.yaml\n"},
    {"mine/mine-nics.yaml", "count: 3\nbandwidth: 11 GB/s\n"},
    {"here.yaml", "gpus: 9\n"},
};
static const char *const data_folders[] = {"data", NULL};

struct place_of_test {
    char folder[64];
    char before[4096];
};

static void write_file(const char *path, const char *text)
{
    char folder[128];
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
        mkdir(folder, 0755);
    }
    FILE *file = fopen(path, "w");
    if (CHECK_TRUE(file != NULL)) {
        fputs(text, file);
        fclose(file);
    }
}

static void enter(struct place_of_test *place)
{
    snprintf(place->folder, sizeof(place->folder), "/tmp/fsdpsim-test-XXXXXX");
    CHECK_TRUE(getcwd(place->before, sizeof(place->before)) != NULL);
    CHECK_TRUE(mkdtemp(place->folder) != NULL);
    CHECK_INT(chdir(place->folder), 0);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        write_file(files[i].path, files[i].text);
}

static void leave(struct place_of_test *place)
{
    static const char *const folders[] = {"data/configs", "data/models", "data/topologies",
                                          "data/hosts",   "data/nics",   "data",
                                          "mine"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        unlink(files[i].path);
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        rmdir(folders[i]);
    CHECK_INT(chdir(place->before), 0);
    CHECK_INT(rmdir(place->folder), 0);
}

/* As a user runs it: load `path`, overrides, bind. */
static void load(struct fixture *fixture, const char *path, const char *override)
{
    *fixture = (struct fixture){0};
    diag_init(&fixture->diag, &fixture->arena);
    config_init(&fixture->config, &fixture->arena, &fixture->diag, data_folders);
    fixture->status = config_load(&fixture->config, path);
    if (fixture->status == STATUS_OK && override != NULL)
        fixture->status = config_override(&fixture->config, override);
    if (fixture->status == STATUS_OK)
        fixture->status = config_bind(&fixture->config, &bound_table, &fixture->bound);
    size_t length = 0;
    FILE *file = open_memstream(&fixture->messages, &length);
    diag_write(&fixture->diag, file, false);
    fclose(file);
}

static void test_names(void)
{
    struct place_of_test place;
    struct fixture fixture;
    enter(&place);
    load(&fixture, "ship", NULL);
    CHECK_TEXT(fixture.messages, "");
    CHECK_TEXT(fixture.bound.host.name, "small");
    CHECK_INT(fixture.bound.host.gpus, 1);
    CHECK_NEAR(fixture.bound.host.nics.bytes_per_s, 50e9, 0);
    CHECK_TEXT(fixture.config.root_name, "ship");
    /* The value of `host` stands where the file is named; what is in it, there. */
    CHECK_INT(config_place(&fixture.config, "host").line, 2);
    CHECK_TEXT(config_place(&fixture.config, "host").source->name, "data/configs/ship.yaml");
    CHECK_TEXT(config_place(&fixture.config, "host.gpus").source->name, "data/hosts/small.yaml");
    CHECK_TRUE(config_is_set(&fixture.config, "host.nics.count"));
    CHECK_TRUE(!config_is_set(&fixture.config, "host.name"));
    CHECK_CONTAINS(fixture_resolved(&fixture),
                   "host                = small                     "
                   "(data/configs/ship.yaml:2:7)\n"
                   "host.name           = small                     (file name)\n"
                   "host.gpus           = 1                         "
                   "(data/hosts/small.yaml:1:7)\n"
                   "host.nics           = ndr                       "
                   "(data/hosts/small.yaml:2:7)\n"
                   "host.nics.count     = 1                         "
                   "(data/nics/ndr.yaml:1:8)\n"
                   "host.nics.bandwidth = 50 GB/s                   "
                   "(data/nics/ndr.yaml:2:12)\n");
    fixture_release(&fixture);

    load(&fixture, "ship", "host=large");
    CHECK_TEXT(fixture.messages, "");
    CHECK_TEXT(fixture.bound.host.name, "Large");
    fixture_release(&fixture);

    load(&fixture, "ship", "host=foreign");
    CHECK_TEXT(fixture.messages, "");
    CHECK_INT(fixture.bound.host.gpus, 5);
    fixture_release(&fixture);
    leave(&place);
}

static void test_paths(void)
{
    struct place_of_test place;
    struct fixture fixture;
    enter(&place);
    load(&fixture, "mine/a.yaml", NULL);
    CHECK_TEXT(fixture.messages, "");
    CHECK_TEXT(fixture.bound.host.name, "mine-host");
    CHECK_INT(fixture.bound.host.nics.count, 3);
    fixture_release(&fixture);

    load(&fixture, "mine/a.yaml", "host=here.yaml");
    CHECK_TEXT(fixture.messages, "");
    CHECK_INT(fixture.bound.host.gpus, 9);
    fixture_release(&fixture);

    /* Not here: beside the root file. */
    load(&fixture, "mine/a.yaml", "host=mine-host.yaml");
    CHECK_TEXT(fixture.messages, "");
    CHECK_INT(fixture.bound.host.gpus, 6);
    fixture_release(&fixture);
    leave(&place);
}

static void test_override_through_files(void)
{
    struct place_of_test place;
    struct fixture fixture;
    enter(&place);
    load(&fixture, "ship", "host.nics.bandwidth=100Gbps");
    CHECK_TEXT(fixture.messages, "");
    CHECK_INT(fixture.bound.host.nics.count, 1);
    CHECK_NEAR(fixture.bound.host.nics.bytes_per_s, 12.5e9, 0);
    fixture_release(&fixture);

    load(&fixture, "ship", "host.nics=hdr");
    CHECK_TEXT(fixture.messages, "");
    CHECK_INT(fixture.bound.host.nics.count, 2);
    fixture_release(&fixture);

    load(&fixture, "ship", "host.nisc.count=3");
    CHECK_TEXT(fixture.messages, "<command line>:1:6: error: unknown key 'nisc' in 'host'\n"
                                 "    1 | host.nisc.count=3\n"
                                 "      |      ^^^^\n"
                                 "      = did you mean 'nics'? accepted keys: name, gpus, nics\n");
    fixture_release(&fixture);
    leave(&place);
}

/* Other names for a file: in any case, with blanks, and where they look like a path. */
static void test_aliases(void)
{
    static const struct {
        const char *override;
        double bytes_per_s;
        const char *message;
    } rows[] = {
        {"host.nics=cx7", 50e9, ""},
        {"host.nics=CX 6", 25e9, ""},
        {"host.nics=4x-100gb/S", 50e9, ""},
        {"host.nics=both", 0, "'both' for 'nics' is an alias of 'hdr' and of 'ndr'"},
        {"host.nics=CX8", 0, "did you mean 'CX7'? names in nics/ (or write a path): hdr, ndr"},
        {"host.nics=ndx", 0, "did you mean 'ndr'? names in nics/ (or write a path): hdr, ndr"},
    };
    struct place_of_test place;
    enter(&place);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        check_context("%s", rows[i].override);
        load(&fixture, "ship", rows[i].override);
        CHECK_CONTAINS(fixture.messages, rows[i].message);
        CHECK_INT(fixture.status, rows[i].bytes_per_s > 0 ? STATUS_OK : STATUS_INPUT);
        if (rows[i].bytes_per_s > 0)
            CHECK_NEAR(fixture.bound.host.nics.bytes_per_s, rows[i].bytes_per_s, 0);
        fixture_release(&fixture);
    }
    check_context(NULL);
    leave(&place);
}

static void test_mistakes(void)
{
    static const struct {
        const char *override, *messages;
    } rows[] = {
        {"host=smal", "<command line>:1:6: error: unknown name 'smal' for 'host'\n"
                      "    1 | host=smal\n"
                      "      |      ^^^^\n"
                      "      = did you mean 'small'? names in hosts/ (or write a path): broken, "
                      "foreign, large, list, lost, small\n"},
        {"host=''",
         "<command line>:1:6: error: unknown name '' for 'host'\n"
         "    1 | host=''\n"
         "      |      ^^\n"
         "      = names in hosts/ (or write a path): broken, foreign, large, list, lost, "
         "small\n"},
        {"host=no/such.yaml", "<command line>:1:6: error: 'host' names no file: 'no/such.yaml'\n"
                              "    1 | host=no/such.yaml\n"
                              "      |      ^^^^^^^^^^^^\n"
                              "      = looked for no/such.yaml and data/configs/no/such.yaml\n"},
        {"host.nics=x.json", "<command line>:1:11: error: 'nics' names a JSON file: accepted is a "
                             "YAML file\n"
                             "    1 | host.nics=x.json\n"
                             "      |           ^^^^^^\n"},
        {"host=broken", "data/hosts/broken.yaml:2:29: error: 'bandwidth' needs a unit\n"
                        "    2 | nics: {count: 3, bandwidth: 7}\n"
                        "      |                             ^\n"
                        "      = accepted units: Gbps (Gb/s, Gbit/s) for bits; GB/s, GiB/s for "
                        "bytes\n"},
        {"host=lost", "data/hosts/lost.yaml:2:7: error: 'nics' names no file: './nowhere.yaml'\n"
                      "    2 | nics: ./nowhere.yaml\n"
                      "      |       ^^^^^^^^^^^^^^\n"
                      "      = looked for data/hosts/./nowhere.yaml and ./nowhere.yaml\n"},
        {"host=list", "data/hosts/list.yaml:1:1: error: 'host' must be a name from hosts/, a path "
                      "or a map, not a list\n"
                      "    1 | - 1\n"
                      "      | ^\n"},
        {"host=[]", "<command line>:1:6: error: 'host' must be a name from hosts/, a path or a "
                    "map, not a list\n"
                    "    1 | host=[]\n"
                    "      |      ^\n"},
    };
    struct place_of_test place;
    enter(&place);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture fixture;
        check_context("%s", rows[i].override);
        load(&fixture, "ship", rows[i].override);
        CHECK_TEXT(fixture.messages, rows[i].messages);
        CHECK_INT(fixture.status, STATUS_INPUT);
        fixture_release(&fixture);
    }
    check_context(NULL);
    leave(&place);
}

static void test_root_files(void)
{
    struct place_of_test place;
    struct fixture fixture;
    enter(&place);
    load(&fixture, "shp", NULL);
    CHECK_INT(fixture.status, STATUS_WORLD);
    CHECK_TEXT(fixture.messages, "error: cannot open 'shp': no such file, and no shipped config "
                                 "has that name (did you mean 'ship'?)\n");
    fixture_release(&fixture);
    load(&fixture, "mine/b.yaml", NULL);
    CHECK_INT(fixture.status, STATUS_WORLD);
    CHECK_TEXT(fixture.messages, "error: cannot open 'mine/b.yaml': No such file or directory\n");
    fixture_release(&fixture);
    load(&fixture, "mine/", NULL);
    CHECK_INT(fixture.status, STATUS_WORLD);
    fixture_release(&fixture);
    leave(&place);
}

static void test_data_folders(void)
{
    struct place_of_test place;
    struct arena arena = {0};
    struct strbuf both = {0};
    const char *old = getenv("FSDPSIM_DATA");
    char *kept = old != NULL ? strdup(old) : NULL;
    enter(&place);
    strbuf_printf(&both, "data::%s/mine:/no/such/folder:data", place.folder);
    setenv("FSDPSIM_DATA", both.text, 1);
    const char *const *folders = data_folders_find(&arena);
    CHECK_TEXT(folders[0], "data");
    CHECK_TEXT(folders[1], "mine");
    const char *const *names = data_names(&arena, data_folders, "hosts");
    static const char *const expected[] = {"broken", "foreign", "large", "list", "lost", "small"};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        CHECK_TEXT(names[i], expected[i]);
    CHECK_TRUE(names[6] == NULL);
    CHECK_TRUE(data_names(&arena, data_folders, "nothing")[0] == NULL);
    leave(&place);
    if (kept != NULL)
        setenv("FSDPSIM_DATA", kept, 1);
    else
        unsetenv("FSDPSIM_DATA");
    free(kept);
    strbuf_release(&both);
    arena_release(&arena);
}

/* What is there but is no file that can be read says what it is. */
static void test_obstacles(void)
{
    static const struct {
        const char *override, *said;
    } rows[] = {
        {"host=./mine", "error: cannot read './mine' for 'host': it is a folder\n"},
        {"host=mine/", "error: cannot read 'mine/' for 'host': it is a folder\n"},
        {"host=folder.yaml", "cannot read 'folder.yaml' for 'host': it is a folder\n"},
        {"host=loop.yaml", "cannot read 'loop.yaml' for 'host': Too many levels of symbolic links"},
        {"host=./shut/x.yaml", "cannot read './shut/x.yaml' for 'host': Permission denied\n"},
        {"host=here.yaml/x.yaml", "error: 'host' names no file: 'here.yaml/x.yaml'\n"},
        {"host=dangling.yaml", "error: 'host' names no file: 'dangling.yaml'\n"},
    };
    static const struct {
        const char *path, *said;
    } roots[] = {
        {"mine", "error: cannot open 'mine': it is a folder\n"},
        {"folder.yaml", "error: cannot read 'folder.yaml': it is a folder\n"},
        {"loop", "error: cannot open 'loop': Too many levels of symbolic links\n"},
        {"loop.yaml", "error: cannot open 'loop.yaml': Too many levels of symbolic links\n"},
    };
    struct place_of_test place;
    struct fixture fixture;
    enter(&place);
    CHECK_INT(mkdir("folder.yaml", 0755) | mkdir("shut", 0000), 0);
    CHECK_INT(symlink("loop.yaml", "loop.yaml") | symlink("loop", "loop"), 0);
    CHECK_INT(symlink("nowhere.yaml", "dangling.yaml"), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].override);
        /* Nothing is shut for the superuser. */
        if (strstr(rows[i].override, "shut") != NULL && geteuid() == 0)
            continue;
        load(&fixture, "ship", rows[i].override);
        CHECK_CONTAINS(fixture.messages, rows[i].said);
        CHECK_INT(fixture.status, STATUS_INPUT);
        fixture_release(&fixture);
    }
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        check_context("%s", roots[i].path);
        load(&fixture, roots[i].path, NULL);
        CHECK_TEXT(fixture.messages, roots[i].said);
        CHECK_INT(fixture.status, STATUS_WORLD);
        fixture_release(&fixture);
    }
    check_context(NULL);
    CHECK_INT(rmdir("folder.yaml") | rmdir("shut"), 0);
    CHECK_INT(unlink("loop.yaml") | unlink("loop") | unlink("dangling.yaml"), 0);
    leave(&place);
}

static void test_file_stem(void)
{
    static const struct {
        const char *path, *stem;
    } rows[] = {
        {"a/llama.yaml", "llama"},
        {"llama-3.1-8b", "llama-3.1-8b"},
        {"/models/MyModel/config.json", "MyModel"},
        {"MyModel-2.5/config.json", "MyModel-2.5"},
        {"./MyModel/config.yaml", "MyModel"},
        {"/config.json", "config"},
        {"config.json", "config"},
        {"./config.json", "config"},
        {"a/../config.json", "config"},
        {"a/config.gpu.json", "config.gpu"},
        {"a/config", "config"},
        {"a/my.config.json", "my.config"},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].path);
        CHECK_TEXT(file_stem(&arena, rows[i].path), rows[i].stem);
    }
    check_context(NULL);
    arena_release(&arena);
}

/* A name of a file is a name in reports, too. */
static void test_hidden_in_names(void)
{
    struct place_of_test place;
    struct fixture fixture;
    enter(&place);
    write_file("a\033[2Jb.yaml",
               "nodes: 1\nhost: ./h\u202Ex.yaml\nshape: {kind: circle, radius: 2.5}\n");
    write_file("h\u202Ex.yaml", "gpus: 3\n");
    load(&fixture, "a\033[2Jb.yaml", NULL);
    CHECK_TEXT(fixture.messages, "");
    CHECK_TEXT(fixture.config.root_name, "a?[2Jb");
    CHECK_TEXT(fixture.bound.host.name, "h?x");
    CHECK_INT(fixture.bound.host.gpus, 3);
    CHECK_TRUE(strchr(fixture_resolved(&fixture), '\033') == NULL);
    CHECK_TRUE(strstr(fixture_resolved(&fixture), "\u202E") == NULL);
    CHECK_CONTAINS(fixture_resolved(&fixture), "(a?[2Jb.yaml:1:8)\n");
    fixture_release(&fixture);
    CHECK_INT(unlink("a\033[2Jb.yaml") | unlink("h\u202Ex.yaml"), 0);
    leave(&place);
}

static void test_has_read(void)
{
    struct place_of_test place;
    struct fixture fixture;
    enter(&place);
    CHECK_INT(link("data/nics/ndr.yaml", "other.yaml"), 0);
    load(&fixture, "ship", NULL);
    CHECK_TEXT(fixture.messages, "");
    CHECK_TRUE(config_has_read(&fixture.config, "data/configs/ship.yaml"));
    CHECK_TRUE(config_has_read(&fixture.config, "./data/../data/hosts/small.yaml"));
    CHECK_TRUE(config_has_read(&fixture.config, "other.yaml"));
    CHECK_TRUE(!config_has_read(&fixture.config, "here.yaml"));
    CHECK_TRUE(!config_has_read(&fixture.config, "nowhere.yaml"));
    fixture_release(&fixture);
    CHECK_INT(unlink("other.yaml"), 0);
    leave(&place);
}

const struct check_case ref_cases[] = {{"names", test_names},
                                       {"paths", test_paths},
                                       {"overrides through files", test_override_through_files},
                                       {"aliases", test_aliases},
                                       {"mistakes", test_mistakes},
                                       {"root files", test_root_files},
                                       {"data folders", test_data_folders},
                                       {"folders, loops, shut doors", test_obstacles},
                                       {"stems", test_file_stem},
                                       {"hidden characters in names", test_hidden_in_names},
                                       {"files that were read", test_has_read},
                                       {0}};
