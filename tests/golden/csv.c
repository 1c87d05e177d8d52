/* tests/golden/csv.c: see csv.h. */
#include "csv.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 5, MAX_LINE = 4096 };
static const char columns[] = "config,overrides,fingerprint,step_time_s,peak_device_bytes\n";

/* Splits in place; a column may be quoted, without quotes inside. */
static int split(char *line, char *cells[COLUMNS])
{
    int count = 0;
    line[strcspn(line, "\r\n")] = '\0';
    while (count < COLUMNS) {
        const bool is_quoted = *line == '"';
        line += is_quoted;
        cells[count++] = line;
        line += strcspn(line, is_quoted ? "\"" : ",");
        if (*line == '\0')
            break;
        *line++ = '\0';
        if (is_quoted && *line == ',')
            line++;
    }
    return count;
}

bool golden_read(struct arena *arena, const char *path, struct golden *golden, const char **head)
{
    FILE *file = fopen(path, "r");
    *golden = (struct golden){0};
    *head = "";
    if (file == NULL)
        return false;
    char line[MAX_LINE];
    while (fgets(line, sizeof(line), file) != NULL) {
        char *cells[COLUMNS] = {0};
        if (line[0] == '#')
            *head = arena_printf(arena, "%s%s", *head, line);
        if (line[0] == '#' || strcmp(line, columns) == 0 || split(line, cells) < COLUMNS)
            continue;
        *ARENA_PUSH(arena, golden) =
            (struct golden_row){.config = arena_strdup(arena, cells[0]),
                                .overrides = arena_strdup(arena, cells[1]),
                                .fingerprint = arena_strdup(arena, cells[2]),
                                .step_time_s = strtod(cells[3], NULL),
                                .peak_device_bytes = strtoll(cells[4], NULL, 10)};
    }
    fclose(file);
    return true;
}

bool golden_write(const char *path, const struct golden *golden, const char *head)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return false;
    fprintf(file, "%s%s", head, columns);
    for (int32_t i = 0; i < golden->count; i++) {
        const struct golden_row *row = &golden->items[i];
        fprintf(file, "%s,\"%s\",%s,", row->config, row->overrides, row->fingerprint);
        if (row->step_time_s > 0)
            fprintf(file, "%.12g,%lld\n", row->step_time_s, row->peak_device_bytes);
        else
            fputs(",\n", file);
    }
    return fclose(file) == 0;
}
