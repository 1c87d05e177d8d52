/*
 * tests/fuzz/fuzz_import.c: any bytes as a foreign description of a machine (FUZZ_FORMAT). Nothing
 * may crash or hang, errors and status agree, and what was accepted is a cluster file that loads
 * without a mistake. Built once for each format.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "cluster/cluster.h"
#include "cluster/import.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The YAML of an import, as a user's cluster file. */
static void check_yaml(struct arena *arena, const char *const *folders, const struct strbuf *yaml)
{
    struct diag diag;
    struct config config;
    struct cluster cluster = {0};
    const struct source source = {"imported.yaml", yaml->text, yaml->length};
    diag_init(&diag, arena);
    config_init(&config, arena, &diag, folders);
    enum status status = node_parse(arena, &source, &config.root, &diag);
    void *bound = arena_alloc(arena, cluster_table.struct_bytes);
    if (status == STATUS_OK)
        status = config_bind(&config, &cluster_table, bound);
    if (status == STATUS_OK)
        status = cluster_build(arena, &config, "", bound, &cluster);
    if (status != STATUS_OK) {
        diag_write(&diag, stderr, false);
        fputs(yaml->text, stderr);
        BUG("what was imported is no cluster file");
    }
    cluster_release(&cluster);
}

static void try_import(const char *text, size_t size, const char *gpu, FILE *nowhere)
{
    struct arena arena = {0};
    struct diag diag;
    struct strbuf yaml = {0};
    diag_init(&diag, &arena);
    const struct source source = {"fuzz", text, size};
    const char *const *folders = data_folders_find(&arena);
    const struct import_options options = {.gpu = gpu, .data_folders = folders};
    const enum status status = import_machine(&arena, FUZZ_FORMAT, &source, &options, &yaml, &diag);
    if ((status != STATUS_OK) != (diag.error_count > 0))
        BUG("status %d with %d errors", (int)status, (int)diag.error_count);
    diag_write(&diag, nowhere, false);
    if (status == STATUS_OK)
        check_yaml(&arena, folders, &yaml);
    strbuf_release(&yaml);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FILE *nowhere = fopen("/dev/null", "w");
    char *text = malloc(size + 1);
    if (nowhere == NULL || text == NULL)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    try_import(text, size, NULL, nowhere);
    try_import(text, size, "rtx-3090", nowhere);
    free(text);
    fclose(nowhere);
    return 0;
}
