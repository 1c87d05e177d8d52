/*
 * tests/fuzz/fuzz_foreign.c: any bytes as a configuration of another tool (FUZZ_FORMAT). Nothing
 * may crash or hang, errors and status agree, and what was accepted is YAML whose keys are all
 * ours: what is wrong with it is a value.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "config/config.h"
#include "foreign/foreign.h"
#include "run/experiment_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_yaml(struct arena *arena, const struct strbuf *yaml)
{
    struct diag diag;
    struct config config;
    const struct source source = {"imported.yaml", yaml->text, yaml->length};
    diag_init(&diag, arena);
    config_init(&config, arena, &diag, data_folders_find(arena));
    const bool is_yaml = node_parse(arena, &source, &config.root, &diag) == STATUS_OK;
    bool is_known = is_yaml;
    if (is_yaml && config_bind(&config, &experiment_table,
                               arena_alloc(arena, experiment_table.struct_bytes)) != STATUS_OK)
        for (int32_t i = 0; i < diag.count; i++)
            is_known = is_known && strstr(diag.items[i].text, "unknown key") == NULL;
    if (is_known)
        return;
    diag_write(&diag, stderr, false);
    fputs(yaml->text, stderr);
    BUG("what was imported is no configuration");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct diag diag;
    struct strbuf yaml = {0};
    FILE *nowhere = fopen("/dev/null", "w");
    char *text = malloc(size + 1);
    if (text == NULL || nowhere == NULL)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    diag_init(&diag, &arena);
    const struct source source = {"fuzz", text, size};
    const struct foreign_options options = {
        .model = "llama-3.2-1b", .cluster = "ideal-8x450", .seq_len = 64};
    const enum status status = foreign_import(&arena, FUZZ_FORMAT, &source, &options, &yaml, &diag);
    if ((status != STATUS_OK) != (diag.error_count > 0))
        BUG("status %d with %d errors", (int)status, (int)diag.error_count);
    diag_write(&diag, nowhere, false);
    if (status == STATUS_OK)
        check_yaml(&arena, &yaml);
    strbuf_release(&yaml);
    arena_release(&arena);
    fclose(nowhere);
    free(text);
    return 0;
}
