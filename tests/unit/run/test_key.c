/*
 * tests/unit/run/test_key.c: the key of a run is that of its content.
 *
 * A folder in front of the data folders holds one file of the catalog with one edit. A number that
 * the run reads changes the key, wherever it stands: GPU, grid, link, library, model,
 * configuration. Comments, blanks and the order of keys do not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "run_tests.h"

struct edit {
    const char *file, *from, *to; /* to: in place of the first `from` */
    bool changes_key;
};

static const struct edit edits[] = {
    {"topologies/gpus/grids/h100-sxm5-80gb.grid", "r 1 32 10497 ", "r 1 32 10498 ", true},
    {"topologies/gpus/grids/h100-sxm5-80gb.grid", "wave_permille 100", "wave_permille 101", true},
    {"topologies/gpus/grids/h100-sxm5-80gb.grid", "# made by", "# was made by", false},
    {"topologies/gpus/grids/h100-sxm5-80gb.grid", "\ntable bf16", "\n# bf16\ntable bf16", false},
    {"topologies/gpus/h100-sxm5-80gb.yaml", "sustained_frac: 0.88", "sustained_frac: 0.879", true},
    {"topologies/gpus/h100-sxm5-80gb.yaml", "bf16: 989.4 TFLOPS\n  fp16: 989.4 TFLOPS",
     "fp16: 989.4 TFLOPS   # first\n  bf16:   989.4 TFLOPS", false},
    {"topologies/links/ndr400.yaml", "ring_efficiency: 0.975", "ring_efficiency: 0.974", true},
    {"topologies/links/ndr400.yaml", "version: 1\nname: ndr400\n",
     "# a note\n\nname:   ndr400\nversion: 1\n", false},
    {"topologies/links/ndr400.yaml", "bandwidth: 400 Gbps", "bandwidth: 0.4 Tbps", false},
    {"topologies/libraries/nccl.yaml", "version: 1", "# the same\nversion: 1", false},
    {"models/llama-3.1-8b.json", "\"intermediate_size\": 14336", "\"intermediate_size\": 14208",
     true},
    {"models/llama-3.1-8b.json", "\"num_hidden_layers\": 32,\n \"num_key_value_heads\": 8,",
     "\"num_key_value_heads\": 8, \"num_hidden_layers\":   32,", false},
    {"configs/llama3-8b_dgx-h100.yaml", "seq_len: 8192", "seq_len: 8064", true},
    {"configs/llama3-8b_dgx-h100.yaml", "version: 1", "# a note\nversion:   1", false},
};

static void key_of(const char *overrides, struct hash128 *key)
{
    struct arena arena = {0};
    struct diag diag;
    struct experiment experiment;
    diag_init(&diag, &arena);
    CHECK_INT(experiment_load(&experiment, "llama3-8b_dgx-h100", &overrides,
                              overrides[0] != '\0' ? 1 : 0, &diag),
              STATUS_OK);
    *key = experiment_key(&experiment);
    experiment_release(&experiment);
    arena_release(&arena);
}

static bool is_same(const struct hash128 *a, const struct hash128 *b)
{
    return a->high == b->high && a->low == b->low;
}

/* FOLDER/models/x.json: its folders are made. */
static void write_file(struct arena *arena, const char *path, const char *text)
{
    char *part = arena_strdup(arena, path);
    for (char *at = strchr(part + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(part, 0755);
        *at = '/';
    }
    FILE *file = fopen(path, "w");
    CHECK_TRUE(file != NULL);
    if (file == NULL)
        return;
    fputs(text, file);
    CHECK_INT(fclose(file), 0);
}

static const char *edited(struct arena *arena, const struct edit *edit)
{
    struct strbuf text = {0};
    struct diag diag;
    diag_init(&diag, arena);
    const char *path = ARENA_JOIN(arena, FSDPSIM_SOURCE_DIR "/", edit->file);
    CHECK_INT(strbuf_read_file(&text, path, 1 << 20, &diag), STATUS_OK);
    const char *at = text.length > 0 ? strstr(text.text, edit->from) : NULL;
    CHECK_TRUE(at != NULL);
    const char *result = "";
    if (at != NULL)
        result = ARENA_JOIN(arena, arena_strndup(arena, text.text, (size_t)(at - text.text)),
                            edit->to, at + strlen(edit->from));
    strbuf_release(&text);
    return result;
}

static void test_content(void)
{
    struct arena arena = {0};
    struct hash128 plain, other;
    char folder[] = "/tmp/fsdpsim_key.XXXXXX";
    CHECK_TRUE(mkdtemp(folder) != NULL);
    const char *before = getenv("FSDPSIM_DATA");
    const char *kept = before != NULL ? arena_strdup(&arena, before) : NULL;
    setenv("FSDPSIM_DATA", FSDPSIM_SOURCE_DIR, 1);
    key_of("", &plain);
    setenv("FSDPSIM_DATA", ARENA_JOIN(&arena, folder, ":" FSDPSIM_SOURCE_DIR), 1);
    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        const char *path = ARENA_JOIN(&arena, folder, "/", edits[i].file);
        check_context("%s: %s", edits[i].file, edits[i].to);
        write_file(&arena, path, edited(&arena, &edits[i]));
        key_of("", &other);
        CHECK_INT(is_same(&plain, &other), !edits[i].changes_key);
        (void)unlink(path);
    }
    check_context(NULL);
    if (kept != NULL)
        setenv("FSDPSIM_DATA", kept, 1);
    else
        unsetenv("FSDPSIM_DATA");
    static const char *const folders[] = {"topologies/gpus/grids",
                                          "topologies/gpus",
                                          "topologies/links",
                                          "topologies/libraries",
                                          "topologies",
                                          "models",
                                          "configs",
                                          "."};
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        (void)rmdir(ARENA_JOIN(&arena, folder, "/", folders[i]));
    (void)rmdir(folder);
    arena_release(&arena);
}

/* The value counts, not how or where it is written. */
static void test_overrides(void)
{
    struct hash128 plain, same, other;
    key_of("", &plain);
    key_of("train.seq_len=8192", &same);
    key_of("simulate.seed=2", &other);
    CHECK_TRUE(is_same(&plain, &same));
    CHECK_TRUE(!is_same(&plain, &other));
}

const struct check_case key_cases[] = {
    {"content", test_content}, {"overrides", test_overrides}, {0}};
