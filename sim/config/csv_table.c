/* config/csv_table.c: see csv_table.h. */
#include "config/csv_table.h"

#include <inttypes.h>
#include <string.h>

#include "base/strbuf.h"
#include "config/config_private.h"

/* More columns than any table of runs has; a longer row is a file that is no CSV. */
enum { CSV_MAX_COLUMNS = 512, CSV_MAX_BYTES = 16 << 20 };

struct csv_reader {
    struct arena *arena;
    struct diag *diag;
    const struct source *source;
    const char *at, *end;
    struct place place; /* of *at */
};

static char peek(const struct csv_reader *reader)
{
    if (reader->at < reader->end)
        return *reader->at;
    return '\0';
}

static void advance(struct csv_reader *reader)
{
    const unsigned char byte = (unsigned char)*reader->at++;
    if (byte == '\n') {
        reader->place.line++;
        reader->place.column = 1;
    } else if ((byte & 0xc0) != 0x80) {
        reader->place.column++;
    }
}

static bool is_line_end(const struct csv_reader *reader)
{
    const char byte = peek(reader);
    return reader->at >= reader->end || byte == '\n' ||
           (byte == '\r' && reader->at + 1 < reader->end && reader->at[1] == '\n');
}

static bool is_cell_end(const struct csv_reader *reader)
{
    return is_line_end(reader) || peek(reader) == ',';
}

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t';
}

static void complain(struct csv_reader *reader, struct place place, const char *hint,
                     const char *text)
{
    diag_add(reader->diag, DIAG_ERROR, place, hint, "%s", text);
}

/* At the opening quote. */
static const char *read_quoted(struct csv_reader *reader)
{
    const struct place start = reader->place;
    struct strbuf text = {0};
    const char *result = "";
    bool is_closed = false;
    advance(reader);
    while (reader->at < reader->end && !is_closed) {
        const bool is_quote = *reader->at == '"';
        if (is_quote && !(reader->at + 1 < reader->end && reader->at[1] == '"')) {
            is_closed = true;
        } else {
            if (is_quote)
                advance(reader);
            strbuf_add_bytes(&text, reader->at, 1);
        }
        advance(reader);
    }
    if (!is_closed)
        complain(reader, start, "two double quotes inside a quoted cell stand for one",
                 "this quote is never closed");
    while (is_space(peek(reader)))
        advance(reader);
    if (is_closed && !is_cell_end(reader))
        complain(reader, reader->place, "a comma or the end of the line",
                 "text after the closing quote");
    while (!is_cell_end(reader))
        advance(reader);
    if (text.length > 0)
        result = arena_strndup(reader->arena, text.text, text.length);
    strbuf_release(&text);
    return result;
}

static const char *read_bare(struct csv_reader *reader)
{
    const char *start = reader->at;
    bool is_complained = false;
    while (!is_cell_end(reader)) {
        if (*reader->at == '"' && !is_complained) {
            complain(reader, reader->place, "quote the whole cell, and double the quotes in it",
                     "a quote inside a cell that does not start with one");
            is_complained = true;
        }
        advance(reader);
    }
    const char *stop = reader->at;
    while (stop > start && is_space(stop[-1]))
        stop--;
    return stop == start ? "" : arena_strndup(reader->arena, start, (size_t)(stop - start));
}

/* One line's cells, and the line end. */
static void read_row(struct csv_reader *reader, struct csv_row *row)
{
    for (;;) {
        while (is_space(peek(reader)))
            advance(reader);
        struct csv_cell *cell = ARENA_PUSH(reader->arena, row);
        cell->place = reader->place;
        const char *start = reader->at;
        cell->text = peek(reader) == '"' ? read_quoted(reader) : read_bare(reader);
        const int32_t characters = utf8_length(start, (size_t)(reader->at - start));
        const bool is_one_line = reader->place.line == cell->place.line;
        cell->place.length = characters > 0 && is_one_line ? characters : 1;
        if (is_line_end(reader))
            break;
        advance(reader);
    }
    while (reader->at < reader->end && is_line_end(reader) && *reader->at == '\r')
        advance(reader);
    if (reader->at < reader->end)
        advance(reader);
}

static void skip_empty_lines(struct csv_reader *reader)
{
    while (reader->at < reader->end && is_line_end(reader))
        advance(reader);
}

static void check_header(struct csv_reader *reader, const struct csv_row *header)
{
    if (header->count > CSV_MAX_COLUMNS)
        complain(reader, header->items[0].place, NULL,
                 "more columns than a table of runs can have");
    for (int32_t k = 0; k < header->count && k < CSV_MAX_COLUMNS; k++) {
        const struct csv_cell *cell = &header->items[k];
        if (cell->text[0] == '\0')
            complain(reader, cell->place, NULL, "a column without a name");
        for (int32_t other = 0; other < k; other++) {
            if (cell->text[0] == '\0' || strcmp(header->items[other].text, cell->text) != 0)
                continue;
            diag_add(reader->diag, DIAG_ERROR, cell->place, NULL, "column '%s' is named twice",
                     cell->text);
            diag_add(reader->diag, DIAG_NOTE, header->items[other].place, NULL, "first here");
        }
    }
}

static void check_width(struct csv_reader *reader, const struct csv_row *header,
                        const struct csv_row *row)
{
    if (row->count == header->count)
        return;
    const bool is_long = row->count > header->count;
    diag_add(reader->diag, DIAG_ERROR, row->items[is_long ? header->count : row->count - 1].place,
             is_long ? "quote a cell that holds a comma" : NULL,
             "this row has %" PRId32 " cells, the header names %" PRId32 " columns", row->count,
             header->count);
}

enum status csv_parse(struct arena *arena, const struct source *source, struct csv_table *table,
                      struct diag *diag)
{
    struct csv_reader reader = {.arena = arena,
                                .diag = diag,
                                .source = source,
                                .at = source->text,
                                .end = source->text + source->length,
                                .place = {source, 1, 1, 1}};
    const int32_t errors_before = diag->error_count;
    *table = (struct csv_table){0};
    if (!text_check(source, CSV_MAX_BYTES, diag))
        return STATUS_INPUT;
    if (source->length >= 3 && memcmp(source->text, "\xEF\xBB\xBF", 3) == 0)
        reader.at += 3;
    skip_empty_lines(&reader);
    if (reader.at >= reader.end) {
        complain(&reader, reader.place, "the first line names the columns", "an empty table");
        return STATUS_INPUT;
    }
    read_row(&reader, &table->header);
    check_header(&reader, &table->header);
    for (skip_empty_lines(&reader); reader.at < reader.end; skip_empty_lines(&reader)) {
        struct csv_row *row = ARENA_PUSH(arena, &table->rows);
        read_row(&reader, row);
        check_width(&reader, &table->header, row);
        if (diag->error_count - errors_before > CONFIG_MAX_MISTAKES)
            break;
    }
    return diag->error_count == errors_before ? STATUS_OK : STATUS_INPUT;
}

enum status csv_load(struct arena *arena, const char *path, struct csv_table *table,
                     struct diag *diag)
{
    struct source *source;
    const enum status status = source_load(arena, path, CSV_MAX_BYTES, &source, diag);
    return status == STATUS_OK ? csv_parse(arena, source, table, diag) : status;
}

int32_t csv_column(const struct csv_table *table, const char *name)
{
    for (int32_t k = 0; k < table->header.count; k++)
        if (strcmp(table->header.items[k].text, name) == 0)
            return k;
    return -1;
}

enum status csv_columns(const struct csv_table *table, const char *const *names, int32_t count,
                        int32_t required, int32_t *columns, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int32_t i = 0; i < count; i++) {
        columns[i] = csv_column(table, names[i]);
        if (i < required && columns[i] < 0) {
            diag_add(diag, DIAG_ERROR, table->header.items[0].place, NULL,
                     "there is no column '%s'", names[i]);
            status = STATUS_INPUT;
        }
    }
    return status;
}
