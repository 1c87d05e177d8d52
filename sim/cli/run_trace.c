/* cli/run_trace.c: see run_trace.h. */
#include "cli/run_trace.h"

#include <errno.h>
#include <string.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "cli/new_file.h"
#include "report/trace.h"

/* More files than anybody opens, each of some megabytes. */
enum { MOST_FILES = 1024 };

static bool ends_in(const char *text, const char *ending)
{
    const size_t length = strlen(text);
    const size_t wanted = strlen(ending);
    return length >= wanted && strcmp(text + length - wanted, ending) == 0;
}

static const char *class_path(struct command *command, const struct experiment *experiment,
                              int32_t class_idx)
{
    const char *path = command->options.trace_path;
    if (experiment->layout.class_count == 1)
        return path;
    static const char *const endings[] = {".json.gz", ".json", ".gz", ""};
    const char *const *ending = endings;
    while (!ends_in(path, *ending))
        ending++;
    return arena_printf(&command->arena, "%.*s.rank%lld%s", (int)(strlen(path) - strlen(*ending)),
                        path, (long long)experiment->layout.classes[class_idx].first_rank, *ending);
}

enum status run_trace_check(struct command *command, const struct experiment *experiment)
{
    const char *path = command->options.trace_path;
    const int32_t count = experiment->layout.class_count;
    if (path[0] == '\0' || text_equal(path, "-"))
        return (enum status)command_refuse(command, "name a file, as trace.json.gz",
                                           "'--trace %s' names no file", path);
    if (count > MOST_FILES)
        return (enum status)command_refuse(
            command, "'-s simulate.fold=auto' folds ranks that behave alike",
            "'--trace' would write %d files, one for each rank class; at most %d", (int)count,
            (int)MOST_FILES);
    for (int32_t i = 0; i < count; i++) {
        const char *file = class_path(command, experiment, i);
        if (file_is_database(file))
            return (enum status)command_refuse(command, "name another file",
                                               "'%s' is a database, which is not replaced", file);
        if (config_has_read(&experiment->config, file))
            return (enum status)command_refuse(command, NULL,
                                               "'--trace %s' would overwrite a file that the "
                                               "configuration is read from",
                                               file);
    }
    return STATUS_OK;
}

static enum status write_class(struct command *command, struct experiment *experiment,
                               int32_t class_idx)
{
    struct new_file new_file;
    const char *path = class_path(command, experiment, class_idx);
    enum status status = new_file_open(command, path, &new_file);
    if (status != STATUS_OK)
        return status;
    errno = 0;
    const bool is_written = report_trace(experiment, experiment->journal, class_idx,
                                         ends_in(path, ".gz"), new_file.file);
    return new_file_close(command, &new_file, is_written);
}

enum status run_trace_write(struct command *command, struct experiment *experiment)
{
    const int32_t count = experiment->layout.class_count;
    for (int32_t i = 0; i < count; i++) {
        const enum status status = write_class(command, experiment, i);
        if (status != STATUS_OK)
            return status;
    }
    if (command->options.is_quiet)
        return STATUS_OK;
    const char *first = text_shown(&command->arena, class_path(command, experiment, 0));
    if (count == 1)
        fprintf(stderr, "timeline in %s: open it in https://ui.perfetto.dev\n", first);
    else
        fprintf(stderr, "timelines in %s and %d more: open one in https://ui.perfetto.dev\n", first,
                (int)count - 1);
    return STATUS_OK;
}
