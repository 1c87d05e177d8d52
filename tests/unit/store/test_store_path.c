/* unit/store/test_store_path.c: where results go when nobody says. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store_fixture.h"

static void test_default_path(void)
{
    struct fixture fixture;
    char *before = getcwd(NULL, 0);
    fixture_init(&fixture);
    struct arena *arena = &fixture.arena;
    const char *home = arena_strdup(arena, getenv("HOME") != NULL ? getenv("HOME") : "");
    CHECK_INT(chdir(fixture.folder), 0);
    setenv("HOME", fixture.folder, 1);
    unsetenv("XDG_DATA_HOME");
    unsetenv("FSDPSIM_DB");

    const char *in_home = arena_printf(arena, "%s/.local/share/fsdpsim/fsdpsim.db", fixture.folder);
    CHECK_TEXT(store_default_path(arena, NULL), in_home);
    fixture.path = in_home;
    fixture_fill(&fixture, 1); /* its folder was made */
    setenv("XDG_DATA_HOME", "relative", 1);
    CHECK_TEXT(store_default_path(arena, NULL), in_home);
    setenv("XDG_DATA_HOME", arena_printf(arena, "%s/data", fixture.folder), 1);
    CHECK_TEXT(store_default_path(arena, NULL),
               arena_printf(arena, "%s/data/fsdpsim/fsdpsim.db", fixture.folder));
    CHECK_INT(access("data/fsdpsim", F_OK), 0);
    CHECK_INT(mkdir("results", 0755), 0);
    CHECK_TEXT(store_default_path(arena, NULL), "results/fsdpsim.db");
    setenv("FSDPSIM_DB", "", 1);
    CHECK_TEXT(store_default_path(arena, NULL), "results/fsdpsim.db");
    setenv("FSDPSIM_DB", "/else/where.db", 1);
    CHECK_TEXT(store_default_path(arena, NULL), "/else/where.db");
    CHECK_TEXT(store_default_path(arena, "mine.db"), "mine.db");

    unsetenv("FSDPSIM_DB");
    unsetenv("XDG_DATA_HOME");
    setenv("HOME", home, 1);
    CHECK_INT(chdir(before), 0);
    free(before);
    fixture_release(&fixture);
}

const struct check_case store_path_cases[] = {{"default path", test_default_path}, {0}};
