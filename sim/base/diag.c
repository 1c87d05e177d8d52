/* base/diag.c: see diag.h. */
#include "base/diag.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/shown_text.h"
#include "base/strbuf.h"

enum {
    ERRORS_MAX = 20,
    GUTTER_MIN = 5,
    /* A line of a one-line JSON file is shown in part: this many characters before the mistake, and
       this many in all. */
    WINDOW_BEFORE = 60,
    WINDOW_MAX = 160,
};

void diag_init(struct diag *diag, struct arena *arena)
{
    *diag = (struct diag){.arena = arena};
}

__attribute__((format(printf, 5, 0))) static void add_message(struct diag *diag,
                                                              enum diag_level level,
                                                              struct place place, const char *hint,
                                                              const char *format, va_list arguments)
{
    va_list again;
    BUG_IF(format == NULL);
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    BUG_IF(length < 0);
    char *text = arena_alloc(diag->arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, arguments);

    struct diag_message *message = ARENA_PUSH(diag->arena, diag);
    message->level = level;
    message->place = place;
    message->text = text;
    message->hint = hint != NULL ? arena_strdup(diag->arena, hint) : NULL;
    if (level == DIAG_ERROR)
        diag->error_count++;
}

void diag_add(struct diag *diag, enum diag_level level, struct place place, const char *hint,
              const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_message(diag, level, place, hint, format, arguments);
    va_end(arguments);
}

void diag_world(struct diag *diag, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_message(diag, DIAG_ERROR, NO_PLACE, NULL, format, arguments);
    va_end(arguments);
}

void diag_keep_errors(struct diag *diag)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < diag->count; i++) {
        if (diag->items[i].level == DIAG_ERROR)
            diag->items[kept++] = diag->items[i];
    }
    diag->count = kept;
}

/* ---- layout of one message ---------------------------------------------------------------- */

static bool starts_character(char c)
{
    return ((unsigned char)c & 0xC0) != 0x80;
}

/* What a hostile file holds must not reach the terminal as it is. */
static void write_clean(FILE *file, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const size_t hidden = hidden_length(text + i, length - i);
        fputc(hidden > 0 ? '?' : (unsigned char)text[i], file);
        i += hidden > 0 ? hidden - 1 : 0;
    }
}

/* Where the line shown last begins: messages mostly come in the order of their lines. */
struct cursor {
    const struct source *source;
    int32_t line;
    const char *at;
};

/* The bytes of line `line` (from 1) without its end; "\n", "\r\n" and "\r" end a line. */
static const char *find_line(struct cursor *cursor, const struct source *source, int32_t line,
                             size_t *length)
{
    const bool is_behind = cursor->source == source && cursor->line <= line;
    const char *at = is_behind ? cursor->at : source->text;
    const char *end = source->text + source->length;
    for (int32_t i = is_behind ? cursor->line : 1; i < line; i++) {
        while (at < end && *at != '\n' && *at != '\r')
            at++;
        if (at == end)
            return NULL;
        at += at[0] == '\r' && at + 1 < end && at[1] == '\n' ? 2 : 1;
    }
    *cursor = (struct cursor){source, line, at};
    size_t n = 0;
    while (at + n < end && at[n] != '\n' && at[n] != '\r')
        n++;
    *length = n;
    return at;
}

/* The byte where character `count` (from 0) begins, or `length`. */
static size_t byte_of_character(const char *line, size_t length, int32_t count)
{
    size_t at = 0;
    for (int32_t seen = 0; at < length; at++) {
        if (starts_character(line[at]) && seen++ == count)
            break;
    }
    return at;
}

static int32_t characters(const char *line, size_t length)
{
    int32_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += starts_character(line[i]) ? 1 : 0;
    return count;
}

/* Blanks as wide as the shown text before the mistake: tabs stay tabs. */
static void write_indent(FILE *file, const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (starts_character(line[i]))
            fputc(line[i] == '\t' ? '\t' : ' ', file);
    }
}

static void write_excerpt(FILE *file, struct cursor *cursor, const struct place *place, int gutter,
                          bool is_coloured)
{
    size_t length = 0;
    const char *line = find_line(cursor, place->source, place->line, &length);
    if (line == NULL)
        return;
    const int32_t total = characters(line, length);
    int32_t first = 0, before = place->column > 0 ? place->column - 1 : 0;
    if (before > total)
        before = total;
    if (total > WINDOW_MAX && before > WINDOW_BEFORE)
        first = before - WINDOW_BEFORE;
    const size_t from = byte_of_character(line, length, first);
    const size_t mistake = byte_of_character(line, length, before);
    const size_t to = byte_of_character(line, length, first + WINDOW_MAX);
    const char *left = from > 0 ? "..." : "";
    fprintf(file, "%*d | %s", gutter, (int)place->line, left);
    write_clean(file, line + from, to - from);
    fprintf(file, "%s\n%*s | %*s", to < length ? "..." : "", gutter, "", (int)strlen(left), "");
    write_indent(file, line + from, mistake - from);

    int32_t carets = characters(line + mistake, to - mistake);
    if (carets > place->length)
        carets = place->length;
    fputs(is_coloured ? "\033[1;32m^" : "^", file);
    for (int32_t i = 1; i < carets; i++)
        fputc('^', file);
    fputs(is_coloured ? "\033[0m\n" : "\n", file);
}

static void write_message(FILE *file, struct cursor *cursor, const struct diag_message *message,
                          bool is_coloured)
{
    static const char *const words[] = {"error", "warning", "note"};
    static const char *const colours[] = {"\033[1;31m", "\033[1;35m", "\033[1;36m"};
    const struct place *place = &message->place;
    const bool has_place = place->source != NULL && place->line > 0;
    int gutter = GUTTER_MIN;
    if (has_place) {
        write_clean(file, place->source->name, strlen(place->source->name));
        fprintf(file, ":%d:%d: ", (int)place->line, (int)place->column);
        const int digits = snprintf(NULL, 0, "%d", (int)place->line);
        gutter = digits > GUTTER_MIN ? digits : GUTTER_MIN;
    }
    if (is_coloured)
        fprintf(file, "%s%s:\033[0m ", colours[message->level], words[message->level]);
    else
        fprintf(file, "%s: ", words[message->level]);
    write_clean(file, message->text, strlen(message->text));
    fputc('\n', file);
    if (has_place && place->source->text != NULL)
        write_excerpt(file, cursor, place, gutter, is_coloured);
    if (message->hint != NULL) {
        fprintf(file, "%*s = ", gutter, "");
        write_clean(file, message->hint, strlen(message->hint));
        fputc('\n', file);
    }
}

/* ---- what was said already ---------------------------------------------------------------- */

struct said {
    struct hash128 *slots; /* open addressing; all zero: empty */
    size_t slot_count;
};

static struct hash128 message_hash(const struct diag_message *message)
{
    struct hash128 hash;
    const struct place *place = &message->place;
    hash128_init(&hash);
    hash128_u64(&hash, (uint64_t)message->level);
    hash128_text(&hash, place->source != NULL ? place->source->name : "");
    hash128_u64(&hash, (uint64_t)place->line);
    hash128_u64(&hash, (uint64_t)place->column);
    hash128_text(&hash, message->text);
    return hash128_done(hash);
}

/* Remembers `key`; whether it was there already. */
static bool was_said(struct said *said, struct hash128 key)
{
    for (size_t i = key.low % said->slot_count;; i = (i + 1) % said->slot_count) {
        struct hash128 *slot = &said->slots[i];
        if (slot->high == 0 && slot->low == 0) {
            *slot = key;
            return false;
        }
        if (slot->high == key.high && slot->low == key.low)
            return true;
    }
}

const struct diag_message *diag_first_error(const struct diag *diag)
{
    for (int32_t i = 0; i < diag->count; i++)
        if (diag->items[i].level == DIAG_ERROR)
            return &diag->items[i];
    return NULL;
}

void diag_write(const struct diag *diag, FILE *file, bool is_coloured)
{
    if (diag->count == 0)
        return;
    struct said said = {.slot_count = 2 * (size_t)diag->count};
    said.slots = calloc(said.slot_count, sizeof(*said.slots));
    if (said.slots == NULL)
        out_of_memory(said.slot_count * sizeof(*said.slots));

    int32_t error_count = 0;
    struct hash128 parent = {0};
    struct cursor cursor = {0};
    bool is_parent_shown = true;
    for (int32_t i = 0; i < diag->count; i++) {
        const struct diag_message *message = &diag->items[i];
        struct hash128 key = message_hash(message);
        bool is_new = true;
        if (message->level == DIAG_NOTE) {
            /* A note belongs to the message before it and goes where that goes. */
            key.high = hash64_mix(key.high, parent.high);
            is_new = is_parent_shown && !was_said(&said, key);
        } else {
            is_new = !was_said(&said, key);
            parent = key;
            error_count += is_new && message->level == DIAG_ERROR ? 1 : 0;
            is_parent_shown = is_new && error_count <= ERRORS_MAX;
        }
        if (is_new && is_parent_shown)
            write_message(file, &cursor, message, is_coloured);
    }
    if (error_count > ERRORS_MAX) {
        const int more = (int)(error_count - ERRORS_MAX);
        fprintf(file, "and %d more error%s\n", more, more == 1 ? "" : "s");
    }
    free(said.slots);
}

char *diag_text(const struct diag *diag, struct arena *arena)
{
    char *heap_text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&heap_text, &length);
    if (file == NULL)
        out_of_memory(0);
    diag_write(diag, file, false);
    if (fclose(file) != 0)
        out_of_memory(length);
    char *text = arena_strndup(arena, heap_text, length);
    free(heap_text);
    return text;
}
