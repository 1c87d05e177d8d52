/* tests/unit/run/played.c: see played.h. */
#include "played.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "numeric/curve.h"

enum { MAX_OVERRIDES = 32 };

int64_t rounded_up(int64_t bytes)
{
    return (bytes + 511) / 512 * 512;
}

static int32_t split(struct arena *arena, const char *text, const char **items)
{
    int32_t count = 0;
    while (text != NULL && *text != '\0') {
        text += strspn(text, " ");
        const char *end = strchr(text, ';');
        const size_t length = end != NULL ? (size_t)(end - text) : strlen(text);
        if (length > 0) {
            BUG_IF(count == MAX_OVERRIDES);
            items[count++] = arena_strndup(arena, text, length);
        }
        text = end != NULL ? end + 1 : NULL;
    }
    return count;
}

enum status played_load(struct played *played, const char *config, const char *overrides)
{
    memset(played, 0, sizeof(*played));
    /* ctest sets it; a program started by hand finds the same files. */
    setenv("FSDPSIM_DATA", FSDPSIM_SOURCE_DIR, 0);
    numeric_init();
    arena_init(&played->arena);
    diag_init(&played->diag, &played->arena);
    const char *items[MAX_OVERRIDES];
    const int32_t count = split(&played->arena, overrides, items);
    const bool is_path = strstr(config, ".yaml") != NULL;
    const char *path = arena_printf(&played->arena, is_path ? "%s/%s" : "%s/configs/%s.yaml",
                                    FSDPSIM_SOURCE_DIR, config);
    return experiment_load(&played->experiment, path, items, count, &played->diag);
}

static bool succeeded(struct played *played, const char *config, const char *overrides,
                      enum status status)
{
    check_context("%s %s", config, overrides != NULL ? overrides : "");
    const bool held = CHECK_INT(status, STATUS_OK);
    if (!held)
        fputs(played_messages(played), stdout);
    check_context(NULL);
    return held;
}

bool played_build(struct played *played, const char *config, const char *overrides)
{
    enum status status = played_load(played, config, overrides);
    if (status == STATUS_OK)
        status = experiment_build(&played->experiment);
    return succeeded(played, config, overrides, status);
}

enum status played_try(struct played *played, const char *config, const char *overrides)
{
    enum status status = played_load(played, config, overrides);
    if (status == STATUS_OK)
        status = experiment_build(&played->experiment);
    if (status == STATUS_OK)
        status = experiment_play(&played->experiment, &played->outcome);
    return status;
}

bool played_play(struct played *played, const char *config, const char *overrides)
{
    return succeeded(played, config, overrides, played_try(played, config, overrides));
}

void played_release(struct played *played)
{
    experiment_release(&played->experiment);
    arena_release(&played->arena);
}

const char *played_messages(struct played *played)
{
    return diag_text(&played->diag, &played->arena);
}

struct text {
    FILE *file;
    char *bytes;
    size_t length;
};

static FILE *text_open(struct text *text)
{
    memset(text, 0, sizeof(*text));
    text->file = open_memstream(&text->bytes, &text->length);
    BUG_IF(text->file == NULL);
    return text->file;
}

static const char *text_close(struct text *text, struct arena *arena)
{
    fclose(text->file);
    const char *copy = arena_strdup(arena, text->bytes);
    free(text->bytes);
    return copy;
}

void check_mistakes(const struct mistake *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct played played;
        check_context("%s", rows[i].overrides);
        CHECK_INT(played_try(&played, rows[i].config, rows[i].overrides), STATUS_INPUT);
        CHECK_TRUE(played.diag.error_count > 0);
        const char *messages = played_messages(&played);
        for (int part = 0; part < 3 && rows[i].parts[part] != NULL; part++)
            CHECK_CONTAINS(messages, rows[i].parts[part]);
        CHECK_TRUE(played.diag.count > 0 && played.diag.items[0].place.line > 0);
        played_release(&played);
    }
    check_context(NULL);
}

const char *played_dump(struct played *played)
{
    struct text text;
    program_dump(played->experiment.program, text_open(&text));
    return text_close(&text, &played->arena);
}

const char *played_json(struct played *played)
{
    struct text text;
    report_json(&played->outcome, text_open(&text));
    return text_close(&text, &played->arena);
}

const char *played_memory(struct played *played, const struct estimate *estimate)
{
    struct text text;
    report_memory(&played->experiment, estimate, text_open(&text));
    return text_close(&text, &played->arena);
}

const char *played_explain(struct played *played, double hidden_frac)
{
    struct text text;
    FILE *file = text_open(&text);
    CHECK_INT(report_explain(&played->experiment, &played->outcome, hidden_frac, file), STATUS_OK);
    return text_close(&text, &played->arena);
}
