/* study/torchtitan_log.c: see torchtitan_log.h. */
#include "study/torchtitan_log.h"

#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "numeric/fit.h"

enum { LOG_MAX_BYTES = 256 << 20, WARM_UP_STEPS = 10, FIGURE_MAX_BYTES = 31, MISTAKES_MAX = 20 };

struct log_line {
    int64_t step, rank;
    bool is_first; /* of its rank */
    double tokens_per_s, tflops, mfu, memory_bytes;
};

struct reader {
    struct arena *arena;
    const struct source *source;
    struct diag *diag;
    int32_t errors_before;
    int64_t without_rate;
    struct {
        struct log_line *items;
        int32_t count, capacity;
    } lines;
};

/* ---- one line ----------------------------------------------------------------------------- */

struct text_line {
    char *text;       /* without colour codes */
    int32_t *columns; /* of each byte of it, in the file */
    int32_t number;
};

/* Takes out escape sequences: ESC [ parameters letter. */
static struct text_line clean_line(struct arena *arena, const char *from, size_t length,
                                   int32_t number)
{
    struct text_line line = {.text = arena_alloc(arena, length + 1),
                             .columns = ARENA_ARRAY(arena, int32_t, length + 1),
                             .number = number};
    size_t kept = 0;
    int32_t column = 1;
    for (size_t k = 0; k < length; k++) {
        const bool is_escape = from[k] == '\033' && k + 1 < length && from[k + 1] == '[';
        if (is_escape) {
            size_t end = k + 2;
            while (end < length && (from[end] < '@' || from[end] > '~'))
                end++;
            column += (int32_t)(end - k) + 1;
            k = end;
            continue;
        }
        line.text[kept] = from[k];
        if (from[k] == '\0')
            line.text[kept] = ' ';
        line.columns[kept++] = column;
        column += ((unsigned char)from[k] & 0xc0) != 0x80;
    }
    line.text[kept] = '\0';
    line.columns[kept] = column;
    return line;
}

/* Behind "NAME:" as a word of its own, blanks skipped; NULL: not there. */
static const char *find_value(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
        if ((at > text && at[-1] != ' ' && at[-1] != '\t') || at[length] != ':')
            continue;
        at += length + 1;
        while (*at == ' ' || *at == '\t')
            at++;
        return at;
    }
    return NULL;
}

static bool complain(struct reader *reader, const struct text_line *line, const char *at,
                     size_t length, const char *hint, const char *mistake)
{
    const struct place place = {.source = reader->source,
                                .line = line->number,
                                .column = line->columns[at - line->text],
                                .length = length > 0 ? (int32_t)length : 1};
    diag_add(reader->diag, DIAG_ERROR, place, hint, "%s", mistake);
    return false;
}

/* Digits with thousands' commas and a point at `at`; NaN for N/A, nan, the 0 that stands where
   nothing was measured, and NULL. Moves *at behind them. */
static bool take_number(struct reader *reader, const struct text_line *line, const char **at,
                        const char *name, bool may_be_zero, double *value)
{
    char digits[FIGURE_MAX_BYTES + 1];
    size_t kept = 0;
    const char *from = *at;
    *value = (double)NAN;
    if (from == NULL || strncmp(from, "N/A", 3) == 0 || strncmp(from, "nan", 3) == 0)
        return true;
    const size_t length = strspn(from, "0123456789.,eE+-");
    for (size_t k = 0; k < length && kept < FIGURE_MAX_BYTES; k++)
        if (from[k] != ',')
            digits[kept++] = from[k];
    digits[kept] = '\0';
    *at = from + length;
    const bool is_number =
        length <= FIGURE_MAX_BYTES && text_to_double(digits, value) && *value < 1e15;
    if (is_number && *value > 0)
        return true;
    const bool is_zero = is_number && !(*value < 0);
    *value = (double)NAN;
    if (is_zero && may_be_zero)
        return true;
    return complain(reader, line, from, length, "as torchtitan prints it: 'tps: 5,762'",
                    arena_printf(reader->arena, "'%s' is not a number of %s", name,
                                 may_be_zero ? "0 or more" : "more than 0"));
}

static bool take_figure(struct reader *reader, const struct text_line *line, const char *name,
                        bool may_be_zero, double *value)
{
    const char *at = find_value(line->text, name);
    return take_number(reader, line, &at, name, may_be_zero, value);
}

/* "27.32GiB(28.75%)": a figure and its unit. */
static bool take_memory(struct reader *reader, const struct text_line *line, double *bytes)
{
    static const struct {
        const char *word;
        double bytes;
    } units[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
                 {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12}};
    const char *at = find_value(line->text, "memory");
    if (!take_number(reader, line, &at, "memory", true, bytes))
        return false;
    if (isnan(*bytes))
        return true;
    while (*at == ' ')
        at++;
    const size_t length = strcspn(at, " \t(");
    for (size_t k = 0; k < sizeof(units) / sizeof(units[0]); k++) {
        if (strlen(units[k].word) == length && strncmp(at, units[k].word, length) == 0) {
            *bytes *= units[k].bytes;
            return true;
        }
    }
    return complain(reader, line, at, length, "KiB, MiB, GiB, TiB, KB, MB, GB or TB",
                    "'memory' has no unit of bytes behind it");
}

/* "[rank3]:" and the like; 0 without. */
static int64_t rank_of(const char *text)
{
    const char *at = strstr(text, "rank");
    int64_t rank = 0;
    if (at == NULL)
        return 0;
    at += strlen("rank");
    for (int digits = 0; *at >= '0' && *at <= '9' && digits < 9; digits++)
        rank = rank * 10 + (*at++ - '0');
    return rank;
}

static void take_line(struct reader *reader, const struct text_line *text)
{
    double step = 0;
    const char *is_step = find_value(text->text, "step");
    const bool is_old = find_value(text->text, "tps") == NULL;
    struct log_line line = {.rank = rank_of(text->text), .is_first = true};
    if (is_step == NULL || (is_old && find_value(text->text, "wps") == NULL))
        return;
    const bool is_good =
        take_figure(reader, text, "step", false, &step) &&
        take_figure(reader, text, is_old ? "wps" : "tps", false, &line.tokens_per_s) &&
        take_figure(reader, text, "tflops", true, &line.tflops) &&
        take_figure(reader, text, "mfu", true, &line.mfu) &&
        take_memory(reader, text, &line.memory_bytes);
    if (is_good && (isnan(line.tokens_per_s) || isnan(step)))
        reader->without_rate++;
    if (!is_good || isnan(line.tokens_per_s) || isnan(step))
        return;
    line.step = (int64_t)step;
    for (int32_t k = 0; k < reader->lines.count && line.is_first; k++)
        line.is_first = reader->lines.items[k].rank != line.rank;
    *ARENA_PUSH(reader->arena, &reader->lines) = line;
}

/* ---- the whole ---------------------------------------------------------------------------- */

enum which { LATER_STEPS, ALL_BUT_FIRST, ALL_LINES };

static bool is_used(const struct log_line *line, enum which which)
{
    return which == LATER_STEPS ? line->step > WARM_UP_STEPS
                                : which == ALL_LINES || !line->is_first;
}

static enum which choose(const struct reader *reader)
{
    for (int which = LATER_STEPS; which < ALL_LINES; which++)
        for (int32_t k = 0; k < reader->lines.count; k++)
            if (is_used(&reader->lines.items[k], (enum which)which))
                return (enum which)which;
    return ALL_LINES;
}

/* NaN where no line has it. */
static double share_of(const struct reader *reader, enum which which, size_t offset, double share)
{
    double *values = ARENA_ARRAY(reader->arena, double, reader->lines.count + 1);
    int32_t count = 0;
    for (int32_t k = 0; k < reader->lines.count; k++) {
        const struct log_line *line = &reader->lines.items[k];
        const double value = *(const double *)(const void *)((const char *)line + offset);
        if (is_used(line, which) && !isnan(value))
            values[count++] = value;
    }
    return quantile(values, count, share);
}

static void summarise(const struct reader *reader, struct torchtitan_log *log)
{
    const enum which which = choose(reader);
    const size_t rate = offsetof(struct log_line, tokens_per_s);
    *log = (struct torchtitan_log){.lines = reader->lines.count,
                                   .lines_without_rate = reader->without_rate,
                                   .is_warm_up = which != LATER_STEPS};
    for (int32_t k = 0; k < reader->lines.count; k++) {
        const struct log_line *line = &reader->lines.items[k];
        log->ranks += line->is_first;
        if (!is_used(line, which))
            continue;
        if (log->lines_used == 0 || line->step < log->first_step)
            log->first_step = line->step;
        log->last_step = line->step > log->last_step ? line->step : log->last_step;
        log->lines_used++;
    }
    log->tokens_per_s_per_gpu = share_of(reader, which, rate, 0.5);
    log->slow_tokens_per_s = share_of(reader, which, rate, 0.05);
    log->fast_tokens_per_s = share_of(reader, which, rate, 0.95);
    log->tflops_per_gpu = share_of(reader, which, offsetof(struct log_line, tflops), 0.5);
    log->mfu = share_of(reader, which, offsetof(struct log_line, mfu), 0.5) / 100.0;
    log->reserved_bytes = share_of(reader, which, offsetof(struct log_line, memory_bytes), 1.0);
}

enum status torchtitan_log_parse(struct arena *arena, const struct source *source,
                                 struct torchtitan_log *log, struct diag *diag)
{
    struct reader reader = {
        .arena = arena, .source = source, .diag = diag, .errors_before = diag->error_count};
    const char *at = source->text, *end = source->text + source->length;
    *log = (struct torchtitan_log){0};
    for (int32_t number = 1; at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((stop != NULL ? stop : end) - at);
        struct arena scratch = {0};
        const struct text_line line = clean_line(&scratch, at, length, number);
        take_line(&reader, &line);
        arena_release(&scratch);
        at += length + 1;
        if (diag->error_count - reader.errors_before >= MISTAKES_MAX)
            break;
    }
    if (diag->error_count == reader.errors_before && reader.lines.count == 0 &&
        reader.without_rate > 0)
        diag_add(diag, DIAG_ERROR, (struct place){source, 1, 1, 1}, NULL,
                 "no line has a rate: in all %lld with a step it is nan or N/A",
                 (long long)reader.without_rate);
    else if (diag->error_count == reader.errors_before && reader.lines.count == 0)
        diag_add(diag, DIAG_ERROR, (struct place){source, 1, 1, 1},
                 "the log that torchtitan prints, with lines such as 'step: 20  loss: 5.1  memory: "
                 "27.32GiB(28.75%)  tps: 1,786'",
                 "no line with a step and its tokens per second");
    if (diag->error_count != reader.errors_before)
        return STATUS_INPUT;
    summarise(&reader, log);
    return STATUS_OK;
}

enum status torchtitan_log_load(struct arena *arena, const char *path, struct torchtitan_log *log,
                                struct diag *diag)
{
    struct source *source = NULL;
    const enum status status = source_load(arena, path, LOG_MAX_BYTES, &source, diag);
    return status == STATUS_OK ? torchtitan_log_parse(arena, source, log, diag) : status;
}
