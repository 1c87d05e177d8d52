/* store/store_path.c: where results go when nobody says; see store.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/store_private.h"

/* Makes a folder and those above it. What fails shows when the file in it is opened. */
static void make_folders(struct arena *arena, const char *path)
{
    char *folder = arena_strdup(arena, path);
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        /* 0700 is what the XDG base directory specification asks for. */
        (void)mkdir(folder, 0700);
        *slash = '/';
    }
    (void)mkdir(folder, 0700);
}

static bool is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

const char *store_default_path(struct arena *arena, const char *flag)
{
    if (flag != NULL)
        return flag;
    const char *chosen = getenv("FSDPSIM_DB");
    if (chosen != NULL && chosen[0] != '\0')
        return chosen;
    if (is_folder("results"))
        return "results/fsdpsim.db";
    /* The specification says to ignore a relative XDG_DATA_HOME. */
    const char *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    const char *folder = NULL;
    if (data != NULL && data[0] == '/')
        folder = arena_printf(arena, "%s/fsdpsim", data);
    else if (home != NULL && home[0] == '/')
        folder = arena_printf(arena, "%s/.local/share/fsdpsim", home);
    else
        return "fsdpsim.db";
    make_folders(arena, folder);
    return arena_printf(arena, "%s/fsdpsim.db", folder);
}
