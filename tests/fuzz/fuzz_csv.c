/* tests/fuzz/fuzz_csv.c: any bytes as a CSV: a table or messages, never a crash. */
#include <stddef.h>
#include <stdint.h>

#include "config/csv_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct diag diag;
    struct csv_table table;
    diag_init(&diag, &arena);
    const char *text = arena_strndup(&arena, (const char *)data, size);
    const struct source source = {.name = "fuzz", .text = text, .length = size};
    const enum status status = csv_parse(&arena, &source, &table, &diag);
    if ((status == STATUS_OK) != (diag.error_count == 0))
        BUG("a status without its message");
    for (int32_t k = 0; status == STATUS_OK && k < table.rows.count; k++)
        BUG_IF(table.rows.items[k].count != table.header.count);
    arena_release(&arena);
    return 0;
}
