/*
 * tests/replay.c: runs a fuzz target over files and over the files of folders, once each: what the
 * fuzzer found stays found in every build, with no need of clang. Fails when there was nothing to
 * run.
 */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    uint8_t *data = NULL;
    size_t size = 0;
    size_t got = 0;
    do {
        uint8_t *grown = realloc(data, size + 65536);
        if (grown == NULL)
            abort();
        data = grown;
        got = fread(data + size, 1, 65536, file);
        size += got;
    } while (got > 0);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

/* How many files were played; -1 when one could not be read. */
static int replay_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL)
        return replay_file(path) == 0 ? 1 : -1;
    int count = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] == '.')
            continue;
        char name[4096];
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (replay_file(name) != 0) {
            count = -1;
            break;
        }
        count++;
    }
    closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int k = 1; k < argc; k++) {
        const int played = replay_folder(argv[k]);
        if (played < 0)
            return 1;
        count += played;
    }
    printf("%d inputs replayed\n", count);
    return count > 0 ? 0 : 1;
}
