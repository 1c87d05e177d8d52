/* collective/nccl_log_row.c: words of a row by their columns; see nccl_log_private.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "cluster/calibration.h"
#include "collective/nccl_log_private.h"

/* Names of columns, units cut off ("time_us", "algbw_GBps"); the lowest and highest of the
   percentiles win. */
static const struct {
    const char *name;
    enum column_kind kind;
} names[] = {
    {"size", COLUMN_SIZE},   {"count", COLUMN_COUNT_OF}, {"type", COLUMN_TYPE},
    {"redop", COLUMN_REDOP}, {"op", COLUMN_REDOP},       {"root", COLUMN_ROOT},
    {"time", COLUMN_TIME},   {"cputime", COLUMN_TIME},   {"algbw", COLUMN_ALGBW},
    {"busbw", COLUMN_BUSBW}, {"#wrong", COLUMN_WRONG},   {"error", COLUMN_WRONG},
    {"wrong", COLUMN_WRONG}, {"min", COLUMN_LOW},        {"p5", COLUMN_LOW},
    {"p10", COLUMN_LOW},     {"p50", COLUMN_LOW},        {"p95", COLUMN_HIGH},
    {"p99", COLUMN_HIGH},    {"max", COLUMN_HIGH},
};

static enum column_kind kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const size_t length = strlen(names[i].name);
        if (strncmp(name, names[i].name, length) != 0)
            continue;
        const char end = name[length];
        if (end == '\0' || end == '_' || end == '(')
            return names[i].kind;
    }
    return COLUMN_IGNORED;
}

static bool has_kind(const struct columns *columns, enum column_kind kind, bool is_in_place)
{
    for (int32_t i = 0; i < columns->count; i++)
        if (columns->items[i].kind == kind && columns->items[i].is_in_place == is_in_place)
            return true;
    return false;
}

bool columns_from_header(const struct words *words, struct columns *columns)
{
    static const char prefix[] = "inplace_";
    struct columns found = {0};
    bool is_in_place = false;
    for (int32_t i = 0; i < words->count && found.count < NCCL_MAX_COLUMNS; i++) {
        const char *name = words->items[i].text;
        if (strncmp(name, "timestamp", 9) == 0)
            continue; /* stamps are no words of a row: is_stamp */
        if (strncmp(name, prefix, sizeof(prefix) - 1) == 0)
            name += sizeof(prefix) - 1;
        const enum column_kind kind = kind_of(name);
        /* The second group of columns begins where the first name comes again. */
        const bool is_measured = kind == COLUMN_TIME || kind == COLUMN_ALGBW;
        if (is_measured && !is_in_place && has_kind(&found, kind, false))
            is_in_place = true;
        found.items[found.count++] = (struct column){kind, is_in_place};
    }
    if (!has_kind(&found, COLUMN_SIZE, false) || !has_kind(&found, COLUMN_TIME, false))
        return false;
    *columns = found;
    return true;
}

/* Of rows without a header row: by how many words, and whether the fourth is one. */
static bool columns_guess(const struct words *words, struct columns *columns)
{
    static const enum column_kind head[] = {COLUMN_SIZE, COLUMN_COUNT_OF, COLUMN_TYPE, COLUMN_REDOP,
                                            COLUMN_ROOT};
    static const enum column_kind group[] = {COLUMN_TIME, COLUMN_ALGBW, COLUMN_BUSBW, COLUMN_WRONG};
    double number;
    const bool has_redop = words->count > 3 && !text_to_double(words->items[3].text, &number);
    int32_t heads = 0;
    int32_t width = 0;
    if (words->count == 13 && has_redop)
        heads = 5, width = 4;
    else if (words->count == 12)
        heads = 4, width = 4;
    else if (words->count == 11 && has_redop)
        heads = 5, width = 3;
    else if (words->count == 11)
        heads = 3, width = 4;
    *columns = (struct columns){0};
    for (int32_t i = 0; i < heads; i++) {
        const bool is_root = i == 3 && !has_redop;
        columns->items[columns->count++].kind = is_root ? COLUMN_ROOT : head[i];
    }
    for (int32_t i = 0; i < 2 * width; i++)
        columns->items[columns->count++] = (struct column){group[i % width], i >= width};
    return heads > 0;
}

bool words_are_row(const struct words *words)
{
    int64_t number;
    double value;
    return words->count >= 4 && text_to_int64(words->items[0].text, &number) &&
           text_to_int64(words->items[1].text, &number) &&
           !text_to_double(words->items[2].text, &value) &&
           strchr(words->items[2].text, ':') == NULL;
}

static bool is_absent(const char *text)
{
    return text_equal(text, "-") || text_equal(text, "N/A") || text_equal(text, "n/a");
}

static struct nccl_times no_times(void)
{
    return (struct nccl_times){.time_s = (double)NAN,
                               .algbw_bytes_per_s = (double)NAN,
                               .busbw_bytes_per_s = (double)NAN,
                               .low_s = (double)NAN,
                               .high_s = (double)NAN,
                               .wrong = -1};
}

static void store_measured(struct nccl_times *times, enum column_kind kind, double value)
{
    const double us = 1e-6;
    const double gb = 1e9;
    if (kind == COLUMN_TIME)
        times->time_s = value * us;
    else if (kind == COLUMN_ALGBW)
        times->algbw_bytes_per_s = value * gb;
    else if (kind == COLUMN_BUSBW)
        times->busbw_bytes_per_s = value * gb;
    else if (kind == COLUMN_LOW)
        times->low_s = fmin(times->low_s, value * us);
    else if (kind == COLUMN_HIGH)
        times->high_s = fmax(times->high_s, value * us);
    else if (kind == COLUMN_WRONG)
        times->wrong = value >= 1 ? (int64_t)fmin(value, 9e18) : 0;
}

bool row_left_out(struct row_warnings *warnings, struct place place, const char *hint,
                  const char *format, ...)
{
    char text[512];
    va_list arguments;
    if (warnings->left_out++ >= NCCL_ROW_WARNINGS_MAX)
        return false;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    diag_add(warnings->diag, DIAG_WARNING, place, hint, "%s", text);
    return false;
}

bool row_size_is_possible(int64_t bytes)
{
    return bytes >= 0 && (double)bytes <= CALIBRATION_BYTES_MAX;
}

bool row_time_is_possible(double time_s)
{
    return time_s == 0 || (time_s >= CALIBRATION_TIME_MIN_S && time_s <= CALIBRATION_TIME_MAX_S);
}

bool row_rate_is_possible(double bytes_per_s)
{
    return bytes_per_s >= 0 && bytes_per_s <= CALIBRATION_BYTES_MAX / CALIBRATION_TIME_MIN_S;
}

static bool complain(struct row_warnings *warnings, const struct word *word, const char *what)
{
    return row_left_out(warnings, word->place, "the row is left out", "'%.64s' is not %s",
                        word->text, what);
}

static bool store_whole(struct nccl_row *row, enum column_kind kind, const struct word *word,
                        struct row_warnings *warnings)
{
    int64_t number;
    if (!text_to_int64(word->text, &number))
        return complain(warnings, word, "a whole number");
    if (kind == COLUMN_SIZE && !row_size_is_possible(number))
        return complain(warnings, word, "a size from 0 to 1e18 bytes");
    if (kind == COLUMN_SIZE)
        row->bytes = number;
    else if (kind == COLUMN_COUNT_OF)
        row->count = number;
    else
        row->root = number;
    return true;
}

static bool store(struct arena *arena, struct nccl_row *row, const struct column *column,
                  const struct word *word, struct row_warnings *warnings)
{
    const enum column_kind kind = column->kind;
    double value;
    if (kind == COLUMN_TYPE) {
        row->type = arena_strdup(arena, word->text);
        return true;
    }
    if (kind == COLUMN_REDOP) {
        row->redop = arena_strdup(arena, word->text);
        return true;
    }
    if (kind == COLUMN_IGNORED || is_absent(word->text))
        return true;
    if (kind == COLUMN_SIZE || kind == COLUMN_COUNT_OF || kind == COLUMN_ROOT)
        return store_whole(row, kind, word, warnings);
    if (!text_to_double(word->text, &value) || value < 0)
        return complain(warnings, word, "a number of at least 0");
    const bool is_rate = kind == COLUMN_ALGBW || kind == COLUMN_BUSBW;
    if (is_rate && !row_rate_is_possible(value * 1e9))
        return complain(warnings, word, "a rate up to 1e18 GB/s");
    if (!is_rate && kind != COLUMN_WRONG && !row_time_is_possible(value * 1e-6))
        return complain(warnings, word, "0 or a time from 1 ns to 1e5 s");
    store_measured(column->is_in_place ? &row->in_place : &row->out_of_place, kind, value);
    return true;
}

/* Columns up to the in-place group, which may be missing. */
static int32_t out_of_place_width(const struct columns *columns)
{
    int32_t width = 0;
    while (width < columns->count && !columns->items[width].is_in_place)
        width++;
    return width;
}

bool row_from_words(struct arena *arena, const struct words *words, const struct columns *columns,
                    bool is_last, struct nccl_row *row, struct row_warnings *warnings)
{
    struct columns guessed = {0};
    const struct word *first = &words->items[0];
    const struct word *last = &words->items[words->count - 1];
    *row = (struct nccl_row){.place = first->place, .type = "", .redop = "", .root = -1};
    row->out_of_place = row->in_place = no_times();
    if (columns->count == 0 && !columns_guess(words, &guessed))
        return row_left_out(
            warnings, first->place,
            is_last ? "the text ends here: the row is left out"
                    : "the row is left out; the header row ('size count type …') would name "
                      "the columns, without one 11 to 13 are known",
            "a row of %d columns", (int)words->count);
    const struct columns *in_force = columns->count > 0 ? columns : &guessed;
    if (words->count != in_force->count && words->count != out_of_place_width(in_force))
        return row_left_out(
            warnings, last->place,
            is_last ? "the text ends here: the row is left out" : "the row is left out",
            "a row of %d columns under a header of %d", (int)words->count, (int)in_force->count);
    for (int32_t i = 0; i < words->count; i++)
        if (!store(arena, row, &in_force->items[i], &words->items[i], warnings))
            return false;
    return true;
}
