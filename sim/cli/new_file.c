/* cli/new_file.c: see new_file.h. */
#include "cli/new_file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status cannot_write(struct command *command, const char *name)
{
    diag_world(&command->diag, "cannot write '%s': %s", name, strerror(errno));
    return STATUS_WORLD;
}

bool file_is_database(const char *name)
{
    char magic[16] = "";
    struct stat about;
    FILE *file = stat(name, &about) == 0 && S_ISREG(about.st_mode) ? fopen(name, "r") : NULL;
    if (file == NULL)
        return false;
    const size_t length = fread(magic, 1, sizeof(magic), file);
    (void)fclose(file);
    return length == sizeof(magic) && memcmp(magic, "SQLite format 3", sizeof(magic)) == 0;
}

enum status new_file_open(struct command *command, const char *name, struct new_file *new_file)
{
    char followed[PATH_MAX];
    struct stat about;
    *new_file = (struct new_file){.name = name, .path = name};
    const bool exists = stat(name, &about) == 0;
    if (exists && S_ISDIR(about.st_mode)) {
        errno = EISDIR;
        return cannot_write(command, name);
    }
    if (file_is_database(name))
        return (enum status)command_refuse(command, "name another file",
                                           "'%s' is a database, which is not replaced", name);
    if (!exists || S_ISREG(about.st_mode)) {
        new_file->had_one = exists;
        if (exists && realpath(name, followed) != NULL)
            new_file->path = arena_strdup(&command->arena, followed);
        new_file->temporary =
            arena_printf(&command->arena, "%s.%ld.tmp", new_file->path, (long)getpid());
    }
    new_file->file =
        new_file->temporary != NULL ? fopen(new_file->temporary, "wx") : fopen(new_file->path, "w");
    return new_file->file != NULL ? STATUS_OK : cannot_write(command, name);
}

enum status new_file_close(struct command *command, struct new_file *new_file, bool is_written)
{
    struct stat about;
    /* What a buffer still holds is written now. */
    int error = errno;
    is_written = is_written && fflush(new_file->file) == 0 && ferror(new_file->file) == 0;
    if (is_written || error == 0)
        error = errno;
    if (fclose(new_file->file) != 0 && is_written) {
        is_written = false;
        error = errno;
    }
    if (new_file->temporary == NULL && is_written)
        return STATUS_OK;
    if (is_written && new_file->had_one && stat(new_file->path, &about) == 0)
        (void)chmod(new_file->temporary, about.st_mode & 0777);
    if (is_written && rename(new_file->temporary, new_file->path) == 0)
        return STATUS_OK;
    if (is_written)
        error = errno;
    if (new_file->temporary != NULL)
        (void)remove(new_file->temporary);
    errno = error;
    return cannot_write(command, new_file->name);
}

void new_file_drop(struct new_file *new_file)
{
    (void)fclose(new_file->file);
    if (new_file->temporary != NULL)
        (void)remove(new_file->temporary);
}
