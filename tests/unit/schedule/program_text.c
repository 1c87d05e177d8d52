/* tests/unit/schedule/program_text.c: see program_text.h. */
#include "program_text.h"

#include <string.h>

#include "check.h"

enum { STREAM_COLUMNS = 19 }; /* as program_dump pads the stream's name */

bool program_text_read(struct program_text *text, struct played *played, const char *config,
                       const char *overrides)
{
    *text = (struct program_text){.whole = ""};
    if (!played_build(played, config, overrides))
        return false;
    text->whole = played_dump(played);
    const char *step = strstr(text->whole, "\nstep\n");
    if (!CHECK_TRUE(step != NULL))
        return false;
    struct {
        const char **items;
        int32_t count, capacity;
    } lines = {0};
    for (const char *line = step + strlen("\nstep\n"); *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        const char *copy = arena_strndup(&played->arena, line, length);
        if (strstr(copy, " host_work ") == NULL)
            *ARENA_PUSH(&played->arena, &lines) = copy;
        line += length + (line[length] == '\n');
    }
    text->lines = lines.items;
    text->count = lines.count;
    return true;
}

static bool matches(const char *line, const char *wanted)
{
    const char *colon = strstr(wanted, ": ");
    BUG_IF(colon == NULL);
    const size_t stream_length = (size_t)(colon - wanted);
    const char *operation = colon + 2;
    const size_t length = strlen(operation);
    if (strlen(line) < STREAM_COLUMNS || strncmp(line, wanted, stream_length) != 0)
        return false;
    if (strspn(line + stream_length, " ") != STREAM_COLUMNS - stream_length)
        return false;
    const char *found = line + STREAM_COLUMNS;
    return strncmp(found, operation, length) == 0 &&
           (found[length] == ' ' || found[length] == '\0');
}

int32_t program_text_find(const struct program_text *text, int32_t from, const char *wanted)
{
    for (int32_t i = from < 0 ? text->count : from; i < text->count; i++)
        if (matches(text->lines[i], wanted))
            return i;
    return -1;
}

int32_t program_text_count(const struct program_text *text, const char *wanted)
{
    int32_t count = 0;
    for (int32_t i = 0; i < text->count; i++)
        count += matches(text->lines[i], wanted);
    return count;
}

int32_t program_text_check_block(const struct program_text *text, int32_t from,
                                 const char *const *wanted)
{
    int32_t at = program_text_find(text, from, wanted[0]);
    check_context("%s", wanted[0]);
    bool held = CHECK_TRUE(at >= 0);
    for (int32_t i = 1; held && wanted[i] != NULL; i++) {
        at++;
        held = at < text->count && matches(text->lines[at], wanted[i]);
        if (!held)
            CHECK_TEXT(at < text->count ? text->lines[at] : "the end", wanted[i]);
    }
    check_context(NULL);
    return held ? at + 1 : -1;
}

int32_t program_text_check_order(const struct program_text *text, int32_t from,
                                 const char *const *wanted)
{
    int32_t at = from;
    for (int32_t i = 0; at >= 0 && wanted[i] != NULL; i++) {
        check_context("%s", wanted[i]);
        const int32_t found = program_text_find(text, at, wanted[i]);
        at = CHECK_TRUE(found >= 0) ? found + 1 : -1;
    }
    check_context(NULL);
    return at;
}
