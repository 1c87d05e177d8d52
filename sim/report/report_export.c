/* report/report_export.c: see report_export.h. */
#include "report/report_export.h"

#include <inttypes.h>

#include "base/strbuf.h"
#include "report/csv_writer.h"
#include "report/json_writer.h"

static void write_csv_cell(const struct store_cell *cell, FILE *file)
{
    switch (cell->kind) {
    case CELL_NULL:
        break;
    case CELL_INT:
        fprintf(file, "%" PRId64, cell->integer);
        break;
    case CELL_BOOL:
        fputs(cell->integer != 0 ? "true" : "false", file);
        break;
    case CELL_REAL:
        csv_write_double(file, cell->real);
        break;
    case CELL_TEXT:
        csv_write_text(file, cell->text);
        break;
    }
}

enum status report_export_csv(struct store_rows *rows, FILE *file, struct diag *diag)
{
    const int count = store_rows_column_count(rows);
    enum status status = STATUS_OK;
    for (int i = 0; i < count; i++) {
        fputs(i > 0 ? "," : "", file);
        csv_write_text(file, store_rows_column(rows, i)->name);
    }
    fputs("\r\n", file);
    while (!ferror(file) && store_rows_next(rows, &status, diag)) {
        for (int i = 0; i < count; i++) {
            struct store_cell cell;
            store_rows_cell(rows, i, &cell);
            fputs(i > 0 ? "," : "", file);
            write_csv_cell(&cell, file);
        }
        fputs("\r\n", file);
    }
    return status;
}

static void write_json_cell(struct json_writer *json, const struct store_cell *cell)
{
    switch (cell->kind) {
    case CELL_NULL:
        json_text(json, NULL);
        break;
    case CELL_INT:
        json_int(json, cell->integer);
        break;
    case CELL_BOOL:
        json_bool(json, cell->integer != 0);
        break;
    case CELL_REAL:
        json_double(json, cell->real);
        break;
    case CELL_TEXT:
        json_text(json, cell->text);
        break;
    }
}

static void write_member(struct json_writer *json, const char *key, const char *text)
{
    json_key(json, key);
    json_text(json, text);
}

enum status report_export_json(struct store_rows *rows, const char *table, FILE *file,
                               struct diag *diag)
{
    const int count = store_rows_column_count(rows);
    enum status status = STATUS_OK;
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    json_key(&json, "schema_version");
    json_int(&json, OUTCOME_SCHEMA_VERSION);
    write_member(&json, "table", table);
    json_key(&json, "columns");
    json_begin_array(&json);
    for (int i = 0; i < count; i++) {
        const struct store_column *column = store_rows_column(rows, i);
        json_begin_object(&json);
        write_member(&json, "name", column->name);
        write_member(&json, "unit", column->unit);
        write_member(&json, "help", column->help);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_key(&json, "rows");
    json_begin_array(&json);
    while (!ferror(file) && store_rows_next(rows, &status, diag)) {
        json_begin_object(&json);
        for (int i = 0; i < count; i++) {
            struct store_cell cell;
            store_rows_cell(rows, i, &cell);
            json_key(&json, store_rows_column(rows, i)->name);
            write_json_cell(&json, &cell);
        }
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    json_finish(&json);
    return status;
}

/* Names of types of CSV on the Web. A column that an expression makes is a number, or a text where
   its unit says so. */
static const char *datatype_of(const struct store_column *column)
{
    if (text_equal(column->unit, "bool"))
        return "boolean";
    if (text_equal(column->unit, "text") || text_equal(column->type, "TEXT"))
        return "string";
    return text_equal(column->type, "INTEGER") || text_equal(column->unit, "count") ? "integer"
                                                                                    : "number";
}

void report_export_metadata(const struct store_rows *rows, const char *url, FILE *file)
{
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    write_member(&json, "@context", "http://www.w3.org/ns/csvw");
    write_member(&json, "url", url);
    json_key(&json, "tableSchema");
    json_begin_object(&json);
    json_key(&json, "columns");
    json_begin_array(&json);
    for (int i = 0; i < store_rows_column_count(rows); i++) {
        const struct store_column *column = store_rows_column(rows, i);
        json_begin_object(&json);
        write_member(&json, "name", column->name);
        write_member(&json, "titles", column->name);
        write_member(&json, "datatype", datatype_of(column));
        write_member(&json, "dc:description", column->help);
        write_member(&json, "schema:unitText", column->unit);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    json_end_object(&json);
    json_finish(&json);
}
