/* cli/verb_topology.c: fsdpsim topology show NAME|FILE: what hangs where in a cluster. */
#include <stdio.h>

#include "base/strbuf.h"
#include "cli/catalog.h"
#include "cli/command.h"
#include "report/report_topology.h"

static enum status show(struct command *command, const char *name)
{
    struct catalog_entry entry = {0};
    struct topology topology;
    const enum status status = catalog_load_with(
        &command->arena, catalog_find("cluster"), name, command->options.overrides.items,
        command->options.overrides.count, &entry, &command->diag);
    if (status == STATUS_OK) {
        topology_init(&command->arena, &entry.cluster, data_folders_find(&command->arena),
                      &topology);
        if (command->options.is_json)
            report_topology_json(&topology, stdout);
        else if (command->options.is_dot)
            report_topology_dot(&topology, stdout);
        else
            report_topology(&topology, stdout);
    }
    command_flush(command);
    catalog_release(&entry);
    return status;
}

enum exit_code verb_topology(struct command *command)
{
    const char *const *words = command->arguments.items;
    if (!text_equal(words[0], "show"))
        return command_refuse_word(command, words[0]);
    if (command->arguments.count < 2)
        return command_refuse(command, "'fsdpsim list clusters' lists them",
                              "'fsdpsim topology show' wants the name or file of a cluster");
    if (command->options.is_json && command->options.is_dot)
        return command_refuse(command, NULL, "'--json' and '--dot' exclude each other");
    return (enum exit_code)show(command, words[1]);
}
