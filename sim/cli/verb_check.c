/* cli/verb_check.c: fsdpsim check FILE..., fsdpsim schema KIND: the files and what they may say. */
#include <stdio.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "cli/catalog.h"
#include "cli/command.h"
#include "study/sweep_plan.h"
#include "study/validate.h"

static enum status check_config(struct command *command, const char *argument)
{
    struct experiment experiment = {0};
    enum status status = command_load(command, argument, &experiment);
    if (status == STATUS_OK) {
        experiment_note_unbuilt(&experiment);
        if (experiment.sweep != NULL)
            status = sweep_plan_check(experiment.sweep, &command->arena, &command->diag);
        if (status == STATUS_OK)
            status = command->diag.error_count > 0 ? STATUS_INPUT : STATUS_OK;
    }
    if (status == STATUS_OK && command->options.is_resolved)
        config_write_resolved(&experiment.config, stdout);
    else if (status == STATUS_OK && !command->options.is_quiet)
        printf("%s: ok\n", text_shown(&command->arena, argument));
    command_flush(command);
    experiment_release(&experiment);
    return status;
}

static enum status check_part(struct command *command, const struct catalog_kind *kind,
                              const char *argument)
{
    struct catalog_entry entry = {0};
    const enum status status =
        catalog_load(&command->arena, kind, argument, &entry, &command->diag);
    if (status == STATUS_OK && command->options.is_resolved)
        config_write_resolved(&entry.config, stdout);
    else if (status == STATUS_OK && !command->options.is_quiet)
        printf("%s: ok\n", text_shown(&command->arena, argument));
    command_flush(command);
    catalog_release(&entry);
    return status;
}

enum exit_code verb_check(struct command *command)
{
    const char *word = command->options.kind;
    const bool is_config = word == NULL || text_equal(word, "config");
    const struct catalog_kind *kind = is_config ? NULL : catalog_find(word);
    if (!is_config && kind == NULL)
        return command_refuse(command, "accepted: config, model, cluster, gpu, calibration",
                              "unknown kind '%s' after '--as'", word);
    if (!is_config && command->options.overrides.count > 0)
        return command_refuse(command, NULL, "'-s' does not go with '--as %s'", word);
    enum status status = STATUS_OK;
    for (int32_t k = 0; k < command->arguments.count; k++) {
        const char *argument = command->arguments.items[k];
        const enum status one =
            is_config ? check_config(command, argument) : check_part(command, kind, argument);
        status = one != STATUS_OK ? one : status;
    }
    return (enum exit_code)status;
}

enum exit_code verb_schema(struct command *command)
{
    const char *word = command->arguments.items[0];
    if (text_equal(word, "config")) {
        schema_write(&experiment_table, stdout);
        return EXIT_DONE;
    }
    if (text_equal(word, "runs"))
        return (enum exit_code)validate_schema_write(&command->arena, stdout, &command->diag);
    const struct catalog_kind *kind = catalog_find(word);
    if (kind == NULL)
        return command_refuse_word(command, word);
    catalog_write_schema(kind, stdout);
    return EXIT_DONE;
}
