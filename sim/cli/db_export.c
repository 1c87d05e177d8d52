/* cli/db_export.c: see db_export.h. */
#include "cli/db_export.h"

#include <string.h>
#include <sys/stat.h>

#include "base/strbuf.h"
#include "cli/new_file.h"
#include "report/report_export.h"
#include "store/store_export.h"

static const char default_table[] = "v_runs";

struct range_list {
    struct store_range *items;
    int32_t count, capacity;
};

/* "7" or "7-9" */
static bool read_range(struct arena *arena, const char *text, size_t length,
                       struct store_range *range)
{
    const char *part = arena_strndup(arena, text, length);
    const char *dash = strchr(part, '-');
    const char *first = dash != NULL ? arena_strndup(arena, part, (size_t)(dash - part)) : part;
    return text_to_int64(first, &range->first) &&
           text_to_int64(dash != NULL ? dash + 1 : part, &range->last) && range->first >= 1 &&
           range->first <= range->last;
}

/* "3,7-9" */
static enum status read_runs(struct command *command, struct range_list *list)
{
    const char *text = command->options.runs;
    *list = (struct range_list){0};
    while (text != NULL) {
        const size_t length = strcspn(text, ",");
        struct store_range range = {0};
        if (!read_range(&command->arena, text, length, &range))
            return (enum status)command_refuse(command, "numbers of runs, as 3,7-9",
                                               "'--runs %s' is not a list of runs",
                                               command->options.runs);
        *ARENA_PUSH(&command->arena, list) = range;
        text = text[length] == ',' ? text + length + 1 : NULL;
    }
    return STATUS_OK;
}

static bool is_file(const struct command *command)
{
    const char *path = command->options.output;
    return path != NULL && strcmp(path, "-") != 0;
}

static bool is_csv(const struct command *command)
{
    return text_equal(command->arguments.items[1], "csv");
}

static bool is_regular_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

static const char *metadata_path(struct command *command)
{
    return arena_printf(&command->arena, "%s-metadata.json", command->options.output);
}

enum status db_export_check(struct command *command)
{
    const struct options *options = &command->options;
    const struct text_list *words = &command->arguments;
    if (words->count < 2)
        return (enum status)command_refuse(command, "'fsdpsim db export csv' or 'json'",
                                           "'fsdpsim db export' wants a format");
    if (words->count > 2)
        return (enum status)command_refuse(
            command, NULL, "'fsdpsim db export' wants one format, not '%s'", words->items[2]);
    if (!is_csv(command) && !text_equal(words->items[1], "json"))
        return (enum status)command_refuse(command, "accepted: csv, json", "unknown format '%s'",
                                           words->items[1]);
    if (!is_file(command) || options->overwrites)
        return STATUS_OK;
    const char *files[] = {options->output, metadata_path(command)};
    for (int k = 0; k < (is_csv(command) ? 2 : 1); k++)
        if (is_regular_file(files[k]))
            return (enum status)command_refuse(command, "name another file, or say --overwrite",
                                               "'%s' is there already", files[k]);
    return STATUS_OK;
}

static enum status write_rows(struct command *command, struct store_rows *rows, const char *table,
                              FILE *file)
{
    return is_csv(command) ? report_export_csv(rows, file, &command->diag)
                           : report_export_json(rows, table, file, &command->diag);
}

/* Beside a CSV, which has no place for them: the units. */
static enum status write_metadata(struct command *command, const struct store_rows *rows)
{
    const char *path = command->options.output;
    const char *slash = strrchr(path, '/');
    struct new_file metadata;
    const enum status status = new_file_open(command, metadata_path(command), &metadata);
    if (status != STATUS_OK)
        return status;
    report_export_metadata(rows, slash != NULL ? slash + 1 : path, metadata.file);
    return new_file_close(command, &metadata, true);
}

static enum status write_file(struct command *command, struct store_rows *rows, const char *table)
{
    struct new_file output;
    enum status status = new_file_open(command, command->options.output, &output);
    if (status != STATUS_OK)
        return status;
    status = write_rows(command, rows, table, output.file);
    if (status != STATUS_OK) {
        new_file_drop(&output);
        return status;
    }
    status = new_file_close(command, &output, true);
    return status == STATUS_OK && is_csv(command) && is_regular_file(command->options.output)
               ? write_metadata(command, rows)
               : status;
}

enum status db_export(struct command *command, struct store *store)
{
    const char *table = command->options.table != NULL ? command->options.table : default_table;
    struct range_list ranges;
    struct store_rows *rows = NULL;
    enum status status = read_runs(command, &ranges);
    if (status != STATUS_OK)
        return status;
    const struct store_query query = {.table = table,
                                      .ranges = ranges.items,
                                      .range_count = ranges.count,
                                      .where = command->options.where};
    status = store_rows_open(store, &query, &rows, &command->diag);
    if (status == STATUS_OK)
        status = is_file(command) ? write_file(command, rows, table)
                                  : write_rows(command, rows, table, stdout);
    store_rows_close(rows);
    return status;
}
