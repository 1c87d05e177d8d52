/* cli/command.c: see command.h. */
#include "cli/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/shown_text.h"
#include "cli/new_file.h"
#include "report/report.h"

static bool is_coloured(const struct options *options)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (options->is_plain || (no_color != NULL && no_color[0] != '\0'))
        return false;
    return term != NULL && strcmp(term, "dumb") != 0 && isatty(STDERR_FILENO) == 1;
}

void command_flush(struct command *command)
{
    struct diag *diag = &command->diag;
    if (command->options.is_quiet)
        diag_keep_errors(diag);
    if (diag->count > 0 && (command->team == NULL || !command->team->is_worker))
        diag_write(diag, stderr, is_coloured(&command->options));
    diag_init(diag, &command->arena);
}

enum exit_code command_refuse(struct command *command, const char *hint, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    diag_add(&command->diag, DIAG_ERROR, NO_PLACE, hint, "%s", text);
    return EXIT_INPUT;
}

enum exit_code verb_refuse(struct command *command, const char *name)
{
    const char *names[VERB_COUNT + 1];
    verb_names(names);
    const char *nearest = nearest_name(name, names);
    const char *hint = nearest != NULL
                           ? arena_printf(&command->arena, "did you mean '%s'?", nearest)
                           : "'fsdpsim help' lists the verbs";
    if (name[0] == '-')
        return command_refuse(command, "fsdpsim VERB [FILE] [options]; 'fsdpsim help' lists them",
                              "unknown option '%s' where a verb was expected", name);
    return command_refuse(command, hint, "unknown verb '%s'", name);
}

enum exit_code command_refuse_word(struct command *command, const char *word)
{
    struct arena *arena = &command->arena;
    const char *const *words = command->verb->words;
    const char *nearest = nearest_name(word, words);
    const char *hint = nearest != NULL ? arena_printf(arena, "did you mean '%s'?", nearest)
                                       : arena_printf(arena, "accepted: %s", words[0]);
    for (int k = 1; nearest == NULL && words[k] != NULL; k++)
        hint = arena_printf(arena, "%s, %s", hint, words[k]);
    return command_refuse(command, hint, "unknown '%s' for 'fsdpsim %s'", word,
                          command->verb->name);
}

/* FILE@key=value@…: cuts the file's name off and adds the rest; a file of that very name wins. */
static const char *split_argument(struct arena *arena, const char *argument,
                                  struct text_list *overrides)
{
    const char *at = strchr(argument, '@');
    if (at == NULL || access(argument, F_OK) == 0)
        return argument;
    const char *file = arena_strndup(arena, argument, (size_t)(at - argument));
    while (at != NULL) {
        const char *text = at + 1;
        at = strchr(text, '@');
        *ARENA_PUSH(arena, overrides) =
            at != NULL ? arena_strndup(arena, text, (size_t)(at - text)) : text;
    }
    return file;
}

const char *command_split_file(struct command *command, const char *argument,
                               struct text_list *overrides)
{
    for (int32_t k = 0; k < command->options.overrides.count; k++)
        *ARENA_PUSH(&command->arena, overrides) = command->options.overrides.items[k];
    return split_argument(&command->arena, argument, overrides);
}

void command_add_overrides(struct command *command)
{
    if (command->options.samples > 0)
        *ARENA_PUSH(&command->arena, &command->options.overrides) = arena_printf(
            &command->arena, "simulate.samples=%lld", (long long)command->options.samples);
}

enum status command_load(struct command *command, const char *argument,
                         struct experiment *experiment)
{
    struct text_list overrides = {0};
    const char *file = command_split_file(command, argument, &overrides);
    const enum status status =
        experiment_load(experiment, file, overrides.items, overrides.count, &command->diag);
    if (status == STATUS_OK && experiment->sweep != NULL && command->verb->id != VERB_CHECK)
        diag_add(&command->diag, DIAG_WARNING, experiment->sweep->place,
                 "'fsdpsim sweep' plays all its points", "'sweep' is left out by 'fsdpsim %s'",
                 command->verb->name);
    /* The name of a file becomes a word in reports. */
    if (experiment->name != NULL)
        experiment->name = text_shown(&command->arena, experiment->name);
    return status;
}

void command_write_tables(const struct outcome *outcome, int64_t top)
{
    report_units(outcome, top == 0 || top > INT32_MAX ? INT32_MAX : (int32_t)top, stdout);
    fputc('\n', stdout);
    report_collectives(outcome, stdout);
    fputc('\n', stdout);
    report_links(outcome, stdout);
}

bool command_close_output(struct command *command)
{
    if (command->has_lost_output)
        return false;
    errno = 0;
    const bool had_error = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !had_error)
        return true;
    command->has_lost_output = true;
    diag_world(&command->diag, "cannot write to standard output%s%s", errno != 0 ? ": " : "",
               errno != 0 ? strerror(errno) : "");
    return false;
}

/* NULL: `path` is written as it is: not a file of its own (a device, a link), or the output. */
static const char *part_of(struct command *command, const char *path)
{
    struct stat found;
    if (lstat(path, &found) == 0 && !S_ISREG(found.st_mode))
        return NULL;
    return arena_printf(&command->arena, "%s.part", path);
}

static bool is_standard_output(const char *path)
{
    return path == NULL || strcmp(path, "-") == 0;
}

static bool is_same_file(const char *path, const char *other)
{
    struct stat a;
    struct stat b;
    return stat(path, &a) == 0 && stat(other, &b) == 0 && S_ISREG(a.st_mode) &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* The first of the files that are read which writing to `path` would replace, or NULL. */
static const char *input_of(const struct command *command, const char *path)
{
    const struct options *options = &command->options;
    const char *named[] = {options->cluster, options->gpu, options->nic_link, options->cpu,
                           options->torchtitan_log};
    const struct text_list *const lists[] = {&command->arguments, &options->facts};
    for (size_t k = 0; k < sizeof(named) / sizeof(named[0]); k++)
        if (named[k] != NULL && is_same_file(path, named[k]))
            return named[k];
    for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++)
        for (int32_t i = 0; i < lists[k]->count; i++)
            if (is_same_file(path, lists[k]->items[i]))
                return lists[k]->items[i];
    return NULL;
}

enum exit_code command_check_output(struct command *command)
{
    const struct {
        const char *option, *path;
        bool has_part; /* command_output_open */
    } outputs[] = {{"-o", command->options.output, true}, {"--svg", command->options.svg, false}};
    for (size_t k = 0; k < sizeof(outputs) / sizeof(outputs[0]); k++) {
        const char *option = outputs[k].option;
        const char *path = outputs[k].path;
        if (is_standard_output(path))
            continue;
        const char *hint = arena_printf(&command->arena, "name another file after %s", option);
        if (file_is_database(path))
            return command_refuse(command, hint, "'%s' is a database, which is not replaced", path);
        const char *part = outputs[k].has_part ? part_of(command, path) : NULL;
        const char *input = input_of(command, path);
        if (input == NULL && part != NULL)
            input = input_of(command, part);
        if (input != NULL)
            return command_refuse(command, hint, "'%s %s' would overwrite '%s', which is read",
                                  option, path, input);
    }
    return EXIT_DONE;
}

FILE *command_output_open(struct command *command)
{
    const char *path = command->options.output;
    if (is_standard_output(path))
        return stdout;
    const char *part = part_of(command, path);
    FILE *file = fopen(part != NULL ? part : path, "w");
    if (file == NULL)
        diag_world(&command->diag, "cannot write '%s': %s", path, strerror(errno));
    return file;
}

enum status command_output_close(struct command *command, FILE *file)
{
    const char *path = command->options.output;
    if (is_standard_output(path))
        return STATUS_OK;
    const char *part = part_of(command, path);
    bool is_written = fflush(file) == 0 && !ferror(file);
    int error = errno;
    if (fclose(file) != 0 && is_written) {
        is_written = false;
        error = errno;
    }
    if (is_written && part != NULL && rename(part, path) != 0) {
        is_written = false;
        error = errno;
    }
    if (is_written)
        return STATUS_OK;
    if (part != NULL)
        (void)remove(part);
    diag_world(&command->diag, "cannot write '%s': %s", path, strerror(error));
    return STATUS_WORLD;
}

/* Of a log: only the collectives that logs are read for. */
static bool read_log_op(struct command *command, const char *name, enum collective_op *op)
{
    if (nccl_op_from_log(name, op))
        return true;
    (void)command_refuse(command, "accepted: all_gather, reduce_scatter, all_reduce",
                         "unknown collective '%s'", name);
    return false;
}

bool command_log_request(struct command *command, struct nccl_request *request)
{
    const struct options *options = &command->options;
    *request = (struct nccl_request){.ranks = options->ranks, .nodes = options->nodes};
    if (options->op == NULL)
        return true;
    request->has_op = read_log_op(command, options->op, &request->op);
    return request->has_op;
}
