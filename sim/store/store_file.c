/*
 * store/store_file.c: judging a database file before SQLite opens it, so that a file that is not
 * ours is never touched (opening alone can roll back a journal or make files beside it).
 *
 * Header of a SQLite file, big-endian: bytes 0 to 15 "SQLite format 3\0", 60 to 63 user_version,
 * 68 to 71 application_id (sqlite.org, "Database File Format", 1.3). Behind it, on the first page,
 * the root of the table of tables: byte 100 is 13 for a page that holds entries itself, bytes 103
 * to 104 are their number (1.6).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif

#include "store/store_private.h"

enum {
    HEADER_BYTES = 108,
    USER_VERSION_AT = 60,
    APPLICATION_ID_AT = 68,
    ROOT_KIND_AT = 100,
    ROOT_COUNT_AT = 103,
    LEAF_OF_TABLE = 13,
    WRITE_BITS = S_IWUSR | S_IWGRP | S_IWOTH,
    READ_BITS = S_IRUSR | S_IRGRP | S_IROTH,
};

bool store_is_writable(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && (facts.st_mode & WRITE_BITS) != 0 && access(path, W_OK) == 0;
}

static bool is_readable(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && (facts.st_mode & READ_BITS) != 0 && access(path, R_OK) == 0;
}

const char *store_folder(struct arena *arena, const char *path)
{
    char followed[PATH_MAX];
    if (realpath(path, followed) != NULL)
        path = followed;
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return ".";
    return slash == path ? "/" : arena_strndup(arena, path, (size_t)(slash - path));
}

bool store_has_log(struct arena *arena, const char *path)
{
    struct stat facts;
    return stat(arena_printf(arena, "%s-wal", path), &facts) == 0 && facts.st_size > 0;
}

bool store_is_local(const char *path)
{
#ifdef __linux__
    /* f_type of file systems on which the shared memory of WAL or its locks cannot be trusted:
       statfs(2), linux/magic.h, and the file systems' own headers. */
    static const uint32_t remote_types[] = {
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x65735546, /* FUSE */
        0x0bd00bd0, /* Lustre */
        0x01021997, /* 9P */
        0x00c36400, /* Ceph */
        0x47504653, /* GPFS */
        0x19830326, /* BeeGFS */
        0x01161970, /* GFS2 */
        0x7461636f, /* OCFS2 */
        0x5346414f, /* AFS */
    };
    struct statfs facts;
    if (statfs(path, &facts) != 0)
        return false;
    for (size_t i = 0; i < sizeof(remote_types) / sizeof(remote_types[0]); i++) {
        if ((uint32_t)facts.f_type == remote_types[i])
            return false;
    }
    return true;
#else
    (void)path;
    return false;
#endif
}

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Made by somebody, used by nobody: no tables, no owner, and none in a log beside it. */
static bool is_blank(const unsigned char *header, const char *path)
{
    struct arena scratch = {0};
    const bool has_tables = header[ROOT_KIND_AT] != LEAF_OF_TABLE || header[ROOT_COUNT_AT] != 0 ||
                            header[ROOT_COUNT_AT + 1] != 0;
    const bool is_blank = big_endian(header + APPLICATION_ID_AT) == 0 &&
                          big_endian(header + USER_VERSION_AT) == 0 && !has_tables &&
                          !store_has_log(&scratch, path);
    arena_release(&scratch);
    return is_blank;
}

static enum status check_header(const char *path, bool *is_new, struct diag *diag)
{
    unsigned char header[HEADER_BYTES] = {0};
    size_t length = 0;
    enum status status = STATUS_WORLD;
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        diag_world(diag, "cannot open '%s': %s", path, strerror(errno));
        goto out;
    }
    length = fread(header, 1, sizeof(header), file);
    if (ferror(file) != 0) {
        diag_world(diag, "cannot read '%s': %s", path, strerror(errno));
        goto out;
    }
    if (length < sizeof(header) || memcmp(header, "SQLite format 3", 16) != 0) {
        diag_world(diag, "cannot open '%s': it is not a database; choose another file with --db",
                   path);
        goto out;
    }
    if (is_blank(header, path)) {
        *is_new = true;
        status = STATUS_OK;
        goto out;
    }
    if (big_endian(header + APPLICATION_ID_AT) != STORE_APPLICATION_ID) {
        diag_world(diag,
                   "cannot open '%s': it is the database of another program; choose another file "
                   "with --db",
                   path);
        goto out;
    }
    const uint32_t version = big_endian(header + USER_VERSION_AT);
    if (version > STORE_SCHEMA_VERSION) {
        diag_world(diag,
                   "cannot open '%s': written by a newer fsdpsim (schema %u, this one knows up to "
                   "%d); update fsdpsim or choose another file with --db",
                   path, (unsigned)version, (int)STORE_SCHEMA_VERSION);
        goto out;
    }
    status = STATUS_OK;
out:
    if (file != NULL)
        fclose(file);
    return status;
}

/* Journals live beside the file, so a writer needs its folder. */
static enum status check_folder(const char *path, const char *doing, struct diag *diag)
{
    struct arena scratch = {0};
    struct stat facts;
    enum status status = STATUS_WORLD;
    const char *folder = store_folder(&scratch, path);
    if (stat(folder, &facts) != 0)
        diag_world(diag, "cannot %s '%s': folder '%s': %s", doing, path, folder, strerror(errno));
    else if (!S_ISDIR(facts.st_mode))
        diag_world(diag, "cannot %s '%s': '%s' is not a folder", doing, path, folder);
    else if (!store_is_writable(folder))
        diag_world(diag, "cannot %s '%s': folder '%s' is read-only (mode %04o)", doing, path,
                   folder, (unsigned)(facts.st_mode & 07777));
    else
        status = STATUS_OK;
    arena_release(&scratch);
    return status;
}

static enum status check_missing(const char *path, enum store_mode mode, struct diag *diag)
{
    if (mode == STORE_WRITE)
        return check_folder(path, "create", diag);
    diag_world(diag, "cannot open '%s': %s", path, strerror(ENOENT));
    return STATUS_WORLD;
}

enum status store_check_file(const char *path, enum store_mode mode, bool *is_new,
                             struct diag *diag)
{
    struct stat facts;
    *is_new = false;
    if (path[0] == '\0') {
        diag_world(diag, "cannot open '': the name of the database is empty");
        return STATUS_WORLD;
    }
    if (stat(path, &facts) != 0) {
        if (errno == ENOENT) {
            *is_new = true;
            return check_missing(path, mode, diag);
        }
        diag_world(diag, "cannot open '%s': %s", path, strerror(errno));
        return STATUS_WORLD;
    }
    if (!S_ISREG(facts.st_mode)) {
        diag_world(diag, "cannot open '%s': it is %s", path,
                   S_ISDIR(facts.st_mode) ? "a folder" : "not a regular file");
        return STATUS_WORLD;
    }
    if (mode == STORE_WRITE ? !store_is_writable(path) : !is_readable(path)) {
        diag_world(diag, "cannot %s '%s': it is %s (mode %04o)",
                   mode == STORE_WRITE ? "write to" : "read", path,
                   mode == STORE_WRITE ? "read-only" : "not readable",
                   (unsigned)(facts.st_mode & 07777));
        return STATUS_WORLD;
    }
    *is_new = facts.st_size == 0;
    if (!*is_new) {
        const enum status status = check_header(path, is_new, diag);
        if (status != STATUS_OK)
            return status;
    }
    if (*is_new && mode == STORE_READ) {
        diag_world(diag, "cannot read '%s': it is empty, no run was stored yet", path);
        return STATUS_WORLD;
    }
    return mode == STORE_WRITE ? check_folder(path, "write to", diag) : STATUS_OK;
}
