/* report/report_table.c: see report_table_private.h. */
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "report/report_table_private.h"

void table_init(struct table *table, int32_t column_count, int32_t left_count)
{
    *table = (struct table){.column_count = column_count, .left_count = left_count};
}

void table_release(struct table *table)
{
    struct arena arena = table->arena;
    arena_release(&arena);
    *table = (struct table){0};
}

void table_text(struct table *table, const char *text)
{
    struct table_line *line = ARENA_PUSH(&table->arena, table);
    line->text = arena_strdup(&table->arena, text);
}

void table_row(struct table *table)
{
    struct table_line *line = ARENA_PUSH(&table->arena, table);
    line->cells = ARENA_ARRAY(&table->arena, const char *, table->column_count);
}

void table_cell(struct table *table, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);

    struct table_line *line = &table->items[table->count - 1];
    BUG_IF(line->cells == NULL || line->cell_count >= table->column_count);
    line->cells[line->cell_count++] = arena_strdup(&table->arena, text);
}

int32_t text_width(const char *text)
{
    int32_t width = 0;
    for (; *text != '\0'; text++) {
        if (((unsigned char)*text & 0xc0) != 0x80)
            width++;
    }
    return width;
}

static int32_t column_width(const struct table *table, int32_t column)
{
    int32_t width = 0;
    for (int32_t i = 0; i < table->count; i++) {
        const struct table_line *line = &table->items[i];
        if (line->cells == NULL || column >= line->cell_count)
            continue;
        const int32_t cell = text_width(line->cells[column]);
        width = cell > width ? cell : width;
    }
    return width;
}

static void write_cells(const struct table *table, const struct table_line *line,
                        const int32_t *widths, FILE *file)
{
    /* Spaces are written only before something, so that no line ends with them. */
    int32_t pending = 0;
    for (int32_t column = 0; column < line->cell_count; column++) {
        const char *cell = line->cells[column];
        const int32_t fill = widths[column] - text_width(cell);
        const bool is_left = column < table->left_count;
        pending += (column > 0 ? 2 : 0) + (is_left ? 0 : fill);
        if (cell[0] != '\0') {
            fprintf(file, "%*s%s", (int)pending, "", cell);
            pending = 0;
        }
        pending += is_left ? fill : 0;
    }
    fputc('\n', file);
}

void table_write(const struct table *table, FILE *file)
{
    struct arena scratch = {0};
    int32_t *widths = ARENA_ARRAY(&scratch, int32_t, table->column_count);
    for (int32_t column = 0; column < table->column_count; column++)
        widths[column] = column_width(table, column);
    for (int32_t i = 0; i < table->count; i++) {
        const struct table_line *line = &table->items[i];
        if (line->cells == NULL)
            fprintf(file, "%s\n", line->text);
        else
            write_cells(table, line, widths, file);
    }
    arena_release(&scratch);
}

static void write_markdown_cell(const char *cell, FILE *file)
{
    for (cell += strspn(cell, " "); *cell != '\0'; cell++)
        fprintf(file, *cell == '|' ? "\\%c" : "%c", *cell);
}

void table_write_markdown(const struct table *table, FILE *file)
{
    const int32_t columns = table->count > 0 ? table->items[0].cell_count : 0;
    for (int32_t i = 0; i < table->count; i++) {
        const struct table_line *line = &table->items[i];
        for (int32_t k = 0; k < columns; k++) {
            fputs(k == 0 ? "| " : " | ", file);
            write_markdown_cell(k < line->cell_count ? line->cells[k] : "", file);
        }
        fputs(" |\n", file);
        for (int32_t k = 0; i == 0 && k < columns; k++)
            fputs(k < table->left_count ? "| --- " : "| ---: ", file);
        fputs(i == 0 ? "|\n" : "", file);
    }
}
