/* cli/verb_calibrate.c: fsdpsim calibrate nccl LOG...: measured collectives → a calibration file.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "collective/calibrate.h"
#include "report/report_calibrate.h"

/* "out/my-cluster.yaml" → "my-cluster". */
static const char *name_of(struct command *command, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    if (strcmp(base, "-") == 0)
        return "calibration";
    return dot != NULL && dot != base ? arena_strndup(&command->arena, base, (size_t)(dot - base))
                                      : base;
}

static enum status write_output(struct command *command, const struct calibrate_set *set)
{
    const char *path = command->options.output;
    if (strcmp(path, "-") == 0) {
        calibrate_write_yaml(set, name_of(command, path), stdout);
        return STATUS_OK;
    }
    FILE *file = fopen(path, "w");
    if (file != NULL)
        calibrate_write_yaml(set, name_of(command, path), file);
    const bool is_written = file != NULL && !ferror(file);
    if (file != NULL && fclose(file) == 0 && is_written)
        return STATUS_OK;
    diag_world(&command->diag, "cannot write '%s': %s", path, strerror(errno));
    return STATUS_WORLD;
}

static enum status read_logs(struct command *command, struct nccl_log *log)
{
    struct nccl_request request;
    if (!command_log_request(command, &request))
        return STATUS_INPUT;
    enum status status = STATUS_OK;
    for (int32_t i = 1; i < command->arguments.count; i++) {
        const enum status one = nccl_log_load(&command->arena, command->arguments.items[i],
                                              &request, log, &command->diag);
        status = one != STATUS_OK ? one : status;
    }
    return status;
}

enum exit_code verb_calibrate(struct command *command)
{
    const struct options *options = &command->options;
    struct nccl_log log = {0};
    struct calibrate_set set = {0};
    if (!text_equal(command->arguments.items[0], "nccl"))
        return command_refuse_word(command, command->arguments.items[0]);
    if (command->arguments.count < 2)
        return command_refuse(command, "what nccl-tests printed, or its JSON (-J); '-': stdin",
                              "'calibrate nccl' wants a LOG");
    enum status status = read_logs(command, &log);
    if (status != STATUS_OK)
        return (enum exit_code)status;
    if (!calibrate_log(&command->arena, &log, &set) || set.count == 0) {
        status = STATUS_INPUT;
        (void)command_refuse(command, NULL, "a table has no time above 0");
    } else {
        calibrate_warn(&set, &command->diag);
    }
    const bool is_on_stdout = text_equal(options->output, "-");
    if (status == STATUS_OK && options->is_json && !is_on_stdout)
        report_calibrate_json(&set, stdout);
    else if (status == STATUS_OK && !is_on_stdout)
        report_calibrate(&set, stdout);
    if (status == STATUS_OK && options->output != NULL)
        status = write_output(command, &set);
    calibrate_set_release(&set);
    return (enum exit_code)status;
}
