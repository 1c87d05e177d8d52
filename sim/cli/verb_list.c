/* cli/verb_list.c: fsdpsim list models | clusters | gpus: what ships. */
#include <stdio.h>

#include "base/strbuf.h"
#include "cli/catalog.h"
#include "cli/command.h"
#include "report/json_writer.h"

/* One shipped file: its name, what it is, where it lies. */
static enum status write_entry(struct command *command, const struct catalog_kind *kind,
                               const char *name, struct json_writer *json)
{
    struct catalog_entry entry = {0};
    const enum status status = catalog_load(&command->arena, kind, name, &entry, &command->diag);
    if (status == STATUS_OK && json != NULL) {
        json_begin_object(json);
        json_key(json, "name");
        json_text(json, name);
        json_key(json, "summary");
        json_text(json, entry.summary);
        json_key(json, "file");
        json_text(json, catalog_path(&command->arena, kind, name));
        json_end_object(json);
    } else if (status == STATUS_OK) {
        printf("%-24s %s\n", name, entry.summary);
    }
    command_flush(command);
    catalog_release(&entry);
    return status;
}

enum exit_code verb_list(struct command *command)
{
    const char *word = command->arguments.items[0];
    const struct catalog_kind *kind = catalog_find(word);
    if (kind == NULL || !text_equal(kind->plural, word))
        return command_refuse_word(command, word);
    const char *const *names =
        data_names(&command->arena, data_folders_find(&command->arena), kind->folder);
    if (names[0] == NULL) {
        diag_add(&command->diag, DIAG_ERROR, NO_PLACE,
                 "$FSDPSIM_DATA names the folders that hold models/, topologies/ and configs/",
                 "found no %s", word);
        return EXIT_WORLD;
    }
    struct json_writer json;
    json_init(&json, stdout);
    struct json_writer *writer = command->options.is_json ? &json : NULL;
    if (writer != NULL)
        json_begin_array(writer);
    enum status status = STATUS_OK;
    for (; *names != NULL; names++) {
        const enum status one = write_entry(command, kind, *names, writer);
        status = one != STATUS_OK ? one : status;
    }
    if (writer != NULL) {
        json_end_array(writer);
        json_finish(writer);
    }
    return (enum exit_code)status;
}
