/*
 * tests/golden/test_programs.c: programs as text, whole. FSDPSIM_ACCEPT=1 writes new ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "played.h"

static const struct {
    const char *name, *config, *overrides;
} programs[] = {
    {"two-blocks", "tests/golden/two-blocks.yaml", NULL},
    {"two-blocks-root", "tests/golden/two-blocks.yaml",
     "fsdp.wrap=block; train.grad_accum=2; train.precision.reduce_dtype=bf16; "
     "train.activation_checkpointing=full; cluster=ideal-400; gpus_per_node=3"},
};

static char *read_file(struct arena *arena, const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return NULL;
    enum { MAX_BYTES = 1 << 20 };
    char *text = ARENA_ARRAY(arena, char, MAX_BYTES);
    const size_t length = fread(text, 1, MAX_BYTES - 1, file);
    text[length] = '\0';
    fclose(file);
    return text;
}

/* Prints the first line that differs, with what stood there. */
static void print_difference(const char *old, const char *now)
{
    int line = 1;
    while (*old != '\0' && *old == *now) {
        line += *old == '\n';
        old++;
        now++;
    }
    printf("line %d: at '%.*s' instead of '%.*s'\n", line, (int)strcspn(now, "\n"), now,
           (int)strcspn(old, "\n"), old);
}

static void test_programs(void)
{
    const char *accept = getenv("FSDPSIM_ACCEPT");
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        struct played played;
        if (played_build(&played, programs[i].config, programs[i].overrides)) {
            const char *now = played_dump(&played);
            const char *path = arena_printf(
                &played.arena, FSDPSIM_SOURCE_DIR "/tests/golden/%s.program", programs[i].name);
            if (accept != NULL && strcmp(accept, "1") == 0) {
                FILE *file = fopen(path, "w");
                if (CHECK_TRUE(file != NULL))
                    CHECK_TRUE(fputs(now, file) >= 0 && fclose(file) == 0);
            }
            const char *old = read_file(&played.arena, path);
            check_context("%s", path);
            if (CHECK_TRUE(old != NULL) && !CHECK_TRUE(strcmp(old, now) == 0))
                print_difference(old, now);
            check_context(NULL);
        }
        played_release(&played);
    }
}

int main(int argc, char **argv)
{
    static const struct check_case cases[] = {{"whole programs", test_programs}, {0}};
    const struct check_suite suites[] = {{"programs", cases}, {0}};
    return check_main(argc, argv, suites);
}
