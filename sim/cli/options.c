/* cli/options.c: see options.h. */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

bool option_belongs(const struct option *option, const struct verb *verb)
{
    return (option->verbs >> verb->id & 1) != 0;
}

/* ---- finding ------------------------------------------------------------------------------ */

static const struct option *find_name(const char *name, size_t length)
{
    for (const struct option *row = option_table; row->name != NULL; row++) {
        if (strlen(row->name) == length && strncmp(row->name, name, length) == 0)
            return row;
    }
    return NULL;
}

static const struct option *find_letter(char letter)
{
    for (const struct option *row = option_table; row->name != NULL; row++) {
        if (row->letter == letter)
            return row;
    }
    return NULL;
}

static const char *nearest_option(struct arena *arena, const struct verb *verb, const char *name)
{
    const char *names[128];
    size_t count = 0;
    for (const struct option *row = option_table; row->name != NULL; row++) {
        if (option_belongs(row, verb) && !row->is_hidden)
            names[count++] = row->name;
    }
    names[count] = NULL;
    const char *nearest = nearest_name(name, names);
    return nearest != NULL ? arena_printf(arena, "did you mean '--%s'?", nearest)
                           : arena_printf(arena, "'fsdpsim %s --help' lists them", verb->name);
}

static const char *verbs_of(struct arena *arena, const struct option *option)
{
    const char *text = NULL;
    for (const struct verb *verb = verb_table; verb < verb_table + VERB_COUNT; verb++) {
        if (!option_belongs(option, verb))
            continue;
        text = text == NULL ? arena_printf(arena, "it belongs to '%s'", verb->name)
                            : arena_printf(arena, "%s, '%s'", text, verb->name);
    }
    return text;
}

/* ---- storing ------------------------------------------------------------------------------ */

struct parser {
    struct arena *arena;
    const struct verb *verb;
    struct options *options;
    struct diag *diag;
    int argc;
    char **argv;
    int at; /* the argument being read */
};

static void *slot_of(const struct parser *parser, const struct option *option)
{
    return (char *)parser->options + option->offset;
}

static enum status store_count(struct parser *parser, const struct option *option,
                               const char *value)
{
    int64_t *slot = slot_of(parser, option);
    if (text_to_int64(value, slot) && *slot >= 1)
        return STATUS_OK;
    diag_add(parser->diag, DIAG_ERROR, NO_PLACE, NULL,
             "'--%s' wants a whole number of at least 1, not '%s'", option->name, value);
    return STATUS_INPUT;
}

/* "nodes=": a shell's empty variable, which would silently stand for the default. */
static enum status store_list(struct parser *parser, const struct option *option, const char *value)
{
    const char *equals =
        option->offset == offsetof(struct options, overrides) ? strchr(value, '=') : NULL;
    if (equals != NULL && equals[1 + strspn(equals + 1, " \t")] == '\0') {
        diag_add(parser->diag, DIAG_ERROR, NO_PLACE,
                 arena_printf(parser->arena, "'%.*s=null' goes back to the default",
                              (int)(equals - value), value),
                 "'-s %s' gives no value", value);
        return STATUS_INPUT;
    }
    *ARENA_PUSH(parser->arena, (struct text_list *)slot_of(parser, option)) = value;
    return STATUS_OK;
}

static enum status store_value(struct parser *parser, const struct option *option,
                               const char *value)
{
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)slot_of(parser, option) = true;
        return STATUS_OK;
    case OPTION_TEXT:
        *(const char **)slot_of(parser, option) = value;
        return STATUS_OK;
    case OPTION_LIST:
        return store_list(parser, option, value);
    case OPTION_COUNT:
        return store_count(parser, option, value);
    }
    BUG("option kind %d", (int)option->kind);
}

/* `written` is the option as the user wrote it; `value` what was glued to it, or NULL. */
static enum status take(struct parser *parser, const struct option *option, const char *written,
                        const char *value)
{
    if (!option_belongs(option, parser->verb)) {
        diag_add(parser->diag, DIAG_ERROR, NO_PLACE, verbs_of(parser->arena, option),
                 "'%s' is not an option of 'fsdpsim %s'", written, parser->verb->name);
        return STATUS_INPUT;
    }
    if (option->kind == OPTION_FLAG) {
        if (value == NULL)
            return store_value(parser, option, NULL);
        diag_add(parser->diag, DIAG_ERROR, NO_PLACE, NULL, "'%s' takes no value", written);
        return STATUS_INPUT;
    }
    if (value == NULL && parser->at + 1 < parser->argc)
        value = parser->argv[++parser->at];
    if (value == NULL) {
        diag_add(
            parser->diag, DIAG_ERROR, NO_PLACE,
            arena_printf(parser->arena, "%s %s: %s", written, option->value_name, option->help),
            "'%s' wants a value", written);
        return STATUS_INPUT;
    }
    return store_value(parser, option, value);
}

static enum status parse_long(struct parser *parser, const char *word)
{
    const char *name = word + 2;
    const char *equals = strchr(name, '=');
    const size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    const char *written = arena_strndup(parser->arena, word, length + 2);
    const struct option *option = find_name(name, length);
    if (option != NULL)
        return take(parser, option, written, equals != NULL ? equals + 1 : NULL);
    diag_add(parser->diag, DIAG_ERROR, NO_PLACE,
             nearest_option(parser->arena, parser->verb, written + 2), "unknown option '%s'",
             written);
    return STATUS_INPUT;
}

static enum status parse_short(struct parser *parser, const char *word)
{
    const char *written = arena_strndup(parser->arena, word, 2);
    const struct option *option = find_letter(word[1]);
    if (option == NULL || (word[2] != '\0' && !option_belongs(option, parser->verb))) {
        /* `-json` for `--json` is a common slip. */
        const char *hint = nearest_option(parser->arena, parser->verb, word + 1);
        diag_add(parser->diag, DIAG_ERROR, NO_PLACE, hint, "unknown option '%s'", word);
        return STATUS_INPUT;
    }
    return take(parser, option, written, word[2] != '\0' ? word + 2 : NULL);
}

enum status options_parse(struct arena *arena, const struct verb *verb, int argc, char **argv,
                          int from, struct options *options, struct text_list *arguments,
                          struct diag *diag)
{
    struct parser parser = {
        .arena = arena, .verb = verb, .options = options, .diag = diag, .argc = argc, .argv = argv};
    enum status status = STATUS_OK;
    bool has_ended = false;
    for (parser.at = from; parser.at < argc; parser.at++) {
        const char *word = argv[parser.at];
        enum status one = STATUS_OK;
        /* "-@nodes=4": standard input with an override. */
        if (has_ended || word[0] != '-' || word[1] == '\0' || word[1] == '@')
            *ARENA_PUSH(arena, arguments) = word;
        else if (strcmp(word, "--") == 0)
            has_ended = true;
        else if (word[1] == '-')
            one = parse_long(&parser, word);
        else
            one = parse_short(&parser, word);
        if (one != STATUS_OK)
            status = one;
    }
    return status;
}
