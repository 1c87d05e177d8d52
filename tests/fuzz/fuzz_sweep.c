/*
 * tests/fuzz/fuzz_sweep.c: the words of swept values: any text gives values or a placed mistake;
 * and as `sweep:` of a file.
 */
#include <stddef.h>
#include <string.h>

#include "study/sweep_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_axis(struct arena *arena, const char *text)
{
    struct diag diag;
    struct sweep_axis axis = {.key = "nodes"};
    const struct source source = {"<command line>", text, strlen(text)};
    diag_init(&diag, arena);
    const enum status status =
        axis_add(arena, &axis, text, (struct place){&source, 1, 1, 1}, &diag);
    BUG_IF((status == STATUS_OK) != (diag.error_count == 0));
    BUG_IF(status == STATUS_OK && axis.values.count == 0);
    for (int32_t i = 0; i < axis.values.count; i++)
        BUG_IF(axis.values.items[i] == NULL);
    (void)diag_text(&diag, arena);
}

static void try_file(struct arena *arena, const char *text, size_t size)
{
    struct diag diag;
    struct node *root = NULL;
    const struct source source = {"sweep.yaml", text, size};
    diag_init(&diag, arena);
    if (node_parse(arena, &source, &root, &diag) == STATUS_OK) {
        const enum status status = sweep_plan_check(root, arena, &diag);
        BUG_IF((status == STATUS_OK) != (diag.error_count == 0));
    }
    (void)diag_text(&diag, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    if (size > 1000)
        return 0;
    const char *text = arena_strndup(&arena, (const char *)data, size);
    try_axis(&arena, text);
    try_file(&arena, text, strlen(text));
    arena_release(&arena);
    return 0;
}
